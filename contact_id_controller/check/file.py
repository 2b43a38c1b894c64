"""Checks of a parameter file before a robot is built: values, names, agreement of sections."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from contact_id_controller.check.findings import Finding, Findings, error, note, warning
from contact_id_controller.exceptions import ContactIdError, choices
from contact_id_controller.models import row_of
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.nodes import SETTINGS, TABLES
from contact_id_controller.settings.robot_rows import SAME_ROBOT
from contact_id_controller.settings.shared_rows import LOCAL_GAINS

SAME = {
    "simulated_robot": {name: name for name in (*SAME_ROBOT, "floating_base", "ground_file")},
    "gait_planner": {
        "urdf": "urdf",
        "joints": "joints",
        "locked_joints": "locked_joints",
        "ground_file": "ground_file",
        "feet": "contact_frames",
    },
    "command_watchdog": {"urdf": "urdf"},
}
"""Section -> its parameter -> the parameter of the controller that must have the same value."""

DEFAULTS = {node: {spec.name: spec.default for spec in table} for node, table in TABLES.items()}

MAY_LACK = ("urdf", "joints", "feet", "ground_file")
"""Those of which a default says nothing wrong: their nodes require them, or take all joints, or know no ground."""


def check_values(values: Mapping[str, Any]) -> tuple[ControllerSettings | None, list[Finding]]:
    """Check every parameter of the controller; the settings are None if one is wrong."""
    findings = Findings("parameter")
    for name, value in values.items():
        try:
            ControllerSettings.checked({name: value})
        except ContactIdError as problem:
            findings.error(problem)
    if findings:
        return None, findings
    try:
        return ControllerSettings.from_mapping(values), []
    except ContactIdError as problem:
        return None, [error("parameter", problem)]


def check_node(node: str, values: Mapping[str, Any] | None) -> list[Finding]:
    """Check whether a node accepts its section; gains that it lacks are the matter of ``check_local_feedback``."""
    gains = dict.fromkeys(LOCAL_GAINS, 1.0) if node == "simulated_robot" else {}
    try:
        if values is not None:
            SETTINGS[node].from_mapping({**gains, **values})
    except ContactIdError as problem:
        return [error(node.replace("_", " "), problem)]
    return []


def check_model(settings: ControllerSettings) -> list[Finding]:
    """Check that the contact model exists, and suits the friction coefficient."""
    try:
        row = row_of(settings.friction, settings.solver)
    except ContactIdError as problem:
        return [error("contact model", problem)]
    reference = "" if row.predicts_forces else ", a reference without contact forces"
    largest = max(settings.friction_coefficient)
    if row.steep_friction <= largest < math.inf:
        return [
            warning(
                "contact model",
                f"{row} with a friction_coefficient of {largest:g}: from {row.steep_friction:g} on, contacts that slide "
                "can take several times the torque of the exact law; take coulomb/ncp, or state less friction",
            )
        ]
    return [note("contact model", f"{row}{reference}")]


def check_sections(sections: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Check that the sections agree on the robot, with its joints in the same order."""
    findings, controller = Findings("sections"), sections["controller"]
    for section, pairs in SAME.items():
        for name, other in pairs.items() if section in sections else ():
            lacking = (name not in sections[section]) + (other not in controller)
            if lacking == 2 and not controller.get("contact_frames"):
                continue  # soles have no radii
            if lacking and name in MAY_LACK:
                continue
            (mine, value), (theirs, expected) = (
                _stated(sections, section, name),
                _stated(sections, "controller", other),
            )
            if value != expected and not (lacking and _all_alike(value, expected)):
                findings.error(_difference(mine, value, theirs, expected))
    radius = sections.get("gait_planner", {}).get("foot_radius_m")
    if radius is None and "gait_planner" in sections and controller.get("contact_frames"):
        radius = DEFAULTS["gait_planner"]["foot_radius_m"]
    radii = controller.get("contact_radii_m", 0.0)
    radii = radii if isinstance(radii, list) else [radii]
    if radius is not None and any(value != radius for value in radii):
        findings.error(
            f"gait_planner.foot_radius_m is {radius!r}, controller.contact_radii_m {radii!r}"
        )
    return findings or [note("sections", "agree on robot, joints, feet and period")]


def _stated(sections: Mapping[str, Mapping[str, Any]], node: str, name: str) -> tuple[str, Any]:
    """Name and value of a parameter, by default where the section lacks it."""
    if name in sections[node]:
        return f"{node}.{name}", sections[node][name]
    value = DEFAULTS[node][name]
    return f"{node}.{name} (by default)", list(value) if isinstance(value, tuple) else value


def _all_alike(*values: Any) -> bool:
    """Whether values, or lists of them, have one value throughout; one alone holds for all feet."""
    given = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [] not in values and all(each == given[0] for each in given)


def _difference(name: str, value: Any, other: Any, expected: Any) -> str:
    """Text on how two parameters differ."""
    if isinstance(value, list) and isinstance(expected, list):
        if sorted(map(str, value)) == sorted(map(str, expected)):
            place = next(i for i, pair in enumerate(zip(value, expected)) if pair[0] != pair[1])
            return (
                f"{name} and {other} have another order: entry {place + 1} is "
                f"{value[place]!r} in one and {expected[place]!r} in the other"
            )
        missing = [word for word in expected if word not in value]
        surplus = [word for word in value if word not in expected]
        parts = [f"lacks {choices(map(str, missing))}"] * bool(missing)
        parts += [f"has {choices(map(str, surplus))} besides"] * bool(surplus)
        return f"{name} differs from {other}: {' and '.join(parts) or 'other values'}"
    return f"{name} is {value!r}, {other} is {expected!r}"
