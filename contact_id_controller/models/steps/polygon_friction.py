"""What follows from the options that several models share."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=64)
def polygon_cosine(edges: int, polygon: str) -> float:
    """By what a friction coefficient is divided to give the distance of the polygon's corners per normal force.

    1 for a polygon inside the cone, cos(pi / edges) around it.
    """
    return 1.0 if polygon == "inscribed" else math.cos(math.pi / edges)
