"""Non-blocking output: a process of its own writes what a node prints.

On a terminal after Ctrl-S, into a pipe that is not drained, on a slow disk, `write` blocks, and with it a control loop.
So what a node prints (Python, C and tracebacks alike) goes into non-blocking pipes. A forwarder, which runs this file
alone, empties them at once, and passes everything on to the original output and into the node's log file. Where that is
slow it keeps `KEPT_BYTES`; further lines are dropped, and the next line written states their number. It outlives the
node, however that ended, until its last line is written.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import fcntl
import io
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

KEPT_BYTES = 1_000_000
"""Largest size of unwritten output, for each destination."""

FLUSH_S = 1.0
"""Longest wait, at the end, for the last lines to be written."""

_PIPE_BYTES, _CHUNK_BYTES = 1 << 20, 1 << 16
_STREAMS = 1, 2
_COLOURS = re.compile(rb"\x1b\[[0-9;]*m")

_forwarder: _Forwarder | None = None
"""The forwarder of this process, or of the keeper that forked it."""


@contextlib.contextmanager
def never_waiting(name: str) -> Iterator[None]:
    """Make output inside non-blocking; within another one, as in a keeper's worker, it does nothing.

    name: begins the name of the log file.
    """
    global _forwarder
    if _forwarder is not None:
        yield
        return
    _forwarder = _Forwarder(name)
    try:
        yield
    finally:
        finish()


def finish() -> None:
    """Let the last lines be written, for at most `FLUSH_S`; output may block again then."""
    global _forwarder
    if _forwarder is not None:
        forwarder, _forwarder = _forwarder, None
        forwarder.finish()


class _Forwarder:
    """The printing process' side of the forwarder."""

    def __init__(self, name: str) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if os.isatty(2):
            os.environ.setdefault("RCUTILS_COLORIZED_OUTPUT", "1")  # the pipe ends on a terminal
        pipes, (ended, end) = [os.pipe() for _ in _STREAMS], os.pipe()
        _run_apart([*(read for read, _ in pipes), end], _log_file(name))
        os.close(end)
        self._ended, self._before = ended, [os.dup(number) for number in _STREAMS]
        self._streams = sys.stdout, sys.stderr
        for number, (read, write) in zip(_STREAMS, pipes):
            os.set_blocking(write, False)
            with contextlib.suppress(OSError):  # the system may allow less
                fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            os.dup2(write, number)
            os.close(read)
            os.close(write)
        sys.stdout, sys.stderr = map(_text, _STREAMS)

    def finish(self) -> None:
        """Restore stdout and stderr once all output has been forwarded, or after ``FLUSH_S``."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        ctypes.CDLL(None).fflush(None)
        sys.stdout, sys.stderr = self._streams
        for number, before in zip(_STREAMS, self._before):
            os.dup2(before, number)
            os.close(before)
        select.select([self._ended], [], [], FLUSH_S)
        os.close(self._ended)


def _run_apart(handles: list[int], log: Path) -> None:
    """Run this file as a detached process, by two forks: this process may wait for all its own children.

    handles: of the pipes that it reads; log: the file that it writes.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        if not os.fork():
            for number in signal.valid_signals():  # it ends when those that print end
                with contextlib.suppress(OSError):  # of some the system decides
                    signal.signal(number, signal.SIG_IGN)
            for handle in handles:
                os.set_inheritable(handle, True)
            words = [*map(str, handles), str(log)]
            os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, *words])
    finally:
        os._exit(0)


def _log_file(name: str) -> Path:
    """Path as ROS chooses it: in `ROS_LOG_DIR`, or in the folder log of `ROS_HOME`, else of ~/.ros."""
    home = os.environ.get("ROS_HOME") or "~/.ros"
    folder = Path(os.environ.get("ROS_LOG_DIR") or Path(home, "log"))
    with contextlib.suppress(RuntimeError):  # no home directory
        folder = folder.expanduser()
    return folder / f"{name}_{os.getpid()}_{time.time_ns() // 1_000_000}.log"


