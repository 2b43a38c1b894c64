"""``contact_id compile``: compile what a robot's nodes need, before it waits for them."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.exit_codes import DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "--robot",
        metavar="R",
        default="quadruped",
        help="name of a file in config/ (default: quadruped)",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="parameter file of your own robot"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compile, with a line every few seconds; say how many kernels it was."""
    from contact_id_controller.kernels.compile_progress import to_stderr
    from contact_id_controller.runs.precompile import compile_for
    from contact_id_controller.runs.setup import robots

    file, known = arguments.config, robots()
    if file is None:
        if arguments.robot not in known:
            raise ConfigurationError(
                f"robot is {arguments.robot!r}, must be one of {choices(known)}"
            )
        file = known[arguments.robot]
    kernels = compile_for(file, to_stderr)
    print(f"{kernels} kernels compiled" if kernels else "nothing to compile: all is in the cache")
    return DONE
