"""Angles of joints without limits (URDF type ``continuous``), known only up to whole turns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

TURN = 2.0 * math.pi


def whole_turns(angle: Any) -> Any:
    """Whole turns, rad, nearest to an angle, or angles, rad."""
    return TURN * np.rint(angle / TURN)


def nearest(angles: np.ndarray, reference: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Angles (..., n), those of continuous joints shifted by whole turns to within pi of a reference (..., n).

    turns (n,) bool: the continuous joints; the others are returned exactly.
    """
    near: np.ndarray = np.where(turns, angles - whole_turns(angles - reference), angles)
    return near
