"""Finds faults in a log, or in the model of its robot: one finding per check, as text."""
