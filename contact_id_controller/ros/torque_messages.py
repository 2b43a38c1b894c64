"""Torques as std_msgs/Float64MultiArray, in the order of the joints, and back."""

from __future__ import annotations

import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64MultiArray

from contact_id_controller.ros.command_messages import CommandMessages, Forwarder
from contact_id_controller.ros.packed import markers, read_numbers

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel


class TorqueMessage:
    """The message of some joints' torques, made once and refilled."""

    def __init__(self, joints: int) -> None:
        data = markers(joints, 0).tobytes()
        message = serialize_message(Float64MultiArray(data=array.array("d", data)))
        self._head, found, self._tail = message.partition(data)
        if not found and joints:
            raise ValueError("the torques do not lie in their message as doubles")
        self._data = bytes(len(data))

    def fill(self, torques: np.ndarray) -> None:
        """Write torques (n,), N·m, into the message."""
        data = torques.tobytes()
        if len(data) != len(self._data):
            raise ValueError(f"torques have shape {torques.shape}, not those of the message")
        self._data = data

    def publish(self, publisher: Any) -> None:
        """Publish the message with its present numbers."""
        publisher.handle.publish_raw(self._head + self._data + self._tail)


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
