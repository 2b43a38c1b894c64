"""The section of the report about the first paper's manipulator."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS, GREY
from experiments.papers.arm_and_box import DENSITY_KG_M3, EDGE_M
from experiments.papers.blocks import Claim, Picture, Section, Table
from experiments.papers.chatter import MODELS
from experiments.papers.chatter_report import CHATTER_NM_S
from experiments.papers.manipulator import DROPPED_M, NAME, TRACE_S, Case
from experiments.papers.marks import legend_beside
from experiments.papers.paper import Paper
from experiments.papers.store import RunResult

PAPER = Paper(NAME)
WEIGHT_N = 9.81 * DENSITY_KG_M3 * EDGE_M**3
PAPER_DROP_S, PAPER_SCORES, TARGETS_RAD = (
    PAPER.figures[name] for name in ("drop_s", "scores", "targets_rad")
)


def label(case: Case, with_settings: bool = True) -> str:
    """Name of a controller in tables and legends."""
    name = {"none/pid": "PID", "none/sensed": "sensed forces"}.get(case.controller, case.controller)
    more = [f"squeeze {case.squeeze_n:g} N, counts on {case.trust:g} mu"] if case.squeeze_n else []
    more += ["papers' settings"] if with_settings and case.settings == "papers" else []
    return ", ".join([name, *more])


def report(results: Sequence[RunResult]) -> Section:
    """Figure 18 and its text, and a hand that does not drop the box."""
    found = {Case(**result.parameters): result for result in results}
    blocks: list = [PAPER.text(density=DENSITY_KG_M3, edge=EDGE_M)]
    for mu in sorted({case.mu for case in found}):
        chosen = {case: result for case, result in found.items() if case.mu == mu}
        blocks += [_table(mu, chosen), _picture(mu, chosen)]
    return PAPER.section([*blocks, _scores(found)], _claims(found))


def _scores(found) -> Table:
    """The rows of table 6 about the manipulator."""
    rows = []
    for mu, paper in PAPER_SCORES.items():
        scores = [("paper", paper)]
        for engine in dict.fromkeys(case.engine for case in found):
            settings, cells = _cells(found, mu, engine)
            scores.append((f"{engine}, {settings} settings", cells))
        rows += [
            {"object": f"mu {mu:g}", "whose": whose, **dict(zip(MODELS, cells))}
            for whose, cells in scores
        ]
    return PAPER.table("scores", rows, chatter=CHATTER_NM_S)


def _cells(found, mu: float, engine: str) -> tuple[str, list[str | None]]:
    """Settings with which an engine's row is made, and its scores, None where there is no run."""
    settings = "papers" if engine == "rigid" else "ours"
    cells = [
        _all(found, controller=model, mu=mu, engine=engine, settings=settings, squeeze_n=0.0)
        for model in MODELS
    ]
    return settings, [_score(cell[0]) if cell else None for cell in cells]


def _score_claims(found) -> list[Claim]:
    claims = []
    for (mu, paper), engine in itertools.product(
        PAPER_SCORES.items(), dict.fromkeys(case.engine for case in found)
    ):
        settings, ours = _cells(found, mu, engine)
        if None in ours:
            continue
        pairs = [(said[:4], own[:4]) for said, own in zip(paper, ours)]
        claims.append(
            PAPER.claim(
                "scores",
                ("PASS", "FAIL") in pairs,
                ("FAIL", "PASS") in pairs,
                mu=mu,
                engine=engine,
                settings=settings,
                said=_listed(paper),
                own=_listed(ours),
            )
        )
    return claims


def _listed(scores: Sequence[str]) -> str:
    return ", ".join(f"{model} {score}" for model, score in zip(MODELS, scores))


def _score(result: RunResult) -> str:
    if result["dropped_s"] is not None or result["diverged_s"] is not None:
        return f"FAIL ({_fate(result)})"
    return "FAIL (torque chatter)" if result["torque_rate_mean_nm_s"] > CHATTER_NM_S else "PASS"


