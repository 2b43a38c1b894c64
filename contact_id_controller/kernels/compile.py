"""Compilation of kernels: cached on disk if there is a writable place, otherwise in memory only.

numba notices a change of a kernel's own file, but not of the kernels that it calls from other files. The cache of a
file therefore lies in a directory named after a hash of its contents and of every file of this package that it
imports, directly or not.
"""

from __future__ import annotations

import ast
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.options import DefaultOptions

from contact_id_controller.kernels.cache_files import CacheFiles

_PARTS_OF_NUMBA = ((0, 68),)
"""Versions with whose inner names `kernels.inlining` was tried; others compile callees again in each caller."""

if numba.version_info[:2] in _PARTS_OF_NUMBA:
    from contact_id_controller.kernels.inlining import called_as_part
else:

    def called_as_part(dispatcher: Any) -> Any:
        """As it is."""
        return dispatcher


Kernel = Callable[..., Any]
"""What a type checker knows of a compiled function: numba finds its types when it is first called."""

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz"},
    "no_cfunc_wrapper": True,  # no kernel is an argument of another
}
_BARE_OPTIONS = {**_OPTIONS, "_nrt": False} if hasattr(DefaultOptions, "_nrt") else _OPTIONS
_NAME = "contact_id_controller"
_ROOT = Path(__file__).resolve().parents[1]


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of this package that a file imports, or () for a file without kernels."""
    text = path.read_bytes()
    if b"kernel" not in text:
        return ()
    found: list[Path] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            names = [
                home,
                *(f"{home}{'.' if node.module else ''}{alias.name}" for alias in node.names),
            ]
        else:
            continue
        found += [file for name in names for file in _files(name, path)]
    return tuple(found)


def _files(name: str, path: Path) -> list[Path]:
    """Source files of a module, and of the packages it lies in, as the file at ``path`` names it."""
    level = len(name) - len(name.lstrip("."))
    parts = [part for part in name.split(".") if part]
    if level:
        place = path.parents[level - 1]
    elif parts[0] == _NAME:
        place, parts = _ROOT, parts[1:]
    else:
        return []
    places = [place.joinpath(*parts[:k]) for k in range(1, len(parts) + 1)]
    return [
        file
        for at in places
        for file in (at.with_suffix(".py"), at / "__init__.py")
        if file.is_file()
    ]


def _digest(path: Path) -> str:
    """Hash of a file and of all files that it is compiled from."""
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting += _imports(file)
    total = hashlib.sha256(numba.__version__.encode())
    for file in sorted(seen):
        name = file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else file.name
        total.update(str(name).encode() + file.read_bytes())
    return total.hexdigest()[:16]


@cache
def _cache_directory(source: str) -> str | None:
    """First writable directory of NUMBA_CACHE_DIR, the user's cache and the temporary directory."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    temporary = os.path.join(tempfile.gettempdir(), f"{_NAME}-{os.getuid()}")
    places = [os.environ.get("NUMBA_CACHE_DIR"), os.path.join(user, _NAME), temporary]
    try:
        digest = _digest(Path(source).resolve())
    except OSError:  # the source is not a file, as in an archive
        return None
    for place in filter(None, places):
        directory = os.path.join(place, digest)
        try:
            if place == temporary:  # who made it could put another folder in the place of ours
                os.makedirs(place, mode=0o700, exist_ok=True)
                if not _is_ours_alone(place):
                    continue
            os.makedirs(directory, mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                if _is_ours_alone(directory):
                    return directory
        except OSError:
            continue
    return None


def _is_ours_alone(folder: str) -> bool:
    """Whether it is a directory, no link, that no other user may change, since its content is executed."""
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def kernel(function: Kernel) -> Kernel:
    """Compile a numeric kernel with numba; without a writable place there is no disk cache.

    Sums may be reassociated, so that ``x - x`` of a sum x vanishes even where x is not a number:
    test ``abs(x) < inf``, not ``isfinite``.
    """
    return _compiled(function, _OPTIONS)


def bare_kernel(function: Kernel) -> Kernel:
    """Compile a kernel that allocates nothing: without reference counting, so a third faster.

    It may make views of its arguments and pass them to bare kernels, but must not return an array
    to a ``kernel``.
    """
    return _compiled(function, _BARE_OPTIONS)


def inlined_kernel(function: Kernel) -> Kernel:
    """Mark a step of a larger kernel, which numba inlines into each kernel that calls it.

    For steps that take named tuples of arrays, of which a call costs a reference for each array (measured: a
    third of the time, when calls were optimised separately too). Take the fields out of their tuples
    before a loop.
    """
    return numba.njit(inline="always", **_OPTIONS)(function)


def _compiled(function: Kernel, options: Mapping[str, Any]) -> Kernel:
    return called_as_part(_cached(function, options))


def _cached(function: Kernel, options: Mapping[str, Any]) -> Any:
    """Compile by numba with a cache on disk; without one if no directory is writable."""
    cache = _cache_directory(function.__code__.co_filename)
    if cache is None:
        return numba.njit(**options)(function)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = cache
    try:
        return _shared(numba.njit(cache=True, **options)(function), cache)
    except RuntimeError:  # numba found no cache locator for this file after all
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before


def _shared(dispatcher: Any, directory: str) -> Any:
    """Keep the dispatcher's cache in ``directory`` itself, whose name is a hash of all relevant sources.

    numba's own directory and stamp depend on where the sources lie and when they were written: every
    copy of them would compile for minutes.
    """
    cache = getattr(dispatcher, "_cache", None)
    index = getattr(getattr(cache, "_cache_file", None), "_index_name", None)
    if cache is not None and index is not None:
        cache._cache_file = CacheFiles(directory, Path(index).stem)
    return dispatcher
