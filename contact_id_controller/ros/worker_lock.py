"""A lock that marks which worker process of a node works on this machine, for workers of another keeper.

A worker that outlives its keeper continues. A process started in the keeper's place connects first, and then takes over
from it. The kernel releases the lock when its holder ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import time
from pathlib import Path

from contact_id_controller.safety.heartbeat import machine, process_fields
from contact_id_controller.safety.latch import file_name, ros_domain

_PARENT = 1
"""Field of /proc/PID/stat behind the name."""

_CAREFULLY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""The folder may be shared: no file in it may block the reader, or be a link."""

_LOOK_S, _GONE_S = 0.001, 1.0
"""Time between two checks whether a killed process has released the lock; longest wait for that."""


class WorkerLock:
    """The lock of a node's worker: a locked file with one line of text.

    Args:
        folder: of the file; made when it is needed.
        name: full name of the node, with namespace.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{file_name(name)}.domain{ros_domain()}.worker"
        self._handle: int | None = None

    def claim(self, keeper: int) -> bool:
        """Take the lock for this process; return whether it holds the lock now.

        Args:
            keeper: process number of its keeper; written into the file.
        """
        if self._handle is not None:
            return True
        flags = os.O_RDWR | os.O_CREAT | _CAREFULLY
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, flags, 0o600)
        except OSError:
            return False
        try:
            if not _is_own_file(handle):
                os.close(handle)
                return False
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            words = f"{os.getpid()} of {keeper} on {machine()}\n".encode()
            os.pwrite(handle, words, 0)
            os.ftruncate(handle, len(words))
        except OSError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    def orphan(self) -> int | None:
        """Process number of the working process if its keeper is gone; None: there is none, or its keeper lives."""
        try:
            handle = os.open(self.path, os.O_RDONLY | _CAREFULLY)
        except OSError:
            return None
        try:
            if not _is_own_file(handle) or not _held(handle):
                return None
            words = os.read(handle, 200).decode("ascii", "replace").split(maxsplit=4)
        finally:
            os.close(handle)
        here = machine()  # a folder may be shared by several
        if len(words) != 5 or not here or words[4].strip() != here or not words[0].isdecimal():
            return None
        fields = process_fields(int(words[0]))
        return None if fields is None or fields[_PARENT] == words[2] else int(words[0])

    def take_over(self) -> bool:
        """Kill a worker that has lost its keeper; return whether none is left."""
        pid = self.orphan()
        if pid is None:
            return True
        with contextlib.suppress(OSError):
            process = os.pidfd_open(pid)
            try:
                if self.orphan() == pid:  # so the number is still that process's
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)
        end_s = time.monotonic() + _GONE_S
        while self.orphan() == pid and time.monotonic() < end_s:
            time.sleep(_LOOK_S)
        return self.orphan() is None


def _is_own_file(handle: int) -> bool:
    """Whether it is a regular file of this user."""
    found = os.fstat(handle)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()


def _held(handle: int) -> bool:
    """Whether a process holds the lock of the file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False
