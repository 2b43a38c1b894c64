"""Commands as rows of numbers, as the plugin ``contact_id_ros2_control`` reads them: pack and unpack.

    version, names, kind, session, seconds, nanoseconds, n, size, body

names: 32 bits of the joints' names in their order, so that another order is refused. kind: 1 trajectory, 2
feedback, 3 stop. session: that of another sender may follow after a time-out. size: points p, or coordinates nv.

    trajectory  times (p,); positions, velocities, accelerations, efforts (p, 4, n)
    feedback    base (13,) where it floats; positions, velocities, efforts (n,); gain (n, 2 nv)

Coordinates are the base's six, then the joints, all in the order of the command: the plugin needs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from contact_id_controller.exceptions import StateError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory

if TYPE_CHECKING:
    from contact_id_controller.plans.state_feedback import StateFeedback
    from contact_id_controller.robot import RobotModel

VERSION = 1.0
TRAJECTORY, FEEDBACK, STOP = 1.0, 2.0, 3.0
HEADER, BASE = 8, 13
MOST_POINTS = 64
GREATEST_GAIN = 1e5
"""What the plugin takes of points and gains, as `settings.shared_rows` has it for the robot's side."""

_NANO = 1_000_000_000


def hash_of(names: Sequence[str]) -> int:
    """32-bit hash of names in their order: FNV-1a, each name ended by a zero."""
    value = 2166136261
    for byte in b"".join(name.encode() + b"\0" for name in names):
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def packed_trajectory(
    trajectory: EffortTrajectory, joint_names: Sequence[str], session: int = 0
) -> np.ndarray:
    """Pack a trajectory of these joints into a row of numbers.

    Raises:
        StateError: more points than the plugin's buffer holds.
    """
    points = len(trajectory.times_s)
    if points > MOST_POINTS:
        raise StateError(f"the trajectory has {points} points, may have {MOST_POINTS}")
    head = header(joint_names, TRAJECTORY, session, trajectory.start_s, points)
    return np.concatenate([head, trajectory.times_s, trajectory.values.ravel()])


def packed_feedback(feedback: StateFeedback, robot: RobotModel, session: int = 0) -> np.ndarray:
    """Pack a feedback of a robot into a row of numbers."""
    order = coordinates(robot)
    head = header(robot.joint_names, FEEDBACK, session, feedback.time_s, robot.nv)
    base = np.empty(0)
    if robot.floating_base:
        base = np.concatenate([feedback.q[:7], feedback.v[:6]])
    gain = feedback.gain[:, np.concatenate([order, robot.nv + order])]
    joints = robot.joints_of(feedback.q), feedback.v[robot.actuated], feedback.effort
    return np.concatenate([head, base, *joints, gain.ravel()])


def packed_stop(joint_names: Sequence[str], session: int = 0) -> np.ndarray:
    """Pack a stop, which the plugin latches."""
    return header(joint_names, STOP, session, 0.0, 0)


def unpacked_trajectory(numbers: np.ndarray, joint_names: Sequence[str]) -> EffortTrajectory:
    """Unpack the trajectory of these joints from a row of numbers.

    Raises:
        StateError: there is none, or it is of other joints.
    """
    points, n = checked_size(numbers, TRAJECTORY, joint_names), len(joint_names)
    body = numbers[HEADER:]
    if points < 1 or body.size != points * (1 + 4 * n):
        raise StateError(f"a trajectory of {points} points has {body.size} numbers")
    times = body[:points]
    if times[0] != 0.0 or not (times[1:] > times[:-1]).all():
        raise StateError("times of the points must increase, from 0 on")
    out = EffortTrajectory(points, n)
    out.start_s = stamp_of(numbers)
    out.times_s[:], out.values[:] = times, body[points:].reshape(points, 4, n)
    return out


