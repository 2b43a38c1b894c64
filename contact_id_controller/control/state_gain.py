"""Derivative of the controller's torques by the state, with the active set of the solution fixed.

    tau(x (+) (dq, dv)) = tau - K (dq, dv) + ...        x = (q, v), K (na, 2 nv)

dq is a tangent vector (Pinocchio's ``integrate``). Each stage of the step is an equality-constrained
least-squares problem once its active set is fixed, so that its optimality conditions are differentiated:

    desired acceleration a0(q, v)      feedback of joints and base
    a    closest to a0 at which feet stand and land          W (a - a0) = A^T l,       A a = b
    a_a  least change with consistent touching contacts      -d = J_a^T n, J_u^T n = 0, J a' + ... = 0
    a_u  from the contact model (stage I)                    C (J a + Jdot v + J v / T_c) = 0,
                                                             (M a + h - J^T f)_u = 0
    f    of least torque (stage II)                          B^T (J_a tau + J_u m - w f) = 0

J: Jacobian rows of the contact points; C: fixed directions; B: directions in which forces can change
(``models.active_set``). Gaps count as closed; weights of the load share, the share of friction that soles use, and what
soles in swing take of the base's error as constant; a joint whose acceleration or torque is limited has no feedback.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.control.feedback import BASE_WEIGHT, DOWN_S, SEARCH_S, SOFTNESS
from contact_id_controller.control.gain_kernels import (
    force_derivatives,
    motion_derivatives,
    point_derivatives,
    turned_axes,
)
from contact_id_controller.control.limits import POSITION, VELOCITY
from contact_id_controller.kernels.pyramid import APART, HOLDING
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models.active_set import WHOLE, ActiveSet
from contact_id_controller.models.steps.consistency import LIFT_ACCELERATION
from contact_id_controller.models.steps.force_distribution import (
    DENSE_COMPONENTS,
    MANY_TIE_BREAK,
    NO_LEVER,
    TIE_BREAK,
    share_weights,
)
from contact_id_controller.robot import symmetric
from contact_id_controller.solution import SOLVED
from contact_id_controller.state import RobotState

if TYPE_CHECKING:
    from contact_id_controller.control.controller import Controller, StepResult
    from contact_id_controller.problem import Problem
    from contact_id_controller.solution import Solution

RANK = 1e-8
"""Singular values below this share of the largest are zero: contacts that depend on each other."""


LANDS_M_S = 0.01
"""A foot in contact that moves faster along its normal lands or bounces: it may be in the air when the command acts."""

SETTLED_RAD_S2 = 1e-6
"""Changes of the planned joint accelerations up to this are rounding's."""


class Points(NamedTuple):
    """Contact points of the robot and their derivatives, all (n, 3, nv) but the first three.

    links (n,), places (n, 3), normals (n, 3); J; moved: derivatives of the places by q; speed_q: of J v by q;
    pull_q, pull_v: of Jdot v by q and v, times its share in the problem.
    """

    links: np.ndarray
    places: np.ndarray
    normals: np.ndarray
    J: np.ndarray
    moved: np.ndarray
    speed_q: np.ndarray
    pull_q: np.ndarray
    pull_v: np.ndarray

    def of(self, chosen: np.ndarray) -> Points:
        """Those of some contacts, by index."""
        if len(chosen) == len(self.links):
            return self
        return Points(*(rows[chosen] for rows in self))

    def land(self, contact: np.ndarray, v: np.ndarray) -> bool:
        """Whether a contact of ``contact`` (n,) bool moves along its normal; v (nv,).

        The gain of a leg in stance is many times what a leg in the air tolerates.
        """
        speed = np.einsum("nd,ndk,k->n", self.normals, self.J, v)
        return bool((np.abs(speed[contact]) > LANDS_M_S).any())


