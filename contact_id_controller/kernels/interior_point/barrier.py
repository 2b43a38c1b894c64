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
from contact_id_controller.kernels.dense import concentrate, rotate
from contact_id_controller.kernels.interior_point.cone_program import (
    Defect,
    Newton,
    Point,
)
from contact_id_controller.kernels.interior_point.newton_parts import (
    cold_start,
    excludes,
    extent,
    keep_point,
    move,
    residuals,
)
from contact_id_controller.kernels.interior_point.newton_step import (
    BLOCK,
    factor_newton,
    predict_and_correct,
)

SOLVED, INFEASIBLE, NOT_CONVERGED = 0, 1, 2
TIGHT = 1e-9  # residuals and relative gap that end the iteration, in scaled units
ACCEPTED = 3e-7  # the same, where rounding lets the method get no closer
MAX_STEPS = 60
PULL = 0.99  # share of the way to the boundary that a step goes
CHEAP = 1e-4  # a free variable that costs less counts as one without cost
ABSURD = 1e8  # infeasible when every feasible point were larger than this, in scaled units
WEAK = 1e4  # the same when the method has stalled
LEAST_OBJECTIVE = 1e-7  # an objective below this, in scaled units, counts as this
STALLED = 1e-5  # steps shorter than this make no progress
MOST_STALLED = 3  # of them in a row, and the method has stalled
WARM_GAP = 1e-2  # complementarity, in scaled units, at which the point for warm starts is kept
MARGIN = 1e-15  # distance from its bound, relative, to which rounding may take a variable


@bare_kernel
def _measure(program, point, defect):
    """(gap, its size relative to the objective, largest defect) of a point."""
    dual, primal, gap, leak, objective = residuals(program, point, defect)
    return gap, (gap + leak) / max(abs(objective), LEAST_OBJECTIVE), max(dual, primal)


@bare_kernel
def _keep_inside(program, point):
    """Rounding must not put a variable onto its bound."""
    x, lower, upper = point.x, program.lower, program.upper
    for j in range(lower.shape[0]):
        margin = MARGIN * (abs(x[j]) + 1e-3)
        x[j] = min(max(x[j], lower[j] + margin), upper[j] - margin)


@bare_kernel
def _size(length, step):
    """A number that is finite where the step is."""
    total = length
    for j in range(step.x.shape[0]):
        total += abs(step.x[j]) + abs(step.s[j])
    return total


@bare_kernel
def _follow(program, warm, point, saved, step, defect, newton):
    """``central_path`` for rows as they are; the last three are workspace."""
    lower, upper = program.lower, program.upper
    if not warm:
        cold_start(program, point)
    extent(program.At, defect.extent[0], defect.extent[1])
    degree = newton.blocks.shape[0]
    for j in range(lower.shape[0]):
        degree += (1 if lower[j] > -np.inf else 0) + (1 if upper[j] < np.inf else 0)
    short, kept, length = 0, False, 0.0
    relative, worst, last = np.inf, np.inf, np.inf
    for count in range(MAX_STEPS):
        before = relative, worst
        gap, relative, worst = _measure(program, point, defect)
        quality = max(worst, relative)
        if last <= ACCEPTED and not (quality <= ACCEPTED and abs(gap + worst) < np.inf):
            move(-length, step, point)  # rounding has spoiled what was good enough
            return SOLVED, count, before[0], before[1]
        if not (abs(gap + worst) < np.inf):
            return NOT_CONVERGED, count, np.inf, np.inf
        if quality <= TIGHT or (quality <= ACCEPTED and quality > 0.5 * last):
            return SOLVED, count, relative, worst
        last = quality
        mean = gap / degree if degree else 0.0
        kept = kept or mean <= WARM_GAP or short > 0
        if not kept or count == 0:
            keep_point(point, saved)
        # The longer nothing moves, the weaker a proof will do.
        stalled = short >= MOST_STALLED
        proof = WEAK if stalled or count == MAX_STEPS - 1 else ABSURD
        if count > 2 and excludes(program, point, defect.rd, proof, newton.threes[0]):
            return INFEASIBLE, count, relative, worst
        if stalled:
            break
        if not factor_newton(program, point, defect.extent, newton):
            status = SOLVED if quality <= ACCEPTED else NOT_CONVERGED
            return status, count, relative, worst
        length = PULL * predict_and_correct(program, point, defect, mean, newton, step)
        length = min(1.0, length)
        if not (length > 0.0 and _size(length, step) < np.inf):
            break
        short = short + 1 if length < STALLED else 0
        move(length, step, point)
        _keep_inside(program, point)
    gap, relative, worst = _measure(program, point, defect)
    status = SOLVED if max(worst, relative) <= ACCEPTED else NOT_CONVERGED
    return status, MAX_STEPS, relative, worst


@kernel
def central_path(program, warm, point, saved):
    """Solve in place; everything in units in which the program is of the size of one.

    Args:
        program: its At and b are overwritten.
        warm: ``point`` lies strictly inside the bounds and cones, and is started from.
        point: out.
        saved (4, max(N, p)): out, (x, y, s, r) of a point on the way, for a warm start.

    Returns (status, steps, duality gap relative to the objective, largest relative KKT defect).
    """
    At, b, soft, lower, upper = program.At, program.b, program.soft, program.lower, program.upper
    N, p = At.shape
    boxes = lower.shape[0]
    # Free variables next to without cost make some rows of the Schur complement huge. Kept apart
    # from the others, these rows take nothing from their precision.
    chosen = np.zeros(N, np.bool_)
    count = 0
    for j in range(boxes):
        chosen[j] = lower[j] == -np.inf and upper[j] == np.inf and program.weight[j] < CHEAP
        count += 1 if chosen[j] else 0
    for i in range(p):
        if soft[i] != 0.0:
            count = 0
    reflectors = np.empty((min(count, p), p))
    if count:
        count = concentrate(At, b, chosen, reflectors)
        rotate(reflectors, count, point.y, False)
    vectors = np.empty((4, N))
    step = Point(np.zeros(N), np.empty(p), np.zeros(N), np.zeros(boxes))
    defect = Defect(np.empty(N), np.empty(p), np.empty((2, N), np.int64), np.empty(p))
    newton = Newton(
        np.empty(boxes),
        np.empty(((N - boxes) // 3, BLOCK)),
        np.empty((p, p)),
        vectors[0],
        vectors[1],
        vectors[2],
        vectors[3],
        np.empty(p),
        np.empty((3, p)),
        np.empty((4, 3)),
    )
    result = _follow(program, warm, point, saved, step, defect, newton)
    if count:
        rotate(reflectors, count, point.y, True)
        rotate(reflectors, count, saved[1, :p], True)
    return result
