"""Reads JointState and Odometry, and passes them to the checks of `safety.states`."""

from __future__ import annotations

from collections.abc import Sequence

from contact_id_controller.ros.conversions import JointStateReader, OdometryReader
from contact_id_controller.safety.states import JointReading, Refusal, StateChecks
from contact_id_controller.state import RobotState


class StateInput:
    """Reads the messages of one robot's state.

    Args:
        joint_names: the joints that are read from each message.
        checks: checks what was read.
        confirmations: of `OdometryReader`.
    """

    def __init__(
        self, joint_names: Sequence[str], checks: StateChecks, confirmations: int = 0
    ) -> None:
        self.joints = JointStateReader(joint_names)
        self.odometry = OdometryReader(confirmations)
        self.checks = checks

    def take_odometry(self, message: bytes) -> None:
        """Keep the newest odometry; a bad one makes the next state refused."""
        self.checks.take_base(*self.odometry.read(message))

    def read(self, message: bytes) -> JointReading | Refusal:
        """The joints of a JointState, or why it lacks some."""
        return self.joints.read(message)

    def take_joint_state(self, message: bytes, now_ns: int | None) -> RobotState | Refusal:
        """The state of the robot, or why it is refused; see `StateChecks.take`."""
        joints = self.read(message)
        return joints if isinstance(joints, Refusal) else self.checks.take(joints, now_ns)
