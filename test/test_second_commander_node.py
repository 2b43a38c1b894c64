"""Two who command one robot, over real topics: the controller's side."""

import contextlib
import itertools
import threading
import time

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import numpy as np
import rclpy
from rclpy.lifecycle import TransitionCallbackReturn
from ros_bench import RELIABLE, VELOCITY, joint_state
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from contact_id_controller.ros import senders
from contact_id_controller.safety.machine import SafetyState

DAMPING = -0.5 * VELOCITY
REFUSED = TransitionCallbackReturn.FAILURE
NOTICED_S = senders.LOOK_PERIOD_S + 1.0
"""A look a second, and a busy machine."""


class Rogue:
    """A node of its own that sends torques to a bench's robot."""

    def __init__(self, bench, name="rogue"):
        self.node = rclpy.create_node(
            name, context=bench.context, namespace=bench.node.get_namespace()
        )
        self._publisher = self.node.create_publisher(Float64MultiArray, "commands", RELIABLE)
        self._bench = bench

    def send(self):
        self._publisher.publish(Float64MultiArray(data=[1.0] * 12))

    def send_until(self, condition, patience_s=60.0):
        """Send at some 100 Hz, with states for the controller, until a condition holds."""
        end_s = time.monotonic() + patience_s
        for k in itertools.count():
            if condition():
                return True
            if time.monotonic() > end_s:
                return False
            self.send()
            self._bench.send(self._bench.newest_s + 1e-3 * (k + 1))
            self._bench.until(lambda: False, 0.01)

    @contextlib.contextmanager
    def sending(self):
        """Send at some 200 Hz whatever this thread does, as a process of its own would."""
        ended = threading.Event()

        def work():
            while not ended.wait(0.005):
                self.send()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def close(self):
        self.node.destroy_node()


@pytest.fixture
def rogue_of(closing):
    def make(bench, **options):
        bench.newest_s = 1.0
        return closing(Rogue(bench, **options))

    return make


def machine(bench):
    return bench.node.loop.safety


def resume(bench):
    client = bench.peer.create_client(Trigger, "controller/resume")
    assert bench.until(client.service_is_ready)
    future = client.call_async(Trigger.Request())
    assert bench.until(future.done)
    return future.result()


def test_among_very_many_publishers_nobody_is_looked_at_and_who_sends_is_noticed(
    bench_of, rogue_of, monkeypatch
):
    monkeypatch.setattr(senders, "MOST_PUBLISHERS", 5)
    bench = bench_of()
    bench.start()
    rogue = rogue_of(bench)
    for _ in range(8):
        rogue.node.create_publisher(Float64MultiArray, "commands", RELIABLE)
        rogue.node.create_publisher(JointState, "joint_states", RELIABLE)
    assert bench.until(lambda: bench.count_publishers() == 10)
    assert senders.publishers_of(bench.node, bench.node._topics._commands.topic_name) is None
    bench.newest_s = 10.0
    bench.answer(bench.newest_s)
    bench.until(lambda: False, 1.5 * senders.LOOK_PERIOD_S)
    assert not machine(bench).latched, "publishers that send nothing disturb nobody"
    (names,) = bench.node._topics._sources.several.values()
    assert names == "more than 5"
    assert rogue.send_until(lambda: machine(bench).latched)
    assert "one of very many publishers" in machine(bench).reason


def test_another_sender_of_commands_stops_the_robot_until_it_is_silent(bench_of, rogue_of):
    bench = bench_of()
    bench.start()
    rogue = rogue_of(bench)
    bench.until(lambda: bench.count_publishers() == 2)
    bench.newest_s = 10.0
    bench.answer(bench.newest_s)
    bench.until(lambda: False, 1.5 * senders.LOOK_PERIOD_S)
    assert not machine(bench).latched, "a publisher that sends nothing disturbs nobody"
    begun_s = time.monotonic()
    assert rogue.send_until(lambda: machine(bench).state is SafetyState.STOPPED)
    assert time.monotonic() - begun_s < NOTICED_S
    assert f"{bench.node.get_namespace()}/rogue sends on " in machine(bench).reason
    bench.newest_s = 100.0

    def next_answer():
        bench.newest_s += 0.001
        return bench.answer(bench.newest_s)

    # What was on its way when it stopped arrives first, the rogue's own messages among it.
    assert bench.until(lambda: np.allclose(next_answer(), DAMPING), 60.0)
    assert all(np.allclose(next_answer(), DAMPING) for _ in range(5))
    rogue.send()
    answer = resume(bench)
    assert not answer.success and "/rogue sends on" in answer.message
    assert bench.until(lambda: resume(bench).success, 60.0), "silent, it is no danger any more"
    assert bench.refusals("second_commander") > 0


@pytest.mark.parametrize("name", ["rogue", "controller"])
def test_who_comes_second_is_not_activated_while_the_first_sends(bench_of, rogue_of, name):
    """Also where the first has the same name."""
    bench = bench_of()
    rogue = rogue_of(bench, name=name)
    bench.configure()
    assert bench.until(lambda: bench.count_publishers() == 2)
    with rogue.sending():
        bench.make_ready(1.0)
        assert bench.node.trigger_activate() == REFUSED and not bench.node.active
    bench.until(lambda: False, senders.RECENT_S + 0.1)
    bench.make_ready(2.0)
    assert bench.node.trigger_activate() != REFUSED and bench.node.active


@pytest.mark.parametrize("changes", [{"second_commander": "report"}, {"commanders": True}])
def test_behind_a_watchdog_it_is_told_and_who_may_is_not(bench_of, rogue_of, changes):
    if "commanders" in changes:
        # The namespace of the next bench is known only after it is made.
        changes = {"commanders": [f"/bench_{k}/rogue" for k in range(100)]}
    bench = bench_of(**changes)
    bench.start()
    rogue = rogue_of(bench)
    bench.newest_s = 10.0
    told = lambda: bench.refusals("second_commander") > 0  # noqa: E731
    assert rogue.send_until(told, 2.5 * senders.LOOK_PERIOD_S) == ("second_commander" in changes)
    assert bench.node.active and not machine(bench).latched


def test_two_publishers_of_one_input_are_named_in_log_and_diagnostics(bench_of, rogue_of, capfd):
    bench = bench_of()
    bench.start()
    rogue = rogue_of(bench)
    states = rogue.node.create_publisher(JointState, "joint_states", RELIABLE)
    states.publish(joint_state(0.5))
    topic = bench.states_topic

    def figures():
        named = [s for m in bench.diagnostics for s in m.status]
        return {pair.key: pair.value for s in named[-1:] for pair in s.values}

    assert bench.until(lambda: f"publishers of {topic}" in figures(), 60.0)
    names = figures()[f"publishers of {topic}"]
    space = bench.node.get_namespace()
    assert names == f"{space}/peer, {space}/rogue"
    assert f"{topic} has several publishers: {names}" in capfd.readouterr().err
    rogue.node.destroy_publisher(states)
    assert bench.until(lambda: f"publishers of {topic}" not in figures(), 60.0)


def test_a_second_node_of_the_same_name_is_told(bench_of, rogue_of, capfd):
    bench = bench_of()
    bench.start()
    rogue_of(bench, name="controller")
    assert bench.until(lambda: "nodes are named" in capfd.readouterr().err, 60.0)
