"""The gait planner: feet that stand stand still, feet that swing swing, and plans join smoothly."""

import contextlib
import itertools
import resource
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from kinematic_walk import ROBOTS, START_S, KinematicWalk, planned_state

from contact_id_controller.exceptions import (
    ConfigurationError,
    StateError,
    TrajectoryError,
    UnknownFrameError,
)
from contact_id_controller.planning.gait import planner as planner_module
from contact_id_controller.planning.gait.command import ARRIVAL_RADIUS_M, WaypointFollower
from contact_id_controller.planning.gait.gait_clock import GaitClock
from contact_id_controller.planning.gait.leg_kernels import bias, pose_leg, reach
from contact_id_controller.planning.gait.legs import Legs
from contact_id_controller.planning.gait.planner import STAND_TIME_S, GaitPlanner
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.gait import HORIZON_S

QUADRUPED = ROBOTS["quadruped"]
WAYPOINTS = (0.0, 0.0, 0.25, 0.0, 0.0, 0.25, 0.0, -0.25, -0.25, 0.0)


def walking(robot=QUADRUPED, linear=(0.2, 0.05), yaw_rate=0.4, **settings):
    """A walk under way, after the first steps."""
    walk = KinematicWalk(robot, **settings)
    walk.planner.set_velocity(linear, yaw_rate)
    walk.walk(1.0)
    return walk


def in_force(plan, settings, step_s=1e-3):
    """Times at which a plan is the one that is followed."""
    return plan.joints.start_s + np.arange(1e-6, settings.plan_period_s, step_s)


# Feet


@pytest.mark.parametrize("name", ROBOTS)
def test_centres_of_standing_feet_are_at_rest_in_the_world(name):
    walk = walking(ROBOTS[name], rolls=False)
    places = {}
    for plan in walk.walk(0.6):
        assert plan.unreachable == ()
        for t in in_force(plan, walk.settings):
            centers, velocities, _ = walk.foot_motion(
                *planned_state(walk.model, plan.joints, plan.base, t)
            )
            for foot, stands in enumerate(plan.contacts.sample(t)):
                if not stands:
                    places.pop(foot, None)
                    continue
                first = places.setdefault(foot, centers[foot])
                assert np.linalg.norm(centers[foot] - first) < 1e-4
                assert np.linalg.norm(velocities[foot]) < 1e-3
                assert centers[foot, 2] == pytest.approx(walk.settings.foot_radius_m, abs=1e-5)


@pytest.mark.parametrize("name", ["quadruped", "solo12"])
def test_contact_points_of_rolling_feet_are_at_rest(name):
    walk = walking(ROBOTS[name])
    landed = dict.fromkeys(range(4), 0.0)
    speeds, centre_speeds = [], []
    for plan in walk.walk(0.6):
        for t in in_force(plan, walk.settings):
            _, centers, contacts = walk.foot_motion(
                *planned_state(walk.model, plan.joints, plan.base, t)
            )
            for foot, stands in enumerate(plan.contacts.sample(t)):
                if not stands:
                    landed[foot] = t
                elif t > landed[foot] + 0.022:  # they land without rolling
                    speeds.append(np.linalg.norm(contacts[foot]))
                    centre_speeds.append(np.linalg.norm(centers[foot]))
    assert max(speeds) < 1e-3
    assert max(centre_speeds) > 1e-2  # what would be slip without rolling


@pytest.mark.parametrize("profile", ["cubic", "quintic"])
def test_feet_swing_as_high_as_the_step_height(profile):
    walk = walking(swing_profile=profile, step_height_m=0.02)
    highest = 0.0
    for plan in walk.walk(0.6):
        for t in in_force(plan, walk.settings):
            q, _ = planned_state(walk.model, plan.joints, plan.base, t)
            highest = max(highest, walk.feet(q)[:, 2].max())
    assert highest - walk.settings.foot_radius_m == pytest.approx(0.02, abs=2e-4)


@pytest.mark.parametrize("profile", ["cubic", "quintic"])
def test_feet_leave_and_meet_the_ground_at_rest(profile):
    walk = walking(swing_profile=profile, rolls=False)
    switches = 0
    for plan in walk.walk(0.3):
        stance = plan.contacts.stance
        for k in np.flatnonzero((stance[1:] != stance[:-1]).any(axis=1)):
            t = plan.joints.start_s + plan.joints.times_s[k + 1]
            _, velocities, _ = walk.foot_motion(
                *planned_state(walk.model, plan.joints, plan.base, t - 1e-6)
            )
            assert np.abs(velocities[stance[k + 1] != stance[k]]).max() < 5e-3
            switches += 1
    assert switches > 4


