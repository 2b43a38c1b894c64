"""Messages of the control loop as serialised bytes.

Taking an Odometry as a Python object costs twenty times what its bytes do: two covariances of 36 numbers are converted
and dropped. The offsets of the doubles are found once for each sender, compared with the deserialised message, and used
while everything between the doubles (names, counts, byte order, size) stays the same. Only little-endian plain CDR is
read so, as ROS 2 sends it.
"""

from __future__ import annotations

import functools
import importlib
import operator
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState

from contact_id_controller.exceptions import ConfigurationError, StateError, choices

ENCAPSULATION = b"\x00\x01\x00\x00"
"""Plain CDR, little-endian. Alignment counts from its end."""

_HEAD = len(ENCAPSULATION)
_STAMP = struct.Struct("<iI")
_BIG_ENDIAN_STAMP = struct.Struct(">iI")
_COUNT, _BIG_ENDIAN_COUNT = struct.Struct("<I"), struct.Struct(">I")
STAMPED = _HEAD + _STAMP.size
"""Bytes of a message that begins with a header up to the end of its stamp."""

MOST_BYTES, MOST_NAMES, MOST_CHARACTERS = 100_000, 1000, 1000
"""Limits on the size of a periodic message, on the number of names in it, and on a text: larger ones are refused before
they are read."""

FARTHEST_S = 2**31
"""Limit of the seconds of a stamp, which have 32 bits."""

_SEVERAL = re.compile(r"sequence<(.+?)(?:, \d+)?>|(.+?)\[(\d+)\]")
_ELEMENT = re.compile(r"(.+)\[(\d+)\]")
_SIZES = {f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}
_SIZES |= {"octet": 1, "byte": 1, "char": 1, "boolean": 1}
_SIZES |= {"float": 4, "float32": 4, "double": 8, "float64": 8}
"""Bytes of a number in plain CDR, which are also its alignment."""

ODOMETRY_COUNTS = 7, 36, 6, 36
"""Number of doubles in a nav_msgs/Odometry: pose, its covariance, twist, its covariance."""

_PADDING, _PER_EMPTY = 16, 8
"""Largest number of bytes after the last field, and how many more for each empty list: senders reserve too much."""


