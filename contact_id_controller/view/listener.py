"""The newest message of each topic of a running controller, polled at intervals; nothing is queued."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from contact_id_controller.exceptions import StateError, TrajectoryError
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.points import started
from contact_id_controller.plans.trajectories import JointTrajectory as JointPlan
from contact_id_controller.robot import RobotModel
from contact_id_controller.ros import conversions
from contact_id_controller.ros.command_messages import messages_of
from contact_id_controller.ros.direct_loop import Polled, take_newest, take_waiting
from contact_id_controller.ros.executor import incidents_of
from contact_id_controller.ros.packed import read_message
from contact_id_controller.ros.plan_bytes import MOST_BYTES, MOST_POINTS
from contact_id_controller.safety.command_watchdog import WatchdogState
from contact_id_controller.safety.machine import SafetyState
from contact_id_controller.safety.states import Refusal
from contact_id_controller.settings.controller import ControllerSettings

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""QoS with which a slow viewer misses messages and delays nothing."""

FROM_SOME = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""The same for a topic on which several nodes publish."""


class Arrow(NamedTuple):
    """Start and end of an arrow, (3,) m, world frame."""

    start: np.ndarray
    end: np.ndarray


class Listener:
    """Subscriptions of a viewer.

    Args:
        node: their owner.
        robot, settings: of the controller.
        controller, watchdog: names of its node and of its command watchdog.

    Attributes:
        time_s: stamp of the last joint state; 0: none received.
        q: configuration, as last received.  velocity: (na,) rad/s.
        torques: (na,) N·m, commanded.
        forces: predicted, of the feet in contact.  cones: (l, 2, 3) m, lines.
        metres_per_newton: of the arrows of ``forces``.
        measured: frame -> force (3,) N, world frame, while `measure` is on.
        joint_plan, base_plan: as last received.
        level, words, values: of the controller's diagnostics.
        watchdog: state that the watchdog reports; empty: none received.
    """

    def __init__(
        self,
        node: Node,
        robot: RobotModel,
        settings: ControllerSettings,
        controller: str,
        watchdog: str = "command_watchdog",
    ) -> None:
        self._node, self._robot, self._settings = node, robot, settings
        self._polled, self._incidents = Polled(), incidents_of(node)
        self._controller = controller
        self._watchdog, self.watchdog = watchdog, ""
        self.time_s = 0.0
        self.q, self.velocity = robot.neutral(), np.zeros(robot.na)
        self.torques = np.zeros(robot.na)
        self.forces: list[Arrow] = []
        self.cones = np.zeros((0, 2, 3))
        self.measured: dict[str, np.ndarray] = {}
        self.joint_plan: JointPlan | None = None
        self.base_plan: BaseTrajectory | None = None
        self.level, self.words = 0, "nothing received yet"
        self.values: dict[str, str] = {}
        self._joints = conversions.JointStateReader(robot.joint_names)
        self._base = conversions.OdometryReader(conversions.CONFIRMATIONS)
        listen = self._listen
        self._states = listen(JointState, "joint_states")
        self._odometry = listen(Odometry, "odometry")
        self._plan = listen(JointTrajectory, "joint_trajectory")
        self._base_plan = listen(MultiDOFJointTrajectory, "base_trajectory")
        self._markers = listen(MarkerArray, f"{controller}/contact_forces")
        self._diagnostics = listen(DiagnosticArray, "/diagnostics", FROM_SOME)
        self._commands: Subscription | None = None
        if not settings.interface.bridges:  # the commanded torques act
            messages = messages_of(settings.interface)
            self._read_torques = messages.reader(robot)
            self._commands = listen(messages.kind, settings.interface.topic)
        self._reactions: dict[str, Subscription] = {}

    def _listen(self, kind: Any, topic: str, qos: QoSProfile = NEWEST) -> Subscription:
        # Polled: an executor would take messages between two polls, and a plan may be sent only once.
        return self._node.create_subscription(
            kind, topic, lambda _: None, qos, callback_group=self._polled, raw=True
        )

    @property
    def stopped(self) -> bool:
        """Whether controller or watchdog report an engaged emergency stop."""
        return (
            self.values.get("safety state") == SafetyState.EMERGENCY_STOP.value
            or self.watchdog == WatchdogState.EMERGENCY_STOP.value
        )

    @property
    def measuring(self) -> bool:
        """Whether measured forces are subscribed to."""
        return bool(self._reactions)

    def measure(self, on: bool) -> None:
        """Subscribe to `ground_reaction/<frame>`, or unsubscribe: a simulation publishes it only to subscribers."""
        if on and not self._reactions:
            self._reactions = {
                frame: self._listen(WrenchStamped, f"ground_reaction/{frame}")
                for frame in self._settings.foot_frames
            }
        elif not on:
            for subscription in self._reactions.values():
                self._node.destroy_subscription(subscription)
            self._reactions, self.measured = {}, {}

    def take(self) -> None:
        """Take the messages that have arrived; errors are counted, topic by topic."""
        for what, take in (
            ("state", self._take_state),
            ("plan", self._take_plans),
            ("forces", self._take_forces),
            ("diagnostics", self._take_diagnostics),
            ("commands", self._take_commands),
        ):
            self._incidents.guarded(what, take)

    def _take_forces(self) -> None:
        for frame, subscription in self._reactions.items():
            if (data := take_newest(subscription)) is not None:
                force = read_message(WrenchStamped, data).wrench.force
                self.measured[frame] = np.array([force.x, force.y, force.z])
        if (data := take_newest(self._markers)) is not None:
            self._read_markers(read_message(MarkerArray, data).markers)

    def _take_diagnostics(self) -> None:
        for data in take_waiting(self._diagnostics):
            self._read_diagnostics(read_message(DiagnosticArray, data))

    def _take_commands(self) -> None:
        if self._commands is not None and (data := take_newest(self._commands)) is not None:
            efforts = self._read_torques(data)
            if len(efforts) == self._robot.na:
                self.torques = np.array(efforts)

    def _take_state(self) -> None:
        """Take the newest odometry and joint state into q and velocity; ones that are not finite are skipped."""
        if (data := take_newest(self._odometry)) is not None:
            try:
                pose = self._base.read(data)[0][:7]
                if np.isfinite(pose).all():
                    self.q[:7] = pose
            except StateError:
                pass  # the controller reports it
        if (data := take_newest(self._states)) is not None:
            reading = self._joints.read(data)
            if not isinstance(reading, Refusal) and np.isfinite(reading.position).all():
                self._robot.put_joints(self.q, reading.position)
                self.velocity[:] = reading.velocity
                self.time_s = reading.time_ns * 1e-9

    def _take_plans(self) -> None:
        """Take the newest plans; bad ones, which the controller refuses as well, are skipped."""
        try:
            if (data := take_newest(self._plan)) is not None:
                message = read_message(JointTrajectory, data, MOST_BYTES, MOST_POINTS)
                plan = conversions.joint_trajectory(message, allow_moving_end=True)
                plan = plan.in_order(self._robot.joint_names, self._robot.locked)
                self.joint_plan = started(plan, self.time_s)
            if (data := take_newest(self._base_plan)) is not None:
                base = conversions.base_trajectory(
                    read_message(MultiDOFJointTrajectory, data, MOST_BYTES, MOST_POINTS)
                )
                self.base_plan = started(base, self.time_s)
        except (StateError, TrajectoryError):
            pass  # the controller refuses it too, and reports it

    def _read_markers(self, markers: Iterable[Marker]) -> None:
        """Read arrows and lines; ones with another number of points, or not finite, are skipped."""
        forces, lines = [], []
        for marker in markers:
            points = [np.array([p.x, p.y, p.z]) for p in marker.points]
            if marker.action != Marker.ADD or not np.isfinite(points).all():
                continue
            if marker.type == Marker.ARROW and len(points) == 2:
                forces.append(Arrow(*points))
            elif marker.type == Marker.LINE_LIST and len(points) % 2 == 0:
                lines += points
        self.forces, self.cones = forces, np.array(lines).reshape(-1, 2, 3)

    def _read_diagnostics(self, message: DiagnosticArray) -> None:
        """Keep level, text and values of the controller's status, and the watchdog's state."""
        for status in message.status:
            name = status.name.partition(":")[0]
            if name == self._controller.rpartition("/")[2]:
                self.level, self.words = status.level[0], status.message
                self.values = {each.key: each.value for each in status.values}
            elif name == self._watchdog.rpartition("/")[2]:
                self.watchdog = next((v.value for v in status.values if v.key == "state"), "")
