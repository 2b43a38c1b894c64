"""Options shared by several subcommands."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_robot(
    parser: argparse.ArgumentParser, names: str, also: str = "", required: bool = True
) -> None:
    """Add `--robot NAME` and `--config FILE`, of which one must be given if it is required, and never both.

    names: where the robot's names come from.  also: what a file of one's own must have, both for the help.
    """
    which = parser.add_mutually_exclusive_group(required=required)
    which.add_argument("--robot", metavar="R", help=f"name of a file in {names}")
    which.add_argument(
        "--config", type=Path, metavar="FILE", help=f"parameter file of your own robot{also}"
    )


def add_changes(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add `--set NAME=VALUE`, which may be repeated; `changes` of the parsed arguments.

    meaning: its effect, for the help.
    """
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="changes",
        help=f"{meaning}; may be repeated",
    )
