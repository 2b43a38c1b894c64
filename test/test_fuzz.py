"""Every door is given what nobody meant, through the functions that the nodes call on what arrives.

`CONTACT_ID_FUZZ_S` (12 s for all together) says how long, `CONTACT_ID_FUZZ_SEED` with what. Each test
prints how many inputs it gave; over real topics, and for hours: `python -m experiments faults --fuzz`.
"""

import os
import re
import socket
import struct
import time
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="the doors of nodes need ROS 2")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, Transform, Twist
from lifecycle_msgs.msg import TransitionEvent
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParameters
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.subscription import RCLError
from ros_bench import (
    FEET,
    HEIGHT_M,
    JOINTS,
    STANDING,
    joint_state,
    joint_trajectory,
    odometry,
    parameters,
)
from sensor_msgs.msg import Joy
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint
from visualization_msgs.msg import MarkerArray
from waiting import until

from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.plans.plan import Plan
from contact_id_controller.ros import conversions, plan_bytes
from contact_id_controller.ros.direct_loop import hand_on_newest
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.settings import endpoints
from contact_id_controller.settings.controller import TABLE, ControllerSettings
from experiments.faults.fuzz import Inputs, parameter, run_fuzz
from experiments.faults.fuzz_other_nodes import OtherNode, OtherNodes, not_finite
from experiments.faults.fuzz_world import NOT_ASKED, Door, class_of
from experiments.faults.mutations import NUMBERS, filled, packed, serialised, spoiled

BUDGET_S = float(os.environ.get("CONTACT_ID_FUZZ_S", 12.0))
SEED = int(os.environ.get("CONTACT_ID_FUZZ_SEED", 14))
SHARES = {
    "controller": 0.3,
    "in_process": 0.1,
    "command_watchdog": 0.2,
    "gait_planner": 0.1,
    "kinodynamic_planner": 0.1,
    "dynamics_estimator": 0.1,
    "simulated_robot": 0.1,
    "viewer": 0.1,
}
"""Of the time, by node."""

WORDS = [*JOINTS, *FEET, "base", "world", "trot", "stand"]
LIMIT_NM, GENTLE_NM = 20.0, 1.0
MESSAGE_S = 0.003
"""Patience with a message within this process: one that the middleware refuses never comes."""

AT_ONCE = 4
"""Inputs between two good states."""

START_NS = 10_000_000_000
PERIOD_NS = 1_000_000


class Attack:
    """Inputs for one node until its share of the time is over; says which one was the last.

    Attributes:
        random: what all inputs are made with.  count: how many there were.
    """

    def __init__(self, name, part=1.0):
        self.name, self.count, self.last = name, 0, None
        self.random = Random(f"{SEED} {name}")
        self._share_s = part * SHARES[name] * BUDGET_S

    def rounds(self):
        """Numbers of rounds from 0 until time is over; at least 50."""
        end_s = time.monotonic() + self._share_s
        number = 0
        while number < 50 or time.monotonic() < end_s:
            yield number
            number += 1

    def give(self, door, what, to):
        """Hand an input to a door; what leaves it, and is no refusal, ends the test with the input."""
        self.count, self.last = self.count + 1, (door, what)
        try:
            return to(what)
        except ContactIdError as error:  # the loops of all nodes count these, and go on
            assert str(error)
        except Exception as error:
            shown = what.hex() if isinstance(what, bytes) else repr(what)
            raise AssertionError(
                f"{self.name}, input {self.count} of seed {SEED} at {door}: {shown[:4000]}"
            ) from error

    def told(self, record_property):
        print(f"{self.name}: {self.count} inputs, seed {SEED}")
        record_property("inputs", self.count)


def stamped(data, time_ns):
    """Bytes of a message with a header, with another time."""
    return data[:4] + struct.pack("<iI", *divmod(time_ns, 10**9)) + data[12:]


def base_plan():
    message = MultiDOFJointTrajectory(joint_names=["base"])
    for k in (1, 2):
        place = Transform()
        place.translation.z = HEIGHT_M
        point = MultiDOFJointTrajectoryPoint(transforms=[place], velocities=[Twist()])
        point.time_from_start.nanosec = 50_000_000 * k
        message.points.append(point)
    return message


def good_messages():
    """Bytes that a controller takes, by topic."""
    plan = joint_trajectory([0.05, 0.1], [STANDING + 0.01] * 2, velocities=np.zeros((2, 12)))
    schedule = joint_trajectory([0.0, 0.1], np.ones((2, 4)), names=FEET)
    messages = {
        "joint_states": joint_state(0.0),
        "odometry": odometry(0.0),
        "joint_trajectory": plan,
        "base_trajectory": base_plan(),
        "contact_schedule": schedule,
        "contact_states": joint_state(0.0, names=FEET, position=np.ones(4), velocity=np.zeros(4)),
    }
    return {topic: packed(message) for topic, message in messages.items()}


