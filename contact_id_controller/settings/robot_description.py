"""Checks of a robot description (URDF), before and after it is loaded: an impossible one is refused.

The parser behind Pinocchio drops the inertia of a link of which one number cannot be read, prints a line, and continues
with a lighter robot. Here such a description is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.exceptions import RobotDescriptionError, choices
from contact_id_controller.robot import RobotModel, resolve_urdf

MOVING = ("revolute", "continuous", "prismatic")
"""Types of movable joints: those of one freedom."""

TYPES = (*MOVING, "fixed", "floating")
"""Types that are known; only the base floats."""

MOST_BYTES, MOST_DEPTH = 20_000_000, 100
"""Largest size of a file, and deepest nesting of its elements."""

MOST_LINKS, MOST_JOINTS = 5000, 200
"""Largest number of links, and of movable joints."""

TRIANGLE = 1e-3
"""Relative excess of a principal inertia over the sum of the others that rounding explains."""

ROUNDING = 1e-9
"""Share of the largest principal inertia that counts as zero."""

LEAST_MASS_KG, LEAST_INERTIA_KG_M2 = 1e-6, 1e-15
"""Least mass that a joint moves: a milligram; and an inertia below that of any body of this mass."""

DENSEST_KG_M3, SLENDER = 2e4, 1e-2
"""No body is denser than gold; a rod has at least this share of the moment of inertia of a ball of its mass."""

POSTURES = 16
"""Number of postures in which the inertia that a joint moves is computed: zero, and random ones within the limits."""

LEAST_AXIS = 1e-3
"""Least length of a joint's axis, which is normalised: a shorter one has no direction."""

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_RANGES = (
    ("mass", ("value",), 0.0, 1e5, " kg"),
    ("inertia", _INERTIA, -1e6, 1e6, " kg m2"),
    ("limit", ("lower", "upper"), -1e17, 1e17, " rad or m"),  # some write 1e16 for none
    ("limit", ("effort",), 0.0, 1e10, " N m or N"),
    ("limit", ("velocity",), 0.0, 1e10, " rad/s or m/s"),
    ("origin", ("xyz",), -1e3, 1e3, " m"),
    ("origin", ("rpy",), -100.0, 100.0, " rad"),
    ("axis", ("xyz",), -1e3, 1e3, ""),
)
"""Element, attributes, least and largest value, unit: wide ranges that find typing errors."""


class Flaw(NamedTuple):
    """A flaw of a link or a body.

    Attributes:
        fatal: whether the robot must not be driven.  text: one line.
    """

    fatal: bool
    text: str


def read_description(urdf: str | Path) -> ElementTree.Element:
    """The XML of a URDF.

    Raises:
        RobotDescriptionError: no such file, not XML, or larger or deeper than any robot.
    """
    file = resolve_urdf(urdf)
    parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(("start", "end"))
    read_events: Callable[[], Iterator[Any]] = parser.read_events
    depth, root = 0, None
    try:
        size = file.stat().st_size
        if size > MOST_BYTES:
            raise RobotDescriptionError(
                f"URDF {str(file)!r} has {size} bytes, must have at most {MOST_BYTES}"
            )
        text = file.read_bytes()
        if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
            raise RobotDescriptionError(f"URDF {str(file)!r} declares a document type, must not")
        for begin in range(0, len(text), 65536):
            parser.feed(text[begin : begin + 65536])
            for event, element in read_events():
                root = element if root is None else root
                depth += 1 if event == "start" else -1
                if depth > MOST_DEPTH:
                    raise RobotDescriptionError(
                        f"URDF {str(file)!r} nests elements deeper than {MOST_DEPTH}"
                    )
        parser.close()
    except (ElementTree.ParseError, OSError, ValueError) as error:
        raise RobotDescriptionError(f"URDF {str(file)!r} cannot be read: {error}") from error
    if root is None or root.tag != "robot":
        tag = "nothing" if root is None else f"<{root.tag[:40]}>"
        raise RobotDescriptionError(
            f"URDF {str(file)!r} describes no robot: its root is {tag}, must be <robot>"
        )
    return root


def refuse_unreadable(description: ElementTree.Element, locked: Sequence[str] = ()) -> None:
    """Refuse a description that the parser would misread, or that is too large to be controlled.

    Raises:
        RobotDescriptionError: naming the first bad number, or what there is too much of.
    """
    for problem in unreadable(description, locked):
        raise RobotDescriptionError(f"URDF: {problem}")


