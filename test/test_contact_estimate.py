"""Contact as an estimate: MuJoCo's forces and its ground judge what the controller feels and learns."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT

pytest.importorskip(
    "mujoco", reason="needs the simulated robots, whose contact forces are the judge"
)

from test_torques_ahead import STANDING, quadruped_guard

from contact_id_controller.control.contact_estimate import (
    ROUGHEST_M,
    _learn_round,
    _weigh,
    contact_room,
)
from contact_id_controller.control.feedback import SEARCH_S, consistent_acceleration
from contact_id_controller.control.memory import ESTIMATED
from contact_id_controller.geometry import HalfSpace, HeightField
from contact_id_controller.new_robot.first_parameters import propose
from contact_id_controller.planning.gait.ground import LevelGround
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    estimated_state,
    mujoco_robot,
    section,
)
from contact_id_controller.runs.perturbed_runs import Case, config_of, run
from contact_id_controller.safety.states import JointReading


def outcome(robot, name="", size=0.0, *changes, seconds=1.0):
    return run(Case(str(config_of(robot)), name, size, 0, seconds, "", changes))


@pytest.mark.parametrize(
    "robot, name, size",
    [
        ("quadruped", "ground_height", 0.02),
        ("quadruped", "ground_height", 0.003),
        ("quadruped", "ground_height", -0.02),
        ("quadruped", "ground_height", 0.0005),
        ("go2", "ground_height", 0.0009),
        ("solo12", "ground_height", 0.0002),
        ("anymal_c", "ground_height", 0.00005),
        ("quadruped", "slope", 12.0),
        ("solo12", "slope", -12.0),
    ],
)
def test_ground_that_nobody_told_of_is_walked_on(robot, name, size):
    there, nominal = outcome(robot, name, size), outcome(robot)
    assert there.failed_s is None
    assert there.joint_error_rad < 3.0 * nominal.joint_error_rad
    assert there.limits["contact unseen"] < 0.02


@lru_cache
def stepped(robot, height):
    """A biped's plan over stones, .5 s into its second step, all of the ground higher by so many m."""
    return run(Case(str(ROOT / "config/plans" / f"{robot}.yaml"), "ground_height", height, 0, 2.4))


@pytest.mark.parametrize(
    "robot, height",
    [("talos", 0.0002), ("talos", 0.003), ("talos", -0.01), ("g1", 0.0002), ("g1", 0.01)],
)
def test_soles_step_over_stones_that_are_elsewhere_as_if_they_were_told(robot, height):
    there, nominal = stepped(robot, height), stepped(robot, 0.0)
    assert there.failed_s is None
    assert there.joint_error_rad < 1.2 * nominal.joint_error_rad


@pytest.mark.parametrize(
    "robot, height", [("talos", 0.0), ("g1", 0.0), ("g1", 0.003), ("g1", -0.003)]
)
def test_plans_over_stones_are_walked_to_their_end(robot, height):
    """G1 fell at 6.5 and 6.2 s: corners of its soles hovered, and ground was learnt from a sole that was thrown down."""
    nominal = run(Case(str(ROOT / "config/plans" / f"{robot}.yaml"), "ground_height", height))
    assert nominal.failed_s is None and nominal.joint_error_rad < 1.5e-3


@pytest.mark.parametrize(
    "robot, seed", [("talos", 0), ("talos", 3), ("g1", 0), ("g1", 14), ("g1", 44)]
)
def test_soles_bear_ground_mass_friction_and_delay_that_nobody_told_of(robot, seed):
    """Scenes in which soles rolled over their edges: TALOS fell at 4.1 and 2.9 s, G1 at 4.41, 4.43 and 4.42 s."""
    file = ROOT / "config/plans" / f"{robot}.yaml"
    assert run(Case(str(file), "scene", 1.0, seed, 4.5)).failed_s is None


def test_where_the_ground_is_as_believed_little_changes():
    before = outcome("solo12", "", 0.0, "contact_sources=[geometry,schedule]")
    assert outcome("solo12").joint_error_rad == pytest.approx(before.joint_error_rad, rel=0.25)


