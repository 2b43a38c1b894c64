"""Checks of our own plugin's section in ros2_control: gains and limits that fit our commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_id_controller.check.damping import check_damping
from contact_id_controller.check.findings import Finding, Findings
from contact_id_controller.check.local_feedback import judge_gains
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

SUBJECT = "ros2_control"
_GAINS = ("position_gain", "velocity_gain")
_DAMPING = "damping_nm_s_rad"
_LISTS = (*_GAINS, _DAMPING, "effort_limits_nm")


def check_robot_side(
    name: str,
    section: Mapping[str, Any],
    robot: RobotModel,
    settings: ControllerSettings,
    posture: np.ndarray,
    held_s: float,
) -> list[Finding]:
    """Problems of a controller's section, for a posture (na,) and efforts held for ``held_s``."""
    findings, given = Findings(SUBJECT), {}
    for each in _LISTS:
        values = section.get(each, [])
        numbers = isinstance(values, list) and all(type(value) is float for value in values)
        if not numbers or len(values) not in (1, robot.na):
            findings.error(
                f"{name}.{each} is {values!r}, must be 1 number with a decimal point or {robot.na}"
            )
        else:
            given[each] = np.broadcast_to(np.array(values), (robot.na,))
    floats = section.get("floating_base", False)
    if settings.interface.needs_derivative and floats is not robot.floating_base:
        findings.error(f"{name}.floating_base is {floats!r}, must be {robot.floating_base!r}")
    timeout_s = section.get("timeout_s", 0.05)
    if not isinstance(timeout_s, float) or timeout_s <= settings.period_s:
        findings.error(
            f"{name}.timeout_s is {timeout_s!r}, must be above period_s {settings.period_s:g}"
        )
    if findings:
        return findings
    if settings.interface.has_joint_gains:
        gains = {f"{name}.{each}": given[each] for each in _GAINS}
        findings += judge_gains(gains, robot, settings, posture, held_s)
    damping = check_damping(SUBJECT, f"{name}.{_DAMPING}", robot, given[_DAMPING], held_s)
    return [*findings, damping]
