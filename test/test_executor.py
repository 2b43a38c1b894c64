"""Nothing that arrives ends the loop of a node, or leaves it deaf. Over real topics."""

import time
from functools import partial

import pytest
from waiting import until

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.node import Node  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Bool, Float64MultiArray, MultiArrayDimension, String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from contact_id_controller.exceptions import StateError  # noqa: E402
from contact_id_controller.ros import direct_loop, packed  # noqa: E402
from contact_id_controller.ros.direct_loop import DirectLoop, age_s, hand_on_newest  # noqa: E402
from contact_id_controller.ros.executor import GuardedExecutor  # noqa: E402

PATIENCE_S = 120.0
TRUNCATED = serialize_message(JointState(name=["a" * 40, "b"], position=[1.0, 2.0]))[:60]


@pytest.fixture
def nodes(context):
    """A node that listens, one that sends, and what spins the first."""
    listener, sender = Node("listener", context=context), Node("sender", context=context)
    executor = GuardedExecutor(listener, context=context)
    yield listener, sender, executor
    executor.shutdown()
    listener.destroy_node()
    sender.destroy_node()


@pytest.mark.parametrize("direct", [False, True])
def test_bytes_that_are_no_message_leave_the_node_as_it_was(nodes, direct):
    """In rclpy they end the loop, and the subscription, with all others of its group, hears no more."""
    listener, sender, executor = nodes
    heard = []
    subscription = listener.create_subscription(JointState, "states", heard.append, 10)
    loop = DirectLoop(executor, lambda: [subscription] if direct else [])
    publisher = sender.create_publisher(JointState, "states", 10)
    assert until(publisher.get_subscription_count, turn=lambda: loop.spin_once(0.01))

    def turn():
        publisher.publish(TRUNCATED)
        publisher.publish(JointState(name=["good"]))
        loop.spin_once(0.01)

    assert until(lambda: len(heard) >= 3, turn=turn)
    assert all(list(message.name) == ["good"] for message in heard)


@pytest.mark.parametrize("direct", [False, True])
def test_an_error_of_a_callback_is_counted_and_the_node_goes_on(nodes, direct):
    listener, sender, executor = nodes
    heard = []

    def refuse(message):
        heard.append(message.data)
        raise ValueError(message.data)

    def break_down(request, response):
        raise RuntimeError("in a service")

    subscription = listener.create_subscription(String, "words", refuse, 10)
    service = listener.create_service(Trigger, "break", break_down)
    loop = DirectLoop(
        executor,
        lambda: [subscription] if direct else [],
        services=lambda: [service] if direct else [],
    )
    publisher = sender.create_publisher(String, "words", 10)
    client = sender.create_client(Trigger, "break")
    assert until(publisher.get_subscription_count, turn=lambda: loop.spin_once(0.01))
    assert until(client.service_is_ready, turn=lambda: loop.spin_once(0.01))
    client.call_async(Trigger.Request())

    def turn():
        publisher.publish(String(data="word"))
        loop.spin_once(0.01)

    counts = executor.incidents.counts
    assert until(
        lambda: len(heard) >= 3 and any("RuntimeError" in reason for reason in counts), turn=turn
    )
    assert sum(n for reason, n in counts.items() if "ValueError" in reason) >= 3


def test_what_the_executor_is_asked_for_is_told_from_what_others_serve(nodes):
    listener, sender, executor = nodes
    mine = listener.create_subscription(String, "mine", lambda message: None, 1)
    theirs = listener.create_subscription(String, "words", lambda message: None, 1)
    assert executor.asked_for([mine]) == ([], False)
    publishers = [sender.create_publisher(String, name, 1) for name in ("mine", "words")]
    for publisher in publishers:
        assert until(publisher.get_subscription_count)
    publishers[0].publish(String(data="word"))
    assert until(lambda: executor.asked_for() == ([mine], False))
    assert executor.asked_for([mine]) == ([], False)
    publishers[1].publish(String(data="word"))
    assert until(lambda: executor.asked_for([mine]) == ([theirs], False))
    assert until(lambda: executor.asked_for() == ([], False), turn=lambda: executor.spin_once(0.0))
    listener.create_timer(0.0, lambda: None)
    assert executor.asked_for() == ([], True)


