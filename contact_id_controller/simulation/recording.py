"""Recording of every period of a simulation in one file, and detection of falls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.exceptions import RecordError
from contact_id_controller.files import write_rows
from contact_id_controller.geometry import HalfSpace, HeightField
from contact_id_controller.state import RobotState

FALLEN_HEIGHT = 0.5
"""Part of the initial height of the base below which the robot has fallen."""

FALLEN_TILT_RAD = math.radians(60.0)


class FallDetector:
    """Detects that a floating base dropped to half its initial height or tilted beyond 60 degrees.

    The height counts from the ground: level at ``ground_height_m``, or ``terrain`` under the base.

    Attributes:
        fell_time_s: time of the first state after the fall; None: no fall.
    """

    def __init__(
        self,
        initial: RobotState,
        floating_base: bool,
        ground_height_m: float = 0.0,
        terrain: HeightField | HalfSpace | None = None,
    ):
        self._ground_height_m, self._terrain = ground_height_m, terrain
        self._lowest = FALLEN_HEIGHT * self._height(initial.q) if floating_base else None
        self.fell_time_s: float | None = None

    def has_fallen(self, state: RobotState) -> bool:
        """Whether the robot has fallen, now or before."""
        if self.fell_time_s is None and self._lowest is not None:
            if self._height(state.q) < self._lowest or tilt_rad(state.q) > FALLEN_TILT_RAD:
                self.fell_time_s = state.time_s
        return self.fell_time_s is not None

    def _height(self, q: np.ndarray) -> float:
        """Height of the base above the ground, m; outside a terrain above the level ground."""
        under = None if self._terrain is None else self._terrain.height(q[0], q[1])
        return float(q[2] - (self._ground_height_m if under is None else under))


def tilt_rad(q: np.ndarray) -> float:
    """Angle between the base's z axis and the vertical, rad, from a floating-base q."""
    x, y = float(q[3]), float(q[4])
    return math.acos(max(-1.0, min(1.0, 1.0 - 2.0 * (x * x + y * y))))


class SimulationRecorder:
    """Collects one row a period; row k holds the state at `time_s[k]` and the period that follows.

    Arrays in the file: `time_s` (n,); `q` (n, nq) and `v` (n, nv) in Pinocchio's convention;
    `torques` (n, na), N m, as received; `contact_forces` (n, n_feet, 3), on the robot, world frame,
    N, averaged over the period.

    Args:
        initial_rows: number of rows allocated first, and again whenever they are full.

    Raises:
        RecordError: the folder does not exist; in `save`, the file cannot be written.
    """

    def __init__(self, path: str | Path, initial_rows: int = 8192):
        self._path = Path(path).expanduser()
        if not self._path.parent.is_dir():
            raise RecordError(f"cannot record to {str(path)!r}: no such folder")
        self._rows, self._size = 0, initial_rows
        # Never copied while the robot moves: that would be tens of milliseconds after a minute.
        self._chunks: list[dict[str, np.ndarray]] = []

    def __len__(self) -> int:
        return self._rows

    def add(self, state: RobotState, torques: np.ndarray, contact_forces: np.ndarray) -> None:
        """Add a row: a state, the torques of the period after it, and the forces they led to."""
        row: dict[str, Any] = {
            "time_s": state.time_s,
            "q": state.q,
            "v": state.v,
            "torques": torques,
            "contact_forces": contact_forces,
        }
        place = self._rows % self._size
        if place == 0:
            self._chunks.append(
                {name: np.empty((self._size, *np.shape(value))) for name, value in row.items()}
            )
        chunk = self._chunks[-1]
        for name, value in row.items():
            chunk[name][place] = value
        self._rows += 1

    def save(self, **facts: Any) -> None:
        """Write the rows and some facts to an .npz file; see `files.write_rows`."""
        names = self._chunks[0] if self._chunks else ()
        columns = {
            name: np.concatenate([chunk[name] for chunk in self._chunks])[: self._rows]
            for name in names
        }
        write_rows(self._path, columns, facts)
