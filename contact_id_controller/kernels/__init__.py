"""Numerics for any room: compiling, dense factors, reduction, nearest point, cones, interior point."""
