"""Coulomb's law on exact cones: how often it is solved, and how fast beside pyramids, ADMM and PlaCo.

    python benchmarks/exact_cones.py --count 100000                # random problems, judged by plain numpy
    python benchmarks/exact_cones.py --count 100000 --robots       # six robots of any size, any contacts
    python benchmarks/exact_cones.py --times [--placo PYTHON]      # whole step and solve alone, one run
    python benchmarks/exact_cones.py --walks 10                    # seconds, five terrains, both engines, beside qp
    python benchmarks/exact_cones.py --siconos FOLDER              # its friction problems, as FOLDER/*.dat, *.hdf5

A solution counts where the larger of two residuals of the exact law (``exact_law_defect``) is small enough,
whatever the solver says. ADMM is pinocchio's, in the same units as ours, its Delassus matrix given: what it
costs to make is not in its time, and it computes no torques. Times of a solve alone are CPU times, best of
some; those of a whole step are wall times, medians. PYTHON is an interpreter that has PlaCo.
FOLDER may be numerics/src/FrictionContact/test/data of github.com/siconos/siconos; files in HDF5 need h5py.
ADMM is left out beyond the contacts that ``--admm`` says, as it takes minutes there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import checkout  # noqa: F401  before what is not installed
import numpy as np
import pinocchio as pin
import scipy.linalg
import scipy.sparse.linalg

from contact_id_controller import RobotModel, build_problem, solve
from contact_id_controller.kernels.exact_cones.continuation import coulomb_cones
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.lcp import lemke_friction
from experiments.benchmark import speed
from experiments.benchmark.random_problems import random_problem
from experiments.benchmark.sliding_problems import exact_law_defect, sliding_problem
from experiments.papers.locomotion import LocomotionRun, prepare
from experiments.papers.locomotion_figures import Companion, figures
from experiments.papers.terrains import TERRAINS

NO_SLIP = 1e4
LEVELS = (1e-6, 1e-9, 1e-12)
LARGEST_SMALL = 60  # contacts; the limit for the problems that must be solved
REPEATED = 5


def free_velocity(problem, c):
    """(3n,) contact velocities at z = 0, gaps included."""
    free = c.copy()
    free[::3] += problem.gap_speed
    return free


def random_table(count, seed, robots):
    """Statuses, defects and steps of coulomb/ncp on random problems."""
    statuses, defects, steps, kernel_failed, began = Counter(), [], [], 0, time.time()
    for number in range(count):
        if robots:
            problem = random_problem(seed, number).problem
        else:
            case = sliding_problem(seed, number)
            problem, mu = case.problem, case.problem.contacts.friction
            z = np.zeros(3 * len(problem))
            coulomb_cones(problem.Y, case.c, problem.gap_speed, mu, 5, z)
            worst = exact_law_defect(problem.Y, free_velocity(problem, case.c), mu, z)
            kernel_failed += not worst <= 1e-9
        solution = solve(problem, "coulomb", "ncp")
        statuses[solution.status] += 1
        if solution.status == "solved" and len(problem):
            moved = solution.attainable
            scale = max(np.abs(moved).max(), -problem.gap_speed.min())
            friction = effective_friction(problem.contacts.friction, NO_SLIP)
            free = free_velocity(problem, moved)
            defects.append(exact_law_defect(problem.Y, free, friction, solution.impulses, scale))
            steps.append(solution.iterations)
        elif solution.status != "solved":
            print(f"  number {number}: {solution.status}, {len(problem)} contacts", flush=True)
        if (number + 1) % 10000 == 0:
            print(f"  {number + 1} in {time.time() - began:.0f} s {dict(statuses)}", flush=True)
    print(f"{count} problems, seed {seed}: {dict(statuses)}")
    for level in LEVELS:
        print(f"  called solved and within {level:g}: {sum(d <= level for d in defects)}")
    print(f"  largest defect of what is called solved {max(defects):.2e}")
    print("  steps p50 / p90 / p99 / max", *np.percentile(steps, [50, 90, 99, 100]).round())
    if not robots:
        print(f"  kernel alone, from five starts, not within 1e-9: {kernel_failed} of {count}")


class Admm:
    """pinocchio's ADMM on one problem (G, free, mu) in units of about 1."""

    ORDER = (1, 2, 0)  # its tangents come first

    def __init__(self, model, G, free, mu, tolerance, iterations=5000):
        self.order = np.arange(len(free)).reshape(-1, 3)[:, self.ORDER].ravel()
        self.models, self.datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for coefficient in mu:
            contact = pin.PointContactConstraintModel(model, 0)
            contact.setFriction(float(coefficient))
            self.models.append(pin.ConstraintModel(contact))
            self.datas.append(pin.ConstraintData(contact.createData()))
        self.inertia, self.speed = np.trace(G) / len(free), np.abs(free).max()
        self.G = np.ascontiguousarray(G[np.ix_(self.order, self.order)]) / self.inertia
        self.free = free[self.order] / self.speed
        self.settings, self.result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
        self.settings.max_iterations, self.settings.solve_ncp = iterations, True
        for name in ("absolute", "relative"):
            setattr(self.settings, f"{name}_feasibility_tol", tolerance)
            setattr(self.settings, f"{name}_complementarity_tol", tolerance)

    def solve(self):
        """CPU seconds that it took, its own making included."""
        began = time.thread_time()
        solver = pin.ADMMConstraintSolver(len(self.free))
        delassus = pin.DelassusOperatorDense(self.G)
        self.result.reset()
        solver.solve(delassus, self.free, self.models, self.datas, self.settings, self.result)
        return time.thread_time() - began

    def impulses(self):
        z = np.empty(len(self.free))
        z[self.order] = self.result.retrieveConstraintImpulses()
        return z * self.speed / self.inertia