GOOD = good_messages()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def topic_of(subscription):
    return subscription.topic_name.rpartition("/")[2]


def heard(node):
    """Subscriptions of a node, by the last part of their topic; without simulated time."""
    found = {topic_of(each): each for each in node.subscriptions}
    found.pop("clock", None)
    return found


class Wire:
    """Sends bytes to a subscription through the middleware, which hands them on or refuses them."""

    def __init__(self, context):
        self.node = rclpy.create_node("wire", context=context)
        self._publishers = {}

    def publish(self, subscription, data):
        """Send them; False where they are more than a message of this kind can have."""
        topic = subscription.topic_name
        if topic not in self._publishers:
            qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
            self._publishers[topic] = self.node.create_publisher(subscription.msg_type, topic, qos)
            assert until(self._publishers[topic].get_subscription_count)
        try:
            self._publishers[topic].publish(data)
        except RCLError:
            return False
        return True

    def send(self, subscription, data):
        """Whether they arrived."""
        return self.publish(subscription, data) and until(
            lambda: hand_on_newest(subscription), MESSAGE_S, lambda: time.sleep(1e-4)
        )

    def close(self):
        self.node.destroy_node()


@pytest.fixture
def wire(context, closing):
    return closing(Wire(context))


# The controller


def bugs(guard):
    """Errors that the guard caught and nobody had thought of: reason -> how often."""
    refusals = guard.monitor.refusals
    return {reason: n for reason, n in refusals.items() if re.search(r"_\w*(Error|error)$", reason)}


class FuzzedController:
    """An active controller that is given good states between the inputs; what it sends is judged."""

    def __init__(self, bench):
        self.bench, self.node = bench, bench.node
        self.good = GOOD
        self.time_ns = START_NS
        self.doors = heard(self.node)
        self.restarts = self.commanding = self.judged = 0

    @property
    def guard(self):
        return self.node.loop.guard

    def step(self):
        """A good state, answered."""
        self.time_ns += PERIOD_NS
        for topic in ("contact_states", "odometry", "joint_states"):
            self.doors[topic].callback(stamped(self.good[topic], self.time_ns))
        self.judge()

    def judge(self):
        efforts = np.frombuffer(self.node._topics._command._data)
        assert np.isfinite(efforts).all() and np.abs(efforts).max() <= LIMIT_NM, efforts
        self.judged += 1
        self.commanding += self.guard.machine.commanding

    def keep_going(self):
        """Out of a stop, or begin anew where time went ahead or the base elsewhere."""
        machine = self.guard.machine
        if machine.latched:
            if machine.state.value == "emergency_stop":
                machine.release_emergency_stop(True)
            self.guard.resume()
        if not machine.commanding:
            self.node.trigger_deactivate()
            self.restarts += 1
            for _ in range(3):
                self.step()
            self.node.trigger_activate()
            self.step()


def test_the_controller(bench_of, record_property):
    bench = bench_of(contact_sources=["geometry", "state"])
    assert bench.node.trigger_configure().name == "SUCCESS"
    robot, attack = FuzzedController(bench), Attack("controller")
    robot.keep_going()
    assert bench.node.active
    row = endpoints.NODES["controller"]
    assert set(robot.doors) <= {name.rpartition("/")[2] for name in row.subscribes}
    topics, random = sorted(robot.doors), attack.random
    assert len(topics) >= 7
    services = {
        each.srv_name.rpartition("/")[2]: each
        for each in bench.node.services
        if each.srv_name.rpartition("/")[2] not in NOT_ASKED
    }
    assert len(services) >= 7
    live = [spec.name for spec in TABLE if spec.live]
    lives = bench.node.get_parameters(live)
    for number in attack.rounds():
        if number % AT_ONCE == 0:
            robot.step()
        topic = random.choice(topics)
        door = robot.doors[topic]
        if random.random() < 0.1:
            name = random.choice(sorted(services))
            kind, callback = services[name].srv_type, services[name].callback
            request = filled(kind.Request, random, WORDS)
            if hasattr(request, "parameters"):
                request.parameters = [
                    parameter(random, WORDS) for _ in range(random.choice((1, 1, 9)))
                ]
            attack.give(name, request, lambda request: callback(request, kind.Response()))
            robot.judge()
        if topic in robot.good and random.random() < 0.8:
            begin_ns = robot.time_ns + random.choice((0, 1, 20_000_000))
            data = spoiled(stamped(robot.good[topic], begin_ns), random)
        else:
            data = serialised(door.msg_type, random, WORDS)
        assert door.raw
        attack.give(topic, data, door.callback)
        robot.judge()
        if number % 100 == 99:
            bench.node.set_parameters_atomically(lives)
        if number % 10 == 9:
            robot.keep_going()
            bench.executor.spin_once(timeout_sec=0.0)
    assert not bugs(robot.guard), bugs(robot.guard)
    print(f"{robot.restarts} restarts, commanding after {robot.commanding} of {robot.judged}")
    assert robot.commanding > 0.3 * robot.judged, "what hardly ever commands is not tried"
    attack.told(record_property)


