"""Every quadruped's file fits the robot it names, and its sections fit each other."""

import numpy as np
import pytest
import yaml

from contact_id_controller.control.controller import Controller
from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.command_watchdog import watchdog_of
from contact_id_controller.settings.command_watchdog import CommandWatchdogSettings
from contact_id_controller.settings.parameter_file import load_settings
from contact_id_controller.settings.robot_files import QUADRUPEDS, robots
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.from_settings import build_robot

FILES = list(robots(QUADRUPEDS).values())
SHARED = ("urdf", "joints", "contact_frames", "contact_radii_m", "period_s")

pytestmark = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def _section(file, name):
    return yaml.safe_load(file.read_text(encoding="utf-8"))[name]["ros__parameters"]


def test_controller_accepts_it(file):
    settings = load_settings(file)
    robot = RobotModel.from_urdf(settings.urdf, settings.floating_base, list(settings.joints))
    controller = Controller(robot, settings)
    assert np.all(np.isfinite(controller.effort_limits)) and len(settings.contact_frames) >= 2


def test_simulated_robot_is_the_same_and_stands_on_its_feet(file):
    values = _section(file, "simulated_robot")
    settings = SimulatedRobotSettings.from_mapping(values)
    expected = _section(file, "controller")
    assert {name: values[name] for name in SHARED} == {name: expected[name] for name in SHARED}
    simulated = build_robot(settings)
    heights = simulated.foot_positions()[:, 2] - np.array(settings.contact_radii_m)
    np.testing.assert_allclose(heights, 0.0, atol=2e-4)


def test_planner_knows_the_same_robot(file):
    values, expected = _section(file, "gait_planner"), _section(file, "controller")
    assert values["feet"] == expected["contact_frames"]
    assert values["joints"] == expected["joints"]
    assert values["urdf"] == expected["urdf"]
    assert [values["foot_radius_m"]] == expected["contact_radii_m"]
    assert values["posture"] == _section(file, "simulated_robot")["initial_joint_positions"]


def test_watchdog_knows_the_same_joints_and_waits_for_the_controller(file):
    values, expected = _section(file, "command_watchdog"), load_settings(file)
    settings = CommandWatchdogSettings.from_mapping(values)
    assert settings.joints == expected.joints
    assert settings.timeout_s > expected.state_timeout_s
    robot = RobotModel.from_urdf(expected.urdf, expected.floating_base, list(expected.joints))
    limits = np.broadcast_to(settings.effort_limits_nm, robot.na)
    np.testing.assert_allclose(limits, Controller(robot, expected).effort_limits)
    watchdog_of(settings)