def test_walk_moves_at_the_commanded_velocity():
    walk = walking(linear=(0.15, -0.1), yaw_rate=0.0)
    before, _ = walk.state(walk.time_s)
    walk.walk(1.0)
    assert walk.q[:2] - before[:2] == pytest.approx([0.15, -0.1], abs=2e-3)


def test_turning_walk_keeps_its_direction_relative_to_the_body():
    walk = walking(linear=(0.2, 0.0), yaw_rate=0.5)
    walk.walk(1.5)
    assert walk.v[:6] == pytest.approx([0.2, 0, 0, 0, 0, 0.5], abs=2e-3)


def test_velocity_in_the_world_frame_does_not_turn_with_the_body():
    walk = walking(yaw_rate=0.0)
    walk.planner.set_velocity((0.1, 0.1), 0.6, frame="world")
    walk.walk(1.5)
    rotation = pin.Quaternion(walk.q[3:7]).matrix()
    assert (rotation @ walk.v[:3])[:2] == pytest.approx([0.1, 0.1], abs=5e-3)


# The gait


def test_duty_factor_and_touchdown_phases_are_as_set(monkeypatch):
    monkeypatch.setattr(planner_module, "STAND_TIME_S", 0.0)
    walk = KinematicWalk(QUADRUPED)
    walk.planner.set_velocity((0.1, 0.0))
    plans = walk.walk(1.5)
    gait_start = plans[0].joints.start_s
    times = gait_start + 0.3 + np.arange(0.0, 0.9, 5e-4) + 1e-5
    rows = []
    for t in times:
        plan = [p for p in plans if p.contacts.start_s <= t][-1]
        rows.append(plan.contacts.sample(t))
    stance = np.array(rows)
    assert stance.mean(axis=0) == pytest.approx(0.75 * np.ones(4), abs=2e-3)
    for foot, phase in enumerate((0.25, 0.75, 0.75, 0.25)):
        landings = times[1:][stance[1:, foot] & ~stance[:-1, foot]]
        cycles = (landings - gait_start) / 0.3
        assert cycles % 1.0 == pytest.approx(phase * np.ones(3), abs=3e-3)


def test_gait_clock_of_a_walk_with_one_foot_in_the_air():
    clock = GaitClock(2.0, 1.0, 0.8, (0.0, 0.5, 0.75, 0.25))
    assert clock.next_swing(0, 2.0) == pytest.approx((2.8, 3.0))
    assert clock.next_swing(0, 2.8) == pytest.approx((2.8, 3.0))
    assert clock.next_swing(0, 2.81) == pytest.approx((3.8, 4.0))
    assert clock.next_swing(3, 0.0) == pytest.approx((2.05, 2.25))  # never before the start


def test_planner_stands_first_and_stays_without_a_command():
    walk = KinematicWalk(QUADRUPED)
    walk.planner.set_velocity((0.2, 0.0))
    plans = walk.walk(0.6)
    standing = [p for p in plans if p.joints.start_s < START_S + STAND_TIME_S]
    assert len(standing) == 6 and not any(p.walking for p in standing)
    assert all(p.contacts.stance.all() for p in standing)
    assert plans[-1].walking and not plans[-1].contacts.stance.all()
    still = KinematicWalk(QUADRUPED)
    assert not any(p.walking for p in still.walk(1.0))
    assert np.abs(still.v).max() < 1e-6


def test_after_a_stop_the_feet_come_home_and_stay():
    walk = walking(linear=(0.2, 0.1), yaw_rate=0.5)
    walk.planner.set_velocity()
    plans = walk.walk(3.0)
    assert not plans[-1].walking and plans[-1].contacts.stance.all()
    assert np.abs(walk.v).max() < 1e-3
    level = walk.model.configuration([0, 0, 0, 0, 0, 0, 1], QUADRUPED.posture)
    rotation = pin.Quaternion(walk.q[3:7]).matrix()
    places = (walk.feet(walk.q) - walk.q[:3]) @ rotation
    assert np.abs(places - walk.feet(level))[:, :2].max() < 0.012


