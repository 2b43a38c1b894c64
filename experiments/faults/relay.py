"""Stands between the simulated robot and the other nodes, and spoils what passes on request.

    robot/joint_states, robot/odometry, robot/clock  ->  joint_states, odometry, /clock
    commands  ->  held efforts (as in ros2_control)  ->  robot/commands
    or joint_commands  ->  robot/joint_commands, whose local feedback is joint_trajectory_controller's

What is not spoiled passes as it came, serialised. All that reaches the robot is kept with its time;
a robot that has fallen gets no torque.
"""

from __future__ import annotations

import array
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from contact_id_controller.exceptions import StateError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.ros.command_messages import message_class
from contact_id_controller.ros.effort_messages import EffortReader
from contact_id_controller.settings.command_interfaces import DEFAULT, INTERFACES
from contact_id_controller.simulation.recording import FALLEN_TILT_RAD, tilt_rad
from experiments.faults.simulated_effort_controller import SimulatedEffortController, UrdfLimits

_STREAM = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
_COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)

KEPT_STATES = 200
"""Newest states whose velocities are compared with damping torques."""

SAME_TORQUE = 1e-9
"""Largest difference, N·m, between a damping torque and what it should be."""

PACE_STATES = 200
"""Newest states by which the pace of time is judged."""

Spoiler = Callable[[object], object]
"""Gets a message, returns it changed, or None to lose it."""


