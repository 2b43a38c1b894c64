"""Lemke's method for any square linear complementarity problem."""

from __future__ import annotations

import numpy as np

from ._certify import certify, give_up, refine
from ._compile import bare_kernel as kernel
from ._door import allowed_pivots, checked_basis, checked_problem, checked_vector, result
from ._factor import lu_factor, lu_solve
from ._tableau import equilibrate, exchange, leaving_row
from .status import (INACCURATE, PIVOT_LIMIT, PIVOTS, RAY, REGULARIZATION, REGULARIZED_RESIDUAL,
                     REPORT_SIZE, RESIDUAL, SOLVED, SOLVED_REGULARIZED, SOLVED_RESIDUAL)

LADDER = (1e-12, 1e-10, 1e-8, 1e-6)  # Tikhonov terms tried in turn, relative to the equilibrated M
SECOND_COVER = 0.618033988749895  # golden section: spreads the second covering vector over [1, 2)


def lemke(M, q, cover=None, warm_start=None, max_pivots=None):
    """Find z with 0 <= z  perp  w = M z + q >= 0 by Lemke's method.

        w - M z - d z_0 = q,   z_0 driven to zero from the covering vector d > 0

    Handles any square M.  Guaranteed (up to rounding) when M is copositive-plus, which includes
    positive semidefinite ones: a solution, or ``ray`` when there is none; likewise the friction
    problems of Anitescu and Potra.  For other M a ``ray`` says nothing about existence.  The
    lexicographic ratio test prevents cycling.  Whatever is returned as solved was certified by its
    residual after refinement on the final basis.  When the first covering vector fails, a second
    one is tried, then (M + eps I, q); only the last is called ``solved_regularized``.

    Args:
        M: (n, n).  q: (n,).  Rows and columns may be scaled at will: they are equilibrated.
        cover: (n,) positive covering vector d; by default ones in equilibrated rows.
        warm_start: (n,) bool, a guess of the basic z such as ``basis`` of an earlier result: taken
            in one factorisation when it is the solution's basis, else the method starts cold.
        max_pivots: pivots allowed for each attempt; by default 1000 + 50 n.

    Returns:
        LcpResult; status ``solved``, ``solved_regularized``, ``ray``, ``pivot_limit``, ``inaccurate``.

    Raises:
        LcpError: wrong shapes, values that are not finite, a cover that is not positive.

    Source: Cottle, Pang and Stone, The Linear Complementarity Problem (1992), algorithms 4.4.1 and
    4.4.5 (lexicographic), first paper, section 5.2.
    """
    M, q = checked_problem(M, q)
    n = q.shape[0]
    cover = checked_vector("cover", cover, n, positive=True)
    basis = checked_basis(warm_start, n)
    z, w, report = np.empty(n), np.empty(n), np.zeros(REPORT_SIZE)
    status = lemke_kernel(M, q, cover, allowed_pivots(max_pivots, n), *lemke_workspace(n),
                          basis, z, w, report)
    return result(status, z, w, basis, report)


def lemke_workspace(n):
    """The arrays ``lemke_kernel`` works in: tableau (n, n + 2), reals (4, n + 2), integers (8 n + 2,)."""
    return np.empty((n, n + 2)), np.empty((4, n + 2)), np.empty(8 * n + 2, dtype=np.int64)


@kernel
def lemke_kernel(M, q, cover, max_pivots, T, real, integer, basis, z, w, report):
    """The compiled ``lemke``: allocates nothing, returns the status, never raises.

    Args:
        cover: (n,) or (0,) for the default.
        T, real, integer: from ``lemke_workspace(n)``; contents are overwritten.
        basis: (n,) bool; on entry the warm start (all False: cold), on exit the basic z.
        z, w: (n,) results.  report: (REPORT_SIZE,) pivots, residual, regularization.
    """
    n = q.shape[0]
    report[:] = 0.0
    warm = False
    trivial = True
    for i in range(n):
        trivial = trivial and q[i] >= 0.0
        warm = warm or basis[i]
    if trivial:
        give_up(q, basis, z, w)
        return SOLVED
    row_scale, column_scale = real[0, :n], real[1, :n]
    equilibrate(M, row_scale, column_scale)
    if warm and _accept(M, q, 0.0, T, real, integer, basis, z, w, report):
        return SOLVED
    first = _attempt(M, q, cover, 0.0, 0.0, max_pivots, T, real, integer, basis, z, w, report)
    if first == SOLVED:
        return SOLVED
    if _attempt(M, q, cover, SECOND_COVER, 0.0, max_pivots, T, real, integer, basis, z, w,
                report) == SOLVED:
        return SOLVED
    for eps in LADDER:
        _attempt(M, q, cover, 0.0, eps, max_pivots, T, real, integer, basis, z, w, report)
        if report[RESIDUAL] <= REGULARIZED_RESIDUAL:
            if _accept(M, q, 0.0, T, real, integer, basis, z, w, report):
                return SOLVED
            if _accept(M, q, eps, T, real, integer, basis, z, w, report):
                report[REGULARIZATION] = eps
                return SOLVED_REGULARIZED
    give_up(q, basis, z, w)
    report[RESIDUAL] = np.inf
    return first