def test_stepping_in_place_is_an_option():
    walk = KinematicWalk(QUADRUPED, step_in_place=True)
    plans = walk.walk(1.5)
    assert plans[-1].walking and not plans[-1].contacts.stance.all()
    assert np.abs(walk.q[:2]).max() < 1e-4


# Joint plans


def test_positions_velocities_and_accelerations_of_a_plan_agree(monkeypatch):
    monkeypatch.setattr(planner_module, "GRID_S", 0.001)
    monkeypatch.setattr(planner_module, "HORIZON_S", 0.1)
    walk = walking()
    for plan in walk.walk(0.3):
        joints = plan.joints
        h = np.diff(joints.times_s)[:, None]
        q, v, a = joints.positions, joints.velocities, joints.accelerations
        usual = h[:, 0] > 2e-4  # not across a switch, where acceleration jumps
        by_velocity = h / 2 * (v[1:] + v[:-1]) + h**2 / 12 * (a[:-1] - a[1:])
        by_acceleration = h / 2 * (a[1:] + a[:-1])
        assert np.abs(np.diff(q, axis=0) - by_velocity)[usual].max() < 1e-6
        assert np.abs(np.diff(v, axis=0) - by_acceleration)[usual].max() < 2e-2
        assert np.abs(np.diff(v, axis=0)).max() > 1.0


def test_coarse_and_fine_points_describe_the_same_motion(monkeypatch):
    monkeypatch.setattr(planner_module, "STAND_TIME_S", 0.0)
    plans = []
    for grid_s in (planner_module.GRID_S, 0.001):
        monkeypatch.setattr(planner_module, "GRID_S", grid_s)
        walk = KinematicWalk(QUADRUPED)
        walk.planner.set_velocity((0.2, 0.1), 0.5)
        plans.append(walk.advance())
    coarse, fine = plans
    assert not coarse.contacts.stance.all()
    assert len(fine.joints.times_s) > 10 * len(coarse.joints.times_s)
    for t in coarse.joints.start_s + np.arange(1e-6, HORIZON_S, 1e-3):
        first, second = coarse.joints.sample(t), fine.joints.sample(t)
        assert first.position == pytest.approx(second.position, abs=5e-4)
        assert first.velocity == pytest.approx(second.velocity, abs=5e-2)


def test_three_parts_of_a_plan_share_their_times():
    plan = KinematicWalk(QUADRUPED).advance()
    assert plan.joints.start_s == pytest.approx(START_S + 0.02)
    assert plan.base.start_s == plan.contacts.start_s == plan.joints.start_s
    assert np.array_equal(plan.joints.times_s, plan.base.times_s)
    assert np.array_equal(plan.joints.times_s, plan.contacts.times_s)
    assert plan.joints.times_s[[0, -1]] == pytest.approx([0.0, 0.3])


@pytest.mark.parametrize("settings", [{}, {"rolls": False}])
def test_successive_plans_agree_where_they_overlap(settings):
    walk = walking(**settings)
    plans = walk.walk(1.0)
    for old, new in itertools.pairwise(plans):
        t = new.joints.start_s
        before, after = old.joints.sample(t), new.joints.sample(t)
        assert after.position == pytest.approx(before.position, abs=1e-4)
        assert after.velocity == pytest.approx(before.velocity, abs=5e-3)
        assert new.base.sample(t)[0] == pytest.approx(old.base.sample(t)[0], abs=1e-6)
        for ahead in (0.05, 0.1, 0.2):
            old_then, new_then = old.joints.sample(t + ahead), new.joints.sample(t + ahead)
            assert new_then.position == pytest.approx(old_then.position, abs=5e-3)


def test_change_of_command_bends_the_plan_within_the_acceleration_limit():
    walk = walking(linear=(0.2, 0.0), yaw_rate=0.0, max_acceleration_m_s2=0.4)
    walk.planner.set_velocity((-0.2, 0.0))
    plans = walk.walk(2.0)
    for old, new in itertools.pairwise(plans):
        t = new.joints.start_s
        assert new.joints.sample(t).velocity == pytest.approx(
            old.joints.sample(t).velocity, abs=5e-3
        )
    accelerations = [
        new.base.sample(new.base.start_s + 1e-6).linear_acceleration[0] for new in plans
    ]
    assert min(accelerations) == pytest.approx(-0.4, abs=0.02)
    assert walk.v[0] == pytest.approx(-0.2, abs=2e-3)


# Way-points


