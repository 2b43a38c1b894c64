"""Whole-body motion that follows a momentum plan: one nonlinear least-squares problem over all knots.

    minimise  sum_t dt ( w_c |c(q_t) - c_t|^2 + sum_f w_f |foot_f(q_t) - path_f(t)|^2
                         + |q_t - posture_t|^2_W + w_l |beyond the limits|^2
                         + w_k |k(m_t, v_t) / M - k_t / M|^2 + w_v |v_t|^2 )
            + dt w_b |v_0 - v_start|^2

    v_t = (q_{t+1} - q_t) / dt,   m_t = q_t + dt/2 v_t   (differences and sums of the configuration space)

by Levenberg's method: Gauss-Newton blocks are tridiagonal, so that an iteration is linear in the
number of knots. q_0 is where the robot is, v_start how it moves there: without the last term limbs that no foot holds
would have all their velocity at once, and balance the first force by a jerk.

Index convention: momentum belongs to intervals. Row t + 1 of `WholeBodyMotion.velocities` and of the
angular momenta is that of the middle of interval [t, t + 1]; row 0 is that before the plan. The
linear momentum needs no term: that of an interval is M (c_{t+1} - c_t) / dt in both plans.

Source: Herzog, Schaal, Righetti, "Structured contact force optimization for kinodynamic motion
generation", equation (11) and algorithm 1, with the momentum at the middle of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.kernels import block_tridiagonal
from contact_id_controller.planning.kinodynamic.placement import BASE, carrying
from contact_id_controller.planning.kinodynamic.swing import FootMotion
from contact_id_controller.robot import RobotModel

SMALLEST_DAMPING, LARGEST_DAMPING, FIRST_DAMPING = 1e-5, 1e7, 1e-2
"""Bounds and start of Levenberg's term."""


class MotionWeights(NamedTuple):
    """Costs of deviations, per second.

    Attributes:
        com: 1/m^2.  standing: of feet in contact, 1/m^2 and 1/rad^2.  swinging: of swinging feet.
        spin: of k / M, s^2/m^4.  velocity: of all coordinates, s^2/rad^2.
        beginning: of the change of velocity from the start to the first interval, s^2/rad^2.
        attitude: of the base from the posture's, 1/rad^2.  legs: of joints that carry a foot.
        others: of all other joints, 1/rad^2.  limits: beyond the joint limits, 1/rad^2.
    """

    com: float = 1e6
    standing: float = 3e6
    swinging: float = 3e5
    spin: float = 4e4
    velocity: float = 0.3
    beginning: float = 1.0
    attitude: float = 60.0
    legs: float = 0.3
    others: float = 2.0
    limits: float = 1e4


DEFAULT_WEIGHTS = MotionWeights()
"""Feet and CoM first, then the angular momentum; posture decides what is left."""


@dataclass(frozen=True)
class MotionProblem:
    """References and weights of the whole-body motion.

    Attributes:
        robot: with a floating base.
        times_s: (T + 1,) knots, equally spaced.
        frames: the feet.  flat: whether each one's rotation follows its path, too (false: a point).
        feet: their paths at the knots.
        com: (T + 1, 3) m.
        angular_momentum: (T + 1, 3) kg m2/s about the CoM, world axes; row t + 1 that of the middle
            of interval [t, t + 1].
        posture: (T + 1, nq) regularisation configurations; the first is the robot's.
        weights: of the cost.
        limit_margin: distance kept from the joint limits, rad or m.
        start_velocity: (nv,) at the first knot; None: at rest.
    """

    robot: RobotModel
    times_s: np.ndarray
    frames: tuple[str, ...]
    flat: tuple[bool, ...]
    feet: FootMotion
    com: np.ndarray
    angular_momentum: np.ndarray
    posture: np.ndarray
    weights: MotionWeights = DEFAULT_WEIGHTS
    limit_margin: float = 0.03
    start_velocity: np.ndarray | None = None

    @property
    def time_step_s(self) -> float:
        """Time from knot to knot."""
        return float(self.times_s[1] - self.times_s[0])


