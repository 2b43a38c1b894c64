"""Least power under exact friction cones and torque limits: contacts stick, the planned acceleration may change.

    min u^T W u        u = torque_offset + T^T z           (the reduced dynamics)
                       Y Y^T z + c = 0                     (touching contacts neither slip nor part;
                                                            without friction they do not part)
                       z_N >= 0, |z_T| <= mu z_N, -limit <= u <= limit

W = diag(R/Kt^2), so the objective is the power that heats the motors. If that is infeasible, the dynamics are kept
and the planned joint accelerations change by the disturbance d (na,):

    min u^T W u + rho |d|^2     u = torque_offset + T^T z + schur d,   Y Y^T z + c - dt^2 T d = 0

(section 3.3). If no d is feasible either, the contacts yield: least squares in their velocities.
Source: Aghili, Optimal control of legged robots subject to friction cone constraints, eq. 26 to 33.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import inlined_kernel, kernel
from contact_id_controller.kernels.inlined import bare_inlined
from contact_id_controller.kernels.interior_point.method import NOT_CONVERGED as UNSETTLED
from contact_id_controller.kernels.interior_point.method import SOLVED
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.kernels.reduction import TOUCHING_SPEED, open_store
from contact_id_controller.kernels.views import dense, view
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.least_power.holding import hold
from contact_id_controller.models.least_power.interior import solve_by_interior_point
from contact_id_controller.models.least_power.primal_dual_active_set import least_power
from contact_id_controller.models.least_power.task import Optimum, Task
from contact_id_controller.models.steps.consistency import (
    NOISE,
    project_held,
    touching,
)
from contact_id_controller.models.steps.finish import (
    TOLERATED,
    finish,
    gave_way,
    shift_offset,
    tolerable,
)
from contact_id_controller.models.steps.reduced import (
    answer_room,
    matrices,
    open_answer,
    read_answer,
)
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

AS_PLANNED, DISTURBED, YIELDING = 0, 1, 2  # what gives way: nothing, the plan, the contacts too

FIGURES = 3  # of an ``Optimum``

ROUGH = 1e-6  # accuracy that does for a disturbance, in the solver's units
ROUGHER = 1e-3  # and where contacts yield
NO_FRICTION = 1e-12  # a coefficient below this is none: what it can hold is rounding
BACK = 1e-9  # a lifted contact returns when it closes by more than this share of the motion


def solve_coulomb_qcqp(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces in exact friction cones and torques within limits, of least power.

    Touching contacts stick: J v+ is what ``problem.c`` leaves of the present velocity; those with mu = 0 are
    constrained in their normal direction only. Contacts with a gap, and those that the plan lifts, have no force.
    Penetration is not corrected. Load shares are ignored: the forces are those of least power.

    Args:
        warm_start: the last period's solution: its active limits and cones are tried first. That saves
            steps and does not change the result.
        options: torque_limits: (na,) or scalar, N·m, positive or inf; by default ``robot.effort_limits``.
            weights: (na,) or scalar, diagonal of W = R/Kt^2 in W/(N·m)^2; by default ones.
            consistency: ``project`` replaces a plan that contradicts the contacts by the closest
                consistent one; ``report`` only reports it.
            rho: relative cost of the disturbance: 1 is that of the torques that cause it at joints
            that are free to move.

    The status is ``solved``; ``relaxed`` if forces and torques are infeasible for the plan, the disturbance then being
    in ``Solution.disturbance``, if contacts yielded, or if an unconstrained one closes beyond its gap
    (``Solution.contradiction_m_s``); ``inconsistent`` if the contact constraints contradict each other (as for
    coulomb/qp). Forces are inside their cones in every case, torques within limits in all but ``not_converged``.
    ``Solution.certificate`` bounds the distance from the optimum.

    Raises:
        ConfigurationError: limits, weights or rho that are not positive, or of the wrong shape.
    """
    na, n = problem.robot.na, len(problem)
    limits, weights, rho = options.torque_limits, options.weights, options.rho
    limits = _per_joint(
        "torque_limits", problem.robot.effort_limits if limits is None else limits, na
    )
    W = _uniform(na, 1.0) if weights is None else _per_joint("weights", weights, na)
    if not 0.0 < rho < np.inf:
        raise ConfigurationError(f"rho must be finite and positive, got {rho}")
    room, found, guess = answer_room(problem), np.empty(2 * na + 4 * n + FIGURES), _NO_GUESS
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
        problem.contacts.friction,
        limits,
        W,
        rho,
        options.consistency == "project",
        guess,
        room,
        found,
    )
    if code == REFUSED:
        raise ConfigurationError(
            "torque_limits must be positive, weights positive and finite, got "
            f"{limits.tolist()} and {W.tolist()}"
        )
    moved, z, delta, torques, velocity = read_answer(problem, room)
    return Solution(
        problem,
        STATUS_NAMES.get(code, NOT_CONVERGED),
        torques,
        z,
        velocity,
        steps,
        delta,
        contradiction,
        found[na:-FIGURES],
        moved,
        found[:na],
        Certificate(*found[-FIGURES:].tolist()),
    )


