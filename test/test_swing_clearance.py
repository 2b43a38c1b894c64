"""Swings of whole-body plans clear the ground of all footholds, judged on the height map that is simulated."""

import itertools

import numpy as np
import pytest

from contact_id_controller.geometry.ground_file import ground_of
from contact_id_controller.planning.kinodynamic import ContactPlan, Foothold, Sole
from contact_id_controller.planning.kinodynamic.clearance import (
    CLEARANCE_M,
    STONE_MARGIN_M,
    swing_heights,
)
from contact_id_controller.planning.kinodynamic.footstep_file import stones_below
from contact_id_controller.planning.kinodynamic.swing import foot_motion

LEAST_M = 0.03
SOLES = [Sole("left", (0.1, 0.06)), Sole("right", (0.1, 0.06))]
STANCE = [Foothold("left", (0.0, 0.11, 0.0)), Foothold("right", (0.0, -0.11, 0.0))]


def steps(*rows):
    targets = [
        Foothold.from_row({"foot": foot, "at": at, "turned": turned}) for foot, at, turned in rows
    ]
    return ContactPlan.from_footsteps(SOLES, STANCE, targets, support_s=0.5, swing_s=0.8)


def lowest(plan, heights):
    """The least height, m, of points of any swinging sole above the simulated stones."""
    ground = ground_of(stones_below(plan))
    times = np.linspace(0.0, plan.duration_s, 1500)
    feet = foot_motion(plan, times, heights)
    grid = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)))
    least = np.inf
    for column, sole in enumerate(plan.soles):
        local = np.column_stack([grid * sole.half_size_m, np.zeros(len(grid))])
        aloft = ~feet.standing[:, column]
        points = feet.positions[aloft, column, None] + np.einsum(
            "tij,kj->tki", feet.rotations[aloft, column], local
        )
        above = points[..., 2] - ground.heights_at(points[..., 0], points[..., 1])
        least = min(least, above.min(initial=np.inf))
    return least


OVER_A_STONE = steps(
    ("right", [0.32, -0.11, 0.12], [0, 0, 0]),
    ("left", [0.64, 0.11, 0.12], [0, 0, 0]),
    ("right", [0.96, -0.11, 0.0], [0, 0, 0]),
)
TILTED = steps(
    ("right", [0.3, -0.11, 0.08], [-12, -6, 0]),
    ("left", [0.3, 0.11, 0.14], [12, 6, 20]),
    ("right", [0.6, -0.11, 0.06], [0, 10, -10]),
)
BACK_OVER_ITS_OWN = steps(
    ("right", [0.3, -0.11, 0.1], [0, 0, 0]),
    ("right", [0.0, -0.11, 0.0], [0, 0, 0]),
    ("right", [0.6, -0.11, 0.0], [0, 0, 0]),
)


@pytest.mark.parametrize("plan", [OVER_A_STONE, TILTED, BACK_OVER_ITS_OWN])
def test_soles_pass_over_stones_and_not_through_them(plan):
    assert lowest(plan, LEAST_M) < -0.004, "without it this plan would be no test"
    assert lowest(plan, swing_heights(plan, LEAST_M)) > -5e-4


def test_random_steps_clear_all_stones():
    random = np.random.default_rng(7)
    through = 0
    for _ in range(20):
        x, rows = 0.0, []
        for number in range(4):
            x += random.uniform(0.28, 0.36)
            side = (-1.0, 1.0)[number % 2]
            at = [x, 0.11 * side + random.uniform(-0.01, 0.01), random.uniform(0.05, 0.15)]
            turned = [*random.uniform(-10, 10, 2), random.uniform(-10, 10)]
            rows.append((("right", "left")[number % 2], at, turned))
        plan = steps(*rows)
        through += lowest(plan, LEAST_M) < -0.002
        assert lowest(plan, swing_heights(plan, LEAST_M)) > -1e-3
    assert through > 10


def test_a_swing_that_is_clear_is_as_high_as_asked_for():
    plan = steps(("right", [0.2, -0.11, 0.0], [0, 0, 0]), ("left", [0.2, 0.11, 0.0], [0, 0, 0]))
    assert swing_heights(plan, 0.05) == [[0.05], [0.05]]


def test_the_middle_of_a_swing_over_a_stone_has_the_clearance():
    plan, number = BACK_OVER_ITS_OWN, 2
    times = np.linspace(0.0, plan.duration_s, 3000)
    heights = swing_heights(plan, LEAST_M)
    assert len(heights[0]) == 0 and len(heights[1]) == 3
    right = foot_motion(plan, times, heights).positions[:, 1]
    last = times > plan.boundaries_s[2 * number + 1]
    over = last & (np.abs(right[:, 0] - 0.3) < 0.1 + STONE_MARGIN_M)
    assert over.any() and right[over, 2].min() > 0.1 + 0.9 * CLEARANCE_M
