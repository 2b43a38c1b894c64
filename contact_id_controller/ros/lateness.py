"""How late commands are, in words: what a fall in real time may come from."""

from __future__ import annotations

LATELY_S = 1.0
"""Before a fall, in which what it comes from has happened."""

HARMLESS_S = 0.005
"""A walk bears torques that are held for so long."""


class Lateness:
    """How long a robot was without a new command, of late.

    Args:
        period_s: of the robot, s.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s, self._periods = period_s, 0
        self._without = self._missed = 0
        self._longest, self._ended = 0, 0

    def period(self, commanded: bool) -> None:
        """A period begins, with a new command or without."""
        self._periods += 1
        self._without = 0 if commanded else self._without + 1
        self._missed += not commanded
        long_ago = self._periods - self._ended > LATELY_S / self._period_s
        if self._without >= self._longest or long_ago:
            self._longest, self._ended = self._without, self._periods

    def words(self) -> str:
        """What a fall of now may come from, and what to do; empty where commands came in time."""
        longest_s = self._longest * self._period_s
        if longest_s < HARMLESS_S:
            return ""
        return (
            f": in the last {LATELY_S:g} s no new command came for up to {1e3 * longest_s:.0f} ms "
            f"({self._missed} of {self._periods} periods had none), controller or machine were late; "
            "take mode lockstep, a smaller real_time_factor, or command_interface joint_trajectory"
        )
