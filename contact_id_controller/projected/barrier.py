"""Newton's method along the central path of a program over exact friction cones.

    min 1/2 x^T D x + g^T x + 1/2 |A x - b|^2 / soft      D diagonal
        A x = b (rows with soft = 0),  lower <= x <= upper (the first variables),  x_i in Q (the others)

A primal-dual interior-point method: Nesterov-Todorov scaling, Mehrotra's predictor and corrector,
infeasible start. All blocks of the Newton matrix are diagonal or 3 x 3, so a step is one
factorisation of the size of the rows of A, linear in the number of contacts. Where no point
satisfies the constraints, the multipliers grow along a certificate (Farkas' lemma for cones):

    A^T y + s = 0,  s in the dual cone,   b^T y + lower^T s_l - upper^T s_u > 0

Source: Aghili, Optimal control of legged robots subject to friction cone constraints, section 3.2
and appendix .5, with Mehrotra (1992) in place of a fixed schedule for the barrier.
"""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel
from ..problem import fill
from .second_order_cone import (
    distance, longest_step, nt_scaling, product, quotient, scale, unscale,
)

SOLVED, INFEASIBLE, NOT_CONVERGED = 0, 1, 2
TIGHT = 1e-10        # residuals and relative gap that end the iteration, in scaled units
ACCEPTED = 1e-7      # the same, where rounding lets the method get no closer
MAX_STEPS = 60
PULL = 0.99          # share of the way to the boundary that a step goes
DELTA = 1e-13        # pivots of dependent rows are lifted to this share of the largest
FREE = 1e-8          # weight that keeps a free variable without cost determined
ABSURD = 1e8         # infeasible when every feasible point were larger than this, in scaled units
STALLED = 1e-5       # steps shorter than this make no progress
WARM_GAP = 1e-2      # complementarity, in scaled units, at which the point for warm starts is kept
WORK_ROWS, SCALING = 8, 20


def workspace(variables: int, rows: int, cones: int):
    """Arrays that ``central_path`` works in: (work, rows_work, S, scalings)."""
    return (np.empty((WORK_ROWS, variables)), np.empty((4, rows)), np.empty((rows, rows)),
            np.empty((cones, SCALING)))


@kernel
def factor(S, p):
    """Upper factor of a positive semidefinite S (p, p) in place: S = U^T U; dependent rows get none."""
    largest = 0.0
    for k in range(p):
        largest = max(largest, S[k, k])
    for k in range(p):
        top = S[k]
        pivot = top[k]
        # A row that depends on the others has no say: an infinite pivot leaves its multiplier zero.
        root = np.sqrt(pivot) if pivot > DELTA * largest else 1e150
        top[k] = root
        for j in range(k + 1, p):
            top[j] /= root
        for i in range(k + 1, p):
            amount = top[i]
            if amount != 0.0:
                row = S[i]
                for j in range(i, p):
                    row[j] -= amount * top[j]


@kernel
def substitute(U, p, x):
    """x <- (U^T U)^-1 x."""
    for k in range(p):
        amount = x[k] / U[k, k]
        x[k] = amount
        for j in range(k + 1, p):
            x[j] -= amount * U[k, j]
    for k in range(p - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, p):
            total -= U[k, j] * x[j]
        x[k] = total / U[k, k]


@kernel
def cold_start(lower, upper, x, y, s, r):
    """A point inside all bounds and cones, of the size of one."""
    boxes = lower.shape[0]
    for j in range(boxes):
        width = upper[j] - lower[j]
        margin = min(1.0, 0.1 * width)
        x[j] = min(max(0.0, lower[j] + margin), upper[j] - margin)
        s[j] = 1.0 / max(x[j] - lower[j], 0.1) if lower[j] > -np.inf else 0.0
        r[j] = 1.0 / max(upper[j] - x[j], 0.1) if upper[j] < np.inf else 0.0
    for j in range(boxes, x.shape[0]):
        x[j] = s[j] = 1.0 if (j - boxes) % 3 == 0 else 0.0
    fill(y, 0.0)


