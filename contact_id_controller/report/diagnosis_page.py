"""The page of a diagnosis, in one file: each finding, with its picture."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from contact_id_controller.diagnosis.diagnose import Diagnosis
from contact_id_controller.diagnosis.finding import FINE, UNKNOWN, WRONG, Picture
from contact_id_controller.files import write_text
from contact_id_controller.logs.column_map import map_text
from contact_id_controller.logs.log import Log
from contact_id_controller.report.style import plot_style
from contact_id_controller.report.templating import render

MOST_POINTS = 3000
TITLES = {WRONG: "Wrong, the likeliest first", FINE: "Fine", UNKNOWN: "What this log cannot tell"}


def write_page(diagnosis: Diagnosis, log: Log, path: Path) -> None:
    """Write the page of a diagnosis, with pictures embedded.

    Raises:
        RecordError: the file cannot be written.
    """
    groups = [
        (
            title,
            [
                (each, None if each.picture is None else Markup(data_url(each.picture)))
                for each in diagnosis.findings
                if each.verdict == verdict
            ],
        )
        for verdict, title in TITLES.items()
    ]
    page = render(
        "diagnosis.html",
        kind="walk",
        title=f"Diagnosis of {Path(log.source).name}",
        facts=f"{len(log.time)} rows, {log.time[-1] - log.time[0]:.1f} s, {len(log.joints)} joints",
        groups=groups,
        fragment=map_text(diagnosis.fragment) if diagnosis.fragment else "",
    )
    write_text(path, page)


def data_url(picture: Picture) -> str:
    """A picture as a data URL."""
    with plot_style():
        figure = Figure(figsize=(7.0, 2.6))
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        every = max(1, len(picture.x) // MOST_POINTS)
        for name, values in picture.lines.items():
            axes.plot(picture.x[::every], np.asarray(values)[::every], label=name, linewidth=0.9)
        axes.set_xlabel(picture.x_label)
        axes.set_ylabel(picture.y_label)
        axes.set_title(picture.title)
        if len(picture.lines) > 1:
            axes.legend(loc="upper right")
        figure.tight_layout()
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
