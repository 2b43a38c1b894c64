"""Uneven ground: heights over a rectangular grid, two triangles a cell."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry.shapes import Solid, coal_convex
from contact_id_controller.kernels.compile import bare_kernel, kernel

DEPTH_M = 1.0  # how far the prisms under the triangles reach down
CONVEX = 1e-6  # sine of the bend from which an edge counts as a ridge


class HeightField:
    """Ground of height heights_m[i, j] at (x_m[i], y_m[j]), linear on triangles between.

    Each cell is cut from (i, j) to (i + 1, j + 1). Grid point (i, j) is number i * len(y_m) + j.
    Outside the grid there is no ground.

    Attributes:
        points: (p, 3) m.  corners: (t, 3) grid point numbers, counter-clockwise from above.
        normals: (t, 3) upward unit normals.  up: (3,), the z axis.
    """

    def __init__(self, x_m: ArrayLike, y_m: ArrayLike, heights_m: ArrayLike) -> None:
        self.x, self.y = np.asarray(x_m, dtype=float), np.asarray(y_m, dtype=float)
        heights = np.asarray(heights_m, dtype=float)
        nx, ny = len(self.x), len(self.y)
        if (
            nx < 2
            or ny < 2
            or heights.shape != (nx, ny)
            or not np.isfinite(heights).all()
            or not ((np.diff(self.x) > 0).all() and (np.diff(self.y) > 0).all())
        ):
            raise ConfigurationError(
                f"a height field needs increasing x_m (nx), y_m (ny), 2 or more, and finite "
                f"heights_m (nx, ny), got shapes {self.x.shape}, {self.y.shape}, {heights.shape}"
            )
        self.heights, self.up = heights, np.array([0.0, 0.0, 1.0])
        grid = np.meshgrid(self.x, self.y, indexing="ij")
        self.points = np.stack([grid[0].ravel(), grid[1].ravel(), heights.ravel()], axis=1)
        i, j = np.meshgrid(np.arange(nx - 1), np.arange(ny - 1), indexing="ij")
        start = (i * ny + j).ravel()
        lower = np.stack([start, start + ny, start + ny + 1], axis=1)
        upper = np.stack([start, start + ny + 1, start + 1], axis=1)
        self.corners = np.stack([lower, upper], axis=1).reshape(-1, 3)
        a, b, c = (self.points[self.corners[:, k]] for k in range(3))
        normals = np.cross(b - a, c - a)
        self.normals = normals / np.linalg.norm(normals, axis=1)[:, None]
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

    def height(self, x: float, y: float) -> float | None:
        """Height of the surface, m; None outside the grid."""
        number = self._triangle_under(x, y)
        if number is None:
            return None
        normal, corner = self.normals[number], self.points[self.corners[number, 0]]
        return float(
            corner[2] - (normal[0] * (x - corner[0]) + normal[1] * (y - corner[1])) / normal[2]
        )

    def heights_at(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights (n,), m, of the surface at x, y (n,), m; NaN outside the grid."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        i = np.clip(np.searchsorted(self.x, x, side="right") - 1, 0, len(self.x) - 2)
        j = np.clip(np.searchsorted(self.y, y, side="right") - 1, 0, len(self.y) - 2)
        along = (x - self.x[i]) / (self.x[i + 1] - self.x[i])
        across = (y - self.y[j]) / (self.y[j + 1] - self.y[j])
        near, far = self.heights[i, j], self.heights[i + 1, j + 1]
        beside = np.where(along >= across, self.heights[i + 1, j], self.heights[i, j + 1])
        more, less = np.maximum(along, across), np.minimum(along, across)
        heights = near + more * (beside - near) + less * (far - beside)
        on_grid = (np.minimum(along, across) >= 0.0) & (np.maximum(along, across) <= 1.0)
        return np.where(on_grid, heights, np.nan)

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

    def _triangle_under(self, x: float, y: float) -> int | None:
        """Number of the triangle under (x, y), m; None outside the field."""
        if not (self.x[0] <= x <= self.x[-1] and self.y[0] <= y <= self.y[-1]):
            return None
        i = min(int(np.searchsorted(self.x, x, side="right")) - 1, len(self.x) - 2)
        j = min(int(np.searchsorted(self.y, y, side="right")) - 1, len(self.y) - 2)
        along = (x - self.x[i]) / (self.x[i + 1] - self.x[i])
        across = (y - self.y[j]) / (self.y[j + 1] - self.y[j])
        return 2 * (i * (len(self.y) - 1) + j) + (1 if across > along else 0)

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


@kernel
def cell_of(grid, value):
    """Index of the grid's cell that contains a coordinate; -1 outside the grid."""
    if not (grid[0] <= value <= grid[-1]):
        return -1
    return min(np.searchsorted(grid, value, side="right") - 1, grid.shape[0] - 2)


@bare_kernel
def height_in(x, y, heights, i, j, point):
    """Height of the surface, m, at a point's x and y within cell (i, j)."""
    along = (point[0] - x[i]) / (x[i + 1] - x[i])
    across = (point[1] - y[j]) / (y[j + 1] - y[j])
    low, far = heights[i, j], heights[i + 1, j + 1]
    if across > along:
        side = heights[i, j + 1]
        return low + across * (side - low) + along * (far - side)
    side = heights[i + 1, j]
    return low + along * (side - low) + across * (far - side)


@kernel
def height_over(x, y, heights, at_x, at_y):
    """Height of the surface, m, at a place; not a number outside the grid."""
    i, j = cell_of(x, at_x), cell_of(y, at_y)
    if i < 0 or j < 0:
        return np.nan
    return height_in(x, y, heights, i, j, (at_x, at_y))
