"""Footsteps and goals from messages."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import PoseStamped
from trajectory_msgs.msg import MultiDOFJointTrajectory

from contact_id_controller.exceptions import choices
from contact_id_controller.planning.kinodynamic import ContactPlanError, Foothold, Sole
from contact_id_controller.planning.kinodynamic.footstep_file import standing_on
from contact_id_controller.planning.kinodynamic.motion_planner import Goal, Steps

UNIT_TOLERANCE = 1e-2
"""Largest deviation of the norm of a quaternion from 1."""


def steps_of(
    message: MultiDOFJointTrajectory, soles: Iterable[Sole], friction_coefficient: float
) -> Steps:
    """Footsteps from a message: ``joint_names[k]`` steps to ``points[k].transforms[0]``.

    A transform is the point of the ground, m, under the origin of the foot's frame, and the orientation of the ground
    there, in the odometry's frame. ``time_from_start`` is when the foot lands, from the start of the plan; 0
    everywhere:
    timed by the planner's parameters.

    Raises:
        ContactPlanError: different numbers of names and points, an unknown foot, numbers
            that are not finite, a quaternion that is not of unit length, ground too steep to stand on.
    """
    names, points = list(message.joint_names), list(message.points)
    if len(names) != len(points):
        raise ContactPlanError(
            f"footsteps of {len(names)} feet at {len(points)} points, must be one point a step"
        )
    by_name = {sole.frame: sole for sole in soles}
    footholds, times = [], []
    for number, (name, point) in enumerate(zip(names, points), 1):
        if name not in by_name:
            raise ContactPlanError(
                f"footstep {number}: foot {name!r} does not exist; there are {choices(by_name)}"
            )
        if len(point.transforms) != 1:
            raise ContactPlanError(
                f"footstep {number}: {len(point.transforms)} transforms, must be 1"
            )
        place, turn = point.transforms[0].translation, point.transforms[0].rotation
        rotation = _rotation((turn.x, turn.y, turn.z, turn.w), f"footstep {number}")
        try:
            ground = Foothold(
                name, np.array([place.x, place.y, place.z]), rotation, friction_coefficient
            )
            footholds.append(standing_on(ground, by_name[name]))
        except ContactPlanError as error:
            raise ContactPlanError(f"footstep {number}: {error}") from error
        times.append(point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec)
    return Steps(tuple(footholds), tuple(times) if any(times) else None)


def goal_of(message: PoseStamped) -> Goal:
    """Goal from a message: position and heading of a pose in the odometry's frame.

    Raises:
        ContactPlanError: numbers that are not finite, a quaternion that is not of unit length.
    """
    place, turn = message.pose.position, message.pose.orientation
    rotation = _rotation((turn.x, turn.y, turn.z, turn.w), "goal_pose")
    if not (math.isfinite(place.x) and math.isfinite(place.y)):
        raise ContactPlanError(f"goal_pose: place ({place.x}, {place.y}) is not finite")
    return Goal(place.x, place.y, math.atan2(rotation[1, 0], rotation[0, 0]))


def _rotation(quaternion_xyzw: Any, what: str) -> np.ndarray:
    quaternion = np.array(quaternion_xyzw, dtype=float)
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1.0) <= UNIT_TOLERANCE:
        raise ContactPlanError(f"{what}: quaternion has norm {norm:g}, must be 1")
    return pin.Quaternion(quaternion / norm).toRotationMatrix()
