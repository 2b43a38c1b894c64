"""First paper, figure 19: the time of a whole controller step against the number of contacts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.report.figures import PAPER_LINE, draw, legend_beside
from contact_id_controller.report.style import COLOURS, LIMIT
from experiments.benchmark.speed import CONTACTS, measure
from experiments.papers.blocks import (
    BETTERED,
    NOT_REPRODUCED,
    Claim,
    Picture,
    Section,
    Table,
    Text,
)
from experiments.papers.store import RunDescription, RunResult

NAME = "running_time"
QUICK = (4, 20, 40, 100)
PAPER_MS = {
    "coulomb/lcp": {4: 0.569, 20: 13.6, 40: 62.9},
    "coulomb/qp": {4: 0.278, 20: 0.589, 40: 1.43},
    "coulomb/qp_one_stage": {4: 0.274, 20: 0.556, 40: 1.27},
    "no_slip/lcp": {4: 0.575, 20: 0.730, 40: 0.897},
    "no_slip/qp": {4: 0.286, 20: 0.480, 40: 1.07},
}
"""Medians of the paper's stored runs, 2.7 GHz Core i7 of 2011; contacts -> ms."""

BUDGET_MS = 1.0


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
    table = Table(
        "Median of the whole step, µs: state in, torques out. Solo12, contacts spread "
        "over its soles. One number of contacts: "
        + "; ".join(f"{n}: `{command}`" for n, command in commands.items()),
        ("model", *(f"{n} contacts" for n in found)),
        [*rows, *paper],
    )
    text = Text(
        "One process, one core, in Python with compiled kernels; `python -m experiments benchmark` "
        "measures the same, with 99th percentiles. The paper's laptop is of 2011: its "
        "times are shown for the shape of the curves, not for a race."
    )
    return Section(
        "Running time (first paper, figure 19)",
        [text, _picture(found, models), table],
        _claims(found),
    )


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
                axis.loglog(*zip(*PAPER_MS[name].items()), **{**PAPER_LINE, "color": colour})
        axis.axhline(BUDGET_MS, color=LIMIT, linewidth=0.8)
        axis.plot([], [], **PAPER_LINE, label="paper, same colours")
        axis.set(title="Whole step, median", xlabel="contacts", ylabel="ms")
        legend_beside(axis)

    return Picture(
        "running_time",
        draw(10.0, 4.6, 1, 1, fill),
        "Figure 19. Solid: ours. Dashed: the paper. Red: one period at 1 kHz.",
    )


def _claims(found) -> list[Claim]:
    command = f"python -m experiments reproduce {NAME}"
    largest, smallest = max(found), min(found)
    claims = []
    for name, wanted in PAPER_MS.items():
        both = [n for n in wanted if n in found and name in found[n]]
        if not both:
            continue
        faster = [wanted[n] / (1e3 * found[n][name]["median_s"]) for n in both]
        claims.append(
            Claim(
                "first paper, figure 19",
                f"{name}: {', '.join(f'{wanted[n]:g} ms' for n in both)} with "
                f"{', '.join(map(str, both))} contacts",
                BETTERED if min(faster) > 1.0 else NOT_REPRODUCED,
                ", ".join(f"{1e3 * found[n][name]['median_s']:.3g} ms" for n in both)
                + f"; {min(faster):.0f} to {max(faster):.0f} times as fast",
                command,
            )
        )
    for name, text in (
        ("no_slip/lcp", "scales linearly with additional contacts"),
        ("coulomb/qp", "keeps 1 kHz up to about 30 contacts"),
    ):
        if name not in found[largest] or name not in found[smallest] or largest == smallest:
            continue
        growth = found[largest][name]["median_s"] / found[smallest][name]["median_s"]
        slope = np.log(growth) / np.log(largest / smallest)
        most = max(
            (n for n in found if name in found[n] and 1e3 * found[n][name]["median_s"] < BUDGET_MS),
            default=0,
        )
        claims.append(
            Claim(
                "first paper, 8.4.2",
                f"{name} {text}",
                BETTERED if slope <= 1.1 and most >= 40 else NOT_REPRODUCED,
                f"time grows as contacts^{slope:.2f} from {smallest} to {largest}; below 1 ms with up "
                f"to {most} contacts",
                command,
            )
        )
    return claims
