"""Runs the papers' experiments, those that are missing, and writes one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.files import make_folder
from contact_id_controller.runs.preparation import check_extras, end_on_signals
from contact_id_controller.runs.progress import ProgressBar
from experiments.papers.runner import run_all
from experiments.papers.store import RunDescription, RunResult, RunStore

if TYPE_CHECKING:
    from experiments.papers.registry import Experiment


class Reproduction(NamedTuple):
    """What came of the runs: the results of all, and where the report is."""

    results: list[RunResult]
    page: Path

    @property
    def failed(self) -> list[RunResult]:
        """Results of the runs that failed."""
        return [result for result in self.results if result.error]


def reproduce(
    names: list[str],
    output: Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    cluster: str | None = None,
    key: str | None = None,
) -> Reproduction:
    """Do the runs that are missing and write the report.

    Args:
        names: of experiments; empty: all.
        output: folder of results and report; runs whose results are there are not done again.
        quick: shorter and fewer runs.
        jobs: processes at once.  cluster: address of a Dask scheduler that does the runs instead.
        key: only the run whose key begins so; its report goes into a folder of its own.

    Raises:
        ConfigurationError: an unknown experiment or run, or less than one job.
        MissingExtraError: names the extras to install.
        RecordError: the folder cannot be written to.
    """
    check_extras("the experiments need", "mujoco", "matplotlib", "PIL", "quadprog")
    from experiments.papers.page import write_report

    experiments = choose(names)
    tasks = plan(experiments, quick, key)
    if jobs < 1:
        raise ConfigurationError(f"--jobs is {jobs}, must be at least 1")
    # One run's report must not take the place of that of all.
    folder = output / f"run_{key}" if key else output
    make_folder(folder)
    end_on_signals()
    store = RunStore(output / "runs")
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
            jobs=jobs,
            cluster=cluster,
            done=show,
        )
    finally:
        bar.close()
    return Reproduction(results, write_report(experiments, results, folder))


def choose(names: list[str]) -> list[Experiment]:
    """The experiments of these names, in the order of the registry; all where there is no name.

    Raises:
        ConfigurationError: an unknown name.
    """
    from experiments.papers import registry

    known = registry.EXPERIMENTS
    for name in names:
        if name not in known:
            raise ConfigurationError(f"experiment is {name!r}, must be one of {choices(known)}")
    return [experiment for name, experiment in known.items() if not names or name in names]


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