def nanoseconds(stamp: Any) -> int:
    """A builtin_interfaces/Time or Duration in nanoseconds."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def stamp_parts(time_ns: int) -> tuple[int, int]:
    """Seconds and nanoseconds of a time, ns, for a stamp; clipped to what a stamp can hold."""
    sec, nanosec = divmod(time_ns, 1_000_000_000)
    if not -FARTHEST_S <= sec < FARTHEST_S:
        sec = -FARTHEST_S if sec < 0 else FARTHEST_S - 1
    return sec, nanosec


def stamp_ns(message: Any) -> int:
    """Stamp, ns, of a message that begins with a header, or of its bytes; 0 if these are too few."""
    if isinstance(message, bytes):
        if len(message) < STAMPED:
            return 0
        stamp = _STAMP if message[1] & 1 else _BIG_ENDIAN_STAMP
        sec, nanosec = stamp.unpack_from(message, _HEAD)
        return sec * 1_000_000_000 + nanosec
    return nanoseconds(message.header.stamp)


class Layout:
    """Offsets of the arrays of doubles in the messages of one sender.

    Args:
        data: bytes of a message.
        places: (offset, count) of each array, in order of their offsets.
        wanted: indices of those that ``arrays`` returns; None: all.

    Attributes:
        data: those bytes.  all_places: of all arrays.  places: of the wanted ones.
    """

    def __init__(
        self, data: bytes, places: list[tuple[int, int]], wanted: tuple[int, ...] | None
    ) -> None:
        self.data, self.all_places = data, list(places)
        self.places = list(places) if wanted is None else [places[k] for k in wanted]
        ends = [STAMPED, *(at + 8 * count for at, count in places)]
        begins = [*(at for at, _ in places), len(data)]
        self._between = [
            (begin, end, data[begin:end]) for begin, end in zip(ends, begins) if end > begin
        ]

    def fits(self, data: bytes) -> bool:
        """Whether a message differs from the first one in stamp and doubles only."""
        if len(data) != len(self.data) or not data.startswith(ENCAPSULATION):
            return False
        return all(data[begin:end] == same for begin, end, same in self._between)

    def arrays(self, data: bytes) -> list[np.ndarray]:
        """Views (count,) of the wanted doubles of a message that fits."""
        return [np.frombuffer(data, np.float64, count, at) for at, count in self.places]


class Cursor:
    """Steps over the fields of plain CDR; StateError where a field goes beyond the end.

    Bytes that it has stepped over completely are safe for ``deserialize_message``, which others may crash.

    Args:
        data: the message.
        begin: offset of the first field to step over.
    """

    def __init__(self, data: bytes, begin: int = STAMPED) -> None:
        order = data[1] & 1 if len(data) >= begin and not data[0] and data[1] < 2 else None
        if order is None or data[2] or data[3] > 3:
            raise StateError("a message is not plain CDR")
        self._count = _COUNT if order else _BIG_ENDIAN_COUNT
        self._data = data
        self.at, self._spare = begin, _PADDING

    def _go(self, size: int) -> int:
        begin, self.at = self.at, self.at + size
        if self.at > len(self._data):
            raise StateError("a message ends too early")
        return begin

    def align(self, size: int) -> None:
        self._go((_HEAD - self.at) % size)

    def count(self) -> int:
        self.align(4)
        return self._count.unpack_from(self._data, self._go(4))[0]

    def names(self) -> int:
        """Count of the names that follow; StateError above MOST_NAMES."""
        count = self.count()
        if count > MOST_NAMES:
            raise StateError(f"a message names {count}, must name at most {MOST_NAMES}")
        return count

    def text(self) -> None:
        """Skip a string; StateError unless it ends with its only zero byte."""
        size = self.count()
        begin = self._go(size)
        try:
            text = self._data[begin : self.at].decode()
        except UnicodeDecodeError:
            text = "?"
        if size and text.find("\0") != len(text) - 1:
            raise StateError("a text of a message has no zero byte at its end")

    def doubles(self, count: int) -> tuple[int, int]:
        if count:
            self.align(8)
        return self._go(8 * count), count

    def skip(self, size: int) -> None:
        """Step over ``size`` bytes."""
        self._go(size)

    def raw(self, alignment: int, size: int) -> tuple[int, int]:
        """(offset, count of words) of ``size`` bytes, a multiple of 8, that are no doubles."""
        self.align(alignment)
        return self._go(size), size // 8

    def allow_for_empty(self) -> None:
        """Let what `end` accepts grow by what senders reserve for an empty list."""
        self._spare += _PER_EMPTY

    def end(self) -> None:
        if len(self._data) - self.at > self._spare:
            raise StateError("a message is longer than its fields")


def refuse_size(data: bytes, most: int = MOST_BYTES) -> None:
    """Raise StateError for a message with more than ``most`` bytes."""
    if len(data) > most:
        raise StateError(f"a message has {len(data)} bytes, must have at most {most}")


def read_numbers(data: bytes) -> np.ndarray:
    """The numbers (n,) of a serialised std_msgs/Float64MultiArray.

    Raises:
        StateError: these bytes are no such message, or too many.
    """
    refuse_size(data)
    cursor = Cursor(data, _HEAD)
    for _ in range(cursor.names()):  # dimensions: label, size, stride
        cursor.text()
        cursor.count()
        cursor.count()
    cursor.count()  # offset
    at, count = cursor.doubles(cursor.count())
    cursor.end()
    if not count:
        return np.zeros(0)
    kind = "<f8" if data[1] & 1 else ">f8"
    return np.frombuffer(data, kind, count, at).astype(float)


def read_message(
    kind: type, data: bytes, most_bytes: int = MOST_BYTES, most_parts: int = MOST_NAMES
) -> Any:
    """Deserialise a message after checking that each field lies within the bytes.

    Nodes subscribe to bytes for this: the middleware's own reader follows a length beyond the end of the bytes, which
    can crash the process.

    Args:
        kind: class of the message.
        most_bytes: largest size.  most_parts: largest number of texts or messages in a list of it.

    Raises:
        StateError: these bytes are no such message, or too many.
    """
    refuse_size(data, most_bytes)
    cursor = Cursor(data, _HEAD)
    _walk(kind, cursor, most_parts)
    cursor.end()
    try:
        return deserialize_message(data, kind)
    except RuntimeError as error:
        raise StateError(str(error)) from error


def _walk(kind: type, cursor: Cursor, most: int) -> None:
    """Step over the fields of a message."""
    for field in _fields(kind):
        _step_over(field, cursor, most)


def _step_over(field: _Field, cursor: Cursor, most: int) -> None:
    """Step over one field; StateError if it has more than ``most`` texts or messages."""
    count = field.count_in(cursor)
    if field.several and not count:
        cursor.allow_for_empty()
    if field.size and count:
        cursor.align(field.size)
        cursor.skip(field.size * count)
    elif not field.size:
        if count > most:
            raise StateError(f"a message has {count} of a part, must have at most {most}")
        for _ in range(count):
            if field.part is None:
                cursor.text()
            else:
                _walk(field.part, cursor, most)


class _Field(NamedTuple):
    """A field of a message.

    part: class of the messages in it; None: numbers, or texts.  size: bytes of a number, 0 otherwise.
    several: whether it is a list.  fixed: length of a list of fixed length, 0: the message has the count.
    """

    part: type | None
    size: int
    several: bool
    fixed: int
    is_double: bool

    def count_in(self, cursor: Cursor) -> int:
        """Number of elements of the field at the cursor."""
        return self.fixed if self.fixed else cursor.count() if self.several else 1


@functools.cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    """The fields of a class of messages, in order."""
    fields = []
    for name in kind.get_fields_and_field_types().values():
        found = _SEVERAL.fullmatch(name)
        each = (found[1] or found[2]) if found else name
        size, part = _SIZES.get(each, 0), None
        if not size and not each.startswith("string"):
            package, _, words = each.partition("/")
            part = getattr(importlib.import_module(f"{package}.msg"), words)
        fixed = int(found[3] or 0) if found else 0
        is_double = each in ("double", "float64")
        fields.append(_Field(part, size, found is not None, fixed, is_double))
    return tuple(fields)


def read_true(data: bytes) -> bool:
    """The value of a serialised std_msgs/Bool.

    Raises:
        StateError: these bytes are no such message.
    """
    if len(data) <= _HEAD or len(data) > _HEAD + _PADDING or data[_HEAD] > 1:
        raise StateError("a message is no std_msgs/Bool")
    return data[_HEAD] == 1


def _joint_state_fields(cursor: Cursor) -> list[tuple[int, int]]:
    cursor.text()
    for _ in range(cursor.names()):
        cursor.text()
    return [cursor.doubles(cursor.count()) for _ in range(3)]


def _odometry_fields(cursor: Cursor) -> list[tuple[int, int]]:
    cursor.text()
    cursor.text()
    return [cursor.doubles(count) for count in ODOMETRY_COUNTS]


def _wrench_fields(cursor: Cursor) -> list[tuple[int, int]]:
    cursor.text()
    return [cursor.doubles(6)]


class Packable(NamedTuple):
    """How to read a kind of message from bytes.

    kind: class of the message.
    fields: steps over the bytes after the stamp, returns (offset, count) of each array of doubles.
    wanted: indices of the arrays to return; None: all.  values: the same arrays of the deserialised message.
    """

    kind: Any
    fields: Callable[[Cursor], list[tuple[int, int]]]
    wanted: tuple[int, ...] | None
    values: Callable[[Any], Sequence[Any]]


def _pose_and_twist(message: Any) -> tuple[Any, ...]:
    pose, twist = message.pose.pose, message.twist.twist
    p, o, u, w = pose.position, pose.orientation, twist.linear, twist.angular
    place = p.x, p.y, p.z, o.x, o.y, o.z, o.w
    return place, (u.x, u.y, u.z, w.x, w.y, w.z), message.twist.covariance


def _wrench(message: Any) -> tuple[Any, ...]:
    f, m = message.wrench.force, message.wrench.torque
    return ((f.x, f.y, f.z, m.x, m.y, m.z),)


JOINT_STATE = Packable(
    JointState,
    _joint_state_fields,
    (0, 1, 2),
    lambda message: (message.position, message.velocity, message.effort),
)
ODOMETRY = Packable(Odometry, _odometry_fields, (0, 2, 3), _pose_and_twist)
WRENCH = Packable(WrenchStamped, _wrench_fields, (0,), _wrench)


def stamped(kind: type, numbers: Sequence[str]) -> Packable:
    """How to read some doubles of a message that begins with a header.

    Args:
        kind: class of the message.
        numbers: paths of the doubles, in the message's order, as ``wrench.force.x``; in a list ``effort[2]``.

    Raises:
        ConfigurationError: a message without a header, or without these doubles.
    """
    leaves, wanted_of = list(_leaves(kind)), _wanted_of_lists(numbers)
    doubles = [name for path, field in leaves for name in _doubles_of(path, field, wanted_of)]
    if not leaves[0][0].startswith("header.stamp"):
        raise ConfigurationError(
            f"message {kind.__name__} cannot be a sensor's: it has no header, whose stamp is needed"
        )
    missing = [name for name in numbers if name not in doubles]
    if missing:
        known = (f"{path}[k]" if each.several else path for path, each in leaves if each.is_double)
        raise ConfigurationError(
            f"message {kind.__name__} has no float64 {', '.join(missing)}, only {choices(known) or 'none'}"
        )

    def fields(cursor: Cursor) -> list[tuple[int, int]]:
        """Byte of the first and number of doubles of each field, in the order of ``doubles``."""
        places = []
        for path, field in leaves[2:]:  # the stamp has gone by
            if not field.is_double:
                _step_over(field, cursor, MOST_NAMES)
            elif not field.several:
                places.append(cursor.doubles(1))
            else:
                count, least = field.count_in(cursor), wanted_of.get(path, 0)
                if count < least:
                    raise StateError(f"a message has {count} of {path}, must have at least {least}")
                at, _ = cursor.doubles(count)
                places += [(at + 8 * k, 1) for k in range(least)]
                places.append((at + 8 * least, count - least))
        return places

    get = [_getter(name) for name in numbers]
    wanted = tuple(doubles.index(name) for name in numbers)
    return Packable(kind, fields, wanted, lambda message: tuple((each(message),) for each in get))


def imu() -> Packable:
    """How to read angular velocity, then acceleration, of a sensor_msgs/Imu."""
    parts = "angular_velocity", "linear_acceleration"
    return stamped(Imu, [f"{part}.{axis}" for part in parts for axis in "xyz"])


def _element(name: str) -> tuple[str, int | None]:
    """Path of a number in a message, and its index where that is a list."""
    found = _ELEMENT.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)


def _wanted_of_lists(numbers: Sequence[str]) -> dict[str, int]:
    """Path of each list -> length up to the last element that is named."""
    found: dict[str, int] = {}
    for path, place in map(_element, numbers):
        if place is not None:
            found[path] = max(found.get(path, 0), place + 1)
    return found


def _doubles_of(path: str, field: _Field, wanted_of: Mapping[str, int]) -> list[str]:
    """Names of a field's doubles, one per place: of a list the wanted elements, then the rest together."""
    if not field.is_double:
        return []
    if not field.several:
        return [path]
    most = wanted_of.get(path, 0)
    return [f"{path}[{k}]" for k in range(min(most, field.fixed or most))] + [f"{path}[]"]


