"""Nearest motion and forces to those of a solution for which torques are within their limits.

Torques that are cut off after the solution cause a motion that nobody chose. Instead the joint accelerations change by a
(na,), rad/s^2, and the forces of contacts that stick by f (m,), N:

    min 1/2 e^T H e + 1/2 tie |f|^2      e = e_0 + (L^-T (Y^T f - C a), a)
    lower <= torques + dt T^T f + schur a <= upper

e (nv,): deviation from the commanded acceleration, e_0 that of the solution; H: metric of its tasks, so that what
weighs least gives way.  Contacts that stick do so further, with forces within pyramids of friction; the others keep
their forces, and do not enter the ground (symbols of `Problem`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.control.limits import EFFORT, RATE
from contact_id_controller.control.period import Period
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
    forward_substitute_rows,
    gram,
)
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.nearest_point import SOLVED, nearest_point
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.kernels.views import dense
from contact_id_controller.models.steps.finish import finish
from contact_id_controller.models.steps.reduced import open_answer
from contact_id_controller.robot import RobotModel
from contact_id_controller.solution import Solution, answer_places

EDGES = 4  # of the pyramids inside the cones
TIE = 1e-4  # cost of a force relative to that of the motion it causes: makes internal forces unique
NEAR = 0.5  # share of the way to its limit from which on a torque is looked at first
STICKS = 1e-6  # share of the largest velocity at zero force below which a contact sticks
STILL_M_S = 1e-9  # and that speed where nothing moves
ROUNDING = 1e-7  # share of the largest limit by which torques may exceed theirs
TRIES = 3  # each with the torques that the last one brought beyond their limits


class Metric(NamedTuple):
    """Rows (r, nv) of tasks and their prices (r,), zero where unused; weights (nv,) of the commanded acceleration."""

    rows: np.ndarray
    prices: np.ndarray
    weights: np.ndarray


def task_metric(frames: int, contacts: int, weights: np.ndarray) -> Metric:
    """Room for the tasks of a centre of mass, of angular momentum, and of so many frames and landing contacts."""
    most = 6 + 6 * frames + 3 * contacts
    return Metric(np.zeros((most, weights.shape[0])), np.zeros(most), weights)


class _Unknowns(NamedTuple):
    """place (n,): first of each contact's three unknown forces among m, -1: fixed; speed (3n,) m/s of the contacts."""

    place: np.ndarray
    speed: np.ndarray
    mu: np.ndarray


class BoundedStep:
    """Torques of one robot's steps within limits by effort and rate, by the module's program.

    Args:
        robot: of the problems.  period: for its types; kernels compile here.
    """

    def __init__(self, robot: RobotModel, period: Period) -> None:
        nothing, indices, weights = np.zeros(0), (robot.actuated, robot.unactuated), period.weights
        self._exceeds = direct(exceeds, nothing, period)
        types = nothing, *indices, nothing, np.zeros((0, 0)), nothing, weights, period
        self._bounded_step = direct(bounded_step, *types, nothing, nothing)

    def within(self, solution: Solution, metric: Metric, period: Period) -> Solution:
        """The solution if its torques are within the limits, else the nearest one that is.

        Without such a one it is returned as it is, and its torques are cut off later. ``Solution.disturbance`` is the
        change of the joint accelerations.

        Args:
            period: of the solution; its ``bounded`` gets the limits at which joints are.
        """
        if not self._exceeds(solution.torques, period):
            return solution
        problem, robot = solution.problem, solution.problem.robot
        friction = dense(problem.contacts.friction)
        places = answer_places(len(friction), robot.na, robot.nv)
        attainable, impulses, change, torques, velocity = places
        room, disturbance = np.empty(velocity.stop), np.empty(robot.na)
        room[attainable] = problem.c if solution.attainable is None else solution.attainable
        room[impulses], room[velocity] = solution.impulses, solution.velocity
        earlier = solution.joint_velocity_change
        room[change], room[torques] = 0.0 if earlier is None else earlier, solution.torques
        coordinates = robot.actuated, robot.unactuated
        steps = self._bounded_step(
            problem.store, *coordinates, friction, *metric, period, room, disturbance
        )
        if steps < 0:
            return solution
        return Solution(
            problem,
            solution.status,
            room[torques],
            room[impulses],
            room[velocity],
            solution.iterations + steps,
            room[change],
            solution.contradiction_m_s,
            solution.memory,
            room[attainable],
            disturbance,
            solution.certificate,
        )


