"""Swing heights with which no part of a sole passes through the ground of a current, past or future foothold.

Of the ground only the footholds are known: around each a plane that reaches `STONE_MARGIN_M` beyond the sole. A swing
lifts each point of a sole by height b(u) (`swing`), so the least height that leaves a clearance is a quotient, the
largest over all points and times.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan, Foothold, Sole
from contact_id_controller.planning.kinodynamic.swing import Swing, swings_of

STONE_MARGIN_M = 0.025
"""The ground of a foothold reaches this far beyond the sole."""

CLEARANCE_M = 0.01
"""Clearance of a sole over any foothold's ground, once it is `STONE_MARGIN_M` from its lift-off and touchdown; nearer
it is proportional to that distance. Feet that follow their plan keep within some millimetres."""

INTO_M = 1e-3
"""A sole deeper than this below another foothold's ground shows that this ground ends before it."""

SAMPLES = 100
"""Number of times of a swing at which clearance is checked."""

_GRID = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))


class Patch(NamedTuple):
    """Ground of a foothold: a rectangle in the x-y plane of a frame.

    Attributes:
        middle: (3,) m, world.  rotation: (3, 3) to world.  half: (2,) m, half lengths.
    """

    middle: np.ndarray
    rotation: np.ndarray
    half: np.ndarray

    def heights(self, points: np.ndarray) -> np.ndarray:
        """Heights of points (..., 3), m, world, above the rectangle's plane, m; infinite beside the rectangle."""
        normal = self.rotation[:, 2]
        above = ((points - self.middle) @ normal) / normal[2]
        below = points - self.middle
        below[..., 2] -= above
        inside = (np.abs(below @ self.rotation[:, :2]) <= self.half).all(axis=-1)
        return np.where(inside, above, np.inf)


def swing_heights(plan: ContactPlan, least_m: float) -> list[list[float]]:
    """Height, m, of each swing of each sole, in order of time: `least_m`, or more where footholds require it."""
    patches = patches_of(plan)
    return [
        [max(least_m, _needed(swing, sole, patches)) for swing in swings_of(plan, sole.frame)]
        for sole in plan.soles
    ]


def patches_of(plan: ContactPlan) -> list[Patch]:
    """Ground patches of all footholds, without repetition."""
    found: dict[tuple[float, ...], Patch] = {}
    for phase in plan.phases:
        for foothold in phase.footholds:
            patch = _patch(foothold, plan.sole_of(foothold.foot))
            key = (*np.round(patch.middle, 6), *np.round(patch.rotation.ravel(), 6), *patch.half)
            found.setdefault(key, patch)
    return list(found.values())


def _patch(foothold: Foothold, sole: Sole) -> Patch:
    rotation = np.asarray(foothold.rotation)
    middle = foothold.position + rotation @ np.array(sole.center_m)
    return Patch(middle, rotation, np.array(sole.half_size_m) + STONE_MARGIN_M)


def _needed(swing: Swing, sole: Sole, patches: list[Patch]) -> float:
    """Least height, m, with which nine points of a sole clear the ground in a swing.

    A patch that would reach under the sole at lift-off or touchdown is ignored: it is smaller in reality.
    """
    grid = np.unique(_GRID * np.array(sole.half_size_m), axis=0)
    places = np.column_stack([grid, np.zeros(len(grid))]) + np.array(sole.center_m)
    standing = np.array(
        [end.position + places @ np.asarray(end.rotation).T for end in (swing.start, swing.target)]
    )
    u = np.linspace(0.0, 1.0, SAMPLES + 2)[1:-1]
    positions, rotations, _, _ = swing.at(u * swing.duration_s, 0.0)
    points = positions[:, None] + np.einsum("tij,kj->tki", rotations, places)
    beside = [patch for patch in patches if patch.heights(standing).min() > -INTO_M]
    clear = np.min([patch.heights(points) for patch in beside], axis=0, initial=np.inf)
    away = np.min(
        [
            np.linalg.norm((positions - end.position)[:, :2], axis=1)
            for end in (swing.start, swing.target)
        ],
        axis=0,
    )
    wanted = CLEARANCE_M * np.minimum(1.0, away / STONE_MARGIN_M)
    return float(((wanted[:, None] - clear) / swing.bump(u)[:, None]).max())
