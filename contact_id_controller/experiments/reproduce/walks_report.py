"""The section of the report about the quadruped's walks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from contact_id_controller.experiments.locomotion import CONTROLLERS
from contact_id_controller.experiments.reproduce.blocks import (
    BETTERED, NOT_REPRODUCED, REPRODUCED, Claim, Picture, Section, Table, Text,
    shown,
)
from contact_id_controller.experiments.reproduce.figures import (
    COLOURS, GREY, MORE_COLOURS, PAPER, draw, legend_beside, legend_of_all,
)
from contact_id_controller.experiments.reproduce.runs import RunResult
from contact_id_controller.experiments.reproduce.walks import (
    COULOMB, MATCHING, NAME, RANDOM, RIGID, select,
)
from contact_id_controller.experiments.terrains import BLIND_STEPS, TERRAINS

NAMES = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp", "pid", "sensed_1", "sensed_2")
"""Controllers in the order of the paper's tables."""


def _paper(*rows):
    return dict(zip(NAMES, rows))


PAPER_ERROR = {
    "rigid_low": _paper((0.0310, 1.9425), (0.0483, 2.6295), (0.0239, 1.8386), None,
                        (0.0895, 1.5569), (0.0325, 1.7952), (0.0328, 1.7830)),
    "rigid_high": _paper((0.0486, 2.2596), (0.0654, 2.5737), (0.0259, 1.8784), (0.0260, 1.8950),
                         (0.0916, 1.4653), (0.1317, 2.5585), (0.1316, 2.5608)),
    "compliant_low": _paper((0.0217, 2.0365), None, (0.0219, 2.0786), None, (0.0850, 1.5845),
                            (0.0265, 1.8858), (0.0267, 1.8742)),
    "compliant_high": _paper((0.0342, 2.9360), (0.0446, 3.9779), (0.0226, 2.1243), None,
                             (0.0850, 1.5845), (0.1270, 4.4377), (0.1270, 4.2061)),
}
"""Table 3: rad, rad/s; None: fell."""

PAPER_TORQUE = _paper((52.5718, 0.2016), (245.5117, 0.4239), (677.9693, 0.8351),
                      (351.1803, 0.4055), (100.1571, 0.3413), (974.3312, 0.9918),
                      (17528.0, 2.7416))
"""Table 4: N·m/s, N·m."""

PAPER_FORCE = {
    "rigid_low": dict(qp_mu=12.53, qp_inf=22.26, lcp_mu=1.94),
    "rigid_high": dict(qp_mu=27.48, qp_inf=25.26, lcp_mu=1.55, no_slip_lcp=1.16),
    "compliant_low": dict(qp_mu=17.12, lcp_mu=6.37),
    "compliant_high": dict(qp_mu=30.86, qp_inf=30.66, lcp_mu=24.00),
}
"""Table 5: relative error of the summed normal forces, %."""

PAPER_FORCE_N = {
    "rigid_low": dict(qp_mu=3.8009, qp_inf=8.4567, lcp_mu=0.9371),
    "rigid_high": dict(qp_mu=13.8457, qp_inf=12.4153, lcp_mu=1.2768, no_slip_lcp=0.3572),
    "compliant_low": dict(qp_mu=7.8260, lcp_mu=4.6385),
    "compliant_high": dict(qp_mu=14.9225, qp_inf=15.1897, lcp_mu=12.4896),
}
"""Table 5: absolute error, N. The paper does not say what its relative one is relative to."""

FORCE_TARGETS = {"lcp_mu": 0.1, "no_slip_lcp": 0.1, "qp_mu": 3.0}
"""Ours must not exceed these, %, in the rigid engine with the papers' settings."""

HEIGHT_MAP_SAVED = 0.19
"""Section 8.3: part of the PID controller's tracking error that predicted forces save."""

PLANES = ("rigid_high", "rigid_low", "compliant_high", "compliant_low")


