"""Least power under exact friction cones and torque limits: contacts hold, the plan may give way.

    min u^T W u        u = torque_offset + T^T z           (the reduced dynamics)
                       Y Y^T z + c = 0                     (touching contacts neither slip nor part)
                       z_N >= 0, |z_T| <= mu z_N, -limit <= u <= limit

W = diag(R/Kt^2), so the objective is the power that heats the motors. When no forces and torques do
this, the physics stay and the planned joint accelerations change by the disturbance d (na,):

    min u^T W u + rho |d|^2     u = torque_offset + T^T z + schur d,   Y Y^T z + c - dt^2 T d = 0

(section 3.3). Only where no d holds them either, contacts yield: least squares in their velocities.
Source: Aghili, Optimal control of legged robots subject to friction cone constraints, eq. 26 to 33.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.interior_point.barrier import SOLVED
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.models.least_power.active_set import least_power
from contact_id_controller.models.least_power.assembly import hold, solve_program, units_of_cone
from contact_id_controller.models.steps.finish import finish, shift_offset
from contact_id_controller.models.steps.options import CONSISTENCIES, check_option
from contact_id_controller.models.steps.plan import NOISE, TOUCHING_SPEED, project_held, touching
from contact_id_controller.models.steps.reduced import Answer, Reduced, empty_answer, matrices
from contact_id_controller.models.steps.yielding import TOLERATED
from contact_id_controller.problem import Problem
from contact_id_controller.solution import (
    INCONSISTENT,
    NOT_CONVERGED,
    RELAXED,
    Certificate,
    Solution,
)
from contact_id_controller.solution import SOLVED as SOLVED_NAME

RELAXED_CODE = 3
CONTRADICTORY = 4
REFUSED = 5
STATUS_NAMES = {SOLVED: SOLVED_NAME, RELAXED_CODE: RELAXED, CONTRADICTORY: INCONSISTENT}

ROUGH = 1e-6  # accuracy that does for a disturbance, in the solver's units
ROUGHER = 1e-3  # and where contacts yield
BACK = 1e-9  # a lifted contact returns when it closes by more than this share of the motion


def solve_coulomb_qcqp(
    problem: Problem,
    *,
    warm_start: Solution | None = None,
    torque_limits=None,
    weights=None,
    consistency: str = "project",
    rho: float = 1e4,
) -> Solution:
    """Forces in their exact cones and torques within limits, of least power.

    Contacts that touch are held: J v+ is what ``problem.c`` leaves of today's velocity. Contacts with
    a gap, and those that the plan lifts, carry nothing. Penetrations are not undone. The contacts'
    load shares are not heeded: the forces are those of least power.

    Args:
        warm_start: the last period's solution: its active limits and cones are tried first. That saves
            steps and does not change the result.
        torque_limits: (na,) or scalar, N·m, positive or inf; by default ``robot.effort_limits``.
        weights: (na,) or scalar, diagonal of W = R/Kt^2 in W/(N·m)^2; by default ones.
        consistency: ``project`` replaces a plan that the contacts contradict by the closest one
            that they allow; ``report`` only says so.
        rho: price of the disturbance, relative: 1 is that of the torques that cause it at joints
            that are free to move.

    The status is ``solved``; ``relaxed`` when forces and torques have no solution for the plan, the
    disturbance then being in ``Solution.disturbance``; ``inconsistent`` when holding the contacts
    is contradictory by itself (as for coulomb/qp). Forces are inside their cones in every case, torques
    within limits in all but ``not_converged``. ``Solution.certificate`` tells how good the optimum is.

    Raises:
        ConfigurationError: limits, weights or rho that are not positive, or of the wrong shape.
        UnknownModelError: an unknown value of ``consistency``.
    """
    check_option("consistency", consistency, CONSISTENCIES)
    na, n = problem.robot.na, len(problem)
    limits = _per_joint(
        "torque_limits", problem.robot.effort_limits if torque_limits is None else torque_limits, na
    )
    W = _uniform(na, 1.0) if weights is None else _per_joint("weights", weights, na)
    if not 0.0 < rho < np.inf:
        raise ConfigurationError(f"rho must be finite and positive, got {rho}")
    moved, z, delta, torques, velocity = empty_answer(problem)
    disturbance, figures = np.zeros(na), np.zeros(3)
    held, memory, guess = np.empty(n, np.bool_), np.empty(na + 4 * n), _NO_GUESS
    if (
        warm_start is not None
        and warm_start.certificate is not None
        and len(warm_start.torques) == na
    ):
        guess = warm_start.memory
        if warm_start.problem.contacts.identities != problem.contacts.identities:
            guess = guess[:na]
    code, steps, contradiction = _solve(
        *matrices(problem),
        effective_friction(problem.contacts.friction, np.inf),
        limits,
        W,
        rho,
        consistency == "project",
        guess,
        held,
        memory,
        moved,
        z,
        delta,
        disturbance,
        figures,
        torques,
        velocity,
    )
    if code == REFUSED:
        raise ConfigurationError(
            "torque_limits must be positive, weights positive and finite, got "
            f"{limits.tolist()} and {W.tolist()}"
        )
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
        moved,
        disturbance,
        Certificate(*figures.tolist()),
    )


_NO_GUESS = np.empty(0)


@lru_cache(maxsize=32)
def _uniform(size, value):
    return np.full(size, value)


def _per_joint(name, value, size):
    if type(value) is float:
        return _uniform(size, value)
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.shape == (size,)
        and value.flags.carray
    ):
        return value
    try:
        return np.array(np.broadcast_to(np.asarray(value, np.float64), size))
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"{name} must be a number or have shape ({size},), got {value}"
        ) from None


@kernel
def _attempt(
    Y,
    c,
    gap_speed,
    T,
    offset,
    L,
    C,
    base,
    schur,
    desired,
    dt,
    actuated,
    unactuated,
    speed,
    mu,
    limits,
    W,
    rho,
    project,
    guess,
    held,
    memory,
    moved,
    z,
    delta,
    disturbance,
    figures,
    torques,
    velocity,
    lift,
):
    """Contacts that touch hold; with ``lift`` those that the plan parts on purpose are let go."""
    n, nu, na = gap_speed.shape[0], Y.shape[1], T.shape[1]
    contradiction = 0.0
    reduced = Reduced(
        Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, speed
    )
    touching(gap_speed, held)
    assign(moved, c)
    if n and project:
        contradiction = project_held(reduced, mu, lift, held, delta, moved)
    shifted = np.empty(na)
    shift_offset(reduced, delta, shifted)
    bounded, count = 0, 0
    scale = 0.0
    for i in range(n):
        if held[i]:
            count += 1
            if mu[i] < np.inf:
                bounded += 1
            for r in range(3 * i, 3 * i + 3):
                scale = max(scale, abs(moved[r]), abs(speed[r]))
    residual = np.empty(3 * n)
    K, k = np.empty((3 * count, nu + na)), np.empty(3 * count)
    rank, left, unit = hold(Y, T, moved, mu, held, dt, 0, K[:, :nu], k, residual)
    contradicts = left > (TOLERATED if project else NOISE) * scale
    if left > NOISE * scale:
        contradiction = max(contradiction, left)
    status, steps, joints, attempt, solved = SOLVED, 0, 0, 0, False
    place, x = np.empty(n, np.int64), np.empty(2 * na + 3 * n)
    for attempt in range(3):
        if attempt == 1:
            if na == 0 and count == 0:
                break
            joints = na
            rank, _, unit = hold(Y, T, moved, mu, held, dt, na, K, k, residual[:0])
        if attempt == 0 or (attempt == 1 and guess.shape[0]):
            # The active set of a relaxed plan is found from nothing in few cases only.
            solved, spent = least_power(
                Y,
                T,
                shifted,
                schur,
                mu,
                held,
                limits,
                W,
                rho,
                K,
                k,
                unit,
                rank,
                joints,
                guess,
                memory,
                z,
                disturbance,
                figures,
            )
            steps += spent
            if solved:
                status = SOLVED
                break
        boxes = na + joints + 3 * (count - bounded)
        N, p = boxes + 3 * bounded, na + rank
        status, spent = solve_program(
            Y,
            T,
            shifted,
            schur,
            dt,
            mu,
            held,
            limits,
            W,
            rho,
            attempt == 2,
            K,
            k,
            unit,
            rank,
            joints,
            place,
            np.empty(N),
            np.empty(N),
            np.empty((N, p)),
            np.empty(p),
            np.empty(p),
            np.empty(boxes),
            np.empty(boxes),
            x[:N],
            memory,
            figures,
        )
        steps += spent
        if attempt and max(figures[1], figures[2]) <= (ROUGH if attempt == 1 else ROUGHER):
            status = SOLVED
        if status == SOLVED:
            if attempt == 1:
                # Rough so far; on the active constraints that were found it becomes exact.
                found, gap, defect = memory.copy(), figures[1], figures[2]
                solved, spent = least_power(
                    Y,
                    T,
                    shifted,
                    schur,
                    mu,
                    held,
                    limits,
                    W,
                    rho,
                    K,
                    k,
                    unit,
                    rank,
                    joints,
                    found,
                    memory,
                    z,
                    disturbance,
                    figures,
                )
                steps += spent
                if not solved:
                    assign(memory, found)
                    figures[1], figures[2] = gap, defect
            break
    for i in range(0 if solved else n):
        if place[i] >= 0:
            normal, tangent = units_of_cone(mu[i]) if mu[i] < np.inf else (1.0, 1.0)
            for d in range(3):
                z[3 * i + d] = (normal if d == 0 else tangent) * x[place[i] + d]
    for j in range(joints):
        if not solved:
            disturbance[j] = x[na + j]
        delta[j] += dt * disturbance[j]
        for r in range(3 * n):
            moved[r] -= dt * dt * T[r, j] * disturbance[j]
    for r in range(3 * n):
        moved[r] -= residual[r]
    finish(reduced, Answer(moved, z, delta, torques, velocity))
    figures[0] = 0.0
    for j in range(na):
        torques[j] = min(max(torques[j], -limits[j]), limits[j])  # but for rounding they are inside
        figures[0] += W[j] * torques[j] * torques[j]
    if status == SOLVED and (contradicts or attempt == 2):
        status = CONTRADICTORY
    elif status == SOLVED and joints:
        status = RELAXED_CODE
    return status, steps, contradiction


@kernel
def _solve(
    Y,
    c,
    gap_speed,
    T,
    offset,
    L,
    C,
    base,
    schur,
    desired,
    dt,
    actuated,
    unactuated,
    speed,
    mu,
    limits,
    W,
    rho,
    project,
    guess,
    held,
    memory,
    moved,
    z,
    delta,
    disturbance,
    figures,
    torques,
    velocity,
):
    for j in range(W.shape[0]):
        if not (limits[j] > 0.0 and 0.0 < W[j] < np.inf):
            return REFUSED, 0, 0.0
    status, steps, contradiction = _attempt(
        Y,
        c,
        gap_speed,
        T,
        offset,
        L,
        C,
        base,
        schur,
        desired,
        dt,
        actuated,
        unactuated,
        speed,
        mu,
        limits,
        W,
        rho,
        project,
        guess,
        held,
        memory,
        moved,
        z,
        delta,
        disturbance,
        figures,
        torques,
        velocity,
        gap_speed.shape[0] >= 0,
    )
    nu = Y.shape[1]
    u = np.zeros(nu)
    scale = 0.0
    for r in range(z.shape[0]):
        scale = max(scale, abs(moved[r]))
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    for i in range(held.shape[0]):
        if gap_speed[i] <= TOUCHING_SPEED and not held[i]:
            parting = moved[3 * i] + gap_speed[i]
            for k in range(nu):
                parting += Y[3 * i, k] * u[k]
            if parting < -BACK * scale:
                # What the others do brings a lifted contact back: then it holds like them.
                fill(z, 0.0)
                fill(disturbance, 0.0)
                assign(moved, c)
                status, more, contradiction = _attempt(
                    Y,
                    c,
                    gap_speed,
                    T,
                    offset,
                    L,
                    C,
                    base,
                    schur,
                    desired,
                    dt,
                    actuated,
                    unactuated,
                    speed,
                    mu,
                    limits,
                    W,
                    rho,
                    project,
                    guess,
                    held,
                    memory,
                    moved,
                    z,
                    delta,
                    disturbance,
                    figures,
                    torques,
                    velocity,
                    gap_speed.shape[0] < 0,
                )
                return status, steps + more, contradiction
    return status, steps, contradiction
