"""Nearest point of a polyhedron: the dual active-set method of Goldfarb and Idnani (1983).

    min 1/2 |x - x0|^2    A x + b >= 0   (the first ``equalities`` rows are equations)

Starts from x0 and adds violated rows, so it needs no feasible start, ends after finitely many
steps, and recognises an empty polyhedron. At most dim rows are active at once: a step costs
O(dim^2 + rows dim), for any number of earlier rows. Dependent equality rows are skipped
when they agree with the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.dense import append_row, drop_row, no_rows, solve_upper

SOLVED, INFEASIBLE, STEP_LIMIT = 0, 1, 2
NONE, IMPOSSIBLE = -1, -2  # instead of a row's number

FEASIBILITY = 1e-13  # a row counts as violated below this times its terms and the largest -b
AGREEMENT = 1e-9  # a dependent row agrees with the others within this share of the same
INDEPENDENCE = 1e-11  # a row counts as dependent when this share of it is left, relative
PATIENCE = 30  # steps, beside 4 per dimension, after which the tolerance grows tenfold:
GROWTHS = 4  # at a degenerate corner rounding errors alone look like violations


class _ActiveSet(NamedTuple):
    """Active rows and the factorisation Qt^T [R; 0] of their columns; d, r, u: vectors of a step.

    rows (dim + 1,), Qt, R (dim, dim); d (dim,) the chosen row in Qt's basis, r (dim,) change of the active
    rows' multipliers per unit of its own, u (dim,) these multipliers.
    """

    rows: np.ndarray
    Qt: np.ndarray
    R: np.ndarray
    d: np.ndarray
    r: np.ndarray
    u: np.ndarray


@bare_kernel
def _is_active(rows, count, row):
    """Whether ``row`` is one of the first ``count`` of the active rows (n,)."""
    found = False
    for k in range(count):
        found = found or rows[k] == row
    return found


@bare_kernel
def _residual(A, b, x, i, scale):
    """A_i x + b_i at x (n,), the size of its terms plus ``scale``, and the squared norm of A_i; A (m, n), b (m,)."""
    total, size, square = b[i], scale, 0.0
    for k in range(x.shape[0]):
        term = A[i, k] * x[k]
        total += term
        size += abs(term)
        square += A[i, k] * A[i, k]
    return total, size, square


@bare_kernel
def _worst_equality(A, b, equalities, x, multipliers, rows, count, scale):
    """The equation A_i x + b_i = 0 farthest from x and the sign that makes it an inequality; NONE, IMPOSSIBLE.

    A (m, n), b (m,), the first ``equalities`` of them; x (n,). Distances, not residuals, as rows may have any norm.
    """
    chosen, worst, sign = NONE, 0.0, 1.0
    for i in range(equalities):
        if multipliers[i] != 0.0:
            continue  # depends on the active rows, and agrees with them
        total, size, square = _residual(A, b, x, i, scale)
        if abs(total) > FEASIBILITY * size:
            if square == 0.0:
                if abs(total) > AGREEMENT * size:
                    return IMPOSSIBLE, sign
                continue
            distance = abs(total) / np.sqrt(square)
            if distance > worst and not _is_active(rows, count, i):
                chosen, worst, sign = i, distance, -1.0 if total > 0.0 else 1.0
    return chosen, sign


@bare_kernel
def _worst_inequality(A, b, equalities, preferred, x, rows, count, scale, tolerance):
    """Index of the inequality that x violates most, of the preferred ones (rows,), or of all (0,); NONE, IMPOSSIBLE."""
    chosen, worst = NONE, 0.0
    for i in range(equalities, A.shape[0]):
        if preferred.shape[0] and not preferred[i]:
            continue
        total, size, square = _residual(A, b, x, i, scale)
        # Compare distances, not residuals: rows may have any length. By their squares and with one rare branch: a root, a
        # quotient and an unforeseen branch for each row cost more than all the rest.
        violation = total * total if total < -tolerance * size else 0.0
        if violation > worst * square:
            if square == 0.0:
                if total < -AGREEMENT * size:
                    return IMPOSSIBLE  # a row that no x can change
            elif not _is_active(rows, count, i):
                chosen, worst = i, violation / square
    return chosen


@bare_kernel
def _directions(row, sign, factor, count):
    """Fill d = sign Q^T row (n,) and r = R^-1 d; returns |row|^2 less its component in the span of the active rows.

    row (n,): the chosen one; count: active rows, of which factor has Q and R.
    """
    Qt, d = factor.Qt, factor.d
    dim, rest = row.shape[0], 0.0
    for j in range(dim):
        axis, total = Qt[j], 0.0
        for k in range(dim):
            total += axis[k] * row[k]
        d[j] = sign * total
        if j >= count:
            rest += d[j] * d[j]
    solve_upper(factor.R, count, d, factor.r)
    return rest


@bare_kernel
def _dual_step(factor, equalities, count):
    """Largest step that keeps the active inequalities' multipliers >= 0, and the row that limits it."""
    longest, leaving = np.inf, NONE
    for j in range(count):
        if factor.rows[j] >= equalities and factor.r[j] > 0.0:
            ratio = factor.u[j] / factor.r[j]
            if ratio < longest:
                longest, leaving = ratio, j
    return longest, leaving


