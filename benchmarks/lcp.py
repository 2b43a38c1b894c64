"""Complementarity solvers side by side on the same problems, in one run.

    python benchmarks/lcp.py

Friction problems of a standing quadruped (``problems.standing_robot``: 2.5 kg, four flat feet, mu
.6, four edges, random base velocity): QuantEcon's Lemke and ours on the assembled matrix of order
6 n, and ours on the factor, cold and warm.  No-slip problems: the factored principal pivoting
method on the normals alone, cold and warm.

Limits of the measurement: kernels are called through numba's dispatcher with a workspace made
before, QuantEcon's likewise, ``ppm_factored`` through its Python door; assembling M is not timed.  Each problem counts with its fastest
repetition; medians and 99th percentiles are over problems.  A time counts whether or not the
solver succeeded; the share solved stands beside it, certified by the same residual for all.
"""

from __future__ import annotations

import time

import numpy as np

from contact_id_controller.lcp import ppm_factored
from contact_id_controller.lcp.lemke import lemke_kernel
from contact_id_controller.lcp.lemke import workspace as lcp_workspace
from contact_id_controller.lcp.lemke_friction import friction_workspace, lemke_friction_kernel
from contact_id_controller.lcp.status import PIVOTS, REPORT_SIZE, SOLVED
from experiments.benchmark import lcp_problems as problems

DENSE_CONTACTS = (4, 8, 20, 40)
FACTORED_CONTACTS = (4, 8, 20, 40, 100, 400, 1000)
PROBLEMS, REPETITIONS = 30, 20
CERTIFIED = 1e-8  # largest backward error that counts as solved, for every solver


def main():
    for contacts in FACTORED_CONTACTS:
        rng = np.random.default_rng(contacts)
        family = [
            problems.standing_robot(rng, contacts, speed_m_s=10 ** rng.uniform(-3, -0.5))
            for _ in range(PROBLEMS)
        ]
        solvers = {
            "lemke_friction": factored_friction,
            "lemke_friction, warm": warm_friction,
            "ppm_factored": factored_normals,
            "ppm_factored, warm": warm_normals,
        }
        if contacts in DENSE_CONTACTS:
            solvers = {"QuantEcon lcp_lemke": peer, "lemke": dense, **solvers}
        for name, prepare in solvers.items():
            print(line(measure(name, contacts, prepare, family)), flush=True)


def measure(name, contacts, prepare, family):
    """Median and 99th percentile over problems of the fastest of the repetitions, s."""
    times, pivots, solved = [], [], 0
    for problem in family:
        solve = prepare(*problem)
        success, count = solve()  # compiles, and fills caches
        best = np.inf
        for _ in range(REPETITIONS):
            start = time.perf_counter()
            solve()
            best = min(best, time.perf_counter() - start)
        times.append(best)
        pivots.append(count)
        solved += bool(success())
    return {
        "solver": name,
        "contacts": contacts,
        "median_s": float(np.median(times)),
        "p99_s": float(np.percentile(times, 99)),
        "median_pivots": float(np.median(pivots)),
        "solved_share": solved / len(family),
    }


def line(row):
    return (
        f"{row['contacts']:5d} contacts  {row['solver']:22s} {1e6 * row['median_s']:9.1f} us "
        f"(p99 {1e6 * row['p99_s']:9.1f})  {row['median_pivots']:5.0f} pivots  "
        f"{100 * row['solved_share']:5.1f} % solved"
    )


def backward_error(M, q, z):
    """Largest violation of z >= 0, w >= 0 and complementarity, relative to |q| + |M| |z|."""
    if not np.isfinite(z).all():
        return np.inf
    size = np.abs(q) + np.abs(M) @ np.abs(z)
    w = (M @ z + q) / (size + 1e-5 * size.max(initial=0.0) + 1e-300)
    share = z / (np.abs(z).max(initial=0.0) + 1e-300)
    return max(
        -w.min(initial=0.0),
        -share.min(initial=0.0),
        np.minimum(np.abs(w), np.abs(share)).max(initial=0.0),
    )


def peer(*problem):
    from quantecon.optimize import lcp_lemke

    M, q = problems.friction_matrix(*problem)
    n = len(q)
    buffers = (np.empty((n, 2 * n + 2)), np.empty(n, dtype=np.int_), np.empty(n))
    d, found = np.ones(n), []

    def solve():
        result = lcp_lemke(M, q, d, 10**5, tableau=buffers[0], basis=buffers[1], z=buffers[2])
        found[:] = [result]
        return (
            lambda: found[0].success and backward_error(M, q, found[0].z) < CERTIFIED,
            result.num_iter,
        )

    return solve


def dense(*problem):
    M, q = problems.friction_matrix(*problem)
    n = len(q)
    workspace, cover = lcp_workspace(n), np.empty(0)
    basis, z, w, report = np.zeros(n, dtype=bool), np.empty(n), np.empty(n), np.zeros(REPORT_SIZE)

    def solve():
        basis[:] = False
        status = lemke_kernel(M, q, cover, 1000 + 50 * n, *workspace, basis, z, w, report)
        return lambda: status == SOLVED and backward_error(M, q, z) < CERTIFIED, report[PIVOTS]

    return solve


def factored_friction(Y, c, mu, edges, warm=False):
    n, k, r = len(mu), len(edges), Y.shape[1]
    workspace = friction_workspace(n, r, k)
    basis, z, w = np.zeros((n, k + 2), dtype=bool), np.empty((n, k + 2)), np.empty((n, k + 2))
    impulses, report = np.empty((n, 3)), np.zeros(REPORT_SIZE)

    def solve():
        if not warm:
            basis[:] = False
        status = lemke_friction_kernel(
            Y, c, mu, edges, 300, *workspace, basis, z, w, impulses, report
        )
        return lambda: status == SOLVED and friction_error() < CERTIFIED, report[PIVOTS]

    def friction_error():
        if n > max(DENSE_CONTACTS):  # the matrix would be large; the kernel's own certificate then
            return report[1]
        M, q = problems.friction_matrix(Y, c, mu, edges)
        return backward_error(M, q, np.concatenate([z[:, 0], z[:, 1:-1].ravel(), z[:, -1]]))

    if warm:
        solve()
    return solve


def warm_friction(*problem):
    return factored_friction(*problem, warm=True)


def factored_normals(Y, c, mu, edges, warm=False):
    normals, q = np.ascontiguousarray(Y[::3]), np.ascontiguousarray(c[::3])
    basis = ppm_factored(normals, q, row_floor=1e-14).basis if warm else None

    def solve():
        found = ppm_factored(normals, q, basis, row_floor=1e-14)
        return (
            lambda: found.solved and backward_error(normals @ normals.T, q, found.z) < CERTIFIED,
            found.pivots,
        )

    return solve


def warm_normals(*problem):
    return factored_normals(*problem, warm=True)


if __name__ == "__main__":
    main()
