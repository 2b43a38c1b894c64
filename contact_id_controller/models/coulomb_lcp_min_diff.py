"""The solution of the Coulomb LCP nearest to the last period's forces (first paper, algorithm 3).

The solutions of the LCP of ``coulomb_lcp`` are a union of convex sets, one for each choice of a mode for each contact
(``contact_modes``), at most (2 + 2k)^n. In each of them the impulses nearest to the last ones are a convex program
(``mode_program``). The paper solves a linear system for each combination of basic variables. Here branch and bound
discards choices of modes for some contacts when the distance without the conditions of the others already exceeds the
best one: the result is that of full enumeration, after tens of programs instead of 10,000. The paper's distance is
that of (v+, torques), a sum of different units; here it is that of the impulses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.exceptions import UnknownModelError
from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.coulomb_lcp import solve_coulomb_lcp
from contact_id_controller.models.options import DISTRIBUTIONS
from contact_id_controller.models.steps.finish import STATUS_NAMES, finish_answer, map_identities
from contact_id_controller.models.steps.mode_program import nearest_in_modes
from contact_id_controller.models.steps.modes import (
    UNDECIDED,
    count_modes,
    distance,
    fitting_mode,
    nearest_force,
)
from contact_id_controller.models.steps.motion import STILL_M_S
from contact_id_controller.models.steps.polygon_friction import polygon_friction
from contact_id_controller.models.steps.reduced import Cones, empty_answer
from contact_id_controller.models.steps.relaxation import mean_diagonal
from contact_id_controller.models.steps.slip import NO_SLIP, share_forces, slip_pairs
from contact_id_controller.problem import Problem
from contact_id_controller.solution import INCONSISTENT, NOT_CONVERGED, Solution

MOST_CONTACTS = 4
MOST_NODES = 20_000  # nearest-point problems, after which the nearest found so far is returned
COMPLEMENTARY = 1e-8  # accepted distance from the contacts' modes, relative
EXACT = 3e-9  # a relaxation this near to modes for all contacts needs no branching
SAME = 1e-6  # share by which it may be nearer than the solution that it leads to
NEARER = 1e-9  # share by which a solution must be nearer to replace another
SMALLEST_FORCE = 1e-6  # forces are measured by at least this share of those that stop the contacts
SMALLEST_SPEED = 1e-9  # velocities by at least this share of those that the last forces make


def solve_coulomb_lcp_min_diff(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces under Coulomb friction with complementarity that are nearest to the last ones.

        min |z - z_last|^2      z solves the Coulomb LCP

    Args:
        warm_start: the last period's solution; its forces (world frame), matched by contact identity,
            are z_last, zero at new contacts. None: the least impulses.
        options: edges, polygon, consistency: as for coulomb/lcp.
            distribution: ``none`` returns the nearest forces, as in the paper; the others keep only their
            motion and slip, and distribute the forces again; only these use load shares.

    At most 4 contacts: the cost is exponential. The forces are unique except for ties. Each contact of
    a solution is verified to lie within 1e-8, relative, of one of its modes. Contradictory plans, and
    forces if no solution is found: as for coulomb/lcp. If the search hits its limit (status
    ``not_converged``) the forces solve the LCP but may not be the nearest.

    Raises:
        UnknownModelError: more than 4 contacts.

    Source: first paper, section 5.3.
    """
    n, edges, distribution = len(problem), options.edges, options.distribution
    if n > MOST_CONTACTS:
        raise UnknownModelError(
            f"coulomb/lcp_min_diff takes at most {MOST_CONTACTS} contacts, got {n}; choose coulomb/lcp "
            "or coulomb/qp, whose distribution 'least_torque' keeps forces steady for any number"
        )
    first = solve_coulomb_lcp(problem, options.but(distribution="none"), warm_start)
    if n == 0 or first.status == INCONSISTENT:
        return first
    force = np.zeros((n, 3))
    if warm_start is not None:
        map_identities(problem, warm_start, warm_start.forces, force)
    target = (problem.frames @ force[:, :, None]).ravel() * problem.period
    answer = empty_answer(problem)
    z, torques, velocity = answer.z, answer.torques, answer.velocity
    z[:] = first.impulses
    mu = polygon_friction(problem.contacts.friction, edges, options.polygon)
    mu = effective_friction(mu, NO_SLIP)
    found, complete, nodes = _nearest_solution(
        problem.Y, first.attainable, problem.gap_speed, mu, edges, target, z
    )
    if not found:
        kept = first.torques, first.impulses, first.velocity, first.joint_velocity_change
        return _after(first, nodes, NOT_CONVERGED, *kept)
    delta = answer.delta
    answer.moved[:], delta[:] = first.attainable, first.joint_velocity_change
    if distribution != "none":
        pairs, slacks = np.zeros((n, edges + 2)), np.zeros((n, edges + 2))
        slip_pairs(problem.Y, first.attainable, problem.gap_speed, edges, z, pairs, slacks)
        cones = Cones(mu, edges, problem.contacts.load_share)
        share_forces(
            problem.reduced,
            delta,
            first.attainable,
            pairs,
            slacks,
            cones,
            DISTRIBUTIONS.index(distribution),
            z,
        )
    code = finish_answer(problem, answer)
    status = STATUS_NAMES[code] if complete else NOT_CONVERGED
    return _after(first, nodes, status, torques, z, velocity, delta)


