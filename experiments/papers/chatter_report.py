"""The section of the report about torque chatter and the scores of appendix A."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.report.figures import draw, legend_beside
from contact_id_controller.report.style import COLOURS, GREY
from experiments.papers.blocks import (
    BETTERED,
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    Picture,
    Section,
    Table,
    Text,
    outcome,
)
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
from experiments.papers.store import RunResult

PAPER_RATE = {
    "coulomb/qp": (52.57, 0.2016),
    "no_slip/qp": (245.5, 0.4239),
    "coulomb/lcp": (678.0, 0.8351),
    "no_slip/lcp": (351.2, 0.4055),
}
"""Table 4: mean absolute derivative of the torques, N·m/s, and mean absolute torque, N·m."""

CHATTER_NM_S = 100.16
"""Torque rate of the paper's PID controller, which it calls suitable for a real robot (table 4)."""

SPREAD = 0.85
"""Contact forces are distributed when in the mean this part of the standing feet carries load."""

PAPER_SCORES = {
    ("two feet", HIGH_MU): ("PASS, best", "PASS", "PASS", "PASS"),
    ("two feet", LOW_MU): ("FAIL (slip and fall)", "FAIL (slip and fall)", "PASS, best", "PASS"),
    ("walk", HIGH_MU): ("PASS", "PASS, best", "FAIL (torque chatter)", "PASS"),
    ("walk", LOW_MU): (
        "FAIL (slip and fall)",
        "FAIL (slip and fall)",
        "FAIL (torque chatter)",
        "PASS, best",
    ),
}
"""Table 6, columns as in ``MODELS``; its two rows of the manipulator stand in that section."""

DUTY = {"two feet": TWO_FEET, "walk": WALK}


def report(results: Sequence[RunResult]) -> Section:
    """Figures 6 and 15, table 4 for the four models, table 6."""
    found = {Case(**result.parameters): result for result in results}
    walks = {case: r for case, r in found.items() if case.duty_factor == WALK}
    rows = [
        (
            case.model,
            case.mu,
            "I" if case.distribution == STAGE_I else "I and II",
            r["torque_rate_mean_nm_s"],
            r["calm_torque_rate_mean_nm_s"],
            r["torque_rate_largest_nm_s"],
            r["torque_mean_nm"],
            100.0 * r["normal_force_relative_error"],
            outcome(r["fell_time_s"]),
        )
        for case, r in walks.items()
    ]
    table = Table(
        "Rate: mean |change of torque| / period, over all joints and the whole walk; between the "
        "changes of contact; its largest. Force error: summed normal forces, of the weight.",
        (
            "model",
            "mu",
            "stage",
            "rate, N·m/s",
            "between, N·m/s",
            "largest, N·m/s",
            "torque, N·m",
            "force error, %",
            "outcome",
        ),
        rows,
        [r.description.command() for r in walks.values()],
    )
    paper = Table(
        "The paper's table 4 (mu infinite, its own rigid simulator).",
        ("model", "rate, N·m/s", "torque, N·m"),
        [(name, *values) for name, values in PAPER_RATE.items()],
    )
    text = Text(
        "The paper's quadruped trots among its way-points in MuJoCo, T_c = 50 ms, all "
        "controllers with the same planner and feedback. Stage I takes the forces that its "
        "solver ends with, stage II those of least torque among all that do the same to "
        "the base; the paper has stage II for the QP only, here every model has it."
    )
    return Section(
        "Torque chatter and scores (first paper, figures 6 and 15, appendix A)",
        [text, _traces(found), _rates(found), table, paper, _scores(found)],
        _claims(found),
    )


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
        "Figure 6, measured on a trot: without stage II the torque jumps between "
        "answers that are equally good.",
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
        "Figure 15 and table 4: mean absolute derivative of the torques.",
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
        name = f"{task}, mu {mu:g}"
        rows.append((name, "paper", *paper))
        rows.append((name, "ours", *(score(r) if r else None for r in ours)))
        commands += ["", f"python -m experiments reproduce {NAME}"]
    return Table(
        f"Table 6 (appendix A). Chatter: more than {CHATTER_NM_S:g} N·m/s; distributed: "
        f"at least {100 * SPREAD:g} % of the feet on the ground carry load, where three "
        "or more stand.",
        ("task", "", *MODELS),
        rows,
        commands,
    )


def _claims(found) -> list[Claim]:
    command = f"python -m experiments reproduce {NAME}"
    claims = []
    for model in ("coulomb/qp", "coulomb/lcp"):
        one, two = (_get(found, model, part, HIGH_MU) for part in (STAGE_I, STAGE_II))
        if not (one and two):
            continue
        ratio = one["torque_rate_mean_nm_s"] / two["torque_rate_mean_nm_s"]
        peak = one["calm_torque_rate_largest_nm_s"] / max(
            two["calm_torque_rate_largest_nm_s"], 1e-9
        )
        paper = PAPER_RATE[model][0]
        if model == "coulomb/qp":
            claims.append(
                Claim(
                    "first paper, 8.1, figure 15",
                    "stage II lowers the largest derivative of the "
                    "torque by five orders of magnitude",
                    REPRODUCED if peak >= 1e4 else NOT_REPRODUCED,
                    f"{peak:.1f} times between changes of contact, the mean {ratio:.1f} times, both "
                    "with a time constant of 50 ms",
                    command,
                )
            )
            claims.append(
                Claim(
                    "first paper, table 4",
                    f"two-stage QP: {paper:g} N·m/s",
                    BETTERED
                    if two["torque_rate_mean_nm_s"] < paper and two["fell_time_s"] is None
                    else NOT_REPRODUCED,
                    f"{two['torque_rate_mean_nm_s']:.3g} N·m/s, {outcome(two['fell_time_s'])}",
                    command,
                )
            )
        else:
            claims.append(
                Claim(
                    "first paper, 8.1",
                    "the Coulomb LCP is the one model that cannot mitigate chatter",
                    BETTERED
                    if two["torque_rate_mean_nm_s"] < CHATTER_NM_S and two["fell_time_s"] is None
                    else REPRODUCED,
                    f"without stage II {one['torque_rate_mean_nm_s']:.3g} N·m/s, with it "
                    f"{two['torque_rate_mean_nm_s']:.3g} N·m/s, {outcome(two['fell_time_s'])}: stage II belongs "
                    "to every model",
                    command,
                )
            )
    for task, mu in PAPER_SCORES:
        runs = {model: _get(found, model, STAGE_II, mu, DUTY[task]) for model in MODELS}
        if not all(runs.values()):
            continue
        said = dict(zip(MODELS, PAPER_SCORES[task, mu]))
        ours = {model: score(r) for model, r in runs.items()}
        same = [model for model in MODELS if said[model][:4] == ours[model][:4]]
        better = [m for m in MODELS if said[m].startswith("FAIL") and ours[m].startswith("PASS")]
        worse = [m for m in MODELS if said[m].startswith("PASS") and ours[m].startswith("FAIL")]
        claims.append(
            Claim(
                "first paper, table 6",
                f"{'walking' if task == 'walk' else 'gait on two feet'} at "
                f"{'high' if mu == HIGH_MU else 'low'} friction: "
                + ", ".join(f"{model} {text}" for model, text in said.items()),
                NOT_REPRODUCED if worse else BETTERED if better else REPRODUCED,
                f"pass or fail is the same for {', '.join(same) or 'none'}"
                + (f"; {', '.join(better)} passes with stage II" if better else "")
                + "".join(f"; {m}: {ours[m]}" for m in MODELS if ours[m].startswith("FAIL")),
                command,
            )
        )
    return claims
