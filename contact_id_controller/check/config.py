"""All checks of a robot's parameter file, before anything moves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.check.damping import check_safe_output
from contact_id_controller.check.description import (
    check_frames,
    check_inertias,
    check_joints,
    check_limits,
    check_posture,
)
from contact_id_controller.check.estimator import check_estimator, check_pipeline
from contact_id_controller.check.file import check_model, check_node, check_sections, check_values
from contact_id_controller.check.findings import ERROR, Finding, Findings, error, note, warning
from contact_id_controller.check.gains import check_gains
from contact_id_controller.check.local_feedback import check_interfaces, check_local_feedback
from contact_id_controller.check.ros2_control import check_ros2_control
from contact_id_controller.check.standing_checks import (
    check_feet,
    check_forces,
    check_step_time,
    check_support,
    check_torques,
    standing_state,
    unlimited_torques,
)
from contact_id_controller.check.watchdog import check_watchdog
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.warm_up import warm_up
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.planning.by_velocity import fit
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR, estimator_parameters
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.settings.robot_description import read_description, unreadable

MOST_PROBLEMS = 20
"""Largest number of problems of an unreadable description that are reported."""

POSTURES = (
    ("gait_planner", "posture"),
    ("kinodynamic_planner", "posture"),
    ("simulated_robot", "initial_joint_positions"),
)


def check_config(path: Path, ros2_control: Path | None = None, distro: str = "") -> list[Finding]:
    """All findings about a parameter file; checks that need what an error forbids are left out.

    ros2_control: parameter file of controller_manager and its controllers, to be checked as well.  distro: its ROS
    distribution; empty: unknown.

    Raises:
        ConfigurationError: a file is missing, not YAML, or without section ``controller`` (of the
            other: ``controller_manager``); there is no such distribution.
    """
    findings, known = _at_the_desk(path)
    if known is None:
        return findings
    settings, robot, posture = known
    for given in _estimators(ParameterFile(path)):
        findings += check_pipeline(given)
    if ros2_control is not None:
        findings += check_ros2_control(ros2_control, robot, settings, posture, distro)
    try:
        return findings + check_at_rest(Controller(robot, settings), posture)
    except ContactIdError as problem:
        return [*findings, error("controller", problem)]


def check_file(path: Path) -> list[Finding]:
    """The findings that need no step of the controller: nothing is compiled for them.

    Raises:
        ConfigurationError: as ``check_config``.
    """
    return _at_the_desk(path)[0]


def _at_the_desk(
    path: Path,
) -> tuple[list[Finding], tuple[ControllerSettings, RobotModel, np.ndarray] | None]:
    """The findings of `check_file`; settings, robot and posture (na,), None after an error."""
    file = ParameterFile(path)
    file.section("controller")  # refused first, and by name
    sections = file.sections()
    settings, findings = check_values(sections["controller"])
    between = check_sections(sections) + check_interfaces(sections)
    if settings is None:
        return findings + between, None
    # Later than these, as many of its values are the controller's: one mistake, one line.
    for given in _estimators(file):
        between += check_estimator(given, settings)
    for node in ("simulated_robot", "kinodynamic_planner"):
        between += check_node(node, sections.get(node))
    findings += check_model(settings)
    robot, about_robot = _check_description(settings)
    findings += about_robot
    if robot is None:
        return between + findings, None
    if not any(finding.level == ERROR for finding in findings):
        findings += check_gains(robot, settings) + check_safe_output(robot, settings)
    if not any(finding.level == ERROR and finding.subject == "frames" for finding in findings):
        findings += _check_planner(robot, sections.get("gait_planner"))
    findings += check_watchdog(robot, settings, sections.get("command_watchdog"))
    findings += _check_order(settings, robot, sections)
    posture, about_posture = _posture(robot, sections, settings.position_stops)
    findings += about_posture
    if any(finding.level == ERROR for finding in findings):
        return between + findings, None
    simulated = sections.get("simulated_robot", {})
    findings = between + findings + check_local_feedback(robot, settings, posture, simulated)
    return findings, (settings, robot, posture)


def _estimators(file: ParameterFile) -> list[dict[str, Any]]:
    """Parameters of each dynamics estimator of the file."""
    controller = file.section("controller")
    return [estimator_parameters(given, controller) for given in file.named(ESTIMATOR)]


def _check_description(settings: ControllerSettings) -> tuple[RobotModel | None, list[Finding]]:
    """The robot, None if it cannot be built, and findings about its description."""
    try:
        description = read_description(settings.urdf)
    except ContactIdError as problem:
        return None, [error("URDF", problem)]
    problems = list(unreadable(description, tuple(settings.locked)))
    if problems:
        return None, [error("URDF", problem) for problem in problems[:MOST_PROBLEMS]]
    findings = check_joints(description, settings.joints, tuple(settings.locked))
    try:
        robot = settings.load_robot()
    except ContactIdError as problem:
        if not any(finding.level == ERROR for finding in findings):
            findings.append(error("URDF", problem))
        return None, findings
    findings += check_frames(robot, settings)
    findings += check_inertias(description, robot)
    try:
        findings += check_limits(description, robot, settings)
    except ContactIdError as problem:
        findings.append(error("limits", problem))
    return robot, findings


def _check_planner(robot: RobotModel, values: Mapping[str, Any] | None) -> list[Finding]:
    """Whether the gait planner accepts its section and the legs; nothing without a section."""
    if values is None:
        return []
    try:
        settings = GaitPlannerSettings.from_mapping(values)
        words = fit(robot, settings, settings.terrain)
    except ContactIdError as problem:
        return [error("gait planner", problem)]
    return [note("gait planner", words)]


def _check_order(
    settings: ControllerSettings, robot: RobotModel, sections: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """Errors where the controller or another section lacks `joints`, and the URDF's order is not the other's."""
    findings = Findings("sections")
    for node in ("simulated_robot", "gait_planner"):
        joints = sections.get(node, {}).get("joints")
        if node not in sections or (joints and settings.joints):
            continue
        try:
            names = settings.changed({"joints": joints or ()}).load_robot().joint_names
        except ContactIdError as problem:
            findings.error(f"{node}.joints: {problem}")
            continue
        if names != robot.joint_names:
            findings.error(
                f"{node}.joints or controller.joints is not given: all of the URDF, in its order, which is not the other's"
            )
    return findings


def _posture(robot: RobotModel, sections: Any, stops: bool) -> tuple[np.ndarray, list[Finding]]:
    """The standing posture (na,), and findings about the postures in the file; stops: see `check_posture`."""
    given = [
        (f"{section}.{name}", sections[section][name])
        for section, name in POSTURES
        if sections.get(section, {}).get(name)
    ]
    if not given:
        neutral = robot.joints_of(robot.neutral())
        return neutral, [
            warning(
                "posture",
                "none is given for a planner or simulated_robot; the "
                "rest is checked with every joint at zero",
            )
        ]
    if "simulated_robot" in sections and not given[-1][0].startswith("simulated_robot"):
        given.append(("simulated_robot.initial_joint_positions (by default)", [0.0] * robot.na))
    alike: dict[str, list[str]] = {}
    for name, values in given:
        alike.setdefault(repr(values), []).append(name)
    groups = [(", ".join(names), dict(given)[names[0]]) for names in alike.values()]
    findings = [
        line for name, values in groups for line in check_posture(robot, name, values, stops)
    ]
    if any(finding.level == ERROR for finding in findings):
        return np.zeros(robot.na), findings
    if len(given) == 2 and list(given[0][1]) != list(given[1][1]):
        findings.append(warning("posture", f"{given[0][0]} differs from {given[1][0]}"))
    return np.array(given[0][1], dtype=float), findings or [note("posture", "within the limits")]


def check_at_rest(controller: Controller, posture: np.ndarray) -> list[Finding]:
    """Checks of the controller's own step with the robot at rest in a posture (na,)."""
    state, findings = standing_state(controller, posture), []
    stands = controller.robot.floating_base and len(controller.feet) > 0
    if stands:
        findings += check_feet(controller, state)
        if any(finding.level == ERROR for finding in findings):
            return findings
        findings += check_support(controller, state)
    warm_up(controller)
    controller.reset(state)
    result = controller.step(state)
    if stands and controller.row.predicts_forces:
        findings += check_forces(controller, result)
    if not controller.pid:  # at rest the PID commands nothing
        findings += check_torques(controller, unlimited_torques(result))
    return findings + check_step_time(controller, state)
