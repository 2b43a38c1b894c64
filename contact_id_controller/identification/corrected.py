"""Write an identified model: a URDF with new inertias, and lines for a parameter file."""

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
    """Roll and pitch, rad, of a base with these shares (2,) of gravity along x and y of its root."""
    return -float(lean[1]), float(lean[0])


def by_angle(found: Identified, joint: int) -> float:
    """Standard deviation, N·m, of a joint's angle-dependent torque over its travel; 0 where none is fitted."""
    shape = found.shapes[joint]
    if shape.travel_rad is None:
        return 0.0
    waves = shape.waves(np.linspace(*shape.travel_rad, 200))
    return float(np.std(waves @ found.fit.parameters.drives[joint, -WAVES:]))


def motor_rows(found: Identified) -> list[str]:
    """Rows of the parameter ``motors``, one per joint.

    They have one viscous friction for both directions, here the mean. Dry friction with presliding gets the default
    width over the velocity; breakaway friction is left out.
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
    """The section of a parameter file for all nodes, as YAML; comments hold what no parameter expresses."""
    lines = ["/**:", "  ros__parameters:", f"    urdf: {urdf}", "    motors:"]
    lines += [f'      - "{row}"' for row in motor_rows(found)]
    lines += [
        "",
        "# Not read by any node: lean of the base, offset of the measurement, friction by direction, breakaway",
        "# friction, and the torque that depends on the joint's angle (rms), N·m.",
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
    """Write a copy of a URDF with the identified inertias; everything else stays.

    Links that move together with one joint share its body: each gets its part, physically possible
    (`pseudo_inertia.shared`). Links that no joint of the log moves keep their inertia.

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
    """Inertia of each moving link, in the link's frame, such that the joints' bodies have the parameters (10 nb,).

    ``stated``: inertias in the URDF by the link's name, each in the link's frame.
    """
    model = robot.model
    targets = pseudo_of(bodies.reshape(-1, COORDINATES))
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
            parts = shared(targets[joint - 1], parts)
        else:  # the description states no body: all goes to the link at the joint
            parts = [targets[joint - 1], *(np.zeros((4, 4)) for _ in links[1:])]
        for frame, part in zip(links, parts):
            if part[3, 3] > 0.0:
                inertia = pin.Inertia.FromDynamicParameters(parameters_of(part))
                found[frame.name] = frame.placement.actInv(inertia)
            else:
                found[frame.name] = pin.Inertia.Zero()
    return found


def _stated(link: ET.Element) -> pin.Inertia:
    """Inertia of an element ``link`` in the link's frame; zero without an element ``inertial``."""
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
    """Replace the inertia of an element ``link``; a body without mass gets none."""
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
