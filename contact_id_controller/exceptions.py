"""Errors that a user can meet; each message names the offending value and the valid choices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class ContactIdError(ValueError):
    """Base of every error this package raises on bad input."""


class RobotDescriptionError(ContactIdError):
    """The robot description is missing, unreadable or does not fit the configuration."""


class UnknownJointError(ContactIdError):
    """A joint name that the robot does not have."""


class UnknownFrameError(ContactIdError):
    """A frame name that the robot does not have."""


class ContactSetError(ContactIdError):
    """Contact data of wrong shape, not finite, or outside its range."""


class UnknownModelError(ContactIdError):
    """A friction and solver pair, or an option of it, that does not exist."""


class ConfigurationError(ContactIdError):
    """A parameter of wrong type, outside its range, or missing."""


class UnobservableError(ContactIdError):
    """Sensors that leave a quantity unobservable; the message names it."""


class LcpError(ContactIdError):
    """A complementarity problem of wrong shape, not finite, or with an option outside its range."""


class TrajectoryError(ContactIdError):
    """A planned trajectory that is invalid or beyond limits."""


class StateError(ContactIdError):
    """A measured state that is incomplete, not finite, stale or out of order."""


class SimulationError(ContactIdError):
    """The simulated robot's state is no longer finite."""


class RenderingError(ContactIdError):
    """No picture can be drawn: no OpenGL found, or nothing to draw."""


class RecordError(ContactIdError):
    """The record of a run is missing, incomplete or does not fit the other one."""


class RunError(ContactIdError):
    """A run that could not be started, or that ended early."""


class MissingExtraError(ContactIdError):
    """An optional part of the installation is needed and missing."""


def require(name: str, value: object, kind: type[Any], error: type[ContactIdError]) -> None:
    """Raise an error of that class, with the name, unless a value is of this kind."""
    if not isinstance(value, kind):
        raise error(f"{name} must be a {kind.__name__}, got a {type(value).__name__}")


def choices(names: Iterable[str]) -> str:
    """Format valid choices for an error message: sorted, quoted, comma separated."""
    return ", ".join(repr(name) for name in sorted(names))