def report(results: Sequence[RunResult]) -> Section:
    """Tables 3 to 5, figures 14, 16 and 17."""
    blocks: list = [Text(
        "The paper's quadruped trots among its way-points on a rigid plane with high and with low "
        "friction, on a plane that yields 1 mm under its weight, and on rigid bumps of up to 3 cm "
        "with random friction (several seeds: mean ± standard deviation over all of them). There "
        "the planner, which does not see the bumps, steps "
        f"{1e3 * BLIND_STEPS['step_height_m']:g} mm high instead of the paper's 15 mm. Engines: "
        "MuJoCo, and our rigid time stepper (compliant ground: spring and damper). Ours: contact "
        "velocities fade over 50 ms, velocity product term on. Papers' settings: gone within one "
        "period, no such term. PID has the paper's balance stabiliser, its damping of roll and "
        "pitch a tenth of the paper's, which steps of 1 ms do not bear. A walk that ends in a fall "
        "counts up to there.")]
    for engine in ("mujoco", "rigid"):
        ours = [r for r in results if r.parameters["settings"] == "ours"
                and r.parameters["engine"] == engine]
        if select(ours):  # which draws seed 0
            blocks.append(_picture(ours, engine))
        if ours:
            blocks.append(_walks(results, engine))
    blocks += [_force_picture(results), _forces(results), Text(
        "In the rigid engine with the papers' settings the controller solves the simulator's own "
        "problem; torque that a limit withholds, and two contact laws that differ, remain as causes "
        "of error. MuJoCo's contacts are soft: they take several periods to take up a load that "
        "the controller predicts at once, so the error comes with each landing, and its median is "
        "to be read beside its mean. Contact that must stop within one period asks such ground for "
        "more than it returns. Falls of Coulomb's controllers in MuJoCo: " + _falls(results) + "."),
        _torque_picture(results), _paper_torques(), _paths(results)]
    return Section("Walking (first paper, tables 3 to 5, figures 14 to 17)", blocks,
                   _claims(results))


def _falls(results: Sequence[RunResult]) -> str:
    counts = []
    for settings, title in (("papers", "papers' settings"), ("ours", "ours")):
        runs = [r for r in results if r.parameters["controller"] in COULOMB
                and (r.parameters["engine"], r.parameters["settings"]) == ("mujoco", settings)]
        fell = sum(not r["figures"]["finished"] for r in runs)
        counts.append(f"{title} {fell} of {len(runs)} walks")
    return ", ".join(counts)


def _outcome(r: RunResult) -> str:
    figures = r["figures"]
    if not figures["finished"]:
        return f"fell at {figures['fell_s']:.2f} s"
    # Whoever stands still does not fall either.
    return f"stood, walked {figures['distance_m']:.2g} m"


def _outcomes(runs: Sequence[RunResult]) -> str | None:
    if len(runs) < 2:
        return _outcome(runs[0]) if runs else None
    stood = [r["figures"]["distance_m"] for r in runs if r["figures"]["finished"]]
    far = f", walked {np.mean(stood):.2g} m" if stood else ""
    return f"{len(stood)} of {len(runs)} stood{far}"


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
                [r for r in results
                 if (r.parameters["terrain"], r.parameters["controller"]) == (terrain, name)
                 and (r.parameters["engine"], r.parameters["settings"]) == (engine, settings)
                 and r.parameters["engine_model"] == "coulomb/lcp"]
                for settings in ("ours", "papers"))
            if not ours and not papers:
                continue
            paper = PAPER_ERROR.get(terrain, {}).get(name)
            said = "fell" if name in PAPER_ERROR.get(terrain, {}) and paper is None else None
            pairs = [_over_seeds(runs, figure, factor) for figure, factor in (
                ("position_error_rad", 1.0), ("velocity_error_rad_s", 1.0),
                ("torque_rate_nm_s", 1.0), ("force_error_relative", 100.0))
                for runs in (ours, papers)]
            rows.append((TERRAINS[terrain].title, CONTROLLERS[name].title,
                         *pairs[:2], paper[0] if paper else said,
                         *pairs[2:4], paper[1] if paper else said,
                         *pairs[4:6], _over_seeds(ours, "torque_mean_nm"), *pairs[6:],
                         _outcomes(ours), _outcomes(papers)))
            commands.append((ours or papers)[0].description.command())
    return Table(
        f"Tables 3 and 4, engine {engine}: our settings beside the papers' (P). Means over joints "
        "and time; the command makes the first run with our settings.",
        ("terrain", "controller", "error, rad", "P", "paper", "error, rad/s", "P", "paper",
         "torque rate, N·m/s", "P", "torque, N·m", "force error, %", "P", "outcome", "P"),
        rows, commands)


