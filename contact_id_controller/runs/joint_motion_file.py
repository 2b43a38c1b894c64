"""A joint motion in a parameter file, for a robot that does not walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.plans.trajectories import JointTrajectory

SECTION = "joint_motion"
NAMES = ("times_s", "positions")


def joint_motion(values: Mapping[str, Any], joint_names: Sequence[str]) -> JointTrajectory:
    """The trajectory of a section ``joint_motion``: from rest through all points to rest.

    Joints reverse only at points: between two points they stay within their range.
    Accelerations are continuous, and zero at the points.

    Args:
        values: ``times_s`` (p,), s, increasing, the first may be 0; ``positions`` (p * j), rad or
            m, one row of joints after the other.
        joint_names: the j joints, in the order of the rows.

    Raises:
        ConfigurationError: unknown or missing names, or numbers that are not p rows of j.
        TrajectoryError: times that do not increase.
    """
    unknown = [name for name in values if name not in NAMES]
    if unknown or any(name not in values for name in NAMES):
        raise ConfigurationError(
            f"section '{SECTION}' must have {' and '.join(NAMES)}, "
            f"has {', '.join(map(str, values)) or 'nothing'}"
        )
    try:
        times, positions = (np.array(values[name], dtype=float) for name in NAMES)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"section '{SECTION}' has a value that is no number") from error
    if times.ndim != 1 or positions.shape != (times.size * len(joint_names),):
        raise ConfigurationError(
            f"'positions' of section '{SECTION}' has {positions.size} values, must have "
            f"{times.size} rows of {len(joint_names)}, one per joint"
        )
    rows = positions.reshape(len(times), -1)
    trajectory = JointTrajectory(joint_names, times, rows)  # refuses times that do not increase
    velocities = _velocities(trajectory.times_s, rows)
    return JointTrajectory(joint_names, times, rows, velocities, 0.0 * rows)


def _velocities(times: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Harmonic mean of the slopes on both sides, (p, j); zero where a joint reverses, and at the ends.

    At most twice the smaller slope: a quintic between zero accelerations is then monotonic.
    """
    result = np.zeros_like(rows)
    slopes = np.diff(rows, axis=0) / np.diff(times)[:, None]
    before, after = slopes[:-1], slopes[1:]
    onward = before * after > 0.0
    result[1:-1][onward] = (2.0 * before * after)[onward] / (before + after)[onward]
    return result
