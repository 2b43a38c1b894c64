"""coulomb/qcqp beside Clarabel, the same programs in the same run.

    python benchmarks/qcqp.py                    # times at 4 contacts and 12 joints
    python benchmarks/qcqp.py --random 10000     # agreement on random programs, and what is infeasible

Times are medians, one thread, us; each call is repeated some times in a row, in turns with the others, so
caches are warm. Clarabel, at its default tolerances, through its Python API: from ready matrices its solver
object made and solved; from the contact problem its sparse matrices filled in besides, the parts that never
change being kept. coulomb/qcqp: the whole ``solve`` from the contact problem, cold and warm started with the
solution of a plan 1 % away; it also checks the plan's consistency and computes the motion, which Clarabel's
times leave out. In the last case Clarabel only proves that no forces and torques do it; coulomb/qcqp finds
the least disturbance as well.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))

import checkout  # noqa: F401  before what is not installed
import clarabel
from clarabel_programs import compare, settings
from robots import gliding_solo, solo12

from contact_id_controller import build_problem, solve
from contact_id_controller.models.least_power.task import TIE_BREAK
from experiments.benchmark.random_programs import random_program
from experiments.projected.program import QcqpProgram

BLOCKS, REPEATED = 20, 25
AGREED_NM = 1e-4  # torques may differ from those of a solver with tolerance 1e-8 by this
CASES = (  # name, mu, forward acceleration (m/s2), torque limit (N·m)
    ("slack limits", 0.6, 0.0, 1.5),
    ("tight limits", 0.6, 0.0, 0.48),
    ("cones active", 0.3, 2.0, 1.5),
    ("both active", 0.3, 0.0, 0.48),
    ("plan impossible", 0.3, 8.0, 1.5),
)


def reduced_program(problem, limit):
    """The program that coulomb/qcqp solves, for Clarabel: torques and forces (N) of a consistent plan."""
    na, n, dt = problem.robot.na, len(problem), problem.period
    motion = np.linalg.lstsq(problem.Y, -problem.c, rcond=None)[0]
    A = np.block([[np.eye(na), -dt * problem.T.T], [np.zeros((len(motion), na)), dt * problem.Y.T]])
    tie = TIE_BREAK * np.square(dt * problem.T).sum() / (3 * n)
    return QcqpProgram(
        A,
        np.concatenate([problem.torque_offset, motion]),
        problem.contacts.friction,
        1.0,
        -limit,
        limit,
        tie,
    )


class SparseForm:
    """Clarabel's matrices for one robot and set of contacts, refilled from each period's problem."""

    def __init__(self, problem, limit):
        na, n = problem.robot.na, len(problem)
        nu, self.dt = problem.Y.shape[1], problem.period
        self.rows = np.zeros((na + nu + 2 * na + 3 * n, na + 3 * n))
        self.rows[:na, :na] = np.eye(na)
        self.rows[na + nu : na + nu + na, :na] = np.eye(na)
        self.rows[na + nu + na : na + nu + 2 * na, :na] = -np.eye(na)
        self.rows[na + nu + 2 * na :, na:] = -np.eye(3 * n)
        self.rows[
            range(na + nu + 2 * na, len(self.rows), 3), range(na, na + 3 * n, 3)
        ] = -problem.contacts.friction
        self.right = np.concatenate([np.zeros(na + nu), np.full(2 * na, limit), np.zeros(3 * n)])
        self.zeros = np.zeros(na + 3 * n)
        self.price = np.full(na + 3 * n, 2.0)
        self.units = np.ones(3 * n)
        for d in (1, 2):
            self.units[d::3] = np.minimum(problem.contacts.friction, 1.0) ** -2.0
        self.cones = [
            clarabel.ZeroConeT(na + nu),
            clarabel.NonnegativeConeT(2 * na),
            *(clarabel.SecondOrderConeT(3) for _ in range(n)),
        ]

    def __call__(self, problem):
        """P, q, A, b and cones of this period."""
        na, n, Y, T = problem.robot.na, len(problem), problem.Y, problem.T
        nu = Y.shape[1]
        self.rows[:na, na:] = -self.dt * T.T
        self.rows[na : na + nu, na:] = self.dt * Y.T
        self.right[:na] = problem.torque_offset
        self.right[na : na + nu] = np.linalg.solve(Y.T @ Y, -(Y.T @ problem.c))
        tie = TIE_BREAK * self.dt**2 * np.square(T).sum() / (3 * n)
        self.price[na:] = 2.0 * tie * self.units
        return (
            sparse.diags(self.price, format="csc"),
            self.zeros,
            sparse.csc_matrix(self.rows),
            self.right,
            self.cones,
        )


def median_us(*functions):
    """Median times of calls, us; each repeated some times in a row, in turns with the others."""
    times = np.empty((len(functions), BLOCKS, REPEATED))
    for block in range(BLOCKS):
        for i, function in enumerate(functions):
            for call in range(REPEATED):
                start = time.perf_counter()
                function()
                times[i, block, call] = time.perf_counter() - start
    return 1e6 * np.median(times, axis=(1, 2))


def pulled(robot, mu, acceleration):
    """Feet planted, the body accelerating forward (m/s2)."""
    q, v, joints, contacts = gliding_solo(robot, 0.3, mu)
    problem = build_problem(robot, q, v, joints, contacts, 1e-3)
    pull = problem.Y @ problem.L.T[:, 0] * acceleration
    joints = joints - np.linalg.lstsq(-problem.period * problem.T, pull, rcond=None)[0]
    return build_problem(robot, q, v, joints, contacts, 1e-3)


def timing() -> None:
    """Whole solve, cold and warm, beside Clarabel from ready matrices and from the contact problem."""
    robot, default = solo12(), settings(1e-8)
    print(
        "case              status   active  steps        Clarabel        coulomb/qcqp"
        "    ready matrices   from problem\n"
        "                         limits, cones  cold warm   ready  problem   cold   warm"
        "     cold   warm     cold   warm"
    )
    for name, mu, acceleration, limit in CASES:
        problem, before = (
            pulled(robot, mu, acceleration),
            pulled(robot, mu, 0.99 * acceleration - 0.001),
        )
        last = solve(before, "coulomb", "qcqp", torque_limits=limit)
        form = SparseForm(problem, limit)
        ready = form(problem)
        answer = clarabel.DefaultSolver(*ready, default).solve()
        ours = solve(problem, "coulomb", "qcqp", torque_limits=limit)
        again = solve(problem, "coulomb", "qcqp", torque_limits=limit, warm_start=last)
        if ours.status == "solved":
            theirs = np.array(answer.x)[: robot.na]
            assert str(answer.status) == "Solved" and again.status == "solved", (
                answer.status,
                again.status,
            )
            for torques in (ours.torques, again.torques):
                assert np.abs(torques - theirs).max() < AGREED_NM, np.abs(torques - theirs).max()
        times = median_us(
            lambda: clarabel.DefaultSolver(*ready, default).solve(),
            lambda: clarabel.DefaultSolver(*form(problem), default).solve(),
            lambda: solve(problem, "coulomb", "qcqp", torque_limits=limit),
            lambda: solve(problem, "coulomb", "qcqp", torque_limits=limit, warm_start=last),
        )
        z = ours.impulses.reshape(-1, 3)
        cones = (np.hypot(z[:, 1], z[:, 2]) > (1.0 - 1e-6) * mu * z[:, 0]).sum()
        limits = (np.abs(ours.torques) > (1.0 - 1e-6) * limit).sum()
        ratios = [times[i] / times[j] for i in (0, 1) for j in (2, 3)]
        print(
            f"{name:18}{ours.status:8}{limits:5}{cones:6}{ours.iterations:7}{again.iterations:5}"
            f"{times[0]:9.1f}{times[1]:9.1f}{times[2]:7.1f}{times[3]:7.1f}   "
            f"1/{ratios[0]:<5.1f}1/{ratios[1]:<7.1f}1/{ratios[2]:<5.1f}1/{ratios[3]:<5.1f}"
        )


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
                worst_cost, worst_violation = (
                    max(worst_cost, difference),
                    max(worst_violation, violation),
                )
            elif verdict not in ("better", "infeasible"):
                print(
                    f"{number}: {verdict}, {ours.status}, cost {difference:.1e}, violation {violation:.1e}"
                )
        print(
            f"made {'feasible' if feasible else 'to be infeasible'}: {dict(verdicts)}, "
            f"worst cost difference {worst_cost:.1e}, worst violation {worst_violation:.1e}, "
            f"steps {np.median(steps):.0f} (at most {max(steps)})"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--random", type=int, default=0, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.random:
        agreement(chosen.random, chosen.seed)
    else:
        timing()
