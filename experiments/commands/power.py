"""``python -m experiments power``: the power that three allocations of torque lose, and what they violate."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exit_codes import DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "--duration", type=float, default=4.0, metavar="S", help="of each run (default 4)"
    )
    parser.add_argument("--output", type=Path, default=Path("power"), metavar="DIR")


def run(arguments: argparse.Namespace) -> int:
    """Do all runs and print their table."""
    from contact_id_controller.runs.preparation import check_extras

    check_extras("the comparison needs", "mujoco", "matplotlib")
    from experiments.power import comparison

    print(comparison.table(comparison.compare(arguments.duration, arguments.output)))
    print(f"\nWritten to {arguments.output / comparison.FIGURES} and {comparison.PLOT} beside it")
    return DONE
