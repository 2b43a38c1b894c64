"""A robot walks as fast as it is commanded, with swings that its joints can follow."""

import numpy as np
import pytest

from contact_id_controller.planning.gait.footsteps import SHORTEST_STANCE
from contact_id_controller.planning.gait.gait_clock import GaitClock
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    mujoco_robot,
)

SPEED_M_S = 0.5


def walk(speed_m_s):
    settings = controller_settings("quadruped")
    world = mujoco_robot(settings, 1.0, imu_frame="")
    run = InProcessRun("quadruped", settings, world, planner={"waypoints_m": []})
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
    most = legs.foot_speed(posture)
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
