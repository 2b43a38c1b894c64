"""Plans as bytes: the same as the ordinary messages, refused by their size before they are looked at."""

import math
import struct

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="messages need ROS 2")

from geometry_msgs.msg import Transform, Twist
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import (
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
    MultiDOFJointTrajectoryPoint,
)

from contact_id_controller.exceptions import ContactIdError, StateError, TrajectoryError
from contact_id_controller.plans import trajectories
from contact_id_controller.plans.goals import (
    ComGoal,
    FootPath,
    FrameGoal,
    Heading,
    Posture,
    TaskGoals,
)
from contact_id_controller.ros import conversions, goals_messages, plan_messages

RNG = np.random.default_rng(7)
NAMES = ["a", "knee_joint", "dritter_é"]
START_NS = 12_345_678_901
"""Seconds and nanoseconds converted apart add up to another number."""


def joints(count, rates=3):
    times = np.cumsum(RNG.uniform(0.001, 0.1, count))
    rows = [RNG.normal(size=(count, 3)) for _ in range(rates)] + [None] * (3 - rates)
    return trajectories.JointTrajectory(NAMES, times, *rows, 0.0, True)


def base(count):
    times = np.cumsum(RNG.uniform(0.001, 0.1, count))
    turns = RNG.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    rows = [RNG.normal(size=(count, 3)) for _ in range(3)]
    return trajectories.BaseTrajectory(times, rows[0], turns, rows[1], rows[2])


def schedule(count, loads=False):
    stance = RNG.integers(0, 2, (count, 3))
    return trajectories.ContactSchedule(NAMES, np.arange(count) * 0.1, stance)


def joint_message(plan):
    return deserialize_message(plan_messages.joint_message(plan, START_NS), JointTrajectory)


def base_message(plan):
    return deserialize_message(plan_messages.base_message(plan, START_NS), MultiDOFJointTrajectory)


def same(one, other):
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray) and name[0] != "_":
            assert np.array_equal(value, getattr(other, name)), name
    assert one.start_s == other.start_s == 1e-9 * START_NS


def lasting(point, time_s):
    ns = round(time_s * 1e9)
    point.time_from_start.sec, point.time_from_start.nanosec = ns // 10**9, ns % 10**9
    return point


def message_of(names, times_s, **fields):
    """A message made as anybody makes one."""
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(START_NS, 10**9)
    for k, time_s in enumerate(times_s):
        rows = {name: rows[k].tolist() for name, rows in fields.items() if rows is not None}
        message.points.append(lasting(JointTrajectoryPoint(**rows), time_s))
    return message


@pytest.mark.parametrize("count", [1, 2, 3, 50])
@pytest.mark.parametrize("rates", [1, 2, 3])
def test_joints_are_those_of_the_message(count, rates):
    plan = joints(count, rates)
    fields = {
        "positions": plan.positions,
        "velocities": plan.velocities,
        "accelerations": plan.accelerations,
    }
    message = message_of(NAMES, plan.times_s, **fields)
    assert joint_message(plan) == message
    read = conversions.joint_trajectory(serialize_message(message), True)
    same(conversions.joint_trajectory(message, True), read)
    assert read.names == tuple(NAMES)


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_base_is_that_of_the_message(count):
    plan = base(count)
    message = MultiDOFJointTrajectory(joint_names=["base"])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(START_NS, 10**9)
    message.header.frame_id = "world"
    for k in range(count):
        pose, twist = Transform(), Twist()
        for name, value in zip("xyz", plan.positions[k].tolist()):
            setattr(pose.translation, name, value)
        for name, value in zip("xyzw", plan.quaternions_xyzw[k].tolist()):
            setattr(pose.rotation, name, value)
        for name, linear, angular in zip(
            "xyz", plan.linear_velocities[k].tolist(), plan.angular_velocities[k].tolist()
        ):
            setattr(twist.linear, name, linear)
            setattr(twist.angular, name, angular)
        point = MultiDOFJointTrajectoryPoint(transforms=[pose], velocities=[twist])
        message.points.append(lasting(point, plan.times_s[k]))
    assert base_message(plan) == message
    same(
        conversions.base_trajectory(message),
        conversions.base_trajectory(serialize_message(message)),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 50])
@pytest.mark.parametrize("loads", [False, True])
def test_schedule_is_that_of_the_message(count, loads):
    forces = RNG.uniform(size=(count, 3)) if loads else None
    plan = schedule(count)
    sent = plan_messages.stance_message(plan, START_NS, forces)
    message = message_of(NAMES, plan.times_s, positions=plan.stance.astype(float), effort=forces)
    assert deserialize_message(sent, JointTrajectory) == message
    read = conversions.contact_schedule(serialize_message(message))
    same(conversions.contact_schedule(message), read)
    assert read.frames == tuple(NAMES)


