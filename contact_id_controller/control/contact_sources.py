"""Which frames are in contact, by geometry, by schedule, by measurement, or by two that agree."""

from __future__ import annotations

import numpy as np

from contact_id_controller.settings.controller import ControllerSettings

SMALLEST_SHARE = 1e-3  # of load, at the first and last instant of a ramped contact


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


class ContactSources:
    """The contact set of each period, and how much load each contact should take.

    Args:
        count: number of contact frames, n.
    """

    def __init__(self, count: int, settings: ControllerSettings):
        self.detector = ContactDetector(count)
        self._since_s = np.full(count, -np.inf)
        self._last = np.zeros(count, dtype=bool)
        self._share = np.ones(count)
        self.apply(settings)

    def apply(self, settings: ControllerSettings) -> None:
        """Take over the parameters; what was measured is kept."""
        detector = self.detector
        detector.on_n, detector.off_n = settings.contact_force_on_n, settings.contact_force_off_n
        detector.debounce_s = settings.contact_debounce_s
        detector.timeout_s = settings.contact_timeout_s
        self._gap_m, self._ramp_s = settings.contact_gap_m, settings.force_ramp_s
        self._sources = settings.contact_sources
        self.by_geometry = "geometry" in self._sources
        """Whether the distances from the ground are believed."""

    def contacts(self, time_s: float, gaps_m: np.ndarray, planned: np.ndarray) -> np.ndarray:
        """Frames in contact, (n,) bool, on which all sources agree.

        gaps_m (n,): distances from the ground. planned (n,) bool: which stand by the schedule.
        """
        contact = None
        for source in self._sources:
            if source == "geometry":
                agreed = gaps_m <= self._gap_m
            elif source == "schedule":
                agreed = planned
            else:
                agreed = self.detector.at(time_s)
            contact = agreed.copy() if contact is None else contact & agreed
        if self._ramp_s:
            self._since_s[contact & ~self._last] = time_s
        self._last = contact
        return contact

    def begin(self) -> None:
        """The contacts of the next call are old ones: no ramp at the start."""
        self._last[:] = True
        self._since_s[:] = -np.inf

    def load_share(self, time_s: float, leaves_in_s: np.ndarray | None) -> np.ndarray | None:
        """Share of load (n,) in (0, 1] of each contact, or None where every share is 1.

        leaves_in_s (n,): time until each frame's scheduled lift-off, infinite where none is known.
        """
        if self._ramp_s == 0.0:
            return None
        share = self._share
        np.divide(time_s - self._since_s, self._ramp_s, out=share)
        if leaves_in_s is not None:
            np.minimum(share, leaves_in_s / self._ramp_s, out=share)
        np.clip(share, SMALLEST_SHARE, 1.0, out=share)
        return share