@kernel
def residuals(weight, linear, At, b, soft, lower, upper, x, y, s, r, rd, rp):
    """KKT defects rd (N,), rp (p,); returns (largest rd, largest rp, complementarity, objective)."""
    N, p = At.shape
    boxes = lower.shape[0]
    objective, gap, dual = 0.0, 0.0, 0.0
    for i in range(p):
        rp[i] = b[i] - soft[i] * y[i]
    for j in range(N):
        total = weight[j] * x[j]
        objective += x[j] * (0.5 * total + linear[j])
        total += linear[j] - s[j]
        if j < boxes:
            total += r[j]
            if lower[j] > -np.inf:
                gap += (x[j] - lower[j]) * s[j]
            if upper[j] < np.inf:
                gap += (upper[j] - x[j]) * r[j]
        else:
            gap += x[j] * s[j]
        row, value = At[j], x[j]
        pull = 0.0
        for i in range(p):
            pull += row[i] * y[i]
            rp[i] -= row[i] * value
        rd[j] = total - pull
        dual = max(dual, abs(rd[j]))
    primal = 0.0
    for i in range(p):
        primal = max(primal, abs(rp[i]))
        objective += 0.5 * soft[i] * y[i] * y[i]
    return dual, primal, gap, objective


@kernel
def excludes(weight, linear, b, soft, lower, upper, x, y, s, r, rd):
    """Whether y proves that every point of the constraints were absurdly large."""
    boxes = lower.shape[0]
    value, left = 0.0, 0.0
    for i in range(b.shape[0]):
        value += b[i] * y[i]
        left = max(left, soft[i] * abs(y[i]))
    if not value > 0.0:
        return False
    force = np.empty(3)
    for j in range(boxes):
        pull = weight[j] * x[j] + linear[j] - s[j] + r[j] - rd[j]  # (A^T y)_j
        bound = upper[j] if pull > 0.0 else lower[j]
        if np.isinf(bound):
            left += abs(pull)
        else:
            value -= bound * pull
    for j in range(boxes, x.shape[0], 3):
        for d in range(3):
            k = j + d
            force[d] = -(weight[k] * x[k] + linear[k] - s[k] - rd[k])
        left += distance(force)
    return value > ABSURD * left


