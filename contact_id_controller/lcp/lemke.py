"""Lemke's method for any square linear complementarity problem."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.lcp._door import (
    checked_basis,
    checked_pivots,
    checked_problem,
    checked_vector,
    result,
)
from contact_id_controller.lcp._lemke_path import COLUMNS, ROWS, follow_path
from contact_id_controller.lcp._scaled import (
    COVER,
    X,
    certify,
    equilibrate,
    give_up,
    list_basis,
    solve_basis,
    workspace,
)
from contact_id_controller.lcp.status import (
    INACCURATE,
    PIVOTS,
    REGULARIZATION,
    REGULARIZED_RESIDUAL,
    REPORT_SIZE,
    RESIDUAL,
    SOLVED,
    SOLVED_REGULARIZED,
    SOLVED_RESIDUAL,
    LcpResult,
)

ATTEMPTS = 5  # covering vectors tried on M itself
LADDER = (1e-12, 1e-10, 1e-8, 1e-6)  # Tikhonov terms then tried, relative to the equilibrated M


def lemke(
    M: ArrayLike,
    q: ArrayLike,
    cover: ArrayLike | None = None,
    warm_start: ArrayLike | None = None,
    max_pivots: int | None = None,
) -> LcpResult:
    """Find z with 0 <= z  perp  w = M z + q >= 0 by Lemke's method.

        w - M z - d z_0 = q,   z_0 driven to zero from the covering vector d > 0

    Handles any square M.  Guaranteed (up to rounding) when M is copositive-plus, which includes
    positive semidefinite ones: a solution, or ``ray`` when there is none; likewise the friction
    problems of Anitescu and Potra.  For other M a ``ray`` proves nothing about existence.  A
    lexicographic ratio test, on values and on a generic perturbation of q, prevents cycling.
    Status ``solved`` is certified by the residual after refinement on the final
    basis.  When the first covering vector fails, others are tried, then (M + eps I, q); only the
    last gives ``solved_regularized``.

    Args:
        M: (n, n).  q: (n,).  Rows and columns may have any scale: they are equilibrated.
        cover: (n,) positive covering vector d of the first attempt; by default ones, in
            equilibrated rows if M's rows differ much in size.
        warm_start: (n,) bool, a guess of the basic z such as ``basis`` of an earlier result: taken
            in one factorisation when it is the solution's basis, else the method starts cold.
        max_pivots: pivots allowed for each attempt; by default 1000 + 50 n.

    Returns:
        LcpResult; status ``solved``, ``solved_regularized``, ``ray``, ``pivot_limit`` or
        ``inaccurate``.

    Raises:
        LcpError: wrong shapes, values that are not finite, a cover that is not positive.

    Source: Cottle, Pang and Stone, The Linear Complementarity Problem (1992), algorithm 4.4.5 and
    section 4.9; first paper, section 5.2.
    """
    M, q = checked_problem(M, q)
    n = q.shape[0]
    covering = checked_vector("cover", cover, n, positive=True)
    basis = checked_basis(warm_start, n)
    z, w, report = np.empty(n), np.empty(n), np.zeros(REPORT_SIZE)
    status = lemke_kernel(
        M,
        q,
        covering,
        checked_pivots(max_pivots, 1000 + 50 * n),
        *workspace(n),
        basis,
        z,
        w,
        report,
    )
    return result(status, z, w, basis, report)


@kernel
def lemke_kernel(M, q, cover, max_pivots, matrices, vectors, integers, basis, z, w, report):
    """Compiled ``lemke``: allocates nothing, returns the status, never raises.

    Args:
        cover: (n,) or (0,) for the default.
        matrices, vectors, integers: from ``workspace(n)``.
        basis: (n,) bool; on entry the warm start (all False: cold), on exit the basic z.
        z, w: (n,) results.  report: (REPORT_SIZE,) pivots, residual, regularization.
    """
    n = q.shape[0]
    report[PIVOTS] = report[RESIDUAL] = report[REGULARIZATION] = 0.0
    warm, trivial = False, True
    for i in range(n):
        trivial = trivial and q[i] >= 0.0
        warm = warm or basis[i]
    if trivial:
        give_up(q, basis, z, w)
        return SOLVED
    Mt, A, columns, order = matrices[0], matrices[1], integers[COLUMNS], integers[ROWS]
    scale = equilibrate(M, q, Mt, vectors)
    first, eps = INACCURATE, 0.0
    m = list_basis(basis, columns)
    for attempt in range(-1 if warm else 0, ATTEMPTS + len(LADDER)):
        if attempt >= ATTEMPTS:
            eps = _raise_diagonal(Mt, n, eps, LADDER[attempt - ATTEMPTS])
        if attempt >= 0:
            status, m = follow_path(cover, attempt, max_pivots, matrices, vectors, integers, report)
            first = status if attempt == 0 else first
            if status != SOLVED:
                continue
        for a in range(m):
            vectors[COVER, a] = vectors[X, a]
        for trial in range(2 if eps > 0.0 else 1):
            regularized = trial == 1
            if regularized:
                for a in range(m):
                    vectors[X, a] = vectors[COVER, a]
            elif attempt < 0 or eps > 0.0:  # the warm basis, or the regularized problem's
                if not solve_basis(Mt, A, eps, m, columns, order, vectors):
                    continue
            report[RESIDUAL] = certify(Mt, eps, m, columns, scale, vectors, basis, z, w)
            if report[RESIDUAL] <= (REGULARIZED_RESIDUAL if regularized else SOLVED_RESIDUAL):
                report[REGULARIZATION] = eps if regularized else 0.0
                return SOLVED_REGULARIZED if regularized else SOLVED
    give_up(q, basis, z, w)
    report[RESIDUAL] = math.inf
    return first if first != SOLVED else INACCURATE


@kernel
def _raise_diagonal(Mt, n, eps, target):
    """Replace the Tikhonov term eps on the diagonal of the first n rows of Mt by target; returns target."""
    for i in range(n):
        Mt[i, i] += target - eps
    return target