class _Raw(io.RawIOBase):
    """A file descriptor for output; what it does not accept at once is lost."""

    def __init__(self, number: int) -> None:
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            os.write(self._number, data)
        return len(data)


def _text(number: int) -> io.TextIOWrapper:
    # Unbuffered: a signal handler that prints would find the lock of a buffer taken.
    return io.TextIOWrapper(
        cast(Any, _Raw(number)), "utf-8", "backslashreplace", line_buffering=True
    )


# The forwarder


class _Place:
    """A destination of lines: opened and written in a thread, which alone may block.

    Args:
        find: returns its file descriptor.
        plain: whether colour codes are removed.
    """

    def __init__(self, find: Callable[[], int], plain: bool = False) -> None:
        self._find, self._plain = find, plain
        self._kept: collections.deque[bytes] = collections.deque()
        self._size = self._dropped = 0
        self._ended, self._new = False, threading.Condition()
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def put(self, data: bytes) -> None:
        """Write ``data``, unless too much is unwritten already."""
        with self._new:
            if self._size + len(data) > KEPT_BYTES:
                self._dropped += data.count(b"\n")
                return
            self._keep(self._words() + data)

    def end(self) -> None:
        """Note that nothing more follows."""
        with self._new:
            self._ended = True
            self._keep(self._words())

    def _words(self) -> bytes:
        dropped, self._dropped = self._dropped, 0
        return b"... %d lines dropped: not written in time ...\n" % dropped if dropped else b""

    def _keep(self, data: bytes) -> None:
        self._kept.append(data)
        self._size += len(data)
        self._new.notify()

    def _write(self) -> None:
        """Write kept lines, in a thread of its own until ended: a blocked terminal delays nothing else."""
        number = self._find()
        while True:
            with self._new:
                self._new.wait_for(lambda: self._kept or self._ended)
                if not self._kept:
                    return
                data = self._kept.popleft()
            unwritten = memoryview(_COLOURS.sub(b"", data) if self._plain else data)
            while unwritten:
                try:
                    unwritten = unwritten[os.write(number, unwritten) :]
                except BlockingIOError:  # another process made it non-blocking
                    select.select([], [number], [])
                except OSError:  # closed or full: the next ones may be written again
                    with self._new:
                        self._dropped += data.count(b"\n")
                    break
            with self._new:
                self._size -= len(data)


def _copy(read: int, places: Sequence[_Place]) -> None:
    """Read a pipe until all that print into it have ended."""
    while data := os.read(read, _CHUNK_BYTES):
        for place in places:
            place.put(data)


def _open(log: Path, errors: _Place) -> int:
    """Open the log file; if that fails, print a line, and drop what is written there."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        errors.put(f"no log file: cannot write {str(log)!r}: {error.strerror}\n".encode())
        return -1


def _forward(output: int, errors: int, end: int, log: Path) -> None:
    """Run the forwarder process; it ends with those that print.

    output, errors: pipes of stdout and stderr.  end: a pipe that is open as long as this process.
    """
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in (*_STREAMS, output, errors, end):
            with contextlib.suppress(OSError):  # that of the list itself
                os.close(number)
    places = [_Place(partial(int, number)) for number in _STREAMS]
    file = _Place(lambda: _open(log, places[1]), plain=True)
    other = threading.Thread(target=_copy, args=(errors, (places[1], file)), daemon=True)
    other.start()
    _copy(output, (places[0], file))
    other.join()
    end_s = time.monotonic() + FLUSH_S
    for place in (*places, file):
        place.end()
    for place in (*places, file):
        place.thread.join(max(end_s - time.monotonic(), 0.0))
    os._exit(0)


if __name__ == "__main__":
    _pipe, _other, _end = map(int, sys.argv[1:4])
    _forward(_pipe, _other, _end, Path(sys.argv[4]))
