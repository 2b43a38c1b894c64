"""Numerical kernels: compiling, dense factors, reduction, nearest point, cones, interior point."""
