"""What the direct loop serves first: a plan of many messages must not hold a state back."""

import contextlib
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import rclpy
from std_msgs.msg import String
from waiting import until

from contact_id_controller.ros import direct_loop
from contact_id_controller.ros.control_topics import ControlTopics
from contact_id_controller.ros.direct_loop import DirectLoop, Polled, take_newest
from contact_id_controller.ros.executor import GuardedExecutor
from contact_id_controller.safety.incidents import Incidents


class Topics:
    """Subscriptions whose messages are lists here, and a loop that waits on them."""

    def __init__(self, monkeypatch, names):
        self.waiting = {name: [] for name in names}
        self.served = []
        subscriptions = [
            SimpleNamespace(
                name=name,
                handle=SimpleNamespace(pointer=name),
                msg_type=str,
            )
            for name in names
        ]

        def hand_on(subscription):
            messages = self.waiting[subscription.name]
            if messages:
                self.served.append((subscription.name, messages.pop()))
                return True
            return False

        monkeypatch.setattr(direct_loop, "hand_on_newest", hand_on)
        executor = SimpleNamespace(incidents=Incidents(pytest.fail))
        self.turns = 0
        self.loop = DirectLoop(executor, lambda: subscriptions[:1], lambda: subscriptions[1:])
        self.loop._wait = self._wait
        self.loop._turn = self._turn
        self.loop._next_turn_s = float("inf")

    def _wait(self, subscriptions, services, timeout_s):
        names = [each.pointer for each in subscriptions]
        return [name for name, messages in self.waiting.items() if messages and name in names]

    def _turn(self, served, busy):
        self.turns += 1

    def spin(self):
        self.served.clear()
        self.loop.spin_once(0.0)
        return [name for name, _ in self.served]


@pytest.fixture
def topics(monkeypatch):
    return Topics(monkeypatch, ["states", "joints", "base", "contacts"])


def test_a_state_that_comes_amid_the_parts_of_a_plan_is_next(topics):
    for messages in topics.waiting.values():
        messages.append(1)
    assert topics.spin() == ["states", "joints"]
    topics.waiting["states"].append(2)
    assert topics.spin() == ["states", "base"]
    assert topics.spin() == ["contacts"]
    assert topics.spin() == [] and topics.turns == 1, "nothing came: the executor's turn"


def test_states_without_end_and_a_busy_topic_keep_no_other_waiting(topics):
    seen = set()
    for _ in range(3):
        for name in ("states", "joints", "base", "contacts"):
            topics.waiting[name] = [1]
        served = topics.spin()
        assert served[0] == "states" and len(served) == 2
        seen.update(served)
    assert seen == set(topics.waiting)


