"""Options that several subcommands have."""

from __future__ import annotations

import argparse


def add_changes(parser: argparse.ArgumentParser, meaning: str) -> None:
    """`--set NAME=VALUE`, as often as wanted; `changes` of the parsed arguments.

    meaning: what it does, for the help.
    """
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="changes",
        help=f"{meaning}; may be repeated",
    )
