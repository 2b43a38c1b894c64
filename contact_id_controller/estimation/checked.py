"""Vectors as they come from outside, refused where they cannot be right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.exceptions import StateError

ALL = slice(None)


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


def put(name: str, values: Any, place: Any) -> None:
    """Copy a vector to its place, the memory (``data``) of as many doubles: in half the time of an array's slice.

    Nothing but a vector of that length and of doubles passes it as it is.

    Raises:
        StateError: another length, or no numbers.
    """
    try:
        place[ALL] = values
    except (TypeError, ValueError):
        place[ALL] = np.array(shaped(name, values, len(place)), order="C")
