"""The record of a run: commands and predictions of the controller, with the simulator's true values.

One schema for all runs: over ROS (merged from two nodes' records), in one process, of a walk or an arm. Figures are
computed from it by ``report.metrics``; ``save`` and ``load`` keep it in one file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.exceptions import RecordError, choices
from contact_id_controller.files import BROKEN, write_rows
from contact_id_controller.geometry import feet_of_contacts


class Column(NamedTuple):
    """An array of a record, with a row for each period: shape of a row, unit and meaning.

    In ``shape`` q, v, j and f stand for the sizes of configuration and velocity, joints and feet.
    Units of joints are those of a revolute one; a prismatic one has m, m/s and N. ``digits``: number of binary places
    that a report's file keeps, far more than can be measured; None: all.
    """

    shape: tuple[str | int, ...]
    unit: str
    meaning: str
    dtype: type = float
    digits: int | None = None

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """The values rounded to ``digits``, so that files compress well."""
        if self.digits is None:
            return values
        return np.ldexp(np.rint(np.ldexp(values, self.digits)), -self.digits)


PLACE, SPEED, ANGLE, RATE, TORQUE, FORCE, TIME = 22, 17, 18, 13, 11, 7, 20
"""Digits: 2e-7 rad (m) and 8e-6 rad/s (m/s), of which others take differences; 4e-6 rad, 1e-4 rad/s,
5e-4 N·m (W), 8e-3 N, 1e-6 s."""


COLUMNS = {
    "time_s": Column((), "s", "stamp of the state, increasing"),
    "q": Column(("q",), "", "configuration in Pinocchio's convention", digits=PLACE),
    "v": Column(("v",), "", "generalized velocity in Pinocchio's convention", digits=SPEED),
    "position": Column(("j",), "rad", "of the joints, as the controller received it", digits=ANGLE),
    "velocity": Column(
        ("j",), "rad/s", "of the joints, as the controller received it", digits=RATE
    ),
    "reference_position": Column(
        ("j",), "rad", "of the joints, planned for that time", digits=ANGLE
    ),
    "reference_velocity": Column(
        ("j",), "rad/s", "of the joints, planned for that time", digits=RATE
    ),
    "torques": Column(("j",), "N·m", "that acted for the period that begins there", digits=TORQUE),
    "saturated": Column(("j",), "", "joints whose torque a limit cut", bool),
    "predicted_forces": Column(
        ("f", 3),
        "N",
        "that the controller expected on each foot over the period, world frame",
        digits=FORCE,
    ),
    "simulated_forces": Column(
        ("f", 3),
        "N",
        "that the ground really exerted on each foot over the period, world frame",
        digits=FORCE,
    ),
    "contact": Column(("f",), "", "feet that the controller took to be in contact", bool),
    "solve_time_s": Column((), "s", "time of contact problem and solver", digits=TIME),
    "step_time_s": Column((), "s", "time of the whole step of the controller", digits=TIME),
    "power_loss_w": Column((), "W", "that heats the motors; NaN: constants unknown", digits=TORQUE),
    "status": Column((), "", "the solver's status", str),
}
"""Name -> column; the attributes of ``RunRecord`` and the arrays of its file."""

ESTIMATED = {
    "q": Column(
        ("q",), "", "configuration that was estimated from sensors, odometry frame", digits=PLACE
    ),
    "v": Column(("v",), "", "generalized velocity that was estimated", digits=SPEED),
    "forces": Column(
        ("f", 3),
        "N",
        "of the ground on each foot over the period, estimated, known at its end; in equal parts on the "
        "contacts of a foot that has several",
        digits=FORCE,
    ),
    "foot": Column(("f",), "", "number of the foot that each contact is part of", int),
}
"""Columns of a run on a state estimated from sensors; in a file with the prefix ``estimated_``."""

FACTS = (
    "period_s",
    "joint_names",
    "foot_names",
    "fell_time_s",
    "deadline_misses",
    "unanswered_states",
    "simulation_late_periods",
    "refused_inputs",
    "not_following_s",
    "not_following",
)
FOLLOWED = FACTS[-2:]
"""Facts missing in records of version 0.2."""
REASONS, COUNTS = "refused_reasons", "refused_counts"
"""Arrays of a file that hold ``refused_inputs``."""

_BY_CONTROLLER = (
    *("position", "velocity", "reference_position", "reference_velocity", "saturated", "contact"),
    *("solve_time_s", "step_time_s", "power_loss_w", "status"),
)
"""Columns that the controller's record has by the same names."""

