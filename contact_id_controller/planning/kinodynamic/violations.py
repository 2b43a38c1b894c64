"""Refusal of planned motions beyond the robot's limits, with phase, foot or joint, and the limit exceeded."""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_id_controller.planning.kinodynamic.between_knots import FineMotion
from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan
from contact_id_controller.planning.kinodynamic.feasibility import InfeasiblePlanError
from contact_id_controller.planning.kinodynamic.torques import PlannedTorques
from contact_id_controller.robot import RobotModel

MISSED = 1e-5
"""Feet or CoM that are farther from their place than this (m, rad) do not reach it."""


def refuse_missed(plan: ContactPlan, fine: FineMotion) -> None:
    """Raise if a foot is off its path.

    Raises:
        InfeasiblePlanError: a foot cannot reach its path with the CoM on that of the forces.
    """
    missed = fine.misses.max(axis=1) > MISSED
    if not missed.any():
        return
    away = np.linalg.norm(fine.feet.positions - fine.com[:, None], axis=2)
    point, farthest = np.unravel_index(np.argmax(fine.misses), fine.misses.shape)
    near = fine.misses[point] > 0.5 * fine.misses[point, farthest]
    foot = int(np.argmax(np.where(near, away[point], -np.inf)))
    raise InfeasiblePlanError(
        f"phase {phase_at(plan, fine.times_s[point])}, foot {plan.soles[foot].frame}: "
        f"{fine.misses[point].max():.2g} m or rad are missing at {fine.times_s[point]:.3g} s, "
        f"with the CoM {away[point, foot]:.3g} m from the foot"
    )


def refuse_beyond_limits(
    robot: RobotModel, plan: ContactPlan, fine: FineMotion, torques: PlannedTorques
) -> None:
    """Raise if a motion exceeds the limits of the robot's description.

    Raises:
        InfeasiblePlanError: a joint beyond its range, its speed or its torque.
    """
    joints = robot.joints_of(fine.configurations)
    half = np.where(robot.turns, 0.0, 0.5 * (robot.lower + robot.upper))
    bound = np.where(joints > half, robot.upper, robot.lower)
    _refuse(robot, plan, fine.times_s, "is at", "rad", joints, bound, np.sign(joints - half))
    for times, what, unit, values, limit in (
        (
            fine.times_s,
            "moves at",
            "rad/s",
            fine.velocities[:, robot.actuated],
            robot.velocity_limits,
        ),
        (torques.times_s, "needs", "N m", torques.torques, robot.effort_limits),
    ):
        sign = np.sign(values)
        _refuse(robot, plan, times, what, unit, values, sign * limit, sign)


def phase_at(plan: ContactPlan, time_s: float) -> int:
    """Index of the phase at a time from the plan's start."""
    number = int(np.searchsorted(plan.boundaries_s, time_s, side="right")) - 1
    return min(number, len(plan.phases) - 1)


def _refuse(
    robot: RobotModel,
    plan: Any,
    times_s: np.ndarray,
    what: str,
    unit: str,
    values: np.ndarray,
    bound: np.ndarray,
    outwards: Any,
) -> None:
    """Raise InfeasiblePlanError for the worst value beyond a bound.

    Args:
        values: (points, na).  bound: (na,) or broadcastable.  outwards: 1 for an upper bound, -1 for a lower one.
    """
    with np.errstate(invalid="ignore"):  # a joint without bounds
        beyond = np.nan_to_num(outwards * (values - bound), nan=-np.inf, neginf=-np.inf)
    point, joint = np.unravel_index(np.argmax(beyond), beyond.shape)
    if beyond[point, joint] > 0.0:
        raise InfeasiblePlanError(
            f"phase {phase_at(plan, times_s[point])}, joint {robot.joint_names[joint]}: {what} "
            f"{values[point, joint]:.3g} {unit} at {times_s[point]:.3g} s, limit "
            f"{bound[point, joint]:.3g}"
        )
