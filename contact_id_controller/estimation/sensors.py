"""What a sensor measures of the dynamics, as rows: exact (noise 0), or with a known noise.

A sensor is one frozen class, derived from ``Sensor``, that gives its rows and its noise; nothing else asks what kind
of sensor it is. ``DynamicsEstimator`` turns a list of them into one least-squares problem.
Source: Nori (2017), section III; the rows in the common frame are in docs/theory.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from contact_id_controller.estimation.rows import ACCELERATION, WRENCH
from contact_id_controller.estimation.tree import PRISMATIC, Mechanism
from contact_id_controller.exceptions import (
    ConfigurationError,
    UnknownFrameError,
    UnknownJointError,
    choices,
)

JOINT, COMPONENT, VELOCITY = 2, 3, 4
"""Kinds of row beside ACCELERATION and WRENCH: an unknown itself, that is the acceleration of a joint or a component
of a contact's wrench; an angular velocity, which does not depend on the unknowns and is only compared."""


class Row(NamedTuple):
    """One row r^T a or r^T f; see ``rows.Rows``. label names it for people.

    link: of a row of kind JOINT the link that the joint moves, of kind COMPONENT the number of the component.
    """

    kind: int
    link: int
    carrier: int = 0
    vector: np.ndarray = np.zeros(6)
    label: str = ""
    point: bool = False
    position: np.ndarray = np.zeros(3)
    rotor: float = 0.0


class Sensor:
    """What every sensor answers for itself.

    Attributes:
        name: of its values.  noise: standard deviation of each value, or of all; 0: exact.
        measured: whether it has values; else zero is expected of each row.
    """

    name: str
    noise: float | Sequence[float]
    measured: ClassVar[bool] = True

    @property
    def contacts(self) -> dict[str, Contact]:
        """Wrenches that act because of it, besides those of the robot's contacts."""
        return {}

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """One row a value, in their order.

        components: contact -> numbers of the components of its wrench.
        """
        raise NotImplementedError

    def noises(self, count: int) -> np.ndarray:
        """Noise of each of its values (count,).

        Raises:
            ConfigurationError: wrong size, negative or not finite.
        """
        noise = np.asarray(self.noise, dtype=float)
        if noise.ndim == 0:
            noise = np.full(count, float(noise))
        if noise.shape != (count,) or not np.isfinite(noise).all() or (noise < 0.0).any():
            raise ConfigurationError(
                f"noise of {self.name} must be one number or {count}, at least 0 (0: exact), "
                f"got {np.asarray(self.noise).tolist()}"
            )
        return noise


@dataclasses.dataclass(frozen=True)
class JointAcceleration(Sensor):
    """Accelerations of joints, rad/s2 or m/s2; noise 0 makes them exact (the paper's case).

    joints: names; None: all in the order of the mechanism (``DynamicsEstimator.joint_names``).
    """

    noise: float | Sequence[float]
    joints: Sequence[str] | None = None
    name: str = "joint_acceleration"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """The unknowns themselves, one a joint."""
        return [Row(JOINT, link) for link in joint_links(mechanism, self.joints)]


@dataclasses.dataclass(frozen=True)
class JointEffort(Sensor):
    """Efforts of motors along their joints' axes, less friction, N m or N: r = S_j on f_j, and the rotors' inertia."""

    noise: float | Sequence[float]
    joints: Sequence[str] | None = None
    name: str = "joint_effort"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """One row a joint."""
        tree, found, robot = mechanism.tree, [], mechanism.robot
        rotors = dict(zip(robot.joint_names, robot.motors.rotor_inertia_kg_m2.tolist()))
        for link in joint_links(mechanism, self.joints):
            vector, name = np.zeros(6), mechanism.names[link - 1]
            start = 0 if tree.kind[link] == PRISMATIC else 3
            vector[start : start + 3] = tree.axis[link]
            found.append(Row(WRENCH, link, link, vector, name, rotor=rotors.get(name, 0.0)))
        return found


@dataclasses.dataclass(frozen=True)
class Accelerometer(Sensor):
    """Proper acceleration of a frame's origin in the frame's axes, (3,) m/s2: what an IMU measures."""

    frame: str
    noise: float | Sequence[float]
    name: str = "accelerometer"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """One row an axis."""
        return _acceleration_rows(mechanism, self.frame)


