"""First paper, figure 19: the time of a whole controller step against the number of contacts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS, LIMIT
from experiments.benchmark.speed import CONTACTS, measure
from experiments.papers.blocks import Claim, Picture, Section, Table
from experiments.papers.marks import PRINTED_LINE, legend_beside
from experiments.papers.paper import Paper
from experiments.papers.store import RunDescription, RunResult

NAME = "running_time"
QUICK = (4, 20, 40, 100)
PAPER = Paper(NAME)
PAPER_MS, BUDGET_MS = PAPER.figures["medians_ms"], PAPER.figures["budget_ms"]


def runs(quick: bool) -> list[RunDescription]:
    """One run for each number of contacts."""
    return [RunDescription(NAME, {"contacts": n}) for n in (QUICK if quick else CONTACTS)]


def run(description: RunDescription) -> dict:
    """Median and 99th percentile of every model, s."""
    rows = measure([description.parameters["contacts"]])["rows"]
    return {"models": {name: next(iter(cells.values())) for name, cells in rows.items() if cells}}


def report(results: Sequence[RunResult]) -> Section:
    """Figure 19 with ours and the paper's medians."""
    found = {r.parameters["contacts"]: r["models"] for r in results}
    commands = {r.parameters["contacts"]: r.description.command() for r in results}
    models = list(dict.fromkeys(name for cells in found.values() for name in cells))
    rows = [
        (name, *(1e6 * found[n][name]["median_s"] if name in found[n] else None for n in found))
        for name in models
    ]
    paper = [
        (
            f"{name}, paper",
            *(1e3 * PAPER_MS[name][n] if n in PAPER_MS[name] else None for n in found),
        )
        for name in PAPER_MS
    ]
    listed = "; ".join(f"{n}: `{command}`" for n, command in commands.items())
    head = ("model", *(f"{n} contacts" for n in found))
    table = Table(PAPER.phrase("caption", commands=listed), head, [*rows, *paper])
    return PAPER.section([PAPER.text(), _picture(found, models), table], _claims(found))


def _picture(found, models) -> Picture:
    def fill(axes):
        axis = axes[0, 0]
        for colour, name in zip(COLOURS * 2, models):
            counts = [n for n in found if name in found[n]]
            axis.loglog(
                counts,
                [1e3 * found[n][name]["median_s"] for n in counts],
                marker="o",
                markersize=4,
                linewidth=1.5,
                color=colour,
                label=name,
            )
            if name in PAPER_MS:
                axis.loglog(*zip(*PAPER_MS[name].items()), **{**PRINTED_LINE, "color": colour})
        axis.axhline(BUDGET_MS, color=LIMIT, linewidth=0.8)
        axis.plot([], [], **PRINTED_LINE, label="paper, same colours")
        axis.set(title="Whole step, median", xlabel="contacts", ylabel="ms")
        legend_beside(axis)

    return Picture(
        "running_time",
        draw(10.0, 4.6, 1, 1, fill),
        PAPER.phrase("figure"),
    )


def _claims(found) -> list[Claim]:
    largest, smallest = max(found), min(found)
    claims = []

    def median_ms(name: str, n: int) -> float:
        return 1e3 * found[n][name]["median_s"]

    for name, wanted in PAPER_MS.items():
        both = [n for n in wanted if n in found and name in found[n]]
        if not both:
            continue
        faster = [wanted[n] / median_ms(name, n) for n in both]
        claims.append(
            PAPER.claim(
                "medians",
                min(faster) > 1.0,
                name=name,
                said=", ".join(f"{wanted[n]:g} ms" for n in both),
                contacts=", ".join(map(str, both)),
                ours=", ".join(f"{median_ms(name, n):.3g} ms" for n in both),
                least=min(faster),
                most=max(faster),
            )
        )
    for name, said in (("no_slip/lcp", "linear"), ("coulomb/qp", "budget")):
        measured = [n for n in found if name in found[n]]
        if not {largest, smallest} <= set(measured) or largest == smallest:
            continue
        growth = median_ms(name, largest) / median_ms(name, smallest)
        slope = np.log(growth) / np.log(largest / smallest)
        most = max((n for n in measured if median_ms(name, n) < BUDGET_MS), default=0)
        claims.append(
            PAPER.claim(
                "growth",
                slope <= PAPER.figures["slope"] and most >= PAPER.figures["contacts"],
                name=name,
                said=PAPER.phrase(said),
                slope=slope,
                smallest=smallest,
                largest=largest,
                most=most,
            )
        )
    return claims
