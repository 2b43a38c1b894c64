"""The URDF is the ceiling of the command watchdog, too, which loads nothing that reads one."""

import math
import time

import numpy as np
import pytest
from robots import QUADRUPED
from test_command_watchdog import COMMAND, NAMES, TIMEOUT_S, VELOCITY, make

from contact_id_controller.exceptions import (
    ConfigurationError,
    RobotDescriptionError,
    UnknownJointError,
)
from contact_id_controller.settings import urdf_efforts

PATIENCE_S = 60.0


def description(efforts):
    """A chain of joints with these efforts; None: no limit is stated."""
    parts = ['<robot name="chain"><link name="l0"/>']
    for k, (name, effort) in enumerate(efforts.items()):
        limit = "" if effort is None else f'<limit effort="{effort}" velocity="1"/>'
        parts.append(
            f'<link name="l{k + 1}"/><joint name="{name}" type="continuous"><parent link="l{k}"/>'
            f'<child link="l{k + 1}"/><axis xyz="0 1 0"/>{limit}</joint>'
        )
    return "".join([*parts, "</robot>"])


def test_efforts_come_in_the_order_that_is_asked_for(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(description({"hip": 4.0, "knee": 2.5, "ankle": None}))
    found = urdf_efforts.urdf_efforts(str(file), ["ankle", "hip", "knee"])
    assert found == [math.inf, 4.0, 2.5]
    with pytest.raises(UnknownJointError, match="no joint 'toe'; joints are 'ankle', 'hip'"):
        urdf_efforts.urdf_efforts(str(file), ["toe"])
    file.write_text(description({"hip": "much"}))
    with pytest.raises(RobotDescriptionError, match="effort is 'much'"):
        urdf_efforts.urdf_efforts(str(file), ["hip"])


def test_it_is_what_the_controller_goes_by():
    from contact_id_controller.robot import RobotModel

    robot = RobotModel.from_urdf(QUADRUPED)
    found = urdf_efforts.urdf_efforts(QUADRUPED, robot.joint_names)
    assert np.array_equal(found, robot.effort_limits)


def test_a_process_of_its_own_answers(tmp_path):
    pytest.importorskip("rclpy", reason="the room of nodes needs ROS 2")
    from contact_id_controller.ros.stated_limits import StatedLimits

    def answer(urdf, joints):
        asked = StatedLimits(str(urdf), joints)
        end_s = time.monotonic() + PATIENCE_S
        while (found := asked.answer()) is None:
            assert time.monotonic() < end_s
            time.sleep(0.05)
        return found

    file = tmp_path / "robot.urdf"
    file.write_text(description({"hip": 4.0, "knee": None}))
    assert answer(file, ["knee", "hip"]).tolist() == [math.inf, 4.0]
    with pytest.raises(
        ConfigurationError, match="effort_limits_nm alone applies: URDF .* not found"
    ):
        answer(tmp_path / "nothing.urdf", ["knee"])
    left = StatedLimits(str(file), ["hip"])
    left.end()
    assert left._process.returncode is not None


def test_limits_are_lowered_for_commands_and_damping_and_never_lifted():
    watchdog = make()
    watchdog.velocities.take(NAMES, 10.0 * VELOCITY, 0.0)
    assert watchdog.lower_limits(np.array([0.5, 100.0, 7.0])).tolist() == [0, 2]
    assert watchdog.take_command(9.0 * COMMAND, 0.0).tolist() == [0.5, 5.0, 7.0]
    assert np.abs(watchdog.tick(TIMEOUT_S)).tolist() == [0.5, 5.0, 7.0]
    assert not watchdog.lower_limits(np.array([0.5, np.inf, np.inf])).size


def test_what_is_forwarded_is_no_more_than_the_urdf_states(tmp_path):
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from std_msgs.msg import Float64MultiArray
    from test_command_watchdog_node import JOINTS, Robot

    file = tmp_path / "robot.urdf"
    file.write_text(description(dict(zip(JOINTS, (4.0, 2.5, 100.0)))))
    robot = Robot(tmp_path)
    try:
        robot.watchdog(timeout_s=5.0, urdf=str(file))
        lowered = "effort_limits_nm of joint 'knee' is lowered to the 2.5 that the URDF states"
        assert robot.until(lambda: lowered in robot.log(), PATIENCE_S), robot.log()

        def forwarded():
            robot.commands.publish(Float64MultiArray(data=[9.0, -9.0, 9.0]))
            return np.allclose(robot.group.efforts, [4.0, -2.5, 5.0])

        assert robot.until(forwarded, PATIENCE_S), robot.log()
    finally:
        robot.close()


@pytest.mark.parametrize("limit, forwards", [(math.inf, False), (5.0, True)])
def test_a_joint_without_any_limit_is_not_commanded(tmp_path, limit, forwards):
    """The URDF was to be its ceiling and cannot be read; a torque without bound went through."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from std_msgs.msg import Float64MultiArray
    from test_command_watchdog_node import DAMPING, Robot

    robot = Robot(tmp_path)
    try:
        limits = [5.0, limit, 5.0]
        robot.watchdog(timeout_s=5.0, urdf=str(tmp_path / "nothing.urdf"), effort_limits_nm=limits)
        assert robot.until(lambda: "effort_limits_nm alone applies" in robot.log(), PATIENCE_S)
        end_s = time.monotonic() + 3.0
        while time.monotonic() < end_s:
            robot.commands.publish(Float64MultiArray(data=[1.0, 50.0, 1.0]))
            time.sleep(0.02)
        expected = [1.0, 5.0, 1.0] if forwards else DAMPING
        assert robot.until(lambda: np.allclose(robot.group.efforts, expected), PATIENCE_S), (
            robot.log()
        )
        told = "effort_limits_nm is infinite for knee, and the URDF" in robot.log()
        assert told is not forwards
    finally:
        robot.close()
