"""Angles that are known only up to whole turns: of joints without ends (URDF type ``continuous``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

TURN = 2.0 * math.pi


def whole_turns(angle: Any) -> Any:
    """The whole turns, rad, nearest to an angle, or angles, rad."""
    return TURN * np.rint(angle / TURN)


def nearest(angles: np.ndarray, reference: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Angles (..., n) of which those that turn are within half a turn of a reference (..., n).

    turns (n,) bool: which do; the others stay what they are, exactly.
    """
    near: np.ndarray = np.where(turns, angles - whole_turns(angles - reference), angles)
    return near
