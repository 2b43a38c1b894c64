"""Checks of the points of every planned motion; each failure is a TrajectoryError."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.robot import real_array


def checked_times(times_s: ArrayLike) -> np.ndarray:
    """Times (m,) of a trajectory's points, s from its start: finite, not negative, increasing."""
    times = np.array(real_array("times of the points", times_s, TrajectoryError))
    if times.ndim != 1 or times.size == 0:
        raise TrajectoryError(f"trajectory has no points (times of shape {times.shape})")
    if not np.isfinite(times).all() or times[0] < 0.0:
        raise TrajectoryError(
            f"times of the points must be finite and not negative, got {times[0]:g} to {times[-1]:g} s"
        )
    late = times[1:] <= times[:-1]
    if late.any():
        k = int(late.argmax())
        raise TrajectoryError(
            f"times of the points must increase: point {k + 1} is at {times[k + 1]:g} s, "
            f"point {k} at {times[k]:g} s"
        )
    return times


def checked_array(name: str, values: ArrayLike, shape: tuple[int, int]) -> np.ndarray:
    """Finite numbers of that shape."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TrajectoryError(f"{name} are not {shape[0]} points of {shape[1]} numbers") from error
    if array.shape != shape:
        raise TrajectoryError(f"{name} have shape {array.shape}, must have {shape}")
    if not np.isfinite(array).all():
        raise TrajectoryError(f"{name} hold a number that is not finite")
    return array


def checked_start(start_s: float | None) -> float | None:
    """Start time of a trajectory, s: finite and not negative; None: when it arrives."""
    if start_s is None:
        return None
    if not np.isfinite(start_s) or start_s < 0.0:
        raise TrajectoryError(f"start is {start_s} s, must be finite and not negative")
    return float(start_s)


_Part = TypeVar("_Part", bound=Any)


def started(part: _Part, now_s: float) -> _Part:
    """A part of a plan as followed when it arrives at ``now_s``: one without a start starts then."""
    if part.start_s is not None:
        return part
    part = copy.copy(part)
    part.start_s = now_s
    return part
