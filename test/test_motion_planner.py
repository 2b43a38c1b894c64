"""Plans one after the other: each begins where the robot is, or goes over from the plan before."""

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT

from contact_id_controller.exceptions import StateError
from contact_id_controller.planning.kinodynamic import ContactPlanError, InfeasiblePlanError
from contact_id_controller.planning.kinodynamic.motion_planner import (
    LEAD_TIME_S,
    Goal,
    MotionPlanner,
    Steps,
)
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile

ROBOTS = {"talos": (0.4, 0.6), "solo12": (0.1, 0.2)}
"""Stride and way forwards, m."""


def settings_of(robot, **changes):
    values = ParameterFile(ROOT / "config" / "plans" / f"{robot}.yaml").section(
        "kinodynamic_planner"
    )
    return KinodynamicPlannerSettings.from_mapping(values | changes)


@pytest.fixture(scope="module", params=ROBOTS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def planner(name):
    return MotionPlanner(settings_of(name, stride_m=ROBOTS[name][0]))


@pytest.fixture(scope="module")
def walk(planner, name):
    """A plan of some steps forwards from the nominal posture, and the state at which it begins."""
    q = np.array(planner._posture)
    v = np.zeros(planner.robot.nv)
    planner.reset()
    return q, planner.plan(5.0, q, v, Goal(ROBOTS[name][1], 0.0, 0.0)).plan


def feet(planner, q):
    pin.framesForwardKinematics(planner.robot.model, planner.robot.data, q)
    frames = [planner.robot.frame_id(sole.frame) for sole in planner.soles]
    return np.array([planner.robot.data.oMf[frame].translation.copy() for frame in frames])


def test_a_plan_begins_where_the_robot_stands_and_arrives(planner, name, walk):
    q, plan = walk
    np.testing.assert_allclose(plan.fine.configurations[0], q, atol=1e-9)
    way = feet(planner, plan.fine.configurations[-1]) - feet(planner, q)
    np.testing.assert_allclose(way, np.tile([ROBOTS[name][1], 0.0, 0.0], (len(way), 1)), atol=3e-3)


def test_a_plan_is_the_same_wherever_the_robot_stands(planner, name, walk):
    """Ten metres away and looking elsewhere: the same torques."""
    q, plan = walk
    # By a right angle, as the pyramids around the normals of point feet look along the world's axes.
    turn = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 0.5 * np.pi), np.array([7.0, -8.0, 0.0]))
    there = q.copy()
    there[:7] = pin.SE3ToXYZQUAT(turn * pin.XYZQUATToSE3(q[:7]))
    middle = turn.act(np.array([ROBOTS[name][1], 0.0, 0.0]))
    planner.reset()
    elsewhere = planner.plan(
        0.0, there, np.zeros(planner.robot.nv), Goal(*middle[:2], 0.5 * np.pi)
    ).plan
    largest = np.abs(plan.torques.torques).max()
    np.testing.assert_allclose(elsewhere.torques.torques, plan.torques.torques, atol=1e-3 * largest)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_a_plan_that_replaces_another_begins_in_its_place_velocity_and_acceleration(
    planner, name, walk, share
):
    _, before = walk
    start_s = 100.0
    planner.follow(before, start_s)
    now_s = start_s + share * before.fine.times_s[-1]
    point = int(np.argmin(np.abs(before.fine.times_s + start_s - now_s)))
    state = before.fine.configurations[point], before.fine.velocities[point]
    after, begin_s = planner.plan(now_s, *state, Goal(ROBOTS[name][1], 0.3 * ROBOTS[name][1], 0.3))
    assert begin_s >= now_s + LEAD_TIME_S
    most = np.abs(np.diff(before.fine.velocities, axis=0)).max() / before.fine.times_s[1]
    for part in ("joints", "base"):
        old, new = getattr(before, part), getattr(after, part)
        old = type(old)(*arguments(old), start_s=start_s)
        just_after = begin_s + 1e-9  # accelerations change at the points of the grid
        here, there = old.sample(just_after), new.sample(just_after)
        for field, wanted, value in zip(here._fields, here, there):
            largest = 0.01 * most if "acceleration" in field else 1e-7
            np.testing.assert_allclose(value, wanted, atol=largest, err_msg=field)
    standing = after.fine.feet.standing.all(axis=1)
    first = int(np.argmin(standing)) if not standing.all() else len(standing)
    moved = [feet(planner, q) for q in after.fine.configurations[:first]]
    assert np.abs(np.array(moved) - moved[0]).max() < 3e-4


def arguments(trajectory):
    if hasattr(trajectory, "names"):
        return trajectory.names, trajectory.times_s, trajectory.positions, trajectory.velocities
    return (
        trajectory.times_s,
        trajectory.positions,
        trajectory.quaternions_xyzw,
        trajectory.linear_velocities,
        trajectory.angular_velocities,
    )


def test_after_its_end_a_plan_is_continued_from_where_it_left_the_robot(planner, name, walk):
    _, before = walk
    planner.follow(before, 10.0)
    last = before.fine.configurations[-1]
    near = pin.integrate(planner.robot.model, last, np.full(planner.robot.nv, 1e-3))
    after, begin_s = planner.plan(1e3, near, np.zeros(planner.robot.nv), Steps(()))
    assert begin_s is None
    np.testing.assert_allclose(after.fine.configurations[0], last, atol=1e-12)
    away = pin.integrate(planner.robot.model, last, np.r_[0.2, np.zeros(planner.robot.nv - 1)])
    after, begin_s = planner.plan(1e3, away, np.zeros(planner.robot.nv), Steps(()))
    assert begin_s is None
    np.testing.assert_allclose(after.fine.configurations[0], away, atol=1e-12)


def test_a_robot_that_is_elsewhere_or_moves_gets_no_plan(planner, name, walk):
    q, before = walk
    planner.follow(before, 10.0)
    away = q.copy()
    away[0] += 0.2
    with pytest.raises(StateError, match="from the plan that is followed"):
        planner.plan(10.5, away, np.zeros(planner.robot.nv), Steps(()))
    planner.reset()
    with pytest.raises(StateError, match="moves with 0.3 m/s"):
        planner.plan(10.5, q, np.r_[0.3, np.zeros(planner.robot.nv - 1)], Steps(()))


def test_what_cannot_be_planned_names_phase_and_foot(planner, name, walk):
    q, _ = walk
    planner.reset()
    foot = planner._nominal[0]
    far = type(foot)(foot.foot, foot.position + [1.5, 0.0, 0.0], foot.rotation)
    with pytest.raises(InfeasiblePlanError, match=r"phase \d, foot "):
        planner.plan(0.0, q, np.zeros(planner.robot.nv), Steps((far,)))
    with pytest.raises(ContactPlanError, match="footstep 1 lands 0.1 s after what is before"):
        planner.plan(0.0, q, np.zeros(planner.robot.nv), Steps((foot,), (0.1,)))


def test_touchdowns_are_when_they_are_asked_for(planner, name, walk):
    q, _ = walk
    planner.reset()
    step = planner.settings.time_step_s
    times = (40 * step, 70 * step)
    plan = planner.plan(
        0.0, q, np.zeros(planner.robot.nv), Steps(tuple(planner._nominal[:2]), times)
    ).plan
    np.testing.assert_allclose(plan.contact_plan.boundaries_s[[2, 4]], times, atol=1e-9)
