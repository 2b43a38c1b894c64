"""Shapes in their own frame. Every solid is a convex polytope swept by a ball.

A sphere is one vertex with a radius, a capsule two, a box eight and a mesh many without radius; the
vertices and faces give contact points, coal's geometry gives distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import coal
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from contact_id_controller.exceptions import ConfigurationError

COPLANAR = 1e-7  # triangles whose normals and offsets differ less (relative to size) are one face


class Solid:
    """A convex body.

    Attributes:
        vertices: (m, 3) m.  radius_m: of the ball that sweeps them.
        faces: tuples of vertex numbers, counter-clockwise seen from outside.
        face_normals: (f, 3) outward unit normals.
        reach_m: largest distance of the surface from the frame's origin.
        geometry: coal's shape.
    """

    def __init__(
        self, vertices: np.ndarray, radius_m: float, faces: Any, face_normals: Any, geometry: Any
    ) -> None:
        self.vertices = np.asarray(vertices, dtype=float)
        self.radius_m = float(radius_m)
        self.faces = tuple(tuple(face) for face in faces)
        self.face_normals = np.asarray(face_normals, dtype=float).reshape(-1, 3)
        self.geometry = geometry
        self.reach_m = float(np.linalg.norm(self.vertices, axis=1).max()) + self.radius_m


class Sphere(Solid):
    """A ball around the frame's origin."""

    def __init__(self, radius_m: float):
        _positive("radius_m", radius_m)
        super().__init__(np.zeros((1, 3)), radius_m, (), (), coal.Sphere(float(radius_m)))


class Capsule(Solid):
    """A cylinder of length_m along z with a half ball at either end, centred at the origin."""

    def __init__(self, radius_m: float, length_m: float):
        _positive("radius_m", radius_m)
        _positive("length_m", length_m)
        ends = np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]) * length_m
        super().__init__(ends, radius_m, (), (), coal.Capsule(float(radius_m), float(length_m)))


class Box(Solid):
    """A cuboid with edges size_m (3,) along the axes, centred at the origin."""

    def __init__(self, size_m: ArrayLike) -> None:
        size = np.asarray(size_m, dtype=float)
        if size.shape != (3,):
            raise ConfigurationError(f"size_m of a box must be three lengths, got {size_m}")
        for length in size:
            _positive("size_m", length)
        # Vertex number: bit 2 for +x, bit 1 for +y, bit 0 for +z.
        corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        normals = np.repeat(np.eye(3), 2, axis=0) * np.tile([-1.0, 1.0], 3)[:, None]
        super().__init__(
            0.5 * np.array(corners) * size, 0.0, faces, normals, coal.Box(*map(float, size))
        )


class ConvexMesh(Solid):
    """The convex hull of points (m, 3)."""

    def __init__(self, points: np.ndarray) -> None:
        points = np.asarray(points, dtype=float)
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise ConfigurationError(
                f"a mesh needs finite points of shape (m, 3), got {points.shape}"
            )
        try:
            hull = ConvexHull(points)
        except (QhullError, ValueError) as error:
            raise ConfigurationError(
                f"points of a mesh must span a volume: {len(points)} points do not"
            ) from error
        vertices = points[hull.vertices]
        number = np.full(len(points), -1)
        number[hull.vertices] = np.arange(len(vertices))
        triangles = [
            _outward(vertices, number[simplex], plane[:3])
            for simplex, plane in zip(hull.simplices, hull.equations)
        ]
        faces, normals = _merge(vertices, triangles, hull.equations)
        super().__init__(vertices, 0.0, faces, normals, coal_convex(vertices, triangles))

    @classmethod
    def from_file(cls, path: str | Path, scale: ArrayLike = (1.0, 1.0, 1.0)) -> ConvexMesh:
        """The convex hull of a mesh file (any format that coal's loader reads)."""
        try:
            mesh = coal.MeshLoader().load(str(path), np.array(scale, dtype=float))
            points = np.array(mesh.vertices())
        except (ValueError, RuntimeError) as error:
            raise ConfigurationError(f"mesh {str(path)!r} cannot be read: {error}") from error
        return cls(points)


def _positive(name: str, value: float) -> None:
    if not 0.0 < value < np.inf:
        raise ConfigurationError(f"{name} must be a positive length, got {value}")


def _outward(
    vertices: np.ndarray, triangle: Sequence[int], normal: np.ndarray
) -> tuple[int, int, int]:
    a, b, c = triangle
    if np.dot(np.cross(vertices[b] - vertices[a], vertices[c] - vertices[a]), normal) < 0.0:
        b, c = c, b
    return int(a), int(b), int(c)


def _merge(
    vertices: np.ndarray, triangles: Any, planes: np.ndarray
) -> tuple[list[list[int]], list[np.ndarray]]:
    """Merge coplanar hull triangles into polygons; returns (faces, normals).

    vertices (m, 3); triangles (t, 3) vertex indices; planes (t, 4): unit normal and offset of each.
    """
    size = np.abs(vertices).max()
    faces, normals, offsets = [], [], []
    for triangle, plane in zip(triangles, planes):
        for face, normal, offset in zip(faces, normals, offsets):
            if plane[:3] @ normal > 1.0 - COPLANAR and abs(plane[3] - offset) < COPLANAR * size:
                face.update(triangle)
                break
        else:
            faces.append(set(triangle))
            normals.append(plane[:3])
            offsets.append(plane[3])
    return [_loop(vertices, sorted(face), normal) for face, normal in zip(faces, normals)], normals


def _loop(vertices: np.ndarray, face: Sequence[int], normal: np.ndarray) -> list[int]:
    """Vertex numbers of a convex face, counter-clockwise about its normal."""
    points = vertices[face] - vertices[face].mean(axis=0)
    first = points[0] / np.linalg.norm(points[0])
    angle = np.arctan2(points @ np.cross(normal, first), points @ first)
    return [face[i] for i in np.argsort(angle)]


def coal_convex(vertices: np.ndarray, triangles: Any) -> Any:
    """Coal's convex body of vertices (v, 3), m, and triangles (t, 3) of their indices."""
    points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in vertices:
        points.append(vertex)
    for triangle in triangles:
        faces.append(coal.Triangle(*triangle))
    return coal.Convex(points, faces)
