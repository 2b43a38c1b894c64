"""A robot walks as fast as it is commanded, with swings that its joints can follow."""

import numpy as np
import pytest
from kinematic_walk import ROBOTS, KinematicWalk

from contact_id_controller.planning.gait.footsteps import SHORTEST_STANCE
from contact_id_controller.planning.gait.gait_clock import GaitClock
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    mujoco_robot,
    section,
)
from contact_id_controller.settings.gait_planner import GaitPlannerSettings

SPEED_M_S = 0.5


def walk(speed_m_s, name="quadruped"):
    settings = controller_settings(name)
    world = mujoco_robot(settings, 1.0, imu_frame="")
    run = InProcessRun(name, settings, world, planner={"waypoints_m": []})
    run.planner.set_velocity((speed_m_s, 0.0))
    return run


def test_a_walk_faster_than_its_joints_swing_at_the_duty_factor_reaches_its_speed():
    """Trot of .3 s with duty factor .75: swings of 75 ms would ask for 2.5 m/s of the feet, which is what they can."""
    run, x = walk(SPEED_M_S), []
    for _ in range(3000):
        run.advance()
        x.append(run.state.q[0])
    speeds = np.diff(x[1499::500]) / 0.5
    assert speeds.min() > 0.9 * SPEED_M_S
    clock = run.planner._footsteps.clock
    assert SHORTEST_STANCE <= clock.duty_factor < run.planner.settings.duty_factor


@pytest.mark.parametrize("gait", ["pace", "bound"])
def test_the_longest_period_is_that_of_a_robot_not_of_the_frame_of_its_base(gait):
    """With its frame as low as its feet the planner divided by a period of 0."""
    settings = GaitPlannerSettings.from_mapping(
        {**section("quadruped", "gait_planner"), "gait": gait, "gait_period_s": 1.0}
    )
    periods = []
    for lower_m in (0.0, 0.2):
        robot = controller_settings("quadruped").robot()
        for joint in range(2, robot.model.njoints):
            if robot.model.parents[joint] == 1:
                robot.model.jointPlacements[joint].translation[2] += lower_m
        robot.model.inertias[1].lever += [0.0, 0.0, lower_m]
        periods.append(GaitPlanner(robot, settings)._footsteps._gait.period_s)
    assert 0.15 < periods[0] < 1.0
    assert periods[1] == pytest.approx(periods[0])


def test_a_slow_walk_keeps_its_duty_factor():
    run = walk(0.2)
    for _ in range(1000):
        run.advance()
    clock = run.planner._footsteps.clock
    assert clock.duty_factor == run.planner.settings.duty_factor


def test_the_speed_that_joints_allow_a_foot():
    """Against differences of the foot's place, in each horizontal direction."""
    run = walk(0.0)
    legs, posture = run.planner._legs, np.array(run.planner.settings.posture)
    most, _ = legs.foot_speed(posture)
    limits = run.robot.velocity_limits
    for leg, columns in enumerate(legs.columns):
        jacobian = np.zeros((3, 3))
        for k, column in enumerate(columns):
            step = np.zeros(len(posture))
            step[column] = 1e-6
            ends = [legs.centers(legs.configuration(posture + s * step))[leg] for s in (-1, 1)]
            jacobian[:, k] = (ends[1] - ends[0]) / 2e-6
        for angle in np.linspace(0.0, np.pi, 9):
            way = most * np.array([np.cos(angle), np.sin(angle), 0.0])
            rates = np.abs(np.linalg.solve(jacobian, way))
            assert (rates <= limits[columns] * 1.001).all()
    assert most == pytest.approx(2.45, abs=0.01)


def test_a_swing_that_should_have_begun_begins_at_once():
    clock = GaitClock(2.0, 1.0, 0.8, (0.0, 0.5, 0.75, 0.25))
    assert clock.next_swing(0, 2.81) == pytest.approx((3.8, 4.0))
    assert clock.next_swing(0, 2.81, 0.02) == pytest.approx((2.81, 3.0))
    assert clock.next_swing(0, 2.79, 0.02) == pytest.approx((2.8, 3.0))


def test_what_a_base_is_slower_than_planned_is_added_to_its_plan():
    """Solo12 went .48 m/s, and .46 where it is asked for .5."""
    run, x = walk(SPEED_M_S, "solo12"), []
    for _ in range(6000):
        run.advance()
        x.append(run.state.q[0])
    assert (x[-1] - x[3999]) / 2.0 == pytest.approx(SPEED_M_S, rel=0.02)


def test_steps_at_speed_are_as_long_as_legs_reach():
    """Go2's knees do not straighten: at 2 m/s feet were out of reach in cycles of .4 s."""
    go2 = KinematicWalk(
        ROBOTS["go2"],
        gait_period_s=0.4,
        duty_factor=0.65,
        step_height_m=0.05,
        posture=(0.068, 0.785, -1.44, -0.068, 0.785, -1.44) * 2,
        max_acceleration_m_s2=10.0,
    )
    go2.planner.set_velocity((1.0, 0.0))
    assert all(plan.unreachable == () for plan in go2.walk(2.0))
    assert go2.planner._footsteps.clock.period_s == 0.4
    go2.planner.set_velocity((2.0, 0.0))
    assert all(plan.unreachable == () for plan in go2.walk(2.0))
    assert 0.3 < go2.planner._footsteps.clock.period_s < 0.4
    assert go2.v[0] == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_foot_gets_as_far_from_its_hip_as_the_last_joint_goes(name):
    """Against the largest distance over the angles that the limits allow."""
    robot = ROBOTS[name]
    walk = KinematicWalk(robot)
    legs, posture = walk.planner._legs, np.array(robot.posture)
    hips, reach = legs.hips(posture)
    for leg, columns in enumerate(legs.columns):
        low, high = max(legs.lower[leg, 2], -np.pi), min(legs.upper[leg, 2], np.pi)
        most = 0.0
        for angle in np.linspace(low, high, 721):
            joints = posture.copy()
            joints[columns[2]] = angle
            foot = legs.centers(legs.configuration(joints))[leg]
            most = max(most, np.linalg.norm(foot - hips[leg]))
        assert reach[leg] == pytest.approx(most, abs=1e-4)


def test_swings_last_as_long_as_joints_need_to_lift_the_feet():
    """The quadruped in cycles of .2 s: 15 mm up in 25 ms asked for 17.5 rad/s of knees that do 15."""
    settings = {"gait_period_s": 0.2, "gait": "pace", "step_height_m": 0.015}
    quick = KinematicWalk(ROBOTS["quadruped"], **settings)
    quick.planner.set_velocity((0.2, 0.0))
    quick.walk(1.0)
    fastest = max(np.abs(plan.joints.velocities).max() for plan in quick.walk(0.4))
    assert fastest < 15.5
    assert 0.65 < quick.planner._footsteps.clock.duty_factor < 0.75