def unpacked_feedback(numbers: np.ndarray, robot: RobotModel) -> StateFeedback:
    """Unpack the feedback of a robot from a row of numbers.

    Raises:
        StateError: there is none, or it is of other joints or coordinates.
    """
    from contact_id_controller.plans.state_feedback import StateFeedback

    nv, n = checked_size(numbers, FEEDBACK, robot.joint_names), robot.na
    base = BASE if robot.floating_base else 0
    if nv != robot.nv or numbers.size != HEADER + base + 3 * n + 2 * n * nv:
        raise StateError(f"a feedback of {nv} coordinates has {numbers.size} numbers")
    out, body = StateFeedback(robot), numbers[HEADER:]
    out.time_s = stamp_of(numbers)
    if base:
        out.q[:7], out.v[:6] = body[:7], body[7:BASE]
        norm = np.linalg.norm(out.q[3:7])
        if not abs(norm - 1.0) <= 1e-3:
            raise StateError(f"the base's quaternion has norm {norm:.6g}, must be 1")
    position, velocity, effort = body[base : base + 3 * n].reshape(3, n)
    robot.put_joints(out.q, position)
    out.v[robot.actuated], out.effort[:] = velocity, effort
    gain = body[base + 3 * n :].reshape(n, 2 * nv)
    greatest = np.abs(gain).max(initial=0.0)
    if greatest > GREATEST_GAIN:
        raise StateError(f"a gain is {greatest:.3g}, must be at most {GREATEST_GAIN:g}")
    order = coordinates(robot)
    out.gain[:, np.concatenate([order, nv + order])] = gain
    return out


def efforts_of(numbers: np.ndarray, joint_names: Sequence[str]) -> np.ndarray:
    """Efforts (p, n) in a row of numbers of these joints, a view; of a feedback p = 1.

    Raises:
        StateError: no command of these joints.
    """
    n = len(joint_names)
    if numbers.size > 2 and numbers[2] == FEEDBACK:
        nv = checked_size(numbers, FEEDBACK, joint_names)
        base = numbers.size - HEADER - 3 * n - 2 * n * nv
        if base not in (0, BASE) or nv < n:
            raise StateError(f"a feedback of {nv} coordinates has {numbers.size} numbers")
        return numbers[HEADER + base + 2 * n : HEADER + base + 3 * n].reshape(1, n)
    points = len(unpacked_trajectory(numbers, joint_names).times_s)
    return numbers[HEADER + points :].reshape(points, 4, n)[:, 3]


def coordinates(robot: RobotModel) -> np.ndarray:
    """Indices in v of the base's coordinates, then of the joints in command order, (nv,)."""
    return np.concatenate([robot.unactuated, robot.actuated])


def stamp_of(numbers: np.ndarray) -> float:
    """Time of a row of numbers, s."""
    return float(numbers[4] + numbers[5] / _NANO)


def checked_size(numbers: np.ndarray, kind: float, joint_names: Sequence[str]) -> int:
    """Check a row's header and return its size.

    Raises:
        StateError: numbers that are not finite, another version or kind, other joints, no count.
    """
    if numbers.size < HEADER or not np.isfinite(numbers).all():
        raise StateError(f"a command has {numbers.size} numbers, all must be finite")
    if numbers[0] != VERSION or numbers[2] != kind:
        raise StateError(
            f"a command has layout {numbers[0]:g} and kind {numbers[2]:g}, must have {VERSION:g} and {kind:g}"
        )
    if numbers[1] != hash_of(joint_names) or numbers[6] != len(joint_names):
        raise StateError("a command is of other joints, or of another order")
    size = numbers[7]
    if size != np.floor(size) or not 0 <= size <= 1e6:
        raise StateError(f"a command has size {size:g}, must be a count")
    return int(size)


def header(
    joint_names: Sequence[str], kind: float, session: int, stamp_s: float, size: int
) -> np.ndarray:
    """The first numbers of a row, (HEADER,)."""
    seconds, nanoseconds = divmod(max(round(stamp_s * _NANO), 0), _NANO)
    names = hash_of(joint_names)
    numbers = [VERSION, names, kind, session, seconds, nanoseconds, len(joint_names), size]
    return np.array(numbers, dtype=float)