CONTROLLER_FIELDS = (
    *("time_s", "torques", "forces", *_BY_CONTROLLER),
    *("deadline_misses", "joint_names", "foot_names", REASONS, COUNTS, *FOLLOWED),
)
ROBOT_FIELDS = (
    *("time_s", "q", "v", "torques", "contact_forces"),
    *("fell_time_s", "joint_names", "foot_names", "late_periods"),
)
"""Arrays in the records of the controller and of the simulated robot."""


class Estimated(NamedTuple):
    """What an estimator published in a run: the columns of ``ESTIMATED``, n rows each."""

    q: np.ndarray
    v: np.ndarray
    forces: np.ndarray
    foot: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class RunRecord:
    """A run of n control periods; row k belongs to the state at time_s[k] and the period after it.

    The arrays are those of ``COLUMNS``, with n rows.

    Attributes:
        period_s: control period, s.
        joint_names: in the order of the command.  foot_names: in the order of the forces.
        fell_time_s: when the robot fell, s; None: it did not.
        deadline_misses: number of periods that the controller counted as missed.
        unanswered_states: number of simulated states for which the controller made no step.
        simulation_late_periods: periods by which the simulation fell behind the wall clock.
        refused_inputs: reason -> number of messages that the controller refused.
        not_following_s: time for which the robot was not where planned, by the controller's own
            judgement (``control.following``).  not_following: the first reason; empty: it followed.
        estimated: what planner and controller received instead of the true state; None: the true state.
    """

    period_s: float
    joint_names: tuple[str, ...]
    foot_names: tuple[str, ...]
    time_s: np.ndarray
    q: np.ndarray
    v: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    reference_position: np.ndarray
    reference_velocity: np.ndarray
    torques: np.ndarray
    saturated: np.ndarray
    predicted_forces: np.ndarray
    simulated_forces: np.ndarray
    contact: np.ndarray
    solve_time_s: np.ndarray
    step_time_s: np.ndarray
    power_loss_w: np.ndarray
    status: np.ndarray
    fell_time_s: float | None = None
    deadline_misses: int = 0
    unanswered_states: int = 0
    simulation_late_periods: int = 0
    refused_inputs: dict[str, int] = dataclasses.field(default_factory=dict)
    not_following_s: float = 0.0
    not_following: str = ""
    estimated: Estimated | None = None

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def duration_s(self) -> float:
        """Time from the first state to the end of the last period."""
        return float(self.time_s[-1] - self.time_s[0]) + self.period_s

    @property
    def fell(self) -> bool:
        """Whether the robot fell."""
        return self.fell_time_s is not None

    @property
    def knows_ground_forces(self) -> bool:
        """Whether the ground's true forces were recorded; else they are NaN."""
        return bool(np.isfinite(self.simulated_forces).all())

    @property
    def floating_base(self) -> bool:
        """Whether the base floats: there are six velocities more than joints."""
        return self.v.shape[1] >= len(self.joint_names) + 6

    def part(self, rows: slice) -> RunRecord:
        """The record of these rows (periods)."""
        estimated = self.estimated
        cut = None if estimated is None else Estimated(*(values[rows] for values in estimated))
        return dataclasses.replace(
            self, estimated=cut, **{name: getattr(self, name)[rows] for name in COLUMNS}
        )

    def rounded(self) -> RunRecord:
        """The record rounded to the digits of each `Column`: its file is a third of the size."""
        estimated = self.estimated
        cut = None
        if estimated is not None:
            columns = {name: column.rounded for name, column in ESTIMATED.items()}
            cut = Estimated(
                **{name: cut(getattr(estimated, name)) for name, cut in columns.items()}
            )
        kept: dict[str, Any] = {
            name: column.rounded(getattr(self, name)) for name, column in COLUMNS.items()
        }
        return dataclasses.replace(self, estimated=cut, **kept)

    def save(self, path: Path) -> None:
        """Write everything into one .npz file; see `files.write_rows`.

        Raises:
            RecordError: the file cannot be written.
        """
        # Column by column, whose values are similar: a tenth smaller, and in half of the time.
        rows = {name: np.asfortranarray(getattr(self, name)) for name in COLUMNS}
        content = {name: getattr(self, name) for name in FACTS}
        refused = content.pop("refused_inputs")
        content["fell_time_s"] = np.nan if self.fell_time_s is None else self.fell_time_s
        content[REASONS] = np.array(list(refused), dtype=str)
        content[COUNTS] = np.array(list(refused.values()), dtype=int)
        if self.estimated is not None:
            rows |= {f"estimated_{name}": getattr(self.estimated, name) for name in ESTIMATED}
        write_rows(path, rows, content, compressed=True)

    @classmethod
    def load(cls, path: Path) -> RunRecord:
        """Read a file written by ``save``.

        Raises:
            RecordError: there is no record, or it lacks an array.
        """
        facts = [name for name in FACTS if name != "refused_inputs"]
        content = _load(path, (*COLUMNS, *facts, REASONS, COUNTS), "run")
        columns: dict[str, Any] = {name: np.ascontiguousarray(content[name]) for name in COLUMNS}
        return cls(
            **columns,
            period_s=float(content["period_s"]),
            joint_names=_names(content["joint_names"]),
            foot_names=_names(content["foot_names"]),
            fell_time_s=_fall(content),
            deadline_misses=int(content["deadline_misses"]),
            unanswered_states=int(content["unanswered_states"]),
            simulation_late_periods=int(content["simulation_late_periods"]),
            refused_inputs=_refused(content),
            **_followed(content),
            estimated=_told(content),
        )


