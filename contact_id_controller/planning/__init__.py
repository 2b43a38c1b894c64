"""Planners of motion; each returns a plans.Plan."""
