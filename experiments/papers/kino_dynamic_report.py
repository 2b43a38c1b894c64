"""The section of the report about the kino-dynamic paper's momentum problem, and what came of its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contact_id_controller.report.figures import draw, legend_beside
from contact_id_controller.report.style import COLOURS
from experiments.papers.blocks import (
    NOT_REPRODUCED,
    REPRODUCED,
    WRONG,
    Claim,
    Picture,
    Section,
    Table,
    Text,
)
from experiments.papers.kino_dynamic import CURVATURE, EQUATIONS, NAME, PRESSURE, TIME
from experiments.papers.kino_dynamic_bilinear import DROPPED, EXACT, PER_CONTACT, PER_STEP
from experiments.papers.store import RunResult

PAPER = "kino-dynamic paper"
LINEAR = 1.5
"""Time for n times the knots, divided by n: at most so much is called linear. Long horizons leave the
processor's cache; quadratic would be n."""

ROUNDING = 1e-9
METHODS = {
    EXACT: "paper's bilinear form, exact Hessian",
    PER_STEP: "the same, negative part dropped, r x F split once a step",
    PER_CONTACT: "the same, split by contact",
    DROPPED: "the same, curvature of the constraint dropped",
    "ours_gauss_newton": "ours, gauss_newton",
    "ours_difference_of_psd": "ours, difference_of_psd",
    "ours_exact": "ours, exact",
}

Found = Mapping[str, list[RunResult]]


def report(results: Sequence[RunResult]) -> Section:
    """Times, methods, cones, formulas, and the claims that these runs can judge."""
    found = _by_problem(results)
    blocks: list = [
        Text(
            "TALOS' weight walks four rising stones, two of them tilted by 12 degrees, in phases of 0.7 s "
            "as in the paper; sizes, friction (0.6) and weights are ours, the paper does not tell its own. "
            "Ours takes angular momentum about fixed points, where dynamics are linear and exact, and "
            "solves by an interior point method over Riccati's recursion. IPOPT (CasADi, MUMPS, exact "
            "Hessian) solves the same problem in the paper's bilinear form; the time to build its graph is "
            "not counted. Times are of the process' CPU."
        )
    ]
    if found[TIME]:
        blocks += [_time_picture(found[TIME]), _time_table(found[TIME])]
    blocks += [_method_table(result) for result in found[CURVATURE]]
    blocks += [_cone_table(result) for result in found[PRESSURE]]
    title = "Momentum of a kino-dynamic plan (structured contact force optimisation)"
    return Section(title, blocks, claims(results))


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
    found[TIME].sort(key=lambda result: result.parameters["knots"])
    return found


def _knots(result: RunResult) -> int:
    return result.parameters["knots"]


# Claims


def _linear(runs: Sequence[RunResult]) -> Claim:
    """The longest against the shortest that takes long enough to be measured: an eighth of it."""
    last = runs[-1]
    first = min(runs[:-1], key=lambda run: abs(8 * _knots(run) - _knots(last)))
    longer = _knots(last) / _knots(first)
    ratio = last["solve_ms"] / first["solve_ms"]
    judged = [run for run in runs if run["ipopt_ms"]]
    beside = ""
    if judged:
        factors = [run["ipopt_ms"] / run["solve_ms"] for run in judged]
        costs = [run["relative_cost"] for run in judged]
        beside = (
            f"; IPOPT takes {min(factors):.0f} to {max(factors):.0f} times as long up to T = "
            f"{_knots(judged[-1])}, to a cost that ours differs from by {min(costs):+.0e} to "
            f"{max(costs):+.0e}, relative"
        )
    return Claim(
        f"{PAPER}, IV-C, V-A, figure 4",
        "the cost of the momentum problem is linear in T",
        REPRODUCED if ratio <= LINEAR * longer else NOT_REPRODUCED,
        f"T = {_knots(last)} takes {ratio:.1f} times as long as T = {_knots(first)} "
        f"({last['solve_ms']:.0f} and {first['solve_ms']:.1f} ms, {last['steps']} and {first['steps']} "
        f"steps){beside}",
        f"python -m experiments reproduce {NAME}",
    )


