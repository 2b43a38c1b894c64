"""A node of this process in the ROS system of a run's processes."""

from __future__ import annotations

import os
from collections.abc import Mapping

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions


class RosSystem:
    """The node, with a context of its own, until `close`.

    Args:
        name: of the node.
        environment: variables that choose the ROS system, `ROS_DOMAIN_ID` among them; set in this
            process, too, and restored by `close`.
    """

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._before = {variable: os.environ.get(variable) for variable in environment}
        os.environ.update(environment)
        self.context = rclpy.Context()
        rclpy.init(
            context=self.context,
            domain_id=int(environment["ROS_DOMAIN_ID"]),
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self.node = rclpy.create_node(name, context=self.context)

    def executor(self) -> SingleThreadedExecutor:
        """Make an executor that serves the node; shut it down before `close`."""
        executor = SingleThreadedExecutor(context=self.context)
        executor.add_node(self.node)
        return executor

    def close(self) -> None:
        """Destroy the node, and restore the environment."""
        self.node.destroy_node()
        self.context.try_shutdown()
        for variable, value in self._before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