def test_way_points_of_the_paper_are_visited_in_order_and_again():
    walk = KinematicWalk(QUADRUPED, waypoints_m=WAYPOINTS)
    reached, points = [], np.array(WAYPOINTS).reshape(-1, 2)
    for _ in range(500):
        count = walk.advance().points_reached
        while len(reached) < count:
            reached.append(walk.q[:2].copy())
    assert len(reached) >= 8
    for k, place in enumerate(reached):
        assert np.linalg.norm(place - points[k % 5]) < ARRIVAL_RADIUS_M + 0.02
    yaw = 2 * np.arctan2(walk.q[5], walk.q[6])
    assert abs(yaw) < 1e-3


def test_heading_can_turn_towards_the_way_point():
    walk = KinematicWalk(QUADRUPED, waypoints_m=(0.0, 0.4), heading="travel")
    walk.walk(8.0)
    assert np.linalg.norm(walk.q[:2] - [0.0, 0.4]) < 0.05
    assert 2 * np.arctan2(walk.q[5], walk.q[6]) == pytest.approx(np.pi / 2, abs=0.1)
    assert np.abs(walk.v[:6]).max() < 1e-2  # the only point: stay there


def test_follower_without_points_stands():
    command = WaypointFollower(np.zeros((0, 2)), 0.2).command(1 + 2j, 0.3)
    assert not command.moves


# Feedback


def test_plan_moves_smoothly_to_where_the_base_really_is():
    walk = walking(linear=(0.0, 0.0), yaw_rate=0.0)
    old = walk.advance()
    walk.q[0] += 0.01
    plan = walk.advance()
    t = plan.base.start_s
    assert plan.base.sample(t).position[0] == pytest.approx(
        old.base.sample(t).position[0], abs=1e-6
    )
    assert plan.base.sample(t).linear_velocity[0] == pytest.approx(0.0, abs=1e-3)
    moved = plan.base.sample(t + 0.29).position[0] - plan.base.sample(t).position[0]
    assert 0.006 < moved < 0.0101


def test_plan_takes_over_where_a_standing_foot_has_slipped_to():
    walk = KinematicWalk(QUADRUPED, rolls=False)
    plan = walk.walk(0.2)[-1]
    q = walk.q.copy()
    q[walk.model.q_index[0]] += 0.03  # the first joint of the left front leg
    slipped = walk.feet(q)[0] - walk.feet(walk.q)[0]
    assert np.linalg.norm(slipped[:2]) > 3e-3
    later = walk.planner.plan(walk.time_s, q, walk.v)

    def foot(some_plan, t):
        return walk.feet(planned_state(walk.model, some_plan.joints, some_plan.base, t)[0])[0]

    t = later.joints.start_s
    assert foot(later, t) == pytest.approx(foot(plan, t), abs=1e-6)
    way = foot(later, t + 0.29) - foot(later, t)
    assert way[:2] == pytest.approx(slipped[:2], abs=0.25 * np.linalg.norm(slipped[:2]))
    assert way[2] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("place, shift", [(0, 0.3), (1, -0.2)])
def test_robot_that_was_carried_away_starts_anew_by_standing(place, shift):
    walk = walking()
    walk.q[place] += shift
    carried = walk.q.copy()
    plan = walk.advance()
    assert plan.restarted and not plan.walking and plan.contacts.stance.all()
    assert plan.base.positions[0, :2] == pytest.approx(carried[:2], abs=1e-9)


def test_plan_starts_anew_after_a_gap_or_a_step_back_in_time():
    walk = walking()
    assert not walk.advance().restarted
    assert walk.planner.plan(walk.time_s + 5.0, walk.q, walk.v).restarted
    assert walk.planner.plan(walk.time_s - 5.0, walk.q, walk.v).restarted


def test_base_away_from_its_nominal_height_and_attitude_is_led_there():
    walk = KinematicWalk(QUADRUPED)
    walk.q[2] -= 0.02
    walk.q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.1, -0.08, 0.3)).coeffs()
    start = walk.q[:7].copy()
    first = walk.advance()
    assert first.base.positions[0] == pytest.approx(start[:3], abs=1e-9)
    assert abs(first.base.quaternions_xyzw[0] @ start[3:7]) == pytest.approx(1.0, abs=1e-9)
    last = walk.walk(1.0)[-1]
    assert last.base.positions[-1, 2] == pytest.approx(0.1718, abs=1e-3)
    roll, pitch, yaw = pin.rpy.matrixToRpy(pin.Quaternion(last.base.quaternions_xyzw[-1]).matrix())
    assert (roll, pitch, yaw) == pytest.approx((0.0, 0.0, 0.3), abs=1e-2)


