"""Trajectories of joints and base, schedules of contact: checks and interpolation."""
