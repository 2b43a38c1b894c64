"""From contact impulses to a solution: torques, end velocity, status."""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, inlined_kernel, kernel
from contact_id_controller.kernels.dense import add_rows, backward_substitute
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.reduction import TOUCHING_SPEED, open_store
from contact_id_controller.models.steps.reduced import Answer, matrices
from contact_id_controller.problem import Problem
from contact_id_controller.solution import INCONSISTENT, NOT_CONVERGED, Solution
from contact_id_controller.solution import RELAXED as RELAXED_NAME
from contact_id_controller.solution import SOLVED as SOLVED_NAME
from contact_id_controller.solution import UNHOLDABLE as UNHOLDABLE_NAME

UNHOLDABLE, RELAXED = 4, 5  # beside the codes of ``nearest_point`` and ``motion``
STATUS_NAMES = {
    SOLVED: SOLVED_NAME,
    RELAXED: RELAXED_NAME,
    INFEASIBLE: INCONSISTENT,
    UNHOLDABLE: UNHOLDABLE_NAME,
}

UNFELT_M_S = 1e-12  # contradictions below this are rounding, whatever the scale
TOLERATED = 0.05  # share of the largest contact velocity that may give way: drifts stay below it


def map_identities(
    problem: Problem, warm_start: Solution | None, values: np.ndarray | None, out: np.ndarray
) -> np.ndarray:
    """Copy one row of values per contact to the contacts of the same identity in a new problem.

    values (m, ...) belong to ``warm_start``'s contacts; rows of out (n, ...) are written for contacts that both
    have; returns out.
    """
    if warm_start is None or values is None:
        return out
    old, new = warm_start.problem.contacts.identities, problem.contacts.identities
    if old == new:
        out[:] = values
    else:
        place = {identity: i for i, identity in enumerate(old)}
        for i, identity in enumerate(new):
            j = place.get(identity)
            if j is not None:
                out[i] = values[j]
    return out


def outcome(
    problem: Problem,
    code: int,
    steps: int,
    contradiction: float,
    room: np.ndarray,
    memory: Any = None,
) -> Solution:
    """Make a ``Solution`` from what a compiled entry wrote into ``room``; the status code becomes a name."""
    status = STATUS_NAMES.get(code, NOT_CONVERGED)
    return Solution.of_room(problem, status, steps, contradiction, room, memory)


@bare_kernel
def shift_offset(reduced, delta, shifted):
    """Write into shifted (na,), N·m, the torques at z = 0 after the joint velocities change by delta (na,), rad/s."""
    offset, schur, rate = reduced.offset, reduced.schur, 1.0 / reduced.dt
    for j in range(delta.shape[0]):
        row, total = schur[j], 0.0
        for k in range(delta.shape[0]):
            total += row[k] * delta[k]
        shifted[j] = offset[j] + rate * total


@inlined_kernel
def finish(reduced, answer):
    """Torques and end velocity from the impulses z (3n,) and the change delta (na,) of joint velocity.

    u = Y^T z + base, v_u+ = L^-T (u - C delta), tau = offset + T^T z + schur delta / dt: affine in z.
    Source: first paper, eq. 37, on the reduced problem.
    """
    z, delta, torques, velocity = answer.z, answer.delta, answer.torques, answer.velocity
    # Opened once: loops are slower on tuples.
    L, C, Y, T = reduced.L, reduced.C, reduced.Y, reduced.T
    nu, na = L.shape[0], torques.shape[0]
    x = np.empty(nu)
    for k in range(nu):
        x[k] = reduced.base[k]
        for j in range(na):
            x[k] -= C[k, j] * delta[j]
    shift_offset(reduced, delta, torques)
    for j in range(na):
        velocity[reduced.actuated[j]] = reduced.desired[j] + delta[j]
    add_rows(Y, z, 1.0, x)
    add_rows(T, z, 1.0, torques)
    backward_substitute(L, nu, x)
    for k in range(nu):
        velocity[reduced.unactuated[k]] = x[k]


@bare_kernel
def tolerable(reduced):
    """Contact velocity that may be relaxed without report, m/s: a share of the largest that is required.

    Required are the velocities of touching contacts, and closing speeds beyond a gap; not the present velocity,
    of which a slow time constant removes a small share in each period.
    """
    c, gap_speed, required = reduced.c, reduced.gap_speed, 0.0
    for r in range(c.shape[0]):
        gap, normal = gap_speed[r // 3], r % 3 == 0
        if gap <= TOUCHING_SPEED:
            required = max(required, abs(c[r] + (min(gap, 0.0) if normal else 0.0)))
        elif normal:
            required = max(required, -(c[r] + gap))
    return TOLERATED * required + UNFELT_M_S


@bare_kernel
def gave_way(reduced, answer):
    """Largest difference, m/s, between ``answer.moved`` and the contact velocities that the changed plan requires."""
    T, c, dt, moved, delta = reduced.T, reduced.c, reduced.dt, answer.moved, answer.delta
    largest = 0.0
    for r in range(0, moved.shape[0], 3):
        first, second, third, x, y, z = T[r], T[r + 1], T[r + 2], 0.0, 0.0, 0.0
        for k in range(delta.shape[0]):
            x += first[k] * delta[k]
            y += second[k] * delta[k]
            z += third[k] * delta[k]
        for d, change in enumerate((x, y, z)):
            largest = max(largest, abs(moved[r + d] - c[r + d] + dt * change))
    return largest


@inlined_kernel
def finished(reduced, answer, status):
    """Call ``finish``; returns the status: RELAXED if contacts of a solved problem were relaxed."""
    finish(reduced, answer)
    relaxed = status == SOLVED and gave_way(reduced, answer) > tolerable(reduced)
    return RELAXED if relaxed else status


def finish_answer(problem: Problem, answer: Answer) -> int:
    """Call ``finished`` from Python for a solved problem: fills the answer's torques and velocity."""
    status: int = _finish(*matrices(problem), *answer)
    return status


@kernel
def _finish(store, actuated, unactuated, moved, z, delta, torques, velocity):
    """Compiled entry of ``finish``: opens the store and takes the answer's arrays one by one."""
    reduced = open_store(store, actuated, unactuated)
    return finished(reduced, Answer(moved, z, delta, torques, velocity), SOLVED)