@dataclass(frozen=True)
class WholeBodyMotion:
    """Solution of a motion problem at the knots.

    Attributes:
        problem: that was solved.
        configurations: (T + 1, nq).
        velocities: (T + 1, nv); row t + 1 that of interval [t, t + 1], row 0 that of the start.
        com: (T + 1, 3) m.  angular_momentum: (T + 1, 3) kg m2/s; rows as `velocities`.
        cost: of the solution.  iterations: taken.  converged: the last step was small.
    """

    problem: MotionProblem
    configurations: np.ndarray
    velocities: np.ndarray
    com: np.ndarray
    angular_momentum: np.ndarray
    cost: float
    iterations: int
    converged: bool

    @property
    def accelerations(self) -> np.ndarray:
        """Difference quotients of the intervals' velocities at each knot but the last, (T, nv)."""
        return np.diff(self.velocities, axis=0) / self.problem.time_step_s

    @property
    def linear_momentum(self) -> np.ndarray:
        """(T + 1, 3) kg m/s; rows as `velocities`."""
        steps = np.diff(self.com, axis=0, prepend=self.com[:1])
        return self.problem.robot.mass * steps / self.problem.time_step_s

    def residuals(self) -> dict[str, float]:
        """Largest deviations at the knots, SI units.

        com (m), angular_momentum (kg m2/s), standing_position (m), standing_rotation (rad),
        position_limit (rad or m beyond; negative: within), speed_limit (share of it that is used).
        """
        problem, robot = self.problem, self.problem.robot
        position, rotation = foot_errors(problem, self.configurations)
        standing = problem.feet.standing
        flat = standing & np.array(problem.flat)
        joints = robot.joints_of(self.configurations)
        beyond = np.maximum(joints - robot.upper, robot.lower - joints)
        speeds = np.abs(self.velocities[:, robot.actuated]) / robot.velocity_limits
        return {
            "com": _largest(self.com - problem.com),
            "angular_momentum": _largest((self.angular_momentum - problem.angular_momentum)[1:]),
            "standing_position": _largest(position[standing]),
            "standing_rotation": _largest(rotation[flat]),
            "position_limit": float(beyond.max()),
            "speed_limit": float(speeds.max()),
        }


def solve_motion(
    problem: MotionProblem,
    start: np.ndarray | None = None,
    *,
    max_iterations: int = 30,
    tolerance: float = 1e-3,
) -> WholeBodyMotion:
    """Minimise the problem's cost from the initial guess ``start`` (T + 1, nq), None: from its posture.

    A step that does not lower the cost is rejected and the damping raised. Ends when a step promises to lower the cost
    by less than ``tolerance`` of it. Whether feet reach their paths shows in the motion's `residuals`.
    """
    robot = problem.robot
    q = np.array(problem.posture if start is None else start)
    q[0] = problem.posture[0]
    here, damping, converged = linearise(problem, q), FIRST_DAMPING, False
    for iterations in range(max_iterations):
        step = _newton_step(here, damping * problem.time_step_s)
        if step is not None:
            promised = -0.5 * float(np.sum(here.gradient[1:] * step[1:]))
            converged = promised < tolerance * here.cost
            if converged:
                break
            moved = np.array([pin.integrate(robot.model, *pair) for pair in zip(q, step)])
            there = linearise(problem, moved)
            if there.cost < here.cost:
                q, here, damping = moved, there, max(0.1 * damping, SMALLEST_DAMPING)
                continue
        damping *= 10.0
        if damping > LARGEST_DAMPING:
            break
    return WholeBodyMotion(
        problem,
        q,
        here.velocities,
        here.com,
        here.angular_momentum,
        here.cost,
        iterations,
        converged,
    )


class Linearisation(NamedTuple):
    """Cost, its gradient and Gauss-Newton Hessian at a motion, with intermediate results.

    Attributes:
        cost: 1/2 the sum of squares.  gradient: (T + 1, nv).
        diagonal: (T + 1, nv, nv).  lower: (T, nv, nv), block (t + 1, t).
        velocities, com, angular_momentum: as in `WholeBodyMotion`.
    """

    cost: float
    gradient: np.ndarray
    diagonal: np.ndarray
    lower: np.ndarray
    velocities: np.ndarray
    com: np.ndarray
    angular_momentum: np.ndarray


