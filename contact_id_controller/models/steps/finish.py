"""From a model's forces to its solution: torques, end velocity, status."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.triangular import backward_substitute
from contact_id_controller.problem import Problem
from contact_id_controller.solution import INCONSISTENT, NOT_CONVERGED, Solution
from contact_id_controller.solution import SOLVED as SOLVED_NAME

STATUS_NAMES = {SOLVED: SOLVED_NAME, INFEASIBLE: INCONSISTENT}


def map_identities(
    problem: Problem, warm_start: Solution | None, values: np.ndarray | None, out: np.ndarray
) -> np.ndarray:
    """Carry one row of values per contact over to the same contacts of a new problem.

    values (m, ...) belong to ``warm_start``'s contacts; out (n, ...) is changed at contacts that both
    have, whatever their numbers.
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
    delta,
    z,
    torques,
    velocity,
    memory=None,
    attainable=None,
) -> Solution:
    """A ``Solution`` from a kernel's results; the code becomes a named status."""
    return Solution(
        problem,
        STATUS_NAMES.get(code, NOT_CONVERGED),
        torques,
        z,
        velocity,
        steps,
        delta,
        contradiction,
        memory,
        attainable,
    )


def buffers(problem: Problem):
    """Result arrays: z (3n,), delta (na,), torques (na,), velocity (nv,)."""
    robot = problem.robot
    return np.zeros(3 * len(problem)), np.zeros(robot.na), np.empty(robot.na), np.empty(robot.nv)


def matrices(problem: Problem):
    """The arrays of a problem in the order in which the kernels take them."""
    return (
        problem.Y,
        problem.c,
        problem.gap_speed,
        problem.T,
        problem.torque_offset,
        problem.L,
        problem.C,
        problem.base,
        problem.schur,
        problem.desired_velocity,
        problem.period,
        problem.robot.actuated,
        problem.robot.unactuated,
    )


@bare_kernel
def shift_offset(offset, schur, dt, delta, shifted):
    """Torques at z = 0 after the joint velocities change by delta (na,)."""
    for j in range(delta.shape[0]):
        shifted[j] = offset[j]
        for k in range(delta.shape[0]):
            shifted[j] += schur[j, k] * delta[k] / dt


@kernel
def finish(
    L, C, base, schur, offset, desired, T, Y, z, delta, dt, actuated, unactuated, torques, velocity
):
    """Torques and end velocity from impulses z (3n,) and the change delta (na,) of joint velocity."""
    nu, na = L.shape[0], torques.shape[0]
    x = np.empty(nu)
    for k in range(nu):
        x[k] = base[k]
        for j in range(na):
            x[k] -= C[k, j] * delta[j]
    for j in range(na):
        torques[j] = offset[j]
        for k in range(na):
            torques[j] += schur[j, k] * delta[k] / dt
        velocity[actuated[j]] = desired[j] + delta[j]
    for r in range(z.shape[0]):
        amount = z[r]
        if amount != 0.0:
            for k in range(nu):
                x[k] += Y[r, k] * amount
            for j in range(na):
                torques[j] += T[r, j] * amount
    backward_substitute(L, nu, x)
    for k in range(nu):
        velocity[unactuated[k]] = x[k]
