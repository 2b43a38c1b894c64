"""Goals of the whole body as std_msgs/Float64MultiArray, and back: topic `task_goals`.

``layout.dim`` names the parts of ``data`` in their order, ``size`` numbers each:

    start           2         seconds and nanoseconds; both 0: when the message comes
    center_of_mass  9         pressure (2), divergent component (2), rate, height, its rate and acceleration, how long the
                              goals are good
    heading         2         yaw, yaw rate
    foot FRAME      1 + 19 p  from when on it may land, s; p points: time, place (6), velocity (6), acceleration (6)
    frame NAME      4 + 10 p  quaternion x, y, z, w, all 0 without a rotation; p points of its path, if it has one: time,
                              position (3), velocity (3), acceleration (3)
    joint NAME      1 or 2    position, and its stiffness where the goals have one

A foot without a path has no part. Units and frames are those of ``plans.goals``.
"""

from __future__ import annotations

import array
import math
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.goals import (
    PLACE,
    POINT,
    ComGoal,
    FootPath,
    FrameGoal,
    Heading,
    Posture,
    TaskGoals,
)
from contact_id_controller.ros.packed import read_message
from contact_id_controller.ros.plan_bytes import MOST_NAMES, MOST_POINTS, NANO

START, COM, HEADING = "start", "center_of_mass", "heading"
FOOT, FRAME, JOINT = "foot ", "frame ", "joint "
SIZES = {START: 2, COM: 9, HEADING: 2}

_GIGA = 1_000_000_000


def goals_message(goals: TaskGoals, stamp_ns: int) -> bytes:
    """Serialise goals that start at ``stamp_ns``, as std_msgs/Float64MultiArray."""
    pressure, divergent, rate, height_m, climb = goals.com
    parts = {
        START: np.array(divmod(stamp_ns, _GIGA), dtype=float),
        COM: np.r_[pressure, divergent, rate, height_m, climb, goals.lasts_s],
        HEADING: np.array(goals.heading),
    }
    for frame, path in goals.feet.items():
        parts[f"{FOOT}{frame}"] = np.r_[path.may_land_from_s, _rows(path, PLACE)]
    for frame, goal in goals.frames.items():
        rotation = np.zeros(4) if goal.rotation is None else goal.rotation
        way = np.zeros(0) if goal.path is None else _rows(goal.path, POINT)
        parts[f"{FRAME}{frame}"] = np.r_[rotation, way]
    names, positions, stiffness = goals.posture
    values = [positions] if stiffness is None else [positions, stiffness]
    for name, numbers in zip(names, np.column_stack(values)):
        parts[f"{JOINT}{name}"] = numbers
    message = Float64MultiArray()
    for label, numbers in parts.items():
        dimension = MultiArrayDimension(label=label, size=len(numbers), stride=1)
        message.layout.dim.append(dimension)
    message.data = array.array("d", np.concatenate(list(parts.values())).tobytes())
    return bytes(serialize_message(message))


def _rows(path: FootPath, columns: int) -> np.ndarray:
    """The points of a path as numbers: time, position, velocity, acceleration, ``columns`` each."""
    points = path.points[:, :, :columns].reshape(len(path.times_s), -1)
    return np.concatenate([path.times_s[:, None], points], axis=1).ravel()


