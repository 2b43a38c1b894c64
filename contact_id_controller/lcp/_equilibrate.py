"""Scaling of a matrix by powers of two, so that tolerances mean the same in every problem."""

from __future__ import annotations

import math

from ._compile import bare_kernel as kernel


@kernel
def power_of_two(value):
    """The power of two next to 1 / value, so that scaling by it is exact; 1 when that would overflow."""
    if not 1e-300 < value < 1e300:
        return 1.0
    return math.ldexp(1.0, -math.frexp(value)[1])


@kernel
def equilibrate(M, row_scale, column_scale):
    """Scales (powers of two) that bring the largest entry of each row and column of M near 1."""
    n = M.shape[0]
    for i in range(n):
        column_scale[i] = 0.0
    for i in range(n):
        a = b = c = d = 0.0
        for j in range(0, n - 3, 4):  # four maxima at a time: the processor overlaps them
            a = max(a, abs(M[i, j]))
            b = max(b, abs(M[i, j + 1]))
            c = max(c, abs(M[i, j + 2]))
            d = max(d, abs(M[i, j + 3]))
        for j in range(n - n % 4, n):
            a = max(a, abs(M[i, j]))
        row_scale[i] = power_of_two(max(max(a, b), max(c, d)))
        for j in range(n):
            size = row_scale[i] * abs(M[i, j])
            column_scale[j] = size if size > column_scale[j] else column_scale[j]
    for j in range(n):
        column_scale[j] = power_of_two(column_scale[j])
