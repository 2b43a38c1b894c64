"""Programs over exact friction cones (``ConeProgram``): the interior-point method's dense structure.

The Newton matrix has diagonal and 3 x 3 blocks, so a step is one factorisation of the size of the rows
of A, linear in the contacts. If the constraints are infeasible, the multipliers grow along a
certificate (Farkas' lemma for cones):

    A^T y + s = 0,  s in the dual cone,   b^T y + lower^T s_l - upper^T s_u > 0

Source: Aghili, Optimal control of legged robots subject to friction cone constraints, section 3.2
and appendix .5, with Mehrotra (1992) in place of a fixed schedule for the barrier.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import concentrate, rotate
from contact_id_controller.kernels.interior_point.cone_program import Point, Work
from contact_id_controller.kernels.interior_point.method import NOT_CONVERGED, make_method
from contact_id_controller.kernels.interior_point.newton_parts import (
    cold_start,
    excludes,
    extent,
    keep_point,
    residuals,
)
from contact_id_controller.kernels.interior_point.newton_step import (
    BLOCK,
    aim,
    factor_newton,
    reach,
    solve_newton,
)

TIGHT = 1e-9  # residuals and relative gap that end the iteration, in scaled units
ACCEPTED = 300.0  # times as much, where rounding lets the method get no closer
MAX_STEPS = 60
CHEAP = 1e-4  # a free variable that costs less counts as one without cost
ABSURD = 1e8  # infeasible when every feasible point were larger than this, in scaled units
WEAK = 1e4  # the same when the method has stalled
LEAST_OBJECTIVE = 1e-7  # an objective below this, in scaled units, counts as this
WARM_GAP = 1e-2  # complementarity, in scaled units, down to which the point for warm starts is kept
MARGIN = 1e-15  # distance from its bound, relative, to which rounding may take a variable


@bare_kernel
def _measure(program, point, work, count):
    """Gap, a least target gap of zero, and the largest defect relative to TIGHT; see ``make_method``."""
    dual, primal, gap, leak, objective = residuals(program, point, work)
    relative, worst = (gap + leak) / max(abs(objective), LEAST_OBJECTIVE), max(dual, primal)
    work.log[count, 0], work.log[count, 1] = relative, worst
    if count == 0 or gap > WARM_GAP * work.degree:
        keep_point(point, work.saved)
    finite = abs(gap + worst) < np.inf
    return gap, 0.0, max(relative, worst) / TIGHT if finite else np.inf


@bare_kernel
def _excluded(program, point, work, final):
    """Whether the multipliers certify infeasibility; final: with a weaker tolerance."""
    return excludes(program, point, work.rd, WEAK if final else ABSURD, work.threes[0])


@bare_kernel
def _direction(program, point, work, target, share, taken):
    """Direction towards complementarity ``target``; the predictor is not corrected against rounding."""
    aim(program, point, target, share, taken, work)
    solve_newton(program, share, target + taken > 0.0, work)


@bare_kernel
def _move(program, point, work, length):
    """Add length times the step to the point; no variable is rounded onto its bound."""
    step, lower, upper = work.step, program.lower, program.upper
    for j in range(point.x.shape[0]):
        point.x[j] += length * step.x[j]
        point.s[j] += length * step.s[j]
    for j in range(point.r.shape[0]):
        point.r[j] += length * step.r[j]
        margin = MARGIN * (abs(point.x[j]) + 1e-3)
        point.x[j] = min(max(point.x[j], lower[j] + margin), upper[j] - margin)
    for i in range(point.y.shape[0]):
        point.y[i] += length * step.y[i]


_iterate = make_method(_measure, _excluded, factor_newton, _direction, reach, _move, ACCEPTED)


@kernel
def _room(point, saved, degree):
    """Allocate a step and its workspace for points of this size."""
    N, p, boxes = point.x.shape[0], point.y.shape[0], point.r.shape[0]
    vectors = np.empty((6, N))
    return Work(
        degree=degree,
        step=Point(np.zeros(N), np.empty(p), np.zeros(N), np.zeros(boxes)),
        rd=vectors[0],
        rp=np.empty(p),
        log=np.empty((MAX_STEPS + 1, 2)),
        saved=saved,
        extent=np.empty((2, N), np.int64),
        inverse=np.empty(boxes),
        blocks=np.empty(((N - boxes) // 3, BLOCK)),
        S=np.empty((p, p)),
        rhs=vectors[1],
        comp=vectors[2],
        pull=vectors[3],
        pulled=vectors[4],
        rest=np.empty(p),
        rows=np.empty((3, p)),
        threes=np.empty((4, 3)),
    )


@kernel
def central_path(program, warm, point, saved):
    """Solve in place; all quantities scaled to order one.

    Args:
        program: its At and b are overwritten.
        warm: start from ``point``, which lies strictly inside the bounds and cones.
        point: out.
        saved (4, max(N, p)): out, (x, y, s, r) of an intermediate point, for a warm start.

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
    if not warm:
        cold_start(program, point)
    degree = (N - boxes) // 3
    for j in range(boxes):
        degree += (1 if lower[j] > -np.inf else 0) + (1 if upper[j] < np.inf else 0)
    work = _room(point, saved, max(degree, 1))
    extent(At, work.extent[0], work.extent[1])
    status, steps = _iterate(program, point, work, MAX_STEPS)
    if count:
        rotate(reflectors, count, point.y, True)
        rotate(reflectors, count, saved[1, :p], True)
    return min(status, NOT_CONVERGED), steps, work.log[steps, 0], work.log[steps, 1]
