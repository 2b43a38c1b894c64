"""The numbers of messages that come each millisecond, taken from their bytes by compiled code.

What may be taken so is known from ``packed``, whose layouts are those of whole messages; here one call
compares a message with its layout and copies the numbers that are needed. Apart from it because whoever
reads a message now and then needs no compiler.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.ros.packed import (
    ENCAPSULATION,
    Layout,
    Packable,
    PackedReader,
    stamp_ns,
    word,
    words_of,
)

NO_WORDS, _NO_NUMBERS = np.zeros(0, dtype=np.int64), np.zeros(0)
_ANOTHER = -(2**63)
"""Instead of a time: these bytes are another message."""


class NumbersReader(PackedReader):
    """Reads chosen numbers of one kind of message; what it does not know goes through the message."""

    def __init__(self, kind: Packable) -> None:
        super().__init__(kind)
        self._known: Layout | None = None
        none = Layout(bytes(len(ENCAPSULATION) + 8), [], None)
        self._look_at(none)
        # Compiled now, not with the first message.
        _read(words_of(none.data), self._same, self._bits, NO_WORDS, _NO_NUMBERS)

    def take(self, data: bytes, index: np.ndarray, out: np.ndarray) -> int | None:
        """Words (m,) of bytes whose layout is known into ``out`` (m,): their time, ns; or None."""
        layout = self.layout
        if layout is not self._known:
            if layout is None:
                return None
            self._look_at(layout)
        if len(data) != self._size or not data.startswith(ENCAPSULATION):
            return None
        if self._tail and not data.endswith(self._tail):
            return None
        words = np.frombuffer(data, np.float64, self._count, len(ENCAPSULATION))
        time_ns = _read(words, self._same, self._bits, index, out)
        return None if time_ns == _ANOTHER else time_ns

    def index(self) -> np.ndarray:
        """The words (m,) of all arrays wanted, of the layout that is known."""
        words = [word(at) + np.arange(count) for at, count in self.places or ()]
        return np.concatenate([NO_WORDS, *words])

    def _look_at(self, layout: Layout) -> None:
        """Which words of a message must be the same as in the first one: all but stamp and numbers."""
        words = words_of(layout.data)
        same = np.ones(len(words), dtype=bool)
        same[:1] = False
        for at, count in layout.all_places:
            same[word(at) : word(at) + count] = False
        self._known, self._same = layout, np.flatnonzero(same)
        self._size, self._count = len(layout.data), len(words)
        self._bits = words.view(np.uint64)[self._same]
        self._tail = layout.data[len(ENCAPSULATION) + 8 * len(words) :]


class SampleReader:
    """The numbers of one sender's stamped messages, always as many.

    Args:
        kind: of the messages; all arrays of doubles that it wants, one after the other.
    """

    def __init__(self, kind: Packable) -> None:
        self._packed, self._kind = NumbersReader(kind), kind
        self._index, self._room = NO_WORDS, _NO_NUMBERS

    def read(self, data: bytes) -> tuple[int, np.ndarray]:
        """Time, ns, and numbers (m,).

        Raises:
            StateError: these bytes are no such message.
        """
        time_ns = self._packed.take(data, self._index, self._room)
        if time_ns is not None:
            return time_ns, self._room.copy()
        message = self._packed.message(data)
        self._index = self._packed.index()
        self._room = np.empty(len(self._index))
        return stamp_ns(message), np.concatenate(self._kind.values(message)).astype(float)


@bare_kernel
def _read(words, same, bits, index, out):
    """Time, ns, of a message whose words ``same`` are ``bits``; its words ``index`` go into ``out``."""
    raw = words.view(np.uint64)
    for k in range(same.shape[0]):
        if raw[same[k]] != bits[k]:
            return _ANOTHER
    for k in range(index.shape[0]):
        out[k] = words[index[k]]
    stamp = raw[0]
    return np.int64(np.int32(stamp & np.uint64(0xFFFFFFFF))) * 1_000_000_000 + np.int64(
        stamp >> np.uint64(32)
    )
