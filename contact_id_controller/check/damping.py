"""Checks that damped joints come to rest, in any posture."""

from __future__ import annotations

import numpy as np

from contact_id_controller.check.findings import Finding, error, note, warning
from contact_id_controller.control.held_damping import (
    POSTURES,
    RESERVE,
    largest_damping,
    mobilities,
    share_of_stable,
)
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

_PARAMETER = "damping_nm_s_rad"


def check_safe_output(robot: RobotModel, settings: ControllerSettings) -> list[Finding]:
    """Check the damping of the controller's own safe output, if it is damping."""
    if "damping" not in (settings.safe_output, settings.emergency_stop_output):
        return []
    try:
        damping = settings.spread(_PARAMETER, robot.na)
    except ConfigurationError as problem:
        return [error("parameter", problem)]
    return [check_damping("safe output", _PARAMETER, robot, damping, settings.period_s)]


def check_damping(
    subject: str, name: str, robot: RobotModel, damping: np.ndarray, held_s: float
) -> Finding:
    """Check the damping D (na,), N·m·s/rad, of the parameter ``name``, for torques held for ``held_s``."""
    W = mobilities(robot)
    share = share_of_stable(W, damping, held_s)
    text = (
        f"{name}, held for {held_s:g} s, is {100.0 * share:.0f} % of what is stable with the feet in the air, in the "
        f"worst of {POSTURES} postures"
    )
    if share <= RESERVE:
        return note(subject, text)
    words = ", ".join(f"{value:.2g}" for value in largest_damping(W, held_s))
    text += f"; at most [{words}] allow for velocities that arrive late"
    return error(subject, text) if share >= 1.0 else warning(subject, text)
