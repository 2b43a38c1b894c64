"""Viscous friction with normal complementarity (viscous and no-slip paper, section IV).

    f_T = -mu_v v_T,    0 <= f_N  perp  N v+ + gap >= 0

Explicit: v_T is the present contact velocity, as in the paper. Implicit, used here: v_T is the one at
the period's end, which is stable for any period and coefficient. Eliminating the tangential
impulses turns 1/2 |u|^2 into 1/2 u^T (I + dt Y_T^T mu_v Y_T) u and leaves a positive semidefinite
LCP on the normals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
)
from contact_id_controller.kernels.nearest_point import INFEASIBLE, SOLVED
from contact_id_controller.kernels.pyramid import APART, STICKING
from contact_id_controller.kernels.reduction import TOUCHING_SPEED, open_store
from contact_id_controller.models.contact_model import Chosen
from contact_id_controller.models.options import DISTRIBUTIONS
from contact_id_controller.models.steps.consistency import project_plan
from contact_id_controller.models.steps.finish import (
    finished,
    map_identities,
    outcome,
    shift_offset,
)
from contact_id_controller.models.steps.force_distribution import distribute
from contact_id_controller.models.steps.motion import STICKING_SPEED, STILL_M_S, stage_one
from contact_id_controller.models.steps.reduced import (
    Cones,
    Face,
    answer_room,
    begin,
    matrices,
)
from contact_id_controller.models.steps.relaxation import ease
from contact_id_controller.problem import Problem
from contact_id_controller.solution import Solution

REFINEMENTS = 2
ORDINARY = 1e-9  # share of it that is not worth reporting
LEFT_OVER = 1e-4  # share of the largest contact velocity that may be taken for rounding


def solve_viscous_lcp(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Contact forces and torques under viscous friction, coefficients ``contacts.viscosity`` (N s/m).

    Args:
        problem: of n contacts.  Friction acts only at contacts whose gap is closed.
        options: distribution: of the normal forces, see ``DISTRIBUTIONS``; the tangential ones follow from the
            motion, so load shares act on the normal forces only.
            consistency: ``project`` replaces a plan that contradicts the contacts in the normal directions by
            the closest consistent one; ``report`` only reports it.
        warm_start: the last period's solution; its contacts with a normal force are the first guess of the
            active set.

    Returns a ``Solution``: torques, N·m, contact impulses, N·s, and a status.
    """
    room = answer_room(problem)
    loaded = np.zeros(len(problem), dtype=bool)
    if warm_start is not None:
        map_identities(problem, warm_start, warm_start.memory, loaded)
    code, steps, contradiction = _solve(
        *matrices(problem),
        problem.keep,
        problem.contacts.viscosity,
        problem.contacts.load_share,
        DISTRIBUTIONS.index(options.distribution),
        options.consistency == "project",
        loaded,
        room,
    )
    return outcome(problem, code, steps, contradiction, room, loaded)


class _Friction(NamedTuple):
    """Tangential impulses z_r = -rub_r (Y_r u + slip_r), by the velocity at the period's end.

    rub (3n,): dt mu_v, kg, zero in normal rows and at contacts with a gap; slip (3n,) m/s: velocity at u = 0;
    H (nu, nu): Cholesky factor of I + Y^T rub Y, ill-conditioned if friction is strong.
    """

    rub: np.ndarray
    slip: np.ndarray
    H: np.ndarray


@kernel
def _rubbing(reduced, viscosity):
    """``_Friction`` of the touching contacts, slip still zero; viscosity (n,) N s/m."""
    Y, nu = reduced.Y, reduced.Y.shape[1]
    rub, H = np.zeros(Y.shape[0]), np.zeros((nu, nu))
    for k in range(nu):
        H[k, k] = 1.0
    for i in range(viscosity.shape[0]):
        if reduced.gap_speed[i] > TOUCHING_SPEED:
            continue
        for r in range(3 * i + 1, 3 * i + 3):
            rub[r] = reduced.dt * viscosity[i]
            for a in range(nu):
                for b in range(a + 1):
                    H[a, b] += rub[r] * Y[r, a] * Y[r, b]
    cholesky(H, nu, 0.0)
    return _Friction(rub, np.zeros(Y.shape[0]), H)


