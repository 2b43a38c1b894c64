"""The principal pivoting method for P-, positive semidefinite and other sufficient matrices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.lcp._door import checked_basis, checked_pivots, checked_problem, result
from contact_id_controller.lcp._scaled import (
    RIGHT,
    SPARE,
    certify,
    equilibrate,
    give_up,
    list_basis,
    solve_basis,
    workspace,
)
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

PIVOT_TOLERANCE = 1e-10  # tableau entries below this share of their row count as zero
FEASIBLE = 1e-13  # values above minus this count as non-negative, relative to 1 + the largest
PATIENCE = 10  # pivots per variable without progress after which the least-index rule takes over
ROUNDS = 3  # times the tableau is computed again when its result is not certified


def ppm(
    M: ArrayLike, q: ArrayLike, warm_start: ArrayLike | None = None, max_pivots: int | None = None
) -> LcpResult:
    """Find z with 0 <= z  perp  w = M z + q >= 0 by principal pivoting.

    Each step makes the largest negative basic variable non-basic by a pivot on its diagonal entry
    (principal pivoting method I, Bard); once a basis comes back, or after PATIENCE n steps without
    progress, the first negative one instead (Murty), which is finite for P-matrices.  Where the
    diagonal entry is zero, the first positive entry s of the row is used in an exchange with row s
    (the criss-cross method), which is finite for sufficient matrices: P, positive semidefinite, and
    their scalings.  A negative row without positive entry proves that there is no solution.

    Args:
        M: (n, n).  q: (n,).  Rows and columns may be scaled at will: they are equilibrated.
        warm_start: (n,) bool, basic z to start from; any set will do, the solution's own needs no
            pivot.
        max_pivots: by default 1000 + 50 n.

    Returns:
        LcpResult with status ``solved`` (certified by residual), ``unsolvable``, ``pivot_limit``
        (outside these classes, or an exponential example) or ``inaccurate``.

    Raises:
        LcpError: wrong shapes, values that are not finite.

    Source: first paper, appendix D; Murty, Linear Complementarity (1988), section 4.1; den Hertog,
    Roos and Terlaky, The linear complementarity problem, sufficient matrices and the criss-cross
    method (1993).
    """
    M, q = checked_problem(M, q)
    n = q.shape[0]
    basis = checked_basis(warm_start, n)
    z, w, report = np.empty(n), np.empty(n), np.zeros(REPORT_SIZE)
    status = ppm_kernel(
        M, q, checked_pivots(max_pivots, 1000 + 50 * n), *workspace(n), basis, z, w, report
    )
    return result(status, z, w, basis, report)


@kernel
def ppm_kernel(M, q, max_pivots, matrices, vectors, integers, basis, z, w, report):
    """Compiled ``ppm``: allocates nothing, returns the status, never raises.

    ``matrices``, ``vectors``, ``integers``: from ``workspace(n)``.  ``basis``: on entry the
    warm start, on exit the basic z.  z, w (n,), report: results.
    """
    Mt, T, columns, order = matrices[0], matrices[1], integers[0], integers[1]
    report[PIVOTS] = report[RESIDUAL] = report[REGULARIZATION] = 0.0
    scale = equilibrate(M, q, Mt, vectors)
    status = SOLVED
    for attempt in range(ROUNDS + 1):
        if attempt > 0:
            _tableau_of(Mt, T, vectors, basis)
            status = _pivot(T, vectors[SPARE], attempt > 1, max_pivots, basis, columns, report)
        if status != SOLVED:
            break
        m = list_basis(basis, columns)
        if solve_basis(Mt, T, 0.0, m, columns, order, vectors):
            report[RESIDUAL] = certify(Mt, 0.0, m, columns, scale, vectors, basis, z, w)
            if report[RESIDUAL] <= SOLVED_RESIDUAL:
                return SOLVED
        status = SOLVED if attempt < ROUNDS else INACCURATE
    give_up(q, basis, z, w)
    report[RESIDUAL] = math.inf
    return status


@kernel
def _tableau_of(Mt, T, vectors, basis):
    """Fill T (n, n + 1) at the given basis: basic variables = T[:, n] + T[:, :n] non-basic ones.

    Variables of the basis whose pivots vanish become non-basic, in ``basis`` too.
    """
    n = basis.shape[0]
    for i in range(n):
        for j in range(n):
            T[i, j] = Mt[j, i]
        T[i, n] = vectors[RIGHT, i]
    for i in range(n):
        if not basis[i]:
            continue
        basis[i] = False
        partner = i
        for j in range(i + 1, n):
            if basis[j] and abs(T[i, partner]) <= PIVOT_TOLERANCE < abs(T[i, j]):
                partner = j
        if abs(T[i, partner]) > PIVOT_TOLERANCE and abs(T[partner, i]) > PIVOT_TOLERANCE:
            if partner != i:
                basis[partner] = False
            _exchange_pair(T, i, partner, vectors[SPARE], basis)


@kernel
def _pivot(T, buffer, least_index, max_pivots, basis, seen, report):
    """Exchange basic variables of the tableau T (n, n + 1) until none is negative; SOLVED, UNSOLVABLE or PIVOT_LIMIT.

    Args:
        least_index: whether the first negative one is exchanged (Murty), not the most negative one; set by itself
            when a basis comes back, or after PATIENCE n pivots without progress.
        basis: (n,) bool, in and out.
        seen: (n,) workspace, an earlier basis, at doubling distances, to detect a repeated one (Brent).
        buffer: (n + 1,) workspace.
    """
    n = T.shape[0] - 1
    fewest, since, distance, length = n + 1, 0, 0, 1
    while True:
        size = 1.0
        for i in range(n):
            size = max(size, abs(T[i, n]))
        negative, row = 0, n
        for i in range(n):
            if T[i, n] < -FEASIBLE * size:
                negative += 1
                if row == n or (not least_index and T[i, n] < T[row, n]):
                    row = i
        if row == n:
            return SOLVED
        if report[PIVOTS] >= max_pivots:
            return PIVOT_LIMIT
        column = _partner(T, row, n)
        if column == n:
            return UNSOLVABLE
        if distance == 0:
            for i in range(n):
                seen[i] = 1 if basis[i] else 0
        _exchange_pair(T, row, column, buffer, basis)
        report[PIVOTS] += 1.0
        since, distance = since + 1, distance + 1
        if negative < fewest:
            fewest, since = negative, 0
        returned = True
        for i in range(n):
            returned = returned and (seen[i] == 1) == basis[i]
        least_index = least_index or returned or since > PATIENCE * n
        if distance == length:
            distance, length = 0, 2 * length


@kernel
def _partner(T, row, n):
    """Row of the exchange: ``row`` itself if its diagonal entry is positive, else its first positive entry, else n."""
    largest = 1.0
    for j in range(n):
        largest = max(largest, abs(T[row, j]))
    if T[row, row] > PIVOT_TOLERANCE * largest:
        return row
    for j in range(n):
        if T[row, j] > PIVOT_TOLERANCE * largest:
            return j
    return n


@kernel
def _exchange_pair(T, i, j, buffer, basis):
    """Principal pivot on i, or on the pair i, j by two exchanges and a swap of names; updates T and basis (n,)."""
    n = T.shape[0] - 1
    _exchange(T, i, j, buffer)
    basis[i] = not basis[i]
    if i == j:
        return
    _exchange(T, j, i, buffer)
    basis[j] = not basis[j]
    for b in range(n + 1):
        T[i, b], T[j, b] = T[j, b], T[i, b]
    for a in range(n):
        T[a, i], T[a, j] = T[a, j], T[a, i]


@kernel
def _exchange(T, row, column, buffer):
    """Swap the basic variable of ``row`` with the non-basic one of ``column`` in T (n, n + 1): a Jordan exchange."""
    n = T.shape[0] - 1
    inverse = 1.0 / T[row, column]
    for b in range(n + 1):
        buffer[b] = -T[row, b] * inverse
    for a in range(n):
        factor = T[a, column]
        if a == row or factor == 0.0:
            continue
        for b in range(n + 1):
            T[a, b] += factor * buffer[b]
        T[a, column] = factor * inverse
    for b in range(n + 1):
        T[row, b] = buffer[b]
    T[row, column] = inverse
