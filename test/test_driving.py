"""A robot that is driven by velocity commands in MuJoCo: fast, pushed, and over stairs."""

import numpy as np
import pytest

from contact_id_controller.geometry import HeightField, TerrainFeet
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    feet_of,
    mujoco_robot,
)

MU = 0.6


def standing(name, surface=None, planner=(), **controller):
    """A robot without way-points, on a plane or a surface that its planner sees."""
    settings = controller_settings(name, friction_coefficient=[MU], **controller)
    world = mujoco_robot(settings, MU, terrain=surface)
    changes = {"waypoints_m": [], **dict(planner)}
    feet = None
    if surface is not None:
        changes["ground"] = "map"
        feet = TerrainFeet(world.robot, feet_of(settings), surface, MU)
    return InProcessRun(name, settings, world, planner=changes, feet=feet, surface=surface)


def drive(walk, seconds, errors=None):
    """Places of the base (n, 2), m, while nothing falls; errors: to which mean joint errors, rad, are added."""
    places = []
    for _ in range(round(seconds / walk.settings.period_s)):
        period = walk.advance()
        state = period.after
        if errors is not None:
            wanted = period.result.reference.position
            errors.append(np.abs(walk.robot.joints_of(period.before.q) - wanted).mean())
        assert 1.0 - 2.0 * float(state.q[3:5] @ state.q[3:5]) > 0.8, f"fell at {state.time_s} s"
        places.append(state.q[:2].copy())
    return np.array(places)


def test_the_quadruped_walks_half_a_metre_a_second():
    """With feet that swing for longer: at duty factor .75 its joints would be too slow."""
    walk = standing("quadruped", planner={"duty_factor": 0.6, "max_acceleration_m_s2": 1.0})
    walk.planner.set_velocity((0.5, 0.0))
    drive(walk, 1.2)
    way = drive(walk, 0.9)
    assert (way[-1] - way[0])[0] / 0.9 == pytest.approx(0.5, abs=0.05)


def test_a_bound_in_the_trots_period_is_shorter():
    """Within .3 s on the feet of an end the quadruped pitched until its joints erred by .05 rad."""
    walk, errors = standing("quadruped", planner={"gait": "bound"}), []
    walk.planner.set_velocity((0.2, 0.0))
    drive(walk, 2.0)
    way = drive(walk, 2.0, errors)
    assert (way[-1] - way[0])[0] / 2.0 == pytest.approx(0.2, abs=0.05)
    assert np.mean(errors) < 0.03


def test_go2_walks_two_and_a_half_metres_a_second():
    """Late feet came down at .08 m/s, whatever the base did: it fell after 3.7 s."""
    walk, errors = standing("go2", planner={"max_acceleration_m_s2": 1.0}), []
    walk.planner.set_velocity((2.5, 0.0))
    drive(walk, 3.0)
    way = drive(walk, 2.0, errors)
    assert (way[-1] - way[0])[0] / 2.0 > 2.25 and np.mean(errors) < 0.05


@pytest.mark.parametrize("side", [1.0, 1j, -1.0])
def test_a_push_of_one_newton_second_is_walked_off(side):
    walk = standing("quadruped", planner={"step_in_place": True})
    drive(walk, 0.7)
    pushed = walk.world.mujoco_data.xfrc_applied[1]
    pushed[:2] = 10.0 * np.array([side.real, side.imag])  # for .1 s
    drive(walk, 0.1)
    pushed[:] = 0.0
    drive(walk, 0.8)
    assert np.linalg.norm(walk.state.v[:2]) < 0.05


@pytest.mark.parametrize("side", [1j, -1j])
@pytest.mark.parametrize("after_s", [0.089, 0.126, 0.239])
def test_a_push_beyond_where_the_feet_stand_is_answered_by_a_step_at_once(side, after_s):
    """.8 m/s aside, while all feet stand or two swing; it fell within .3 to .6 s."""
    walk = standing("quadruped", planner={"step_in_place": True})
    drive(walk, 1.3 + after_s)
    force = 0.8 * walk.robot.mass / 0.1
    pushed = walk.world.mujoco_data.xfrc_applied[1]
    pushed[:2] = force * np.array([side.real, side.imag])
    drive(walk, 0.1)
    pushed[:] = 0.0
    drive(walk, 1.2)
    assert np.linalg.norm(walk.state.v[:2]) < 0.3


