"""The section of the report about torque chatter and the scores of appendix A."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS, GREY
from experiments.papers.blocks import Claim, Picture, Section, Table, outcome
from experiments.papers.chatter import (
    HIGH_MU,
    LOW_MU,
    MODELS,
    NAME,
    STAGE_I,
    STAGE_II,
    TWO_FEET,
    WALK,
    Case,
)
from experiments.papers.marks import legend_beside
from experiments.papers.paper import Paper
from experiments.papers.store import RunResult

PAPER = Paper(NAME)
PAPER_RATE, CHATTER_NM_S, SPREAD = (
    PAPER.figures[name] for name in ("rates", "chatter_nm_s", "spread")
)
PAPER_SCORES = {(task, mu): scores for task, mu, scores in PAPER.figures["scores"]}
DUTY = {"two feet": TWO_FEET, "walk": WALK}


def report(results: Sequence[RunResult]) -> Section:
    """Figures 6 and 15, table 4 for the four models, table 6."""
    found = {Case(**result.parameters): result for result in results}
    walks = {case: r for case, r in found.items() if case.duty_factor == WALK}
    rows = [
        {
            **case._asdict(),
            **r.values,
            "stage": "I" if case.distribution == STAGE_I else "I and II",
            "outcome": outcome(r["fell_time_s"]),
        }
        for case, r in walks.items()
    ]
    table = PAPER.table("runs", rows, [r.description.command() for r in walks.values()])
    paper = PAPER.table(
        "paper",
        [dict(model=name, rate=rate, torque=torque) for name, (rate, torque) in PAPER_RATE.items()],
    )
    blocks = [PAPER.text(), _traces(found), _rates(found), table, paper, _scores(found)]
    return PAPER.section(blocks, _claims(found))


def _get(found, model: str, distribution: str, mu: float, duty: float = WALK) -> RunResult | None:
    wanted = (model, distribution, mu, duty)
    return next((r for case, r in found.items() if case[:4] == wanted), None)


def _traces(found) -> Picture:
    def fill(axes):
        for axis, model in zip(axes.ravel(), ("coulomb/qp", "coulomb/lcp", "no_slip/lcp")):
            for distribution, colour, name in (
                (STAGE_I, GREY, "stage I alone"),
                (STAGE_II, COLOURS[1], "stage I and II"),
            ):
                r = _get(found, model, distribution, HIGH_MU)
                if r is None:
                    continue
                trace = np.array(r["torque_trace_nm"])
                time = r["trace_start_s"] + r["trace_period_s"] * np.arange(len(trace))
                axis.plot(time, trace, color=colour, linewidth=1.0, label=name)
            axis.set(title=f"{model}, mu {HIGH_MU:g}: torque of a knee", ylabel="N·m")
        axes[-1, 0].set_xlabel("time (s)")
        legend_beside(axes[0, 0])

    return Picture(
        "chatter",
        draw(11.0, 6.6, 3, 1, fill),
        PAPER.phrase("traces"),
    )


def _rates(found) -> Picture:
    def fill(axes):
        for axis, mu in zip(axes[0], (HIGH_MU, LOW_MU)):
            for k, model in enumerate(MODELS):
                for shift, distribution, colour in (
                    (-0.2, STAGE_I, GREY),
                    (0.2, STAGE_II, COLOURS[1]),
                ):
                    r = _get(found, model, distribution, mu)
                    if r is None or r["torque_rate_mean_nm_s"] is None:
                        continue
                    axis.bar(
                        k + shift,
                        r["torque_rate_mean_nm_s"],
                        width=0.38,
                        color=colour,
                        hatch=None if r["fell_time_s"] is None else "//",
                        edgecolor="white",
                    )
                if mu == HIGH_MU:
                    axis.plot(k, PAPER_RATE[model][0], "D", color=COLOURS[0], markersize=6)
            axis.axhline(CHATTER_NM_S, color=COLOURS[0], linewidth=0.9, linestyle="--")
            axis.set_yscale("log")
            axis.set_ylim(10.0, 2000.0)
            axis.set_xticks(range(len(MODELS)), MODELS)
            axis.set(title=f"mu {mu:g}", ylabel="N·m/s")
        last = axes[0, 1]
        last.bar(0, 0, color=GREY, label="stage I alone")
        last.bar(0, 0, color=COLOURS[1], label="stage I and II")
        last.bar(0, 0, color="white", hatch="//", edgecolor=GREY, label="fell")
        last.plot([], [], "D", color=COLOURS[0], label="paper, table 4")
        last.plot([], [], "--", color=COLOURS[0], linewidth=0.9, label="paper's PID")
        legend_beside(last)

    return Picture(
        "chatter_rates",
        draw(12.0, 3.8, 1, 2, fill),
        PAPER.phrase("rates"),
    )


def score(r: RunResult) -> str:
    """PASS or FAIL with the reason, by the criteria of table 6."""
    if r["fell_time_s"] is not None:
        return "FAIL (slip and fall)"
    if r["torque_rate_mean_nm_s"] is None or r["torque_rate_mean_nm_s"] > CHATTER_NM_S:
        return "FAIL (torque chatter)"
    spread = r["share_of_feet_loaded"]
    marks = [] if spread is None else ["distributed" if spread >= SPREAD else "undistributed"]
    marks.append(f"{1e6 * r['solve_time_median_s']:.0f} µs")
    return f"PASS ({', '.join(marks)})"


def _scores(found) -> Table:
    rows, commands = [], []
    for (task, mu), paper in PAPER_SCORES.items():
        ours = [_get(found, model, STAGE_II, mu, DUTY[task]) for model in MODELS]
        for whose, scores in (("paper", paper), ("ours", [score(r) if r else None for r in ours])):
            rows.append({"task": f"{task}, mu {mu:g}", "whose": whose, **dict(zip(MODELS, scores))})
        commands += ["", PAPER.command]
    return PAPER.table("scores", rows, commands, chatter=CHATTER_NM_S, spread=SPREAD)


def _claims(found) -> list[Claim]:
    claims = []
    for model in ("coulomb/qp", "coulomb/lcp"):
        one, two = (_get(found, model, part, HIGH_MU) for part in (STAGE_I, STAGE_II))
        if not (one and two):
            continue
        rate, walked = two["torque_rate_mean_nm_s"], two["fell_time_s"] is None
        both = {"one": one, "two": two, "outcome": outcome(two["fell_time_s"])}
        if model == "coulomb/lcp":
            claims.append(PAPER.claim("lcp", rate < CHATTER_NM_S and walked, **both))
            continue
        ratio = one["torque_rate_mean_nm_s"] / rate
        calm = max(two["calm_torque_rate_largest_nm_s"], 1e-9)
        peak, paper = one["calm_torque_rate_largest_nm_s"] / calm, PAPER_RATE[model][0]
        claims += [
            PAPER.claim("peak", peak >= 1e4, peak=peak, ratio=ratio),
            PAPER.claim("two_stages", rate < paper and walked, paper=paper, **both),
        ]
    for (task, mu), paper in PAPER_SCORES.items():
        runs = {model: _get(found, model, STAGE_II, mu, DUTY[task]) for model in MODELS}
        if all(runs.values()):
            ours = {model: score(r) for model, r in runs.items()}
            claims.append(_score_claim(task, mu, dict(zip(MODELS, paper)), ours))
    return claims


def _score_claim(task: str, mu: float, said: dict[str, str], ours: dict[str, str]) -> Claim:
    """Table 6: which models pass and which fail."""
    same = [model for model in MODELS if said[model][:4] == ours[model][:4]]
    better = [m for m in MODELS if said[m].startswith("FAIL") and ours[m].startswith("PASS")]
    worse = [m for m in MODELS if said[m].startswith("PASS") and ours[m].startswith("FAIL")]
    return PAPER.claim(
        "scores",
        bool(worse),
        bool(better),
        task="walking" if task == "walk" else "gait on two feet",
        friction="high" if mu == HIGH_MU else "low",
        said=", ".join(f"{model} {text}" for model, text in said.items()),
        same=", ".join(same) or "none",
        better=f"; {', '.join(better)} passes with stage II" if better else "",
        worse="".join(f"; {m}: {ours[m]}" for m in MODELS if ours[m].startswith("FAIL")),
    )
