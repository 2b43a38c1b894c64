"""Commands for drives of MIT type as a Float64MultiArray; the watchdog's forwarder for all such drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_id_controller.plans.low_level import (
    LowLevelCommand,
    packed_low_level,
    unpacked_low_level,
)
from contact_id_controller.ros.command_messages import CommandMessages, Forwarder, Writer
from contact_id_controller.ros.packed import read_message
from contact_id_controller.ros.robot_side_messages import NumbersMessage, new_session

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel


class DriveForwarder(Forwarder):
    """Forwards set-points and gains unchanged, and torques within the limits.

    A stop is the drives' own damping, as commanded last; before the first command torques alone.
    """

    def __init__(
        self, joints: int, reader: Callable[[bytes], LowLevelCommand], writer: Writer
    ) -> None:
        self._reader, self._writer = reader, writer
        self._read = self._forwarded = LowLevelCommand(joints)

    def read(self, data: bytes) -> np.ndarray:
        """The torques (1, n) of a message; raises StateError as the reader does."""
        self._read = self._reader(data)
        return self._read.effort[None].copy()

    def keep(self, data: bytes) -> None:
        """Keep a good message, whose damping a stop uses."""
        self.read(data)
        self._forwarded = self._read

    def forward(self, publisher: Any, efforts: np.ndarray) -> None:
        self._read.effort[:] = efforts[0]
        self._forwarded = self._read
        self._send(publisher, self._forwarded)

    def stop(self, publisher: Any, torques: np.ndarray, position: np.ndarray) -> None:
        """Send damping at the measured positions; a joint that was never measured rests at its last set-point."""
        rest = self._forwarded.like()
        known = np.where(np.isfinite(position), position, self._forwarded.position)
        rest.rest(self._forwarded.time_s, known, torques)
        self._send(publisher, rest)

    def _send(self, publisher: Any, command: LowLevelCommand) -> None:
        self._writer.fill(command)
        self._writer.publish(publisher)


class LowLevelMessages(CommandMessages):
    """See `CommandMessages`."""

    def writer(self, robot: RobotModel, command: LowLevelCommand) -> NumbersMessage:
        return _writer(robot.joint_names)

    def reader(self, robot: RobotModel) -> Callable[[bytes], LowLevelCommand]:
        return self._reader(robot.joint_names)

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        return DriveForwarder(len(joints), self._reader(joints), _writer(joints))

    def _reader(self, joints: Sequence[str]) -> Callable[[bytes], LowLevelCommand]:
        names = list(joints)
        return lambda data: unpacked_low_level(np.array(read_message(self.kind, data).data), names)


def _writer(joints: Sequence[str]) -> NumbersMessage:
    session, names = new_session(), list(joints)
    return NumbersMessage(lambda each: packed_low_level(each, names, session))
