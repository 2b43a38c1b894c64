"""Largest pushes that fixed footholds can hold: against closed forms and a linear program."""

import numpy as np
import pytest
from scipy.optimize import linprog

from contact_id_controller.planning.kinodynamic import (
    ContactPlan,
    Foothold,
    Sole,
    build_momentum_problem,
    holdable_velocity,
    solve_momentum,
)

HEIGHT, GRAVITY, HALF, MARGIN = 0.9, 9.81, np.array([0.1, 0.06]), 0.02
RATE = np.sqrt(GRAVITY / HEIGHT)
SIDES = {"left": 0.1, "right": -0.1}


def planned(steps):
    soles = [Sole(foot, tuple(HALF), cop_margin_m=MARGIN) for foot in SIDES]
    stance = [Foothold(foot, (0.0, side, 0.0)) for foot, side in SIDES.items()]
    plan = ContactPlan.from_footsteps(soles, stance, steps, support_s=0.6, swing_s=0.6)
    knots = round(plan.duration_s / 0.05)
    return solve_momentum(build_momentum_problem(plan, knots, 80.0, height_m=HEIGHT))


@pytest.mark.parametrize(
    "angle, room", [(0.0, HALF[0]), (np.pi, HALF[0]), (np.pi / 2, SIDES["left"] + HALF[1])]
)
def test_who_stands_holds_what_moves_the_capture_point_to_the_edge(angle, room):
    plan = planned([Foothold("left", (0.0, SIDES["left"], 0.0))])
    resting = holdable_velocity(plan, plan.times_s[-1], [angle])
    np.testing.assert_allclose(resting, RATE * room, rtol=2e-3)


def test_one_foot_holds_less_than_two_and_as_much_as_a_linear_program_finds():
    """Pivots of every 10 ms by HiGHS, planned ones from the plan's forces instead of its motion."""
    plan = planned([Foothold("right", (0.2, SIDES["right"], 0.0))])
    boundaries = plan.problem.contact_plan.boundaries_s
    swinging = boundaries[1] + 0.1
    angles = np.deg2rad([0.0, 60.0, 90.0, 180.0, 270.0])
    found = holdable_velocity(plan, swinging, angles)
    expected = [by_linear_program(plan, swinging, angle) for angle in angles]
    np.testing.assert_allclose(found, expected, rtol=0.03)
    on_both = holdable_velocity(plan, boundaries[1] - 0.3, [np.pi / 2])
    assert found[2] < 0.8 * on_both[0]


def by_linear_program(plan, start, angle, step=0.01, ahead=3.0):
    """Largest jump whose divergent component fixed footholds can bring back to zero, times w."""
    contacts = plan.problem.contacts
    times = np.arange(start, plan.times_s[-1] + ahead, step)
    knots = np.minimum(np.searchsorted(plan.times_s, times, side="right") - 1, len(plan.forces) - 1)
    fade = np.exp(-RATE * step)
    share = (1.0 - fade) * fade ** np.arange(len(times))
    widened = HALF / (HALF - MARGIN)
    blocks = []
    for k, weight in zip(knots, share):
        standing = contacts.standing[k]
        points = contacts.points[k][standing][:, :2]
        middles = points.reshape(-1, 4, 2).mean(axis=1).repeat(4, axis=0)
        corners = middles + widened * (points - middles)
        force = plan.forces[k][standing]
        moment = force[:, 2] @ points / force[:, 2].sum()
        blocks.append(weight * (corners - moment).T)
    corners = [block.shape[1] for block in blocks]
    size = sum(corners)
    equations = np.zeros((2 + len(blocks), size + 1))
    equations[:2, :size] = np.hstack(blocks)
    equations[:2, size] = -np.array([np.cos(angle), np.sin(angle)])
    first = 0
    for row, count in enumerate(corners):
        equations[2 + row, first : first + count] = 1.0
        first += count
    goal = np.r_[0.0, 0.0, np.ones(len(blocks))]
    done = linprog(-np.eye(size + 1)[-1], A_eq=equations, b_eq=goal, bounds=(0.0, None))
    assert done.status == 0
    return RATE * done.x[-1]
