"""The watchdog's section of every quadruped's file fits the controller's; the others are compared by contact_id check."""

import numpy as np
import pytest

from contact_id_controller.control.controller import Controller
from contact_id_controller.ros.command_watchdog import watchdog_of
from contact_id_controller.settings.command_watchdog import CommandWatchdogSettings
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from contact_id_controller.settings.robot_files import QUADRUPEDS, robots


@pytest.mark.parametrize("file", robots(QUADRUPEDS).values(), ids=lambda file: file.stem)
def test_watchdog_knows_the_same_joints_and_waits_for_the_controller(file):
    values, expected = ParameterFile(file).section("command_watchdog"), load_settings(file)
    settings = CommandWatchdogSettings.from_mapping(values)
    assert settings.joints == expected.joints
    assert settings.timeout_s > expected.state_timeout_s
    robot = expected.robot()
    limits = np.broadcast_to(settings.effort_limits_nm, robot.na)
    np.testing.assert_allclose(limits, Controller(robot, expected).effort_limits)
    watchdog_of(settings)
