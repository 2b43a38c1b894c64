"""Contact from measured forces or states, with hysteresis and debounce."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.kernels.compile import bare_kernel

BEARS, BEARS_STILL = 0.9, 0.85
"""Shares of the load of the foot that carries most, from which on another one bears, and as long as it does."""


class ContactDetector:
    """Measured contact with hysteresis and debounce, for n frames.

    A frame comes into contact when its force exceeds `on_n` and leaves it below `off_n`; either counts only when it has
    lasted `debounce_s`, by its measurements. A changed state counts from the second message in a row on, or at once
    after a silence of `timeout_s`: one may be wrong. A measurement older than `timeout_s` is none, and so is one from
    the future: time was set back since.
    """

    def __init__(self, count: int):
        self.on_n = self.off_n = self.debounce_s = 0.0
        self.timeout_s = np.inf
        self.contact = np.zeros(count, dtype=bool)
        self._raw, self._told = np.zeros(count, dtype=bool), np.full(count, np.nan)
        self._since_s = np.full(count, -np.inf)
        self._seen_s = np.full(count, -np.inf)
        self._on_n, self._off_n = np.zeros(count), np.zeros(count)
        self.take_forces(np.full(count, np.nan), 0.0)  # kernels compile now, not in the first step
        self.take_states(np.full(count, np.nan), 0.0)
        self.at(0.0)

    def take_forces(self, forces_n: np.ndarray, time_s: float) -> None:
        """Take sizes of measured forces (n,), N; NaN: not measured now."""
        self._on_n[:], self._off_n[:] = self.on_n, self.off_n
        values = np.array(forces_n, dtype=float)
        memory = self._raw, self._since_s, self._seen_s
        take_forces(values, float(time_s), self._on_n, self._off_n, *memory)

    def take_states(self, states: np.ndarray, time_s: float) -> None:
        """Take measured states (n,), 1 for contact, 0 for none; NaN: not measured now."""
        values = np.array(states, dtype=float)
        memory = self._told, self._raw, self._seen_s
        keep_until_told_twice(values, float(time_s), self.timeout_s, *memory)
        take_states(values, float(time_s), self._raw, self._since_s, self._seen_s)

    def knows_any(self, time_s: float) -> bool:
        """Whether any frame has been measured of late."""
        age = time_s - self._seen_s
        return bool(((age >= 0.0) & (age <= self.timeout_s)).any())

    def at(self, time_s: float) -> np.ndarray:
        """Contact (n,) bool at `time_s`; a view that the next call overwrites."""
        memory = self._raw, self._since_s, self._seen_s
        debounce(float(time_s), self.debounce_s, self.timeout_s, *memory, self.contact)
        return self.contact


class BearingFeet:
    """Which of n feet carry nearly as much as the one that carries most: those that an odometry may rely on.

    Loads may be in any unit, that of a sensor which was never calibrated too, as long as it is the same for all feet.
    """

    def __init__(self, count: int):
        self._bears = np.ones(count, dtype=bool)
        take_bearing(np.full(count, np.nan), self._bears)  # compiles now

    def among(self, loads: ArrayLike) -> np.ndarray:
        """(n,) bool by their loads (n,), NaN where there is none: as before; a view that the next call overwrites."""
        take_bearing(np.array(loads, dtype=float), self._bears)
        return self._bears


@bare_kernel
def take_forces(forces, time_s, on_n, off_n, raw, since_s, seen_s):
    """Forces (n,) N, NaN where there is none: contact before debounce, since when, and when it was seen."""
    for i in range(forces.shape[0]):
        if abs(forces[i]) < np.inf:
            touches = forces[i] >= off_n[i] if raw[i] else forces[i] > on_n[i]
            _note(i, touches, time_s, raw, since_s, seen_s)


@bare_kernel
def take_states(states, time_s, raw, since_s, seen_s):
    """The same of states (n,), 1 for contact and 0 for none."""
    for i in range(states.shape[0]):
        if abs(states[i]) < np.inf:
            _note(i, states[i] >= 0.5, time_s, raw, since_s, seen_s)


@bare_kernel
def keep_until_told_twice(states, time_s, timeout_s, told, raw, seen_s):
    """Replace states (n,) that differ from those of the last message, ``told`` (n,), by ``raw`` (n,) bool, as before.

    NaN where there is none; told: updated. A last message older than ``timeout_s``, or of the future, counts as none.
    """
    for i in range(states.shape[0]):
        if abs(states[i]) < np.inf:
            state = 1.0 if states[i] >= 0.5 else 0.0
            if told[i] == 1.0 - state and 0.0 <= time_s - seen_s[i] <= timeout_s:
                states[i] = 1.0 if raw[i] else 0.0
            told[i] = state


@bare_kernel
def _note(i, touches, time_s, raw, since_s, seen_s):
    """Note the contact of foot i as measured, and since when, s, it has been the same."""
    if touches != raw[i]:
        since_s[i] = time_s
    raw[i], seen_s[i] = touches, time_s


@bare_kernel
def debounce(time_s, debounce_s, timeout_s, raw, since_s, seen_s, contact):
    """Contact (n,) bool at a time: what has lasted ``debounce_s`` and was seen within ``timeout_s``.

    raw (n,) bool: as last measured; since_s, seen_s (n,): since when it is the same, and when it was measured last.
    Times that lie ahead, after a clock was set back, count as expired.
    """
    for i in range(contact.shape[0]):
        lasted, age = seen_s[i] - since_s[i], time_s - seen_s[i]
        if lasted >= debounce_s or lasted < 0.0:
            contact[i] = raw[i]
        if age > timeout_s or age < 0.0:
            contact[i] = False


@bare_kernel
def take_bearing(loads, bears):
    """Which feet bear, (n,) bool, by their loads (n,), in any unit: nearly as much as the one that carries most.

    A foot that carries little slides first, and a sole that lands or is about to leave turns about an edge: either
    moves, and pulls the base along. NaN: not measured, left as it is.
    """
    most = 0.0
    for i in range(loads.shape[0]):
        if loads[i] > most:
            most = loads[i]
    for i in range(loads.shape[0]):
        if abs(loads[i]) < np.inf:
            bears[i] = loads[i] >= (BEARS_STILL if bears[i] else BEARS) * most
