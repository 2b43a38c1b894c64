"""Checks of a robot description (URDF): joints, frames, inertias, limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from contact_id_controller.check.findings import Finding, error, note, warning
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.settings.controller import ControllerSettings

MOVING = ("revolute", "continuous", "prismatic")
TRIANGLE = 1e-3
"""Relative excess of a principal inertia over the sum of the others that rounding explains."""

ROUNDING = 1e-9
"""Part of the largest principal inertia that counts as zero."""


def read_description(urdf: str) -> ElementTree.Element:
    """The XML of a URDF.

    Raises:
        RobotDescriptionError: no such file.
        ElementTree.ParseError: not XML.
    """
    return ElementTree.parse(resolve_urdf(urdf)).getroot()


def check_joints(
    description: ElementTree.Element, names: Sequence[str], locked: Sequence[str] = ()
) -> list[Finding]:
    """Whether the named joints are those of the robot; joints that nobody drives or holds."""
    kinds = {joint.get("name"): joint.get("type") for joint in description.findall("joint")}
    moving = [name for name, kind in kinds.items() if kind in MOVING and name not in locked]
    findings = []
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            findings.append(error("joints", f"{name!r} is listed {names.count(name)} times"))
        if name not in kinds:
            findings.append(error("joints", f"{name!r} is not in the URDF, which moves {moving}"))
        elif kinds[name] not in MOVING:
            findings.append(error("joints", f"{name!r} is {kinds[name]}, it cannot be driven"))
    passive = [name for name in moving if name not in names] if names else []
    if passive:
        findings.append(
            warning("joints", f"{passive} are not listed: they stay passive and get no torque")
        )
    held = f", {len(locked)} locked" if locked else ""
    return findings or [note("joints", f"{len(names or moving)} driven, none passive{held}")]


def check_frames(robot: RobotModel, settings: ControllerSettings) -> list[Finding]:
    """Whether the contact frames exist and move with driven joints."""
    model, findings = robot.model, []
    for name in settings.foot_frames:
        if not model.existFrame(name):
            names = [frame.name for frame in model.frames]
            findings.append(error("frames", f"{name!r} is not in the URDF, which has {names}"))
            continue
        joint = model.frames[robot.frame_id(name)].parentJoint
        if not robot.supports[joint, robot.actuated].any():
            findings.append(error("frames", f"{name!r} is fixed to the base: no joint moves it"))
    if not settings.foot_frames and settings.floating_base:
        findings.append(
            error("frames", "contact_frames and flat_feet_frames are empty: nothing to stand on")
        )
    return findings or [note("frames", f"{len(settings.foot_frames)} contact frames exist")]


def check_inertias(description: ElementTree.Element, robot: RobotModel) -> list[Finding]:
    """Whether each link could be made of matter, and what each joint moves.

    A link that could not, such as a sensor that is a point, does no harm where the links that move
    together with it make a body that could.
    """
    model, bodies, impossible = robot.model, [], set()
    for joint in range(1, model.njoints):
        name, body = model.names[joint], model.inertias[joint]
        principal = np.linalg.eigvalsh(body.inertia)
        if not body.mass > 0.0:
            bodies.append(error("inertia", f"joint {name!r} moves a body without mass"))
        elif not principal[0] > ROUNDING * principal[2]:
            bodies.append(
                error(
                    "inertia",
                    f"the links that joint {name!r} moves have together "
                    f"principal inertias {_list(principal)} kg m2, not "
                    "all above 0",
                )
            )
        else:
            continue
        impossible.add(joint)
    findings = []
    for link in description.findall("link"):
        inertial, name = link.find("inertial"), link.get("name")
        if inertial is None:
            continue
        frame = model.getFrameId(name, pin.FrameType.BODY)
        alone = frame < model.nframes and model.frames[frame].parentJoint in impossible
        findings += _check_link(name, inertial, error if alone else warning)
    findings += bodies
    return findings or [note("inertia", f"every link is possible, {robot.mass:.2f} kg together")]


def _check_link(
    name: str, inertial: ElementTree.Element, no_body: Callable[[str, str], Finding]
) -> list[Finding]:
    """no_body: the finding where its inertia is none; a warning where others make up for it."""
    mass = float(_attribute(inertial, "mass", "value"))
    ixx, iyy, izz, ixy, ixz, iyz = (
        float(_attribute(inertial, "inertia", key))
        for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    principal = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    if mass == 0.0 and not principal.any():  # a frame, not a body
        return []
    if not mass > 0.0:
        finding = no_body if mass == 0.0 else error
        return [finding("inertia", f"link {name!r} has mass {mass:g} kg, must be above 0")]
    rounding = ROUNDING * principal[2]
    if abs(principal[0]) <= rounding <= principal[2]:
        return [
            warning(
                "inertia",
                f"link {name!r} has no thickness, principal inertias "
                f"{_list(principal)} kg m2; it needs other links fixed to it",
            )
        ]
    if not principal[0] > 0.0:
        return [
            no_body(
                "inertia",
                f"link {name!r}: inertia matrix is not positive definite, "
                f"principal values {_list(principal)} kg m2",
            )
        ]
    if principal[2] > (principal[0] + principal[1]) * (1.0 + TRIANGLE):
        return [
            warning(
                "inertia",
                f"link {name!r}: no body has principal inertias "
                f"{_list(principal)} kg m2, the largest exceeds the sum of the "
                "others",
            )
        ]
    return []


def _attribute(element: ElementTree.Element, child: str, key: str) -> str:
    found = element.find(child)
    return "0" if found is None else found.get(key, "0")


def check_limits(
    description: ElementTree.Element, robot: RobotModel, settings: ControllerSettings
) -> list[Finding]:
    """Whether effort, velocity and position of the driven joints have finite limits."""
    findings = []
    efforts = (
        settings.spread("effort_limits_nm", robot.na)
        if settings.effort_limits_nm
        else robot.effort_limits
    )
    unbounded = _names(robot, ~(np.isfinite(efforts) & (efforts > 0.0)))
    if unbounded:
        findings.append(
            error(
                "limits",
                f"no effort limit above 0 and finite for {unbounded}; "
                "state it in the URDF or in effort_limits_nm",
            )
        )
    unbounded = _names(robot, ~np.isfinite(robot.velocity_limits))
    if unbounded:
        findings.append(warning("limits", f"no velocity limit in the URDF for {unbounded}"))
    joints = {joint.get("name"): joint for joint in description.findall("joint")}
    free = [name for name in robot.joint_names if not _has_range(joints[name])]
    if free:
        findings.append(warning("limits", f"no position limits in the URDF for {free}"))
    crossed = _names(robot, robot.lower > robot.upper)
    if crossed:
        findings.append(error("limits", f"lower position limit above the upper for {crossed}"))
    return findings or [note("limits", "effort, velocity and position are limited in every joint")]


def _has_range(joint: ElementTree.Element) -> bool:
    limit = joint.find("limit")
    if limit is None or joint.get("type") == "continuous":
        return False
    values = [limit.get("lower"), limit.get("upper")]
    return None not in values and all(math.isfinite(float(value)) for value in values)


def check_posture(robot: RobotModel, name: str, posture: Sequence[float]) -> list[Finding]:
    """Whether a posture (na,) has the right size and respects the position limits."""
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
    return [
        error(
            "posture",
            f"{name}: joint {joint!r} at {value:g} is outside its limits [{low:g}, {high:g}]",
        )
        for joint, value, low, high in zip(robot.joint_names, values, robot.lower, robot.upper)
        if not low <= value <= high
    ]


def _names(robot: RobotModel, where: np.ndarray) -> list[str]:
    return [name for name, chosen in zip(robot.joint_names, where) if chosen]


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