class FaultRelay:
    """The relay; a ``DirectLoop`` serves its `subscriptions`.

    Args:
        node: owner of the topics.
        joints: joints in the order of the command.
        limits: largest torque that may be commanded, (n,), N·m.
        damping: D of the safe output, (n,), N·m·s/rad.
        enforced: limits that the group controller's manager enforces; None: it enforces none.
        interface: how the robot is commanded.
    """

    def __init__(
        self,
        node: Node,
        joints: Sequence[str],
        limits: np.ndarray,
        damping: np.ndarray,
        enforced: UrdfLimits | None = None,
        interface: str = DEFAULT,
    ):
        self.joints, self.limits, self.damping = list(joints), limits, damping
        self.group = SimulatedEffortController(len(joints), enforced)
        self._largest = np.inf if enforced is None else enforced.effort
        self._paces: deque = deque(maxlen=PACE_STATES)
        self.times_s: list[float] = []
        """When each command reached the robot, time.monotonic."""
        self.safe: list[bool] = []
        """Whether it was the safe output."""
        self.violations: list[str] = []
        """Commands that should not have reached the robot."""
        self.states = 0
        self.stamp_s = 0.0
        self.base = np.zeros(7)
        self.position, self.velocity = np.zeros(len(joints)), np.zeros(len(joints))
        self._columns: np.ndarray | None = None
        self._recent = np.zeros((KEPT_STATES, len(joints)))
        self._message = Float64MultiArray(data=array.array("d", bytes(8 * len(joints))))
        publish, listen = node.create_publisher, node.create_subscription
        self._reader = EffortReader(self.joints)
        row = INTERFACES[interface]
        kind, take = message_class(row), self._on_trajectory if row.bridges else self._on_command
        self._to_robot = publish(kind, f"robot/{row.topic}", _STREAM)
        self._joint_states = publish(JointState, "joint_states", _STREAM)
        self._odometry = publish(Odometry, "odometry", _STREAM)
        self._clock = publish(
            Clock, "/clock", QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        )
        # Odometry is to arrive before the joint state of its time.
        self.subscriptions = [
            listen(kind, row.topic, take, _COMMANDS, raw=row.bridges),
            listen(Odometry, "robot/odometry", self._on_odometry, _STREAM, raw=True),
            listen(JointState, "robot/joint_states", self._on_joint_states, _STREAM, raw=True),
            listen(Clock, "robot/clock", self._on_clock, _STREAM, raw=True),
        ]
        self.heal()

    def heal(self) -> None:
        """Let everything pass again."""
        self.spoil_joint_states: Spoiler | None = None
        self.spoil_odometry: Spoiler | None = None
        self.spoil_clock: Spoiler | None = None
        self._late_joints: deque = deque()
        self._late_odometry: deque = deque()
        self.joints_late = self.odometry_late = 0  # in states

    @property
    def height_m(self) -> float:
        """Height of the robot's base in truth."""
        return float(self.base[2])

    @property
    def fallen(self) -> bool:
        """Whether the base has tilted, or dropped into the ground."""
        return self.tilt_rad > FALLEN_TILT_RAD or self.height_m < 0.0

    @property
    def tilt_rad(self) -> float:
        """Angle of the base to the vertical in truth."""
        return tilt_rad(self.base)

    def _on_joint_states(self, packed: bytes) -> None:
        message = deserialize_message(packed, JointState)
        if self._columns is None:
            self._columns = np.array([message.name.index(name) for name in self.joints])
        self.position = np.array(message.position)[self._columns]
        self.velocity = np.array(message.velocity)[self._columns]
        self._recent[self.states % KEPT_STATES] = self.velocity
        self.states += 1
        self.stamp_s = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self._paces.append((self.stamp_s, time.monotonic()))
        if self.group.active and self.times_s and len(message.effort) == len(message.name):
            self._judge(np.array(message.effort)[self._columns], self._largest, "acted")
        self._pass_on(
            self._joint_states,
            packed,
            message,
            self.spoil_joint_states,
            self._late_joints,
            self.joints_late,
        )

    def _on_odometry(self, packed: bytes) -> None:
        message = deserialize_message(packed, Odometry)
        place, turn = message.pose.pose.position, message.pose.pose.orientation
        self.base[:] = place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w
        self._pass_on(
            self._odometry,
            packed,
            message,
            self.spoil_odometry,
            self._late_odometry,
            self.odometry_late,
        )

    def _on_clock(self, packed: bytes) -> None:
        message = None if self.spoil_clock is None else deserialize_message(packed, Clock)
        self._pass_on(self._clock, packed, message, self.spoil_clock, deque(), 0)

    @staticmethod
    def _pass_on(publisher, packed, message, spoil, waiting: deque, late: int) -> None:
        spoiled = packed if spoil is None else spoil(message)
        if spoiled is None:
            return
        waiting.append(spoiled)
        while len(waiting) > late:
            publisher.publish(waiting.popleft())

    def _on_command(self, message: Float64MultiArray) -> None:
        now_s = time.monotonic()
        asked = np.array(message.data)
        if self.group.active:
            self._judge(asked, self.limits)
        held = self.group.command(asked)
        if self.group.update(self.position, self.velocity) and not held:
            return
        efforts = self.group.efforts
        # Only feet touch the simulated ground: with its motors on, a fallen robot would go wild.
        passed = np.zeros_like(efforts) if self.fallen else efforts
        self._message.data = array.array("d", passed.tobytes())
        self._to_robot.publish(self._message)
        self.times_s.append(now_s)
        self.safe.append(self._is_safe(efforts))

    def _on_trajectory(self, packed: bytes) -> None:
        """As joint_trajectory_controller: what it cannot follow it does not."""
        if not self.group.active:
            return
        now_s = time.monotonic()
        try:
            trajectory = self._reader.read(packed)
        except StateError as error:
            self.violations.append(f"{error} at {self.stamp_s:.3f} s")
            return
        self._judge(trajectory.efforts, self.limits)
        if not self.fallen:
            self._to_robot.publish(packed)
        self.times_s.append(now_s)
        self.safe.append(self._rests(trajectory))

    def _rests(self, trajectory: EffortTrajectory) -> bool:
        """Whether it asks for rest, or is over and so has come to rest."""
        asks = not trajectory.velocities.any() and not trajectory.efforts[-1].any()
        over_s = trajectory.start_s + trajectory.times_s[-1]
        return bool(asks or (trajectory.start_s > 0.0 and self.stamp_s > over_s))

    def _judge(self, efforts: np.ndarray, limits: np.ndarray, what: str = "commanded") -> None:
        """Note what should not be, whatever the group controller makes of it."""
        if not (np.isfinite(efforts).all() and (np.abs(efforts) <= limits + SAME_TORQUE).all()):
            self.violations.append(f"{what} {efforts.tolist()} at {self.stamp_s:.3f} s")

    @property
    def pace(self) -> float:
        """Seconds of the clock in one of the robot's, of late; 0 while unknown."""
        if len(self._paces) < 2:
            return 0.0
        (first_s, begun_s), (last_s, ended_s) = self._paces[0], self._paces[-1]
        return (ended_s - begun_s) / (last_s - first_s) if last_s > first_s else 0.0

    def _is_safe(self, efforts: np.ndarray) -> bool:
        """Whether each joint gets zero, or the damping of one and the same recent velocity."""
        wanted = np.clip(-self.damping * self._recent, -self.limits, self.limits)
        as_wanted = np.abs(efforts - wanted) <= SAME_TORQUE
        return bool((as_wanted | (efforts == 0.0)).all(axis=1).any())
