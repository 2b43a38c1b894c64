"""Linear feedback as messages, with a stand-in of linear_feedback_controller_msgs that has its fields.

What the package's own serialiser makes of them is not seen here: its messages are not installed.
"""

import array
import sys
import types
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
from geometry_msgs.msg import Pose, Twist
from rclpy.serialization import deserialize_message, serialize_message
from robots import QUADRUPED
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from test_linear_feedback import random_feedback
from test_torques_ahead import JOINTS, QUADRUPED_VALUES

from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.plans.state_feedback import LinearFeedback
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.ros import command_watchdog, linear_feedback_messages, simulated_robot
from contact_id_controller.ros.command_messages import message_class, messages_of
from contact_id_controller.ros.linear_feedback_messages import (
    FeedbackForwarder,
    FeedbackMessage,
    _matrix,
    read_control,
    read_feedback,
    set_feedback,
)
from contact_id_controller.safety.command_watchdog import WatchdogState
from contact_id_controller.safety.commanders import Commanders
from contact_id_controller.safety.incidents import Incidents
from contact_id_controller.settings.command_interfaces import INTERFACES
from contact_id_controller.settings.command_watchdog import CommandWatchdogSettings
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

LINEAR = INTERFACES["linear_feedback"]


class Sensor:
    """The fields of Sensor.msg, of the package's version 1.2.2."""

    def __init__(self):
        self.header, self.base_pose, self.base_twist = Header(), Pose(), Twist()
        self.joint_state, self.contacts = JointState(), []


class Control:
    """Those of Control.msg."""

    def __init__(self):
        self.header, self.initial_state = Header(), Sensor()
        self.feedback_gain, self.feedforward = Float64MultiArray(), Float64MultiArray()


def travelled(message):
    """The message after each of its parts went through the ordinary serialiser."""
    out = Control()
    sensor, arrived = message.initial_state, out.initial_state
    for source, target, names in (
        (message, out, ("header", "feedback_gain", "feedforward")),
        (sensor, arrived, ("header", "base_pose", "base_twist", "joint_state")),
    ):
        for name in names:
            part = getattr(source, name)
            setattr(target, name, deserialize_message(serialize_message(part), type(part)))
    return out


@pytest.fixture
def messages(monkeypatch):
    module = types.ModuleType("linear_feedback_controller_msgs.msg")
    module.Control, module.Sensor = Control, Sensor
    package = types.ModuleType("linear_feedback_controller_msgs")
    package.msg = module
    monkeypatch.setitem(sys.modules, "linear_feedback_controller_msgs", package)
    monkeypatch.setitem(sys.modules, "linear_feedback_controller_msgs.msg", module)


@pytest.fixture
def robot():
    return ControllerSettings.from_mapping(QUADRUPED_VALUES).robot()


def test_without_the_package_one_line_says_so(monkeypatch, robot):
    monkeypatch.setitem(sys.modules, "linear_feedback_controller_msgs", None)
    with pytest.raises(
        ConfigurationError, match="linear_feedback_controller_msgs: the package is not"
    ):
        message_class(LINEAR)
    with pytest.raises(ConfigurationError, match="not installed"):
        messages_of(LINEAR)


def test_matrices_have_the_layout_of_the_packages_conversions(messages, robot):
    """Rows and cols, strides in numbers, by rows; a vector is one column."""
    feedback = random_feedback(robot)
    message = FeedbackMessage(robot, Control)
    message.fill(feedback)
    gain, effort = message.message.feedback_gain, message.message.feedforward
    dims = [(dim.label, dim.size, dim.stride) for dim in gain.layout.dim]
    assert dims == [("rows", 12, 432), ("cols", 36, 36)]
    assert gain.layout.data_offset == 0
    for i, j in ((0, 0), (3, 17), (11, 35)):
        row = robot.joint_names.index(message.message.initial_state.joint_state.name[i])
        assert gain.data[i * gain.layout.dim[1].stride + j] == feedback.gain[row, j]
    dims = [(dim.label, dim.size, dim.stride) for dim in effort.layout.dim]
    assert dims == [("rows", 12, 12), ("cols", 1, 1)]
    np.testing.assert_array_equal(effort.data, feedback.effort[robot.model_order])


