"""How the contact models bear random problems: ``python -m experiments benchmark --robustness``.

Every model solves every problem of ``random_problems``. A solution called solved is held to the
model's laws (``model_laws``), and now and then to the equations of motion by Pinocchio; any other
must have a name, and forces that can be used all the same: finite, inside the cone, not pulling.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.exit_codes import DONE, NOT_ALL_WELL
from contact_id_controller.models import (
    ROWS,
    ContactModel,
    Tangential,
    contact_models,
    row_of,
    solve,
)
from contact_id_controller.models.steps.relaxation import elastic, mean_diagonal
from contact_id_controller.solution import (
    INCONSISTENT,
    RELAXED,
    SOLVED,
    STATUSES,
    UNHOLDABLE,
    Solution,
)
from experiments.benchmark.model_laws import friction_bound, outside_cone, violation
from experiments.benchmark.random_problems import RandomProblem, random_problem

TOLERANCE = 1e-6  # relative distance from the cone up to which forces lie in it
DYNAMICS_EVERY = 10  # every so many problems also by Pinocchio's recursions, which take long
CHUNK = 100  # problems that a process takes at once
CHUNK_LIMIT_S = 900.0  # a chunk that takes longer hangs
CERTAIN = 1e-9  # softness of the contacts whose forces prove a contradiction
ABSURD = 1e3  # motions this much larger than those at hand count as none
EXAMPLES = 5  # failures listed for each model

IMPOSSIBLE = "impossible"
"""Rightly called inconsistent: certified by forces that no motion can satisfy."""

BAD = ("exception", "not finite", "wrong", "unusable")
"""Outcomes that must not occur: beside the last two, a solution that breaks its laws under the name
``solved``, and a fallback that cannot be used."""


class Trial(NamedTuple):
    """One model on one problem: its outcome and the violation of its laws."""

    outcome: str
    violation: float
    iterations: int


def models(names: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The models tried: of those named "friction/solver", or of all, those that let contacts part.

    Most of these problems have no solution for a model that holds every touching contact;
    ``benchmarks/qcqp.py`` tries coulomb/qcqp on its own.

    Raises:
        ConfigurationError: a name that is not one of them.
    """
    known = {str(row): row.pair for row in contact_models() if not row.holds_touching}
    for name in names:
        if name not in known:
            raise ConfigurationError(f"--models names {name!r}, must be of {choices(known)}")
    return [known[name] for name in names or known]


def attempt(friction: str, solver: str, case: RandomProblem, dynamics: bool) -> Trial:
    """Solve a problem with a model and judge the answer; never raises."""
    row = row_of(friction, solver)
    chosen = {"edges": case.edges, "polygon": case.polygon, "distribution": case.distribution}
    try:
        solution = solve(
            case.problem,
            friction,
            solver,
            **{name: value for name, value in chosen.items() if row.takes(name)},
        )
    except Exception as error:  # noqa: BLE001  what is counted here is that none comes out
        return Trial(f"exception ({type(error).__name__}: {error})", np.inf, 0)
    arrays = (solution.impulses, solution.torques, solution.velocity)
    if not all(np.isfinite(array).all() for array in arrays):
        return Trial("not finite", np.inf, solution.iterations)
    if solution.status in (SOLVED, RELAXED):
        defect = violation(friction, solver, solution, case.edges, case.polygon)
        if dynamics:
            defect = max(defect, relative_dynamics_defect(solution, case.q, case.v))
        return Trial(
            solution.status if defect <= row.accuracy else "wrong", defect, solution.iterations
        )
    if solution.status == INCONSISTENT and contradictory(row, solution, case):
        return Trial(
            IMPOSSIBLE if usable(row, solution, case) else "unusable", 0.0, solution.iterations
        )
    if solution.status not in STATUSES or not usable(row, solution, case):
        return Trial("unusable", np.inf, solution.iterations)
    return Trial(solution.status, 0.0, solution.iterations)


def usable(row: ContactModel, solution: Solution, case: RandomProblem) -> bool:
    """Whether a fallback's forces lie inside their cones (circumscribed polygon) and do not pull."""
    problem = solution.problem
    z = solution.impulses.reshape(-1, 3)
    mu, edges = friction_bound(row, problem, case.edges, "circumscribed")
    if row.tangential is Tangential.VISCOUS:  # tangential forces are no question of a cone
        mu = np.full(len(z), np.inf)
    largest = np.abs(z).max(initial=0.0)
    return outside_cone(z, mu, edges) <= TOLERANCE * largest


def contradictory(row: ContactModel, solution: Solution, case: RandomProblem) -> bool:
    """Whether no motion satisfies the contacts of the plan as it was changed, proven by Farkas' lemma.

    Forces s in the cones with Y^T s = 0 and s (c + gap) < 0 exclude every u with Y u + c + gap in the
    dual cones; rounding leaves Y^T s so small that u would have to be absurd. Tried are the solution's
    own s and, sharper but slower, that of stiffer contacts; the proof counts, not where s is from.
    """
    problem = solution.problem
    if not len(problem):
        return False
    plan = problem.c.copy()
    if solution.joint_velocity_change is not None:
        plan -= problem.period * (problem.T @ solution.joint_velocity_change)
    mu, edges = friction_bound(row, problem, case.edges, case.polygon)
    own = None if solution.attainable is None else solution.attainable - plan
    if own is not None and _excludes(problem, plan, mu, edges, own):
        return True
    # Forces in a polygon inside the exact cone prove as much as any other.
    z = np.zeros(len(plan))
    elastic(
        problem.Y,
        plan,
        problem.gap_speed,
        mu,
        case.edges,
        CERTAIN * mean_diagonal(problem.Y),
        0.0,
        np.zeros(problem.robot.nu),
        z,
    )
    return _excludes(problem, plan, mu, case.edges, z)


