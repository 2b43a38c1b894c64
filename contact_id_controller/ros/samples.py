"""Copies the numbers of messages at 1 kHz from their bytes, by compiled code.

Layouts are those of ``packed``; one call compares a message with its layout and copies the wanted numbers. Apart from
it because occasional readers of messages need no compiler.
"""

from __future__ import annotations

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.kernels.compile import Kernel, kernel
from contact_id_controller.kernels.direct import direct
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
"""In place of a stamp: the bytes are of another layout."""

_ALL = slice(None)


class KnownMessage(Struct):
    """A message of known layout, and the numbers wanted of it.

    Attributes:
        numbers, bits (w,): the message as words, in one memory: encapsulation, stamp, all else, then zeros.
        same (k,), their (k,): indices of words that are the same in each message, and their values.
        index (m,), out (m,): indices of the wanted words, and the array they are copied to.
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
    """Reads chosen numbers of one kind of message; messages of another layout are deserialised."""

    def __init__(self, kind: Packable) -> None:
        super().__init__(kind)
        self._known: KnownMessage | None
        self._look_at(bytes(len(ENCAPSULATION) + 8), [], NO_WORDS, _NO_NUMBERS)
        self._read: Kernel = direct(_read, self._known)
        self._known = None

    def forget(self) -> None:
        """Forget the layout: the next bytes are deserialised."""
        super().forget()
        self._known = None

    def take(self, data: bytes) -> int | None:
        """Stamp, ns, of bytes of the known layout, after the copy set by ``take_into``; None: another layout."""
        if self._known is None:
            return None
        try:
            self._room[_ALL] = data
        except ValueError:  # another size
            return None
        time_ns: int = self._read(self._known)
        return None if time_ns == _ANOTHER else time_ns

    def take_into(self, index: np.ndarray, out: np.ndarray) -> None:
        """Copy words ``index`` (m,) of later messages of the known layout into ``out`` (m,)."""
        if self.layout is not None:
            self._look_at(self.layout.data, self.layout.all_places, index, out)

    def message(self, data: bytes) -> object:
        """See ``PackedReader``; ``take`` returns None until the next ``take_into``."""
        self._known = None
        return super().message(data)

    def index(self) -> np.ndarray:
        """Indices (m,) of the words of all wanted arrays in the known layout."""
        words = [word(at) + np.arange(count) for at, count in self.places or ()]
        return np.concatenate([NO_WORDS, *words])

    def _look_at(
        self, data: bytes, places: list[tuple[int, int]], index: np.ndarray, out: np.ndarray
    ) -> None:
        """Note which words of a message must be the same as in the first one: all but stamp and doubles."""
        head = 8 - len(ENCAPSULATION)  # so that doubles lie where doubles may
        bits = np.zeros(-(-(head + len(data)) // 8), dtype=np.uint64)
        self._room = bits.view(np.uint8).data[head : head + len(data)]
        self._room[_ALL] = data
        same = np.ones(len(bits), dtype=bool)
        same[1] = False
        for at, count in places:
            same[1 + word(at) : 1 + word(at) + count] = False
        numbers, same = bits.view(np.float64), np.flatnonzero(same)
        self._known = KnownMessage(
            numbers=numbers, bits=bits, same=same, their=bits[same], index=1 + index, out=out
        )


class SampleReader:
    """Reads the numbers of one sender's stamped messages, always the same number of them.

    Args:
        kind: of the messages; all its wanted arrays are concatenated.
    """

    def __init__(self, kind: Packable) -> None:
        self._packed, self._kind = NumbersReader(kind), kind
        self._room = _NO_NUMBERS

    def read(self, data: bytes) -> tuple[int, np.ndarray]:
        """Stamp, ns, and numbers (m,).

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
    """Stamp, ns, of a message whose words ``same`` match, after copying ``index`` to ``out``; else ``_ANOTHER``."""
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
