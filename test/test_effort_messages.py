"""Effort trajectories over topics: their bytes, the simulated robot and the watchdog that take them."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.serialization import deserialize_message, serialize_message
from ros_bench import JOINTS as LEGS
from ros_bench import STANDING, VELOCITY, Bench
from test_torques_ahead import random_trajectory
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory, LocalFeedback
from contact_id_controller.ros.command_watchdog import CommandWatchdogNode
from contact_id_controller.ros.effort_messages import EffortMessage, EffortReader
from contact_id_controller.ros.simulated_robot import SimulatedRobot
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings

JOINTS = ["hip", "knee", "ankle"]
PARTS = ("positions", "velocities", "accelerations", "efforts")


class Wire:
    """Takes the bytes that would be published, as publisher and as its handle."""

    @property
    def handle(self):
        return self

    def publish_raw(self, data):
        self.data = bytes(data)

    @property
    def message(self):
        return deserialize_message(self.data, JointTrajectory)


def sent(trajectory, names=JOINTS):
    wire, message = Wire(), EffortMessage(names, len(trajectory.times_s))
    message.fill(trajectory)
    message.publish(wire)
    return wire


def test_bytes_are_the_ordinary_message():
    trajectory = random_trajectory()
    message = sent(trajectory).message
    assert message.joint_names == JOINTS
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (7, 0)
    for k, point in enumerate(message.points):
        np.testing.assert_array_equal(point.positions, trajectory.positions[k])
        np.testing.assert_array_equal(point.velocities, trajectory.velocities[k])
        np.testing.assert_array_equal(point.accelerations, trajectory.accelerations[k])
        np.testing.assert_array_equal(point.effort, trajectory.efforts[k])
        since = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
        assert since == pytest.approx(trajectory.times_s[k], abs=1e-9)


def test_what_is_sent_is_read():
    """The first message as a message, the next ones by their layout; other sizes and orders too."""
    reader = EffortReader(JOINTS)
    for seed, points in ((0, 5), (1, 5), (2, 5), (3, 2), (4, 2)):
        trajectory = random_trajectory(points, seed=seed)
        found = reader.read(sent(trajectory).data)
        assert found.start_s == 7.0
        np.testing.assert_allclose(found.times_s, trajectory.times_s, atol=1e-9)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(found, part), getattr(trajectory, part))
    swapped = ["ankle", "hip", "knee"]
    found = reader.read(sent(trajectory, swapped).data)
    np.testing.assert_array_equal(found.efforts, trajectory.efforts[:, [1, 2, 0]])


def spoiled(change):
    message = sent(random_trajectory()).message
    change(message)
    return serialize_message(message)


def nan_effort(message):
    message.points[2].effort[1] = float("nan")


def other_joint(message):
    message.joint_names[0] = "tail"


def no_effort(message):
    message.points[1].effort = []


def backwards(message):
    message.points[3].time_from_start.nanosec = 0


def no_points(message):
    message.points = []


@pytest.mark.parametrize(
    "change, says",
    [
        (nan_effort, "not finite"),
        (other_joint, "must have"),
        (no_effort, "must have 3 positions"),
        (backwards, "must increase"),
        (no_points, "each point"),
    ],
)
def test_a_bad_trajectory_is_refused(change, says):
    reader = EffortReader(JOINTS)
    for _ in range(2):
        with pytest.raises(StateError, match=says):
            reader.read(spoiled(change))
    reader.read(sent(random_trajectory()).data)
    with pytest.raises(StateError, match=says):
        reader.read(spoiled(change))
    with pytest.raises(StateError):
        reader.read(sent(random_trajectory()).data[:-40])


# The controller node


class TrajectoryBench(Bench):
    """A controller with the other interface; what it publishes, as effort trajectories."""

    def __init__(self, **changes):
        super().__init__(command_interface="joint_trajectory", **changes)
        self.reader = EffortReader(LEGS)
        self.peer.create_subscription(
            JointTrajectory, "joint_commands", self._on_trajectory, 10, raw=True
        )

    def _on_trajectory(self, message):
        self.commands.append(self.reader.read(message))

    def count_publishers(self):
        return self.peer.count_publishers("joint_commands")


def test_the_node_publishes_what_the_guard_commands():
    """Each state is answered by one trajectory, whose sum at the state is the guard's torque."""
    bench = TrajectoryBench(start_ramp_s=0.02)
    local = LocalFeedback(np.full(12, 3.0), np.full(12, 0.2), np.full(12, np.inf))
    try:
        bench.start()
        assert bench.peer.count_publishers("commands") == 0
        guard = bench.node.loop.guard
        for number in range(5):
            local.trajectory = bench.answer(10.0 + 0.001 * number)
            torques = local.torques(10.0 + 0.001 * number, STANDING, VELOCITY)
            np.testing.assert_allclose(torques, guard.output.sent, atol=1e-6)
        assert np.abs(guard.output.sent).max() > 0.1
        count = len(bench.commands)
        bench.node.trigger_deactivate()
        bench.until(lambda: len(bench.commands) > count)
        np.testing.assert_array_equal(bench.commands[-1].velocities, 0.0)
        np.testing.assert_array_equal(bench.commands[-1].positions[-1], STANDING)
    finally:
        bench.close()