@kernel
def _tangential_impulse(Y, friction, u, r):
    """The tangential impulse of row r, N·s: z_r = -rub_r (slip_r + (Y u)_r); Y (3n, nu), u (nu,)."""
    total = friction.slip[r]
    for k in range(u.shape[0]):
        total += Y[r, k] * u[k]
    return -friction.rub[r] * total


@kernel
def _drag(reduced, friction, keep, moved, A, free, target):
    """Set friction.slip for the contact velocities ``moved`` (3n,) m/s, and its effect on motion and normals.

    free (nu,): out, w = H^T u by the friction alone; target (3n,): out, m/s, in normal rows the normal velocity at
    that w.  keep: share of the present velocity that stays.  A (3n, nu): normal rows of Y H^-T.
    """
    Y, speed, nu = reduced.Y, reduced.speed, free.shape[0]
    fill(free, 0.0)
    for r in range(moved.shape[0]):
        if friction.rub[r] > 0.0:
            friction.slip[r] = moved[r] + keep * speed[r]
            for k in range(nu):
                free[k] -= friction.rub[r] * friction.slip[r] * Y[r, k]
    forward_substitute(friction.H, nu, free)
    for r in range(0, moved.shape[0], 3):
        target[r] = moved[r]
        for k in range(nu):
            target[r] += A[r, k] * free[k]


@kernel
def _distribute_normals(reduced, friction, load_share, distribution, u, answer, normals):
    """Write the tangential impulses at the motion u (nu,) into ``answer.z``, and distribute normals (3n,) by stage II.

    Returns steps.
    """
    Y, T, moved, z = reduced.Y, reduced.T, answer.moved, answer.z
    n, nu, na = load_share.shape[0], Y.shape[1], T.shape[1]
    shifted, rest = np.empty(na), u.copy()
    shift_offset(reduced, answer.delta, shifted)
    scale = 0.0
    for i in range(n):
        scale = max(scale, abs(moved[3 * i]))
        for r in range(3 * i + 1, 3 * i + 3):
            z[r] = _tangential_impulse(Y, friction, u, r)
            for k in range(nu):
                rest[k] -= Y[r, k] * z[r]
            for j in range(na):
                shifted[j] += T[r, j] * z[r]
    if distribution > 1:
        return 0
    mode, smooth = np.empty(n, np.int64), np.zeros(n)
    for i in range(n):
        parting = moved[3 * i] + reduced.gap_speed[i]
        for k in range(nu):
            parting += Y[3 * i, k] * u[k]
        mode[i] = STICKING if parting <= STICKING_SPEED * scale + STILL_M_S else APART
    face, frictionless = Face(mode, smooth, smooth), Cones(smooth, np.int64(4), load_share)
    weight = 1.0 if distribution == 0 else 0.0
    return abs(distribute(T, shifted, Y, rest, face, frictionless, weight, normals))


