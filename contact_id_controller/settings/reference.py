"""All parameters of all nodes, as text, as a page and as a template.

All three are generated from the tables with which the nodes declare and check their parameters.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import write_text
from contact_id_controller.models.registry import names_text
from contact_id_controller.parameter_spec import ParameterSpec
from contact_id_controller.settings.nodes import TABLES

COMMAND = "contact_id parameters --write"
PAGE, TEMPLATE = Path("docs/parameters.md"), Path("config/template.yaml")
NAMES = Path("contact_id_controller/models/names.py")
WIDTH, INDENT = 100, " " * 4

KINDS = {
    "string": "text",
    "boolean": "bool",
    "integer": "integer",
    "number": "number",
    "strings": "texts",
    "numbers": "numbers",
}

ROLES = {
    "controller": "Turns states and plans into torques.",
    "gait_planner": "Plans walking; not needed where plans come from elsewhere.",
    "kinodynamic_planner": "Plans whole bodies over footholds, also as `contact_id plan`; see planning.md.",
    "dynamics_estimator": "Estimates pose, velocity, contacts and forces from IMU, encoders and efforts.",
    "simulated_robot": "Stands in for the machine; not used on a real robot.",
    "command_watchdog": "Stands between the controller and ros2_control; see safety.md.",
}
"""The nodes, in the order of page and template."""

OWN = (
    "urdf",
    "joints",
    "contact_frames",
    "contact_radii_m",
    "soles",
    "locked_joints",
    "feet",
    "foot_radius_m",
    "posture",
    "initial_joint_positions",
    "damping_nm_s_rad",
)
"""Parameters that describe the robot: to be set for yours, the same in all sections."""


def find(words: Sequence[str]) -> list[tuple[str, ParameterSpec]]:
    """Node and row of each parameter whose node and name contain all the words.

    Raises:
        ConfigurationError: no parameter matches.
    """
    found = [
        (node, spec)
        for node, table in TABLES.items()
        for spec in table
        if all(word in f"{node}.{spec.name}" for word in words)
    ]
    if not found:
        raise ConfigurationError(
            f"no parameter of {', '.join(TABLES)} contains {' and '.join(words)}"
        )
    return found


def write_files(folder: Path) -> list[Path]:
    """Write page, template and the names of models into a folder, a copy of the sources; return the files.

    Raises:
        ConfigurationError: the folder is not that of the sources.
    """
    texts = {PAGE: page(TABLES), TEMPLATE: template(TABLES), NAMES: names_text()}
    for path, text in texts.items():
        if not (folder / path).parent.is_dir():
            raise ConfigurationError(
                f"'{(folder / path).parent}' is no folder; --write wants the root of the sources"
            )
        write_text(folder / path, text)
    return [folder / path for path in texts]


def page(tables: Mapping[str, Sequence[ParameterSpec]]) -> str:
    """The reference as Markdown."""
    intro = f"""# Parameters

Written by `{COMMAND}` from the tables that the nodes check their parameters with;
changes made here are lost. [config/template.yaml](../{TEMPLATE.as_posix()}) has all of them with their defaults.

