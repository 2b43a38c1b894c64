"""Flat ground."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError


class HalfSpace:
    """Flat ground: the points x with normal . x <= offset are inside it (m).

    Attributes:
        normal: (3,) unit.  up: the same, as every ground has it.
    """

    def __init__(self, normal: ArrayLike = (0.0, 0.0, 1.0), offset: float = 0.0) -> None:
        direction = np.array(normal, dtype=float)
        length = float(np.linalg.norm(direction)) if direction.shape == (3,) else 0.0
        if not np.isfinite(length) or length == 0.0 or not np.isfinite(offset):
            raise ConfigurationError(
                f"ground needs a normal of 3 finite numbers, not all 0, and a "
                f"finite offset, got {normal!r} and {offset}"
            )
        self.normal = direction / length
        self.offset, self.up = float(offset), self.normal

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Signed distance (n,) of points (n, 3), m; positive above the ground."""
        return points @ self.normal - self.offset

    def height(self, x: float, y: float) -> float:
        """Height of the ground, m, at a place; undefined for a vertical plane."""
        return float((self.offset - self.normal[0] * x - self.normal[1] * y) / self.normal[2])
