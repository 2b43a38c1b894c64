"""What the sparse factorisation paper says, counts of its solver, and what the runs say to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.papers.blocks import (
    BETTERED,
    NOT_REPRODUCED,
    REPRODUCED,
    WRONG,
    Claim,
)
from experiments.papers.sparse_dynamics import (
    EQUATIONS,
    FORWARD,
    LOAD_CELLS,
    NAME,
    aba_formula,
)
from experiments.papers.sparse_dynamics_tracer import Count
from experiments.papers.store import RunResult

UMFPACK = {
    FORWARD: {
        2: (442, 197),
        5: (1570, 1641),
        10: (3659, 6427),
        20: (7857, 15024),
        30: (12164, 22855),
    },
    LOAD_CELLS: {
        4: (1210, 1131),
        8: (2822, 3281),
        12: (4663, 6884),
        16: (6684, 11920),
        20: (8730, 17083),
    },
}
"""Links -> what the author's program says of P A Q = L U, and what it takes, in the order that UMFPACK
5.7.1 (without scaling) finds at one set of angles. Quoted: UMFPACK is not among this package's needs, so
no run measures it again. At ten other sets: forward dynamics, 10, 20, 30 links: 3,463 to 3,569 and
6,062 to 6,446; 7,607 to 7,707 and 14,503 to 15,288; 11,764 to 11,958 and 22,680 to 23,579. Load cells,
20 links: 8,273 to 8,960 and 16,043 to 20,829. Of the first, 1 to 3 % is whether b has zeros."""

MOST_OF_RNEA = 3.0
"""The load cells' operations must not exceed so many times those of inverse dynamics."""

Y_AS_PRINTED = (2, 3, 4)
"""Rows of Y in (19b) that are not zero."""

EXACT = 1e-9
"""Relative error below which two algorithms agree."""

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


def _command(runs: Mapping[int, RunResult]) -> str:
    last = runs[max(runs)]
    return (
        last.description.command() if len(runs) == 1 else f"python -m experiments reproduce {NAME}"
    )


def _quoted(problem: str, links: int) -> str:
    if links not in UMFPACK[problem]:
        return ""
    program, correct = UMFPACK[problem][links]
    return f"in the order of UMFPACK 5.7.1 {program:,} by its program, {correct:,} in fact; "


def _figure_1(runs: Mapping[int, RunResult]) -> list[Claim]:
    """The headline, and how its count goes wrong."""
    n = max(runs)
    result, aba = runs[n], aba_formula(n).total
    fewest = min(r["correct"] / r["paper_chain"] for r in runs.values())
    below = [links for links, r in runs.items() if r["correct"] <= aba_formula(links).total]
    additions, _ = result["program_factorisation"]
    _, multiplications = result["unpermuted_program_factorisation"]
    return [
        Claim(
            "sparse factorisation paper, V-D, figure 1",
            "forward dynamics by permuted LU takes fewer operations than ABA",
            WRONG if result["correct"] > aba else NOT_REPRODUCED,
            f"{n} links, ABA {aba:,}: {_quoted(FORWARD, n)}in the best of our orders "
            f"({result['order']}) {result['program']:,} and {result['correct']:,}, the same "
            f"accelerations to {result['factorisation_error']:.0g}. X, v x S qd and v x* I v are not "
            f"in either, but in ABA's: without them LU is below ABA up to {max(below, default=0)} links. "
            f"Elimination by blocks of the same chain, all in, takes {result['paper_chain']:,}; LU at "
            f"least {fewest:.2f} times as much at every length",
            _command(runs),
        ),
        Claim(
            "sparse factorisation paper, program lu_cost.m",
            "nnz(R(r,k).*R(k,r)') is the number of operations of a rank-one update",
            WRONG if multiplications < 0 or 10 * additions < result["correct"] else NOT_REPRODUCED,
            f"it is the length of the update's diagonal: {n} links ({result['order']}) are factorised "
            f"with {additions} additions in all; and nnz(x-1) counts the factors that are not 1 to "
            f"subtract them: with partial pivoting {multiplications:,} multiplications. In fact "
            f"{result['unpermuted_correct']:,} operations, where it says "
            f"{result['unpermuted_program']:,}",
            _command(runs),
        ),
    ]


def _fewer_than_aba(runs: Mapping[int, RunResult]) -> Claim:
    ratios, above = {}, []
    for n, r in runs.items():
        ours, aba = Count(*r["ours"]), aba_formula(n)
        ratios[n] = min(sum(r["ours_regrouped"]), sum(r["joints_last_regrouped"])) / aba.total
        if ours.additions > aba.additions or ours.multiplications > aba.multiplications:
            above.append(n)
    n = max(runs)
    wrong = max(max(r["joints_last_error"], r["torque_error"]) for r in runs.values())
    return Claim(
        "sparse factorisation paper, V-D",
        "structure known beforehand makes forward dynamics cheaper than ABA's count",
        NOT_REPRODUCED if above or wrong > EXACT else BETTERED,
        f"by block elimination of the same system, nothing given: {n} links "
        f"{sum(runs[n]['ours']):,} against {aba_formula(n).total:,} of the general chain; additions "
        f"and multiplications each at most ABA's for {len(runs) - len(above)} of {len(runs)} lengths "
        f"from {min(runs)} to {n}; with base inertial parameters {min(ratios.values()):.2f} to "
        f"{max(ratios.values()):.2f} x ABA. Two eliminations and inverse dynamics agree to {wrong:.0e}",
        _command(runs),
    )


