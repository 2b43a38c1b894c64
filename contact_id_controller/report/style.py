"""The style of all plots and pictures, and the meaning of colours."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import matplotlib

FILE = Path(__file__).with_name("style.mplstyle")

PREDICTED = "#e8590c"
SIMULATED = "#1c3d5a"
GREY = "#868e96"
BAND = "#a5bdd3"
SHADE = "#f1f3f5"
LIMIT = "#c92a2a"
COLOURS = (
    "#1c7ed6",
    "#e8590c",
    "#2b8a3e",
    "#ae3ec9",
    "#f08c00",
    "#0b7285",
    "#495057",
    "#c2255c",
    "#5c940d",
    "#862e9c",
)
"""Colours without a meaning; the cycle of the style file."""


def plot_style() -> contextlib.AbstractContextManager[Any]:
    """Context in which figures are made and drawn in this style."""
    return matplotlib.rc_context(fname=FILE)