def _after(
    first: Solution,
    nodes: int,
    status: str,
    torques: np.ndarray,
    impulses: np.ndarray,
    velocity: np.ndarray,
    delta: np.ndarray | None,
) -> Solution:
    """Solution for the same changed plan as ``first``, with ``nodes`` programs added to its iterations."""
    return Solution(
        first.problem,
        status,
        torques,
        impulses,
        velocity,
        first.iterations + nodes,
        delta,
        first.contradiction_m_s,
        first.memory,
        first.attainable,
    )


class Scaled(NamedTuple):
    """The LCP in units in which velocities and inertia are about 1: w = Y Y^T z + free, gaps included.

    Y (3n, nu), free (3n,), gap_speed (n,), mu (n,), edges of each friction polygon.
    """

    Y: np.ndarray
    free: np.ndarray
    gap_speed: np.ndarray
    mu: np.ndarray
    edges: int


class Fit(NamedTuple):
    """Nearest modes of given forces: modes (n,) int64, violation of each contact, worst (n,).

    sizes (2,): scales of force and velocity. work (6, 3): workspace.
    """

    modes: np.ndarray
    worst: np.ndarray
    sizes: np.ndarray
    work: np.ndarray


class Reach(NamedTuple):
    """Distances of the last force of each contact from the forces of a mode.

    of_mode (n, modes); order (n, modes) int64: modes by distance; undecided (n,): least distance over all modes.
    """

    of_mode: np.ndarray
    order: np.ndarray
    undecided: np.ndarray


