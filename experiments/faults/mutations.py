"""Malformed inputs: bytes of messages spoiled, and messages filled with anything.

All that is random comes from the generator that is given: the same seed makes the same inputs.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from rclpy.serialization import serialize_message

NUMBERS = (0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e-9, 1e9, 1e30, -1e300)
"""Doubles at the edges of their range."""

COUNTS = (0, 1, 2, 3, 255, 0x7FFF, 0xFFFF, 1_000_000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
"""Lengths and seconds at the edges of their range."""

TEXTS = ("", "/", "\0", "ä€😀", "x" * 5000, "..", "package://", "a b", "inf", "%s%n", "${HOME}")

MOST_ELEMENTS = 30
"""Of a sequence that is filled at random, now and then ten times as many."""

MOST_PARTS = 3
"""Of a sequence of messages in each element of another one: all 300 times 300 take half a second to make."""

HEAD = 4
"""Bytes before the fields of a serialised message."""


def spoiled(data: bytes, random: Random) -> bytes:
    """Bytes with one to four changes: bits, numbers, counts, lengths, byte order."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 2, 4))):
        random.choice(_CHANGES)(changed, random)
    return bytes(changed)


def _flip(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set_byte(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF))


def _set_count(data: bytearray, random: Random) -> None:
    places = (len(data) - HEAD) // 4
    if places > 0:
        at = HEAD + 4 * random.randrange(places)
        struct.pack_into("<I", data, at, random.choice((*COUNTS, len(data))))


def _set_number(data: bytearray, random: Random) -> None:
    places = (len(data) - HEAD) // 8
    if places > 0:
        at = HEAD + 8 * random.randrange(places) + random.choice((0, 0, 4))
        if at + 8 <= len(data):
            struct.pack_into("<d", data, at, random.choice(NUMBERS))


def _cut(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data) + 1) :]


def _extend(data: bytearray, random: Random) -> None:
    data += random.randbytes(random.choice((1, 3, 8, 100, 4000)))


def _remove(data: bytearray, random: Random) -> None:
    begin = random.randrange(len(data) + 1)
    del data[begin : begin + random.choice((1, 4, 8, 64))]


def _repeat(data: bytearray, random: Random) -> None:
    begin = random.randrange(len(data) + 1)
    data[begin:begin] = data[begin : begin + random.choice((4, 8, 64, 512))]


def _swap_order(data: bytearray, random: Random) -> None:
    if len(data) > 1:
        data[1] = random.choice((0, 1, 2, 3, 0xFF))


def _anything(data: bytearray, random: Random) -> None:
    data[:] = random.randbytes(random.choice((0, 1, 4, 11, 12, 64, 1000)))


_CHANGES: tuple[Callable[[bytearray, Random], None], ...] = (
    *(_flip, _set_byte, _set_count, _set_count, _set_number, _set_number, _set_number),
    *(_cut, _extend, _remove, _repeat, _swap_order, _anything),
)


def filled(kind: type, random: Random, words: Sequence[str] = ()) -> Any:
    """A message of this type with anything in its fields.

    Args:
        kind: class of the message, or of a service's request.
        words: texts that mean something to the receiver, taken in half of all cases.
    """
    return _filled(kind, random, words, nested=False)


def _filled(kind: type, random: Random, words: Sequence[str], nested: bool) -> Any:
    """The same; nested: it is itself an element of a sequence."""
    message = kind()
    for name, type_name in _fields(kind):
        setattr(message, name, _value(type_name, random, words, nested))
    return message


def serialised(kind: type, random: Random, words: Sequence[str] = ()) -> bytes:
    """The same as bytes, in one of three cases spoiled in addition."""
    data = packed(filled(kind, random, words))
    return spoiled(data, random) if random.random() < 0.33 else data


def packed(message: Any) -> bytes:
    """A message serialised; zeros between its fields, where the middleware leaves what was in its memory."""
    data = serialize_message(message)
    kept = bytearray(len(data))
    kept[:HEAD] = data[:HEAD]
    _keep(message, "", 0, data[HEAD:], memoryview(kept)[HEAD:])
    return bytes(kept)