def unreadable(description: ElementTree.Element, locked: Sequence[str] = ()) -> Iterator[str]:
    """Problems of a description before it is loaded, one line each."""
    links, joints = description.findall("link"), description.findall("joint")
    moving = [j for j in joints if j.get("type") in MOVING and j.get("name") not in locked]
    for what, count, most in (
        ("links", len(links), MOST_LINKS),
        ("joints that move", len(moving), MOST_JOINTS),
    ):
        if count > most:
            yield f"{count} {what}, must be at most {most}"
    for link in links:
        for part in ("inertial", "visual", "collision"):
            for element in link.findall(part):
                yield from _bad_numbers(f"link {link.get('name')!r}", element)
    for joint in joints:
        if joint.get("type") not in TYPES:
            yield f"joint {joint.get('name')!r} has type {joint.get('type')!r}, must be {choices(TYPES)}"
        yield from _bad_numbers(f"joint {joint.get('name')!r}", joint)


def _bad_numbers(of: str, element: ElementTree.Element) -> Iterator[str]:
    """Problems of an element's numbers: missing, not finite, out of range; one line each."""
    required = {"mass": ("value",), "inertia": _INERTIA} if element.tag == "inertial" else {}
    turns = element.get("type") in MOVING
    for child, keys, low, high, unit in _RANGES:
        found = element.find(child)
        if found is None:
            if child in required:
                yield f"{of} has an inertial without {child}"
            continue
        for key in keys:
            text = found.get(key)
            if text is None:
                if child in required:
                    yield f"{of}: {child} has no {key}"
                continue
            count = 3 if key in ("xyz", "rpy") else 1
            words = text.split() if count == 3 else [text]
            if len(words) != count or not all(map(_is_number, words)):
                must = (
                    "be three finite numbers"
                    if count == 3
                    else "be a finite number, no space behind"
                )
            elif not all(low <= float(word) <= high for word in words):
                must = f"be from {low:g} to {high:g}{unit}"
            elif child == "axis" and math.hypot(*map(float, words)) < LEAST_AXIS and turns:
                must = "not be zero"
            else:
                continue
            shown = text if len(text) <= 40 else text[:37] + "..."
            yield f"{of}: {child} {key} is {shown!r}, must {must}"


def _is_number(word: str) -> bool:
    """Whether the parser reads a number: it skips spaces before, not behind it."""
    return bool(_NUMBER.fullmatch(word.lstrip())) and math.isfinite(float(word))


def refuse_impossible(description: ElementTree.Element, robot: RobotModel) -> None:
    """Refuse a robot with an impossible body, or a joint with exchanged position limits.

    Raises:
        RobotDescriptionError: naming the first of them.
    """
    for flaw in body_flaws(description, robot):
        if flaw.fatal:
            raise RobotDescriptionError(f"URDF: {flaw.text}")
    for name, low, high in zip(robot.joint_names, robot.lower, robot.upper):
        if low > high:
            raise RobotDescriptionError(
                f"URDF: joint {name!r} has its lower position limit {low:g} above the upper {high:g}"
            )


def body_flaws(description: ElementTree.Element, robot: RobotModel) -> list[Flaw]:
    """Flaws of links that no body can have, and of joints that move no possible body.

    An impossible link, such as a sensor without extent, is no fatal flaw where the links that move with it make a
    possible body, or where all that its joint moves has an inertia (``without_inertia``).
    """
    model, impossible = robot.model, {}
    light = without_inertia(model)
    for joint in range(1, model.njoints):
        name, body = model.names[joint], model.inertias[joint]
        if not body.mass > 0.0:
            impossible[joint] = Flaw(True, f"joint {name!r} moves a body without mass")
        elif body.mass < LEAST_MASS_KG:
            impossible[joint] = Flaw(
                True,
                f"joint {name!r} moves a body of {body.mass:g} kg, must be at least {LEAST_MASS_KG:g} kg",
            )
        elif joint in light:
            impossible[joint] = Flaw(
                True,
                f"the links that joint {name!r} moves have together principal inertias "
                f"{_list(np.linalg.eigvalsh(body.inertia))} kg m2, and {light[joint]:.3g} kg m2 about its axis, "
                f"must be at least {_least_inertia(body.mass):.3g}",
            )
    flaws, explained = [], set()
    for link in description.findall("link"):
        inertial, name = link.find("inertial"), link.get("name", "")
        if inertial is None:
            continue
        frame = model.getFrameId(name, pin.FrameType.BODY)
        mover = model.frames[frame].parentJoint if frame < model.nframes else None
        own = _link_flaws(name, inertial, mover in impossible)
        flaws += own
        if any(flaw.fatal for flaw in own):
            explained.add(mover)
    return flaws + [flaw for joint, flaw in impossible.items() if joint not in explained]


