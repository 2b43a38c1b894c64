"""Newton's method along the central path of a program over exact friction cones.

    min 1/2 x^T D x + g^T x + 1/2 |A x - b|^2 / soft      D diagonal
        A x = b (rows with soft = 0),  lower <= x <= upper (the first variables),  x_i in Q (the others)

A primal-dual interior-point method: Nesterov-Todorov scaling, Mehrotra's predictor and corrector,
infeasible start. The Newton matrix has diagonal and 3 x 3 blocks, so a step is one factorisation of
the size of the rows of A, linear in the contacts. Where no point satisfies the constraints, the
multipliers grow along a certificate (Farkas' lemma for cones):

    A^T y + s = 0,  s in the dual cone,   b^T y + lower^T s_l - upper^T s_u > 0

Source: Aghili, Optimal control of legged robots subject to friction cone constraints, section 3.2
and appendix .5, with Mehrotra (1992) in place of a fixed schedule for the barrier.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.interior_point.newton_parts import (
    apply_inverse,
    cold_start,
    dot,
    excludes,
    extent,
    factor,
    keep_point,
    residuals,
    spectrum,
    substitute,
)
from contact_id_controller.kernels.interior_point.rank import concentrate, rotate
from contact_id_controller.kernels.interior_point.second_order_cone import (
    longest_step,
    nt_scaling,
    product,
    quotient,
    scale,
    unscale,
)

SOLVED, INFEASIBLE, NOT_CONVERGED = 0, 1, 2
TIGHT = 1e-9  # residuals and relative gap that end the iteration, in scaled units
ACCEPTED = 3e-7  # the same, where rounding lets the method get no closer
MAX_STEPS = 60
PULL = 0.99  # share of the way to the boundary that a step goes
FREE = 1e-8  # weight that keeps a free variable without cost determined
CHEAP = 1e-4  # a free variable that costs less counts as one without cost
ABSURD = 1e8  # infeasible when every feasible point were larger than this, in scaled units
REFINEMENTS = 3  # corrections of a direction against rounding
ROUNDING = 1e-13  # defect of the rows below which a direction needs none
WEAK = 1e4  # the same when the method has stalled
LEAST_OBJECTIVE = 1e-7  # an objective below this, in scaled units, counts as this
STALLED = 1e-5  # steps shorter than this make no progress
WARM_GAP = 1e-2  # complementarity, in scaled units, at which the point for warm starts is kept
WORK_ROWS, ROWS, SCALING = 9, 6, 12


def workspace(variables: int, rows: int, cones: int):
    """Arrays that ``central_path`` works in: (work, rows_work, S, scalings)."""
    return (
        np.empty((WORK_ROWS, variables)),
        np.empty((ROWS, rows)),
        np.empty((rows, rows)),
        np.empty((cones, SCALING)),
    )


@bare_kernel
def _move(length, dx, ds, dr, dy, x, s, r, y):
    for j in range(x.shape[0]):
        x[j] += length * dx[j]
        s[j] += length * ds[j]
    for j in range(r.shape[0]):
        r[j] += length * dr[j]
    for i in range(y.shape[0]):
        y[i] += length * dy[i]


@bare_kernel
def _follow(
    weight,
    linear,
    At,
    b,
    soft,
    lower,
    upper,
    warm,
    x,
    y,
    s,
    r,
    saved,
    work,
    rows,
    S,
    scalings,
    threes,
    extents,
):
    """``central_path`` for rows as they are; threes (4, 3) and extents (2, N) int64 are workspace."""
    N, p = At.shape
    boxes, cones = lower.shape[0], scalings.shape[0]
    rd, dx, ds, dr, inverse, rhs, first, pull, asked_for = (
        work[0],
        work[1],
        work[2],
        work[3],
        work[4],
        work[5],
        work[6],
        work[7],
        work[8],
    )
    rp, dy, change, one_row, two_row, three_row = (
        rows[0],
        rows[1],
        rows[2],
        rows[3],
        rows[4],
        rows[5],
    )
    if not warm:
        cold_start(lower, upper, x, y, s, r)
    begin, end = extents[0], extents[1]
    extent(At, begin, end)
    degree = cones
    for j in range(boxes):
        degree += (1 if lower[j] > -np.inf else 0) + (1 if upper[j] < np.inf else 0)
    one, two, three, four = threes[0], threes[1], threes[2], threes[3]
    for j in range(N):
        dx[j] = ds[j] = dr[j] = 0.0
    short, kept, length = 0, False, 0.0
    gap, relative, defect, last = np.inf, np.inf, np.inf, np.inf
    for step in range(MAX_STEPS):
        dual, primal, gap, leak, objective = residuals(
            weight, linear, At, b, soft, lower, upper, begin, end, x, y, s, r, rd, rp, change
        )
        before = relative, defect
        defect = max(dual, primal)
        relative = (gap + leak) / max(abs(objective), LEAST_OBJECTIVE)
        quality = max(defect, relative)
        if last <= ACCEPTED and not (quality <= ACCEPTED and np.isfinite(gap + defect)):
            _move(-length, dx, ds, dr, dy, x, s, r, y)  # rounding has spoiled what was good enough
            return SOLVED, step, before[0], before[1]
        if not np.isfinite(gap + defect):
            return NOT_CONVERGED, step, np.inf, np.inf
        if quality <= TIGHT or (quality <= ACCEPTED and quality > 0.5 * last):
            return SOLVED, step, relative, defect
        last = quality
        mean = gap / degree if degree else 0.0
        if not kept and (mean <= WARM_GAP or short):
            kept = True
        if not kept or step == 0:
            keep_point(x, y, s, r, saved)
        # The longer nothing moves, the weaker a proof will do.
        proof = ABSURD if short < 3 and step < MAX_STEPS - 1 else WEAK
        if step > 2 and excludes(weight, linear, b, soft, lower, upper, x, y, s, r, rd, proof, one):
            return INFEASIBLE, step, relative, defect
        if short >= 3:
            break

        # Newton matrix, block by block, and its Schur complement on the rows.
        for i in range(p):
            top = S[i]
            for c in range(i, p):
                top[c] = 0.0
            top[i] = soft[i]
        for j in range(boxes):
            total = weight[j] if weight[j] > 0.0 else FREE
            if lower[j] > -np.inf:
                total += s[j] / (x[j] - lower[j])
            if upper[j] < np.inf:
                total += r[j] / (upper[j] - x[j])
            inverse[j] = 1.0 / total
            row = At[j]
            for a in range(begin[j], end[j]):
                if row[a] != 0.0:
                    amount = inverse[j] * row[a]
                    out = S[a]
                    for c in range(a, end[j]):
                        out[c] += amount * row[c]
        for i in range(cones):
            j = boxes + 3 * i
            block = scalings[i]
            if not nt_scaling(x[j : j + 3], s[j : j + 3], block[0:4], block[4:7]):
                return SOLVED if quality <= ACCEPTED else NOT_CONVERGED, step, relative, defect
            spectrum(block, weight[j])
            outer, middle, across = 0.5 * block[7], 0.5 * block[8], block[9]
            e1, e2 = block[10], block[11]
            row0, row1, row2 = At[j], At[j + 1], At[j + 2]
            for a in range(p):
                radial = e1 * row1[a] + e2 * row2[a]
                one_row[a], two_row[a] = row0[a] + radial, row0[a] - radial
                three_row[a] = e1 * row2[a] - e2 * row1[a]
            for a in range(p):
                v0, v1, v2 = outer * one_row[a], middle * two_row[a], across * three_row[a]
                out = S[a]
                for c in range(a, p):
                    out[c] += v0 * one_row[c] + v1 * two_row[c] + v2 * three_row[c]
        factor(S, p, dy)

        target, share, taken = 0.0, 1.0, 0.0  # taken: how far the predictor went
        for corrector in range(2):
            # rhs = -rd + what complementarity asks for; first keeps that part for ds.
            for j in range(boxes):
                first[j] = 0.0
                asked = -share * rd[j]
                if lower[j] > -np.inf:
                    second = taken * dx[j] * ds[j]
                    first[j] = (target - second) / (x[j] - lower[j]) - s[j]
                    asked += first[j]
                if upper[j] < np.inf:
                    second = -taken * dx[j] * dr[j]
                    dr[j] = (target - second) / (upper[j] - x[j]) - r[j]
                    asked -= dr[j]
                rhs[j] = asked
            for i in range(cones):
                j = boxes + 3 * i
                block = scalings[i]
                eta_w, point = block[0:4], block[4:7]
                product(point, point, three)
                if corrector:
                    unscale(eta_w, dx[j : j + 3], one)
                    scale(eta_w, ds[j : j + 3], two)
                    product(one, two, four)
                    for d in range(3):
                        three[d] += taken * four[d]
                for d in range(3):
                    three[d] = (target if d == 0 else 0.0) - three[d]
                quotient(point, three, three)
                unscale(eta_w, three, first[j : j + 3])
                for d in range(3):
                    rhs[j + d] = first[j + d] - share * rd[j + d]
            for i in range(p):
                dy[i] = share * rp[i]
            apply_inverse(inverse, scalings, boxes, rhs, dx)
            for j in range(N):
                row, value = At[j], dx[j]
                for i in range(begin[j], end[j]):
                    dy[i] -= row[i] * value
            substitute(S, p, dy)
            for refinement in range(REFINEMENTS):
                for j in range(N):
                    pull[j] = dot(At[j], dy, begin[j], end[j])
                    asked_for[j] = rhs[j] + pull[j]
                apply_inverse(inverse, scalings, boxes, asked_for, dx)
                if not corrector:
                    break
                # What rounding left of the rows; most of the time nothing worth a correction.
                for i in range(p):
                    change[i] = share * rp[i] - soft[i] * dy[i]
                for j in range(N):
                    row, value = At[j], dx[j]
                    for i in range(begin[j], end[j]):
                        change[i] -= row[i] * value
                left = 0.0
                for i in range(p):
                    left = max(left, abs(change[i]))
                if left <= ROUNDING:
                    break
                if refinement == REFINEMENTS - 1:
                    break
                substitute(S, p, change)
                for i in range(p):
                    dy[i] += change[i]
            reach = np.inf
            for j in range(boxes):
                ds[j] = 0.0
                if lower[j] > -np.inf:
                    slack = x[j] - lower[j]
                    ds[j] = first[j] - s[j] / slack * dx[j]
                    if dx[j] < 0.0:
                        reach = min(reach, -slack / dx[j])
                    if ds[j] < 0.0:
                        reach = min(reach, -s[j] / ds[j])
                if upper[j] < np.inf:
                    slack = upper[j] - x[j]
                    dr[j] += r[j] / slack * dx[j]
                    if dx[j] > 0.0:
                        reach = min(reach, slack / dx[j])
                    if dr[j] < 0.0:
                        reach = min(reach, -r[j] / dr[j])
                else:
                    dr[j] = 0.0
            for i in range(cones):
                j = boxes + 3 * i
                for d in range(j, j + 3):
                    # From the dual equation, not from complementarity: rounding must not add to rd.
                    ds[d] = weight[d] * dx[d] - pull[d] + share * rd[d]
                reach = min(
                    reach,
                    longest_step(x[j : j + 3], dx[j : j + 3]),
                    longest_step(s[j : j + 3], ds[j : j + 3]),
                )
            if not corrector:
                taken = min(1.0, reach)
                target, share = mean * (1.0 - taken) ** 3, 1.0 - (1.0 - taken) ** 3
        length = min(1.0, PULL * reach)
        total = length
        for j in range(N):
            total += abs(dx[j]) + abs(ds[j])
        if not (length > 0.0 and total < np.inf):
            break
        short = short + 1 if length < STALLED else 0
        _move(length, dx, ds, dr, dy, x, s, r, y)
        for j in range(boxes):
            # Rounding must not put a variable onto its bound.
            margin = 1e-15 * (abs(x[j]) + 1e-3)
            x[j] = min(max(x[j], lower[j] + margin), upper[j] - margin)
    dual, primal, gap, leak, objective = residuals(
        weight, linear, At, b, soft, lower, upper, begin, end, x, y, s, r, rd, rp, change
    )
    defect = max(dual, primal)
    relative = (gap + leak) / max(abs(objective), LEAST_OBJECTIVE)
    return (
        SOLVED if max(defect, relative) <= ACCEPTED else NOT_CONVERGED,
        MAX_STEPS,
        relative,
        defect,
    )


@kernel
def central_path(
    weight, linear, At, b, soft, lower, upper, warm, x, y, s, r, saved, work, rows, S, scalings
):
    """Solve in place; everything in units in which the program is of the size of one.

    Args:
        weight, linear (N,): D >= 0, the same for all three of a cone, and g.
        At (N, p): A transposed, overwritten, as is b (p,).  soft (p,).
        lower, upper (m,): bounds of the first m variables, infinite where there are none; the
            other N - m are cones of three.
        warm: x, y, s, r hold a point strictly inside the bounds and cones to start from.
        x (N,), y (p,), s (N,), r (m,): out; multipliers s of the lower bounds and cones, r of the upper.
        saved (4, max(N, p)): out, (x, y, s, r) of a point on the way, for a warm start.
        work, rows, S, scalings: see ``workspace``.

    Returns (status, steps, duality gap relative to the objective, largest relative KKT defect).
    """
    N, p = At.shape
    # Free variables next to without cost make some rows of the Schur complement huge. Kept apart
    # from the others, these rows take nothing from their precision.
    chosen = np.zeros(N, np.bool_)
    count = 0
    for j in range(lower.shape[0]):
        chosen[j] = lower[j] == -np.inf and upper[j] == np.inf and weight[j] < CHEAP
        count += 1 if chosen[j] else 0
    for i in range(p):
        if soft[i] != 0.0:
            count = 0
    reflectors = np.empty((min(count, p), p))
    if count:
        count = concentrate(At, b, chosen, reflectors)
        rotate(reflectors, count, y, False)
    result = _follow(
        weight,
        linear,
        At,
        b,
        soft,
        lower,
        upper,
        warm,
        x,
        y,
        s,
        r,
        saved,
        work,
        rows,
        S,
        scalings,
        np.empty((4, 3)),
        np.empty((2, N), np.int64),
    )
    if count:
        rotate(reflectors, count, y, True)
        rotate(reflectors, count, saved[1, :p], True)
    return result
