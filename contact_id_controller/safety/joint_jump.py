"""Distinguishes motion of joints from jumps of their measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.turns import whole_turns
from contact_id_controller.safety.jump_filter import JumpFilter

FASTEST_RAD_S2 = 1000.0
"""Largest acceleration between two states: a change of position that it explains is no jump."""

LONGEST_STILL_S = 1.0
"""Joints slower than the limit within this time are not taken for frozen: a small error of a velocity at rest adds up."""

_whole_turns = bare_kernel(whole_turns)


class JointJump(JumpFilter):
    """A `JumpFilter` on joint positions and velocities.

    turns: (na,) bool, continuous joints: a step by whole turns is no jump for them; None: there are none.

    Attributes:
        limit: (1,) largest change of a position, rad or m, beyond that explained by the velocities.
    """

    def __init__(
        self, names: Sequence[str], limit: float = math.inf, turns: np.ndarray | None = None
    ):
        super().__init__(2 * len(names))
        self._names, self.limit = tuple(names), np.array([limit])
        self._turns = np.zeros(len(names), dtype=np.bool_) if turns is None else turns

    def _away(self, place: np.ndarray, row: np.ndarray, dt: float) -> str:
        """Name the joint that is further from its extrapolated position than limit + a dt² / 2; empty: none."""
        k, distance = unexplained(place, row, dt, self._turns)
        if distance <= self.limit[0] + 0.5 * FASTEST_RAD_S2 * dt * dt:
            return ""
        return f"joint {self._names[k]!r} is {distance:.3g} from its position extrapolated over {dt:.4f} s"


@bare_kernel
def unexplained(place, row, dt, turns):
    """Index of the joint farthest from its extrapolated position, and |q+ - q - dt (qd + qd+) / 2|, rad or m.

    place, row (2 na,): positions, rad or m, then velocities, before and now; turns (na,) bool: whole turns do not
    count.
    """
    count, worst, most = row.shape[0] // 2, 0, 0.0
    for k in range(count):
        speed = 0.5 * (place[count + k] + row[count + k])
        away = row[k] - place[k] - dt * speed
        if turns[k]:
            away -= _whole_turns(away)
        away = abs(away)
        if away > most:
            worst, most = k, away
    return worst, most


@bare_kernel
def repeated_motion(place, row, age_s):
    """How far the fastest joint should have moved within ``age_s``, rad or m, where row repeats place; else -1.

    place, row (2 na,): positions, rad or m, then velocities, before and now.
    """
    count, fastest = row.shape[0] // 2, 0.0
    for k in range(2 * count):
        if place[k] != row[k]:
            return -1.0
        if k >= count:
            fastest = max(fastest, abs(row[k]))
    return fastest * min(age_s, LONGEST_STILL_S)