def test_the_door_within_ros2_control(tmp_path, record_property):
    """Numbers instead of bytes, and plans; nothing leaves it, whatever it is given."""
    door = InProcessController(
        ControllerSettings.from_mapping(parameters(state_folder=str(tmp_path))), lambda _: None
    )
    attack, good = Attack("in_process"), np.concatenate([STANDING, np.zeros(12)])
    random = attack.random
    base = np.array([0.0, 0.0, HEIGHT_M, *(0.0, 0.0, 0.0, 1.0), *np.zeros(6)])
    plans = {
        "joint_trajectory": lambda data: Plan(conversions.joint_trajectory(data)),
        "base_trajectory": lambda data: Plan(base=conversions.base_trajectory(data)),
        "contact_schedule": lambda data: Plan(contacts=conversions.contact_schedule(data)),
    }
    judged = commanding = 0

    def strange(numbers):
        numbers = np.array(numbers)
        for _ in range(random.choice((1, 1, 3))):
            numbers[random.randrange(len(numbers))] = random.choice(
                (*NUMBERS, random.gauss(0.0, 1.0))
            )
        size = random.choice((len(numbers),) * 8 + (0, 1, len(numbers) + 1, 10_000))
        return np.resize(numbers, size)

    def update(state):
        nonlocal judged, commanding
        efforts = door.update(state)
        assert np.isfinite(efforts).all() and np.abs(efforts).max() <= LIMIT_NM, efforts
        judged += 1
        commanding += door.safety.commanding
        door.post_update()

    for number in attack.rounds():
        if number % AT_ONCE == 0:
            door.take_base(base)
            update(good)
        kind = random.choice(("state", "base", "forces", "contacts", *plans))
        if kind == "state":
            attack.give(kind, strange(good), update)
        elif kind == "base":
            when = random.choice((None, *NUMBERS, time.time()))
            attack.give(kind, strange(base), lambda numbers: door.take_base(numbers, when))
        elif kind == "forces":
            forces = strange(np.ones(12))
            forces = forces.reshape(4, 3) if forces.size == 12 else forces
            seen = np.ones(random.choice((4, 4, 3)), dtype=bool)
            attack.give(kind, forces, lambda forces: door.take_contact_forces(forces, seen))
        elif kind == "contacts":
            attack.give(kind, strange(np.ones(4)), door.take_contact_states)
        else:
            data = spoiled(stamped(GOOD[kind], time.time_ns()), random)
            attack.give(kind, data, lambda data: door.follow(lambda: plans[kind](data), kind))
        if number % 20 == 19:
            door.resume()
    assert not bugs(door.guard), bugs(door.guard)
    assert commanding > 0.2 * judged
    attack.told(record_property)


# The watchdog


class Judge:
    """In place of the watchdog's publisher, and of its handle: what goes to the robot."""

    def __init__(self, joints, limits, interface):
        from contact_id_controller.ros.effort_messages import EffortReader

        self._reader, self._limits, self.sent = EffortReader(joints), np.array(limits), 0
        self._bare = interface == "effort"

    @property
    def handle(self):
        return self

    def publish_raw(self, message):
        if self._bare:
            efforts = np.array(deserialize_message(message, Float64MultiArray).data)
        else:
            efforts = self._reader.read(message).efforts
        assert np.isfinite(efforts).all() and (np.abs(efforts) <= self._limits).all(), efforts
        assert efforts.shape[-1] == len(self._limits)
        self.sent += 1