def _keep(value: Any, type_name: str, at: int, data: bytes, kept: memoryview) -> int:
    """Copy the bytes of a value in plain CDR from its place, ``at`` or the next that suits it; where it ends."""

    def copy(size: int, count: int = 1) -> int:
        begin = at + -at % size
        kept[begin : begin + size * count] = data[begin : begin + size * count]
        return begin + size * count

    sequence = _sequence(type_name)
    if sequence:
        element, count = sequence
        if not count:
            at = copy(4)
        if element in _SIZES:
            return copy(_SIZES[element], len(value)) if len(value) else at
        for each in value:
            at = _keep(each, element, at, data, kept)
        return at
    if type_name.startswith("string"):
        at = copy(4)
        (length,) = struct.unpack_from("<I", data, at - 4)  # of a text with \0 the part before it
        return copy(1, length)
    if type_name in _SIZES:
        return copy(_SIZES[type_name])
    for name, kind in _fields(type(value)):
        at = _keep(getattr(value, name), kind, at, data, kept)
    return at


_SEQUENCE = re.compile(r"sequence<(.+?)(?:, \d+)?>|(.+?)\[(\d+)\]")
_INTEGERS = {
    f"{sign}int{bits}": (0 if sign else -(2 ** (bits - 1)), 2 ** (bits - (not sign)) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_SIZES = {name: int(name.lstrip("uint")) // 8 for name in _INTEGERS}
_SIZES |= {"octet": 1, "byte": 1, "char": 1, "boolean": 1}
_SIZES |= {"float": 4, "float32": 4, "double": 8, "float64": 8}
"""Bytes of a value in plain CDR, which are also its alignment."""
_INTEGERS["octet"] = _INTEGERS["byte"] = _INTEGERS["char"] = (0, 255)


@functools.cache
def _sequence(type_name: str) -> tuple[str, int] | None:
    """Type of the elements and number of them, 0: any; None: no sequence."""
    found = _SEQUENCE.fullmatch(type_name)
    return found and (found[1] or found[2], int(found[3] or 0))


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, str], ...]:
    """Name and type of each field of a message."""
    return tuple(kind.get_fields_and_field_types().items())


def _value(type_name: str, random: Random, words: Sequence[str], nested: bool) -> Any:
    sequence = _sequence(type_name)
    if sequence:
        element, count = sequence
        size = count or _size(random, len(words))
        parts = "/" in element
        if nested and parts and not count:
            size = min(size, MOST_PARTS)
        values = [_value(element, random, words, nested or parts) for _ in range(size)]
        if element in ("octet", "byte"):
            return [bytes([value]) if isinstance(value, int) else value for value in values]
        return values
    if type_name in ("double", "float", "float64", "float32"):
        return _number(random, single=type_name in ("float", "float32"))
    if type_name == "boolean":
        return random.random() < 0.5
    if type_name in _INTEGERS:
        low, high = _INTEGERS[type_name]
        value = random.choice((0, 1, 1, low, high, random.randint(low, high), random.randint(0, 9)))
        value = min(max(value, low), high)
        return bytes([value]) if type_name in ("octet", "byte") else value
    if type_name.startswith(("string", "wstring")):
        return random.choice(words) if words and random.random() < 0.5 else random.choice(TEXTS)
    return _filled(_class_of(type_name), random, words, nested)


def _size(random: Random, known: int) -> int:
    size = random.choice((0, 1, 2, known, random.randrange(MOST_ELEMENTS)))
    return 10 * size if random.random() < 0.02 else size


def _number(random: Random, single: bool) -> float:
    if random.random() < 0.2:
        value = random.choice(NUMBERS)
        return value if not single or not math.isfinite(value) else max(min(value, 3e38), -3e38)
    return random.gauss(0.0, random.choice((0.1, 1.0, 1.0, 10.0)))


@functools.cache
def _class_of(type_name: str) -> type:
    package, _, name = type_name.rpartition("/")
    module = __import__(f"{package}.msg", fromlist=[name])
    return getattr(module, name)