class RecordBuilder:
    """Collects the periods of a run in one process.

    Args:
        period_s: control period, s.
        joint_names: j names.  foot_names: f names.
    """

    def __init__(self, period_s: float, joint_names: Sequence[str], foot_names: Sequence[str]):
        self._facts: dict[str, Any] = {
            "period_s": period_s,
            "joint_names": tuple(joint_names),
            "foot_names": tuple(foot_names),
        }
        self._rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self._estimated: list[Estimated] = []

    def __len__(self) -> int:
        return len(self._rows["time_s"])

    def add(self, **row: Any) -> None:
        """Add a period: a value for each of ``COLUMNS``, copied."""
        for name, values in self._rows.items():
            values.append(row[name] if COLUMNS[name].dtype is str else np.array(row[name]))

    def add_estimate(self, estimated: Estimated) -> None:
        """Add the estimates of the period just added."""
        self._estimated.append(Estimated(*(np.array(values) for values in estimated)))

    def record(self, **facts: Any) -> RunRecord:
        """The record of all periods added; ``facts`` as for ``RunRecord``.

        Raises:
            RecordError: not even one period.
        """
        if not len(self):
            raise RecordError("the run ended before its first period")
        arrays: dict[str, Any] = {
            name: np.array(values, dtype=COLUMNS[name].dtype) for name, values in self._rows.items()
        }
        rows = self._estimated
        estimated = Estimated(*(np.array(column) for column in zip(*rows))) if rows else None
        return RunRecord(**arrays, **self._facts, **facts, estimated=estimated)


def merge_records(
    controller_record: Path,
    robot_record: Path,
    period_s: float,
    estimator_record: Path | None = None,
) -> RunRecord:
    """Merge the records of controller and simulated robot.

    Rows are paired by stamp, in whole periods; rows that only one side has (a state that the
    controller never received, a command after the end) are dropped, and of the states that the robot
    repeats while it is held at the start, the last one is kept. The record of the simulated robot
    has for each state the torque and the contact forces of the period that *begins* there, which
    is the period of the controller's prediction for this state.

    Raises:
        RecordError: a record is missing, lacks a field, or the two have no state in common.
    """
    control = _load(controller_record, CONTROLLER_FIELDS, "controller")
    robot = _load(robot_record, ROBOT_FIELDS, "simulated robot")
    periods, last_rows = _last_of_each(_periods(control["time_s"], period_s))
    _, common, robot_rows = np.intersect1d(
        periods, _periods(robot["time_s"], period_s), return_indices=True
    )
    rows = last_rows[common]
    joints, feet = _names(control["joint_names"]), _names(control["foot_names"])
    estimated = None
    if estimator_record is not None:
        estimated, kept = _estimated(estimator_record, robot["time_s"][robot_rows], feet, period_s)
        rows, robot_rows = rows[kept], robot_rows[kept]
    if len(rows) < 2:
        raise RecordError(
            f"the records {str(controller_record)!r} and {str(robot_record)!r} have {len(rows)} "
            "states in common, need 2 or more"
        )
    joint_columns = _columns(joints, robot["joint_names"], "joint")
    foot_columns = _columns(feet, robot["foot_names"], "foot")
    return RunRecord(
        period_s=period_s,
        time_s=robot["time_s"][robot_rows],
        joint_names=joints,
        foot_names=feet,
        q=robot["q"][robot_rows],
        v=robot["v"][robot_rows],
        **{name: control[name][rows].astype(COLUMNS[name].dtype) for name in _BY_CONTROLLER},
        torques=robot["torques"][robot_rows][:, joint_columns],
        predicted_forces=control["forces"][rows],
        simulated_forces=robot["contact_forces"][robot_rows][:, foot_columns],
        deadline_misses=int(control["deadline_misses"]),
        unanswered_states=len(robot["time_s"]) - len(rows),
        simulation_late_periods=int(robot["late_periods"]),
        refused_inputs=_refused(control),
        **_followed(control),
        fell_time_s=_fall(robot),
        estimated=estimated,
    )