@pytest.mark.parametrize("interface", ["effort", "joint_trajectory"])
def test_the_watchdog(node_within, wire, interface, tmp_path, record_property):
    from contact_id_controller.plans.effort_trajectory import EffortTrajectory
    from contact_id_controller.ros.command_watchdog import CommandWatchdogNode
    from contact_id_controller.ros.effort_messages import EffortMessage
    from contact_id_controller.safety.command_watchdog import WatchdogState

    joints, limits = ["hip", "knee"], [5.0, 7.0]
    values = {
        "joints": joints,
        "effort_limits_nm": limits,
        "timeout_s": 5.0,
        "command_interface": interface,
        "state_folder": str(tmp_path),
    }
    node = node_within(CommandWatchdogNode, **values)
    attack = Attack("command_watchdog", 0.5)
    random = attack.random
    node._commands = judge = Judge(joints, limits, interface)
    doors = {topic_of(each): each for each in node.direct_subscriptions}
    row = endpoints.NODES["command_watchdog"].subscribes
    assert set(doors) <= {name.rpartition("/")[2] for name in row}
    commands = next(name for name in doors if name.endswith("commands_in"))
    if interface == "effort":
        message = filled(doors[commands].msg_type, Random(1))
        message.layout.dim, message.data = [], [1.0, -2.0]
    else:
        kept = []
        message = EffortMessage(joints, 2)
        trajectory = EffortTrajectory(2, 2)
        trajectory.rest(0.0, np.zeros(2), np.ones(2))
        message.fill(trajectory)
        message.publish(SimpleNamespace(handle=SimpleNamespace(publish_raw=kept.append)))
        (message,) = kept
    good = message if isinstance(message, bytes) else serialize_message(message)
    forwarded = 0
    for number in attack.rounds():
        topic = commands if random.random() < 0.6 else random.choice(sorted(doors))
        door = doors[topic]
        spoil = topic == commands and random.random() < 0.7
        data = spoiled(good, random) if spoil else serialised(door.msg_type, random, joints)
        attack.give(topic, data, lambda data: wire.send(door, data))
        node.tick()
        if number % 5 == 4:
            if node.watchdog.state is WatchdogState.EMERGENCY_STOP:
                assert node.watchdog.release_emergency_stop() == ""
            wire.send(doors[commands], good)
            forwarded += node.watchdog.state is WatchdogState.FORWARDING
            node.watchdog.controller_changed(True)
    assert judge.sent > attack.count / 10 and forwarded > attack.count / 20
    attack.told(record_property)


# The planners


def test_the_gait_planner(node_within, record_property):
    from test_gait_planner_node import QUADRUPED
    from test_gait_planner_node import parameters as given

    from contact_id_controller.ros.gait_planner import GaitPlannerNode

    node = node_within(GaitPlannerNode, **given())
    attack = Attack("gait_planner")
    random, doors, good = attack.random, heard(node), GOOD
    row = endpoints.NODES["gait_planner"].subscribes
    assert {f"{name}" for name in doors} == set(row)
    plans = []
    heard_by_one = {"get_subscription_count": lambda: 1}
    kept = type("Plans", (), {"publish": plans.append, **heard_by_one})
    node._plans._publishers = (kept,) * len(node._plans._publishers)
    words = [*WORDS, *QUADRUPED.feet, "walk", "pace", "stand", "{gait: trot}"]
    time_ns, planned = START_NS, 0
    for number in attack.rounds():
        topic = random.choice(sorted(doors))
        door = doors[topic]
        assert door.raw
        if topic in good and random.random() < 0.8:
            data = stamped(good[topic], time_ns + random.choice((0, 0, 1, 10**9)))
            data = spoiled(data, random)
        else:
            data = serialised(door.msg_type, random, words)
        attack.give(topic, data, door.callback)
        if number % AT_ONCE:
            continue
        time_ns += 20_000_000
        for topic in ("contact_states", "odometry", "joint_states"):
            doors[topic].callback(stamped(good[topic], time_ns))
        planned += bool(plans)
        kinds = plan_bytes.JOINT_FIELDS, plan_bytes.BASE_FIELDS, plan_bytes.JOINT_FIELDS
        for sent, fields in zip(plans, kinds):
            points = plan_bytes.read_points(sent, fields)
            assert all(np.isfinite(field).all() for field in points.fields)
        plans.clear()
    assert planned > 10
    attack.told(record_property)


def test_the_kinodynamic_planners_messages(record_property):
    """Its node hands them to these functions; a plan takes seconds and is no matter of bytes."""
    from paths import ROOT

    from contact_id_controller.planning.kinodynamic.footstep_file import soles_of
    from contact_id_controller.ros.footstep_messages import goal_of, steps_of
    from contact_id_controller.ros.state_input import StateInput
    from contact_id_controller.safety.states import StateChecks
    from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
    from contact_id_controller.settings.parameter_file import ParameterFile

    name = "kinodynamic_planner"
    section = ParameterFile(ROOT / "config/plans/solo12.yaml").section(name)
    settings = KinodynamicPlannerSettings.from_mapping(section)
    soles, attack, good = soles_of(settings), Attack(name), GOOD
    robot, random = settings.robot(), attack.random
    heard_of = StateInput(robot.joint_names, StateChecks(robot, odometry_age_limit_s=0.01))
    feet = [sole.frame for sole in soles]
    doors = {
        "footsteps": (MultiDOFJointTrajectory, lambda message: steps_of(message, soles, 0.6)),
        "goal_pose": (PoseStamped, goal_of),
        "joint_states": (None, lambda data: heard_of.take_joint_state(data, None)),
        "odometry": (None, heard_of.take_odometry),
    }
    assert set(doors) == set(endpoints.NODES[name].subscribes)

    def refused_or_read(take):
        def to(what):
            try:
                take(what)
            except ContactIdError as error:
                assert str(error) and "\n" not in str(error)

        return to

    for _ in attack.rounds():
        topic = random.choice(sorted(doors))
        kind, take = doors[topic]
        if kind is None:
            what = spoiled(stamped(good[topic], random.randrange(10**11)), random)
        else:
            what = filled(kind, random, feet)
        attack.give(topic, what, refused_or_read(take))
    attack.told(record_property)


