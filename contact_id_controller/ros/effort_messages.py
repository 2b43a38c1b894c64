"""Effort trajectories as serialised trajectory_msgs/JointTrajectory, and back."""

from __future__ import annotations

import array
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from contact_id_controller.exceptions import StateError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.ros.command_messages import CommandMessages, Forwarder
from contact_id_controller.ros.packed import (
    Cursor,
    Packable,
    PackedMessage,
    PackedReader,
    markers,
    stamp_ns,
    word,
    words_of,
)

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel

_DURATION = struct.Struct("<iI")
_PARTS = ("positions", "velocities", "accelerations", "effort")
_MARKED_S = 1_515_870_810
_NANO = 1_000_000_000


class EffortMessage:
    """The message of trajectories with the same number of points, made once and refilled."""

    def __init__(self, joint_names: Sequence[str], points: int) -> None:
        count = len(joint_names)
        message = JointTrajectory(joint_names=list(joint_names))
        marked = [markers(count, k) for k in range(len(_PARTS) * points)]
        for k in range(points):
            rows = marked[len(_PARTS) * k : len(_PARTS) * (k + 1)]
            arrays = {part: array.array("d", row) for part, row in zip(_PARTS, rows)}
            point = JointTrajectoryPoint(**arrays)
            point.time_from_start.sec, point.time_from_start.nanosec = _MARKED_S, k
            message.points.append(point)
        self._message = PackedMessage(message)
        self._words = self._message.words
        places = [word(self._message.place(row.tobytes())) for row in marked]
        self._index = _index(places, points, range(count))
        times = [self._message.place(_DURATION.pack(_MARKED_S, k)) for k in range(points)]
        self._durations = np.array([word(at) for at in times])

    def fill(self, trajectory: EffortTrajectory) -> None:
        """Write a trajectory into the message."""
        self._message.set_stamp(round(trajectory.start_s * _NANO))
        self._words[self._index] = trajectory.values
        self._words[self._durations] = _durations(trajectory.times_s)

    def publish(self, publisher: Any) -> None:
        """Publish the message with its present numbers."""
        self._message.publish(publisher)


class _Layout:
    """Offsets of the numbers in the messages of one sender; all other bytes must stay the same."""

    def __init__(self, data: bytes, places: list[tuple[int, int]], order: list[int]) -> None:
        width = len(_PARTS) + 1
        points = len(places) // width
        at = [word(place) for place, _ in places]
        self.durations = np.array(at[len(_PARTS) :: width])
        rows = [place for k, place in enumerate(at) if k % width < len(_PARTS)]
        self.index = _index(rows, points, order)
        self._size = len(data)
        words = words_of(data).view(np.uint64)
        other = np.ones(len(words), dtype=bool)
        other[0] = False  # the stamp
        other[self.index] = other[self.durations] = False
        self._other = np.flatnonzero(other)
        self._same, self._head = words[self._other], data[:4]
        self._tail = data[4 + 8 * len(words) :]

    def fits(self, data: bytes) -> bool:
        """Whether a message differs from the first one in stamp, times and numbers only."""
        if len(data) != self._size or data[:4] != self._head:
            return False
        if self._tail and not data.endswith(self._tail):
            return False
        return bool((words_of(data).view(np.uint64)[self._other] == self._same).all())