def linearise(problem: MotionProblem, q: np.ndarray) -> Linearisation:
    """Cost and its derivatives at configurations ``q`` (T + 1, nq), in their tangent spaces."""
    errors, jacobians, com = _knots(problem, q)
    spins, before, after, velocities, ends, angular = _intervals(problem, q)
    weights, dt = problem.weights, problem.time_step_s
    diagonal = jacobians.swapaxes(1, 2) @ jacobians
    gradient = (errors[:, None] @ jacobians)[:, 0]
    cost = 0.5 * float(np.sum(errors**2))
    # Angular momentum of the intervals.
    diagonal[:-1] += before.swapaxes(1, 2) @ before
    diagonal[1:] += after.swapaxes(1, 2) @ after
    lower = after.swapaxes(1, 2) @ before
    gradient[:-1] += (spins[:, None] @ before)[:, 0]
    gradient[1:] += (spins[:, None] @ after)[:, 0]
    cost += 0.5 * float(np.sum(spins**2))
    # Velocities, and the first one's change from the start: the Jacobians of a difference are -1 and 1 but for the base.
    change = velocities[1] - velocities[0]
    force = weights.velocity * velocities[1:]
    cost += 0.5 * dt * (float(np.sum(force * velocities[1:])) + weights.beginning * change @ change)
    force[0] += weights.beginning * change
    pull = np.full((len(force), 1), weights.velocity / dt)
    pull[0] += weights.beginning / dt
    base, joints = slice(0, BASE), np.arange(BASE, problem.robot.nv)
    diagonal[:-1, joints, joints] += pull
    diagonal[1:, joints, joints] += pull
    lower[:, joints, joints] -= pull
    gradient[:-1, BASE:] -= force[:, BASE:]
    gradient[1:, BASE:] += force[:, BASE:]
    pull, (first, second) = pull[..., None], ends
    diagonal[:-1, base, base] += pull * (first.swapaxes(1, 2) @ first)
    diagonal[1:, base, base] += pull * (second.swapaxes(1, 2) @ second)
    lower[:, base, base] += pull * (second.swapaxes(1, 2) @ first)
    gradient[:-1, base] += (force[:, None, base] @ first)[:, 0]
    gradient[1:, base] += (force[:, None, base] @ second)[:, 0]
    cost += _posture_and_limits(problem, q, diagonal, gradient)
    return Linearisation(cost, gradient, diagonal, lower, velocities, com, angular)


def _newton_step(at: Linearisation, damping: float) -> np.ndarray | None:
    """Damped Newton step (T + 1, nv), zero at the first knot; None: not positive definite, raise the damping."""
    diagonal, lower, step = at.diagonal.copy(), at.lower.copy(), -at.gradient
    every = np.arange(diagonal.shape[1])
    diagonal[:, every, every] += damping
    diagonal[0], lower[0], step[0] = np.eye(len(every)), 0.0, 0.0
    if block_tridiagonal.factor(diagonal, lower) != block_tridiagonal.FACTORED:
        return None
    block_tridiagonal.solve(diagonal, lower, step)
    return step


def _knots(problem: MotionProblem, q: np.ndarray) -> tuple[Any, ...]:
    """Weighted errors (T + 1, r) of CoM and feet, their Jacobians (T + 1, r, nv), the CoM (T + 1, 3)."""
    robot, weights, feet = problem.robot, problem.weights, problem.feet
    model, data, dt = robot.model, robot.data, problem.time_step_s
    ids = [robot.frame_id(name) for name in problem.frames]
    rows = 3 + 3 * len(ids) + 3 * sum(problem.flat)
    errors, jacobians = np.empty((len(q), rows)), np.empty((len(q), rows, robot.nv))
    com = np.empty((len(q), 3))
    com_weight = np.sqrt(weights.com * dt)
    foot_weights = np.sqrt(np.where(feet.standing, weights.standing, weights.swinging) * dt)
    for t, configuration in enumerate(q):
        jacobians[t, :3] = com_weight * pin.jacobianCenterOfMass(model, data, configuration)
        com[t] = data.com[0]
        errors[t, :3] = com_weight * (com[t] - problem.com[t])
        pin.updateFramePlacements(model, data)
        row = 3
        for f, frame in enumerate(ids):
            weight, pose = foot_weights[t, f], data.oMf[frame]
            J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
            errors[t, row : row + 3] = weight * (pose.translation - feet.positions[t, f])
            jacobians[t, row : row + 3] = weight * J[:3]
            row += 3
            if problem.flat[f]:
                turned = feet.rotations[t, f].T @ pose.rotation
                angle = pin.log3(turned)
                errors[t, row : row + 3] = weight * angle
                jacobians[t, row : row + 3] = weight * (pin.Jlog3(turned) @ pose.rotation.T) @ J[3:]
                row += 3
    return errors, jacobians, com


