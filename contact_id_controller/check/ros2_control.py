"""Whether a parameter file of ros2_control fits the controller that commands through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.check.findings import Finding, error, note, warning
from contact_id_controller.check.local_feedback import compare_gains
from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.command_interfaces import Host
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile

SUBJECT = "ros2_control"
MANAGER = "controller_manager"

_RATE_TOLERANCE = 1e-3


def check_ros2_control(
    path: Path, robot: RobotModel, settings: ControllerSettings, posture: np.ndarray
) -> list[Finding]:
    """Compare the controllers of a file with what is commanded in a posture (na,).

    Raises:
        ConfigurationError: the file is missing, not YAML, or without section ``controller_manager``.
    """
    file = ParameterFile(path)
    manager = file.section(MANAGER)
    kinds = {name: body["type"] for name, body in manager.items() if _has_type(body)}
    findings = _check_rate(manager.get("update_rate"), settings.period_s)
    host = settings.interface.host
    names = [name for name, kind in kinds.items() if kind in host.types]
    if not names:
        findings.append(
            error(
                SUBJECT,
                f"{path} starts no {' or '.join(host.types)}, which command_interface "
                f"{settings.command_interface!r} needs",
            )
        )
    sections = file.sections()
    for name in names:
        section = sections.get(name, {})
        findings += _check_section(name, section, host, robot.joint_names)
        if host.has_gains:
            findings += _check_gains(name, section, robot, settings, posture)
    return findings


def _has_type(body: Any) -> bool:
    return isinstance(body, Mapping) and isinstance(body.get("type"), str)


def _check_rate(rate: Any, period_s: float) -> list[Finding]:
    """Whether controller_manager's update_rate, Hz, is a number and fits the controller's period, s."""
    if not isinstance(rate, int) or isinstance(rate, bool) or rate <= 0:
        return [error(SUBJECT, f"update_rate is {rate!r}, must be a whole number, Hz")]
    if abs(rate * period_s - 1.0) > _RATE_TOLERANCE:
        return [
            warning(
                SUBJECT, f"update_rate is {rate} Hz, controller.period_s {period_s:g} s is not 1/it"
            )
        ]
    return [note(SUBJECT, f"update_rate {rate} Hz")]


def _check_section(
    name: str, section: Mapping[str, Any], host: Host, joints: Sequence[str]
) -> list[Finding]:
    """The same joints, in the same order where commands do not name them; parameters with one right value."""
    findings = []
    if host.names_joints is not None:
        theirs = list(section.get("joints", ()))
        arranged, must = (sorted, "must hold") if host.names_joints else (list, "must be")
        if arranged(theirs) != arranged(joints):
            findings.append(
                error(
                    SUBJECT,
                    f"{name}.joints is [{', '.join(theirs)}], {must} [{', '.join(joints)}]",
                )
            )
    for each in host.requires:
        found = section.get(each.parameter, each.default)
        if found != each.value:
            words = f"{name}.{each.parameter} is {found!r}, must be {each.value!r}"
            findings.append(error(SUBJECT, words + f": {each.why}" * bool(each.why)))
    if findings or host.names_joints is not False:
        return findings
    return [note(SUBJECT, f"{name} takes the joints in the order of the command")]


def _check_gains(
    name: str,
    section: Mapping[str, Any],
    robot: RobotModel,
    settings: ControllerSettings,
    posture: np.ndarray,
) -> list[Finding]:
    """A PID that is the local feedback."""
    findings, joints = [], robot.joint_names
    gains = section.get("gains", {})
    rows = {joint: gains.get(joint, {}) for joint in joints}
    wrong = [
        f"{joint}.{gain} is {row.get(gain)!r}"
        for joint, row in rows.items()
        for gain in ("p", "d")
        if not isinstance(row.get(gain), float) or not 0.0 <= row[gain] < np.inf
    ]
    wrong += [f"{joint}.i is {row['i']!r}" for joint, row in rows.items() if row.get("i", 0.0)]
    if wrong:
        findings.append(
            error(
                SUBJECT,
                f"{name}.gains: {', '.join(wrong)}; p and d must be numbers with a decimal point, 0 or "
                "more, and i 0: it would fight our integral",
            )
        )
        return findings
    q = robot.neutral()
    robot.put_joints(q, posture)
    for gain, fits in zip(("p", "d"), local_gains(robot, settings, q)):
        given = np.array([row[gain] for row in rows.values()])
        findings.append(compare_gains(f"{name}.gains {gain}", given, fits, joints))
    return findings
