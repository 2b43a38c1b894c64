"""Progress and outcome of a simulation, as text for the log."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

INTERVAL_S = 5.0
"""Wall time between two lines."""


class SimulationProgress:
    """Text about a simulation while it runs, and at its end.

    Args:
        duration_s: simulated time after which it ends; 0: never.
        base_m: (3,) initial position of a floating base, m; None: the base is fixed.
    """

    def __init__(
        self,
        duration_s: float,
        base_m: np.ndarray | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._duration_s, self._clock = duration_s, clock
        self._begin_m = None if base_m is None else np.array(base_m)
        self._last: tuple[float, float] | None = None

    def line(self, simulated_s: float) -> str:
        """A line about the progress, every ``INTERVAL_S``; empty in between."""
        now_s = self._clock()
        if self._last is None:
            self._last = now_s, simulated_s
        passed_s = now_s - self._last[0]
        if passed_s < INTERVAL_S:
            return ""
        pace = (simulated_s - self._last[1]) / passed_s
        self._last = now_s, simulated_s
        total = f" of {self._duration_s:g}" if self._duration_s > 0.0 else ""
        left_s = (self._duration_s - simulated_s) / pace if total and pace > 0.0 else 0.0
        left = f", {left_s:.0f} s left" if left_s > 0.0 else ""
        return f"simulated {simulated_s:.1f}{total} s, {pace:.2f} x real time{left}"

    def outcome(self, base_m: np.ndarray, fell_s: float | None) -> str:
        """Whether the robot fell, or how far its base, (3,) m, has moved; empty for a fixed base."""
        if self._begin_m is None:
            return ""
        if fell_s is not None:
            return f", the robot fell at {fell_s:.3f} s"
        way_m = float(np.linalg.norm(np.asarray(base_m[:2]) - self._begin_m[:2]))
        return f", the robot on its feet {way_m:.2f} m from its start"