@pytest.mark.parametrize("wrong_ns", [0, START_NS + 5 * 10**8, START_NS + 10**10, 10**18])
def test_one_stamp_of_another_time_begins_no_plan_anew(node_within, monkeypatch, wrong_ns):
    """A robot that walks would be planned for as one that stands; a jump is one when the next state says so, too."""
    from test_gait_planner_node import parameters as given

    from contact_id_controller.ros.gait_planner import GaitPlannerNode

    node = node_within(GaitPlannerNode, **given())
    wall_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: wall_s[0])
    doors, begun, plans = heard(node), [], []
    node._heard = True  # as if somebody listened to its plans
    reset, plan = node.planner.reset, node.planner.plan
    node.planner.reset = lambda: (begun.append(True), reset())
    node.planner.plan = lambda *state: (plans.append(state[0]), plan(*state))[1]

    def state(time_ns):
        for topic in ("contact_states", "odometry", "joint_states"):
            doors[topic].callback(stamped(GOOD[topic], time_ns))

    state(START_NS - PERIOD_NS)  # planning begins when the next one agrees
    for k in range(5):
        wall_s[0] += 0.06
        state(START_NS + 60_000_000 * k)
        state(wrong_ns + 60_000_000 * k if k == 3 else START_NS + 60_000_000 * k)
    assert not begun and len(plans) == 5
    back_ns = START_NS - 5 * 10**9
    for k in range(3):
        state(back_ns + PERIOD_NS * k)
    assert len(begun) == 1 and plans[-1] < 1e-9 * START_NS


def test_one_stamp_of_another_time_takes_no_shown_plan_away():
    """What the whole-body planner believes, without its plans, which take seconds."""
    from contact_id_controller.ros.kinodynamic_planner import NS_PER_S
    from contact_id_controller.safety.stamp_watch import StampWatch

    watch = StampWatch(NS_PER_S)
    assert all(watch.believes(START_NS + k * PERIOD_NS) for k in range(5))
    for wrong_ns in (0, START_NS + 10**10, 10**18):
        assert not watch.believes(wrong_ns)
        assert watch.believes(START_NS + 5 * PERIOD_NS)
    assert not watch.believes(2 * START_NS) and watch.believes(2 * START_NS + PERIOD_NS)
    assert not watch.believes(START_NS) and watch.believes(START_NS + 1)


@pytest.mark.parametrize("ahead_ns", [15_000_000, 45_000_000, 900_000_000])
def test_a_stamp_ahead_by_less_than_a_plan_is_not_believed_either(monkeypatch, ahead_ns):
    """One state of the wrong time would begin a plan; a stamp a little ahead, or two that agree, may be right."""
    from contact_id_controller.ros.kinodynamic_planner import NS_PER_S
    from contact_id_controller.safety import stamp_watch

    wall_s = [100.0]
    monkeypatch.setattr(stamp_watch.time, "monotonic", lambda: wall_s[0])
    watch = stamp_watch.StampWatch(NS_PER_S)
    for k in range(20):
        wall_s[0] += 0.001
        wrong_ns = ahead_ns if k % 5 == 4 else 0
        assert watch.believes(START_NS + k * 1_000_000 + wrong_ns) == (not wrong_ns)
    now_ns = START_NS + 20_000_000
    assert watch.believes(now_ns + 5_000_000) and watch.believes(now_ns)
    assert not watch.believes(now_ns + ahead_ns) and watch.believes(now_ns + ahead_ns + 1_000_000)


@pytest.mark.parametrize(
    ("steps_ms", "doubts"),
    [([20], [1]), ([12, 12, 12, 12, 9], [1]), ([8, 12], [1]), ([50], [1]), ([700], [1])]
    + [([5, 30], [1, 3]), ([5, 5, 5, 20], [3, 7])],
)
def test_rare_and_uneven_states_faster_than_time_are_doubted_once(monkeypatch, steps_ms, doubts):
    """In lockstep; a slow period of ours is no measure of theirs. A gap is usual when it comes again."""
    from contact_id_controller.safety import stamp_watch

    wall_s, stamp_ns, doubted = [100.0], START_NS, []
    monkeypatch.setattr(stamp_watch.time, "monotonic", lambda: wall_s[0])
    watch = stamp_watch.StampWatch(PERIOD_NS)
    for k in range(300):
        wall_s[0] += 0.02 if k % 10 == 9 else 0.0005
        stamp_ns += steps_ms[k % len(steps_ms)] * 1_000_000
        if not watch.believes(stamp_ns):
            doubted.append(k)
    assert doubted == doubts


