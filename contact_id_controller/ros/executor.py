"""Executors that nothing which arrives can stop.

In rclpy an error in a callback leaves `spin_once`, and with it the loop of the node; one in the taking
of a message, as of bytes that are none, also leaves the entity marked as being served: it, and all
others of its callback group, are never served again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.context import Context
from rclpy.executors import (
    ConditionReachedException,
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.node import Node

from contact_id_controller.safety.incidents import Incidents

ENDS = (
    ConditionReachedException,
    ExternalShutdownException,
    ShutdownException,
    TimeoutException,
)
"""By which rclpy says that there is nothing, or nothing more, to do."""


def incidents_of(node: Node) -> Incidents:
    """What catches, counts and logs the errors of one node."""
    return Incidents(node.get_logger().warning, passed_on=ENDS)


class GuardedExecutor(SingleThreadedExecutor):
    """Serves a node; errors of its callbacks, and of the taking of what is for them, are counted.

    Args:
        node: the node.
        incidents: catches the errors; None: those of the node's log.
        context: of the node, None: the default one.
    """

    def __init__(
        self, node: Node, incidents: Incidents | None = None, context: Context | None = None
    ) -> None:
        super().__init__(context=context)
        self.incidents = incidents_of(node) if incidents is None else incidents
        self.add_node(node)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """See rclpy; raises nothing but the end of ROS."""
        self.incidents.guarded("callback", super().spin_once, timeout_sec)

    # Names of rclpy: called with what is ready, nothing that is returned is nothing to do.

    def _take_subscription(self, sub: Any) -> Any:
        return self._taken(sub.topic_name, super()._take_subscription, sub)

    def _take_service(self, srv: Any) -> Any:
        return self._taken(srv.srv_name, super()._take_service, srv)

    def _take_client(self, client: Any) -> Any:
        return self._taken(client.srv_name, super()._take_client, client)

    def _taken(self, name: str, take: Callable[[Any], Any], entity: Any) -> Any:
        return self.incidents.guarded(f"message of {name.rpartition('/')[2]}", take, entity)
