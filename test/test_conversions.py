"""ROS messages to arrays and plans, markers, and the record: each conversion by itself."""

import contextlib
import math
import resource
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import (
    JointTrajectory,
    JointTrajectoryPoint,
    MultiDOFJointTrajectory,
    MultiDOFJointTrajectoryPoint,
)
from visualization_msgs.msg import Marker

from contact_id_controller.control.controller import StepResult
from contact_id_controller.exceptions import RecordError, StateError, TrajectoryError
from contact_id_controller.plans.trajectories import ContactSchedule, Reference
from contact_id_controller.ros.conversions import (
    JointStateReader,
    OdometryReader,
    PositionsByName,
    base_trajectory,
    contact_schedule,
    joint_trajectory,
    seconds,
)
from contact_id_controller.ros.markers import contact_markers
from contact_id_controller.ros.packed import (
    WRENCH,
    PackedMessage,
    imu,
    markers,
    nanoseconds,
    stamp_ns,
)
from contact_id_controller.ros.samples import SampleReader
from contact_id_controller.ros.state_input import StateInput
from contact_id_controller.ros.step_recording import Recorder
from contact_id_controller.safety.monitor import StepMonitor
from contact_id_controller.safety.safe_output import SafeOutput
from contact_id_controller.safety.states import JointReading, Refusal, StateChecks
from contact_id_controller.state import RobotState

NAMES = ["a", "b", "c"]


# Times


def test_stamp_in_nanoseconds_is_exact_and_in_seconds_nearly():
    stamp = Time(sec=1_800_000_000, nanosec=123_456_789)
    assert nanoseconds(stamp) == 1_800_000_000_123_456_789
    assert abs(seconds(stamp) - 1_800_000_000.123456789) < 3e-7
    assert seconds(Duration(sec=-1, nanosec=750_000_000)) == -0.25


# Joint states


def read(reader, names, position, velocity):
    message = JointState(name=names, position=position, velocity=velocity)
    return reader.read(message)


def checks(names=(), floating_base=False):
    """State checks of a robot of which only the joints' names matter."""
    na, base = len(names), 7 * floating_base
    robot = SimpleNamespace(
        na=na,
        joint_names=names,
        floating_base=floating_base,
        neutral=lambda: np.zeros(na + base),
        velocity=lambda *_: np.zeros(na + base),
        q_index=np.arange(na) + base,
        turns=np.zeros(na, dtype=bool),
        actuated=np.arange(na) + base,
    )
    return StateChecks(robot)


def test_joints_are_found_by_name_in_any_order_and_when_the_order_changes():
    reader = JointStateReader(NAMES)
    assert isinstance(read(reader, ["a", "b", "c"], [1.0, 2.0, 3.0], [4.0] * 3), JointReading)
    assert reader.position.tolist() == [1.0, 2.0, 3.0]
    found = read(reader, ["x", "c", "a", "b"], [0.0, 3.5, 1.5, 2.5], [0.0, 6.5, 4.5, 5.5])
    assert found.position.tolist() == [1.5, 2.5, 3.5]
    assert found.velocity.tolist() == [4.5, 5.5, 6.5]


def test_a_stamp_that_no_command_could_have_is_refused():
    """With `stamp_reference: stream` nothing else looks at it, and all that comes after would be out of order."""
    reader, judge = JointStateReader(NAMES), checks(NAMES)
    message = JointState(name=NAMES, position=[0.0] * 3, velocity=[0.0] * 3)
    message.header.stamp = Time(sec=2**31 - 1, nanosec=2**32 - 1)
    assert judge.take(reader.read(message), None).reason == "stamp_impossible"
    message.header.stamp = Time(sec=5)
    assert judge.take(reader.read(message), None).time_s == 5.0


