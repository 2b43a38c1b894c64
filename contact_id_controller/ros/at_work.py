"""Which worker of a node is at work on this machine, for the workers of another keeper.

A worker that outlives its keeper goes on. Whoever is started in the keeper's place connects first, and
then takes over from it. A lock says who works: the kernel lets it go with whoever holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import time
from pathlib import Path

from contact_id_controller.safety.heartbeat import machine

_LEFT = "has no keeper on"
_LOOK_S, _GONE_S = 0.001, 1.0
"""Between two looks whether a process that was killed has let go; longest wait for that."""


class AtWork:
    """The place of one node's worker: a locked file, one line for people.

    Args:
        folder: where the file is; made when it is needed.
        name: of the node, full, namespace and all.
    """

    def __init__(self, folder: Path, name: str) -> None:
        words = re.sub(r"[^\w.-]", "_", name.strip("/").replace("/", "."))
        self.path = folder / f"{words}.domain{os.environ.get('ROS_DOMAIN_ID') or 0}.at_work"
        self._handle: int | None = None

    def enter(self) -> bool:
        """Take the place, unless somebody else has it; whether it is this process's now."""
        if self._handle is not None:
            return True
        handle = None
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._handle, handle = handle, None
            self._say(f"{os.getpid()}\n")
            return True
        if handle is not None:
            os.close(handle)
        return False

    def has_no_keeper(self) -> None:
        """Say that this process goes on though its keeper has died."""
        self._say(f"{os.getpid()} {_LEFT} {machine()}\n")

    def left(self) -> int | None:
        """Number of the process at work if it has lost its keeper; None: nobody is, or one that has."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            if os.fstat(handle).st_uid != os.getuid() or _free(handle):
                return None
            pid, _, words = os.read(handle, 200).decode("ascii", "replace").partition(" ")
            here = machine()  # a folder may be shared by several
            return (
                int(pid)
                if here and words.strip() == f"{_LEFT} {here}" and pid.isdecimal()
                else None
            )
        finally:
            os.close(handle)

    def take_over(self) -> bool:
        """End a worker that has lost its keeper, without a last word; whether there was one."""
        pid = self.left()
        if pid is None:
            return False
        with contextlib.suppress(OSError):
            process = os.pidfd_open(pid)
            try:
                if self.left() == pid:  # so the number is still that process's
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)
        end_s = time.monotonic() + _GONE_S
        while self.left() == pid and time.monotonic() < end_s:
            time.sleep(_LOOK_S)
        return True

    def _say(self, words: str) -> None:
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
                os.pwrite(self._handle, words.encode(), 0)


def _free(handle: int) -> bool:
    """Whether nobody holds the lock of a file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
