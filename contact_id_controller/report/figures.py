"""A figure as PNG, in the style of all plots."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from contact_id_controller.report.style import plot_style

DOTS_PER_INCH = 110


def draw(width: float, height: float, rows: int, columns: int, fill: Callable[..., Any]) -> bytes:
    """PNG of a figure of this size, inches; ``fill(axes)`` draws into its axes (rows, columns)."""
    with plot_style():
        figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
        fill(figure.subplots(rows, columns, squeeze=False))
        target = io.BytesIO()
        FigureCanvasAgg(figure).print_png(target)  # type: ignore[no-untyped-call]
    return target.getvalue()
