"""Publishers of the dynamics estimator's results."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import TransformStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_id_controller.estimation.base_estimate import BaseEstimate
from contact_id_controller.estimation.odometry_arrays import POSE
from contact_id_controller.estimation.pipeline import EstimationPipeline, PipelineEstimate
from contact_id_controller.ros.direct_loop import KEPT_IN_LOCKSTEP
from contact_id_controller.ros.packed import PackedMessage, markers, stamp_parts
from contact_id_controller.ros.state_publisher import packed_odometry, packed_wrench
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings

try:
    from tf2_msgs.msg import TFMessage
except ModuleNotFoundError:  # it comes with a ROS installation, not from PyPI
    TFMessage = None

TF_PERIOD_NS = 20_000_000
"""Shortest time between two transforms: they are for display and maps, not for the control loop."""

CONTACTS_EVERY = 5
"""Number of estimates after which unchanged contacts are published again. Not a time: stamps stand still while a
simulated robot is held."""

LISTENERS_EVERY = 100
"""Number of estimates between two checks for subscribers: a check takes a microsecond per topic."""

EVERYTHING, FORCE = slice(None), slice(3)


class EstimatePublisher:
    """One message of each kind, refilled each period; topics without a subscriber are skipped.

    Contacts and forces are published before the odometry, so that they have arrived when it does. `odometry` and /tf
    are published only while the odometry is valid.

    Raises:
        UnknownJointError: `joint_wrenches` names a joint that the robot lacks.
    """

    def __init__(
        self, node: Node, pipeline: EstimationPipeline, settings: DynamicsEstimatorSettings
    ):
        self._node = node
        joints = list(pipeline.estimator.joint_names)
        settings.refuse_unknown_wrenches(joints)
        depth = KEPT_IN_LOCKSTEP if settings.mode == "lockstep" else 10
        self._qos = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        self._publishers: list[Any] = []
        odometry, base = settings.odometry_frame, settings.base_frame
        feet, numbers = list(pipeline.feet), markers(len(pipeline.feet), 0)
        touches = JointState(name=feet, position=array.array("d", numbers))
        self._contacts = self._make(touches, "contact_states", base, numbers)
        self._forces = [self._wrench(f"ground_reaction/{foot}", odometry) for foot in pipeline.feet]
        self._contacts_every = 1 if settings.mode == "lockstep" else CONTACTS_EVERY
        self._listeners_every = 1 if settings.mode == "lockstep" else LISTENERS_EVERY
        self._since_contacts, self._last_contacts, self._since_look = CONTACTS_EVERY, b"", 0
        message, numbers = packed_odometry(odometry, base)
        self._odometry = self._publisher(Odometry, "odometry"), message, numbers.data
        self._tf: Any = None
        self._next_tf_ns = -np.inf
        if settings.publish_tf and TFMessage is not None:
            transform = TransformStamped(child_frame_id=base)
            transform.header.frame_id = odometry
            self._tf = self._publisher(TFMessage, "/tf"), TFMessage(transforms=[transform])
        numbers = markers(len(joints), 0)
        efforts = JointState(name=joints, effort=array.array("d", numbers))
        self._efforts = self._make(efforts, "~/joint_states", base, numbers)
        point = JointTrajectoryPoint(accelerations=array.array("d", numbers))
        accelerations = JointTrajectory(joint_names=joints, points=[point])
        self._accelerations = self._make(accelerations, "~/accelerations", base, numbers)
        self._wrenches = {
            name: self._wrench(f"~/joint_wrench/{name}", base) for name in settings.joint_wrenches
        }

    def _publisher(self, kind: Any, topic: str) -> Any:
        publisher = self._node.create_publisher(kind, topic, self._qos)
        self._publishers.append(publisher)
        return publisher

    def _make(self, message: Any, topic: str, frame: str, numbers: np.ndarray) -> tuple[Any, ...]:
        """Publisher, message, and view of its numbers."""
        message.header.frame_id = frame
        packed = PackedMessage(message)
        return self._publisher(type(message), topic), packed, packed.doubles(numbers)

    def _wrench(self, topic: str, frame: str) -> tuple[Any, ...]:
        return self._publisher(WrenchStamped, topic), *packed_wrench(frame)

    def destroy(self) -> None:
        """Destroy all publishers."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)

    def publish(self, stamp_ns: int, estimate: PipelineEstimate) -> None:
        """Publish an estimate under the stamp of its joint state."""
        self._stamp_ns = stamp_ns
        self._since_look -= 1
        if self._since_look < 0:
            self._look_for_listeners()
        # In lockstep always; else on a change or every CONTACTS_EVERY: a message costs a tenth of the step.
        self._since_contacts += 1
        states = estimate.contact.tobytes()
        if self._since_contacts >= self._contacts_every or states != self._last_contacts:
            self._since_contacts, self._last_contacts = 0, states
            if self._contacts_wanted:
                publisher, message, numbers = self._contacts
                numbers[:] = estimate.contact
                message.send(publisher.handle, stamp_ns)
        if self._dynamics_wanted and estimate.forces_known:
            self._publish_dynamics(estimate.dynamics)
        odometry = estimate.odometry
        if odometry.ready:  # before, the attitude is uncertain
            if self._wanted_forces:
                world_forces = estimate.world_forces
                for k in self._wanted_forces:
                    self._send(self._forces[k], world_forces[k], FORCE)
            self._publish_odometry(odometry)

    def _look_for_listeners(self) -> None:
        """Find which topics have subscribers; the others are skipped until the next check."""
        self._since_look = self._listeners_every - 1

        def subscribed(topic: Any) -> bool:
            return topic[0].get_subscription_count() > 0

        self._contacts_wanted, self._efforts_wanted = (
            subscribed(self._contacts),
            subscribed(self._efforts),
        )
        self._accelerations_wanted = subscribed(self._accelerations)
        self._wanted_forces = [k for k, topic in enumerate(self._forces) if subscribed(topic)]
        self._wanted_wrenches = [
            name for name, topic in self._wrenches.items() if subscribed(topic)
        ]
        self._dynamics_wanted = bool(
            self._efforts_wanted or self._accelerations_wanted or self._wanted_wrenches
        )

    def _send(self, topic: Any, values: np.ndarray, place: slice = EVERYTHING) -> None:
        """Publish numbers if they are finite."""
        publisher, message, numbers = topic
        if np.isfinite(values).all():
            numbers[place] = values
            message.send(publisher.handle, self._stamp_ns)

    def _publish_odometry(self, found: BaseEstimate) -> None:
        """Publish pose, twist and covariances, and the transform at its lower rate."""
        publisher, message, numbers = self._odometry
        numbers[EVERYTHING] = found.report()
        message.send(publisher.handle, self._stamp_ns)
        # Also after a jump of time backwards.
        if self._tf is not None and not 0 < self._next_tf_ns - self._stamp_ns <= TF_PERIOD_NS:
            self._next_tf_ns = self._stamp_ns + TF_PERIOD_NS
            self._publish_transform(numbers[:POSE].tolist())

    def _publish_transform(self, pose: Sequence[float]) -> None:
        publisher, message = self._tf
        header, transform = message.transforms[0].header, message.transforms[0].transform
        header.stamp.sec, header.stamp.nanosec = stamp_parts(self._stamp_ns)
        place, turn = transform.translation, transform.rotation
        (place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w) = pose
        publisher.publish(message)

    def _publish_dynamics(self, found: Any) -> None:
        """Publish joint efforts, accelerations and wrenches that have a subscriber."""
        if self._efforts_wanted:
            self._send(self._efforts, found.joint_efforts)
        if self._accelerations_wanted:
            self._send(self._accelerations, found.joint_accelerations)
        if self._wanted_wrenches:
            wrenches = found.joint_wrenches
            for name in self._wanted_wrenches:
                self._send(self._wrenches[name], wrenches[name])
