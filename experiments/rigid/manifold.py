"""Contact points of two solids within a distance: several if faces or edges are in contact.

coal gives the closest points and the normal. When the normal is that of a face, this face is the
reference: the other solid's feature most opposite to it is clipped against its outline (seen along
the normal), and each remaining corner is a contact with its own gap. A contact is named after the
features that make it, so that it keeps its name while it slides:

    ("a", i)              vertex i of the first solid      ("b", j)   vertex j of the second
    ("e", i, k, j, l)     edge i-k of the first crossing edge j-l of the second
    ("c",)                the closest points, where no face or edge is involved

A point within a slanted capsule's length is taken on a ball inside the capsule, too deep by
radius (1 / cos(slant) - 1) at most; its ends are exact.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from experiments.rigid.closest import Closest, closest
from experiments.rigid.solids import Solid

ALIGNED = np.cos(np.radians(3.0))  # a face is touched flat when the normal is this close to its own
FACING = 0.05  # a face steeper than this (cosine) has no area seen along the normal
SAME_PLACE = 1e-9  # m; corners nearer to each other, seen along the normal, are one


class ContactPoint(NamedTuple):
    """point: on the first body's surface, normal: from the second body to it, world; gap: m."""

    point: np.ndarray
    normal: np.ndarray
    gap: float
    feature: tuple[Any, ...]


def contact_points(
    first: Solid, first_pose: pin.SE3, second: Solid, second_pose: pin.SE3, anticipation_m: float
) -> list[ContactPoint]:
    """Contacts of two solids no farther apart than ``anticipation_m``."""
    nearest = closest(first, first_pose, second, second_pose)
    if nearest.gap > anticipation_m:
        return []
    if len(first.vertices) == 1 or len(second.vertices) == 1:
        feature = ("a", 0) if len(first.vertices) == 1 else ("b", 0)
        return [ContactPoint(nearest.first, nearest.normal, nearest.gap, feature)]
    points = flat_points(first, first_pose, second, second_pose, nearest.normal)
    points = [point for point in points if point.gap <= anticipation_m]
    if not points or min(point.gap for point in points) > nearest.gap + 1e-6:
        points.append(single(nearest))
    return points


def single(nearest: Closest) -> ContactPoint:
    """Contact of the closest points alone."""
    return ContactPoint(nearest.first, nearest.normal, nearest.gap, ("c",))


def flat_points(
    first: Solid, first_pose: pin.SE3, second: Solid, second_pose: pin.SE3, normal: np.ndarray
) -> list[ContactPoint]:
    """Corners of the overlap of the features that face each other along ``normal``, if any."""
    a, a_normals = world(first, first_pose)
    b, b_normals = world(second, second_pose)
    face_a, cosine_a = _most_along(a_normals, -normal)
    face_b, cosine_b = _most_along(b_normals, normal)
    if max(cosine_a, cosine_b) < ALIGNED:
        if len(a) == 2 and len(b) == 2:
            return _parallel_segments(a, b, first.radius_m, second.radius_m, normal)
        return []
    # The second body's face unless the first one's fits better: one rule, so that the choice stays.
    if cosine_b >= ALIGNED and cosine_b >= cosine_a - 1e-3:
        normal = b_normals[face_b]
    else:
        normal = -a_normals[face_a]
    loop_a = first.faces[face_a] if first.faces else tuple(range(len(a)))
    loop_b = second.faces[face_b] if second.faces else tuple(range(len(b)))
    return overlap(a, loop_a, first.radius_m, b, loop_b, second.radius_m, normal)


