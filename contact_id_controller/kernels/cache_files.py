"""Compiled kernels on disk: a file for each function and kinds of arguments, whole or not there.

What is read there is executed. A file therefore begins with the checksum of the rest, and states for which
arguments and processor it is; one that is not what it should be is deleted, and its kernel compiled anew.
Each is written beside its place and moved there: processes that save at once do not meet.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import uuid
from pathlib import Path
from typing import Any

from numba.core.serialize import dumps

_SIZE = hashlib.sha256().digest_size


class CacheFiles:
    """In the place of numba's own files, which have an index and no checksum.

    Args:
        folder: exists.
        function: name of the function, its line and the version of Python, as numba names files.
    """

    def __init__(self, folder: str, function: str) -> None:
        self._folder, self._function = Path(folder), function

    def load(self, key: Any) -> Any:
        """What was saved for these arguments and this processor; None: nothing, or nothing whole."""
        path = self._path(key)
        try:
            content = memoryview(path.read_bytes())
        except OSError:
            return None
        if hashlib.sha256(content[_SIZE:]).digest() == content[:_SIZE]:
            try:
                known, data = pickle.loads(content[_SIZE:])
                return data if known == key else None
            except Exception:  # noqa: BLE001  a class that has moved, another numba: whatever that raises
                return None
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled; where the disk is full it is compiled again another time."""
        content, path = dumps((key, data)), self._path(key)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            part.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(part, path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()

    def flush(self) -> None:
        """Forget all of this function."""
        for path in self._folder.glob(f"{self._function}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return (
            self._folder
            / f"{self._function}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"
        )
