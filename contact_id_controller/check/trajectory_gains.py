"""Checks of a joint_trajectory_controller's PID as the local feedback of our trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_id_controller.check.findings import Finding, error
from contact_id_controller.check.local_feedback import judge_gains
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

SUBJECT = "ros2_control"


def check_trajectory_gains(
    name: str,
    section: Mapping[str, Any],
    robot: RobotModel,
    settings: ControllerSettings,
    posture: np.ndarray,
    held_s: float,
) -> list[Finding]:
    """Problems of the gains of a controller's section, for a posture (na,) and efforts held for ``held_s``."""
    gains = section.get("gains", {})
    rows = {joint: gains.get(joint, {}) for joint in robot.joint_names}
    wrong = [
        f"{joint}.{gain} is {row.get(gain)!r}"
        for joint, row in rows.items()
        for gain in ("p", "d")
        if not isinstance(row.get(gain), float) or not 0.0 <= row[gain] < np.inf
    ]
    wrong += [f"{joint}.i is {row['i']!r}" for joint, row in rows.items() if row.get("i", 0.0)]
    if wrong:
        return [
            error(
                SUBJECT,
                f"{name}.gains: {', '.join(wrong)}; p and d must be numbers with a decimal point, 0 or "
                "more, and i 0: it would act against the controller's integral",
            )
        ]
    given = {
        f"{name}.gains {gain}": np.array([row[gain] for row in rows.values()])
        for gain in ("p", "d")
    }
    return judge_gains(given, robot, settings, posture, held_s)
