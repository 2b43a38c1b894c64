"""Footsteps on level ground from the present stance to a goal: in a straight line, turning on the way.

One foot after the other, the one on the side of the goal first, each to its place in the nominal stance around a
middle that moves from the feet's present one to the goal. Forwards the middle advances with each step, so that feet
pass each other; sideways and in turning once in a round of all feet, so that they do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic.contact_plan import Foothold, Sole
from contact_id_controller.planning.kinodynamic.placement import is_flat

SAME_PLACE_M, SAME_TURN_RAD = 1e-3, 1e-3
"""A foot that is so close to where it shall stand makes no step."""

STEP_TURN_RAD = 0.3
"""Farthest turn of a foot in one step: what hips bear on both sides."""

APART_M = 0.02
"""Soles keep this far from each other."""

MOST_ROUNDS = 1000
"""Walks in which each foot steps more often than this are refused."""


def straight_footsteps(
    soles: Sequence[Sole],
    stance: Sequence[Foothold],
    nominal: Sequence[Foothold],
    goal: tuple[float, float, float],
    *,
    stride_m: float,
    turn_rad: float = STEP_TURN_RAD,
) -> tuple[Foothold, ...]:
    """Footholds in the order in which they are made; none if the robot is at the goal.

    Args:
        soles: of all feet.
        stance: present footholds.
        nominal: footholds of the nominal stance, heading along x; from `standing_start`.
        goal: x, y, m, of the middle of the feet, and heading, rad, world frame.
        stride_m: longest way of a foot in one step.
        turn_rad: largest turn of a foot in one step.

    Raises:
        ConfigurationError: a goal that is not finite or too far, a stride or a turn of 0, feet that
            are missing, or a nominal stance with feet on each other.
    """
    if not np.isfinite(goal).all():
        raise ConfigurationError(f"goal {tuple(goal)} must be three finite numbers: x, y, heading")
    if not (stride_m > 0.0 and turn_rad > 0.0):
        raise ConfigurationError(
            f"stride {stride_m:g} m and turn {turn_rad:g} rad of a step must be above 0"
        )
    walk = _Walk(soles, stance, nominal)
    way = np.array(goal[:2]) - walk.middle[:2]
    turn = math.remainder(goal[2] - walk.heading, 2.0 * math.pi)
    # Turning moves a foot by its distance from the middle.
    longest = float(np.linalg.norm(way)) + abs(turn) * walk.radius_m
    rounds = max(longest / stride_m, abs(turn) / turn_rad)
    if not rounds < MOST_ROUNDS:
        raise ConfigurationError(f"goal {tuple(goal)} is {len(soles) * rounds:.3g} steps away")
    for count in range(max(math.ceil(rounds - 1e-9), 1), 2 * MOST_ROUNDS):
        footholds = walk.in_rounds(count, way, turn)
        if footholds is not None:
            return footholds
    raise ConfigurationError("soles would stand on each other in the nominal stance")


class _Walk:
    """Start of a walk in terms of the nominal stance.

    Attributes:
        middle: (3,) of the feet, m.  heading: rad.  radius_m: of the stance.
    """

    def __init__(self, soles: Any, stance: Any, nominal: Any) -> None:
        names = [sole.frame for sole in soles]
        self._soles = {sole.frame: sole for sole in soles}
        self._stance, around = ({each.foot: each for each in feet} for feet in (stance, nominal))
        missing = set(names) - set(self._stance) | set(names) - set(around)
        if missing:
            raise ConfigurationError(f"feet {sorted(missing)} do not stand")
        places = np.array([around[name].position for name in names])
        now = np.array([self._stance[name].position for name in names])
        self._centre, self.middle = places.mean(axis=0), now.mean(axis=0)
        self._around = around
        self.radius_m = float(np.linalg.norm((places - self._centre)[:, :2], axis=1).max())
        flat = [name for name in names if is_flat(self._soles[name])]
        if flat:
            turned = [_heading(self._stance[name].rotation) for name in flat]
            self.heading = float(np.angle(np.mean(np.exp(1j * np.array(turned)))))
        else:
            one, other = ((feet - feet.mean(axis=0))[:, :2] @ [1, 1j] for feet in (places, now))
            self.heading = float(np.angle(np.sum(other * one.conj())))

    def in_rounds(self, count: int, way: np.ndarray, turn: float) -> tuple[Foothold, ...] | None:
        """Footholds of a walk in which each foot makes ``count`` steps; None if feet would collide."""
        here, made = dict(self._stance), []
        along = _turned(self.heading)[:2, 0]
        forwards = along * (along @ way)
        order, feet = self._order(way, turn), len(here)
        for number in range((count + 1) * feet - 1):
            foot = order[number % feet]
            passing = min((number + 1) / (count * feet), 1.0)
            closing = min((number // feet + 1) / count, 1.0)
            middle = self.middle[:2] + passing * forwards + closing * (way - forwards)
            target = self._target(foot, middle, self.heading + closing * turn)
            others = [each for name, each in here.items() if name != foot]
            if any(self._collide(target, each) for each in others):
                return None
            if _differ(here[foot], target):
                here[foot] = target
                made.append(target)
        return tuple(made)

    def _order(self, way: np.ndarray, turn: float) -> list[str]:
        """Order of the feet, that on the side of the goal first."""
        aside = way @ _turned(self.heading)[:2, 1] + turn * self.radius_m
        if abs(aside) < SAME_PLACE_M:
            return list(self._around)

        def other_side(foot: str) -> bool:
            return bool(aside * (self._around[foot].position - self._centre)[1] < 0.0)

        return sorted(self._around, key=other_side)

    def _target(self, foot: str, middle: np.ndarray, heading: float) -> Foothold:
        rotation, nominal = _turned(heading), self._around[foot]
        place = rotation @ (nominal.position - self._centre)
        place += [*middle, self.middle[2]]
        turned = rotation @ nominal.rotation if is_flat(self._soles[foot]) else np.eye(3)
        return Foothold(foot, place, turned, self._stance[foot].friction_coefficient)

    def _collide(self, one: Foothold, other: Foothold) -> bool:
        """Whether soles are closer than `APART_M`, seen from above."""
        first, second = (self._outline(each) for each in (one, other))
        for axis in np.concatenate([one.rotation[:2, :2].T, other.rotation[:2, :2].T]):
            a, b = first @ axis, second @ axis
            if max(a.min() - b.max(), b.min() - a.max()) >= APART_M * np.linalg.norm(axis):
                return False
        return True

    def _outline(self, foothold: Foothold) -> np.ndarray:
        sole = self._soles[foothold.foot]
        x, y = sole.half_size_m
        corners = np.array([[a, b, 0.0] for a in (x, -x) for b in (y, -y)]) + sole.center_m
        return (foothold.position + corners @ foothold.rotation.T)[:, :2]


def _differ(one: Foothold, other: Foothold) -> bool:
    away = np.abs(one.position - other.position).max()
    return bool(
        away > SAME_PLACE_M
        or np.linalg.norm(pin.log3(one.rotation.T @ other.rotation)) > SAME_TURN_RAD
    )


def _heading(rotation: np.ndarray) -> float:
    return math.atan2(rotation[1, 0], rotation[0, 0])


def _turned(angle: float) -> np.ndarray:
    return pin.rpy.rpyToMatrix(0.0, 0.0, angle)
