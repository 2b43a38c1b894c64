"""Relaxation of contacts that require velocities which no motion can give, and the forces of soft contacts.

Redundant contacts of a turning body require velocities that no rigid body has (their drifts
dt Jdot v differ from point to point), and contacts that press from all sides cannot all be undone.
The least relaxation, in the sense of least squares over the cones, is the limit of

    min 1/2 |u|^2 + 1/(2 eps) |P_K(-(Y u + c + gap))|^2        eased c' = c + eps z,  u = Y^T z

as eps goes to zero, and (u, z) solves the complementarity-free model of c' exactly: the eased
contact velocity lies in the dual cone and is orthogonal to z in the cone.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.cone_newton import MAX_STEPS, cone_newton, pyramids, refine
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.pyramid import (
    STICKING,
    edge_directions,
    effective_friction,
    project_contact,
)
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.models.steps.finish import TOLERATED, UNFELT_M_S, finish
from contact_id_controller.models.steps.reduced import (
    answer_room,
    begin,
    matrices,
    read_answer,
)
from contact_id_controller.solution import RELAXED, UNHOLDABLE, Solution
from contact_id_controller.solution import SOLVED as SOLVED_NAME

SOFTNESS = 1e-7  # eps relative to the mean diagonal of G
EXACT = 1e-11  # difference of u and Y^T z, relative to u, that easing may leave
BALANCED = 1e-9  # difference of u and Y^T z, relative to u, that ordinary problems may keep
ROUNDING = 1e-15  # share of the terms of a sum below which it is zero
GRIP_SOFTNESS = 1e-2  # the same for tangents of unbounded friction


@kernel
def mean_diagonal(Y):
    """Mean diagonal of Y Y^T, 1/kg, the contacts' mean mobility; 1 when that is zero. Y (3n, nu)."""
    total = 0.0
    for r in range(Y.shape[0]):
        for k in range(Y.shape[1]):
            total += Y[r, k] * Y[r, k]
    return total / Y.shape[0] if total > 0.0 else 1.0