# Targets out of reach


def test_feet_out_of_reach_are_reported_and_the_plan_stays_finite(monkeypatch):
    monkeypatch.setattr(planner_module, "STAND_TIME_S", 0.0)
    walk = KinematicWalk(QUADRUPED, step_height_m=0.5)
    walk.planner.set_velocity((0.2, 0.0))
    state = walk.q.copy(), walk.v.copy()
    plans = [walk.planner.plan(START_S + 0.05 * k, *state) for k in range(6)]
    assert set(plans[-1].unreachable) == set(QUADRUPED.feet)
    for plan in plans:
        joints = plan.joints
        assert np.isfinite(joints.positions).all()
        changes = np.abs(np.diff(joints.positions, axis=0)) / np.diff(joints.times_s)[:, None]
        assert changes.max() < 15.0 + 1e-6
        assert np.isfinite(joints.velocities).all() and np.isfinite(joints.accelerations).all()


def test_planner_recovers_when_targets_are_in_reach_again():
    walk = walking(linear=(2.5, 0.0), yaw_rate=0.0, max_acceleration_m_s2=10.0)
    assert walk.advance().unreachable
    walk.planner.set_velocity()
    assert walk.walk(3.0)[-1].unreachable == ()


# Kinematics of a leg


def prismatic_leg():
    """A body with legs of a turning, a sliding and another turning joint."""
    model = pin.Model()
    body = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    model.appendBodyToJoint(body, pin.Inertia.Random(), pin.SE3.Identity())
    parent = body
    rng = np.random.default_rng(3)
    for name, joint in (
        ("turn", pin.JointModelRX()),
        ("slide", pin.JointModelPZ()),
        ("turn2", pin.JointModelRevoluteUnaligned(np.array([0.6, 0.8, 0.0]))),
    ):
        placement = pin.SE3(pin.exp3(rng.standard_normal(3)), 0.2 * rng.standard_normal(3))
        parent = model.addJoint(parent, joint, placement, name)
        model.appendBodyToJoint(parent, pin.Inertia.Random(), pin.SE3.Identity())
    place = pin.SE3(pin.exp3(rng.standard_normal(3)), np.array([0.1, 0.0, -0.1]))
    model.addFrame(pin.Frame("foot", parent, place, pin.FrameType.OP_FRAME))
    model.lowerPositionLimit[7:] = -10.0
    model.upperPositionLimit[7:] = 10.0
    return RobotModel(model), ("foot",)


