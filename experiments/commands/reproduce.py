"""``python -m experiments reproduce``: runs the papers' experiments and writes one report."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help="one or more, such as locomotion; a wrong one lists them; default: all",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="shorter and fewer runs: all experiments in a quarter of an hour",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="processes at once (default: one a core)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("reproduced"),
        metavar="DIR",
        help="where results and the report of what was requested go; runs whose "
        "results are there are not done again (default: reproduced)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="do the runs on a Dask cluster, such as tcp://host:8786",
    )
    parser.add_argument(
        "--run",
        metavar="KEY",
        help="only the run whose key begins so; its report goes into a folder of its own in DIR",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do the runs that are missing, write the report, list what failed."""
    from experiments.papers.reproduction import reproduce

    done = reproduce(
        arguments.experiments,
        arguments.output,
        quick=arguments.quick,
        jobs=arguments.jobs,
        cluster=arguments.cluster,
        key=arguments.run,
    )
    for result in done.failed:
        print(
            f"failed: {result.description.title}\n  {result.description.command()}\n  "
            f"{result.error.strip().splitlines()[-1]}",
            file=sys.stderr,
        )
    total, failed = len(done.results), len(done.failed)
    print(f"{total - failed} of {total} runs are done, {failed} failed")
    print(f"Report: {done.page}")
    return NOT_ALL_WELL if failed else DONE
