"""Contact detection by geometry, by schedule, by measurement, or by agreement of two of them."""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.step_kernels import (
    BY_GEOMETRY,
    BY_MEASUREMENT,
    BY_SCHEDULE,
    agreed_contacts,
)
from contact_id_controller.estimation.contact_detector import ContactDetector
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.controller_rows import ESTIMATE, MEASURED

BITS = {
    "geometry": BY_GEOMETRY,
    "schedule": BY_SCHEDULE,
    ESTIMATE: BY_GEOMETRY | BY_SCHEDULE,
    **dict.fromkeys(MEASURED, BY_MEASUREMENT),
}
NO_FEET = np.zeros(0, dtype=bool)

TIMEOUT_S = 0.05
"""Age after which a measured contact is stale: some periods of slow contact sensors."""

DEBOUNCE_S = 0.005
"""Time for which a measured change of force must last: some samples of a noisy foot sensor. Published contact states
count with the second message, as their publisher has decided already."""

OFF_SHARE = 0.4  # of the force that makes a contact, below which it ends: hysteresis
SMALLEST_SHARE = 1e-3  # of load, at the first and last instant of a ramped contact


class ContactSources:
    """Contact set of each period, and the load share of each contact.

    Measurements are of a foot, and apply to all its contacts.

    Args:
        foot: (n,) number of the foot that each contact is part of.

    Attributes:
        bits: active sources, ``BITS``.  since_s: (n,) s, start of each contact, if ramped.
        last: (n,) bool, the contacts of the period before.
    """

    def __init__(self, foot: np.ndarray, settings: ControllerSettings):
        count = len(foot)
        self.detector = ContactDetector(int(foot.max(initial=-1)) + 1)
        self._foot = foot
        self.since_s = np.full(count, -np.inf)
        self.last = np.zeros(count, dtype=bool)
        self._share = np.ones(count)
        self.apply(settings)

    def apply(self, settings: ControllerSettings) -> None:
        """Apply new parameters; measurements are kept."""
        detector = self.detector
        detector.on_n = settings.contact_force_on_n
        detector.off_n = OFF_SHARE * detector.on_n
        detector.debounce_s = DEBOUNCE_S if settings.measured == "force" else 0.0
        detector.timeout_s = TIMEOUT_S
        self._gap_m, self._ramp_s = settings.contact_gap_m, settings.force_ramp_s
        self.bits = 0
        for source in settings.contact_sources:
            self.bits |= BITS[source]

    def take_over(self, other: ContactSources) -> None:
        """Continue with the state of another one of the same contacts."""
        self.detector = other.detector
        self.since_s[:], self.last[:] = other.since_s, other.last

    def measured(self, time_s: float) -> np.ndarray:
        """Measured contacts (n,) bool; (0,) if measurement is no source."""
        if not self.bits & BY_MEASUREMENT:
            return NO_FEET
        return self.detector.at(time_s)[self._foot]

    def contacts(self, time_s: float, gaps_m: np.ndarray, planned: np.ndarray) -> np.ndarray:
        """Contacts (n,) bool on which all sources agree.

        gaps_m (n,): distances from the ground. planned (n,) bool: in contact by the schedule.
        """
        contact = np.empty(len(self._foot), dtype=bool)
        agreed_contacts(
            gaps_m,
            self._gap_m,
            planned,
            self.bits,
            self.measured(time_s),
            time_s,
            self._ramp_s,
            self.since_s,
            self.last,
            contact,
        )
        return contact

    def begin(self) -> None:
        """Treat the contacts of the next call as established: no ramp at the start."""
        self.last[:] = True
        self.since_s[:] = -np.inf

    def load_share(self, time_s: float, leaves_in_s: np.ndarray | None) -> np.ndarray | None:
        """Load share (n,) in (0, 1] of each contact; None if all are 1.

        leaves_in_s (n,): time until each frame's scheduled lift-off, infinite if unknown.
        """
        if self._ramp_s == 0.0:
            return None
        share = self._share
        np.divide(time_s - self.since_s, self._ramp_s, out=share)
        if leaves_in_s is not None:
            np.minimum(share, leaves_in_s / self._ramp_s, out=share)
        np.clip(share, SMALLEST_SHARE, 1.0, out=share)
        return share
