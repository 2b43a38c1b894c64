"""The named arrays in a .csv, .npz or .mat file, or in a folder of .csv files with the same rows."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from contact_id_controller.exceptions import MissingExtraError, RecordError
from contact_id_controller.files import BROKEN

CSV, NPZ, MAT = (".csv", ".txt", ".tsv"), ".npz", ".mat"
SNIFFED = 65536
"""Number of characters from which the delimiter is found."""

MOST = 0.8
"""Share of the lines that must have as many cells as the header: the last may be cut off."""

_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?")
_NAME = re.compile(r"(?:.*[./_])?name[\[_]?([0-9]+)\]?")


@dataclasses.dataclass(frozen=True)
class Tables:
    """Arrays of a file by name, (n,) or (n, k), and its columns of text."""

    path: Path
    arrays: dict[str, np.ndarray]
    words: dict[str, tuple[str, ...]]


def read_tables(path: Path) -> Tables:
    """Read every array of numbers in a file.

    Raises:
        RecordError: no such file, one that cannot be read, or one without numbers.
        MissingExtraError: a .mat file of version 7.3 without h5py.
    """
    if not path.exists():
        raise RecordError(f"no log at {str(path)!r}: there is no such file or folder")
    try:
        if path.is_dir():
            found = _folder(path)
        elif path.suffix in CSV:
            found = _text(path)
        elif path.suffix == NPZ:
            with np.load(path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files if file[name].dtype != object}
        else:
            found = _matlab(path)
    except BROKEN as error:
        if isinstance(error, (RecordError, MissingExtraError)):
            raise
        why = " ".join(str(error).split())[:200]
        raise RecordError(f"cannot read the log {str(path)!r}: {why}") from error
    arrays, words = {}, {}
    for name, values in found.items():
        values = np.asarray(values)
        if values.dtype.kind in "fiub" and values.ndim in (1, 2) and values.size:
            arrays[name] = values.astype(np.float64)
        elif values.dtype.kind == "U" and values.ndim <= 2:
            words[name] = tuple(str(word).strip() for word in values.ravel())
    if not arrays:
        raise RecordError(f"the log {str(path)!r} holds no array of numbers")
    return Tables(path, arrays, words)


def _folder(path: Path) -> dict[str, np.ndarray]:
    """Columns of all files of a folder; of equal names the first file's."""
    files = sorted(file for file in path.iterdir() if file.suffix in CSV)
    if not files:
        raise RecordError(f"the folder {str(path)!r} has neither a bag nor .csv files")
    found: dict[str, np.ndarray] = {}
    for file in files:
        for name, values in _text(file).items():
            found.setdefault(name, values)
    lengths = {len(values) for values in found.values() if values.dtype.kind != "U"}
    if len(lengths) > 1:
        raise RecordError(
            f"the .csv files of {str(path)!r} have {sorted(lengths)} rows, must agree"
        )
    return found


def _text(path: Path) -> dict[str, np.ndarray]:
    """Columns of a text file, named 1, 2, ... without a header."""
    with _opened(path) as file:
        sample = file.read(SNIFFED).split("\n")
    sample = sample[:-1] or sample
    skipped = int(sample[0].startswith("sep="))  # first line as spreadsheets write it
    first, *rest = sample[skipped:] or [""]
    delimiter = _delimiter([first, *rest])
    comma = delimiter != "," and any(
        _DECIMAL_COMMA.fullmatch(cell.strip())
        for line in (first, *rest)
        for cell in line.split(delimiter)
    )
    cells = _cells(first.lstrip("#% "), delimiter)
    header = not all(
        _is_number(cell.replace(",", ".") if comma else cell) for cell in cells if cell.strip()
    )
    values = _numbers(path, delimiter, skipped + int(header), comma)
    names = [cell.strip() for cell in cells] if header else []
    twins = [name for k, name in enumerate(names) if name and name in names[:k]]
    if twins:
        raise RecordError(f"the log {str(path)!r} has two columns {twins[0]!r}")
    if len(names) < values.shape[1]:
        names += [str(k + 1) for k in range(len(names), values.shape[1])]
    found: dict[str, np.ndarray] = dict(zip(names, values.T))
    joints = _names_in(names, _cells(rest[0], delimiter)) if header and rest else []
    return found | ({"names": np.array(joints)} if joints else {})


