"""Coulomb friction with complementarity on a friction polygon (first paper, section 5).

Anitescu-Potra / Stewart-Trinkle on the reduced problem: one slip speed lambda a contact,

    [ G_NN  G_NF  0 ] [f_N]   [c_N + gap]   [w_N]
    [ G_FN  G_FF  E ] [f_F] + [c_F      ] = [w_F]      all >= 0, complementary
    [ mu   -E^T   0 ] [lam]   [0        ]   [w_l]

(eq. 64 with its misprint corrected), solved by Lemke's method on the factor Y of G. At the solution's
motion and slip the admissible forces form a convex set, from which ``distribution`` chooses.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.lcp.status import RAY
from contact_id_controller.lcp.status import SOLVED as LCP_SOLVED
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.options import DISTRIBUTIONS
from contact_id_controller.models.steps.compliance import with_compliance
from contact_id_controller.models.steps.consistency import project_plan
from contact_id_controller.models.steps.finish import finished, map_identities, outcome
from contact_id_controller.models.steps.motion import STICKING_SPEED, STILL_M_S, stage_one
from contact_id_controller.models.steps.polygon_friction import polygon_friction
from contact_id_controller.models.steps.reduced import (
    Cones,
    answer_room,
    begin,
    matrices,
)
from contact_id_controller.models.steps.relaxation import ease, with_fallback
from contact_id_controller.models.steps.slip import (
    NO_SLIP,
    complementary_impulses,
    share_forces,
    slip_pairs,
)
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

NOT_CONVERGED = 2


def solve_coulomb_lcp(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces and torques under Coulomb friction with complementarity.

    Args:
        warm_start: the last period's solution; its basis, matched by contact identity, is tried
            first.
        options: edges, polygon, distribution, consistency: as for coulomb/qp.

    If no loaded contact slides in stage I of coulomb/qp, its solution solves the LCP and is returned (except with
    ``distribution`` none, which returns Lemke's vertex); otherwise Lemke's method runs. It handles copositive problems,
    G of any rank, and ends at a solution, certified by its residual, at a ray or at its pivot limit. Contradictory
    contacts are relaxed as in coulomb/qp (status ``inconsistent`` from 5 % on); if Lemke's method fails nevertheless,
    compliance is added to the contacts (``steps.compliance``); if that fails too (``not_converged``) the forces are
    those of soft contacts.

    Source: first paper, eq. 54 to 68; Stewart and Trinkle (1996), Anitescu and Potra (1997).
    """
    n, edges, project = len(problem), options.edges, options.consistency == "project"
    room = answer_room(problem)
    basis = np.zeros((n, edges + 2), dtype=np.bool_)
    memory = None if warm_start is None else warm_start.memory
    if memory is not None and memory.shape[1:] == basis.shape[1:]:
        map_identities(problem, warm_start, memory, basis)
    mu = polygon_friction(problem.contacts.friction, edges, options.polygon)
    chosen = DISTRIBUTIONS.index(options.distribution)
    code, steps, contradiction = _solve(
        *matrices(problem),
        mu,
        edges,
        problem.contacts.load_share,
        chosen,
        project,
        basis,
        room,
    )
    solution = outcome(problem, code, steps, contradiction, room, basis)
    solution = with_compliance(solution, mu, edges, chosen, project)
    return with_fallback(solution, mu, edges)


@kernel
def _all_stick(Y, moved, gap_speed, mu, edges, u, z, pairs, slacks):
    """Whether stage I of coulomb/qp has a solution in which no loaded contact slides or parts.

    It then also satisfies complementarity: it solves the LCP, faster than Lemke's method, and is the sticking one of
    several solutions. Fills u (nu,), z (3n,) and, for ``slip.share_forces``, pairs and slacks (n, edges + 2).
    """
    status, _ = stage_one(Y, moved, gap_speed, mu, edges, np.empty(0, np.bool_), False, u, z)
    if status != SOLVED:
        return False
    slip_pairs(Y, moved, gap_speed, edges, z, pairs, slacks)
    scale = 0.0
    for r in range(moved.shape[0]):
        scale = max(scale, abs(moved[r]))
    tolerance = STICKING_SPEED * scale + STILL_M_S
    for i in range(gap_speed.shape[0]):
        if slacks[i, 0] < -tolerance:
            return False
        if z[3 * i] > 0.0 and (slacks[i, 0] > tolerance or pairs[i, edges + 1] > tolerance):
            return False
    return True


@kernel
def _solve(store, actuated, unactuated, mu, edges, load_share, distribution, project, basis, room):
    """Solve the contacts' LCP, distribute the forces among its solutions, and compute torques.

    With the plan as projected; then, if that has no solution, with one whose contradictions are all removed
    (``project``); at last with contact velocities that give way (``ease``). Each time the solution without sliding is
    tried before Lemke's method, if forces are distributed afterwards.

    Args:
        store, actuated, unactuated: of the problem, see ``matrices``.
        mu, load_share: (n,).
        edges: of the friction polygon.
        distribution: index in DISTRIBUTIONS; 2: none.
        project: whether a plan that contradicts the contacts is replaced by the closest consistent one.
        basis: (n, edges + 2) bool, initial basis in, that of the solution out.
        room: out, see ``open_answer``.

    Returns (status, steps, largest contradiction m/s).
    """
    reduced = open_store(store, actuated, unactuated)
    answer = begin(reduced, room)
    cones = Cones(effective_friction(mu, NO_SLIP), edges, load_share)
    Y, gap_speed, mu = reduced.Y, reduced.gap_speed, cones.mu
    moved, z, delta = answer.moved, answer.z, answer.delta
    n = gap_speed.shape[0]
    contradiction = 0.0
    u = np.zeros(Y.shape[1])
    status, steps = SOLVED, 0
    if n:
        pairs, slacks = np.empty((n, edges + 2)), np.empty((n, edges + 2))
        code = RAY
        eased = False
        for attempt in range(3):
            if attempt == 2:
                # No forces make this motion possible: what contradicts gives way.
                eased = True
                status, count, change = ease(
                    Y, reduced.c, reduced.speed, moved, gap_speed, mu, edges, u, z
                )
                steps += count
                contradiction = max(contradiction, change)
            elif project:
                contradiction = project_plan(reduced, mu, attempt == 0, delta, moved)
            elif attempt == 1:
                continue
            if (
                attempt < 2
                and distribution < 2
                and _all_stick(Y, moved, gap_speed, mu, edges, u, z, pairs, slacks)
            ):
                code = LCP_SOLVED
                break
            code, count = complementary_impulses(
                Y, moved, gap_speed, mu, edges, basis, pairs, slacks, z
            )
            steps += count
            if code == LCP_SOLVED:
                break
        if code == LCP_SOLVED:
            steps += share_forces(reduced, delta, moved, pairs, slacks, cones, distribution, z)
            if eased and not project:
                status = INFEASIBLE
        else:
            status = INFEASIBLE if status != SOLVED or not project else NOT_CONVERGED
    return finished(reduced, answer, status), steps, contradiction
