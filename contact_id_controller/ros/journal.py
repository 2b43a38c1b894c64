"""Publishes the events, other than states, that the torques depend on, each with the state it followed.

A bag of the topics alone does not record between which two states a plan was taken, or a parameter changed; with this
topic `contact_id replay` computes the same torques again (docs/replay.md).
"""

from __future__ import annotations

import json
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

KEPT = 2000
"""Number of events that a late subscriber still gets."""


class Journal:
    """Publishes `~/events`, std_msgs/String, one JSON object per event.

    Each has ``number`` from 0 since configure, ``event``, ``after_ns``: stamp of the last joint state before it, 0
    before the first; and fields of its kind.

    Args:
        node: owner of the topic.
    """

    def __init__(self, node: Node) -> None:
        self._node, self._number = node, 0
        self._untold: list[str] = []
        qos = QoSProfile(
            depth=KEPT,
            reliability=ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL,
        )
        self._publisher = node.create_publisher(String, "~/events", qos)

    def note(self, event: str, after_ns: int, **facts: Any) -> None:
        """Keep an event until `tell`; takes a few microseconds."""
        words = {"number": self._number, "event": event, "after_ns": after_ns, **facts}
        self._untold.append(json.dumps(words))
        self._number += 1

    def tell(self) -> None:
        """Publish the kept events."""
        untold, self._untold = self._untold, []
        for words in untold:
            self._publisher.publish(String(data=words))

    def destroy(self) -> None:
        """Publish the kept events, and destroy the publisher."""
        self.tell()
        self._node.destroy_publisher(self._publisher)