@kernel
def _torque_range(period, lower, upper):
    """Write the least and largest torques (na,), N·m, by effort and rate, as `limits` has them; returns what is rounding."""
    limits, last = period.settings.limits, period.decided
    effort, step = limits.effort, limits.rate_step
    largest = 0.0
    for j in range(lower.shape[0]):
        lower[j] = min(max(-effort[j], last[j] - step[j]), effort[j])
        upper[j] = max(min(effort[j], last[j] + step[j]), -effort[j])
        if effort[j] < np.inf:
            largest = max(largest, effort[j])
    return ROUNDING * largest


@kernel
def exceeds(torques, period):
    """Whether a torque (na,), N·m, exceeds the limits of a ``Period`` by effort or rate."""
    lower, upper = np.empty(torques.shape[0]), np.empty(torques.shape[0])
    tolerance = _torque_range(period, lower, upper)
    for j in range(torques.shape[0]):
        if torques[j] > upper[j] + tolerance or torques[j] < lower[j] - tolerance:
            return True
    return False


@kernel
def _find_unknowns(reduced, answer, mu):
    """Unknowns of a solution: contacts that stick in it; and how many, and how many of their motions are fixed."""
    Y, n, moved = reduced.Y, mu.shape[0], answer.moved
    u, largest, forces, fixed = np.zeros(Y.shape[1]), 0.0, 0, 0
    for r in range(3 * n):
        largest = max(largest, abs(moved[r]))
        for k in range(u.shape[0]):
            u[k] += Y[r, k] * answer.z[r]
    place, speed = np.empty(n, np.int64), np.empty(3 * n)
    for i in range(n):
        place[i], most = -1, 0.0
        for d in range(3):
            r = 3 * i + d
            speed[r] = moved[r] + (reduced.gap_speed[i] if d == 0 else 0.0)
            for k in range(u.shape[0]):
                speed[r] += Y[r, k] * u[k]
            if d == 0 or mu[i] > 0.0:
                most = max(most, abs(speed[r]))
        if most <= STICKS * largest + STILL_M_S:
            place[i] = forces
            forces += 3
            fixed += 3 if mu[i] > 0.0 else 1
    return _Unknowns(place, speed, mu), forces, fixed


@kernel
def _base_columns(reduced, place, B):
    """Write L^-T (-C, Y^T) into B (nu, na + m): acceleration of the free coordinates by the unknowns."""
    L, C, Y = reduced.L, reduced.C, reduced.Y
    nu, na = C.shape
    for k in range(nu):
        for j in range(na):
            B[k, j] = -C[k, j]
        for i in range(place.shape[0]):
            if place[i] >= 0:
                for d in range(3):
                    B[k, na + place[i] + d] = Y[3 * i + d, k]
    for k in range(nu - 1, -1, -1):
        row, inverse = B[k], 1.0 / L[k, k]
        for c in range(row.shape[0]):
            row[c] *= inverse
        for i in range(k):
            other, amount = B[i], L[k, i]
            for c in range(row.shape[0]):
                other[c] -= amount * row[c]


