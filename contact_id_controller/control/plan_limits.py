"""The limits of plans, from the robot and its settings."""

from __future__ import annotations

import numpy as np

from contact_id_controller.plans.limits import PlanLimits
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

FARTHEST = 1000.0
"""Planned position, rad, of a joint whose ends nobody states."""

FARTHEST_TURNING = 1e6
"""The same of one that has none: a wheel counts on, and this is 100 km of it."""


def plan_limits(robot: RobotModel, settings: ControllerSettings) -> PlanLimits:
    """Limits of plans: those of the URDF, with the margins of the settings."""
    stated = np.isfinite(robot.upper - robot.lower) & (robot.upper > robot.lower)
    farthest = np.where(robot.turns, FARTHEST_TURNING, FARTHEST)
    margin, speed = (
        settings.plan_position_margin,
        settings.plan_speed_factor * robot.velocity_limits,
    )
    return PlanLimits(
        np.where(stated, robot.lower - margin, -farthest),
        np.where(stated, robot.upper + margin, farthest),
        np.where(np.isfinite(speed), speed, settings.possible_speed),
        settings.plan_acceleration_limit,
        *(
            (values[0], values[1])
            for values in (
                settings.base_plan_jump,
                settings.base_plan_speed,
                settings.base_plan_acceleration,
            )
        ),
    )
