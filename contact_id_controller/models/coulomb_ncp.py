"""Coulomb friction with complementarity on exact cones, no polygon.

    0 <= f_N  perp  N v+ + gap >= 0        |f_T| <= mu f_N,  f_T opposed to slip

as the fixed point z = AC(z - w) of a projection (``kernels.exact_cones``), w = Y Y^T z + c, solved to 1e-10
in units of the problem's largest velocity. A motion without slip is preferred if there is one (``steps.exact_law``);
at the motion found the admissible forces form a convex set, from which ``distribution`` chooses.

The method need not end with a solution, nor is the solution unique: with much friction several motions may satisfy
the law. A solution with status ``solved`` is certified.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.exact_cones.continuation import (
    LATE_RHO,
    PAUSED,
    STARTS,
    WARM_POLISH,
    Budget,
    solve_law,
)
from contact_id_controller.kernels.exact_cones.continuation import SOLVED as LAW_SOLVED
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.lcp.lemke_friction import lemke_friction
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.options import DISTRIBUTIONS
from contact_id_controller.models.steps.consistency import project_held, touching
from contact_id_controller.models.steps.exact_law import NOISE, redistribute, rests_otherwise, stick
from contact_id_controller.models.steps.finish import RELAXED, finished, map_identities, outcome
from contact_id_controller.models.steps.reduced import (
    Cones,
    answer_room,
    begin,
    matrices,
    open_answer,
    read_answer,
)
from contact_id_controller.models.steps.relaxation import ease, with_fallback
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

NO_SLIP = 1e4  # stands for infinite friction
NOT_CONVERGED = 2
FIRST_STARTS = 2  # of the plan as it is; more help rarely, and never if contacts contradict
EASED_EDGES = 8  # of the pyramids around the cones on which contradictory contacts are eased
PATIENCE = 3  # stages of the first start that gain nothing, after which others are tried
POLYGONS = (16, 64, 8, 32)  # edges: their solutions are first guesses when all else has failed

GUESS, FIRST_START, OTHER_STARTS, RESUMED = range(4)
"""From where Newton's method is tried, see ``_slide``."""