@kernel
def _fill_metric(reduced, metric, deviation, B, H, slope):
    """Write the cost's matrix (dim, dim), lower triangle, and its gradient (dim,) at no change."""
    actuated, unactuated = reduced.actuated, reduced.unactuated
    nu, dim, used = B.shape[0], B.shape[1], 0
    na = actuated.shape[0]
    R, rest = np.zeros((dim, metric.prices.shape[0] + nu)), np.empty(metric.prices.shape[0] + nu)
    for a in range(metric.prices.shape[0]):
        if metric.prices[a] == 0.0:
            continue
        row, scale, total = metric.rows[a], np.sqrt(metric.prices[a]), 0.0
        for k in range(row.shape[0]):
            total += row[k] * deviation[k]
        for k in range(nu):
            amount = scale * row[unactuated[k]]
            for c in range(dim):
                R[c, used] += amount * B[k, c]
        for j in range(na):
            R[j, used] += scale * row[actuated[j]]
        rest[used] = scale * total
        used += 1
    for k in range(nu):
        scale = np.sqrt(metric.weights[unactuated[k]])
        for c in range(dim):
            R[c, used] = scale * B[k, c]
        rest[used] = scale * deviation[unactuated[k]]
        used += 1
    gram(R, used, H)
    moves = 0.0
    for c in range(dim):
        slope[c] = 0.0
        for a in range(used):
            slope[c] += R[c, a] * rest[a]
        if c < na:
            weight = metric.weights[actuated[c]]
            H[c, c] += weight
            slope[c] += weight * deviation[actuated[c]]
        else:
            moves += H[c, c]
    for c in range(na, dim):
        H[c, c] += TIE * moves / (dim - na)