@pytest.mark.parametrize("wrong_s", [-5.0, 0.3, 7200.0])
def test_a_wrong_stamp_that_comes_twice_does_not_confirm_itself(monkeypatch, wrong_s):
    """A relay or a second publisher delivers each state again."""
    from contact_id_controller.safety import stamp_watch

    wall_s = [100.0]
    monkeypatch.setattr(stamp_watch.time, "monotonic", lambda: wall_s[0])
    watch = stamp_watch.StampWatch(PERIOD_NS)
    for k in range(20):
        wall_s[0] += 0.001
        wrong_ns = round(1e9 * wrong_s) if k % 5 == 4 else 0
        for _ in range(2):
            assert watch.believes(START_NS + k * 1_000_000 + wrong_ns) == (not wrong_ns)


@pytest.mark.parametrize(
    ("jump_ms", "step_ms", "wrong_ms"), [(400, 1, 500), (900, 1, 900), (900, 700, 1200)]
)
def test_a_jump_that_is_confirmed_is_not_usual(monkeypatch, jump_ms, step_ms, wrong_ms):
    """Nor one long after it, nor steps of more than .5 s: one stamp of less than twice as much would be believed."""
    from contact_id_controller.safety import stamp_watch

    wall_s, stamp_ns = [100.0], START_NS
    monkeypatch.setattr(stamp_watch.time, "monotonic", lambda: wall_s[0])
    watch = stamp_watch.StampWatch(PERIOD_NS)
    assert watch.believes(stamp_ns)
    for states in (100, 3):
        stamp_ns += jump_ms * 1_000_000
        watch.believes(stamp_ns)
        for _ in range(states):
            wall_s[0] += 0.001
            stamp_ns += step_ms * 1_000_000
            assert watch.believes(stamp_ns)
    assert not watch.believes(stamp_ns + wrong_ms * 1_000_000)


def test_who_was_busy_for_seconds_believes_the_first_state_after_them(monkeypatch):
    """A planner on a full machine plans for longer than a jump of time: its plan needs the state after it."""
    from contact_id_controller.safety import stamp_watch

    wall_s = [100.0]
    monkeypatch.setattr(stamp_watch.time, "monotonic", lambda: wall_s[0])
    watch = stamp_watch.StampWatch(PERIOD_NS)
    assert watch.believes(START_NS)
    wall_s[0] += 3.4
    assert not watch.believes(START_NS + 10**10), "of another time still"
    assert watch.believes(START_NS + 3_420_000_000)
    assert not watch.believes(START_NS + 6_840_000_000), "no more time has passed"
    wall_s[0] += 600.0
    assert not watch.believes(START_NS + 590 * 10**9), "no planner is busy for so long"
    assert watch.believes(START_NS + 590 * 10**9 + PERIOD_NS), "the next state confirms it"


# Estimator and simulated robot


def test_the_estimator(context, closing, wire, record_property):
    from robots import SOLO_FEET
    from sensor_msgs.msg import Imu
    from test_dynamics_estimator_node import parameters as values

    from contact_id_controller.ros.dynamics_estimator import DynamicsEstimatorNode

    given = values(
        mounted_sensors=["force_torque FL_FOOT", "foot_pressure FR_FOOT"], mode="real_time"
    )
    node = DynamicsEstimatorNode(context=context, parameter_overrides=given)
    closing(node, node.destroy_node)
    attack = Attack("dynamics_estimator")
    random = attack.random
    assert node.trigger_configure().name == node.trigger_activate().name == "SUCCESS"
    doors = heard(node)
    row = endpoints.NODES["dynamics_estimator"].subscribes
    assert len(doors) == len(row)
    names = node.pipeline.estimator.joint_names
    still = joint_state(0.0, names=names, position=np.zeros(12), velocity=np.zeros(12))
    imu = Imu()
    imu.linear_acceleration.z = 9.81
    good = {"joint_states": serialize_message(still), "imu": serialize_message(imu)}
    words, time_ns = [*names, *SOLO_FEET], START_NS
    for number in attack.rounds():
        if number % AT_ONCE == 0:
            time_ns += PERIOD_NS
            for topic in ("imu", "joint_states"):
                doors[topic].callback(stamped(good[topic], time_ns))
        topic = random.choice(sorted(doors))
        door = doors[topic]
        if topic in good and random.random() < 0.8:
            data = spoiled(stamped(good[topic], time_ns + random.choice((0, 1))), random)
        else:
            data = serialised(door.msg_type, random, words)
        if door.raw:
            attack.give(topic, data, door.callback)
        elif random.random() < 0.9:
            attack.give(topic, filled(door.msg_type, random, words), door.callback)
        else:
            attack.give(topic, data, lambda data: wire.send(door, data))
    assert node.steps > 0.3 * number / AT_ONCE
    attack.told(record_property)


