"""Knot times of a plan."""

from __future__ import annotations

import itertools
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
    """Knot times (n,), s, and the times (n,), s, at which to look up each knot's contact mode.

    Knots: an even grid of about ``grid_s``, ``extra_s``, and for each switch (lift-off or touchdown) t the pair
    t - SWITCH_S, in the mode before, and t, in the mode after. Grid and extra times within ``grid_s`` / 4 of a pair are
    dropped. Switches before ``start_s`` + 2 SWITCH_S count as past; from the end - SWITCH_S on they are ignored.
    Look-up times are SWITCH_S / 2 later than the knots, but the first is ``start_s`` + 2 SWITCH_S.
    """
    # In plain floats: numpy takes ten times as long for a handful of numbers.
    end_s = start_s + horizon_s
    first_s = start_s + 2.0 * SWITCH_S
    count = max(round(horizon_s / grid_s), 1)
    switches = {round(t * 1e7) / 1e7 for t in switches_s if first_s < t < end_s - SWITCH_S}
    pairs = sorted([*(t - SWITCH_S for t in switches), *switches])
    step_s = (end_s - start_s) / count
    inner = [k * step_s + start_s for k in range(1, count)]
    inner += [t for t in extra_s if first_s < t < end_s]
    apart_s = 0.25 * grid_s
    inner = [t for t in inner if all(abs(t - other) > apart_s for other in pairs)]
    ordered = sorted([start_s, end_s, *inner, *pairs])
    rest = [t for before, t in itertools.pairwise(ordered) if t - before > 1e-6]
    times = np.array([ordered[0], *rest])
    mode_times = times + 0.5 * SWITCH_S
    mode_times[0] = first_s
    return times, mode_times
