"""A node beside those that are tested, in a context of its own."""

import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from waiting import PATIENCE_S, until


class RosPeer:
    """A node and the executor that turns it; further nodes of its context may be added.

    Args:
        named: name and namespace of the node.  domain_id: of the context; None: of the environment.
    """

    def __init__(self, *named, domain_id=None):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain_id)
        self.node = rclpy.create_node(*named, context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def turn(self):
        """Serve what has come, or wait a little."""
        self.executor.spin_once(timeout_sec=0.02)

    def until(self, condition, patience_s=PATIENCE_S):
        """Turn until a condition holds; whether it does."""
        return until(condition, patience_s, self.turn)

    def spin(self, wall_s):
        """Turn for so long."""
        end_s = time.monotonic() + wall_s
        while (left_s := end_s - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=left_s)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)
