"""Contact from measured forces or states, with hysteresis and debounce."""

from __future__ import annotations

import numpy as np


class ContactDetector:
    """Measured contact with hysteresis and debounce, for n frames.

    A frame comes into contact when its force exceeds `on_n` and leaves it below `off_n`; either
    counts only when it has lasted `debounce_s`. A measurement older than `timeout_s` is none, and
    so is one from the future: time has begun anew since.
    """

    def __init__(self, count: int):
        self.on_n = self.off_n = self.debounce_s = 0.0
        self.timeout_s = np.inf
        self.contact = np.zeros(count, dtype=bool)
        self._raw = np.zeros(count, dtype=bool)
        self._since_s = np.full(count, -np.inf)
        self._seen_s = np.full(count, -np.inf)

    def take_forces(self, forces_n: np.ndarray, time_s: float) -> None:
        """Take sizes of measured forces (n,), N; NaN: not measured now."""
        raw = np.where(self._raw, forces_n >= self.off_n, forces_n > self.on_n)
        self._take(raw, np.isfinite(forces_n), time_s)

    def take_states(self, states: np.ndarray, time_s: float) -> None:
        """Take measured states (n,), 1 for contact, 0 for none; NaN: not measured now."""
        self._take(states >= 0.5, np.isfinite(states), time_s)

    def _take(self, raw: np.ndarray, seen: np.ndarray, time_s: float) -> None:
        changed = seen & (raw != self._raw)
        self._since_s[changed] = time_s
        self._raw[seen] = raw[seen]
        self._seen_s[seen] = time_s

    def knows_any(self, time_s: float) -> bool:
        """Whether any frame has been measured of late."""
        age = time_s - self._seen_s
        return bool(((age >= 0.0) & (age <= self.timeout_s)).any())

    def at(self, time_s: float) -> np.ndarray:
        """Contact (n,) bool at `time_s`; a view that the next call overwrites."""
        lasted = time_s - self._since_s
        settled = (lasted >= self.debounce_s) | (lasted < 0.0)
        np.copyto(self.contact, self._raw, where=settled)
        age = time_s - self._seen_s
        self.contact[(age > self.timeout_s) | (age < 0.0)] = False
        return self.contact
