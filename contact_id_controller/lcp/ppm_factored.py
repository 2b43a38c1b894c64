"""The modified principal pivoting method in its dual form: M = Y Y^T from Y, at most rank-many basic variables."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import LcpError
from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.nearest_point import INFEASIBLE, nearest_point
from contact_id_controller.kernels.nearest_point import SOLVED as AT_THE_NEAREST
from contact_id_controller.lcp._door import checked_array, checked_basis, result
from contact_id_controller.lcp._scaled import NORM_SHARE
from contact_id_controller.lcp.status import (
    INACCURATE,
    PIVOT_LIMIT,
    PIVOTS,
    REPORT_SIZE,
    RESIDUAL,
    SOLVED,
    SOLVED_RESIDUAL,
    UNSOLVABLE,
    LcpResult,
)

FEASIBLE = 1e-13  # share of the largest q that a row without direction may lack


def ppm_factored(
    Y: ArrayLike, q: ArrayLike, warm_start: ArrayLike | None = None, row_floor: float = 0.0
) -> LcpResult:
    """Find z with 0 <= z  perp  w = Y Y^T z + q >= 0 without forming the matrix.

        u = Y^T z,  w = Y u + q;   u solves  min 1/2 |u|^2,  Y u + q >= 0

    Any Y, dependent rows included.  u and w are unique; z has at most rank(Y) non-zeros, in
    independent rows.  Among the many z of dependent rows the one that keeps the warm basis is
    found if it exists.  A pivot adds or drops one basic variable (``kernels.nearest_point``).

    Args:
        Y: (n, r).  q: (n,).
        warm_start: (n,) bool, the z that were basic in a similar problem.
        row_floor: rows of Y no longer than this count as zero (give the rounding level of Y if
            rows may cancel; their direction would be noise otherwise).

    Returns:
        LcpResult with status ``solved`` (certified by residual), ``unsolvable`` (no u satisfies
        Y u + q >= 0), ``pivot_limit`` or ``inaccurate``.

    Raises:
        LcpError: wrong shapes, values that are not finite.

    Source: first paper, algorithm 2 and appendix F; Goldfarb and Idnani (1983) for the dual.
    """
    Y, q = checked_array("Y", Y, 2), checked_array("q", q, 1)
    n = len(Y)
    if q.shape != (n,):
        raise LcpError(f"Y must have shape (n, r) and q (n,), got {Y.shape} and {q.shape}")
    if not 0.0 <= row_floor < math.inf:
        raise LcpError(f"row_floor must be a finite length >= 0, got {row_floor}")
    basis = checked_basis(warm_start, n)
    z, w, report = np.zeros(n), np.maximum(q, 0.0), np.zeros(REPORT_SIZE)
    return result(_solve(Y, q, row_floor, basis, z, w, report), z, w, basis, report)


@kernel
def _solve(Y, q, row_floor, basis, z, w, report):
    """Compiled ``ppm_factored``, arguments as there: min 1/2 |u|^2, Y u + q >= 0, whose multipliers are z.

    z, w (n,): out, if there is a solution; basis (n,): guess in, solution's out; report: PIVOTS and RESIDUAL.
    Rows are scaled to norm one, and the right-hand side to a largest entry of one. Returns the status.
    """
    n, dim = Y.shape
    length, units, right, x = np.zeros(n), np.zeros((n, dim)), np.zeros(n), np.zeros(n)
    scale, overall, least = 0.0, 0.0, 0.0
    for i in range(n):
        square = 0.0
        for k in range(dim):
            square += Y[i, k] * Y[i, k]
        overall = max(overall, abs(q[i]))
        if np.sqrt(square) > row_floor:
            length[i] = np.sqrt(square)
            scale = max(scale, abs(q[i]) / length[i])
        else:
            least = min(least, q[i])  # nothing moves this row
    scale = scale if scale > 0.0 else 1.0
    for i in range(n):
        if length[i] > 0.0:
            right[i] = q[i] / (length[i] * scale)
            for k in range(dim):
                units[i, k] = Y[i, k] / length[i]
    u, active, Qt = np.zeros(dim), np.empty(dim + 1, np.int64), np.empty((dim, dim))
    R, work = np.empty((dim, dim)), np.empty((3, dim + 1))
    status, none = INFEASIBLE, np.int64(0)
    if least >= -FEASIBLE * overall:
        status, report[PIVOTS] = nearest_point(units, right, none, basis, u, x, active, Qt, R, work)
    report[RESIDUAL] = np.inf
    fill(basis, False)
    if status != AT_THE_NEAREST:
        return UNSOLVABLE if status == INFEASIBLE else PIVOT_LIMIT
    floor = 1.0
    fill(u, 0.0)
    for i in range(n):
        if x[i] > 0.0:
            basis[i], z[i] = True, scale * x[i] / length[i]
            floor += x[i]
            for k in range(dim):
                u[k] += z[i] * Y[i, k]
    worst = 0.0
    for i in range(n):
        value, size = q[i], abs(q[i]) + NORM_SHARE * scale * floor * length[i]
        for k in range(dim):
            value += Y[i, k] * u[k]
            size += abs(Y[i, k] * u[k])
        w[i] = 0.0 if basis[i] else max(value, 0.0)
        error = abs(w[i] - value)
        if not error <= worst * size:
            worst = error / size if size < np.inf else np.inf
    report[RESIDUAL] = worst
    return SOLVED if worst <= SOLVED_RESIDUAL else INACCURATE