def test_what_is_felt_is_handed_over():
    """A copied controller wrote into the first one's array; the rest are found anew in each period."""
    assert set(contact_room(1)) - set(ESTIMATED) == {"began", "ended", "foot_speed"}


def test_a_foot_that_is_led_down_and_does_not_come_down_stands(tmp_path):
    """HyQ's late foot touched with an eighth of its share, was led down .15 s long, and the robot fell on three feet."""
    file = tmp_path / "hyq.yaml"
    urdf = "example-robot-data://hyq_description/robots/hyq_no_sensors.urdf"
    file.write_text(propose(urdf).text, encoding="utf-8")
    there = run(Case(str(file), "bumps", 0.05, 1, 2.4))
    assert there.failed_s is None
    assert there.joint_error_rad < 0.01


def test_feet_that_graze_a_bump_stand_before_the_others_lift():
    """Go2's two late feet rested on bumps with a tenth of their share, unfelt; then the other two lifted: 17 mrad."""
    assert run(Case(str(config_of("go2")), "bumps", 0.05, 10, 1.5)).joint_error_rad < 0.012


def test_bumps_of_five_centimetres_without_a_file_are_walked_on():
    assert outcome("go2", "bumps", 0.05, seconds=1.5).failed_s is None


@pytest.fixture(scope="module")
def bumps():
    """Go2's walk of 1.5 s on bumps of 5 cm: controller; rows of planned, stands, caught (n,), weights (nv,),
    force, N, and height of each foot above the ground, m (n,).
    """
    settings = controller_settings("go2")
    grid = np.linspace(-1.0, 1.0, 21)
    ground = HeightField(grid, grid, np.random.default_rng(2).uniform(-0.025, 0.025, (21, 21)))
    world = mujoco_robot(settings, 0.6, terrain=ground, imu_frame="")
    posture = np.array(section("go2", "simulated_robot")["initial_joint_positions"])
    start = world.place_on_ground(world.robot.configuration((0, 0, 0, 0, 0, 0, 1), posture))
    going = InProcessRun("go2", settings, world, start=world.stand_on_ground(start))
    period, robot, rows = going.controller.period, world.robot, []
    for _ in range(1500):
        forces = going.advance().forces[:, 2]
        pin.framesForwardKinematics(robot.model, robot.data, going.state.q)
        places = [robot.data.oMf[robot.frame_id(foot.frame)].translation for foot in settings.feet]
        above = [
            x[2] - foot.radius_m - ground.height(*x[:2]) for x, foot in zip(places, settings.feet)
        ]
        now = period.planned, period.stands, period.caught, period.weights
        rows.append([*map(np.copy, (*now, forces, above))])
    return going.controller, [np.array(column) for column in zip(*rows)]


def test_feet_that_meet_bumps_in_their_swing_stand_there(bumps):
    controller, (_, stands, caught, _, forces, _) = bumps
    carries = forces > 0.08 * controller.robot.weight
    assert stands[1:][carries[:-1]].mean() > 0.98
    assert caught.any()


def test_a_foot_that_has_met_a_bump_does_not_push_the_base_by_what_is_left_of_its_swing(bumps):
    controller, (_, _, caught, weights, _, _) = bumps
    least, robot, others = controller.settings.joint_weight, controller.robot, []
    for i, link in enumerate(controller.feet.links):
        leg = np.flatnonzero(robot.supports[link][6:]) + 6
        np.testing.assert_allclose(weights[caught[:, i]][:, leg], least)
        alone = caught[:, i] & (caught.sum(axis=1) == 1)
        others += np.delete(weights[alone], [*range(6), *leg], axis=1).tolist()
    assert np.median(others) > 10.0 * least