def times_table(placo, contacts=(4, 8, 20, 40)):
    """Whole step of models and peers, then the contact solve alone on standing and sliding robots."""
    names = ["coulomb/qp", "coulomb/ncp", "coulomb/lcp"]
    print(speed.table(speed.measure(contacts, placo, names)))
    robot = RobotModel.from_urdf(speed.SOLO12)
    for kind in ("stand", "slide"):
        print(f"solve alone, {kind}, median us (largest defect)")
        for n in contacts:
            q, planted = speed.stance(robot, n)
            cells: dict[str, list] = {}
            for k, (_, v, acceleration) in enumerate(speed.states(robot, q, seed=7)[:20]):
                if kind == "slide":
                    v = v.copy()
                    v[:2] += (0.6 * np.cos(k), 0.6 * np.sin(k))
                problem = build_problem(
                    robot, q, v, acceleration, planted, 1e-3, contact_time_constant_s=0.05
                )
                _measure(robot, problem, cells)
            print(
                f"{n:6d}  "
                + "   ".join(
                    f"{name} {1e6 * np.median([t for t, _ in cell]):.0f} ({max(d for _, d in cell):.0e})"
                    for name, cell in cells.items()
                )
            )


def _measure(robot, problem, cells):
    """Add (seconds, defect) of each solver on one problem: the best of some runs."""
    mu = problem.contacts.friction
    ours = solve(problem, "coulomb", "ncp")
    moved = ours.attainable.copy()
    free = free_velocity(problem, moved)

    def judge(z):
        return exact_law_defect(problem.Y, free, mu, z)

    def best(run):
        times = []
        for _ in range(REPEATED):
            began = time.thread_time()
            run()
            times.append(time.thread_time() - began)
        return min(times)

    z = np.zeros(len(free))

    def kernel():
        z[:] = 0.0
        coulomb_cones(problem.Y, moved, problem.gap_speed, mu, 5, z)

    cells.setdefault("kernel", []).append((best(kernel), judge(z)))
    cells.setdefault("coulomb/ncp", []).append(
        (best(lambda: solve(problem, "coulomb", "ncp")), judge(ours.impulses))
    )
    warm = best(lambda: solve(problem, "coulomb", "ncp", warm_start=ours))
    cells.setdefault("warm", []).append((warm, judge(ours.impulses)))
    cells.setdefault("coulomb/qp", []).append((best(lambda: solve(problem)), np.nan))
    for edges in (4, 16, 64):
        polygon = solve(problem, "coulomb", "lcp", edges=edges)
        taken = best(lambda edges=edges: solve(problem, "coulomb", "lcp", edges=edges))
        cells.setdefault(f"lcp {edges}", []).append((taken, judge(polygon.impulses)))
    for tolerance in (1e-6, 1e-9):
        admm = Admm(robot.model, problem.Y @ problem.Y.T, free, mu, tolerance)
        taken = min(admm.solve() for _ in range(2))
        cells.setdefault(f"ADMM {tolerance:g}", []).append((taken, judge(admm.impulses())))


