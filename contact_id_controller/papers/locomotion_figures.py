"""What is measured of a locomotion run, and how each figure is computed.

Positions and velocities are compared with the plan for the same instant, forces with those that the
simulator applied over the same period. Means are over all periods up to the end or the fall.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.control.controller import Controller
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.one_process import Period

SERIES_POINTS = 600  # points of a decimated course, at most
PATH_EVERY = 10  # periods between two points of the measured path of the centre of mass

MEANINGS = {
    "position_error_rad": "mean over joints and time of |planned - measured position| (table 3)",
    "velocity_error_rad_s": "the same of joint velocity (table 3)",
    "torque_mean_nm": "mean over joints and time of |torque| (table 4)",
    "torque_rate_nm_s": "mean over joints and time of |change of torque in a period| / period "
    "(table 4)",
    "force_error_n": "mean over time of |sum over the feet of predicted normal forces - of applied "
    "ones| (table 5); None for controllers that predict nothing",
    "force_error_relative": "the same divided by the mean of the applied sum (table 5)",
    "force_error_unlimited": "the same over the periods in which no torque was limited: in the others "
    "the robot does not get the torque for which forces were predicted",
    "force_error_median_n": "median over time instead of the mean: without impacts",
    "foot_force_error_n": "mean over time of the norm of the error of all feet's force vectors",
    "com_deviation_m": "mean distance of the centre of mass from the straight lines between "
    "way-points (figure 17)",
    "points_reached": "way-points reached",
    "distance_m": "length of the path of the centre of mass, sampled every half second",
    "saturated": "share of periods in which a torque was at its limit",
    "solve_time_us": "median and 99th percentile of contact problem and solver",
    "step_time_us": "median and 99th percentile of the controller's whole step",
    "statuses": "how many steps ended with which status of the solver",
    "simulated_s": "time up to the end or the fall",
}


class Record:
    """Collects what the figures need, one row a period."""

    def __init__(self, robot: RobotModel, controller: Controller, planner: GaitPlanner):
        self._robot, self._data = robot, robot.model.createData()
        self._controller = controller
        self.waypoints = planner.settings.waypoints()
        self.weight = robot.weight
        self.predicts = controller.row.predicts_forces
        self.rows: dict[str, list] = {
            name: []
            for name in (
                "time",
                "position",
                "velocity",
                "torque",
                "error",
                "total",
                "foot_error",
                "solve",
                "step",
                "saturated",
            )
        }
        self.path: list[tuple[float, float, float]] = []
        self.leg: list[int] = []  # way-points reached when the path's point was taken
        self.statuses: Counter = Counter()
        self._reached = 0

    def add(self, period: Period) -> None:
        """Take in one period."""
        robot, state, result = self._robot, period.before, period.result
        normals = getattr(self._controller.feet, "normals", None)
        if normals is None:
            normals = np.tile(self._controller.feet.ground.normal, (len(period.forces), 1))
        applied = np.einsum("ij,ij->i", period.forces, normals)
        predicted = np.einsum("ij,ij->i", result.forces, normals)
        row = {
            "time": state.time_s,
            "position": np.abs(result.reference.position - state.q[robot.q_index]).mean(),
            "velocity": np.abs(result.reference.velocity - state.v[robot.actuated]).mean(),
            "torque": result.torques.copy(),
            "error": abs(predicted.sum() - applied.sum()),
            "total": applied.sum(),
            "foot_error": np.linalg.norm(result.forces - period.forces),
            "solve": result.solve_time_s,
            "step": result.step_time_s,
            "saturated": result.saturated.any(),
        }
        for name, value in row.items():
            self.rows[name].append(value)
        self.statuses[result.status] += 1
        if period.plan is not None:
            self._reached = period.plan.points_reached
        if (len(self.rows["time"]) - 1) % PATH_EVERY == 0:
            center = pin.centerOfMass(robot.model, self._data, state.q)
            self.path.append((state.time_s, float(center[0]), float(center[1])))
            self.leg.append(self._reached)


def figures(record: Record, period_s: float) -> dict[str, Any]:
    """``figures`` and ``series`` of a record; ``MEANINGS`` says what each is."""
    rows = {name: np.array(values) for name, values in record.rows.items()}
    torque = rows["torque"]
    rate = np.abs(np.diff(torque, axis=0)).mean(axis=1) / period_s
    predicts = record.predicts
    free = ~rows["saturated"].astype(bool)
    result = {
        "position_error_rad": _mean(rows["position"]),
        "velocity_error_rad_s": _mean(rows["velocity"]),
        "torque_mean_nm": _mean(np.abs(torque)),
        "torque_rate_nm_s": _mean(rate),
        "force_error_n": _mean(rows["error"]) if predicts else None,
        "force_error_relative": (
            _mean(rows["error"]) / max(_mean(rows["total"]), 1e-9) if predicts else None
        ),
        "force_error_unlimited": (
            _mean(rows["error"][free]) / max(_mean(rows["total"][free]), 1e-9)
            if predicts and free.any()
            else None
        ),
        "force_error_median_n": float(np.median(rows["error"])) if predicts else None,
        "foot_force_error_n": _mean(rows["foot_error"]) if predicts else None,
        "com_deviation_m": _deviation(record),
        "points_reached": record.leg[-1] if record.leg else 0,
        "distance_m": _distance(record),
        "saturated": _mean(rows["saturated"]),
        "solve_time_us": _spread(rows["solve"]) if predicts else None,
        "step_time_us": _spread(rows["step"]),
        "statuses": dict(record.statuses),
        "simulated_s": float(len(torque) * period_s),
        "weight_n": float(record.weight),
    }
    series = {
        "time_s": _decimated(rows["time"]),
        "position_error_rad": _decimated(rows["position"]),
        "velocity_error_rad_s": _decimated(rows["velocity"]),
        "torque_rate_nm_s": _decimated(np.append(rate, rate[-1:])),
        "applied_normal_n": _decimated(rows["total"]),
        "force_error_n": _decimated(rows["error"]) if predicts else None,
        "com_path_m": [list(point) for point in _thinned(record.path)],
        "waypoints_m": record.waypoints.tolist(),
    }
    return {"figures": result, "series": series}


def _mean(values) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _spread(seconds) -> list[float]:
    return [float(1e6 * value) for value in np.percentile(seconds, (50, 99))]


def _decimated(values) -> list[float]:
    """Means of consecutive groups of rows."""
    size = max(1, -(-len(values) // SERIES_POINTS))
    whole = len(values) // size * size
    return np.asarray(values[:whole], dtype=float).reshape(-1, size).mean(axis=1).tolist()


def _thinned(points: list) -> list:
    return points[:: max(1, -(-len(points) // SERIES_POINTS))]


def _distance(record: Record) -> float:
    points = np.array(record.path)[:, 1:]
    stride = max(1, round(0.5 / (record.path[1][0] - record.path[0][0]))) if len(points) > 1 else 1
    return float(np.linalg.norm(np.diff(points[::stride], axis=0), axis=1).sum())


def _deviation(record: Record) -> float | None:
    """Mean distance of the path from the line between the last way-point and the next."""
    ways = record.waypoints
    if len(ways) < 2:
        return None
    distances = []
    for (_, x, y), reached in zip(record.path, record.leg):
        # The first point is where it starts; until it is reached the line leads there.
        start, end = ways[max(reached - 1, 0) % len(ways)], ways[reached % len(ways)]
        along, offset = end - start, np.array([x, y]) - start
        length = float(along @ along)
        share = min(max(float(offset @ along) / length, 0.0), 1.0) if length else 0.0
        distances.append(float(np.linalg.norm(offset - share * along)))
    return float(np.mean(distances))