@pytest.mark.parametrize("interface", ["effort", "joint_trajectory"])
def test_the_simulated_robot(node_within, interface, record_property):
    from test_simulated_robot_node import parameters as given

    from contact_id_controller.ros.simulated_robot import SimulatedRobot

    changes = {
        "command_interface": interface,
        "wait_for_plan_s": 0.1,
        "local_position_gain": [5.0],
        "local_velocity_gain": [0.1],
    }
    node = node_within(SimulatedRobot, **given(**changes))
    attack = Attack("simulated_robot", 0.5)
    random, doors = attack.random, heard(node)
    row = {name.rpartition("/")[2] for name in endpoints.NODES["simulated_robot"].subscribes}
    assert set(doors) <= {*row, "task_goals"} and len(doors) == 3
    for _ in attack.rounds():
        door = doors[random.choice(sorted(doors))]
        message = filled(door.msg_type, random, JOINTS)
        if hasattr(message, "data") and random.random() < 0.5:
            message.data = [random.gauss(0.0, 0.5) for _ in JOINTS]
        assert door.raw
        data = serialize_message(message)
        if random.random() < 0.33:
            data = spoiled(data, random)
        attack.give(topic_of(door), data, door.callback)
        # With torques beyond all motors a simulation diverges, which ends it in one line.
        if interface == "effort" and not np.abs(node._command).max(initial=0.0) <= GENTLE_NM:
            node._command = np.zeros(len(JOINTS))
        node._step()
        assert np.isfinite(node._state.q).all() and np.isfinite(node._state.v).all()
    attack.told(record_property)


# What is looked at


def test_the_viewer(context, closing, wire, record_property):
    """Scene and panel are drawn of whatever came, as if somebody looked."""
    from paths import ROOT

    from contact_id_controller.settings.parameter_file import ParameterFile
    from contact_id_controller.view.viewer import Viewer

    section = ParameterFile(ROOT / "config/quadruped.yaml").section("controller")
    node = rclpy.create_node("viewer", context=context)
    closing(node, node.destroy_node)
    settings = ControllerSettings.from_mapping(section)
    viewer = closing(Viewer(node, settings, "controller", "127.0.0.1", free_port()))
    viewer.is_looked_at = lambda: True
    attack = Attack("viewer")
    random = attack.random
    viewer.panel.measure.value = True
    viewer.turn()
    doors = {each.topic_name.strip("/"): each for each in node.subscriptions}
    row = {name.strip("/") for name in endpoints.NODES["viewer"].subscribes}
    assert {re.sub("^ground_reaction/.*", "ground_reaction/*", name) for name in doors} >= (
        row - {"joy"}
    )
    still = joint_state(0.0, position=np.zeros(12), velocity=np.zeros(12), names=JOINTS)
    good = {
        "joint_states": serialize_message(still),
        "odometry": GOOD["odometry"],
        "base_trajectory": GOOD["base_trajectory"],
    }
    time_ns = START_NS

    def look(what):
        door, data = what
        if data is not None:
            wire.publish(doors[door], data)
        viewer._due = dict.fromkeys(viewer._due, 0.0)
        viewer.turn()

    for _ in attack.rounds():
        topic = random.choice(sorted(doors))
        if topic in good and random.random() < 0.8:
            data = spoiled(stamped(good[topic], time_ns), random)
        else:
            data = serialised(doors[topic].msg_type, random, [*JOINTS, "controller"])
        attack.give(topic, (topic, data), look)
    time_ns += 10**9
    wire.publish(doors["joint_states"], stamped(good["joint_states"], time_ns))
    look(("joint_states", None))
    assert viewer.listener.time_s == pytest.approx(1e-9 * time_ns)
    assert np.isfinite(viewer.listener.q).all() and np.isfinite(viewer.listener.torques).all()
    attack.told(record_property)


# The campaign


BESIDE = OtherNode({}, {"joint_states": (joint_state(0.0),)}, {}, result="odometry")


class Beside:
    """A node of the campaign that is here, and what is judged of it."""

    def __init__(self, context, folder):
        self.node = rclpy.create_node("beside", namespace="/beside", context=context)
        self.peer = rclpy.create_node("judge", context=context)
        reliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        self.results = self.node.create_publisher(Odometry, "odometry", reliable)
        self.other_nodes = OtherNodes({"beside": BESIDE}, folder)
        self.other_nodes.connect(self.peer)
        self.faults = []
        self.other_nodes.on_fault = lambda what, detail: self.faults.append(detail)
        self.until(lambda: self.other_nodes.listen(self.peer, class_of))
        self.until(self.results.get_subscription_count)

    def turn(self):
        self.other_nodes.turn(time.monotonic())
        time.sleep(0.005)

    def until(self, condition):
        assert until(condition, turn=self.turn)

    def publish(self, time_ns, x=0.0):
        message = odometry(1e-9 * time_ns)
        message.pose.pose.position.x = x
        self.results.publish(message)

    def works(self):
        self.other_nodes.turn(time.monotonic())
        return self.other_nodes.works("beside", lambda *_: None)

    def close(self):
        self.node.destroy_node()
        self.peer.destroy_node()


