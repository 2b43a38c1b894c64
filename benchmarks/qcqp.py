"""coulomb/qcqp beside Clarabel, the same programs in the same run.

    python benchmarks/qcqp.py                    # times at 4 contacts and 12 joints
    python benchmarks/qcqp.py --random 10000     # agreement on random programs, and what is infeasible

Times are medians, one thread. "Clarabel" is its solver object made and solved through its Python API,
at its default tolerances, from matrices that are ready; "whole solve" of coulomb/qcqp
starts at the contact problem. Both vary with the machine's load: compare within one run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))

import clarabel  # noqa: E402
from clarabel_programs import compare, conic_form, settings  # noqa: E402
from robots import gliding_solo, solo12  # noqa: E402

from contact_id_controller import build_problem, solve  # noqa: E402
from contact_id_controller.experiments.random_programs import random_program  # noqa: E402
from contact_id_controller.models.qcqp_assembly import TIE_BREAK  # noqa: E402
from contact_id_controller.projected.program import QcqpProgram  # noqa: E402

ROUNDS, LIMIT_NM = 500, 1.5


def reduced_program(problem, limit):
    """The program that coulomb/qcqp solves, for Clarabel: torques and forces (N) of a consistent plan."""
    na, n, dt = problem.robot.na, len(problem), problem.period
    motion = np.linalg.lstsq(problem.Y, -problem.c, rcond=None)[0]
    A = np.block([[np.eye(na), -dt * problem.T.T], [np.zeros((len(motion), na)), dt * problem.Y.T]])
    tie = TIE_BREAK * np.square(dt * problem.T).sum() / (3 * n)
    return QcqpProgram(A, np.concatenate([problem.torque_offset, motion]), problem.contacts.friction,
                       1.0, -limit, limit, tie)


def median_us(function):
    """Median time of a call, us."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times))


def timing() -> None:
    """Whole solve, warm and cold, beside Clarabel."""
    robot = solo12()
    q, v, acceleration, contacts = gliding_solo(robot)
    problem = build_problem(robot, q, v, acceleration, contacts, 1e-3)
    last = solve(problem, "coulomb", "qcqp", torque_limits=LIMIT_NM)
    form = conic_form(reduced_program(problem, LIMIT_NM))
    default = settings(1e-8)
    answer = clarabel.DefaultSolver(*form, default).solve()
    torques = np.array(answer.x)[:robot.na]
    print(f"status {last.status}, Clarabel {answer.status}; steps {last.iterations}, {answer.iterations}; "
          f"torques differ by {np.abs(torques - last.torques).max():.1e} N·m")
    theirs = median_us(lambda: clarabel.DefaultSolver(*form, default).solve())
    cold = median_us(lambda: solve(problem, "coulomb", "qcqp", torque_limits=LIMIT_NM))
    warm = median_us(lambda: solve(problem, "coulomb", "qcqp", torque_limits=LIMIT_NM, warm_start=last))
    print(f"Clarabel {theirs:.1f} us, coulomb/qcqp {cold:.1f} us cold, {warm:.1f} us warm: "
          f"1/{theirs / cold:.1f} and 1/{theirs / warm:.1f}")


def agreement(count: int, seed: int) -> None:
    """Random programs, two thirds of them made feasible, put to both solvers."""
    for feasible, share in ((True, count), (False, count // 2)):
        verdicts, worst_cost, worst_violation, steps = Counter(), 0.0, 0.0, []
        for number in range(share):
            program = random_program(seed, number, feasible)
            ours = program.solve()
            verdict, difference, violation = compare(program, ours)
            verdicts[verdict] += 1
            steps.append(ours.iterations)
            if verdict == "agree":
                worst_cost, worst_violation = max(worst_cost, difference), max(worst_violation, violation)
            elif verdict not in ("better", "infeasible"):
                print(f"{number}: {verdict}, {ours.status}, cost {difference:.1e}, violation {violation:.1e}")
        print(f"made {'feasible' if feasible else 'to be infeasible'}: {dict(verdicts)}, "
              f"worst cost difference {worst_cost:.1e}, worst violation {worst_violation:.1e}, "
              f"steps {np.median(steps):.0f} (at most {max(steps)})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.random:
        agreement(chosen.random, chosen.seed)
    else:
        timing()