def test_feet_above_bumps_come_down_as_fast_as_heights_differ(bumps, walk):
    """Of eight such walks feet hang 3 mm and more above bumps in 3.9 % of their stance, at the usual speed in 5.7 %."""
    controller = bumps[0]
    assert 0.005 < controller.period.rough[0] < 0.05
    assert walk[0].period.rough[0] < 0.4 * 0.02  # elsewhere, but level
    period, falls = controller.memory.copy().period, []
    settings, rough = period.settings, 0.02
    moves, axes = settings.supports[settings.links[0]], period.jacobian
    rows = (axes[:3] + np.cross(axes[3:].T, period.points[0]).T) * moves
    period.touching[:] = period.landing[:] = False
    period.landing[0] = True
    for period.rough[0] in (0.0, rough):
        consistent_acceleration(period)
        falls.append(period.normals[0] @ rows @ period.acceleration)
    faster = rough / SEARCH_S - settings.touchdown_speed_m_s
    assert faster > 0.0
    wanted = faster / settings.touchdown_time_constant_s
    assert falls[0] - falls[1] == pytest.approx(wanted, rel=1e-3)


def test_a_swing_that_the_ground_stops_is_a_touchdown_though_it_bears_little(bumps):
    """A foot of the quadruped bore a third of its share for 30 ms, unfelt, while its plan went on by half a radian."""
    for comes, stands in ((0.0, True), (0.5, False)):
        period = bumps[0].memory.copy().period
        period.planned[0] = period.stands[0] = period.caught[0] = period.missed[0] = False
        period.left[0], period.blocked[0] = True, 0.0
        period.pressure[0] = 0.4 * period.settings.share_n
        period.foot_speed[0] = 0.1, 0.5, comes
        for _ in range(20):
            _weigh(period, 0, 0.003, True, False, False, True, True)
        assert period.stands[0] == stands


def test_a_swing_that_lags_is_no_touchdown_before_it_comes_down(bumps):
    """Legs that rotors hold back seemed to bear something while they rose: with all errors at half size Go2 erred by 20."""
    for speeds_m_s, stands in (((-0.2,), False), ((0.0,), False), ((0.4, 0.0), True)):
        period = bumps[0].memory.copy().period
        period.planned[0] = period.stands[0] = period.caught[0] = period.missed[0] = False
        period.left[0], period.pressure[0] = True, 0.4 * period.settings.share_n
        period.foot_speed[0] = 0.1, -0.5, -0.5  # planned to rise, and rises
        _weigh(period, 0, 0.003, True, False, False, True, True)
        for comes in speeds_m_s:
            for _ in range(20):
                period.foot_speed[0] = 0.1, 0.5, comes
                _weigh(period, 0, 0.003, True, False, False, True, True)
        assert period.stands[0] == stands


def test_a_step_far_lower_than_expected_throws_no_late_foot_down(bumps):
    period = bumps[0].memory.copy().period
    period.began[0] = True
    _learn_round(period, 0, -0.4, 0.0, True, np.zeros(3))
    assert period.rough[0] == ROUGHEST_M


@pytest.fixture(scope="module")
def walk():
    """A walk of .8 s on ground 2 cm higher: controller, rows of (time, felt, stands, simulated force, height), (n,) each."""
    settings = controller_settings("quadruped")
    ground = HalfSpace(offset=0.02)
    world = mujoco_robot(settings, 1.0, terrain=ground, imu_frame="")
    posture = np.array(section("quadruped", "simulated_robot")["initial_joint_positions"])
    start = world.place_on_ground(world.robot.configuration((0, 0, 0, 0, 0, 0, 1), posture))
    going, rows = InProcessRun("quadruped", settings, world, start=start), []
    for _ in range(800):
        done = going.advance()
        period = going.controller.period
        felt, stands = period.pressure.copy(), going.controller.felt_contacts
        robot = world.robot
        pin.framesForwardKinematics(robot.model, robot.data, done.before.q)
        heights = [
            robot.data.oMf[robot.frame_id(foot.frame)].translation[2] - foot.radius_m - 0.02
            for foot in going.controller.feet.feet
        ]
        rows.append((done.before.time_s, felt, stands, done.forces[:, 2].copy(), heights))
    return going.controller, [np.array(column) for column in zip(*rows)]


