"""``contact_id compile``: compile the kernels of a robot's nodes before it waits for them."""

from __future__ import annotations

import argparse

from contact_id_controller.commands.shared_options import add_robot
from contact_id_controller.exit_codes import DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    add_robot(parser, "config/ or config/bipeds/ (default: quadruped)", required=False)


def run(arguments: argparse.Namespace) -> int:
    """Compile, with a line every few seconds, and print the number of kernels."""
    from contact_id_controller.kernels.compile_progress import to_stderr
    from contact_id_controller.runs.precompile import compile_for
    from contact_id_controller.settings.robot_files import file_of

    kernels = compile_for(arguments.config or file_of(arguments.robot or "quadruped"), to_stderr)
    print(f"{kernels} kernels compiled" if kernels else "nothing to compile: all is in the cache")
    return DONE
