"""Friction of a polygon from the options ``edges`` and ``polygon``."""

from __future__ import annotations

import math

import numpy as np


def polygon_friction(mu: np.ndarray, edges: int, polygon: str) -> np.ndarray:
    """Friction (n,) at the corners of a regular polygon inscribed in, or circumscribed about, the circle of mu (n,).

    mu for the inscribed polygon, mu / cos(pi / edges) for the circumscribed one.
    """
    return mu if polygon == "inscribed" else mu / math.cos(math.pi / edges)