@kernel
def _nearest_solution(Y, moved, gap_speed, mu, edges, target, z):
    """Scale to velocities and inertia of about 1, search, and scale back; z (3n,) in: a solution.

    Returns (whether z is a verified solution, whether no other is nearer, nodes).
    """
    inertia = mean_diagonal(Y)
    speed, last = STILL_M_S, 0.0
    for r in range(z.shape[0]):
        speed, last = max(speed, abs(moved[r])), max(last, abs(target[r]))
    speed = max(speed, SMALLEST_SPEED * inertia * last)
    impulse, root = speed / inertia, np.sqrt(inertia)
    scaled = Scaled(np.empty(Y.shape), np.empty(z.shape[0]), gap_speed / speed, mu, edges)
    there, best = np.empty(z.shape[0]), np.empty(z.shape[0])
    for r in range(z.shape[0]):
        scaled.free[r] = (moved[r] + (gap_speed[r // 3] if r % 3 == 0 else 0.0)) / speed
        there[r], best[r] = target[r] / impulse, z[r] / impulse
        for k in range(Y.shape[1]):
            scaled.Y[r, k] = Y[r, k] / root
    found, complete, nodes = _branch_and_bound(scaled, there, best)
    if found:
        for r in range(z.shape[0]):
            z[r] = best[r] * impulse
    return found, complete, nodes


@kernel
def _nearest_modes(scaled, z, fit):
    """Fill ``fit`` with the mode whose cell is nearest to z (3n,), contact by contact; returns the largest violation.

    Velocities w = Y u + free with u = Y^T z; distances of impulses and velocities are relative to the largest of each,
    so that both count alike.
    """
    Y, mu = scaled.Y, scaled.mu
    n, nu = mu.shape[0], Y.shape[1]
    sizes = fit.sizes
    w = np.empty((n, 3))
    sizes[0], sizes[1] = SMALLEST_FORCE, 1.0
    u = np.empty(nu)
    for k in range(nu):
        u[k] = 0.0
        for r in range(3 * n):
            u[k] += Y[r, k] * z[r]
    for r in range(3 * n):
        i, d = r // 3, r % 3
        w[i, d] = scaled.free[r]
        for k in range(nu):
            w[i, d] += Y[r, k] * u[k]
        sizes[0] = max(sizes[0], abs(z[r]))
        sizes[1] = max(sizes[1], abs(w[i, d] - (scaled.gap_speed[i] if d == 0 else 0.0)))
    largest = 0.0
    for i in range(n):
        fit.modes[i], fit.worst[i] = fitting_mode(
            mu[i], scaled.edges, z[3 * i : 3 * i + 3], w[i], sizes[0], sizes[1], fit.work
        )
        largest = max(largest, fit.worst[i])
    return largest


@kernel
def _keep_if_nearer(scaled, target, z, fit, best, least):
    """Copy z (3n,) into ``best`` if it is a solution nearer to ``target``; returns the least distance so far.

    z is first projected into the cones of its modes, which removes rounding errors.
    """
    _nearest_modes(scaled, z, fit)
    point = np.empty(3)
    for i in range(scaled.mu.shape[0]):
        # What rounding leaves outside the cones.
        force = z[3 * i : 3 * i + 3]
        assign(point, force)
        nearest_force(fit.modes[i], scaled.mu[i], scaled.edges, point, force, fit.work)
    if not _nearest_modes(scaled, z, fit) <= COMPLEMENTARY:
        return least
    here = distance(z, target)
    if here < least * (1.0 - NEARER):
        assign(best, z)
        return here
    return least


@kernel
def _least_distances(scaled, target, reach, work):
    """Fill ``reach`` with the distances of each contact's last impulse, in ``target`` (3n,), from its modes' cones.

    reach.order: the modes of each contact, the nearest first.
    """
    mu, edges, order = scaled.mu, scaled.edges, reach.order
    point = np.empty(3)
    for i in range(mu.shape[0]):
        last, of_mode = target[3 * i : 3 * i + 3], reach.of_mode[i]
        nearest_force(UNDECIDED, mu[i], edges, last, point, work)
        reach.undecided[i] = distance(last, point)
        for mode in range(count_modes(mu[i], edges)):
            nearest_force(mode, mu[i], edges, last, point, work)
            of_mode[mode] = distance(last, point)
            place = mode
            while place > 0 and of_mode[order[i, place - 1]] > of_mode[mode]:
                order[i, place] = order[i, place - 1]
                place -= 1
            order[i, place] = mode


@kernel
def _bound_choice(scaled, target, modes, sequence, all_decided, fit, z, best, least):
    """Solve for the z (3n,) nearest to ``target`` with the modes decided so far, undecided contacts in their cones.

    Its distance is a lower bound for all choices below; a z that is a solution goes into ``best``. Returns (contact to
    branch on, -1 if nothing nearer lies below; least distance so far).
    """
    Y, free, mu, edges = scaled.Y, scaled.free, scaled.mu, scaled.edges
    status = nearest_in_modes(Y, free, mu, edges, modes, sequence, target, z)
    here = distance(z, target)
    if status == INFEASIBLE or (status == SOLVED and here >= least * (1.0 - NEARER)):
        return -1, least
    chosen = -1
    if _nearest_modes(scaled, z, fit) > EXACT or status != SOLVED:
        for i in range(mu.shape[0]):
            if modes[i] == UNDECIDED and (chosen < 0 or fit.worst[i] > fit.worst[chosen]):
                chosen = i
    elif not all_decided:
        # All contacts are in modes: without what a relaxation may violate, if possible.
        relaxed = z.copy()
        status = nearest_in_modes(Y, free, mu, edges, fit.modes, sequence, target, z)
        if status != SOLVED or distance(z, target) > here + SAME * (here + fit.sizes[0]):
            assign(z, relaxed)
    if chosen < 0:
        least = _keep_if_nearer(scaled, target, z, fit, best, least)
    return chosen, least


@kernel
def _branch_and_bound(scaled, target, best):
    """Branch and bound over the contacts' modes for the solution nearest to ``target`` (3n,), N·s.

    best (3n,): initial guess in, nearest solution out. A branch decides one more contact's mode; it is cut
    if the lower bound of its distance is not below the best one.
    Returns (whether best is a solution, whether the search was complete, nodes).
    """
    mu, edges = scaled.mu, scaled.edges
    n, most = mu.shape[0], 2 + 2 * edges
    fit = Fit(np.empty(n, np.int64), np.empty(n), np.empty(2), np.empty((6, 3)))
    reach = Reach(np.empty((n, most)), np.empty((n, most), np.int64), np.empty(n))
    _least_distances(scaled, target, reach, fit.work)
    # The guess, and the nearest solution in its modes.
    modes, z = np.empty(n, np.int64), best.copy()
    sequence, branch, turn = np.arange(n), np.empty(n, np.int64), np.empty(n, np.int64)
    least = _keep_if_nearer(scaled, target, z, fit, best, np.inf)
    nodes = 1
    if least < np.inf:
        assign(modes, fit.modes)
        status = nearest_in_modes(scaled.Y, scaled.free, mu, edges, modes, sequence, target, z)
        if status == SOLVED:
            least = _keep_if_nearer(scaled, target, z, fit, best, least)
    fill(modes, UNDECIDED)
    depth = 0
    while nodes < MOST_NODES:
        # Judge the present choice; branch where it may hold something nearer.
        bound = 0.0
        place = depth
        for i in range(n):
            if modes[i] == UNDECIDED:
                bound += reach.undecided[i] ** 2
                sequence[place] = i
                place += 1
            else:
                bound += reach.of_mode[i, modes[i]] ** 2
        chosen = -1
        if np.sqrt(bound) < least * (1.0 - NEARER):
            nodes += 1
            for k in range(depth):
                sequence[k] = branch[k]
            chosen, least = _bound_choice(
                scaled, target, modes, sequence, depth == n, fit, z, best, least
            )
        if chosen >= 0:
            branch[depth], turn[depth] = chosen, -1
            depth += 1
        # The next choice: modes by reach, so that the first too far ends the contact's.
        while depth > 0:
            i = branch[depth - 1]
            turn[depth - 1] += 1
            if turn[depth - 1] < count_modes(mu[i], edges):
                modes[i] = reach.order[i, turn[depth - 1]]
                break
            modes[i] = UNDECIDED
            depth -= 1
        if depth == 0:
            return least < np.inf, True, nodes
    return least < np.inf, False, nodes
