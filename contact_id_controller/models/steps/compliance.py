"""Coulomb friction with complementarity and compliance, if Lemke's method fails on rigid contacts.

    (G + eps I) z + c + gap  complementary to z as in ``coulomb_lcp``

Contacts that yield by eps times their impulse make the problem strictly copositive, so it has a
solution for every c and Lemke's method cannot end on a ray; nearly dependent contacts no longer make its
bases singular. Its solution solves the rigid problem of c + eps z exactly, which is reported as
attainable. The factor [Y, sqrt(eps) I] has 3n more columns: slow, for the rare case only.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.lcp.lemke_friction import lemke_friction
from contact_id_controller.models.steps.finish import TOLERATED, finish_answer, outcome
from contact_id_controller.models.steps.reduced import (
    Cones,
    answer_room,
    read_answer,
)
from contact_id_controller.models.steps.relaxation import mean_diagonal
from contact_id_controller.models.steps.slip import NO_SLIP, share_forces
from contact_id_controller.solution import INCONSISTENT, NOT_CONVERGED, Solution

# eps relative to the mean diagonal of G, tried in turn. What has a solution yields in proportion to
# eps; what has none yields as much as the contacts contradict each other, whatever eps.
COMPLIANCES = (1e-7, 1e-6, 1e-5, 1e-4)
STIFF = (1e-9, 1e-8, 1e-7)
UNFELT = 1e-6  # share of the largest contact velocity; a plan with stiff contacts yielding less is attainable


def with_compliance(
    solution: Solution, mu: np.ndarray, edges: int, distribution: int, project: bool
) -> Solution:
    """Replace a solution in which Lemke's method failed by that of ``solve_compliant``, if it has one.

    mu (n,): friction of the polygons' edges.  project: of the option ``consistency``.
    """
    again = None
    if solution.status == NOT_CONVERGED:
        finite = effective_friction(mu, NO_SLIP)
        again = solve_compliant(solution, finite, edges, distribution, solution.attainable)
    elif solution.status == INCONSISTENT and not project:
        # What Lemke's method missed, and the convex program does not have, may exist all the same.
        finite = effective_friction(mu, NO_SLIP)
        again = solve_compliant(solution, finite, edges, distribution, None, STIFF, UNFELT)
    return again or solution


def solve_compliant(
    solution: Solution,
    mu: np.ndarray,
    edges: int,
    distribution: int,
    start: np.ndarray | None,
    compliances: tuple[float, ...] = COMPLIANCES,
    tolerated: float = TOLERATED,
) -> Solution | None:
    """Solve the failed problem again with compliant contacts; None if no tolerable compliance helps.

    Args:
        solution: the failed one; its plan is kept.
        mu (n,): finite coefficients.  edges: of the polygon.
        distribution: index into ``options.DISTRIBUTIONS``.
        start (3n,): contact velocities at z = 0, m/s; None: ``problem.c``, those of the plan without changes.
        compliances, tolerated: to try, and the share of the largest contact velocity that may yield.

    Source: Tikhonov regularisation as in Cottle, Pang and Stone (1992), section 5.6.
    """
    problem = solution.problem
    n, delta = len(problem), solution.joint_velocity_change
    assert delta is not None
    earlier = solution.contradiction_m_s
    if start is None:
        # The contradiction of an infeasible plan no longer counts once it is solved as it is.
        start, earlier = problem.c, 0.0
    angle = 2.0 * np.pi * np.arange(edges) / edges
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    free = start.copy()
    free[::3] += problem.gap_speed
    plan = problem.c - problem.period * (problem.T @ delta)
    scale = max(np.abs(array).max() for array in (problem.c, problem.speed, plan))
    tolerable = tolerated * scale
    if tolerated >= TOLERATED:
        tolerable += max(-problem.gap_speed.min(), 0.0)  # recovery of a penetration may give way
    steps = solution.iterations
    for compliance in compliances:
        eps = compliance * mean_diagonal(problem.Y)
        rows = np.hstack([problem.Y, np.sqrt(eps) * np.eye(3 * n)])
        result = lemke_friction(rows, free, mu, directions)
        steps += result.pivots
        yielded = eps * result.impulses.ravel()
        moved = start + yielded
        if result.solved and np.abs(moved - plan).max() <= tolerable:
            break
    else:
        return None
    room = answer_room(problem)
    answer = read_answer(problem, room)
    answer.moved[:], answer.z[:], answer.delta[:] = moved, result.impulses.ravel(), delta
    cones = Cones(mu, edges, problem.contacts.load_share)
    share_forces(problem.reduced, delta, moved, result.z, result.w, cones, distribution, answer.z)
    code = finish_answer(problem, answer)
    contradiction = max(earlier, float(np.abs(moved - plan).max()))
    return outcome(problem, code, steps, contradiction, room)
