"""The report of a run: summary.json, plots, animation and a page with links to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.files import write_json, write_text
from contact_id_controller.report.animation import save_animation
from contact_id_controller.report.comparison import save_comparison
from contact_id_controller.report.metrics import (
    METRICS,
    REPORTED,
    headline,
    measure,
    noise,
    note,
    shown,
)
from contact_id_controller.report.plots import save_plots
from contact_id_controller.report.templating import describe_origin, render
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.computer import describe_machine, installed_versions
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.runs.ros_run import LOGS, PARAMETERS
from contact_id_controller.runs.setup import RECORD, RunSetup

SUMMARY, PAGE, INDEX, ANIMATION = "summary.json", "report.html", "index.html", "animation.gif"
SHARP = "animation.avif"


@dataclass(frozen=True)
class RunReport:
    """A finished run: title, folder of its report, and its figures."""

    title: str
    folder: Path
    summary: dict[str, Any]


def write_report(record: RunRecord, setup: RunSetup, folder: Path, wall_time_s: float) -> RunReport:
    """Write the report of one run into ``folder``, where its parameters and logs are."""
    robot = setup.settings.robot()
    summary = summarise(record, setup, robot, folder, wall_time_s)
    record.rounded().save(folder / RECORD)
    write_json(folder / SUMMARY, summary)
    captions = save_plots(
        record, folder, weight_n=robot.weight, normal=setup.normal, waypoints=setup.waypoints
    )
    caption = save_animation(
        record,
        folder / ANIMATION,
        urdf=setup.settings.urdf,
        robot=robot,
        feet=setup.settings.feet,
        normal=setup.normal,
        ground_file=setup.settings.ground_file,
        sharp=folder / SHARP,
    )
    page = render(
        "walk.html",
        kind="walk",
        title=setup.title,
        summary=summary,
        files={"summary": SUMMARY, "record": RECORD, "parameters": PARAMETERS, "logs": LOGS},
        animation=ANIMATION,
        sharp=_sharp_in(folder),
        caption=caption,
        plots=list(captions.items()),
        first=headline([summary]),
        metrics=shown([summary]),
        note=note("deadline_misses", [summary]),
        origin=describe_origin(summary),
    )
    write_text(folder / PAGE, page)
    return RunReport(setup.title, folder, summary)


def summarise(
    record: RunRecord, setup: RunSetup, robot: RobotModel, folder: Path, wall_time_s: float
) -> dict[str, Any]:
    """The content of summary.json: the run, its figures, machine and versions."""
    settings = setup.settings
    measured = record, robot.weight, np.asarray(setup.normal)
    return {
        "robot": setup.robot,
        "walks": setup.motion is None,
        "floating_base": record.floating_base,
        "friction": settings.friction,
        "solver": settings.solver,
        "mu": setup.friction_coefficient,
        "mode": setup.mode,
        "contact_time_constant_s": settings.contact_time_constant_s,
        "period_s": settings.period_s,
        "weight_n": robot.weight,
        **measure(*measured, (*REPORTED, "status_counts"), predicts=bool(record.foot_names)),
        "noise": noise(*measured, predicts=bool(record.foot_names)),
        "not_following": record.not_following,
        "refused_inputs": record.refused_inputs,
        "wall_time_s": wall_time_s,
        "command": setup.command(folder),
        "machine": describe_machine(),
        "versions": installed_versions(),
        "units": {name: METRICS[name].unit for name in REPORTED if METRICS[name].unit},
        "meaning": {name: METRICS[name].meaning for name in REPORTED},
    }


def write_index(runs: Sequence[RunReport], folder: Path) -> Path:
    """Write the page of several runs, index.html, and a summary.json with the first run's figures; return the page."""
    write_json(
        folder / SUMMARY,
        {**runs[0].summary, "runs": {run.folder.name: run.summary for run in runs}},
    )
    rows = [
        {
            "title": run.title,
            "summary": run.summary,
            "page": f"{run.folder.relative_to(folder).as_posix()}/{PAGE}",
            "folder": f"{run.folder.relative_to(folder).as_posix()}/",
            "animation": ANIMATION,
            "sharp": _sharp_in(run.folder),
        }
        for run in runs
    ]
    summaries = [run.summary for run in runs]
    page = render(
        "walks.html",
        kind="walks",
        title="Walks" if any(run.summary["walks"] for run in runs) else "Runs",
        runs=rows,
        charts=save_comparison([run.folder.name for run in runs], summaries, folder),
        metrics=shown(summaries),
        note=note("deadline_misses", summaries),
        origin=describe_origin(runs[0].summary),
    )
    write_text(folder / INDEX, page)
    return folder / INDEX


def _sharp_in(folder: Path) -> str:
    """Name of the AVIF animation, if there is one."""
    return SHARP if (folder / SHARP).is_file() else ""
