"""The figures of a run: what each means, and how it is computed from the record.

Every figure has one name, here, and one formula; reports and experiments choose among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.runs.record import RunRecord

SETTLING_TIME_S = 1.0
"""Force errors relative to the weight are evaluated from here on: before, the robot is put down and starts to walk."""

PATH_SAMPLE_S = 0.5
"""Distance is measured between samples this far apart, so that sway does not count."""


class Measured:
    """A record with the further data that its figures need.

    Args:
        record: of the run.
        weight_n: of the robot, N.
        normals: of the ground, outwards, world frame: one unit vector (3,), or one for each foot
            and period (n, f, 3).
    """

    def __init__(self, record: RunRecord, weight_n: float, normals: np.ndarray):
        self.record, self.weight_n = record, weight_n
        self._normals = np.broadcast_to(normals, record.simulated_forces.shape)

    @cached_property
    def simulated_normal_n(self) -> np.ndarray:
        """Simulated normal force, sum over feet, (n,) N."""
        return np.einsum("kfi,kfi->k", self.record.simulated_forces, self._normals)

    @cached_property
    def predicted_normal_n(self) -> np.ndarray:
        """Predicted normal force, sum over feet, (n,) N."""
        return np.einsum("kfi,kfi->k", self.record.predicted_forces, self._normals)

    @cached_property
    def normal_error_n(self) -> np.ndarray:
        """|predicted - simulated normal force, sums over feet|, (n,) N."""
        return np.abs(self.predicted_normal_n - self.simulated_normal_n)

    @cached_property
    def settled(self) -> np.ndarray:
        """Periods after the first second, or in the second half of a shorter run, (n,) bool."""
        record = self.record
        since_s = record.time_s - record.time_s[0]
        return since_s >= min(SETTLING_TIME_S, 0.5 * record.duration_s)

    @cached_property
    def unsaturated(self) -> np.ndarray:
        """Periods in which no limit reduced a torque, (n,) bool."""
        return ~np.any(self.record.saturated, axis=1)


class Metric(NamedTuple):
    """One figure: unit, meaning and formula.

    of_prediction: it needs predicted forces, which not every controller has.
    of_estimate: it needs an estimated state; shown only for runs that had one.
    """

    unit: str
    meaning: str
    compute: Callable[[Measured], Any]
    of_prediction: bool = False
    of_estimate: bool = False


def measure(
    record: RunRecord,
    weight_n: float,
    normals: np.ndarray,
    names: Sequence[str] | None = None,
    *,
    predicts: bool = True,
) -> dict[str, Any]:
    """Figures of a run by name, in the order of ``METRICS``; see `Measured`.

    Args:
        names: of ``METRICS``; None: those of a report, ``REPORTED``.
        predicts: whether the controller predicts forces; otherwise figures about predictions are None.
    """
    measured = Measured(record, weight_n, np.asarray(normals, dtype=float))
    return _compute(measured, REPORTED if names is None else names, predicts)


def _compute(measured: Measured, names: Sequence[str], predicts: bool) -> dict[str, Any]:
    return {
        name: None if metric.of_prediction and not predicts else metric.compute(measured)
        for name, metric in METRICS.items()
        if name in names
    }


# Formulas that runs of other things than walks use, too


def mean_abs(values: np.ndarray) -> float:
    """Mean of absolute values."""
    return float(np.abs(values).mean())


def rates(values: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """|Change from one row to the next| / time between them, (n - 1, ...)."""
    steps = np.diff(time_s).reshape(-1, *(1,) * (values.ndim - 1))
    return np.abs(np.diff(values, axis=0)) / steps


def mean_rate(values: np.ndarray, time_s: np.ndarray) -> float | None:
    """Mean of `rates`; None of a single row."""
    return float(rates(values, time_s).mean()) if len(values) > 1 else None


def rms_of_vectors(vectors: np.ndarray) -> float:
    """Root of the mean square length of vectors (..., 3)."""
    return float(np.sqrt((vectors**2).sum(axis=-1).mean()))


# Formulas of the table


def _relative_normal_error(measured: Measured) -> float:
    return float(measured.normal_error_n[measured.settled].mean() / measured.weight_n)


def _of_applied(measured: Measured, rows: np.ndarray | slice = slice(None)) -> float | None:
    error, applied = measured.normal_error_n[rows], measured.simulated_normal_n[rows]
    return float(error.mean() / max(applied.mean(), 1e-9)) if len(error) else None


def _foot_force_error(measured: Measured) -> float:
    error = measured.record.predicted_forces - measured.record.simulated_forces
    return float(np.linalg.norm(error.reshape(len(error), -1), axis=1).mean())


def _power_loss(measured: Measured) -> float | None:
    power_w = measured.record.power_loss_w
    known = power_w[~np.isnan(power_w)]
    return float(known.mean()) if len(known) else None


def _distance(measured: Measured) -> float:
    record = measured.record
    if not record.floating_base:
        return 0.0
    stride = max(1, round(PATH_SAMPLE_S / record.period_s))
    path = np.vstack([record.q[::stride, :2], record.q[-1:, :2]])
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def _drift(measured: Measured) -> float | None:
    estimated, q = measured.record.estimated, measured.record.q
    if estimated is None:
        return None
    error = estimated.q[:, :3] - q[:, :3]
    return float(np.linalg.norm(error[-1] - error[0]))


def _drift_share(measured: Measured) -> float | None:
    drift = _drift(measured)
    return None if drift is None else drift / max(_distance(measured), 1e-9)


def _estimated_velocity_error(measured: Measured) -> float | None:
    estimated, v = measured.record.estimated, measured.record.v
    return None if estimated is None else rms_of_vectors(estimated.v[:, :3] - v[:, :3])


def _estimated_force_error(measured: Measured) -> float | None:
    """RMS error of the estimated forces, feet summed over their contacts, as a share of weight; None if unknown."""
    estimated, forces = measured.record.estimated, measured.record.simulated_forces
    if estimated is None:
        return None
    part_of = np.eye(1 + int(estimated.foot.max()))[estimated.foot[0]]  # contact by foot
    error = np.einsum("nci,cf->nfi", estimated.forces - forces, part_of)[measured.settled]
    known = np.isfinite(error).all(axis=(1, 2))
    return rms_of_vectors(error[known]) / measured.weight_n if known.any() else None


METRICS = {
    "duration_s": Metric(
        "s", "simulated time that was recorded", lambda m: float(m.record.duration_s)
    ),
    "fell": Metric(
        "", "the simulated robot did not stay on its feet", lambda m: bool(m.record.fell)
    ),
    "followed": Metric(
        "",
        "joints and base were where the plan has them, and forces as predicted where they are "
        "measured, by the controller's own judgement",
        lambda m: not m.record.not_following,
    ),
    "fell_time_s": Metric(
        "s", "when it had fallen; null: it stayed on its feet", lambda m: m.record.fell_time_s
    ),
    "mean_joint_position_error_rad": Metric(
        "rad",
        "mean over joints and time of |planned - measured joint position|",
        lambda m: mean_abs(m.record.reference_position - m.record.position),
    ),
    "mean_joint_velocity_error_rad_s": Metric(
        "rad/s",
        "mean over joints and time of |planned - measured joint velocity|",
        lambda m: mean_abs(m.record.reference_velocity - m.record.velocity),
    ),
    "normal_force_relative_error": Metric(
        "1",
        "mean over time, after the first second, of |sum over the contacts of predicted "
        "normal force - sum of the simulated ones| / weight; a prediction is compared with the mean force "
        "over the period it is made for",
        _relative_normal_error,
        True,
    ),
    "normal_force_error_n": Metric(
        "N",
        "mean over time, from the beginning, of |sum over the contacts of predicted normal forces - "
        "sum of the simulated ones|",
        lambda m: float(m.normal_error_n.mean()),
        True,
    ),
    "normal_force_error_median_n": Metric(
        "N",
        "median over time instead of the mean: without impacts",
        lambda m: float(np.median(m.normal_error_n)),
        True,
    ),
    "normal_force_error_of_simulated": Metric(
        "1", "normal_force_error_n divided by the mean of the simulated sum", _of_applied, True
    ),
    "normal_force_error_of_simulated_unsaturated": Metric(
        "1",
        "the same over the periods in which no torque was limited: in the others the robot does "
        "not get the torque for which forces were predicted",
        lambda m: _of_applied(m, m.unsaturated),
        True,
    ),
    "foot_force_error_n": Metric(
        "N",
        "mean over time of the norm of the error of the predicted force vectors of all contacts",
        _foot_force_error,
        True,
    ),
    "torque_mean_nm": Metric(
        "N·m", "mean over joints and time of |torque|", lambda m: mean_abs(m.record.torques)
    ),
    "torque_rate_mean_nm_s": Metric(
        "N·m/s",
        "mean over joints and time of |change of torque from one period to the next| / period",
        lambda m: mean_rate(m.record.torques, m.record.time_s),
    ),
    "saturated_share": Metric(
        "1",
        "share of periods in which a limit cut the torque of a joint",
        lambda m: float(1.0 - m.unsaturated.mean()),
    ),
    "power_loss_mean_w": Metric(
        "W",
        "mean over time of the power that heats the motors, R (torque / Kt)^2 summed over the "
        "joints; null without motor constants",
        _power_loss,
    ),
    "solve_time_median_s": Metric(
        "s",
        "contact problem and its solver, median",
        lambda m: float(np.median(m.record.solve_time_s)),
    ),
    "solve_time_p99_s": Metric(
        "s", "the same, 99th percentile", lambda m: float(np.percentile(m.record.solve_time_s, 99))
    ),
    "step_time_median_s": Metric(
        "s",
        "controller's work in a period, from the state's arrival to the command's departure, "
        "median",
        lambda m: float(np.median(m.record.step_time_s)),
    ),
    "step_time_p99_s": Metric(
        "s", "the same, 99th percentile", lambda m: float(np.percentile(m.record.step_time_s, 99))
    ),
    "deadline_misses": Metric(
        "",
        "steps that took longer than a period, or in real time began more than 1.5 periods "
        "after the one before",
        lambda m: m.record.deadline_misses,
    ),
    "unanswered_states": Metric(
        "",
        "states for which the controller gave no command at all",
        lambda m: m.record.unanswered_states,
    ),
    "simulation_late_periods": Metric(
        "",
        "periods by which the simulation itself lagged behind the wall clock (real time only)",
        lambda m: m.record.simulation_late_periods,
    ),
    "distance_travelled_m": Metric(
        "m",
        f"length of the base's path over the ground, sampled every {PATH_SAMPLE_S:g} s",
        _distance,
    ),
    "estimated_drift_m": Metric(
        "m",
        "length of the estimated less the true displacement of the base, from the first period to "
        "the last; null: the controller received the true state",
        _drift,
        of_estimate=True,
    ),
    "estimated_drift_share": Metric(
        "1", "the same as a share of the distance travelled", _drift_share, of_estimate=True
    ),
    "estimated_velocity_rms_m_s": Metric(
        "m/s",
        "root of the mean square of |estimated - true linear velocity of the base|, both in the "
        "base's axes",
        _estimated_velocity_error,
        of_estimate=True,
    ),
    "estimated_force_rms": Metric(
        "1",
        "root of the mean square over contacts and time, after the first second, of |estimated - "
        "simulated force| / weight; the estimate is late by its low-pass",
        _estimated_force_error,
        of_estimate=True,
    ),
    "status_counts": Metric(
        "",
        "how many steps ended with which status of the solver",
        lambda m: dict(sorted(Counter(map(str, m.record.status)).items())),
    ),
}
"""Name -> figure."""

OF_EXPERIMENTS = (
    "fell_time_s",
    "normal_force_error_n",
    "normal_force_error_median_n",
    "normal_force_error_of_simulated",
    "normal_force_error_of_simulated_unsaturated",
    "foot_force_error_n",
    "status_counts",
)
REPORTED = tuple(name for name in METRICS if name not in OF_EXPERIMENTS)
"""The figures of a walk's report and of tables that compare walks, in their order."""