def test_a_busy_loop_looks_at_the_patient_now_and_then(topics, monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(direct_loop.time, "monotonic", lambda: now_s[0])
    topics.loop._look_interval_s = 0.004

    def state():
        topics.waiting["states"].append(1)

    state()
    assert topics.spin() == ["states"]
    topics.waiting["base"].append(1)
    for _ in range(3):
        now_s[0] += 0.001
        state()
        assert topics.spin() == ["states"], "nobody else was waited for"
    now_s[0] += 0.001
    state()
    assert topics.spin() == ["states", "base"]
    # Where one was served more may wait: it looks again at once.
    topics.waiting["joints"].append(1)
    state()
    assert topics.spin() == ["states", "joints"]


def test_a_busy_loop_answers_an_emergency_stop_at_once(topics, monkeypatch):
    answered, stop = [], SimpleNamespace(handle=SimpleNamespace(pointer="stop"), srv_type=str)
    monkeypatch.setattr(direct_loop, "_answer", answered.append)
    topics.loop._look_interval_s = 3600.0
    topics.loop._services = lambda: [stop]
    wait = topics.loop._wait
    topics.loop._wait = lambda subscriptions, services, timeout_s: [
        *wait(subscriptions, services, timeout_s),
        *(each.pointer for each in services),
    ]
    for count in range(1, 4):
        topics.waiting["states"].append(1)
        assert topics.spin() == ["states"]
        assert answered == [stop] * count


def test_an_emergency_stop_is_answered_before_what_came_with_it(topics, monkeypatch):
    stop = SimpleNamespace(handle=SimpleNamespace(pointer="stop"), srv_type=str)
    monkeypatch.setattr(direct_loop, "_answer", lambda _: topics.served.append(("stop", 1)))
    topics.loop._services = lambda: [stop]
    wait = topics.loop._wait
    topics.loop._wait = lambda *given: [*wait(*given), "stop"]
    for messages in topics.waiting.values():
        messages.append(1)
    assert topics.spin() == ["stop", "states", "joints"]


def test_plans_without_end_take_a_share_of_the_loop(topics, monkeypatch):
    """Taking a plan of 2 MB takes as long as a step."""
    now_s, taking_s = [100.0], 0.002
    for clock in ("monotonic", "thread_time"):
        monkeypatch.setattr(direct_loop.time, clock, lambda: now_s[0])
    hand_on = direct_loop.hand_on_newest

    def slowly(subscription):
        now_s[0] += taking_s
        return hand_on(subscription)

    monkeypatch.setattr(direct_loop, "hand_on_newest", slowly)
    plans = 0
    while now_s[0] < 101.0:
        topics.waiting["joints"] = [1]
        plans += len(topics.spin())
        now_s[0] += 0.0005
    assert 50 < plans < 0.3 / taking_s


def test_a_loop_whose_states_stop_looks_at_the_patient_with_the_next_wait(topics):
    topics.loop._look_interval_s = 3600.0
    topics.waiting["states"].append(1)
    assert topics.spin() == ["states"]
    topics.waiting["joints"].append(1)
    assert topics.spin() == [] and topics.spin() == ["joints"]


def test_the_executor_gets_its_turn_though_messages_never_end(topics):
    topics.loop._next_turn_s = 0.0
    for name in topics.waiting:
        topics.waiting[name].append(1)
    topics.spin()
    assert topics.turns == 1


def test_while_states_come_a_turn_does_one_long_thing_after_each(monkeypatch):
    """Together these take 6 ms: of states that come each millisecond, and of which the newest is kept, five were lost."""
    now_s, done = [100.0], []

    def takes(name, duration_s=0.002):
        now_s[0] += duration_s
        done.append(name)

    def run_timers():
        for name in ("chores", "diagnostics"):
            takes(name)
            yield

    def asked_for(served):
        return [], False

    monkeypatch.setattr(direct_loop.time, "monotonic", lambda: now_s[0])
    executor = SimpleNamespace(
        incidents=Incidents(pytest.fail), run_timers=run_timers, asked_for=asked_for
    )
    state = SimpleNamespace(handle=SimpleNamespace(pointer="state"), msg_type=str)
    monkeypatch.setattr(direct_loop, "hand_on_newest", lambda _: done.append("state") or True)
    loop = DirectLoop(executor, lambda: [state], between=lambda: takes("between", 0.0001))
    loop._run_one = lambda timeout_s: takes("whole turn")
    loop._wait = lambda *_: ["state"]
    for _ in range(5):
        loop.spin_once(0.0)
    after_each = " ".join(done).split("state")
    assert [words.strip() for words in after_each] == [
        "",
        "chores",
        "diagnostics",
        "",
        "whole turn",
        "between",
    ]
    done.clear()
    now_s[0] += 1.0
    loop._wait = lambda *_: []
    loop.spin_once(0.0)
    assert done == ["chores", "diagnostics", "whole turn", "between"], "nothing comes"


def test_what_is_polled_waits_for_who_polls_it(context, closing):
    node = rclpy.create_node("polling", context=context)
    closing(node, node.destroy_node)
    handed_on = []
    node.create_subscription(String, "served", lambda _: handed_on.append("served"), 1)
    polled = node.create_subscription(
        String, "polled", lambda _: handed_on.append("polled"), 1, callback_group=Polled()
    )
    publishers = [node.create_publisher(String, topic, 1) for topic in ("served", "polled")]
    executor = GuardedExecutor(node, context=context)
    closing(executor, executor.shutdown)
    waited = node.create_subscription(String, "waited", lambda _: None, 1)
    loop = DirectLoop(executor, lambda: [waited], turn_interval_s=0.0)

    def turn():
        for publisher in reversed(publishers):
            publisher.publish(String(data="x"))
        loop.spin_once(0.01)

    assert until(lambda: handed_on, turn=turn)
    for _ in range(5):
        loop.spin_once(0.01)
    assert set(handed_on) == {"served"}
    assert take_newest(polled).data == "x"


class Flooded(contextlib.nullcontext):
    """Subscription that keeps a number of messages, and its handle; there is always one more."""

    def __init__(self, depth):
        super().__init__()
        self.qos_profile, self.handle, self.taken = SimpleNamespace(depth=depth), self, 0
        self.msg_type, self.raw = String, True

    def take_message(self, kind, raw):
        self.taken += 1
        assert self.taken < 100
        return bytes(16), {}


def test_a_flood_keeps_no_step_waiting():
    """There is always one more odometry and one more joint state; a step looks at what the queues keep."""
    topics = object.__new__(ControlTopics)
    topics._odometry, topics._states = odometry, states = Flooded(1), Flooded(3)
    checks = SimpleNamespace(base_ns=2**62)  # from the future: no state is new enough
    topics._loop = SimpleNamespace(
        take_odometry=lambda _: None, guard=SimpleNamespace(lockstep=False, checks=checks)
    )
    assert topics._take_newest(b"") == bytes(16)
    assert (odometry.taken, states.taken) == (1, 3)
