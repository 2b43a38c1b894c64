"""Frames of a recorded motion, in blocks, and velocities and accelerations by differences.

Row k of a motion is the state at time_s[k]; its frame is the period from there to the next row. The joint
accelerations over it are those with which row k + 1 was reached. A motion with the array ``acceleration`` has rows
independent of each other, each with the control period of the settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
import pinocchio as pin

from contact_id_controller.robot import RobotModel

BEFORE, AFTER = 1, 2
"""Rows that a block shows beside its own: a velocity needs the rows around it, an acceleration the next
velocity."""

STATE = ("time_s", "q", "v", "acceleration", "contact")
"""Arrays of a motion; v, acceleration and contact may be missing."""

SHORTEST_S = 1e-6
"""Rows that are not further apart are one state recorded twice, as of a robot that is held at its start."""

NO_PERIOD = "no_period"
"""Status of a frame that no later row ends: the last one, and those before a gap, a step back in time or a lost
row."""


@dataclasses.dataclass(frozen=True, eq=False)
class MotionBlock:
    """Consecutive frames, with the neighbouring rows that exist.

    Attributes:
        first: index of the first frame in its file.  count: frames.
        lead: rows before the first frame.
        rows: name -> array, a row each, for those of ``STATE`` that the motion has.
    """

    first: int
    count: int
    lead: int
    rows: dict[str, np.ndarray]

    @property
    def own(self) -> slice:
        """The rows of the frames."""
        return slice(self.lead, self.lead + self.count)


def blocks_of(pieces: Iterable[dict[str, np.ndarray]], size: int) -> Iterator[MotionBlock]:
    """Regroup pieces of any length into blocks of ``size`` frames, the last one shorter.

    At most a piece and a block are in memory.
    """
    held: dict[str, np.ndarray] = {}
    first = lead = 0
    for piece in pieces:
        if not len(piece["time_s"]):
            continue
        held = (
            {name: np.concatenate([held[name], piece[name]]) for name in piece} if held else piece
        )
        start = 0  # of the rows that are still needed
        while len(held["time_s"]) - start >= lead + size + AFTER:
            yield _block(held, start, first, size, lead)
            first, start, lead = first + size, start + lead + size - BEFORE, BEFORE
        # Copied: a view would keep all of the piece.
        held = {name: values[start:].copy() for name, values in held.items()} if start else held
    start = 0
    while held and (left := len(held["time_s"]) - start - lead) > 0:
        count = min(size, left)
        yield _block(held, start, first, count, lead)
        first, start, lead = first + count, start + lead + count - BEFORE, BEFORE


def _block(
    held: dict[str, np.ndarray], start: int, first: int, count: int, lead: int
) -> MotionBlock:
    end = start + lead + count + AFTER
    return MotionBlock(first, count, lead, {name: rows[start:end] for name, rows in held.items()})


@dataclasses.dataclass(frozen=True, eq=False)
class Frames:
    """Inputs of the m frames of a block.

    Attributes:
        time_s: (m,).  q, v: (m, nq), (m, nv).  acceleration: (m, na) rad/s2.
        period_s: (m,); NaN without a next row.
        next_velocity: (m, nv), recorded at the end of the period; NaN if unknown.
        contact: (m, n) bool, recorded, or None.
    """

    time_s: np.ndarray
    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray
    period_s: np.ndarray
    next_velocity: np.ndarray
    contact: np.ndarray | None


def frames_of(
    block: MotionBlock, robot: RobotModel, period_s: float, longest_gap_s: float
) -> Frames:
    """Frames of a block, with velocities and accelerations by difference where it has none.

    A missing velocity is the mean of the differences to the rows before and after, on the
    configuration space, or the only one of them.

    Args:
        block: of a motion of this robot.
        robot: of the configurations.
        period_s: of every frame if the motion has accelerations.
        longest_gap_s: no difference is taken between rows further apart.
    """
    own, rows = block.own, block.rows
    time_s, q = rows["time_s"], rows["q"]
    steps = np.diff(time_s)
    joined = (steps > SHORTEST_S) & (steps <= longest_gap_s) & _finite(q)[:-1] & _finite(q)[1:]
    v = rows["v"] if "v" in rows else _velocities(robot, q, steps, joined)
    count = len(time_s)
    following = np.full((count, robot.nv), np.nan)
    following[:-1][joined] = v[1:][joined]
    if "acceleration" in rows:
        acceleration, period = rows["acceleration"], np.full(count, period_s)
    else:
        period = np.full(count, np.nan)
        period[:-1][joined] = steps[joined]
        with np.errstate(invalid="ignore"):  # what is not finite is refused frame by frame
            acceleration = (following - v)[:, robot.actuated] / period[:, None]
    contact = rows["contact"][own].astype(bool) if "contact" in rows else None
    return Frames(
        time_s[own], q[own], v[own], acceleration[own], period[own], following[own], contact
    )


def _finite(rows: np.ndarray) -> np.ndarray:
    return np.isfinite(rows).all(axis=1)


def _velocities(
    robot: RobotModel, q: np.ndarray, steps: np.ndarray, joined: np.ndarray
) -> np.ndarray:
    """Velocities (r, nv) by differences, each in the tangent space at its row's configuration.

    q (r, nq); steps (r - 1,): s, between rows; joined (r - 1,) bool: steps that are used.
    """
    total, count = np.zeros((len(q), robot.nv)), np.zeros(len(q))
    for k in np.flatnonzero(joined):
        total[k] += pin.difference(robot.model, q[k], q[k + 1]) / steps[k]
        total[k + 1] -= pin.difference(robot.model, q[k + 1], q[k]) / steps[k]
        count[k] += 1.0
        count[k + 1] += 1.0
    return total / np.where(count > 0.0, count, np.nan)[:, None]
