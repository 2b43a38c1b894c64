"""Equilibrated problem of the dense methods, and the certificate of their results.

M' = R M C and q' = R q s with diagonal R, C and a scalar s, all powers of two, so that scaling is
exact: z = C z' / s and w = w' / (R s).  Tolerances then have the same meaning in every problem.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.kernels.dense import SINGULAR, lu_factor, lu_solve

# Rows of ``vectors`` (VECTORS, n + 1); LEVEL takes three.
ROW_SCALE, COLUMN_SCALE, RIGHT, X, Y, SPARE, COVER, LEVEL = 0, 1, 2, 3, 4, 5, 6, 7
VECTORS = 10

NORM_SHARE = 1e-5  # weight of the row norm in a row's size, so that pure rounding noise passes
REFINEMENTS = 3  # steps of iterative refinement


def workspace(n: int) -> tuple[np.ndarray, ...]:
    """Allocate what ``lemke_kernel`` and ``ppm_kernel`` work in: matrices, vectors, integers."""
    return (
        np.empty((2, n + 1, n + 1)),
        np.empty((VECTORS, n + 1)),
        np.empty((4, n + 1), dtype=np.int64),
    )


@kernel
def power_of_two(value):
    """The power of two next to 1 / value; 1 when that would overflow."""
    if not 1e-300 < value < 1e300:
        return 1.0
    return math.ldexp(1.0, -math.frexp(value)[1])


@kernel
def equilibrate(M, q, Mt, vectors):
    """Fill the scales, Mt = M' transposed (top left) and q'; returns s."""
    n = q.shape[0]
    row_scale, column_scale, right = vectors[ROW_SCALE], vectors[COLUMN_SCALE], vectors[RIGHT]
    for j in range(n):
        column_scale[j] = 0.0
    largest = 0.0
    for i in range(n):
        a = b = c = d = 0.0
        for j in range(0, n - 3, 4):  # four maxima at a time: the processor overlaps them
            a = max(a, abs(M[i, j]))
            b = max(b, abs(M[i, j + 1]))
            c = max(c, abs(M[i, j + 2]))
            d = max(d, abs(M[i, j + 3]))
        for j in range(n - n % 4, n):
            a = max(a, abs(M[i, j]))
        found = max(max(a, b), max(c, d))
        row_scale[i] = power_of_two(found) if found > 0.0 else 0.0
        largest = max(largest, row_scale[i] * abs(q[i]))
        for j in range(n):
            size = row_scale[i] * abs(M[i, j])
            column_scale[j] = size if size > column_scale[j] else column_scale[j]
    for j in range(n):
        column_scale[j] = power_of_two(column_scale[j])
    scale = power_of_two(largest)
    for i in range(n):
        if row_scale[i] == 0.0:  # w_i = q_i has no scale of its own: let its sign always count
            row_scale[i] = power_of_two(abs(q[i])) / scale
        right[i] = q[i] * row_scale[i] * scale
        for j in range(n):
            Mt[j, i] = M[i, j] * row_scale[i] * column_scale[j]
    return scale


@kernel
def add_columns(Mt, m, columns, x, n, out):
    """out (n,) += the listed columns of M' times x (m,)."""
    for a in range(m):
        factor, j = x[a], columns[a]
        if factor != 0.0:
            for i in range(n):
                out[i] += factor * Mt[j, i]


@kernel
def certify(Mt, eps, m, columns, scale, vectors, basis, z, w):
    """Convert x (m,), values of the z listed in ``columns``, to the result in the caller's units.

    z is clipped to >= 0, w = max(M z + q, 0) off the basis and 0 on it.  Returns the backward
    error max_i |w - (M' z + q')|_i / size_i, size = |q'| + |M'| z + NORM_SHARE times the same in
    norms; inf when anything is not finite.  With ``eps``, which is subtracted from the diagonal of Mt
    again, size is 1, the norm of q': a huge z must not hide the residual of a regularized problem.
    """
    n = z.shape[0]
    right, x, value, size = vectors[RIGHT], vectors[X], vectors[Y], vectors[SPARE]
    norm = 0.0
    for i in range(n):
        basis[i] = False
        z[i] = 0.0
        value[i], size[i] = right[i], abs(right[i])
        norm = max(norm, size[i])
    largest = 0.0
    for a in range(m):
        j = columns[a]
        basis[j] = True
        if not x[a] > 0.0:
            continue
        largest = max(largest, x[a])
        z[j] = x[a] * vectors[COLUMN_SCALE, j] / scale
        for i in range(n):
            value[i] += x[a] * Mt[j, i]
            size[i] += abs(x[a] * Mt[j, i])
        value[j] -= eps * x[a]
    norm = NORM_SHARE * (norm + largest)
    worst = 0.0
    for i in range(n):
        if not size[i] < math.inf:
            return math.inf
        found = value[i] if value[i] > 0.0 and not basis[i] else 0.0
        worst = max(worst, abs(found - value[i]) / (size[i] + norm if eps == 0.0 else 1.0))
        w[i] = found / (vectors[ROW_SCALE, i] * scale)
    return worst


@kernel
def solve_basis(Mt, A, eps, m, columns, order, vectors):
    """Solve M'_aa x + q'_a = 0 for x (m,) on the listed indices, by LU in A; False when singular.

    With ``eps`` the diagonal of Mt is lowered by it first.
    """
    right, x, step = vectors[RIGHT], vectors[X], vectors[SPARE]
    for a in range(m):
        for b in range(m):
            A[a, b] = Mt[columns[b], columns[a]]
        A[a, a] -= eps
        x[a] = 0.0
    if not lu_factor(A, m, SINGULAR, order):
        return False
    for _ in range(REFINEMENTS):
        for a in range(m):
            step[a] = -right[columns[a]] + eps * x[a]
            for b in range(m):
                step[a] -= Mt[columns[b], columns[a]] * x[b]
        lu_solve(A, m, order, step)
        for a in range(m):
            x[a] += step[a]
    return True


@kernel
def list_basis(basis, columns):
    """Write the indices of the basic z, basis (n,) bool, into columns (n,); returns their number."""
    m = np.int64(0)
    for i in range(basis.shape[0]):
        if basis[i]:
            columns[m] = i
            m += 1
    return m


@kernel
def give_up(q, basis, z, w):
    """Set the result of a failure: z = 0, w = max(q, 0), nothing basic."""
    for i in range(q.shape[0]):
        basis[i] = False
        z[i] = 0.0
        w[i] = max(q[i], 0.0)