@pytest.mark.parametrize(
    "make",
    [prismatic_leg, lambda: (QUADRUPED.model(), QUADRUPED.feet)],
    ids=["prismatic", "quadruped"],
)
def test_leg_kernels_agree_with_pinocchio(make):
    robot, feet = make()
    legs = Legs(robot, feet)
    rng = np.random.default_rng(1)
    joints, rates = rng.standard_normal((2, robot.na))
    screws, homes = legs.chains(joints)
    q = legs.configuration(joints)
    v = robot.velocity(np.zeros(6), rates)
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q, v, np.zeros(robot.nv))
    pin.computeJointJacobians(robot.model, data, q)
    axes, place = np.empty((2, 3, 3)), np.empty(3)
    linear, angular, drift, spin = np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty(3)
    for leg, foot in enumerate(feet):
        columns = legs.columns[leg]
        pose_leg(screws[leg], homes[leg], joints[columns], axes, place, linear, angular)
        bias(axes, place, rates[columns], drift, spin)
        frame = robot.frame_id(foot)
        wanted = pin.updateFramePlacement(robot.model, data, frame)
        jacobian = pin.getFrameJacobian(robot.model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        moved = jacobian[:, robot.actuated[columns]]
        assert place == pytest.approx(wanted.translation)
        assert angular == pytest.approx(moved[3:])
        assert linear == pytest.approx(moved[:3])
        classical = pin.getFrameClassicalAcceleration(
            robot.model, data, frame, pin.LOCAL_WORLD_ALIGNED
        )
        assert spin == pytest.approx(classical.angular)
        assert drift == pytest.approx(classical.linear)


def test_reach_stops_at_the_nearest_point_and_at_joint_limits():
    robot = QUADRUPED.model()
    legs = Legs(robot, QUADRUPED.feet)
    posture = np.array(QUADRUPED.posture)
    screws, homes = legs.chains(posture)
    work = np.empty((2, 3, 3)), np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    hip = np.array([0.15, 0.06, 0.0])
    far = hip + np.array([0.0, 0.0, -0.5])
    angles = posture[legs.columns[0]].copy()
    miss = reach(screws[0], homes[0], far, legs.lower[0], legs.upper[0], 200, angles, *work)
    assert miss == pytest.approx(0.3, abs=2e-3)  # the leg is 0.2 m long
    near = legs.centers(legs.configuration(posture))[0] + [0.01, 0.02, 0.03]
    tight = posture[legs.columns[0]] + 0.05
    reach(screws[0], homes[0], near, tight - 0.1, tight, 50, angles, *work)
    assert (angles <= tight + 1e-12).all() and (angles >= tight - 0.1 - 1e-12).all()


def test_a_posture_that_was_not_given_is_that_of_the_first_state_after_a_reset():
    walk, still = KinematicWalk(QUADRUPED, posture=()), np.array(QUADRUPED.posture)
    spoiled = walk.q.copy()
    spoiled[walk.model.q_index] += 0.1
    walk.planner.plan(walk.time_s, spoiled, walk.v)
    walk.planner.reset()
    last = walk.walk(1.0)[-1].joints.positions[-1]
    np.testing.assert_allclose(last, still, rtol=0, atol=1e-3)


# Bad input


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"feet": ()}, "'feet' is empty"),
        ({"feet": ("LF_FOOT", "LF_FOOT", "LH_FOOT", "RH_FOOT")}, "more than once"),
        ({"touchdown_phases": (0.1, 0.2)}, "'touchdown_phases' has 2 values, must have 4"),
        ({"duty_factor": 1.2}, r"within \[0.1, 0.95\]"),
        ({"gait_period_s": "fast"}, "must be a number"),
        ({"swing_profile": "loop"}, "must be one of 'cubic', 'quintic'"),
        ({"waypoints_m": (1.0,)}, "must be pairs"),
        ({"plan_period_s": 0.01}, "must be 0.02 or more with gait phases"),
        ({"plan_period_s": 0.5}, r"within \[0.005, 0.28\]"),
        ({"step": 1.0}, "unknown parameter 'step'"),
        ({"posture": (0.1, 0.2)}, "has 2 values, must have one for each of the 12 joints"),
    ],
)
def test_bad_settings_are_refused_in_one_line(changes, words):
    with pytest.raises(ConfigurationError, match=words) as caught:
        GaitPlanner(QUADRUPED.model(), QUADRUPED.settings(**changes))
    assert "\n" not in str(caught.value)


def test_robots_that_cannot_be_planned_for_are_refused():
    with pytest.raises(UnknownFrameError, match="'paw'"):
        GaitPlanner(QUADRUPED.model(), QUADRUPED.settings(feet=("paw", *QUADRUPED.feet[1:])))
    with pytest.raises(ConfigurationError, match="needs at least 3"):
        GaitPlanner(QUADRUPED.model(), QUADRUPED.settings(feet=("LF_THIGH", *QUADRUPED.feet[1:])))
    fixed = RobotModel.from_urdf(QUADRUPED.urdf, floating_base=False)
    with pytest.raises(ConfigurationError, match="floating base"):
        GaitPlanner(fixed, QUADRUPED.settings())


def test_bad_states_and_commands_are_refused_and_change_nothing():
    walk = walking()
    spoilt = walk.q.copy()
    spoilt[9] = np.nan
    for q, v in (
        (spoilt, walk.v),
        (walk.q[:-1], walk.v),
        (walk.q, np.append(walk.v, 0.0)),
        (np.zeros_like(walk.q), walk.v),
    ):
        with pytest.raises(StateError):
            walk.planner.plan(walk.time_s, q, v)
    for time_s in (np.nan, np.inf):
        with pytest.raises(StateError, match="not finite"):
            walk.planner.plan(time_s, walk.q, walk.v)
    with pytest.raises(ConfigurationError, match="not finite"):
        walk.planner.set_velocity((np.nan, 0.0))
    with pytest.raises(ConfigurationError, match="'map'"):
        walk.planner.set_velocity((0.1, 0.0), frame="map")
    assert not walk.advance().restarted


