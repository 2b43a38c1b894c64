"""Times of the points of a plan."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

SWITCH_S = 1e-4
"""Distance of the two points around a lift-off or touchdown: the last of one phase, with its
acceleration, and the first of the next, so that interpolation does not mix the phases."""


def knots(
    start_s: float,
    horizon_s: float,
    grid_s: float,
    switches_s: Iterable[float],
    extra_s: Iterable[float] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Times of the points, and times that say on which side of a switch each point lies.

    An even grid over the horizon, the times in `extra_s`, and two points at each switch, in place
    of grid points nearby. A switch within two SWITCH_S of the start counts as past.
    """
    end_s = start_s + horizon_s
    first_s = start_s + 2.0 * SWITCH_S
    count = max(round(horizon_s / grid_s), 1)
    grid = np.linspace(start_s, end_s, count + 1)
    switches = np.unique(np.round([t for t in switches_s if first_s < t < end_s - SWITCH_S], 7))
    fixed = np.concatenate([switches - SWITCH_S, switches])
    extra = np.array([t for t in extra_s if first_s < t < end_s])
    inner = np.concatenate([grid[1:-1], extra])
    if len(fixed):
        distance = np.min(np.abs(inner[:, None] - fixed), axis=1)
        inner = inner[distance > 0.25 * grid_s]
    times = np.sort(np.concatenate([[start_s, end_s], inner, fixed]))
    times = times[np.concatenate([[True], np.diff(times) > 1e-6])]
    pick = times + 0.5 * SWITCH_S
    pick[0] = first_s
    return times, pick
