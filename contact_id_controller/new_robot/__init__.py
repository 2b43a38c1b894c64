"""A parameter file for a robot that has none: joints, legs, feet, posture and gait found in its URDF."""