_NO_GUESS = np.empty(0)


@lru_cache(maxsize=32)
def _uniform(size: int, value: float) -> np.ndarray:
    return np.full(size, value)


def _per_joint(name: str, value: Any, size: int) -> np.ndarray:
    """Broadcast one value for all, or one a joint, to (size,); ConfigurationError for another shape."""
    if type(value) is float:
        return _uniform(size, value)
    try:
        given = dense(value)
        return given if given.shape == (size,) else np.array(np.broadcast_to(given, size))
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"{name} must be a number or have shape ({size},), got {value}"
        ) from None


class Demand(NamedTuple):
    """Parameters besides the motion: friction mu (n,), limits (na,) N·m, W (na,), rho, project."""

    mu: np.ndarray
    limits: np.ndarray
    W: np.ndarray
    rho: float
    project: bool


class Plan(NamedTuple):
    """The plan after projection, and the contact constraints.

    held (n,) bool: constrained contacts; offset (na,) N·m torques at z = 0; residual (3n,) m/s part of the contacts'
    velocities that no motion can remove. K (3n, nu), wide (3n, nu + na), k (3n,): workspace for ``hold``.
    """

    held: np.ndarray
    offset: np.ndarray
    residual: np.ndarray
    K: np.ndarray
    wide: np.ndarray
    k: np.ndarray


@kernel
def _solve(
    store,
    actuated,
    unactuated,
    mu,
    limits,
    W,
    rho,
    project,
    guess,
    room,
    found,
):
    """Open the arrays and solve by ``_hold_or_lift``; returns (status, steps, largest contradiction m/s).

    mu (n,); limits (na,) N·m, W (na,), rho: see ``Demand``; guess: memory of the last solution or (0,); room: see
    ``open_answer``; found: the arrays of an ``Optimum`` except the impulses, out.
    """
    reduced = open_store(store, actuated, unactuated)
    n, na = mu.shape[0], actuated.shape[0]
    answer = open_answer(room, n, na)
    optimum = Optimum(
        answer.z,
        view(found, 0, (na,)),
        view(found, na, (na + 4 * n,)),
        view(found, 2 * na + 4 * n, (FIGURES,)),
    )
    demand = Demand(_friction(mu), limits, W, rho, project)
    return _hold_or_lift(reduced, demand, guess, answer, optimum)


@kernel
def _friction(mu):
    """Friction (n,) with large values set to infinity and those below NO_FRICTION to zero."""
    effective = effective_friction(mu, np.inf)
    for i in range(mu.shape[0]):
        if mu[i] < NO_FRICTION:
            effective[i] = 0.0
    return effective


