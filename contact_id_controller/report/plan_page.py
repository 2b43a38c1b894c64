"""The page of a kinodynamic plan: footprints, centroidal and whole-body plan in each pass, forces, timing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from contact_id_controller.files import write_arrays, write_json, write_text
from contact_id_controller.planning.kinodynamic import MotionPlan
from contact_id_controller.report.animation import FRAMES_PER_SECOND, HEIGHT, WIDTH, save_gif
from contact_id_controller.report.plots import save_figures
from contact_id_controller.report.stick_figure import draw_stick_figure
from contact_id_controller.report.style import COLOURS, GREY, LIMIT, SHADE
from contact_id_controller.report.templating import describe_origin, render
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.computer import describe_machine, installed_versions

PLAN, PAGE, SUMMARY, ANIMATION = "plan.npz", "plan.html", "summary.json", "plan.gif"
AXES = ("x", "y", "z")


def write_plan(
    plan: MotionPlan,
    robot: RobotModel,
    folder: Path,
    *,
    feet: Sequence[Any],
    title: str,
    command: str,
    times: Sequence[tuple[int, float]] = (),
    execution: dict[str, Any] | None = None,
    pictures: dict[str, str] | None = None,
) -> Path:
    """Write the plan, its figures and its page into ``folder``; return the page's path.

    Args:
        feet: the contacts, ``frame`` and ``center`` (m, in the frame) each.
        times: number of intervals and planning time, s, of momentum plans of the same footholds.
        execution: figures of the plan's execution, name -> value.
        pictures: further files in the folder, name -> caption.
    """
    write_arrays(folder / PLAN, arrays_of(plan, robot))
    captions = {ANIMATION: save_animation(plan, robot, feet, folder / ANIMATION)}
    captions |= save_plots(plan, robot, folder, times)
    summary = summary_of(plan, robot, execution or {})
    write_json(folder / SUMMARY, summary)
    page = render(
        "plan.html",
        kind="walk",
        title=title,
        passes=[each.line() for each in plan.passes],
        figures=summary["figures"],
        files={"plan": PLAN, "summary": SUMMARY},
        plots=[*(pictures or {}).items(), *captions.items()],
        command=command,
        origin=describe_origin(summary),
    )
    write_text(folder / PAGE, page)
    return folder / PAGE


def arrays_of(plan: MotionPlan, robot: RobotModel) -> dict[str, Any]:
    """The arrays of ``plan.npz``: SI units, world frame; knots and finer samples have times of their own."""
    momentum, fine, contacts = plan.momentum, plan.fine, plan.momentum.problem.contacts
    return {
        "joint_names": np.array(robot.joint_names),
        "feet": np.array(plan.contacts.frames),
        "times_s": fine.times_s,
        "q": fine.configurations,
        "v": fine.velocities,
        "torque_times_s": plan.torques.times_s,
        "torques": plan.torques.torques,
        "phase_times_s": plan.contacts.times_s,
        "stance": plan.contacts.stance,
        "knots_s": momentum.times_s,
        "com": momentum.com,
        "momentum": momentum.momentum,
        "angular_momentum": momentum.angular_momentum,
        "corner_foot": contacts.sole_of_corner,
        "corners": contacts.points,
        "forces": momentum.forces,
    }


def summary_of(plan: MotionPlan, robot: RobotModel, execution: dict[str, Any]) -> dict[str, Any]:
    """Figures of the plan and of its execution, with units and the machine."""
    last, residuals = plan.passes[-1], plan.motion.residuals()
    used = np.abs(plan.torques.torques) / robot.effort_limits
    speeds = np.abs(plan.fine.velocities[:, robot.actuated]) / robot.velocity_limits
    figures = {
        "intervals": (plan.momentum.problem.knots, "", "between knots of the forces' plan"),
        "duration_s": (plan.contact_plan.duration_s, "s", "of the motion"),
        "planning_s": (plan.seconds, "s", "that planning took"),
        "com_apart_m": (last.com, "m", "CoM of forces and of whole body, largest at the knots"),
        "momentum_apart": (last.momentum, "kg m/s", "their linear momenta"),
        "angular_apart": (last.angular_momentum, "kg m2/s", "their angular momenta"),
        "standing_m": (residuals["standing_position"], "m", "standing feet from their place"),
        "torque_share": (float(used.max()), "", "largest part of a torque limit that is used"),
        "speed_share": (float(speeds.max()), "", "largest part of a speed limit that is used"),
    }
    figures.update(execution)
    return {
        "figures": {
            name: {"value": value, "unit": unit, "meaning": meaning}
            for name, (value, unit, meaning) in figures.items()
        },
        "machine": describe_machine(),
        "versions": installed_versions(),
    }


def save_plots(
    plan: MotionPlan, robot: RobotModel, folder: Path, times: Sequence[tuple[int, float]]
) -> dict[str, str]:
    """Draw every plot into ``folder``; returns file name -> caption, in reading order."""
    plots = {
        "footprints.png": (
            lambda: plot_footprints(plan),
            "Seen from above: where the feet stand, the way of the centre of mass, and the centre "
            "of pressure of all feet together, which never leaves their hull.",
        ),
        "passes.png": (
            lambda: plot_passes(plan),
            "Centre of mass and angular momentum of both plans after each pass: dashed, of the "
            "forces; solid, of the whole body.",
        ),
        "forces.png": (lambda: plot_forces(plan), "Planned normal force on each foot."),
        "torques.png": (
            lambda: plot_torques(plan, robot),
            "Part of its torque limit that each joint uses.",
        ),
    }
    if times:
        plots["time.png"] = (
            lambda: plot_times(times),
            "Time of the forces' plan against its number of intervals, the same footholds.",
        )
    return save_figures(plots, folder)


def save_animation(plan: MotionPlan, robot: RobotModel, feet: Sequence[Any], path: Path) -> str:
    """Write the planned motion as a stick figure with its forces; return the caption."""
    begin_s, duration_s = plan.joints.start_s, plan.contact_plan.duration_s
    joints, base, forces = plan.joints, plan.base, plan.forces
    times = (begin_s or 0.0) + np.arange(0.0, duration_s, 1.0 / FRAMES_PER_SECOND)
    rows = np.empty((len(times), robot.nq))
    shares = np.empty((len(times), len(feet), 3))
    names = np.array(forces.frames)
    counts = Counter(foot.frame for foot in feet)
    for row, time_s in enumerate(times):
        place, held = base.sample(time_s), forces.sample(time_s)
        rows[row] = robot.configuration(
            [*place.position, *place.quaternion_xyzw], joints.sample(time_s).position
        )
        for column, foot in enumerate(feet):
            shares[row, column] = held[names == foot.frame].sum(axis=0) / counts[foot.frame]
    pictures = draw_stick_figure(
        robot, feet, rows, np.zeros_like(shares), shares, stride=1, width=WIDTH, height=HEIGHT
    )
    save_gif([Image.fromarray(picture) for picture in pictures], path)
    return "The planned motion as a stick figure; arrows: planned forces of the feet, each shared by its corners."


def plot_footprints(plan: MotionPlan) -> Figure:
    """Soles, CoM and CoP in the ground plane."""
    figure = Figure(figsize=(9.0, 4.5), layout="constrained")
    axis = figure.subplots()
    contact_plan, momentum = plan.contact_plan, plan.momentum
    for colour, sole in zip(COLOURS, contact_plan.soles):
        x, y = (half or 0.004 for half in sole.half_size_m)
        outline = np.array([[x, y, 0], [x, -y, 0], [-x, -y, 0], [-x, y, 0], [x, y, 0]])
        outline += sole.center_m
        label = sole.frame
        for phase in contact_plan.phases:
            foothold = phase.foothold_of(sole.frame)
            if foothold is not None:
                drawn = foothold.position + outline @ foothold.rotation.T
                axis.plot(*drawn[:, :2].T, color=colour, linewidth=1.2, label=label)
                label = ""
    axis.plot(*momentum.com[:, :2].T, color=GREY, label="centre of mass")
    pressure = _centres_of_pressure(plan)
    axis.plot(*pressure[:, :2].T, ".", color=LIMIT, markersize=3, label="centre of pressure")
    axis.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=4)
    return figure


def plot_passes(plan: MotionPlan) -> Figure:
    """CoM and angular momentum of both plans, one colour per pass."""
    figure = Figure(figsize=(9.0, 8.0), layout="constrained")
    axes = figure.subplots(3, 2, sharex=True)
    count = len(plan.passes)
    for number, each in enumerate(plan.passes, 1):
        times = each.motion.problem.times_s
        pairs = (
            (each.forces.com, each.motion.com, times),
            (each.middle_momentum[1:], each.motion.angular_momentum[1:], _middles(times)),
        )
        for column, (of_forces, of_motion, at) in enumerate(pairs):
            for row in range(3):
                axis, colour = axes[row, column], COLOURS[(number - 1) % len(COLOURS)]
                label = f"pass {number}" if count > 1 else "whole body"
                axis.plot(at, of_motion[:, row], color=colour, linewidth=1.2, label=label)
                axis.plot(at, of_forces[:, row], "--", color=colour, linewidth=1.0)
    for row, name in enumerate(AXES):
        axes[row, 0].set_title(f"CoM {name} (m)")
        axes[row, 1].set_title(f"angular momentum {name} (kg m2/s)")
    for axis in axes[-1]:
        axis.set_xlabel("time (s)")
    axes[0, 0].legend(loc="best")
    return figure


def plot_forces(plan: MotionPlan) -> Figure:
    """Normal force of each foot, constant between knots."""
    momentum = plan.momentum
    contacts, soles = momentum.problem.contacts, plan.contact_plan.soles
    normal, times = momentum.local_forces()[..., 2], momentum.times_s
    figure = Figure(figsize=(9.0, 1.2 + 1.3 * len(soles)), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(soles), 1, sharex=True, sharey=True))
    for index, (axis, sole) in enumerate(zip(axes, soles)):
        own = contacts.sole_of_corner == index
        force, stands = normal[:, own].sum(axis=1), contacts.standing[:, own].any(axis=1)
        top = 1.1 * momentum.problem.weight_n
        axis.fill_between(times[:-1], 0.0, top, where=stands, color=SHADE, step="post", linewidth=0)
        axis.step(times[:-1], force, where="post", color=COLOURS[index % len(COLOURS)])
        axis.axhline(momentum.problem.weight_n, color=GREY, linestyle="--", linewidth=1.0)
        axis.set_title(f"{sole.frame} (N); dashed: the robot's weight")
    axes[-1].set_xlabel("time (s)")
    return figure


def plot_torques(plan: MotionPlan, robot: RobotModel) -> Figure:
    """Torques relative to their limits; the five closest to them are named."""
    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    axis = figure.subplots()
    shares = plan.torques.torques / robot.effort_limits
    order = np.argsort(-np.abs(shares).max(axis=0))
    axis.plot(plan.torques.times_s, shares[:, order[5:]], color=GREY, linewidth=0.5)
    for colour, joint in zip(COLOURS, order[:5]):
        name = robot.joint_names[joint]
        axis.plot(plan.torques.times_s, shares[:, joint], color=colour, label=name)
    for limit in (-1.0, 1.0):
        axis.axhline(limit, color=LIMIT, linestyle="--", linewidth=1.0)
    axis.set(xlabel="time (s)", ylabel="torque / limit")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncol=3)
    return figure


def plot_times(times: Sequence[tuple[int, float]]) -> Figure:
    """Planning time, ms, over the number of intervals, and a line through the last point."""
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axis = figure.subplots()
    intervals, seconds = np.array(times, dtype=float).T
    axis.plot(intervals, 1e3 * seconds, "o-", color=COLOURS[0], label="measured")
    slope = seconds[-1] / intervals[-1]
    axis.plot(intervals, 1e3 * slope * intervals, "--", color=GREY, label="in proportion")
    axis.set(xlabel="intervals T", ylabel="ms", xlim=(0, None), ylim=(0, None))
    axis.legend(loc="best")
    return figure


def _centres_of_pressure(plan: MotionPlan) -> np.ndarray:
    """Centre of pressure of all feet together, (T, 3) m; only where forces push on the ground."""
    momentum = plan.momentum
    normal = momentum.local_forces()[..., 2]
    points = momentum.problem.contacts.points
    total = normal.sum(axis=1)
    kept = total > 1e-6 * momentum.problem.weight_n
    return np.einsum("tn,tni->ti", normal[kept], points[kept]) / total[kept, None]


def _middles(times: np.ndarray) -> np.ndarray:
    return 0.5 * (times[1:] + times[:-1])
