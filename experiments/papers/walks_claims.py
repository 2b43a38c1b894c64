"""What the first paper says of walking, its figures, and what the runs say to it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from experiments.papers.blocks import Claim
from experiments.papers.locomotion import CONTROLLERS
from experiments.papers.paper import Paper
from experiments.papers.store import RunResult
from experiments.papers.terrains import TERRAINS
from experiments.papers.walks import COULOMB, MATCHING, NAME, RANDOM, RIGID, chosen, select

PAPER = Paper(NAME)
PAPER_ERROR, PAPER_TORQUE, PAPER_FORCE, PAPER_FORCE_N, FORCE_TARGETS = (
    PAPER.figures[name] for name in ("error", "torque", "force", "force_n", "force_targets")
)
NAMES = tuple(PAPER_TORQUE)
"""Controllers in the order of the paper's tables."""

PLANES = ("rigid_high", "rigid_low", "compliant_high", "compliant_low")
PAPERS_OWN = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp", "qp_one_stage_mu", "sensed_1", "sensed_2")
"""Inverse dynamics controllers that the first paper knows; the QCQP is of another."""

ORDER = 10.0**0.5


def finished(r: RunResult) -> bool:
    """Whether a walk ended without a fall."""
    return r["figures"]["finished"]


def outcome(r: RunResult) -> str:
    """How a walk ended, for people."""
    figures = r["figures"]
    if not figures["finished"]:
        return f"fell at {figures['fell_time_s']:.2f} s"
    # Whoever stands still does not fall either.
    return f"stood, walked {figures['distance_travelled_m']:.2g} m"


def outcomes(runs: Sequence[RunResult]) -> str | None:
    """The same of walks on several seeds; None of none."""
    if len(runs) < 2:
        return outcome(runs[0]) if runs else None
    stood = [r["figures"]["distance_travelled_m"] for r in runs if finished(r)]
    far = f", walked {np.mean(stood):.2g} m" if stood else ""
    return f"{len(stood)} of {len(runs)} stood{far}"


def claims(results: Sequence[RunResult]) -> list[Claim]:
    """All of them that these runs can judge."""
    return [
        *_finishing(results),
        *_tracking(results),
        *_height_map(results),
        *_center_of_mass(results),
        *_smoothness(results),
        *_prediction(results),
        *_kinetic_energy(results),
        *_no_slip(results),
    ]


def _finishing(results) -> list[Claim]:
    ours = [r for r in chosen(results, settings="ours") if r.parameters["controller"] in COULOMB]
    if not ours:
        return []
    stood, fell = ([r for r in ours if finished(r) == wanted] for wanted in (True, False))
    far = ""
    if stood:
        shortest = min(stood, key=lambda r: r["figures"]["distance_travelled_m"])
        far = (
            f"; at least {shortest['figures']['distance_travelled_m']:.2g} m in "
            f"{shortest.parameters['duration_s']:g} s ({_place(shortest)})"
        )
    return [
        PAPER.claim(
            "finishing",
            not fell,
            stood=len(stood),
            all=len(ours),
            shortest=far,
            fell="; fell " + ", ".join(map(_place, fell)) if fell else "",
        )
    ]


def _place(r: RunResult) -> str:
    p = r.parameters
    seed = f", seed {p['seed']}" if p["terrain"] == RANDOM else ""
    return f"{p['controller']} on {p['terrain']}, {p['engine']}{seed}"


def _tracking(results) -> list[Claim]:
    claims = []
    for settings, engine, terrain in itertools.product(
        ("ours", "papers"), ("mujoco", "rigid"), PLANES
    ):
        found = select(results, terrain=terrain, engine=engine, settings=settings)
        rivals = [name for name in ("pid", "sensed_1", "sensed_2") if name in found]
        mine = [name for name in ("qp_mu", "lcp_mu") if name in found]
        if not (rivals and mine):
            continue
        error = {name: found[name]["figures"]["mean_joint_position_error_rad"] for name in found}
        # A walk that ended early is no rival: its mean is that of its better part.
        standing = [error[n] for n in rivals if finished(found[n])]
        better = all(finished(found[n]) for n in mine) and (
            not standing or max(error[n] for n in mine) < min(standing)
        )
        paper = {name: PAPER_ERROR[terrain][name][0] for name in mine}
        listed = ", ".join(
            f"{CONTROLLERS[n].title} {error[n]:.3g} rad"
            + (f" (paper {paper[n]:g})" if n in paper else "")
            + ("" if finished(found[n]) else " (fell)")
            for n in (*mine, *rivals)
        )
        claims.append(
            PAPER.claim(
                "tracking",
                not better,
                all(error[n] < paper[n] for n in mine),
                terrain=TERRAINS[terrain].title,
                engine=engine,
                whose="our" if settings == "ours" else "the papers'",
                listed=listed,
            )
        )
    return claims


