"""An emergency stop that survives its process: a file that only a release removes. Without ROS."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from pathlib import Path
from typing import BinaryIO

from contact_id_controller.exceptions import ConfigurationError, ContactIdError, RecordError
from contact_id_controller.files import write_with

SUFFIX = ".emergency_stop"

_LONGEST = 80
"""Bytes of a node's or a robot's name in the name of a file, which has at most 255."""

_Identity = tuple[int, int]
_UNKNOWN: _Identity = (-1, -1)

KEEP_S = 0.1
"""Longest time that a control period waits for the disk, s."""


def state_folder(given: str = "") -> Path:
    """Folder of the latch files: ``given``, or the user's state folder (XDG base directories).

    Raises:
        ConfigurationError: ``given`` cannot be expanded.
    """
    if given:
        try:
            return Path(given).expanduser()
        except RuntimeError as error:
            raise ConfigurationError(
                f"parameter 'state_folder' is {given!r}, must be a folder: {error}"
            ) from error
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if os.path.isabs(base) else Path("~/.local/state").expanduser()
    return home / "contact_id_controller"


def ros_domain() -> str:
    """Number of the ROS domain of this process."""
    return os.environ.get("ROS_DOMAIN_ID") or "0"


def robot_name(urdf: str) -> str:
    """Name of the robot in a latch: the file name of its URDF without suffix; empty: not known."""
    return Path(urdf).stem


def file_name(name: str) -> str:
    """Make a node's full name, or a robot's, usable in a file name; a long one is cut and ends with its digest."""
    name = re.sub(r"[^\w.-]", "_", name.strip("/").replace("/", "."))
    if len(name.encode()) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return name.encode()[: _LONGEST - 13].decode(errors="ignore") + "-" + digest


class EmergencyLatch:
    """Keeps whether the emergency stop of a robot is engaged, through a restart, `kill -9` or power loss.

    A latch belongs to one ROS domain, one node and one robot; simulations have their own. A file that names no domain
    or no robot (as in version 0.2.0) counts for each that it could mean, except simulations. A file that cannot be
    examined counts as engaged.

    Args:
        folder: of the file; made when it is needed.
        node: full name, with namespace, of the node that it stops.
        robot: its name, see `robot_name`; empty: not known.
        simulated: whether the node uses simulated time.

    Attributes:
        engaged: whether it is engaged, from the call of `engage` on.
        path: the file that it writes, a single line of text.
    """

    def __init__(
        self, folder: Path, node: str, robot: str = "", *, simulated: bool = False
    ) -> None:
        node, robot = file_name(node), file_name(robot)
        place = f"{node}.{'simulation' if simulated else 'domain'}{ros_domain()}"
        names = [place] if simulated else [place, node]
        of_robot = [f"{name}.{robot}" for name in names] if robot else []
        self._paths = [folder / (name + SUFFIX) for name in (*of_robot, *names)]
        self.path = self._paths[0]
        self.engaged = self._kept = False
        self._known: dict[Path, _Identity | None] = {}
        self._writer: threading.Thread | None = None
        self.is_there()

    def is_there(self) -> bool:
        """Look at the files again; return whether the stop is engaged."""
        self._known = {path: _identity(path) for path in self._paths if _is_there(path)}
        self._kept = bool(self._known)
        self.engaged = self.engaged or self._kept
        return self.engaged

    @property
    def files(self) -> list[str]:
        """The files that keep it engaged; without them it is released for processes that start later."""
        return [str(path) for path in self._known]

    def engage(self) -> None:
        """Engage the stop in memory; `keep` writes the file, which takes longer than a stop may wait."""
        self.engaged = True

    def keep(self) -> str:
        """Write the file of an engaged stop, if not yet written; return a line for the log if that fails, else "".

        It waits at most `KEEP_S` for the disk; writing goes on in a thread.
        """
        if self._kept or not self.engaged:
            return ""
        self._kept, failures = True, []
        self._writer = threading.Thread(target=lambda: failures.append(self._write()), daemon=True)
        try:
            self._writer.start()
        except RuntimeError:  # the system allows no more threads
            self._writer = None
            return self._write()
        self._writer.join(KEEP_S)
        if self._writer.is_alive():
            return f"the emergency stop is engaged, but not yet written to {str(self.path)!r}"
        return failures[0]

    def _write(self) -> str:
        """Write and sync the file; return "" or why the stop will not outlive this process."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            words = f"engaged {now} by process {os.getpid()}\n"
            write_with(self.path, lambda file: _put(file, words))
            self._known[self.path] = _identity(self.path)
            _sync(self.path.parent)
        except (OSError, RecordError) as error:
            reason = error if isinstance(error, RecordError) else self._unwritten(error)
            return f"the emergency stop is engaged, but will not outlive this process: {reason}"
        return ""

    def _unwritten(self, error: OSError) -> str:
        return f"cannot write {str(self.path)!r}: {error.strerror}"

    def release(self) -> None:
        """Remove the files that this latch wrote or found; nothing if it is not engaged.

        Raises:
            ContactIdError: that fails, or another process has engaged it since; the stop stays engaged.
        """
        if not self.engaged:
            return
        if self._writer is not None and self._writer.is_alive():
            raise ContactIdError(
                f"the emergency stop stays engaged: {str(self.path)!r} is still being written"
            )
        for path in self._paths:
            if _is_there(path) and self._known.get(path, _UNKNOWN) != _identity(path):
                self.is_there()  # so that a second call releases that one, too
                raise ContactIdError(
                    f"the emergency stop stays engaged: another process has engaged it since "
                    f"({str(path)!r}); release again to release that one, too"
                )
        try:
            for path in self._known:
                path.unlink(missing_ok=True)
            if self.path.parent.is_dir():
                _sync(self.path.parent)
        except NotADirectoryError:
            pass
        except OSError as error:
            raise ContactIdError(
                f"the emergency stop stays engaged: cannot remove {str(path)!r}: {error.strerror}"
            ) from error
        self._known.clear()
        self.engaged = self._kept = False


def _is_there(path: Path) -> bool:
    """Whether the file exists, or cannot be examined."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def _identity(path: Path) -> _Identity | None:
    """Inode and modification time of a file, which a later one of the same name does not share; None: not readable."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _put(file: BinaryIO, words: str) -> None:
    """Write text, synced to the disk; the file is made private to the user."""
    os.fchmod(file.fileno(), 0o600)
    file.write(words.encode())
    file.flush()
    os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Sync a folder's entries to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
