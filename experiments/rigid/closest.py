"""Distance, closest points and normal of two shapes, by coal."""

from __future__ import annotations

from typing import Any, NamedTuple

import coal
import numpy as np
import pinocchio as pin

from contact_id_controller.geometry import HalfSpace

GJK_TOLERANCE = 1e-9  # m
GJK_STEPS = 1000


class Closest(NamedTuple):
    """Closest points of two solids, world frame.

    gap: signed distance, m, negative when they overlap; a point (3,) on the surface of each; the unit
    normal (3,) from the second to the first.
    """

    gap: float
    first: np.ndarray
    second: np.ndarray
    normal: np.ndarray


def closest(first: Any, first_pose: pin.SE3, second: Any, second_pose: pin.SE3) -> Closest:
    """Closest points of two solids, or of a solid and a half-space, at world poses.

    When they overlap the gap is minus the shortest separating translation, along the normal.
    """
    request, result = _REQUEST, coal.DistanceResult()
    gap = coal.distance(
        _geometry(first),
        _transform(first_pose),
        _geometry(second),
        _transform(second_pose),
        request,
        result,
    )
    return Closest(
        float(gap),
        np.array(result.getNearestPoint1()),
        np.array(result.getNearestPoint2()),
        -np.array(result.normal),
    )


def _geometry(shape: Any) -> Any:
    """coal's shape of a solid or a half-space."""
    if isinstance(shape, HalfSpace):
        return coal.Halfspace(shape.normal, shape.offset)
    return shape.geometry


def _transform(pose: pin.SE3) -> Any:
    return coal.Transform3s(pose.rotation, pose.translation)


def _request() -> Any:
    """coal's request of signed distances, with tolerances tight enough that gaps are smooth."""
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = GJK_TOLERANCE
    request.epa_tolerance = GJK_TOLERANCE
    request.gjk_max_iterations = GJK_STEPS
    request.epa_max_iterations = GJK_STEPS
    return request


_REQUEST = _request()