def world(solid: Solid, pose: pin.SE3) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (m, 3) and face normals (f, 3) in the world."""
    return solid.vertices @ pose.rotation.T + pose.translation, solid.face_normals @ pose.rotation.T


def overlap(
    a: np.ndarray,
    loop_a: Any,
    radius_a: float,
    b: np.ndarray,
    loop_b: Any,
    radius_b: float,
    normal: np.ndarray,
) -> list[ContactPoint]:
    """Corners of the overlap of two convex loops (polygons or segments) seen along ``normal``."""
    axes = _axes(normal)
    flat_a, flat_b = a[list(loop_a)] @ axes.T, b[list(loop_b)] @ axes.T
    height_a, height_b = a[list(loop_a)] @ normal, b[list(loop_b)] @ normal
    found: list[ContactPoint] = []
    places: list[tuple[float, float]] = []

    def add(place: np.ndarray, above: float, below: float, feature: tuple[Any, ...]) -> None:
        x, y = place
        for other_x, other_y in places:
            if abs(other_x - x) < SAME_PLACE and abs(other_y - y) < SAME_PLACE:
                return
        places.append((x, y))
        point = place @ axes + (above - radius_a) * normal
        found.append(
            ContactPoint(point, normal, float(above - below - radius_a - radius_b), feature)
        )

    plane_a, plane_b = _plane(flat_a, height_a), _plane(flat_b, height_b)
    if plane_b is not None:
        for i in _inside(flat_a, flat_b):
            add(flat_a[i], height_a[i], flat_a[i] @ plane_b[:2] + plane_b[2], ("a", loop_a[i]))
    if plane_a is not None:
        for j in _inside(flat_b, flat_a):
            add(flat_b[j], flat_b[j] @ plane_a[:2] + plane_a[2], height_b[j], ("b", loop_b[j]))
    start_a, end_a = _edges(len(loop_a))
    start_b, end_b = _edges(len(loop_b))
    for row, column, s, t in _crossings(
        flat_a[start_a], flat_a[end_a], flat_b[start_b], flat_b[end_b]
    ):
        i, k, j, l = start_a[row], end_a[row], start_b[column], end_b[column]
        add(
            (1.0 - s) * flat_a[i] + s * flat_a[k],
            (1.0 - s) * height_a[i] + s * height_a[k],
            (1.0 - t) * height_b[j] + t * height_b[l],
            ("e", *sorted((loop_a[i], loop_a[k])), *sorted((loop_b[j], loop_b[l]))),
        )
    return found


def _most_along(normals: np.ndarray, direction: np.ndarray) -> tuple[int, float]:
    if len(normals) == 0:
        return -1, -1.0
    cosines = normals @ direction
    best = int(np.argmax(cosines))
    return best, float(cosines[best])


def _parallel_segments(
    a: np.ndarray, b: np.ndarray, radius_a: float, radius_b: float, normal: np.ndarray
) -> list[ContactPoint]:
    """Ends of the common stretch of two parallel segments; empty when they cross."""
    along = b[1] - b[0]
    length = np.linalg.norm(along)
    along = along / length
    other = (a[1] - a[0]) / np.linalg.norm(a[1] - a[0])
    if abs(other @ along) < ALIGNED:
        return []
    points = []
    for i in range(2):
        s = (a[i] - b[0]) @ along
        if 0.0 <= s <= length:
            points.append((a[i], b[0] + s * along, ("a", i)))
    span = (a[1] - a[0]) @ along
    for j in range(2):
        s = (b[j] - a[0]) @ along / span
        if 0.0 < s < 1.0:
            points.append((a[0] + s * (a[1] - a[0]), b[j], ("b", j)))
    return [
        ContactPoint(
            p - radius_a * normal, normal, float((p - q) @ normal - radius_a - radius_b), feature
        )
        for p, q, feature in points
    ]


def _axes(normal: np.ndarray) -> np.ndarray:
    """Two unit vectors (2, 3) that complete a normal to a right-handed frame."""
    turn = pin.skew(normal)  # its columns are the normal times each axis
    first = turn[:, int(np.argmin(np.abs(normal)))]
    first = first / np.sqrt(first @ first)
    return np.array([first, turn @ first])


def _plane(flat: np.ndarray, height: np.ndarray) -> np.ndarray | None:
    """(slope, slope, offset) of the height over a polygon, (3,); None without area."""
    if len(flat) < 3:
        return None
    # Newell's normal, from the projected corners about the first.
    x, y = (flat - flat[0]).T
    h = height - height[0]
    _, after = _edges(len(flat))
    nx = y @ h[after] - y[after] @ h
    ny = h @ x[after] - h[after] @ x
    nz = x @ y[after] - x[after] @ y
    if abs(nz) <= FACING * np.sqrt(nx * nx + ny * ny + nz * nz):
        return None
    slopes = np.array([-nx / nz, -ny / nz, 0.0])
    slopes[2] = height[0] - slopes[:2] @ flat[0]
    return slopes


def _inside(points: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Numbers of the points that lie in a convex polygon of either orientation, border included."""
    _, after = _edges(len(polygon))
    edge = polygon[after] - polygon
    size = np.sqrt((edge * edge).sum(axis=1)) + 1e-300
    side = (
        edge[:, 0] * (points[:, 1:2] - polygon[:, 1])
        - edge[:, 1] * (points[:, 0:1] - polygon[:, 0])
    ) / size
    inside = (side >= -SAME_PLACE).all(axis=1) | (side <= SAME_PLACE).all(axis=1)
    return np.flatnonzero(inside)


@functools.cache
def _edges(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the first and last corner of each edge of a loop; a segment has one edge."""
    start = np.arange(1 if count == 2 else count)
    return start, (start + 1) % count


def _crossings(
    p: np.ndarray, p_end: np.ndarray, q: np.ndarray, q_end: np.ndarray
) -> list[tuple[int, int, float, float]]:
    """(row, column, s, t) wherever plane segment p[row] at share s meets q[column] at share t."""
    along, other = p_end - p, q_end - q
    offset_x, offset_y = q[:, 0] - p[:, 0:1], q[:, 1] - p[:, 1:2]
    area = along[:, 0:1] * other[:, 1] - along[:, 1:2] * other[:, 0]
    size = np.sqrt((along * along).sum(axis=1)[:, None] * (other * other).sum(axis=1))
    parallel = np.abs(area) <= 1e-9 * size
    area[parallel] = 1.0
    s = (offset_x * other[:, 1] - offset_y * other[:, 0]) / area
    t = (offset_x * along[:, 1:2] - offset_y * along[:, 0:1]) / area
    meets = (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0) & ~parallel
    return [(row, column, s[row, column], t[row, column]) for row, column in np.argwhere(meets)]