def _forces(results: Sequence[RunResult]) -> Table:
    rows, commands = [], []
    for r in results:
        p, figures = r.parameters, r["figures"]
        if (p["settings"] != "papers" or figures["force_error_relative"] is None
                or p["terrain"] == RANDOM):
            continue
        paper_n, paper = (table.get(p["terrain"], {}).get(p["controller"])
                          for table in (PAPER_FORCE_N, PAPER_FORCE))
        springs = TERRAINS[p["terrain"]].compliant  # on which no contact law is simulated
        ground = ("MuJoCo" if p["engine"] == "mujoco" else
                  "springs and dampers" if springs else p["engine_model"])
        free = figures["force_error_unlimited"]
        rows.append((TERRAINS[p["terrain"]].title, CONTROLLERS[p["controller"]].title,
                     ground, figures["force_error_n"], paper_n,
                     100.0 * figures["force_error_relative"], None if free is None else 100.0 * free,
                     paper, figures["force_error_median_n"], _outcome(r)))
        commands.append(r.description.command())
    return Table(
        "Table 5: summed normal forces, predicted against applied; papers' settings, planes. "
        "Relative: to the mean of what was applied; the paper does not say to what.",
        ("terrain", "controller", "simulated ground", "mean error, N", "paper, N", "relative, %",
         "without periods of limited torque, %", "paper, %", "median error, N", "outcome"),
        rows, commands)


def _force_picture(results: Sequence[RunResult]) -> Picture:
    names = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp")

    def fill(axes):
        for axis, terrain in zip(axes[0], RIGID):
            for k, name in enumerate(names):
                found = select(results, terrain=terrain, controller=name, engine="rigid",
                               settings="papers", engine_model="coulomb/lcp")
                own = select(results, terrain=terrain, controller=name, engine="rigid",
                             settings="papers", engine_model=MATCHING.get(name, ""))
                for shift, chosen, colour in ((-0.2, found, COLOURS[0]), (0.2, own, COLOURS[1])):
                    if name in chosen:
                        error = 100.0 * chosen[name]["figures"]["force_error_relative"]
                        fell = not chosen[name]["figures"]["finished"]
                        axis.bar(k + shift, max(error, 1e-11), width=0.38, color=colour,
                                 hatch="//" if fell else None, edgecolor="white")
                if name in PAPER_FORCE[terrain]:
                    axis.plot(k, PAPER_FORCE[terrain][name], **PAPER)
                if name in FORCE_TARGETS:
                    axis.plot([k - 0.4, k + 0.4], [FORCE_TARGETS[name]] * 2, color="#c92a2a",
                              linewidth=1.2)
            axis.set_yscale("log")
            axis.set_ylim(1e-11, 300.0)
            axis.set_xticks(range(len(names)), [CONTROLLERS[name].title for name in names],
                            fontsize=8)
            axis.set(title=TERRAINS[terrain].title, ylabel="%")
        last = axes[0, -1]
        last.bar(0, 0, color=COLOURS[0], label="Coulomb LCP simulated")
        last.bar(0, 0, color=COLOURS[1], label="controller's own law")
        last.bar(0, 0, color="white", hatch="//", edgecolor=GREY, label="fell")
        last.plot([], [], **PAPER, label="paper")
        last.plot([], [], color="#c92a2a", linewidth=1.2, label="target")
        legend_beside(last)

    return Picture("forces", draw(12.0, 3.8, 1, 2, fill),
                   "Table 5: relative error of the summed normal forces; rigid engine, papers' "
                   "settings.")


