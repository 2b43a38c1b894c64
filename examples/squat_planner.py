"""The planner of squat.py as a node of one's own: Solo12 squats, over topics.

    contact_id demo --robot solo12 --duration 4 --planner examples/squat_planner.py
    contact_id demo --config solo12.yaml --planner examples/squat_planner.py     # with a section `squat_planner`
    python examples/squat_planner.py --ros-args -p down_m:=0.03      # beside nodes that run already

The node has the name of its file, by which the run gives it its parameters. It has to run on: a node
that ends is a failure of the run.
"""

import sys
import time

import rclpy
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from squat import squat

from contact_id_controller.cli import run_script
from contact_id_controller.ros.packed import nanoseconds
from contact_id_controller.ros.plan_messages import PlanSender
from contact_id_controller.ros.process import run_node

REPEAT_S = 0.1


class SquatPlanner(Node):
    """Sends one plan, which begins ``lead_s`` after the first state that it knows."""

    def __init__(self):
        super().__init__("squat_planner")
        self.down_m = self.declare_parameter("down_m", 0.04).value
        self.lead_ns = round(1e9 * self.declare_parameter("lead_s", 1.0).value)
        self.sender, self.names, self.start_ns = PlanSender(self, ("base", "joints")), None, None
        # States are sent best effort in real time: a reliable subscription would receive none.
        self.create_subscription(JointState, "joint_states", self.joints, qos_profile_sensor_data)
        self.create_subscription(Odometry, "odometry", self.base, qos_profile_sensor_data)

    def joints(self, message):
        """Keep the order of the joints."""
        self.names = message.name

    def base(self, message):
        """Plan once; repeat the plan until it begins, because a controller that is not yet active takes none."""
        now_ns = nanoseconds(message.header.stamp)
        if self.start_ns is None and self.names is not None:
            self.start_ns = now_ns + self.lead_ns
            plan = squat(self.names, message.pose.pose.position.z, self.down_m)
            self.sender.send(plan, self.start_ns)
            self.get_logger().info(f"squat by {self.down_m:g} m at {1e-9 * self.start_ns:.3f} s")
        elif time.monotonic() > self.sender.sent_s + REPEAT_S and now_ns < (self.start_ns or 0):
            self.sender.repeat()


def serve(node, interrupt) -> int:
    """Until the end of the run, or Ctrl-C."""
    while not interrupt.requested:
        rclpy.spin_once(node, timeout_sec=0.1)
    return 0


def main() -> int:
    """Run the node; its parameters are read by ROS."""
    return run_node("squat_planner", lambda interrupt: SquatPlanner(), serve)


if __name__ == "__main__":
    words = [*sys.argv[1:], "--ros-args"]  # what follows these is for ROS
    run_script(main, words[: words.index("--ros-args")])
