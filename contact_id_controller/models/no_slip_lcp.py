"""Contact without slip: tangential velocities zero, normal complementarity (first paper, section 4).

    T v+ = 0,    0 <= f_N  perp  N v+ + gap >= 0

On the reduced problem the tangential rows are projected out with their multipliers (at most nu
independent ones; near-dependent rows would produce enormous forces, algorithm 1), and what is left
is a positive semidefinite LCP of rank nu: the principal pivoting of algorithm 2, here in its dual
form (``steps.motion.stage_one``), with at most nu basic forces, a factorisation updated by each
pivot, and the last period's loaded contacts as first candidates. The n x n matrix is never formed.

The paper lets contacts without load hold tangentially. Here a solution also has

    f_T = 0 where f_N = 0,    T v+ = 0 where f_N > 0

(only the contacts that carry load hold): tangential rows of others are dropped and the problem is
solved again. Where no set of contacts does this, the status is ``unholdable`` and the forces are the
paper's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.pyramid import APART, HOLDING, STICKING, UNBOUNDED_FRICTION
from contact_id_controller.kernels.reduction import TOUCHING_SPEED, open_store
from contact_id_controller.kernels.views import dense, view
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.frame_problems import TYPES, UNTOLD, FramesCall
from contact_id_controller.models.options import DISTRIBUTIONS
from contact_id_controller.models.steps.consistency import project_plan
from contact_id_controller.models.steps.finish import (
    UNHOLDABLE,
    finished,
    map_identities,
    outcome,
    shift_offset,
)
from contact_id_controller.models.steps.force_distribution import distribute
from contact_id_controller.models.steps.motion import ENORMOUS, STICKING_SPEED, STILL_M_S, stage_one
from contact_id_controller.models.steps.reduced import (
    Cones,
    Face,
    answer_room,
    begin,
    matrices,
)
from contact_id_controller.models.steps.relaxation import WITH_FORCES, ease, tame, with_fallback
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

MOST_TRIED = 8  # touching contacts, up to which all sets of them are tried


def solve_no_slip_lcp(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces and torques without slip.

    Args:
        warm_start: the last period's solution; its loaded contacts, matched by identity, are tried
            first, which keeps ``distribution="none"`` from jumping between vertices.
        options: edges: of the pyramid that the distribution respects. The model's friction is unbounded,
            but among forces of the same effect those within the contacts' own friction are chosen
            if there are any: a real ground returns no others.
            distribution: ``least_torque``, ``least_force`` or ``none`` (a vertex with at most nu forces).
            consistency: ``project`` or ``report``, as for coulomb/qp. A plan that slips has no solution
            here (status ``inconsistent``).

    Handles positive semidefinite problems of any rank. Ends after finitely many pivots. With up to
    ``MOST_TRIED`` touching contacts ``unholdable`` is proven by trying all sets; with more it means that
    none was found.

    Source: first paper, section 4, algorithms 1 and 2; viscous and no-slip paper, section V.
    """
    n, edges = len(problem), options.edges
    room = answer_room(problem)
    loaded = np.zeros(n, dtype=bool)
    if warm_start is not None:
        map_identities(problem, warm_start, warm_start.memory, loaded)
    code, steps, contradiction = _solve(
        *matrices(problem),
        problem.contacts.friction,
        edges,
        problem.contacts.load_share,
        DISTRIBUTIONS.index(options.distribution),
        options.consistency == "project",
        loaded,
        1,
        room,
        UNTOLD,
    )
    solution = outcome(problem, code, steps, contradiction, room, loaded)
    if solution.status in WITH_FORCES:
        return solution
    held = np.where(problem.gap_speed <= TOUCHING_SPEED, problem.contacts.friction, 0.0)
    return with_fallback(solution, held, edges)


def prepare_frames(friction: np.ndarray, load_share: np.ndarray, options: Chosen) -> FramesCall:
    """Make the compiled call that solves many problems as ``solve_no_slip_lcp`` does; options as there."""
    loaded = np.empty(len(friction), dtype=bool)
    chosen = DISTRIBUTIONS.index(options.distribution), options.consistency == "project", loaded
    fixed = dense(friction), options.edges, dense(load_share), *chosen
    solve = direct(_solve, *TYPES[:3], *fixed, *TYPES[3:])

    def call(
        store: np.ndarray,
        actuated: np.ndarray,
        unactuated: np.ndarray,
        count: int,
        room: np.ndarray,
        verdicts: np.ndarray,
    ) -> Any:
        loaded[:] = False
        return solve(store, actuated, unactuated, *fixed, count, room, verdicts)

    return call