# The simulated robot


def test_the_simulated_robot_needs_gains():
    with pytest.raises(ConfigurationError, match="'local_position_gain' is empty"):
        SimulatedRobotSettings.from_mapping(
            {"urdf": "x.urdf", "command_interface": "joint_trajectory"}
        )


def test_the_simulated_robot_follows_by_itself(node_within):
    """One trajectory, and nobody after it: the joints rest where it ends."""
    node = node_within(
        SimulatedRobot,
        urdf="package://contact_id_controller/urdf/quadruped.urdf",
        joints=LEGS,
        contact_frames=["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"],
        contact_radii_m=[0.01],
        initial_joint_positions=STANDING.tolist(),
        command_interface="joint_trajectory",
        local_position_gain=[40.0],
        local_velocity_gain=[0.5],
    )
    trajectory = random_trajectory(2, 12)
    trajectory.rest(0.0, STANDING, np.zeros(12))
    node._on_command(sent(trajectory, LEGS).data)
    for _ in range(300):
        node._step()
    state = node._state
    assert state.time_s == pytest.approx(0.3)
    assert np.abs(state.q[7:] - STANDING).max() < 0.05  # it would have fallen over
    assert state.q[2] > 0.14
    before = node._local.trajectory
    node._on_command(spoiled(nan_effort))
    assert node._local.trajectory is before and node.simulated.refused_commands == 1


# The watchdog

NOW = {"source_timestamp": 0}
"""Of a message of which nobody says when it was sent."""


def test_the_watchdog_forwards_clips_and_says_a_posture_at_rest(node_within):
    node = node_within(
        CommandWatchdogNode,
        joints=JOINTS,
        effort_limits_nm=[0.5],
        damping_nm_s_rad=[0.1],
        command_interface="joint_trajectory",
        damp_before_first_command=False,
    )
    wire = node._commands = Wire()
    reader = EffortReader(JOINTS)
    trajectory = random_trajectory()
    node._on_command(sent(trajectory).data, NOW)
    forwarded = reader.read(wire.data)
    np.testing.assert_array_equal(forwarded.positions, trajectory.positions)
    np.testing.assert_array_equal(forwarded.efforts, np.clip(trajectory.efforts, -0.5, 0.5))
    assert node.watchdog.clipped == 1
    node.watchdog.velocities.take(["knee"], [1.0], 0.0, [0.25])
    for _ in range(3):
        node._on_command(spoiled(nan_effort), NOW)
    assert node.watchdog.state.value == "tripped"
    rest = reader.read(wire.data)
    assert rest.start_s == 0.0
    # Where it was measured, else where it was to be.
    place = [trajectory.positions[0, 0], 0.25, trajectory.positions[0, 2]]
    np.testing.assert_array_equal(rest.positions, [place, place])
    np.testing.assert_array_equal(rest.velocities, 0.0)
    wire.data = b""
    node._on_command(sent(trajectory).data, NOW)
    assert not wire.data and node.watchdog.refused["tripped"] == 1
    node.release()
    np.testing.assert_array_equal(reader.read(wire.data).efforts, 0.0)


def test_a_start_that_no_stamp_says_is_said_as_the_farthest():
    """The safe output has the time of the last state, and must be sent whatever that said."""
    trajectory = EffortTrajectory(2, len(JOINTS))
    trajectory.rest(2.0**31 + 3.5, np.zeros(len(JOINTS)), np.zeros(len(JOINTS)))
    message = EffortMessage(JOINTS, 2)
    message.fill(trajectory)
    sent = []
    message.publish(SimpleNamespace(handle=SimpleNamespace(publish_raw=sent.append)))
    assert deserialize_message(sent[0], JointTrajectory).header.stamp.sec == 2**31 - 1


def test_a_time_from_start_of_more_than_all_seconds_is_refused():
    """Its nanoseconds are a carry beyond 32 bits: once an error that ended the command watchdog."""
    message = JointTrajectory(joint_names=["hip"])
    numbers = {"positions": [0.0], "velocities": [0.0], "accelerations": [0.0], "effort": [0.0]}
    for nanosec in (0, 4_000_000_000):
        point = JointTrajectoryPoint(**numbers)
        point.time_from_start.sec, point.time_from_start.nanosec = 2**31 - 1, nanosec
        message.points.append(point)
    with pytest.raises(StateError, match="times of the points must increase, from 0 on"):
        EffortReader(["hip"]).read(serialize_message(message))