class _Again:
    """Solves each period's problem some times more, as the controller did: the best CPU time is the solver's own."""

    def __init__(self, model):
        self.model, self.seconds, self._last = model, [], None

    def add(self, period):
        solution, best = period.result.solution, np.inf
        if solution is None:
            return
        for _ in range(REPEATED):
            began = time.thread_time()
            solve(solution.problem, *self.model, warm_start=self._last)
            best = min(best, time.thread_time() - began)
        self.seconds.append(best)
        self._last = solution if solution.status == "solved" else None


def walks_table(duration_s, engines, terrains):
    """The paper's quadruped on its five terrains with coulomb/ncp and with coulomb/qp, torques beside each other."""
    for terrain in terrains:
        for engine in engines:
            for solver in ("qp", "ncp"):
                run = LocomotionRun(
                    "qp_mu",
                    terrain,
                    engine,
                    engine_model="coulomb/ncp" if solver == "ncp" else "coulomb/lcp",
                    duration_s=duration_s,
                )
                walk, ground = prepare(run, controller={"solver": solver})
                companion = Companion(walk.robot, walk.controller, walk.planner)
                again = _Again(("coulomb", solver))

                def each(period, companion=companion, again=again):
                    companion.add(period)
                    again.add(period)

                record = walk.record(duration_s, each=each, ground_height_m=ground.height_m)
                found = figures(record, companion)["figures"]
                times, once = 1e6 * np.array(again.seconds), 1e6 * record.solve_time_s
                jumps = np.abs(np.diff(record.torques, axis=0))
                print(
                    f"{terrain:15s} {engine:7s} {solver:4s}"
                    f" fell {record.fell_time_s}"
                    f" torque rate {found['torque_rate_mean_nm_s']:.1f} N m/s,"
                    f" steps p99.9 {np.percentile(jumps, 99.9):.3f} max {jumps.max():.2f} N m,"
                    f" force error {found['normal_force_error_n'] / companion.weight_n:.4f},"
                    f" solve alone, CPU, best of {REPEATED}, p50 {np.median(times):.0f} p99.9 {np.percentile(times, 99.9):.0f}"
                    f" max {times.max():.0f} us, in the walk, once, p50 {np.median(once):.0f}"
                    f" p99.9 {np.percentile(once, 99.9):.0f} us,"
                    f" {dict(Counter(record.status.tolist()))},"
                    f" engine's steps unsolved {getattr(walk.world, 'unsolved_steps', '-')}",
                    flush=True,
                )


def read_siconos(path):
    """(Y, free, mu) of a friction problem in three dimensions as Siconos writes it, normals first."""
    if path.read_bytes()[1:4] == b"HDF":
        return _read_hdf5(path)
    G, free, mu = _read_text(path)
    return _root(G), free, mu


