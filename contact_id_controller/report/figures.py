"""Plots of the report: ours as lines and bars, the papers' figures in grey beside them."""

from __future__ import annotations

import io
from collections.abc import Callable

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from contact_id_controller.report.style import GREY, plot_style

PAPER = {"color": GREY, "linestyle": "none", "marker": "D", "markersize": 5.5, "zorder": 4}
"""Of points that the paper prints."""

PAPER_LINE = {"color": GREY, "linestyle": "--", "linewidth": 1.2, "marker": "D", "markersize": 4.5}
DOTS_PER_INCH = 110


def draw(width: float, height: float, rows: int, columns: int, fill: Callable) -> bytes:
    """PNG of a figure of so many inches; ``fill(axes)`` draws into its axes (rows, columns)."""
    with plot_style():
        figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
        fill(figure.subplots(rows, columns, squeeze=False))
        target = io.BytesIO()
        FigureCanvasAgg(figure).print_png(target)
    return target.getvalue()


def legend_of_all(axis) -> None:
    """One legend, of what is drawn in ``axis``, to the right of the whole figure."""
    axis.figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper")


def legend_beside(axis) -> None:
    """A legend to the right of the axes, if there is anything to explain."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
