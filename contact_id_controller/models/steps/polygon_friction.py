"""What follows from the options that several models share."""

from __future__ import annotations

import math

import numpy as np


def polygon_friction(mu: np.ndarray, edges: int, polygon: str) -> np.ndarray:
    """Friction (n,) at the corners of a regular polygon for that of a circle, inscribed in it or around it.

    mu for a polygon inside the circle, mu / cos(pi / edges) around it.
    """
    return mu if polygon == "inscribed" else mu / math.cos(math.pi / edges)
