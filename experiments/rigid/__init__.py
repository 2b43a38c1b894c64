"""Rigid engine: solids that touch, forward problems, time stepping by contact models."""