def test_the_quadruped_walks_over_a_step_of_five_centimetres_and_down_again():
    x = np.arange(-1.0, 2.5, 0.01)
    heights = np.repeat(np.where((x > 0.4) & (x < 0.95), 0.05, 0.0)[:, None], 3, axis=1)
    surface = HeightField(x, np.array([-1.0, 0.0, 1.0]), heights)
    slow = {"gait_period_s": 0.5, "duty_factor": 0.7, "step_height_m": 0.02}
    over = {"max_step_height_m": 0.08, "foothold_search_m": 0.03}
    walk = standing("quadruped", surface, slow | over, touchdown_speed_m_s=0.2)
    low = walk.state.q[2]
    walk.planner.set_velocity((0.15, 0.0))
    drive(walk, 5.0)
    assert walk.state.q[0] > 0.55 and walk.state.q[2] - low == pytest.approx(0.05, abs=0.01)
    drive(walk, 4.5)
    assert walk.state.q[0] > 1.2 and walk.state.q[2] == pytest.approx(low, abs=0.01)


def test_a_touch_before_a_foot_lifts_is_no_landing():
    """Here plans are made 48 ms after lift-off, just past the middle of a swing: 50 ms before, the foot stood."""
    walk = standing("quadruped", planner={"ground": "felt", "duty_factor": 0.69})
    walk.planner.set_velocity((0.2, 0.0))
    for _ in range(20):
        drive(walk, 0.05)
        heights = [path.active(np.inf).place[2] for path in walk.planner._footsteps.paths]
        assert max(heights) < walk.planner.settings.foot_radius_m + 0.002


HIGH = {"posture": 2 * [0.068, 0.595, -1.06, -0.068, 0.595, -1.06]}
SLOW_GAIT = {"gait_period_s": 0.6, "duty_factor": 0.8}


@pytest.mark.parametrize(
    "name, gait, speed_m_s, changes, error_rad",
    [
        ("quadruped", "walk", 0.1, SLOW_GAIT, 0.002),
        ("quadruped", "pace", 0.2, {"gait_period_s": 0.2}, 0.0055),
        ("quadruped", "bound", 0.2, {"gait_period_s": 0.2}, 0.013),
        ("solo12", "pace", 0.2, {"gait_period_s": 0.2}, 0.0085),
        ("solo12", "bound", 0.2, {"gait_period_s": 0.2}, 0.0045),
        ("go2", "bound", 0.2, {}, 0.006),
        ("go2", "bound", 0.2, HIGH, 0.006),
    ],
)
def test_gaits_by_name_walk(name, gait, speed_m_s, changes, error_rad):
    """Solo12 with half of the joint error of a base that is planned level, .037 and .026 rad; the quadruped with less than
    where swings are shorter than its joints lift the feet: .010 and .017 rad at .15 m/s; Go2's was .010
    where late feet came down at .08 m/s while the base tipped onto them, and .016 on high legs, whose knees were braked
    far from their ends."""
    walk = standing(name, planner={"gait": gait, **changes})
    walk.planner.set_velocity((speed_m_s, 0.0))
    drive(walk, 1.0)
    way = drive(walk, 1.0, errors := [])
    assert (way[-1] - way[0])[0] == pytest.approx(speed_m_s, rel=0.1)
    assert np.mean(errors) < error_rad


def test_a_robot_that_trots_goes_on_walking():
    walk = standing("quadruped", planner={"gait": "trot", **SLOW_GAIT})
    walk.planner.set_velocity((0.1, 0.0))
    drive(walk, 1.2)
    walk.planner.set_gait("walk")
    drive(walk, 0.6)
    fewest = 4
    for _ in range(600):
        period = walk.advance()
        fewest = min(fewest, walk.controller.planned_stance(period.before.time_s).sum())
    assert fewest == 3 and walk.state.q[0] > 0.15
