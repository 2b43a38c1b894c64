"""Files that are written atomically, folders for them, YAML; every error message is one line."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import shutil
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import yaml

from contact_id_controller.exceptions import ConfigurationError, RecordError

MOST_BYTES, MOST_DEPTH, MOST_ENTRIES = 4_000_000, 30, 100_000
"""Of a YAML file: larger, deeper or longer ones are none of ours, and take longer than anybody waits."""

MOST_DIGITS = 100
"""Of a whole number there."""

BROKEN = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,  # also NotImplementedError: the file is encrypted, or packed in an unknown way
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises for an .npz that is damaged, or lacks an array."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

POWER_OF_TEN = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$")
"""A number such as 1e-3: to ROS and YAML 1.2 it is one, to PyYAML a text."""


def with_powers_of_ten(reader_or_writer: type) -> type:
    """Make a loader or dumper of PyYAML read `POWER_OF_TEN` as a number."""
    kind: Any = type(reader_or_writer.__name__, (reader_or_writer,), {})
    kind.add_implicit_resolver("tag:yaml.org,2002:float", POWER_OF_TEN, list("-+.0123456789"))
    return kind


_Loader = with_powers_of_ten(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def make_folder(folder: Path) -> Path:
    """Make a folder with its parents, if missing, and check that it is writable.

    Raises:
        RecordError: something else has this name, or it is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Access rights prove nothing on a network, on a full disk, or for root.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError as error:
        raise RecordError(f"{str(folder)!r} is a file, must be a folder") from error
    except OSError as error:
        raise RecordError(
            f"cannot write into the folder {str(folder)!r}: {error.strerror}"
        ) from error
    return folder


def check_free(*paths: Path) -> None:
    """Raise before a run if a file to be written is a folder.

    Raises:
        RecordError: one of them is.
    """
    for path in paths:
        if path.is_dir():
            raise RecordError(f"{str(path)!r} is a folder, must be a file or not there")


def check_record(path: Path, array: str = "time_s") -> None:
    """Raise before a record would overwrite something else.

    Raises:
        RecordError: there is a folder, or a file that is no .npz with this array.
    """
    check_free(path)
    try:
        if not path.exists():
            return
        with zipfile.ZipFile(path) as file:
            if f"{array}.npy" in file.namelist():
                return
    except (OSError, zipfile.BadZipFile, ValueError):
        pass
    raise RecordError(
        f"cannot record to {str(path)!r}: it is there and is no record: remove it, or name another"
    )


