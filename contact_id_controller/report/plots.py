"""The plots of one run, as PNG files: planned or predicted values beside measured ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.spatial.transform import Rotation

from contact_id_controller.files import write_with
from contact_id_controller.report.style import (
    BAND,
    COLOURS,
    GREY,
    PREDICTED,
    SHADE,
    SIMULATED,
    plot_style,
)
from contact_id_controller.runs.record import RunRecord

ZOOM_S = 1.5
"""Length of the detail view; about five steps of a trot."""

FEET, CONTACTS = ("foot", "feet"), ("contact", "contacts")
"""Words for what touches, singular and plural: of a floating base, and of a fixed one."""

DOTS_PER_INCH = 130
MOST_POINTS = 3000
SUM_MEAN_S = 0.05
MEAN_S = 0.1
STILL_M = 0.05
"""Half of the least width of a path that is drawn, m."""
MOST_LINES = 8
"""Largest number of joints in one plot."""


def save_plots(
    walk: RunRecord, folder: Path, *, weight_n: float, normal: np.ndarray, waypoints: np.ndarray
) -> dict[str, str]:
    """Draw every plot into ``folder``; returns file name -> caption, in reading order.

    Args:
        weight_n: of the robot, N.  normal: of the ground, unit vector (3,), world frame.
        waypoints: of the planner, (w, 2), m; may be empty.
    """
    plots = {}
    one, _ = _touching(walk)
    if walk.foot_names:
        plots["normal_forces.png"] = (
            lambda: plot_normal_forces(walk, weight_n, normal),
            f"Normal force on each {one}: predicted by the controller, which has no force sensor, "
            + (
                "and exerted by the simulated ground. "
                if walk.knows_ground_forces
                else "alone: what the ground exerted was not recorded. "
            )
            + f"Shaded: the {one} counts as touching.",
        )
    plots |= {
        "joint_error.png": (
            lambda: plot_joint_error(walk),
            "Tracking error of the joints: mean over all joints, and the range from the best to "
            f"the worst joint (each a moving mean over {MEAN_S:g} s).",
        ),
        "torque.png": (lambda: plot_torque(walk), "Joint torques that acted on the robot."),
        "solve_time.png": (
            lambda: plot_timing(walk),
            "Computing time of the contact problem alone and of the whole controller step.",
        ),
    }
    if not np.isnan(walk.power_loss_w).all():
        plots["power_loss.png"] = (
            lambda: plot_power(walk),
            "Power that heats the motors, R (torque / Kt)^2 of all joints.",
        )
    if walk.floating_base:
        plots["base_path.png"] = (
            lambda: plot_base_path(walk, waypoints),
            "Path of the base, seen from above.",
        )
        plots["base_motion.png"] = (
            lambda: plot_base_motion(walk),
            "Height and attitude of the base.",
        )
    return save_figures(plots, folder)


def save_figures(
    plots: Mapping[str, tuple[Callable[[], Figure], str]], folder: Path
) -> dict[str, str]:
    """Draw figures, file name -> (function that makes it, caption); return file name -> caption."""
    for name, (draw, _) in plots.items():
        save_figure(draw, folder / name)
    return {name: caption for name, (_, caption) in plots.items()}


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Draw a figure in the package's style, and write it as PNG."""
    with plot_style():
        write_with(path, FigureCanvasAgg(draw()).print_png)


def _touching(walk: RunRecord) -> tuple[str, str]:
    return FEET if walk.floating_base else CONTACTS