def _table(mu: float, found) -> Table:
    rows = [
        {
            **r.values,
            "label": label(case),
            "engine": case.engine,
            "drop": _drop(r),
            "statuses": _statuses(r),
        }
        for case, r in found.items()
    ]
    return PAPER.table("runs", rows, [r.description.command() for r in found.values()], mu=mu)


def _drop(result: RunResult):
    if result["diverged_s"] is not None:
        return f"torn apart at {result['diverged_s']:.3g}"
    return "held" if result["dropped_s"] is None else result["dropped_s"]


def _fate(result: RunResult) -> str:
    drop = _drop(result)
    return drop if isinstance(drop, str) else f"dropped after {drop:.3g} s"


def _statuses(result: RunResult) -> str:
    return ", ".join(f"{name} {count}" for name, count in result["status_counts"].items())


def _picture(mu: float, found) -> Picture:
    engines = list(dict.fromkeys(case.engine for case in found))
    names = list(dict.fromkeys(label(case, False) for case in found))

    def fill(axes):
        for k, engine in enumerate(engines):
            error, slip = axes[0, k], axes[1, k]
            for case, r in found.items():
                if case.engine != engine:
                    continue
                colour = COLOURS[names.index(label(case, False)) % len(COLOURS)]
                style = "-" if case.settings == "ours" else "-."
                time = r["trace_s"] * np.arange(len(r["error_trace_rad"]))
                error.semilogy(
                    time, np.maximum(r["error_trace_rad"], 1e-6), style, color=colour, linewidth=1.2
                )
                slip.plot(
                    time,
                    1e3 * np.array(r["slip_trace_m"])[: len(time)],
                    style,
                    color=colour,
                    linewidth=1.2,
                )
            error.axhline(TARGETS_RAD.get(mu, np.nan), color=GREY, linestyle="--")
            slip.axvline(PAPER_DROP_S if mu == 1.0 else np.nan, color=GREY, linestyle="--")
            slip.axhline(1e3 * DROPPED_M, color=GREY, linestyle=":")
            error.set(title=f"mu {mu:g}, {engine}: mean error of the joints", ylabel="rad")
            slip.set(title="Slip of the box in the hand", ylabel="mm", xlabel="time (s)")
        for number, name in enumerate(names):
            axes[0, -1].plot([], [], color=COLOURS[number % len(COLOURS)], label=name)
        axes[0, -1].plot([], [], "-.", color=GREY, label="papers' settings")
        axes[0, -1].plot([], [], color=GREY, linestyle="--", label="target")
        axes[1, -1].plot([], [], color=GREY, linestyle="--", label="paper: PID and QP drop it")
        axes[1, -1].plot([], [], color=GREY, linestyle=":", label="dropped")
        legend_beside(axes[0, -1])
        legend_beside(axes[1, -1])

    return Picture(
        f"manipulator_mu{mu:g}",
        draw(13.0, 6.0, 2, len(engines), fill),
        PAPER.phrase("figure", mu=mu, trace=TRACE_S),
    )


def _claims(found) -> list[Claim]:
    return [
        *_tracking_claims(found),
        *_drop_claims(found),
        *_score_claims(found),
        *_slippery_claims(found),
        *_sensed_claims(found),
        *_deadbeat_claims(found),
    ]


def _tracking_claims(found) -> list[Claim]:
    """Figure 18: the error of the joints, with the paper's hand and with one that squeezes."""
    claims = []
    grips = (
        ({"squeeze_n": 0.0}, "the paper's hand"),
        ({"squeeze_n_above": 0.0}, "hand with a commanded least squeeze"),
    )
    for (grip, hand), (mu, target) in itertools.product(grips, TARGETS_RAD.items()):
        chosen = {"controller": "coulomb/qp", "mu": mu, "settings": "ours", **grip}
        qp, pid = _all(found, **chosen), _all(found, controller="none/pid", mu=mu)
        if not (qp and pid):
            continue
        worst = max(r["mean_joint_position_error_rad"] for r in qp)
        other = min(r["mean_joint_position_error_rad"] for r in pid)
        # The paper's hand loses the box at mu 1 only; an arm without its box tracks easily.
        kept = (mu == 1.0 and "squeeze_n" in grip) or all(r["dropped_s"] is None for r in qp)
        claims.append(
            PAPER.claim(
                "tracking",
                worst <= target and worst < other and kept and not any(map(_torn, qp)),
                mu=mu,
                hand=hand,
                target=target,
                worst=worst,
                other=other,
                engines=_engines(qp),
                rivals=_engines(pid),
                fates=_fates(found, **chosen),
            )
        )
    return claims


