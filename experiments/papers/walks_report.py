"""The section of the report about the quadruped's walks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.report.figures import PAPER, draw, legend_beside, legend_of_all
from contact_id_controller.report.style import COLOURS, GREY, LIMIT
from experiments.papers.blocks import Picture, Section, Table, Text, shown
from experiments.papers.locomotion import CONTROLLERS
from experiments.papers.store import RunResult
from experiments.papers.terrains import BLIND_STEPS, TERRAINS
from experiments.papers.walks import COULOMB, MATCHING, RANDOM, RIGID, select
from experiments.papers.walks_claims import (
    FORCE_TARGETS,
    NAMES,
    PAPER_ERROR,
    PAPER_FORCE,
    PAPER_FORCE_N,
    PAPER_TORQUE,
    claims,
    outcome,
    outcomes,
)


def report(results: Sequence[RunResult]) -> Section:
    """Tables 3 to 5, figures 14, 16 and 17."""
    blocks: list = [
        Text(
            "The paper's quadruped trots among its way-points on a rigid plane with high and with low "
            "friction, on a plane that yields 1 mm under its weight, and on rigid bumps of up to 3 cm "
            "with random friction (several seeds: mean ± standard deviation over all of them). There "
            "the planner, which does not see the bumps, steps "
            f"{1e3 * BLIND_STEPS['step_height_m']:g} mm high instead of the paper's 15 mm. Engines: "
            "MuJoCo, and our rigid time stepper (compliant ground: spring and damper). Ours: contact "
            "velocities fade over 50 ms, velocity product term on. Papers' settings: gone within one "
            "period, no such term. PID has the paper's balance stabiliser, its damping of roll and "
            "pitch a tenth of the paper's, which steps of 1 ms do not bear. A walk that ends in a fall "
            "counts up to there."
        )
    ]
    for engine in ("mujoco", "rigid"):
        ours = [
            r
            for r in results
            if r.parameters["settings"] == "ours" and r.parameters["engine"] == engine
        ]
        if select(ours):  # which draws seed 0
            blocks.append(_picture(ours, engine))
        if ours:
            blocks.append(_walks(results, engine))
    blocks += [
        _force_picture(results),
        _forces(results),
        Text(
            "In the rigid engine with the papers' settings the controller solves the simulator's own "
            "problem; torque that a limit withholds, and two contact laws that differ, remain as causes "
            "of error. MuJoCo's contacts are soft: they take several periods to take up a load that "
            "the controller predicts at once, so the error comes with each landing, and its median is "
            "to be read beside its mean. Contact that must stop within one period asks such ground for "
            "more than it returns. Falls of Coulomb's controllers in MuJoCo: "
            + _falls(results)
            + "."
        ),
        _torque_picture(results),
        _paper_torques(),
        _paths(results),
    ]
    return Section(
        "Walking (first paper, tables 3 to 5, figures 14 to 17)", blocks, claims(results)
    )


def _falls(results: Sequence[RunResult]) -> str:
    counts = []
    for settings, title in (("papers", "papers' settings"), ("ours", "ours")):
        runs = [
            r
            for r in results
            if r.parameters["controller"] in COULOMB
            and (r.parameters["engine"], r.parameters["settings"]) == ("mujoco", settings)
        ]
        fell = sum(not r["figures"]["finished"] for r in runs)
        counts.append(f"{title} {fell} of {len(runs)} walks")
    return ", ".join(counts)


def _over_seeds(runs: Sequence[RunResult], figure: str, factor: float = 1.0):
    """A figure of one run, or mean ± standard deviation over the seeds; None where it is missing."""
    values = [factor * r["figures"][figure] for r in runs if r["figures"][figure] is not None]
    if len(values) < 2:
        return values[0] if values else None
    return f"{shown(float(np.mean(values)))} ± {float(np.std(values, ddof=1)):.2g}"


def _walks(results: Sequence[RunResult], engine: str) -> Table:
    rows, commands = [], []
    for terrain in TERRAINS:
        for name in CONTROLLERS:
            ours, papers = (
                [
                    r
                    for r in results
                    if (r.parameters["terrain"], r.parameters["controller"]) == (terrain, name)
                    and (r.parameters["engine"], r.parameters["settings"]) == (engine, settings)
                    and r.parameters["engine_model"] == "coulomb/lcp"
                ]
                for settings in ("ours", "papers")
            )
            if not ours and not papers:
                continue
            paper = PAPER_ERROR.get(terrain, {}).get(name)
            said = "fell" if name in PAPER_ERROR.get(terrain, {}) and paper is None else None
            pairs = [
                _over_seeds(runs, figure, factor)
                for figure, factor in (
                    ("mean_joint_position_error_rad", 1.0),
                    ("mean_joint_velocity_error_rad_s", 1.0),
                    ("torque_rate_mean_nm_s", 1.0),
                    ("normal_force_error_of_simulated", 100.0),
                )
                for runs in (ours, papers)
            ]
            rows.append(
                (
                    TERRAINS[terrain].title,
                    CONTROLLERS[name].title,
                    *pairs[:2],
                    paper[0] if paper else said,
                    *pairs[2:4],
                    paper[1] if paper else said,
                    *pairs[4:6],
                    _over_seeds(ours, "torque_mean_nm"),
                    *pairs[6:],
                    outcomes(ours),
                    outcomes(papers),
                )
            )
            commands.append((ours or papers)[0].description.command())
    return Table(
        f"Tables 3 and 4, engine {engine}: our settings beside the papers' (P). Means over joints "
        "and time; the command makes the first run with our settings.",
        (
            "terrain",
            "controller",
            "error, rad",
            "P",
            "paper",
            "error, rad/s",
            "P",
            "paper",
            "torque rate, N·m/s",
            "P",
            "torque, N·m",
            "force error, %",
            "P",
            "outcome",
            "P",
        ),
        rows,
        commands,
    )


def _forces(results: Sequence[RunResult]) -> Table:
    rows, commands = [], []
    for r in results:
        p, figures = r.parameters, r["figures"]
        if (
            p["settings"] != "papers"
            or figures["normal_force_error_of_simulated"] is None
            or p["terrain"] == RANDOM
        ):
            continue
        paper_n, paper = (
            table.get(p["terrain"], {}).get(p["controller"])
            for table in (PAPER_FORCE_N, PAPER_FORCE)
        )
        springs = TERRAINS[p["terrain"]].compliant  # on which no contact law is simulated
        ground = (
            "MuJoCo"
            if p["engine"] == "mujoco"
            else "springs and dampers"
            if springs
            else p["engine_model"]
        )
        free = figures["normal_force_error_of_simulated_unsaturated"]
        rows.append(
            (
                TERRAINS[p["terrain"]].title,
                CONTROLLERS[p["controller"]].title,
                ground,
                figures["normal_force_error_n"],
                paper_n,
                100.0 * figures["normal_force_error_of_simulated"],
                None if free is None else 100.0 * free,
                paper,
                figures["normal_force_error_median_n"],
                outcome(r),
            )
        )
        commands.append(r.description.command())
    return Table(
        "Table 5: summed normal forces, predicted against applied; papers' settings, planes. "
        "Relative: to the mean of what was applied; the paper does not say to what.",
        (
            "terrain",
            "controller",
            "simulated ground",
            "mean error, N",
            "paper, N",
            "relative, %",
            "without periods of limited torque, %",
            "paper, %",
            "median error, N",
            "outcome",
        ),
        rows,
        commands,
    )


def _force_picture(results: Sequence[RunResult]) -> Picture:
    names = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp")

    def fill(axes):
        for axis, terrain in zip(axes[0], RIGID):
            for k, name in enumerate(names):
                found = select(
                    results,
                    terrain=terrain,
                    controller=name,
                    engine="rigid",
                    settings="papers",
                    engine_model="coulomb/lcp",
                )
                own = select(
                    results,
                    terrain=terrain,
                    controller=name,
                    engine="rigid",
                    settings="papers",
                    engine_model=MATCHING.get(name, ""),
                )
                for shift, chosen, colour in ((-0.2, found, COLOURS[0]), (0.2, own, COLOURS[1])):
                    if name in chosen:
                        error = 100.0 * chosen[name]["figures"]["normal_force_error_of_simulated"]
                        fell = not chosen[name]["figures"]["finished"]
                        axis.bar(
                            k + shift,
                            max(error, 1e-11),
                            width=0.38,
                            color=colour,
                            hatch="//" if fell else None,
                            edgecolor="white",
                        )
                if name in PAPER_FORCE[terrain]:
                    axis.plot(k, PAPER_FORCE[terrain][name], **PAPER)
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
        last.plot([], [], **PAPER, label="paper")
        last.plot([], [], color=LIMIT, linewidth=1.2, label="target")
        legend_beside(last)

    return Picture(
        "forces",
        draw(12.0, 3.8, 1, 2, fill),
        "Table 5: relative error of the summed normal forces; rigid engine, papers' settings.",
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
                axis.plot(k, PAPER_TORQUE[name][column], **PAPER)
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
        axes[0, 1].plot([], [], **PAPER, label="paper")
        legend_beside(axes[0, 1])

    return Picture(
        "torques",
        draw(12.0, 3.8, 1, 2, fill),
        "Table 4: MuJoCo, rigid plane with high friction, our settings.",
    )


def _paper_torques() -> Table:
    return Table(
        "The paper's table 4 (it does not say for which terrain).",
        ("controller", "torque rate, N·m/s", "torque, N·m"),
        [(CONTROLLERS[name].title, *values) for name, values in PAPER_TORQUE.items()],
    )


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
        f"Figures 14 and 16, engine {engine}: mean position error of all joints (moving "
        "mean over one cycle of the gait).",
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
        "Figure 17: path of the centre of mass, MuJoCo; circles: way-points.",
    )
