"""The numbers of messages that come each millisecond, taken from their bytes by compiled code.

What may be taken so is known from ``packed``, whose layouts are those of whole messages; here one call
compares a message with its layout and copies the numbers that are needed. Apart from it because whoever
reads a message now and then needs no compiler.
"""

from __future__ import annotations

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.ros.packed import (
    ENCAPSULATION,
    Packable,
    PackedReader,
    stamp_ns,
    word,
)

NO_WORDS, _NO_NUMBERS = np.zeros(0, dtype=np.int64), np.zeros(0)
_ANOTHER = -(2**63)
"""Instead of a time: these bytes are another message."""

_ALL = slice(None)


class KnownMessage(Struct):
    """A message whose layout is known, and what is wanted of it.

    Attributes:
        numbers, bits (w,): one memory of doubles: the encapsulation, the stamp, all else; what remains is zero.
        same (k,), their (k,): words that are the same in each message, and what they are.
        index (m,), out (m,): words that are wanted, and where to.
    """

    numbers: NDArray[np.float64]
    bits: NDArray[np.uint64]
    same: NDArray[np.int64]
    their: NDArray[np.uint64]
    index: NDArray[np.int64]
    out: NDArray[np.float64]


@structref.register
class KnownMessageType(StructType):
    """numba's type of `KnownMessage`."""


_pack = packing(KnownMessage, KnownMessageType)


@kernel
def _packed(values):
    """The struct ``KnownMessage``, from the tuple of its fields' values."""
    return _pack(values)


KnownMessage.packed = staticmethod(_packed)


class NumbersReader(PackedReader):
    """Reads chosen numbers of one kind of message; what it does not know goes through the message."""

    def __init__(self, kind: Packable) -> None:
        super().__init__(kind)
        self._look_at(bytes(len(ENCAPSULATION) + 8), [], NO_WORDS, _NO_NUMBERS)
        _read(self._known)  # compiled now, not with the first message
        self._known = None

    def forget(self) -> None:
        """The next bytes go through the message."""
        super().forget()
        self._known = None

    def take(self, data: bytes) -> int | None:
        """Time, ns, of bytes of the layout that is known, whose numbers are where ``take_into`` has them; or None."""
        if self._known is None:
            return None
        try:
            self._room[_ALL] = data
        except ValueError:  # another size
            return None
        time_ns = _read(self._known)
        return None if time_ns == _ANOTHER else time_ns

    def take_into(self, index: np.ndarray, out: np.ndarray) -> None:
        """From now on words (m,) of messages of the layout that is known, if there is one, go into ``out`` (m,)."""
        if self.layout is not None:
            self._look_at(self.layout.data, self.layout.all_places, index, out)

    def message(self, data: bytes) -> object:
        """See ``PackedReader``; nothing is taken before the next ``take_into``."""
        self._known = None
        return super().message(data)

    def index(self) -> np.ndarray:
        """The words (m,) of all arrays wanted, of the layout that is known."""
        words = [word(at) + np.arange(count) for at, count in self.places or ()]
        return np.concatenate([NO_WORDS, *words])

    def _look_at(
        self, data: bytes, places: list[tuple[int, int]], index: np.ndarray, out: np.ndarray
    ) -> None:
        """Which words of a message must be the same as in the first one: all but stamp and numbers."""
        head = 8 - len(ENCAPSULATION)  # so that doubles lie where doubles may
        bits = np.zeros(-(-(head + len(data)) // 8), dtype=np.uint64)
        self._room = memoryview(bits.view(np.uint8))[head : head + len(data)]
        self._room[_ALL] = data
        same = np.ones(len(bits), dtype=bool)
        same[1] = False
        for at, count in places:
            same[1 + word(at) : 1 + word(at) + count] = False
        numbers, same = bits.view(np.float64), np.flatnonzero(same)
        self._known: KnownMessage | None = KnownMessage(
            numbers=numbers, bits=bits, same=same, their=bits[same], index=1 + index, out=out
        )


class SampleReader:
    """The numbers of one sender's stamped messages, always as many.

    Args:
        kind: of the messages; all arrays of doubles that it wants, one after the other.
    """

    def __init__(self, kind: Packable) -> None:
        self._packed, self._kind = NumbersReader(kind), kind
        self._room = _NO_NUMBERS

    def read(self, data: bytes) -> tuple[int, np.ndarray]:
        """Time, ns, and numbers (m,).

        Raises:
            StateError: these bytes are no such message.
        """
        time_ns = self._packed.take(data)
        if time_ns is not None:
            return time_ns, self._room.copy()
        message = self._packed.message(data)
        index = self._packed.index()
        self._room = np.empty(len(index))
        self._packed.take_into(index, self._room)
        return stamp_ns(message), np.concatenate(self._kind.values(message)).astype(float)


@kernel
def _read(known):
    """Time, ns, of a message whose words ``same`` are as they should be; its words ``index`` go into ``out``."""
    bits, same, their = known.bits, known.same, known.their
    for k in range(same.shape[0]):
        if bits[same[k]] != their[k]:
            return _ANOTHER
    numbers, index, out = known.numbers, known.index, known.out
    for k in range(index.shape[0]):
        out[k] = numbers[index[k]]
    stamp = bits[1]
    return np.int64(np.int32(stamp & np.uint64(0xFFFFFFFF))) * 1_000_000_000 + np.int64(
        stamp >> np.uint64(32)
    )
