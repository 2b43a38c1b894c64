"""Reports of compilation while a program waits."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from numba.core import event

EVERY_S = 5.0
SIGN = "compiling: "
"""Prefix of each line, to find them in a log."""


def to_stderr(line: str) -> None:
    """Print a line for a user at a terminal."""
    print(line, file=sys.stderr, flush=True)


class _Counter(event.Listener):
    """Counts kernels whose compilation has begun, and ended; a kernel from the cache does neither."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    def on_start(self, event: Any) -> None:
        self.begun += 1

    def on_end(self, event: Any) -> None:
        self.ended += 1


class Compiling:
    """Context that reports compilation every ``every_s`` seconds, and at its end.

    Args:
        tell: takes a line; called from a thread of its own, and at the end from the caller's.

    Attributes:
        kernels: number of kernels compiled, not loaded from the cache.
    """

    def __init__(self, tell: Callable[[str], object], every_s: float = EVERY_S) -> None:
        self._tell, self._every_s = tell, every_s
        self._counter, self._over = _Counter(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="compiling", daemon=True)

    @property
    def kernels(self) -> int:
        return self._counter.ended

    def __enter__(self) -> Compiling:
        self._begun_s = time.monotonic()
        event.register("numba:compile", self._counter)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop counting and report what was compiled; nothing after an error, which has its own report."""
        event.unregister("numba:compile", self._counter)
        self._over.set()
        self._thread.join()
        if self.kernels and error is None:
            self._tell(f"{SIGN}{self._so_far()}; from now on they come from the cache")

    def _so_far(self) -> str:
        return f"{self.kernels} kernels in {time.monotonic() - self._begun_s:.0f} s"

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            if self._counter.begun:
                self._tell(f"{SIGN}{self._so_far()}, the first time only")
