"""The experiments by name. A new one is a module with three functions, and a row here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.papers import (
    chatter,
    chatter_report,
    flops,
    formulas,
    grasp,
    kinodynamic,
    kinodynamic_report,
    manipulator,
    manipulator_report,
    running_time,
    sparse_dynamics,
    sparse_dynamics_report,
    terrain_walk,
    walks,
    walks_report,
    whole_body_plans,
)
from experiments.papers.blocks import Section
from experiments.papers.store import RunDescription, RunResult


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper.

    Attributes:
        name: on the command line.
        runs: descriptions of its runs, from whether they shall be quick.
        run: does one of them; the values are what ``runs.plain`` can turn into JSON.
        report: the section, from the results that there are (without failed ones).
        measures_time: its runs must not share the machine with others.
    """

    name: str
    runs: Callable[[bool], Sequence[RunDescription]]
    run: Callable[[RunDescription], dict]
    report: Callable[[Sequence[RunResult]], Section]
    measures_time: bool = False


def _experiment(module, report=None, measures_time: bool = False) -> Experiment:
    return Experiment(module.NAME, module.runs, module.run, report or module.report, measures_time)


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        _experiment(walks, walks_report.report),
        _experiment(manipulator, manipulator_report.report),
        _experiment(chatter, chatter_report.report),
        _experiment(formulas),
        _experiment(grasp, measures_time=True),
        _experiment(terrain_walk, measures_time=True),
        _experiment(running_time, measures_time=True),
        _experiment(flops),
        _experiment(sparse_dynamics, sparse_dynamics_report.report),
        _experiment(kinodynamic, kinodynamic_report.report, measures_time=True),
        _experiment(whole_body_plans, measures_time=True),
    )
}
