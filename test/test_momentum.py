"""Contact plans and momentum: TALOS' weight over stones that rise and tilt (kino-dynamic paper)."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from contact_id_controller.planning.kinodynamic import centroidal
from contact_id_controller.planning.kinodynamic.contact_plan import (
    ContactPhase,
    ContactPlan,
    ContactPlanError,
    Foothold,
    Sole,
)

GRAVITY = np.array([0.0, 0.0, -9.81])
FEET = ("left", "right")
SOLES = tuple(Sole(foot, (0.10, 0.0625), cop_margin_m=0.0175) for foot in FEET)


def stones(footsteps=4, forward=0.26, rise=0.06, tilt_deg=12.0):
    """Rows of a file: each stone higher than the last; the last two are level."""
    rows = []
    for k in range(1, footsteps + 1):
        side = -1 if k % 2 else 1
        level = k >= footsteps - 1
        at = min(k, footsteps - 1)
        turned = [0, 0, 0] if level else [side * tilt_deg, (-1) ** k * tilt_deg / 2, 0]
        y = side * (0.085 if level else 0.11)
        rows.append({"foot": FEET[k % 2], "at": [forward * at, y, rise * at], "turned": turned})
    return rows


def stone_walk(friction=0.6, phase_s=0.7, **scene):
    stance = [Foothold(FEET[0], (0, 0.085, 0)), Foothold(FEET[1], (0, -0.085, 0))]
    steps = [Foothold.from_row(row, friction) for row in stones(**scene)]
    return ContactPlan.from_footsteps(SOLES, stance, steps, support_s=phase_s, swing_s=phase_s)


def test_phases_of_footsteps():
    plan = stone_walk()
    assert plan.duration_s == pytest.approx(7.0)
    assert [phase.feet for phase in plan.phases[:4]] == [
        FEET,
        ("left",),
        FEET,
        ("right",),
    ]
    contacts = plan.sample(100)
    assert contacts.time_step_s == pytest.approx(0.07)
    assert contacts.points.shape == (100, 8, 3) and len(contacts) == 100
    assert contacts.standing[:10].all() and contacts.standing[10:20].sum(1).tolist() == [4] * 10
    assert contacts.phase[[0, 9, 10, 99]].tolist() == [0, 0, 1, 8]


def test_corners_lie_inside_the_sole_on_the_stone():
    plan = stone_walk()
    contacts = plan.sample(50)
    foothold = plan.phases[2].foothold_of("right")
    corners = contacts.points[12, contacts.sole_of_corner == 1]
    local = (corners - foothold.position) @ foothold.rotation
    np.testing.assert_allclose(np.abs(local), [[0.0825, 0.045, 0]] * 4, atol=1e-12)
    assert len(Sole("toe").corners) == 1 and len(Sole("blade", (0.1, 0)).corners) == 2


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("phase 0 ends at", lambda: stone_walk().sample(33)),
        ("knots 0", lambda: stone_walk().sample(0)),
        ("cop_margin_m 0.2", lambda: Sole("left", (0.1, 0.1), cop_margin_m=0.2)),
        ("needs 'foot' and 'at'", lambda: Foothold.from_row({"foot": "left", "on": [0, 0, 0]})),
        ("position of a foothold of 'left'", lambda: Foothold("left", (0, 0, np.nan))),
        ("not orthonormal", lambda: Foothold("left", (0, 0, 0), np.ones((3, 3)))),
        (
            "'middle' has no sole; there are 'left', 'right'",
            lambda: ContactPlan(SOLES, [ContactPhase(1.0, [Foothold("middle", (0, 0, 0))])]),
        ),
        (
            "phase 1, foot left: changes its foothold without being lifted",
            lambda: ContactPlan(
                SOLES, [ContactPhase(1.0, [Foothold("left", (x, 0, 0))]) for x in (0, 0.1)]
            ),
        ),
    ],
)
def test_contradictions_are_named(message, make):
    with pytest.raises(ContactPlanError, match=message):
        make()


def test_durations_are_rounded_to_knots():
    plan = stone_walk(phase_s=0.72).on_knots(0.1)
    assert plan.duration_s == pytest.approx(7.0) and len(plan.sample(70)) == 70


def test_exact_map_against_integration():
    """Random forces held over a step, fixed points that jump: the map is the integral itself."""
    random = np.random.default_rng(3)
    dt, steps = 0.07, 6
    origins = random.standard_normal((steps + 1, 3))
    points = random.standard_normal((steps, 4, 3))
    rotations = np.linalg.qr(random.standard_normal((steps, 4, 3, 3)))[0]
    forces = random.standard_normal((steps, 4, 3))
    moves = centroidal.exact_map(origins, dt, GRAVITY)
    maps = centroidal.wrench_maps(points, rotations, origins)
    start = random.standard_normal((3, 3))
    x = centroidal.about_fixed_points(*start, origins[0])
    state = start.ravel()
    for t in range(steps):
        x = moves.A[t] @ x + moves.E[t] @ np.einsum("nij,nj->i", maps[t], forces[t]) + moves.b[t]
        world = 9.81 * np.einsum("nij,nj->ni", rotations[t], forces[t])

        def rate(_, y, world=world, points=points[t]):
            torque = np.cross(points - y[:3], world).sum(0)
            return np.concatenate([y[3:6], GRAVITY + world.sum(0), torque])

        state = solve_ivp(rate, (0, dt), state, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
        there = np.concatenate(centroidal.about_com(x, origins[t + 1]))
        np.testing.assert_allclose(there, state, atol=1e-11)