def _root(G):
    """Y (3n, rank) with G = Y Y^T: of as few zeros as there are, by Cholesky with pivots."""
    G = 0.5 * (G + G.T)
    L, order, rank, _ = scipy.linalg.lapack.dpstrf(G, tol=1e-13 * np.abs(G).max(), lower=1)
    Y = np.empty((len(G), rank))
    Y[order - 1] = np.tril(L)[:, :rank]
    return Y


def _read_hdf5(path):
    """The same from the files of FCLib, of contacts alone or with the bodies' masses."""
    import h5py  # not needed elsewhere

    with h5py.File(path) as file:
        whole = file.get("fclib_global")
        problem = whole or file["fclib_local"]
        vectors = {name: np.array(value) for name, value in problem["vectors"].items()}
        if int(problem["spacedim"][0]) != 3:
            raise ValueError("not in three dimensions")
        if any(name in problem for name in ("G", "V", "R")):
            raise ValueError("it has equations beside contacts")
        if whole is None:
            return _root(_sparse(problem["W"]).toarray()), vectors["q"], vectors["mu"]
        M, H = _sparse(problem["M"]).tocsc(), _sparse(problem["H"])
        L = np.linalg.cholesky(M.toarray()) if M.nnz > M.shape[0] else None
        if L is None:
            Y = (scipy.sparse.diags(1.0 / np.sqrt(M.diagonal())) @ H).T.toarray()
            moved = vectors["f"] / M.diagonal()
        else:
            Y = scipy.linalg.solve_triangular(L, H.toarray(), lower=True).T
            moved = scipy.sparse.linalg.spsolve(M, vectors["f"])
        used = np.abs(Y).max(axis=0) > 0.0  # bodies that nothing touches
        return np.ascontiguousarray(Y[:, used]), H.T @ moved + vectors["w"], vectors["mu"]


def _sparse(group):
    """A matrix of FCLib: triplets, or compressed by columns or rows."""
    shape = int(group["m"][0]), int(group["n"][0])
    kind, p, i, x = int(group["nz"][0]), group["p"][:], group["i"][:], group["x"][:]
    if kind >= 0:
        return scipy.sparse.coo_matrix((x, (i, p)), shape)
    made = scipy.sparse.csc_matrix if kind == -1 else scipy.sparse.csr_matrix
    return made((x, i, p), shape)


def _read_text(path):
    """(G, free, mu) from a file of numbers."""
    numbers = iter(path.read_text().split())

    def integers(count):
        return [int(next(numbers)) for _ in range(count)]

    def reals(count):
        return np.array([float(next(numbers)) for _ in range(count)])

    dimension, n, storage = integers(3)
    if dimension != 3 or storage not in (0, 1):
        raise ValueError(f"{path.name}: dimension {dimension}, storage {storage}")
    rows, columns = integers(2)
    if storage == 0:
        integers(2)
        G = reals(rows * columns).reshape(columns, rows).T
    else:
        G = _blocks(integers, reals, rows, columns)
    if len(G) != 3 * n:
        raise ValueError(f"{path.name}: a matrix of {len(G)} rows for {n} contacts")
    return G, reals(3 * n), reals(n)


def _blocks(integers, reals, rows, columns):
    """A matrix of blocks, compressed by rows."""
    _, high, wide = integers(3)
    row_ends, column_ends = integers(high), integers(wide)
    filled1, filled2 = integers(2)
    starts, which = integers(filled1), integers(filled2)
    G = np.zeros((rows, columns))
    for i in range(filled1 - 1):
        for k in range(starts[i], starts[i + 1]):
            top = row_ends[i - 1] if i else 0
            left = column_ends[which[k] - 1] if which[k] else 0
            height, width = row_ends[i] - top, column_ends[which[k]] - left
            integers(1)
            G[top : top + height, left : left + width] = reals(height * width).reshape(width, -1).T
    return G


