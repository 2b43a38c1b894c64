"""Heartbeats on topics: `~/heartbeat`, std_msgs/String, of controller and command watchdog."""

from __future__ import annotations

import time

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from contact_id_controller.ros.direct_loop import take_newest
from contact_id_controller.ros.packed import MOST_CHARACTERS, read_message
from contact_id_controller.safety.heartbeat import Heart, Pulse
from contact_id_controller.safety.incidents import Incidents

_NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# Serves both kinds of subscribers.
_RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


class HeartbeatTopic:
    """Publishes this node's heartbeat."""

    def __init__(self, node: Node) -> None:
        self._heart = Heart()
        self._publisher = node.create_publisher(String, "~/heartbeat", _RELIABLE)

    def beat(self, state: str) -> None:
        """Publish ``state``, if it is due."""
        if self._heart.is_due(time.monotonic()):
            self._publisher.publish(String(data=self._heart.words(state)))


class HeartbeatInput:
    """Subscribes to another node's heartbeat.

    Args:
        node: owner of the subscription.
        name: of the other node.
        incidents: counts malformed beats.

    Attributes:
        pulse: condition of the other node.
    """

    def __init__(self, node: Node, name: str, incidents: Incidents) -> None:
        self.pulse = Pulse()
        self._node, self._incidents = node, incidents
        self._subscription = node.create_subscription(
            String, f"{name}/heartbeat", self._on_beat, _NEWEST, raw=True
        )

    def look(self) -> Pulse:
        """Take a waiting beat; return the condition of the other node."""
        self.pulse.look(time.monotonic())
        message = take_newest(self._subscription)
        if message is not None:
            self._on_beat(message)
        return self.pulse

    def destroy(self) -> None:
        """Destroy the subscription."""
        self._node.destroy_subscription(self._subscription)

    def _on_beat(self, message: bytes) -> None:
        self._incidents.guarded("heartbeat", self._take, message)

    def _take(self, message: bytes) -> None:
        self.pulse.take(read_message(String, message, MOST_CHARACTERS).data)
