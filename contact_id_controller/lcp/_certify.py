"""Last steps shared by the dense solvers: refine z on the final basis, then certify by residual."""

from __future__ import annotations

import numpy as np

from ._compile import bare_kernel as kernel

REFINEMENTS = 4  # steps at most; each costs one pass over the basic block
ROUNDING = 4.0 * np.finfo(np.float64).eps  # backward error below which refining is pointless
NORM_SHARE = 1e-5  # weight of the row norm in a row's size, so that pure rounding noise passes


@kernel
def refine(M, q, basic, m, inverse, first, second, row_scale, column_scale, z, residual):
    """Newton-correct M_aa z_a + q_a = 0 on the m indices in ``basic``, z in place.

    ``-inverse[first[i], second[j]]`` scaled by column_scale and row_scale approximates the (i, j)
    entry of M_aa^-1, where i and j are variables.  Stops when a step no longer helps.
    """
    previous = np.inf
    for _ in range(REFINEMENTS):
        worst = 0.0
        for a in range(m):
            i = basic[a]
            value, size = q[i], abs(q[i])
            for b in range(m):
                term = M[i, basic[b]] * z[basic[b]]
                value += term
                size += abs(term)
            residual[a] = value * row_scale[i]
            if abs(value) > worst * size:
                worst = abs(value) / size
        if worst <= ROUNDING or not worst < 0.5 * previous:
            return
        previous = worst
        for a in range(m):
            i = basic[a]
            step = 0.0
            for b in range(m):
                step += inverse[first[i], second[basic[b]]] * residual[b]
            z[i] += column_scale[i] * step


@kernel
def certify(M, q, basic, m, row_scale, column_scale, z, w):
    """Make (z, w) exactly complementary on the basis and return the backward error of w = M z + q.

    z is clipped to >= 0 (zero off the basis on entry); w = max(M z + q, 0) off the basis, zero on it.
    Returns max_i |w - (M z + q)|_i / size_i with size_i = (|q| + |M| z)_i + NORM_SHARE times the
    same bounded by norms of the equilibrated problem; inf when anything is not finite.
    """
    n = q.shape[0]
    norm = 0.0
    for i in range(n):
        norm = max(norm, abs(q[i]) * row_scale[i])
        w[i] = 1.0
    largest = 0.0
    for a in range(m):
        i = basic[a]
        w[i] = 0.0
        if not z[i] > 0.0:
            z[i] = 0.0
        largest = max(largest, z[i] / column_scale[i])
    norm = NORM_SHARE * (norm + largest)
    worst = 0.0
    for i in range(n):
        value, size = q[i], abs(q[i])
        for a in range(m):
            term = M[i, basic[a]] * z[basic[a]]
            value += term
            size += abs(term)
        if not size < np.inf:
            return np.inf
        w[i] = value if w[i] > 0.0 and value > 0.0 else 0.0
        error = abs(w[i] - value)
        size += norm / row_scale[i]
        if error > worst * size:
            worst = error / size
    return worst


@kernel
def give_up(q, basis, z, w):
    """The state reported when nothing was found: z = 0, w = max(q, 0), nothing basic."""
    for i in range(q.shape[0]):
        basis[i] = False
        z[i] = 0.0
        w[i] = max(q[i], 0.0)
