"""How late commands were before a fall in real time, as text for the log."""

from __future__ import annotations

LATELY_S = 1.0
"""Time before a fall in which its cause is looked for."""

HARMLESS_S = 0.005
"""Longest time without a new command that a walk tolerates."""


class Lateness:
    """How long a robot was recently without a new command.

    Args:
        period_s: of the robot, s.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s, self._periods = period_s, 0
        self._without = self._missed = 0
        self._longest, self._ended = 0, 0

    def period(self, commanded: bool) -> None:
        """Note a period, with a new command or without."""
        self._periods += 1
        self._without = 0 if commanded else self._without + 1
        self._missed += not commanded
        long_ago = self._periods - self._ended > LATELY_S / self._period_s
        if self._without >= self._longest or long_ago:
            self._longest, self._ended = self._without, self._periods

    def words(self) -> str:
        """The longest recent time without a command, and what to do; empty if commands were in time."""
        longest_s = self._longest * self._period_s
        if longest_s < HARMLESS_S:
            return ""
        return (
            f": in the last {LATELY_S:g} s no new command arrived for up to {1e3 * longest_s:.0f} ms "
            f"({self._missed} of {self._periods} periods had none), controller or machine were late; "
            "set mode lockstep, a smaller real_time_factor, or command_interface joint_trajectory"
        )
