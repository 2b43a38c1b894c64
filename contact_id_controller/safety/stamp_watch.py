"""Distinguishes a jump of the robot's time from one wrong stamp: the state after a jump confirms it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

AHEAD_NS, FASTEST = 10_000_000, 2.0
"""Largest increase of the stamps that no time explains (states that arrive together, at 200 Hz two), and how many times
the time that passed explains: a simulation may be faster."""

LONGEST_SILENCE_S = 60.0
"""Longest time without states, s, that alone explains an increase."""

CONFIRMS_NS = 1_000_000_000
"""Largest difference of two stamps of which one confirms the other. The same stamp again is a copy and confirms none."""

MOST_USUAL_NS, FORGETS = 500_000_000, 0.95
"""Largest usual distance of stamps beyond the time that passed, and what is left of the largest recent one after each
further state: rare or uneven states are usual; a pause soon is not, nor is a confirmed jump unless one comes again."""


class StampWatch:
    """Judges stamps by the time that has passed, and by each other.

    Args:
        back_ns: largest step back of the stamps that is no jump.
        ahead_ns: largest increase that no time explains; or twice the largest recent one.

    Attributes:
        passed_s: returns the time since the last state, s; by default since `believes` last believed a stamp.
    """

    def __init__(self, back_ns: int = 0, ahead_ns: int = AHEAD_NS) -> None:
        self.ahead_ns, self._back_ns = ahead_ns, back_ns
        self.passed_s: Callable[[], float] = lambda: time.monotonic() - self._taken_s
        self._last_ns: int | None = None
        self._taken_s = time.monotonic()
        self.forget()

    def forget(self) -> None:
        """Forget a stamp that waits to be confirmed, and how rare states were."""
        self._jumped_ns: int | None = None
        self._usual_ns = self._gap_ns = 0.0

    def follows(self, stamp_ns: int, step_ns: int) -> bool:
        """Whether a stamp follows the last one, step_ns before it, or confirms a jump."""
        if 0 <= step_ns <= self.ahead_ns:
            self._jumped_ns, self._usual_ns = None, FORGETS * self._usual_ns
            self._gap_ns *= FORGETS
            return True
        passed_s, jumped_ns = self.passed_s(), self._jumped_ns
        if passed_s < math.inf:
            passed_s = min(FASTEST * passed_s, LONGEST_SILENCE_S)
        passed_ns = 1e9 * passed_s
        follows = -self._back_ns <= step_ns <= max(self.ahead_ns, 2.0 * self._usual_ns) + passed_ns
        after_ns = 0 if jumped_ns is None else stamp_ns - jumped_ns
        if follows or 0 < after_ns <= CONFIRMS_NS:
            usual_ns: float = step_ns
            self._gap_ns *= FORGETS
            if not follows:
                usual_ns, self._gap_ns = max(after_ns, min(step_ns, self._gap_ns)), step_ns
            self._usual_ns = max(min(usual_ns - passed_ns, MOST_USUAL_NS), FORGETS * self._usual_ns)
            self._jumped_ns = None
            return True
        self._jumped_ns = stamp_ns
        return False

    def believes(self, stamp_ns: int) -> bool:
        """Whether a stamp follows the last one that was believed, or confirms a jump."""
        if self._last_ns is not None and not self.follows(stamp_ns, stamp_ns - self._last_ns):
            return False
        self._last_ns, self._taken_s = stamp_ns, time.monotonic()
        return True
