"""Supervises a run over ROS: drives the controller's lifecycle and reads the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from contact_id_controller.exceptions import RunError
from contact_id_controller.plans.trajectories import JointTrajectory
from contact_id_controller.ros.plan_messages import joint_message
from contact_id_controller.runs.ros_system import RosSystem

CONFIGURE, ACTIVATE = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
STEP_S = 0.05
RETRY_S = 0.2


class Supervisor:
    """A small node beside those of the run.

    Args:
        environment: variables that choose the ROS system of the run; set in this process, too, until
            the end.
        controller: name of the lifecycle node.
    """

    def __init__(self, environment: dict[str, str], controller: str = "controller"):
        self._system = RosSystem("demo", environment)
        self._node, self._executor = self._system.node, self._system.executor()
        self._controller = controller
        self._change_state = self._node.create_client(ChangeState, f"{controller}/change_state")
        self._node.create_subscription(
            Clock,
            "/clock",
            self._on_clock,
            QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
        )
        self.time_s = 0.0
        """Simulated time, as last received."""

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._system.close()

    def spin(self, duration_s: float) -> None:
        """Handle messages for ``duration_s``."""
        end = time.monotonic() + duration_s
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def wait_for_controller(self, check: Callable[[], None], patience_s: float) -> None:
        """Wait until the controller's lifecycle service is ready; ``check`` is called often and may raise."""
        self.wait_for(
            self._change_state.service_is_ready,
            check,
            patience_s,
            f"node {self._controller!r} did not appear",
        )

    def change_state(self, transition: int, check: Callable[[], None], patience_s: float) -> bool:
        """Request a lifecycle transition; return whether it succeeded."""
        request = ChangeState.Request(transition=Transition(id=transition))
        answer = self._change_state.call_async(request)
        self.wait_for(
            answer.done,
            check,
            patience_s,
            f"node {self._controller!r} did not answer a change of state",
        )
        return bool(answer.result().success)

    def activate(self, check: Callable[[], None], patience_s: float) -> bool:
        """Activate as soon as the controller has the robot's state; return whether it succeeded."""
        end = time.monotonic() + patience_s
        while not self.change_state(ACTIVATE, check, patience_s):
            if time.monotonic() > end:
                return False
            self.spin(RETRY_S)
        return True

    def send_motion(
        self,
        motion: JointTrajectory,
        nodes: Collection[str],
        check: Callable[[], None],
        patience_s: float,
    ) -> None:
        """Send a joint motion that starts when it arrives, once all these nodes can receive it."""
        topic = "joint_trajectory"
        plans = self._node.create_publisher(JointTrajectoryMessage, topic, 1)

        def all_listen() -> bool:
            found = {each.node_name for each in self._node.get_subscriptions_info_by_topic(topic)}
            return found.issuperset(nodes) and plans.get_subscription_count() >= len(nodes)

        self.wait_for(
            all_listen, check, patience_s, f"{' and '.join(nodes)} did not listen to {topic}"
        )
        plans.publish(joint_message(motion, stamp_ns=0))

    def wait_for(
        self, done: Callable[[], bool], check: Callable[[], None], patience_s: float, complaint: str
    ) -> None:
        """Wait for ``done()``, at most ``patience_s``; ``check`` is called often and may raise.

        Raises:
            RunError: after ``patience_s``; the message begins with ``complaint``.
        """
        end = time.monotonic() + patience_s
        while not done():
            if time.monotonic() > end:
                raise RunError(f"{complaint} within {patience_s:g} s")
            check()
            self.spin(STEP_S)

    def _on_clock(self, message: Clock) -> None:
        self.time_s = message.clock.sec + 1e-9 * message.clock.nanosec
