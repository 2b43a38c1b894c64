"""Paths of feet in SE(3): at rest on each foothold, over what lies between from one to the next.

With u in [0, 1] over the time aloft, s the quintic step 0 to 1 and b = 64 u^3 (1 - u)^3:

    p = p_0 + s(u) (p_1 - p_0) + height b(u) up        R = R_0 exp(s(u) log(R_0' R_1))

where the part of p_1 - p_0 along ``up`` comes early on the way up and late on the way down, so that
the foot is above the edge of a stone when it reaches it. Position, velocity and acceleration are
continuous: a foot leaves and lands at rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_id_controller.planning.kinodynamic.contact_plan import (
    ContactPlan,
    ContactPlanError,
    Foothold,
)

CLIMB_SHARE = 0.7
"""Part of the time aloft in which the height changes; first on the way up, last on the way down."""


UP = (0.0, 0.0, 1.0)


class FootMotion(NamedTuple):
    """Motion of the f feet of a contact plan at p times; world frame.

    Attributes:
        positions: (p, f, 3) m.  rotations: (p, f, 3, 3) foot to world.
        velocities: (p, f, 3) m/s.  spins: (p, f, 3) rad/s.
        standing: (p, f) bool, in contact; lift-off and touchdown times count as contact.
    """

    positions: np.ndarray
    rotations: np.ndarray
    velocities: np.ndarray
    spins: np.ndarray
    standing: np.ndarray


@dataclass(frozen=True)
class Swing:
    """Swing of one foot from a foothold to the next.

    Attributes:
        start, target: footholds before and after.
        lift_s, land_s: from the plan's start.
        up: (3,) unit vector against gravity.
    """

    start: Foothold
    target: Foothold
    lift_s: float
    land_s: float
    up: np.ndarray

    @property
    def duration_s(self) -> float:
        """Duration of the swing, s."""
        return self.land_s - self.lift_s

    @staticmethod
    def bump(u: np.ndarray) -> np.ndarray:
        """b(u), 0 to 1: share of the swing's height that is reached."""
        return 64.0 * (u * (1.0 - u)) ** 3

    def at(self, since_s: np.ndarray, height_m: float) -> tuple[np.ndarray, ...]:
        """Position (p, 3), rotation (p, 3, 3), velocity and spin (p, 3), world, at times (p,), s, since lift-off."""
        start, target, up = self.start, self.target, self.up
        u = since_s / self.duration_s
        step, rate = _step(u)
        way = target.position - start.position
        climb = float(way @ up)
        offset = 0.0 if climb > 0 else 1.0 - CLIMB_SHARE
        rise, rise_rate = _step(np.clip((u - offset) / CLIMB_SHARE, 0.0, 1.0))
        w = u * (1.0 - u)
        level, lift = way - climb * up, climb * rise + height_m * self.bump(u)
        lift_rate = climb * rise_rate / CLIMB_SHARE + height_m * 192.0 * w**2 * (1.0 - 2.0 * u)
        turn = pin.log3(start.rotation.T @ target.rotation)
        rotations = np.array([start.rotation @ pin.exp3(each * turn) for each in step])
        return (
            start.position + np.multiply.outer(step, level) + np.multiply.outer(lift, up),
            rotations.reshape(-1, 3, 3),
            (np.multiply.outer(rate, level) + np.multiply.outer(lift_rate, up)) / self.duration_s,
            np.multiply.outer(rate / self.duration_s, start.rotation @ turn),
        )


def swings_of(plan: ContactPlan, foot: str, up: ArrayLike = UP) -> list[Swing]:
    """Swings of a foot, in order of time.

    Raises:
        ContactPlanError: a foot without contact at the beginning or at the end of the plan.
    """
    up = np.asarray(up, dtype=float)
    return [
        Swing(start, target, lift_s, land_s, up)
        for (_, lift_s, start), (land_s, _, target) in itertools.pairwise(_stances(plan, foot))
    ]


def foot_motion(
    plan: ContactPlan,
    times_s: np.ndarray,
    height_m: float | Sequence[Sequence[float]],
    up: ArrayLike = UP,
) -> FootMotion:
    """Motion of all feet, in the order of ``plan.soles``, at times (p,) from the plan's start.

    Args:
        plan: its footholds are met exactly.
        times_s: before the first lift-off and after the last touchdown feet are in contact.
        height_m: of the middle of a swing above the way from foothold to foothold: one for all, or a row for each
            sole with one for each of its swings (``clearance.swing_heights``).
        up: unit vector against gravity.

    Raises:
        ContactPlanError: a foot without contact at the beginning or at the end of the plan.
    """
    times = np.asarray(times_s, dtype=float)
    count, feet = len(times), len(plan.soles)
    motion = FootMotion(
        np.zeros((count, feet, 3)),
        np.zeros((count, feet, 3, 3)),
        np.zeros((count, feet, 3)),
        np.zeros((count, feet, 3)),
        np.ones((count, feet), dtype=bool),
    )
    for column, sole in enumerate(plan.soles):
        for begin_s, end_s, foothold in _stances(plan, sole.frame):
            rows = (times >= begin_s) & (times <= end_s)
            motion.positions[rows, column] = foothold.position
            motion.rotations[rows, column] = foothold.rotation
        for number, swing in enumerate(swings_of(plan, sole.frame, up)):
            rows = (times > swing.lift_s) & (times < swing.land_s)
            height = height_m[column][number] if isinstance(height_m, Sequence) else height_m
            for whole, part in zip(motion, swing.at(times[rows] - swing.lift_s, height)):
                whole[rows, column] = part
            motion.standing[rows, column] = False
    return motion


def _stances(plan: ContactPlan, foot: str) -> list[tuple[float, float, Foothold]]:
    """(begin, end, foothold) of each contact of the foot, s; the first begins at -inf and the last ends at inf."""
    stances: list[tuple[float, float, Foothold]] = []
    ends = plan.boundaries_s
    for number, phase in enumerate(plan.phases):
        foothold = phase.foothold_of(foot)
        if foothold is None:
            if number in (0, len(plan.phases) - 1):
                raise ContactPlanError(
                    f"phase {number}, foot {foot}: is aloft at the "
                    f"{'end' if number else 'beginning'} of the plan, must stand there"
                )
        elif stances and plan.phases[number - 1].foothold_of(foot) is not None:
            stances[-1] = (stances[-1][0], float(ends[number + 1]), foothold)
        else:
            stances.append((float(ends[number]), float(ends[number + 1]), foothold))
    stances[0] = (-np.inf, *stances[0][1:])
    stances[-1] = (stances[-1][0], np.inf, stances[-1][2])
    return stances


def _step(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quintic from 0 to 1 without velocity and acceleration at its ends, and its slope."""
    return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), 30.0 * (u * (1.0 - u)) ** 2