def _estimated(
    path: Path, time_s: np.ndarray, contacts: Sequence[str], period_s: float
) -> tuple[Estimated, np.ndarray]:
    """An estimator's record in the periods that begin at ``time_s``; and the indices of those that it has.

    Its forces at a stamp are those of the period that ended there, on whole feet; they are split evenly over contacts.
    """
    content = _load(path, ("time_s", "q", "v", "forces", "foot_names"), "dynamics estimator")
    foot = feet_of_contacts(contacts, _names(content["foot_names"]))
    if foot is None:
        raise RecordError(f"the record {str(path)!r} is not of the feet {choices(contacts)}")
    periods, last_rows = _last_of_each(_periods(content["time_s"], period_s))
    wanted = _periods(time_s, period_s)
    _, kept, begins = np.intersect1d(wanted, periods, return_indices=True)
    ends = np.searchsorted(periods, wanted[kept] + 1)
    there = ends < len(periods)
    there[there] = periods[ends[there]] == wanted[kept][there] + 1
    begins, ends, kept = last_rows[begins[there]], last_rows[ends[there]], kept[there]
    forces = (content["forces"][ends] / np.bincount(foot)[:, None])[:, foot]
    feet = np.tile(foot, (len(kept), 1))
    return Estimated(content["q"][begins], content["v"][begins], forces, feet), kept


def _load(path: Path, fields: tuple[str, ...], source: str) -> dict[str, np.ndarray]:
    """The arrays of a record's file; RecordError where it is damaged or lacks a field."""
    try:
        with np.load(path, allow_pickle=False) as record:
            content = {name: record[name] for name in record.files}
    except BROKEN as error:
        why = "not a record.npz" if "pickle" in str(error) else error
        raise RecordError(f"no record of the {source} at {str(path)!r}: {why}") from error
    missing = [name for name in fields if name not in content and name not in FOLLOWED]
    if missing:
        raise RecordError(f"the record {str(path)!r} lacks {choices(missing)}")
    return content


def _names(array: np.ndarray) -> tuple[str, ...]:
    return tuple(str(name) for name in array)


def _fall(content: dict[str, np.ndarray]) -> float | None:
    time_s = float(content["fell_time_s"])
    return None if np.isnan(time_s) else time_s


def _refused(content: dict[str, np.ndarray]) -> dict[str, int]:
    return {str(reason): int(count) for reason, count in zip(content[REASONS], content[COUNTS])}


def _told(content: dict[str, np.ndarray]) -> Estimated | None:
    if "estimated_q" not in content:
        return None
    # Version 0.2 had no numbers of feet: each contact was a foot.
    rows, contacts = content["estimated_forces"].shape[:2]
    content.setdefault("estimated_foot", np.tile(np.arange(contacts), (rows, 1)))
    return Estimated(*(content[f"estimated_{name}"] for name in ESTIMATED))


def _followed(content: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: content[name].item() for name in FOLLOWED if name in content}


def _periods(time_s: np.ndarray, period_s: float) -> np.ndarray:
    """Stamps as integer numbers of periods, for exact comparison."""
    return np.rint(time_s / period_s).astype(np.int64)


def _last_of_each(periods: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, sorted, and the last index of each."""
    values, places = np.unique(periods[::-1], return_index=True)
    return values, len(periods) - 1 - places


def _columns(wanted: tuple[str, ...], present: np.ndarray, kind: str) -> list[int]:
    """Indices of the wanted names among the present ones; RecordError for a missing one."""
    names = [str(name) for name in present]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise RecordError(
            f"the simulated robot recorded no {kind} {missing[0]!r}, only {choices(names)}"
        )
    return [names.index(name) for name in wanted]