class StateGain:
    """Computes the gain K of a controller's step, right after it."""

    def __init__(self, controller: Controller):
        self._controller = controller
        robot, settings = controller.robot, controller.settings
        self._robot, self._settings = robot, settings
        nv = robot.nv
        self._axes, self._turned = np.zeros((nv, 6)), np.zeros((nv, nv, 6))
        self._data = robot.model.createData()
        radii = np.array([foot.radius_m for foot in controller.feet.feet])
        self._radii = radii[:, None]
        self._torque_weight = 1.0
        if getattr(controller.workings.options, "distribution", "") == "least_force":
            self._torque_weight = 0.0
        self._fades_s = settings.contact_time_constant_s
        self._drift_share = float(settings.velocity_product_term)

    def compute(
        self,
        state: RobotState,
        result: StepResult,
        points: Points | None = None,
        lasting: bool = False,
    ) -> np.ndarray | None:
        """K = -d tau / d (q, v), (na, 2 nv), of the step just taken: N·m per rad or m, then per rad/s or m/s.

        Rows of joints at a limit are zero. None if the solution has no derivative: its status is not solved, or a
        foot is being stopped within the period.

        Args:
            points: of its state, if computed already.
            lasting: return None, too, if a small change of the state alters the active set. At the edges of cones,
                where forces can change in few directions, the gain can be ten times as large: with commands 1 to 3
                periods late it drove a robot from one edge to the other.
        """
        controller = self._controller
        solution = result.solution
        if solution is None or solution.status != SOLVED or controller.workings.stops_early:
            return None
        active: ActiveSet = controller.row.read_active_set(solution, controller.workings.options)
        if lasting and not active.is_whole:
            return None
        q, v = state.q, state.v
        points = self.points(v) if points is None else points
        try:
            wanted = self._wanted_acceleration(q, v, result.limits)
            planned = self._consistent(points, wanted)
            contact = np.flatnonzero(result.contact)
            here = points.of(contact)
            held = self._held(solution, contact, here, active, v, planned)
            gain = -self._torques(solution, here, active, q, v, held, result)
        except np.linalg.LinAlgError:
            return None
        gain[result.limits != 0] = 0.0
        return gain if np.isfinite(gain).all() else None

    def points(self, v: np.ndarray) -> Points:
        """All contacts of the feet, in contact or not, at the state of the step just taken; v (nv,)."""
        robot, feet = self._robot, self._controller.feet
        self._axes[:] = robot.jacobian_view.T
        turned_axes(self._axes, robot.supports, robot.coordinate_joint, self._turned)
        n = len(feet)
        found = np.empty((5, n, 3, robot.nv))
        places = np.ascontiguousarray(feet.points)
        point_derivatives(
            self._axes,
            self._turned,
            robot.supports,
            robot.coordinate_joint,
            feet.links,
            places,
            places + self._radii * feet.normals,
            v,
            found,
        )
        if self._drift_share != 1.0:
            found[3:] *= self._drift_share
        return Points(feet.links, places, feet.normals, *found)

    def _motion(self, points: Points, motion: np.ndarray) -> np.ndarray:
        """d(J x)/dq (n, 3, nv) for a motion x (nv,)."""
        out = np.empty_like(points.J)
        motion_derivatives(
            self._axes,
            self._turned,
            self._robot.supports,
            points.links,
            points.places,
            points.moved,
            motion,
            out,
        )
        return out

    def _forces(self, points: Points, forces: np.ndarray) -> np.ndarray:
        """d(J^T f)/dq (nv, nv) for forces (n, 3), N."""
        nv = self._robot.nv
        out = np.empty((nv, nv))
        force_derivatives(
            self._axes,
            self._turned,
            self._robot.supports,
            points.links,
            points.places,
            points.moved,
            forces,
            out,
        )
        return out

    # The desired acceleration

    def _wanted_acceleration(self, q: np.ndarray, v: np.ndarray, limits: np.ndarray) -> np.ndarray:
        """Derivative (nv, 2 nv) by (q, v) of the acceleration of the feedback of joints and base.

        limits (na,): bits of the limits of each joint; at a limit it does not depend on the state.
        """
        workings, robot, nv = self._controller.workings, self._robot, self._robot.nv
        out = np.zeros((nv, 2 * nv))
        kp, kd, _ = workings.gains
        free = (limits & (VELOCITY | POSITION)) == 0
        a = robot.actuated
        out[a, a], out[a, nv + a] = -kp * free, -kd * free
        if robot.floating_base and workings.weights[0] == BASE_WEIGHT:
            out[:6, :6], out[:6, nv : nv + 6] = self._base(q, v)
        return out

    def _base(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (6, 6) of the base's desired acceleration by its pose and its twist."""
        workings = self._controller.workings
        kp, kd, kr, kw = workings.base_gains
        wanted = workings.wanted
        R = _rotation(q[3:7])
        away = pin.Jlog3(_rotation(workings.base.quaternion_xyzw) @ R.T)
        linear, angular = v[:3], v[3:6]
        spin = pin.skew(angular)
        by_pose, by_twist = np.zeros((6, 6)), np.zeros((6, 6))
        # Accelerations in the base frame turn with it; velocities of the reference do too.
        by_pose[:3, :3] = -R.T * kp @ R
        damped = R.T * kd @ R
        by_pose[:3, 3:] = pin.skew(wanted[:3] + spin @ linear) + damped @ pin.skew(linear)
        by_twist[:3, :3] = -damped - spin
        by_twist[:3, 3:] = pin.skew(linear)
        turned = R.T * kw @ R
        by_pose[3:, 3:] = pin.skew(wanted[3:6]) - R.T * kr @ away @ R + turned @ pin.skew(angular)
        by_twist[3:, 3:] = -turned
        return by_pose, by_twist

    def _consistent(self, points: Points, wanted: np.ndarray) -> np.ndarray:
        """d a / d (q, v), (nv, 2 nv), of the acceleration projected for standing and landing feet."""
        workings, settings, nv = self._controller.workings, self._settings, self._robot.nv
        standing, landing = workings.standing, workings.landing
        chosen = np.flatnonzero(standing | landing)
        if not len(chosen):
            return wanted
        points = points.of(chosen)
        fades = np.where(standing[chosen], self._fades_s, settings.touchdown_time_constant_s)[
            :, None, None
        ]
        acceleration = workings.acceleration
        A = points.J.reshape(-1, nv)
        lack = np.empty((len(chosen), 3, 2 * nv))  # of A a - b
        lack[:, :, :nv] = (
            points.pull_q + self._motion(points, acceleration) + points.speed_q / fades
        )
        lack[:, :, nv:] = points.pull_v + points.J / fades
        gaps = self._controller.feet.gaps[chosen]
        speed = settings.touchdown_speed_m_s * self._fades_s
        closing = standing[chosen] & (gaps > 0.0) & (gaps < speed)
        if closing.any():
            rate = (closing / self._fades_s)[:, None] / fades[:, 0]
            gap = np.einsum("nd,ndk->nk", points.normals, points.moved)
            lack[:, :, :nv] += points.normals[:, :, None] * (rate * gap)[:, None]
        lack += points.normals[:, :, None] * (self._falling(points, chosen) / fades[:, 0])[:, None]
        weights = workings.weights
        light = A / weights
        S = light @ A.T
        S[np.diag_indices_from(S)] += SOFTNESS * np.trace(S)
        inverse = np.linalg.inv(S)
        pull = inverse @ (A @ (acceleration - workings.wanted))
        out = wanted.copy()
        out[:, :nv] += self._forces(points, pull.reshape(-1, 3)) / weights[:, None]
        out -= light.T @ (inverse @ (lack.reshape(-1, 2 * nv) + A @ out))
        return out

    def _falling(self, points: Points, chosen: np.ndarray) -> np.ndarray:
        """d closing / d (q, v), (n, 2 nv), of contacts that land, of indices ``chosen``, as the base falls."""
        period, nv = self._controller.period, self._robot.nv
        out = np.zeros((len(chosen), 2 * nv))
        least = max(period.settings.touchdown_speed_m_s, period.rough[0] / SEARCH_S)
        speed, gaps = period.closing[chosen], period.gaps[chosen]
        falls = period.landing[chosen] & (speed > least)
        if not falls.any():
            return out
        base = np.zeros(nv)
        base[:6] = self._controller.period.v[:6]
        near = falls & (speed >= gaps / DOWN_S)
        gap = np.einsum("nd,ndk->nk", points.normals, points.moved)
        out[near, :nv] = gap[near] / DOWN_S
        free = falls & ~near
        by_q = np.einsum("nd,ndk->nk", points.normals, self._motion(points, base))
        by_v = np.einsum("nd,ndk->nk", points.normals, points.J[:, :, :6])
        out[free, :nv], out[free, nv : nv + 6] = -by_q[free], -by_v[free]
        return out

    # The contact model

    def _held(
        self,
        solution: Solution,
        contact: np.ndarray,
        points: Points,
        active: ActiveSet,
        v: np.ndarray,
        planned: np.ndarray,
    ) -> np.ndarray:
        """d (a_a + delta / dt) / d (q, v), (na, 2 nv): of the joint accelerations projected for the contacts."""
        robot, problem = self._robot, solution.problem
        a, nv = robot.actuated, robot.nv
        out = planned[a]
        touching = problem.gap_speed <= TOUCHING_SPEED
        if (
            self._settings.options.get("consistency") == "report"
            or not touching.any()
            or not robot.nu
        ):
            return out
        assert solution.joint_velocity_change is not None and solution.attainable is not None
        change: np.ndarray = solution.joint_velocity_change / problem.period
        standing = self._controller.workings.standing[contact]
        settled = np.abs(change).max(initial=0.0) <= SETTLED_RAD_S2
        if settled and (standing | ~touching).all() and (problem.gap_speed[touching] <= 0.0).all():
            return out  # the feedback saw to it, and does at every state
        u, dt = robot.unactuated, problem.period
        rate = np.zeros(nv)
        rate[a] = (problem.desired_velocity - v[a]) / dt + change
        c = solution.attainable.reshape(-1, 3) / dt
        rows = _Rows(points, problem.frames, touching, active.grips)
        J = rows.jacobian(nv)
        while True:
            left, size, right = np.linalg.svd(J[:, u])
            rank = _rank(size)
            # The base's best motion; what it leaves of the contacts' motion was given up.
            rest = rows.take(c) - left[:, :rank] @ (left[:, :rank].T @ rows.take(c))
            leaving = rows.most_open(rest, LIFT_ACCELERATION)
            if leaving < 0:
                break
            touching = touching.copy()
            touching[leaving] = False
            if not touching.any():
                return out
            rows = _Rows(points, problem.frames, touching, active.grips)
            J = rows.jacobian(nv)
        base = right[:rank].T @ ((left[:, :rank].T @ rows.take(c)) / -size[:rank])
        rate[u] = base + self._without_contact(problem, v, change)
        lack = rows.lack(self, points, rate, self._fades_s)
        lack += J[:, a] @ out
        along, across = left[:, :rank], left[:, rank:]
        if not across.shape[1]:
            return out
        force, slope = np.zeros(J.shape[0]), np.zeros((nv, nv))
        if np.abs(change).max(initial=0.0) > 0.0:
            system = np.vstack([J[:, u].T, J[:, a].T])
            force = np.linalg.lstsq(system, np.r_[np.zeros(len(u)), -change], rcond=RANK)[0]
            slope = self._forces(points, rows.world(force, len(points.links)))
        turn = np.zeros((nv, 2 * nv))
        turn[:, :nv] = slope
        ready = along @ ((right[:rank] @ turn[u]) / -size[:rank, None])
        lack -= J[:, a] @ (turn[a] + J[:, a].T @ ready)
        H = across.T @ J[:, a]
        more = across @ np.linalg.lstsq(H @ H.T, across.T @ lack, rcond=RANK)[0]
        return out - turn[a] - J[:, a].T @ (ready + more)

    def _without_contact(self, problem: Problem, v: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Acceleration (nu,) of the base at z = 0 under the changed plan."""
        u, dt = self._robot.unactuated, problem.period
        momentum = problem.base - problem.C @ (change * dt)
        return (np.linalg.solve(problem.L.T, momentum) - v[u]) / dt

    def _torques(
        self,
        solution: Solution,
        points: Points,
        active: ActiveSet,
        q: np.ndarray,
        v: np.ndarray,
        held: np.ndarray,
        result: Any,
    ) -> np.ndarray:
        """d torques / d (q, v), (na, 2 nv)."""
        robot, problem = self._robot, solution.problem
        a, u, nv = robot.actuated, robot.unactuated, robot.nv
        acceleration = (solution.velocity - v) / problem.period
        pin.computeRNEADerivatives(robot.model, self._data, q, v, acceleration)
        M = symmetric(self._data.M)
        frames = problem.frames
        forces = result.forces[result.contact]  # with those that are commanded
        slope = np.empty((nv, 2 * nv))
        slope[:, :nv], slope[:, nv:] = self._data.dtau_dq, self._data.dtau_dv
        n = len(points.links)
        if n:
            slope[:, :nv] -= self._forces(points, forces)
        workings = self._controller.workings
        M[a, a] += workings.rotors
        slope[a, a] += workings.friction_slope
        slope += M[:, a] @ held
        if not robot.nu:
            return slope[a]
        J = np.einsum("nij,njk->nik", frames, points.J)
        motion = _stacked(active.held, J)
        split, directions = None, motion
        if not active.is_whole:
            directions = _stacked(active.free, J)
        if len(motion):
            lack = np.empty((n, 3, 2 * nv))
            lack[:, :, :nv] = (
                points.pull_q + self._motion(points, acceleration) + points.speed_q / self._fades_s
            )
            lack[:, :, nv:] = points.pull_v + points.J / self._fades_s
            lack = np.einsum("nij,njk->nik", frames, lack)
            lack = _stacked(active.held, lack) + motion[:, a] @ held
            left, size, right = split = np.linalg.svd(motion[:, u])
            rank = _rank(size)
            base = right[:rank].T @ (left[:, :rank].T @ lack / -size[:rank, None])
            free = unpushed = right[rank:].T
            if any(rows is not row for rows, row in zip(active.held, active.pulls)):
                right, size = np.linalg.svd(_stacked(active.pulls, J)[:, u])[:0:-1]
                unpushed = right[_rank(size) :].T
        else:
            base, free = np.zeros((len(u), 2 * nv)), np.eye(len(u))
            unpushed = free
        if free.shape[1]:
            inertia = unpushed.T @ M[np.ix_(u, u)] @ free
            push = unpushed.T @ (slope[u] + M[np.ix_(u, u)] @ base)
            base -= free @ np.linalg.lstsq(inertia, push)[0]
        slope += M[:, u] @ base
        if not len(directions):
            return slope[a]
        return slope[a] - directions[:, a].T @ self._force_change(
            solution, points, active, directions, slope, split if directions is motion else None
        )

    def _force_change(
        self,
        solution: Solution,
        points: Any,
        active: ActiveSet,
        directions: np.ndarray,
        slope: np.ndarray,
        split: Any,
    ) -> np.ndarray:
        """Changes (m, 2 nv) of the forces along the free directions: stage II.

        split: singular value decomposition of their columns of the base, where it is known.
        """
        robot, problem = self._robot, solution.problem
        a, u, nv = robot.actuated, robot.unactuated, robot.nv
        onto = directions[:, a]
        left, size, right = split or np.linalg.svd(directions[:, u])
        rank = _rank(size)
        along, across = left[:, :rank], left[:, rank:]
        change = along @ ((right[:rank] @ slope[u]) / size[:rank, None])
        if not across.shape[1]:
            return change
        weights = self._weights(problem, active)
        torques, share = solution.torques, self._torque_weight
        z = solution.impulses.reshape(-1, 3) / problem.period
        components = np.concatenate([free @ f for free, f in zip(active.free, z, strict=True)])
        # Motion w = (m, tau) whose velocities at the contacts balance the weights of forces.
        balance = weights * components - share * onto @ torques
        motion = np.zeros(nv)
        motion[u] = right[:rank].T @ ((along.T @ balance) / size[:rank])
        motion[a] = share * torques
        turned = np.einsum("nij,njk->nik", problem.frames, self._motion(points, motion))
        lack = share * onto @ (slope[a] - onto.T @ change) - weights[:, None] * change
        lack[:, :nv] += _stacked(active.free, turned)
        H = share * onto @ onto.T + np.diag(weights)
        return change + across @ np.linalg.solve(across.T @ H @ across, across.T @ lack)

    def _weights(self, problem: Problem, active: ActiveSet) -> np.ndarray:
        """Weights (m,), m^2, of the squared forces along the free directions, beside |torque|^2, in stage II.

        As in ``steps.force_distribution``: a tie-break relative to what forces do to the torques, and what contacts
        with a load share below 1 cost.
        """
        T, dt, contacts = problem.T.reshape(len(problem), 3, -1), problem.period, problem.contacts
        # Torques, N·m, of a unit impulse along each direction in which contacts are held.
        levers = np.concatenate([rows @ block for rows, block in zip(active.pulls, T, strict=True)])
        components, size = len(levers), self._torque_weight * float((levers * levers).sum())
        torques_count = size > NO_LEVER * NO_LEVER * components
        few = components <= DENSE_COMPONENTS
        tie = (TIE_BREAK if few else MANY_TIE_BREAK) * size / components if torques_count else 1.0
        mode = np.array([HOLDING if len(rows) else APART for rows in active.pulls])
        loads = np.empty(len(problem))
        share_weights(problem.T, mode, contacts.load_share, float(torques_count), loads)
        return np.repeat(tie + loads, [len(free) for free in active.free]) * dt * dt


class _Rows:
    """Directions of the contact constraints of the projection: all three, or the normal where nothing grips."""

    def __init__(self, points: Points, frames: np.ndarray, held: np.ndarray, grips: np.ndarray):
        self._J = points.J
        pairs = [(i, d) for i in np.flatnonzero(held) for d in range(3 if grips[i] else 1)]
        self._contact = np.array([i for i, _ in pairs], dtype=np.int64)
        self._normal = np.array([d == 0 for _, d in pairs], dtype=bool)
        self._part = np.array([d for _, d in pairs], dtype=np.int64)
        self._direction = frames[self._contact, self._part]

    def _project(self, terms: np.ndarray) -> np.ndarray:
        return np.einsum("rd,rdk->rk", self._direction, terms[self._contact])

    def jacobian(self, nv: int) -> np.ndarray:
        """Jacobian (rows, nv)."""
        return self._project(self._J)

    def take(self, values: np.ndarray) -> np.ndarray:
        """Components along the rows of ``values`` (n, 3) in the contacts' frames."""
        return values[self._contact, self._part]

    def most_open(self, rest: np.ndarray, limit: float) -> int:
        """Index of the contact that opens fastest, if faster than ``limit``; else -1."""
        opening = np.where(self._normal, -rest, -math.inf)
        worst = int(opening.argmax())
        return int(self._contact[worst]) if opening[worst] > limit else -1

    def world(self, amounts: np.ndarray, count: int) -> np.ndarray:
        """Vectors (n, 3), world, with ``amounts`` along the rows."""
        out = np.zeros((count, 3))
        np.add.at(out, self._contact, self._direction * amounts[:, None])
        return out

    def lack(self, gain: StateGain, points: Points, rate: np.ndarray, fades_s: float) -> np.ndarray:
        """d (J a + Jdot v + J v / T_c) / d (q, v) at the acceleration ``rate``, (rows, 2 nv)."""
        by_q = points.pull_q + gain._motion(points, rate) + points.speed_q / fades_s
        by_v = points.pull_v + points.J / fades_s
        return np.concatenate([self._project(by_q), self._project(by_v)], axis=1)


def _rotation(quaternion_xyzw: np.ndarray) -> np.ndarray:
    x, y, z, w = quaternion_xyzw
    return pin.Quaternion(w, x, y, z).toRotationMatrix()


def _rank(size: np.ndarray) -> int:
    return int((size > RANK * size[0]).sum()) if len(size) and size[0] > 0.0 else 0


def _stacked(rows: list[np.ndarray], blocks: np.ndarray) -> np.ndarray:
    """Rows (k_i, 3) of each contact times its block (3, m), stacked."""
    if not rows:
        return np.zeros((0, blocks.shape[-1]))
    if all(part is WHOLE for part in rows):
        return blocks.reshape(-1, blocks.shape[-1])
    return np.concatenate([part @ block for part, block in zip(rows, blocks, strict=True)])
