"""``contact_id parameters``: every parameter of every node, as text, as a page and as a template.

All three are made from the tables with which the nodes declare and check their parameters.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from contact_id_controller.exceptions import ConfigurationError, MissingExtraError
from contact_id_controller.models.registry import names_text
from contact_id_controller.settings.controller import TABLE
from contact_id_controller.settings.gait import GAIT_TABLE
from contact_id_controller.settings.specification import ParameterSpec, table_of

COMMAND = "contact_id parameters --write"
PAGE, TEMPLATE = Path("docs/parameters.md"), Path("config/template.yaml")
NAMES = Path("contact_id_controller/models/names.py")
WIDTH, INDENT = 100, " " * 4

KINDS = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "strings": "list of texts",
    "numbers": "list of numbers",
}

ROLES = {
    "controller": "Turns states and plans into torques.",
    "gait_planner": "Plans walking; not needed where plans come from elsewhere.",
    "simulated_robot": "Stands in for the machine; not used on a real robot.",
    "command_watchdog": "Stands between the controller and ros2_control; see safety.md.",
}
"""The nodes, in the order of page and template."""

NEEDS_ROS = ("gait_planner", "simulated_robot", "command_watchdog")
"""Nodes whose tables, or a part of them, stand in modules that import rclpy."""

OWN = (
    "urdf",
    "joints",
    "contact_frames",
    "contact_radii_m",
    "feet",
    "foot_radius_m",
    "posture",
    "initial_joint_positions",
)
"""Parameters that describe the robot: wrong for yours as they stand, the same in all sections."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="show only parameters whose node and name contain each WORD",
    )
    parser.add_argument(
        "--write",
        nargs="?",
        const=Path("."),
        type=Path,
        metavar="DIR",
        help=f"write {PAGE} and {TEMPLATE} below DIR (default: here)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the parameters, or write page and template.

    Raises:
        MissingExtraError: files are asked for where rclpy is missing.
        ConfigurationError: no parameter contains the words, or no such folder.
    """
    if arguments.write is not None:
        write_files(arguments.write)
        return 0
    tables, missing = known_tables()
    shown = 0
    for node, table in tables.items():
        for spec in table:
            if all(word in f"{node}.{spec.name}" for word in arguments.words):
                print(as_text(node, spec))
                shown += 1
    for node in missing:
        print(
            f"{node}: more parameters, which this installation cannot show; they need ROS 2: "
            "pip install 'contact_id_controller[ros]'"
        )
    if not shown:
        raise ConfigurationError(
            f"no parameter of {', '.join(tables)} contains {' and '.join(arguments.words)}"
        )
    return 0


def known_tables() -> tuple[dict[str, tuple[ParameterSpec, ...]], list[str]]:
    """Tables by node, as far as they can be loaded, and the nodes of which something is missing."""
    tables: dict[str, tuple[ParameterSpec, ...]] = {"controller": TABLE, "gait_planner": GAIT_TABLE}
    if importlib.util.find_spec("rclpy") is None:
        return tables, list(NEEDS_ROS)
    ros = {
        name: importlib.import_module(f"contact_id_controller.ros.{name}")
        for name in ("gait_planner", "simulated_robot_settings", "command_watchdog")
    }
    tables["gait_planner"] = (*ros["gait_planner"].NODE_TABLE, *GAIT_TABLE)
    tables["simulated_robot"] = table_of(ros["simulated_robot_settings"].SimulatedRobotSettings)
    tables["command_watchdog"] = table_of(ros["command_watchdog"].CommandWatchdogSettings)
    return tables, []


def write_files(folder: Path) -> None:
    """Write page, template and the names of models below a folder, a copy of the sources.

    Raises:
        MissingExtraError: rclpy is missing, and with it some tables.
        ConfigurationError: the folder is not that of the sources.
    """
    tables, missing = known_tables()
    if missing:
        raise MissingExtraError(
            f"the tables of {', '.join(missing)} need the extra ros: "
            "pip install 'contact_id_controller[ros]'"
        )
    texts = {PAGE: page(tables), TEMPLATE: template(tables), NAMES: names_text()}
    for path, text in texts.items():
        if not (folder / path).parent.is_dir():
            raise ConfigurationError(
                f"'{(folder / path).parent}' is no folder; --write wants the root of the sources"
            )
        (folder / path).write_text(text, encoding="utf-8")
        print(folder / path)


def page(tables: Mapping[str, Sequence[ParameterSpec]]) -> str:
    """The reference as Markdown."""
    intro = f"""# Parameters

Written by `{COMMAND}` from the tables that the nodes check their parameters with;
changes made here are lost. [config/template.yaml](../{TEMPLATE.as_posix()}) has all of them with their defaults.

A list of numbers takes one value for all, or one for each. *Live*: may change while the node is
configured or active; all others only before it is configured. Ranges include their ends.
"""
    return intro + "".join(_section(node, table) for node, table in tables.items())


def _section(node: str, table: Sequence[ParameterSpec]) -> str:
    head = "| name | type | default | range or choices | unit | live | what it is |"
    rows = [
        f"| `{spec.name}` | {KINDS[spec.kind]} | `{value_text(spec.default)}` "
        f"| {_allowed(spec)} | {spec.unit} | {'yes' if spec.live else ''} "
        f"| {_cell(spec.description)} |"
        for spec in table
    ]
    return "\n".join([f"\n## {node}\n", f"{ROLES[node]}\n", head, "|---" * 7 + "|", *rows]) + "\n"


def _allowed(spec: ParameterSpec) -> str:
    return ", ".join(f"`{choice}`" for choice in spec.choices) or range_text(spec)


def _cell(text: str) -> str:
    """Text that does not end the cell of a table, or begin a link or a tag."""
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
    star = "(*) " if spec.name in OWN or is_required(spec) else ""
    lines = textwrap.wrap(
        star + spec.description,
        WIDTH - len(INDENT) - 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [f"{INDENT}# {line}" for line in (*lines, f"[{'; '.join(_facts(spec))}]")]


def _facts(spec: ParameterSpec) -> list[str]:
    words = (
        KINDS[spec.kind],
        spec.unit and f"in {spec.unit}",
        range_text(spec),
        spec.choices and "one of " + ", ".join(spec.choices),
        spec.live and "live",
    )
    return [word for word in words if word]


def is_required(spec: ParameterSpec) -> bool:
    """Whether its description says so."""
    return spec.description.endswith("Required.")


def as_text(node: str, spec: ParameterSpec) -> str:
    """A parameter in a few lines for a terminal."""
    kind, *facts = _facts(spec)
    head = f"{node}.{spec.name}: " + "; ".join(
        (kind, f"default {value_text(spec.default)}", *facts)
    )
    return (
        head
        + "\n"
        + textwrap.fill(spec.description, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    )


def value_text(value) -> str:
    """A value as YAML, in one line."""
    plain = list(value) if isinstance(value, tuple) else value
    wrapped = yaml.safe_dump([plain], default_flow_style=True, width=math.inf).strip()
    return '""' if value == "" else wrapped[1:-1]


def range_text(spec: ParameterSpec) -> str:
    """The range in words; empty when there is none."""
    low, high = spec.minimum, spec.maximum
    infinite = ", .inf" if spec.infinite else ""
    if math.isfinite(low) and math.isfinite(high):
        return f"{low:g} to {high:g}"
    if math.isfinite(low):
        return f"{low:g} or more{infinite}"
    return f"{high:g} or less" if math.isfinite(high) else ""
