"""Plans of this package as ROS messages: the opposite of what `conversions` does for them."""

from __future__ import annotations

import array

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3
from trajectory_msgs.msg import (
    JointTrajectory as JointTrajectoryMessage,
)
from trajectory_msgs.msg import (
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
    MultiDOFJointTrajectoryPoint,
)

from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory

WORLD = "world"
BASE = "base"


def joint_message(plan: JointTrajectory, stamp_ns: int) -> JointTrajectoryMessage:
    """Planned joint motion that starts at `stamp_ns`."""
    message = JointTrajectoryMessage(joint_names=list(plan.names))
    message.header.stamp = _time(stamp_ns)
    for k, time_s in enumerate(plan.times_s.tolist()):
        point = JointTrajectoryPoint(time_from_start=_duration(time_s))
        point.positions = _doubles(plan.positions[k])
        if plan.velocities is not None:
            point.velocities = _doubles(plan.velocities[k])
        if plan.accelerations is not None:
            point.accelerations = _doubles(plan.accelerations[k])
        message.points.append(point)
    return message


def base_message(plan: BaseTrajectory, stamp_ns: int) -> MultiDOFJointTrajectory:
    """Planned base motion, pose and twist in the world frame, that starts at `stamp_ns`."""
    message = MultiDOFJointTrajectory(joint_names=[BASE])
    message.header.stamp, message.header.frame_id = _time(stamp_ns), WORLD
    rows = zip(
        plan.times_s.tolist(),
        plan.positions.tolist(),
        plan.quaternions_xyzw.tolist(),
        plan.linear_velocities.tolist(),
        plan.angular_velocities.tolist(),
    )
    for time_s, place, turn, linear, angular in rows:
        pose = Transform(translation=_vector(place))
        pose.rotation = Quaternion(x=turn[0], y=turn[1], z=turn[2], w=turn[3])
        twist = Twist(linear=_vector(linear), angular=_vector(angular))
        message.points.append(
            MultiDOFJointTrajectoryPoint(
                transforms=[pose], velocities=[twist], time_from_start=_duration(time_s)
            )
        )
    return message


def stance_message(
    plan: ContactSchedule, stamp_ns: int, loads: np.ndarray | None = None
) -> JointTrajectoryMessage:
    """Planned contacts that start at `stamp_ns`: positions 1 (stands) or 0 (swings).

    loads (p, f): planned normal forces, N, as effort.
    """
    message = JointTrajectoryMessage(joint_names=list(plan.frames))
    message.header.stamp = _time(stamp_ns)
    for k, time_s in enumerate(plan.times_s.tolist()):
        point = JointTrajectoryPoint(time_from_start=_duration(time_s))
        point.positions = _doubles(plan.stance[k].astype(float))
        if loads is not None:
            point.effort = _doubles(loads[k])
        message.points.append(point)
    return message


def _doubles(row: np.ndarray) -> array.array:
    return array.array("d", np.ascontiguousarray(row).tobytes())


def _vector(values: list[float]) -> Vector3:
    return Vector3(x=values[0], y=values[1], z=values[2])


def _time(stamp_ns: int) -> Time:
    return Time(sec=stamp_ns // 1_000_000_000, nanosec=stamp_ns % 1_000_000_000)


def _duration(time_s: float) -> Duration:
    total_ns = round(time_s * 1e9)
    return Duration(sec=total_ns // 1_000_000_000, nanosec=total_ns % 1_000_000_000)
