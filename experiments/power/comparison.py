"""Power that heats the motors with three allocations of torque, and which constraints each violates.

A quadruped stands on level ground and on a slope and walks (``quadruped_runs``). In every period
``allocations`` realises the same planned motion of the same state by torques and contact forces in three ways. Loss:
sum R (tau / Kt)^2 with the motors of the robot's YAML.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.files import check_free, make_folder, write_json, write_with
from contact_id_controller.runs.computer import describe_machine, installed_versions
from experiments.power.allocations import ALLOCATIONS, CONES, PINV, PINV_W, PYRAMID
from experiments.power.quadruped_runs import Run, configuration, legged, peak_torque

SLOPE_DEG, SLOPE_FRICTION = 20.0, 0.6
TIGHT_FRICTION = 0.3
WALK_LIMIT = 0.6  # of torques, as a share of the pyramid's peak in the same run without limits
LABELS = {
    PINV: "(a) pinv",
    PINV_W: "(a) pinv, weighted",
    PYRAMID: "(b) pyramid",
    CONES: "(c) cones",
}
HEAD = (
    "run",
    "allocation",
    "power W",
    "cone %",
    "pull %",
    "torque %",
    "plan given up %",
    "excess over (a)",
)
FIGURES, PLOT = "power.json", "power.png"
COLORS = {PINV: "#868e96", PINV_W: "#343a40", PYRAMID: "#1c7ed6", CONES: "#e8590c"}


def all_runs(duration_s: float) -> list[Run]:
    """The runs of the table."""
    quadruped = configuration("quadruped")
    slippery = legged(
        quadruped, "quadruped walks", duration_s, walk=True, friction=TIGHT_FRICTION, solver="qcqp"
    )
    return [
        legged(quadruped, "quadruped stands", duration_s),
        legged(
            quadruped,
            f"stands on {SLOPE_DEG:g} degrees",
            duration_s,
            slope_deg=SLOPE_DEG,
            friction=SLOPE_FRICTION,
        ),
        legged(quadruped, "quadruped walks", duration_s, walk=True),
        slippery,
        legged(
            quadruped,
            "quadruped walks, limited",
            duration_s,
            walk=True,
            friction=TIGHT_FRICTION,
            limit_nm=WALK_LIMIT * peak_torque(slippery, PYRAMID),
            solver="qcqp",
        ),
    ]


def compare(
    duration_s: float, output: Path, make_runs: Callable[[float], list[Run]] = all_runs
) -> list[dict[str, Any]]:
    """Make all runs, write ``power.json`` and ``power.png`` into a folder, return the rows.

    Raises:
        ConfigurationError: a duration that is not positive.
        RecordError: the folder cannot be written to.
    """
    if not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ConfigurationError(f"--duration must be positive, got {duration_s}")
    check_free(*(make_folder(output) / name for name in (FIGURES, PLOT)))
    runs = make_runs(duration_s)
    rows = [row for one in runs for row in figures(one)]
    result = {
        "machine": describe_machine(),
        "versions": installed_versions(),
        "command": " ".join(sys.argv),
        "duration_s": duration_s,
        "rows": rows,
    }
    write_json(output / FIGURES, result)
    plot(runs, output / PLOT)
    return rows


def figures(one: Run) -> list[dict[str, Any]]:
    """The rows of one run: shares of its periods, mean power (W) and the excess of (c) over (a).

    power_w: mean over the periods in which every allocation realises the plan. excess_over_pinv: largest
    (P_c - P_a) / P_a over the periods in which the plain pseudo-inverse violates nothing, without any
    tolerance, and (c) realises the plan; excess_over_weighted: the same for the weighted one.
    """
    common = one.kept.all(axis=1)
    rows = []
    for i, name in enumerate(ALLOCATIONS):
        cone, pull, torque = one.broken[:, i].mean(axis=0)
        row = {
            "run": one.name,
            "friction": one.friction,
            "driver": one.driver,
            "limit_nm": one.limit_nm,
            "allocation": name,
            "periods": len(common),
            "compared": int(common.sum()),
            "power_w": float(one.power[common, i].mean()) if common.any() else None,
            "cone": float(cone),
            "pull": float(pull),
            "torque": float(torque),
            "plan_given_up": float(1.0 - one.kept[:, i].mean()),
            "peak_nm": peak_torque(one, name),
        }
        if name == CONES:
            row["excess_over_pinv"] = excess(one, PINV)
            row["excess_over_weighted"] = excess(one, PINV_W)
            row["feasible"] = int(_feasible(one, PINV).sum())
            row["feasible_weighted"] = int(_feasible(one, PINV_W).sum())
        rows.append(row)
    return rows


def excess(one: Run, base: str) -> float | None:
    """Largest relative excess of (c)'s power over that of ``base`` where that violates nothing."""
    where = _feasible(one, base)
    if not where.any():
        return None
    a, c = (one.power[where, ALLOCATIONS.index(name)] for name in (base, CONES))
    return float((c / a - 1.0).max())


