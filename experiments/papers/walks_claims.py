"""What the first paper says of walking, its figures, and what the runs say to it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from experiments.papers.blocks import BETTERED, NOT_REPRODUCED, REPRODUCED, Claim
from experiments.papers.locomotion import CONTROLLERS
from experiments.papers.store import RunResult
from experiments.papers.terrains import TERRAINS
from experiments.papers.walks import COULOMB, MATCHING, NAME, RANDOM, RIGID, select

NAMES = ("qp_mu", "qp_inf", "lcp_mu", "no_slip_lcp", "pid", "sensed_1", "sensed_2")
"""Controllers in the order of the paper's tables."""


def _paper(*rows):
    return dict(zip(NAMES, rows))


PAPER_ERROR = {
    "rigid_low": _paper(
        (0.0310, 1.9425),
        (0.0483, 2.6295),
        (0.0239, 1.8386),
        None,
        (0.0895, 1.5569),
        (0.0325, 1.7952),
        (0.0328, 1.7830),
    ),
    "rigid_high": _paper(
        (0.0486, 2.2596),
        (0.0654, 2.5737),
        (0.0259, 1.8784),
        (0.0260, 1.8950),
        (0.0916, 1.4653),
        (0.1317, 2.5585),
        (0.1316, 2.5608),
    ),
    "compliant_low": _paper(
        (0.0217, 2.0365),
        None,
        (0.0219, 2.0786),
        None,
        (0.0850, 1.5845),
        (0.0265, 1.8858),
        (0.0267, 1.8742),
    ),
    "compliant_high": _paper(
        (0.0342, 2.9360),
        (0.0446, 3.9779),
        (0.0226, 2.1243),
        None,
        (0.0850, 1.5845),
        (0.1270, 4.4377),
        (0.1270, 4.2061),
    ),
}
"""Table 3: rad, rad/s; None: fell."""

PAPER_TORQUE = _paper(
    (52.5718, 0.2016),
    (245.5117, 0.4239),
    (677.9693, 0.8351),
    (351.1803, 0.4055),
    (100.1571, 0.3413),
    (974.3312, 0.9918),
    (17528.0, 2.7416),
)
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
    stood = [r["figures"]["distance_travelled_m"] for r in runs if r["figures"]["finished"]]
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


COMMAND = f"python -m experiments reproduce {NAME}"