def test_memory_does_not_grow_with_the_plans():
    """800 plans in a row; they kept 1.8 MB when quaternions were made by eigenpy."""
    walk = walking()
    last = walk.walk(0.1)[-1]
    q, v = planned_state(walk.model, last.joints, last.base, last.joints.start_s)
    grown = []
    for count in (200, 800):
        before = resident_mb()
        for k in range(count):
            # From the same place again and again: the plans themselves do not grow.
            walk.planner.plan(last.joints.start_s + 1e-3 * k, q, v)
        grown.append(resident_mb() - before)
    assert grown[1] < 1.0


def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


# Gaits by name

TOGETHER = {"trot": [{0, 3}, {1, 2}], "pace": [{0, 2}, {1, 3}], "bound": [{0, 1}, {2, 3}]}
"""Feet that swing together, of left front, right front, left hind, right hind."""


def swinging(walk, seconds):
    """Sets of feet that swing at one time, in the order of time, and how long each lasts, s."""
    seen = []
    for plan in walk.walk(seconds):
        for t in in_force(plan, walk.settings, 2e-3):
            swings = frozenset(np.flatnonzero(~plan.contacts.sample(t)).tolist())
            if not seen or seen[-1][0] != swings:
                seen.append([swings, 0.0])
            seen[-1][1] += 2e-3
    return seen


@pytest.mark.parametrize("gait", TOGETHER)
def test_feet_of_a_named_gait_swing_together(gait):
    walk = walking(gait=gait, touchdown_phases=[0.1, 0.2, 0.3, 0.4])
    seen = {swings for swings, _ in swinging(walk, 0.6)}
    assert seen == {frozenset(), *map(frozenset, TOGETHER[gait])}


def test_in_a_walk_each_fore_foot_follows_the_hind_one_of_its_side():
    walk = walking(gait="walk", duty_factor=0.8, gait_period_s=0.6)
    order = [next(iter(swings)) for swings, _ in swinging(walk, 1.2) if swings]
    assert max(len(swings) for swings, _ in swinging(walk, 0.6)) == 1
    start = order.index(2)
    assert order[start : start + 4] == [2, 0, 3, 1]


@pytest.mark.parametrize("later", ["pace", "bound", "walk"])
def test_a_gait_is_changed_while_walking_when_all_feet_have_landed(later):
    walk = walking(gait="trot")
    swinging(walk, 0.2)
    walk.planner.set_gait(later)
    seen = [swings for swings, _ in swinging(walk, 0.9) if swings]
    trot = set(map(frozenset, TOGETHER["trot"]))
    after = set(map(frozenset, TOGETHER.get(later, [{k} for k in range(4)])))
    first = next(k for k, swings in enumerate(seen) if swings in after)
    assert set(seen[:first]) <= trot and first <= 2
    assert set(seen[first:]) == after


def test_a_gait_that_does_not_exist_is_refused():
    walk = KinematicWalk(QUADRUPED)
    with pytest.raises(ConfigurationError, match="no gait 'gallop'; there is .*bound"):
        walk.planner.set_gait("gallop")
    with pytest.raises(ConfigurationError, match="'gallop'"):
        KinematicWalk(QUADRUPED, gait="gallop")


@pytest.mark.parametrize("what", ["joint", "yaw rate"])
def test_what_is_beyond_all_numbers_spoils_no_later_plan(what):
    """Finite, so it is taken; all later plans were made of the one made of it, which is refused unless it is finite.

    A joint's may be: what a sine of 1e200 is depends on the processor.
    """
    walk = walking()
    q = walk.q.copy()
    if what == "joint":
        q[8] = 1e200
    else:
        walk.planner.set_velocity((0.1, 0.0), 1e200)
    refused = pytest.raises(TrajectoryError, match="not finite")
    with (
        refused if what != "joint" else contextlib.suppress(TrajectoryError),
        np.errstate(all="ignore"),
    ):
        plan = walk.planner.plan(walk.time_s, q, walk.v)
        assert np.isfinite(plan.joints.positions).all() and np.isfinite(plan.base.positions).all()
    walk.planner.set_velocity((0.1, 0.0))
    plan = walk.planner.plan(walk.time_s, walk.q, walk.v)
    assert np.isfinite(plan.joints.positions).all() and np.isfinite(plan.base.positions).all()