@kernel
def _hold_or_lift(reduced, demand, guess, answer, optimum):
    """Solve with the contacts that the plan lifts unconstrained; again with all constrained if one of them closes.

    Returns (status, steps, largest contradiction m/s).
    """
    n, nu, na = demand.mu.shape[0], reduced.Y.shape[1], demand.W.shape[0]
    for j in range(na):
        if not (demand.limits[j] > 0.0 and 0.0 < demand.W[j] < np.inf):
            return REFUSED, 0, 0.0
    plan = Plan(
        np.empty(n, np.bool_),
        np.empty(na),
        np.empty(3 * n),
        np.empty((3 * n, nu)),
        np.empty((3 * n, nu + na)),
        np.empty(3 * n),
    )
    steps = 0
    for lift in (True, False):
        status, more, contradiction = _attempt(reduced, demand, lift, guess, plan, answer, optimum)
        steps += more
        scale = 0.0
        for r in range(answer.moved.shape[0]):
            scale = max(scale, abs(answer.moved[r]))
        if _closing(reduced, plan.held, TOUCHING_SPEED, answer) <= BACK * scale:
            break
    closing = _closing(reduced, plan.held, np.inf, answer)
    if closing > tolerable(reduced):
        contradiction = max(contradiction, closing)
        if status == SOLVED:
            status = RELAXED_CODE
    return status, steps, contradiction


@kernel
def _closing(reduced, held, gap_speed, answer):
    """Largest speed, m/s, at which an unconstrained contact closes beyond its gap; 0 if none does.

    held (n,) bool: constrained contacts; gap_speed: contacts whose own is larger are skipped.
    """
    Y, z, moved, largest = reduced.Y, answer.z, answer.moved, 0.0
    u = np.zeros(Y.shape[1])
    for r in range(z.shape[0]):
        for k in range(u.shape[0]):
            u[k] += Y[r, k] * z[r]
    for i in range(held.shape[0]):
        if reduced.gap_speed[i] <= gap_speed and not held[i]:
            parting = moved[3 * i] + reduced.gap_speed[i]
            for k in range(u.shape[0]):
                parting += Y[3 * i, k] * u[k]
            largest = max(largest, -parting)
    return largest


@inlined_kernel
def _attempt(reduced, demand, lift, guess, plan, answer, optimum):
    """Solve with one set of constrained contacts: those that touch, with ``lift`` less those that the plan lifts.

    First the plan is projected onto what these contacts allow (``demand.project``), then ``_relax`` solves; the
    accelerations that change by d are added to the plan: delta += dt d, moved -= dt^2 T d.

    Args:
        guess: see ``least_power``.
        plan: workspace; its ``held`` (n,), out: the constrained contacts.
        answer, optimum: out.

    Returns (status, steps, largest contradiction m/s): SOLVED; RELAXED_CODE if the plan changed or a contact gave way;
    CONTRADICTORY if no motion satisfies the contacts, or they yielded; else that of the solver.
    """
    mu, project, held = demand.mu, demand.project, plan.held
    moved, delta, T, dt = answer.moved, answer.delta, reduced.T, reduced.dt
    contradiction = 0.0
    touching(reduced.gap_speed, held)
    assign(moved, reduced.c)
    fill(answer.z, 0.0)
    fill(delta, 0.0)
    fill(optimum.disturbance, 0.0)
    if mu.shape[0] and project:
        contradiction = project_held(reduced, mu, lift, held, delta, moved)
    shift_offset(reduced, delta, plan.offset)
    scale = _size_of_motion(reduced, held, moved)
    status, steps, level, unremovable = _relax(reduced, demand, plan, moved, guess, optimum)
    contradicts = unremovable > (TOLERATED if project else NOISE) * scale
    if unremovable > NOISE * scale:
        contradiction = max(contradiction, unremovable)
    if level != AS_PLANNED:
        for j in range(delta.shape[0]):
            change = dt * optimum.disturbance[j]
            delta[j] += change
            for r in range(moved.shape[0]):
                moved[r] -= dt * T[r, j] * change
    for r in range(moved.shape[0]):
        moved[r] -= plan.residual[r]
    finish(reduced, answer)
    _judge_torques(demand, answer.torques, optimum.figures)
    if status == SOLVED:
        if contradicts or level == YIELDING:
            status = CONTRADICTORY
        elif level == DISTURBED or gave_way(reduced, answer) > tolerable(reduced):
            status = RELAXED_CODE
    return status, steps, contradiction