def _intervals(problem: MotionProblem, q: np.ndarray) -> tuple[Any, ...]:
    """Angular momenta of the intervals and velocities, with their Jacobians.

    Returns weighted errors of k / M (T, 3), their Jacobians by both ends (T, 3, nv), velocities
    (T + 1, nv), Jacobians (T, 6, 6) of the base's difference by both ends, k (T + 1, 3).
    """
    robot, dt = problem.robot, problem.time_step_s
    model, data, intervals = robot.model, robot.data, len(q) - 1
    weight = np.sqrt(problem.weights.spin * dt) / robot.mass
    rest = np.zeros(robot.nv)
    before, after = np.empty((2, intervals, 3, robot.nv))
    first, second = np.empty((2, intervals, BASE, BASE))
    velocities, angular = np.zeros((len(q), robot.nv)), np.zeros((len(q), 3))
    if problem.start_velocity is not None:
        velocities[0] = problem.start_velocity
    for t in range(intervals):
        change = pin.difference(model, q[t], q[t + 1])
        velocities[t + 1] = change / dt
        middle = pin.integrate(model, q[t], 0.5 * change)
        by_q, _, _, by_v = pin.computeCentroidalDynamicsDerivatives(
            model, data, middle, velocities[t + 1], rest
        )
        angular[t + 1] = data.hg.angular
        by_q, by_v = by_q[3:], by_v[3:] / dt
        half = pin.Motion(0.5 * change[:BASE])
        there = pin.exp6(half)
        whole = there * there
        second[t] = pin.Jlog6(whole)
        first[t] = -second[t] @ whole.toActionMatrixInverse()
        bend = 0.5 * pin.Jexp6(half)
        before[t], after[t] = 0.5 * by_q - by_v, 0.5 * by_q + by_v
        base_q, base_v = by_q[:, :BASE], by_v[:, :BASE]
        before[t, :, :BASE] = (
            base_q @ (there.toActionMatrixInverse() + bend @ first[t]) + base_v @ first[t]
        )
        after[t, :, :BASE] = base_q @ bend @ second[t] + base_v @ second[t]
    errors = weight * (angular - problem.angular_momentum)[1:]
    return errors, weight * before, weight * after, velocities, (first, second), angular


def _posture_and_limits(
    problem: MotionProblem, q: np.ndarray, diagonal: np.ndarray, gradient: np.ndarray
) -> float:
    """Add, in place, the derivatives of posture and limit costs to diagonal and gradient; returns the cost."""
    robot, dt, weights = problem.robot, problem.time_step_s, problem.weights
    away = np.array([pin.difference(robot.model, *pair) for pair in zip(problem.posture, q)])
    weight = posture_weights(problem) * dt
    every = np.arange(robot.nv)
    diagonal[:, every, every] += weight
    gradient += weight * away
    cost = 0.5 * float(np.sum(weight * away**2))
    joints, margin = robot.joints_of(q), problem.limit_margin
    beyond = np.maximum(joints - (robot.upper - margin), 0.0)
    beyond -= np.maximum(robot.lower + margin - joints, 0.0)
    limit = weights.limits * dt
    diagonal[:, robot.actuated, robot.actuated] += limit * (beyond != 0.0)
    gradient[:, robot.actuated] += limit * beyond
    return cost + 0.5 * limit * float(np.sum(beyond**2))


def posture_weights(problem: MotionProblem) -> np.ndarray:
    """Posture weight of each velocity coordinate (nv,), 1/rad^2; 0 for the base's position."""
    robot, weights = problem.robot, problem.weights
    values = np.where(carrying(robot, problem.frames), weights.legs, weights.others)
    values[:BASE] = [0.0] * 3 + [weights.attitude] * 3
    return values


def foot_errors(problem: MotionProblem, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance (m) and angle (rad) of each foot from its path, (p, f) each."""
    robot, feet = problem.robot, problem.feet
    ids = [robot.frame_id(name) for name in problem.frames]
    position, rotation = np.zeros((2, len(q), len(ids)))
    for t, configuration in enumerate(q):
        pin.framesForwardKinematics(robot.model, robot.data, configuration)
        for f, frame in enumerate(ids):
            pose = robot.data.oMf[frame]
            position[t, f] = np.linalg.norm(pose.translation - feet.positions[t, f])
            turned = feet.rotations[t, f].T @ pose.rotation
            rotation[t, f] = np.linalg.norm(pin.log3(turned))
    return position, rotation


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values).max()) if values.size else 0.0
