"""Projected dynamics and optimal control under exact friction cones (fourth room of theory.md)."""
