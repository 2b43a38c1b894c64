"""How nodes write, read and forward the commands of an interface; each interface has its file."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.lazy import loaded
from contact_id_controller.settings.command_interfaces import CommandInterface

if TYPE_CHECKING:
    from rclpy.publisher import Publisher

    from contact_id_controller.robot import RobotModel


class Writer(Protocol):
    """The controller's message, made once and refilled."""

    def fill(self, command: Any) -> None:
        """Write a command into the message: torques (na,), or the controller's other kind of command."""

    def publish(self, publisher: Publisher) -> None:
        """Publish the message with its present numbers."""


class Forwarder:
    """The watchdog's side: reads commands, forwards them within its limits, and sends stops."""

    prepared = True
    """Whether a stop can be sent; else `keep` needs a good command first."""

    def read(self, data: bytes) -> np.ndarray:
        """Efforts (p, n), N·m, of a command, at one or more times.

        Raises:
            StateError: no such message, or one that must not be forwarded.
        """
        raise NotImplementedError

    def keep(self, data: bytes) -> None:
        """Keep a command as the template of a stop; raises as ``read``."""

    def forward(self, publisher: Publisher, efforts: np.ndarray) -> None:
        """Send the command read last, with efforts (p, n), N·m, within the limits."""
        raise NotImplementedError

    def stop(self, publisher: Publisher, torques: np.ndarray, position: np.ndarray) -> None:
        """Send a stop with torques (n,), N·m.

        position: (n,) rad, measured last; not finite if never.
        """
        raise NotImplementedError


class CommandMessages:
    """Makes the writer, reader and forwarder of one interface's message, of class ``kind``."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind

    def writer(self, robot: RobotModel, command: Any) -> Writer:
        """The controller's writer; command: an example of what it writes."""
        raise NotImplementedError

    def reader(self, robot: RobotModel) -> Callable[[bytes], Any]:
        """The robot's reader: bytes -> torques, or the robot side's command; raises as ``Forwarder.read``."""
        raise NotImplementedError

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        """The watchdog's forwarder; joints: n names, in the order of the torques."""
        raise NotImplementedError


def message_class(interface: CommandInterface) -> type[Any]:
    """The class of an interface's message.

    Raises:
        ConfigurationError: its package is not installed.
    """
    package, _, name = interface.message.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"parameter 'command_interface' is {interface.name!r}, which needs the messages of "
            f"{package}: the package is not installed here"
        ) from error


def messages_of(interface: CommandInterface) -> CommandMessages:
    """The messages of an interface.

    Raises:
        ConfigurationError: their package is not installed.
    """
    return loaded(interface.messages)(message_class(interface))
