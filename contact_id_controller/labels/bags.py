"""Motions in rosbag2 folders, .mcap and .db3 files: joint states, and odometry between two of its messages.

Needs no ROS: ``rosbags`` reads the messages.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from contact_id_controller.exceptions import ContactIdError, RecordError, choices
from contact_id_controller.labels.sources import PIECE, BagReading, reason
from contact_id_controller.logs.bag_files import ODOMETRY, STATES, find_bag, namespace_of

JOINT_STATE, BASE = "sensor_msgs/msg/JointState", "nav_msgs/msg/Odometry"
BASE_NUMBERS = 13
"""Position, quaternion xyzw, linear and angular velocity in the child frame."""


class _State(NamedTuple):
    time_s: float
    position: np.ndarray
    velocity: np.ndarray


class BagMotion:
    """States in a bag, a row for each JointState, with ``v`` if these carry velocities.

    The base of a floating robot is interpolated between the odometry messages around the state's stamp; without them,
    or with more than ``longest_gap_s`` between them, its configuration is NaN.

    Attributes:
        unread: number of messages so far that do not fit their type, or lack a joint; they are skipped.

    Raises:
        RecordError: no bag, one that cannot be read, or one without joint states or odometry.
    """

    def __init__(self, path: Path, how: BagReading) -> None:
        self.path, self._how, self.unread = find_bag(path), how, 0
        self._types = get_typestore(Stores.ROS2_KILTED)
        wanted = {STATES: JOINT_STATE}
        if how.robot.floating_base:
            wanted[ODOMETRY] = BASE
        with self._reading() as reader:
            kinds = {each.topic: each.msgtype for each in reader.connections}
            prefix = namespace_of(kinds, how.namespace)
            self._topics = {prefix + name: kind for name, kind in wanted.items()}
            self.frames = sum(
                each.msgcount for each in reader.connections if each.topic == prefix + STATES
            )
        for topic, kind in self._topics.items():
            if kinds.get(topic) != kind:
                raise RecordError(
                    f"the bag {str(path)!r} has no topic {topic!r} of type {kind}; it has "
                    f"{choices(kinds) or 'nothing'}"
                )
        if not self.frames:
            raise RecordError(f"the motion {str(path)!r} has no frames")
        self._names: list[str] = []
        self._columns = np.zeros(0, np.intp)

    def pieces(self) -> Iterator[dict[str, np.ndarray]]:
        """As ``sources.MotionFile``."""
        self.unread = 0
        states = iter(self._based() if self._how.robot.floating_base else self._unbased())
        rows: list[tuple[_State, np.ndarray]] = []
        moving: bool | None = None
        for row in states:
            if moving is None:
                moving = bool(row[0].velocity.size)
            rows.append(row)
            if len(rows) == PIECE:
                yield self._piece(rows, moving)
                rows = []
        if rows:
            yield self._piece(rows, bool(moving))

    def _messages(self) -> Iterator[tuple[bool, Any]]:
        """Yield (whether it is a JointState, message) in the order of the bag."""
        with self._reading() as reader:
            wanted = [each for each in reader.connections if each.topic in self._topics]
            for connection, _, data in reader.messages(wanted):
                try:
                    message = self._types.deserialize_cdr(data, connection.msgtype)
                except Exception:  # noqa: BLE001  bytes of any kind; generated code reads them
                    self.unread += 1
                    continue
                yield connection.msgtype == JOINT_STATE, message

    def _unbased(self) -> Iterator[tuple[_State, np.ndarray]]:
        none = np.zeros(0)
        for _, message in self._messages():
            state = self._state(message)
            if state is not None:
                yield state, none

    def _based(self) -> Iterator[tuple[_State, np.ndarray]]:
        """Yield states with the base at their time; each is held until an odometry message at or after it is read."""
        unknown = np.full(BASE_NUMBERS, np.nan)
        waiting: deque[_State] = deque()
        last: tuple[float, np.ndarray] | None = None
        for is_state, message in self._messages():
            if is_state:
                state = self._state(message)
                if state is not None:
                    waiting.append(state)
                if len(waiting) > PIECE:
                    yield waiting.popleft(), unknown
                continue
            new = _seconds(message), _base(message)
            if last is not None and not new[0] > last[0]:
                continue
            while waiting and waiting[0].time_s <= new[0]:
                state = waiting.popleft()
                yield state, self._base_at(state.time_s, last, new, unknown)
            last = new
        while waiting:
            yield waiting.popleft(), unknown

    def _base_at(self, time_s: float, last: Any, new: Any, unknown: np.ndarray) -> np.ndarray:
        if time_s == new[0]:
            return new[1]
        if last is None or time_s < last[0] or new[0] - last[0] > self._how.longest_gap_s:
            return unknown
        return _between(last[1], new[1], (time_s - last[0]) / (new[0] - last[0]))

    def _state(self, message: Any) -> _State | None:
        """Time, positions and velocities of a JointState in the robot's order; None, and counted, if unusable."""
        if message.name != self._names:
            column = {name: k for k, name in enumerate(message.name)}
            missing = [name for name in self._how.robot.joint_names if name not in column]
            if missing:
                self.unread += 1
                return None
            self._columns = np.array(
                [column[name] for name in self._how.robot.joint_names], np.intp
            )
            self._names = list(message.name)
        position, velocity, count = message.position, message.velocity, len(self._names)
        if len(position) != count or len(velocity) not in (0, count):
            self.unread += 1
            return None
        return _State(
            _seconds(message),
            position[self._columns],
            velocity[self._columns] if len(velocity) else velocity[:0],
        )

    def _piece(self, rows: list[tuple[_State, np.ndarray]], moving: bool) -> dict[str, np.ndarray]:
        """Arrays of the rows; with ``v`` if the first message of the bag had velocities."""
        robot = self._how.robot
        q = np.tile(robot.neutral(), (len(rows), 1))
        robot.put_joints(q, [state.position for state, _ in rows])
        bases = np.array([base for _, base in rows])
        if robot.floating_base:
            q[:, :7] = bases[:, :7]
        piece = {"time_s": np.array([state.time_s for state, _ in rows]), "q": q}
        if moving:
            v, none = np.zeros((len(rows), robot.nv)), np.full(robot.na, np.nan)
            v[:, robot.actuated] = [
                state.velocity if state.velocity.size else none for state, _ in rows
            ]
            if robot.floating_base:
                v[:, :6] = bases[:, 7:]
            piece["v"] = v
        return piece

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Reader]:
        """Open the bag; turn any error of its readers into a RecordError of one line."""
        try:
            with Reader(self.path) as reader:
                yield reader
        except ContactIdError:
            raise
        except Exception as error:
            raise RecordError(f"cannot read the bag {str(self.path)!r}: {reason(error)}") from error


def _seconds(message: Any) -> float:
    stamp = message.header.stamp
    return stamp.sec + stamp.nanosec * 1e-9


def _base(message: Any) -> np.ndarray:
    pose, twist = message.pose.pose, message.twist.twist
    p, o, u, w = pose.position, pose.orientation, twist.linear, twist.angular
    return np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w, u.x, u.y, u.z, w.x, w.y, w.z])


def _between(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """Interpolate the base (13,): linearly, its quaternion along the shorter arc."""
    base = (1.0 - share) * first + share * second
    a, b = (pin.Quaternion(each[3:7]).normalized() for each in (first, second))
    base[3:7] = a.slerp(share, b).coeffs()
    return base
