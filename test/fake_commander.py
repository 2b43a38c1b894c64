"""A process that plays the controller: a lifecycle node that sends one command for ever.

    python fake_commander.py PERIOD_S VALUE... [--at-once]

At once: active before anybody knows it.
"""

import contextlib
import sys
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray


def main(period_s, values, at_once):
    rclpy.init()
    node = LifecycleNode("controller")
    publisher = node.create_publisher(
        Float64MultiArray,
        "commands_in",
        QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
    )
    message = Float64MultiArray(data=values)
    # As a controller that compiles, it is not active before it is seen.
    while not at_once and not node.count_subscribers("controller/transition_event"):
        rclpy.spin_once(node, timeout_sec=0.01)
    for _ in range(0 if at_once else 20):
        rclpy.spin_once(node, timeout_sec=0.01)
    node.trigger_configure()
    node.trigger_activate()
    print(f"active at {time.monotonic()}", flush=True)
    node.create_timer(period_s, lambda: publisher.publish(message))
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    numbers = [float(value) for value in sys.argv[1:] if value != "--at-once"]
    main(numbers[0], numbers[1:], "--at-once" in sys.argv)
