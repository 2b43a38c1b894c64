"""Contact without slip: tangential velocities zero, normal complementarity (first paper, section 4).

    T v+ = 0,    0 <= f_N  perp  N v+ + gap >= 0

On the reduced problem the tangential rows are projected out with their multipliers (at most nu
independent ones; near-dependent rows would produce enormous forces, algorithm 1), and what is left
is a positive semidefinite LCP of rank nu: the principal pivoting of algorithm 2, here in its dual
form (``lcp.dual_qp``), with at most nu basic forces, a factorisation updated by each pivot, and the
last period's loaded contacts as first candidates. The n x n matrix is never formed.

A contact that parts must not hold tangentially: its tangential rows are dropped and the problem is
solved again. Where it would then be pressed and slip, no solution does without: it holds, as in the
paper.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.pyramid import APART, HOLDING, STICKING
from contact_id_controller.models.steps.finish import (
    finish,
    map_identities,
    outcome,
    shift_offset,
)
from contact_id_controller.models.steps.forces import distribute
from contact_id_controller.models.steps.motion import ENORMOUS, STICKING_SPEED, STILL_M_S, stage_one
from contact_id_controller.models.steps.options import (
    CONSISTENCIES,
    DISTRIBUTIONS,
    check_edges,
    check_option,
)
from contact_id_controller.models.steps.plan import TOUCHING_SPEED, project_plan
from contact_id_controller.models.steps.reduced import (
    Answer,
    Cones,
    Face,
    Reduced,
    empty_answer,
    matrices,
)
from contact_id_controller.models.steps.yielding import ease, tame, with_fallback
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution


def solve_no_slip_lcp(
    problem: Problem,
    *,
    warm_start: Solution | None = None,
    edges: int = 4,
    distribution: str = "least_torque",
    consistency: str = "project",
) -> Solution:
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
    answer = empty_answer(problem)
    loaded = np.zeros(n, dtype=bool)
    if warm_start is not None:
        map_identities(problem, warm_start, warm_start.memory, loaded)
    code, steps, contradiction = _solve(
        *matrices(problem),
        *Cones(problem.contacts.friction, edges, problem.contacts.load_share),
        DISTRIBUTIONS.index(distribution),
        consistency == "project",
        loaded,
        *answer,
    )
    solution = outcome(problem, code, steps, contradiction, answer, loaded)
    held = np.where(problem.gap_speed <= TOUCHING_SPEED, problem.contacts.friction, 0.0)
    return with_fallback(solution, held, edges)


@kernel
def _change_grip(Y, moved, gap_speed, grip, locked, tolerance, u, z):
    """Let go of contacts that part; grip for good those that then carry load. False: nothing to do."""
    changed = False
    for i in range(gap_speed.shape[0]):
        if grip[i] > 0.0 and not locked[i] and _parting(Y, moved, gap_speed, u, i) > tolerance:
            grip[i] = 0.0
            changed = True
    if changed:
        return True
    for i in range(gap_speed.shape[0]):
        if grip[i] == 0.0 and gap_speed[i] <= TOUCHING_SPEED and z[3 * i] > 0.0:
            grip[i] = np.inf
            locked[i] = True
            changed = True
    return changed


@kernel
def _parting(Y, moved, gap_speed, u, i):
    total = moved[3 * i] + gap_speed[i]
    for k in range(u.shape[0]):
        total += Y[3 * i, k] * u[k]
    return total


@kernel
def _solve(
    Y,
    c,
    gap_speed,
    T,
    offset,
    L,
    C,
    base,
    schur,
    desired,
    dt,
    actuated,
    unactuated,
    speed,
    mu,
    edges,
    load_share,
    distribution,
    project,
    loaded,
    moved,
    z,
    delta,
    torques,
    velocity,
):
    """Flat entry: the tuples of ``_hold``."""
    return _hold(
        Reduced(
            Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, speed
        ),
        Cones(mu, edges, load_share),
        distribution,
        project,
        loaded,
        Answer(moved, z, delta, torques, velocity),
    )


@kernel
def _hold(reduced, cones, distribution, project, loaded, answer):
    """Contacts that hold, and the torques; as ``coulomb_qp._two_stages``.

    cones: of the distribution. loaded (n,): bool, a guess in, the contacts with load out.
    """
    Y, gap_speed, mu, edges = reduced.Y, reduced.gap_speed, cones.mu, cones.edges
    moved, z, delta = answer.moved, answer.z, answer.delta
    n, nu, na = gap_speed.shape[0], Y.shape[1], reduced.T.shape[1]
    contradiction = 0.0
    u = np.zeros(nu)
    status, steps = SOLVED, 0
    if n:
        grip, locked = np.empty(n), np.empty(n, np.bool_)
        tolerance = 0.0
        eased = False
        for attempt in range(3):
            eased = attempt == 2
            for i in range(n):
                grip[i] = np.inf if gap_speed[i] <= TOUCHING_SPEED else 0.0
            if project and not eased:
                contradiction = project_plan(reduced, grip, attempt == 0, delta, moved)
            scale = 0.0
            for r in range(3 * n):
                scale = max(scale, abs(moved[r]))
            tolerance = STICKING_SPEED * scale + STILL_M_S
            verdict = SOLVED
            fill(locked, False)
            for release in range(2 * n + 1):
                if eased:
                    status, count, change = ease(
                        Y, reduced.c, reduced.speed, moved, gap_speed, grip, edges, u, z
                    )
                    contradiction = max(contradiction, change)
                    verdict = max(verdict, status)
                else:
                    status, count = stage_one(Y, moved, gap_speed, grip, edges, loaded, u, z)
                    if status == ENORMOUS:
                        status = SOLVED
                        if project:
                            more, change = tame(reduced, moved, grip, edges, u, z)
                            contradiction, count = max(contradiction, change), count + more
                steps += count
                if status != SOLVED and not eased:
                    break
                if not _change_grip(Y, moved, gap_speed, grip, locked, tolerance, u, z):
                    break
            if eased:
                status = verdict if project else INFEASIBLE
            if status == SOLVED:
                break
        for i in range(n):
            loaded[i] = z[3 * i] > 0.0
        if distribution < 2 or eased:
            shifted = np.empty(na)
            shift_offset(reduced, delta, shifted)
            mode = np.empty(n, np.int64)
            nothing = np.zeros(n)
            for i in range(n):
                parting = _parting(Y, moved, gap_speed, u, i)
                mode[i] = (
                    STICKING if parting <= tolerance else (HOLDING if grip[i] > 0.0 else APART)
                )
                if grip[i] == 0.0 and gap_speed[i] <= TOUCHING_SPEED:
                    mode[i] = APART  # let go: it may slip, so it must stay without load
            bound = np.empty(n)
            for i in range(n):
                # What holds without load has no friction cone to stay in.
                bound[i] = grip[i] if mode[i] == HOLDING else min(mu[i], grip[i])
            weight = 1.0 if distribution == 0 else 0.0
            face = Face(mode, nothing, nothing)
            within = Cones(bound, edges, cones.load_share)
            count = distribute(reduced.T, shifted, Y, u, face, within, weight, z)
            if count < 0:
                # No forces within the contacts' friction hold this motion: the model's own, unbounded.
                unbounded = Cones(grip, edges, cones.load_share)
                count = distribute(reduced.T, shifted, Y, u, face, unbounded, weight, z)
            steps += abs(count)
    finish(reduced, answer)
    return status, steps, contradiction
