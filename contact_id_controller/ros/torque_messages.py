"""Torques as std_msgs/Float64MultiArray, in the order of the joints, and back."""

from __future__ import annotations

import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from std_msgs.msg import Float64MultiArray

from contact_id_controller.ros.command_messages import CommandMessages, Forwarder
from contact_id_controller.ros.packed import PackedMessage, markers, read_numbers

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel


class TorqueMessage:
    """The message of some joints' torques, made once and refilled."""

    def __init__(self, joints: int) -> None:
        data = markers(joints, 0)
        self._message = PackedMessage(Float64MultiArray(data=array.array("d", data)))
        self._torques = self._message.doubles(data)

    def fill(self, torques: np.ndarray) -> None:
        """Write torques (n,), N·m, into the message."""
        self._torques[:] = torques

    def publish(self, publisher: Any) -> None:
        """Publish the message with its present numbers."""
        self._message.publish(publisher)


class _Forwarder(Forwarder):
    def __init__(self, joints: Sequence[str]) -> None:
        self._message = TorqueMessage(len(joints))

    def read(self, data: bytes) -> np.ndarray:
        """The torques (1, k) of a message; the watchdog checks k."""
        return read_numbers(data)[None]

    def forward(self, publisher: Any, efforts: np.ndarray) -> None:
        """Publish torques (1, n); a command has nothing else."""
        self.stop(publisher, efforts[0], efforts[0])

    def stop(self, publisher: Any, torques: np.ndarray, position: np.ndarray) -> None:
        self._message.fill(torques)
        self._message.publish(publisher)


class TorqueMessages(CommandMessages):
    """See `CommandMessages`."""

    def writer(self, robot: RobotModel, command: Any) -> TorqueMessage:
        return TorqueMessage(robot.na)

    def reader(self, robot: RobotModel) -> Callable[[bytes], np.ndarray]:
        """Reader of the torques of a message, of any number."""
        return read_numbers

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        return _Forwarder(joints)
