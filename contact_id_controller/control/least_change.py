"""Multipliers that keep values within bounds: which row acts, and how much, where each can act only at a bound.

    w = value + G z,    low <= w <= high,    z_i > 0 only where w_i = low_i,  z_i < 0 only where w_i = high_i

For positive definite G there is one solution, continuous in all numbers and zero where the values are within. With
G = L L^T these are the multipliers of the least |y| with low <= value + L y <= high, the nearest point of a polyhedron.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import cholesky
from contact_id_controller.kernels.nearest_point import SOLVED, nearest_point


@kernel
def least_change(G, value, low, high, z):
    """Write z (m,); False if there is none, as G is singular or a number is not finite.

    G (m, m): its lower triangle is read, and overwritten.  value, low, high (m,): infinite bounds never act.
    """
    m, count = value.shape[0], 0
    if not cholesky(G, m, 0.0):
        return False
    A, b, row = np.zeros((2 * m, m)), np.empty(2 * m), np.zeros(2 * m, dtype=np.int64)
    for i in range(m):
        for side in range(2):
            bound, sign = (high[i], -1.0) if side else (low[i], 1.0)
            if np.isfinite(bound):
                b[count] = sign * (value[i] - bound)
                for j in range(i + 1):
                    A[count, j] = sign * G[i, j]
                row[count] = i
                count += 1
    y, multipliers = np.zeros(m), np.zeros(count)
    status, _ = nearest_point(
        A[:count],
        b[:count],
        0,
        np.zeros(0, dtype=np.bool_),
        y,
        multipliers,
        np.zeros(m + 1, dtype=np.int64),
        np.zeros((m, m)),
        np.zeros((m, m)),
        np.zeros((3, m + 1)),
    )
    for i in range(m):
        z[i] = 0.0
    for k in range(count):
        i = row[k]
        z[i] += multipliers[k] if A[k, i] > 0.0 else -multipliers[k]
    return bool(status == SOLVED and np.isfinite(np.sum(z)))
