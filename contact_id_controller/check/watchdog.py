"""Checks of the command watchdog's section: its effort limits and its damping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_id_controller.check.damping import check_damping
from contact_id_controller.check.findings import Finding, error, note
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.command_watchdog import (
    DAMPING_PERIOD_S,
    CommandWatchdogSettings,
)
from contact_id_controller.settings.controller import ControllerSettings

SUBJECT = "watchdog"


def check_watchdog(
    robot: RobotModel, settings: ControllerSettings, values: Mapping[str, Any] | None
) -> list[Finding]:
    """Compare the section of the command watchdog, if there is one, with the URDF."""
    if values is None:
        return []
    try:
        watchdog = CommandWatchdogSettings.from_mapping(values)
        limits = watchdog.spread("effort_limits_nm", robot.na)
        damping = watchdog.spread("damping_nm_s_rad", robot.na)
    except ContactIdError as problem:
        return [error(SUBJECT, problem)]
    above = np.flatnonzero(limits > robot.effort_limits)
    if above.size and not settings.effort_above_description:
        k = int(above[0])
        return [
            error(
                SUBJECT,
                f"command_watchdog.effort_limits_nm is {limits[k]:g} for joint "
                f"{robot.joint_names[k]!r}, the URDF states {robot.effort_limits[k]:g}",
            )
        ]
    return [
        note(SUBJECT, "forwards no more torque than the URDF states"),
        check_damping(
            SUBJECT, "command_watchdog.damping_nm_s_rad", robot, damping, DAMPING_PERIOD_S
        ),
    ]
