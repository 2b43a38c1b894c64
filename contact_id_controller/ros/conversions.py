"""Converts ROS messages to the arrays and plans of this package.

Readers of measured states return numbers, or a `Refusal`: that is an ordinary event in the control loop. The values
are checked in `safety.states`. Plans are rare; their readers raise TrajectoryError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contact_id_controller.exceptions import StateError, TrajectoryError
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.ros import packed, plan_bytes
from contact_id_controller.ros.packed import stamp_ns
from contact_id_controller.ros.samples import NumbersReader
from contact_id_controller.safety.odometry_jump import BASE_SIZE
from contact_id_controller.safety.states import NANO, JointReading, Refusal

_new: Any = tuple.__new__  # of a NamedTuple, without its class's own Python function


def seconds(stamp: Any) -> float:
    """A builtin_interfaces/Time or Duration in s (rounded to 0.3 us for times of this century)."""
    return stamp.sec + stamp.nanosec * 1e-9


class JointStateReader:
    """Reads sensor_msgs/JointState, or its bytes, by joint name: any order, with extra joints.

    After a `read` that returned a reading, `position`, `velocity` (na,), rad, rad/s, and `given`, efforts (na,), N·m,
    or None, hold it in the order of `joint_names`; the next one overwrites them. The same after a `take` that returned
    a stamp, ns: it reads bytes of the same layout as before, and returns None for others.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        self._numbers = np.zeros((3, len(self.joint_names)))
        self.position, self.velocity, self._efforts = self._numbers
        self._names: list[str] | None = None
        self._columns = np.zeros(0, dtype=np.intp)
        self._has_efforts = False
        self.given: np.ndarray | None = None
        self._packed = NumbersReader(packed.JOINT_STATE)
        self.take = self._packed.take

    def read(self, message: Any) -> JointReading | Refusal:
        """Positions and velocities with their stamp, or why the message is refused."""
        if isinstance(message, bytes):
            time_ns = self.take(message)
            if time_ns is not None:
                return _new(JointReading, (time_ns, self.position, self.velocity, self.given))
            try:
                message = self._packed.message(message)
            except StateError as error:
                return Refusal("joint_state_bytes", str(error))
        if message.name != self._names:
            refusal = self._map(message.name)
            if refusal is not None:
                self._packed.forget()
                return refusal
        # The fields are array.array('d'): a view instead of a copy element by element.
        parts = [np.frombuffer(part) for part in (message.position, message.velocity)]
        count, efforts = len(message.name), np.frombuffer(message.effort)
        if any(part.size != count for part in parts):
            self._packed.forget()
            return Refusal(
                "joint_state_size",
                f"joint state names {count} joints but has {parts[0].size} positions and "
                f"{parts[1].size} velocities",
            )
        self._has_efforts = efforts.size == count
        if self._has_efforts:
            parts.append(efforts)
        for row, part in zip(self._numbers, parts):
            row[:] = part[self._columns]
        places = self._packed.places
        if places is not None:
            first = np.array([[packed.word(at)] for at, _ in places[: len(parts)]])
            index = (first + self._columns).ravel()
            self._packed.take_into(index, self._numbers[: len(parts)].reshape(-1))
        return self._reading(packed.stamp_ns(message))

    def _reading(self, time_ns: int) -> JointReading:
        self.given = self._efforts if self._has_efforts else None
        return JointReading(time_ns, self.position, self.velocity, self.given)

    def _map(self, names: list[str]) -> Refusal | None:
        """Map joint names to the robot's order; a Refusal if one is missing or comes twice."""
        column = {name: k for k, name in enumerate(names)}
        missing = [name for name in self.joint_names if name not in column]
        if missing:
            return Refusal("joint_missing", f"joint state lacks {', '.join(missing)}")
        if len(column) != len(names):
            return Refusal("joint_state_size", "joint state names a joint twice")
        self._columns = np.array([column[name] for name in self.joint_names], dtype=np.intp)
        self._names = list(names)
        self._packed.forget()
        return None


