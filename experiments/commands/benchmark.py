"""``python -m experiments benchmark``: the speed of every contact model, or its robustness."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.exit_codes import DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "--robustness", action="store_true", help="instead: random problems, counted by status"
    )
    parser.add_argument("--count", type=int, default=100_000, help="how many random problems")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes for --robustness")
    parser.add_argument(
        "--contacts",
        type=int,
        nargs="+",
        metavar="N",
        help="numbers of contacts (default: 4 to 1000)",
    )
    parser.add_argument(
        "--placo-python",
        metavar="PYTHON",
        help="interpreter of an environment that has PlaCo, to measure it beside us",
    )
    parser.add_argument(
        "--models", nargs="+", default=(), metavar="F/S", help="only these (default: all)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="for benchmark.json, not with --robustness (default: benchmark)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the tables and write ``benchmark.json``."""
    if arguments.robustness:
        if arguments.output:
            raise ConfigurationError("--output: --robustness prints its table and writes no file")
        from experiments.benchmark.robustness import run_robustness

        return run_robustness(arguments.count, arguments.seed, arguments.jobs, arguments.models)
    from contact_id_controller.files import check_free, make_folder, write_json
    from experiments.benchmark.speed import CONTACTS, measure, table

    path = make_folder(arguments.output or Path("benchmark")) / "benchmark.json"
    check_free(path)
    result = measure(arguments.contacts or CONTACTS, arguments.placo_python, arguments.models)
    write_json(path, result)
    print(table(result))
    print(f"\nWritten to {path}")
    return DONE