def write_with(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file atomically by ``write(file)``; an existing one is kept until the new one is complete.

    Raises:
        RecordError: the file cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        try:
            # A new file: in a shared folder another user may have put a link there.
            part.unlink(missing_ok=True)
            with part.open("xb") as file:
                write(file)
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RecordError(f"cannot write {str(path)!r}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8; see `write_with`."""
    write_with(path, lambda file: file.write(text.encode()))


def write_arrays(path: Path, arrays: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Write named arrays as .npz; see `write_with`."""
    write = np.savez_compressed if compressed else np.savez
    write_with(path, lambda file: write(file, **arrays))


def write_rows(
    path: Path, rows: Mapping[str, Any], facts: Mapping[str, Any], *, compressed: bool = False
) -> None:
    """Write a record as .npz: arrays with equal numbers of rows, and facts; on a full disk the last rows that fit.

    Raises:
        RecordError: the file cannot be written, or not all rows fit; the message has their number.
    """
    count = kept = min((len(values) for values in rows.values()), default=0)
    full = None
    while True:
        try:
            last = {name: values[count - kept :] for name, values in rows.items()}
            write_arrays(path, {**last, **facts}, compressed=compressed)
            break
        except RecordError as error:
            if kept < 2 or getattr(error.__cause__, "errno", None) not in _FULL:
                raise
            full, kept = error, kept // 2
    if full is not None:
        raise RecordError(f"{full}: of {count} rows only the last {kept} are kept") from full


def shortage(path: Path, size_bytes: int) -> str:
    """Error message if a file of this size does not fit on the disk; empty if it does, or if that is unknown."""
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError:
        return ""
    if free > size_bytes:
        return ""
    return (
        f"the disk of {str(path)!r} is full: {free / 1e6:.1f} MB are left, the record has "
        f"{size_bytes / 1e6:.1f} MB by now: at the end its last rows are kept, as many as fit"
    )


def write_json(path: Path, content: Any) -> None:
    """Write JSON that every reader accepts; see `plain` and `write_with`."""
    text = json.dumps(plain(content), indent=1, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def plain(value: Any, digits: int | None = None, infinities: bool = True) -> Any:
    """Convert a value to JSON types: arrays to lists, NaN to None.

    Args:
        digits: significant ones of floats; None keeps all.
        infinities: as the texts "inf" and "-inf"; otherwise they are None, too.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(entry, digits, infinities) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(entry, digits, infinities) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value) if infinities and math.isinf(value) else None
        return value if digits is None else float(f"{value:.{digits}g}")
    return value


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file.

    Raises:
        ConfigurationError: the file is missing, is no text, is not YAML, or exceeds the bounds of size, depth or
            length with its aliases expanded.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ConfigurationError(f"'{path}' has more than {MOST_BYTES} bytes")
        return _plain_yaml(content.decode())
    except (OSError, ValueError, yaml.YAMLError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"cannot read '{path}': {_one_line(error)}") from error


def parse_value(text: str) -> Any:
    """Parse a text in YAML.

    Raises:
        ConfigurationError: the text is not YAML, or longer than any value.
    """
    shown = repr(text) if len(text) <= 80 else f"{text[:77]!r}..."
    try:
        if len(text) > MOST_BYTES:
            raise ValueError("it is too long")
        return _plain_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        why = "" if isinstance(error, yaml.YAMLError) else f": {_one_line(error)}"
        raise ConfigurationError(f"{shown} is not YAML{why}") from error


def _plain_yaml(text: str) -> Any:
    """Parse a YAML text; ValueError or YAMLError if it is not YAML, or beyond the bounds."""
    _check_size(text)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _written_out(node, {}) > MOST_ENTRIES:
            raise ValueError(f"its aliases make more than {MOST_ENTRIES} entries of it")
        return loader.construct_document(node)
    except (LookupError, AttributeError, ArithmeticError, TypeError) as error:
        # PyYAML's own, about texts that do not fit their tag.
        raise ValueError(f"a value is not of the kind of its tag or form: {error}") from error
    finally:
        loader.dispose()


def _check_size(text: str) -> None:
    """Raise for a YAML text beyond the bounds of depth and length, before anything recursive reads it."""
    too_deep = f"lists stand in each other deeper than {MOST_DEPTH}"
    depth = 0
    try:
        for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            if count > 2 * MOST_ENTRIES:  # a list is two events
                raise ValueError(f"it has more than {MOST_ENTRIES} entries")
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise ValueError(too_deep)
    except yaml.YAMLError as error:
        # PyYAML 6.0.4 and later look ahead, and refuse a depth of 1,000 before the events of 30 come.
        if "nesting depth" in str(error):
            raise ValueError(too_deep) from error
        raise


def _written_out(node: yaml.Node, known: dict[int, float]) -> float:
    """Number of entries of a document with its aliases expanded; infinite for a circular one."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag.endswith(":int") and len(node.value) > MOST_DIGITS:
            raise ValueError(f"a whole number has {len(node.value)} digits")
        return 1
    if id(node) not in known:
        known[id(node)] = math.inf  # until it is known: what contains itself has no end
        children = node.value
        if isinstance(node, yaml.MappingNode):
            _refuse_twins(node)
            children = [each for pair in node.value for each in pair]
        known[id(node)] = 1 + sum(_written_out(child, known) for child in children)
    return known[id(node)]


def _refuse_twins(node: yaml.MappingNode) -> None:
    """Raise for a mapping with equal keys, of which YAML would silently keep the last."""
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
            continue
        line = key.start_mark.line + 1
        if key.value in lines:
            raise ValueError(
                f"{key.value!r} stands twice in one section, in lines {lines[key.value]} and {line}"
            )
        lines[key.value] = line


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 400 else f"{text[:397]}..."
