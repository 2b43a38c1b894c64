"""A process that sends messages as large as no robot's, as fast as it can.

python large_messages.py
"""

import contextlib
import time

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

PERIOD_S = 0.01


def main():
    rclpy.init()
    node = rclpy.create_node("flood")
    point = JointTrajectoryPoint(positions=[0.0] * 3, velocities=[0.0] * 3)
    plan = serialize_message(JointTrajectory(joint_names=["a"] * 3, points=[point] * 10_000))
    numbers = np.frombuffer(plan, "<u4", len(plan) // 4).copy()
    numbers[np.flatnonzero(numbers == 10_000)[0]] = 100_000  # of which a tenth is there
    messages = [
        (JointTrajectory, "joint_trajectory", [plan, numbers.tobytes()]),
        (JointState, "joint_states", [serialize_message(JointState(name=["j"] * 20_000))]),
        (
            Float64MultiArray,
            "commands_in",
            [serialize_message(Float64MultiArray(data=np.zeros(100_000).tolist()))],
        ),
    ]
    senders = [(node.create_publisher(kind, topic, 1), each) for kind, topic, each in messages]
    while not senders[2][0].get_subscription_count():
        time.sleep(0.01)
    print("flooding", flush=True)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        while rclpy.ok():
            for publisher, several in senders:
                for data in several:
                    publisher.publish(data)
            time.sleep(PERIOD_S)


if __name__ == "__main__":
    main()