@kernel
def _solve(
    store, actuated, unactuated, keep, viscosity, load_share, distribution, project, loaded, room
):
    """Solve for viscous friction and the torques; result as ``coulomb_qp._two_stages``.

    viscosity, load_share (n,); keep: share of the present velocity that stays; distribution: index into
    ``DISTRIBUTIONS``; loaded (n,): bool, first guess of the loaded contacts in, those of the solution out.
    """
    reduced = open_store(store, actuated, unactuated)
    answer = begin(reduced, room)
    Y, gap_speed, moved, z = reduced.Y, reduced.gap_speed, answer.moved, answer.z
    n, nu = gap_speed.shape[0], Y.shape[1]
    status, steps, contradiction = SOLVED, 0, 0.0
    if n:
        friction = _rubbing(reduced, viscosity)
        # The normals' problem in w = H^T u, its tangential rows empty.
        A = np.zeros((3 * n, nu))
        for i in range(n):
            assign(A[3 * i], Y[3 * i])
            forward_substitute(friction.H, nu, A[3 * i])
        smooth, normals, target = np.zeros(n), np.zeros(3 * n), np.zeros(3 * n)
        u, free = np.zeros(nu), np.empty(nu)
        eased = False
        for attempt in range(3):
            eased = attempt == 2
            if attempt < 2 and project:
                contradiction = project_plan(reduced, smooth, attempt == 0, answer.delta, moved)
            elif attempt == 1:
                continue
            _drag(reduced, friction, keep, moved, A, free, target)
            if not eased:
                status, count = stage_one(
                    A, target, gap_speed, smooth, np.int64(4), loaded, True, u, normals
                )
            else:
                before = target.copy()
                status, count, change = ease(
                    A,
                    reduced.c,
                    reduced.speed,
                    target,
                    gap_speed,
                    smooth,
                    np.int64(4),
                    u,
                    normals,
                )
                contradiction = max(contradiction, change)
                for i in range(n):
                    moved[3 * i] += target[3 * i] - before[3 * i]
                if not project:
                    status = INFEASIBLE
            steps += count
            if status == SOLVED:
                break
        for k in range(nu):
            u[k] += free[k]
        backward_substitute(friction.H, nu, u)
        for i in range(n):
            loaded[i] = normals[3 * i] > 0.0
        steps += _distribute_normals(
            reduced,
            friction,
            load_share,
            1 if eased and distribution > 1 else distribution,
            u,
            answer,
            normals,
        )
        for i in range(n):
            z[3 * i] = normals[3 * i]
        _refine(Y, friction, u, z)
        contradiction = max(contradiction, _settle(Y, gap_speed, z, moved))
    return finished(reduced, answer, status), steps, contradiction


@kernel
def _refine(Y, friction, u, z):
    """Refine the motion u (nu,), and the tangential impulses in z (3n,), in place by the residual u - Y^T z."""
    nu = u.shape[0]
    rest = np.empty(nu)
    for repetition in range(REFINEMENTS):
        for k in range(nu):
            rest[k] = -u[k]
        for r in range(z.shape[0]):
            for k in range(nu):
                rest[k] += Y[r, k] * z[r]
        forward_substitute(friction.H, nu, rest)
        backward_substitute(friction.H, nu, rest)
        for k in range(nu):
            u[k] += rest[k]
        for r in range(z.shape[0]):
            if r % 3:
                z[r] = _tangential_impulse(Y, friction, u, r)


@kernel
def _settle(Y, gap_speed, z, moved):
    """Remove from the normal velocities ``moved`` (3n,) rounding errors that would be closing or loaded parting.

    Strong friction turns rounding of the motion into forces, and these into larger rounding. Returns
    the largest correction above ordinary rounding, m/s, else 0.
    """
    u, scale, largest = np.zeros(Y.shape[1]), 0.0, 0.0
    for r in range(z.shape[0]):
        scale = max(scale, abs(moved[r]))
        for k in range(u.shape[0]):
            u[k] += Y[r, k] * z[r]
    for i in range(gap_speed.shape[0]):
        for k in range(u.shape[0]):
            scale = max(scale, abs(Y[3 * i, k] * u[k]))
    for i in range(gap_speed.shape[0]):
        parting = moved[3 * i] + gap_speed[i]
        for k in range(u.shape[0]):
            parting += Y[3 * i, k] * u[k]
        if (parting < 0.0 or z[3 * i] > 0.0) and abs(parting) <= LEFT_OVER * scale:
            moved[3 * i] -= parting
            largest = max(largest, abs(parting))
    return largest if largest > ORDINARY * scale else 0.0
