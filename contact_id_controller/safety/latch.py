"""An emergency stop that outlives its process: a file that only its release removes. Knows no ROS."""

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
"""Longest wait for the disk in a control period, s."""


def state_folder(given: str = "") -> Path:
    """The folder of the latches: the one given, or that of the user's state (XDG base directories)."""
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
    """Name of the robot in a latch: its URDF's file name without the ending; empty: not known."""
    return Path(urdf).stem


def file_name(name: str) -> str:
    """A node's full name, or a robot's, in the name of a file; a long one ends with a digest of its whole."""
    name = re.sub(r"[^\w.-]", "_", name.strip("/").replace("/", "."))
    if len(name.encode()) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return name.encode()[: _LONGEST - 13].decode(errors="ignore") + "-" + digest


class EmergencyLatch:
    """Whether the emergency stop of one robot is engaged, also after a restart, `kill -9` or power loss.

    It belongs to one ROS domain, one node and one robot, and a simulation has its own. A file that
    does not name the domain or the robot, as those of 0.2.0, counts for each that it could mean,
    simulations aside. What cannot be looked at counts as engaged.

    Args:
        folder: where the file is; made when it is needed.
        node: whom it stops, full name, namespace and all.
        robot: its name, see `robot_name`; empty: not known.
        simulated: whether the node uses simulated time.

    Attributes:
        engaged: whether it is, from the moment of `engage` on.
        path: the file that it writes, one line for people.
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
        """Whether it is engaged, by a look at the files, too."""
        self._known = {path: _identity(path) for path in self._paths if _is_there(path)}
        self._kept = bool(self._known)
        self.engaged = self.engaged or self._kept
        return self.engaged

    @property
    def files(self) -> list[str]:
        """The files that keep it engaged: removing them releases it for whoever starts later."""
        return [str(path) for path in self._known]

    def engage(self) -> None:
        """The stop is engaged; `keep` writes it down, which takes longer than a stop may wait."""
        self.engaged = True

    def keep(self) -> str:
        """Write down a stop that is not yet; a line for the log where that fails, else nothing.

        It waits for a slow disk no longer than `KEEP_S`.
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
        """Write the latch to disk, synced; empty, or why the stop will not outlive this process."""
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
        """Remove what this one wrote or found; nothing where it is not engaged.

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
                self.is_there()  # whoever asks again knows of it
                raise ContactIdError(
                    f"the emergency stop stays engaged: another process has engaged it since "
                    f"({str(path)!r}); ask again to release that one, too"
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
    """Whether there is something, or it cannot be looked at."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def _identity(path: Path) -> _Identity | None:
    """Which file it is: another one of the same name and words differs; None: it cannot be looked at."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _put(file: BinaryIO, words: str) -> None:
    """Write words, down to the disk, that no other user may change."""
    os.fchmod(file.fileno(), 0o600)
    file.write(words.encode())
    file.flush()
    os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Write down what names a folder holds."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
