"""Figures as text, and as a table on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from contact_id_controller.report.metrics import note, shown

NOTHING = 1e-6
"""A figure below this, in its unit, is one of rounding: 0."""


def format_value(value: Any, unit: str) -> str:
    """A figure as text: four digits, times in microseconds, errors in percent."""
    if value is None or value != value:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if unit == "1":
        return f"{100.0 * value:.2f} %"
    if unit == "s" and 0.0 < abs(value) < 0.1:
        return f"{1e6 * value:.0f} µs"
    return f"{value if abs(value) >= NOTHING else 0.0:.4g} {unit}".strip()


def scaled(unit: str) -> tuple[float, str]:
    """Factor and unit in which figures of ``unit`` are drawn."""
    return {"1": (100.0, "%"), "s": (1e6, "µs")}.get(unit, (1.0, unit))


def format_noise(noise: float | None, unit: str) -> str:
    """Noise of a figure as text, two digits in the unit of `format_value`; empty: not known."""
    if noise is None or noise != noise:
        return ""
    factor, _ = scaled(unit)
    return f" ± {float(f'{factor * noise:.2g}'):g}"


UNITS = ("_rad_s", "_nm_s", "_m_s", "_rad", "_nm", "_s", "_m", "_w", "_n")
"""Endings of names that repeat the unit of the value."""


def in_words(name: str) -> str:
    """The name of a figure as words, without its unit: mean joint position error."""
    end = next((unit for unit in UNITS if name.endswith(unit)), "")
    return name.removesuffix(end).replace("_", " ")


def print_figures(runs: Sequence[tuple[str, dict[str, Any]]], stream: Any = None) -> None:
    """Print titles and figures of one or more runs side by side.

    If the output is no terminal it is plain, with the names of summary.json, for programs.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    stream = sys.stdout if stream is None else stream
    table = Table(box=box.SIMPLE_HEAD if stream.isatty() else None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    for number in range(1, len(runs) + 1):
        table.add_column(f"({number})", justify="right", no_wrap=True)
    for name, metric in shown([summary for _, summary in runs]).items():
        label = in_words(name) if stream.isatty() else name
        table.add_row(label, *(format_value(summary[name], metric.unit) for _, summary in runs))
    notes = [words for name in ("deadline_misses",) if (words := note(name, [s for _, s in runs]))]
    # A file or a pipe has no width that a table could be cut to.
    console = Console(file=stream, width=None if stream.isatty() else 200, highlight=False)
    console.print()
    for number, (title, _) in enumerate(runs, start=1):
        console.print(f"({number}) {title}", markup=False)
    console.print(table)
    for number, (_, summary) in enumerate(runs, start=1):
        if summary["not_following"]:
            console.print(f"({number}) did not follow: {summary['not_following']}", markup=False)
    for words in notes:
        console.print(words, markup=False)