@kernel
def _contact_rows(reduced, z, unknowns, fixed, A, b):
    """Write contacts' rows A x + b >= 0, the first ``fixed`` of them equations; returns how many. A: zeros before."""
    Y, T, dt, na = reduced.Y, reduced.T, reduced.dt, reduced.offset.shape[0]
    place, speed, mu = unknowns.place, unknowns.speed, unknowns.mu
    row, facet, width = 0, fixed, 2.0 * np.pi / EDGES
    for i in range(mu.shape[0]):
        held = place[i] >= 0
        for d in range(3 if held and mu[i] > 0.0 else 1):
            r, at = 3 * i + d, row if held else facet
            for j in range(na):
                A[at, j] = -dt * T[r, j]
            for s in range(3 * mu.shape[0]):
                if place[s // 3] >= 0:
                    total = 0.0
                    for k in range(Y.shape[1]):
                        total += Y[r, k] * Y[s, k]
                    A[at, na + place[s // 3] + s % 3] = total
            if held:
                row += 1
            else:
                b[at] = max(speed[r], 0.0) / dt
                facet += 1
        if not held:
            continue
        unbounded = mu[i] >= UNBOUNDED_FRICTION
        for e in range(1 if unbounded else EDGES):
            angle = (e + 0.5) * width
            normal = (1.0, 0.0, 0.0)
            if not unbounded:
                normal = mu[i] * np.cos(0.5 * width), -np.cos(angle), -np.sin(angle)
            for d in range(3):
                A[facet, na + place[i] + d] = normal[d]
                b[facet] += normal[d] * z[3 * i + d] / dt
            b[facet] = max(b[facet], 0.0)  # forces of a wider cone may stay
            facet += 1
    return facet


@kernel
def _torque_rows(reduced, torques, lower, upper, place, looked, A, b):
    """Write the rows A x + b >= 0 that keep the torques ``looked`` at (na,) bool in their range; returns how many."""
    T, schur, dt, na = reduced.T, reduced.schur, reduced.dt, torques.shape[0]
    row = 0
    for j in range(na):
        if not looked[j]:
            continue
        for k in range(na):
            A[row, k] = schur[j, k]
        for i in range(place.shape[0]):
            if place[i] >= 0:
                for d in range(3):
                    A[row, na + place[i] + d] = dt * T[3 * i + d, j]
        for c in range(A.shape[1]):
            A[row + 1, c] = -A[row, c]
        b[row], b[row + 1] = torques[j] - lower[j], upper[j] - torques[j]
        row += 2
    return row


@kernel
def bounded_step(
    store, actuated, unactuated, friction, rows, prices, weights, period, room, change
):
    """Change the answer in ``room`` in place by the module's program; returns its steps, -1: there is no such answer.

    Args:
        store, actuated, unactuated: of the problem.  friction: (n,).  rows, prices, weights: see ``Metric``.
        period: ``Period`` of the solution.  room: of an ``Answer``.  change (na,) rad/s2: of the accelerations, out.
    """
    metric = Metric(rows, prices, weights)
    reduced = open_store(store, actuated, unactuated)
    n, na, nu, dt = friction.shape[0], actuated.shape[0], unactuated.shape[0], reduced.dt
    answer = open_answer(room, n, na)
    unknowns, forces, fixed = _find_unknowns(reduced, answer, friction)
    dim = na + forces
    deviation = (answer.velocity - period.v) / dt - period.acceleration
    B, H, slope = np.empty((nu, dim)), np.empty((dim, dim)), np.empty(dim)
    _base_columns(reduced, unknowns.place, B)
    _fill_metric(reduced, metric, deviation, B, H, slope)
    if not cholesky(H, dim, 0.0):
        return -1
    forward_substitute(H, dim, slope)
    most = fixed + EDGES * n + 2 * na
    A, b, x = np.zeros((most, dim)), np.zeros(most), np.empty(dim)
    of_contacts = _contact_rows(reduced, answer.z, unknowns, fixed, A, b)
    forward_substitute_rows(H, dim, A[:of_contacts])
    lower, upper, before = np.empty(na), np.empty(na), answer.torques.copy()
    tolerance = _torque_range(period, lower, upper)
    looked = np.minimum(upper - before, before - lower) < 0.5 * NEAR * (upper - lower)
    steps = 0
    for _ in range(TRIES):
        last = of_contacts + _torque_rows(
            reduced, before, lower, upper, unknowns.place, looked, A[of_contacts:], b[of_contacts:]
        )
        forward_substitute_rows(H, dim, A[of_contacts:last])
        status, more = _nearest(A[:last], b[:last], fixed, slope, x)
        steps += more
        if status != SOLVED:
            return -1
        backward_substitute(H, dim, x)
        if _torques_within(reduced, before, lower, upper, tolerance, unknowns.place, x, looked):
            _take(reduced, unknowns.place, x, change, answer)
            _report(answer.torques, lower, upper, tolerance, period)
            return steps
    return -1


@kernel
def _nearest(A, b, equalities, slope, x):
    """Solve for the nearest x (dim,) to -slope with A x + b >= 0; returns (status, steps)."""
    dim, none = x.shape[0], np.zeros(0, np.bool_)
    x[:] = -slope
    room = np.zeros((dim, dim)), np.zeros((dim, dim)), np.zeros((3, dim + 1))
    active, multipliers = np.zeros(dim + 1, np.int64), np.zeros(b.shape[0])
    return nearest_point(A, b, equalities, none, x, multipliers, active, *room)


@kernel
def _torques_within(reduced, before, lower, upper, tolerance, place, x, looked):
    """Whether all torques are in their ranges after the change x; those that are not are to be ``looked`` at."""
    T, schur, dt, na, within = reduced.T, reduced.schur, reduced.dt, before.shape[0], True
    for j in range(na):
        total = before[j]
        for k in range(na):
            total += schur[j, k] * x[k]
        for i in range(place.shape[0]):
            if place[i] >= 0:
                for d in range(3):
                    total += dt * T[3 * i + d, j] * x[na + place[i] + d]
        if total > upper[j] + tolerance or total < lower[j] - tolerance:
            looked[j], within = True, False
    return within


@kernel
def _take(reduced, place, x, change, answer):
    """Add the change x (dim,) to an ``Answer``, with all that follows from it; change (na,): its accelerations."""
    T, dt, na = reduced.T, reduced.dt, change.shape[0]
    for j in range(na):
        change[j] = x[j]
        answer.delta[j] += dt * x[j]
    for r in range(answer.z.shape[0]):
        for j in range(na):
            answer.moved[r] -= dt * dt * T[r, j] * x[j]
        if place[r // 3] >= 0:
            answer.z[r] += dt * x[na + place[r // 3] + r % 3]
    finish(reduced, answer)


@kernel
def _report(torques, lower, upper, tolerance, period):
    """Round torques (na,) to the limits at which they are, and set the bits of these in ``period.bounded``."""
    effort = period.settings.limits.effort
    for j in range(torques.shape[0]):
        if torques[j] >= upper[j] - tolerance:
            torques[j] = upper[j]
        elif torques[j] <= lower[j] + tolerance:
            torques[j] = lower[j]
        else:
            continue
        period.bounded[j] |= EFFORT if abs(torques[j]) == effort[j] else RATE
