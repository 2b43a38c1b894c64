"""Commands for the plugin as messages: writer, reader, watchdog's forwarder; its file and its check."""

import re
import xml.etree.ElementTree as xml
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="needs ROS 2")
from paths import CONFIG, ROOT
from rclpy.serialization import serialize_message
from test_linear_feedback import random_feedback
from test_torques_ahead import JOINTS, QUADRUPED_VALUES

from contact_id_controller.check.config import check_config
from contact_id_controller.check.findings import ERROR
from contact_id_controller.exceptions import StateError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.robot_side_message import (
    GREATEST_GAIN,
    efforts_of,
    packed_feedback,
    packed_trajectory,
    unpacked_feedback,
    unpacked_trajectory,
)
from contact_id_controller.ros.command_messages import messages_of
from contact_id_controller.settings.command_interfaces import INTERFACES
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.shared_rows import GREATEST_LOCAL_GAIN

TRAJECTORY, FEEDBACK = (INTERFACES[f"robot_side_{kind}"] for kind in ("trajectory", "feedback"))
PLUGIN = ROOT / "contact_id_ros2_control"


@pytest.fixture
def robot():
    return ControllerSettings.from_mapping(QUADRUPED_VALUES).robot()


class Publisher:
    def __init__(self):
        self.sent = []

    def publish(self, message):
        self.sent.append(np.array(message.data))


def written(row, robot, command):
    """The bytes of a command."""
    message = messages_of(row).writer(robot, command)
    message.fill(command)
    return serialize_message(message.message)


def some_trajectory():
    trajectory = EffortTrajectory(4, 12)
    trajectory.start_s = 12.25
    trajectory.values[:] = np.random.default_rng(0).normal(size=trajectory.values.shape)
    return trajectory


def test_messages_give_back_what_they_say(robot):
    trajectory, feedback = some_trajectory(), random_feedback(robot)
    feedback.time_s = 10.5
    found = messages_of(TRAJECTORY).reader(robot)(written(TRAJECTORY, robot, trajectory))
    assert found.start_s == 12.25
    np.testing.assert_array_equal(found.values, trajectory.values)
    found = messages_of(FEEDBACK).reader(robot)(written(FEEDBACK, robot, feedback))
    for name in ("time_s", "q", "v", "effort", "gain"):
        np.testing.assert_array_equal(getattr(found, name), getattr(feedback, name))
    assert GREATEST_GAIN == GREATEST_LOCAL_GAIN


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: m[:-1],
        lambda m: np.r_[m[:7], 17.0, m[8:]],
        lambda m: np.r_[m[:-1], np.inf],
        lambda m: np.r_[m[:-1], 2e5],
        lambda m: np.r_[m[:11], 9.0, m[12:]],
        lambda m: np.r_[m[0], m[1] + 1.0, m[2:]],
    ],
)
def test_what_is_no_feedback_is_refused(robot, spoil):
    with pytest.raises(StateError):
        unpacked_feedback(spoil(packed_feedback(random_feedback(robot), robot)), robot)


def test_the_watchdog_clips_efforts_and_stops_each_kind(robot):
    trajectory, feedback = some_trajectory(), random_feedback(robot)
    at, torques = np.arange(12.0), np.full(12, 0.5)
    for row, command in ((TRAJECTORY, trajectory), (FEEDBACK, feedback)):
        forwarder, publisher = messages_of(row).forwarder(JOINTS), Publisher()
        assert forwarder.prepared is (row is TRAJECTORY)
        data = written(row, robot, command)
        efforts = forwarder.read(data)
        said = command.efforts if row is TRAJECTORY else command.effort[None]
        np.testing.assert_array_equal(efforts, said)
        forwarder.forward(publisher, np.clip(efforts, -0.1, 0.1))
        forwarder.stop(publisher, torques, at)
        forwarded, stop = publisher.sent
        assert np.abs(efforts_of(forwarded, JOINTS)).max() == 0.1
        np.testing.assert_array_equal(efforts_of(stop, JOINTS)[0], torques)
        if row is TRAJECTORY:
            rest = unpacked_trajectory(stop, JOINTS)
            np.testing.assert_array_equal(rest.positions, [at, at])
            assert rest.start_s == 0.0 and not rest.velocities.any()
        else:
            assert not unpacked_feedback(stop, robot).gain.any()
            np.testing.assert_array_equal(unpacked_feedback(stop, robot).q, feedback.q)
    with pytest.raises(StateError, match="kind 1"):
        forwarder.read(written(TRAJECTORY, robot, trajectory))