@dataclasses.dataclass(frozen=True)
class AngularAcceleration(Sensor):
    """Angular acceleration of a frame in its own axes, (3,) rad/s2: a gyroscope, differentiated."""

    frame: str
    noise: float | Sequence[float]
    name: str = "angular_acceleration"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """One row an axis."""
        link, rotation, _ = mechanism.frame(self.frame)
        axes = [np.concatenate([np.zeros(3), axis]) for axis in rotation.T]
        return [Row(ACCELERATION, link, link, r, f"{self.frame} {a}") for r, a in zip(axes, "xyz")]


@dataclasses.dataclass(frozen=True)
class Gyroscope(Sensor):
    """Angular velocity of a frame in its own axes, (3,) rad/s.

    It does not depend on accelerations or wrenches: its residual compares it with q, v and the base's
    angular velocity, so that a gyroscope or an encoder that lies is seen.
    """

    frame: str
    noise: float | Sequence[float]
    name: str = "gyroscope"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """One row an axis."""
        link, rotation, _ = mechanism.frame(self.frame)
        return [Row(VELOCITY, link, link, axis) for axis in rotation.T]


@dataclasses.dataclass(frozen=True)
class ForceTorque(Sensor):
    """Wrench that passes through a joint, (6,) force then moment, N and N m, in the frame's axes.

    The moment is about the frame's origin. direction: ``parent_to_child``, what the link nearer to
    the base does to the other, or ``child_to_parent``.

    Raises (when used): ConfigurationError: another direction; UnknownJointError; UnknownFrameError.
    """

    joint: str
    frame: str
    noise: float | Sequence[float]
    direction: str = "parent_to_child"
    name: str = "force_torque"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """Three rows of force, three of moment."""
        signs = {"parent_to_child": 1.0, "child_to_parent": -1.0}
        if self.direction not in signs:
            raise ConfigurationError(
                f"direction of {self.name} is {self.direction!r}; choose one of {choices(signs)}"
            )
        (link,) = joint_links(mechanism, [self.joint])
        carrier, rotation, origin = mechanism.frame(self.frame)
        sign, found = signs[self.direction], []
        for axis, label in zip(rotation.T, "xyz"):
            vector = sign * np.concatenate([axis, np.zeros(3)])
            found.append(Row(WRENCH, link, carrier, vector, f"{self.frame} f{label}"))
        for axis, label in zip(rotation.T, "xyz"):
            vector = sign * np.concatenate([np.cross(origin, axis), axis])
            found.append(Row(WRENCH, link, carrier, vector, f"{self.frame} n{label}"))
        return found


@dataclasses.dataclass(frozen=True)
class StationaryFrame(Sensor):
    """A frame that does not accelerate, such as a flat foot that stands: six rows, no measurement.

    noise: (m/s2, rad/s2), how much it may. Its proper acceleration is gravity against ``up``. A point or
    a sphere that rolls turns: ``rotation`` False leaves three rows.
    """

    frame: str
    noise: tuple[float, float]
    rotation: bool = True
    name: str = "stationary_frame"
    measured: ClassVar[bool] = False

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """Three rows of the origin's acceleration, three of the angular acceleration."""
        found = _acceleration_rows(mechanism, self.frame)
        if self.rotation:
            found += AngularAcceleration(self.frame, 0.0).rows(mechanism, components)
        return found

    def noises(self, count: int) -> np.ndarray:
        """See ``Sensor.noises``; one for each three rows."""
        if not all(noise >= 0.0 and np.isfinite(noise) for noise in self.noise):
            raise ConfigurationError(f"noise of {self.name} is {self.noise}")
        return np.repeat(self.noise, 3)[:count]


@dataclasses.dataclass(frozen=True)
class ContactWrench(Sensor):
    """Measured components of a contact's wrench, in the contact frame's axes; noise 0: exact.

    One value for each component of that contact (see ``Contact``).
    """

    contact: str
    noise: float | Sequence[float]
    name: str = "contact_wrench"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """The unknowns themselves, one a component."""
        return component_rows(self, components)

    def noises(self, count: int) -> np.ndarray:
        """See ``Sensor.noises``; of six, for force and moment, a point contact uses those of the force."""
        noise, size = np.asarray(self.noise, dtype=float), len(COMPONENTS)
        if noise.shape == (size,) and count < size:
            return dataclasses.replace(self, noise=noise[:count].tolist()).noises(count)
        return super().noises(count)


