"""Publishes the states of a simulated robot: messages are made once and refilled each period."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState

from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.packed import (
    ODOMETRY_COUNTS,
    PackedMessage,
    markers,
    message_class,
    packed_numbers,
)
from contact_id_controller.simulation.sensor_noise import Readings
from contact_id_controller.state import RobotState

WORLD = "world"
BASE = "base"
CLOCK_PERIOD_NS = 10_000_000
JOINT_FIELDS = "position", "velocity", "effort"


class StatePublisher:
    """Publishers of `/clock`, `imu`, `joint_states`, mounted sensors, and of the simulator's true values.

    The true values are `odometry`, `ground_reaction/<frame>` (force on the robot, world frame), and with a prefix also
    `contact_states` (1: contact). For each state odometry is published first, then IMU and mounted sensors, then joint
    states, with the same stamp; all but odometry and joint states only while there is a subscriber.

    Args:
        mounted: sensors beside IMU, encoders and motors.
        imu_frame: of the IMU; None: there is none.
        truth: prefix of the topics of the true values.
    """

    def __init__(
        self,
        node: Node,
        robot: RobotModel,
        foot_frames: Sequence[str],
        qos: QoSProfile,
        *,
        mounted: Sequence[Mounted] = (),
        imu_frame: str | None = None,
        truth: str = "",
    ) -> None:
        self._robot = robot
        self._stamp = Time()
        self._clock = Clock(clock=self._stamp)
        self._clock_publisher = node.create_publisher(
            Clock, "/clock", QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        )
        self._next_clock_ns = 0
        rows = [markers(robot.na, k) for k in range(3)]
        self._joints = PackedMessage(
            JointState(name=robot.joint_names, **dict(zip(JOINT_FIELDS, map(list, rows))))
        )
        self._positions, self._velocities, self._efforts = map(self._joints.doubles, rows)
        self._joints_publisher = node.create_publisher(JointState, "joint_states", qos)
        self._odometry, numbers = packed_odometry(WORLD, BASE)
        self._pose, _, self._twist, _ = _parts_of(numbers)
        self._odometry_publisher = (
            node.create_publisher(Odometry, f"{truth}odometry", qos)
            if robot.floating_base
            else None
        )
        self._imu, (self._turn, self._felt) = _packed_imu(imu_frame or BASE)
        self._imu_publisher = (
            node.create_publisher(Imu, "imu", qos) if imu_frame is not None else None
        )
        self._mounted = []
        for each in mounted:
            kind = message_class(each.message)
            parts = packed_numbers(kind, each.numbers, each.name)
            self._mounted.append((node.create_publisher(kind, each.topic, qos), *parts))
        self._reactions = [
            self._wrench_publisher(node, f"{truth}ground_reaction/{frame}", WORLD, qos)
            for frame in foot_frames
        ]
        touches = markers(len(foot_frames), 0)
        self._contacts = PackedMessage(
            JointState(name=list(foot_frames), position=touches.tolist())
        )
        self._touches = self._contacts.doubles(touches) if len(touches) else touches
        self._contacts_publisher = (
            node.create_publisher(JointState, f"{truth}contact_states", qos) if truth else None
        )

    def _wrench_publisher(self, node: Any, topic: str, frame: str, qos: Any) -> tuple[Any, ...]:
        return node.create_publisher(WrenchStamped, topic, qos), *packed_wrench(frame)

    def wait_until_received(self, longest_s: float) -> None:
        """Wait until joint states and odometry are acknowledged by reliable subscribers, for at most ``longest_s``."""
        ends_s = time.monotonic() + longest_s
        for publisher in filter(None, (self._joints_publisher, self._odometry_publisher)):
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, ends_s - time.monotonic())))

    def listened_to(self) -> tuple[bool, bool, bool]:
        """Whether IMU, mounted sensors and the ground's forces have subscribers."""
        imu, contacts = self._imu_publisher, self._contacts_publisher
        return (
            imu is not None and imu.get_subscription_count() > 0,
            any(publisher.get_subscription_count() for publisher, _, _ in self._mounted),
            (contacts is not None and contacts.get_subscription_count() > 0)
            or any(publisher.get_subscription_count() for publisher, _, _ in self._reactions),
        )

    def publish(
        self,
        stamp_ns: int,
        state: RobotState,
        readings: Readings,
        contact_forces: np.ndarray | None = None,
    ) -> None:
        """Publish a state with its sensor readings.

        contact_forces: (f, 3) N, world frame, on the feet in the period before; None: no subscriber.
        """
        self._stamp.sec, self._stamp.nanosec = divmod(stamp_ns, 1_000_000_000)
        if stamp_ns >= self._next_clock_ns:
            self._next_clock_ns = (stamp_ns // CLOCK_PERIOD_NS + 1) * CLOCK_PERIOD_NS
            self._clock_publisher.publish(self._clock)
        if contact_forces is not None:
            self._publish_reactions(stamp_ns, contact_forces)
        if self._odometry_publisher is not None:
            self._pose[:], self._twist[:] = state.q[:7], state.v[:6]
            self._odometry.set_stamp(stamp_ns)
            self._odometry.publish(self._odometry_publisher)
        if self._imu_publisher is not None and self._imu_publisher.get_subscription_count():
            self._turn[:] = readings.angular_velocity
            self._felt[:] = readings.linear_acceleration
            self._imu.set_stamp(stamp_ns)
            self._imu.publish(self._imu_publisher)
        values = iter(readings.mounted.tolist())
        for publisher, message, numbers in self._mounted:
            for place in numbers:
                place[0] = next(values)
            if publisher.get_subscription_count():
                message.set_stamp(stamp_ns)
                message.publish(publisher)
        self._positions[:] = readings.position
        self._velocities[:] = readings.velocity
        self._efforts[:] = readings.effort
        self._joints.set_stamp(stamp_ns)
        self._joints.publish(self._joints_publisher)

    def begin_anew(self) -> None:
        """Accept any stamp next."""
        self._next_clock_ns = 0

    def repeat_clock(self) -> None:
        """Publish the time of the last state again."""
        self._clock_publisher.publish(self._clock)

    def _publish_reactions(self, stamp_ns: int, contact_forces: np.ndarray) -> None:
        """Publish contact states and foot forces (feet, 3) N, world frame, that have a subscriber."""
        contacts = self._contacts_publisher
        if contacts is not None and contacts.get_subscription_count():
            self._touches[:] = [force.any() for force in contact_forces]
            self._contacts.set_stamp(stamp_ns)
            self._contacts.publish(contacts)
        for (publisher, message, numbers), values in zip(self._reactions, contact_forces):
            if publisher.get_subscription_count():
                numbers[:3] = values
                message.set_stamp(stamp_ns)
                message.publish(publisher)


def fill_wrench(message: WrenchStamped, values: np.ndarray) -> None:
    """Write force and moment (6,) into a message."""
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = values.tolist()


def _packed_imu(frame: str) -> tuple[PackedMessage, list[np.ndarray]]:
    """An IMU message without orientation; views (3,) of its angular velocity and acceleration, to be written."""
    message = Imu()
    message.header.frame_id = frame
    message.orientation_covariance[0] = -1.0
    rows = markers(3, 0), markers(3, 1)
    for part, row in zip((message.angular_velocity, message.linear_acceleration), rows):
        part.x, part.y, part.z = row.tolist()
    packed = PackedMessage(message)
    return packed, [packed.doubles(row) for row in rows]


def packed_wrench(frame: str) -> tuple[PackedMessage, np.ndarray]:
    """A WrenchStamped; view (6,) of its force and moment, to be written."""
    message, numbers = WrenchStamped(), markers(6, 0)
    message.header.frame_id = frame
    fill_wrench(message, numbers)
    packed = PackedMessage(message)
    return packed, packed.doubles(numbers)


def _parts_of(numbers: np.ndarray) -> list[np.ndarray]:
    """Views of an odometry's numbers (85,): pose (7,), covariance (36,), twist (6,), covariance (36,)."""
    return np.split(numbers, np.cumsum(ODOMETRY_COUNTS)[:-1])


def packed_odometry(frame: str, child: str) -> tuple[PackedMessage, np.ndarray]:
    """An Odometry message; view of its numbers (85,), to be written.

    Pose (7,), its covariance (36,), twist (6,) and its covariance (36,): ``BaseEstimate.report``.
    """
    message, row = Odometry(child_frame_id=child), markers(sum(ODOMETRY_COUNTS), 0)
    message.header.frame_id = frame
    place, of_pose, speed, of_twist = _parts_of(row)
    pose, twist = message.pose.pose, message.twist.twist
    message.pose.covariance, message.twist.covariance = of_pose, of_twist
    numbers = iter(np.concatenate([place, speed]).tolist())
    parts = pose.position, pose.orientation, twist.linear, twist.angular
    for part, names in zip(parts, ("xyz", "xyzw", "xyz", "xyz")):
        for name in names:
            setattr(part, name, next(numbers))
    packed = PackedMessage(message)
    return packed, packed.doubles(row)
