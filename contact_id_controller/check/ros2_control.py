"""Checks of a parameter file of ros2_control against the controller that commands through it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.check.findings import ERROR, Finding, Findings, error, note, warning
from contact_id_controller.lazy import loaded
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.command_interfaces import ANY, MODEL, Host
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.distributions import Distribution, distribution
from contact_id_controller.settings.parameter_file import ParameterFile

SUBJECT = "ros2_control"
MANAGER = "controller_manager"
_BROADCASTER = "joint_state_broadcaster/JointStateBroadcaster"
_ENFORCES = "enforce_command_limits"

_RATE_TOLERANCE = 1e-3


def check_ros2_control(
    path: Path,
    robot: RobotModel,
    settings: ControllerSettings,
    posture: np.ndarray,
    distro: str = "",
) -> list[Finding]:
    """Compare the controllers of a file with the commands in a posture (na,).

    distro: its ROS distribution, in which parameters and controllers differ; empty: unknown: the requirements of all
    distributions apply.

    Raises:
        ConfigurationError: the file is missing, not YAML, or without section ``controller_manager``;
            an unknown distribution; commands that do not go through ros2_control.
    """
    there = distribution(distro) if distro else None
    file = ParameterFile(path)
    manager = file.section(MANAGER)
    kinds = {name: body["type"] for name, body in manager.items() if _has_type(body)}
    rate = manager.get("update_rate")
    findings = Findings(SUBJECT)
    findings += _check_rate(rate, settings.period_s)
    held_s = 1.0 / rate if isinstance(rate, int) and rate > 0 else settings.period_s
    if there is not None:
        findings += _check_distribution(manager, kinds, settings, there)
    host = settings.interface.taker
    names = [name for name, kind in kinds.items() if kind in host.types]
    if not names:
        findings.error(
            f"{path} starts no {' or '.join(host.types)}, which command_interface "
            f"{settings.command_interface!r} needs"
        )
    sections = file.sections()
    for name in names:
        section = sections.get(name, {})
        findings += _check_section(name, section, host, robot, there)
        if host.checks:
            findings += loaded(host.checks)(name, section, robot, settings, posture, held_s)
    if host.exports:
        findings += _check_broadcasters(kinds, sections)
    return findings


def _has_type(body: Any) -> bool:
    return isinstance(body, Mapping) and isinstance(body.get("type"), str)


def _check_broadcasters(
    kinds: Mapping[str, str], sections: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """Check that joint_state_broadcasters do not claim what our controller exports."""
    return [
        error(
            SUBJECT,
            f"{name}.{each} is not set: it takes all state interfaces, also those of a controller "
            f"that exports some, which can then not be deactivated by itself",
        )
        for name, kind in kinds.items()
        if kind == _BROADCASTER
        for each in ("joints", "interfaces")
        if not sections.get(name, {}).get(each)
    ]


def _check_rate(rate: Any, period_s: float) -> list[Finding]:
    """Check that controller_manager's update_rate, Hz, is a number and fits the controller's period, s."""
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
    name: str, section: Mapping[str, Any], host: Host, robot: RobotModel, there: Distribution | None
) -> list[Finding]:
    """Check the joints, in order where commands do not name them, and parameters with one right value."""
    findings = Findings(SUBJECT)
    joints, theirs = list(robot.joint_names), list(section.get(host.joints, ()))
    if host.order == MODEL:
        joints = [joints[place] for place in robot.model_order]
    arranged, must = (sorted, "must hold") if host.order == ANY else (list, "must be")
    if arranged(theirs) != arranged(joints):
        findings.error(
            f"{name}.{host.joints} is [{', '.join(theirs)}], {must} [{', '.join(joints)}]"
        )
    for each in host.requires:
        if there is not None and not there.knows(each.since):
            findings.note(f"{name}.{each.parameter}: {there.name} has no such parameter")
            continue
        found = section.get(each.parameter, each.default)
        if found != each.value:
            words = f"{name}.{each.parameter} is {found!r}, must be {each.value!r}"
            if each.since and each.parameter not in section:
                words = (
                    f"{name}.{each.parameter} is not set, which is {each.default!r} from "
                    f"{each.since} on, must be {each.value!r}"
                )
            findings.error(words + f": {each.why}" * bool(each.why))
    if any(finding.level == ERROR for finding in findings) or host.order == ANY:
        return findings
    return [*findings, note(SUBJECT, f"{name} takes the joints in the order of the {host.order}")]


def _check_distribution(
    manager: Mapping[str, Any],
    kinds: Mapping[str, str],
    settings: ControllerSettings,
    there: Distribution,
) -> list[Finding]:
    """What differs in this distribution, one line each."""
    findings = Findings(SUBJECT)
    findings.note(there.words)
    for name, kind in kinds.items():
        if kind in there.gone:
            findings.error(f"{name}: {there.name} has no {kind}: {there.gone[kind]}")
        if kind in there.fails:
            findings.warning(f"{name}: {kind} fails in {there.name}: {there.fails[kind]}")
    enforces = manager.get(_ENFORCES, there.enforces_limits)
    said = "" if _ENFORCES in manager else f" not set, in {there.name}"
    findings.note(f"{_ENFORCES} is{said} {enforces}")
    expected = {"on": True, "off": False}.get(settings.enforce_command_limits, enforces)
    if enforces is not expected:
        findings.warning(
            f"controller.{_ENFORCES} is {settings.enforce_command_limits!r}, that of "
            f"{MANAGER} {enforces}: auto takes the latter"
        )
    return findings