def test_legs_feel_the_forces_that_mujoco_has(walk):
    controller, (_, felt, _, forces, _) = walk
    weight = controller.robot.weight
    # A step's force is felt from the next step on; low-passed.
    late = np.abs(felt[201:] - forces[200:-1])
    assert np.median(late) < 0.01 * weight
    assert late.mean() < 0.05 * weight


def test_feet_are_felt_where_they_carry(walk):
    controller, (_, _, stands, forces, heights) = walk
    even = controller.robot.weight / 4.0
    carries, free = forces[100:-1] > 0.5 * even, heights[101:] > 0.002
    assert free.mean() > 0.1
    assert stands[101:][carries].mean() > 0.97
    assert not stands[101:][free].any()


def test_times_of_touchdown_are_known(walk):
    controller, (times, _, stands, _, _) = walk
    began = np.array([times[np.flatnonzero(np.diff(s.astype(int)) > 0) + 1][-1] for s in stands.T])
    np.testing.assert_allclose(controller.period.changed_s[:, 0], began, atol=1e-9)


def test_the_ground_is_where_feet_have_touched(walk):
    controller, _ = walk
    np.testing.assert_allclose(controller.period.touchdowns[:, 2], 0.02, atol=5e-4)


def test_another_controller_goes_on_with_what_is_known(walk):
    controller, _ = walk
    other = type(controller)(controller.robot, controller.settings)
    other.take_over(controller)
    np.testing.assert_array_equal(other.period.touchdowns, controller.period.touchdowns)
    np.testing.assert_array_equal(other.period.stands, controller.period.stands)
    assert controller.period.rise.any()
    told = replace(controller.settings, contact_sources=("geometry", "schedule"))
    blind = type(controller)(controller.robot, told)
    blind.take_over(controller)
    assert not blind.period.rise.any(), "nobody estimates the ground, and it stays lower or higher"


@lru_cache
def estimated_walk(sensors, seconds):
    """Solo12 on the estimate from these sensors: weights of joints (t,); touching, force, N, height, m (t, n).

    By the controller, by MuJoCo and by its true state, after the first second.
    """
    settings = controller_settings("solo12", friction_coefficient=[0.6])
    world = mujoco_robot(settings, 0.6, imu_frame="")
    estimate = estimated_state("solo12", world, sensors)
    going, rows = InProcessRun("solo12", settings, world, estimator=estimate), []
    robot, feet = world.robot, going.controller.feet.feet
    for _ in range(round(1000 * seconds)):
        done = going.advance()
        period = going.controller.period
        pin.framesForwardKinematics(robot.model, robot.data, done.before.q)
        places = [robot.data.oMf[robot.frame_id(foot.frame)].translation[2] for foot in feet]
        heights = np.array(places) - [foot.radius_m for foot in feet]
        rows.append((period.weights[6], period.touching.copy(), done.forces[:, 2].copy(), heights))
    return [np.array(column)[1000:] for column in zip(*rows)]


def test_noise_of_the_state_is_not_taken_for_other_ground():
    """Touchdowns .05 to .1 mm above the modelled ground made joints weigh .1, and the torque rate a fifth larger."""
    weights, *_ = estimated_walk("good", 10.0)
    assert weights.mean() < 5.0 * controller_settings("solo12").joint_weight


def test_where_heights_are_noisier_the_base_is_not_trusted_as_much():
    """With motor currents the same weight as on sure ground makes legs slip on ice."""
    weights, *_ = estimated_walk("motor_currents", 3.0)
    assert weights.mean() > 50.0 * controller_settings("solo12").joint_weight


def test_a_foot_that_has_bounced_is_not_held_in_the_air():
    """Feet stayed in contact for up to 40 ms .2 to .8 mm above the ground, and fell when they were loaded."""
    _, touches, forces, heights = estimated_walk("good", 10.0)
    held = touches & (forces == 0.0) & (heights > 2e-4)
    assert held.mean() < 2e-3


