"""What the sparse factorisation paper says, counts of its solver, and what the runs say to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.papers.blocks import Claim
from experiments.papers.paper import Paper
from experiments.papers.sparse_dynamics import EQUATIONS, FORWARD, LOAD_CELLS, NAME, aba_formula
from experiments.papers.sparse_dynamics_tracer import Count
from experiments.papers.store import RunResult

PAPER = Paper(NAME)
UMFPACK = PAPER.figures["umfpack"]
EXACT = PAPER.figures["exact"]

Found = Mapping[str, Mapping[int, RunResult]]


def by_problem(results: Sequence[RunResult]) -> tuple[Found, RunResult | None]:
    """Problem -> links -> result, and that of the equations."""
    found: dict[str, dict[int, RunResult]] = {FORWARD: {}, LOAD_CELLS: {}}
    equations = None
    for result in results:
        if result.parameters["problem"] == EQUATIONS:
            equations = result
        else:
            found[result.parameters["problem"]][result.parameters["links"]] = result
    ordered = {problem: dict(sorted(runs.items())) for problem, runs in found.items()}
    return ordered, equations


def claims(results: Sequence[RunResult]) -> list[Claim]:
    """All of them that these runs can judge."""
    found, equations = by_problem(results)
    judged = []
    if found[FORWARD]:
        judged += [*_figure_1(found[FORWARD]), _fewer_than_aba(found[FORWARD])]
    if found[LOAD_CELLS]:
        judged.append(_figure_2(found[LOAD_CELLS]))
    return judged + (_equations(equations) if equations else [])


def _longest(problem: str, runs: Mapping[int, RunResult]) -> dict:
    """What the claims about a problem quote: its longest chain, and the command of its runs."""
    n = max(runs)
    quoted = ""
    if n in UMFPACK[problem]:
        program, correct = UMFPACK[problem][n]
        quoted = PAPER.phrase("quoted", program=program, correct=correct)
    return {
        "command": runs[n].description.command() if len(runs) == 1 else "",
        "n": n,
        "shortest": min(runs),
        "r": runs[n],
        "aba": aba_formula(n).total,
        "ours": sum(runs[n]["ours"]),
        "quoted": quoted,
    }


def _figure_1(runs: Mapping[int, RunResult]) -> list[Claim]:
    """The headline, and how its count goes wrong."""
    longest = _longest(FORWARD, runs)
    result, aba = longest["r"], longest["aba"]
    fewest = min(r["correct"] / r["paper_chain"] for r in runs.values())
    below = [links for links, r in runs.items() if r["correct"] <= aba_formula(links).total]
    additions, _ = result["program_factorisation"]
    _, multiplications = result["unpermuted_program_factorisation"]
    miscounted = multiplications < 0 or 10 * additions < result["correct"]
    counts = {"additions": additions, "multiplications": multiplications}
    return [
        PAPER.claim(
            "fewer",
            result["correct"] > aba,
            below=max(below, default=0),
            fewest=fewest,
            **longest,
        ),
        PAPER.claim("count", miscounted, **counts, **longest),
    ]


def _fewer_than_aba(runs: Mapping[int, RunResult]) -> Claim:
    ratios, above = [], []
    for n, r in runs.items():
        ours, aba = Count(*r["ours"]), aba_formula(n)
        ratios.append(min(sum(r["ours_regrouped"]), sum(r["joints_last_regrouped"])) / aba.total)
        if ours.additions > aba.additions or ours.multiplications > aba.multiplications:
            above.append(n)
    error = max(max(r["joints_last_error"], r["torque_error"]) for r in runs.values())
    return PAPER.claim(
        "cheaper",
        bool(above) or error > EXACT,
        within=len(runs) - len(above),
        lengths=len(runs),
        least=min(ratios),
        most=max(ratios),
        error=error,
        **_longest(FORWARD, runs),
    )


def _figure_2(runs: Mapping[int, RunResult]) -> Claim:
    worst = max(sum(r["ours"]) / sum(r["rnea"]) for r in runs.values())
    error = max(r["torque_error"] for r in runs.values())
    saves = all(r["correct"] < r["unpermuted_correct"] for r in runs.values())
    fewer = all(sum(r["ours"]) < min(r["correct"], r["program"]) for r in runs.values())
    better = saves and worst <= PAPER.figures["most_of_rnea"] and error < EXACT and fewer
    return PAPER.claim(
        "load_cells", better, saves, worst=worst, error=error, **_longest(LOAD_CELLS, runs)
    )


def _equations(r: RunResult) -> list[Claim]:
    """Properties and misprints."""
    triangular = r["property_2_corrected"] < EXACT < r["property_2_smallest_diagonal"]
    ranks, seen = r["ranks"], r["seen_by_cells"]
    printed = PAPER.figures["y_as_printed"]
    deficient = sum(count for rank, count in ranks.items() if rank != "6")
    holds = {
        "triangular": r["property_1_above_diagonal"] == 0.0,
        "search": r["peeled_rows"] == r["peeled_of"],
        "order": triangular and r["property_2_printed"] > EXACT,
        "residual": r["property_2_residual_corrected"] < EXACT < r["property_2_residual_printed"],
        "poses": bool(deficient),
        "rows_of_y": list(seen) == printed,
    }
    figures = {
        "r": r,
        "deficient": deficient,
        "poses": sum(ranks.values()),
        "ranks": ", ".join(ranks),
        "seen": _of_wrench(seen),
        "printed": _of_wrench(printed),
    }
    command = r.description.command()
    return [PAPER.claim(name, true, command=command, **figures) for name, true in holds.items()]


def _of_wrench(components: Sequence[int]) -> str:
    return ", ".join(("n_x", "n_y", "n_z", "f_x", "f_y", "f_z")[k] for k in components)
