"""For how long a process really listened: what it slept through is nobody's silence."""

from __future__ import annotations

LONGEST_S = 0.01
"""Longest time between two looks of a process that is awake: a wait for messages and a step."""


class Attention:
    """Counts the time in which a process could not have noticed a message.

    Without ``look`` that is none: then whoever calls is the one who knows the time.

    Attributes:
        slept_s: so long it was stopped, or busy with other things, since the first look.
    """

    def __init__(self) -> None:
        self.slept_s = 0.0
        self._last_s: float | None = None

    def look(self, now_s: float) -> None:
        """A message that has come can be noticed now, by a clock that never jumps."""
        if self._last_s is not None:
            beyond_s = now_s - self._last_s - LONGEST_S
            if beyond_s > 0.0:
                self.slept_s += beyond_s
        self._last_s = now_s


LARGEST_CHANGE = 10.0
"""Times the pace that a single interval may count: a pause is no pace."""

SLOWEST = 100.0
"""Times slower than the clock: what goes slower stands, and may go on at any time."""

SLOWEST_CHANGE = 0.02
"""Part of a new interval in the pace, more at the beginning: one late state is no slow time."""


class Pace:
    """How much slower than the clock the robot's time goes: a simulation need not keep up.

    Attributes:
        factor: seconds of the clock in one of the stamps, 1 to ``SLOWEST``.
    """

    def __init__(self) -> None:
        self.factor = 1.0
        self._mean, self._count = 1.0, 0
        self._last: tuple[float, float] | None = None

    def state(self, stamp_s: float, now_s: float) -> None:
        """A state with this stamp has come at a time of a clock that never jumps."""
        if self._last is not None and stamp_s > self._last[0]:
            ratio = (now_s - self._last[1]) / (stamp_s - self._last[0])
            self._count += 1
            weight = max(SLOWEST_CHANGE, 1.0 / self._count)
            ratio = min(ratio, LARGEST_CHANGE * self._mean, SLOWEST)
            self._mean += weight * (ratio - self._mean)
            self.factor = max(1.0, self._mean)
        self._last = stamp_s, now_s