HEADLINE = (
    "distance_travelled_m",
    "mean_joint_position_error_rad",
    "normal_force_relative_error",
    "torque_mean_nm",
    "step_time_p99_s",
    "torque_rate_mean_nm_s",
    "step_time_median_s",
)
HEADLINES = 5
"""Number of figures at the top of a run's page: the first ones of `HEADLINE` that it has."""

AVERAGED = REPORTED[
    REPORTED.index("mean_joint_position_error_rad") : REPORTED.index("deadline_misses")
]
"""Figures that are also computed for parts of a run, whose scatter is their noise."""

PARTS, SHORTEST_PART_S = 8, 0.25


def noise(
    record: RunRecord, weight_n: float, normals: np.ndarray, *, predicts: bool = True
) -> dict[str, float]:
    """Standard errors of figures that are means over time, from equal parts of a run.

    The first second is left out; empty for runs that are too short.
    """
    rows = np.flatnonzero(Measured(record, weight_n, normals).settled)
    count = min(PARTS, int(len(rows) * record.period_s / SHORTEST_PART_S))
    if count < 3:
        return {}
    found: dict[str, list[float]] = {}
    for part in np.array_split(rows, count):
        place = slice(part[0], part[-1] + 1)
        own = normals if np.ndim(normals) == 1 else normals[place]
        measured = Measured(record.part(place), weight_n, own)
        measured.settled = np.ones(len(part), dtype=bool)
        for name, value in _compute(measured, AVERAGED, predicts).items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return {name: float(np.std(v, ddof=1) / np.sqrt(len(v))) for name, v in found.items()}


def headline(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Names of the figures at the top of a page about these runs."""
    known = shown(summaries)
    there = [n for n in HEADLINE if n in known and any(s[n] is not None for s in summaries)]
    return there[:HEADLINES]


def note(name: str, summaries: Sequence[dict[str, Any]]) -> str:
    """A remark on a figure of these runs; empty: none."""
    waited = [s for s in summaries if s["mode"] == "lockstep"]
    if name == "deadline_misses" and any(s[name] for s in waited):
        return (
            "deadline misses: in lockstep the simulation waits for each step; those that took longer than "
            "a period, because other programs ran too, did no harm"
        )
    return ""


OF_A_FREE_BASE = ("fell", "distance_travelled_m")
"""Figures that a fixed base does not have."""


def shown(summaries: Sequence[dict[str, Any]]) -> dict[str, Metric]:
    """The figures of a report of these runs, by name."""
    return {
        name: METRICS[name]
        for name in REPORTED
        if (not METRICS[name].of_estimate or any(s[name] is not None for s in summaries))
        and (name not in OF_A_FREE_BASE or any(s.get("floating_base", True) for s in summaries))
    }
