"""Records each step of the controller in memory and writes it to a file at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from contact_id_controller.control.controller import StepResult
from contact_id_controller.control.following import FOLLOWED, Outcome
from contact_id_controller.exceptions import RecordError
from contact_id_controller.files import check_record, shortage, write_rows
from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.robot import RobotModel

_CHUNK_BYTES = 1 << 20
"""Memory allocated at a time, in a fraction of a millisecond. From four megabytes on numpy requests large pages, which
may take the kernel 10 ms."""


class _Rows:
    """Rows of numbers, in memory that is allocated in chunks.

    Args:
        columns: name -> shape and type of each part of a row, in order.

    Attributes:
        spare: the next chunk (m, width), None where it is not yet allocated.
    """

    def __init__(self, columns: Mapping[str, tuple[tuple[int, ...], type]]) -> None:
        self._columns = columns
        self._width = sum(math.prod(shape) for shape, _ in columns.values())
        self._chunks: list[np.ndarray] = []
        self.spare: np.ndarray | None = None
        self._rows = max(_CHUNK_BYTES // (8 * self._width), 2)
        self._row = self._rows
        self.prepare()

    def __len__(self) -> int:
        return max(len(self._chunks) - 1, 0) * self._rows + (self._row if self._chunks else 0)

    @property
    def size_bytes(self) -> int:
        """Size of all rows so far."""
        return 8 * self._width * len(self)

    def prepare(self) -> bool:
        """Allocate memory for the next rows, if it is time; return whether it was."""
        if self.spare is not None or self._row <= self._rows // 2:
            return False
        # Filled, not only reserved, so that the first row causes no page faults.
        self.spare = np.full((self._rows, self._width), 0.0)
        return True

    def next(self) -> np.ndarray:
        """The next row (width,), to be written and confirmed by `keep`."""
        if self._row == self._rows:
            self.prepare()
            assert self.spare is not None
            self._chunks.append(self.spare)
            self.spare, self._row = None, 0
        return self._chunks[-1][self._row]

    def keep(self) -> None:
        """Count the row of `next` as written."""
        self._row += 1

    def arrays(self) -> dict[str, np.ndarray]:
        """The columns of all rows, by name."""
        n, at = len(self), 0
        arrays: dict[str, np.ndarray] = {}
        for name, (shape, dtype) in self._columns.items():
            size = math.prod(shape)
            parts: list[np.ndarray] = [
                chunk[:, at : at + size].astype(dtype) for chunk in self._chunks
            ]
            rows = np.concatenate(parts or [np.zeros((0, size), dtype)])[:n]
            arrays[name], at = rows.reshape(n, *shape), at + size
        return arrays


class Recorder:
    """Collects the rows of a run; `save` writes them to a NumPy .npz file.

    The file holds, for n steps, na joints and f feet: time_s (n,) stamps of the states; position,
    velocity, torques, reference_position, reference_velocity (n, na); forces (n, f, 3) predicted,
    world frame, N; contact (n, f); saturated (n, na); solve_time_s, step_time_s, power_loss_w (n,); status (n,) text;
    joint_names, foot_names; refused_reasons with refused_counts; deadline_misses; not_following_s with its first
    reason.

    Args:
        tell: called with a line as soon as the disk has no room for the record.
    """

    def __init__(
        self,
        path: str | Path,
        joint_names: Sequence[str],
        foot_names: Sequence[str],
        tell: Callable[[str], None] = lambda line: None,
    ):
        self.path = Path(path).expanduser()
        if not self.path.parent.is_dir():
            raise RecordError(f"cannot record to {str(self.path)!r}: no such folder")
        check_record(self.path)
        self._tell: Callable[[str], None] | None = tell
        self._joint_names, self._foot_names = tuple(joint_names), tuple(foot_names)
        joints, feet = len(self._joint_names), len(self._foot_names)
        # In the order in which `_write` writes them into a row.
        self._columns = {
            "time_s": ((), float),
            "solve_time_s": ((), float),
            "step_time_s": ((), float),
            "power_loss_w": ((), float),
            "status": ((), np.int16),
            "position": ((joints,), float),
            "velocity": ((joints,), float),
            "torques": ((joints,), float),
            "reference_position": ((joints,), float),
            "reference_velocity": ((joints,), float),
            "saturated": ((joints,), bool),
            "forces": ((feet, 3), float),
            "contact": ((feet,), bool),
        }
        self._rows = _Rows(self._columns)
        self._codes: dict[str, int] = {}
        number, numbers, limits = 0.0, np.zeros(joints), np.zeros(joints, dtype=np.uint8)
        forces, contact = np.zeros((feet, 3)), np.zeros(feet, dtype=bool)
        assert self._rows.spare is not None
        _write(
            self._rows.spare[0],
            (number,) * 5,
            *(numbers,) * 5,
            limits,
            forces,
            contact,
        )

    def __len__(self) -> int:
        return len(self._rows)

    def prepare(self) -> None:
        """Allocate memory for the next rows; call it where that delays nothing."""
        if self._rows.prepare() and self._tell is not None:
            if words := shortage(self.path, self._rows.size_bytes):
                self._tell(words)
                self._tell = None

    def add(
        self,
        time_s: float,
        position: np.ndarray,
        velocity: np.ndarray,
        result: StepResult,
        step_time_s: float,
    ) -> None:
        """Add the step for the state at `time_s`.

        Raises:
            RecordError: arrays of another number of joints or feet.
        """
        fits = _write(
            self._rows.next(),
            (
                float(time_s),
                float(result.solve_time_s),
                float(step_time_s),
                float(result.power_loss_w),
                float(self._codes.setdefault(result.status, len(self._codes))),
            ),
            position,
            velocity,
            result.torques,
            result.reference.position,
            result.reference.velocity,
            result.limits,
            result.forces,
            result.contact,
        )
        if not fits:
            raise RecordError("a step has another number of joints or feet than the record")
        self._rows.keep()

    def save(
        self, refusals: Mapping[str, int], deadline_misses: int, followed: Outcome = FOLLOWED
    ) -> None:
        """Write all rows so far; on a full disk the last ones, see `files.write_rows`.

        Raises:
            RecordError: the file cannot be written, or another file is there by now.
        """
        check_record(self.path)
        arrays = self._rows.arrays()
        names = np.array(list(self._codes) or [""])
        arrays["status"] = names[arrays["status"]]
        write_rows(
            self.path,
            arrays,
            {
                "joint_names": np.array(self._joint_names, dtype=str),
                "foot_names": np.array(self._foot_names, dtype=str),
                "refused_reasons": np.array(list(refusals), dtype=str),
                "refused_counts": np.array(list(refusals.values()), dtype=int),
                "deadline_misses": deadline_misses,
                **followed._asdict(),
            },
        )


@bare_kernel
def _write(
    row,
    numbers,
    position,
    velocity,
    torques,
    reference_position,
    reference_velocity,
    limits,
    forces,
    contact,
):
    """Write a step into ``row``, in one call instead of an assignment for each part; return whether the sizes fit.

    numbers: time, time of the solution and of the step, power loss, code of the status.
    """
    joints, feet = position.shape[0], contact.shape[0]
    if not (
        velocity.shape[0] == torques.shape[0] == limits.shape[0] == joints
        and reference_position.shape[0] == reference_velocity.shape[0] == joints
        and forces.shape == (feet, 3)
        and row.shape[0] == 5 + 6 * joints + 4 * feet
    ):
        return False
    for k in range(5):
        row[k] = numbers[k]
    for j in range(joints):
        at = 5 + j
        row[at], row[at + joints], row[at + 2 * joints] = position[j], velocity[j], torques[j]
        row[at + 3 * joints], row[at + 4 * joints] = reference_position[j], reference_velocity[j]
        row[at + 5 * joints] = limits[j] != 0
    at = 5 + 6 * joints
    for i in range(feet):
        for k in range(3):
            row[at + 3 * i + k] = forces[i, k]
        row[at + 3 * feet + i] = contact[i]
    return True


class EstimateRecorder:
    """Collects the estimates of a run; `save` writes them to a NumPy .npz file.

    The file holds, for n steps and f feet: time_s (n,); q (n, nq), v (n, nv); forces (n, f, 3) N,
    odometry frame, of the period that ended then, NaN where they were not observable;
    foot_names.

    Attributes:
        next, keep: a row to be written, and its confirmation, see `_Rows`.

    Raises:
        RecordError: the folder does not exist; in `save`, the file cannot be written.
    """

    def __init__(self, path: str | Path, robot: RobotModel, foot_names: Sequence[str]):
        self.path = Path(path).expanduser()
        if not self.path.parent.is_dir():
            raise RecordError(f"cannot record to {str(self.path)!r}: no such folder")
        check_record(self.path)
        self._foot_names = np.array(foot_names, dtype=str)
        self._rows = _Rows(
            {
                "time_s": ((), float),
                "q": ((robot.nq,), float),
                "v": ((robot.nv,), float),
                "forces": ((len(foot_names), 3), float),
            }
        )
        self.next, self.keep = self._rows.next, self._rows.keep

    def prepare(self) -> None:
        """Allocate memory for the next rows; call it where that delays nothing."""
        self._rows.prepare()

    def save(self) -> None:
        """Write all rows so far."""
        check_record(self.path)
        write_rows(self.path, self._rows.arrays(), {"foot_names": self._foot_names})
