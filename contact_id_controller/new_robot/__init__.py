"""Proposes a parameter file for a robot: joints, legs, feet, posture and gait from its URDF."""
