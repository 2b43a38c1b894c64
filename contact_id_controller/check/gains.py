"""Checks that the feedback, which acts once per period, can be stable."""

from __future__ import annotations

import numpy as np

from contact_id_controller.check.findings import Finding, error, note, warning
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.models import row_of
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

SUBJECT = "gains"
RESERVE = 0.5
"""Share of the stable gains that allows for torques that act a period late."""


def check_gains(robot: RobotModel, settings: ControllerSettings) -> list[Finding]:
    """Compare the gains of joints and base with what a period allows.

    An error e with e'' = -kp e - kd e', both measured once a period dt and held (a double integrator
    behind a zero-order hold), decays if kd dt < 2 and kp dt < 2 kd: Jury's criterion for
    z^2 - (2 - kd dt - kp dt^2/2) z + 1 - kd dt + kp dt^2/2.
    """
    pairs = []
    if not row_of(settings.friction, settings.solver).feedback_only:
        pairs.append(("joint_{}_gain", robot.na))
    if robot.floating_base:
        pairs += [("base_linear_{}_gain", 3), ("base_angular_{}_gain", 3)]
    findings, largest = [], 0.0
    for form, count in pairs:
        names = [form.format(part) for part in ("position", "velocity")]
        try:
            kp, kd = (settings.spread(name, count) for name in names)
        except ConfigurationError as problem:
            findings.append(error("parameter", problem))
            continue
        used = np.maximum(0.5 * kd * settings.period_s, _ratio(kp * settings.period_s, 2.0 * kd))
        worst = int(np.argmax(used))
        largest = max(largest, float(used[worst]))
        if used[worst] > RESERVE:
            text = (
                f"{names[0]} {kp[worst]:g} with {names[1]} {kd[worst]:g} and a period of "
                f"{settings.period_s:g} s: position gain times period must be below twice the velocity "
                "gain, velocity gain times period below 2"
            )
            level = error if used[worst] >= 1.0 else warning
            findings.append(level(SUBJECT, text if level is error else f"{text}; little margin"))
    if findings or not pairs:
        return findings
    return [note(SUBJECT, f"at most {100 * largest:.1f} % of what is stable at this period")]


def _ratio(values: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """values / limits, 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0.0, values / limits, 0.0)