def _torque_picture(results: Sequence[RunResult]) -> Picture:
    found = select(results, terrain="rigid_high", engine="mujoco", settings="ours")
    names = [name for name in NAMES if name in found]

    def fill(axes):
        for axis, figure, column, unit in ((axes[0, 0], "torque_rate_nm_s", 0, "N·m/s"),
                                           (axes[0, 1], "torque_mean_nm", 1, "N·m")):
            for k, name in enumerate(names):
                axis.bar(k, found[name]["figures"][figure], width=0.6, color=COLOURS[0])
                axis.plot(k, PAPER_TORQUE[name][column], **PAPER)
            axis.set_xticks(range(len(names)), [CONTROLLERS[name].title for name in names],
                            fontsize=7.5, rotation=20, ha="right")
            axis.set_ylabel(unit)
        axes[0, 0].set_yscale("log")
        axes[0, 0].set_ylim(bottom=10.0)
        axes[0, 0].set_title("Mean |derivative of torque|")
        axes[0, 1].set_title("Mean |torque|")
        axes[0, 1].plot([], [], **PAPER, label="paper")
        legend_beside(axes[0, 1])

    return Picture("torques", draw(12.0, 3.8, 1, 2, fill),
                   "Table 4: MuJoCo, rigid plane with high friction, our settings.")


def _paper_torques() -> Table:
    return Table("The paper's table 4 (it does not say for which terrain).",
                 ("controller", "torque rate, N·m/s", "torque, N·m"),
                 [(CONTROLLERS[name].title, *values) for name, values in PAPER_TORQUE.items()])


def _picture(results: Sequence[RunResult], engine: str) -> Picture:
    walked = [name for name in TERRAINS if select(results, terrain=name)]

    def fill(axes):
        for axis, terrain in zip(axes[:, 0], walked):
            for name, r in select(results, terrain=terrain).items():
                colour = MORE_COLOURS[list(CONTROLLERS).index(name) % len(MORE_COLOURS)]
                series = r["series"]
                time, error = np.array(series["time_s"]), np.array(series["position_error_rad"])
                axis.semilogy(time, np.maximum(_smooth(error, time), 1e-5), color=colour,
                              linewidth=1.2, label=CONTROLLERS[name].title)
                paper = PAPER_ERROR.get(terrain, {}).get(name)
                if paper:
                    axis.axhline(paper[0], color=colour, linewidth=0.9, linestyle="--")
            axis.set(title=TERRAINS[terrain].title, ylabel="rad")
        axes[0, 0].plot([], [], color=GREY, linestyle="--", label="paper's mean, same colours")
        legend_of_all(axes[0, 0])
        axes[-1, 0].set_xlabel("time (s)")

    return Picture(f"walks_{engine}", draw(11.0, 0.6 + 1.9 * len(walked), len(walked), 1, fill),
                   f"Figures 14 and 16, engine {engine}: mean position error of all joints (moving "
                   "mean over one cycle of the gait).")


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
                colour = MORE_COLOURS[list(CONTROLLERS).index(name) % len(MORE_COLOURS)]
                axis.plot(path[:, 1], path[:, 2], color=colour, linewidth=1.1,
                          label=CONTROLLERS[name].title)
                ways = np.array(r["series"]["waypoints_m"])
                axis.plot(ways[:, 0], ways[:, 1], "o", color=GREY, markersize=8,
                          markerfacecolor="none")
            axis.set_aspect("equal", adjustable="datalim")
            axis.set(title=TERRAINS[terrain].title, xlabel="x (m)", ylabel="y (m)")
        legend_beside(axes[0, 1])

    return Picture("paths", draw(12.0, 4.4, 1, 2, fill),
                   "Figure 17: path of the centre of mass, MuJoCo; circles: way-points.")


