"""The page of a diagnosis, in one file: each finding, with its picture."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from contact_id_controller.diagnosis.diagnose import Diagnosis
from contact_id_controller.diagnosis.finding import FINE, UNKNOWN, WRONG, Picture
from contact_id_controller.files import write_text
from contact_id_controller.logs.column_map import map_text
from contact_id_controller.logs.log import Log
from contact_id_controller.report.figures import draw
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

    def fill(axes: Any) -> None:
        axis, every = axes[0, 0], max(1, len(picture.x) // MOST_POINTS)
        for name, values in picture.lines.items():
            axis.plot(picture.x[::every], np.asarray(values)[::every], label=name, linewidth=0.9)
        axis.set(xlabel=picture.x_label, ylabel=picture.y_label, title=picture.title)
        if len(picture.lines) > 1:
            axis.legend(loc="upper right")

    return "data:image/png;base64," + base64.b64encode(draw(7.0, 2.6, 1, 1, fill)).decode()