def task_goals(message: Any) -> TaskGoals:
    """Goals from a std_msgs/Float64MultiArray or its bytes.

    Raises:
        TrajectoryError: a part that is missing, unknown, duplicate or of another size; see ``TaskGoals``.
        StateError: bytes that are no such message.
    """
    if isinstance(message, bytes):
        message = read_message(Float64MultiArray, message)
    parts = _parts(message)
    for label, size in SIZES.items():
        if len(parts.get(label, ())) != size:
            raise TrajectoryError(
                f"part {label!r} of the goals has {len(parts.get(label, ()))} numbers, must have {size}"
            )
    seconds, nanoseconds = parts.pop(START).tolist()
    com, heading = parts.pop(COM), parts.pop(HEADING)
    feet, frames, joints = {}, {}, {}
    for label, numbers in parts.items():
        if label.startswith(FOOT):
            feet[label[len(FOOT) :]] = _path(label, numbers, 1, PLACE)
        elif label.startswith(FRAME):
            frames[label[len(FRAME) :]] = _frame(label, numbers)
        elif label.startswith(JOINT):
            joints[label[len(JOINT) :]] = numbers
        else:
            raise TrajectoryError(
                f"goals have an unknown part {label!r}; known are {', '.join(SIZES)}, 'foot FRAME', "
                "'frame NAME', 'joint NAME'"
            )
    return TaskGoals(
        ComGoal(com[:2], com[2:4], float(com[4]), float(com[5]), com[6:8]),
        _posture(joints),
        feet,
        float(com[8]),
        Heading(*heading.tolist()),
        _start_s(seconds, nanoseconds),
        frames,
    )


def _start_s(seconds: float, nanoseconds: float) -> float | None:
    """The start, s, computed as for the other parts of a plan, to the last bit: parts are matched by it; None: now."""
    if not (math.isfinite(seconds) and math.isfinite(nanoseconds)):
        raise TrajectoryError(f"the goals start at {seconds:g} s, must be a time")
    return (int(seconds) * _GIGA + int(nanoseconds)) * NANO or None


def _parts(message: Any) -> dict[str, np.ndarray]:
    """The numbers of each part, by its label."""
    data, dimensions = np.array(message.data, dtype=float), message.layout.dim
    if len(dimensions) > MOST_NAMES:
        raise TrajectoryError(
            f"the goals have {len(dimensions)} parts, must have at most {MOST_NAMES}"
        )
    total = sum(each.size for each in dimensions)
    if total != data.size:
        raise TrajectoryError(f"the goals name {total} numbers and have {data.size}")
    parts: dict[str, np.ndarray] = {}
    begin = 0
    for each in dimensions:
        if each.label in parts:
            raise TrajectoryError(f"goals have part {each.label!r} twice")
        parts[each.label] = data[begin : begin + each.size]
        begin += each.size
    return parts


def _path(label: str, numbers: np.ndarray, before: int, columns: int) -> FootPath:
    """The path from the numbers of a part, ``before`` others first; that of a foot begins with when it may land."""
    size = 1 + 3 * columns
    points, rest = divmod(len(numbers) - before, size)
    if rest or not 1 <= points <= MOST_POINTS:
        raise TrajectoryError(
            f"part {label!r} of the goals has {len(numbers)} numbers, must have {before} + {size} a point"
        )
    rows = numbers[before:].reshape(points, size)
    place, velocity, acceleration = (
        rows[:, 1 + columns * k : 1 + columns * (k + 1)] for k in range(3)
    )
    lands_s = float(numbers[0]) if before == 1 else None
    return FootPath(rows[:, 0], place, velocity, acceleration, lands_s)


def _frame(label: str, numbers: np.ndarray) -> FrameGoal:
    """The goal of a frame from the numbers of its part."""
    path = None if len(numbers) == 4 else _path(label, numbers, 4, POINT)
    return FrameGoal(path, numbers[:4] if numbers[:4].any() else None)


def _posture(joints: dict[str, np.ndarray]) -> Posture:
    """The posture from the numbers of its joints."""
    sizes = {len(numbers) for numbers in joints.values()}
    if len(sizes) > 1 or not sizes <= {1, 2}:
        raise TrajectoryError(
            f"joints of the goals have {sorted(sizes)} numbers, must all have 1 or all 2"
        )
    rows = np.array(list(joints.values()))
    return (
        Posture(tuple(joints), rows[:, 0], rows[:, 1] if sizes == {2} else None)
        if sizes
        else Posture((), [])
    )