def applied_by_the_plugin(message, moving_joint_names, measured, v):
    """Efforts by joint, as its sources (4.0.3) go from a message and a measured state to command interfaces.

    ``read_state_from_references``, ``construct_robot_state`` with its map, ``compute_control``; the interfaces
    are named in the order of moving_joint_names.
    """
    model = pin.buildModelFromUrdf(str(resolve_urdf(QUADRUPED)), pin.JointModelFreeFlyer())
    joints = list(model.names)[2:]
    to_interface = [moving_joint_names.index(name) for name in joints]

    def state(base_pose, base_twist, position, velocity):
        return (
            np.r_[base_pose, np.array(position)[to_interface]],
            np.r_[base_twist, np.array(velocity)[to_interface]],
        )

    # The references, from which it takes what is measured, are in the model's order.
    measured_q, measured_v = state(measured[:7], v[:6], measured[7:], v[6:])
    sensor = message.initial_state
    p, o, t = sensor.base_pose.position, sensor.base_pose.orientation, sensor.base_twist
    said_q, said_v = state(
        [p.x, p.y, p.z, o.x, o.y, o.z, o.w],
        [t.linear.x, t.linear.y, t.linear.z, t.angular.x, t.angular.y, t.angular.z],
        sensor.joint_state.position,
        sensor.joint_state.velocity,
    )
    away = np.r_[pin.difference(model, measured_q, said_q), said_v - measured_v]
    gain = np.array(message.feedback_gain.data).reshape(len(joints), -1)
    return dict(zip(moving_joint_names, np.array(message.feedforward.data) + gain @ away))


def test_the_plugin_makes_our_law_of_it_also_where_left_and_right_differ(messages, robot):
    """Hips a tenth of a radian apart; the quadruped's joints are in another order than its model's."""
    feedback, rng = random_feedback(robot), np.random.default_rng(3)
    message = FeedbackMessage(robot, Control)
    message.fill(feedback)
    q = feedback.q.copy()
    q[7:] += 0.1 * rng.normal(size=12)
    v = feedback.v + 0.1 * rng.normal(size=18)
    expected = dict(zip(robot.joint_names, feedback.torques(q, v)))
    in_order = [JOINTS[place] for place in robot.model_order]
    found = applied_by_the_plugin(travelled(message.message), in_order, q, v)
    assert found == pytest.approx(expected, abs=1e-12)
    ours = applied_by_the_plugin(message.message, JOINTS, q, v)
    assert max(abs(ours[name] - expected[name]) for name in JOINTS) > 0.1, "so check refuses it"


def test_readers_go_by_the_names_and_clip_each_joint_by_its_own(messages, robot):
    feedback, message = random_feedback(robot), FeedbackMessage(robot, Control)
    message.fill(feedback)
    arrived = travelled(message.message)
    effort, gain = read_control(arrived, JOINTS)
    np.testing.assert_array_equal(effort, feedback.effort)
    np.testing.assert_array_equal(gain, feedback.gain)
    set_feedback(arrived, JOINTS, np.arange(12.0), keep_gain=True)
    np.testing.assert_array_equal(read_control(arrived, JOINTS)[0], np.arange(12.0))
    assert list(arrived.feedforward.data) == robot.model_order.tolist()


