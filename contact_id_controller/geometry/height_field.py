"""Uneven ground: heights over a rectangular grid, two triangles a cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.compile import bare_kernel, kernel


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

    def _triangle_under(self, x: float, y: float) -> int | None:
        """Number of the triangle under (x, y), m; None outside the field."""
        if not (self.x[0] <= x <= self.x[-1] and self.y[0] <= y <= self.y[-1]):
            return None
        i = min(int(np.searchsorted(self.x, x, side="right")) - 1, len(self.x) - 2)
        j = min(int(np.searchsorted(self.y, y, side="right")) - 1, len(self.y) - 2)
        along = (x - self.x[i]) / (self.x[i + 1] - self.x[i])
        across = (y - self.y[j]) / (self.y[j + 1] - self.y[j])
        return 2 * (i * (len(self.y) - 1) + j) + (1 if across > along else 0)


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
