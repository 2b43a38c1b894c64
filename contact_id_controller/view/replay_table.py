"""The results of replays as a table on a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_id_controller.view.replay import Replayed

LINES = 10
"""Number of lines of the controller's log that are shown."""


def figures(replayed: Replayed) -> dict[str, str]:
    """Figures of a replay: name -> value with unit."""
    compared, exact = replayed.compared, replayed.exact
    count = int(compared.sum())
    difference = (replayed.torques - replayed.sent)[compared]
    rms = float(np.sqrt(np.mean(difference**2))) if count else 0.0
    statuses = Counter(replayed.status.tolist())
    normal = np.linalg.norm(replayed.forces.sum(axis=1), axis=1)[replayed.commanded]
    solved = replayed.solve_time_s[replayed.commanded]
    return {
        "states answered": f"{len(replayed.time_s)}",
        "torques as sent, bit for bit": f"{int(exact[compared].sum())} of {count}",
        "first difference": _first(replayed),
        "largest difference": f"{replayed.largest_difference_nm:.4g} N·m",
        "root mean square of it": f"{rms:.4g} N·m",
        "mean |torque|": f"{np.abs(replayed.torques).mean():.4g} N·m",
        "mean of all forces": f"{normal.mean():.4g} N" if normal.size else "none",
        "saturated steps": f"{int(replayed.saturated.any(axis=1).sum())}",
        "status": ", ".join(f"{name} {number}" for name, number in statuses.most_common()),
        "refusals": ", ".join(f"{name} {n}" for name, n in replayed.refusals.most_common())
        or "none",
        "median time of the solver": f"{1e6 * np.median(solved):.0f} µs" if solved.size else "none",
    }


def _first(replayed: Replayed) -> str:
    other = np.flatnonzero(replayed.compared & ~replayed.exact)
    return f"at {replayed.time_s[other[0]]:.3f} s" if other.size else "none"


def print_replays(replays: Mapping[str, Replayed], stream: Any = None) -> None:
    """Print the figures of all replays side by side, then remarks on the bag and the controller's log."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    stream = sys.stdout if stream is None else stream
    table = Table(box=box.SIMPLE_HEAD if stream.isatty() else None, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    for name in replays:
        table.add_column(name, justify="right")
    columns = [figures(replayed) for replayed in replays.values()]
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    console = Console(file=stream, width=None if stream.isatty() else 200, highlight=False)
    console.print(table)
    first = next(iter(replays.values()))
    for remark in first.remarks:
        console.print(f"note: {remark}", markup=False)
    for name, replayed in replays.items():
        for time_s, line in replayed.logged[:LINES]:
            console.print(f"{name}, at {time_s:.3f} s: {line.splitlines()[-1]}", markup=False)
        if len(replayed.logged) > LINES:
            console.print(f"{name}: {len(replayed.logged) - LINES} lines more", markup=False)
