"""Markers of a whole-body plan, to check it before it moves: footholds, forces and the path of the CoM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import PoseStamped, Quaternion
from nav_msgs.msg import Path
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from contact_id_controller.planning.kinodynamic import MotionPlan
from contact_id_controller.ros.markers import new_marker, point_at

SOLE_THICKNESS_M, POINT_SIZE_M = 0.005, 0.03
ARROW_M_PER_WEIGHT = 0.5
_ARROW_SIZE_M = (0.01, 0.02, 0.03)
_FORCE_COLOUR = ColorRGBA(r=0.1, g=0.5, b=0.9, a=0.9)
_FOOT_COLOURS = (
    ColorRGBA(r=0.85, g=0.35, b=0.2, a=0.7),
    ColorRGBA(r=0.2, g=0.6, b=0.35, a=0.7),
    ColorRGBA(r=0.5, g=0.35, b=0.75, a=0.7),
    ColorRGBA(r=0.75, g=0.65, b=0.15, a=0.7),
)


def foothold_markers(plan: MotionPlan, stamp: Any, frame: str) -> MarkerArray:
    """A box, or a sphere for a point foot, at each foothold; one colour per foot."""
    markers = [_clear(stamp, frame, "footholds")]
    contact_plan = plan.contact_plan
    for column, sole in enumerate(contact_plan.soles):
        last = None
        for phase in contact_plan.phases:
            foothold = phase.foothold_of(sole.frame)
            if foothold is None or (last is not None and foothold.same_place(last)):
                continue
            last = foothold
            kind = Marker.CUBE if max(sole.half_size_m) > 0.0 else Marker.SPHERE
            marker = new_marker(stamp, frame, "footholds", len(markers), kind)
            marker.color = _FOOT_COLOURS[column % len(_FOOT_COLOURS)]
            place = foothold.position + foothold.rotation @ np.array(sole.center_m)
            turn = pin.Quaternion(foothold.rotation)
            marker.pose.position = point_at(place)
            marker.pose.orientation = Quaternion(x=turn.x, y=turn.y, z=turn.z, w=turn.w)
            x, y = (max(2.0 * half, SOLE_THICKNESS_M) for half in sole.half_size_m)
            size = (x, y, SOLE_THICKNESS_M) if kind == Marker.CUBE else (POINT_SIZE_M,) * 3
            marker.scale.x, marker.scale.y, marker.scale.z = size
            markers.append(marker)
    return MarkerArray(markers=markers)


def force_markers(plan: MotionPlan, stamp: Any, frame: str) -> MarkerArray:
    """An arrow for each phase and standing foot: its mean force, at its mean centre of pressure."""
    markers = [_clear(stamp, frame, "planned_forces")]
    momentum, contacts = plan.momentum, plan.momentum.problem.contacts
    centres = momentum.centres_of_pressure()
    scale = ARROW_M_PER_WEIGHT / momentum.problem.weight_n
    for number, phase in enumerate(plan.contact_plan.phases):
        intervals = contacts.phase == number
        for column, sole in enumerate(plan.contact_plan.soles):
            loaded = intervals & np.isfinite(centres[:, column]).all(axis=1)
            if sole.frame not in phase.feet or not loaded.any():
                continue
            corners = contacts.sole_of_corner == column
            force = momentum.forces[intervals][:, corners].sum(axis=1).mean(axis=0)
            begin = centres[loaded, column].mean(axis=0)
            marker = new_marker(stamp, frame, "planned_forces", len(markers), Marker.ARROW)
            marker.points = [point_at(begin), point_at(begin + scale * force)]
            marker.scale.x, marker.scale.y, marker.scale.z = _ARROW_SIZE_M
            marker.color = _FORCE_COLOUR
            markers.append(marker)
    return MarkerArray(markers=markers)


def com_path(plan: MotionPlan, stamp: Any, frame: str) -> Path:
    """The planned path of the CoM."""
    path = Path()
    path.header.stamp, path.header.frame_id = stamp, frame
    for place in plan.fine.com:
        pose = PoseStamped(header=path.header)
        pose.pose.position = point_at(place)
        pose.pose.orientation.w = 1.0
        path.poses.append(pose)
    return path


def _clear(stamp: Any, frame: str, namespace: str) -> Marker:
    marker = new_marker(stamp, frame, namespace, 0, Marker.CUBE)
    marker.action = Marker.DELETEALL
    return marker