@dataclasses.dataclass(frozen=True)
class ContactComponent(Sensor):
    """One measured component of a contact's wrench, in the contact frame's axes; ``which``: among those it has."""

    contact: str
    which: int
    noise: float
    name: str = "contact_component"

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """The unknown itself."""
        return component_rows(self, components, self.which)


@dataclasses.dataclass(frozen=True)
class Contact:
    """Where an unknown wrench may act, and which of its six components it has.

    frame: of the robot; components are in its axes, the moment about its origin (or the contact
    point). kind: ``point`` (3 forces), ``surface`` (6), ``load_cells`` (f_z, n_x, n_y) or a tuple of
    indices into (f_x, f_y, f_z, n_x, n_y, n_z). radius_m: of a spherical foot about the frame's
    origin: the contact then lies that far below it, against ``up``.
    """

    frame: str
    kind: str | tuple[int, ...] = "point"
    radius_m: float = 0.0

    @property
    def components(self) -> tuple[int, ...]:
        """Indices into (f_x, f_y, f_z, n_x, n_y, n_z).

        Raises:
            ConfigurationError: a kind that does not exist.
        """
        if isinstance(self.kind, str):
            if self.kind not in CONTACT_KINDS:
                raise ConfigurationError(
                    f"contact {self.frame!r} is of kind {self.kind!r}; "
                    f"choose one of {choices(CONTACT_KINDS)} or a tuple of indices"
                )
            return CONTACT_KINDS[self.kind]
        if (
            not self.kind
            or len(set(self.kind)) != len(self.kind)
            or not set(self.kind) <= set(range(6))
        ):
            raise ConfigurationError(
                f"components of contact {self.frame!r} are {self.kind!r}; "
                "they must be different numbers from 0 to 5"
            )
        return tuple(self.kind)


CONTACT_KINDS = {"point": (0, 1, 2), "surface": (0, 1, 2, 3, 4, 5), "load_cells": (2, 3, 4)}
COMPONENTS = ("fx", "fy", "fz", "nx", "ny", "nz")


@dataclasses.dataclass(frozen=True)
class KnownWrench(Sensor):
    """A wrench on a frame that is known exactly, (6,) force then moment in the frame's axes, N, N m.

    A payload, a rope, a hand: its value is given with the measurements.
    """

    frame: str
    name: str = "known_wrench"
    noise: float = dataclasses.field(default=0.0, init=False)

    @property
    def contacts(self) -> dict[str, Contact]:
        """The wrench that it measures."""
        return {self.name: Contact(self.frame, "surface")}

    def rows(self, mechanism: Mechanism, components: Mapping[str, range]) -> list[Row]:
        """One row a component."""
        return [Row(COMPONENT, k) for k in components[self.name]]


def component_rows(
    sensor: Any, components: Mapping[str, range], which: int | None = None
) -> list[Row]:
    """Rows that measure the wrench of the contact ``sensor.contact``: all its components, or the one numbered ``which``.

    components: of each contact, numbers of its wrench's components among the unknowns.

    Raises:
        UnknownFrameError: no contact of that name.
    """
    if sensor.contact not in components:
        raise UnknownFrameError(
            f"{sensor.name} measures contact {sensor.contact!r}; "
            f"there are {choices(components) or 'none'}"
        )
    numbers = components[sensor.contact]
    return [Row(COMPONENT, k) for k in (numbers if which is None else numbers[which : which + 1])]


def joint_links(mechanism: Mechanism, joints: Sequence[str] | None) -> list[int]:
    """Links that the named joints move; None: all.

    Raises:
        UnknownJointError: a name that the mechanism lacks.
    """
    if joints is None:
        return list(range(1, len(mechanism)))
    unknown = [name for name in joints if name not in mechanism.names]
    if unknown:
        raise UnknownJointError(
            f"joint {unknown[0]!r} is not one of this robot; it has {choices(mechanism.names)}"
        )
    return [1 + mechanism.names.index(name) for name in joints]


def _acceleration_rows(mechanism: Mechanism, frame: str) -> list[Row]:
    link, rotation, origin = mechanism.frame(frame)
    return [
        Row(ACCELERATION, link, link, np.concatenate([axis, np.cross(origin, axis)]),
            f"{frame} {label}", True, origin)
        for axis, label in zip(rotation.T, "xyz")
    ]  # fmt: skip