def test_the_other_byte_order_is_read_too():
    plan = joints(3, 2)
    counts = {0: 3, 1: 3, 2: 0, 3: 0}
    data = bytearray(b"\x00\x00\x00\x00")

    def put(kind, value):
        size = struct.calcsize(kind)
        data.extend(bytes(-(len(data) - 4) % size) + struct.pack(">" + kind, value))

    def text(value):
        put("I", len(value.encode()) + 1)
        data.extend(value.encode() + b"\0")

    put("i", 12)
    put("I", 345_678_901)
    text("")
    put("I", 3)
    for name in NAMES:
        text(name)
    put("I", 3)
    for k in range(3):
        for field, rows in enumerate((plan.positions, plan.velocities, None, None)):
            put("I", counts[field])
            for value in () if rows is None else rows[k]:
                put("d", value)
        put("i", 0)
        put("I", round(plan.times_s[k] * 1e9))
    read = conversions.joint_trajectory(bytes(data), True)
    little = conversions.joint_trajectory(plan_messages.joint_message(plan, START_NS), True)
    same(little, read)
    assert read.names == tuple(NAMES)


def test_points_of_different_kinds_are_refused():
    message = joint_message(joints(5))
    for k in (0, 1, 3, 4):
        spoiled = joint_message(joints(5))
        spoiled.points[k].positions = [1.0]
        with pytest.raises(ContactIdError):
            conversions.joint_trajectory(serialize_message(spoiled), True)
    message.points = []
    with pytest.raises(TrajectoryError, match="no points"):
        conversions.joint_trajectory(serialize_message(message), True)
    for message, words in (
        (base_message(base(3)), "no points"),
        (base_message(base(3)), "lack transform or velocity"),
    ):
        if words == "no points":
            message.points = []
        for point in message.points:
            point.velocities = []
        with pytest.raises(TrajectoryError, match=words):
            conversions.base_trajectory(serialize_message(message))
    with pytest.raises(TrajectoryError, match="no points|shape"):
        conversions.contact_schedule(serialize_message(JointTrajectory(joint_names=NAMES)))


@pytest.mark.parametrize(
    "read",
    [conversions.joint_trajectory, conversions.base_trajectory, conversions.contact_schedule],
)
def test_more_points_than_a_plan_has_are_refused_by_their_count(read):
    """A hundred thousand points took 2.5 s and the emergency stop waited: nothing behind their count is read."""
    long = JointTrajectory(joint_names=NAMES, points=[JointTrajectoryPoint()] * 100_000)
    data = serialize_message(long)
    count = data.index((100_000).to_bytes(4, "little"))
    for seen in (data, data[: count + 4]):
        with pytest.raises(TrajectoryError, match="100000 points, must have at most 10000"):
            read(seen)


def test_bytes_and_names_end_somewhere():
    with pytest.raises(TrajectoryError, match="20000000 bytes"):
        conversions.joint_trajectory(bytes(20_000_000))
    many = JointTrajectory(joint_names=["j"] * 5000)
    with pytest.raises(TrajectoryError, match="names 5000 joints"):
        conversions.joint_trajectory(serialize_message(many))
    for read in (conversions.joint_trajectory, conversions.contact_schedule):
        for name in ("j" * 201, "j" * 1_000_000):
            wordy = serialize_message(JointTrajectory(joint_names=[name]))
            with pytest.raises(TrajectoryError, match=f"name in the plan has {len(name)} bytes"):
                read(wordy)


def test_bytes_that_are_no_plan_are_refused_whatever_they_are():
    """Cut, spoiled and random bytes: a refusal, or a plan of finite numbers; never another end."""
    sources = [
        (
            conversions.joint_trajectory,
            plan_messages.joint_message(joints(6), 1),
        ),
        (conversions.base_trajectory, plan_messages.base_message(base(6), 1)),
        (
            conversions.contact_schedule,
            plan_messages.stance_message(schedule(6), 1),
        ),
    ]
    refused = 0
    for read, good in sources:
        for k in range(3000):
            data = bytearray(good if k % 3 else RNG.bytes(RNG.integers(0, 400)))
            if k % 3 == 1:
                del data[RNG.integers(0, len(data)) :]
            for _ in range(RNG.integers(0, 4) if data else 0):
                data[RNG.integers(0, len(data))] = RNG.integers(0, 256)
            try:
                plan = read(bytes(data))
            except ContactIdError:
                refused += 1
            else:
                assert np.isfinite(plan.times_s).all()
    assert refused > 3000


