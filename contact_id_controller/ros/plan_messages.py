"""Writes plans as serialised ROS messages: the inverse of `conversions`.

As Python objects a plan of walking takes seven times as long to make and to send, twenty times a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import MultiDOFJointTrajectory

from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.ros.goals_messages import goals_message
from contact_id_controller.ros.plan_bytes import BASE_FIELDS, JOINT_FIELDS, head_of, write_points

WORLD = "world"
BASE = "base"


ALL_JOINTS = ("contacts", "base", "joints")
"""Parts of plans with joint motion, which is sent last, because a simulation may wait for it."""


class PlanSender:
    """Publishes a planner's plans, on topics of ``node``.

    Args:
        parts: of its plans, in the order in which they are sent.

    Attributes:
        sent_s: when a plan was last sent, time.monotonic.
    """

    def __init__(self, node: Node, parts: Sequence[str] = ALL_JOINTS) -> None:
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        self._node, self._parts = node, tuple(parts)
        self._publishers = tuple(
            node.create_publisher(kind, topic, qos)
            for kind, topic, _ in (_PARTS[part] for part in parts)
        )
        self._messages: tuple[bytes, ...] = ()
        self.sent_s = 0.0

    def send(self, plan: Plan, start_ns: int, loads: np.ndarray | None = None) -> None:
        """Send a plan that starts at ``start_ns``; loads: see ``stance_message``."""
        more = {"contacts": (loads,)}
        self._messages = tuple(
            _PARTS[part][2](getattr(plan, part), start_ns, *more.get(part, ()))
            for part in self._parts
        )
        self.repeat()

    def repeat(self) -> None:
        """Send the last plan again, if there is one."""
        for publisher, message in zip(self._publishers, self._messages):
            publisher.publish(message)
        self.sent_s = time.monotonic()

    @property
    def unheard(self) -> list[str]:
        """Topics without a discovered subscriber."""
        return [each.topic_name for each in self._publishers if not each.get_subscription_count()]

    @property
    def is_followed(self) -> bool:
        """Whether the last part, the motion, has a reliable subscriber that was discovered.

        Who only looks takes it with best effort, as `view.listener`; a simulated robot in lockstep stands meanwhile.
        """
        topic = self._publishers[-1].topic_name
        return any(
            each.qos_profile.reliability == ReliabilityPolicy.RELIABLE
            for each in self._node.get_subscriptions_info_by_topic(topic)
        )

    def forget(self) -> None:
        """Drop the last plan, so that it is not repeated."""
        self._messages = ()

    @property
    def has_sent(self) -> bool:
        """Whether there is a plan to repeat."""
        return bool(self._messages)


def joint_message(plan: JointTrajectory, stamp_ns: int) -> bytes:
    """Serialise planned joint motion that starts at `stamp_ns`, as trajectory_msgs/JointTrajectory."""
    fields = plan.positions, plan.velocities, plan.accelerations, None
    return write_points(
        head_of(_without_points(plan.names), stamp_ns), JOINT_FIELDS, plan.times_s, fields
    )


def base_message(plan: BaseTrajectory, stamp_ns: int) -> bytes:
    """Serialise planned base motion that starts at `stamp_ns`, pose and twist in the world frame.

    A trajectory_msgs/MultiDOFJointTrajectory.
    """
    poses = np.hstack([plan.positions, plan.quaternions_xyzw])
    twists = np.hstack([plan.linear_velocities, plan.angular_velocities])
    return write_points(
        head_of(_base_without_points(), stamp_ns), BASE_FIELDS, plan.times_s, (poses, twists, None)
    )


def stance_message(plan: ContactSchedule, stamp_ns: int, loads: np.ndarray | None = None) -> bytes:
    """Serialise planned contacts that start at `stamp_ns`: positions 1 (stance) or 0 (swing).

    loads (p, f): planned normal forces, N, as effort. A trajectory_msgs/JointTrajectory.
    """
    fields = plan.stance.astype(float), None, None, loads
    return write_points(
        head_of(_without_points(plan.frames), stamp_ns), JOINT_FIELDS, plan.times_s, fields
    )


_PARTS: dict[str, tuple[type, str, Callable[..., bytes]]] = {
    "contacts": (JointTrajectoryMessage, "contact_schedule", stance_message),
    "base": (MultiDOFJointTrajectory, "base_trajectory", base_message),
    "joints": (JointTrajectoryMessage, "joint_trajectory", joint_message),
    "goals": (Float64MultiArray, "task_goals", goals_message),
}
"""Part of a plan -> message, topic and writer."""


@lru_cache(maxsize=8)
def _without_points(names: tuple[str, ...]) -> bytes:
    return serialize_message(JointTrajectoryMessage(joint_names=list(names)))


@lru_cache(maxsize=1)
def _base_without_points() -> bytes:
    message = MultiDOFJointTrajectory(joint_names=[BASE])
    message.header.frame_id = WORLD
    return serialize_message(message)