def siconos_table(folder, largest, admm_largest):
    """Ours and pinocchio's ADMM on every problem with up to ``largest`` contacts."""
    model = pin.Model()
    counts, total = Counter(), Counter()
    files = [path for path in sorted(Path(folder).iterdir()) if path.suffix in (".dat", ".hdf5")]
    for path in files:
        try:
            Y, free, mu = read_siconos(path)
        except (ValueError, KeyError, OSError, ImportError, StopIteration) as error:
            print(f"{path.name}: not read ({error!r})")
            continue
        if len(mu) > largest:
            continue
        z, times = np.zeros(len(free)), []
        for _ in range(3 if len(mu) <= LARGEST_SMALL else 1):
            z[:] = 0.0
            began = time.thread_time()
            _, steps, _ = coulomb_cones(Y, free, np.zeros(len(mu)), mu, 5, z)
            times.append(time.thread_time() - began)
        ours, start = exact_law_defect(Y, free, mu, z), ""
        if ours > 1e-9 and len(mu) <= LARGEST_SMALL:
            ours, start = _from_polygon(Y, free, mu, z), " (from a polygon)"
        taken = theirs = np.nan
        if len(mu) <= admm_largest:
            admm = Admm(model, Y @ Y.T, free, mu, 1e-9)
            taken = admm.solve()
            theirs = exact_law_defect(Y, free, mu, admm.impulses())
        print(
            f"{path.name:38s} {len(mu):4d} contacts, rank {Y.shape[1]:4d}, "
            f"{np.count_nonzero(Y) / Y.size:.0%} of Y: ours {ours:.1e} in "
            f"{1e3 * min(times):8.2f} ms, {steps} steps{start}; ADMM {theirs:.1e} in {1e3 * taken:8.2f} ms",
            flush=True,
        )
        counts["problems"] += 1
        for name, value in (("ours", ours), ("ADMM", theirs)):
            for level in LEVELS[:2]:
                counts[f"{name} within {level:g}"] += value <= level
        if taken < np.inf:
            total["ours, where ADMM was asked"] += min(times)
            total["ADMM"] += taken
    print(dict(counts), {name: f"{value:.3f} s" for name, value in total.items()})


def _from_polygon(Y, free, mu, z):
    """Defect when started from Lemke's solution on polygons."""
    for edges in (16, 64, 8, 32):
        angle = 2.0 * np.pi * np.arange(edges) / edges
        start = lemke_friction(Y, free, mu, np.column_stack([np.cos(angle), np.sin(angle)]))
        z[:] = start.impulses.ravel()
        coulomb_cones(Y, free, np.zeros(len(mu)), mu, 1, z)
        found = exact_law_defect(Y, free, mu, z)
        if found <= 1e-9:
            break
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=0, help="random problems")
    parser.add_argument("--seed", type=int, default=9_041)
    parser.add_argument(
        "--robots", action="store_true", help="problems of the robustness benchmark"
    )
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--placo", metavar="PYTHON", help="interpreter that has PlaCo")
    parser.add_argument("--walks", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--engines", nargs="+", default=["mujoco", "rigid"])
    parser.add_argument("--terrains", nargs="+", default=list(TERRAINS))
    parser.add_argument("--siconos", metavar="FOLDER", help="friction problems *.dat")
    parser.add_argument(
        "--largest", type=int, default=LARGEST_SMALL, help="contacts, for --siconos"
    )
    parser.add_argument("--admm", type=int, default=LARGEST_SMALL, help="contacts, the same")
    arguments = parser.parse_args()
    if arguments.count:
        random_table(arguments.count, arguments.seed, arguments.robots)
    if arguments.times:
        times_table(arguments.placo)
    if arguments.walks:
        walks_table(arguments.walks, arguments.engines, arguments.terrains)
    if arguments.siconos:
        siconos_table(arguments.siconos, arguments.largest, arguments.admm)
    return 0


if __name__ == "__main__":
    sys.exit(main())
