"""Projected dynamics, operational-space laws, and least power under exact friction cones."""
