"""Disk cache of compiled kernels: one file for each function and set of argument types, written atomically.

Its content is executed. A file therefore begins with the checksum of the rest, and names the arguments and processor
it is for; a damaged or foreign one is deleted, and its kernel compiled again. Each is written under a temporary name
and renamed: processes that save at once do not collide.
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
    """Replacement for numba's cache files, which have an index and no checksum.

    Args:
        folder: exists.
        function: name of the function, its line and the version of Python, as numba names files.
    """

    def __init__(self, folder: str, function: str) -> None:
        self._folder, self._function = Path(folder), function

    def load(self, key: Any) -> Any:
        """Load the data saved for these arguments and this processor.

        None: no file, or a damaged one, which is deleted.
        """
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
        """Write compiled data; on a full disk nothing is written, and it is compiled again next time."""
        content, path = dumps((key, data)), self._path(key)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            part.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(part, path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()

    def flush(self) -> None:
        """Delete all files of this function."""
        for path in self._folder.glob(f"{self._function}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        return (
            self._folder
            / f"{self._function}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"
        )
