"""The topics that a replay needs, with types and QoS."""

from __future__ import annotations

from typing import Any, NamedTuple

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.logs.bag_files import ODOMETRY, STATES
from contact_id_controller.ros import packed
from contact_id_controller.ros.command_messages import message_class
from contact_id_controller.settings.command_interfaces import INTERFACES
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings

EVENTS = "events"
PLANS = {
    "joint_trajectory": JointTrajectory,
    "base_trajectory": MultiDOFJointTrajectory,
    "contact_schedule": JointTrajectory,
}
DEPTH = 20_000
"""Queue length of a recorder: seconds of a topic at 1 kHz."""


class Topic(NamedTuple):
    """A topic to record: name, type, and QoS of its publisher."""

    name: str
    kind: Any
    qos: QoSProfile


def contact_topics(settings: ControllerSettings, sensed: bool) -> dict[str, Any]:
    """Topics of measured contact that the controller of these settings subscribes to: name -> type."""
    if sensed or settings.measured == "force":
        return {f"ground_reaction/{frame}": WrenchStamped for frame in settings.foot_frames}
    return {"contact_states": JointState} if settings.measured else {}


def sent_as(settings: ControllerSettings) -> tuple[str, Any]:
    """Topic and type of the commands of a controller with these settings.

    Raises:
        ConfigurationError: its command interface cannot be replayed.
    """
    interface = settings.interface
    if not interface.recorded:
        known = choices(name for name, row in INTERFACES.items() if row.recorded)
        raise ConfigurationError(
            f"command_interface {interface.name!r} cannot be replayed, only {known}"
        )
    return interface.topic, message_class(interface)


def replayed_topics(settings: ControllerSettings, sensed: bool, node: str) -> list[Topic]:
    """Topics to record of a controller so that its torques can be recomputed.

    sensed: whether its model takes measured forces.  node: its name.

    Raises:
        ConfigurationError: see `sent_as`.
    """
    stream = _stream(settings.mode == "lockstep" or settings.reliable_topics)
    reliable = _stream(certain=True)
    kept = QoSProfile(
        depth=DEPTH,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
    streams = {STATES: JointState, ODOMETRY: Odometry, **contact_topics(settings, sensed)}
    sent = dict([sent_as(settings)])
    return [
        *(Topic(name, kind, stream) for name, kind in streams.items()),
        *(Topic(name, kind, reliable) for name, kind in (PLANS | sent).items()),
        Topic(f"{node}/{EVENTS}", String, kept),
    ]


def sensed_topics(settings: DynamicsEstimatorSettings) -> list[Topic]:
    """Topics of the sensors of an estimator with these settings, beside joint states.

    A replay does not need them, `contact_id diagnose` does.
    """
    stream = _stream(settings.reliable)
    mounted = (
        Topic(each.topic, packed.message_class(each.message), stream) for each in settings.mounted
    )
    return [Topic("imu", Imu, stream), *mounted]


def _stream(certain: bool) -> QoSProfile:
    """QoS of values that are published each period: reliable, or best effort."""
    how = ReliabilityPolicy.RELIABLE if certain else ReliabilityPolicy.BEST_EFFORT
    return QoSProfile(depth=DEPTH, reliability=how)
