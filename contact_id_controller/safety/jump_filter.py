"""Distinguishes motion from jumps: outliers are refused, a new place that several measurements confirm is accepted."""

from __future__ import annotations

import abc

import numpy as np

AGREEING = 3
"""Number of measurements in a row that must agree on a new place."""

KNOWN, TIME_NS, AGREES = range(3)
"""Fields of a mark: whether there is a place, its stamp, and how many measurements in a row agree on another one."""


class JumpFilter(abc.ABC):
    """Follows measurements of places and velocities.

    Args:
        size: number of values of a measurement.

    Attributes:
        place: (size,) the last measurement that was accepted.  mark: (3,) of it. Both arrays stay the same objects;
            `states.examine` writes into them, too.
    """

    def __init__(self, size: int):
        self.place, self._candidate = np.zeros(size), np.zeros(size)
        self.mark = np.zeros(3, dtype=np.int64)
        self.reset()

    def reset(self) -> None:
        """Accept any place next."""
        self.mark[:] = 0
        self._candidate_ns = 0

    @abc.abstractmethod
    def _away(self, place: np.ndarray, row: np.ndarray, dt: float) -> str:
        """Why ``row`` is not where ``place``, ``dt`` s older, leads; empty: it is."""

    def judge(self, row: np.ndarray, stamp_ns: int) -> tuple[str, bool]:
        """Check a measurement (size,); an accepted one is copied into ``place``.

        Returns why it is refused (empty: it is not), and whether it is accepted at a new place.
        """
        known, last_ns, _ = self.mark.tolist()
        away = self._away(self.place, row, 1e-9 * (stamp_ns - last_ns)) if known else ""
        moved = bool(away) and self._is_confirmed(row, stamp_ns)
        if away and not moved:
            return away, False
        self.place[:] = row
        self.mark[:] = 1, stamp_ns, 0
        return "", moved

    def _is_confirmed(self, row: np.ndarray, stamp_ns: int) -> bool:
        """Whether this measurement and enough before it, in a row, agree on a new place."""
        if stamp_ns != self._candidate_ns:
            agrees = self.mark[AGREES] and not self._away(
                self._candidate, row, 1e-9 * (stamp_ns - self._candidate_ns)
            )
            self.mark[AGREES] = self.mark[AGREES] + 1 if agrees else 1
            self._candidate[:] = row
            self._candidate_ns = stamp_ns
        return bool(self.mark[AGREES] >= AGREEING)