def without_inertia(model: pin.Model) -> dict[int, float]:
    """Joints that move no body with an extent, nor an inertia about their axis: joint -> the latter, kg m2 or kg."""
    extended = [_is_extended(np.linalg.eigvalsh(body.inertia)) for body in model.inertias]
    if all(extended[1:]):
        return {}
    moved = _joint_inertias(model)
    return {
        joint: float(moved[joint])
        for joint in range(1, model.njoints)
        if not extended[joint] and not moved[joint] >= _least_inertia(model.inertias[joint].mass)
    }


def _joint_inertias(model: pin.Model) -> NDArray[np.float64]:
    """Least inertia (njoints,), kg m2 or kg, that each joint accelerates, all others free to move; inf for the world.

    The articulated-body inertia along its axes, the least of ``POSTURES`` postures. It may be positive although the
    joint's own link is a point: off the axis, or with other links behind it.
    """
    data, draw = model.createData(), np.random.default_rng(0)
    low = np.maximum(model.lowerPositionLimit, -np.pi)
    high = np.maximum(np.minimum(model.upperPositionLimit, np.pi), low)
    least = np.full(model.njoints, np.inf)
    joints = list(model.joints)[1:]
    for posture in range(POSTURES):
        q = pin.neutral(model)
        for joint in joints if posture else ():
            if joint.nq == 1:
                q[joint.idx_q] = draw.uniform(low[joint.idx_q], high[joint.idx_q])
        pin.crba(model, data, q)
        pin.cholesky.decompose(model, data)
        for index, joint in enumerate(joints, start=1):
            pivots = data.D[joint.idx_v : joint.idx_v + joint.nv]
            least[index] = min(least[index], np.nan_to_num(pivots, nan=-np.inf).min())
    return least


def _least_inertia(mass: float) -> float:
    """Least possible moment of inertia, kg m2, of a body of this mass, kg: see ``SLENDER``."""
    radius = np.cbrt(3.0 * mass / (4.0 * np.pi * DENSEST_KG_M3))
    return float(SLENDER * 0.4 * mass * radius**2)


def _is_extended(principal: NDArray[np.float64]) -> bool:
    return bool(principal[0] > max(ROUNDING * principal[2], LEAST_INERTIA_KG_M2))


def _link_flaws(name: str, inertial: ElementTree.Element, alone: bool) -> list[Flaw]:
    """Flaws of a link's mass and inertia; ``alone``: no other link of its joint makes up for an impossible one."""
    mass = float(_attribute(inertial, "mass", "value"))
    ixx, ixy, ixz, iyy, iyz, izz = (float(_attribute(inertial, "inertia", key)) for key in _INERTIA)
    principal = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    if mass == 0.0 and not principal.any():  # a frame, not a body
        return []
    values = f"principal inertias {_list(principal)} kg m2"
    if not mass > 0.0:
        text = f"link {name!r} has mass {mass:g} kg, must be above 0"
        return [Flaw(alone, text)]
    if abs(principal[0]) <= max(ROUNDING * principal[2], LEAST_INERTIA_KG_M2):
        return [Flaw(False, f"link {name!r} has no thickness, {values}")]
    if not principal[0] > 0.0:
        return [
            Flaw(
                alone,
                f"link {name!r}: inertia matrix is not positive definite, principal values "
                f"{_list(principal)} kg m2",
            )
        ]
    if principal[2] > (principal[0] + principal[1]) * (1.0 + TRIANGLE):
        return [
            Flaw(
                False,
                f"link {name!r}: no body has {values}, the largest exceeds the sum of the others",
            )
        ]
    return []


def _attribute(element: ElementTree.Element, child: str, key: str) -> str:
    found = element.find(child)
    return "0" if found is None else found.get(key, "0")


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
