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
            self.slept_s += max(now_s - self._last_s - LONGEST_S, 0.0)
        self._last_s = now_s