@kernel
def _attempt(M, q, cover, spread, eps, max_pivots, T, real, integer, basis, z, w, report):
    """One cold run on (M + eps I, q); basis, z, w and the residual in (M, q) are left behind."""
    n = q.shape[0]
    row_scale, column_scale, buffer, residual = real[0, :n], real[1, :n], real[2], real[3]
    names, place, ties = integer[:2 * n + 1], integer[2 * n + 1:4 * n + 2], integer[4 * n + 2:5 * n + 2]
    basic = integer[5 * n + 2:6 * n + 2]
    scale = _fill(M, q, cover, spread, eps, row_scale, column_scale, T, names, place)
    status = _run(T, names, place, ties, buffer, max_pivots, report)
    report[RESIDUAL] = np.inf
    if status != SOLVED:
        return status
    rows, columns = integer[6 * n + 2:7 * n + 2], integer[7 * n + 2:]
    m = 0
    for i in range(n):
        row = place[n + i]
        basis[i] = row >= 0
        z[i] = 0.0
        if row >= 0:
            z[i] = T[row, n + 1] * column_scale[i] / scale
            basic[m], rows[i], columns[i] = i, row, -1 - place[i]
            m += 1
    if eps == 0.0:
        refine(M, q, basic, m, T, rows, columns, row_scale, column_scale, z, residual)
    report[RESIDUAL] = certify(M, q, basic, m, row_scale, column_scale, z, w)
    return SOLVED if report[RESIDUAL] <= SOLVED_RESIDUAL else INACCURATE


@kernel
def _fill(M, q, cover, spread, eps, row_scale, column_scale, T, names, place):
    """Write the equilibrated tableau of w - (M + eps I) z - d z_0 = q; return the scale given to q."""
    n = q.shape[0]
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(q[i]) * row_scale[i])
    scale = 1.0 / largest
    for i in range(n):
        row = -row_scale[i]
        for j in range(n):
            T[i, j] = row * M[i, j] * column_scale[j]
        T[i, i] -= eps
        T[i, n] = -1.0 - spread * i % 1.0 if cover.shape[0] == 0 else row * cover[i]
        T[i, n + 1] = q[i] * row_scale[i] * scale
        names[i], place[i] = i, i
        names[n + i], place[n + i] = n + i, -1 - i
    names[2 * n], place[2 * n] = 2 * n, -1 - n
    return scale


@kernel
def _run(T, names, place, ties, buffer, max_pivots, report):
    """Pivot from the primary ray until z_0 leaves, nothing blocks, or the limit is reached."""
    n = T.shape[0]
    row = 0
    for i in range(1, n):  # the lexicographically smallest of q_i / d_i
        if T[i, n + 1] / -T[i, n] <= T[row, n + 1] / -T[row, n]:
            row = i
    column = n
    for _ in range(max_pivots):
        leaving = names[row]
        exchange(T, names, place, row, column, buffer)
        report[PIVOTS] += 1.0
        if leaving == 2 * n:
            return SOLVED
        column = -1 - place[leaving + n if leaving < n else leaving - n]
        row = leaving_row(T, names, place, column, ties)
        if row < 0:
            return RAY
    return PIVOT_LIMIT


@kernel
def _accept(M, q, eps, T, real, integer, basis, z, w, report):
    """Factor M_aa + eps on the basis given; whether its z and w solve (M, q), then left in z, w.

    With eps > 0 (relative to the equilibrated M) the weaker REGULARIZED_RESIDUAL is enough.
    """
    n = q.shape[0]
    row_scale, column_scale, right, step = real[0, :n], real[1, :n], real[2], real[3]
    basic, order = integer[:n], integer[n:2 * n]
    m = 0
    for i in range(n):
        z[i] = 0.0
        if basis[i]:
            basic[m] = i
            m += 1
    for a in range(m):
        i = basic[a]
        for b in range(m):
            T[a, b] = row_scale[i] * M[i, basic[b]] * column_scale[basic[b]]
        T[a, a] += eps
    if not lu_factor(T, m, order):
        return False
    for _ in range(3):
        for a in range(m):
            i = basic[a]
            value = q[i] + eps * z[i] / (row_scale[i] * column_scale[i])
            for b in range(m):
                value += M[i, basic[b]] * z[basic[b]]
            right[a] = -value * row_scale[i]
        lu_solve(T, m, order, right, step)
        for a in range(m):
            z[basic[a]] += column_scale[basic[a]] * step[a]
    report[RESIDUAL] = certify(M, q, basic, m, row_scale, column_scale, z, w)
    return report[RESIDUAL] <= (SOLVED_RESIDUAL if eps == 0.0 else REGULARIZED_RESIDUAL)
