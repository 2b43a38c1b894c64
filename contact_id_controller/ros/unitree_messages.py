"""Commands for drives of MIT type as unitree_go/msg/LowCmd, and back.

Joint k of the command is motor k of the message: ``joints`` must be in the order of the motors. Motors beyond
them are off. The message carries a check sum over the numbers in the layout that C gives them (aligned to
their size), in words of 32 bits, the check sum itself left out; motors do not follow without it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.plans.low_level import LowLevelCommand
from contact_id_controller.ros.command_messages import CommandMessages, Forwarder
from contact_id_controller.ros.low_level_messages import DriveForwarder
from contact_id_controller.ros.packed import read_message

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel

MOTORS = 20
HEAD, LEVEL = (0xFE, 0xEF), 0xFF
"""Begin each low-level command."""

ON, OFF = 0x01, 0x00
"""Modes of a motor."""

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_LAYOUT = struct.Struct("<4B 4I H2x" + "B3x5f3I" * MOTORS + "4B 40B 12B 2B B x I")
_FIELDS = ("q", "dq", "kp", "kd", "tau")
"""Of a motor, in the order of ``LowLevelCommand.values``."""


def check_sum(message: Any) -> int:
    """The check sum of a LowCmd: that of its words, each from its most significant byte on."""
    return crc_of(struct.pack(">" + "I" * (_LAYOUT.size // 4), *_words(message)))


def crc_of(data: bytes) -> int:
    """CRC-32/MPEG-2: most significant bit first, initial value all ones, not inverted."""
    # zlib's is the same with the bits of bytes and result in reverse order, and inverted.
    value = zlib.crc32(data.translate(_REVERSED)) ^ 0xFFFFFFFF
    return int(f"{value:032b}"[::-1], 2)


def _words(message: Any) -> tuple[int, ...]:
    """A LowCmd without its check sum, as 32-bit words."""
    head = (*message.head, message.level_flag, message.frame_reserve)
    numbers: list[Any] = [*head, *message.sn, *message.version, message.bandwidth]
    for motor in message.motor_cmd:
        numbers += [motor.mode, motor.q, motor.dq, motor.tau, motor.kp, motor.kd, *motor.reserve]
    battery = message.bms_cmd
    numbers += [battery.off, *battery.reserve, *message.wireless_remote, *message.led]
    numbers += [*message.fan, message.gpio, message.reserve]
    return struct.unpack("<" + "I" * (_LAYOUT.size // 4), _LAYOUT.pack(*map(_plain, numbers)))


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number


class UnitreeMessage:
    """The message LowCmd, of class ``kind``, of n motors, made once and refilled."""

    def __init__(self, kind: type[Any], joints: int) -> None:
        if joints > MOTORS:
            raise ConfigurationError(f"{joints} joints are commanded, LowCmd has {MOTORS} motors")
        self.message: Any = kind()
        self.message.head[:] = HEAD
        self.message.level_flag = LEVEL
        self._motors = self.message.motor_cmd[:joints]
        for motor in self._motors:
            motor.mode = ON

    def fill(self, command: LowLevelCommand) -> None:
        """Write a command into the message, with its check sum."""
        for motor, numbers in zip(self._motors, command.values.T.tolist()):
            for field, number in zip(_FIELDS, numbers):
                setattr(motor, field, number)
        self.message.crc = check_sum(self.message)

    def publish(self, publisher: Any) -> None:
        """Publish the message with its present numbers."""
        publisher.publish(self.message)


def read_low_command(message: Any, joints: int) -> LowLevelCommand:
    """The command to n motors in a LowCmd.

    Raises:
        StateError: another check sum, motors that are off, or a command that `require_good` refuses.
    """
    if message.crc != check_sum(message):
        raise StateError(f"the check sum is {message.crc}, must be {check_sum(message)}")
    motors = message.motor_cmd[:joints]
    off = [k for k, motor in enumerate(motors) if motor.mode != ON]
    if off or message.level_flag != LEVEL:
        raise StateError(f"motors {off} are off, or level {message.level_flag} is not {LEVEL}")
    out = LowLevelCommand(joints)
    out.values[:] = [[getattr(motor, field) for motor in motors] for field in _FIELDS]
    out.require_good()
    return out


class UnitreeMessages(CommandMessages):
    """See `CommandMessages`."""

    def writer(self, robot: RobotModel, command: LowLevelCommand) -> UnitreeMessage:
        return UnitreeMessage(self.kind, robot.na)

    def reader(self, robot: RobotModel) -> Callable[[bytes], LowLevelCommand]:
        return self._reader(robot.na)

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        count = len(joints)
        return DriveForwarder(count, self._reader(count), UnitreeMessage(self.kind, count))

    def _reader(self, joints: int) -> Callable[[bytes], LowLevelCommand]:
        return lambda data: read_low_command(read_message(self.kind, data), joints)