def _claims(results: Sequence[RunResult]) -> list[Claim]:
    return [*_finishing(results), *_tracking(results), *_height_map(results),
            *_center_of_mass(results), *_smoothness(results), *_prediction(results),
            *_kinetic_energy(results), *_no_slip(results)]


COMMAND = f"contact_id reproduce {NAME}"


def _finishing(results) -> list[Claim]:
    ours = [r for r in results if r.parameters["settings"] == "ours"
            and r.parameters["controller"] in COULOMB]
    if not ours:
        return []
    fell = [r for r in ours if not r["figures"]["finished"]]
    stood = [r for r in ours if r["figures"]["finished"]]
    evidence = [f"{len(stood)} of {len(ours)} walks finished with our settings"]
    if stood:
        shortest = min(stood, key=lambda r: r["figures"]["distance_m"])
        evidence.append(
            f"at least {shortest['figures']['distance_m']:.2g} m in "
            f"{shortest.parameters['duration_s']:g} s ({_place(shortest)})")
    if fell:
        evidence.append("fell " + ", ".join(map(_place, fell)))
    return [Claim(
        "first paper, 8.3", "controllers that model Coulomb friction walk on every surface",
        REPRODUCED if not fell else NOT_REPRODUCED, "; ".join(evidence), COMMAND)]


def _place(r: RunResult) -> str:
    p = r.parameters
    seed = f", seed {p['seed']}" if p["terrain"] == RANDOM else ""
    return f"{p['controller']} on {p['terrain']}, {p['engine']}{seed}"


def _tracking(results) -> list[Claim]:
    claims = []
    for settings, engine, terrain in itertools.product(
            ("ours", "papers"), ("mujoco", "rigid"), PLANES):
        found = select(results, terrain=terrain, engine=engine, settings=settings)
        rivals = [name for name in ("pid", "sensed_1", "sensed_2") if name in found]
        mine = [name for name in ("qp_mu", "lcp_mu") if name in found]
        if not (rivals and mine):
            continue
        error = {name: found[name]["figures"]["position_error_rad"] for name in found}
        # A walk that ended early is no rival: its mean is that of its better part.
        standing = [n for n in rivals if found[n]["figures"]["finished"]]
        better = all(found[n]["figures"]["finished"] for n in mine) and (
            not standing or max(error[n] for n in mine) < min(error[n] for n in standing))
        paper = {name: PAPER_ERROR[terrain][name][0] for name in mine}
        beaten = all(error[n] < paper[n] for n in mine)
        verdict = NOT_REPRODUCED if not better else BETTERED if beaten else REPRODUCED
        of = "our" if settings == "ours" else "the papers'"
        claims.append(Claim(
            "first paper, table 3", f"{TERRAINS[terrain].title}, {engine}, {of} settings: "
            "predicted forces track better than PID and than sensed forces", verdict,
            ", ".join(f"{CONTROLLERS[n].title} {error[n]:.3g} rad"
                      + (f" (paper {paper[n]:g})" if n in paper else "")
                      + ("" if found[n]["figures"]["finished"] else " (fell)")
                      for n in (*mine, *rivals)), COMMAND))
    return claims


