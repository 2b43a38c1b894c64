"""The section of the report about the quadruped's walks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS, GREY, LIMIT
from experiments.papers.blocks import Picture, Section, Table, shown
from experiments.papers.locomotion import CONTROLLERS
from experiments.papers.marks import PRINTED, legend_beside, legend_of_all
from experiments.papers.store import RunResult
from experiments.papers.terrains import BLIND_STEPS, TERRAINS
from experiments.papers.walks import COULOMB, MATCHING, RANDOM, RIGID, chosen, select
from experiments.papers.walks_claims import (
    FORCE_TARGETS,
    NAMES,
    PAPER,
    PAPER_ERROR,
    PAPER_FORCE,
    PAPER_FORCE_N,
    PAPER_TORQUE,
    claims,
    finished,
    outcome,
    outcomes,
)


def report(results: Sequence[RunResult]) -> Section:
    """Tables 3 to 5, figures 14, 16 and 17."""
    blocks: list = [PAPER.text(**BLIND_STEPS)]
    for engine in ("mujoco", "rigid"):
        ours = chosen(results, settings="ours", engine=engine)
        if select(ours):  # which draws seed 0
            blocks.append(_picture(ours, engine))
        if ours:
            blocks.append(_walks(results, engine))
    blocks += [
        _force_picture(results),
        _forces(results),
        PAPER.text("errors", falls=_falls(results)),
        _torque_picture(results),
        _paper_torques(),
        _paths(results),
    ]
    return PAPER.section(blocks, claims(results))


def _falls(results: Sequence[RunResult]) -> str:
    counts = []
    for settings, title in (("papers", "papers' settings"), ("ours", "ours")):
        walked = chosen(results, engine="mujoco", settings=settings)
        runs = [r for r in walked if r.parameters["controller"] in COULOMB]
        fell = sum(not finished(r) for r in runs)
        counts.append(f"{title} {fell} of {len(runs)} walks")
    return ", ".join(counts)


def _over_seeds(runs: Sequence[RunResult], figure: str, factor: float = 1.0):
    """A figure of one run, or mean ± standard deviation over the seeds; None where it is missing."""
    values = [factor * r["figures"][figure] for r in runs if r["figures"][figure] is not None]
    if len(values) < 2:
        return values[0] if values else None
    return f"{shown(float(np.mean(values)))} ± {float(np.std(values, ddof=1)):.2g}"


COMPARED = {
    "mean_joint_position_error_rad": 1.0,
    "mean_joint_velocity_error_rad_s": 1.0,
    "torque_rate_mean_nm_s": 1.0,
    "torque_mean_nm": 1.0,
    "normal_force_error_of_simulated": 100.0,
}
"""Figures that the table of walks shows, and their factors."""


def _walks(results: Sequence[RunResult], engine: str) -> Table:
    rows, commands = [], []
    for terrain, name in itertools.product(TERRAINS, CONTROLLERS):
        wanted = {"terrain": terrain, "controller": name, "engine": engine}
        runs = {
            settings: chosen(results, settings=settings, engine_model="coulomb/lcp", **wanted)
            for settings in ("ours", "papers")
        }
        if not any(runs.values()):
            continue
        paper = PAPER_ERROR.get(terrain, {}).get(name)
        said = "fell" if name in PAPER_ERROR.get(terrain, {}) and paper is None else None
        row = {
            "terrain": TERRAINS[terrain].title,
            "controller": CONTROLLERS[name].title,
            "paper_rad": paper[0] if paper else said,
            "paper_rad_s": paper[1] if paper else said,
        }
        for settings, walked in runs.items():
            row[f"{settings}_outcome"] = outcomes(walked)
            for figure, factor in COMPARED.items():
                row[f"{settings}_{figure}"] = _over_seeds(walked, figure, factor)
        rows.append(row)
        commands.append((runs["ours"] or runs["papers"])[0].description.command())
    return PAPER.table("walks", rows, commands, engine=engine)


def _forces(results: Sequence[RunResult]) -> Table:
    rows, commands = [], []
    for r in chosen(results, settings="papers"):
        terrain, controller = r.parameters["terrain"], r.parameters["controller"]
        figures = r["figures"]
        if figures["normal_force_error_of_simulated"] is None or terrain == RANDOM:
            continue
        # On springs no contact law is simulated.
        law = "springs and dampers" if TERRAINS[terrain].compliant else r.parameters["engine_model"]
        row = {
            **figures,
            "terrain": TERRAINS[terrain].title,
            "controller": CONTROLLERS[controller].title,
            "ground": "MuJoCo" if r.parameters["engine"] == "mujoco" else law,
            "paper_n": PAPER_FORCE_N.get(terrain, {}).get(controller),
            "paper": PAPER_FORCE.get(terrain, {}).get(controller),
            "outcome": outcome(r),
        }
        rows.append(row)
        commands.append(r.description.command())
    return PAPER.table("forces", rows, commands)


def _force_picture(results: Sequence[RunResult]) -> Picture:
    names = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp")

    def fill(axes):
        for axis, terrain in zip(axes[0], RIGID):
            for k, name in enumerate(names):
                for shift, law, colour in (
                    (-0.2, "coulomb/lcp", COLOURS[0]),
                    (0.2, MATCHING.get(name, ""), COLOURS[1]),
                ):
                    wanted = {"terrain": terrain, "engine": "rigid", "settings": "papers"}
                    r = select(results, engine_model=law, **wanted).get(name)
                    if r is None:
                        continue
                    axis.bar(
                        k + shift,
                        max(100.0 * r["figures"]["normal_force_error_of_simulated"], 1e-11),
                        width=0.38,
                        color=colour,
                        hatch=None if finished(r) else "//",
                        edgecolor="white",
                    )
                if name in PAPER_FORCE[terrain]:
                    axis.plot(k, PAPER_FORCE[terrain][name], **PRINTED)
                if name in FORCE_TARGETS:
                    axis.plot(
                        [k - 0.4, k + 0.4],
                        [FORCE_TARGETS[name]] * 2,
                        color=LIMIT,
                        linewidth=1.2,
                    )
            axis.set_yscale("log")
            axis.set_ylim(1e-11, 300.0)
            axis.set_xticks(
                range(len(names)), [CONTROLLERS[name].title for name in names], fontsize=8
            )
            axis.set(title=TERRAINS[terrain].title, ylabel="%")
        last = axes[0, -1]
        last.bar(0, 0, color=COLOURS[0], label="Coulomb LCP simulated")
        last.bar(0, 0, color=COLOURS[1], label="controller's own law")
        last.bar(0, 0, color="white", hatch="//", edgecolor=GREY, label="fell")
        last.plot([], [], **PRINTED, label="paper")
        last.plot([], [], color=LIMIT, linewidth=1.2, label="target")
        legend_beside(last)

    return Picture(
        "forces",
        draw(12.0, 3.8, 1, 2, fill),
        PAPER.phrase("forces"),
    )


def _torque_picture(results: Sequence[RunResult]) -> Picture:
    found = select(results, terrain="rigid_high", engine="mujoco", settings="ours")
    names = [name for name in NAMES if name in found]

    def fill(axes):
        for axis, figure, column, unit in (
            (axes[0, 0], "torque_rate_mean_nm_s", 0, "N·m/s"),
            (axes[0, 1], "torque_mean_nm", 1, "N·m"),
        ):
            for k, name in enumerate(names):
                axis.bar(k, found[name]["figures"][figure], width=0.6, color=COLOURS[0])
                axis.plot(k, PAPER_TORQUE[name][column], **PRINTED)
            axis.set_xticks(
                range(len(names)),
                [CONTROLLERS[name].title for name in names],
                fontsize=7.5,
                rotation=20,
                ha="right",
            )
            axis.set_ylabel(unit)
        axes[0, 0].set_yscale("log")
        axes[0, 0].set_ylim(bottom=10.0)
        axes[0, 0].set_title("Mean |derivative of torque|")
        axes[0, 1].set_title("Mean |torque|")
        axes[0, 1].plot([], [], **PRINTED, label="paper")
        legend_beside(axes[0, 1])

    return Picture(
        "torques",
        draw(12.0, 3.8, 1, 2, fill),
        PAPER.phrase("torques"),
    )


def _paper_torques() -> Table:
    rows = [
        {"controller": CONTROLLERS[name].title, "rate": rate, "torque": torque}
        for name, (rate, torque) in PAPER_TORQUE.items()
    ]
    return PAPER.table("torques", rows)


def _picture(results: Sequence[RunResult], engine: str) -> Picture:
    walked = [name for name in TERRAINS if select(results, terrain=name)]

    def fill(axes):
        for axis, terrain in zip(axes[:, 0], walked):
            for name, r in select(results, terrain=terrain).items():
                colour = COLOURS[list(CONTROLLERS).index(name) % len(COLOURS)]
                series = r["series"]
                time, error = (
                    np.array(series["time_s"]),
                    np.array(series["mean_joint_position_error_rad"]),
                )
                axis.semilogy(
                    time,
                    np.maximum(_smooth(error, time), 1e-5),
                    color=colour,
                    linewidth=1.2,
                    label=CONTROLLERS[name].title,
                )
                paper = PAPER_ERROR.get(terrain, {}).get(name)
                if paper:
                    axis.axhline(paper[0], color=colour, linewidth=0.9, linestyle="--")
            axis.set(title=TERRAINS[terrain].title, ylabel="rad")
        axes[0, 0].plot([], [], color=GREY, linestyle="--", label="paper's mean, same colours")
        legend_of_all(axes[0, 0])
        axes[-1, 0].set_xlabel("time (s)")

    return Picture(
        f"walks_{engine}",
        draw(11.0, 0.6 + 1.9 * len(walked), len(walked), 1, fill),
        PAPER.phrase("walks", engine=engine),
    )


def _smooth(values: np.ndarray, time: np.ndarray) -> np.ndarray:
    step = time[1] - time[0] if len(time) > 1 else 1.0
    window = max(1, round(0.3 / step))
    if len(values) <= window:
        return values
    padded = np.pad(values, (window // 2, window - 1 - window // 2), mode="edge")
    return np.convolve(padded, np.ones(window) / window, mode="valid")


def _paths(results: Sequence[RunResult]) -> Picture:
    def fill(axes):
        for axis, terrain in zip(axes[0], RIGID):
            ours = select(results, terrain=terrain, engine="mujoco", settings="ours")
            for name, r in ours.items():
                path = np.array(r["series"]["com_path_m"]).reshape(-1, 3)
                colour = COLOURS[list(CONTROLLERS).index(name) % len(COLOURS)]
                axis.plot(
                    path[:, 1],
                    path[:, 2],
                    color=colour,
                    linewidth=1.1,
                    label=CONTROLLERS[name].title,
                )
                ways = np.array(r["series"]["waypoints_m"])
                axis.plot(
                    ways[:, 0], ways[:, 1], "o", color=GREY, markersize=8, markerfacecolor="none"
                )
            axis.set_aspect("equal", adjustable="datalim")
            axis.set(title=TERRAINS[terrain].title, xlabel="x (m)", ylabel="y (m)")
        legend_beside(axes[0, 1])

    return Picture(
        "paths",
        draw(12.0, 4.4, 1, 2, fill),
        PAPER.phrase("paths"),
    )
