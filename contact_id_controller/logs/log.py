"""A robot's measurements as arrays: joints, IMU, feet, base and commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from contact_id_controller.exceptions import RecordError, UnknownJointError, choices

Array = NDArray[np.float64]
JOINT_CHANNELS = ("position", "velocity", "acceleration", "effort", "current")
COMMANDED = ("position", "velocity", "effort", "current")

_Part = TypeVar("_Part", "Imu", "Commands", "BasePose")

SLOWEST_S = 0.5
"""Largest usual time between two rows: a motion needs more rows, and stamps in ms are 1 to 20 apart."""


@dataclasses.dataclass(frozen=True)
class Imu:
    """An IMU with stamps of its own.

    Attributes:
        time: s, (m,), on the clock of the log.
        angular_velocity: rad/s, (m, 3), in the sensor's frame.
        acceleration: m/s², (m, 3), specific force (at rest it points up), in the sensor's frame.
        orientation: quaternion xyzw (m, 4) of the sensor in the world; None: not in the log.
        frame: name of the sensor's frame, where the log has one; otherwise empty.
    """

    time: Array
    angular_velocity: Array
    acceleration: Array
    orientation: Array | None = None
    frame: str = ""


@dataclasses.dataclass(frozen=True)
class Commands:
    """Commands to the joints at the times of the log, (n, joints) each; None: not in the log."""

    position: Array | None = None
    velocity: Array | None = None
    effort: Array | None = None
    current: Array | None = None


@dataclasses.dataclass(frozen=True)
class BasePose:
    """The base's pose as measured from outside, for evaluation.

    Attributes:
        position: m, (n, 3), world.  orientation: quaternion xyzw (n, 4) of the base in the world, or None.
    """

    position: Array
    orientation: Array | None = None


@dataclasses.dataclass(frozen=True)
class Log:
    """Measurements of one robot at n times, unfiltered; missing values are NaN.

    Attributes:
        time: s, (n,), as stamped: it may repeat, jump or have gaps.
        joints: names, in the order of the columns.
        position, velocity, acceleration: rad, rad/s, rad/s² (m for prismatic joints), (n, joints); or None.
        effort: N·m (N), (n, joints), measured or estimated by the drives; or None.
        current: A, (n, joints), of the motors; or None.
        imu: see `Imu`; or None.
        feet: name -> wrench (n, 6), force then moment, force (n, 3), or normal force alone (n, 1); N, N·m,
            in the sensor's frame.
        commands: see `Commands`.
        base: see `BasePose`; or None.
        arrival: s, (n,), when the joints' messages were recorded, on the recorder's clock; or None.
        start: s, subtracted from every stamp.
        source: the file.

    Raises:
        RecordError: arrays of other shapes than these; no joints or no rows.
    """

    time: Array
    joints: tuple[str, ...]
    position: Array | None = None
    velocity: Array | None = None
    acceleration: Array | None = None
    effort: Array | None = None
    current: Array | None = None
    imu: Imu | None = None
    feet: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    commands: Commands = dataclasses.field(default_factory=Commands)
    base: BasePose | None = None
    arrival: Array | None = None
    start: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        n, na = len(self.time), len(self.joints)
        if n < 2:
            raise RecordError(f"the log {self.source!r} has {n} rows, must have 2 or more")
        for name in JOINT_CHANNELS:
            _check(name, getattr(self, name), (n, na))
        for name in COMMANDED:
            _check(f"commanded {name}", getattr(self.commands, name), (n, na))
        for name, values in self.feet.items():
            if values.ndim != 2 or values.shape[0] != n or values.shape[1] not in (1, 3, 6):
                raise RecordError(
                    f"foot {name!r} has shape {values.shape}, must have ({n}, 6), ({n}, 3) or ({n}, 1)"
                )
        if self.imu is not None:
            m = len(self.imu.time)
            _check("imu.angular_velocity", self.imu.angular_velocity, (m, 3))
            _check("imu.acceleration", self.imu.acceleration, (m, 3))
            _check("imu.orientation", self.imu.orientation, (m, 4))
        if self.base is not None:
            _check("base.position", self.base.position, (n, 3))
            _check("base.orientation", self.base.orientation, (n, 4))

    @property
    def period(self) -> float:
        """The usual time between two rows, s: the median of the positive differences."""
        steps = np.diff(self.time)
        steps = steps[steps > 0.0]
        return float(np.median(steps)) if steps.size else float("nan")

    def rows(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Log:
        """The log at these rows; an IMU with stamps of its own keeps all its samples."""
        changed: dict[str, object] = {
            name: None if values is None else values[which]
            for name, values in (
                (name, getattr(self, name)) for name in (*JOINT_CHANNELS, "arrival")
            )
        }
        return dataclasses.replace(
            self,
            time=self.time[which],
            imu=_rows(self.imu, which) if self.imu is not None and self._shares_time else self.imu,
            feet={name: values[which] for name, values in self.feet.items()},
            commands=_rows(self.commands, which),
            base=None if self.base is None else _rows(self.base, which),
            **changed,  # type: ignore[arg-type]
        )

    @property
    def _shares_time(self) -> bool:
        return self.imu is not None and np.array_equal(self.imu.time, self.time)


def common_joints(joints: Sequence[str], robot: Iterable[str], urdf: str) -> tuple[str, ...]:
    """The joints of a log that a robot has, too, in the log's order; the log may have others, as of a gripper.

    Raises:
        UnknownJointError: there are none.
    """
    robot = tuple(robot)
    common = tuple(name for name in joints if name in robot)
    if not common:
        raise UnknownJointError(
            f"no joint of the log ({', '.join(joints)}) is in {urdf!r}, which has {choices(robot)}; "
            "name the log's columns with --map"
        )
    return common


def _rows(part: _Part, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> _Part:
    values = {each.name: getattr(part, each.name) for each in dataclasses.fields(part)}
    taken: dict[str, Any] = {
        name: value[which] for name, value in values.items() if isinstance(value, np.ndarray)
    }
    return dataclasses.replace(part, **taken)


def _check(name: str, values: Array | None, shape: tuple[int, int]) -> None:
    if values is not None and values.shape != shape:
        raise RecordError(f"{name} of the log has shape {values.shape}, must have {shape}")
