"""Tells what moves from what jumps: outliers are refused, a place that stays is taken."""

from __future__ import annotations

import abc

import numpy as np

AGREEING = 3
"""So many measurements in a row that agree with each other are the new place."""


class JumpFilter(abc.ABC):
    """Follows measurements that say where something is and how it moves.

    Args:
        size: numbers of a measurement.
    """

    def __init__(self, size: int):
        self._place, self._candidate = np.zeros(size), np.zeros(size)
        self.reset()

    def reset(self) -> None:
        """The next measurement may be anywhere."""
        self._place_ns: int | None = None
        self._candidate_ns = 0
        self._agreeing = 0

    @abc.abstractmethod
    def _away(self, place: np.ndarray, row: np.ndarray, dt: float) -> str:
        """Why a measurement is not where an older one, by ``dt`` s, leads; empty: it is."""

    def judge(self, row: np.ndarray, stamp_ns: int) -> tuple[str, bool]:
        """Judge a measurement (size,); it is copied.

        Returns why it is refused (empty: it is not), and whether it is accepted at a new place.
        """
        last_ns = self._place_ns
        away = "" if last_ns is None else self._away(self._place, row, 1e-9 * (stamp_ns - last_ns))
        moved = bool(away) and self._is_confirmed(row, stamp_ns)
        if away and not moved:
            return away, False
        self._place[:] = row
        self._place_ns, self._agreeing = stamp_ns, 0
        return "", moved

    def _is_confirmed(self, row: np.ndarray, stamp_ns: int) -> bool:
        """Whether enough measurements in a row, this is the last, agree on a new place."""
        if stamp_ns != self._candidate_ns:
            agrees = self._agreeing and not self._away(
                self._candidate, row, 1e-9 * (stamp_ns - self._candidate_ns)
            )
            self._agreeing = self._agreeing + 1 if agrees else 1
            self._candidate[:] = row
            self._candidate_ns = stamp_ns
        return self._agreeing >= AGREEING
