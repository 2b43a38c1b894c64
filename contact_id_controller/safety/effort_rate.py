"""Limits the rate of change of torques."""

from __future__ import annotations

import numpy as np


class EffortRate:
    """Limits how fast torques change, starting from zero.

    Args:
        rates_nm_s: largest rate of each joint's torque, (n,), N·m/s; infinite: no limit.
    """

    def __init__(self, rates_nm_s: np.ndarray) -> None:
        self._rates = np.asarray(rates_nm_s, dtype=float)
        self._finite = np.isfinite(self._rates)
        self._reach = np.full(len(self._rates), np.inf)
        self._sent, self._sent_s = np.zeros(len(self._rates)), np.nan
        self.slowed = 0
        """Number of commands that were limited."""

    def limited(self, torques: np.ndarray, now_s: float) -> np.ndarray:
        """Limit torques (n,), or (1, n), N·m, to what the rate allows at ``now_s``; they count as sent."""
        passed_s = now_s - self._sent_s
        self._reach[self._finite] = self._rates[self._finite] * (
            passed_s if passed_s > 0.0 else 0.0
        )
        within = np.clip(torques, self._sent - self._reach, self._sent + self._reach)
        self.slowed += not np.array_equal(within, torques)
        self.sent(within, now_s)
        return within

    def sent(self, torques: np.ndarray, now_s: float) -> None:
        """Note torques (n,), or (1, n), that were sent at ``now_s``."""
        self._sent[:], self._sent_s = torques.reshape(-1, len(self._sent))[0], now_s
