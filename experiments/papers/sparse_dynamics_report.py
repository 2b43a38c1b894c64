"""The section of the report about dynamics by sparse factorisation: figures 1 and 2, counted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contact_id_controller.report.figures import PAPER, draw, legend_beside
from contact_id_controller.report.style import COLOURS, GREY, LIMIT
from experiments.papers.blocks import Picture, Section, Table, Text
from experiments.papers.sparse_dynamics import (
    FORWARD,
    LOAD_CELLS,
    aba_formula,
    rnea_formula,
)
from experiments.papers.sparse_dynamics_claims import UMFPACK, by_problem, claims
from experiments.papers.store import RunResult

OURS, PERMUTED, UNPERMUTED, INVERSE = COLOURS[0], COLOURS[1], COLOURS[3], COLOURS[2]


def report(results: Sequence[RunResult]) -> Section:
    """Figures 1 and 2 with both counts, their tables, and the paper's equations."""
    found, _ = by_problem(results)
    forward, cells = found[FORWARD], found[LOAD_CELLS]
    text = Text(
        "Additions and multiplications together. Program: what the author's lu_cost.m and fb_cost.m "
        "say of the factorisation of the paper's matrix, where X, v x S qd and v x* I v are given. "
        "In fact: what the same elimination takes; factors of 0 and 1 are free. Ours: traced from sine, "
        "cosine, velocities and torques, nothing given; constants folded, common subexpressions once, "
        "no dead code. General chain: no constant is zero. The first figure's order is the better of "
        "leaf to root and least product of other entries (Markowitz)."
    )
    blocks = [text]
    if forward:
        blocks += [_picture_1(forward), _table_1(forward)]
    if cells:
        blocks += [_picture_2(cells), _table_2(cells)]
    return Section(
        "Dynamics by sparse factorisation (sparse factorisation paper, figures 1 and 2)",
        blocks,
        claims(results),
    )


def _line(axis, runs: Mapping[int, RunResult], value, label: str, colour, style="-") -> None:
    axis.plot(list(runs), [value(n, r) for n, r in runs.items()], style, color=colour, label=label)


def _factorisations(axis, problem: str, runs) -> None:
    """The paper's curves, as its program counts (dashed) and as they are."""
    for prefix, name, colour in (("", "permuted", PERMUTED), ("unpermuted_", "plain", UNPERMUTED)):
        _line(axis, runs, lambda n, r: r[f"{prefix}program"], f"{name} LU, program", colour, "--")
        _line(axis, runs, lambda n, r: r[f"{prefix}correct"], f"{name} LU, in fact", colour)
    quoted = {n: both for n, both in UMFPACK[problem].items() if n in runs}
    if quoted:
        axis.plot(
            *zip(*((n, p) for n, (p, _) in quoted.items())), **PAPER, label="UMFPACK, program"
        )
        filled = {**PAPER, "color": LIMIT}
        axis.plot(
            *zip(*((n, c) for n, (_, c) in quoted.items())), **filled, label="UMFPACK, in fact"
        )


def _picture_1(runs: Mapping[int, RunResult]) -> Picture:
    def fill(axes):
        axis = axes[0, 0]
        _factorisations(axis, FORWARD, runs)
        _line(axis, runs, lambda n, r: aba_formula(n).total, "ABA, formula", GREY, "-")
        _line(axis, runs, lambda n, r: sum(r["ours"]), "ours, general chain", OURS)
        _line(axis, runs, lambda n, r: r["paper_chain"], "ours, paper's chain", OURS, ":")
        _line(axis, runs, lambda n, r: rnea_formula(n), "RNEA, formula", INVERSE)
        _finish(axis, "Forward dynamics of a chain", 3.0 * aba_formula(max(runs)).total)

    return Picture(
        "sparse_dynamics_forward",
        draw(10.0, 4.6, 1, 1, fill),
        "Figure 1. Dashed: as the author's program counts. Solid: the same elimination, counted right. "
        "Diamonds: in the order of UMFPACK 5.7.1, quoted. The plain LU leaves the picture.",
    )


def _picture_2(runs: Mapping[int, RunResult]) -> Picture:
    def fill(axes):
        axis = axes[0, 0]
        _factorisations(axis, LOAD_CELLS, runs)
        _line(axis, runs, lambda n, r: sum(r["ours"]), "ours", OURS)
        _line(axis, runs, lambda n, r: sum(r["rnea"]), "RNEA, traced", INVERSE)
        _finish(
            axis, "Joint torques from two load cells", 1.2 * runs[max(runs)]["unpermuted_correct"]
        )

    return Picture(
        "sparse_dynamics_load_cells",
        draw(10.0, 4.6, 1, 1, fill),
        "Figure 2. As figure 1; ours takes less than three times inverse dynamics.",
    )


def _finish(axis, title: str, top: float) -> None:
    axis.set(title=title, xlabel="links", ylabel="operations", ylim=(0.0, top))
    legend_beside(axis)


def _cell(pair: Sequence[int]) -> str:
    return f"{pair[0]:,} + {pair[1]:,} = {sum(pair):,}"


def _table_1(runs: Mapping[int, RunResult]) -> Table:
    none = (None, None)
    return Table(
        "Forward dynamics: additions + multiplications. Regrouped: with base inertial parameters; joints "
        "last: joint space inertia, then L^T D L. Paper's chain and tree: the fewest of the four, gravity "
        "along the first axis (across it, up to 19 more).",
        (
            "links",
            "ABA, formula",
            "ours, general",
            "regrouped",
            "joints last, regrouped",
            "best / ABA",
            "paper's chain",
            "paper's tree",
            "RNEA, traced",
            "permuted LU: program",
            "in fact",
            "plain LU: program",
            "in fact",
            "UMFPACK: program",
            "in fact",
        ),
        [
            (
                n,
                _cell(aba_formula(n)),
                _cell(r["ours"]),
                _cell(r["ours_regrouped"]),
                _cell(r["joints_last_regrouped"]),
                f"{min(map(sum, _forms(r))) / aba_formula(n).total:.2f}",
                r["paper_chain"],
                r["paper_tree"],
                _cell(r["rnea"]),
                r["program"],
                r["correct"],
                r["unpermuted_program"],
                r["unpermuted_correct"],
                *UMFPACK[FORWARD].get(n, none),
            )
            for n, r in runs.items()
        ],
        [r.description.command() for r in runs.values()],
    )


def _forms(result: RunResult) -> tuple:
    return result["ours"], result["ours_regrouped"], result["joints_last_regrouped"]


def _table_2(runs: Mapping[int, RunResult]) -> Table:
    none = (None, None)
    return Table(
        "Joint torques of a chain between two load cells, each without the couple about z; accelerations "
        "of the first two and the last two joints unknown.",
        (
            "links",
            "ours",
            "RNEA, traced",
            "ratio",
            "ratio, general chain",
            "permuted LU: program",
            "in fact",
            "plain LU: program",
            "in fact",
            "UMFPACK: program",
            "in fact",
            "largest error of ours",
        ),
        [
            (
                n,
                _cell(r["ours"]),
                sum(r["rnea"]),
                f"{sum(r['ours']) / sum(r['rnea']):.3f}",
                f"{r['general'] / r['general_rnea']:.3f}",
                r["program"],
                r["correct"],
                r["unpermuted_program"],
                r["unpermuted_correct"],
                *UMFPACK[LOAD_CELLS].get(n, none),
                float(r["torque_error"]),
            )
            for n, r in runs.items()
        ],
        [r.description.command() for r in runs.values()],
    )
