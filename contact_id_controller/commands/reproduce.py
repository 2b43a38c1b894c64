"""``contact_id reproduce``: runs the papers' experiments and writes one report."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from contact_id_controller.exceptions import ConfigurationError, MissingExtraError, choices
from contact_id_controller.runs.batch import run_all
from contact_id_controller.runs.progress import ProgressBar
from contact_id_controller.runs.store import RunDescription, RunResult, RunStore

if TYPE_CHECKING:
    from contact_id_controller.papers.registry import Experiment

DONE, SOME_FAILED = 0, 1
EXTRAS = (
    ("mujoco", "simulation"),
    ("matplotlib", "simulation"),
    ("PIL", "simulation"),
    ("quadprog", "quadprog"),
)
"""Modules that the experiments need, and the extra that brings them."""


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
        help="where results and the report of what was asked for go; runs whose "
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
    """Do the runs that are missing, write the report, list what failed.

    Returns 0, or 1 when a run failed.

    Raises:
        ConfigurationError: an unknown experiment or run, or less than one job.
        MissingExtraError: names the extras to install.
    """
    check_extras()
    from contact_id_controller.report.page import write_report

    experiments = choose(arguments.experiments)
    tasks = plan(experiments, arguments.quick, arguments.run)
    if arguments.jobs < 1:
        raise ConfigurationError(f"--jobs is {arguments.jobs}, must be at least 1")
    # Also where the parent had signals ignored, as a job in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    store = RunStore(arguments.output / "runs")
    bar, count = ProgressBar("reproduce", len(tasks), unit="runs"), 0

    def show(result: RunResult) -> None:
        nonlocal count
        count += 1
        bar.say(result.description.title)
        bar.show(count)

    try:
        results = run_all(
            [
                (experiment.run, description, experiment.measures_time)
                for experiment, description in tasks
            ],
            store,
            jobs=arguments.jobs,
            cluster=arguments.cluster,
            done=show,
        )
    finally:
        bar.close()
    failed = [result for result in results if result.error]
    # One run's report must not take the place of that of all.
    folder = arguments.output / f"run_{arguments.run}" if arguments.run else arguments.output
    page = write_report(experiments, results, folder)
    for result in failed:
        print(
            f"failed: {result.description.title}\n  {result.description.command()}\n  "
            f"{result.error.strip().splitlines()[-1]}",
            file=sys.stderr,
        )
    print(f"{len(results) - len(failed)} of {len(tasks)} runs are done, {len(failed)} failed")
    print(f"Report: {page}")
    return SOME_FAILED if failed else DONE


def choose(names: list[str]) -> list[Experiment]:
    """The experiments of these names, in the order of the registry; all where there is no name.

    Raises:
        ConfigurationError: an unknown name.
    """
    from contact_id_controller.papers import registry

    known = registry.EXPERIMENTS
    for name in names:
        if name not in known:
            raise ConfigurationError(f"experiment is {name!r}, must be one of {choices(known)}")
    return [experiment for name, experiment in known.items() if not names or name in names]


def check_extras() -> None:
    """Refuse to start without what the experiments need.

    Raises:
        MissingExtraError: names the extras to install.
    """
    missing = sorted(
        {extra for module, extra in EXTRAS if importlib.util.find_spec(module) is None}
    )
    if missing:
        raise MissingExtraError(
            f"the experiments need the extras {', '.join(missing)}: "
            f"pip install 'contact_id_controller[{','.join(missing)}]'"
        )


def plan(
    experiments: list[Experiment], quick: bool, key: str | None = None
) -> list[tuple[Experiment, RunDescription]]:
    """The runs of these experiments. A key chooses among quick and full ones.

    Raises:
        ConfigurationError: no run has this key.
    """
    sizes = (quick,) if key is None else (True, False)
    runs = {
        description.key: (experiment, description)
        for size in sizes
        for experiment in experiments
        for description in experiment.runs(size)
        if key is None or description.key.startswith(key)
    }
    if not runs:
        names = ", ".join(experiment.name for experiment in experiments)
        raise ConfigurationError(f"no run of {names} has key {key}")
    return list(runs.values())
