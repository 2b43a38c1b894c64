"""Motion between the knots: at each point of a finer grid feet are on their paths, the CoM on its parabola.

Interpolated joints would move standing feet by millimetres, and mean velocities would smooth out
what the forces do at a change of contacts. So each knot first gets the velocity nearest to the mean
of its intervals with which feet, CoM and angular momentum move as planned; cubic polynomials join
the knots; and at each finer point base and legs take the smallest step, in a metric in which all
other joints are stiff, that puts feet and CoM where they belong:

    q <- q + W J' (J W J')^-1 e        v <- v + W J' (J W J')^-1 (y - J v)

with e what is missing and y the velocity that feet and CoM shall have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation

from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan
from contact_id_controller.planning.kinodynamic.placement import BASE, Placement, smallest
from contact_id_controller.planning.kinodynamic.swing import FootMotion, foot_motion
from contact_id_controller.planning.kinodynamic.whole_body import WholeBodyMotion
from contact_id_controller.plans.trajectories import BaseTrajectory, JointTrajectory
from contact_id_controller.robot import RobotModel


class FineMotion(NamedTuple):
    """Motion on the finer grid.

    Attributes:
        times_s: (p,).  configurations: (p, nq).  velocities: (p, nv), first that of the start, last 0.
        com, com_velocities: (p, 3) m, m/s.
        feet: their paths.
        misses: (p, f) m (and rad), error of the feet from their paths where these are out of reach.
    """

    times_s: np.ndarray
    configurations: np.ndarray
    velocities: np.ndarray
    com: np.ndarray
    com_velocities: np.ndarray
    feet: FootMotion
    misses: np.ndarray


def between_knots(
    motion: WholeBodyMotion,
    contact_plan: ContactPlan,
    com: np.ndarray,
    com_velocities: np.ndarray,
    angular_momentum: np.ndarray,
    *,
    parts: int,
    swing_height_m: float | Sequence[Sequence[float]],
) -> FineMotion:
    """Interpolate the motion at ``parts`` points from knot to knot, with feet and CoM on their planned paths.

    Args:
        motion: at the knots.
        contact_plan: footholds and phases.
        com, com_velocities: at the knots, (T + 1, 3) m and m/s.
        angular_momentum: at the knots, about the CoM, (T + 1, 3) kg m2/s.
        parts: at least 1.
        swing_height_m: of the middle of a swing, as ``foot_motion`` takes it.
    """
    problem, robot = motion.problem, motion.problem.robot
    knots_s = problem.times_s
    times = np.linspace(knots_s[0], knots_s[-1], (len(knots_s) - 1) * parts + 1)
    path = CubicHermiteSpline(knots_s, com, com_velocities)
    place = Placement(
        robot,
        problem.frames,
        problem.flat,
        path(times),
        path(times, 1),
        foot_motion(contact_plan, times, swing_height_m),
    )
    place.com_velocities[-1] = 0.0
    speeds = _knot_velocities(motion, place, angular_momentum, parts)
    q, v = _joined(robot, knots_s, motion.configurations, speeds, times)
    misses = _place(place, q, v, times[1] - times[0])
    return FineMotion(times, q, v, place.com, place.com_velocities, place.feet, misses)


def trajectories(
    robot: RobotModel,
    times_s: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    start_s: float | None = None,
) -> tuple[JointTrajectory, BaseTrajectory]:
    """Cubic trajectories of joints and base through configurations (p, nq) and velocities (p, nv)."""
    turn = Rotation.from_quat(q[:, 3:7])
    positions = robot.joints_of(q)
    if robot.turns.any():
        positions[:, robot.turns] = np.unwrap(positions[:, robot.turns], axis=0)
    joints = JointTrajectory(
        robot.joint_names, times_s, positions, v[:, robot.actuated], start_s=start_s
    )
    base = BaseTrajectory(
        times_s, q[:, :3], q[:, 3:7], turn.apply(v[:, :3]), turn.apply(v[:, 3:BASE]), start_s
    )
    return joints, base


def _knot_velocities(
    motion: WholeBodyMotion, place: Placement, angular_momentum: np.ndarray, parts: int
) -> np.ndarray:
    """Velocities at the knots (T + 1, nv) with which feet, CoM and angular momentum move as planned; 0 at the last."""
    robot = motion.problem.robot
    speeds = np.zeros_like(motion.velocities)
    speeds[0] = motion.velocities[0]
    everything = np.ones(robot.nv)
    for knot in range(1, len(speeds) - 1):
        q = motion.configurations[knot]
        mean = 0.5 * (motion.velocities[knot] + motion.velocities[knot + 1])
        _, J = place.at(knot * parts, q)
        spin = pin.computeCentroidalMap(robot.model, robot.data, q)[3:]
        rows = np.concatenate([J, spin / robot.mass])
        wanted = np.concatenate([place.velocity(knot * parts), angular_momentum[knot] / robot.mass])
        speeds[knot] = mean + smallest(rows, everything, wanted - rows @ mean)
    return speeds


def _joined(
    robot: RobotModel, knots_s: np.ndarray, q: np.ndarray, v: np.ndarray, times_s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (p, nq) and velocities (p, nv) of cubic trajectories through the knots."""
    begin_s = 1.0  # a start of 0 would mean: when first sampled
    joints, base = trajectories(robot, knots_s, q, v, begin_s)
    fine, speeds = np.empty((len(times_s), robot.nq)), np.empty((len(times_s), robot.nv))
    for point, time_s in enumerate(times_s):
        motion, place = joints.sample(begin_s + time_s), base.sample(begin_s + time_s)
        fine[point, :3], fine[point, 3:7] = place.position, place.quaternion_xyzw
        robot.put_joints(fine[point], motion.position)
        speeds[point, robot.actuated] = motion.velocity
        speeds[point, :3], speeds[point, 3:BASE] = place.linear_velocity, place.angular_velocity
    back = Rotation.from_quat(fine[:, 3:7]).inv()
    speeds[:, :3], speeds[:, 3:BASE] = back.apply(speeds[:, :3]), back.apply(speeds[:, 3:BASE])
    return fine, speeds


def _place(place: Placement, q: np.ndarray, v: np.ndarray, step_s: float) -> np.ndarray:
    """Correct, in place, q and v of every point but the first so that feet and CoM are on their paths.

    Returns the errors that remain (p, f), m and rad.
    """
    model, points, mobility = place.robot.model, len(q), place.mobility()
    misses = np.zeros((points, len(place.frames)))
    corrections, maps = np.zeros_like(v), []
    for point in range(1, points):
        guess = q[point].copy()
        near = pin.integrate(model, guess, corrections[point - 1])
        q[point], J, misses[point] = place.reached(point, near, mobility)
        corrections[point] = pin.difference(model, guess, q[point])
        maps.append(J)
    first = v[0].copy()
    v[1:-1] += (corrections[2:] - corrections[:-2]) / (2.0 * step_s)
    for point in range(1, points - 1):
        missing = place.velocity(point) - maps[point - 1] @ v[point]
        v[point] += smallest(maps[point - 1], mobility, missing)
    v[0], v[-1] = first, 0.0
    return misses
