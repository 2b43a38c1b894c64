"""Measured forces and contacts of the feet, kept until the next state."""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.safety.states import Refusal


class MeasuredContacts:
    """Contact measurements of f feet since the last state; they are used from the next state on.

    Attributes:
        came: whether there is a new measurement.  forces_came: whether there are new forces for the next step.
        all_feet: whether these are of all feet.
        needed: whether states are refused while no foot has a recent measurement.
    """

    def __init__(self, feet: int) -> None:
        self.came = self.forces_came = self.all_feet = self.needed = False
        self._forces, self._sizes = np.zeros((feet, 3)), np.full(feet, math.nan)
        self._contacts = np.full(feet, math.nan)
        self._new_sizes = self._new_contacts = False

    def take_forces(self, forces: np.ndarray, seen: np.ndarray) -> None:
        """Keep forces (f, 3), N, world frame, of the feet ``seen`` (f,) bool.

        Raises:
            ContactIdError: arrays of another size.
        """
        if np.shape(forces) != self._forces.shape or np.shape(seen) != self._sizes.shape:
            raise ContactIdError(
                f"contact forces have shape {np.shape(forces)}, must have {self._forces.shape}"
            )
        good = np.isfinite(forces).all(axis=1) & seen
        self._forces[seen] = np.where(good[:, None], forces, 0.0)[seen]
        self._sizes[seen] = np.where(good, np.linalg.norm(forces, axis=1), math.nan)[seen]
        self.all_feet = bool(good.all())
        self._new_sizes = self.came = self.forces_came = True

    def take_states(self, contacts: np.ndarray) -> None:
        """Keep contact (f,), 1 or 0, NaN where not measured.

        Raises:
            ContactIdError: an array of another size.
        """
        if np.shape(contacts) != self._contacts.shape:
            raise ContactIdError(
                f"contacts have shape {np.shape(contacts)}, must have {self._contacts.shape}"
            )
        self._contacts[:] = contacts
        self._new_contacts = self.came = True

    def pass_on(self, controller: Controller, time_s: float) -> Refusal | None:
        """Pass new measurements to the contact detector; refuse the state if they are required and none is recent.

        Without them no foot would be in contact, and the legs would be commanded as in flight.
        """
        detector = controller.sources.detector
        if self._new_sizes:
            detector.take_forces(self._sizes, time_s)
            self._sizes[:] = math.nan
        if self._new_contacts:
            detector.take_states(self._contacts, time_s)
        self._new_sizes = self._new_contacts = self.came = False
        if not self.needed or detector.knows_any(time_s):
            return None
        return Refusal(
            "contact_not_measured", f"no contact was measured for {detector.timeout_s:g} s"
        )

    def pass_forces_on(self, controller: Controller) -> np.ndarray | None:
        """Pass the forces to models that use them; return all (f, 3), N, world frame, or None if some are missing."""
        self.forces_came = False
        controller.measure_feet(self._forces)
        return self._forces if self.all_feet else None
