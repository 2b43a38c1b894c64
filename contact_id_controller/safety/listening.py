"""Whether good states still come, by the time in which this process could have taken one."""

from __future__ import annotations

import math

LONGEST_S = 0.01
"""Longest time between two looks of a process that is awake: a wait for messages and a step."""


class Listening:
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


NO_STATE = "no joint state"
"""What is wrong before the first one."""


class GoodStates:
    """When the last good state came, and whether the next one is overdue.

    Times are of a clock that never jumps, but ``stamp_s``.

    Attributes:
        timeout_s: longest time between two good states, s.
        simulated_time: whether stamps are of a time that may go slower than the clock.
        last_s: when the last one came; -inf: none since the beginning.  stamp_s: its own time.
        velocity_s: when a velocity was measured last that may be damped.
        trouble: why the last bad state was one.
        slower: seconds of the clock in one of the states' time.
        slept_between_s: of the time between the last two, that in which no state could have been taken.
        listening: what counts it.
    """

    def __init__(self) -> None:
        self.timeout_s, self.simulated_time = math.inf, False
        self.slower, self.slept_between_s = 1.0, 0.0
        self.velocity_s = -math.inf
        self.stamp_s: float | None = None
        self.listening, self._pace, self._slept_s = Listening(), Pace(), 0.0
        self.forget()

    def forget(self) -> None:
        """None came."""
        self.last_s, self.trouble = -math.inf, NO_STATE

    def came(self, stamp_s: float, now_s: float) -> None:
        """A good state of this time has come."""
        self.last_s, self.stamp_s = now_s, stamp_s
        if self.simulated_time:
            self._pace.state(stamp_s, now_s)
            self.slower = self._pace.factor
        slept_s = self.listening.slept_s
        self.slept_between_s = (slept_s - self._slept_s) / self.slower
        self._slept_s = slept_s

    def overdue_in_s(self, now_s: float) -> float:
        """So long the next one may still take; negative: it is overdue."""
        slept_s = self.listening.slept_s - self._slept_s
        return self.timeout_s * self.slower - (now_s - self.last_s - slept_s)
