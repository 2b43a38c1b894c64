"""Publishers of what the dynamics estimator has found."""

from __future__ import annotations

import array

import numpy as np
from geometry_msgs.msg import TransformStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_id_controller.estimation.pipeline import EstimationPipeline, PipelineEstimate
from contact_id_controller.exceptions import UnknownJointError, choices
from contact_id_controller.ros.packed import PackedMessage, markers, stamp_parts
from contact_id_controller.ros.state_publisher import packed_odometry, packed_wrench
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings

try:
    from tf2_msgs.msg import TFMessage
except ModuleNotFoundError:  # it comes with a ROS installation, not from PyPI
    TFMessage = None

TF_PERIOD_NS = 20_000_000
"""Shortest time between two transforms: they are for people and maps, not for the loop."""

CONTACTS_EVERY = 5
"""Most estimates from one message of the same contacts to the next. Not a time: that stands still while a simulated
robot is held."""


class EstimatePublisher:
    """One message of each kind, written again each period; those nobody listens to are left out.

    Contacts and forces go before the odometry: whoever waits for it has them then. `odometry` and /tf
    are published only while the odometry may be used.

    Raises:
        UnknownJointError: a wrench is wanted of a joint that the robot lacks.
    """

    def __init__(
        self, node: Node, pipeline: EstimationPipeline, settings: DynamicsEstimatorSettings
    ):
        self._node = node
        joints = list(pipeline.estimator.joint_names)
        unknown = [name for name in settings.joint_wrenches if name not in joints]
        if unknown:
            raise UnknownJointError(
                f"parameter 'joint_wrenches' names {unknown[0]!r}, must be among {choices(joints)}"
            )
        self._qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
        self._publishers: list = []
        odometry, base = settings.odometry_frame, settings.base_frame
        feet, numbers = list(pipeline.feet), markers(len(pipeline.feet), 0)
        touches = JointState(name=feet, position=array.array("d", numbers))
        self._contacts = self._make(touches, "contact_states", base, numbers)
        self._forces = [self._wrench(f"ground_reaction/{foot}", odometry) for foot in pipeline.feet]
        self._contacts_every = 1 if settings.mode == "lockstep" else CONTACTS_EVERY
        self._since_contacts, self._last_contacts = CONTACTS_EVERY, np.zeros(len(feet), dtype=bool)
        self._odometry = self._publisher(Odometry, "odometry"), *packed_odometry(odometry, base)
        self._tf, self._next_tf_ns = None, -np.inf
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

    def _publisher(self, kind, topic: str):
        publisher = self._node.create_publisher(kind, topic, self._qos)
        self._publishers.append(publisher)
        return publisher

    def _make(self, message, topic: str, frame: str, numbers: np.ndarray):
        """Publisher, message and where its numbers are written."""
        message.header.frame_id = frame
        packed = PackedMessage(message)
        return self._publisher(type(message), topic), packed, packed.doubles(numbers)

    def _wrench(self, topic: str, frame: str):
        return self._publisher(WrenchStamped, topic), *packed_wrench(frame)

    def destroy(self) -> None:
        """Take everything from the node."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)

    def publish(self, stamp_ns: int, estimate: PipelineEstimate) -> None:
        """Publish an estimate under the stamp of its joint state."""
        self._stamp_ns = stamp_ns
        if self._contacts_are_due(estimate.contact):
            self._send(self._contacts, lambda: estimate.contact)
        if estimate.forces_known:
            self._publish_dynamics(estimate.dynamics)
        if estimate.ready:  # before, which way is up is not known well
            for k, topic in enumerate(self._forces):
                self._send(topic, lambda k=k: estimate.world_forces[k], slice(3))
            self._publish_odometry(estimate.odometry)

    def _contacts_are_due(self, contact: np.ndarray) -> bool:
        """In lockstep always; else when they change, and now and then: a message costs a tenth of the step."""
        self._since_contacts += 1
        due = self._since_contacts >= self._contacts_every or (contact != self._last_contacts).any()
        if due:
            self._since_contacts = 0
            self._last_contacts[:] = contact
        return due

    def _send(self, topic, find, place: slice = slice(None)) -> None:
        """Publish what `find` finds, if somebody listens and it is finite."""
        publisher, message, numbers = topic
        if publisher.get_subscription_count() and np.isfinite(found := find()).all():
            numbers[place] = found
            message.set_stamp(self._stamp_ns)
            message.publish(publisher)

    def _publish_odometry(self, found) -> None:
        publisher, message, (pose, pose_covariance, twist, twist_covariance) = self._odometry
        pose[:3], pose[3:] = found.position, found.orientation
        twist[:3], twist[3:] = found.velocity, found.angular_velocity
        of_pose, of_twist = found.covariances()
        pose_covariance[:], twist_covariance[:] = of_pose.ravel(), of_twist.ravel()
        message.set_stamp(self._stamp_ns)
        message.publish(publisher)
        # Backwards too: time has begun anew.
        if self._tf is not None and not 0 < self._next_tf_ns - self._stamp_ns <= TF_PERIOD_NS:
            self._next_tf_ns = self._stamp_ns + TF_PERIOD_NS
            self._publish_transform(pose.tolist())

    def _publish_transform(self, pose: list[float]) -> None:
        publisher, message = self._tf
        header, transform = message.transforms[0].header, message.transforms[0].transform
        header.stamp.sec, header.stamp.nanosec = stamp_parts(self._stamp_ns)
        place, turn = transform.translation, transform.rotation
        (place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w) = pose
        publisher.publish(message)

    def _publish_dynamics(self, found) -> None:
        self._send(self._efforts, lambda: found.joint_efforts)
        self._send(self._accelerations, lambda: found.joint_accelerations)
        for name, topic in self._wrenches.items():
            self._send(topic, lambda name=name: found.joint_wrenches[name])
