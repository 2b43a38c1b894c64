"""How far the stamps of states are ahead of the clock, as far as their ages prove it.

    age = way of the message + delay of this process - lead of the stamps

The first two are never negative: a state that is younger than now is stamped ahead by at least so much,
whatever the load of this computer. An age above zero proves nothing; the least one of a window is reported.
"""

from __future__ import annotations

import math

WINDOW_NS = 1_000_000_000
"""Time of the states over which the least age is taken."""

WARNED_PERIODS, REFUSED_PERIODS = 1.0, 5.0
"""Leads of the stamps that are reported, and with which no trajectory is sent.

The robot's side plays trajectories by their stamps. Until the first point it interpolates from the measured
state and its last torque, anew with each one: n periods ahead its gains never act, and torques lag n periods.
"""


class ClockOffset:
    """The least age of states by the clock of the node, window by window.

    Args:
        warned_s: lead of the stamps that is worth a line.

    Attributes:
        least_age_s: in the last full window, s; negative: stamps are ahead of the clock. NaN before.
        warned_s: see above.
    """

    def __init__(self, warned_s: float = math.inf) -> None:
        self.least_age_s, self.warned_s = math.nan, warned_s
        self._least_s, self._until_ns = math.inf, 0
        self._reported = False

    def see(self, time_ns: int, age_s: float) -> None:
        """A state of this stamp is taken at this age."""
        if time_ns >= self._until_ns or time_ns < self._until_ns - WINDOW_NS:
            if self._until_ns:
                self.least_age_s = self._least_s
            self._least_s, self._until_ns = math.inf, time_ns + WINDOW_NS
        self._least_s = min(self._least_s, age_s)

    @property
    def words(self) -> str:
        """What is to be said of the stamps; empty: nothing."""
        if not -self.least_age_s > self.warned_s:
            return ""
        return (
            f"stamps of states are {-1e3 * self.least_age_s:.3g} ms ahead of the clock or more: two clocks, "
            "which trajectories do not bear"
        )

    def news(self) -> str:
        """The words, once when they begin; empty else."""
        words, before = self.words, self._reported
        self._reported = bool(words)
        return "" if before else words