def _height_map(results) -> list[Claim]:
    """Section 8.3, figure 16."""
    claims, paper = [], PAPER.figures["height_map_saved"]
    for engine in ("mujoco", "rigid"):
        runs = {
            name: chosen(results, controller=name, terrain=RANDOM, engine=engine, settings="ours")
            for name in ("qp_mu", "pid")
        }
        if not all(runs.values()):
            continue
        error = {
            name: np.mean([r["figures"]["mean_joint_position_error_rad"] for r in found])
            for name, found in runs.items()
        }
        saved = 1.0 - error["qp_mu"] / error["pid"]
        claims.append(
            PAPER.claim(
                "height_map",
                saved <= 0.0 or not all(map(finished, runs["qp_mu"])),
                saved > paper,
                terrain=TERRAINS[RANDOM].title,
                engine=engine,
                paper=paper,
                saved=saved,
                listed=", ".join(
                    f"{CONTROLLERS[name].title} {error[name]:.3g} rad, {outcomes(runs[name])}"
                    for name in runs
                ),
            )
        )
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
        standing = [n for n in names[1:] if n != "pid" and finished(found[n])]
        better = finished(found["qp_mu"]) and all(off["qp_mu"] < off[n] for n in standing)
        listed = ", ".join(
            f"{CONTROLLERS[n].title} {1e3 * off[n]:.3g} mm ({outcome(found[n])})" for n in names
        )
        title = TERRAINS[terrain].title
        claims.append(PAPER.claim("center_of_mass", better, terrain=title, listed=listed))
    return claims


def _smoothness(results) -> list[Claim]:
    claims, torques = [], {}
    paper, mean = PAPER_TORQUE["qp_mu"]
    for engine in ("mujoco", "rigid"):
        listed, mine, worst = [], [], 0.0
        for terrain in PLANES:
            found = select(results, terrain=terrain, engine=engine, settings="ours")
            if "qp_mu" not in found:
                continue
            mine.append(found["qp_mu"]["figures"])
            rates = {
                name: r["figures"]["torque_rate_mean_nm_s"]
                for name, r in found.items()
                if name != "pid" and finished(r)
            }
            own = [v for n, v in rates.items() if n in PAPERS_OWN]
            # Who falls is not smooth.
            worst = max(worst, rates["qp_mu"] / min(own) if "qp_mu" in rates else np.inf)
            listed.append(
                f"{TERRAINS[terrain].title}: "
                + ", ".join(f"{CONTROLLERS[n].title} {rate:.3g}" for n, rate in rates.items())
                + ("" if "qp_mu" in rates else " (QP, mu fell)")
            )
        if not mine:
            continue
        torques[engine] = max(figures["torque_mean_nm"] for figures in mine)
        claims.append(
            PAPER.claim(
                "smoothness",
                worst > PAPER.figures["equally_smooth"],
                max(figures["torque_rate_mean_nm_s"] for figures in mine) < paper,
                engine=engine,
                paper=paper,
                listed="; ".join(listed),
                above=worst - 1.0,
            )
        )
    if torques:
        listed = ", ".join(f"{engine} up to {each:.3g} N·m" for engine, each in torques.items())
        low = max(torques.values()) <= mean
        claims.append(PAPER.claim("torque", low, paper=mean, listed=listed))
    return claims


def _prediction(results) -> list[Claim]:
    claims = []
    for (name, target), terrain in itertools.product(FORCE_TARGETS.items(), RIGID):
        paper = PAPER_FORCE[terrain].get(name)
        if paper is None:
            continue
        wanted = {"controller": name, "terrain": terrain, "settings": "papers", "engine": "rigid"}
        found = {r.parameters["engine_model"]: r for r in chosen(results, **wanted)}
        # The paper simulated with the Coulomb LCP; its no-slip figure is for infinite friction.
        law = MATCHING.get(name) if name == "no_slip_lcp" else "coulomb/lcp"
        r = found.get(law)
        if r is None:
            continue
        error = 100.0 * r["figures"]["normal_force_error_of_simulated"]
        others = "; ".join(
            f"against {other} {100.0 * r2['figures']['normal_force_error_of_simulated']:.2g} %"
            for other, r2 in found.items()
            if other != law
        )
        free = r["figures"]["normal_force_error_of_simulated_unsaturated"]
        least = error if free is None else 100.0 * free
        without = f" ({least:.2g} % without the periods in which a torque was limited)"
        as_printed = error <= paper and finished(r)
        claims.append(
            PAPER.claim(
                "prediction",
                as_printed and least <= target,
                as_printed,
                command=r.description.command(),
                controller=CONTROLLERS[name].title,
                terrain=TERRAINS[terrain].title,
                paper=paper,
                target=target,
                error=error,
                law=law,
                free="" if free is None else without,
                median=r["figures"]["normal_force_error_median_n"],
                outcome=outcome(r),
                others=f"; {others}" if others else "",
            )
        )
    return claims


def _kinetic_energy(results) -> list[Claim]:
    """The paper's own objective, eq. 69, in place of the velocity of the contacts."""
    claims = []
    for terrain in RIGID:
        r = select(results, terrain=terrain, engine="rigid", settings="papers").get("qp_energy_mu")
        if r is None:
            continue
        paper = PAPER_FORCE[terrain]["qp_mu"]
        error = 100.0 * r["figures"]["normal_force_error_of_simulated"]
        claims.append(
            PAPER.claim(
                "kinetic_energy",
                paper / ORDER < error < paper * ORDER,
                command=r.description.command(),
                terrain=TERRAINS[terrain].title,
                paper=paper,
                error=error,
                outcome=outcome(r),
                order=ORDER,
            )
        )
    return claims


def _no_slip(results) -> list[Claim]:
    found = [
        select(results, terrain=terrain, engine="mujoco", settings="ours").get("no_slip_lcp")
        for terrain in ("rigid_low", "compliant_low")
    ]
    if not all(found):
        return []
    listed = "; ".join(f"{r.parameters['terrain']}: {outcome(r)}" for r in found)
    return [PAPER.claim("no_slip", not any(map(finished, found)), listed=listed)]
