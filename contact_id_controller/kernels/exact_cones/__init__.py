"""Coulomb's law on exact friction cones: contact problems, and forces of least cost, by Newton's method."""