def _height_map(results) -> list[Claim]:
    """Section 8.3, figure 16."""
    claims = []
    for engine in ("mujoco", "rigid"):
        runs = {name: [r for r in results if (
            r.parameters["controller"], r.parameters["terrain"], r.parameters["engine"],
            r.parameters["settings"]) == (name, RANDOM, engine, "ours")]
            for name in ("qp_mu", "pid")}
        if not all(runs.values()):
            continue
        error = {name: np.mean([r["figures"]["position_error_rad"] for r in found])
                 for name, found in runs.items()}
        saved = 1.0 - error["qp_mu"] / error["pid"]
        stood = all(r["figures"]["finished"] for r in runs["qp_mu"])
        claims.append(Claim(
            "first paper, 8.3, figure 16", f"{TERRAINS[RANDOM].title}, {engine}: predicted forces "
            f"reduce the tracking error of PID by {100 * HEIGHT_MAP_SAVED:g} %",
            NOT_REPRODUCED if saved <= 0.0 or not stood else
            BETTERED if saved > HEIGHT_MAP_SAVED else REPRODUCED,
            f"by {100.0 * saved:.2g} %: " + ", ".join(
                f"{CONTROLLERS[name].title} {error[name]:.3g} rad, {_outcomes(runs[name])}"
                for name in runs), COMMAND))
    return claims


def _center_of_mass(results) -> list[Claim]:
    """Section 8.4, figure 17."""
    claims = []
    for terrain in RIGID:
        found = select(results, terrain=terrain, engine="mujoco", settings="ours")
        names = [n for n in ("qp_mu", "pid", "sensed_1", "sensed_2") if n in found]
        if "qp_mu" not in names or not {"sensed_1", "sensed_2"} & set(names):
            continue
        off = {n: found[n]["figures"]["com_deviation_m"] for n in names}
        standing = [n for n in names[1:] if n != "pid" and found[n]["figures"]["finished"]]
        better = found["qp_mu"]["figures"]["finished"] and all(
            off["qp_mu"] < off[n] for n in standing)
        claims.append(Claim(
            "first paper, 8.4, figure 17", f"{TERRAINS[terrain].title}, mujoco, our settings: with "
            "sensed forces the centre of mass leaves the lines between the way-points further than "
            "with predicted ones", REPRODUCED if better else NOT_REPRODUCED,
            "mean distance from the line: " + ", ".join(
                f"{CONTROLLERS[n].title} {1e3 * off[n]:.3g} mm ({_outcome(found[n])})"
                for n in names), COMMAND))
    return claims


PAPERS_OWN = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp", "qp_one_stage_mu", "sensed_1", "sensed_2")
"""Inverse dynamics controllers that the first paper knows; the QCQP is of another."""


def _smoothness(results) -> list[Claim]:
    claims, torques = [], []
    paper, mean = PAPER_TORQUE["qp_mu"]
    for engine in ("mujoco", "rigid"):
        listed, mine, worst = [], [], 0.0
        for terrain in PLANES:
            found = select(results, terrain=terrain, engine=engine, settings="ours")
            if "qp_mu" not in found:
                continue
            mine.append(found["qp_mu"]["figures"])
            rates = {name: r["figures"]["torque_rate_nm_s"] for name, r in found.items()
                     if name != "pid" and r["figures"]["finished"]}
            own = [v for n, v in rates.items() if n in PAPERS_OWN]
            # Who falls is not smooth.
            worst = max(worst, rates["qp_mu"] / min(own) if "qp_mu" in rates else np.inf)
            listed.append(f"{TERRAINS[terrain].title}: " + ", ".join(
                f"{CONTROLLERS[n].title} {rate:.3g}" for n, rate in rates.items())
                + ("" if "qp_mu" in rates else " (QP, mu fell)"))
        if not mine:
            continue
        rate = max(figures["torque_rate_nm_s"] for figures in mine)
        torques.append((engine, max(figures["torque_mean_nm"] for figures in mine)))
        claims.append(Claim(
            "first paper, table 4", f"{engine}: QP, mu has the smoothest torques of all inverse "
            f"dynamics controllers ({paper:g} N·m/s)",
            NOT_REPRODUCED if worst > 1.02 else BETTERED if rate < paper else REPRODUCED,
            "N·m/s, of those that walked to the end: " + "; ".join(listed)
            + f"; at most {100.0 * (worst - 1.0):.2g} % above the lowest of the first paper's "
            "controllers (within 2 % counts as equal)", COMMAND))
    if torques:
        claims.append(Claim(
            "first paper, table 4", f"QP, mu: mean torque {mean:g} N·m",
            REPRODUCED if max(t for _, t in torques) <= mean else NOT_REPRODUCED,
            ", ".join(f"{engine} up to {torque:.3g} N·m" for engine, torque in torques)
            + " with the posture and the links that the paper states", COMMAND))
    return claims


