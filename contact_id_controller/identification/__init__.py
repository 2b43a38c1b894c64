"""A robot's inertial parameters, friction, rotors and torque constants found from a log of its motion."""
