"""Paths of feet in SE(3): at rest on each foothold, over what lies between from one to the next.

With u in [0, 1] over the time aloft, s the quintic step 0 to 1 and b = 64 u^3 (1 - u)^3:

    p = p_0 + s(u) (p_1 - p_0) + height b(u) up        R = R_0 exp(s(u) log(R_0' R_1))

where the part of p_1 - p_0 along ``up`` comes early on the way up and late on the way down, so that
the foot is above the edge of a stone when it reaches it. Position, velocity and acceleration are
continuous: a foot leaves and lands at rest.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

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


class FootMotion(NamedTuple):
    """Motion of the f feet of a contact plan at p times; world frame.

    Attributes:
        positions: (p, f, 3) m.  rotations: (p, f, 3, 3) foot to world.
        velocities: (p, f, 3) m/s.  spins: (p, f, 3) rad/s.
        standing: (p, f) bool; the times of lift-off and touchdown count as standing.
    """

    positions: np.ndarray
    rotations: np.ndarray
    velocities: np.ndarray
    spins: np.ndarray
    standing: np.ndarray


def foot_motion(
    plan: ContactPlan, times_s: np.ndarray, height_m: float, up: ArrayLike = (0.0, 0.0, 1.0)
) -> FootMotion:
    """Where each foot is, in the order of ``plan.soles``, at times (p,) from the plan's start.

    Args:
        plan: its footholds are kept exactly.
        times_s: before the first lift-off and after the last touchdown feet stand.
        height_m: of the middle of a swing above the way from foothold to foothold.
        up: unit vector against gravity.

    Raises:
        ContactPlanError: a foot that is aloft at the beginning or at the end of the plan.
    """
    times, up = np.asarray(times_s, dtype=float), np.asarray(up, dtype=float)
    count, feet = len(times), len(plan.soles)
    motion = FootMotion(
        np.zeros((count, feet, 3)),
        np.zeros((count, feet, 3, 3)),
        np.zeros((count, feet, 3)),
        np.zeros((count, feet, 3)),
        np.ones((count, feet), dtype=bool),
    )
    for column, sole in enumerate(plan.soles):
        stances = _stances(plan, sole.frame)
        for begin_s, end_s, foothold in stances:
            rows = (times >= begin_s) & (times <= end_s)
            motion.positions[rows, column] = foothold.position
            motion.rotations[rows, column] = foothold.rotation
        for (_, lift_s, start), (land_s, _, target) in itertools.pairwise(stances):
            rows = np.flatnonzero((times > lift_s) & (times < land_s))
            parts = _swing(start, target, times[rows] - lift_s, land_s - lift_s, height_m, up)
            for whole, part in zip(motion, parts):
                whole[rows, column] = part
            motion.standing[rows, column] = False
    return motion


def _stances(plan: ContactPlan, foot: str) -> list[tuple[float, float, Foothold]]:
    """(begin, end, foothold) of each time for which the foot stands; the first and last for ever."""
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


def _swing(
    start: Foothold,
    target: Foothold,
    since_s: np.ndarray,
    duration_s: float,
    height_m: float,
    up: np.ndarray,
) -> Any:
    """Position, rotation, velocity and spin, (p, ...), at times since lift-off; none stands."""
    u = since_s / duration_s
    step, rate = _step(u)
    way = target.position - start.position
    climb = float(way @ up)
    offset = 0.0 if climb > 0 else 1.0 - CLIMB_SHARE
    rise, rise_rate = _step(np.clip((u - offset) / CLIMB_SHARE, 0.0, 1.0))
    w = u * (1.0 - u)
    level, lift = way - climb * up, climb * rise + height_m * 64.0 * w**3
    lift_rate = climb * rise_rate / CLIMB_SHARE + height_m * 192.0 * w**2 * (1.0 - 2.0 * u)
    turn = pin.log3(start.rotation.T @ target.rotation)
    rotations = np.array([start.rotation @ pin.exp3(each * turn) for each in step])
    return (
        start.position + np.multiply.outer(step, level) + np.multiply.outer(lift, up),
        rotations.reshape(-1, 3, 3),
        (np.multiply.outer(rate, level) + np.multiply.outer(lift_rate, up)) / duration_s,
        np.multiply.outer(rate / duration_s, start.rotation @ turn),
    )


def _step(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quintic from 0 to 1 without velocity and acceleration at its ends, and its slope."""
    return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), 30.0 * (u * (1.0 - u)) ** 2
