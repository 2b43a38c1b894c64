"""A chart of several runs of one robot: the headline figures with their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from contact_id_controller.report.metrics import METRICS, headline
from contact_id_controller.report.plots import DOTS_PER_INCH, save_figure
from contact_id_controller.report.style import COLOURS, LIMIT
from contact_id_controller.report.tables import in_words, scaled

CHART = "comparison.png"
ROW_IN, BAR_IN, WIDTH_IN = 0.55, 0.3, 9.0
"""Height of a title with its axis, of a bar, and width of the chart, inches."""

LONGEST_NAME = 34
"""Longest name of a run beside its bar, characters."""


def save_comparison(
    names: Sequence[str], summaries: Sequence[dict[str, Any]], folder: Path
) -> list[tuple[str, str]]:
    """Draw the chart into ``folder``; return [(file, caption)], or [] for one run or runs of several robots."""
    if len({summary["robot"] for summary in summaries}) > 1 or len(summaries) < 2:
        return []
    save_figure(lambda: plot_comparison(names, summaries), folder / CHART)
    caption = (
        "The main figures, one bar a run; lines at their ends: twice the noise to either side. "
        "Bars whose lines overlap differ by no more than the noise."
    )
    if any(summary["fell"] or not summary["followed"] for summary in summaries):
        caption += " Red: the robot fell, or did not follow its plan."
    return [(CHART, caption)]


def plot_comparison(names: Sequence[str], summaries: Sequence[dict[str, Any]]) -> Figure:
    """Bars of each headline figure, one row per figure."""
    rows = headline(summaries)
    height = len(rows) * (ROW_IN + BAR_IN * len(names))
    figure = Figure(figsize=(WIDTH_IN, height), dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    places = range(len(names))
    shown = [_shortened(name) for name in names]
    bad = [summary["fell"] or not summary["followed"] for summary in summaries]
    for axis, name in zip(axes, rows):
        factor, unit = scaled(METRICS[name].unit)
        values = [factor * _number(summary[name]) for summary in summaries]
        noise = [2.0 * factor * _number(summary["noise"].get(name)) for summary in summaries]
        colours = [LIMIT if wrong else COLOURS[0] for wrong in bad]
        axis.barh(places, values, color=colours, height=0.62)
        for place, value, size in zip(places, values, noise):
            if math.isfinite(value) and math.isfinite(size):
                axis.errorbar(value, place, xerr=size, color="black", capsize=3.0, linewidth=1.1)
        axis.set_xlim(left=0.0)  # no figure of these is negative, whatever its noise
        axis.set_yticks(places, shown)
        axis.invert_yaxis()
        axis.set_title(f"{in_words(name)} ({unit})" if unit else in_words(name), loc="left")
    return figure


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"...{name[3 - LONGEST_NAME :]}"
