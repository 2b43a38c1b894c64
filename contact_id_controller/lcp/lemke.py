"""Lemke's method for any square linear complementarity problem."""

from __future__ import annotations

import math

import numpy as np

from ._certify import certify, give_up
from ._compile import bare_kernel as kernel
from ._door import allowed_pivots, checked_basis, checked_problem, checked_vector, result
from ._equilibrate import equilibrate
from ._factor import lu_factor, lu_solve
from ._lemke_path import follow_path
from .status import (INACCURATE, PIVOTS, REGULARIZATION, REGULARIZED_RESIDUAL, REPORT_SIZE, RESIDUAL,
                     SOLVED, SOLVED_REGULARIZED, SOLVED_RESIDUAL)

ATTEMPTS = 4  # covering vectors tried on M itself
LADDER = (1e-12, 1e-10, 1e-8, 1e-6)  # Tikhonov terms then tried in turn, relative to the equilibrated M


def lemke(M, q, cover=None, warm_start=None, max_pivots=None):
    """Find z with 0 <= z  perp  w = M z + q >= 0 by Lemke's method.

        w - M z - d z_0 = q,   z_0 driven to zero from the covering vector d > 0

    Handles any square M.  Guaranteed (up to rounding) when M is copositive-plus, which includes
    positive semidefinite ones: a solution, or ``ray`` when there is none; likewise the friction
    problems of Anitescu and Potra.  For other M a ``ray`` says nothing about existence.  A
    lexicographic ratio test, on values and on a generic perturbation of q, prevents cycling.
    Whatever is returned as solved was certified by its residual after refinement on the final
    basis.  When the first covering vector fails, others are tried, then (M + eps I, q); only the
    last is called ``solved_regularized``.

    Args:
        M: (n, n).  q: (n,).  Rows and columns may be scaled at will: they are equilibrated.
        cover: (n,) positive covering vector d of the first attempt; by default ones, in
            equilibrated rows if M's rows differ much in size.
        warm_start: (n,) bool, a guess of the basic z such as ``basis`` of an earlier result: taken
            in one factorisation when it is the solution's basis, else the method starts cold.
        max_pivots: pivots allowed for each attempt; by default 1000 + 50 n.

    Returns:
        LcpResult; status ``solved``, ``solved_regularized``, ``ray``, ``pivot_limit``, ``inaccurate``.

    Raises:
        LcpError: wrong shapes, values that are not finite, a cover that is not positive.

    Source: Cottle, Pang and Stone, The Linear Complementarity Problem (1992), algorithm 4.4.5 and
    section 4.9; first paper, section 5.2.
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
    """The arrays ``lemke_kernel`` works in: matrices, vectors, integers; contents do not matter."""
    return np.empty((2, n + 1, n + 1)), np.empty((10, n + 1)), np.empty((4, n + 1), dtype=np.int64)


@kernel
def lemke_kernel(M, q, cover, max_pivots, matrices, vectors, integers, basis, z, w, report):
    """The compiled ``lemke``: allocates nothing, returns the status, never raises.

    Args:
        cover: (n,) or (0,) for the default.
        matrices, vectors, integers: from ``lemke_workspace(n)``.
        basis: (n,) bool; on entry the warm start (all False: cold), on exit the basic z.
        z, w: (n,) results.  report: (REPORT_SIZE,) pivots, residual, regularization.
    """
    n = q.shape[0]
    for a in range(REPORT_SIZE):
        report[a] = 0.0
    warm, trivial = False, True
    for i in range(n):
        trivial = trivial and q[i] >= 0.0
        warm = warm or basis[i]
    if trivial:
        give_up(q, basis, z, w)
        return SOLVED
    equilibrate(M, vectors[0], vectors[1])
    first = INACCURATE
    for attempt in range(-1 if warm else 0, ATTEMPTS + len(LADDER)):
        eps = 0.0 if attempt < ATTEMPTS else LADDER[attempt - ATTEMPTS]
        status = SOLVED
        if attempt >= 0:
            status = follow_path(M, q, cover, attempt, eps, max_pivots, matrices, vectors, integers,
                                 basis, report)
        if attempt == 0:
            first = status
        if status == SOLVED and _solve_basis(M, q, 0.0, matrices[0], vectors, integers, basis, z, w, report):
            return SOLVED
        if (status == SOLVED and eps > 0.0
                and _solve_basis(M, q, eps, matrices[0], vectors, integers, basis, z, w, report)):
            report[REGULARIZATION] = eps
            return SOLVED_REGULARIZED
    give_up(q, basis, z, w)
    report[RESIDUAL] = math.inf
    return first if first != SOLVED else INACCURATE
