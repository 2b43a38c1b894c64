"""What a sensor tells of the dynamics, as rows: exact (noise 0), or measured with a known noise.

Each class is frozen and knows its ``name``, the number of its ``values`` and its rows in the frame of the
link that carries it. ``DynamicsEstimator`` turns a list of them into one least-squares problem.
Source: Nori (2017), section III; the rows in the common frame are in docs/theory.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_id_controller.estimation.rows import ACCELERATION, WRENCH
from contact_id_controller.estimation.tree import PRISMATIC, Mechanism
from contact_id_controller.exceptions import ConfigurationError, UnknownJointError, choices


class Row(NamedTuple):
    """One row r^T a or r^T f; see ``rows.Rows``. label names it for people."""

    kind: int
    link: int
    carrier: int
    vector: np.ndarray
    label: str
    point: bool = False
    position: np.ndarray = np.zeros(3)


@dataclasses.dataclass(frozen=True)
class JointAcceleration:
    """Accelerations of joints, rad/s2 or m/s2; noise 0 makes them exact (the paper's case).

    joints: names; None: all in the order of the mechanism (``DynamicsEstimator.joint_names``).
    """

    noise: float | Sequence[float]
    joints: Sequence[str] | None = None
    name: str = "joint_acceleration"


@dataclasses.dataclass(frozen=True)
class JointEffort:
    """Efforts that joints transmit along their axes, N m or N: r = S_j on f_j."""

    noise: float | Sequence[float]
    joints: Sequence[str] | None = None
    name: str = "joint_effort"

    def rows(self, mechanism: Mechanism) -> list[Row]:
        """One row a joint."""
        tree, found = mechanism.tree, []
        for link in joint_links(mechanism, self.joints):
            vector = np.zeros(6)
            start = 0 if tree.kind[link] == PRISMATIC else 3
            vector[start : start + 3] = tree.axis[link]
            found.append(Row(WRENCH, link, link, vector, mechanism.names[link - 1]))
        return found


@dataclasses.dataclass(frozen=True)
class Accelerometer:
    """Proper acceleration of a frame's origin in the frame's axes, (3,) m/s2: what an IMU measures."""

    frame: str
    noise: float | Sequence[float]
    name: str = "accelerometer"

    def rows(self, mechanism: Mechanism) -> list[Row]:
        """One row an axis."""
        return _acceleration_rows(mechanism, self.frame)


@dataclasses.dataclass(frozen=True)
class AngularAcceleration:
    """Angular acceleration of a frame in its own axes, (3,) rad/s2: a gyroscope, differentiated."""

    frame: str
    noise: float | Sequence[float]
    name: str = "angular_acceleration"

    def rows(self, mechanism: Mechanism) -> list[Row]:
        """One row an axis."""
        link, rotation, _ = mechanism.frame(self.frame)
        axes = [np.concatenate([np.zeros(3), axis]) for axis in rotation.T]
        return [Row(ACCELERATION, link, link, r, f"{self.frame} {a}") for r, a in zip(axes, "xyz")]


@dataclasses.dataclass(frozen=True)
class Gyroscope:
    """Angular velocity of a frame in its own axes, (3,) rad/s.

    It says nothing of accelerations or wrenches: its residual compares it with q, v and the base's
    angular velocity, so that a gyroscope or an encoder that lies is seen.
    """

    frame: str
    noise: float | Sequence[float]
    name: str = "gyroscope"


@dataclasses.dataclass(frozen=True)
class ForceTorque:
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

    def rows(self, mechanism: Mechanism) -> list[Row]:
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
class StationaryFrame:
    """A frame that does not accelerate, such as a flat foot that stands: six rows, no measurement.

    noise: (m/s2, rad/s2), how much it may. Its proper acceleration is gravity against ``up``. A point or
    a sphere that rolls turns: ``rotation`` False leaves three rows.
    """

    frame: str
    noise: tuple[float, float]
    rotation: bool = True
    name: str = "stationary_frame"

    def rows(self, mechanism: Mechanism) -> list[Row]:
        """Three rows of the origin's acceleration, three of the angular acceleration."""
        found = _acceleration_rows(mechanism, self.frame)
        if self.rotation:
            found += AngularAcceleration(self.frame, 0.0).rows(mechanism)
        return found


@dataclasses.dataclass(frozen=True)
class ContactWrench:
    """Measured components of a contact's wrench, in the contact frame's axes; noise 0: exact.

    One value for each component of that contact (see ``Contact``).
    """

    contact: str
    noise: float | Sequence[float]
    name: str = "contact_wrench"


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
class KnownWrench:
    """A wrench on a frame that is known exactly, (6,) force then moment in the frame's axes, N, N m.

    A payload, a rope, a hand: its value is given with the measurements.
    """

    frame: str
    name: str = "known_wrench"


Sensor = (
    JointAcceleration | JointEffort | Accelerometer | AngularAcceleration | Gyroscope | ForceTorque
    | StationaryFrame | ContactWrench | KnownWrench
)  # fmt: skip


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


def _acceleration_rows(mechanism, frame):
    link, rotation, origin = mechanism.frame(frame)
    return [
        Row(ACCELERATION, link, link, np.concatenate([axis, np.cross(origin, axis)]),
            f"{frame} {label}", True, origin)
        for axis, label in zip(rotation.T, "xyz")
    ]  # fmt: skip