def _prediction(results) -> list[Claim]:
    claims = []
    for name, target in FORCE_TARGETS.items():
        for terrain in RIGID:
            paper = PAPER_FORCE[terrain].get(name)
            if paper is None:
                continue
            found = {r.parameters["engine_model"]: r for r in results
                     if r.parameters["controller"] == name and r.parameters["terrain"] == terrain
                     and r.parameters["settings"] == "papers" and r.parameters["engine"] == "rigid"}
            # The paper simulated with the Coulomb LCP; its no-slip figure is for infinite friction.
            law = MATCHING.get(name) if name == "no_slip_lcp" else "coulomb/lcp"
            r = found.get(law)
            if r is None:
                continue
            error = 100.0 * r["figures"]["force_error_relative"]
            others = "; ".join(
                f"against {other} {100.0 * r2['figures']['force_error_relative']:.2g} %"
                for other, r2 in found.items() if other != law)
            free = r["figures"]["force_error_unlimited"]
            free = None if free is None else 100.0 * free
            good = r["figures"]["finished"] and error <= paper and (
                error if free is None else free) <= target
            claims.append(Claim(
                "first paper, table 5", f"{CONTROLLERS[name].title}, {TERRAINS[terrain].title}: "
                f"forces predicted to {paper:g} % (target {target:g} %)",
                BETTERED if good else REPRODUCED if error <= paper and r["figures"]["finished"]
                else NOT_REPRODUCED,
                f"{error:.2g} % against {law}"
                + ("" if free is None else f" ({free:.2g} % without the periods in which a torque "
                   "was limited)")
                + f", median error {r['figures']['force_error_median_n']:.1g} N, {_outcome(r)}"
                + (f"; {others}" if others else ""), r.description.command()))
    return claims


def _kinetic_energy(results) -> list[Claim]:
    """The paper's own objective, eq. 69, in place of ``contact_velocity``."""
    claims = []
    for terrain in RIGID:
        r = select(results, terrain=terrain, engine="rigid", settings="papers").get("qp_energy_mu")
        if r is None:
            continue
        paper = PAPER_FORCE[terrain]["qp_mu"]
        error = 100.0 * r["figures"]["force_error_relative"]
        claims.append(Claim(
            "first paper, eq. 69 and table 5", f"{TERRAINS[terrain].title}: minimising the kinetic "
            f"energy predicts forces to {paper:g} %",
            REPRODUCED if paper / ORDER < error < paper * ORDER else NOT_REPRODUCED,
            f"{error:.3g} % against coulomb/lcp, {_outcome(r)} (the same order of magnitude "
            f"counts: within a factor of {ORDER:.2g})", r.description.command()))
    return claims


ORDER = 10.0 ** 0.5


def _no_slip(results) -> list[Claim]:
    found = [select(results, terrain=terrain, engine="mujoco", settings="ours").get("no_slip_lcp")
             for terrain in ("rigid_low", "compliant_low")]
    if not all(found):
        return []
    fell = [not r["figures"]["finished"] for r in found]
    return [Claim("first paper, tables 3 and 5", "the no-slip LCP cannot walk on low friction",
                  REPRODUCED if all(fell) else NOT_REPRODUCED,
                  "; ".join(f"{r.parameters['terrain']}: {_outcome(r)}" for r in found), COMMAND)]
