"""Coulomb's law with complementarity on exact cones: sticking motions, and the forces chosen at a motion.

A motion in which no touching contact slips or parts is tried first: if forces produce it, it solves the law.
At any motion the forces that satisfy the law form a convex set: in its cone where a contact sticks, along
one ray against the slip where it slides, zero where it parts. Chosen are

    min 1/2 |torque_offset + T^T z|^2 + eps/2 |z|^2 + 1/2 sum_i w_i |z_i|^2     Y^T z = u,  z_i in K_i

with the weights w_i of ``steps.force_distribution``; without the first term for least force. ``widen`` does the same
for the motion of coulomb/qp (option ``cone``).
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.cone_newton import cone_newton, pyramids
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
)
from contact_id_controller.kernels.exact_cones.continuation import TOLERANCE, certify
from contact_id_controller.kernels.pyramid import (
    APART,
    HOLDING,
    SLIDING,
    STICKING,
    effective_friction,
)
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.models.steps.finish import finish, shift_offset
from contact_id_controller.models.steps.force_distribution import (
    NO_LEVER,
    same_motion,
    share_weights,
)
from contact_id_controller.models.steps.motion import classify, classify_stiction
from contact_id_controller.models.steps.reduced import Cones, Face, open_answer
from contact_id_controller.models.steps.slip import NO_SLIP

TIE_BREAK = 1e-3  # eps: weight of the force norm against the torque norm, relative to traces
FINE_TIE_BREAK = 1e-4  # of ``widen``: 2e-8 of the torques' squares; less takes more than STEPS
STICKING_STEPS = 30  # Newton steps after which forces that hold a motion are given up
STEPS = 50  # and forces at a motion that has some
LAWFUL = 3.0 * TOLERANCE  # accepted defect of chosen forces: those they replace have TOLERANCE
AT_REST = 1e-10  # velocity, relative to the largest, below which a contact may hold
NEARLY_AT_REST = 1e-2  # the same, of a guess that more steps may bring to rest
NOISE = 1e-7  # the same, of what gaps of unlike size leave over: feet that close them in one period slip by that
BASE_WEIGHT = 1e-13  # relative; determines the motion where the contacts leave it free
SOLVED_AGAIN = (0.0, 1.0, 1.0, 1.0, 0.0, 0.0)  # share of that weight that each solve corrects


@kernel
def sticking_motion(Y, free, mu, held, u):
    """Smallest motion u (nu,) in which the contacts ``held`` (n,) rest: Y u + free = 0, least squares.

    Those without friction rest in their normal direction only. Components of u outside the range of Y^T, which no
    forces could produce, come from rounding and are removed by a second solve.
    """
    nu = Y.shape[1]
    H, x = np.empty((nu, nu)), np.empty(nu)
    fill(u, 0.0)
    for a in range(nu):
        fill(H[a], 0.0)
    for i in range(mu.shape[0]):
        if held[i]:
            for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                row = Y[r]
                for a in range(nu):
                    for b in range(a + 1):
                        H[a, b] += row[a] * row[b]
    trace = 0.0
    for k in range(nu):
        trace += H[k, k]
    for k in range(nu):
        H[k, k] += BASE_WEIGHT * trace
    if not cholesky(H, nu, 0.0):
        return
    for share in SOLVED_AGAIN:
        for k in range(nu):
            x[k] = -share * BASE_WEIGHT * trace * u[k]
        for i in range(mu.shape[0]):
            if held[i]:
                for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                    row, rest = Y[r], free[r]
                    for k in range(nu):
                        rest += row[k] * u[k]
                    for k in range(nu):
                        x[k] -= row[k] * rest
        forward_substitute(H, nu, x)
        backward_substitute(H, nu, x)
        for k in range(nu):
            u[k] += x[k]


@kernel
def modes_at(Y, free, mu, u, z, speed, inertia, mode, along):
    """Write contact modes at the motion u (nu,), w = Y u + free: mode (n,), along (n, 2) unit tangents of the rays.

    Parting: w_N > 0; sticking: w = 0; else sliding, along the tangent of inertia z - w, as z itself may vanish.
    speed, m/s, inertia, 1/kg: scales of w and of w / z.
    """
    w = np.empty(3)
    for i in range(mu.shape[0]):
        for d in range(3):
            w[d] = free[3 * i + d]
            for k in range(u.shape[0]):
                w[d] += Y[3 * i + d, k] * u[k]
        slip = math.sqrt(w[1] * w[1] + w[2] * w[2])
        along[i, 0] = along[i, 1] = 0.0
        if w[0] > AT_REST * speed:
            mode[i] = APART
        elif slip <= AT_REST * speed or mu[i] == 0.0:
            mode[i] = STICKING
        else:
            mode[i] = SLIDING
            first = inertia * z[3 * i + 1] - w[1]
            second = inertia * z[3 * i + 2] - w[2]
            length = math.sqrt(first * first + second * second)
            along[i, 0], along[i, 1] = first / length, second / length


@kernel
def _motion_in_modes(Y, mu, mode, along, z, u):
    """u (nu,) = Y^T z for the impulses nearest to z that the modes allow, so that some allowed impulses produce u.

    Zero for a contact that parts, all of z if it sticks, normal impulse and mu times it along the ray if it slides.

    Args:
        Y (3n, nu): scaled Jacobian.  mu (n,).  mode (n,), along (n, 2): as from ``modes_at``.
        z (3n,): impulses, contact frames, normal first.
    """
    fill(u, 0.0)
    for i in range(mu.shape[0]):
        first, second = z[3 * i + 1], z[3 * i + 2]
        if mode[i] == APART:
            continue
        if mode[i] == SLIDING:
            first, second = mu[i] * z[3 * i] * along[i, 0], mu[i] * z[3 * i] * along[i, 1]
        for k in range(u.shape[0]):
            u[k] += Y[3 * i, k] * z[3 * i] + Y[3 * i + 1, k] * first + Y[3 * i + 2, k] * second


@kernel
def _rows(T, Y, mode, along, mu, scales, unit, first, W):
    """Write rows W (rows, na + nu) = unit (scale_t T, scale_y Y): effect of the forces on torques and motion.

    Three of each sticking contact, whose force lies in its cone, then one of each sliding one, along its ray.
    unit (n,): of each contact's forces; first (n,), out: its first row, -1 for none; scales: scale_t, scale_y.
    Returns (sticking contacts, rows).
    """
    n, na, nu = mode.shape[0], T.shape[1], Y.shape[1]
    cones, rows = 0, 0
    for i in range(n):
        first[i] = -1
        if mode[i] == STICKING and mu[i] > 0.0:
            first[i] = rows
            for d in range(3):
                row = W[rows + d]
                for k in range(na):
                    row[k] = scales[0] * unit[i] * T[3 * i + d, k]
                for k in range(nu):
                    row[na + k] = scales[1] * unit[i] * Y[3 * i + d, k]
            rows += 3
            cones += 1
    for i in range(n):
        if mode[i] == SLIDING or (mode[i] == STICKING and not mu[i] > 0.0):
            first[i] = rows
            a = unit[i] / math.sqrt(1.0 + mu[i] * mu[i])
            b, c = a * mu[i] * along[i, 0], a * mu[i] * along[i, 1]
            row, r = W[rows], 3 * i
            for k in range(na):
                row[k] = scales[0] * (a * T[r, k] + b * T[r + 1, k] + c * T[r + 2, k])
            for k in range(nu):
                row[na + k] = scales[1] * (a * Y[r, k] + b * Y[r + 1, k] + c * Y[r + 2, k])
            rows += 1
    return cones, rows


@kernel
def choose_forces(T, torque_offset, Y, u, mode, along, cones, torque_weight, eps, limit, z):
    """Find the admissible impulses z (3n,) of least torque with Y^T z = u. Returns steps, negative on failure.

    Args:
        T (3n, na), torque_offset (na,), Y (3n, nu), u (nu,): see ``Problem``.
        mode, along: see ``modes_at``.  cones: friction, finite, and load shares; see ``Cones``.
        torque_weight: 1 for least torque, 0 for least force.  eps: weight of the force norm beside the torque
            norm, relative to traces.  limit: Newton steps.
    """
    mu, load_share = cones.mu, cones.load_share
    n, na, nu = mode.shape[0], T.shape[1], Y.shape[1]
    size_t, size_y, loaded = 0.0, 0.0, 0
    for i in range(n):
        if mode[i] != APART:
            loaded += 1
            for r in range(3 * i, 3 * i + 3):
                for k in range(na):
                    size_t += T[r, k] * T[r, k]
                for k in range(nu):
                    size_y += Y[r, k] * Y[r, k]
    lever = size_t > NO_LEVER * NO_LEVER * 3 * loaded
    scale_t = torque_weight / math.sqrt(size_t / (3 * loaded)) if lever else 0.0
    scale_y = 1.0 / math.sqrt(size_y / (3 * loaded)) if size_y > 0.0 else 0.0
    tie = eps / (scale_t * scale_t) if scale_t > 0.0 else 1.0
    unit, first, W = np.empty(n), np.empty(n, np.int64), np.empty((3 * loaded, na + nu))
    share_weights(T, mode, load_share, torque_weight, unit)
    for i in range(n):
        unit[i] = 1.0 / math.sqrt(1.0 + unit[i] / tie)
    whole, rows = _rows(T, Y, mode, along, mu, (scale_t, scale_y), unit, first, W)
    target, weight, x = np.empty(na + nu), np.zeros(na + nu), np.zeros(na + nu)
    for k in range(na):
        target[k], weight[k] = -scale_t * torque_offset[k], eps
    for k in range(nu):
        target[na + k] = scale_y * u[k]
    friction, forces = np.empty(whole), np.empty(rows)
    kind, nothing = np.empty(whole, np.int64), np.empty(0)
    fill(kind, STICKING)
    for i in range(n):
        if mode[i] == STICKING and mu[i] > 0.0:
            friction[first[i] // 3] = mu[i]
    sets = pyramids(kind, nothing, nothing, friction, 0)
    steps = cone_newton(W[:rows], weight, target, nothing, sets, limit, x, forces)
    fill(z, 0.0)
    for i in range(n):
        at = first[i]
        if at >= 3 * whole:
            amount = unit[i] * forces[at] / math.sqrt(1.0 + mu[i] * mu[i])
            z[3 * i] = amount
            z[3 * i + 1] = mu[i] * along[i, 0] * amount
            z[3 * i + 2] = mu[i] * along[i, 1] * amount
        elif at >= 0:
            for d in range(3):
                z[3 * i + d] = unit[i] * forces[at + d]
    return steps


@kernel
def stick(reduced, moved, delta, held, cones, torque_weight, noise, z):
    """Find impulses z (3n,) with which the contacts ``held`` (n,) stick and no other is loaded, if the law admits that.

    A residual velocity of the held contacts is removed from ``moved`` (3n,) if it is below the share
    ``noise`` of the largest velocity. Returns (whether the law is satisfied, steps).
    """
    Y, gap_speed, mu = reduced.Y, reduced.gap_speed, cones.mu
    n, nu = mu.shape[0], Y.shape[1]
    free, u, shifted = np.empty(3 * n), np.empty(nu), np.empty(reduced.T.shape[1])
    speed = 0.0
    for r in range(3 * n):
        free[r] = moved[r] + (gap_speed[r // 3] if r % 3 == 0 else 0.0)
        speed = max(speed, abs(moved[r]), -gap_speed[r // 3])
    sticking_motion(Y, free, mu, held, u)
    mode, along = np.empty(n, np.int64), np.zeros((n, 2))
    for i in range(n):
        mode[i] = STICKING if held[i] else APART
        for d in range(3 if held[i] and mu[i] > 0.0 else 1):
            w = free[3 * i + d]
            for k in range(nu):
                w += Y[3 * i + d, k] * u[k]
            free[3 * i + d] = w
            if held[i] and abs(w) > max(noise, AT_REST) * speed:
                return False, 0
            if not held[i] and w < -AT_REST * speed:
                return False, 0
    if noise > 0.0:
        for i in range(n):
            if held[i]:
                for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                    moved[r] -= free[r]
    shift_offset(reduced, delta, shifted)
    steps = choose_forces(
        reduced.T, shifted, Y, u, mode, along, cones, torque_weight, TIE_BREAK, STICKING_STEPS, z
    )
    if steps < 0:
        return False, -steps
    return certify(Y, moved, gap_speed, mu, z) <= LAWFUL, steps


@kernel
def rests_otherwise(Y, moved, gap_speed, mu, z, held, resting):
    """Mark in resting (n,) the contacts that impulses z (3n,) load.

    Returns whether they nearly rest and differ from ``held``.
    """
    n, nu = mu.shape[0], Y.shape[1]
    u, speed, slip, others = np.zeros(nu), 0.0, 0.0, False
    for r in range(3 * n):
        speed = max(speed, abs(moved[r]), -gap_speed[r // 3])
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    for i in range(n):
        resting[i] = z[3 * i] > 0.0
        others = others or resting[i] != held[i]
        if resting[i]:
            for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                w = moved[r] + (gap_speed[i] if r == 3 * i else 0.0)
                for k in range(nu):
                    w += Y[r, k] * u[k]
                slip = max(slip, abs(w))
    return others and slip <= NEARLY_AT_REST * speed


@kernel
def redistribute(reduced, moved, delta, cones, torque_weight, z):
    """Replace impulses z (3n,) that satisfy the law by the chosen ones at their motion; returns the steps.

    On failure z is unchanged.
    """
    Y, gap_speed, mu = reduced.Y, reduced.gap_speed, cones.mu
    n, nu = mu.shape[0], Y.shape[1]
    free, u, shifted = np.empty(3 * n), np.zeros(nu), np.empty(reduced.T.shape[1])
    speed, inertia = 0.0, 0.0
    for r in range(3 * n):
        free[r] = moved[r] + (gap_speed[r // 3] if r % 3 == 0 else 0.0)
        speed = max(speed, abs(moved[r]), -gap_speed[r // 3])
        for k in range(nu):
            inertia += Y[r, k] * Y[r, k]
            u[k] += Y[r, k] * z[r]
    mode, along, chosen = np.empty(n, np.int64), np.empty((n, 2)), np.empty(3 * n)
    modes_at(Y, free, mu, u, z, speed, inertia / (3 * n), mode, along)
    _motion_in_modes(Y, mu, mode, along, z, u)
    shift_offset(reduced, delta, shifted)
    steps = choose_forces(
        reduced.T, shifted, Y, u, mode, along, cones, torque_weight, TIE_BREAK, STEPS, chosen
    )
    if steps >= 0 and certify(Y, moved, gap_speed, mu, chosen) <= LAWFUL:
        for r in range(3 * n):
            z[r] = chosen[r]
    return abs(steps)


@kernel
def widen(store, actuated, unactuated, mu, edges, load_share, parts, room):
    """Redistribute the impulses of a solution of coulomb/qp in ``room``, with exact cones at sticking contacts; steps.

    Sliding contacts keep the direction of their friction. If unloaded contacts have tangential constraints, or the
    method fails, the pyramids' impulses are kept. mu, load_share (n,).  parts: see ``motion.classify``.
    """
    reduced = open_store(store, actuated, unactuated)
    n, nu = mu.shape[0], reduced.Y.shape[1]
    answer = open_answer(room, n, actuated.shape[0])
    Y, z, moved, gap_speed = reduced.Y, answer.z, answer.moved, reduced.gap_speed
    cones = Cones(effective_friction(mu, NO_SLIP), edges, load_share)
    u, shifted, chosen = np.zeros(nu), np.empty(reduced.T.shape[1]), np.empty(3 * n)
    for r in range(3 * n):
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    face = Face(np.empty(n, np.int64), np.empty(n), np.empty(n))
    if parts:
        classify(Y, moved, gap_speed, effective_friction(mu, np.inf), edges, True, u, face)
    else:
        classify_stiction(Y, moved, gap_speed, cones.mu, edges, np.inf, u, z, face)
    along = np.zeros((n, 2))
    for i in range(n):
        if face.mode[i] == HOLDING:
            return 0
        if face.mode[i] == SLIDING and z[3 * i] > 0.0:
            for d in range(2):
                along[i, d] = z[3 * i + 1 + d] / (cones.mu[i] * z[3 * i])
        elif face.mode[i] == SLIDING:
            middle, size = face.angle[i] + 0.5 * face.span[i], math.cos(0.5 * face.span[i])
            along[i, 0], along[i, 1] = size * math.cos(middle), size * math.sin(middle)
    shift_offset(reduced, answer.delta, shifted)
    steps = choose_forces(
        reduced.T, shifted, Y, u, face.mode, along, cones, 1.0, FINE_TIE_BREAK, STEPS, chosen
    )
    if steps >= 0 and same_motion(Y, u, chosen):
        z[:] = chosen
    finish(reduced, answer)
    return abs(steps)
