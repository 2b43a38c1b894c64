"""Limits of plans, from the robot."""

from __future__ import annotations

import numpy as np

from contact_id_controller.plans.plan_limits import PlanLimits
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings import plausibility

FARTHEST = 1000.0
"""Planned position, rad, of a joint without stated limits."""

FARTHEST_TURNING = 1e6
"""The same of one that has none: a wheel counts on, and this is 100 km of it."""


def plan_limits(robot: RobotModel) -> PlanLimits:
    """Limits of plans: those of the URDF, with the margins of ``plausibility``."""
    stated = np.isfinite(robot.upper - robot.lower) & (robot.upper > robot.lower)
    farthest = np.where(robot.turns, FARTHEST_TURNING, FARTHEST)
    margin = plausibility.PLAN_POSITION_MARGIN
    speed = plausibility.PLAN_SPEED_FACTOR * robot.velocity_limits
    return PlanLimits(
        np.where(stated, robot.lower - margin, -farthest),
        np.where(stated, robot.upper + margin, farthest),
        np.where(np.isfinite(speed), speed, plausibility.SPEED_RAD_S),
        plausibility.PLAN_ACCELERATION,
        plausibility.BASE_PLAN_JUMP,
        plausibility.BASE_PLAN_SPEED,
        plausibility.BASE_PLAN_ACCELERATION,
        plausibility.BASE[0],
    )
