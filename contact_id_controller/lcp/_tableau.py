"""The condensed tableau of a pivoting method: equilibration, exchange step, lexicographic ratio test.

A tableau T (n, n + 2) holds x_B + T[:, :n + 1] x_N = T[:, n + 1]: rows are the basic variables,
columns the non-basic ones, the last column their values.  Variables are numbered w_i = i,
z_i = n + i, covering variable z_0 = 2 n; ``place[v]`` is the row of a basic variable and
-1 - column of a non-basic one.
"""

from __future__ import annotations

import math

from ._compile import bare_kernel as kernel

PIVOT_TOLERANCE = 1e-10  # smaller entries of the (equilibrated) entering column do not block
TIE_TOLERANCE = 1e-12  # ratios closer than this, relative to 1 + ratio, are ties


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
        for j in range(0, n - 3, 4):
            a = max(a, abs(M[i, j]))
            b = max(b, abs(M[i, j + 1]))
            c = max(c, abs(M[i, j + 2]))
            d = max(d, abs(M[i, j + 3]))
        for j in range(n - n % 4, n):
            a = max(a, abs(M[i, j]))
        scale = power_of_two(max(max(a, b), max(c, d)))
        row_scale[i] = scale
        for j in range(n):
            size = scale * abs(M[i, j])
            column_scale[j] = size if size > column_scale[j] else column_scale[j]
    for j in range(n):
        column_scale[j] = power_of_two(column_scale[j])


@kernel
def exchange(T, names, place, row, column, buffer):
    """Swap the basic variable of ``row`` with the non-basic one of ``column`` (Jordan exchange)."""
    n, width = T.shape
    inverse = 1.0 / T[row, column]
    for j in range(width):
        buffer[j] = T[row, j] * inverse
    buffer[column] = inverse
    for i in range(n):
        factor = T[i, column]
        if i == row or factor == 0.0:
            continue
        T[i, column] = 0.0
        for j in range(width):
            T[i, j] -= factor * buffer[j]
    for j in range(width):
        T[row, j] = buffer[j]
    leaving, entering = names[row], names[n + column]
    names[row], names[n + column] = entering, leaving
    place[entering], place[leaving] = row, -1 - column


@kernel
def leaving_row(T, names, place, column, ties):
    """Row of the lexicographic minimum ratio in ``column``; -1 when nothing blocks.

    Rows are compared by [value, B^-1] / entry, B^-1 being the columns of w.  z_0 wins any tie in
    the values, so that a solution is taken as soon as it can be.
    """
    n = T.shape[0]
    last = n + 1
    count, best = 0, 0.0
    for i in range(n):
        if T[i, column] > PIVOT_TOLERANCE:
            ratio = max(T[i, last], 0.0) / T[i, column]
            if count == 0 or ratio < best:
                best = ratio
            ties[count] = i
            count += 1
    if count == 0:
        return -1
    limit = best + TIE_TOLERANCE * (1.0 + best)
    kept = 0
    for t in range(count):
        i = ties[t]
        if max(T[i, last], 0.0) <= limit * T[i, column]:
            if names[i] == 2 * n:
                return i
            ties[kept] = i
            kept += 1
    for j in range(n):
        if kept == 1:
            break
        kept = _narrow(T, place[j], column, ties, kept)
    return ties[0]


@kernel
def _narrow(T, position, column, ties, count):
    """Keep the rows with the smallest entry of one column of B^-1 relative to the pivot entry."""
    best = math.inf
    kept = 0
    for t in range(count):
        i = ties[t]
        entry = T[i, -1 - position] if position < 0 else (1.0 if position == i else 0.0)
        ratio = entry / T[i, column]
        slack = TIE_TOLERANCE * (1.0 + abs(best)) if best < math.inf else 0.0
        if ratio < best - slack:
            best = ratio
            kept = 0
        elif ratio > best + slack:
            continue
        ties[kept] = i
        kept += 1
    return kept
