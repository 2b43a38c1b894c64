"""Executors that continue after any error in a callback or in taking a message.

In rclpy an error in a callback leaves `spin_once`, and with it the loop of the node; one in taking a message, as of
malformed bytes, also leaves the entity marked as being served: it, and all others of its callback group, are never
served again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterator
from typing import Any

from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import (
    ConditionReachedException,
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.subscription import Subscription

from contact_id_controller.safety.incidents import Incidents

ENDS = (
    ConditionReachedException,
    ExternalShutdownException,
    ShutdownException,
    TimeoutException,
)
"""Exceptions by which rclpy reports that nothing is ready, or that ROS ends."""


def incidents_of(node: Node) -> Incidents:
    """Catches, counts and logs the errors of one node."""
    return Incidents(node.get_logger().warning, passed_on=ENDS)


class GuardedExecutor(SingleThreadedExecutor):
    """Serves a node; errors of its callbacks, and in taking messages for them, are counted.

    Args:
        node: the node.
        incidents: catches the errors; None: logged by the node.
        context: of the node, None: the default one.
    """

    def __init__(
        self, node: Node, incidents: Incidents | None = None, context: Context | None = None
    ) -> None:
        super().__init__(context=context)
        self.incidents = incidents_of(node) if incidents is None else incidents
        self.add_node(node)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """See rclpy; raises only the end of ROS."""
        self.incidents.guarded("callback", super().spin_once, timeout_sec)

    def run_timers(self) -> Iterator[None]:
        """Call the timers that are due, one at each iteration, without the work of a turn."""
        for timer in [timer for node in self.get_nodes() for timer in node.timers]:
            with contextlib.suppress(InvalidHandle), timer.handle:
                if not timer.is_canceled() and timer.is_ready():
                    timer.handle.call_timer_with_info()
                    self.incidents.guarded("callback", timer.callback)
                    yield

    def asked_for(self, served: Container[Subscription] = ()) -> tuple[list[Subscription], bool]:
        """Subscriptions where messages wait, and whether anything else is ready: timers, requests, answers.

        A quarter of the work of a turn.  served: subscriptions that are served elsewhere. Waitables, such as
        events of the middleware, are not checked.
        """
        handle = self._context.handle
        if handle is None:
            return [], True
        with handle:
            waiting, others = [], False
            make: Any = rclpy_implementation.WaitSet  # its stub lacks an overload
            for node in self.get_nodes():
                subscriptions = {
                    each.handle.pointer: each
                    for each in node.subscriptions
                    if each not in served and each.callback_group.can_execute(each)
                }
                kinds = [[each.handle for each in subscriptions.values()]]
                for entities in (node.guards, node.timers, node.clients, node.services):
                    kinds.append([each.handle for each in entities])
                wait_set: Any = make(*map(len, kinds), 0, handle)
                wait_set.clear_entities()
                for add, handles in zip(
                    (
                        wait_set.add_subscription,
                        wait_set.add_guard_condition,
                        wait_set.add_timer,
                        wait_set.add_client,
                        wait_set.add_service,
                    ),
                    kinds,
                ):
                    for each in handles:
                        add(each)
                wait_set.wait(0)
                ready: Callable[[Any], list[int]] = wait_set.get_ready_entities
                waiting += [subscriptions[pointer] for pointer in ready("subscription")]
                others = others or any(
                    map(ready, ("guard_condition", "timer", "client", "service"))
                )
        return waiting, others

    # Overrides of rclpy: called with a ready entity; return None if there is nothing to do.

    def _take_subscription(self, sub: Any) -> Any:
        return self._taken(sub.topic_name, super()._take_subscription, sub)

    def _take_service(self, srv: Any) -> Any:
        return self._taken(srv.srv_name, super()._take_service, srv)

    def _take_client(self, client: Any) -> Any:
        return self._taken(client.srv_name, super()._take_client, client)

    def _taken(self, name: str, take: Callable[[Any], Any], entity: Any) -> Any:
        return self.incidents.guarded(f"message of {name.rpartition('/')[2]}", take, entity)