def test_requests_timers_and_other_topics_wait_for_no_end_of_the_states(nodes, monkeypatch):
    monkeypatch.setattr(direct_loop, "WHOLE_TURN_S", 1e9)
    listener, sender, executor = nodes
    subscription = listener.create_subscription(String, "words", lambda message: None, 1)
    calls = []
    listener.create_service(Trigger, "answer", lambda _, response: calls.append(0) or response)
    listener.create_timer(0.05, lambda: calls.append(1))
    listener.create_subscription(String, "others", lambda message: calls.append(2), 1)
    others = sender.create_publisher(String, "others", 1)
    loop = DirectLoop(executor, lambda: [subscription])
    publisher, client = (
        sender.create_publisher(String, "words", 1),
        sender.create_client(Trigger, "answer"),
    )

    def turn():
        publisher.publish(String(data="word"))
        others.publish(String(data="word"))
        loop.spin_once(0.01)

    assert until(client.service_is_ready, turn=turn)
    loop.spin_once(0.0)
    client.call_async(Trigger.Request())
    assert until(lambda: 0 in calls and calls.count(1) > 2 and calls.count(2) > 2, turn=turn)


def test_all_that_waits_on_another_topic_is_handed_on_in_one_turn(nodes, monkeypatch):
    monkeypatch.setattr(direct_loop, "WHOLE_TURN_S", 1e9)
    listener, sender, executor = nodes
    heard = []
    mine = listener.create_subscription(String, "mine", lambda message: None, 1)
    theirs = listener.create_subscription(String, "words", heard.append, 10)
    loop = DirectLoop(executor, lambda: [mine], turn_s=PATIENCE_S)
    publisher = sender.create_publisher(String, "words", 10)
    assert until(publisher.get_subscription_count)
    loop.spin_once(0.0)
    for number in range(5):
        publisher.publish(String(data=str(number)))
    assert until(lambda: executor.asked_for([mine]) == ([theirs], False))
    time.sleep(0.5)
    loop.spin_once(0.0)
    assert [message.data for message in heard] == list("01234")


def test_the_end_of_ros_is_no_incident(nodes):
    _, _, executor = nodes
    executor.shutdown()
    executor.spin_once(timeout_sec=0.01)
    assert not executor.incidents.counts


def test_a_message_says_how_long_ago_it_was_sent(nodes):
    listener, sender, _ = nodes
    ages = []
    subscription = listener.create_subscription(
        String, "words", lambda message, info: ages.append(age_s(info)), 1
    )
    publisher = sender.create_publisher(String, "words", 1)
    assert until(publisher.get_subscription_count)
    publisher.publish(String(data="word"))
    time.sleep(0.3)
    assert until(lambda: hand_on_newest(subscription))
    assert 0.3 <= ages[0] < PATIENCE_S
    assert age_s({"source_timestamp": 0}) == 0.0, "where nobody says"


def test_numbers_are_read_from_their_bytes_whatever_their_layout():
    for dims in ([], [MultiArrayDimension(label="joints", size=3, stride=3)] * 3):
        for data in ([], [1.0], [0.5, -2.0, float("nan")]):
            message = Float64MultiArray(data=data)
            message.layout.dim = dims
            read = packed.read_numbers(serialize_message(message))
            assert read.tolist() == pytest.approx(data, nan_ok=True)


def test_truth_is_read_from_its_bytes():
    for value in (False, True):
        assert packed.read_true(serialize_message(Bool(data=value))) is value
    for data in (b"", b"\0\1\0\0", b"\0\1\0\0\2", serialize_message(String(data="x" * 50))):
        with pytest.raises(StateError):
            packed.read_true(data)


@pytest.mark.parametrize(
    "read, message",
    [
        (packed.read_numbers, Float64MultiArray(data=[0.0] * 1_000_000)),
        (partial(packed.read_message, String), String(data="x" * 1_000_000)),
        (
            packed.PackedReader(packed.JOINT_STATE).message,
            JointState(name=["joint"] * 100_000, position=[0.0] * 100_000),
        ),
        (packed.PackedReader(packed.JOINT_STATE).message, JointState(name=["j"] * 2000)),
    ],
)
def test_what_is_larger_than_any_is_refused_by_its_size(read, message):
    with pytest.raises(StateError, match="must (have|name) at most"):
        read(serialize_message(message))


@pytest.mark.parametrize(
    "read, message",
    [
        (packed.read_numbers, Float64MultiArray(data=[1.0, 2.0])),
        (
            packed.PackedReader(packed.JOINT_STATE).message,
            JointState(name=["a"], position=[1.0], velocity=[2.0], effort=[3.0]),
        ),
    ],
)
def test_bytes_that_are_cut_or_spoiled_are_refused_or_read(read, message):
    data = serialize_message(message)
    for size in range(len(data) - 3):  # the last may be padding
        with pytest.raises(StateError):
            read(data[:size])
    for at in range(len(data)):
        for value in (0, 1, 127, 128, 255):
            spoiled = bytearray(data)
            spoiled[at] = value
            try:
                read(bytes(spoiled))
            except StateError:
                continue
