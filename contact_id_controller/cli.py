"""The command ``contact_id``: one subcommand for each experiment."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from contact_id_controller.exceptions import ContactIdError

COMMANDS = {
    "demo": (
        "contact_id_controller.commands.demo",
        "let a simulated robot walk through real ROS 2 topics and write a report",
    ),
    "benchmark": (
        "contact_id_controller.benchmark.speed",
        "measure the speed of every contact model, or its robustness",
    ),
    "check": (
        "contact_id_controller.commands.check",
        "check the parameter file of a robot before anything moves",
    ),
    "parameters": (
        "contact_id_controller.commands.parameters",
        "show every parameter of every node, its default, range and meaning",
    ),
    "reproduce": (
        "contact_id_controller.commands.reproduce",
        "do the papers' experiments again and report what came of them",
    ),
    "power": (
        "contact_id_controller.commands.power",
        "compare the power that three allocations of torque lose, and what they violate",
    ),
    "faults": (
        "contact_id_controller.commands.faults",
        "let one thing after the other fail while a simulated robot walks over real topics",
    ),
}
"""Name -> module with ``add_arguments(parser)`` and ``run(arguments) -> exit code``; its help."""

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; errors of input are one line."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run a command line, without the program's name, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="contact_id", description="Contact inverse dynamics: experiments."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # Only the module of the command in question is loaded: each needs other extras.
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    modules = {}
    for name, (module, text) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=text.capitalize() + ".")
        if name == wanted:
            modules[name] = importlib.import_module(module)
            modules[name].add_arguments(subparser)
    parsed = parser.parse_args(arguments)
    try:
        return modules[parsed.command].run(parsed)
    except ContactIdError as error:
        print(f"contact_id {parsed.command}: error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"contact_id {parsed.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