def _getter(name: str) -> Callable[[Any], float]:
    """Function that gets a number of a message by its path."""
    path, place = _element(name)
    get = operator.attrgetter(path)
    return get if place is None else lambda message: get(message)[place]


def _leaves(kind: Any, prefix: str = "") -> Iterator[tuple[str, _Field]]:
    """Path and field of each field in a message, with nested messages resolved."""
    for name, field in zip(kind.get_fields_and_field_types(), _fields(kind)):
        if field.part is not None and not field.several:
            yield from _leaves(field.part, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def packed_numbers(
    kind: type, numbers: Sequence[str], frame: str
) -> tuple[PackedMessage, list[np.ndarray]]:
    """Make a stamped message for sending; return it and writable views (1,) of the named doubles."""
    message, marks = kind(), [markers(1, k) for k in range(len(numbers))]
    message.header.frame_id = frame
    for path, count in _wanted_of_lists(numbers).items():
        owner, last = _owner(message, path)
        if not len(getattr(owner, last)):  # one of a fixed length has its numbers already
            setattr(owner, last, [0.0] * count)
    for name, mark in zip(numbers, marks):
        path, place = _element(name)
        owner, last = _owner(message, path)
        if place is None:
            setattr(owner, last, float(mark[0]))
        else:
            getattr(owner, last)[place] = mark[0]
    packed = PackedMessage(message)
    return packed, [packed.doubles(mark) for mark in marks]


def _owner(message: Any, path: str) -> tuple[Any, str]:
    """The nested message to which the field of a path belongs, and the field's name."""
    *above, last = path.split(".")
    return functools.reduce(getattr, above, message), last


def message_class(name: str) -> type:
    """Import a message class, such as ``sensor_msgs/FluidPressure`` or ``sensor_msgs/msg/FluidPressure``.

    Raises:
        ConfigurationError: it is not installed.
    """
    package, _, words = name.replace("/msg/", "/").partition("/")
    try:
        found: type = getattr(importlib.import_module(f"{package}.msg"), words)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"message {name!r} is not installed: {error}") from error
    return found