@bare_inlined
def _size_of_motion(reduced, held, moved):
    """Largest present or planned velocity, m/s, of the constrained contacts: the scale of what contradicts.

    held (n,) bool; moved (3n,) m/s: planned.
    """
    scale = 0.0
    for i in range(held.shape[0]):
        if held[i]:
            for r in range(3 * i, 3 * i + 3):
                scale = max(scale, abs(moved[r]), abs(reduced.speed[r]))
    return scale


@bare_inlined
def _judge_torques(demand, torques, figures):
    """Clip the torques (na,), in place, to their limits, which removes rounding errors; figures[0] = u^T W u."""
    figures[0] = 0.0
    for j in range(torques.shape[0]):
        limit = demand.limits[j]
        torques[j] = min(max(torques[j], -limit), limit)
        figures[0] += demand.W[j] * torques[j] * torques[j]


@inlined_kernel
def _task(reduced, demand, plan, joints, K, rank, unit):
    """The ``Task`` of this plan and the equations K, k of ``hold``; joints: na if the plan may change by d, else 0."""
    return Task(
        Y=reduced.Y,
        T=reduced.T,
        schur=reduced.schur,
        dt=reduced.dt,
        offset=plan.offset,
        mu=demand.mu,
        held=plan.held,
        limits=demand.limits,
        W=demand.W,
        rho=demand.rho,
        joints=joints,
        K=K,
        k=plan.k,
        rank=rank,
        unit=unit,
    )


@inlined_kernel
def _relax(reduced, demand, plan, moved, guess, optimum):
    """Solve the program of the module at the first level that is feasible.

    AS_PLANNED: d = 0; DISTURBED: d at cost rho; YIELDING: contacts yield too, by least squares. Where it
    may succeed ``least_power`` is tried first, for it is faster than the interior-point method.

    moved (3n,) m/s: contact velocities at z = 0; guess: see ``least_power``; optimum: out. Returns (status, steps,
    level, norm of the contact velocities that no motion can remove).
    """
    Y, T, dt, mu, held = reduced.Y, reduced.T, reduced.dt, demand.mu, plan.held
    na = T.shape[1]
    rank, unremovable, unit = hold(Y, T, dt, mu, held, moved, plan.K, plan.k, plan.residual)
    task = _task(reduced, demand, plan, 0, plan.K, rank, unit)
    status, steps = UNSETTLED, 0
    for level in range(AS_PLANNED, YIELDING + 1):
        if level == DISTURBED:
            if na == 0 and not held.any():
                return status, steps, AS_PLANNED, unremovable
            unneeded = plan.residual[:0]
            rank, _, unit = hold(Y, T, dt, mu, held, moved, plan.wide, plan.k, unneeded)
            task = _task(reduced, demand, plan, na, plan.wide, rank, unit)
        # Without a guess ``least_power`` seldom finds the active set of a relaxed plan.
        if level == AS_PLANNED or (level == DISTURBED and guess.shape[0]):
            solved, more = least_power(task, guess, optimum)
            steps += more
            if solved:
                return SOLVED, steps, level, unremovable
        status, more = solve_by_interior_point(task, level == YIELDING, optimum)
        steps += more
        worst = max(optimum.figures[1], optimum.figures[2])
        if level != AS_PLANNED and worst <= (ROUGH if level == DISTURBED else ROUGHER):
            status = SOLVED
        if status == SOLVED:
            if level == DISTURBED:
                steps += _sharpen(task, optimum)
            return SOLVED, steps, level, unremovable
    return status, steps, YIELDING, unremovable


@kernel
def _sharpen(task, optimum):
    """Refine a rough optimum by ``least_power`` on its active set; kept if that fails. Returns the steps."""
    found, gap, defect = optimum.memory.copy(), optimum.figures[1], optimum.figures[2]
    solved, steps = least_power(task, found, optimum)
    if not solved:
        assign(optimum.memory, found)
        optimum.figures[1], optimum.figures[2] = gap, defect
    return steps