@kernel
def _normal_velocities(Y, moved, gap_speed, u, parting):
    """Write into parting (n,) each contact's normal velocity N v+ + gap, m/s, at the motion u (nu,).

    N v+ = Y_N u + moved_N; Y (3n, nu), moved (3n,) m/s, gap_speed (n,) m/s. Returns the tolerance of zero, m/s.
    """
    scale = 0.0
    for r in range(moved.shape[0]):
        scale = max(scale, abs(moved[r]))
    for i in range(gap_speed.shape[0]):
        parting[i] = moved[3 * i] + gap_speed[i]
        for k in range(u.shape[0]):
            parting[i] += Y[3 * i, k] * u[k]
    return STICKING_SPEED * scale + STILL_M_S


@kernel
def _motion(reduced, edges, vertex, project, eased, loaded, grip, u, moved, z):
    """Stage I with sticking contacts (grip inf), see ``stage_one`` for vertex; returns (status, steps, change of ``moved`` m/s)."""
    Y, gap_speed = reduced.Y, reduced.gap_speed
    if eased:
        return ease(Y, reduced.c, reduced.speed, moved, gap_speed, grip, edges, u, z)
    status, steps = stage_one(Y, moved, gap_speed, grip, edges, loaded, vertex, u, z)
    change = 0.0
    if status == ENORMOUS:
        status = SOLVED
        if project:
            more, change = tame(reduced, moved, grip, edges, u, z)
            steps += more
    return status, steps, change


@kernel
def _holds_by_load(z, i):
    """Whether the tangential impulse of contact i is at most UNBOUNDED_FRICTION times its normal one."""
    tangential = max(abs(z[3 * i + 1]), abs(z[3 * i + 2]))
    return tangential <= UNBOUNDED_FRICTION * z[3 * i]


@kernel
def _distribute_lawfully(reduced, cones, distribution, grip, parting, tolerance, delta, u, z):
    """Distribute impulses z at the motion u, none tangential at unloaded contacts; (whether there are any, steps).

    They lie within the contacts' own friction if possible, otherwise within friction as good as
    unbounded. A touching contact that does not stick (grip 0) may slip, so its force is zero.
    """
    n = grip.shape[0]
    mode, bound, nothing = np.empty(n, np.int64), np.empty(n), np.zeros(n)
    lawful, narrower = True, False
    for i in range(n):
        touches = reduced.gap_speed[i] <= TOUCHING_SPEED
        if grip[i] > 0.0 and parting[i] > tolerance:
            return False, 0
        free = touches and grip[i] == 0.0
        mode[i] = STICKING if parting[i] <= tolerance and not free else APART
        bound[i] = min(cones.mu[i], UNBOUNDED_FRICTION) if grip[i] > 0.0 else 0.0
        narrower = narrower or bound[i] < min(grip[i], UNBOUNDED_FRICTION)
        lawful = lawful and (z[3 * i] == 0.0 if mode[i] == APART else True) and _holds_by_load(z, i)
    if distribution == 2 and lawful:
        return True, 0
    shifted = np.empty(reduced.T.shape[1])
    shift_offset(reduced, delta, shifted)
    face, weight = Face(mode, nothing, nothing), 1.0 if distribution == 0 else 0.0
    within = Cones(bound, cones.edges, cones.load_share)
    steps = distribute(reduced.T, shifted, reduced.Y, u, face, within, weight, z)
    if steps < 0 and narrower:
        for i in range(n):
            bound[i] = min(grip[i], UNBOUNDED_FRICTION)
        more = distribute(reduced.T, shifted, reduced.Y, u, face, within, weight, z)
        steps = more + steps if more < 0 else more - steps
    return steps >= 0, abs(steps)