@kernel
def elastic(Y, c, gap_speed, mu, edges, eps, balance, x, z):
    """Solve the regularised program of the module; x (nu,) are its multipliers u / eps, z (3n,) its impulses.

        min 1/2 eps |x|^2 + 1/2 |P_K(-(Y x + (c + gap_speed) / eps))|^2,   z = P_K(the same)

    Args:
        Y, c, gap_speed, mu: (3n, nu), (3n,) m/s, (n,) m/s, (n,).
        edges: of the friction pyramids, 0: exact cones.
        eps: compliance of the contacts, 1/kg.
        balance: difference of u and Y^T z, relative to u, above which the solution is refined.
        x: zero, or of a similar program; out.
        z: out, inside the cones in any case.

    Returns Newton steps, negative when the method failed.
    """
    n, nu = gap_speed.shape[0], Y.shape[1]
    shift, weight = np.empty(3 * n), np.empty(nu)
    fill(weight, eps)
    for r in range(3 * n):
        shift[r] = (c[r] + (gap_speed[r // 3] if r % 3 == 0 else 0.0)) / eps
    nothing = np.zeros(n)
    mode = np.empty(n, np.int64)
    fill(mode, STICKING)
    sets = pyramids(mode, nothing, nothing, mu, edges)
    steps = cone_newton(Y, weight, np.zeros(nu), shift, sets, MAX_STEPS, x, z)
    if not _balanced(Y, eps, balance, x, z):
        refine(Y, eps, shift, sets, x, z)
    return steps


@kernel
def _balanced(Y, eps, share, x, z):
    """Whether eps x = Y^T z up to ``share`` of its largest entry; x (nu,), z (3n,), Y (3n, nu)."""
    largest, worst = 0.0, 0.0
    for k in range(x.shape[0]):
        total = eps * x[k]
        largest = max(largest, abs(total))
        for r in range(Y.shape[0]):
            total -= Y[r, k] * z[r]
        if not abs(total) <= worst:  # keeps NaN
            worst = abs(total)
    return worst <= share * largest


@kernel
def ease(Y, c, speed, moved, gap_speed, mu, edges, u, z):
    """Change the contact velocities ``moved`` (3n,), m/s, in place as little as makes them attainable.

    u (nu,), z (3n,): out, the solution at these. c, speed (3n,): the plan's and the present contact velocities, m/s,
    for scale. Returns (status, steps, largest change m/s): SOLVED if the change is a tolerated share of that scale, or
    the recovery of a penetration; ``finished`` reports whether it is much of what was required.
    """
    unbounded = False
    for i in range(mu.shape[0]):
        unbounded = unbounded or np.isinf(mu[i])
    steps = 0
    if unbounded:
        before = moved.copy()
        status, steps, change = _soften(
            GRIP_SOFTNESS, Y, c, speed, moved, gap_speed, mu, edges, u, z
        )
        if status == SOLVED:
            return status, steps, change
        assign(moved, before)
    status, more, change = _soften(SOFTNESS, Y, c, speed, moved, gap_speed, mu, edges, u, z)
    return status, steps + more, change


@kernel
def _soften(grip, Y, c, speed, moved, gap_speed, mu, edges, u, z):
    """Do as ``ease`` with compliance ``grip`` for tangents of unbounded friction; arguments and result as there.

    Where such tangents nearly depend on other contacts, compliance SOFTNESS would leave enormous forces along them.
    """
    n, nu = gap_speed.shape[0], u.shape[0]
    # Unbounded cones stay the same when their tangents are measured in another unit.
    unit = np.sqrt(SOFTNESS / grip)
    scaled, target = np.empty((3 * n, nu)), np.empty(3 * n)
    scale, recovery = 0.0, 0.0
    for r in range(3 * n):
        factor = unit if r % 3 and np.isinf(mu[r // 3]) else 1.0
        target[r] = factor * moved[r]
        for k in range(nu):
            scaled[r, k] = factor * Y[r, k]
        scale = max(scale, abs(moved[r]), abs(c[r]), abs(speed[r]))
        recovery = max(recovery, -gap_speed[r // 3])
    steps = _give_way(scaled, SOFTNESS * mean_diagonal(Y), target, gap_speed, mu, edges, u, z)
    largest = 0.0
    for r in range(3 * n):
        factor = unit if r % 3 and np.isinf(mu[r // 3]) else 1.0
        largest = max(largest, abs(target[r] / factor - moved[r]))
        moved[r] = target[r] / factor
        z[r] *= factor
    tolerable = steps >= 0 and largest <= TOLERATED * scale + recovery + UNFELT_M_S
    return SOLVED if tolerable else INFEASIBLE, abs(steps), largest


@kernel
def tame(reduced, moved, mu, edges, u, z):
    """Relax the contact velocities of stage I, whose forces are enormous, if a small change suffices (GRIP_SOFTNESS).

    moved (3n,) m/s, z (3n,), u (nu,): in and out, unchanged if that would be too large. Returns (steps, change m/s).
    """
    eased, motion, forces = moved.copy(), np.empty(u.shape[0]), np.empty(z.shape[0])
    status, steps, change = _soften(
        GRIP_SOFTNESS,
        reduced.Y,
        reduced.c,
        reduced.speed,
        eased,
        reduced.gap_speed,
        mu,
        edges,
        motion,
        forces,
    )
    if status != SOLVED:
        return steps, 0.0
    assign(moved, eased)
    assign(u, motion)
    assign(z, forces)
    return steps, change


@kernel
def _give_way(Y, eps, moved, gap_speed, mu, edges, u, z):
    """Relax the contacts by compliance eps: moved + eps z, u = Y^T z. Returns Newton steps, see ``elastic``.

    moved (3n,): m/s, in and out; u (nu,), z (3n,): out.
    """
    x = np.zeros(u.shape[0])
    steps = elastic(Y, moved, gap_speed, mu, edges, eps, EXACT, x, z)
    fill(u, 0.0)
    for r in range(moved.shape[0]):
        for k in range(u.shape[0]):
            u[k] += Y[r, k] * z[r]
    force, basis, change = np.empty(3), np.empty((3, 3)), np.empty(3)
    nearest, first, second = np.empty(3), np.empty(3), np.empty(3)
    directions = np.empty((edges, 2))
    edge_directions(edges, directions)
    for i in range(gap_speed.shape[0]):
        for d in range(3):
            r = 3 * i + d
            velocity = moved[r] + (gap_speed[i] if d == 0 else 0.0)
            for k in range(u.shape[0]):
                velocity += Y[r, k] * u[k]
            force[d] = -velocity / eps
            change[d] = eps * z[r]
        # Along the face of the cone on which z lies the velocity is zero: what rounding left of it goes too.
        piece = project_contact(
            STICKING, 0.0, 0.0, mu[i], directions, force, nearest, basis, first, second
        )
        for a in range(piece & 3):
            rest = 0.0
            for d in range(3):
                rest += basis[a, d] * (change[d] - eps * force[d])
            for d in range(3):
                change[d] -= rest * basis[a, d]
        for d in range(3):
            r = 3 * i + d
            before, gap = moved[r], (gap_speed[i] if d == 0 else 0.0)
            moved[r] += change[d]
            if abs(moved[r] + gap) <= ROUNDING * (abs(before) + abs(gap)):
                moved[r] = -gap  # touches, or rests, exactly
    return steps


FALLBACK_REGULARISATION = 1.0


WITH_FORCES = frozenset((SOLVED_NAME, RELAXED, UNHOLDABLE))
"""Statuses whose forces are the model's own."""


def with_fallback(solution: Solution, mu: np.ndarray, edges: int) -> Solution:
    """Give a solution without forces those of soft contacts: finite, inside their cones.

    The regularisation is of the size of G itself, so that contradictory velocities are resisted with
    forces of ordinary size. Status, plan and ``attainable`` are unchanged.
    """
    if solution.status in WITH_FORCES:
        return solution
    problem = solution.problem
    room = answer_room(problem)
    _soft_forces(*matrices(problem), mu, edges, solution.joint_velocity_change, room)
    answer = read_answer(problem, room)
    return Solution(
        problem,
        solution.status,
        answer.torques,
        answer.z,
        answer.velocity,
        solution.iterations,
        answer.delta,
        solution.contradiction_m_s,
        None,
        solution.attainable,
    )


@kernel
def _soft_forces(store, actuated, unactuated, mu, edges, change, room):
    """Solve for contacts as soft as FALLBACK_REGULARISATION times their own mobility; torques and velocity follow.

        z = P_K(-(Y u + moved + gap_speed) / eps),   u = Y^T z,   eps = FALLBACK_REGULARISATION mean_diagonal(Y)

    z is inside the cones and at most |moved + gap_speed| / eps, however much the contacts contradict each other.

    Args:
        store, actuated, unactuated: of the problem, see ``matrices``.
        mu, edges: (n,) friction; edges of the pyramids, 0: exact cones.
        change: (na,) rad/s, by which the plan's joint velocities change.
        room: out, see ``open_answer``.
    """
    reduced = open_store(store, actuated, unactuated)
    answer = begin(reduced, room)
    Y, T, gap_speed = reduced.Y, reduced.T, reduced.gap_speed
    moved, delta = answer.moved, answer.delta
    mu = effective_friction(mu, np.inf)
    assign(delta, change)
    for r in range(moved.shape[0]):
        for k in range(delta.shape[0]):
            moved[r] -= reduced.dt * T[r, k] * delta[k]
    if gap_speed.shape[0]:
        eps, x = FALLBACK_REGULARISATION * mean_diagonal(Y), np.zeros(Y.shape[1])
        elastic(Y, moved, gap_speed, mu, edges, eps, BALANCED, x, answer.z)
    finish(reduced, answer)
