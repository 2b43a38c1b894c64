"""Predicted contact forces and friction cones as visualization_msgs/MarkerArray."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

ARROW_M_PER_WEIGHT = 0.3
"""Length of the arrow of a force of the robot's weight."""

_CONE_HEIGHT_M = 0.05
_RIM = 24
"""Points on the rim of a cone."""

_ARROW_SIZE_M = (0.008, 0.016, 0.02)
"""Diameters of shaft and head, length of the head."""

_FORCE_COLOUR = ColorRGBA(r=0.1, g=0.5, b=0.9, a=1.0)
_CONE_COLOUR = ColorRGBA(r=0.5, g=0.5, b=0.5, a=0.6)
_SLIDING_COLOUR = ColorRGBA(r=0.9, g=0.3, b=0.1, a=0.9)

_AT_LIMIT = 0.999


def contact_markers(
    stamp: Any,
    frame: str,
    points: np.ndarray,
    normals: np.ndarray,
    friction: np.ndarray,
    forces: np.ndarray,
    contact: np.ndarray,
    metres_per_newton: float,
) -> MarkerArray:
    """An arrow and a friction cone for each foot in contact; those of the other feet are deleted.

    The cone's colour shows a force at the friction limit. A foot with unbounded friction has no cone.

    Args:
        stamp, frame: of the markers.
        points, normals, forces: (f, 3) m, (f, 3) unit vectors, (f, 3) N, in ``frame``.
        friction, contact: (f,) coefficients, (f,) bool.
        metres_per_newton: scale of the arrows.
    """
    markers = []
    for foot, standing in enumerate(contact):
        arrow = new_marker(stamp, frame, "force", foot, Marker.ARROW)
        cone = new_marker(stamp, frame, "friction_cone", foot, Marker.LINE_LIST)
        if standing:
            _draw_arrow(arrow, points[foot], forces[foot] * metres_per_newton)
        else:
            arrow.action = Marker.DELETE
        if standing and np.isfinite(friction[foot]):
            _draw_cone(cone, points[foot], normals[foot], float(friction[foot]), forces[foot])
        else:
            cone.action = Marker.DELETE
        markers += [arrow, cone]
    return MarkerArray(markers=markers)


def new_marker(stamp: Any, frame: str, namespace: str, number: int, kind: int) -> Marker:
    """A marker of a kind, at the origin of its frame."""
    marker = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD)
    marker.header.stamp, marker.header.frame_id = stamp, frame
    marker.pose.orientation.w = 1.0
    return marker


def _draw_arrow(marker: Marker, start: np.ndarray, along: np.ndarray) -> None:
    marker.points = [point_at(start), point_at(start + along)]
    marker.scale.x, marker.scale.y, marker.scale.z = _ARROW_SIZE_M
    marker.color = _FORCE_COLOUR


def _draw_cone(
    marker: Marker, apex: np.ndarray, normal: np.ndarray, friction: float, force: np.ndarray
) -> None:
    """Add the lines of a friction cone; its colour shows a force on the cone's surface.

    Args:
        apex, normal, force: (3,) m, unit vector, N, all in the markers' frame.
    """
    first = np.cross(normal, (1.0, 0.0, 0.0) if abs(normal[0]) < 0.9 else (0.0, 1.0, 0.0))
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    angle = np.linspace(0.0, 2.0 * np.pi, _RIM, endpoint=False)[:, None]
    rim = apex + _CONE_HEIGHT_M * (
        normal + friction * (np.cos(angle) * first + np.sin(angle) * second)
    )
    rim_points = [point_at(p) for p in rim]
    tip = point_at(apex)
    for k, point in enumerate(rim_points):
        marker.points += [point, rim_points[k - 1]]
        if k % 3 == 0:
            marker.points += [tip, point]
    marker.scale.x = 0.001
    along = float(force @ normal)
    sliding = np.linalg.norm(force - along * normal) > _AT_LIMIT * friction * along
    marker.color = _SLIDING_COLOUR if sliding else _CONE_COLOUR


def point_at(p: np.ndarray) -> Point:
    """A point (3,), m, as message."""
    return Point(x=float(p[0]), y=float(p[1]), z=float(p[2]))
