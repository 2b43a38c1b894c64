"""Three ways to allocate contact forces and torques for one motion, and which constraints each violates.

All three realise the same planned motion of the same state; they differ in the contact forces f,
of which the torques are an affine function u = offset + F f:

    pinv     least |u| or least u^T W u, neither cones nor limits: a pseudo-inverse
    pyramid  least |u| with the pyramid inscribed in each cone, no limits
    cones    least u^T W u with exact cones and torque limits
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models import solve
from contact_id_controller.problem import Problem
from contact_id_controller.solution import SOLVED, Solution

PINV, PINV_W, PYRAMID, CONES = "pinv", "pinv, weighted", "pyramid", "cones"
ALLOCATIONS = (PINV, PINV_W, PYRAMID, CONES)
TOLERANCE = 1e-6  # a violation counts beyond this share of the largest force, or of the limit
SAME_MOTION = 1e-6  # m/s in a period: contacts that move further from the plan give it up
HELD = 1e-6  # share of the contacts' velocities below which one is at rest
RANK = 1e-9  # singular values below this share of the largest count as zero


class Allocation(NamedTuple):
    """Torques (na,), N·m, and forces (n, 3), N, of one allocation; kept: whether the motion is the planned one.

    Forces: normal, tangent 1, tangent 2 of each contact, on the robot.
    """

    torques: np.ndarray
    forces: np.ndarray
    kept: bool


class Breach(NamedTuple):
    """Violated constraints: exact friction cone, f_N >= 0, torque limit."""

    cone: bool
    pull: bool
    torque: bool


def breach(
    allocation: Allocation, friction: Any, limits: np.ndarray, tolerance: float = TOLERANCE
) -> Breach:
    """Constraints that an allocation violates; friction (n,), limits (na,) N·m.

    cone: |f_T| > mu max(f_N, 0). A purely normal pull counts as pull only.
    """
    f = allocation.forces
    room = tolerance * max(np.linalg.norm(f, axis=1).max(initial=0.0), 1e-9)
    outside = np.hypot(f[:, 1], f[:, 2]) - friction * np.maximum(f[:, 0], 0.0)
    return Breach(
        bool((outside > room).any()),
        bool((f[:, 0] < -room).any()),
        bool((np.abs(allocation.torques) > limits * (1.0 + tolerance)).any()),
    )


def pseudo_inverse(
    offset: np.ndarray, F: np.ndarray, E: np.ndarray, e: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Torques u and forces f that minimise sum weights u², with u = offset + F f and E f = e; returns (u, f).

    offset (na,), F (na, k), E (m, k), e (m,), weights (na,). E may have any rank: E f = e is met in the least-squares
    sense. Of forces with the same torques, the smallest are taken.
    """
    left, values, right = np.linalg.svd(E)
    rank = int((values > RANK * values.max(initial=0.0)).sum())
    f = right[:rank].T @ ((left[:, :rank].T @ e) / values[:rank])
    free = right[rank:].T
    root = np.sqrt(weights)
    f = (
        f
        + free
        @ np.linalg.lstsq(root[:, None] * (F @ free), -root * (offset + F @ f), rcond=RANK)[0]
    )
    return offset + F @ f, f


def _held(solution: Solution) -> np.ndarray:
    """Contacts (n,) bool that touch and that a solution's motion neither separates nor slides."""
    problem = solution.problem
    motion = np.abs(solution.contact_velocity).max(axis=1, initial=0.0)
    scale = max(np.abs(problem.c).max(initial=0.0), np.abs(problem.speed).max(initial=0.0))
    return (problem.gap_speed <= TOUCHING_SPEED) & (motion <= HELD * scale)


def allocate_reduced(
    problem: Problem, weights: Any, limits: np.ndarray, previous: Any = None
) -> tuple[Any, ...]:
    """All four allocations of a reduced problem: (name -> Allocation, friction (n,), solution of cones).

    The planned motion is that of ``coulomb/qcqp`` without its disturbance: touching contacts move at
    the velocity that ``Problem`` prescribes. previous: the solution of the period before, for its warm start.
    """
    exact = solve(
        problem, "coulomb", "qcqp", warm_start=previous, torque_limits=limits, weights=weights
    )
    pyramid = solve(problem, "coulomb", "qp")
    dt, n = problem.period, len(problem)
    moved = exact.attainable + dt * dt * problem.T @ exact.disturbance
    change = exact.joint_velocity_change - dt * exact.disturbance
    offset = problem.torque_offset + problem.schur @ change / dt
    held = np.repeat(_held(exact), 3)
    rows = problem.Y[held]
    wrench = (
        -np.linalg.pinv(rows, RANK) @ moved[held] if held.any() else np.zeros(problem.Y.shape[1])
    )
    answers = {}
    for name, price in ((PINV, np.ones_like(offset)), (PINV_W, weights)):
        z = np.zeros(3 * n)
        torques, z[held] = pseudo_inverse(offset, problem.T[held].T, rows.T, wrench, price)
        answers[name] = Allocation(torques, z.reshape(n, 3) / dt, True)
    for name, solution in ((PYRAMID, pyramid), (CONES, exact)):
        off = rows @ (problem.Y.T @ solution.impulses - wrench)
        kept = solution.status == SOLVED and np.abs(off).max(initial=0.0) <= SAME_MOTION
        answers[name] = Allocation(
            solution.torques, solution.impulses.reshape(n, 3) / dt, bool(kept)
        )
    return answers, problem.contacts.friction, exact
