"""The robot in MuJoCo: motors, sensors, perturbations, pictures."""