def _sequential(runs: Sequence[RunResult]) -> list[Claim]:
    """12 T unknowns that are double sums against 21 T of which 6 at a time are solved for."""
    measured = [run for run in runs if run["sequential_step_ms"]]
    if not measured:
        return []
    run = measured[-1]
    ours = run["solve_ms"] / run["steps"]
    return [
        Claim(
            f"{PAPER}, IV-D",
            "the sequential form (12 T variables) is cheaper than the simultaneous one (21 T)",
            NOT_REPRODUCED if ours < run["sequential_step_ms"] else REPRODUCED,
            f"T = {_knots(run)}: the sequential form's Hessian is dense, its factorisation alone takes "
            f"{run['sequential_step_ms']:.0f} ms; a whole step of ours takes {ours:.2f} ms, since the "
            f"forces act through 6 numbers an interval, whatever the number of contacts",
            run.description.command(),
        )
    ]


def _pressure(result: RunResult) -> list[Claim]:
    cones = result["cones"]
    outside = max(row["outside_m"] for row in cones.values())
    inner, outer = cones["pyramid"], cones["outer_pyramid"]
    dearer = inner["cost"] / cones["cone"]["cost"] - 1
    return [
        Claim(
            f"{PAPER}, V-B, figure 5",
            "the centre of pressure never leaves the feet",
            REPRODUCED if outside <= ROUNDING else NOT_REPRODUCED,
            f"by construction, forces act at corners: {outside:.0e} m beyond the planned area at most",
            result.description.command(),
        ),
        Claim(
            f"{PAPER}, eq. 20",
            "|f_x|, |f_y| <= mu f_z keeps the force in the friction cone",
            WRONG if outer["friction_used"] > 0.6 * (1 + 1e-6) else NOT_REPRODUCED,
            f"that pyramid is around the cone: planned |f_t| / f_n reaches {outer['friction_used']:.3f} at "
            f"mu 0.6. With mu / sqrt 2 it is {inner['friction_used']:.3f} and the cost "
            f"{100 * dearer:.3f} % higher than with the cone itself",
            result.description.command(),
        ),
    ]


def _curvature(result: RunResult) -> Claim:
    rows = result["methods"]
    kept, dropped, split = rows[PER_STEP], rows[DROPPED], rows[PER_CONTACT]
    better = kept["solved"] and kept["steps"] < min(dropped["steps"], rows[EXACT]["steps"])
    stalled = (
        "" if split["solved"] else f" without an end (stationarity {split['stationarity']:.0e})"
    )
    return Claim(
        f"{PAPER}, III-B, V-A",
        "dropping the negative part of the Lagrangian's Hessian makes convergence fast",
        REPRODUCED if better else NOT_REPRODUCED,
        f"the same interior point method: exact Hessian {rows[EXACT]['steps']} steps, negative part "
        f"dropped {kept['steps']}, whole curvature of the constraint dropped {dropped['steps']}; split by "
        f"contact instead of by step {split['steps']}{stalled}. Ours: {rows['ours_gauss_newton']['steps']}, "
        f"dynamics to {rows['ours_gauss_newton']['defect']:.0e}. The paper compares with SNOPT, which "
        f"uses no second derivatives",
        result.description.command(),
    )


