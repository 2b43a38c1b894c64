"""Commands for the plugin contact_id_ros2_control as numbers in a Float64MultiArray, and back."""

from __future__ import annotations

import array
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from std_msgs.msg import Float64MultiArray

from contact_id_controller.exceptions import StateError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.robot_side_message import (
    FEEDBACK,
    efforts_of,
    packed_feedback,
    packed_trajectory,
    unpacked_feedback,
    unpacked_trajectory,
)
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.ros.command_messages import CommandMessages, Forwarder
from contact_id_controller.ros.packed import read_message

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel


def new_session() -> int:
    """A session number that no earlier sender had: microseconds of the clock, exact as a double."""
    return time.time_ns() // 1000


class NumbersMessage:
    """A Float64MultiArray of commands; ``pack`` turns a command into numbers."""

    def __init__(self, pack: Callable[[Any], np.ndarray]) -> None:
        self._pack, self.message = pack, Float64MultiArray()

    def fill(self, command: Any) -> None:
        """Write a command into the message."""
        self.message.data = array.array("d", self._pack(command).tobytes())

    def publish(self, publisher: Any) -> None:
        """Publish the message with its present numbers."""
        publisher.publish(self.message)


class NumbersForwarder(Forwarder):
    """Forwards commands unchanged, except that efforts are limited.

    A stop of trajectories is rest at the measured positions; of feedback the last command without gain, nothing before
    the first.
    """

    def __init__(self, joints: Sequence[str], kind: type[Any], rests: bool) -> None:
        self._joints, self._kind, self._rests = list(joints), kind, rests
        self._read = self._forwarded = np.empty(0)
        self._session, self.prepared = new_session(), rests

    def read(self, data: bytes) -> np.ndarray:
        """The efforts (p, n) of a message; raises as ``efforts_of``."""
        numbers = np.array(read_message(self._kind, data).data)
        efforts = efforts_of(numbers, self._joints)
        if self._rests == (numbers[2] == FEEDBACK):
            raise StateError(f"a command has kind {numbers[2]:g}, which is not that of this topic")
        self._read = numbers
        return efforts.copy()

    def keep(self, data: bytes) -> None:
        """Keep a good message as the template of a stop."""
        self.read(data)
        self._forwarded, self.prepared = self._read, True

    def forward(self, publisher: Any, efforts: np.ndarray) -> None:
        efforts_of(self._read, self._joints)[:] = efforts
        self._forwarded, self.prepared = self._read, True
        send_numbers(publisher, self._forwarded)

    def stop(self, publisher: Any, torques: np.ndarray, position: np.ndarray) -> None:
        """Send rest with torques that fade, or torques without gain; nothing if there is no position or template."""
        if self._rests:
            if np.isfinite(position).all():
                rest = EffortTrajectory(2, len(self._joints))
                rest.rest(0.0, position, torques)
                send_numbers(publisher, packed_trajectory(rest, self._joints, self._session))
        elif self._forwarded.size:
            n = len(self._joints)
            efforts_of(self._forwarded, self._joints)[:] = torques
            self._forwarded[-2 * n * int(self._forwarded[7]) :] = 0.0
            send_numbers(publisher, self._forwarded)


class RobotSideTrajectories(CommandMessages):
    """See `CommandMessages`."""

    def writer(self, robot: RobotModel, command: EffortTrajectory) -> NumbersMessage:
        session, names = new_session(), robot.joint_names
        return NumbersMessage(lambda each: packed_trajectory(each, names, session))

    def reader(self, robot: RobotModel) -> Callable[[bytes], EffortTrajectory]:
        names = robot.joint_names
        return lambda data: unpacked_trajectory(np.array(read_message(self.kind, data).data), names)

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        return NumbersForwarder(joints, self.kind, rests=True)


class RobotSideFeedbacks(CommandMessages):
    """See `CommandMessages`."""

    def writer(self, robot: RobotModel, command: StateFeedback) -> NumbersMessage:
        session = new_session()
        return NumbersMessage(lambda each: packed_feedback(each, robot, session))

    def reader(self, robot: RobotModel) -> Callable[[bytes], StateFeedback]:
        return lambda data: unpacked_feedback(np.array(read_message(self.kind, data).data), robot)

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        return NumbersForwarder(joints, self.kind, rests=False)


def send_numbers(publisher: Any, numbers: np.ndarray) -> None:
    """Publish numbers as a Float64MultiArray."""
    message = Float64MultiArray()
    message.data = array.array("d", numbers.tobytes())
    publisher.publish(message)