def _drop_claims(found) -> list[Claim]:
    """When the box falls from the paper's hand at mu 1."""
    claims, factor = [], PAPER.figures["about"]
    for name, title in (
        ("coulomb/qp", "inverse dynamics with predicted forces"),
        ("none/pid", "PID"),
    ):
        chosen = {"controller": name, "mu": 1.0, "squeeze_n": 0.0}
        runs = _all(found, **chosen)
        times = [r["dropped_s"] for r in runs if r["dropped_s"] is not None]
        about = any(PAPER_DROP_S / factor <= time <= PAPER_DROP_S * factor for time in times)
        if runs:
            fates = _fates(found, **chosen)
            claims.append(PAPER.claim("drop", about, title=title, paper=PAPER_DROP_S, fates=fates))
    return claims


def _slippery_claims(found) -> list[Claim]:
    """Table 6 against section 8.4.1 at mu 1, and a box that is squeezed."""
    claims = []
    chosen = {"controller": "coulomb/qp", "mu": 1.0, "squeeze_n": 0.0}
    if plain := _all(found, **chosen):
        falls = any(r["dropped_s"] is not None for r in plain)
        fates = _fates(found, **chosen)
        claims.append(PAPER.claim("passes", falls, paper=PAPER_DROP_S, fates=fates))
    if firm := _all(found, squeeze_n_above=0.0):
        held = all(r["dropped_s"] is None and not _torn(r) for r in firm)
        claims.append(PAPER.claim("squeezed", held, fates=_fates(found, squeeze_n_above=0.0)))
    return claims


def _sensed_claims(found) -> list[Claim]:
    """What fed-back forces do with the slippery box and with the sticky one."""
    claims = []
    if fates := _fates(found, controller="none/sensed", mu=1.0):
        claims.append(PAPER.claim("sensed", "held" in fates, fates=fates))
    if sticky := _all(found, controller="none/sensed", mu=100.0):
        most = max(r["tip_forces_n"] or 0.0 for r in sticky)
        much = most > PAPER.figures["excessive"] * WEIGHT_N
        claims.append(PAPER.claim("excessive", much, most=most, weight=WEIGHT_N))
    return claims


def _deadbeat_claims(found) -> list[Claim]:
    """Contact velocities that are gone after one period, on ground that gives a little."""
    chosen = {"controller": "coulomb/qp", "settings": "papers"}
    deadbeat = _fates(found, engine="mujoco", **chosen)
    if not deadbeat:
        return []
    fates = "; ".join(filter(None, [deadbeat, _fates(found, engine="rigid", **chosen)]))
    return [PAPER.claim("deadbeat", "torn" in deadbeat or "dropped" in deadbeat, fates=fates)]


def _torn(result: RunResult) -> bool:
    return result["diverged_s"] is not None


def _engines(results: Sequence[RunResult]) -> str:
    return ", ".join(dict.fromkeys(r.parameters["engine"] for r in results))


def _all(found, squeeze_n_above: float | None = None, **wanted) -> list[RunResult]:
    """The results whose cases have these values."""
    return [
        r
        for case, r in found.items()
        if (squeeze_n_above is None or case.squeeze_n > squeeze_n_above)
        and all(getattr(case, name) == value for name, value in wanted.items())
    ]


def _fates(found, **wanted) -> str:
    """What became of the box, engine by engine; ``wanted`` as for ``_all``."""
    cases = {id(r): case for case, r in found.items()}
    return "; ".join(
        f"{cases[id(r)].engine}, {cases[id(r)].settings} settings, mu {cases[id(r)].mu:g}: "
        f"{_fate(r)}"
        for r in _all(found, **wanted)
    )
