"""Reads and writes serialised plans: sizes are checked first, then all points are copied at once.

As Python objects 10,000 points take a quarter of a second, in which nothing else is served. Compiled code copies them:
a controller reads sixty plans a second between its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.ros.packed import Cursor, stamp_ns, with_stamp

MOST_BYTES, MOST_POINTS, MOST_NAMES = 16_000_000, 10_000, 1000
"""Limits of a plan: larger ones are refused before they are read."""

LONGEST_NAME = 200
"""Longest name of a joint or frame, bytes: names appear in log lines."""

LONG_BYTES, LONG_POINTS = 30_000, 100
"""Sizes from which on reading a plan takes longer than a step may be late."""

JOINT_FIELDS = (1, 1, 1, 1)
"""Doubles per entry of positions, velocities, accelerations, effort."""

BASE_FIELDS = (7, 6, 6)
"""The same of transforms, velocities, accelerations of trajectory_msgs/MultiDOFJointTrajectoryPoint."""

NANO = 1e-9


class Points(NamedTuple):
    """The points of a plan.

    names: of joints or frames.  start_s: stamp of the header, s; None: 0, start now.  times_s (p,): from the start.
    fields: an array (p, n) each, n = 0 where the points have no such field.
    """

    names: list[str]
    start_s: float | None
    times_s: np.ndarray
    fields: list[np.ndarray]


def warm_up() -> None:
    """Compile the kernels that read and write plans."""
    head = b"\0\1\0\0" + bytes(16)
    read_points(
        write_points(head, JOINT_FIELDS, np.zeros(1), (np.zeros((1, 1)), None, None, None)),
        JOINT_FIELDS,
    )


def is_long(message: bytes) -> bool:
    """Whether a plan, serialised or not, takes long to read."""
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

    widths: doubles per entry of each field of a point.

    Raises:
        TrajectoryError: too large, or points with different fields.
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
        size = cursor.at - begin - 1  # a zero ends it
        if size > LONGEST_NAME:
            raise TrajectoryError(
                f"a name in the plan has {size} bytes, must have at most {LONGEST_NAME}"
            )
        names.append(data[begin : cursor.at].rstrip(b"\0").decode(errors="replace"))
    points = cursor.count()
    refuse_count(points)
    times_s, fields = _fields(cursor, data, widths, points)
    return Points(names, stamp_ns(data) * NANO or None, times_s, fields)


def _fields(
    cursor: Cursor, data: bytes, widths: Sequence[int], number: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Times (p,), s, and fields (p, n) of ``number`` points from the cursor on."""
    order = "<" if data[1] & 1 else ">"
    # A copy whatever the order: the kernels are compiled for one kind of array.
    words = np.array(np.frombuffer(data, f"{order}u4", len(data) // 4), dtype=np.uint32)
    each, counts = np.array(widths), np.zeros(len(widths), dtype=np.int64)
    begin = cursor.at // 4
    if number and _walk(words, begin, each, counts) < 0:
        cursor.skip(len(data))
    if 8 * number * int(counts.sum()) > len(data):
        raise _different()
    times, numbers = np.empty((2, number)), np.empty((number, int(counts.sum())), dtype=np.uint64)
    end = _copy_points(words, begin, each, counts, order == "<", times, numbers)
    if end == _DIFFERENT:
        raise _different()
    if end < 0:
        cursor.skip(len(data))
    ends = np.cumsum(counts).tolist()
    values = numbers.view(np.float64)
    # Not in the kernel, which would round once instead of twice.
    times_s = times[0] + NANO * times[1]
    return times_s, [values[:, end - count : end] for end, count in zip(ends, counts.tolist())]


_SHORT, _DIFFERENT = -1, -2
"""Results in place of an end: the message ends too early; points have different fields."""


@bare_kernel
def _field(words, at, width):
    """Number of doubles in the field whose count is at word ``at``, or ``_SHORT``; and the word where they begin."""
    if at >= len(words):
        return _SHORT, at
    count = width * np.int64(words[at])
    at += 1
    if count:
        at += (at - 1) % 2  # doubles stand at even words, behind that of the encapsulation
    if at + 2 * count > len(words):
        return _SHORT, at
    return count, at


@bare_kernel
def _walk(words, at, widths, counts):
    """Word at which the point ends that begins at ``at``, or ``_SHORT``; counts (n,): doubles of each field, output."""
    for field in range(len(widths)):
        counts[field], at = _field(words, at, widths[field])
        if counts[field] < 0:
            return _SHORT
        at += 2 * counts[field]
    at += 2
    return at if at <= len(words) else _SHORT


@bare_kernel
def _copy_points(words, at, widths, counts, little, times, numbers):
    """Copy the points from word ``at`` on; return the word at which they end, ``_SHORT`` or ``_DIFFERENT``.

    words: the message as uint32; widths (fields,): numbers of an element of each field; counts (fields,): doubles of
    each. times (2, p), out: s and ns; numbers (p, n), out: bits of the doubles of all fields. little: byte order.
    """
    low, high = (0, 1) if little else (1, 0)
    for k in range(times.shape[1]):
        column = 0
        for field in range(len(widths)):
            count, at = _field(words, at, widths[field])
            if count != counts[field]:
                return _SHORT if count < 0 else _DIFFERENT
            for _ in range(count):
                bits = np.uint64(words[at + high]) << np.uint64(32)
                numbers[k, column] = bits | np.uint64(words[at + low])
                column += 1
                at += 2
        if at + 2 > len(words):
            return _SHORT
        times[0, k], times[1, k] = np.int32(words[at]), words[at + 1]
        at += 2
    return at


def write_points(
    head: bytes, widths: Sequence[int], times_s: np.ndarray, fields: Sequence[np.ndarray | None]
) -> bytes:
    """Serialise points; None among the fields (p, n): the points have no such field.

    head: the bytes before the number of points, little-endian, see `head_of`.
    """
    counts = np.array([0 if field is None else field.shape[1] for field in fields])
    present = [field for field in fields if field is not None]
    numbers = np.ascontiguousarray(np.concatenate(present, axis=1), dtype=np.float64)
    times_ns = np.rint(np.asarray(times_s) / NANO).astype(np.int64)
    most = 2 + len(head) // 4 + len(times_ns) * (2 + 2 * len(counts) + 2 * int(counts.sum()))
    words = np.zeros(most, dtype=np.uint32)
    begin = len(head) // 4
    words[:begin] = np.frombuffer(head, np.uint32)
    words[begin] = len(times_ns)
    end = _fill_points(
        words, begin + 1, np.array(widths), counts, times_ns, numbers.view(np.uint64)
    )
    return words[:end].tobytes()


def head_of(data: bytes, stamp_ns: int) -> bytes:
    """The bytes of a serialised plan before the number of its points, with another stamp."""
    cursor = Cursor(data)
    cursor.text()
    for _ in range(cursor.count()):
        cursor.text()
    cursor.align(4)
    return with_stamp(data[: cursor.at], stamp_ns)


@bare_kernel
def _fill_points(words, at, widths, counts, times_ns, numbers):
    """Write points into the words from ``at`` on; return their end. times_ns (p,), the rest as ``_copy_points``."""
    for k in range(len(times_ns)):
        column = 0
        for field in range(len(widths)):
            words[at] = counts[field] // widths[field]
            at += 1
            if counts[field]:
                at += (at - 1) % 2
            for _ in range(counts[field]):
                bits = numbers[k, column]
                words[at], words[at + 1] = bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32)
                column += 1
                at += 2
        seconds = times_ns[k] // 1_000_000_000
        words[at], words[at + 1] = seconds, times_ns[k] - 1_000_000_000 * seconds
        at += 2
    return at


def _different() -> TrajectoryError:
    return TrajectoryError("points of the plan have positions or rates of different lengths")
