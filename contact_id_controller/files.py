"""Files that appear whole or not at all, folders for them, YAML; every refusal is one line."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import yaml

from contact_id_controller.exceptions import ConfigurationError, RecordError


def make_folder(folder: Path) -> Path:
    """Make a folder, with those above it, where there is none; it can be written to afterwards.

    Raises:
        RecordError: something else has this name, or nobody may write there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Asking for rights tells nothing on a network or a full disk, and nothing to root.
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
    """Refuse to begin where a file that shall be written is a folder.

    Raises:
        RecordError: one of them is.
    """
    for path in paths:
        if path.is_dir():
            raise RecordError(f"{str(path)!r} is a folder, must be a file or not there")


def check_record(path: Path, array: str = "time_s") -> None:
    """Refuse to write a record over something else.

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
    """Make a file by ``write(file)``; what was there stays until the new one is whole.

    Raises:
        RecordError: the file cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        try:
            # Made anew: in a folder of many users somebody may have put a link there.
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


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays as .npz; see `write_with`."""
    write_with(path, lambda file: np.savez(file, **arrays))


def write_json(path: Path, content: Any) -> None:
    """Write JSON that every reader accepts; see `plain` and `write_with`."""
    text = json.dumps(plain(content), indent=1, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def plain(value: Any, digits: int | None = None, infinities: bool = True) -> Any:
    """A value as JSON knows it: arrays as lists, what is no number as None.

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
    """What stands in a YAML file.

    Raises:
        ConfigurationError: the file is missing, is no text, or is not YAML.
    """
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"cannot read '{path}': {' '.join(str(error).split())}") from error


def parse_value(text: str) -> Any:
    """What a text in YAML says.

    Raises:
        ConfigurationError: the text is not YAML.
    """
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{text!r} is not YAML") from error
