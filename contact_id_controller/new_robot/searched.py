"""The description in which limbs are sought: joints have ends, wheels do not turn, unavailable meshes are left out."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pinocchio as pin

from contact_id_controller.exceptions import RobotDescriptionError
from contact_id_controller.new_robot.anatomy import Anatomy, anatomy, swinging
from contact_id_controller.robot import RobotModel, model_of, resolve_urdf
from contact_id_controller.settings.robot_description import read_description


class Searched(NamedTuple):
    """A robot with a floating base, whose joints without end have one, and its limbs.

    Attributes:
        file: the URDF.  description: its XML, changed as the robot is.
    """

    file: Path
    description: ElementTree.Element
    robot: RobotModel
    limbs: Anatomy


def searched(urdf: str | Path, floating: bool | None = None) -> Searched:
    """Find the limbs of a description.

    Args:
        urdf: as for `robot.resolve_urdf`.
        floating: whether the base floats; None: as the limbs suggest.

    Raises:
        RobotDescriptionError: no such file, or not a URDF.
    """
    file, description = resolve_urdf(urdf), read_description(urdf)
    for shape in description.iter(
        "visual"
    ):  # the parser drops links of which one material has no name
        for material in shape.findall("material"):
            shape.remove(material)
    endless = _end(description, _moving(description))
    robot = _robot(file, description)
    if shanks := swinging(robot.model):
        endless += _end(description, shanks)
        robot = _robot(file, description)
    limbs = anatomy(robot.model, floating, endless)
    if limbs.wheels:
        for joint in description.iter("joint"):
            if joint.get("name") in limbs.wheels:
                joint.set("type", "fixed")
        robot = _robot(file, description)
        walking = anatomy(robot.model, floating, endless)
        held = (*limbs.wheels, *walking.held)
        limbs = Anatomy(walking.legs, walking.posture, held, limbs.wheels, walking.arms)
    return Searched(file, description, robot, limbs)


def shapes(of: Searched) -> list[Any]:
    """Collision shapes of a robot, or what is seen of links without any; not those whose meshes are not available."""
    collisions, seen = (
        _available(of, kind) for kind in (pin.GeometryType.COLLISION, pin.GeometryType.VISUAL)
    )
    feet = {leg[-1] for leg in of.limbs.legs} - {part.parentJoint for part in collisions}
    return [*collisions, *(part for part in seen if part.parentJoint in feet)]


def _available(of: Searched, kind: Any) -> list[Any]:
    """Shapes of one kind; of each link by itself where one of them cannot be loaded."""
    try:
        return _shapes(of, of.description, kind)
    except (ValueError, RuntimeError):
        found = []
        for link in of.description.findall("link"):
            try:
                found += _shapes(of, _only(of.description, link.get("name")), kind)
            except (ValueError, RuntimeError):
                continue
        return found


def _shapes(of: Searched, description: ElementTree.Element, kind: Any) -> list[Any]:
    folders = [str(folder) for folder in of.file.resolve().parents]
    text = ElementTree.tostring(description, encoding="unicode")
    geometry = pin.buildGeomFromUrdfString(of.robot.model, text, kind, package_dirs=folders)
    return list(geometry.geometryObjects)


def _only(description: ElementTree.Element, name: str | None) -> ElementTree.Element:
    """A copy with the shapes of one link."""
    description = copy.deepcopy(description)
    for link in description.findall("link"):
        if link.get("name") != name:
            for shape in [*link.findall("visual"), *link.findall("collision")]:
                link.remove(shape)
    return description


def _moving(description: ElementTree.Element) -> Collection[str]:
    """Names of the joints that move others."""
    joints = [joint for joint in description.iter("joint") if joint.find("child") is not None]
    fixed = [joint for joint in joints if joint.get("type") == "fixed"]
    moved = {_link(joint, "parent") for joint in joints if joint.get("type") != "fixed"}
    found = 0
    while found < len(moved):  # links that move others, over fixed joints, too
        found = len(moved)
        moved |= {_link(joint, "parent") for joint in fixed if _link(joint, "child") in moved}
    return {str(joint.get("name")) for joint in joints if _link(joint, "child") in moved}


def _end(description: ElementTree.Element, names: Collection[str]) -> list[str]:
    """Give those of the named joints that have no end half a turn to either side; returns their names."""
    endless = []
    for joint in description.iter("joint"):
        if joint.get("type") == "continuous" and joint.get("name") in names:
            joint.set("type", "revolute")
            limit = joint.find("limit")
            if limit is None:  # no drive
                limit = ElementTree.SubElement(joint, "limit", effort="0", velocity="0")
            limit.set("lower", str(-math.pi))
            limit.set("upper", str(math.pi))
            endless.append(str(joint.get("name")))
    return endless


def _link(joint: ElementTree.Element, end: str) -> str | None:
    found = joint.find(end)
    return None if found is None else found.get("link")


def _robot(file: Path, description: ElementTree.Element) -> RobotModel:
    try:
        return RobotModel(model_of(ElementTree.tostring(description, encoding="unicode"), True))
    except (ValueError, RuntimeError) as error:
        raise RobotDescriptionError(f"URDF {str(file)!r} cannot be read: {error}") from error
