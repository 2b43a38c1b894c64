"""Publishes a simulated robot for display: its description, and the poses of its links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from contact_id_controller.robot import RobotModel, resolve_urdf

try:
    from tf2_msgs.msg import TFMessage
except ModuleNotFoundError:  # it comes with a ROS installation, not from PyPI
    TFMessage = None

WORLD = "world"
PERIOD_NS = 20_000_000
"""Time between two messages, by the stamps: enough for display."""


class RobotPublisher:
    """Publishes `/robot_description` once, and links on `/tf` in the world frame, if tf2_msgs is installed.

    Args:
        node: owner of the topics.
        robot: the robot.  urdf: its description, as in the parameter ``urdf``.
    """

    def __init__(self, node: Node, robot: RobotModel, urdf: str | Path) -> None:
        latched = QoSProfile(
            depth=1,
            reliability=ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL,
        )
        self._description = node.create_publisher(String, "/robot_description", latched)
        self._description.publish(String(data=resolve_urdf(urdf).read_text(encoding="utf-8")))
        self._model, self._data = robot.model, robot.model.createData()
        self._next_ns = 0
        self._tf: Any = None
        self._message: Any = None
        if TFMessage is None:
            return
        self._tf = node.create_publisher(TFMessage, "/tf", 10)
        self._frames, self._stamp, links = [], Time(), []
        for k, frame in enumerate(robot.model.frames):
            if frame.type == pin.FrameType.BODY and frame.name != WORLD:
                link = TransformStamped(child_frame_id=frame.name)
                link.header.frame_id, link.header.stamp = WORLD, self._stamp
                self._frames.append(k)
                links.append(link)
        self._message = TFMessage(transforms=links)

    def publish(self, stamp_ns: int, q: np.ndarray) -> None:
        """Publish the links' poses in configuration q (nq,), if there is a subscriber and a message is due."""
        if stamp_ns < self._next_ns or self._tf is None or not self._tf.get_subscription_count():
            return
        self._next_ns = stamp_ns + PERIOD_NS
        self._stamp.sec, self._stamp.nanosec = divmod(stamp_ns, 1_000_000_000)
        pin.framesForwardKinematics(self._model, self._data, q)
        for k, link in zip(self._frames, self._message.transforms):
            to, turn = link.transform.translation, link.transform.rotation
            to.x, to.y, to.z, turn.x, turn.y, turn.z, turn.w = pin.SE3ToXYZQUAT(
                self._data.oMf[k]
            ).tolist()
        self._tf.publish(self._message)

    def begin_anew(self) -> None:
        """Restart at stamp 0."""
        self._next_ns = 0