@pytest.mark.parametrize(
    "names, position, velocity, reason, word",
    [
        (["a", "b"], [0.0] * 2, [0.0] * 2, "joint_missing", "c"),
        ([], [], [], "joint_missing", "a, b, c"),
        (NAMES, [0.0] * 2, [0.0] * 3, "joint_state_size", "2 positions"),
        (NAMES, [0.0] * 3, [], "joint_state_size", "0 velocities"),
        (NAMES, [0.0] * 4, [0.0] * 4, "joint_state_size", "4 positions"),
        (NAMES + ["a"], [0.0] * 4, [0.0] * 4, "joint_state_size", "twice"),
        (NAMES, [0.0, math.nan, 0.0], [0.0] * 3, "joint_state_not_finite", "of b"),
        (NAMES, [0.0] * 3, [0.0, 0.0, -math.inf], "joint_state_not_finite", "of c"),
        (NAMES, [math.inf, -math.inf, 0.0], [0.0] * 3, "joint_state_not_finite", "a, b"),
        (NAMES, [0.0] * 3, [0.0, 1e200, 0.0], "joint_state_not_finite", "of b"),
    ],
)
def test_bad_joint_state_is_refused_with_its_reason(names, position, velocity, reason, word):
    states = StateInput(NAMES, checks(NAMES))

    def take(*fields):
        state = JointState(name=fields[0], position=fields[1], velocity=fields[2])
        return states.take_joint_state(state, None)

    for _ in range(2):  # also once the names are known
        refusal = take(names, position, velocity)
        assert refusal.reason == reason
        assert word in refusal.detail
    assert isinstance(take(NAMES, [0.0] * 3, [0.0] * 3), RobotState)


def test_nan_of_a_joint_that_is_not_ours_does_not_matter():
    nan = math.nan
    found = read(JointStateReader(["b"]), NAMES, [nan, 1.0, nan], [nan, 2.0, nan])
    assert found.position.tolist() == [1.0] and found.velocity.tolist() == [2.0]


# Odometry


def odometry(**orientation):
    message = Odometry()
    pose, twist = message.pose.pose, message.twist.twist
    pose.position.x, pose.position.y, pose.position.z = 1.0, 2.0, 3.0
    pose.orientation = Quaternion(**orientation)
    twist.linear = Vector3(x=4.0, y=5.0, z=6.0)
    twist.angular = Vector3(x=7.0, y=8.0, z=9.0)
    message.header.frame_id = "map"
    message.header.stamp.nanosec = 5
    return message


def state_with(*messages):
    """What a floating base without joints is taken for, 5 ns later."""
    states = StateInput([], checks(floating_base=True))
    for message in messages:
        states.take_odometry(message)
    assert (states.checks.base_ns, states.odometry.world_frame) == (5, "map")
    return states.take_joint_state(JointState(header=Header(stamp=Time(nanosec=10))), None)


def test_odometry_gives_pose_and_twist_with_a_unit_quaternion():
    state = state_with(odometry(x=0.6006, y=0.0, z=0.0, w=0.8008))
    assert np.allclose(state.q, [1, 2, 3, 0.6, 0, 0, 0.8], atol=1e-7)
    assert state.v[:6].tolist() == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    "orientation, reason",
    [
        ({"w": 0.0}, "odometry_quaternion"),
        ({"x": 0.5, "w": 1.0}, "odometry_quaternion"),
        ({"x": math.nan}, "odometry_not_finite"),
        ({"x": 1e200}, "odometry_not_finite"),
        ({"w": math.inf}, "odometry_not_finite"),
    ],
)
def test_bad_odometry_refuses_the_state_until_a_good_one_comes(orientation, reason):
    assert state_with(odometry(), odometry(**orientation)).reason == reason
    assert isinstance(state_with(odometry(**orientation), odometry()), RobotState)


# Plans


def trajectory(*points, names=NAMES, **stamp):
    message = JointTrajectory(joint_names=names)
    message.header.stamp = Time(**stamp)
    for k, fields in enumerate(points):
        point = JointTrajectoryPoint(**fields)
        point.time_from_start = Duration(sec=k, nanosec=500_000_000)
        message.points.append(point)
    return message


