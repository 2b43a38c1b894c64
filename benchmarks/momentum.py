"""Momentum plans: time, steps and accuracy against IPOPT, curvature that is kept, and random scenes.

    python benchmarks/momentum.py --knots 50 100 200 400 --scenes 10000

The scene is that of ``python -m experiments reproduce kinodynamic``. Times are the least CPU times of a whole
solve (arrays, method, plan) and of the compiled method alone; IPOPT's graph is built beforehand. Random
scenes: stones, tilts, friction, phases and knots, once with the standard weights, once with weights
over four decades; a plan is refused where the weights let the robot fall.
"""

from __future__ import annotations

import argparse
import collections
import time

import checkout  # noqa: F401  before what is not installed
import numpy as np

from contact_id_controller.planning.kinodynamic import (
    InfeasiblePlanError,
    MomentumError,
    MomentumWeights,
    momentum,
    momentum_kernel,
    solve_momentum,
)
from experiments.papers import kinodynamic, momentum_ipopt
from experiments.papers.kinodynamic_scenes import random_problem, talos


def kernel_ms(knots: int, repeats: int) -> float:
    """Least CPU time of the compiled method alone."""
    problem, taken = talos(knots), []
    for _ in range(repeats):
        program, _ = momentum.program_of(problem, "gauss_newton")
        iterate = momentum.first_iterate(problem, program)
        work = momentum_kernel.work_of(program, momentum.MAX_STEPS)
        start = time.process_time()
        momentum_kernel.solve(program, iterate, work, momentum.MAX_STEPS)
        taken.append(time.process_time() - start)
    return 1e3 * min(taken)


def times(all_knots: list[int], repeats: int, ipopt_up_to: int) -> None:
    """Table A."""
    if not momentum_ipopt.available():
        print("casadi is not installed: without IPOPT")
    print("    T   solve ms  kernel ms  steps   defect   IPOPT ms  iter  ratio  relative cost")
    for knots in all_knots:
        found = kinodynamic.times(knots, repeats, ipopt_up_to)
        line = (
            f"{knots:5d} {found['solve_ms']:9.2f} {kernel_ms(knots, repeats):10.2f} "
            f"{found['steps']:6d} {found['defect']:9.1e}"
        )
        if found["ipopt_ms"]:
            ratio = found["ipopt_ms"] / found["solve_ms"]
            line += (
                f" {found['ipopt_ms']:9.0f} {found['ipopt_iterations']:5d} {ratio:6.1f} "
                f"{found['relative_cost']:12.1e}"
            )
        print(line, flush=True)


def curvatures(knots: int) -> None:
    """Table B."""
    print(f"curvature, T = {knots}: steps, dynamics residual, stationarity, cost")
    for name, row in kinodynamic.curvatures(knots)["methods"].items():
        solved = " " if row["solved"] else ">"
        print(
            f"  {name:24s} {solved}{row['steps']:3d} {row['defect']:9.1e} "
            f"{row['stationarity']:9.1e} {row['cost']:.7f}"
        )


def scenes(count: int) -> None:
    """How many random scenes are solved, refused by name, or not solved."""
    for name, weights in (("standard weights", MomentumWeights()), ("random weights", None)):
        ends, steps = collections.Counter(), []
        for seed in range(count):
            try:
                steps.append(solve_momentum(random_problem(seed, weights)).steps)
                ends["solved"] += 1
            except InfeasiblePlanError:
                ends["refused"] += 1
            except MomentumError as error:
                ends["not solved"] += 1
                print(f"  seed {seed}: {error}")
        quantiles = np.percentile(steps, [50, 99, 100]) if steps else "-"
        print(f"{count} scenes, {name}: {dict(ends)}; steps median, 99 %, most: {quantiles}")


def main() -> None:
    """Print the requested tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--knots", type=int, nargs="*", default=[50, 100, 200, 400, 800, 1600])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--ipopt-up-to", type=int, default=400)
    parser.add_argument("--curvature-knots", type=int, default=50, help="0: without that table")
    parser.add_argument("--scenes", type=int, default=1000)
    chosen = parser.parse_args()
    times(chosen.knots, chosen.repeats, chosen.ipopt_up_to)
    if chosen.curvature_knots:
        curvatures(chosen.curvature_knots)
    if chosen.scenes:
        scenes(chosen.scenes)


if __name__ == "__main__":
    main()