def _feasible(one: Run, base: str) -> np.ndarray:
    return one.strict[:, ALLOCATIONS.index(base)] & one.kept[:, ALLOCATIONS.index(CONES)]


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table that also reads well as text."""
    body = [HEAD]
    for row in rows:
        name, tail = "", ""
        if row["allocation"] == PINV:
            name = f"{row['run']}, mu {row['friction']:g}"
            if row["limit_nm"] is not None:
                name += f", {row['limit_nm']:.3g} N·m"
        if row["allocation"] == CONES:
            tail = (
                f"{_excess(row['excess_over_pinv'])} ({row['feasible']}); weighted: "
                f"{_excess(row['excess_over_weighted'])} ({row['feasible_weighted']})"
            )
        power = "-" if row["power_w"] is None else f"{row['power_w']:.3f}"
        body.append(
            (
                name,
                LABELS[row["allocation"]],
                power,
                *(_percent(row[key]) for key in ("cone", "pull", "torque", "plan_given_up")),
                tail,
            )
        )
    widths = [max(len(line[i]) for line in body) for i in range(len(HEAD))]
    body.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in body
    )


def _percent(share: float) -> str:
    return "0" if share == 0.0 else f"{100.0 * share:.2f}"


def _excess(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1e}"


def plot(runs: list[Run], path: Path) -> None:
    """Plot each allocation's power over time, with gaps where it cannot follow the plan.

    A dot marks a period in which it violates a cone or a limit.
    """
    from contact_id_controller.report.figures import draw

    def fill(axes: Any) -> None:
        for axis in axes.ravel()[len(runs) :]:
            axis.set_axis_off()
        for axis, one in zip(axes.ravel(), runs):
            _plot_run(axis, one)
        axes[0, 0].legend(fontsize=8)

    rows = (len(runs) + 1) // 2
    png = draw(11.0, 1.0 + 2.2 * rows, rows, 2, fill)
    write_with(path, lambda file: file.write(png))


def _plot_run(axis: Axes, one: Run) -> None:
    """Loss of each allocation over time; points mark periods in which it violated a limit."""
    time = np.arange(len(one.power)) * one.period_s
    for i, name in enumerate(ALLOCATIONS):
        bad = one.broken[:, i].any(axis=1)
        shown = np.where(one.kept[:, i], one.power[:, i], np.nan)
        axis.plot(time, shown, color=COLORS[name], linewidth=1.0, label=LABELS[name])
        axis.plot(time[bad], one.power[bad, i], ".", color=COLORS[name], markersize=4.0)
    # Impacts would flatten everything else.
    axis.set_ylim(0.0, 1.3 * np.percentile(one.power, 99.0))
    axis.set_title(f"{one.name}, mu {one.friction:g}", fontsize=10)
    axis.set(xlabel="time (s)", ylabel="loss (W)")