def solve_coulomb_ncp(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces and torques under Coulomb's law with complementarity, on exact cones.

    Args:
        warm_start: the last period's solution; its impulses, matched by contact identity, are the first
            guess where contacts slide. Of several solutions it selects the one that continues the last.
        options: distribution, consistency: as for coulomb/qp.

    A motion without slip is taken if forces in the cones produce it. Otherwise Newton's method on
    proximal stages (2 starts of 120 steps at most, or of one for each unknown if these are 64 or
    more); contradictory contacts are relaxed as in coulomb/qp (status ``inconsistent`` from
    5 % on) and solved again from 5 starts and with friction that grows, then from the solutions of up
    to 4 friction polygons. If that fails too (``not_converged``) the forces are those of soft contacts.

    Source: Alart and Curnier (1991); de Saxce and Feng (1998); Acary and Brogliato (2008), chapter 13.
    """
    n, chosen = len(problem), DISTRIBUTIONS.index(options.distribution)
    project = options.consistency == "project"
    room, guess = answer_room(problem), np.zeros((n, 3))
    if warm_start is not None:
        map_identities(problem, warm_start, warm_start.memory, guess)
    mu, share = problem.contacts.friction, problem.contacts.load_share
    code, steps, contradiction = _solve(*matrices(problem), mu, share, chosen, project, guess, room)
    answer = read_answer(problem, room)
    if code == NOT_CONVERGED:
        code, more = _from_polygons(problem, mu, share, chosen, room)
        steps += more
    memory = answer.z.reshape(n, 3) if code in (SOLVED, RELAXED) else None
    solution = outcome(problem, code, steps, contradiction, room, memory)
    if memory is not None:
        return solution
    return with_fallback(solution, mu, EASED_EDGES)


def _from_polygons(
    problem: Problem, mu: np.ndarray, share: np.ndarray, chosen: int, room: np.ndarray
) -> tuple[int, int]:
    """Solve again, starting from the solutions of friction polygons; returns (status code, steps)."""
    answer = read_answer(problem, room)
    free = answer.moved.copy()
    free[::3] += problem.gap_speed
    finite, steps = effective_friction(mu, NO_SLIP), 0
    for edges in POLYGONS:
        angle = 2.0 * np.pi * np.arange(edges) / edges
        directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        start = lemke_friction(problem.Y, free, finite, directions)
        steps += start.pivots
        if not start.solved:
            continue
        answer.z[:] = start.impulses.ravel()
        code, more = _go_on(*matrices(problem), mu, share, chosen, room)
        steps += more
        if code != NOT_CONVERGED:
            return code, steps
    return NOT_CONVERGED, steps


@kernel
def _go_on(store, actuated, unactuated, mu, load_share, distribution, room):
    """Solve from the impulses answer.z in ``room`` for the plan there; returns (status code, steps)."""
    reduced = open_store(store, actuated, unactuated)
    answer = open_answer(room, mu.shape[0], actuated.shape[0])
    cones = Cones(effective_friction(mu, NO_SLIP), EASED_EDGES, load_share)
    budget = Budget(WARM_POLISH, 0, 1, LATE_RHO, 0)
    code, steps, _ = solve_law(
        reduced.Y, answer.moved, reduced.gap_speed, cones.mu, budget, answer.z
    )
    if code != LAW_SOLVED:
        return NOT_CONVERGED, steps
    steps += _choose(reduced, cones, distribution, answer)
    return finished(reduced, answer, SOLVED), steps


@kernel
def _choose(reduced, cones, distribution, answer):
    """Replace the impulses answer.z by the distribution's choice at their motion; returns the steps."""
    if distribution == 2:
        return 0
    weight = 1.0 if distribution == 0 else 0.0
    return redistribute(reduced, answer.moved, answer.delta, cones, weight, answer.z)


@kernel
def _slide(reduced, cones, distribution, noise, starts, guess, held, answer):
    """Solve for impulses with sliding or parting contacts, then distribute them at their motion; (status code, steps).

    Newton's method (``solve_law``) starts from four places in turn, until the law is satisfied:

        GUESS         polish of the guess, if there is one
        FIRST_START   first start of the proximal stages, paused when it is near and does not improve
        OTHER_STARTS  the other starts, with growing friction before the second
        RESUMED       the first start again from where the others ended, without a pause, if it had paused

    After GUESS and FIRST_START the impulses may be near a motion in which a set of contacts other than ``held`` is
    loaded and does not slip, as three feet in contact while a fourth parts. Such a set is redundant, so rounding errors
    of its slip stop Newton's method; then sticking of that set is tried instead (``stick``).

    Args:
        distribution: index into ``DISTRIBUTIONS``.
        noise: share of the largest contact velocity by which the plan may be changed so that contacts stick; 0: no
            change, and no other set is tried.
        starts: of the proximal stages, at most.
        guess (n, 3): first guess of the impulses, N s; zeros: none.
        held (n,): contacts that cannot all stick with forces in their cones.
        answer: its impulses z (3n,) are the result, its ``moved`` and ``delta`` (see ``begin``) the plan.
    """
    moved, z, mu = answer.moved, answer.z, cones.mu
    Y, gap_speed = reduced.Y, reduced.gap_speed
    n, steps = gap_speed.shape[0], 0
    torque_weight = 1.0 if distribution == 0 else 0.0
    bearing, forces = np.empty(n, np.bool_), np.empty(3 * n)
    guessed, paused = False, False
    for i in range(n):
        for d in range(3):
            z[3 * i + d] = guess[i, d]
            guessed = guessed or guess[i, d] != 0.0
    for place in range(GUESS if guessed else FIRST_START, RESUMED + 1):
        if place == GUESS:
            budget = Budget(WARM_POLISH, 0, 0, 0.0, 0)
        elif place == FIRST_START:
            budget = Budget(0, 0, 1, 0.0, PATIENCE if noise > 0.0 else 0)
        elif place == OTHER_STARTS:
            budget = Budget(0, 1, starts, 0.0, 0)
        else:
            budget = Budget(0, 0, 1, 0.0, 0)
        if place == RESUMED and not paused:
            break
        code, count, _ = solve_law(Y, moved, gap_speed, mu, budget, z)
        steps += count
        if code == LAW_SOLVED:
            return SOLVED, steps + _choose(reduced, cones, distribution, answer)
        if place == FIRST_START:
            paused = code == PAUSED
        may_hold = noise > 0.0 and place in (GUESS, FIRST_START)
        if may_hold and rests_otherwise(Y, moved, gap_speed, mu, z, held, bearing):
            holds, count = stick(
                reduced, moved, answer.delta, bearing, cones, torque_weight, noise, forces
            )
            steps += count
            if holds:
                assign(z, forces)
                return SOLVED, steps
    return NOT_CONVERGED, steps


@kernel
def _solve(store, actuated, unactuated, mu, load_share, distribution, project, guess, room):
    """Solve Coulomb contact with sticking and sliding, and the joint torques that go with it.

    Attempt 0 takes the planned accelerations, with ``project`` projected onto the constraints of the touching contacts
    that the plan does not lift; attempt 1 (``project`` only) projects onto those of all touching contacts; attempt 2
    relaxes contact velocities that no force can produce (without ``project`` the status is then INFEASIBLE). Each tries
    sticking (``stick``), then sliding (``_slide``).

    Args:
        store, actuated, unactuated: of ``matrices(problem)``, see ``open_store``.
        mu, load_share (n,).  distribution: index into ``DISTRIBUTIONS``.  project: bool.
        guess (n, 3): first guess of the impulses, N s; zeros: none.
        room: output, opened by ``begin``.

    Returns (status code, solver steps, largest contact velocity by which the plan was changed, m/s).
    """
    reduced = open_store(store, actuated, unactuated)
    answer = begin(reduced, room)
    cones = Cones(effective_friction(mu, NO_SLIP), EASED_EDGES, load_share)
    Y, gap_speed, mu = reduced.Y, reduced.gap_speed, cones.mu
    moved, z, delta = answer.moved, answer.z, answer.delta
    n = gap_speed.shape[0]
    status, steps, contradiction = SOLVED, 0, 0.0
    if n:
        weight, noise = 1.0 if distribution == 0 else 0.0, NOISE if project else 0.0
        held, u = np.empty(n, np.bool_), np.empty(Y.shape[1])
        around = mu / np.cos(np.pi / EASED_EDGES)
        for attempt in range(3):
            touching(gap_speed, held)
            if attempt == 2:
                # No forces make this motion possible: what contradicts gives way.
                status, count, change = ease(
                    Y, reduced.c, reduced.speed, moved, gap_speed, around, EASED_EDGES, u, z
                )
                steps += count
                contradiction = max(contradiction, change)
                if status != SOLVED or not project:
                    status = INFEASIBLE
                    break
            elif project:
                contradiction = project_held(reduced, mu, attempt == 0, held, delta, moved)
            elif attempt == 1:
                continue
            resting, count = stick(reduced, moved, delta, held, cones, weight, noise, z)
            steps += count
            if resting:
                status = SOLVED
                break
            starts = STARTS if attempt == 2 else FIRST_STARTS
            status, count = _slide(reduced, cones, distribution, noise, starts, guess, held, answer)
            steps += count
            if status == SOLVED:
                break
    return finished(reduced, answer, status), steps, contradiction