def test_a_message_gives_back_its_feedback(messages, robot):
    feedback = random_feedback(robot)
    feedback.time_s = 12.345678901
    message = FeedbackMessage(robot, Control)
    sent = []
    for seed in (1, 2):
        feedback = random_feedback(robot, seed)
        feedback.time_s = 10.0 + seed / 3.0
        message.fill(feedback)
        message.publish(SimpleNamespace(publish=sent.append))
        read = read_feedback(travelled(sent[-1]), robot)
        for name in ("q", "v", "effort", "gain"):
            np.testing.assert_array_equal(getattr(read, name), getattr(feedback, name))
        assert read.time_s == pytest.approx(feedback.time_s, abs=1e-9)
        state = sent[-1].initial_state.joint_state
        assert list(state.name) == list(robot.model.names)[2:] != JOINTS == list(robot.joint_names)
        np.testing.assert_array_equal(state.position, feedback.q[7:])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: m.initial_state.joint_state.name.pop(), "has joints"),
        (lambda m: m.feedforward.data.pop(), r"dimensions \[12, 1\] has 11 numbers"),
        (lambda m: m.feedback_gain.data.__setitem__(5, np.nan), "not finite"),
        (lambda m: m.feedback_gain.data.__setitem__(5, -1e6), "a gain is 1e[+]06, must be at most"),
        (lambda m: m.feedback_gain.layout.dim.pop(), "a matrix of dimensions"),
        (lambda m: setattr(m.initial_state.base_pose.orientation, "w", 9.0), "quaternion"),
        (lambda m: m.initial_state.joint_state.velocity.pop(), "12 positions and velocities"),
        (lambda m: setattr(m.initial_state.base_twist.linear, "x", np.inf), "state is not finite"),
    ],
)
def test_what_is_no_feedback_is_refused(messages, robot, spoil, message):
    made = FeedbackMessage(robot, Control)
    made.fill(random_feedback(robot))
    arrived = travelled(made.message)
    spoil(arrived)
    with pytest.raises(StateError, match=message):
        read_feedback(arrived, robot)
    if message != "quaternion":  # the watchdog knows no robot, and forwards nothing else of these
        with pytest.raises(StateError, match=message):
            read_control(arrived, JOINTS)


@pytest.mark.parametrize("columns", [1, 12, 22, 25])
def test_a_gain_of_too_few_coordinates_is_refused(messages, robot, columns):
    made = FeedbackMessage(robot, Control).message
    _matrix(12, columns, made.feedback_gain)
    made.initial_state.joint_state.position = made.initial_state.joint_state.velocity = array.array(
        "d", bytes(96)
    )
    with pytest.raises(StateError, match=f"{columns} columns"):
        read_control(made, JOINTS)


def test_a_time_that_no_stamp_says_is_said_as_the_farthest(messages, robot):
    made, feedback = FeedbackMessage(robot, Control), random_feedback(robot)
    feedback.time_s = 2.0**31 + 3.5
    made.fill(feedback)
    assert travelled(made.message).header.stamp.sec == 2**31 - 1


def test_a_reserve_keeps_no_bad_feedback_to_damp_with(messages, robot, monkeypatch):
    """It says damping by the last message with its gains zero; zero times a state that is none is none."""
    lines = []
    monkeypatch.setattr(linear_feedback_messages, "read_message", lambda _, message: message)
    node, good = watchdog_node([0.0]), FeedbackMessage(robot, Control)
    node.incidents = Incidents(lines.append)
    good.fill(random_feedback(robot))
    bad = travelled(good.message)
    bad.initial_state.joint_state.position[3] = np.nan
    for message, kept in ((bad, None), (Control(), None), (good.message, good.message)):
        monkeypatch.setattr(command_watchdog, "take_newest", lambda _, taken=message: taken)
        node.incidents.guarded("message", node._keep_command)
        assert node._forwarder._forwarded is kept and node._forwarder.prepared is (kept is not None)
    assert len(lines) == 1 and "not finite" in lines[0]


class Publisher:
    """Keeps efforts and gains of what is published."""

    def __init__(self):
        self.sent = []

    def publish(self, message):
        self.sent.append(list(read_control(message, JOINTS)))


