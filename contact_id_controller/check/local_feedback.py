"""Checks of the feedback on the robot's side: same command interface, and gains that fit."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contact_id_controller.check.findings import Finding, error, note, warning
from contact_id_controller.check.held_feedback import check_held_feedback
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.linear_feedback import ahead_of
from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.command_interfaces import DEFAULT
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.shared_rows import LOCAL_GAINS

SUBJECT = "local feedback"
LARGEST_RATIO = 4.0
"""Largest ratio between the robot's gains and ours, either way, without a warning."""


def check_interfaces(sections: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Check that all sections have the same command interface."""
    wanted = sections["controller"].get("command_interface", DEFAULT)
    findings = []
    for name in ("simulated_robot", "command_watchdog"):
        found = sections.get(name, {}).get("command_interface", DEFAULT)
        if name in sections and found != wanted:
            findings.append(
                error(
                    "sections",
                    f"{name}.command_interface is {found!r}, controller.command_interface "
                    f"{wanted!r}",
                )
            )
    return findings


def check_local_feedback(
    robot: RobotModel,
    settings: ControllerSettings,
    posture: np.ndarray,
    simulated: Mapping[str, Any],
) -> list[Finding]:
    """Compare the gains of the simulated robot with those that fit in a posture (na,)."""
    if settings.interface.needs_derivative:
        return _check_derivative(robot, settings)
    if not settings.interface.has_joint_gains:
        return []
    q = robot.neutral()
    robot.put_joints(q, posture)
    findings, given = [], {}
    for name, fits in zip(LOCAL_GAINS, local_gains(robot, settings, q)):
        words = ", ".join(f"{value:.3g}" for value in fits)
        values = np.atleast_1d(np.array(simulated.get(name, ()), dtype=float))
        if values.size not in (1, robot.na):
            findings.append(
                error(SUBJECT, f"simulated_robot.{name} has {values.size} values; [{words}] fit")
                if simulated
                else note(SUBJECT, f"{name} that fit: [{words}]")
            )
            continue
        given[f"simulated_robot.{name}"] = np.broadcast_to(values, fits.shape)
    return findings or judge_gains(given, robot, settings, posture, settings.period_s)


def judge_gains(
    given: Mapping[str, np.ndarray],
    robot: RobotModel,
    settings: ControllerSettings,
    posture: np.ndarray,
    held_s: float,
) -> list[Finding]:
    """Compare gains K and D (na,) of the robot's own side, by name, with those that fit, and whether they are stable.

    Both for a posture (na,), and efforts that the robot's side holds for a time, s.
    """
    q = robot.neutral()
    robot.put_joints(q, posture)
    joints, own = robot.joint_names, local_gains(robot, settings, q)
    findings = [
        _compare(name, gain, fits, joints) for (name, gain), fits in zip(given.items(), own)
    ]
    K, D = given.values()
    slowest = dataclasses.replace(settings, period_s=max(settings.period_s, held_s))
    return [*findings, check_held_feedback(SUBJECT, " and ".join(given), robot, slowest, q, (K, D))]


def _compare(name: str, given: np.ndarray, fits: np.ndarray, joints: Sequence[str]) -> Finding:
    """How far gains (na,) of the robot's own side are from those that fit, at the worst joint."""
    ratio = np.maximum(given, 1e-12) / np.maximum(fits, 1e-12)
    worst = int(np.argmax(np.abs(np.log(ratio))))
    if max(ratio[worst], 1.0 / ratio[worst]) > LARGEST_RATIO:
        words = ", ".join(f"{value:.3g}" for value in fits)
        return warning(
            SUBJECT, f"{name} of {joints[worst]!r} is {ratio[worst]:.2g} times what fits: [{words}]"
        )
    return note(SUBJECT, f"{name} fit: at most {ratio[worst]:.2g} times ours")


def _check_derivative(robot: RobotModel, settings: ControllerSettings) -> list[Finding]:
    """Whether each solution has one and its messages are installed; the order of joints that the plugin needs."""
    package = settings.interface.package
    try:
        ahead_of(Controller(robot, settings))
    except ConfigurationError as refusal:
        return [error(SUBJECT, str(refusal))]
    joints = ", ".join(robot.joint_names[place] for place in robot.model_order)
    findings = [note(SUBJECT, f"moving_joint_names of linear_feedback_controller: [{joints}]")]
    if importlib.util.find_spec(package) is None:
        findings.append(
            warning(SUBJECT, f"the messages of {package} are not installed: no node can start")
        )
    return findings
