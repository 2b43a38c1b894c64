"""Vectors as they come from outside, refused where they cannot be right."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.exceptions import StateError


def shaped(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    """A vector (size,) of numbers, finite or not (StateError)."""
    array = np.asarray(values, dtype=float)
    if array.shape != (size,):
        raise StateError(f"{name} has shape {array.shape}, must be ({size},)")
    return array


def finite(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    """A vector (size,) of finite numbers (StateError)."""
    array = shaped(name, values, size)
    if not np.isfinite(array).all():
        raise StateError(f"{name} is {array.tolist()}, must be finite")
    return array