def readable(message: str, numbers: Sequence[str]) -> Packable:
    """How to read a sensor's numbers from its messages, by the name of their class.

    Raises:
        ConfigurationError: see ``message_class`` and ``stamped``.
    """
    return stamped(message_class(message), numbers)


class PackedReader:
    """Reads one kind of message from bytes; those of another layout are deserialised."""

    def __init__(self, kind: Packable) -> None:
        self.kind = kind
        self.layout: Layout | None = None
        """Layout of the sender's messages, None while it is not known."""

    @property
    def places(self) -> list[tuple[int, int]] | None:
        """(offset, count) of each wanted array in the known layout; None: not known."""
        return None if self.layout is None else self.layout.places

    def forget(self) -> None:
        """Forget the layout: the next bytes are deserialised."""
        self.layout = None

    def arrays(self, data: bytes) -> list[np.ndarray] | None:
        """The wanted doubles of bytes of the known layout; None for others."""
        layout = self.layout
        return layout.arrays(data) if layout is not None and layout.fits(data) else None

    def message(self, data: bytes) -> Any:
        """Deserialise bytes, and learn their layout.

        Raises:
            StateError: these bytes are no such message.
        """
        self.layout = None
        refuse_size(data)
        cursor = Cursor(data)
        places = self.kind.fields(cursor)
        cursor.end()
        try:
            message = deserialize_message(data, self.kind.kind)
        except RuntimeError as error:
            raise StateError(str(error)) from error
        if data.startswith(ENCAPSULATION):
            layout = Layout(data, places, self.kind.wanted)
            same = all(
                here.tobytes() == np.array(there, dtype=np.float64).tobytes()
                for here, there in zip(layout.arrays(data), self.kind.values(message))
            )
            self.layout = layout if same else None
        return message


