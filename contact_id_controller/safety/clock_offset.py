"""Lower bound on how far the stamps of states are ahead of the clock, from their ages.

    age = transport of the message + delay of this process - lead of the stamps

The first two are never negative: a negative age proves a lead of at least that size, whatever the load of this
computer. A positive age proves nothing; the least age of a window is reported.
"""

from __future__ import annotations

import math

WINDOW_NS = 1_000_000_000
"""Length of a window, by the stamps."""

WARNED_PERIODS, REFUSED_PERIODS = 1.0, 5.0
"""Leads of the stamps, in periods, that are reported, and with which states are refused for trajectories.

The robot's side plays trajectories by their stamps. Until the first point it interpolates from the measured
state and its last torque, anew with each one: n periods ahead its gains never act, and torques lag n periods.
"""


class ClockOffset:
    """The least age of states by the node's clock, in each window.

    Args:
        warned_s: lead of the stamps that is reported.

    Attributes:
        least_age_s: in the last complete window, s; negative: stamps are ahead of the clock. NaN before.
        warned_s: see above.
    """

    def __init__(self, warned_s: float = math.inf) -> None:
        self.least_age_s, self.warned_s = math.nan, warned_s
        self._least_s, self._until_ns = math.inf, 0
        self._reported = False

    def see(self, time_ns: int, age_s: float) -> None:
        """Note a state with this stamp and age."""
        if time_ns >= self._until_ns or time_ns < self._until_ns - WINDOW_NS:
            if self._until_ns:
                self.least_age_s = self._least_s
            self._least_s, self._until_ns = math.inf, time_ns + WINDOW_NS
        self._least_s = min(self._least_s, age_s)

    @property
    def words(self) -> str:
        """A warning about stamps ahead of the clock; empty: none."""
        if not -self.least_age_s > self.warned_s:
            return ""
        return (
            f"stamps of states are {-1e3 * self.least_age_s:.3g} ms ahead of the clock or more: they are of another "
            "clock, and trajectories would be played late"
        )

    def news(self) -> str:
        """The warning, once when it begins; else empty."""
        words, before = self.words, self._reported
        self._reported = bool(words)
        return "" if before else words
