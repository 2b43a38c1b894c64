"""Plans read from the bytes they travel in: sizes first, then all points at once.

As Python objects 10,000 points take a quarter of a second, and nothing else is answered meanwhile.
Points of one plan carry the same fields, so they stand at equal distances from the second one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.ros.packed import Cursor, stamp_ns

MOST_BYTES, MOST_POINTS, MOST_NAMES = 16_000_000, 10_000, 1000
"""Of a plan: more is refused before it is looked at."""

LONG_BYTES, LONG_POINTS = 30_000, 100
"""More takes longer to read than a step may be late."""

JOINT_FIELDS = (1, 1, 1, 1)
"""Doubles of each entry of positions, velocities, accelerations, effort."""

BASE_FIELDS = (7, 6, 6)
"""The same of transforms, velocities, accelerations of trajectory_msgs/MultiDOFJointTrajectoryPoint."""

_NANO = 1e-9


class Points(NamedTuple):
    """The points of a plan.

    names: of joints or frames.  start_s: stamp of the header.  times_s (p,): from it.
    fields: an array (p, n) for each, n = 0 where the points have none.
    """

    names: list[str]
    start_s: float
    times_s: np.ndarray
    fields: list[np.ndarray]


def is_long(message) -> bool:
    """Whether a plan, as message or as its bytes, takes long to read."""
    if isinstance(message, bytes):
        return LONG_BYTES < len(message) <= MOST_BYTES
    return LONG_POINTS < len(getattr(message, "points", ())) <= MOST_POINTS


def refuse_count(points: int, names: int = 0) -> None:
    """Raise TrajectoryError for more points or names than a plan may have."""
    if points > MOST_POINTS:
        raise TrajectoryError(f"the plan has {points} points, must have at most {MOST_POINTS}")
    if names > MOST_NAMES:
        raise TrajectoryError(f"the plan names {names} joints, must name at most {MOST_NAMES}")


def read_points(data: bytes, widths: Sequence[int]) -> Points:
    """The points of a serialised JointTrajectory or MultiDOFJointTrajectory.

    Raises:
        TrajectoryError: too large, or points that carry different things.
        StateError: bytes that are no such message.
    """
    if len(data) > MOST_BYTES:
        raise TrajectoryError(f"the plan has {len(data)} bytes, must have at most {MOST_BYTES}")
    cursor = Cursor(data)
    cursor.text()
    count = cursor.count()
    refuse_count(0, count)
    names = []
    for _ in range(count):
        begin = cursor.at
        cursor.text()
        begin += -begin % 4 + 4
        names.append(data[begin : cursor.at].rstrip(b"\0").decode(errors="replace"))
    points = cursor.count()
    refuse_count(points)
    rows = [_rows(cursor, data, widths, number) for number in (min(points, 1), max(points - 1, 0))]
    times, *fields = map(_joined, zip(*rows))
    return Points(names, stamp_ns(data) * _NANO, times[:, 0], fields)


def _rows(cursor: Cursor, data: bytes, widths: Sequence[int], number: int) -> list[np.ndarray]:
    """Times (p, 1) and fields (p, n) of so many points that stand at equal distances."""
    if not number:
        return [np.zeros((0, 1)), *(np.zeros((0, 0)) for _ in widths)]
    order = "<" if data[1] & 1 else ">"
    begin = cursor.at
    places, counts = [], []
    for width in widths:
        cursor.align(4)
        counts.append(cursor.at)
        places.append(cursor.doubles(width * cursor.count()))
    duration, _ = cursor.raw(4, 8)
    stride = cursor.at - begin
    cursor.skip((number - 1) * stride)
    table = np.frombuffer(data, np.uint8, number * stride, begin).reshape(number, stride)

    def column(at: int, size: int, kind: str) -> np.ndarray:
        return np.ascontiguousarray(table[:, at - begin : at - begin + size]).view(order + kind)

    for at in counts:
        found = column(at, 4, "u4")
        if (found != found[0]).any():
            raise _different()
    seconds = column(duration, 4, "i4") + _NANO * column(duration + 4, 4, "u4")
    fields = [column(at, 8 * size, "f8").reshape(number, size) for at, size in places]
    return [seconds, *(field.astype(float) for field in fields)]


def _joined(rows: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    first, others = rows
    if not len(others):
        return first
    if first.shape[1] != others.shape[1]:
        raise _different()
    return np.concatenate([first, others])


def _different() -> TrajectoryError:
    return TrajectoryError("points of the plan have positions or rates of different lengths")
