"""How kernels are compiled: cached on disk where a writable place is found, else in memory only.

numba notices a change of the file a kernel stands in, but not of the kernels it calls from other
files. The cache therefore lies in a directory named after the contents of every kernel file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import numba
from numba.core.options import DefaultOptions

_OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}}
_BARE_OPTIONS = {**_OPTIONS, "_nrt": False} if hasattr(DefaultOptions, "_nrt") else _OPTIONS
_NAME = "contact_id_controller"


def _digest() -> str:
    """Fingerprint of all files of this package that hold kernels."""
    total = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).resolve().parent.parent.rglob("*.py")):
        text = path.read_bytes()
        if b"@kernel" in text:
            total.update(path.name.encode() + text)
    return total.hexdigest()[:16]


def _cache_directory() -> str | None:
    """The first writable place: NUMBA_CACHE_DIR, the user's cache, the temporary directory."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    temporary = os.path.join(tempfile.gettempdir(), f"{_NAME}-{os.getuid()}")
    places = [os.environ.get("NUMBA_CACHE_DIR"), os.path.join(user, _NAME), temporary]
    digest = _digest()
    for place in filter(None, places):
        directory = os.path.join(place, digest)
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                if os.stat(directory).st_uid == os.getuid():  # what is read there is executed
                    return directory
        except OSError:
            continue
    return None


_CACHE = _cache_directory()


def kernel(function):
    """Compile a numeric kernel with numba; without a writable place only the disk cache is lost."""
    return _compiled(function, _OPTIONS)


def bare_kernel(function):
    """Compile a kernel that allocates nothing: without reference counting, so a third faster.

    It may make views of its arguments and hand them to bare kernels, but must not return an array
    to a ``kernel``.
    """
    return _compiled(function, _BARE_OPTIONS)


def _compiled(function, options):
    if _CACHE is None:
        return numba.njit(**options)(function)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _CACHE
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no cache locator for this file after all
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before
