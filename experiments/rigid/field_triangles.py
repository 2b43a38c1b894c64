"""The triangles of a height field, as solids touch them: near ones, ridges, peaks, prisms."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from contact_id_controller.geometry import HeightField
from experiments.rigid.solids import Solid, coal_convex

DEPTH_M = 1.0  # how far the prisms under the triangles reach down
CONVEX = 1e-6  # sine of the bend from which an edge counts as a ridge

_KNOWN: WeakKeyDictionary[HeightField, FieldTriangles] = WeakKeyDictionary()


def triangles_of(field: HeightField) -> FieldTriangles:
    """The triangles of a field, made once for each."""
    known = _KNOWN.get(field)
    if known is None:
        known = _KNOWN[field] = FieldTriangles(field)
    return known


class FieldTriangles:
    """The triangles of a height field; points, corners and normals are the field's."""

    def __init__(self, field: HeightField) -> None:
        # Not the field itself, which would keep its own entry of ``_KNOWN`` alive.
        self.x, self.y, self.heights = field.x, field.y, field.heights
        self.points, self.corners, self.normals = field.points, field.corners, field.normals
        self._prisms: dict[int, Solid] = {}

    @cached_property
    def ridges(self) -> set[tuple[int, int]]:
        """Convex edges, pairs of point numbers; computed on first use, by solids other than balls."""
        return self._find_ridges()

    @cached_property
    def peaks(self) -> np.ndarray:
        """Mask (p,) of points on a convex edge."""
        peaks = np.zeros(len(self.points), dtype=bool)
        peaks[[end for ridge in self.ridges for end in ridge]] = True
        return peaks

    def triangles_between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Numbers of the triangles whose cells meet the box from low (3,) to high (3,)."""
        i0, i1 = _range(self.x, low[0], high[0])
        j0, j1 = _range(self.y, low[1], high[1])
        if i0 >= i1 or j0 >= j1 or self.heights[i0 : i1 + 1, j0 : j1 + 1].max() < low[2]:
            return np.zeros(0, dtype=int)
        cells = np.arange(i0, i1)[:, None] * (len(self.y) - 1) + np.arange(j0, j1)[None, :]
        return (2 * cells.ravel()[:, None] + np.arange(2)).ravel()

    def nearest(self, point: np.ndarray, triangles: Iterable[int]) -> np.ndarray:
        """Nearest point (t, 3), m, to a point (3,) on each of the triangles (t,)."""
        corners = self.points[self.corners[triangles]]
        normals = self.normals[triangles]
        foot = point - np.einsum("ik,ik->i", point - corners[:, 0], normals)[:, None] * normals
        ends = np.roll(corners, -1, axis=1)
        edges = ends - corners
        outward = np.cross(edges, normals[:, None, :])
        inside = (np.einsum("ijk,ijk->ij", foot[:, None] - corners, outward) <= 0.0).all(axis=1)
        share = np.einsum("ijk,ijk->ij", point - corners, edges) / np.einsum(
            "ijk,ijk->ij", edges, edges
        )
        on_edges = corners + np.clip(share, 0.0, 1.0)[:, :, None] * edges
        best = np.argmin(np.linalg.norm(point - on_edges, axis=2), axis=1)
        return np.where(inside[:, None], foot, on_edges[np.arange(len(triangles)), best])

    def prism(self, number: int) -> Solid:
        """The ground under one triangle as a solid; its face: the triangle, vertices 0 to 2."""
        solid = self._prisms.get(number)
        if solid is None:
            top = self.points[self.corners[number]]
            bottom = top - [0.0, 0.0, DEPTH_M]
            sides = [(0, 1, 2), (3, 5, 4)]
            for k in range(3):
                after = (k + 1) % 3
                sides += [(k, k + 3, after), (after, k + 3, after + 3)]
            vertices = np.vstack([top, bottom])
            solid = Solid(
                vertices, 0.0, [(0, 1, 2)], self.normals[number], coal_convex(vertices, sides)
            )
            self._prisms[number] = solid
        return solid

    def _find_ridges(self) -> set[tuple[int, ...]]:
        """Convex edges, pairs of point numbers, and those of the border."""
        sides: dict[tuple[int, int], list[int]] = {}
        for number, corners in enumerate(self.corners):
            for k in range(3):
                ends = tuple(sorted((int(corners[k]), int(corners[(k + 1) % 3]))))
                sides.setdefault(ends, []).append(number)
        ridges = set()
        for ends, numbers in sides.items():
            if len(numbers) == 2:
                first, second = numbers
                opposite = next(c for c in self.corners[second] if int(c) not in ends)
                drop = self.normals[first] @ (self.points[opposite] - self.points[ends[0]])
                if drop >= -CONVEX * np.linalg.norm(self.points[opposite] - self.points[ends[0]]):
                    continue
            ridges.add(ends)  # an edge of the field's border stands out as well
        return ridges


def _range(grid: np.ndarray, low: float, high: float) -> tuple[int, int]:
    """First cell and one past the last that meet [low, high]."""
    first = max(int(np.searchsorted(grid, low, side="right")) - 1, 0)
    last = min(int(np.searchsorted(grid, high, side="left")), len(grid) - 1)
    return first, last
