"""Publishers of what the dynamics estimator has found."""

from __future__ import annotations

import array

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_id_controller.estimation.pipeline import EstimationPipeline, PipelineEstimate
from contact_id_controller.exceptions import UnknownJointError, choices
from contact_id_controller.ros.state_publisher import fill_wrench
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings

try:
    from tf2_msgs.msg import TFMessage
except ModuleNotFoundError:  # it comes with a ROS installation, not from PyPI
    TFMessage = None


class EstimatePublisher:
    """One message of each kind, filled again each period; those nobody listens to are left out.

    Contacts and forces go before the odometry: whoever waits for it has them then. `odometry` and /tf
    are published only while the odometry may be used.

    Raises:
        UnknownJointError: a wrench is wanted of a joint that the robot lacks.
    """

    def __init__(
        self, node: Node, pipeline: EstimationPipeline, settings: DynamicsEstimatorSettings
    ):
        self._node, self._pipeline = node, pipeline
        joints = pipeline.estimator.joint_names
        unknown = [name for name in settings.joint_wrenches if name not in joints]
        if unknown:
            raise UnknownJointError(
                f"parameter 'joint_wrenches' names {unknown[0]!r}, must be among {choices(joints)}"
            )
        self._stamp = Time()
        self._qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
        self._publishers: list = []
        odometry, base = settings.odometry_frame, settings.base_frame
        self._contacts = self._make(JointState, "contact_states", base)
        self._contacts[1].name = list(pipeline.feet)
        self._forces = [
            self._make(WrenchStamped, f"ground_reaction/{foot}", odometry) for foot in pipeline.feet
        ]
        self._odometry = self._make(Odometry, "odometry", odometry)
        self._odometry[1].child_frame_id = base
        self._tf = None
        if settings.publish_tf and TFMessage is not None:
            publisher = node.create_publisher(TFMessage, "/tf", self._qos)
            self._publishers.append(publisher)
            transform = TransformStamped(child_frame_id=base)
            transform.header.frame_id, transform.header.stamp = odometry, self._stamp
            self._tf = publisher, TFMessage(transforms=[transform])
        self._efforts = self._make(JointState, "~/joint_states", base)
        self._accelerations = self._make(JointTrajectory, "~/accelerations", base)
        self._efforts[1].name = self._accelerations[1].joint_names = list(joints)
        self._accelerations[1].points = [JointTrajectoryPoint()]
        self._wrenches = {
            name: self._make(WrenchStamped, f"~/joint_wrench/{name}", base)
            for name in settings.joint_wrenches
        }

    def _make(self, kind, topic: str, frame: str):
        publisher, message = self._node.create_publisher(kind, topic, self._qos), kind()
        message.header.frame_id, message.header.stamp = frame, self._stamp
        self._publishers.append(publisher)
        return publisher, message

    def destroy(self) -> None:
        """Take everything from the node."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)

    def publish(self, stamp, estimate: PipelineEstimate) -> None:
        """Publish an estimate under the stamp of its joint state."""
        self._stamp.sec, self._stamp.nanosec = stamp.sec, stamp.nanosec
        publisher, message = self._contacts
        if publisher.get_subscription_count():
            message.position = array.array("d", estimate.contact.astype(float).tobytes())
            publisher.publish(message)
        if estimate.forces_known:
            self._publish_dynamics(estimate)
        if estimate.ready:  # before, which way is up is not known well
            self._publish_forces(estimate)
            self._publish_odometry(estimate)

    def _publish_forces(self, estimate) -> None:
        for (publisher, message), values in zip(self._forces, estimate.world_forces):
            if np.isfinite(values).all() and publisher.get_subscription_count():
                force = message.wrench.force
                force.x, force.y, force.z = values.tolist()
                publisher.publish(message)

    def _publish_odometry(self, estimate) -> None:
        publisher, message = self._odometry
        found = estimate.odometry
        pose, twist = message.pose.pose, message.twist.twist
        position, orientation = pose.position, pose.orientation
        position.x, position.y, position.z = found.position.tolist()
        (orientation.x, orientation.y, orientation.z, orientation.w) = found.orientation.tolist()
        linear, angular = twist.linear, twist.angular
        linear.x, linear.y, linear.z = found.velocity.tolist()
        angular.x, angular.y, angular.z = found.angular_velocity.tolist()
        message.pose.covariance = found.pose_covariance.ravel()
        message.twist.covariance = found.twist_covariance.ravel()
        publisher.publish(message)
        if self._tf is not None:
            publisher, message = self._tf
            transform = message.transforms[0].transform
            place = transform.translation
            place.x, place.y, place.z = position.x, position.y, position.z
            transform.rotation = orientation
            publisher.publish(message)

    def _publish_dynamics(self, estimate) -> None:
        found = estimate.dynamics
        publisher, message = self._efforts
        if publisher.get_subscription_count():
            message.effort = array.array("d", found.joint_efforts.tobytes())
            publisher.publish(message)
        publisher, message = self._accelerations
        if publisher.get_subscription_count():
            message.points[0].accelerations = array.array("d", found.joint_accelerations.tobytes())
            publisher.publish(message)
        for name, (publisher, message) in self._wrenches.items():
            if publisher.get_subscription_count():
                fill_wrench(message, found.joint_wrenches[name])
                publisher.publish(message)
