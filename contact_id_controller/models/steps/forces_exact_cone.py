"""Stage II with exact friction cones: least torque among the forces with the same motion.

    min 1/2 |torque_offset + T^T z|^2 + 1/2 sum_i w_i |z_i|^2
    Y^T z = u,   |z_T| <= mu z_N where a contact sticks

The weights w_i of load shares are those of ``steps.force_distribution``.

Sliding contacts stay on their edge of the polygon, which lies on the cone, or between two of them. The
pyramid inscribed in the cones is part of them, so there is a solution wherever stage I has one;
``steps.force_distribution`` is the same with the pyramid.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.interior_point.barrier import SOLVED, central_path
from contact_id_controller.kernels.interior_point.cone_program import ConeProgram, Point
from contact_id_controller.kernels.interior_point.scaling import equilibrate, lift_prices
from contact_id_controller.kernels.pyramid import (
    APART,
    HOLDING,
    SLIDING,
    STICKING,
    edge,
    effective_friction,
)
from contact_id_controller.kernels.reduction import open_store
from contact_id_controller.models.steps.finish import finish, shift_offset
from contact_id_controller.models.steps.force_distribution import same_motion, share_weights
from contact_id_controller.models.steps.motion import classify, classify_stiction
from contact_id_controller.models.steps.reduced import Cones, Face, open_answer
from contact_id_controller.models.steps.slip import NO_SLIP

TIE_BREAK = (
    1e-8  # weight of the forces, in units of their cones, against the torques that they cause
)
LEAST_TIE = 1e-9  # the same at least, in the solver's units


@kernel
def _columns(mode, angle, span, mu, columns, contact):
    """Directions (m, 3) of the force variables, those of whole cones last; (count, of these boxes)."""
    count = 0
    for i in range(mode.shape[0]):
        if mode[i] == APART or (mode[i] == STICKING and 0.0 < mu[i] < np.inf):
            continue
        if mode[i] == HOLDING or (mode[i] == STICKING and np.isinf(mu[i])):
            for d in range(1 if mode[i] == HOLDING else 0, 3):
                for k in range(3):
                    columns[count, k] = 1.0 if k == d else 0.0
                contact[count] = i
                count += 1
            continue
        sides = 2 if mode[i] == SLIDING and span[i] > 0.0 and mu[i] > 0.0 else 1
        for j in range(sides):
            edge(mu[i] if mode[i] == SLIDING else 0.0, angle[i] + j * span[i], columns[count])
            contact[count] = i
            count += 1
    boxes = count
    for i in range(mode.shape[0]):
        if mode[i] == STICKING and 0.0 < mu[i] < np.inf:
            for d in range(3):
                for k in range(3):
                    columns[count, k] = 0.0
                columns[count, d] = (1.0 if d == 0 else mu[i]) / max(mu[i], 1.0)
                contact[count] = i
                count += 1
    return count, boxes


@kernel
def distribute_exact(T, torque_offset, Y, u, face, cones, z):
    """Replace z (3n,) by the admissible impulses of least torque with Y^T z = u.

    Arguments as for ``distribute``. Returns the number of steps; negative, with z unchanged, when
    the method failed.
    """
    mode, angle, span = face
    mu, load_share = cones.mu, cones.load_share
    n, na, nu = mode.shape[0], T.shape[1], Y.shape[1]
    columns, contact = np.empty((6 * n, 3)), np.empty(6 * n, np.int64)
    count, boxes = _columns(mode, angle, span, mu, columns, contact)
    if count == 0:
        fill(z, 0.0)
        return 0
    N, p = na + count, na + nu
    At = np.zeros((N, p))
    weight, linear, b, soft = np.zeros(N), np.zeros(N), np.empty(p), np.zeros(p)
    lower, upper = np.empty(na + boxes), np.empty(na + boxes)
    fill(lower, -np.inf)
    fill(upper, np.inf)
    for j in range(na):
        At[j, j], weight[j], b[j] = 1.0, 1.0, torque_offset[j]
    for k in range(nu):
        b[na + k] = u[k]
    size = 0.0
    for a in range(count):
        r, row, c = 3 * contact[a], At[na + a], columns[a]
        for j in range(na):
            value = c[0] * T[r, j] + c[1] * T[r + 1, j] + c[2] * T[r + 2, j]
            row[j] = -value
            size += value * value
        for k in range(nu):
            row[na + k] = c[0] * Y[r, k] + c[1] * Y[r + 1, k] + c[2] * Y[r + 2, k]
        if a < boxes and c[0] > 0.0:
            lower[na + a] = 0.0
    tie = TIE_BREAK * size / count if size > 0.0 else 1.0
    extra = np.empty(n)
    share_weights(T, mode, load_share, 1.0, extra)
    for a in range(count):
        # The tie break of a cone is f_N^2 + |f_T|^2 / min(mu, 1)^2: it does not grow with friction.
        c = columns[a]
        price = c[0] * c[0] if a >= boxes and (a - boxes) % 3 == 0 else 1.0
        length = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
        weight[na + a] = tie * price + extra[contact[a]] * length
    column, row_scale = np.empty(N), np.empty(p)
    program = ConeProgram(weight, linear, At, b, soft, lower, upper)
    beta, _ = equilibrate(program, column, row_scale)
    lift_prices(weight, na, na + boxes, LEAST_TIE)
    point = Point(np.empty(N), np.empty(p), np.empty(N), np.empty(na + boxes))
    x = point.x
    status, steps, _, _ = central_path(program, False, point, np.empty((4, max(N, p))))
    best = np.empty(3 * n)
    assign(best, z)
    fill(z, 0.0)
    for a in range(count):
        amount = beta * column[na + a] * x[na + a]
        for d in range(3):
            z[3 * contact[a] + d] += columns[a, d] * amount
    if status != SOLVED or not same_motion(Y, u, z):
        assign(z, best)
        return -steps - 1
    return steps


@kernel
def widen(
    store,
    actuated,
    unactuated,
    mu,
    edges,
    load_share,
    parts,
    room,
):
    """Distribute the impulses z (3n,) of a solution of coulomb/qp anew; torques follow. Returns steps.

    parts: see ``motion.classify``.
    """
    reduced = open_store(store, actuated, unactuated)
    return _widen(
        reduced,
        Cones(effective_friction(mu, np.inf if parts else NO_SLIP), edges, load_share),
        parts,
        open_answer(room, mu.shape[0], actuated.shape[0]),
    )


@kernel
def _widen(reduced, cones, parts, answer):
    """Distribute the impulses of a pyramid's solution again within exact cones, same motion; number of Newton steps.

    u = Y^T z (nu,), the impulses' effect on the free velocity, stays; the modes of the contacts at that motion say
    which forces a contact may have. parts: contacts may part (else those of a stiction model).
    """
    Y, z = reduced.Y, answer.z
    n, nu = cones.mu.shape[0], Y.shape[1]
    u, shifted = np.zeros(nu), np.empty(reduced.T.shape[1])
    for r in range(3 * n):
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    face = Face(np.empty(n, np.int64), np.empty(n), np.empty(n))
    moved, gap_speed, mu, edges = answer.moved, reduced.gap_speed, cones.mu, cones.edges
    if parts:
        classify(Y, moved, gap_speed, mu, edges, True, u, face)
    else:
        classify_stiction(Y, moved, gap_speed, mu, edges, np.inf, u, z, face)
    shift_offset(reduced, answer.delta, shifted)
    steps = distribute_exact(reduced.T, shifted, Y, u, face, cones, z)
    finish(reduced, answer)
    return abs(steps)