def stands_at(guard, first, heights, step_ns=1_000_000):
    """States of a robot at rest whose base is said to be so high, m; the last torques, N·m."""
    for number, height in enumerate(heights, first):
        time_ns = 10_000_000_000 + step_ns * number
        guard.take_base(np.r_[0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0, np.zeros(6)], time_ns)
        sent = guard.step(JointReading(time_ns, STANDING, np.zeros(12))).copy()
        guard.finish(0.0)
    return sent


@pytest.mark.parametrize(
    "changes, step_ms",
    [({}, 25), ({"period_s": 0.025, "contact_time_constant_s": 0.1}, 25), ({"solve_every": 25}, 1)],
)
def test_feet_are_not_missed_where_states_or_solutions_are_too_far_apart_to_feel_them(
    changes, step_ms
):
    guard = quadruped_guard(command_horizon_s=0.2, recovery_window_s=0.2, **changes)
    sent = stands_at(guard, 0, np.full(600, 0.162), step_ms * 1_000_000)
    assert guard.result.contact.all() and not guard.controller.period.missed.any()
    assert np.abs(sent).max() > 0.3


@pytest.mark.parametrize("stopped", [False, True])
def test_ground_that_was_learnt_elsewhere_is_forgotten(stopped):
    """The base drifts down by .2 m, which is learnt as ground, and is then set right by a jump, or while stopped."""
    guard = quadruped_guard(command_interface="effort")
    drift = np.r_[np.full(30, 0.162), np.linspace(0.162, -0.038, 400), np.full(270, -0.038)]
    stands_at(guard, 0, drift)
    assert guard.controller.period.rise.max() < -0.19
    if stopped:
        guard.emergency_stop()
        stands_at(guard, 700, np.full(20, 0.162))
        assert guard.release_emergency_stop(True) == guard.resume() == ""
    sent = stands_at(guard, 720, np.full(700, 0.162))
    assert guard.result.contact.all()
    assert np.abs(sent).max() > 0.3


FEET = np.array([[0.2, 0.1, 0.01], [0.2, -0.1, 0.01], [-0.2, 0.1, 0.01], [-0.2, -0.1, 0.01]])


def test_level_ground_stays_exactly_where_touchdowns_are_within_a_millimetre():
    ground = LevelGround(0.01, 4)
    ground.begin(FEET + [0.0, 0.0, 9e-4], np.ones(4, bool))
    assert not ground.follows
    assert ground.stands(0, FEET[0] + 9e-4) == 0.01
    assert ground.foothold(0, 0.3 + 0.1j)[2] == 0.01


def test_touchdowns_on_a_slope_raise_the_footholds_to_come():
    ground = LevelGround(0.01, 4)
    ground.begin(FEET, np.zeros(4, bool))
    for foot, center in enumerate(FEET):
        ground.feel(foot, center + [0.0, 0.0, 0.1 * center[0]], True)
    assert ground.follows
    np.testing.assert_allclose(ground.foothold(0, 0.3 + 0.1j)[2], 0.04)
    ground.feel(0, FEET[0] + [0.0, 0.0, 1.0], False)  # one that does not touch says nothing
    np.testing.assert_allclose(ground.foothold(0, 0.3 + 0.1j)[2], 0.04)
    assert ground.obstacle(FEET[0], FEET[0], np.zeros(1), np.ones(1)) < 1e-12


def test_where_touchdowns_lie_off_their_plane_swings_are_higher():
    ground = LevelGround(0.01, 4)
    centers = FEET + np.array([0.02, 0.0, 0.0, 0.02])[:, None] * [0.0, 0.0, 1.0]
    ground.begin(centers, np.ones(4, bool))
    np.testing.assert_allclose(ground.obstacle(FEET[0], FEET[0], np.zeros(1), np.ones(1)), 0.02)