def _equations(result: RunResult) -> list[Claim]:
    command = result.description.command()
    sound = max(result["momentum_error"], result["position_error"], result["theorem_1_error"])
    euler = result["euler"]["100"]
    true, printed = result["bound_true"], result["bound_printed"]
    condition = ", ".join(
        f"{value:.1e} at T = {knots}" for knots, value in result["condition"].items()
    )
    return [
        Claim(
            f"{PAPER}, III-B, IV-B",
            "states follow from phi at four times only; the split needs no eigenvalues on-line",
            REPRODUCED if sound <= ROUNDING else NOT_REPRODUCED,
            f"sums to {max(result['momentum_error'], result['position_error']):.0e}, theorem 1 to "
            f"{result['theorem_1_error']:.0e}. But double sums are ill-conditioned: {condition}, squared in "
            f"the Hessian",
            command,
        ),
        Claim(
            f"{PAPER}, IV-B",
            "the last term of l_t has Delta squared",
            WRONG if result["momentum_error_printed"] > 1.0 > sound else NOT_REPRODUCED,
            f"{result['momentum_error_printed']:.0f} kg m/s off in 30 steps; with Delta "
            f"{result['momentum_error']:.0e}",
            command,
        ),
        Claim(
            f"{PAPER}, eq. 28",
            "the bound on the centre of pressure has p_max - c",
            WRONG if abs(true[0] - printed[0]) > 0.1 else NOT_REPRODUCED,
            f"margins {true[0]:.0f} and {true[1]:.0f} N m: the formula gives {printed[0]:.0f} and "
            f"{printed[1]:.0f}, with p_max + c {result['bound_meant'][0]:.0f} and "
            f"{result['bound_meant'][1]:.0f}",
            command,
        ),
        Claim(
            f"{PAPER}, eq. 7",
            "Euler's rule stands for the dynamics",
            WRONG if euler["com_m"] > 1e-3 else NOT_REPRODUCED,
            f"its symplectic variant leaves {1e3 * euler['com_m']:.1f} mm and "
            f"{euler['angular_momentum']:.2f} kg m2/s at T = 100 against the motion under the same forces; "
            f"the exact map, which is as linear, nothing",
            command,
        ),
    ]


# Blocks


def _time_picture(runs: Sequence[RunResult]) -> Picture:
    def fill(axes):
        axis = axes[0, 0]
        knots = [_knots(run) for run in runs]
        axis.loglog(knots, [run["solve_ms"] for run in runs], "o-", color=COLOURS[0], label="ours")
        judged = [run for run in runs if run["ipopt_ms"]]
        axis.loglog(
            [_knots(run) for run in judged],
            [run["ipopt_ms"] for run in judged],
            "s-",
            color=COLOURS[1],
            label="IPOPT",
        )
        axis.set_xlabel("knots T")
        axis.set_ylabel("ms of CPU")
        legend_beside(axis)

    return Picture(
        "kino_dynamic_time",
        draw(8.0, 3.6, 1, 1, fill),
        "Figure 4. Time of the momentum problem against the number of knots; the paper's has no figures "
        "in seconds for this part alone.",
    )


def _time_table(runs: Sequence[RunResult]) -> Table:
    return Table(
        "Time and residuals of the momentum problem. Defect: of the dynamics, about the centre of mass, SI.",
        ("T", "ours, ms", "steps", "defect", "IPOPT, ms", "iterations", "cost - IPOPT's, relative"),
        [
            (
                _knots(run),
                run["solve_ms"],
                run["steps"],
                run["defect"],
                run["ipopt_ms"],
                run["ipopt_iterations"],
                run["relative_cost"],
            )
            for run in runs
        ],
        [run.description.command() for run in runs],
    )


def _method_table(result: RunResult) -> Table:
    return Table(
        f"Curvature that is kept, T = {_knots(result)}: steps of interior point methods without line search.",
        ("method", "solved", "steps", "dynamics residual", "stationarity", "cost"),
        [
            (
                METHODS[name],
                row["solved"],
                row["steps"],
                row["defect"],
                row["stationarity"],
                f"{row['cost']:.7f}",
            )
            for name, row in result["methods"].items()
        ],
    )


def _cone_table(result: RunResult) -> Table:
    return Table(
        f"Sets of forces, T = {_knots(result)}, mu 0.6. Outside: of the CoP beyond the planned area.",
        ("set", "cost", "steps", "outside, m", "largest |f_t| / f_n"),
        [
            (name, f"{row['cost']:.7f}", row["steps"], row["outside_m"], row["friction_used"])
            for name, row in result["cones"].items()
        ],
    )
