"""The section of the report about dynamics by sparse factorisation: figures 1 and 2, counted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS, GREY, LIMIT
from experiments.papers.blocks import Picture, Section, Table
from experiments.papers.marks import PRINTED, legend_beside
from experiments.papers.sparse_dynamics import (
    FORWARD,
    LOAD_CELLS,
    aba_formula,
    rnea_formula,
)
from experiments.papers.sparse_dynamics_claims import PAPER, UMFPACK, by_problem, claims
from experiments.papers.store import RunResult

OURS, PERMUTED, UNPERMUTED, INVERSE = COLOURS[0], COLOURS[1], COLOURS[3], COLOURS[2]
PAIRS = ("ours", "ours_regrouped", "joints_last_regrouped", "rnea")
"""Counts of additions and multiplications."""


def report(results: Sequence[RunResult]) -> Section:
    """Figures 1 and 2 with both counts, their tables, and the paper's equations."""
    found, _ = by_problem(results)
    blocks: list = [PAPER.text()]
    if found[FORWARD]:
        blocks += [_picture_1(found[FORWARD]), _table("forward", FORWARD, found[FORWARD])]
    if found[LOAD_CELLS]:
        blocks += [_picture_2(found[LOAD_CELLS]), _table("cells", LOAD_CELLS, found[LOAD_CELLS])]
    return PAPER.section(blocks, claims(results))


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
            *zip(*((n, p) for n, (p, _) in quoted.items())), **PRINTED, label="UMFPACK, program"
        )
        filled = {**PRINTED, "color": LIMIT}
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
        PAPER.phrase("figure_1"),
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
        PAPER.phrase("figure_2"),
    )


def _finish(axis, title: str, top: float) -> None:
    axis.set(title=title, xlabel="links", ylabel="operations", ylim=(0.0, top))
    legend_beside(axis)


def _cell(pair: Sequence[int]) -> str:
    return f"{pair[0]:,} + {pair[1]:,} = {sum(pair):,}"


def _table(name: str, problem: str, runs: Mapping[int, RunResult]) -> Table:
    rows = []
    for n, r in runs.items():
        program, correct = UMFPACK[problem].get(n, (None, None))
        counts = {key: value for key, value in r.values.items() if key in PAIRS}
        total = {key: sum(pair) for key, pair in counts.items()}
        row = {
            **r.values,
            **{f"{key}_cell": _cell(pair) for key, pair in counts.items()},
            "links": n,
            "quoted_program": program,
            "quoted_correct": correct,
        }
        if problem == FORWARD:
            aba, least = aba_formula(n), min(total[key] for key in PAIRS[:3])
            row |= {"aba_cell": _cell(aba), "best": least / aba.total}
        else:
            row |= {
                "rnea_total": total["rnea"],
                "ratio": total["ours"] / total["rnea"],
                "general_ratio": r["general"] / r["general_rnea"],
            }
        rows.append(row)
    return PAPER.table(name, rows, [r.description.command() for r in runs.values()])
