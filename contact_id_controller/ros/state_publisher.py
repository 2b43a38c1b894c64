"""Publishes the states of a simulated robot: messages are made once and refilled each period."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from contact_id_controller.robot import RobotModel
from contact_id_controller.state import RobotState

WORLD = "world"
BASE = "base"
CLOCK_PERIOD_NS = 10_000_000


class StatePublisher:
    """Publishers of `/clock`, `odometry`, `joint_states` and `ground_reaction/<frame>`.

    One state is published as odometry first, then joint states, with the same stamp. Ground
    reactions (force on the robot, world frame; for comparison only) are sent while someone listens.
    """

    def __init__(self, node: Node, robot: RobotModel, foot_names, qos: QoSProfile):
        self._robot = robot
        self._stamp = Time()
        self._clock = Clock(clock=self._stamp)
        self._clock_publisher = node.create_publisher(
            Clock, "/clock", QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        )
        self._next_clock_ns = 0
        zeros = [0.0] * robot.na
        self._joints = JointState(
            name=robot.joint_names, position=zeros, velocity=zeros, effort=zeros
        )
        self._joints.header.stamp = self._stamp
        # The message keeps its numbers in arrays of doubles; these are views into them.
        self._positions, self._velocities, self._efforts = (
            np.frombuffer(values, dtype=np.float64)
            for values in (self._joints.position, self._joints.velocity, self._joints.effort)
        )
        self._joints_publisher = node.create_publisher(JointState, "joint_states", qos)
        self._odometry = Odometry(child_frame_id=BASE)
        self._odometry.header.frame_id = WORLD
        self._odometry.header.stamp = self._stamp
        self._odometry_publisher = (
            node.create_publisher(Odometry, "odometry", qos) if robot.floating_base else None
        )
        self._reactions = []
        for frame in foot_names:
            message = WrenchStamped()
            message.header.frame_id = WORLD
            message.header.stamp = self._stamp
            self._reactions.append(
                (node.create_publisher(WrenchStamped, f"ground_reaction/{frame}", qos), message)
            )

    def publish(self, stamp_ns: int, state: RobotState, efforts, contact_forces) -> None:
        """Publish a state; efforts (na,) and contact forces (n_feet, 3) of the period before it."""
        self._stamp.sec, self._stamp.nanosec = divmod(stamp_ns, 1_000_000_000)
        if stamp_ns >= self._next_clock_ns:
            self._next_clock_ns = (stamp_ns // CLOCK_PERIOD_NS + 1) * CLOCK_PERIOD_NS
            self._clock_publisher.publish(self._clock)
        self._publish_reactions(contact_forces)
        if self._odometry_publisher is not None:
            self._fill_odometry(state)
            self._odometry_publisher.publish(self._odometry)
        self._positions[:] = state.q[self._robot.q_index]
        self._velocities[:] = state.v[self._robot.actuated]
        self._efforts[:] = efforts
        self._joints_publisher.publish(self._joints)

    def begin_anew(self) -> None:
        """The next state may have any stamp."""
        self._next_clock_ns = 0

    def repeat_clock(self) -> None:
        """Publish the time of the last state again."""
        self._clock_publisher.publish(self._clock)

    def _fill_odometry(self, state: RobotState) -> None:
        pose, twist = self._odometry.pose.pose, self._odometry.twist.twist
        position, orientation = pose.position, pose.orientation
        position.x, position.y, position.z = state.q[:3].tolist()
        (orientation.x, orientation.y, orientation.z, orientation.w) = state.q[3:7].tolist()
        linear, angular = twist.linear, twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = state.v[:6].tolist()

    def _publish_reactions(self, contact_forces) -> None:
        for (publisher, message), values in zip(self._reactions, contact_forces):
            if publisher.get_subscription_count():
                force = message.wrench.force
                force.x, force.y, force.z = values.tolist()
                publisher.publish(message)