*Texts* and *numbers* are lists; numbers take one value for all, or one for each. *Live*: may change while the
node is configured or active; all others only before it is configured. Ranges include their ends.
"""
    first: dict[ParameterSpec, str] = {}
    said: dict[tuple[str, str], str] = {}
    for node, table in tables.items():
        for spec in table:
            first.setdefault(spec, node)
            said.setdefault((spec.name, spec.description), node)
    return intro + "".join(_section(node, table, first, said) for node, table in tables.items())


def _section(
    node: str,
    table: Sequence[ParameterSpec],
    first: Mapping[ParameterSpec, str],
    said: Mapping[tuple[str, str], str],
) -> str:
    """One node's table for the page of parameters, in Markdown.

    Args:
        first: row -> node that has it first; the others only name it.
        said: name and description -> node that has them first; the others refer to it.
    """
    same: dict[str, list[str]] = {}
    for spec in table:
        if first[spec] != node:
            same.setdefault(first[spec], []).append(f"`{spec.name}`")
    shared = "".join(f" As in [{one}](#{one}): {', '.join(same[one])}." for one in same)
    head = "| name | type | default | range, unit or choices | what it is, and when to change it |"
    rows = [
        f"| `{spec.name}` | {_kind(spec)}{', live' if spec.live else ''} "
        f"| `{value_text(spec.default)}` | {_allowed(spec)} | {_meaning(spec, node, said)} |"
        for spec in table
        if first[spec] == node
    ]
    intro = textwrap.fill(ROLES[node] + shared, 120, break_on_hyphens=False) + "\n"
    return "\n".join([f"\n## {node}\n", intro, head, "|---" * 5 + "|", *rows]) + "\n"


def _meaning(spec: ParameterSpec, node: str, said: Mapping[tuple[str, str], str]) -> str:
    other = said[spec.name, spec.description]
    return _cell(spec.text) if other == node else f"As in [{other}](#{other}). {_cell(spec.when)}"


def _kind(spec: ParameterSpec) -> str:
    """Type of a parameter, and what a list has one value for."""
    return f"{KINDS[spec.kind]} per {spec.per}" if spec.per else KINDS[spec.kind]


def _allowed(spec: ParameterSpec) -> str:
    limits = "; ".join(word for word in (range_text(spec), spec.unit) if word)
    return ", ".join(f"`{choice}`" for choice in spec.choices) or limits


def _cell(text: str) -> str:
    """Escape text for a cell of a table: no end of the cell, link or tag."""
    for sign in "|<>":
        text = text.replace(sign, f"\\{sign}")
    return text


def template(tables: Mapping[str, Sequence[ParameterSpec]]) -> str:
    """A parameter file with every parameter at its default."""
    head = f"""\
# Every parameter with its default, written by `{COMMAND}`. Copy it, and keep the
# lines that you change.
#
# (*) describes the robot: fill it in, with the same values in all sections. What is commented out is
# empty by default, and ROS takes no empty list. Then: contact_id check --config FILE
"""
    return head + "".join(_template_section(node, table) for node, table in tables.items())


def _template_section(node: str, table: Sequence[ParameterSpec]) -> str:
    lines = ["", f"# {ROLES[node]}", f"{node}:", "  ros__parameters:"]
    for spec in table:
        lines += ["", *_comment(spec)]
        empty = "# " if spec.default == () else ""
        lines.append(f"{INDENT}{empty}{spec.name}: {value_text(spec.default)}")
    return "\n".join(lines) + "\n"


def _comment(spec: ParameterSpec) -> list[str]:
    """The comment above a parameter in a template: text, then facts; (*) marks parameters to be set."""
    star = "(*) " if spec.name in OWN or is_required(spec) else ""
    lines = textwrap.wrap(
        star + spec.text,
        WIDTH - len(INDENT) - 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [f"{INDENT}# {line}" for line in (*lines, f"[{'; '.join(_facts(spec))}]")]


def _facts(spec: ParameterSpec) -> list[str]:
    """Type, unit, range, choices and whether live, as text."""
    words = (
        _kind(spec),
        spec.unit and f"in {spec.unit}",
        range_text(spec),
        spec.choices and "one of " + ", ".join(spec.choices),
        spec.live and "live",
    )
    return [word for word in words if word]


def is_required(spec: ParameterSpec) -> bool:
    """Whether the parameter must be set for every robot."""
    return spec.when.startswith("Required")


def as_text(node: str, spec: ParameterSpec) -> str:
    """A parameter in a few lines for a terminal."""
    kind, *facts = _facts(spec)
    head = f"{node}.{spec.name}: " + "; ".join(
        (kind, f"default {value_text(spec.default)}", *facts)
    )
    return (
        head
        + "\n"
        + textwrap.fill(spec.text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    )


def value_text(value: Any) -> str:
    """A value as YAML, in one line."""
    plain = list(value) if isinstance(value, tuple) else value
    wrapped = yaml.safe_dump([plain], default_flow_style=True, width=math.inf).strip()
    return '""' if value == "" else wrapped[1:-1]


def range_text(spec: ParameterSpec) -> str:
    """The range as text; empty: there is none."""
    low, high = spec.minimum, spec.maximum
    infinite = ", .inf" if spec.infinite else ""
    if math.isfinite(low) and math.isfinite(high):
        return f"{low:g} to {high:g}"
    if math.isfinite(low):
        return f"{low:g} or more{infinite}"
    return f"{high:g} or less" if math.isfinite(high) else ""