@kernel
def _distribute_unbounded(reduced, cones, distribution, grip, parting, tolerance, delta, u, z):
    """Distribute the paper's forces, tangential ones at unloaded contacts included, into z (3n,), N s.

    grip, parting (n,): see ``_find_grip``, ``_normal_velocities``; delta (na,), u (nu,). Returns steps, negative on
    failure.
    """
    n = grip.shape[0]
    mode, nothing = np.empty(n, np.int64), np.zeros(n)
    for i in range(n):
        mode[i] = STICKING if parting[i] <= tolerance else (HOLDING if grip[i] > 0.0 else APART)
        if grip[i] == 0.0 and reduced.gap_speed[i] <= TOUCHING_SPEED:
            mode[i] = APART
    shifted = np.empty(reduced.T.shape[1])
    shift_offset(reduced, delta, shifted)
    face, weight = Face(mode, nothing, nothing), 1.0 if distribution == 0 else 0.0
    unbounded = Cones(grip, cones.edges, cones.load_share)
    return distribute(reduced.T, shifted, reduced.Y, u, face, unbounded, weight, z)


@kernel
def _change_grip(reduced, cones, grip, locked, parting, tolerance, delta, u, z):
    """Release sticking contacts without load; fix and lock those that slip under load, in grip and locked (n,).

    Returns False if none changed.
    """
    n, changed = grip.shape[0], False
    for i in range(n):
        free = grip[i] == 0.0 and reduced.gap_speed[i] <= TOUCHING_SPEED
        if free and not locked[i] and z[3 * i] > 0.0:
            grip[i], locked[i] = np.inf, True
            changed = True
    if changed:
        return True
    other = z.copy()
    _distribute_unbounded(reduced, cones, 1, grip, parting, tolerance, delta, u, other)
    for i in range(n):
        if grip[i] > 0.0 and not locked[i] and not _holds_by_load(other, i):
            grip[i] = 0.0
            changed = True
    return changed


@kernel
def _let_go(grip, locked, parting, tolerance):
    """Release the contacts that part: grip (n,), their friction, becomes 0; returns whether any did.

    locked (n,) bool: never released; parting (n,): normal velocities, m/s, larger than ``tolerance``.
    """
    changed = False
    for i in range(grip.shape[0]):
        if grip[i] > 0.0 and not locked[i] and parting[i] > tolerance:
            grip[i] = 0.0
            changed = True
    return changed


@kernel
def _find_grip(reduced, cones, distribution, project, eased, loaded, grip, u, answer):
    """Find a set of sticking contacts that are loaded while all others part or are unloaded: grip, motion, forces.

    Starts with the set ``grip``: releases contacts that part, then changes it by which can be loaded.

    Args:
        project: contradictions of the plan may be removed from answer.moved; eased: it is relaxed by least squares.
        loaded (n,): in, contacts to satisfy first; out, the loaded ones.
        grip (n,): inf for a sticking contact, 0 for one that may slide; in and out.
        u (nu,): out, the motion.  answer: its impulses z (3n,) are written.

    Returns (status, steps, largest change of answer.moved, m/s): UNHOLDABLE, with the last motion, if no such
    set was found.
    """
    moved, z, delta = answer.moved, answer.z, answer.delta
    n, steps, change, verdict = grip.shape[0], 0, 0.0, SOLVED
    parting, locked = np.empty(n), np.zeros(n, np.bool_)
    for repetition in range(3 * n + 1):
        status, count, size = _motion(
            reduced, cones.edges, distribution > 1, project, eased, loaded, grip, u, moved, z
        )
        steps, change, verdict = steps + count, max(change, size), max(verdict, status)
        if status != SOLVED and not eased:
            return status, steps, change
        tolerance = _normal_velocities(reduced.Y, moved, reduced.gap_speed, u, parting)
        if _let_go(grip, locked, parting, tolerance):
            continue
        for i in range(n):
            loaded[i] = z[3 * i] > 0.0
        held, count = _distribute_lawfully(
            reduced, cones, distribution, grip, parting, tolerance, delta, u, z
        )
        steps += count
        if held:
            return verdict, steps, change
        if not _change_grip(reduced, cones, grip, locked, parting, tolerance, delta, u, z):
            break
    return UNHOLDABLE if verdict == SOLVED else verdict, steps, change


