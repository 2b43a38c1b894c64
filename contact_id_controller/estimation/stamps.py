"""Distinguishes a wrong stamp from a clock that was set."""

from __future__ import annotations

FARTHEST_S = 0.1
"""From one stamp to the next; farther is silence or another clock."""

BACK_S = 0.01
"""Messages may overtake each other by so much."""

AGREEING = 3
"""So many stamps in a row that follow each other are of the clock from now on."""


class StampFilter:
    """Follows the stamps of one sender: a single bad one is ignored, a lasting change is followed.

    Args:
        farthest_s: from one stamp to the next, s, of a sender that goes on.

    Attributes:
        ignored: how many stamps have been.  moved: whether the last one accepted is by another clock, or after
            silence.
    """

    def __init__(self, farthest_s: float = FARTHEST_S) -> None:
        self._farthest_s = farthest_s
        self.ignored, self.moved = 0, False
        self.begin()

    def begin(self) -> None:
        """The next stamp may be any."""
        self._last_s: float | None = None
        self._candidate_s, self._agreeing = 0.0, 0

    def accepts(self, stamp_s: float) -> bool:
        """Whether a message of this stamp, s, may be used; call once for each message."""
        last_s = self._last_s
        self.moved = False
        if last_s is not None and not -BACK_S <= stamp_s - last_s <= self._farthest_s:
            agrees = self._agreeing and 0.0 <= stamp_s - self._candidate_s <= self._farthest_s
            self._agreeing, self._candidate_s = self._agreeing + 1 if agrees else 1, stamp_s
            if self._agreeing < AGREEING:
                self.ignored += 1
                return False
            self.moved = True
        self._last_s, self._agreeing = stamp_s, 0
        return True