@pytest.fixture
def beside(context, closing, tmp_path):
    return closing(Beside(context, tmp_path))


def test_a_node_works_again_by_a_result_of_now(beside):
    """Not by one of a time before, nor by one with a stamp that was spoiled."""
    beside.other_nodes.begin_work()
    begun_ns = beside.other_nodes.time_ns("beside")
    for stamp_ns in (begun_ns - 10**9, begun_ns + 10**15):
        beside.publish(stamp_ns)
        for _ in range(20):
            assert not beside.works()
            time.sleep(0.005)
    beside.publish(begun_ns + 10**7)
    beside.until(beside.works)
    assert not beside.faults


def test_what_a_node_publishes_is_judged(beside):
    beside.publish(time.time_ns(), np.nan)
    beside.until(lambda: beside.faults)
    assert beside.faults == ["/beside/odometry: pose.pose.position.x = nan"]


def test_where_a_number_is_not_finite():
    plan = joint_trajectory([0.05, 0.1], [STANDING] * 2)
    assert not_finite(plan) == "" == not_finite(odometry(0.0))
    plan.points[1].positions[3] = np.inf
    assert not_finite(plan).startswith("points[1].positions = ")
    base = odometry(0.0)
    base.pose.covariance[7] = np.nan
    assert not_finite(base).startswith("pose.covariance = ")


def test_an_input_of_the_campaign_is_known_by_its_number():
    """Whatever was sent before it: of the same seed always the same, of another one another."""
    doors = {
        f"/{topic}": Door(kind, None, GOOD[topic], stamped=True)
        for topic, kind in (("odometry", Odometry), ("base_trajectory", MultiDOFJointTrajectory))
    }
    doors["/gait"] = Door(String, None, None, stamped=False)
    services = {"/gait_planner/set_parameters": SetParameters}

    def made(seed, numbers):
        inputs = Inputs(seed, doors, services, WORDS)
        return {number: repr(inputs.input(number, lambda _: START_NS)) for number in numbers}

    forwards = made(3, range(300))
    assert made(3, reversed(range(300))) == forwards != made(4, range(300))
    assert len(set(forwards.values())) > 250
    assert {value.split("'")[1] for value in forwards.values()} == {*doors, *services}


@pytest.mark.parametrize("name", ["dynamics_estimator", "gait_planner"])
def test_the_campaign_in_short(name, tmp_path, monkeypatch):
    """Over real topics beside controller and watchdog: nothing dies, and odometry and plans come again."""
    monkeypatch.setattr("experiments.faults.fuzz.WORK_EVERY_S", 2.0)
    rows = []
    result = run_fuzz(
        tmp_path / "fuzz",
        minutes=0.1,
        seed=SEED,
        rate_hz=200.0,
        slower=20.0,
        only=name,
        tell=rows.append,
    )
    assert result.work_s[name], rows
    forbidden = set(result.forbidden) - {"emergency stop", "old"}  # those judge the machine's speed
    assert not forbidden, rows
    asked = {topic.removeprefix(f"/{name}/") for topic in result.inputs}
    row = {topic for topic in endpoints.NODES[name].subscribes if "*" not in topic}
    assert row <= asked and all(topic.startswith(f"/{name}/") for topic in result.inputs)


# What messages are made of


def test_the_same_seed_makes_the_same_inputs_and_they_differ():
    kinds = [type(message) for message in (joint_state(0.0), odometry(0.0), base_plan())]

    def made(seed):
        random = Random(seed)
        return [repr(filled(kind, random, WORDS)) for kind in kinds * 20] + [
            spoiled(data, random) for data in GOOD.values() for _ in range(50)
        ]

    assert made(3) == made(3) != made(4)
    assert len(set(made(3))) > 300


@pytest.mark.parametrize(
    "kind", [Odometry, MultiDOFJointTrajectory, Joy, DiagnosticArray, MarkerArray, TransitionEvent]
)
def test_packed_bytes_are_the_message_and_always_the_same(kind):
    """The middleware leaves what was in its memory between the fields."""
    for seed in range(40):
        message = filled(kind, Random(seed), WORDS)
        data = packed(message)
        expected = deserialize_message(serialize_message(message), kind)
        assert repr(deserialize_message(data, kind)) == repr(expected)
        assert all(packed(message) == data for _ in range(3))