def _figure_2(runs: Mapping[int, RunResult]) -> Claim:
    n = max(runs)
    result, worst = runs[n], max(sum(r["ours"]) / sum(r["rnea"]) for r in runs.values())
    error = max(r["torque_error"] for r in runs.values())
    saves = all(r["correct"] < r["unpermuted_correct"] for r in runs.values())
    better = (
        saves
        and worst <= MOST_OF_RNEA
        and error < EXACT
        and all(sum(r["ours"]) < min(r["correct"], r["program"]) for r in runs.values())
    )
    return Claim(
        "sparse factorisation paper, VI, figure 2",
        "permutations save operations in inverse dynamics from two load cells by LU",
        BETTERED if better else REPRODUCED if saves else NOT_REPRODUCED,
        f"{n} links: {_quoted(LOAD_CELLS, n)}in our order {result['program']:,} and "
        f"{result['correct']:,} (without permutations {result['unpermuted_correct']:,}); all of d is "
        f"affine in five unknowns: {sum(result['ours']):,}, nothing given, at most {worst:.3f} x inverse "
        f"dynamics for {min(runs)} to {n} links; torques to {error:.0e}",
        _command(runs),
    )


# Equations


def _equations(result: RunResult) -> list[Claim]:
    command = result.description.command()
    return [
        Claim(source, text, verdict, evidence, command)
        for source, text, verdict, evidence in (
            *_of_inverse_dynamics(result),
            *_of_forward_dynamics(result),
            *_of_load_cells(result),
        )
    ]


def _of_inverse_dynamics(result: RunResult) -> list[tuple[str, str, str, str]]:
    above = result["property_1_above_diagonal"]
    ordered, rows = result["peeled_rows"], result["peeled_of"]
    return [
        (
            "sparse factorisation paper, property 1",
            "inverse dynamics is lower triangular in the orders (11), (12)",
            REPRODUCED if above == 0.0 else NOT_REPRODUCED,
            f"largest entry above the diagonal {above:g}",
        ),
        (
            "sparse factorisation paper, remark 3",
            "finding that order is NP-complete and takes a search by UMFPACK",
            WRONG if ordered == rows else NOT_REPRODUCED,
            "the matrix is regular: removing rows with one unknown, over and over, finds the order in "
            f"linear time wherever there is one: {ordered:,} of {rows:,} rows with 100 links",
        ),
    ]


def _of_forward_dynamics(result: RunResult) -> list[tuple[str, str, str, str]]:
    value = {
        name: result[f"property_2_{name}"]
        for name in (
            "printed",
            "corrected",
            "smallest_diagonal",
            "residual_printed",
            "residual_corrected",
        )
    }
    triangular = value["corrected"] < EXACT < value["smallest_diagonal"]
    return [
        (
            "sparse factorisation paper, eq. 35",
            "in this order of equations W^L D W^R is lower triangular",
            WRONG if triangular and value["printed"] > EXACT else NOT_REPRODUCED,
            f"{value['printed']:.2g} above the diagonal as printed; with the measured torques (15) beside "
            "the unknown ones and the equations of the joint torques (3) at the end "
            f"{value['corrected']:.1g}. The author's program has it so",
        ),
        (
            "sparse factorisation paper, property 2",
            "W^L D W^R d + b = 0",
            WRONG
            if value["residual_corrected"] < EXACT < value["residual_printed"]
            else NOT_REPRODUCED,
            f"residual {value['residual_printed']:.2g}; of W^L D W^R d' + W^L b = 0 with d = W^R d' "
            f"{value['residual_corrected']:.1g}: d' holds p^A_i in place of f_i",
        ),
    ]


def _of_load_cells(result: RunResult) -> list[tuple[str, str, str, str]]:
    ranks, seen = result["ranks"], result["seen_by_cells"]
    poses, deficient = sum(ranks.values()), sum(n for rank, n in ranks.items() if rank != "6")
    return [
        (
            "sparse factorisation paper, property 3 and remark 5",
            "four load cells under each foot leave the dynamics undecided for some poses of the feet",
            REPRODUCED if deficient else NOT_REPRODUCED,
            f"for {deficient:,} of {poses:,} random poses (rank {', '.join(ranks)} of 6): stronger than "
            "stated where it is all of them",
        ),
        (
            "sparse factorisation paper, eq. 19b",
            "Y has rows 3, 4, 5 of the wrench, which is couple, then force (section II)",
            NOT_REPRODUCED if tuple(seen) == Y_AS_PRINTED else WRONG,
            f"normal forces on four corners make components {_of_wrench(seen)}; Y as printed takes "
            f"{_of_wrench(Y_AS_PRINTED)}. Section VI counts forces first, so does (24b); and (24) says y in "
            "R^3 of a Y with five columns",
        ),
    ]


def _of_wrench(components: Sequence[int]) -> str:
    return ", ".join(("n_x", "n_y", "n_z", "f_x", "f_y", "f_z")[k] for k in components)
