"""What is measured of a locomotion run: figures of ``report.metrics`` and courses over time.

Positions and velocities are compared with the plan for the same instant, forces with those that the
simulator applied over the same period. Means are over all periods up to the end or the fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.control.controller import Controller
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.report.metrics import METRICS, Measured, measure, rates
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.one_process import Period
from contact_id_controller.runs.record import RunRecord

SERIES_POINTS = 600  # points of a decimated course, at most
PATH_EVERY = 10  # periods between two points of the measured path of the centre of mass

FIGURES = (
    "mean_joint_position_error_rad",
    "mean_joint_velocity_error_rad_s",
    "torque_mean_nm",
    "torque_rate_mean_nm_s",
    "normal_force_error_n",
    "normal_force_error_median_n",
    "normal_force_error_of_simulated",
    "normal_force_error_of_simulated_unsaturated",
    "foot_force_error_n",
    "saturated_share",
    "distance_travelled_m",
    "solve_time_median_s",
    "solve_time_p99_s",
    "step_time_median_s",
    "step_time_p99_s",
    "status_counts",
    "duration_s",
    "fell_time_s",
)
"""Of ``metrics.METRICS``: table 3, 4 and 5, and what explains them."""

MEANINGS = {
    **{name: METRICS[name].meaning for name in FIGURES},
    "com_deviation_m": "mean distance of the centre of mass from the straight lines between "
    "way-points (figure 17)",
    "waypoints_reached": "way-points reached",
    "weight_n": "weight of the robot",
}


def path_deviation(path: np.ndarray, reached: Sequence[int], waypoints: np.ndarray) -> float | None:
    """Mean distance of a path from the straight line between the last way-point and the next, m.

    Args:
        path: horizontal positions (p, 2), m.
        reached: how many way-points had been reached, for each of them.
        waypoints: (w, 2), m, visited in turn, again and again.
    """
    if len(waypoints) < 2 or not len(path):
        return None
    distances = []
    for point, count in zip(path, reached):
        # The first point is where it starts; until it is reached the line leads there.
        start = waypoints[max(count - 1, 0) % len(waypoints)]
        along, offset = waypoints[count % len(waypoints)] - start, point - start
        length = float(along @ along)
        share = min(max(float(offset @ along) / length, 0.0), 1.0) if length else 0.0
        distances.append(float(np.linalg.norm(offset - share * along)))
    return float(np.mean(distances))


class Companion:
    """Notes beside the record what a locomotion figure needs and no record has."""

    def __init__(self, robot: RobotModel, controller: Controller, planner: GaitPlanner):
        self._robot, self._data = robot, robot.model.createData()
        self._controller = controller
        self.waypoints = planner.settings.waypoints()
        self.weight_n = robot.weight
        self.predicts = controller.row.predicts_forces
        self.normals: list[np.ndarray] = []
        self.path: list[tuple[float, float, float]] = []
        self.reached: list[int] = []  # way-points reached when the path's point was taken
        self._reached = 0

    def add(self, period: Period) -> None:
        """Take in one period."""
        robot, state = self._robot, period.before
        self.normals.append(self._controller.feet.normals.copy())
        if period.plan is not None:
            self._reached = period.plan.points_reached
        if (len(self.normals) - 1) % PATH_EVERY == 0:
            center = pin.centerOfMass(robot.model, self._data, state.q)
            self.path.append((state.time_s, float(center[0]), float(center[1])))
            self.reached.append(self._reached)


def figures(record: RunRecord, companion: Companion) -> dict[str, Any]:
    """``figures`` and ``series`` of a run; ``MEANINGS`` says what each is."""
    normals, predicts = np.array(companion.normals), companion.predicts
    path = np.array(companion.path)
    result = {
        **measure(record, companion.weight_n, normals, FIGURES, predicts=predicts),
        "com_deviation_m": path_deviation(path[:, 1:], companion.reached, companion.waypoints),
        "waypoints_reached": companion.reached[-1],
        "weight_n": float(companion.weight_n),
    }
    measured = Measured(record, companion.weight_n, normals)
    rate = rates(record.torques, record.time_s).mean(axis=1)
    position = np.abs(record.reference_position - record.position).mean(axis=1)
    velocity = np.abs(record.reference_velocity - record.velocity).mean(axis=1)
    series = {
        "time_s": _decimated(record.time_s),
        "mean_joint_position_error_rad": _decimated(position),
        "mean_joint_velocity_error_rad_s": _decimated(velocity),
        "torque_rate_mean_nm_s": _decimated(np.append(rate, rate[-1:])),
        "simulated_normal_n": _decimated(measured.simulated_normal_n),
        "normal_force_error_n": _decimated(measured.normal_error_n) if predicts else None,
        "com_path_m": [list(point) for point in _thinned(companion.path)],
        "waypoints_m": companion.waypoints.tolist(),
    }
    return {"figures": result, "series": series}


def _decimated(values: np.ndarray) -> list[float]:
    """Means of consecutive groups of rows."""
    size = max(1, -(-len(values) // SERIES_POINTS))
    whole = len(values) // size * size
    return np.asarray(values[:whole], dtype=float).reshape(-1, size).mean(axis=1).tolist()


def _thinned(points: list) -> list:
    return points[:: max(1, -(-len(points) // SERIES_POINTS))]