@bare_kernel
def _join(factor, row, multiplier, sign, count):
    """Add a row to the active set, its column of R and its multiplier with the sign as given."""
    append_row(factor.Qt, factor.R, count, factor.d)
    factor.rows[count] = row
    factor.u[count] = sign * multiplier
    for j in range(count + 1):
        factor.R[j, count] *= sign


@bare_kernel
def _leave(factor, leaving, count):
    """Remove the active row number ``leaving`` of ``count``."""
    drop_row(factor.Qt, factor.R, count, leaving)
    for j in range(leaving, count - 1):
        factor.rows[j] = factor.rows[j + 1]
        factor.u[j] = factor.u[j + 1]


@bare_kernel
def _move(factor, count, step, x):
    """Move x (dim,) by ``step`` along the component of the chosen row orthogonal to the active ones."""
    dim = x.shape[0]
    for j in range(count, dim):
        axis, amount = factor.Qt[j], step * factor.d[j]
        for k in range(dim):
            x[k] += amount * axis[k]


@bare_kernel
def _scale_of(b, equalities):
    """Size of the terms at the origin; rows far inside their bound do not count."""
    scale = 0.0
    for i in range(b.shape[0]):
        scale = max(scale, abs(b[i]) if i < equalities else -b[i])
    return scale


@bare_kernel
def nearest_point(A, b, equalities, preferred, x, multipliers, active, Qt, R, work):
    """Solve in place; x (dim,) holds x0 on entry. Returns (status, steps).

    Args:
        A (rows, dim), b (rows,).
        preferred (rows,) or (0,): bool, inequalities that are likely to be active: violated ones
            among them are added before any other row, equalities included.
        multipliers (rows,): out, >= 0 for inequalities; x = x0 + A^T multipliers.
        active (dim + 1,) int64, Qt (dim, dim), R (dim, dim), work (3, dim + 1): workspace.
    """
    rows, dim = A.shape
    factor = _ActiveSet(active, Qt, R, work[0], work[1], work[2])
    no_rows(Qt)
    fill(multipliers, 0.0)
    scale = _scale_of(b, equalities)
    count, steps = 0, 0
    warm = preferred.shape[0] > 0
    tolerance, patience = FEASIBILITY, PATIENCE + 4 * dim
    limit = patience * (GROWTHS + 1)
    # Far from the end many rows may have to be tried once each.
    limit += 4 * rows if rows > dim else 0
    while steps < limit:
        if steps > patience and tolerance < FEASIBILITY * 10.0**GROWTHS:
            tolerance *= 10.0
            patience += PATIENCE + 4 * dim

        # The next row to satisfy: the most violated of the preferred ones, then of the equalities,
        # then of all. Which one that is does not depend on the rows' order.
        chosen, sign = NONE, 1.0
        if not warm:
            chosen, sign = _worst_equality(A, b, equalities, x, multipliers, active, count, scale)
        if chosen == NONE:
            tried = preferred if warm else preferred[:0]
            chosen = _worst_inequality(A, b, equalities, tried, x, active, count, scale, tolerance)
        if chosen == IMPOSSIBLE:
            return INFEASIBLE, steps
        if chosen == NONE and warm:
            warm = False
            continue
        if chosen == NONE:
            fill(multipliers[:equalities], 0.0)
            for k in range(count):
                multipliers[active[k]] = factor.u[k]
            return SOLVED, steps
        violation, size, square = _residual(A, b, x, chosen, scale)
        violation *= sign
        gained = 0.0
        while True:
            steps += 1
            rest = _directions(A[chosen], sign, factor, count)
            independent = rest > INDEPENDENCE * INDEPENDENCE * square and count < dim
            dual_step, leaving = _dual_step(factor, equalities, count)
            primal_step = -violation / rest if independent else np.inf
            if not independent and abs(violation) <= AGREEMENT * size:
                if chosen < equalities:
                    multipliers[chosen] = 1.0  # a mark
                break  # dependent on the active rows and satisfied: nothing to add
            if leaving < 0 and not independent:
                return INFEASIBLE, steps
            step = min(dual_step, primal_step)
            for j in range(count):
                factor.u[j] -= step * factor.r[j]
            gained += step
            if independent:
                _move(factor, count, step, x)
                violation += step * rest
            if primal_step <= dual_step:
                _join(factor, chosen, gained, sign, count)
                count += 1
                break
            # Partial step: the blocking row leaves, the chosen one is tried again. Equalities that
            # depended on the row that leaves have to be looked at once more.
            fill(multipliers[:equalities], 0.0)
            _leave(factor, leaving, count)
            count -= 1
            if steps >= limit:
                break
    return STEP_LIMIT, steps
