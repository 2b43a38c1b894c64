"""Options shared by several subcommands."""

from __future__ import annotations

import argparse


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
