"""An emergency stop that outlives its process: a file that only its release removes. Knows no ROS."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import BinaryIO

from contact_id_controller.exceptions import ConfigurationError, ContactIdError, RecordError
from contact_id_controller.files import write_with

_SUFFIX = ".emergency_stop"


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


def file_name(name: str) -> str:
    """Name of a file for a node's full name."""
    return re.sub(r"[^\w.-]", "_", name.strip("/").replace("/", "."))


class EmergencyLatch:
    """Whether the emergency stop of one robot is engaged, also after a restart, `kill -9` or power loss.

    What cannot be looked at counts as engaged.

    Args:
        folder: where the file is; made when it is needed.
        name: of whom it stops; of a node its full name, namespace and all.

    Attributes:
        engaged: whether it is, from the moment of `engage` on.
        path: the file, one line for people.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / (file_name(name) + _SUFFIX)
        self.engaged = self._kept = False
        self.is_there()

    def is_there(self) -> bool:
        """Whether it is engaged, by a look at the file, too."""
        self._kept = self._found()
        self.engaged = self.engaged or self._kept
        return self.engaged

    def _found(self) -> bool:
        try:
            os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            pass
        return True

    def engage(self) -> None:
        """The stop is engaged; `keep` writes it down, which takes longer than a stop may wait."""
        self.engaged = True

    def keep(self) -> str:
        """Write down a stop that is not yet; a line for the log where that fails, else nothing."""
        if self._kept or not self.engaged:
            return ""
        self._kept = True
        told = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            words = f"engaged {told} by process {os.getpid()}\n"
            write_with(self.path, lambda file: _put(file, words))
            _sync(self.path.parent)
        except (OSError, RecordError) as error:
            reason = error if isinstance(error, RecordError) else self._unwritten(error)
            return f"the emergency stop is engaged, but will not outlive this process: {reason}"
        return ""

    def _unwritten(self, error: OSError) -> str:
        return f"cannot write {str(self.path)!r}: {error.strerror}"

    def release(self) -> None:
        """Remove what was written.

        Raises:
            ContactIdError: that fails; the stop stays engaged.
        """
        try:
            self.path.unlink(missing_ok=True)
            if self.path.parent.is_dir():
                _sync(self.path.parent)
        except NotADirectoryError:
            pass
        except OSError as error:
            raise ContactIdError(
                f"the emergency stop stays engaged: cannot remove {str(self.path)!r}: "
                f"{error.strerror}"
            ) from error
        self.engaged = self._kept = False


def _put(file: BinaryIO, words: str) -> None:
    """Write words, down to the disk, that nobody else may change."""
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