def watchdog_node(clock):
    """The node's callbacks around a true watchdog; no topics, for which types would be needed."""
    settings = CommandWatchdogSettings.from_mapping(
        {"joints": JOINTS, "effort_limits_nm": [0.5], "command_interface": "linear_feedback"}
    )
    node = object.__new__(command_watchdog.CommandWatchdogNode)
    node.watchdog = command_watchdog.watchdog_of(settings)
    node._interface, node._commands = settings.interface, Publisher()
    node._forwarder = FeedbackForwarder(JOINTS, Control)
    node._state = node.watchdog.state
    node._report_change = lambda: setattr(node, "_state", node.watchdog.state)
    node._commands_in, node.incidents = None, Incidents(pytest.fail)
    node._commanders = Commanders((), "/controller", dict)
    return node


def test_the_watchdog_clips_torques_and_takes_the_feedback_away(messages, robot, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(command_watchdog.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(command_watchdog, "hand_on_newest", lambda _: False)
    monkeypatch.setattr(
        linear_feedback_messages, "read_message", lambda _, message: message
    )  # no types here
    node, message = watchdog_node(now), FeedbackMessage(robot, Control)
    feedback = random_feedback(robot)
    message.fill(feedback)
    node._on_command(travelled(message.message), {})
    effort, gain = node._commands.sent[-1]
    np.testing.assert_array_equal(effort, np.clip(feedback.effort, -0.5, 0.5))
    np.testing.assert_array_equal(gain, feedback.gain)
    node.watchdog.velocities.take(JOINTS, np.full(12, 2.0), now[0], np.zeros(12))
    now[0] += 0.015  # silence
    node.tick()
    assert node.watchdog.state is WatchdogState.TRIPPED
    effort, gain = node._commands.sent[-1]
    np.testing.assert_allclose(effort, -0.05 * 2.0)
    np.testing.assert_array_equal(gain, 0.0)
    # A bad message counts as such.
    bad = travelled(message.message)
    bad.feedback_gain.data[0] = np.nan
    node._on_command(bad, {})
    assert node.watchdog.refused["not_a_good_feedback"] == 1
    # So does a gain beyond any sense: the robot's side obeys it without anybody's limits.
    wild = travelled(message.message)
    wild.feedback_gain.data[0] = 1e30
    node._on_command(wild, {})
    assert node.watchdog.refused["not_a_good_feedback"] == 2


def test_the_simulated_robot_applies_it_to_its_own_state(messages, robot, monkeypatch):
    """The last good one, at each of its states, within its effort limits; a bad one is counted."""
    monkeypatch.setattr(linear_feedback_messages, "read_message", lambda _, message: message)
    node = object.__new__(simulated_robot.SimulatedRobot)
    node.simulated = SimpleNamespace(robot=robot, refused_commands=0)
    node.get_logger = lambda: SimpleNamespace(warning=lambda *_, **__: None)
    node._local, node._commands_received = LinearFeedback(np.full(12, 2.0)), 0
    node._read_command, node._state = messages_of(LINEAR).reader(robot), RobotState(0.0, None, None)
    feedback, other = random_feedback(robot), random_feedback(robot, 7)
    message = FeedbackMessage(robot, Control)
    message.fill(feedback)
    node._on_command(travelled(message.message))
    state = RobotState(3.0, other.q, other.v)
    expected = np.clip(feedback.torques(other.q, other.v), -2.0, 2.0)
    np.testing.assert_allclose(node._local.answer(robot, state), expected, atol=1e-12)
    assert np.abs(expected).max() == 2.0 > np.abs(expected).min()
    bad = travelled(message.message)
    bad.feedforward.data[0] = np.inf
    node._on_command(bad)
    assert (node.simulated.refused_commands, node._commands_received) == (1, 1)
    np.testing.assert_allclose(node._local.answer(robot, state), expected, atol=1e-12)
