"""One recorded run: what the controller asked for and predicted, beside what really happened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contact_id_controller.exceptions import RecordError, choices

CONTROLLER_FIELDS = (
    "time_s",
    "torques",
    "forces",
    "contact",
    "position",
    "velocity",
    "reference_position",
    "reference_velocity",
    "solve_time_s",
    "step_time_s",
    "power_loss_w",
    "status",
    "deadline_misses",
    "joint_names",
    "foot_names",
    "refused_reasons",
    "refused_counts",
)
ROBOT_FIELDS = (
    "time_s",
    "q",
    "v",
    "torques",
    "contact_forces",
    "fell",
    "joint_names",
    "foot_names",
    "late_periods",
)


@dataclass(frozen=True, eq=False)
class Walk:
    """A run of n control periods, merged by stamp; row k belongs to the state at time_s[k].

    Attributes:
        period_s: control period.
        time_s: stamps of the states, increasing, (n,).
        joint_names: na names, command order.  foot_names: f names.
        q, v: state of the robot, Pinocchio's convention, (n, nq), (n, nv).
        position, velocity: of the joints as the controller received them, (n, na), rad, rad/s.
        reference_position, reference_velocity: planned for that time, (n, na), rad, rad/s.
        torques: that acted from time_s[k] for one period, (n, na), N·m.
        predicted_forces: that the controller expected on each foot over the same period,
            (n, f, 3), world frame, N.
        simulated_forces: that the simulated ground really exerted over it, (n, f, 3).
        contact: the feet that the controller took to be in contact, (n, f) bool.
        solve_time_s, step_time_s: of the contact solver, and of the whole controller step, (n,).
        power_loss_w: of the motors, (n,), NaN where their constants are unknown.
        status: what the solver said, (n,) text.
        deadline_misses: periods that the controller counted as missed.
        unanswered_states: states of the simulated robot that the controller made no step for.
        simulation_late_periods: by which the simulation fell behind the wall clock.
        refused_inputs: reason -> number of messages that the controller refused.
        fell: the robot did not stay on its feet.
    """

    period_s: float
    time_s: np.ndarray
    joint_names: tuple[str, ...]
    foot_names: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    reference_position: np.ndarray
    reference_velocity: np.ndarray
    torques: np.ndarray
    predicted_forces: np.ndarray
    simulated_forces: np.ndarray
    contact: np.ndarray
    solve_time_s: np.ndarray
    step_time_s: np.ndarray
    power_loss_w: np.ndarray
    status: np.ndarray
    deadline_misses: int
    unanswered_states: int
    simulation_late_periods: int
    refused_inputs: dict[str, int]
    fell: bool

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def duration_s(self) -> float:
        """Time from the first state to the end of the last period."""
        return float(self.time_s[-1] - self.time_s[0]) + self.period_s


def load_walk(controller_record: Path, robot_record: Path, period_s: float) -> Walk:
    """Merge the records of controller and simulated robot.

    Rows are paired by stamp, in whole periods; those that only one side has (a state that the
    controller never saw, a command after the end) are left out, and of the states that the robot
    repeats while it is held at the start, the last one counts. The record of the simulated robot
    gives for each state the torque and the contact forces of the period that *begins* there, which
    is the period that the controller's prediction for this state is about.

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
    if len(rows) < 2:
        raise RecordError(
            f"the records {str(controller_record)!r} and {str(robot_record)!r} have {len(rows)} "
            "states in common, need 2 or more"
        )
    joints = tuple(str(name) for name in control["joint_names"])
    feet = tuple(str(name) for name in control["foot_names"])
    joint_columns = _columns(joints, robot["joint_names"], "joint")
    foot_columns = _columns(feet, robot["foot_names"], "foot")
    return Walk(
        period_s=period_s,
        time_s=robot["time_s"][robot_rows],
        joint_names=joints,
        foot_names=feet,
        q=robot["q"][robot_rows],
        v=robot["v"][robot_rows],
        position=control["position"][rows],
        velocity=control["velocity"][rows],
        reference_position=control["reference_position"][rows],
        reference_velocity=control["reference_velocity"][rows],
        torques=robot["torques"][robot_rows][:, joint_columns],
        predicted_forces=control["forces"][rows],
        simulated_forces=robot["contact_forces"][robot_rows][:, foot_columns],
        contact=control["contact"][rows].astype(bool),
        solve_time_s=control["solve_time_s"][rows],
        step_time_s=control["step_time_s"][rows],
        power_loss_w=control["power_loss_w"][rows],
        status=control["status"][rows].astype(str),
        deadline_misses=int(control["deadline_misses"]),
        unanswered_states=len(robot["time_s"]) - len(rows),
        simulation_late_periods=int(robot["late_periods"]),
        refused_inputs={
            str(reason): int(count)
            for reason, count in zip(control["refused_reasons"], control["refused_counts"])
        },
        fell=bool(robot["fell"]),
    )


def _load(path: Path, fields: tuple[str, ...], source: str) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as record:
            content = {name: record[name] for name in record.files}
    except (OSError, ValueError) as error:
        raise RecordError(f"no record of the {source} at {str(path)!r}: {error}") from error
    missing = [name for name in fields if name not in content]
    if missing:
        raise RecordError(f"the record {str(path)!r} lacks {choices(missing)}")
    return content


def _periods(time_s: np.ndarray, period_s: float) -> np.ndarray:
    """Stamps as whole numbers of periods, which can be compared exactly."""
    return np.rint(time_s / period_s).astype(np.int64)


def _last_of_each(periods: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, sorted, and the last place of each."""
    values, places = np.unique(periods[::-1], return_index=True)
    return values, len(periods) - 1 - places


def _columns(wanted: tuple[str, ...], present: np.ndarray, kind: str) -> list[int]:
    names = [str(name) for name in present]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise RecordError(
            f"the simulated robot recorded no {kind} {missing[0]!r}, only {choices(names)}"
        )
    return [names.index(name) for name in wanted]
