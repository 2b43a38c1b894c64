"""Checks of a linear_feedback_controller's section: the complete state, in the order that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_id_controller.check.findings import Finding, Findings
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings

SUBJECT = "ros2_control"
_TAKEN = tuple(
    f"JointModel{kind}"
    for kind in ("RX", "RY", "RZ", "PX", "PY", "PZ", "RevoluteUnaligned", "RUBX", "RUBY", "RUBZ")
)
"""Pinocchio's kinds of joints that its class RobotModelBuilder knows (4.0.3); it is not loaded with others."""


def check_linear_feedback(
    name: str,
    section: Mapping[str, Any],
    robot: RobotModel,
    settings: ControllerSettings,
    posture: np.ndarray,
    held_s: float,
) -> list[Finding]:
    """Problems of joints, base and command interfaces in a controller's section.

    Its rows go to ``chainable_controller.command_interfaces`` by index: in the order of the model.
    """
    findings = Findings(SUBJECT)
    joints, model = robot.joint_names, robot.model
    others = [
        joint for joint in joints if model.joints[model.getJointId(joint)].shortname() not in _TAKEN
    ]
    if others:
        findings.error(
            f"{name} takes no {others}, which slide or turn without end along another axis than x, y or z of "
            "their frame: lock them"
        )
    floats = section.get("robot_has_free_flyer")
    if floats is not robot.floating_base:
        findings.error(
            f"{name}.robot_has_free_flyer is {floats!r}, must be {robot.floating_base!r}"
        )
    chain = section.get("chainable_controller", {})
    efforts = chain.get("command_interfaces", []) if isinstance(chain, Mapping) else []
    wanted = [f"{joints[place]}/effort" for place in robot.model_order]
    in_order = len(efforts) == len(wanted) and all(
        f"/{given}".endswith(f"/{each}") for given, each in zip(efforts, wanted)
    )
    if not in_order:
        findings.error(
            f"{name}.chainable_controller.command_interfaces is [{', '.join(map(str, efforts))}], "
            f"must end in [{', '.join(wanted)}]"
        )
    findings.warning(
        f"{name} has no time-out: the last torque and gain act for ever when controller and "
        "command_watchdog are gone"
    )
    return findings
