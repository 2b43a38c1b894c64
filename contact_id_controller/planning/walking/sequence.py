"""Which group of feet carries, which one is aloft, and what ends either: time and touch.

    standing -> shift -> swing -> shift -> swing ... -> shift -> standing

In a shift both groups stand and the weight goes to the one that carries next; in a swing the other one is aloft. A
foot that touches early stands at once; one that misses the ground comes down on, until it touches or is late beyond
patience.
"""

from __future__ import annotations

import dataclasses
from enum import Enum

import numpy as np


class Event(Enum):
    """What happened at an instant."""

    NOTHING = "nothing"
    LANDED = "landed"
    LIFTED = "lifted"
    RESTED = "rested"


@dataclasses.dataclass(frozen=True)
class Patience:
    """Times of the events, s.

    Attributes:
        double_s: usual shift of weight; 0: none.
        swing_s: usual swing.
        early_s: after lift-off, from when on a touch is a landing.
        late_s: after the planned landing, when a foot that has not touched counts as standing.
    """

    double_s: float
    swing_s: float
    early_s: float
    late_s: float


@dataclasses.dataclass
class Sequence:
    """The state of the sequence; times s.

    Attributes:
        standing: both rest.  both: both stand (while walking: a shift of weight).
        carry: group that carries, or will after the shift.
        begun_s, ends_s: of the shift or swing.  lifted_s: last lift-off.
        steps: landings so far.
        met: the group that carries has touched since it was to stand: one that bounces is not waited for.
    """

    patience: Patience
    standing: bool = True
    both: bool = True
    carry: int = 0
    begun_s: float = 0.0
    ends_s: float = 0.0
    lifted_s: float = 0.0
    steps: int = 0
    met: bool = False

    def stands(self) -> np.ndarray:
        """Which groups stand, (2,) bool."""
        return np.array([self.both or k == self.carry for k in (0, 1)])

    def begin(self, now_s: float, carry: int, after_s: float) -> None:
        """Leave rest: the other group lifts after this time."""
        self.standing, self.both, self.carry = False, True, carry
        self.begun_s, self.ends_s, self.met = now_s, now_s + after_s, False

    def change(self, now_s: float, carry: int, after_s: float) -> None:
        """In a shift: this group carries, which stood before; the other one lifts after this time."""
        self.carry, self.ends_s, self.met = carry, now_s + after_s, True

    def advance(
        self, now_s: float, touches: np.ndarray, may_rest: bool, stretched: bool, half_s: float
    ) -> Event:
        """Look at the time and at touches (2,) bool of the groups; the event, if there is one.

        may_rest: the walk may end here.  stretched: the leg that lifts next is straight, and pulls.
        half_s: half of the time between two looks: an event is at the look that is nearest to its time.
        """
        if self.standing:
            return Event.NOTHING
        if not self.both:
            since_s = now_s - self.lifted_s
            early_s = min(self.patience.early_s, self.ends_s - half_s - self.lifted_s)
            touched = touches[1 - self.carry] and since_s > early_s
            if touched or now_s > self.ends_s + self.patience.late_s:
                self.both, self.carry = True, 1 - self.carry
                self.begun_s, self.ends_s = now_s, now_s + self.patience.double_s
                self.steps += 1
                self.met = bool(touched)
                return Event.LANDED
            return Event.NOTHING
        if now_s < self.ends_s - half_s and not stretched:
            return Event.NOTHING
        if may_rest:
            self.standing = True
            return Event.RESTED
        self.met |= bool(touches[self.carry])
        if not self.met:
            return Event.NOTHING
        self.both, self.begun_s, self.lifted_s = False, now_s, now_s
        self.ends_s = now_s + self.patience.swing_s
        return Event.LIFTED