def _finishing(results) -> list[Claim]:
    ours = [
        r
        for r in results
        if r.parameters["settings"] == "ours" and r.parameters["controller"] in COULOMB
    ]
    if not ours:
        return []
    fell = [r for r in ours if not r["figures"]["finished"]]
    stood = [r for r in ours if r["figures"]["finished"]]
    evidence = [f"{len(stood)} of {len(ours)} walks finished with our settings"]
    if stood:
        shortest = min(stood, key=lambda r: r["figures"]["distance_travelled_m"])
        evidence.append(
            f"at least {shortest['figures']['distance_travelled_m']:.2g} m in "
            f"{shortest.parameters['duration_s']:g} s ({_place(shortest)})"
        )
    if fell:
        evidence.append("fell " + ", ".join(map(_place, fell)))
    return [
        Claim(
            "first paper, 8.3",
            "controllers that model Coulomb friction walk on every surface",
            REPRODUCED if not fell else NOT_REPRODUCED,
            "; ".join(evidence),
            COMMAND,
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
        standing = [n for n in rivals if found[n]["figures"]["finished"]]
        better = all(found[n]["figures"]["finished"] for n in mine) and (
            not standing or max(error[n] for n in mine) < min(error[n] for n in standing)
        )
        paper = {name: PAPER_ERROR[terrain][name][0] for name in mine}
        beaten = all(error[n] < paper[n] for n in mine)
        verdict = NOT_REPRODUCED if not better else BETTERED if beaten else REPRODUCED
        of = "our" if settings == "ours" else "the papers'"
        claims.append(
            Claim(
                "first paper, table 3",
                f"{TERRAINS[terrain].title}, {engine}, {of} settings: "
                "predicted forces track better than PID and than sensed forces",
                verdict,
                ", ".join(
                    f"{CONTROLLERS[n].title} {error[n]:.3g} rad"
                    + (f" (paper {paper[n]:g})" if n in paper else "")
                    + ("" if found[n]["figures"]["finished"] else " (fell)")
                    for n in (*mine, *rivals)
                ),
                COMMAND,
            )
        )
    return claims


def _height_map(results) -> list[Claim]:
    """Section 8.3, figure 16."""
    claims = []
    for engine in ("mujoco", "rigid"):
        runs = {
            name: [
                r
                for r in results
                if (
                    r.parameters["controller"],
                    r.parameters["terrain"],
                    r.parameters["engine"],
                    r.parameters["settings"],
                )
                == (name, RANDOM, engine, "ours")
            ]
            for name in ("qp_mu", "pid")
        }
        if not all(runs.values()):
            continue
        error = {
            name: np.mean([r["figures"]["mean_joint_position_error_rad"] for r in found])
            for name, found in runs.items()
        }
        saved = 1.0 - error["qp_mu"] / error["pid"]
        stood = all(r["figures"]["finished"] for r in runs["qp_mu"])
        claims.append(
            Claim(
                "first paper, 8.3, figure 16",
                f"{TERRAINS[RANDOM].title}, {engine}: predicted forces "
                f"reduce the tracking error of PID by {100 * HEIGHT_MAP_SAVED:g} %",
                NOT_REPRODUCED
                if saved <= 0.0 or not stood
                else BETTERED
                if saved > HEIGHT_MAP_SAVED
                else REPRODUCED,
                f"by {100.0 * saved:.2g} %: "
                + ", ".join(
                    f"{CONTROLLERS[name].title} {error[name]:.3g} rad, {outcomes(runs[name])}"
                    for name in runs
                ),
                COMMAND,
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
        standing = [n for n in names[1:] if n != "pid" and found[n]["figures"]["finished"]]
        better = found["qp_mu"]["figures"]["finished"] and all(
            off["qp_mu"] < off[n] for n in standing
        )
        claims.append(
            Claim(
                "first paper, 8.4, figure 17",
                f"{TERRAINS[terrain].title}, mujoco, our settings: with "
                "sensed forces the centre of mass leaves the lines between the way-points further than "
                "with predicted ones",
                REPRODUCED if better else NOT_REPRODUCED,
                "mean distance from the line: "
                + ", ".join(
                    f"{CONTROLLERS[n].title} {1e3 * off[n]:.3g} mm ({outcome(found[n])})"
                    for n in names
                ),
                COMMAND,
            )
        )
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
            rates = {
                name: r["figures"]["torque_rate_mean_nm_s"]
                for name, r in found.items()
                if name != "pid" and r["figures"]["finished"]
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
        rate = max(figures["torque_rate_mean_nm_s"] for figures in mine)
        torques.append((engine, max(figures["torque_mean_nm"] for figures in mine)))
        claims.append(
            Claim(
                "first paper, table 4",
                f"{engine}: QP, mu has the smoothest torques of all inverse "
                f"dynamics controllers ({paper:g} N·m/s)",
                NOT_REPRODUCED if worst > 1.02 else BETTERED if rate < paper else REPRODUCED,
                "N·m/s, of those that walked to the end: "
                + "; ".join(listed)
                + f"; at most {100.0 * (worst - 1.0):.2g} % above the lowest of the first paper's "
                "controllers (within 2 % counts as equal)",
                COMMAND,
            )
        )
    if torques:
        claims.append(
            Claim(
                "first paper, table 4",
                f"QP, mu: mean torque {mean:g} N·m",
                REPRODUCED if max(t for _, t in torques) <= mean else NOT_REPRODUCED,
                ", ".join(f"{engine} up to {torque:.3g} N·m" for engine, torque in torques)
                + " with the posture and the links that the paper states",
                COMMAND,
            )
        )
    return claims


def _prediction(results) -> list[Claim]:
    claims = []
    for name, target in FORCE_TARGETS.items():
        for terrain in RIGID:
            paper = PAPER_FORCE[terrain].get(name)
            if paper is None:
                continue
            found = {
                r.parameters["engine_model"]: r
                for r in results
                if r.parameters["controller"] == name
                and r.parameters["terrain"] == terrain
                and r.parameters["settings"] == "papers"
                and r.parameters["engine"] == "rigid"
            }
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
            free = None if free is None else 100.0 * free
            good = (
                r["figures"]["finished"]
                and error <= paper
                and (error if free is None else free) <= target
            )
            claims.append(
                Claim(
                    "first paper, table 5",
                    f"{CONTROLLERS[name].title}, {TERRAINS[terrain].title}: "
                    f"forces predicted to {paper:g} % (target {target:g} %)",
                    BETTERED
                    if good
                    else REPRODUCED
                    if error <= paper and r["figures"]["finished"]
                    else NOT_REPRODUCED,
                    f"{error:.2g} % against {law}"
                    + (
                        ""
                        if free is None
                        else f" ({free:.2g} % without the periods in which a torque was limited)"
                    )
                    + f", median error {r['figures']['normal_force_error_median_n']:.1g} N, {outcome(r)}"
                    + (f"; {others}" if others else ""),
                    r.description.command(),
                )
            )
    return claims


def _kinetic_energy(results) -> list[Claim]:
    """The paper's own objective, eq. 69, in place of ``contact_velocity``."""
    claims = []
    for terrain in RIGID:
        r = select(results, terrain=terrain, engine="rigid", settings="papers").get("qp_energy_mu")
        if r is None:
            continue
        paper = PAPER_FORCE[terrain]["qp_mu"]
        error = 100.0 * r["figures"]["normal_force_error_of_simulated"]
        claims.append(
            Claim(
                "first paper, eq. 69 and table 5",
                f"{TERRAINS[terrain].title}: minimising the kinetic "
                f"energy predicts forces to {paper:g} %",
                REPRODUCED if paper / ORDER < error < paper * ORDER else NOT_REPRODUCED,
                f"{error:.3g} % against coulomb/lcp, {outcome(r)} (the same order of magnitude "
                f"counts: within a factor of {ORDER:.2g})",
                r.description.command(),
            )
        )
    return claims


ORDER = 10.0**0.5


def _no_slip(results) -> list[Claim]:
    found = [
        select(results, terrain=terrain, engine="mujoco", settings="ours").get("no_slip_lcp")
        for terrain in ("rigid_low", "compliant_low")
    ]
    if not all(found):
        return []
    fell = [not r["figures"]["finished"] for r in found]
    return [
        Claim(
            "first paper, tables 3 and 5",
            "the no-slip LCP cannot walk on low friction",
            REPRODUCED if all(fell) else NOT_REPRODUCED,
            "; ".join(f"{r.parameters['terrain']}: {outcome(r)}" for r in found),
            COMMAND,
        )
    ]
