"""The results of a followed plan: record, CoM error, animation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from contact_id_controller.report.animation import save_animation
from contact_id_controller.report.plots import save_figure
from contact_id_controller.report.style import COLOURS
from contact_id_controller.runs.planned_motion import Execution
from contact_id_controller.settings.controller import ControllerSettings

RECORD, ANIMATION, ERRORS = "record.npz", "execution.gif", "execution.png"


def write_execution(
    execution: Execution, settings: ControllerSettings, folder: Path
) -> dict[str, str]:
    """Write record, animation and plot into ``folder``; return file name -> caption."""
    execution.record.rounded().save(folder / RECORD)
    caption = save_animation(
        execution.record,
        folder / ANIMATION,
        urdf=settings.urdf,
        robot=settings.robot(),
        feet=settings.feet,
        normal=np.array([0.0, 0.0, 1.0]),
        ground_file=settings.ground_file,
    )
    save_figure(lambda: plot_errors(execution), folder / ERRORS)
    return {ANIMATION: caption, ERRORS: "How far the CoM was from the plan, and the forces' error."}


def plot_errors(execution: Execution) -> Figure:
    """The CoM's error and the error of predicted forces over time."""
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    times = execution.record.time_s
    for axis, colour, error in zip("xyz", COLOURS, execution.com_errors.T):
        above.plot(times, 1e3 * error, color=colour, label=axis)
    above.set_title("Centre of mass from the plan (mm)")
    above.legend(loc="best")
    below.plot(times, 1e2 * execution.force_errors, color=COLOURS[0], linewidth=0.6)
    below.set_title("Error of the predicted normal forces (% of the weight)")
    below.set_xlabel("time (s)")
    return figure
