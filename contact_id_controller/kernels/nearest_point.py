"""Nearest point of a polyhedron: the dual active-set method of Goldfarb and Idnani (1983).

    min 1/2 |x - x0|^2    A x + b >= 0   (the first ``equalities`` rows hold with equality)

Starts from x0 and adds violated rows, so it needs no feasible start, ends after finitely many
steps, and recognises an empty polyhedron. At most dim rows are active at once: a step costs
O(dim^2 + rows dim), whatever the number of rows before it. Dependent equality rows are skipped
when they agree with the others.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel

SOLVED, INFEASIBLE, STEP_LIMIT = 0, 1, 2

FEASIBILITY = 1e-13  # a row counts as violated below this times its terms and the largest -b
AGREEMENT = 1e-9  # a dependent row agrees with the others within this share of the same
INDEPENDENCE = 1e-11  # a row counts as dependent when this share of it is left, relative
PATIENCE = 30  # steps, beside 4 per dimension, after which the tolerance grows tenfold:
GROWTHS = 4  # at a degenerate corner rounding errors alone look like violations


@bare_kernel
def _rotate(a, b):
    """Cosine, sine and radius of the Givens rotation that maps (a, b) to (radius, 0)."""
    if b == 0.0:
        return 1.0, 0.0, a  # the identity, whatever the sign of a
    radius = np.hypot(a, b)
    return a / radius, b / radius, radius


@bare_kernel
def nearest_point(A, b, equalities, preferred, x, multipliers, active, Q, R, work):
    """Solve in place; x (dim,) holds x0 on entry. Returns (status, steps).

    Args:
        A (rows, dim), b (rows,).
        preferred (rows,) or (0,): bool, inequalities that are likely to be active: the violated ones
            among them are satisfied before any other row, equalities included.
        multipliers (rows,): out, >= 0 for inequalities; x = x0 + A^T multipliers.
        active (dim + 1,) int64, Q (dim, dim), R (dim, dim), work (3, dim + 1): workspace.
    """
    rows, dim = A.shape
    d, r, u = work[0], work[1], work[2]
    for i in range(dim):
        for j in range(dim):
            Q[i, j] = 1.0 if i == j else 0.0
    scale = 0.0
    for i in range(rows):
        multipliers[i] = 0.0
        # Rows far from their bound at the origin, however far, say nothing of the solution's size.
        scale = max(scale, abs(b[i]) if i < equalities else -b[i])
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
        chosen, worst, sign = -1, 0.0, 1.0
        if not warm:
            for i in range(equalities):
                if multipliers[i] != 0.0:
                    continue  # depends on the active rows, and agrees with them
                total, size, square = b[i], scale, 0.0
                for k in range(dim):
                    term = A[i, k] * x[k]
                    total += term
                    size += abs(term)
                    square += A[i, k] * A[i, k]
                if abs(total) > FEASIBILITY * size:
                    if square == 0.0:
                        if abs(total) > AGREEMENT * size:
                            return INFEASIBLE, steps
                        continue
                    distance = abs(total) / np.sqrt(square)
                    if distance > worst:
                        listed = False
                        for k in range(count):
                            listed = listed or active[k] == i
                        if not listed:
                            chosen, worst, sign = i, distance, -1.0 if total > 0.0 else 1.0
        if chosen < 0:
            for i in range(equalities, rows):
                if warm and not preferred[i]:
                    continue
                total, size = b[i], scale
                square = 0.0
                for k in range(dim):
                    term = A[i, k] * x[k]
                    total += term
                    size += abs(term)
                    square += A[i, k] * A[i, k]
                if square == 0.0 and total < -AGREEMENT * size:
                    return INFEASIBLE, steps  # a row that no x can change
                if total < -tolerance * size and square > 0.0:
                    # Compare distances, not residuals: rows may have any length.
                    distance = total / np.sqrt(square)
                    if distance < worst:
                        listed = False
                        for k in range(count):
                            if active[k] == i:
                                listed = True
                        if not listed:
                            chosen, worst = i, distance
            if chosen < 0 and warm:
                warm = False
                continue
            if chosen < 0:
                for i in range(equalities):
                    multipliers[i] = 0.0
                for k in range(count):
                    multipliers[active[k]] = u[k]
                return SOLVED, steps
        violation = b[chosen]
        size = scale
        square = 0.0
        for k in range(dim):
            violation += A[chosen, k] * x[k]
            size += abs(A[chosen, k] * x[k])
            square += A[chosen, k] * A[chosen, k]
        violation *= sign
        gained = 0.0
        while True:
            steps += 1
            rest = 0.0
            for j in range(dim):
                total = 0.0
                for k in range(dim):
                    total += Q[k, j] * A[chosen, k]
                d[j] = sign * total
                if j >= count:
                    rest += d[j] * d[j]
            for j in range(count - 1, -1, -1):
                total = d[j]
                for k in range(j + 1, count):
                    total -= R[j, k] * r[k]
                r[j] = total / R[j, j]
            independent = rest > INDEPENDENCE * INDEPENDENCE * square and count < dim
            # The largest dual step that keeps the active inequalities' multipliers >= 0.
            dual_step, leaving = np.inf, -1
            for j in range(count):
                if active[j] >= equalities and r[j] > 0.0:
                    ratio = u[j] / r[j]
                    if ratio < dual_step:
                        dual_step, leaving = ratio, j
            if independent:
                primal_step = -violation / rest
            else:
                primal_step = np.inf
                if abs(violation) <= AGREEMENT * size:
                    if chosen < equalities:
                        multipliers[chosen] = 1.0  # a mark
                    break  # dependent on the active rows and satisfied: nothing to add
            if leaving < 0 and not independent:
                return INFEASIBLE, steps
            step = min(dual_step, primal_step)
            for j in range(count):
                u[j] -= step * r[j]
            gained += step
            if independent:
                for k in range(dim):
                    total = 0.0
                    for j in range(count, dim):
                        total += Q[k, j] * d[j]
                    x[k] += step * total
                violation += step * rest
            if primal_step <= dual_step:
                # Full step: the row joins the active set; rotate its remainder onto one column.
                for j in range(dim - 1, count, -1):
                    cosine, sine, radius = _rotate(d[j - 1], d[j])
                    d[j - 1], d[j] = radius, 0.0
                    if sine != 0.0:
                        for k in range(dim):
                            upper, lower = Q[k, j - 1], Q[k, j]
                            Q[k, j - 1] = cosine * upper + sine * lower
                            Q[k, j] = cosine * lower - sine * upper
                for j in range(count + 1):
                    R[j, count] = d[j]
                active[count] = chosen
                u[count] = gained
                if sign < 0.0:
                    # Store the multiplier of the row as given, and its column with that sign.
                    u[count] = -gained
                    for j in range(count + 1):
                        R[j, count] = -R[j, count]
                count += 1
                break
            # Partial step: the blocking row leaves, the chosen one is tried again. Equalities that
            # depended on the row that leaves have to be looked at once more.
            for i in range(equalities):
                multipliers[i] = 0.0
            count -= 1
            for j in range(leaving, count):
                active[j] = active[j + 1]
                u[j] = u[j + 1]
                for k in range(j + 2):
                    R[k, j] = R[k, j + 1]
            for j in range(leaving, count):
                cosine, sine, radius = _rotate(R[j, j], R[j + 1, j])
                R[j, j], R[j + 1, j] = radius, 0.0
                for k in range(j + 1, count):
                    upper, lower = R[j, k], R[j + 1, k]
                    R[j, k] = cosine * upper + sine * lower
                    R[j + 1, k] = cosine * lower - sine * upper
                for k in range(dim):
                    upper, lower = Q[k, j], Q[k, j + 1]
                    Q[k, j] = cosine * upper + sine * lower
                    Q[k, j + 1] = cosine * lower - sine * upper
            if steps >= limit:
                break
    return STEP_LIMIT, steps
