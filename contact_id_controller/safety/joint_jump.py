"""Distinguishes joints that move from measurements that no joint can have made."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.turns import whole_turns
from contact_id_controller.safety.jump_filter import JumpFilter

FASTEST_RAD_S2 = 1000.0
"""Acceleration that may hide between two states: what a gap in time explains."""

_whole_turns = bare_kernel(whole_turns)


class JointJump(JumpFilter):
    """Follows the joints, refuses outliers, and notices when they stay.

    turns: (na,) bool, joints that turn without end: a driver that begins anew at a whole turn, or
    counts on, makes no jump; None: none does.

    Attributes:
        limit: (1,) change of a position, rad or m, beyond what the velocities explain that is a jump.
    """

    def __init__(
        self, names: Sequence[str], limit: float = math.inf, turns: np.ndarray | None = None
    ):
        super().__init__(2 * len(names))
        self._names, self.limit = tuple(names), np.array([limit])
        self._turns = np.zeros(len(names), dtype=np.bool_) if turns is None else turns

    def _away(self, place: np.ndarray, row: np.ndarray, dt: float) -> str:
        """A line that names a joint further from where its velocity leads than limit + a dt^2 / 2; empty if none."""
        k, distance = unexplained(place, row, dt, self._turns)
        if distance <= self.limit[0] + 0.5 * FASTEST_RAD_S2 * dt * dt:
            return ""
        return (
            f"joint {self._names[k]!r} is {distance:.3g} from where its velocity leads "
            f"in {dt:.4f} s"
        )


@bare_kernel
def unexplained(place, row, dt, turns):
    """The joint that is farthest from where the mean velocity leads, and |q+ - q - dt (qd + qd+) / 2|.

    place, row (2 na,): positions, rad or m, then velocities, before and now; turns (na,) bool: whole turns do not count.
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