@kernel
def central_path(weight, linear, At, b, soft, lower, upper, warm, x, y, s, r, saved, work, rows, S,
                 scalings):
    """Solve in place; everything in units in which the program is of the size of one.

    Args:
        weight, linear (N,): D >= 0 and g.  At (N, p): A transposed.  b, soft (p,).
        lower, upper (m,): bounds of the first m variables, infinite where there are none; the
            other N - m are cones of three.
        warm: x, y, s, r hold a point strictly inside the bounds and cones to start from.
        x (N,), y (p,), s (N,), r (m,): out; multipliers s of the lower bounds and cones, r of the upper.
        saved (4, max(N, p)): out, (x, y, s, r) of a point on the way, for a warm start.
        work, rows, S, scalings: see ``workspace``.

    Returns (status, steps, complementarity gap, largest KKT defect).
    """
    N, p = At.shape
    boxes, cones = lower.shape[0], scalings.shape[0]
    rd, dx, ds, dr, inverse, rhs, first = (work[0], work[1], work[2], work[3], work[4], work[5], work[6])
    rp, dy = rows[0], rows[1]
    if not warm:
        cold_start(lower, upper, x, y, s, r)
    degree = cones
    for j in range(boxes):
        degree += (1 if lower[j] > -np.inf else 0) + (1 if upper[j] < np.inf else 0)
    one, two, three = np.empty(3), np.empty(3), np.empty(3)
    short, kept = 0, False
    gap, defect = np.inf, np.inf
    for step in range(MAX_STEPS):
        dual, primal, gap, objective = residuals(weight, linear, At, b, soft, lower, upper, x, y, s, r,
                                                 rd, rp)
        defect = max(dual, primal)
        if not np.isfinite(gap + defect):
            return NOT_CONVERGED, step, gap, defect
        scale_of_gap = max(abs(objective), 1e-6)
        if defect <= TIGHT and gap <= TIGHT * scale_of_gap:
            return SOLVED, step, gap, defect
        mean = gap / degree if degree else 0.0
        if not kept and (mean <= WARM_GAP or short):
            kept = True
        if not kept or step == 0:
            _keep(x, y, s, r, saved)
        if step > 2 and excludes(weight, linear, b, soft, lower, upper, x, y, s, r, rd):
            return INFEASIBLE, step, gap, defect
        if short >= 3:
            break

        # Newton matrix, block by block, and its Schur complement on the rows.
        for i in range(p):
            fill(S[i], 0.0)
            S[i, i] = soft[i]
        for j in range(boxes):
            total = max(weight[j], FREE)
            if lower[j] > -np.inf:
                total += s[j] / (x[j] - lower[j])
            if upper[j] < np.inf:
                total += r[j] / (upper[j] - x[j])
            inverse[j] = 1.0 / total
            row = At[j]
            for a in range(p):
                if row[a] != 0.0:
                    amount = inverse[j] * row[a]
                    out = S[a]
                    for c in range(a, p):
                        out[c] += amount * row[c]
        for i in range(cones):
            j = boxes + 3 * i
            block = scalings[i]
            if not nt_scaling(x[j:j + 3], s[j:j + 3], block[0:4], block[4:7]):
                return (SOLVED if max(defect, gap / scale_of_gap) <= ACCEPTED else NOT_CONVERGED,
                        step, gap, defect)
            _invert(block, weight[j:j + 3])
            h00, h10, h11, h20, h21, h22 = (block[7], block[8], block[9], block[10], block[11], block[12])
            row0, row1, row2 = At[j], At[j + 1], At[j + 2]
            for a in range(p):
                v0 = h00 * row0[a] + h10 * row1[a] + h20 * row2[a]
                v1 = h10 * row0[a] + h11 * row1[a] + h21 * row2[a]
                v2 = h20 * row0[a] + h21 * row1[a] + h22 * row2[a]
                out = S[a]
                for c in range(a, p):
                    out[c] += v0 * row0[c] + v1 * row1[c] + v2 * row2[c]
        factor(S, p)

        target = 0.0
        for corrector in range(2):
            # rhs = -rd + what complementarity asks for; first keeps that part for ds.
            for j in range(boxes):
                first[j] = 0.0
                asked = -rd[j]
                if lower[j] > -np.inf:
                    change = dx[j] * ds[j] if corrector else 0.0
                    first[j] = (target - change) / (x[j] - lower[j]) - s[j]
                    asked += first[j]
                if upper[j] < np.inf:
                    change = -dx[j] * dr[j] if corrector else 0.0
                    dr[j] = (target - change) / (upper[j] - x[j]) - r[j]
                    asked -= dr[j]
                rhs[j] = asked
            for i in range(cones):
                j = boxes + 3 * i
                block = scalings[i]
                eta_w, point = block[0:4], block[4:7]
                product(point, point, three)
                if corrector:
                    unscale(eta_w, dx[j:j + 3], one)
                    scale(eta_w, ds[j:j + 3], two)
                    product(one, two, block[13:16])
                    for d in range(3):
                        three[d] += block[13 + d]
                for d in range(3):
                    three[d] = (target if d == 0 else 0.0) - three[d]
                quotient(point, three, three)
                unscale(eta_w, three, first[j:j + 3])
                for d in range(3):
                    rhs[j + d] = first[j + d] - rd[j + d]
            for i in range(p):
                dy[i] = rp[i]
            for j in range(N):
                dx[j] = 0.0
            _apply(inverse, scalings, boxes, rhs, dx)
            for j in range(N):
                row, value = At[j], dx[j]
                for i in range(p):
                    dy[i] -= row[i] * value
            substitute(S, p, dy)
            for j in range(N):
                row = At[j]
                total = rhs[j]
                for i in range(p):
                    total += row[i] * dy[i]
                rhs[j] = total
            _apply(inverse, scalings, boxes, rhs, dx)
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
                eta_w = scalings[i, 0:4]
                unscale(eta_w, dx[j:j + 3], one)
                unscale(eta_w, one, one)
                for d in range(3):
                    ds[j + d] = first[j + d] - one[d]
                reach = min(reach, longest_step(x[j:j + 3], dx[j:j + 3]),
                            longest_step(s[j:j + 3], ds[j:j + 3]))
            if not corrector:
                length = min(1.0, reach)
                after = _complementarity(lower, upper, x, s, r, dx, ds, dr, length)
                share = max(after / gap, 0.0) if gap > 0.0 else 0.0
                target = mean * min(1.0, share * share * share)
        length = min(1.0, PULL * reach)
        total = length
        for j in range(N):
            total += abs(dx[j]) + abs(ds[j])
        if not (length > 0.0 and total < np.inf):
            break
        short = short + 1 if length < STALLED else 0
        for j in range(N):
            x[j] += length * dx[j]
            s[j] += length * ds[j]
        for j in range(boxes):
            r[j] += length * dr[j]
        for i in range(p):
            y[i] += length * dy[i]
    dual, primal, gap, objective = residuals(weight, linear, At, b, soft, lower, upper, x, y, s, r, rd, rp)
    defect = max(dual, primal)
    good = max(defect, gap / max(abs(objective), 1e-6)) <= ACCEPTED
    return SOLVED if good else NOT_CONVERGED, MAX_STEPS, gap, defect


