"""Whole-body dynamics from any set of sensors, and the motion of a base that nobody measures."""
