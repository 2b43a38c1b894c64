"""Runs simulated robots over ROS 2 topics, and writes their reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contact_id_controller.check.config import check_file
from contact_id_controller.check.findings import ERROR
from contact_id_controller.files import make_folder
from contact_id_controller.report.report import PAGE, RunReport, write_index, write_report
from contact_id_controller.runs.preparation import end_on_signals
from contact_id_controller.runs.progress import telling
from contact_id_controller.runs.record import merge_records
from contact_id_controller.runs.ros_run import prepare_folder, run_nodes
from contact_id_controller.runs.setup import (
    CONTROLLER_RECORD,
    ESTIMATOR_RECORD,
    NODE_RECORDS,
    ROBOT_RECORD,
    RunSetup,
    make_setup,
)
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR

SideProcesses = Callable[[RunSetup, Path], dict[str, list[str]]]
"""Function of setup and folder that returns name -> command line of further processes, see ``ros_run.run_nodes``."""


def play_all(
    planned: Sequence[tuple[Path, dict[str, Any]]],
    output: Path,
    side_processes: SideProcesses | None = None,
    domain: int | None = None,
) -> tuple[list[RunReport], Path]:
    """Do the runs of ``runs.selection.plan_runs``; return their reports, and the page of all.

    Raises:
        ContactIdError: a choice that does not exist, a folder that cannot be written to (both
            before anything starts), or a run that failed.
    """
    setups = [(folder, make_setup(folder, **choice)) for folder, choice in planned]
    make_folder(output)
    for folder, _ in setups:
        prepare_folder(folder)
    for config in dict.fromkeys(setup.config for _, setup in setups):
        _tell_errors(config)
    end_on_signals()
    reports = [play(setup, folder, side_processes, domain) for folder, setup in setups]
    if reports[0].folder == output:
        return reports, output / PAGE
    return reports, write_index(reports, output)


def _tell_errors(config: Path) -> None:
    """Print the errors of `contact_id check` that take no compiling; the run starts nevertheless."""
    for finding in check_file(config):
        if finding.level == ERROR:
            print(f"{config.name}: {finding}", file=sys.stderr)


def play(
    setup: RunSetup,
    folder: Path,
    side_processes: SideProcesses | None = None,
    domain: int | None = None,
) -> RunReport:
    """Do one run, and write its report; domain: as for ``ros_run.run_nodes``."""
    beside = side_processes(setup, folder) if side_processes else None
    wall_time_s = run_nodes(setup, folder, beside, domain)
    with telling("drawing plots and animation ..."):
        record = merge_records(
            folder / CONTROLLER_RECORD,
            folder / ROBOT_RECORD,
            setup.settings.period_s,
            folder / ESTIMATOR_RECORD if ESTIMATOR in setup.nodes else None,
        )
        report = write_report(record, setup, folder, wall_time_s)
    for name in NODE_RECORDS:
        (folder / name).unlink(missing_ok=True)
    return report