@kernel
def _keep(x, y, s, r, saved):
    for j in range(x.shape[0]):
        saved[0, j], saved[2, j] = x[j], s[j]
    for i in range(y.shape[0]):
        saved[1, i] = y[i]
    for j in range(r.shape[0]):
        saved[3, j] = r[j]


@kernel
def _invert(block, weight):
    """Inverse of W^-2 + diag(weight) of one cone: lower triangle by rows into block[7:13]."""
    square = block[0] * block[0]
    w0, w1, w2 = block[1], block[2], block[3]
    if weight[0] == 0.0 and weight[1] == 0.0 and weight[2] == 0.0:
        # W^2 = eta^2 (2 w w^T - J), no inversion needed.
        block[7] = square * (2.0 * w0 * w0 - 1.0)
        block[8], block[9] = square * 2.0 * w1 * w0, square * (2.0 * w1 * w1 + 1.0)
        block[10], block[11] = square * 2.0 * w2 * w0, square * 2.0 * w2 * w1
        block[12] = square * (2.0 * w2 * w2 + 1.0)
        return
    a = (2.0 * w0 * w0 - 1.0) / square + weight[0]
    b, c = -2.0 * w1 * w0 / square, (2.0 * w1 * w1 + 1.0) / square + weight[1]
    d, e = -2.0 * w2 * w0 / square, 2.0 * w2 * w1 / square
    f = (2.0 * w2 * w2 + 1.0) / square + weight[2]
    determinant = a * (c * f - e * e) - b * (b * f - e * d) + d * (b * e - c * d)
    block[7] = (c * f - e * e) / determinant
    block[8], block[9] = (d * e - b * f) / determinant, (a * f - d * d) / determinant
    block[10], block[11] = (b * e - c * d) / determinant, (b * d - a * e) / determinant
    block[12] = (a * c - b * b) / determinant


@kernel
def _apply(inverse, scalings, boxes, v, out):
    """out = (D + scaling)^-1 v, block by block."""
    for j in range(boxes):
        out[j] = inverse[j] * v[j]
    for i in range(scalings.shape[0]):
        j, h = boxes + 3 * i, scalings[i]
        a, b, c = v[j], v[j + 1], v[j + 2]
        out[j] = h[7] * a + h[8] * b + h[10] * c
        out[j + 1] = h[8] * a + h[9] * b + h[11] * c
        out[j + 2] = h[10] * a + h[11] * b + h[12] * c


@kernel
def _complementarity(lower, upper, x, s, r, dx, ds, dr, length):
    """The gap after a step."""
    boxes = lower.shape[0]
    total = 0.0
    for j in range(x.shape[0]):
        moved, pushed = x[j] + length * dx[j], s[j] + length * ds[j]
        if j >= boxes:
            total += moved * pushed
            continue
        if lower[j] > -np.inf:
            total += (moved - lower[j]) * pushed
        if upper[j] < np.inf:
            total += (upper[j] - moved) * (r[j] + length * dr[j])
    return total