@kernel
def _try_grips(reduced, cones, distribution, plan, answer):
    """``_find_grip`` by enumeration of all sets of at most MOST_TRIED touching contacts, fewest released first.

    plan (3n,): contact velocities at z = 0, m/s. Returns (whether one was found, steps).
    """
    n, steps, count = plan.shape[0] // 3, 0, 0
    touching, grip, parting = np.empty(n, np.int64), np.empty(n), np.empty(n)
    for i in range(n):
        if reduced.gap_speed[i] <= TOUCHING_SPEED:
            touching[count] = i
            count += 1
    if count > MOST_TRIED:
        return False, 0
    u, z, none = np.empty(reduced.Y.shape[1]), np.empty(3 * n), np.empty(0, np.bool_)
    for released in range(1, count + 1):
        for choice in range(1 << count):
            size = 0
            for k in range(count):
                size += (choice >> k) & 1
            if size != released:
                continue
            fill(grip, 0.0)
            for k in range(count):
                grip[touching[k]] = 0.0 if (choice >> k) & 1 else np.inf
            status, spent = stage_one(
                reduced.Y, plan, reduced.gap_speed, grip, cones.edges, none, False, u, z
            )
            steps += spent
            if status != SOLVED:
                continue
            tolerance = _normal_velocities(reduced.Y, plan, reduced.gap_speed, u, parting)
            held, spent = _distribute_lawfully(
                reduced, cones, distribution, grip, parting, tolerance, answer.delta, u, z
            )
            steps += spent
            if held:
                assign(answer.moved, plan)
                assign(answer.z, z)
                return True, steps
    return False, steps


@kernel
def _solve(
    store,
    actuated,
    unactuated,
    mu,
    edges,
    load_share,
    distribution,
    project,
    loaded,
    frames,
    room,
    verdicts,
):
    """Open the arrays for ``_hold``, of one problem or of several; see ``coulomb_qp._solve``."""
    n, numbers, width = mu.shape[0] // frames, store.shape[0] // frames, room.shape[0] // frames
    status, steps, contradiction = SOLVED, 0, 0.0
    for k in range(frames):
        reduced = open_store(view(store, k * numbers, (numbers,)), actuated, unactuated)
        status, steps, contradiction = _hold(
            reduced,
            Cones(view(mu, k * n, (n,)), edges, view(load_share, k * n, (n,))),
            distribution,
            project,
            loaded[k * n : (k + 1) * n],
            begin(reduced, view(room, k * width, (width,))),
        )
        if verdicts.shape[0]:
            verdicts[k, 0], verdicts[k, 1], verdicts[k, 2] = status, steps, contradiction
    return status, steps, contradiction


@kernel
def _hold(reduced, cones, distribution, project, loaded, answer):
    """Solve for sticking contacts and the torques; result as ``coulomb_qp._two_stages``.

    cones: of the distribution. loaded (n,): bool, guess in, loaded contacts out.
    """
    n, moved = reduced.gap_speed.shape[0], answer.moved
    contradiction = 0.0
    status, steps = SOLVED, 0
    u, grip, parting = np.zeros(reduced.Y.shape[1]), np.empty(n), np.empty(n)
    for attempt in range(3 if n else 0):
        eased = attempt == 2
        if attempt == 1 and not project:
            continue
        for i in range(n):
            grip[i] = np.inf if reduced.gap_speed[i] <= TOUCHING_SPEED else 0.0
        if project and not eased:
            contradiction = project_plan(reduced, grip, attempt == 0, answer.delta, moved)
        plan = moved.copy()
        status, count, change = _find_grip(
            reduced, cones, distribution, project, eased, loaded, grip, u, answer
        )
        steps += count
        if status == UNHOLDABLE:
            if eased:
                assign(plan, moved)
            held, count = _try_grips(reduced, cones, distribution, plan, answer)
            if held:
                status, change = SOLVED, change if eased else 0.0
            else:
                # As in the paper: tangential forces where there is no load.
                tolerance = _normal_velocities(reduced.Y, moved, reduced.gap_speed, u, parting)
                count += abs(
                    _distribute_unbounded(
                        reduced,
                        cones,
                        distribution,
                        grip,
                        parting,
                        tolerance,
                        answer.delta,
                        u,
                        answer.z,
                    )
                )
            steps += count
        contradiction = max(contradiction, change)
        if eased and not project:
            status = INFEASIBLE
        if status in (SOLVED, UNHOLDABLE):
            break
    return finished(reduced, answer, status), steps, contradiction