def words_of(data: bytes | memoryview) -> np.ndarray:
    """View of the bytes after the encapsulation as doubles: every aligned double of the message is an element."""
    return np.frombuffer(data, np.float64, (len(data) - _HEAD) // 8, _HEAD)


def word(at: int) -> int:
    """Index in ``words_of`` of the double at offset ``at``."""
    return (at - _HEAD) // 8


def with_stamp(data: bytes, time_ns: int) -> bytes:
    """The bytes of a message that begins with a header, with another stamp."""
    return data[:_HEAD] + _STAMP.pack(*stamp_parts(time_ns)) + data[_HEAD + _STAMP.size :]


class PackedMessage:
    """A message that is serialised once, and sent again and again with other numbers.

    Args:
        message: with each array of doubles filled with numbers that occur nowhere else in it
            (`markers`), by which it is found in the bytes.
    """

    def __init__(self, message: Any) -> None:
        data = serialize_message(message)
        memory = np.zeros(_HEAD + len(data), dtype=np.uint8)  # shifted: doubles are aligned
        self._buffer = memory.data[_HEAD:]
        self._buffer[:] = data

    def doubles(self, markers: np.ndarray) -> np.ndarray:
        """Writable view of the array that was filled with these markers; it is set to zero.

        Raises ValueError where they are not in the bytes exactly once.
        """
        at = self.place(np.asarray(markers, dtype=np.float64).tobytes())
        view = np.frombuffer(self._buffer, np.float64, len(markers), at)
        view[:] = 0.0
        return view

    @property
    def words(self) -> np.ndarray:
        """Writable view of the message as doubles, see `words_of`."""
        return words_of(self._buffer)

    def place(self, wanted: bytes) -> int:
        """Offset of these bytes; ValueError where they are not in the message exactly once."""
        data = self._buffer.tobytes()
        at = data.find(wanted)
        if at < 0 or data.count(wanted) != 1:
            raise ValueError("an array of a message cannot be distinguished from another one")
        return at

    def set_stamp(self, time_ns: int) -> None:
        """Write the stamp, ns, of a message that begins with a header."""
        _STAMP.pack_into(self._buffer, _HEAD, *stamp_parts(time_ns))

    def publish(self, publisher: Any) -> None:
        """Publish the message with its present numbers.

        This skips rclpy's check of the message, which takes as long as Fast DDS does.
        """
        publisher.handle.publish_raw(self._buffer.tobytes())

    def send(self, handle: Any, time_ns: int) -> None:
        """Publish the message with a stamp, ns, by the handle of a publisher; it begins with a header."""
        _STAMP.pack_into(self._buffer, _HEAD, *stamp_parts(time_ns))
        handle.publish_raw(self._buffer.tobytes())


def markers(count: int, number: int) -> np.ndarray:
    """(count,) numbers for the ``number``-th array of a ``PackedMessage``."""
    return 1e-300 * (1.0 + number) + 1e-310 * np.arange(1, count + 1)
