"""Numerics for any room: compiling, arrays, reduction, nearest point, cones, interior point."""