def test_each_sender_has_a_session_of_its_own(robot):
    writers = [messages_of(TRAJECTORY).writer(robot, some_trajectory()) for _ in range(2)]
    sessions = []
    for writer in writers:
        for _ in range(2):
            writer.fill(some_trajectory())
            sessions.append(writer.message.data[3])
    assert sessions[0] == sessions[1] < sessions[2] == sessions[3] <= 2.0**53
    numbers = packed_trajectory(some_trajectory(), JOINTS)
    writers[0].publish(SimpleNamespace(publish=lambda message: None))
    assert numbers[3] == 0.0


def test_its_file_fits_and_another_does_not(tmp_path):
    content = yaml.safe_load((CONFIG / "quadruped.yaml").read_text(encoding="utf-8"))
    ours = yaml.safe_load(
        (CONFIG / "ros2_control" / "quadruped_robot_side.yaml").read_text(encoding="utf-8")
    )
    section = ours["robot_side"]["ros__parameters"]

    def errors(row):
        for name in ("controller", "simulated_robot", "command_watchdog"):
            content[name]["ros__parameters"]["command_interface"] = row.name
        for name, values in (("robot", content), ("ros2_control", ours)):
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(values))
        found = check_config(tmp_path / "robot.yaml", tmp_path / "ros2_control.yaml", "rolling")
        return [str(each) for each in found if each.level == ERROR]

    assert errors(TRAJECTORY) == errors(FEEDBACK) == []
    section["floating_base"], section["timeout_s"] = False, 0.0005
    section["effort_limits_nm"] = [20]
    section["joints"][:2] = section["joints"][1::-1]
    del ours["joint_state_broadcaster"]["ros__parameters"]["interfaces"]
    found = "\n".join(errors(FEEDBACK))
    for words in (
        "robot_side.floating_base is False, must be True",
        "robot_side.timeout_s is 0.0005, must be above period_s 0.001",
        "robot_side.effort_limits_nm is [20]",
        "robot_side.joints is [LF_HFE, LF_HAA",
        "joint_state_broadcaster.interfaces is not set",
    ):
        assert words in found


def test_the_plugin_is_named_alike_everywhere():
    """By rows, plugin description, source and package; its version is ours."""
    kind = TRAJECTORY.host.types[0]
    row = xml.parse(PLUGIN / "controller_plugins.xml").getroot().find("class")
    assert row.get("name") == kind and row.get("type") == kind.replace("/", "::")
    source = (PLUGIN / "src" / "robot_side_controller.cpp").read_text(encoding="utf-8")
    assert row.get("type") in source and row.get("base_class_type") in source
    package = xml.parse(PLUGIN / "package.xml").getroot()
    assert package.findtext("name") == kind.split("/")[0]
    ours = xml.parse(ROOT / "package.xml").getroot()
    assert package.findtext("version") == ours.findtext("version")
    declared = {each.text for each in package.findall("depend")}
    cmake = (PLUGIN / "CMakeLists.txt").read_text(encoding="utf-8")
    (found,) = re.findall(r"foreach\(package ([^)]+)\)", cmake)
    assert set(found.split()) == declared


def test_its_parameters_are_those_of_the_example():
    source = (PLUGIN / "src" / "robot_side_controller.cpp").read_text(encoding="utf-8")
    declared = set(re.findall(r'auto_declare<[^;]*>\("(\w+)"', source))
    (each,) = re.findall(r"for \(const char \* name : \{([^}]+)\}", source)
    declared |= set(re.findall(r'"(\w+)"', each))
    example = yaml.safe_load(
        (CONFIG / "ros2_control" / "quadruped_robot_side.yaml").read_text(encoding="utf-8")
    )["robot_side"]["ros__parameters"]
    assert example.keys() <= declared
    assert declared - example.keys() == {
        "continuous_joints",
        "base_state_interfaces",
        "effort_rate_limits_nm_s",
    }
