"""The modified principal pivoting method: M = Y Y^T from Y, at most rank-many basic variables."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import LcpError
from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.kernels.dense import append_row, drop_row, no_rows, solve_upper
from contact_id_controller.lcp._door import checked_array, checked_basis, checked_pivots, result
from contact_id_controller.lcp._scaled import NORM_SHARE, give_up
from contact_id_controller.lcp.status import (
    INACCURATE,
    PIVOT_LIMIT,
    PIVOTS,
    REGULARIZATION,
    REPORT_SIZE,
    RESIDUAL,
    SOLVED,
    SOLVED_RESIDUAL,
    UNSOLVABLE,
    LcpResult,
)

FEASIBLE = 1e-13  # rows count as violated below minus this, relative to 1 + |u| in scaled units
WARM_INDEPENDENCE = 1e-8  # share of a unit row that must be new for a warm basis to take it
COEFFICIENT = 1e-11  # smaller shares of an active row in the entering one count as none
FARTHEST = 1e8  # largest u, relative to what q asks of a single row, that is believed
LEAST_INDEX_AFTER = 50  # pivots, beside 10 per rank, after which the first violated row is taken


def ppm_factored(
    Y: ArrayLike,
    q: ArrayLike,
    warm_start: ArrayLike | None = None,
    max_pivots: int | None = None,
    row_floor: float = 0.0,
) -> LcpResult:
    """Find z with 0 <= z  perp  w = Y Y^T z + q >= 0 without forming the matrix.

        u = Y^T z,  w = Y u + q;   u solves  min 1/2 |u|^2,  Y u + q >= 0

    Any Y, dependent rows included.  u and w are unique; z has at most rank(Y) non-zeros, in
    independent rows.  Among the many z of dependent rows the one that keeps the warm basis is
    found if it exists.  Every pivot adds or drops one basic variable and updates a QR
    factorisation of the basic rows: O(r^2 + n r).  |u| grows with each full step, so no basis
    returns; as a guard against rounding the least-index rule takes over after many pivots.

    Args:
        Y: (n, r).  q: (n,).
        warm_start: (n,) bool, the z that were basic in a similar problem.
        max_pivots: by default 1000 + 50 n.
        row_floor: rows of Y no longer than this count as zero (give the rounding level of Y if
            rows may cancel; their direction would be noise otherwise).

    Returns:
        LcpResult with status ``solved``, ``unsolvable`` (no u satisfies Y u + q >= 0, or only one
        beyond FARTHEST), ``pivot_limit`` or ``inaccurate``.

    Raises:
        LcpError: wrong shapes, values that are not finite.

    Source: first paper, algorithm 2 and appendix F; Goldfarb and Idnani (1983) for the update.
    """
    Y, q = checked_array("Y", Y, 2), checked_array("q", q, 1)
    n = q.shape[0]
    if Y.shape[0] != n:
        raise LcpError(f"Y must have shape (n, r) and q (n,), got {Y.shape} and {q.shape}")
    if not 0.0 <= row_floor < math.inf:
        raise LcpError(f"row_floor must be a finite length >= 0, got {row_floor}")
    basis = checked_basis(warm_start, n)
    z, w, u, report = np.empty(n), np.empty(n), np.empty(Y.shape[1]), np.zeros(REPORT_SIZE)
    status = ppm_factored_kernel(
        Y,
        q,
        row_floor,
        checked_pivots(max_pivots, 1000 + 50 * n),
        *ppm_factored_workspace(n, Y.shape[1]),
        basis,
        z,
        w,
        u,
        report,
    )
    return result(status, z, w, basis, report)


def ppm_factored_workspace(n: int, r: int) -> tuple[np.ndarray, ...]:
    """Arrays of ``ppm_factored_kernel``: rows (r + 3, n), factors (2 r + 4, r), list (r,)."""
    return np.empty((r + 3, n)), np.empty((2 * r + 4, r)), np.empty(r, dtype=np.int64)


@kernel
def ppm_factored_kernel(
    Y, q, row_floor, max_pivots, rows, factors, active, basis, z, w, motion, report
):
    """The compiled ``ppm_factored``: allocates nothing, returns the status, never raises.

    ``rows``, ``factors``, ``active``: from ``ppm_factored_workspace``.  ``basis``: on entry the
    warm start, on exit the basic z.  z, w (n,), motion = Y^T z (r,), report: results.
    """
    r = Y.shape[1]
    Qt, R = factors[:r], factors[r : 2 * r]
    d, c, x, u = factors[2 * r], factors[2 * r + 1], factors[2 * r + 2], factors[2 * r + 3]
    units, right, length, value = rows[:r], rows[r], rows[r + 1], rows[r + 2]
    report[PIVOTS] = report[RESIDUAL] = report[REGULARIZATION] = 0.0
    scale, possible = _scale_rows(Y, q, row_floor, units, right, length)
    no_rows(Qt)
    m = _warm_rows(units, right, length, basis, Qt, R, d, x, active)
    status, exact = PIVOT_LIMIT, False
    while possible and report[PIVOTS] < max_pivots:
        if not exact:
            _refine(units, right, R, m, active, d, x, u)
        eager = report[PIVOTS] < LEAST_INDEX_AFTER + 10 * r
        entering = _violated(units, right, length, u, m, active, eager, value)
        if entering >= 0:
            m, possible = _enter(
                units, entering, value[entering], m, active, Qt, R, d, c, x, u, report
            )
            exact = True  # good enough to choose the next row; made so again before the result
        elif exact:
            exact = False
        elif _finish(Y, q, scale, length, m, active, x, basis, z, w, motion, report):
            return SOLVED
        else:
            status = INACCURATE
            break
    give_up(q, basis, z, w)
    for a in range(r):
        motion[a] = 0.0
    report[RESIDUAL] = math.inf
    return status if possible else UNSOLVABLE


@kernel
def _scale_rows(Y, q, row_floor, units, right, length):
    """Fill unit rows (transposed), their lengths, and the right-hand side with its largest entry 1.

    Returns the scale of the latter and whether every row without direction allows its q.
    """
    n, r = Y.shape
    largest = overall = least = 0.0
    for i in range(n):
        total = 0.0
        for x in range(r):
            total = max(total, abs(Y[i, x]))
        length[i] = total
        if total > 0.0:
            sum_squares = 0.0
            for x in range(r):
                sum_squares += (Y[i, x] / total) ** 2
            length[i] = total * math.sqrt(sum_squares)
        overall = max(overall, abs(q[i]))
        if length[i] <= row_floor:
            length[i] = 0.0
            least = min(least, q[i])
        else:
            largest = max(largest, abs(q[i]) / length[i])
    scale = 1.0 / largest if largest > 0.0 else 1.0
    for i in range(n):
        inverse = 1.0 / length[i] if length[i] > 0.0 else 0.0
        right[i] = q[i] * inverse * scale
        for x in range(r):
            units[x, i] = Y[i, x] * inverse
    return scale, least >= -FEASIBLE * overall


@kernel
def _warm_rows(units, right, length, basis, Qt, R, d, x, active):
    """Activate the independent rows of the warm start, less those whose multiplier is negative."""
    m = np.int64(0)
    for i in range(basis.shape[0]):
        if basis[i] and length[i] > 0.0 and m < active.shape[0]:
            if _project(Qt, m, units, i, d) > WARM_INDEPENDENCE:
                append_row(Qt, R, m, d)
                active[m] = i
                m += 1
    while m > 0:
        worst = np.int64(0)
        for a in range(m):
            d[a] = right[active[a]]
            x[a] = 0.0
        _add_multipliers(R, m, d, x)
        for a in range(m):
            if x[a] < x[worst]:
                worst = a
        if x[worst] >= 0.0:
            break
        m = _take_out(Qt, R, m, worst, active, x)
    return m


@kernel
def _project(Qt, m, units, i, d):
    """d (r,) = Qt times row i; the length of its part outside the active rows."""
    r = Qt.shape[0]
    outside = 0.0
    for a in range(r):
        d[a] = 0.0
        for x in range(r):
            d[a] += Qt[a, x] * units[x, i]
        if a >= m:
            outside += d[a] * d[a]
    return math.sqrt(outside)


@kernel
def _add_multipliers(R, m, residual, x):
    """x -= (R^T R)^-1 residual: one Newton step towards zero residual of the active rows."""
    for a in range(m):  # R^T t = residual, t in place
        value = residual[a]
        for b in range(a):
            value -= R[b, a] * residual[b]
        residual[a] = value / R[a, a]
    solve_upper(R, m, residual, residual)
    for a in range(m):
        x[a] -= residual[a]


@kernel
def _take_out(Qt, R, m, k, active, x):
    """Drop the active row at position k; the new number of rows."""
    drop_row(Qt, R, m, k)
    for a in range(k, m - 1):
        active[a], x[a] = active[a + 1], x[a + 1]
    return m - 1


@kernel
def _refine(units, right, R, m, active, d, x, u):
    """Multipliers x (m,) of the active rows and u = sum x row, from scratch, with refinement."""
    r = u.shape[0]
    for a in range(m):
        x[a] = 0.0
    for step in range(3):
        for t in range(r):
            u[t] = 0.0
            for a in range(m):
                u[t] += x[a] * units[t, active[a]]
        if step == 2:
            return
        for a in range(m):
            d[a] = right[active[a]]
            for t in range(r):
                d[a] += units[t, active[a]] * u[t]
        _add_multipliers(R, m, d, x)


@kernel
def _violated(units, right, length, u, m, active, eager, value):
    """The most violated row (``eager``), or the first violated one; -1 if none is.  Fills value."""
    n = right.shape[0]
    size = 1.0
    for i in range(n):
        value[i] = right[i]
    for t in range(u.shape[0]):
        size += abs(u[t])
        for i in range(n):
            value[i] += units[t, i] * u[t]
    for a in range(m):
        value[active[a]] = 0.0
    chosen, least = np.int64(-1), -FEASIBLE * size
    for i in range(n):
        if value[i] < least:
            chosen = i
            if not eager:
                break
            least = value[i]
    return chosen


@kernel
def _enter(units, entering, violation, m, active, Qt, R, d, c, x, u, report):
    """Raise the multiplier of a violated row until it holds with equality; False if it never can.

    Active rows whose multiplier reaches zero on the way are dropped.
    """
    r = u.shape[0]
    raised, size = 0.0, 1.0
    for t in range(r):
        size += abs(u[t])
    while True:
        report[PIVOTS] += 1.0
        outside = _project(Qt, m, units, entering, d)
        solve_upper(R, m, d, c)
        vanishing, partial, full = np.int64(-1), math.inf, math.inf
        for a in range(m):
            if c[a] > COEFFICIENT and max(x[a], 0.0) < partial * c[a]:
                vanishing, partial = a, max(x[a], 0.0) / c[a]
        if m < r and outside * FARTHEST * size > -violation:
            full = -violation / (outside * outside)
        step = min(partial, full)
        if step == math.inf:
            return m, False
        raised += step
        for a in range(m):
            x[a] -= step * c[a]
        if full < math.inf:
            violation += step * outside * outside
            for a in range(m, r):
                for t in range(r):
                    u[t] += step * d[a] * Qt[a, t]
        if full <= partial:
            append_row(Qt, R, m, d)
            active[m], x[m] = entering, raised
            return m + 1, True
        m = _take_out(Qt, R, m, vanishing, active, x)


@kernel
def _finish(Y, q, scale, length, m, active, x, basis, z, w, motion, report):
    """Write the result in the caller's units; whether its residual certifies it."""
    n, r = Y.shape
    for i in range(n):
        basis[i] = False
        z[i] = 0.0
    for t in range(r):
        motion[t] = 0.0
    floor = 0.0
    for a in range(m):
        i = active[a]
        basis[i] = True
        z[i] = max(x[a], 0.0) / (scale * length[i])
        floor += max(x[a], 0.0)
        for t in range(r):
            motion[t] += z[i] * Y[i, t]
    floor = NORM_SHARE * (1.0 + floor) / scale
    worst = 0.0
    for i in range(n):
        value, size = q[i], abs(q[i])
        for t in range(r):
            value += Y[i, t] * motion[t]
            size += abs(Y[i, t] * motion[t])
        w[i] = value if value > 0.0 and not basis[i] else 0.0
        error, size = abs(w[i] - value), size + floor * length[i]
        if error > worst * size:
            worst = error / size
        if not size < math.inf:
            worst = math.inf
    report[RESIDUAL] = worst
    return worst <= SOLVED_RESIDUAL
