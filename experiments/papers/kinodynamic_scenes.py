"""Scenes for momentum plans: TALOS' weight over stones that rise and tilt, and random ones.

The paper tells its phases (0.7 s), its horizon (100 knots) and that stones rise and tilt; sizes,
tilts, friction and weights are ours.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from contact_id_controller.planning.kinodynamic import (
    ContactPlan,
    Foothold,
    MomentumProblem,
    MomentumWeights,
    Sole,
    build_momentum_problem,
)

MASS_KG, HEIGHT_M = 90.272, 0.87  # TALOS
FEET = ("left", "right")
SOLES = tuple(Sole(foot, (0.10, 0.0625), cop_margin_m=0.0175) for foot in FEET)
HALF_STANCE_M = 0.085
PHASE_S = 0.7


def stones(footsteps: int = 4, forward=0.26, rise=0.06, tilt_deg=12.0) -> list[dict]:
    """Rows of footholds: each stone higher than the last and tilted; the last two are level."""
    rows = []
    for k in range(1, footsteps + 1):
        side = -1 if k % 2 else 1
        level = k >= footsteps - 1
        at = min(k, footsteps - 1)
        turned = [0, 0, 0] if level else [side * tilt_deg, (-1) ** k * tilt_deg / 2, 0]
        y = side * (HALF_STANCE_M if level else 0.11)
        rows.append({"foot": FEET[k % 2], "at": [forward * at, y, rise * at], "turned": turned})
    return rows


def stone_walk(friction=0.6, phase_s=PHASE_S, reach_m=None, **scene) -> ContactPlan:
    """One foot after the other over ``stones(**scene)``, each phase as long as the others."""
    soles = [dataclasses.replace(sole, reach_m=reach_m) for sole in SOLES]
    steps = [Foothold.from_row(row, friction) for row in stones(**scene)]
    return ContactPlan.from_footsteps(
        soles, _stance(friction), steps, support_s=phase_s, swing_s=phase_s
    )


def talos(knots: int, plan: ContactPlan | None = None, **keywords) -> MomentumProblem:
    """The momentum problem of a plan, None: of ``stone_walk()``, with TALOS' mass and height."""
    keywords = {"height_m": HEIGHT_M, **keywords}
    return build_momentum_problem(plan or stone_walk(), knots, MASS_KG, **keywords)


def random_plan(random: np.random.Generator) -> tuple[ContactPlan, int]:
    """One to six footsteps on tilted stones up and down, and the knots: every phase ends on one."""
    friction, foot, at = random.uniform(0.3, 1.0), random.integers(2), np.zeros(2)
    steps = []
    for _ in range(random.integers(1, 7)):
        foot = 1 - foot
        at = at + random.uniform((0.05, -0.075), (0.25, 0.075))
        side = HALF_STANCE_M * random.uniform(0.9, 1.4) * (1, -1)[foot]
        tilt = random.uniform(-20, 20, 2) * random.uniform(0, 1)
        row = {
            "foot": FEET[foot],
            "at": [at[0], side, at[1]],
            "turned": [*tilt, random.uniform(-20, 20)],
        }
        steps.append(Foothold.from_row(row, random.uniform(0.3, 1.0)))
    swing_s = random.uniform(0.4, 0.9)
    step_s = swing_s / random.integers(4, 15)
    plan = ContactPlan.from_footsteps(
        SOLES,
        _stance(friction),
        steps,
        support_s=swing_s * random.choice([0.25, 0.5, 1.0]),
        swing_s=swing_s,
    ).on_knots(step_s)
    return plan, round(plan.duration_s / step_s)


def random_weights(random: np.random.Generator) -> MomentumWeights:
    """Each weight anywhere in three or four decades."""

    def decades(low, high, count):
        return tuple(10.0 ** random.uniform(low, high, count))

    return MomentumWeights(
        com=decades(0, 3, 3),
        velocity=decades(-1, 2, 3),
        spin=decades(0, 3, 3),
        force=decades(-3, 1, 1) * 3,
        last=decades(0, 3, 9),
    )


def random_problem(seed: int, weights: MomentumWeights | None = None) -> MomentumProblem:
    """A problem of ``random_plan``, pyramid or cone; weights None: random, too."""
    random = np.random.default_rng(seed)
    plan, knots = random_plan(random)
    cone = ("pyramid", "cone")[random.integers(2)]
    return talos(knots, plan, weights=weights or random_weights(random), cone=cone)


def _stance(friction: float) -> list[Foothold]:
    places = zip(FEET, (HALF_STANCE_M, -HALF_STANCE_M))
    return [Foothold(foot, (0.0, y, 0.0), None, friction) for foot, y in places]