def _opened(path: Path) -> TextIO:
    return path.open(encoding="utf-8-sig", errors="replace")


def _delimiter(lines: list[str]) -> str | None:
    """The delimiter of cells: the first that most lines have as often as the header; None: white space."""
    for each in (";", "\t", ","):
        counts = [line.count(each) for line in lines if line.strip()]
        if counts and counts[0] and counts.count(counts[0]) > MOST * len(counts):
            return each
    try:
        found = csv.Sniffer().sniff("\n".join(lines), delimiters=",;\t ").delimiter
    except csv.Error:
        return ","
    return None if found == " " else found


def _cells(line: str, delimiter: str | None) -> list[str]:
    return line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter), [])


def _names_in(header: list[str], row: list[str]) -> list[str]:
    """Joint names in a row's columns ``name0``, ``field.name1`` and so on, as a table of a ROS message has them."""
    found = {
        int(number.group(1)): cell.strip()
        for name, cell in zip(header, row)
        if (number := _NAME.fullmatch(name)) and cell.strip() and not _is_number(cell)
    }
    return [found[number] for number in sorted(found)]


def _numbers(path: Path, delimiter: str | None, skipped: int, comma: bool) -> np.ndarray:
    """Rows of a text (n, k) below its header, NaN for a cell without a number; prints which rows it leaves out."""

    def rows() -> Iterator[str]:
        with _opened(path) as file:
            for line in file:
                yield line.replace(",", ".") if comma else line

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a text without rows
            values: np.ndarray = np.loadtxt(
                rows(), delimiter=delimiter, skiprows=skipped, ndmin=2, comments=None
            )
            return values
    except ValueError:  # empty cells, or words: not a number; or rows of another length
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = np.atleast_2d(
                np.genfromtxt(rows(), delimiter=delimiter, skip_header=skipped, invalid_raise=False)
            )
    ragged = [line for each in caught for line in re.findall(r"Line #(\d+)", str(each.message))]
    if ragged:
        what = "row" if len(ragged) == 1 else "rows"
        print(
            f"{path}: {len(ragged)} {what} of another length left out, the first in line {ragged[0]}",
            file=sys.stderr,
        )
    return values


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _matlab(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a .mat file, those in structures as ``structure.field``."""
    import scipy.io

    try:
        content = scipy.io.loadmat(path, simplify_cells=True)
    except NotImplementedError:  # version 7.3
        return _hdf5(path)
    found: dict[str, np.ndarray] = {}
    _flatten("", {k: v for k, v in content.items() if not k.startswith("__")}, found)
    return found


def _flatten(prefix: str, content: Mapping[str, Any], found: dict[str, np.ndarray]) -> None:
    """Put the arrays of a structure, and of those in it, under joined names."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            _flatten(f"{prefix}{name}.", value, found)
        else:
            array = np.asarray(value)
            if array.dtype == object and all(isinstance(each, str) for each in array.ravel()):
                array = array.astype(str)
            found[prefix + name] = array


def _hdf5(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a .mat file of version 7.3, which is HDF5."""
    need("h5py", "MATLAB files of version 7.3", "log")
    import h5py

    found: dict[str, np.ndarray] = {}

    def take(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and "#" not in name:
            # MATLAB's columns are rows there
            found[name.replace("/", ".")] = np.asarray(item).T

    with h5py.File(path) as file:
        file.visititems(take)
    return {
        name: values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        for name, values in found.items()
    }


def need(module: str, what: str, extra: str) -> None:
    """Raise MissingExtraError if an optional library is not installed.

    Args:
        module: its name.  what: what it reads, in the plural.  extra: extra of this package that installs it.
    """
    if importlib.util.find_spec(module) is None:
        raise MissingExtraError(
            f"{what} need the extra {extra}: pip install 'contact_id_controller[{extra}]'"
        )