def plot_normal_forces(walk: RunRecord, weight_n: float, normal: np.ndarray) -> Figure:
    """Summed normal force over the run; in detail also that of each contact."""
    predicted, simulated = walk.predicted_forces @ normal, walk.simulated_forces @ normal
    feet, all_of_them = len(walk.foot_names), f"All {_touching(walk)[1]} together"
    figure = _figure(9.0, 3.6 + 1.2 * feet)
    ratios = [1.5, 1.5] + [1.0] * feet
    whole, together, *single = figure.subplots(2 + feet, 1, gridspec_kw={"height_ratios": ratios})
    time = walk.time_s
    window = max(1, round(SUM_MEAN_S / walk.period_s))
    _pair(
        whole,
        *_thin(time, _smooth(predicted.sum(axis=1), window)),
        _thin(time, _smooth(simulated.sum(axis=1), window))[1],
    )
    whole.set_title(f"{all_of_them}, whole run (mean over {1e3 * SUM_MEAN_S:g} ms)")
    handles = [
        Line2D([], [], color=SIMULATED, label="simulated"),
        Line2D([], [], color=PREDICTED, label="predicted"),
        *[Line2D([], [], color=GREY, linestyle="--", label="weight")] * walk.floating_base,
    ]
    _legend_above(whole, 3, handles=handles)
    rows = _zoom(walk)
    _pair(together, time[rows], predicted[rows].sum(axis=1), simulated[rows].sum(axis=1))
    together.set_title(f"{all_of_them}, {ZOOM_S:g} s (every period)")
    for axis in (whole, together):
        if walk.floating_base:  # the mount of an arm carries its weight
            axis.axhline(weight_n, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
        axis.set_ylim(0.0, 1.05 * axis.get_ylim()[1])
    top = 1.08 * max(predicted[rows].max(), simulated[rows].max(), 1.0)
    for foot, axis in enumerate(single):
        axis.fill_between(
            time[rows],
            0.0,
            top,
            where=walk.contact[rows, foot],
            color=SHADE,
            step="post",
            linewidth=0,
        )
        _pair(axis, time[rows], predicted[rows, foot], simulated[rows, foot])
        axis.set(title=walk.foot_names[foot], ylim=(0.0, top))
        axis.label_outer()
    single[-1].set_xlabel("time (s)")
    return figure


def plot_joint_error(walk: RunRecord) -> Figure:
    """Absolute position and velocity error over time: mean and range over the joints."""
    figure = _figure(9.0, 4.6)
    axes = figure.subplots(2, 1, sharex=True)
    rows = (
        (walk.reference_position - walk.position, "Joint position error", "mrad", 1e3),
        (walk.reference_velocity - walk.velocity, "Joint velocity error", "rad/s", 1.0),
    )
    window = max(1, round(MEAN_S / walk.period_s))
    for axis, (error, title, unit, scale) in zip(axes, rows):
        error = scale * np.abs(error)
        time, low = _thin(walk.time_s, _smooth(error.min(axis=1), window))
        _, high = _thin(walk.time_s, _smooth(error.max(axis=1), window))
        axis.fill_between(
            time, low, high, color=BAND, alpha=0.6, linewidth=0, label="best to worst joint"
        )
        axis.plot(
            *_thin(walk.time_s, _smooth(error.mean(axis=1), window)),
            color=SIMULATED,
            label="mean over joints",
        )
        axis.axhline(
            error.mean(),
            color=PREDICTED,
            linestyle="--",
            linewidth=1.0,
            label=f"over the run: {error.mean():.3g} {unit}",
        )
        axis.set(
            title=title,
            ylabel=unit,
            ylim=(0.0, 1.1 * max(high.max(), 1e-9)),
            xlim=(walk.time_s[0], walk.time_s[-1]),
        )
        _legend_above(axis, 3)
    axes[-1].set_xlabel("time (s)")
    return figure


def plot_torque(walk: RunRecord) -> Figure:
    """Mean absolute torque over the run, and each joint's torque in detail."""
    joints = len(walk.joint_names)
    per_leg, odd = divmod(joints, max(1, len(walk.foot_names)))
    per_leg = joints if odd or not per_leg else per_leg
    per_leg = -(-per_leg // -(-per_leg // MOST_LINES))
    groups = [range(joints)[start : start + per_leg] for start in range(0, joints, per_leg)]
    figure = _figure(9.0, 1.9 + 1.4 * len(groups))
    whole, *single = figure.subplots(1 + len(groups), 1)
    mean = np.abs(walk.torques).mean(axis=1)
    _plot_whole(whole, walk, mean, mean.mean(), "N·m", "Mean |torque| of all joints, whole run")
    rows = _zoom(walk)
    largest = 1.05 * max(np.abs(walk.torques[rows]).max(), 1e-9)
    for axis, group in zip(single, groups):
        for place, joint in enumerate(group):
            axis.plot(
                walk.time_s[rows],
                walk.torques[rows, joint],
                linewidth=1.2,
                color=COLOURS[place % len(COLOURS)],
                label=walk.joint_names[joint],
            )
        axis.set(
            ylabel="N·m",
            ylim=(-largest, largest),
            xlim=(walk.time_s[rows][0], walk.time_s[rows][-1]),
        )
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
        axis.label_outer()
    single[0].set_title(f"Each joint, {ZOOM_S:g} s (every period)")
    single[-1].set_xlabel("time (s)")
    return figure


def plot_power(walk: RunRecord) -> Figure:
    """Power lost in the motors over the run, and period by period in detail."""
    figure = _figure(9.0, 4.4)
    whole, single = figure.subplots(2, 1)
    loss, mean = np.nan_to_num(walk.power_loss_w), np.nanmean(walk.power_loss_w)
    _plot_whole(whole, walk, loss, mean, "W", "Whole run")
    rows = _zoom(walk)
    single.plot(walk.time_s[rows], walk.power_loss_w[rows], color=SIMULATED, linewidth=1.0)
    single.set(
        title=f"{ZOOM_S:g} s (every period)",
        ylabel="W",
        xlabel="time (s)",
        ylim=(0.0, None),
        xlim=(walk.time_s[rows][0], walk.time_s[rows][-1]),
    )
    return figure


def plot_timing(walk: RunRecord) -> Figure:
    """Histograms of solve time and step time, with median, 99th percentile and the period."""
    figure = _figure(9.0, 3.0)
    axis = figure.subplots()
    rows = ((walk.step_time_s, "whole step", SIMULATED), (walk.solve_time_s, "solve", PREDICTED))
    times = [1e6 * values[values > 0.0] for values, _, _ in rows]
    limits = [values for values in times if len(values)]
    period = 1e6 * walk.period_s
    low = 0.8 * min([values.min() for values in limits] + [period])
    high = 1.25 * max([values.max() for values in limits] + [period])
    bins = np.geomspace(low, high, 90)
    for values, (_, label, colour) in zip(times, rows):
        if not len(values):
            continue
        median, p99 = np.percentile(values, (50, 99))
        axis.hist(
            values,
            bins=bins.tolist(),
            color=colour,
            alpha=0.55,
            label=f"{label}: median {median:.0f} µs, 99 % below {p99:.0f} µs",
        )
        axis.axvline(median, color=colour, linewidth=1.2)
        axis.axvline(p99, color=colour, linewidth=1.2, linestyle=":")
    axis.axvline(period, color=GREY, linestyle="--", label=f"period: {period:.0f} µs")
    axis.set(
        xscale="log", yscale="log", xlabel="time (µs)", ylabel="number of periods", xlim=(low, high)
    )
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)
    return figure


def plot_base_path(walk: RunRecord, waypoints: np.ndarray) -> Figure:
    """Horizontal path of the base, coloured by time, with the way-points in order."""
    figure = _figure(6.2, 5.6)
    axis = figure.subplots()
    stride = max(1, len(walk) // 2000)
    path, time = walk.q[::stride, :2], walk.time_s[::stride]
    lines = LineCollection(
        list(np.stack([path[:-1], path[1:]], axis=1)),
        array=time[:-1],
        cmap="viridis",
        linewidths=2.2,
    )
    axis.add_collection(lines)
    for number, point in enumerate(waypoints):
        axis.plot(
            *point,
            marker="o",
            markersize=15,
            color="none",
            markeredgecolor=PREDICTED,
            markeredgewidth=1.4,
        )
        axis.annotate(
            str(number + 1),
            point,
            color=PREDICTED,
            fontsize=8.5,
            ha="center",
            va="center",
            zorder=5,
        )
    axis.plot(*path[0], marker="s", color=SIMULATED, markersize=6, label="start", linestyle="none")
    axis.plot(*path[-1], marker="X", color=SIMULATED, markersize=8, label="end", linestyle="none")
    if len(waypoints):
        axis.plot(
            [],
            [],
            marker="o",
            color="none",
            markeredgecolor=PREDICTED,
            markersize=9,
            linestyle="none",
            label="way-points, in order",
        )
    axis.update_datalim([path[0] - STILL_M, path[0] + STILL_M])
    axis.margins(0.12)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set(xlabel="x (m)", ylabel="y (m)")
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2)
    figure.colorbar(lines, ax=axis, label="time (s)", shrink=0.8, pad=0.02)
    return figure


def plot_base_motion(walk: RunRecord) -> Figure:
    """Height of the base, and roll, pitch and yaw."""
    figure = _figure(9.0, 4.2)
    axes = figure.subplots(2, 1, sharex=True)
    axes[0].plot(*_thin(walk.time_s, 1e3 * walk.q[:, 2]), color=SIMULATED)
    axes[0].set(title="Height of the base", ylabel="mm", xlim=(walk.time_s[0], walk.time_s[-1]))
    angles = Rotation.from_quat(walk.q[:, 3:7]).as_euler("xyz", degrees=True)
    angles[:, 2] = np.unwrap(angles[:, 2], period=360.0)
    for column, (label, colour) in enumerate(zip(("roll", "pitch", "yaw"), COLOURS)):
        axes[1].plot(*_thin(walk.time_s, angles[:, column]), color=colour, label=label)
    axes[1].set(title="Attitude of the base", ylabel="degrees", xlabel="time (s)")
    _widen(axes[0], 10.0)
    _widen(axes[1], 2.0)
    _legend_above(axes[1], 3)
    return figure


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")


def _plot_whole(
    axis: Axes, walk: RunRecord, values: np.ndarray, mean: float, unit: str, title: str
) -> None:
    """Draw a quantity over the whole run, smoothed, and its mean over the run."""
    window = max(1, round(MEAN_S / walk.period_s))
    time, values = _thin(walk.time_s, _smooth(values, window))
    axis.plot(time, values, color=SIMULATED)
    label = f"over the run: {mean:.3g} {unit}"
    line = axis.axhline(mean, color=PREDICTED, linestyle="--", linewidth=1.0, label=label)
    axis.set(
        title=f"{title} (mean over {MEAN_S:g} s)",
        ylabel=unit,
        ylim=(0.0, 1.1 * max(values.max(), 1e-9)),
        xlim=(time[0], time[-1]),
    )
    _legend_above(axis, 1, handles=[line])


def _pair(axis: Axes, time: np.ndarray, predicted: np.ndarray, simulated: np.ndarray) -> None:
    """Draw a predicted force thinly over the simulated one."""
    axis.plot(time, simulated, color=SIMULATED, linewidth=1.9)
    axis.plot(time, predicted, color=PREDICTED, linewidth=1.1)
    axis.set(ylabel="N", xlim=(time[0], time[-1]))


def _zoom(walk: RunRecord) -> slice:
    """Rows of the detail view: the middle of the run, or around the first contact if nothing touches there."""
    length = min(len(walk), max(2, round(ZOOM_S / walk.period_s)))
    start = (len(walk) - length) // 2
    touches = np.asarray(walk.contact.any(axis=1))
    if touches.any() and not touches[start : start + length].any():
        start = min(max(0, int(touches.argmax()) - length // 4), len(walk) - length)
    return slice(start, start + length)


def _smooth(values: np.ndarray, window: int) -> np.ndarray:
    """Centred moving mean over ``window`` rows; shorter at the ends."""
    kernel = np.ones(min(window, len(values)))
    return np.convolve(values, kernel, "same") / np.convolve(np.ones_like(values), kernel, "same")


def _thin(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every k-th row, so that a long run does not make a slow, blotted plot."""
    stride = max(1, len(time) // MOST_POINTS)
    return time[::stride], values[::stride]


def _widen(axis: Axes, least: float) -> None:
    """Widen the vertical range to at least ``least``, so that stillness looks still."""
    low, high = axis.get_ylim()
    if high - low < least:
        axis.set_ylim(0.5 * (low + high - least), 0.5 * (low + high + least))


def _legend_above(axis: Axes, columns: int, **handles: Any) -> None:
    """Add a legend above the axis, on its right."""
    corner: dict[str, Any] = {
        "loc": "lower right",
        "bbox_to_anchor": (1.0, 0.99),
        "borderaxespad": 0.2,
    }
    axis.legend(ncols=columns, **corner, **handles)