def _excludes(problem, plan, mu, edges, s) -> bool:
    """Whether impulses s (3n,), of any size, prove that only an absurd motion could satisfy the plan."""
    demand = plan.copy()
    demand[::3] += problem.gap_speed
    power, leak = s @ demand, np.linalg.norm(problem.Y.T @ s)
    outside = outside_cone(s.reshape(-1, 3), mu, edges)
    normal = np.abs(demand).max() / np.sqrt(np.square(problem.Y).sum() / len(plan) or 1.0)
    return bool(
        power < 0.0 and outside <= TOLERANCE * np.abs(s).max() and -power >= ABSURD * normal * leak
    )


def relative_dynamics_defect(solution: Solution, q, v) -> float:
    """Defect of the equations of motion relative to their largest term, by Pinocchio."""
    robot = solution.problem.robot
    acceleration = (solution.velocity - v) / solution.problem.period
    data = robot.model.createData()
    inertial = pin.rnea(robot.model, data, q, v, acceleration)
    bias = pin.nonLinearEffects(robot.model, data, q, v)
    terms = (inertial - bias, bias, solution.torques, _generalized(solution))
    scale = max(np.abs(term).max(initial=0.0) for term in terms)
    return solution.dynamics_defect(q, v) / scale if scale else 0.0


def _generalized(solution):
    """Sizes of the contacts' generalized forces, one by one: internal forces may be large."""
    problem = solution.problem
    return np.abs(problem.T * solution.impulses[:, None]) if len(problem) else np.zeros(1)


def run_chunk(task: tuple[int, int, int, list[tuple[str, str]]]) -> dict:
    """Seed, first and last problem, models: for each outcomes, worst violation and examples."""
    seed, first, last, pairs = task
    result = {
        pair: {"outcomes": Counter(), "worst": 0.0, "iterations": 0, "examples": []}
        for pair in pairs
    }
    for number in range(first, last):
        case = random_problem(seed, number)
        for pair, row in result.items():
            if len(case.problem) > (ROWS[pair].most_contacts or len(case.problem)):
                continue  # refused
            trial = attempt(*pair, case, dynamics=number % DYNAMICS_EVERY == 0)
            outcome = trial.outcome.split(" (")[0]
            row["outcomes"][outcome] += 1
            row["iterations"] = max(row["iterations"], trial.iterations)
            if outcome in (SOLVED, RELAXED, IMPOSSIBLE, UNHOLDABLE):
                row["worst"] = max(row["worst"], trial.violation)
            else:
                row["examples"].append((number, trial.outcome, trial.violation, case.description))
    return result


def merge(total: dict, part: dict) -> dict:
    """Add one chunk's results to the others'."""
    for pair, row in part.items():
        if pair not in total:
            total[pair] = row
            continue
        mine = total[pair]
        mine["outcomes"] += row["outcomes"]
        mine["worst"] = max(mine["worst"], row["worst"])
        mine["iterations"] = max(mine["iterations"], row["iterations"])
        mine["examples"] += row["examples"]
    return total


def table(total: dict) -> str:
    """Counts of each status and outcome, one line a model."""
    names = (*STATUSES, IMPOSSIBLE, *BAD)
    lines = [
        "model".ljust(22)
        + "".join(name.rjust(14) for name in names)
        + "solved %".rjust(11)
        + "worst".rjust(10)
        + "steps".rjust(8)
    ]
    for (friction, solver), row in total.items():
        counts = row["outcomes"]
        share = 100.0 * counts[SOLVED] / max(_possible(counts), 1)
        lines.append(
            f"{friction}/{solver}".ljust(22)
            + "".join(str(counts[name]).rjust(14) for name in names)
            + f"{share:.4f}".rjust(11)
            + f"{row['worst']:.1e}".rjust(10)
            + str(row["iterations"]).rjust(8)
        )
    return "\n".join(lines)


def run_robustness(
    count: int = 100_000, seed: int = 0, processes: int = 2, names: Sequence[str] = ()
) -> int:
    """Try every model, or those named, on ``count`` random problems, print the counts; the exit code.

    Raises:
        ConfigurationError: a count or number of processes below 1, or no such model.
        multiprocessing.TimeoutError: a model that does not come back.
    """
    if count < 1 or processes < 1:
        raise ConfigurationError(
            f"--count and --jobs must be positive, got {count} and {processes}"
        )
    pairs = models(names)
    tasks = [(seed, first, min(first + CHUNK, count), pairs) for first in range(0, count, CHUNK)]
    total = (
        run_chunk((seed, 0, 1, pairs)) and {}
    )  # compiles the kernels before the processes need them
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pending = pool.imap_unordered(run_chunk, tasks)
        for _ in tasks:
            total = merge(total, pending.next(timeout=CHUNK_LIMIT_S))
    print(f"{count} random problems, seed {seed}\n")
    print(table(total))
    for (friction, solver), row in total.items():
        shown = sorted(row["examples"], key=lambda example: -example[2])[:EXAMPLES]
        for number, outcome, size, text in shown:
            print(f"{friction}/{solver} {outcome} ({size:.1e}): problem {number}: {text}")
    return DONE if passed(total) else NOT_ALL_WELL


def _possible(counts: Counter) -> int:
    return sum(counts.values()) - counts[IMPOSSIBLE] - counts[UNHOLDABLE]


def passed(total: dict) -> bool:
    """No bad outcome, and every model solves the share of the possible problems that its row states."""
    for pair, row in total.items():
        counts = row["outcomes"]
        required = ROWS[pair].solved_share * _possible(counts)
        if any(counts[name] for name in BAD) or counts[SOLVED] < required:
            return False
    return True
