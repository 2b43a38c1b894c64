"""Contact without slip: tangential velocities zero, normal complementarity (first paper, section 4).

    T v+ = 0,    0 <= f_N  perp  N v+ + gap >= 0

On the reduced problem the tangential rows are projected out with their multipliers (at most nu
independent ones; near-dependent rows would produce enormous forces, algorithm 1), and what is left
is a positive semidefinite LCP of rank nu: the principal pivoting of algorithm 2, here in its dual
form (``lcp.dual_qp``), with at most nu basic forces, a factorisation updated by each pivot, and the
last period's loaded contacts as first candidates. The n x n matrix is never formed.

A contact that parts must not hold tangentially: its tangential rows are dropped and the problem is
solved again.
"""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel
from ..lcp.dual_qp import SOLVED
from ..problem import Problem, assign
from ..solution import Solution
from .cones import APART, STICKING
from .consistency import TOUCHING_SPEED, project_plan
from .distribution import distribute
from .one_stage import with_fallback
from .stages import (
    CONSISTENCIES, DISTRIBUTIONS, STICKING_SPEED, STILL_M_S, buffers, check_edges, check_option,
    finish, map_identities, matrices, outcome, shift_offset, stage_one,
)

MAX_RELEASES = 20


def solve_no_slip_lcp(problem: Problem, *, warm_start: Solution | None = None, edges: int = 4,
                      distribution: str = "least_torque", consistency: str = "project") -> Solution:
    """Contact forces and torques when nothing slips.

    Args:
        warm_start: the last period's solution; its loaded contacts, matched by identity, are tried
            first, which keeps ``distribution="none"`` from hopping between vertices.
        edges: of the pyramid that the distribution respects. The model's friction is unbounded, but
            among forces of the same effect those within the contacts' own friction are chosen
            where there are any: a real ground returns no others.
        distribution: ``least_torque``, ``least_force`` or ``none`` (a vertex with at most nu forces).
        consistency: ``project`` or ``report``, as for coulomb/qp. A plan that slips has no solution
            here (status ``inconsistent``).

    Handles positive semidefinite problems of any rank. Ends after finitely many pivots.

    Source: first paper, section 4, algorithms 1 and 2; viscous and no-slip paper, section V.
    """
    check_option("distribution", distribution, DISTRIBUTIONS)
    check_option("consistency", consistency, CONSISTENCIES)
    check_edges(edges)
    n = len(problem)
    z, delta, torques, velocity = buffers(problem)
    loaded = np.zeros(n, dtype=bool)
    if warm_start is not None:
        map_identities(problem, warm_start, warm_start.memory, loaded)
    code, steps, contradiction = _solve(
        *matrices(problem), problem.contacts.friction, edges, DISTRIBUTIONS.index(distribution),
        consistency == "project", loaded, z, delta, torques, velocity)
    solution = outcome(problem, code, steps, contradiction, delta, z, torques, velocity, loaded)
    return with_fallback(solution, problem.contacts.friction, edges)


@kernel
def _solve(Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, mu,
           edges, distribution, project, loaded, z, delta, torques, velocity):
    n, nu, na = gap_speed.shape[0], Y.shape[1], T.shape[1]
    contradiction = 0.0
    u = np.zeros(nu)
    status, steps = SOLVED, 0
    if n:
        moved = np.empty(3 * n)
        assign(moved, c)
        grip = np.empty(n)
        for attempt in range(2):
            if project:
                contradiction = project_plan(Y, T, c, gap_speed, dt, attempt == 0, delta, moved)
            scale = 0.0
            for r in range(3 * n):
                scale = max(scale, abs(moved[r]))
            tolerance = STICKING_SPEED * scale + STILL_M_S
            for i in range(n):
                grip[i] = np.inf if gap_speed[i] <= TOUCHING_SPEED else 0.0
            for release in range(MAX_RELEASES):
                status, count = stage_one(Y, moved, gap_speed, grip, edges, loaded, u, z)
                steps += count
                released = False
                if status == SOLVED:
                    for i in range(n):
                        parting = moved[3 * i] + gap_speed[i]
                        for k in range(nu):
                            parting += Y[3 * i, k] * u[k]
                        if grip[i] > 0.0 and parting > tolerance:
                            grip[i] = 0.0
                            released = True
                if not released:
                    break
            if status == SOLVED or not project:
                break
        for i in range(n):
            loaded[i] = z[3 * i] > 0.0
        if status == SOLVED and distribution < 2:
            shifted = np.empty(na)
            shift_offset(offset, schur, dt, delta, shifted)
            mode = np.empty(n, np.int64)
            nothing = np.zeros(n)
            for i in range(n):
                parting = moved[3 * i] + gap_speed[i]
                for k in range(nu):
                    parting += Y[3 * i, k] * u[k]
                mode[i] = STICKING if parting <= tolerance else APART
            bound = np.empty(n)
            for i in range(n):
                bound[i] = min(mu[i], grip[i])
            weight = 1.0 if distribution == 0 else 0.0
            count = distribute(T, shifted, Y, u, mode, nothing, nothing, bound, edges, weight, z)
            if count < 0:
                # No forces within the contacts' friction hold this motion: the model's own, unbounded.
                count = distribute(T, shifted, Y, u, mode, nothing, nothing, grip, edges, weight, z)
            steps += abs(count)
    finish(L, C, base, schur, offset, desired, T, Y, z, delta, dt, actuated, unactuated, torques,
           velocity)
    return status, steps, contradiction
