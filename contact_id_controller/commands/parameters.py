"""``contact_id parameters``: every parameter of every node, its default, range and meaning."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exit_codes import DONE


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
        help="write docs/parameters.md and config/template.yaml below DIR (default: here)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the parameters, or write page and template."""
    from contact_id_controller.settings import reference

    if arguments.write is not None:
        print(*reference.write_files(arguments.write), sep="\n")
        return DONE
    for node, spec in reference.find(arguments.words):
        print(reference.as_text(node, spec))
    return DONE