class EffortReader:
    """Reads effort trajectories from serialised messages.

    Args:
        joint_names: order of the trajectories' columns; the messages may have another one.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._names = list(joint_names)
        self._layout: _Layout | None = None

    def read(self, data: bytes) -> EffortTrajectory:
        """The trajectory of a message; its start is 0 if it starts at once.

        Raises:
            StateError: no such message, other joints, points without motion or effort, numbers that
                are not finite, or times that do not increase from 0.
        """
        layout = self._layout
        if layout is None or not layout.fits(data):
            layout = self._look_at(data)
        words = words_of(data)
        trajectory = EffortTrajectory(len(layout.durations), len(self._names))
        words.take(layout.index, out=trajectory.values, mode="clip")  # other modes copy first
        pairs = words.take(layout.durations).view(np.int32)
        times = trajectory.times_s
        times[:] = pairs[0::2] + pairs[1::2] / _NANO
        if times[0] != 0.0 or not (times[1:] > times[:-1]).all():
            raise StateError("times of the points must increase, from 0 on")
        if not np.isfinite(trajectory.values).all():
            raise StateError("a number of the trajectory is not finite")
        trajectory.start_s = stamp_ns(data) / _NANO
        return trajectory

    def _look_at(self, data: bytes) -> _Layout:
        """Find the layout of a message, check it, and keep it for the next ones."""
        self._layout = None
        reader = PackedReader(_JOINT_TRAJECTORY)
        message = reader.message(data)
        places = reader.places
        if places is None:
            raise StateError("the bytes of a trajectory are not plain little-endian CDR")
        order = self._order(list(message.joint_names))
        width, parts = len(self._names), len(_PARTS)
        sizes = [count for k, (_, count) in enumerate(places) if k % (parts + 1) < parts]
        if not sizes or any(size != width for size in sizes):
            raise StateError(
                f"each point must have {width} positions, velocities, accelerations and efforts"
            )
        self._layout = _Layout(data, places, order)
        return self._layout

    def _order(self, names: list[str]) -> list[int]:
        """Index in the message of each joint of ``joint_names``."""
        if sorted(names) != sorted(self._names):
            raise StateError(f"the trajectory has joints {names}, must have {self._names}")
        return [names.index(name) for name in self._names]


class _Forwarder(Forwarder):
    """Forwards set-points unchanged, and efforts within the limits."""

    def __init__(self, joints: Sequence[str]) -> None:
        self._joints, self._reader = list(joints), EffortReader(joints)
        self._read: EffortTrajectory | None = None
        self._forwarded: EffortTrajectory | None = None
        self._messages: dict[int, EffortMessage] = {}
        self._rest = EffortTrajectory(2, len(self._joints))

    def read(self, data: bytes) -> np.ndarray:
        """The efforts (p, n) of a trajectory; raises as ``EffortReader.read``."""
        self._read = self._reader.read(data)
        return self._read.efforts

    def forward(self, publisher: Any, efforts: np.ndarray) -> None:
        command = self._read
        assert command is not None, "it was read before"
        self._forwarded = command
        command.efforts[:] = efforts
        self._publish(publisher, command)

    def stop(self, publisher: Any, torques: np.ndarray, position: np.ndarray) -> None:
        """Command rest at the measured positions, so that the local feedback only damps.

        A joint that was never measured rests at its last set-point; if there is none either, nothing is sent.
        """
        if self._forwarded is not None:
            position = np.where(np.isfinite(position), position, self._forwarded.positions[0])
        if np.isfinite(position).all():
            self._rest.rest(0.0, position, torques)
            self._publish(publisher, self._rest)

    def _publish(self, publisher: Any, trajectory: EffortTrajectory) -> None:
        points = len(trajectory.times_s)
        if points not in self._messages:
            self._messages[points] = EffortMessage(self._joints, points)
        self._messages[points].fill(trajectory)
        self._messages[points].publish(publisher)


class TrajectoryMessages(CommandMessages):
    """See `CommandMessages`."""

    def writer(self, robot: RobotModel, command: EffortTrajectory) -> EffortMessage:
        """A message of trajectories with as many points as ``command``."""
        return EffortMessage(robot.joint_names, len(command.times_s))

    def reader(self, robot: RobotModel) -> Callable[[bytes], EffortTrajectory]:
        return EffortReader(robot.joint_names).read

    def forwarder(self, joints: Sequence[str]) -> Forwarder:
        return _Forwarder(joints)


def _index(places: Sequence[int], points: int, order: Sequence[int]) -> np.ndarray:
    """Indices (points, 4, joints) of all doubles in the words, from those of each array's first.

    order (joints,): index of each joint in the message's arrays.
    """
    first = np.array(places, dtype=np.int64).reshape(points, len(_PARTS), 1)
    return first + np.array(order)


def _durations(times_s: np.ndarray) -> np.ndarray:
    """Times (p,), s, as doubles with the bytes of durations."""
    ns = np.rint(times_s * _NANO).astype(np.int64)
    pairs = np.empty((len(ns), 2), dtype=np.int32)
    np.divmod(ns, _NANO, out=(pairs[:, 0], pairs[:, 1]), casting="unsafe")
    return pairs.view(np.float64)[:, 0]


def _fields(cursor: Cursor) -> list[tuple[int, int]]:
    """Step over a serialised trajectory; return (offset, count) of its points' arrays and times."""
    cursor.text()
    for _ in range(cursor.names()):
        cursor.text()
    places = []
    for _ in range(cursor.count()):
        places += [cursor.doubles(cursor.count()) for _ in _PARTS]
        places.append(cursor.raw(4, 8))
    return places


def _values(message: JointTrajectory) -> list[np.ndarray]:
    """The arrays of the deserialised message; a time_from_start as the double with its bytes."""
    rows = []
    for point in message.points:
        rows += [np.array(getattr(point, part), dtype=float) for part in _PARTS]
        time = point.time_from_start  # as it is: it may be none, with more than a second of ns
        rows.append(np.frombuffer(_DURATION.pack(time.sec, time.nanosec)))
    return rows


_JOINT_TRAJECTORY = Packable(JointTrajectory, _fields, None, _values)