class PositionsByName:
    """Reads positions of named joints from a serialised sensor_msgs/JointState.

    Args:
        names: of n joints.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._values, self._room = np.full(len(self._names), np.nan), np.zeros(0)
        self._known = np.zeros(0, dtype=np.intp)
        self._packed = NumbersReader(packed.JOINT_STATE)

    def read(self, data: bytes) -> np.ndarray:
        """Positions (n,), NaN where a name or its position is missing; the next call overwrites it.

        Raises:
            StateError: these bytes are no such message.
        """
        values = self._values
        if self._packed.take(data) is None:
            message: Any = self._packed.message(data)
            position = np.frombuffer(message.position)
            column = {name: k for k, name in enumerate(message.name)}
            columns = np.array([column.get(name, position.size) for name in self._names], dtype=int)
            self._known = np.flatnonzero(columns < position.size)
            columns, values[:] = columns[self._known], np.nan
            self._room, words = position[columns], self._packed.index()
            if len(words):
                self._packed.take_into(words[columns], self._room)
        values[self._known] = self._room
        return values


CONFIRMATIONS = 10
"""Messages of odometry in a row in other frames after which the frames before were wrong, if none came in those for
SILENT_NS: for planners and pages, which nobody activates anew."""

SILENT_NS = 1_000_000_000
"""Least difference, by the stamps, from the last message in the frames before."""


class OdometryReader:
    """Reads nav_msgs/Odometry of a floating base, or its bytes.

    `world_frame`: frame of the last message. Messages in frames other than those of the first one, as from another
    publisher, are refused until `forget_frames`.

    Args:
        confirmations: so many messages in a row in other frames show that the first one was wrong; 0: none do, as where
            the robot is commanded by them.
    """

    def __init__(self, confirmations: int = 0) -> None:
        self.world_frame = "world"
        self._frames: tuple[str, str] | None = None
        self._confirmations, self._others, self._agreeing = confirmations, ("", ""), 0
        self._known_ns = 0
        self._numbers = np.zeros(BASE_SIZE + 6)
        self._base, self._variances = self._numbers[:BASE_SIZE], self._numbers[BASE_SIZE:]
        self._packed = NumbersReader(packed.ODOMETRY)

    def read(self, message: Any) -> tuple[np.ndarray, int, np.ndarray]:
        """Base (13,), stamp, ns, and variances of the twist (6,); the next call overwrites the arrays.

        Position, m, and quaternion xyzw in the world frame, linear, m/s, then angular velocity,
        rad/s, in the base frame (the message's child frame).

        Raises:
            StateError: bytes that are no such message, or odometry in other frames than before.
        """
        if isinstance(message, bytes):
            time_ns = self._packed.take(message)
            if time_ns is not None:
                self._known_ns = time_ns
                return self._base, time_ns, self._variances
            message = self._packed.message(message)
            words = self._packed.index()
            # Of the covariance of the twist the diagonal alone.
            wanted = np.concatenate([words[:BASE_SIZE], words[BASE_SIZE::7]])
            self._packed.take_into(wanted, self._numbers)
        time_ns = packed.stamp_ns(message)
        self._check_frames(message.header.frame_id, message.child_frame_id, time_ns)
        pose, twist = message.pose.pose, message.twist.twist
        p, o, u, w = pose.position, pose.orientation, twist.linear, twist.angular
        self._base[:] = p.x, p.y, p.z, o.x, o.y, o.z, o.w, u.x, u.y, u.z, w.x, w.y, w.z
        self._variances[:] = message.twist.covariance[::7]
        self.world_frame = message.header.frame_id or "world"
        return self._base, time_ns, self._variances

    def forget_frames(self) -> None:
        """Accept odometry in any frames next."""
        self._frames = None

    def _check_frames(self, frame: str, child: str, time_ns: int) -> None:
        """Refuse other frames than before; only called for a new layout of bytes, as other frames change it."""
        frames = frame, child
        known = self._frames or frames
        if frames != known:
            self._agreeing = self._agreeing + 1 if frames == self._others else 1
            self._others = frames
            confirmed = 0 < self._confirmations <= self._agreeing
            if not (confirmed and abs(time_ns - self._known_ns) > SILENT_NS):
                self._packed.forget()
                raise StateError(
                    f"odometry is of frame {child!r} in {frame!r}, that before was of "
                    f"{known[1]!r} in {known[0]!r}: does another node publish it, too?"
                )
        self._frames, self._agreeing, self._known_ns = frames, 0, time_ns


def joint_trajectory(message: Any, allow_moving_end: bool = False) -> JointTrajectory:
    """Planned joint motion from trajectory_msgs/JointTrajectory, or its bytes.

    Raises:
        TrajectoryError: see `JointTrajectory`; also points with different fields, or too many points.
        StateError: bytes that are no such message.
    """
    if isinstance(message, bytes):
        names, start_s, times_s, fields = plan_bytes.read_points(message, plan_bytes.JOINT_FIELDS)
        place, speed, bend = (field if field.size else None for field in fields[:3])
        return JointTrajectory(names, times_s, place, speed, bend, start_s, allow_moving_end)
    points = message.points
    plan_bytes.refuse_count(len(points))
    return JointTrajectory(
        names=list(message.joint_names),
        times_s=[seconds(point.time_from_start) for point in points],
        positions=_rows("positions", [point.positions for point in points]),
        velocities=_rows("velocities", [point.velocities for point in points]),
        accelerations=_rows("accelerations", [point.accelerations for point in points]),
        start_s=stamp_ns(message) * NANO or None,  # stamp 0: now
        allow_moving_end=allow_moving_end,
    )


def base_trajectory(message: Any) -> BaseTrajectory:
    """Planned base motion from trajectory_msgs/MultiDOFJointTrajectory or its bytes: first joint, world frame.

    Raises:
        TrajectoryError: see `BaseTrajectory`; also a point without transform or velocity, or too many points.
        StateError: bytes that are no such message.
    """
    if isinstance(message, bytes):
        _, start_s, times_s, fields = plan_bytes.read_points(message, plan_bytes.BASE_FIELDS)
        poses, twists = fields[:2]
        if len(times_s) and not (poses.size and twists.size):
            raise TrajectoryError("points of the base trajectory lack transform or velocity")
        if not len(times_s):
            poses = twists = np.zeros((0, 7))
        return BaseTrajectory(
            times_s, poses[:, :3], poses[:, 3:7], twists[:, :3], twists[:, 3:6], start_s
        )
    points = message.points
    plan_bytes.refuse_count(len(points))
    for k, point in enumerate(points):
        if not point.transforms or not point.velocities:
            raise TrajectoryError(f"point {k} of the base trajectory lacks transform or velocity")
    places = [point.transforms[0].translation for point in points]
    turns = [point.transforms[0].rotation for point in points]
    linear = [point.velocities[0].linear for point in points]
    angular = [point.velocities[0].angular for point in points]
    return BaseTrajectory(
        times_s=[seconds(point.time_from_start) for point in points],
        positions=[(p.x, p.y, p.z) for p in places],
        quaternions_xyzw=[(o.x, o.y, o.z, o.w) for o in turns],
        linear_velocities=[(u.x, u.y, u.z) for u in linear],
        angular_velocities=[(w.x, w.y, w.z) for w in angular],
        start_s=stamp_ns(message) * NANO or None,  # stamp 0: now
    )


def contact_schedule(message: Any) -> ContactSchedule:
    """Planned contacts from trajectory_msgs/JointTrajectory or its bytes: positions 1 (stance) or 0 (swing).

    Raises:
        TrajectoryError: see `ContactSchedule`; also too many points.
        StateError: bytes that are no such message.
    """
    if isinstance(message, bytes):
        frames, start_s, times, fields = plan_bytes.read_points(message, plan_bytes.JOINT_FIELDS)
        stance = fields[0]
    else:
        points = message.points
        plan_bytes.refuse_count(len(points))
        rows = _rows("positions", [point.positions for point in points])
        frames, start_s = list(message.joint_names), stamp_ns(message) * NANO or None
        times = np.array([seconds(point.time_from_start) for point in points])
        stance = np.zeros((0, len(frames))) if rows is None else rows
    return ContactSchedule(frames, times, stance, start_s)


def _rows(name: str, rows: Sequence[Any]) -> np.ndarray | None:
    """The rows (p, j) of one field of all points, or None if no point has it."""
    lengths = {len(row) for row in rows}
    if lengths <= {0}:
        return None
    if len(lengths) > 1:
        raise TrajectoryError(f"{name} of the points have different lengths {sorted(lengths)}")
    return np.array([np.frombuffer(row) for row in rows])
