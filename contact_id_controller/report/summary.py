"""The figures of a run: what each means, and how it is computed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.runs.record import Walk

SETTLING_TIME_S = 1.0
"""Force errors count from here on: before, the robot is put down and begins to walk."""

PATH_SAMPLE_S = 0.5
"""Distance is measured between samples this far apart, so that sway does not count as travel."""


class Metric(NamedTuple):
    """One figure: its unit and what it is, in words."""

    unit: str
    meaning: str


METRICS = {
    "duration_s": Metric("s", "simulated time that was recorded"),
    "fell": Metric("", "the simulated robot did not stay on its feet"),
    "mean_joint_position_error_rad": Metric(
        "rad", "mean over joints and time of |planned - measured joint position|"
    ),
    "mean_joint_velocity_error_rad_s": Metric(
        "rad/s", "mean over joints and time of |planned - measured joint velocity|"
    ),
    "normal_force_relative_error": Metric(
        "1",
        "mean over time, after the first second, of |sum over the feet of predicted normal "
        "force - sum of the simulated ones| / weight; a prediction is compared with the mean force "
        "over the period it is made for",
    ),
    "torque_mean_nm": Metric("N·m", "mean over joints and time of |torque|"),
    "torque_rate_mean_nm_s": Metric(
        "N·m/s",
        "mean over joints and time of |change of torque from one period to the next| / period",
    ),
    "power_loss_mean_w": Metric(
        "W",
        "mean over time of the power that heats the motors, R (torque / Kt)^2 summed over the "
        "joints; null without motor constants",
    ),
    "solve_time_median_s": Metric("s", "contact problem and its solver, median"),
    "solve_time_p99_s": Metric("s", "the same, 99th percentile"),
    "step_time_median_s": Metric(
        "s",
        "controller's work in a period, from the state's arrival to the command's departure, "
        "median",
    ),
    "step_time_p99_s": Metric("s", "the same, 99th percentile"),
    "deadline_misses": Metric(
        "",
        "steps that took longer than a period, or in real time began more than 1.5 periods "
        "after the one before",
    ),
    "unanswered_states": Metric("", "states for which the controller gave no command at all"),
    "simulation_late_periods": Metric(
        "", "periods by which the simulation itself fell behind the wall clock (real time only)"
    ),
    "distance_travelled_m": Metric(
        "m", f"length of the base's path over the ground, sampled every {PATH_SAMPLE_S:g} s"
    ),
}


def measure(walk: Walk, weight_n: float, normal: np.ndarray) -> dict[str, Any]:
    """Every figure of ``METRICS`` for one run.

    Args:
        weight_n: of the robot, N.
        normal: of the ground, unit vector (3,), world frame, out of the ground.
    """
    position_error = walk.reference_position - walk.position
    velocity_error = walk.reference_velocity - walk.velocity
    return {
        "duration_s": walk.duration_s,
        "fell": walk.fell,
        "mean_joint_position_error_rad": float(np.abs(position_error).mean()),
        "mean_joint_velocity_error_rad_s": float(np.abs(velocity_error).mean()),
        "normal_force_relative_error": normal_force_error(walk, weight_n, normal),
        "torque_mean_nm": float(np.abs(walk.torques).mean()),
        "torque_rate_mean_nm_s": torque_rate(walk),
        "power_loss_mean_w": power_loss(walk),
        "solve_time_median_s": float(np.median(walk.solve_time_s)),
        "solve_time_p99_s": float(np.percentile(walk.solve_time_s, 99)),
        "step_time_median_s": float(np.median(walk.step_time_s)),
        "step_time_p99_s": float(np.percentile(walk.step_time_s, 99)),
        "deadline_misses": walk.deadline_misses,
        "unanswered_states": walk.unanswered_states,
        "simulation_late_periods": walk.simulation_late_periods,
        "distance_travelled_m": distance_travelled(walk),
    }


def normal_force_error(walk: Walk, weight_n: float, normal: np.ndarray) -> float:
    """Mean |summed predicted - summed simulated normal force| / weight, after the first second.

    Of a run that is shorter than that, over its second half.
    """
    settled = walk.time_s - walk.time_s[0] >= min(SETTLING_TIME_S, 0.5 * walk.duration_s)
    predicted = (walk.predicted_forces[settled] @ normal).sum(axis=1)
    simulated = (walk.simulated_forces[settled] @ normal).sum(axis=1)
    return float(np.abs(predicted - simulated).mean() / weight_n)


def torque_rate(walk: Walk) -> float:
    """Mean over joints and time of |dtau/dt|, N·m/s; across left-out rows, their mean rate."""
    steps = np.diff(walk.time_s)
    return float(np.abs(np.diff(walk.torques, axis=0) / steps[:, None]).mean())


def power_loss(walk: Walk) -> float | None:
    """Mean power that heats the motors, W; None where their constants are unknown."""
    known = walk.power_loss_w[~np.isnan(walk.power_loss_w)]
    return float(known.mean()) if len(known) else None


def distance_travelled(walk: Walk) -> float:
    """Length of the horizontal path of a floating base, m; 0 for a fixed one."""
    if walk.q.shape[1] == len(walk.joint_names):
        return 0.0
    stride = max(1, round(PATH_SAMPLE_S / walk.period_s))
    path = np.vstack([walk.q[::stride, :2], walk.q[-1:, :2]])
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
