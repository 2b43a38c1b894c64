"""Kinodynamic paper (Herzog, Schaal, Righetti): its momentum problem, solved, timed and counted again.

The scene is TALOS' weight over rising, tilted stones (``kinodynamic_scenes``): phases of 0.7 s as
in the paper, the rest ours. IPOPT, where CasADi is installed, solves the same problem in the paper's
bilinear form. Times are of this process's CPU,
the least of several.
"""

from __future__ import annotations

import time

import numpy as np

from contact_id_controller.planning.kinodynamic import CONES, HESSIANS, solve_momentum
from experiments.papers import (
    kinodynamic_bilinear,
    kinodynamic_equations,
    momentum_ipopt,
)
from experiments.papers.kinodynamic_scenes import talos
from experiments.papers.store import RunDescription

NAME = "kinodynamic"
TIME, CURVATURE, PRESSURE, EQUATIONS = "time", "curvature", "pressure", "equations"
KNOTS = (50, 100, 200, 400, 800, 1600)
QUICK_KNOTS = (50, 200, 1600)
IPOPT_UP_TO = 400  # knots; it takes seconds beyond
SEQUENTIAL_UP_TO = 200  # a dense matrix beyond takes minutes
REPEATS = 7
COUNTED_KNOTS = 50
STEP_LIMIT = 60


def runs(quick: bool) -> list[RunDescription]:
    """One for each horizon, and one for each other table."""
    return [
        *(
            RunDescription(NAME, {"problem": TIME, "knots": knots})
            for knots in (QUICK_KNOTS if quick else KNOTS)
        ),
        RunDescription(NAME, {"problem": CURVATURE, "knots": COUNTED_KNOTS}),
        RunDescription(NAME, {"problem": PRESSURE, "knots": 100}),
        RunDescription(NAME, {"problem": EQUATIONS}),
    ]


def run(description: RunDescription) -> dict:
    """The figures of one of them."""
    problem = description.parameters["problem"]
    if problem == EQUATIONS:
        return kinodynamic_equations.check()
    return {TIME: times, CURVATURE: curvatures, PRESSURE: pressure}[problem](
        description.parameters["knots"]
    )


def times(knots: int, repeats: int = REPEATS, ipopt_up_to: int = IPOPT_UP_TO) -> dict:
    """Least time of a solve with all that is around it, steps and residuals, and IPOPT's."""
    problem = talos(knots)
    plan = solve_momentum(problem)  # compiles
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        plan = solve_momentum(problem)
        taken.append(time.process_time() - start)
    residuals = plan.residuals()
    found = {
        "solve_ms": 1e3 * min(taken),
        "steps": plan.steps,
        "cost": plan.cost,
        "defect": max(
            residuals[name] for name in residuals if name not in ("friction_n", "normal_n")
        ),
        "friction_n": residuals["friction_n"],
        "sequential_step_ms": sequential_step_ms(knots) if knots <= SEQUENTIAL_UP_TO else None,
    }
    if knots > ipopt_up_to or not momentum_ipopt.available():
        return {**found, "ipopt_ms": None, "ipopt_iterations": None, "relative_cost": None}
    judge = momentum_ipopt.solve(problem)
    return {
        **found,
        "ipopt_ms": 1e3 * judge.solve_s if judge.solved else None,
        "ipopt_iterations": judge.iterations,
        "relative_cost": plan.cost / judge.cost - 1.0,
    }


def curvatures(knots: int) -> dict:
    """Steps of the bilinear form with each part of its curvature, and of ours."""
    problem, rows = talos(knots), {}
    for kept in kinodynamic_bilinear.CURVATURES:
        found = kinodynamic_bilinear.solve(problem, kept, STEP_LIMIT)
        rows[kept] = _row(found.solved, found.steps, found.cost, found.defect, found.stationarity)
    for hessian in HESSIANS:
        plan = solve_momentum(problem, hessian=hessian)
        rows[f"ours_{hessian}"] = _row(True, plan.steps, plan.cost, *plan.history[-1, 1:3])
    return {"methods": rows}


def _row(solved, steps, cost, defect, stationarity) -> dict:
    return {
        "solved": bool(solved),
        "steps": int(steps),
        "cost": float(cost),
        "defect": float(defect),
        "stationarity": float(stationarity),
    }


def pressure(knots: int) -> dict:
    """Least distance of the CoP from the edge of the planned area, and friction used, by cone."""
    rows = {}
    for cone in CONES:
        plan = solve_momentum(talos(knots, cone=cone))
        rows[cone] = {
            "cost": plan.cost,
            "steps": plan.steps,
            "outside_m": _outside(plan),
            "friction_used": _friction(plan),
        }
    return {"cones": rows}


def _feet(plan):
    """Foothold, sole, corner forces (c, 3) in ground axes of each loaded foot and interval."""
    problem = plan.problem
    local = plan.local_forces()
    for t in range(problem.knots):
        phase = problem.contact_plan.phases[problem.contacts.phase[t]]
        for number, sole in enumerate(problem.contact_plan.soles):
            corners = problem.contacts.sole_of_corner == number
            forces = local[t, corners]
            if (
                phase.foothold_of(sole.frame) is not None
                and forces[:, 2].sum() > 1e-3 * problem.weight_n
            ):
                yield phase.foothold_of(sole.frame), sole, forces


def _outside(plan) -> float:
    """How far the CoP leaves the planned area, m: negative inside."""
    worst = -np.inf
    for _, sole, forces in _feet(plan):
        centre = forces[:, 2] @ sole.corners[:, :2] / forces[:, 2].sum()
        half = np.abs(sole.corners[:, :2] - sole.center_m[:2]).max(0)
        worst = max(worst, float((np.abs(centre - sole.center_m[:2]) - half).max()))
    return worst


def _friction(plan) -> float:
    """Largest |f_t| / f_n of a loaded corner."""
    local = plan.local_forces()
    loaded = local[..., 2] > 1e-3 * plan.problem.weight_n
    return float((np.linalg.norm(local[loaded][:, :2], axis=1) / local[loaded][:, 2]).max())


def sequential_step_ms(knots: int, repeats: int = 3) -> float:
    """Time to factorise a dense matrix of 12 T unknowns, as a Newton step of the sequential form takes.

    Its variables are double sums of the forces, so that every force acts on every later state: the
    Hessian has no zeros. Less than a step takes: nothing is evaluated here.
    """
    size = 12 * knots
    root = np.random.default_rng(0).standard_normal((size, size))
    matrix, taken = root @ root.T + size * np.eye(size), []
    for _ in range(repeats):
        start = time.process_time()
        np.linalg.cholesky(matrix)
        taken.append(time.process_time() - start)
    return 1e3 * min(taken)