def goals_with(**changes):
    rng = np.random.default_rng(2)
    path = FootPath([0.0, 0.25], *rng.normal(size=(3, 2, 6)), may_land_from_s=0.2)
    given = {
        "com": ComGoal([0.1, 0.2], [0.3, 0.4], 3.3, 0.8, [0.05, -0.4]),
        "posture": Posture(["knee", "hip"], [0.1, 0.2]),
        "feet": {"left_foot": path},
        "lasts_s": 0.5,
        "heading": Heading(0.1, -0.2),
        **changes,
    }
    return TaskGoals(**given)


@pytest.mark.parametrize("stiffness", [None, [40.0, 200.0]])
def test_goals_come_back_as_they_were_sent(stiffness):
    sent = goals_with(posture=Posture(["knee", "hip"], [0.1, 0.2], stiffness))
    read = goals_messages.task_goals(goals_messages.goals_message(sent, 1_700_000_000_123_456_789))
    assert read.start_s == pytest.approx(1_700_000_000.123456789, abs=1e-6)
    assert read.heading == sent.heading
    assert read.lasts_s == sent.lasts_s
    for a, b in zip((*read.com, *read.posture), (*sent.com, *sent.posture)):
        assert np.array_equal(np.array(a, dtype=object), np.array(b, dtype=object))
    found, path = read.feet["left_foot"], sent.feet["left_foot"]
    np.testing.assert_array_equal(found.points, path.points)
    np.testing.assert_array_equal(found.times_s, path.times_s)
    assert found.may_land_from_s == path.may_land_from_s
    assert goals_messages.task_goals(goals_messages.goals_message(sent, 0)).start_s is None


def test_frames_come_back_as_they_were_sent():
    rows = RNG.normal(size=(3, 2, 3))
    rows[1, -1] = 0.0  # at rest in the end
    hand = FootPath([0.0, 0.25], *rows)
    turn = [0.0, 0.6, 0.0, 0.8]
    frames = {
        "hand": FrameGoal(hand),
        "head": FrameGoal(rotation=turn),
        "grip": FrameGoal(hand, turn),
    }
    sent = goals_with(frames=frames)
    read = goals_messages.task_goals(goals_messages.goals_message(sent, 5)).frames
    assert list(read) == list(frames)
    for name, goal in sent.frames.items():
        assert (read[name].path is None) == (goal.path is None)
        assert (read[name].rotation is None) == (goal.rotation is None)
        if goal.path is not None:
            np.testing.assert_array_equal(read[name].path.points, goal.path.points)
            np.testing.assert_array_equal(read[name].path.times_s, goal.path.times_s)
        if goal.rotation is not None:
            np.testing.assert_allclose(read[name].rotation, goal.rotation, rtol=1e-15)


def test_goals_start_with_their_schedule_to_the_last_bit():
    """Parts of a plan are found together by their start: one that differs by a rounding would be lost."""
    schedule = trajectories.ContactSchedule(["left_foot"], [0.0], [[1.0]])
    for stamp_ns in (1_764_000_000_123_456_789 + 10_000_000 * np.arange(300)).tolist():
        goals = goals_messages.task_goals(goals_messages.goals_message(goals_with(), stamp_ns))
        stance = plan_messages.stance_message(schedule, stamp_ns)
        assert goals.start_s == conversions.contact_schedule(stance).start_s


def change(message, part_label, size=None, label=None):
    for part in message.layout.dim:
        if part.label == part_label:
            part.size = part.size if size is None else size
            part.label = part.label if label is None else label


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: change(m, "heading", label="course"), "'heading' of the goals has 0 numbers"),
        (lambda m: change(m, "joint hip", label="arm hip"), "unknown part 'arm hip'; known are"),
        (lambda m: change(m, "joint hip", label="joint knee"), "part 'joint knee' twice"),
        (lambda m: change(m, "joint hip", size=4), "goals name 57 numbers and have 54"),
        (lambda m: m.data.__setitem__(2, math.nan), "pressure .* not finite"),
        (lambda m: m.layout.dim.pop(), "goals name 53 numbers and have 54"),
        (
            lambda m: (m.data.append(0.0), change(m, "foot left_foot", size=40)),
            "'foot left_foot' of the goals has 40 numbers, must have 1 [+] 19 a point",
        ),
        (
            lambda m: change(m, "joint hip", label="frame hand"),
            "'frame hand' of the goals has 1 numbers, must have 4 [+] 10 a point",
        ),
        (
            lambda m: (m.data.append(0.0), change(m, "joint hip", size=2)),
            r"joints of the goals have \[1, 2\] numbers, must all have 1 or all 2",
        ),
    ],
)
def test_spoilt_goals_are_refused(spoil, words):
    message = deserialize_message(goals_messages.goals_message(goals_with(), 0), Float64MultiArray)
    spoil(message)
    with pytest.raises(TrajectoryError, match=words):
        goals_messages.task_goals(serialize_message(message))
    with pytest.raises(StateError):
        goals_messages.task_goals(serialize_message(message)[:20])
