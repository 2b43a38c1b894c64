"""Interface of recorded motions, and .npz and .parquet files; read in pieces of bounded size."""

from __future__ import annotations

import dataclasses
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
from numpy.lib import format as npy

from contact_id_controller.exceptions import RecordError, choices
from contact_id_controller.files import BROKEN
from contact_id_controller.labels.recorded_motion import STATE
from contact_id_controller.robot import RobotModel

PIECE = 4096
"""Rows that are read at once."""

NEEDED = ("time_s", "q")
JOINTS = "joint_names"
"""Of a ``RunRecord``."""
SHOWN = 200


class BagReading(NamedTuple):
    """Options for bags.

    robot: whose joints are read.  namespace: of the topics; None: that of the only joint states.
    longest_gap_s: largest gap of odometry messages between which the base is interpolated.
    """

    robot: RobotModel
    namespace: str | None
    longest_gap_s: float


class MotionFile(Protocol):
    """A recorded motion.

    Attributes:
        path: of the file.  frames: number, approximate; for a progress bar.
    """

    path: Path
    frames: int

    def pieces(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield rows in their order, name -> array, with the same names of ``STATE`` in all pieces."""


@dataclasses.dataclass(frozen=True)
class Shapes:
    """Shapes of a robot's rows: name -> numbers in a row, None for a single number; and the names of its joints."""

    nq: int
    nv: int
    na: int
    contacts: int
    recorded_contact: bool = False
    joints: tuple[str, ...] = ()

    @classmethod
    def of(cls, robot: RobotModel, contacts: int, recorded_contact: bool) -> Shapes:
        """Shapes for a robot with this number of possible contacts; recorded_contact: whether ``contact`` is read."""
        joints = tuple(robot.joint_names)
        return cls(robot.nq, robot.nv, robot.na, contacts, recorded_contact, joints)

    def columns(self, names: set[str], path: Path) -> dict[str, int | None]:
        """Names, with their sizes, that are read from a file with ``names``.

        Raises:
            RecordError: one is missing.
        """
        sizes = (None, self.nq, self.nv, self.na, self.contacts)
        wanted: dict[str, int | None] = dict(zip(STATE, sizes))
        if not self.recorded_contact:
            del wanted["contact"]
        needed = (*NEEDED, *(["contact"] if self.recorded_contact else []))
        missing = [name for name in needed if name not in names]
        if missing:
            raise RecordError(
                f"the motion {str(path)!r} lacks {choices(missing)}; it has {choices(names) or 'nothing'}"
            )
        if "acceleration" in names and "v" not in names:
            raise RecordError(f"the motion {str(path)!r} has 'acceleration' but lacks 'v'")
        return {name: size for name, size in wanted.items() if name in names}

    def check_joints(self, named: Sequence[str], path: Path) -> None:
        """Raise RecordError for a record of other joints, or in another order: their number may be the same."""
        if self.joints and tuple(named) != self.joints:
            raise RecordError(
                f"the motion {str(path)!r} is of joints {', '.join(map(repr, named))}; "
                f"this robot has {', '.join(map(repr, self.joints))}"
            )

    def check(self, name: str, size: int | None, shape: tuple[int, ...], path: Path) -> None:
        """Raise if an array of the file has not the shape of n rows.

        Raises:
            RecordError: names it and the shape that it must have.
        """
        expected = "(n,)" if size is None else f"(n, {size})"
        if len(shape) != (1 if size is None else 2) or (size is not None and shape[1] != size):
            raise RecordError(f"{name!r} of {str(path)!r} has shape {shape}, must have {expected}")


class NpzMotion:
    """A motion as named arrays; the .npz of a ``RunRecord`` is such a file.

    ``time_s`` (n,) and ``q`` (n, nq); optional ``v`` (n, nv), ``acceleration`` (n, na) of the
    joints in command order, and, if required, ``contact`` (n, f).

    Raises:
        RecordError: not such a file.
    """

    def __init__(self, path: Path, shapes: Shapes) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                names = {name[:-4] for name in archive.namelist() if name.endswith(".npy")}
                self._columns = shapes.columns(names, path)
                lengths = {}
                for name, size in self._columns.items():
                    with archive.open(f"{name}.npy") as file:
                        shape, _, kind = _header(file)
                    if kind.kind not in "fiub":
                        raise RecordError(
                            f"{name!r} of {str(path)!r} holds {kind}, must be numbers"
                        )
                    shapes.check(name, size, shape, path)
                    lengths[name] = shape[0]
                if JOINTS in names:
                    with archive.open(f"{JOINTS}.npy") as file:
                        named = npy.read_array(file, allow_pickle=False)
                    shapes.check_joints(named.astype(str).ravel().tolist(), path)
        except RecordError:
            raise
        except BROKEN as error:
            raise _unreadable(path, error) from error
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise RecordError(f"the arrays of {str(path)!r} have different lengths: {counts}")
        self.frames = lengths["time_s"]
        _refuse_empty(path, self.frames)

    def pieces(self) -> Iterator[dict[str, np.ndarray]]:
        """As `MotionFile`; each array is read in a stream of its own."""
        archives = {name: zipfile.ZipFile(self.path) for name in self._columns}
        try:
            streams = {
                name: _Rows(archive.open(f"{name}.npy")) for name, archive in archives.items()
            }
            for begin in range(0, self.frames, PIECE):
                count = min(PIECE, self.frames - begin)
                yield {name: rows.read(count) for name, rows in streams.items()}
        except BROKEN as error:
            raise _unreadable(self.path, error) from error
        finally:
            for archive in archives.values():
                archive.close()


class _Rows:
    """The rows of an array in a stream of the .npy format, one piece after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._shape, self._by_columns, self._kind = _header(file)
        self._next, self._whole = 0, None
        if self._by_columns and len(self._shape) > 1:  # rows do not lie together: all at once
            size = int(np.prod(self._shape)) * self._kind.itemsize
            data = np.frombuffer(_exactly(file, size), self._kind)
            self._whole = data.reshape(self._shape, order="F")

    def read(self, count: int) -> np.ndarray:
        """The next ``count`` rows as float, from the file or the array in memory."""
        rows = slice(self._next, self._next + count)
        self._next += count
        if self._whole is not None:
            return self._whole[rows].astype(float)
        shape = (count, *self._shape[1:])
        data = _exactly(self._file, int(np.prod(shape)) * self._kind.itemsize)
        return np.frombuffer(data, self._kind).reshape(shape).astype(float)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"version {version} of the .npy format is not read")
    return read(file)


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise EOFError("an array ends too early")
    return data


class ParquetMotion:
    """The arrays of an .npz motion as columns: ``q`` of lists, or ``q_0`` to ``q_<nq-1>`` of numbers.

    Raises:
        RecordError: not such a file.
    """

    def __init__(self, path: Path, shapes: Shapes) -> None:
        from pyarrow import ArrowException, parquet

        self.path, self._shapes = path, shapes
        try:
            file = parquet.ParquetFile(path)
            columns = set(file.schema_arrow.names)
            self.frames = file.metadata.num_rows
            file.close()
        except (OSError, ArrowException) as error:
            raise _unreadable(path, error) from error
        _refuse_empty(path, self.frames)
        names = {name for name in STATE if {name, f"{name}_0"} & columns}
        self._columns = shapes.columns(names, path)
        self._parts = {
            name: [name] if name in columns else [f"{name}_{k}" for k in range(size or 0)]
            for name, size in self._columns.items()
        }
        absent = [part for parts in self._parts.values() for part in parts if part not in columns]
        if absent:
            raise RecordError(f"the motion {str(path)!r} lacks the column {absent[0]!r}")

    def pieces(self) -> Iterator[dict[str, np.ndarray]]:
        """As `MotionFile`."""
        from pyarrow import ArrowException, parquet

        wanted = [part for parts in self._parts.values() for part in parts]
        try:
            with parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(PIECE, columns=wanted):
                    yield {
                        name: self._values(batch, name, size)
                        for name, size in self._columns.items()
                    }
        except (OSError, ArrowException) as error:
            raise _unreadable(self.path, error) from error

    def _values(self, batch: Any, name: str, size: int | None) -> np.ndarray:
        """One quantity of a batch as (n, size), from one column of lists or several of numbers; (n,) for size None."""
        parts = self._parts[name]
        columns = [batch.column(batch.schema.get_field_index(part)) for part in parts]
        try:
            if size is None or len(parts) > 1:
                values = [np.asarray(column.to_numpy(False), dtype=float) for column in columns]
                return values[0] if size is None else np.stack(values, axis=1)
            rows = np.asarray(columns[0].flatten().to_numpy(False), dtype=float)
            rows = rows.reshape(len(batch), -1) if len(rows) % len(batch) == 0 else rows
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"{name!r} of {str(self.path)!r} holds no numbers: {error}"
            ) from error
        self._shapes.check(name, size, rows.shape, self.path)
        return rows


def _refuse_empty(path: Path, frames: int) -> None:
    if not frames:
        raise RecordError(f"the motion {str(path)!r} has no frames")


def _unreadable(path: Path, error: Exception) -> RecordError:
    return RecordError(f"cannot read the motion {str(path)!r}: {reason(error)}")


def reason(error: Exception) -> str:
    """Error of a library about a damaged file, shortened to one line: some repeat the file."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
