"""Checks of a robot description (URDF): joints, frames, inertias, limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np

from contact_id_controller.check.findings import Finding, Findings, error, note, warning
from contact_id_controller.control.limits import stop_margin
from contact_id_controller.kernels.turns import TURN
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.robot_description import MOVING, body_flaws

PRISMATIC = "JointModelP"
"""Beginning of Pinocchio's names of prismatic joints."""


def check_joints(
    description: ElementTree.Element, names: Sequence[str], locked: Sequence[str] = ()
) -> list[Finding]:
    """Check that the named joints are those of the robot; warn of joints neither driven nor locked."""
    kinds = {joint.get("name"): joint.get("type") for joint in description.findall("joint")}
    moving = [name for name, kind in kinds.items() if kind in MOVING and name not in locked]
    findings = Findings("joints")
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            findings.error(f"{name!r} is listed {names.count(name)} times")
        if name not in kinds:
            findings.error(f"{name!r} is not in the URDF, which moves {moving}")
        elif kinds[name] not in MOVING:
            findings.error(f"{name!r} is {kinds[name]}, it cannot be driven")
    passive = [name for name in moving if name not in names] if names else []
    if passive:
        findings.warning(f"{passive} are not listed: they stay passive and get no torque")
    mimics = [
        joint.get("name")
        for joint in description.findall("joint")
        if joint.find("mimic") is not None and joint.get("name") in moving
    ]
    if mimics:
        findings.warning(
            f"{mimics} mimic others: here they move by themselves, or are locked_joints"
        )
    held = f", {len(locked)} locked" if locked else ""
    return findings or [note("joints", f"{len(names or moving)} driven, none passive{held}")]


def check_frames(robot: RobotModel, settings: ControllerSettings) -> list[Finding]:
    """Check that the contact frames exist and move with driven joints."""
    model, findings = robot.model, Findings("frames")
    for name in settings.foot_frames:
        if not model.existFrame(name):
            names = [frame.name for frame in model.frames]
            findings.error(f"{name!r} is not in the URDF, which has {names}")
            continue
        joint = model.frames[robot.frame_id(name)].parentJoint
        if not robot.supports[joint, robot.actuated].any():
            findings.error(f"{name!r} is fixed to the base: no joint moves it")
    if not settings.foot_frames and settings.floating_base:
        findings.error("contact_frames and soles are empty: nothing to stand on")
    return findings or [note("frames", f"{len(settings.foot_frames)} contact frames exist")]


def check_inertias(description: ElementTree.Element, robot: RobotModel) -> list[Finding]:
    """Check the inertias of links, and what each joint moves; see `body_flaws`."""
    findings = [
        (error if flaw.fatal else warning)("inertia", flaw.text)
        for flaw in body_flaws(description, robot)
    ]
    return findings or [note("inertia", f"every link is possible, {robot.mass:.2f} kg together")]


def check_limits(
    description: ElementTree.Element, robot: RobotModel, settings: ControllerSettings
) -> list[Finding]:
    """Check that effort, velocity and position of the driven joints have finite limits."""
    findings = Findings("limits")
    efforts = (
        settings.spread("effort_limits_nm", robot.na)
        if settings.effort_limits_nm
        else robot.effort_limits
    )
    unbounded = _names(robot, ~(np.isfinite(efforts) & (efforts > 0.0)))
    if unbounded:
        findings.error(
            f"no effort limit above 0 and finite for {unbounded}; "
            "state it in the URDF or in effort_limits_nm"
        )
    unbounded = _names(robot, ~np.isfinite(robot.velocity_limits))
    if unbounded:
        findings.warning(f"no velocity limit in the URDF for {unbounded}")
    joints = {joint.get("name"): joint for joint in description.findall("joint")}
    endless = _names(robot, robot.turns)
    free = [
        name for name in robot.joint_names if name not in endless and not _has_range(joints[name])
    ]
    if free:
        findings.warning(f"no position limits in the URDF for {free}")
    crossed = _names(robot, robot.lower > robot.upper)
    if crossed:
        findings.error(f"lower position limit above the upper for {crossed}")
    text = "effort, velocity and position are limited in every joint"
    if endless:
        text += f"; {endless} are continuous"
    return findings or [note("limits", text)]


def _has_range(joint: ElementTree.Element) -> bool:
    limit = joint.find("limit")
    if limit is None:
        return False
    values = [limit.get("lower"), limit.get("upper")]
    return all(value is not None and math.isfinite(float(value)) for value in values)


def check_posture(
    robot: RobotModel, name: str, posture: Sequence[float], stops: bool
) -> list[Finding]:
    """Check the size of a posture (na,), and its position limits; stops: the controller's `position_stops`."""
    try:
        values = np.array(posture, dtype=float)
    except (TypeError, ValueError):
        return [error("posture", f"{name} is {posture!r}, must be a list of numbers")]
    if values.shape != (robot.na,) or not np.isfinite(values).all():
        return [
            error(
                "posture",
                f"{name} must be {robot.na} finite numbers, one for each joint, has {values.size}",
            )
        ]
    model = robot.model
    kinds = [model.joints[model.getJointId(joint)].shortname() for joint in robot.joint_names]
    turns = np.array([not kind.startswith(PRISMATIC) for kind in kinds]) & ~robot.turns
    if (np.abs(values[turns]) > TURN).any():
        words = ", ".join(f"{value:.4g}" for value in np.deg2rad(values))
        text = f"{name} is in degrees, it seems, must be in rad: [{words}]"
        return [error("posture", text)]
    findings = []
    for joint, value, low, high in zip(robot.joint_names, values, robot.lower, robot.upper):
        where = f"{name}: joint {joint!r} at {value:g} is"
        if not low <= value <= high:
            findings.append(error("posture", f"{where} outside its limits [{low:g}, {high:g}]"))
        elif stops and min(value - low, high - value) < stop_margin(low, high):
            words = f"{where} at an end of its range [{low:g}, {high:g}]: torque towards it is cut"
            findings.append(warning("posture", words))
    return findings


def _names(robot: RobotModel, where: np.ndarray) -> list[str]:
    return [name for name, chosen in zip(robot.joint_names, where) if chosen]
