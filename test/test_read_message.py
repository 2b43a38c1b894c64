"""Messages from bytes: as ROS reads them, and refused where it would read beyond their end."""

import ast
from pathlib import Path
from random import Random
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import PoseStamped, Twist
from lifecycle_msgs.msg import State, TransitionEvent
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from visualization_msgs.msg import MarkerArray

from contact_id_controller.exceptions import StateError
from contact_id_controller.ros.command_watchdog import CommandWatchdogNode
from contact_id_controller.ros.gait_planner import GaitPlannerNode
from contact_id_controller.ros.heartbeat_topics import HeartbeatInput
from contact_id_controller.ros.packed import read_message
from experiments.faults.mutations import filled, packed, spoiled

PACKAGE = Path(__file__).resolve().parent.parent / "contact_id_controller"
KINDS = (PoseStamped, Twist, JointState, Joy, Float64MultiArray, String, JointTrajectory)
KINDS += (MultiDOFJointTrajectory, MarkerArray, TransitionEvent)


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_arrives_as_it_was_sent(kind):
    arrived = 0
    for seed in range(40):
        message = filled(kind, Random(seed), ("trot", "base"))
        data = serialize_message(message)
        try:
            again = read_message(kind, data)
        except StateError as error:
            # Texts may hold a NUL; more bytes or names than any node takes are refused.
            assert any(word in str(error) for word in ("none", "at most")), error
            continue
        assert packed(again) == packed(message)
        arrived += 1
    assert arrived > 10


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_beyond_its_end_is_refused(kind):
    """The gait planner died of a text whose length went beyond its message, within the middleware."""
    refused = 0
    for seed in range(300):
        random = Random(seed)
        data = spoiled(packed(filled(kind, random)), random)
        try:
            read_message(kind, data)
        except StateError:
            refused += 1
    assert refused > 30
    data = packed(String(data="trot"))
    for size in range(len(data)):
        with pytest.raises(StateError):
            read_message(String, data[:size])
    with pytest.raises(StateError, match="longer than its fields"):
        read_message(String, data + bytes(17))


@pytest.mark.parametrize(
    "door, message",
    [
        (HeartbeatInput._take, String(data="x" * 1100)),
        (GaitPlannerNode._on_gait, String(data="x" * 1100)),
        (CommandWatchdogNode._on_transition, TransitionEvent(goal_state=State(label="x" * 1100))),
    ],
)
def test_a_node_refuses_a_long_text_by_its_size(door, message):
    def warn(words):
        raise StateError(words)

    node = SimpleNamespace(pulse=Mock(), planner=Mock(), watchdog=Mock(), _warn=warn)
    with pytest.raises(StateError, match="must have at most 1000"):
        door(node, serialize_message(message))


def test_every_node_takes_bytes():
    """The middleware's reader of a spoiled message can end the process."""
    open_doors = [
        f"{file.name}: deserialize_message"
        for file in [*PACKAGE.glob("ros/*.py"), *PACKAGE.glob("view/*.py")]
        if file.name != "packed.py" and "deserialize_message" in file.read_text(encoding="utf-8")
    ]
    for file in [*PACKAGE.glob("ros/*.py"), *PACKAGE.glob("view/*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < 4:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("create_subscription", "subscribe", "listen"):
                raw = {each.arg: each.value for each in node.keywords}.get("raw")
                if not isinstance(raw, ast.Constant) or raw.value is not True:
                    open_doors.append(f"{file.name}:{node.lineno}")
    assert not open_doors
