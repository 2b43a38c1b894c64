"""What was identified, written down: a URDF with other inertias, and the lines of a parameter file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.files import write_with
from contact_id_controller.identification.identify import Identified
from contact_id_controller.identification.pseudo_inertia import (
    COORDINATES,
    parameters_of,
    pseudo_of,
    shared,
)
from contact_id_controller.identification.regressor import (
    BACKWARDS,
    BREAKAWAY,
    FORWARDS,
    OFFSET,
    WAVES,
)
from contact_id_controller.robot import FRICTION_SPEED, RobotModel

Array = NDArray[np.float64]

ENTRIES = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
"""Attributes of a URDF's element ``inertia``."""

THIN = 1e-9
"""Smallest eigenvalue of a body's pseudo-inertia, of its largest one, for its parts to keep their shares."""


def roll_pitch(lean: Array) -> tuple[float, float]:
    """Angles, rad, of a base whose gravity has these shares (2,) along x and y of its root."""
    return -float(lean[1]), float(lean[0])


def by_angle(found: Identified, joint: int) -> float:
    """rms over its travel, N·m, of what a joint's torque has by its angle."""
    shape = found.shapes[joint]
    if shape.travel_rad is None:
        return 0.0
    waves = shape.waves(np.linspace(*shape.travel_rad, 200))
    return float(np.std(waves @ found.fit.parameters.drives[joint, -WAVES:]))


def motor_rows(found: Identified) -> list[str]:
    """Rows of the parameter ``motors``, one a joint.

    Friction there is the same in both directions: viscous friction is the mean of both. Dry friction that winds up has
    the usual width over the speed; what breaking away takes more is left out.
    """
    rows = []
    for name, drive, shape in zip(
        found.robot.joint_names, found.fit.parameters.drives.tolist(), found.shapes
    ):
        rotor, friction, forwards, backwards = (max(value, 0.0) for value in drive[:BREAKAWAY])
        width = FRICTION_SPEED if shape.winds_up else shape.width
        rows.append(
            f"{name} rotor_inertia_kg_m2={rotor:.6g} dry_friction_nm={friction:.6g} "
            f"viscous_friction_nm_s_rad={0.5 * (forwards + backwards):.6g} friction_speed_rad_s={width:.6g}"
        )
    return rows


def parameter_text(found: Identified, urdf: Path) -> str:
    """The section of a parameter file, for every node of the robot; comments hold what nodes cannot read."""
    lines = ["/**:", "  ros__parameters:", f"    urdf: {urdf}", "    motors:"]
    lines += [f'      - "{row}"' for row in motor_rows(found)]
    lines += [
        "",
        "# Not read by any node: how the base leans, offset of the measurement, friction by direction, what breaking away",
        "# takes more, and what a joint has by its angle (rms), N·m.",
        "# base: roll {:.4g}, pitch {:.4g} rad".format(*roll_pitch(found.lean)),
    ]
    for j, (name, drive) in enumerate(zip(found.robot.joint_names, found.fit.parameters.drives)):
        lines.append(
            f"# {name}: offset {drive[OFFSET]:.4g}, viscous forwards {drive[FORWARDS]:.4g}, backwards "
            f"{drive[BACKWARDS]:.4g} N·m s/rad, breaking away {drive[BREAKAWAY]:.4g}, by angle {by_angle(found, j):.4g}"
        )
    constants = 1.0 / found.fit.parameters.gains if found.in_amperes else found.measured_constants
    if constants is not None:
        lines.append("# Torque per ampere, N·m/A:")
        for name, value in zip(found.robot.joint_names, constants):
            lines.append(f"# {name}: {value:.4g}")
    return "\n".join(lines) + "\n"


def write_urdf(found: Identified, source: Path, target: Path) -> None:
    """Write a description with the identified inertias; all else in it stays.

    What moves with one joint may be several links: each gets its share, so that every link is a body that can exist
    (`pseudo_inertia.shared`). Links that do not move with a joint of the log are not touched.

    Raises:
        RecordError: the file cannot be written.
    """
    tree = ET.parse(source)
    elements = {str(link.get("name")): link for link in tree.getroot().iter("link")}
    stated = {name: _stated(link) for name, link in elements.items()}
    for name, inertia in link_inertias(found.robot, found.fit.parameters.bodies, stated).items():
        _put(elements[name], inertia)
    write_with(target, lambda file: tree.write(file, encoding="utf-8", xml_declaration=True))


def link_inertias(
    robot: RobotModel, bodies: Array, stated: Mapping[str, pin.Inertia]
) -> dict[str, pin.Inertia]:
    """Inertia of each moving link, in its own frame, so that bodies have the parameters (10 nb,).

    ``stated``: those of the description, by the link's name, each in its link's frame.
    """
    model = robot.model
    wanted = pseudo_of(bodies.reshape(-1, COORDINATES))
    found: dict[str, pin.Inertia] = {}
    for joint in range(1, model.njoints):
        links = [
            frame
            for frame in model.frames
            if frame.type == pin.FrameType.BODY
            and frame.parentJoint == joint
            and frame.name in stated
        ]
        parts = [
            pseudo_of(frame.placement.act(stated[frame.name]).toDynamicParameters())
            for frame in links
        ]
        values = np.linalg.eigvalsh(np.sum(parts, axis=0))
        if values[0] > THIN * values[-1]:
            parts = shared(wanted[joint - 1], parts)
        else:  # the description states no body: all goes to the link at the joint
            parts = [wanted[joint - 1], *(np.zeros((4, 4)) for _ in links[1:])]
        for frame, part in zip(links, parts):
            if part[3, 3] > 0.0:
                inertia = pin.Inertia.FromDynamicParameters(parameters_of(part))
                found[frame.name] = frame.placement.actInv(inertia)
            else:
                found[frame.name] = pin.Inertia.Zero()
    return found


def _stated(link: ET.Element) -> pin.Inertia:
    """The inertia of an element ``link``, in the link's frame; none is zero."""
    element = link.find("inertial")
    if element is None:
        return pin.Inertia.Zero()
    origin, mass, moments = (element.find(name) for name in ("origin", "mass", "inertia"))
    place = pin.SE3.Identity()
    if origin is not None:
        xyz, rpy = (np.array(origin.get(k, "0 0 0").split(), dtype=float) for k in ("xyz", "rpy"))
        place = pin.SE3(pin.rpy.rpyToMatrix(*rpy), xyz)
    about = np.zeros((3, 3))
    if moments is not None:
        for name, (i, j) in ENTRIES.items():
            about[i, j] = about[j, i] = float(moments.get(name, 0.0))
    weight = 0.0 if mass is None else float(mass.get("value", 0.0))
    return place.act(pin.Inertia(weight, np.zeros(3), about))


def _put(link: ET.Element, inertia: pin.Inertia) -> None:
    """Write an inertia into an element ``link``; one without mass has none."""
    for old in link.findall("inertial"):
        link.remove(old)
    if inertia.mass <= 0.0:
        return
    element = ET.Element("inertial")
    link.insert(0, element)
    centre = " ".join(f"{value:.12g}" for value in inertia.lever)
    ET.SubElement(element, "origin", {"xyz": centre, "rpy": "0 0 0"})
    ET.SubElement(element, "mass", {"value": f"{inertia.mass:.12g}"})
    ET.SubElement(
        element, "inertia", {name: f"{inertia.inertia[at]:.12g}" for name, at in ENTRIES.items()}
    )
