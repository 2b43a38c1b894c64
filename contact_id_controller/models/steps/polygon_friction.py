"""What follows from the options that several models share."""

from __future__ import annotations

import math

import numpy as np


def polygon_friction(mu: np.ndarray, edges: int, polygon: str) -> np.ndarray:
    """Distance of the polygon's corners per normal force, inside the cone or around it, for mu (n,).

    As written: kernels take it through ``effective_friction``.
    """
    return mu if polygon == "inscribed" else mu / math.cos(math.pi / edges)
