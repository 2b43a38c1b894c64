"""What nodes do with the commands of an interface: write, read and pass them on; each interface has its file."""

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
    """The controller's message, made once and filled again and again."""

    def fill(self, command: Any) -> None:
        """Take over the numbers of a command: torques (na,), or what the controller's steps make."""

    def publish(self, publisher: Publisher) -> None:
        """Send it with its present numbers."""


class Forwarder:
    """The watchdog's: reads commands, sends them on within its limits, and a stop instead of them."""

    prepared = True
    """Whether a stop can be sent; else a good command must be kept first."""

    def read(self, data: bytes) -> np.ndarray:
        """Efforts (p, n), N·m, of a command, at one or more times.

        Raises:
            StateError: no such message, or one that must not be followed.
        """
        raise NotImplementedError

    def keep(self, data: bytes) -> None:
        """Read a command, so that a stop can be sent; raises as ``read``."""

    def forward(self, publisher: Publisher, efforts: np.ndarray) -> None:
        """Send the command that was read last, with efforts (p, n) within the limits."""
        raise NotImplementedError

    def stop(self, publisher: Publisher, torques: np.ndarray, position: np.ndarray) -> None:
        """Send torques (n,), N·m, of a stop.

        position: (n,) rad, as measured last; not finite where never.
        """
        raise NotImplementedError


class CommandMessages:
    """Makes what the nodes need of one interface's message, of class ``kind``."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind

    def writer(self, robot: RobotModel, command: Any) -> Writer:
        """The controller's; command: an example of what is written."""
        raise NotImplementedError

    def reader(self, robot: RobotModel) -> Callable[[bytes], Any]:
        """The robot's: bytes -> torques, or what its side follows; raises as ``Forwarder.read``."""
        raise NotImplementedError

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        """The watchdog's; joints: n names, in the order of the torques."""
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
