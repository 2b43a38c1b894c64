"""Contacts of solids with flat ground and with a height field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.geometry import HalfSpace, HeightField
from experiments.rigid.closest import closest
from experiments.rigid.field_triangles import FieldTriangles, triangles_of
from experiments.rigid.manifold import ContactPoint, flat_points, single, world
from experiments.rigid.solids import Solid

CLOSER = 1e-6  # m by which a closest point must be nearer than all named contacts to join them
APART = 0.94  # cosine; a ball in a valley has two contacts when their normals differ by more
UPWARD = 0.1  # cosine; a normal flatter than this comes from a prism's side
ON_FACE = 1.0 - 1e-10  # cosine; the foot of the perpendicular lies inside a triangle


def plane_points(
    solid: Solid, pose: pin.SE3, ground: HalfSpace, anticipation_m: float
) -> list[ContactPoint]:
    """Contacts of a solid's vertices within ``anticipation_m`` of the ground; exact."""
    vertices, _ = world(solid, pose)
    gaps = ground.distance(vertices) - solid.radius_m
    return [
        ContactPoint(
            vertices[i] - solid.radius_m * ground.normal,
            ground.normal,
            float(gaps[i]),
            ("a", int(i)),
        )
        for i in np.flatnonzero(gaps <= anticipation_m)
    ]


def field_points(
    solid: Solid, pose: pin.SE3, field: HeightField, anticipation_m: float
) -> list[ContactPoint]:
    """Contacts of a solid with a height field.

    Vertices of the solid over the field's surface, ridges and peaks of the field under the solid's
    faces and edges, and the closest points of all if those miss them. Flat or concave edges of the field give no
    contact.
    """
    vertices, _ = world(solid, pose)
    triangles = triangles_of(field)
    points = []
    for i, vertex in enumerate(vertices):
        points += ball_points(vertex, solid.radius_m, field, anticipation_m, i)
    if len(vertices) == 1:
        return points
    margin = solid.radius_m + anticipation_m
    low, high = vertices.min(axis=0) - margin, vertices.max(axis=0) + margin
    nearest = None
    for number in triangles.triangles_between(low, high):
        corners = field.corners[number]
        if field.points[corners, 2].max() < low[2]:
            continue
        prism = triangles.prism(number)
        candidate = closest(solid, pose, prism, _AT_ORIGIN)
        if candidate.gap > anticipation_m:
            continue
        if candidate.normal[2] > 0.0 and (nearest is None or candidate.gap < nearest.gap):
            nearest = candidate
        if not triangles.peaks[corners].any():
            continue
        # Overlapping, the shortest way apart may lead through a prism's side, where there is none.
        outward = candidate.normal if candidate.normal[2] > UPWARD else field.normals[number]
        for point in flat_points(solid, pose, prism, _AT_ORIGIN, outward):
            named = _stands_out(point.feature, corners, triangles)
            if point.gap <= anticipation_m and named is not None:
                points.append(point._replace(feature=named))
    if nearest is not None and (not points or min(p.gap for p in points) > nearest.gap + CLOSER):
        points.append(single(nearest))
    return _different(points)


def ball_points(
    center: np.ndarray, radius_m: float, field: HeightField, anticipation_m: float, number: int
) -> list[ContactPoint]:
    """Contacts of a ball (radius 0: a point) with the field: one, or more in a valley.

    They are named ("a", number, k), k counting counter-clockwise from +x by the normal's direction.
    """
    surface = field.height(center[0], center[1])
    if surface is None:
        return []
    reach = max(radius_m, abs(center[2] - surface)) + anticipation_m
    low, high = center - reach, center + reach
    low[2], high[2] = -np.inf, np.inf
    triangles = triangles_of(field).triangles_between(low, high)
    feet = triangles_of(field).nearest(center, triangles)
    offsets = center - feet
    distances = np.linalg.norm(offsets, axis=1)
    order = np.argsort(distances)
    below = center[2] < surface
    first = order[0]
    if below or radius_m == 0.0 or distances[first] < 1e-9:
        if distances[first] < 1e-9:
            normal = field.normals[triangles[first]]
        else:
            normal = offsets[first] / (-distances[first] if below else distances[first])
        gap = (-distances[first] if below else distances[first]) - radius_m
        chosen = [(normal, gap)]
    else:
        chosen = []
        for k in order:
            gap, normal = distances[k] - radius_m, offsets[k] / distances[k]
            if gap > anticipation_m:
                break
            inside = normal @ field.normals[triangles[k]] > ON_FACE
            if not chosen or (inside and all(normal @ other < APART for other, _ in chosen)):
                chosen.append((normal, gap))
        chosen.sort(key=lambda each: np.arctan2(each[0][1], each[0][0]) % (2.0 * np.pi))
    return [
        ContactPoint(center - radius_m * normal, normal, float(gap), ("a", number, k))
        for k, (normal, gap) in enumerate(chosen)
        if gap <= anticipation_m
    ]


_AT_ORIGIN = pin.SE3.Identity()


def _stands_out(
    feature: tuple[Any, ...], corners: np.ndarray, triangles: FieldTriangles
) -> tuple[Any, ...] | None:
    """The feature in grid point numbers; None if it is no ridge or peak.

    A prism's vertices 0 to 2 are its triangle's corners, 3 to 5 lie underground. The solid's own
    vertices are left out: ``ball_points`` has them.
    """
    if feature[0] == "b" and feature[1] < 3:
        corner = int(corners[feature[1]])
        return ("b", corner) if triangles.peaks[corner] else None
    if feature[0] == "e" and max(feature[3:]) < 3:
        ends = tuple(sorted(int(corners[j]) for j in feature[3:]))
        return ("e", *feature[1:3], *ends) if ends in triangles.ridges else None
    return None


def _different(points: list[ContactPoint]) -> list[ContactPoint]:
    """Remove points that name the same feature as, or lie within CLOSER, m, of an earlier one."""
    kept: list[ContactPoint] = []
    for point in points:
        if all(
            point.feature != other.feature and np.abs(point.point - other.point).max() > CLOSER
            for other in kept
        ):
            kept.append(point)
    return kept
