"""The section of the report about the kinodynamic paper's momentum problem, and what came of its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contact_id_controller.report.figures import draw
from contact_id_controller.report.style import COLOURS
from experiments.papers.blocks import Claim, Picture, Section, Table
from experiments.papers.kinodynamic import CURVATURE, EQUATIONS, NAME, PRESSURE, TIME
from experiments.papers.kinodynamic_bilinear import DROPPED, EXACT, PER_CONTACT, PER_STEP
from experiments.papers.marks import legend_beside
from experiments.papers.paper import Paper
from experiments.papers.store import RunResult

PAPER = Paper(NAME)
ROUNDING = PAPER.figures["rounding"]

Found = Mapping[str, list[RunResult]]


def report(results: Sequence[RunResult]) -> Section:
    """Times, methods, cones, formulas, and the claims that these runs can judge."""
    found = _by_problem(results)
    blocks: list = [PAPER.text()]
    if found[TIME]:
        rows = [{**run.parameters, **run.values} for run in found[TIME]]
        commands = [run.description.command() for run in found[TIME]]
        blocks += [_time_picture(found[TIME]), PAPER.table("time", rows, commands)]
    titles = PAPER.figures["methods"]
    blocks += [_table("methods", each, titles) for each in found[CURVATURE]]
    blocks += [_table("cones", each) for each in found[PRESSURE]]
    return PAPER.section(blocks, claims(results))


def claims(results: Sequence[RunResult]) -> list[Claim]:
    """All of them that these runs can judge."""
    found = _by_problem(results)
    judged = []
    if len(found[TIME]) > 1:
        judged += [_linear(found[TIME]), *_sequential(found[TIME])]
    judged += [claim for result in found[PRESSURE] for claim in _pressure(result)]
    judged += [_curvature(result) for result in found[CURVATURE]]
    return judged + [claim for result in found[EQUATIONS] for claim in _equations(result)]


def _by_problem(results: Sequence[RunResult]) -> Found:
    found: dict[str, list[RunResult]] = {
        name: [] for name in (TIME, CURVATURE, PRESSURE, EQUATIONS)
    }
    for result in results:
        if result.parameters["problem"] in found:
            found[result.parameters["problem"]].append(result)
    found[TIME].sort(key=_knots)
    return found


def _knots(result: RunResult) -> int:
    return result.parameters["knots"]


def _linear(runs: Sequence[RunResult]) -> Claim:
    """The longest against the shortest that takes long enough to be measured: an eighth of it."""
    last = runs[-1]
    first = min(runs[:-1], key=lambda run: abs(8 * _knots(run) - _knots(last)))
    ratio = last["solve_ms"] / first["solve_ms"]
    judged = [run for run in runs if run["ipopt_ms"]]
    beside = ""
    if judged:
        factors = [run["ipopt_ms"] / run["solve_ms"] for run in judged]
        costs = [run["relative_cost"] for run in judged]
        beside = PAPER.phrase(
            "ipopt",
            least=min(factors),
            most=max(factors),
            knots=_knots(judged[-1]),
            cheapest=min(costs),
            dearest=max(costs),
        )
    return PAPER.claim(
        "linear",
        ratio <= PAPER.figures["linear"] * _knots(last) / _knots(first),
        longest=_knots(last),
        shortest=_knots(first),
        ratio=ratio,
        last=last,
        first=first,
        beside=beside,
    )


def _sequential(runs: Sequence[RunResult]) -> list[Claim]:
    """12 T unknowns that are double sums against 21 T of which 6 at a time are solved for."""
    measured = [run for run in runs if run["sequential_step_ms"]]
    if not measured:
        return []
    run = measured[-1]
    ours, theirs = run["solve_ms"] / run["steps"], run["sequential_step_ms"]
    command = run.description.command()
    return [
        PAPER.claim(
            "sequential",
            ours < theirs,
            command=command,
            knots=_knots(run),
            ours=ours,
            theirs=theirs,
        )
    ]


def _pressure(result: RunResult) -> list[Claim]:
    cones, command = result["cones"], result.description.command()
    outside = max(row["outside_m"] for row in cones.values())
    inner, outer = cones["pyramid"], cones["outer_pyramid"]
    dearer = inner["cost"] / cones["cone"]["cost"] - 1
    beyond = outer["friction_used"] > PAPER.figures["friction"] * (1 + 1e-6)
    return [
        PAPER.claim("pressure", outside <= ROUNDING, command=command, outside=outside),
        PAPER.claim("pyramid", beyond, command=command, inner=inner, outer=outer, dearer=dearer),
    ]


def _curvature(result: RunResult) -> Claim:
    rows = result["methods"]
    kept, dropped, split, exact = (rows[n] for n in (PER_STEP, DROPPED, PER_CONTACT, EXACT))
    return PAPER.claim(
        "curvature",
        kept["solved"] and kept["steps"] < min(dropped["steps"], exact["steps"]),
        command=result.description.command(),
        exact=exact,
        kept=kept,
        dropped=dropped,
        split=split,
        stalled="" if split["solved"] else PAPER.phrase("stalled", split=split),
        ours=rows["ours_gauss_newton"],
    )


def _equations(result: RunResult) -> list[Claim]:
    sums = max(result["momentum_error"], result["position_error"])
    sound = max(sums, result["theorem_1_error"])
    given = {
        "command": result.description.command(),
        "r": result,
        "sums": sums,
        "euler": result["euler"]["100"],
        "condition": ", ".join(
            f"{c:.1e} at T = {knots}" for knots, c in result["condition"].items()
        ),
    }
    off = abs(result["bound_true"][0] - result["bound_printed"][0])
    return [
        PAPER.claim(name, holds, **given)
        for name, holds in (
            ("sums", sound <= ROUNDING),
            ("last_term", result["momentum_error_printed"] > 1.0 > sound),
            ("bound", off > 0.1),
            ("euler", given["euler"]["com_m"] > 1e-3),
        )
    ]


def _time_picture(runs: Sequence[RunResult]) -> Picture:
    def fill(axes):
        axis = axes[0, 0]
        for key, marks, colour, label in (
            ("solve_ms", "o-", COLOURS[0], "ours"),
            ("ipopt_ms", "s-", COLOURS[1], "IPOPT"),
        ):
            measured = [run for run in runs if run[key]]
            knots, times = map(_knots, measured), (run[key] for run in measured)
            axis.loglog(list(knots), list(times), marks, color=colour, label=label)
        axis.set_xlabel("knots T")
        axis.set_ylabel("ms of CPU")
        legend_beside(axis)

    return Picture("kinodynamic_time", draw(8.0, 3.6, 1, 1, fill), PAPER.phrase("figure"))


def _table(name: str, result: RunResult, titles: Mapping[str, str] | None = None) -> Table:
    """The rows of one run, with their names or with titles for them."""
    rows = [{"name": (titles or {}).get(key, key), **row} for key, row in result[name].items()]
    return PAPER.table(name, rows, knots=_knots(result))