@pytest.mark.parametrize(
    "fields",
    [("positions",), ("positions", "velocities"), ("positions", "velocities", "accelerations")],
)
def test_joint_trajectory_keeps_what_the_points_carry(fields):
    first, last = {name: [1.0, 2.0, 3.0] for name in fields}, dict.fromkeys(fields, [0.0] * 3)
    plan = joint_trajectory(trajectory(first, last, sec=7, nanosec=250_000_000))
    assert plan.names == tuple(NAMES)
    assert plan.times_s.tolist() == [0.5, 1.5]
    assert plan.start_s == 1e-9 * 7_250_000_000
    assert plan.positions.tolist() == [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    assert (plan.velocities is not None) == ("velocities" in fields)
    assert (plan.accelerations is not None) == ("accelerations" in fields)


def test_moving_end_is_a_matter_of_choice():
    message = trajectory({"positions": [0.0] * 3, "velocities": [1.0] * 3})
    with pytest.raises(TrajectoryError, match="rest"):
        joint_trajectory(message)
    assert joint_trajectory(message, allow_moving_end=True).allow_moving_end


def test_points_that_carry_different_things_are_refused():
    with pytest.raises(TrajectoryError, match="velocities.*different lengths"):
        joint_trajectory(
            trajectory({"positions": [0.0] * 3}, {"positions": [0.0] * 3, "velocities": [0.0] * 3})
        )


def test_contact_schedule_is_true_where_the_foot_stands():
    plan = contact_schedule(trajectory({"positions": [1.0, 0.0, 1.0]}, {"positions": [1.0] * 3}))
    assert plan.frames == tuple(NAMES)
    assert plan.stance.tolist() == [[True, False, True], [True, True, True]]
    with pytest.raises(TrajectoryError, match="0 .swing. or 1"):
        contact_schedule(trajectory({"positions": [1.0, 0.2, 1.0]}))
    for stance in ([[1.0, 0.5]], [[1.0, -1.0]], [[2.0, 0.0]], None):  # counted as contact
        with pytest.raises(TrajectoryError, match="must be 0"):
            ContactSchedule(["a", "b"], [0.0], stance)
    with pytest.raises(TrajectoryError):
        contact_schedule(trajectory())


def test_base_trajectory_is_read_field_by_field():
    point = MultiDOFJointTrajectoryPoint(
        transforms=[
            Transform(
                translation=Vector3(x=1.0, y=2.0, z=3.0),
                rotation=Quaternion(x=0.6, y=0.0, z=0.0, w=0.8),
            )
        ],
        velocities=[
            Twist(linear=Vector3(x=4.0, y=5.0, z=6.0), angular=Vector3(x=7.0, y=8.0, z=9.0))
        ],
    )
    plan = base_trajectory(MultiDOFJointTrajectory(joint_names=["base"], points=[point]))
    assert plan.positions.tolist() == [[1, 2, 3]]
    assert np.allclose(plan.quaternions_xyzw, [[0.6, 0, 0, 0.8]])
    assert plan.linear_velocities.tolist() == [[4, 5, 6]]
    assert plan.angular_velocities.tolist() == [[7, 8, 9]]
    point.velocities = []
    with pytest.raises(TrajectoryError, match="point 0"):
        base_trajectory(MultiDOFJointTrajectory(points=[point]))


# Markers


def test_markers_draw_force_and_cone_of_standing_feet_and_delete_the_others():
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    forces = np.array([[0.0, 0.0, 10.0], [0.0, 0.0, 0.0], [5.0, 0.0, 10.0]])
    markers = contact_markers(
        Time(),
        "world",
        points,
        np.tile([0.0, 0.0, 1.0], (3, 1)),
        np.array([0.5, 0.5, math.inf]),
        forces,
        np.array([True, False, True]),
        0.01,
    ).markers
    arrows = [m for m in markers if m.ns == "force"]
    cones = [m for m in markers if m.ns == "friction_cone"]
    assert [m.action for m in arrows] == [Marker.ADD, Marker.DELETE, Marker.ADD]
    assert [m.action for m in cones] == [Marker.ADD, Marker.DELETE, Marker.DELETE]
    tip = arrows[2].points[1]
    assert (tip.x, tip.y, tip.z) == (2.05, 0.0, 0.1)
    rim = np.array([[p.x, p.y, p.z] for p in cones[0].points])
    rim = rim[rim[:, 2] > 0]
    assert np.allclose(np.hypot(rim[:, 0], rim[:, 1]) / rim[:, 2], 0.5)


def test_cone_changes_colour_at_the_friction_limit():
    def colour(slip):
        markers = contact_markers(
            Time(),
            "world",
            np.zeros((1, 3)),
            np.array([[0.0, 0.0, 1.0]]),
            np.array([0.5]),
            np.array([[slip, 0.0, 10.0]]),
            np.array([True]),
            0.01,
        ).markers
        return next(m.color.r for m in markers if m.ns == "friction_cone")

    assert colour(4.9) == colour(0.0) != colour(5.0)


# Safe output, counts, record


def test_safe_output_damps_within_limits_and_only_a_known_velocity():
    safe = SafeOutput("damping", np.array([1.0, 2.0]), np.array([10.0, 1.0]))
    assert safe.torques(np.array([3.0, -3.0])).tolist() == [-3.0, 1.0]
    assert safe.torques(None).tolist() == [0.0, 0.0]
    zero = SafeOutput("zero", np.array([1.0, 2.0]), np.array([10.0, 1.0]))
    assert zero.torques(np.array([3.0, -3.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("real_time, misses", [(True, 2), (False, 1)])
def test_deadline_is_missed_by_a_lost_state_or_a_long_step(real_time, misses):
    monitor = StepMonitor(0.001, real_time)
    for stamp_s, step_s in [
        (0.0, 1e-4),
        (0.001, 1e-4),
        (0.0024, 1e-4),
        (0.0040, 1e-4),
        (0.0050, 1.1e-3),
    ]:
        # Slow time is no miss: arrivals are five times as far apart as stamps.
        spent = SimpleNamespace(step_time_s=0.8 * step_s, solve_time_s=5e-5, status="solved")
        monitor.step(stamp_s, 5.0 * stamp_s, step_s, spent)
    assert monitor.deadline_misses == misses
    assert float(monitor.figures()["period median (us)"]) == pytest.approx(5000.0)
    monitor.pause()
    monitor.step(9.0, 45.0, 1e-4, spent)
    assert monitor.deadline_misses == misses
    assert monitor.figures()["steps"] == "6"


def result(number):
    reference = Reference(np.full(2, number + 0.1), np.full(2, number + 0.2), np.zeros(2))
    return StepResult(
        torques=np.full(2, float(number)),
        status="solved" if number % 2 else "inconsistent",
        reference=reference,
        forces=np.full((1, 3), number + 0.5),
        contact=np.array([number > 1]),
        limits=np.zeros(2, dtype=np.uint8),
        solution=None,
        solve_time_s=1e-5 * number,
        step_time_s=0.0,
    )


def test_record_holds_every_step_across_chunks(tmp_path):
    path = tmp_path / "record.npz"
    recorder = Recorder(path, ["a", "b"], ["foot"])
    n = 20_000
    for number in range(n):
        recorder.add(0.001 * number, np.full(2, number), np.full(2, -number), result(number), 2e-4)
        if number % 1000 == 0:
            recorder.prepare()
        assert len(recorder) == number + 1
    assert len(recorder._rows._chunks) > 2
    recorder.save({"stale": 3}, 4)
    record = np.load(path, allow_pickle=False)
    counted = np.arange(n)
    assert np.allclose(record["time_s"], 0.001 * counted)
    assert np.array_equal(record["torques"], np.repeat(counted[:, None], 2, axis=1))
    assert np.array_equal(record["velocity"], -record["position"])
    assert np.allclose(record["reference_velocity"] - record["reference_position"], 0.1)
    assert record["forces"].shape == (n, 1, 3)
    assert record["status"][:3].tolist() == ["inconsistent", "solved", "inconsistent"]
    assert record["joint_names"].tolist() == ["a", "b"]
    assert record["refused_reasons"].tolist() == ["stale"]
    assert record["refused_counts"].tolist() == [3]
    assert record["deadline_misses"] == 4
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("joints, feet", [(1, 0), (12, 4), (500, 40)])
def test_a_record_takes_no_memory_for_which_the_kernel_searches(tmp_path, joints, feet):
    names = [[f"{kind}{k}" for k in range(count)] for kind, count in (("j", joints), ("f", feet))]
    recorder = Recorder(tmp_path / "record.npz", *names)
    assert 1e5 < recorder._rows.spare.nbytes <= 2**20


def test_a_step_of_another_robot_is_not_recorded(tmp_path):
    recorder = Recorder(tmp_path / "record.npz", ["a", "b"], ["foot"])
    one, two, three = np.zeros(1), np.zeros(2), np.zeros(3)
    step = result(1)
    recorder.add(0.0, two, two, step, 0.0)
    for position, velocity, other in (
        (three, three, step),
        (two, one, step),
        (two, two, step._replace(torques=three)),
        (two, two, step._replace(forces=np.zeros((2, 3)))),
        (two, two, step._replace(forces=np.zeros((2, 3)), contact=np.ones(2, dtype=bool))),
        (two, two, step._replace(limits=np.zeros(3, dtype=np.uint8))),
    ):
        with pytest.raises(RecordError, match="joints or feet"):
            recorder.add(0.001, position, velocity, other, 0.0)
    assert len(recorder) == 1


def test_record_without_steps_is_a_record(tmp_path):
    recorder = Recorder(tmp_path / "empty.npz", ["a"], [])
    recorder.save({}, 0)
    record = np.load(tmp_path / "empty.npz")
    assert record["torques"].shape == (0, 1)
    assert record["status"].shape == (0,)


def test_a_full_disk_is_told_at_once_and_the_last_rows_are_kept(tmp_path, monkeypatch):
    """All of a record was lost, and nobody knew before the end."""
    left, told = [10**9], []
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=left[0]))
    recorder = Recorder(tmp_path / "record.npz", ["a", "b"], ["foot"], told.append)
    for number in range(20_000):
        left[0] = 10**9 if number < 10_000 else 10**6
        recorder.add(0.001 * number, np.full(2, number), np.zeros(2), result(number), 2e-4)
        recorder.prepare()
        assert not told or number >= 10_000
    assert len(told) == 1 and "1.0 MB are left" in told[0]
    with most_bytes_of_a_file(1_000_000), pytest.raises(RecordError) as refused:
        recorder.save({"stale": 3}, 4)
    assert "of 20000 rows only the last 5000 are kept" in str(refused.value)
    record = np.load(tmp_path / "record.npz", allow_pickle=False)
    assert np.allclose(record["time_s"], 0.001 * np.arange(15_000, 20_000))
    assert record["status"].shape == (5000,) and record["deadline_misses"] == 4
    assert not list(tmp_path.glob("*.part"))


@contextlib.contextmanager
def most_bytes_of_a_file(size):
    """A file of this process may not be larger meanwhile: as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_without_room_for_two_rows_nothing_is_left(tmp_path):
    recorder = Recorder(tmp_path / "record.npz", ["a", "b"], ["foot"])
    for number in range(100):
        recorder.add(0.001 * number, np.zeros(2), np.zeros(2), result(number), 2e-4)
    with most_bytes_of_a_file(100), pytest.raises(RecordError, match="cannot write"):
        recorder.save({}, 0)
    assert not list(tmp_path.iterdir())


def test_record_into_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(RecordError, match="no such folder"):
        Recorder(tmp_path / "nowhere" / "x.npz", [], [])


# Bytes instead of messages


def packed_joints(names, position, velocity, effort=(), frame="", time_ns=7):
    message = JointState(name=names, position=position, velocity=velocity, effort=effort)
    message.header.frame_id = frame
    message.header.stamp.nanosec = time_ns
    return serialize_message(message)


def same(reader, names, position, velocity, effort=(), **more):
    """Whether bytes say what the message says; also by the layout, at the second and third time."""
    other = JointStateReader(reader.joint_names)
    data = packed_joints(names, position, velocity, effort, **more)
    wanted = other.read(deserialize_message(data, JointState))
    for _ in range(3):
        found = reader.read(data)
        if isinstance(wanted, Refusal):
            assert found == wanted
        else:
            assert found.time_ns == wanted.time_ns
            np.testing.assert_array_equal(found.position, wanted.position)
            np.testing.assert_array_equal(found.velocity, wanted.velocity)
            np.testing.assert_array_equal(reader.given, other.given)
    return True


def test_bytes_of_joint_states_are_read_as_the_message_is():
    reader, three = JointStateReader(NAMES), [1.0, -2.0, 0.1]
    assert same(reader, NAMES, three, [4.0, 5.0, 6.0], time_ns=1)
    assert same(reader, NAMES, [3.0, 2.0, 1.0], three, [7.0, 8.0, 9.0], time_ns=2)
    assert same(reader, NAMES[::-1], three, three, frame="body")  # other order, other offsets
    assert same(reader, ["x", *NAMES], [0.0, *three], [0.0, *three])
    assert same(reader, ["abc", "b", "a", "c"], [0.0, *three], [0.0, *three])
    assert same(reader, NAMES, three, three)
    # As many bytes, other names: what stands between the numbers is compared.
    assert same(reader, ["b", "a", "c"], three, three)
    assert same(reader, ["a", "b", "d"], three, three)
    assert same(reader, NAMES, three, [])
    assert same(reader, NAMES, [], three)
    assert same(reader, NAMES, [math.nan, 1.0, 2.0], three)


def test_numbers_go_by_the_layout_once_it_is_known(monkeypatch):
    """The ordinary message is made for the first bytes of a sender only."""
    reader, made = JointStateReader(NAMES), []
    real = reader._packed.message
    monkeypatch.setattr(reader._packed, "message", lambda data: made.append(1) or real(data))
    for k in range(20):
        reader.read(packed_joints(NAMES, [float(k)] * 3, [0.0] * 3, time_ns=k))
        assert reader.position.tolist() == [k] * 3
    assert len(made) <= 2


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("changed", ["frame", "child"])
def test_odometry_of_other_frames_is_refused_until_they_are_forgotten(packed, changed):
    """Two nodes publish it: one of a map, one of where the robot was switched on."""
    reader = OdometryReader()

    def read(frame="odom", child="base"):
        message = Odometry(child_frame_id=child)
        message.header.frame_id = frame
        message.pose.pose.orientation.w = 1.0
        return reader.read(serialize_message(message) if packed else message)

    other = {"frame": {"frame": "map"}, "child": {"child": "base_link"}}[changed]
    for _ in range(3):
        read()
        for _ in range(3):
            with pytest.raises(StateError, match="before was of 'base' in 'odom'"):
                read(**other)
    assert reader.world_frame == "odom"
    reader.forget_frames()
    read(**other)


@pytest.mark.parametrize("packed", [False, True])
def test_frames_of_one_wrong_message_are_left_after_many_others(packed):
    """A planner that nobody activates anew met one spoiled message first; two publishers take turns."""
    reader = OdometryReader(confirmations=3)

    time_s = 100

    def read(frame):
        message = Odometry(child_frame_id="base")
        message.header.frame_id, message.header.stamp.sec = frame, time_s
        message.pose.pose.orientation.w = 1.0
        return reader.read(serialize_message(message) if packed else message)

    read("spoiled")
    for frame in ("odom", "odom", "map", "odom", "odom", "spoiled", *["odom"] * 9):
        if frame == "spoiled":
            read(frame)
            continue
        with pytest.raises(StateError, match="before was of 'base' in 'spoiled'"):
            read(frame)
    time_s += 2
    read("odom")
    assert reader.world_frame == "odom"
    with pytest.raises(StateError, match="before was of 'base' in 'odom'"):
        read("spoiled")


def test_bytes_of_odometry_are_read_as_the_message_is():
    readers = OdometryReader(), OdometryReader()
    for k in range(4):
        message = odometry(w=1.0)
        message.pose.pose.position.x, message.twist.twist.angular.z = 0.1 * k, math.inf
        message.pose.covariance[3] = message.twist.covariance[7] = float(k)
        message.twist.covariance[35] = 2.0 * k
        message.header.frame_id = "map" if k < 3 else "world"
        for reader in readers:
            reader.forget_frames()
        (base, time_ns, variances), wanted = (
            readers[0].read(serialize_message(message)),
            readers[1].read(message),
        )
        assert base.tolist() == wanted[0].tolist() and time_ns == wanted[1] == 5
        assert variances.tolist() == wanted[2].tolist() == [0.0, k, 0.0, 0.0, 0.0, 2.0 * k]
        assert readers[0].world_frame == message.header.frame_id


GOOD = packed_joints(NAMES, [1.0] * 3, [2.0] * 3, [3.0] * 3)
BYTES = st.builds(
    lambda end, changes: bytes(
        changes.get(k, byte) for k, byte in enumerate(GOOD[: end or len(GOOD)])
    ),
    st.integers(0, len(GOOD)),
    st.dictionaries(st.integers(0, len(GOOD)), st.integers(0, 255), max_size=3),
)


@settings(max_examples=1000, deadline=None)
@given(BYTES)
@example(b"\0\1\0]")
@example(b"")
def test_broken_bytes_are_refused_or_raise_an_exception(data):
    """Whatever arrives: a reading, a refusal, or an exception, which the guard counts.

    On bytes such as those of the first example rclpy's own deserialization ends the process.
    """
    reader = JointStateReader(NAMES)
    reader.read(GOOD), reader.read(GOOD)
    try:
        found = reader.read(data)
    except StateError:
        found = None
    assert stamp_ns(data) is not None
    if isinstance(found, JointReading):
        wanted = JointStateReader(NAMES).read(deserialize_message(data, JointState))
        np.testing.assert_array_equal(found.position, wanted.position)
    assert reader.read(GOOD).position.tolist() == [1.0] * 3


def test_joint_states_of_senders_in_turn_are_read_as_messages_are():
    """Other names, another order, no efforts, half a message: each read as if there had been no other before."""
    reader = JointStateReader(NAMES)
    rng = np.random.default_rng(0)
    for turn in range(12):
        names = [NAMES, NAMES[::-1], [*NAMES, "more"], NAMES][turn // 2 % 4]
        values = dict(zip(names, rng.normal(size=len(names))))
        effort = values.values() if turn % 3 else ()
        message = JointState(name=names, position=values.values(), velocity=values.values())
        message.effort = list(effort)
        message.header.stamp.sec = turn
        data = serialize_message(message)
        found = reader.read(data)
        assert found.time_ns == turn * 1_000_000_000
        expected = [values[name] for name in NAMES]
        np.testing.assert_array_equal(found.position, expected)
        np.testing.assert_array_equal(found.velocity, expected)
        assert (found.effort is None) == (not effort)
        assert isinstance(reader.read(data[: len(data) // 2]), Refusal)


def test_a_packed_message_is_the_message_with_these_numbers():
    rows = markers(3, 0), markers(3, 1)
    message = PackedMessage(JointState(name=NAMES, position=list(rows[0]), velocity=list(rows[1])))
    position, velocity = map(message.doubles, rows)
    position[:], velocity[:] = [1.0, 2.0, 3.0], [-1.0, math.nan, 0.0]
    message.set_stamp(12_000_000_034)
    sent = []
    message.publish(SimpleNamespace(handle=SimpleNamespace(publish_raw=sent.append)))
    found = deserialize_message(sent[0], JointState)
    assert list(found.name) == NAMES and found.position.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(found.velocity, [-1.0, math.nan, 0.0])
    assert (found.header.stamp.sec, found.header.stamp.nanosec) == (12, 34)
    with pytest.raises(ValueError):
        PackedMessage(JointState(position=[1.0, 1.0])).doubles(np.array([1.0]))


def test_bytes_that_are_no_joint_state_are_refused_by_the_input():
    refusal = StateInput(NAMES, checks(NAMES)).read(b"\0\1\0]")
    assert refusal == Refusal("joint_state_bytes", "a message is not plain CDR")


def test_positions_are_found_by_name_in_bytes():
    reader = PositionsByName(["c", "x", "a"])
    for _ in range(3):
        values = reader.read(packed_joints(NAMES, [1.0, 2.0, 3.0], []))
        np.testing.assert_array_equal(values, [3.0, math.nan, 1.0])
    np.testing.assert_array_equal(
        reader.read(packed_joints(NAMES, [1.0], [])), [math.nan, math.nan, 1.0]
    )


@pytest.mark.parametrize("reading", [1, 2, 3])
def test_bytes_of_sensors_are_read_as_the_message_is(reading):
    """An IMU and a wrench, also by their layout at the second and third time, and what is none."""
    rng = np.random.default_rng(reading)
    imu_reader, wrench_reader = SampleReader(imu()), SampleReader(WRENCH)
    for k in range(reading):
        numbers = rng.normal(size=6)
        felt, wrench = Imu(), WrenchStamped()
        felt.orientation_covariance[0], felt.linear_acceleration_covariance[8] = -1.0, float(k)
        parts = felt.angular_velocity, felt.linear_acceleration, wrench.wrench.force
        for part, row in zip(
            (*parts, wrench.wrench.torque), np.tile(numbers.reshape(2, 3), (2, 1))
        ):
            part.x, part.y, part.z = row.tolist()
        for message, reader in ((felt, imu_reader), (wrench, wrench_reader)):
            message.header.frame_id = "sensor"
            message.header.stamp.sec, message.header.stamp.nanosec = -2 + k, 5
            time_ns, values = reader.read(serialize_message(message))
            assert time_ns == (-2 + k) * 1_000_000_000 + 5
            np.testing.assert_array_equal(values, numbers)
    with pytest.raises(StateError):
        imu_reader.read(serialize_message(wrench))
