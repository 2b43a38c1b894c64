"""Steps that contact models share: stage I and the classification of contacts at its motion."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import (
    add_rows,
    add_squares,
    backward_substitute,
    cholesky,
    forward_substitute,
    times_rows,
)
from contact_id_controller.kernels.nearest_point import (
    FEASIBILITY,
    SOLVED,
    STEP_LIMIT,
    nearest_point,
)
from contact_id_controller.kernels.pyramid import (
    APART,
    HOLDING,
    SLIDING,
    STICKING,
    UNBOUNDED_FRICTION,
)
from contact_id_controller.kernels.views import keep, view

VERIFIED = 1e-8  # accepted defect of stage I, relative to the motion
ILL_POSED = 1e7  # forces so much larger than those that stop single contacts are rounding's
DEPENDENT = 30.0  # and from here on, tangential ones, those of nearly dependent rows
ENORMOUS = 3  # status of stage I beside those of ``nearest_point``
STICKING_SPEED = 1e-7  # a contact sticks below this share of the problem's largest velocity
WELL_POSED = 1e-6  # least pivot, relative, with which all contacts at rest determine the motion
STILL_M_S = 1e-15  # keeps that test meaningful when nothing moves

STICTION_M_S = 1e-4
"""Speed up to which the force of a contact is treated as at rest: a sole in stance turns by .1 mm/s while the robot
is pushed, and the direction of such a slip is not determined. Simulators allow ten times more."""

MOVES, STICKS, CREEPS = range(3)
"""Result of ``classify_stiction`` for the loaded contacts: one slides or parts, all stick, or some move
imperceptibly."""


@bare_kernel
def _is_nearest(A, b, equalities, u, multipliers, pull):
    """SOLVED if u is feasible and A^T multipliers, up to rounding; otherwise STEP_LIMIT.  pull (nu,): workspace.

    STEP_LIMIT also for multipliers that come from rounding: rows that differ or contradict each other only by
    rounding lead to forces and motions of any size. ENORMOUS: see ``stage_one``.
    """
    rows, dim = A.shape
    scale, length, longest, verdict = 0.0, 0.0, 0.0, SOLVED
    for i in range(rows):
        scale = max(scale, abs(b[i]) if i < equalities else -b[i])
    for k in range(dim):
        length = max(length, abs(u[k]))
    fill(pull, 0.0)
    for i in range(rows):
        row, total, size, square = A[i], b[i], scale, 0.0
        for k in range(dim):
            term = row[k] * u[k]
            total += term
            size = max(size, abs(term))
            square += row[k] * row[k]
        if multipliers[i] != 0.0:
            for k in range(dim):
                pull[k] += row[k] * multipliers[i]
        longest = max(longest, square)
        stopping = abs(multipliers[i]) * square
        if not stopping <= ILL_POSED * scale:
            return STEP_LIMIT
        if i < equalities and stopping > DEPENDENT * scale:
            verdict = ENORMOUS
        if not total >= -VERIFIED * size or (i < equalities and not total <= VERIFIED * size):
            return STEP_LIMIT
    if longest > 0.0:
        length = max(length, scale / np.sqrt(longest))
    for k in range(dim):
        if not abs(pull[k] - u[k]) <= VERIFIED * length:
            return STEP_LIMIT
    return verdict


@bare_kernel
def _conditions(Y, c, gap_speed, mu, cosine, sine, equalities, A, b):
    """Write the contacts' conditions on the motion u: rows A u + b, the first ``equalities`` = 0, the others >= 0.

    Equations are tangents of unbounded friction; then comes a row for each normal without pyramid, or for each
    edge of the dual pyramid, in the directions cosine, sine (edges,).
    """
    upper, row = 0, equalities
    for i in range(mu.shape[0]):
        at = 3 * i
        normal = c[at] + gap_speed[i]
        if np.isinf(mu[i]) or mu[i] == 0.0:
            assign(A[row], Y[at])
            b[row] = normal
            row += 1
            if mu[i] > 0.0:
                for d in range(1, 3):
                    assign(A[upper], Y[at + d])
                    b[upper] = c[at + d]
                    upper += 1
        else:
            # Of the size of Y's rows whatever mu, so that tolerances mean the same in all.
            share = 1.0 / (1.0 + mu[i])
            for j in range(cosine.shape[0]):
                first, second = share * mu[i] * cosine[j], share * mu[i] * sine[j]
                for k in range(Y.shape[1]):
                    A[row, k] = share * Y[at, k] + first * Y[at + 1, k] + second * Y[at + 2, k]
                b[row] = share * normal + first * c[at + 1] + second * c[at + 2]
                row += 1


@bare_kernel
def _vertex_impulses(multipliers, mu, cosine, sine, equalities, z):
    """Write into z (3n,), zero before, the impulses of the multipliers of ``_conditions``."""
    upper, row = 0, equalities
    for i in range(mu.shape[0]):
        at = 3 * i
        if np.isinf(mu[i]) or mu[i] == 0.0:
            z[at] = multipliers[row]
            row += 1
            if mu[i] > 0.0:
                z[at + 1], z[at + 2] = multipliers[upper], multipliers[upper + 1]
                upper += 2
        else:
            for j in range(cosine.shape[0]):
                amount = multipliers[row] / (1.0 + mu[i])
                z[at] += amount
                z[at + 1] += mu[i] * cosine[j] * amount
                z[at + 2] += mu[i] * sine[j] * amount
                row += 1


@bare_kernel
def _rests(Y, c, gap_speed, mu, edges, G, u, x, z):
    """Whether impulses inside the cones bring all contacts to rest: then their motion u (nu,) solves stage I.

    u = -(Y^T Y)^-1 Y^T c with Y u + c = 0, and z = Y (Y^T Y)^-1 u, (3n,), the least that cause it. While a robot stands
    this saves the search for the nearest point; False says nothing. G (nu, nu), x (nu,): workspace.
    """
    nu, largest = u.shape[0], 0.0
    for i in range(mu.shape[0]):
        if gap_speed[i] != 0.0 or mu[i] == 0.0:
            return False
        largest = max(largest, abs(c[3 * i]), abs(c[3 * i + 1]), abs(c[3 * i + 2]))
    for a in range(nu):
        fill(G[a], 0.0)
    for r in range(0, c.shape[0], 3):
        add_squares(Y[r], Y[r + 1], Y[r + 2], 1.0, G)
    if not cholesky(G, nu, WELL_POSED):
        return False
    fill(u, 0.0)
    add_rows(Y, c, -1.0, u)
    forward_substitute(G, nu, u)
    backward_substitute(G, nu, u)
    times_rows(Y, u, z)
    for r in range(c.shape[0]):
        if not abs(z[r] + c[r]) <= FEASIBILITY * largest:
            return False
    assign(x, u)
    forward_substitute(G, nu, x)
    backward_substitute(G, nu, x)
    times_rows(Y, x, z)
    inner = np.cos(np.pi / edges)
    for i in range(mu.shape[0]):
        normal, first, second = z[3 * i], z[3 * i + 1], z[3 * i + 2]
        most = min(mu[i], UNBOUNDED_FRICTION) * inner * normal
        if not (normal >= 0.0 and first * first + second * second <= most * most):
            return False
    return True


@kernel
def stage_one(Y, c, gap_speed, mu, edges, loaded, vertex, u, z):
    """Solve stage I; u (nu,) and impulses z (3n,) out, a vertex if that is required. Returns (status, steps).

    ENORMOUS: the exact solution, but tangents of unbounded friction that nearly depend on the other
    rows have forces out of all proportion (first paper, algorithm 1, drops such rows).

    loaded (n,) or (0,): bool, contacts loaded in a similar problem, which are tried first.
    """
    n, nu = gap_speed.shape[0], Y.shape[1]
    equalities, rows = 0, 0
    for i in range(n):
        if np.isinf(mu[i]):
            equalities += 2
            rows += 3
        elif mu[i] == 0.0:
            rows += 1
        else:
            rows += edges
    room, at = np.empty((nu + 2) * rows + 2 * edges + 2 * nu * nu + 3 * nu + 3), 2 * edges
    cosine, sine = view(room, 0, (edges,)), view(room, edges, (edges,))
    A, b = view(room, at, (rows, nu)), view(room, at + rows * nu, (rows,))
    multipliers = view(room, at + rows * (nu + 1), (rows,))
    at += rows * (nu + 2)
    Qt, R = view(room, at, (nu, nu)), view(room, at + nu * nu, (nu, nu))
    work, pull = view(room, at + 2 * nu * nu, (3, nu + 1)), view(room, at + 2 * nu * nu, (nu,))
    if not vertex and _rests(Y, c, gap_speed, mu, edges, Qt, u, pull, z):
        keep(room)
        return SOLVED, 1
    for j in range(edges):
        cosine[j], sine[j] = np.cos(2.0 * np.pi * j / edges), np.sin(2.0 * np.pi * j / edges)
    _conditions(Y, c, gap_speed, mu, cosine, sine, equalities, A, b)
    # Normals before tangents: what a foot's tangents add to the others' is exactly nothing once the
    # normals hold, but nearly nothing without them, and then takes enormous forces.
    preferred = np.zeros(rows if loaded.shape[0] or equalities else 0, np.bool_)
    if preferred.shape[0]:
        row = equalities
        for i in range(n):
            count = 1 if np.isinf(mu[i]) or mu[i] == 0.0 else edges
            for j in range(count):
                preferred[row + j] = np.isinf(mu[i]) or (loaded.shape[0] > 0 and loaded[i])
            row += count
    fill(u, 0.0)
    status, steps = nearest_point(
        A,
        b,
        equalities,
        preferred,
        u,
        multipliers,
        np.empty(nu + 1, np.int64),
        Qt,
        R,
        work,
    )
    fill(z, 0.0)
    if status != SOLVED:
        return status, steps
    status = _is_nearest(A, b, equalities, u, multipliers, pull)
    if status == STEP_LIMIT:
        return status, steps
    _vertex_impulses(multipliers, mu, cosine, sine, equalities, z)
    keep(room)
    return status, steps


@bare_kernel
def _moves(Y, c, gap_speed, u, i):
    """Velocity of contact i at the motion u (nu,): how fast it parts beyond its gap, and its slip, m/s."""
    first, second, third = Y[3 * i], Y[3 * i + 1], Y[3 * i + 2]
    x, y, z = c[3 * i] + gap_speed[i], c[3 * i + 1], c[3 * i + 2]
    for k in range(u.shape[0]):
        x += first[k] * u[k]
        y += second[k] * u[k]
        z += third[k] * u[k]
    return x, y, z


@kernel
def classify(Y, c, gap_speed, mu, edges, parts, u, face):
    """Write the contacts' modes at the motion u (nu,) into ``face``: the optimal face of stage I.

    parts: sliding contacts part at mu times their slip, as in stage I; False: they stay on the ground.
    """
    mode, angle, span = face
    n, scale = gap_speed.shape[0], 0.0
    for r in range(3 * n):
        scale = max(scale, abs(c[r]))
    tolerance = STICKING_SPEED * scale + STILL_M_S
    width = 2.0 * np.pi / edges
    for i in range(n):
        w = _moves(Y, c, gap_speed, u, i)
        slip = abs(w[1]) + abs(w[2])
        if slip > tolerance:  # mostly not, which is found without a root
            slip = np.hypot(w[1], w[2])
        angle[i], span[i] = 0.0, 0.0
        if np.isinf(mu[i]):
            mode[i] = STICKING if w[0] <= tolerance else HOLDING
        elif mu[i] == 0.0 or slip <= tolerance:
            mode[i] = STICKING if w[0] <= tolerance else APART
        elif not parts and w[0] > tolerance:
            mode[i] = APART
        else:
            # Edges with no slack: the one against the slip, or the two beside it.
            mode[i] = APART
            against = np.arctan2(-w[2], -w[1])
            first = np.floor(against / width)
            steep, height = mu[i], w[0]
            if not parts:
                # Both are beside the slip, so the largest product with it is with one of them.
                steep, height = 1.0, 0.0
                for j in range(2):
                    theta = (first + j) * width
                    height = max(height, -np.cos(theta) * w[1] - np.sin(theta) * w[2])
            tight_first, tight_second = False, False
            for j in range(2):
                theta = (first + j) * width
                slack = height + steep * (np.cos(theta) * w[1] + np.sin(theta) * w[2])
                if slack <= tolerance:
                    if j == 0:
                        tight_first = True
                    else:
                        tight_second = True
            if tight_first or tight_second:
                mode[i] = SLIDING
                angle[i] = (first if tight_first else first + 1) * width
                span[i] = width if tight_first and tight_second else 0.0


@kernel
def classify_stiction(Y, c, gap_speed, mu, edges, most, u, z, face):
    """Check Coulomb's law at the motion u of impulses z (3n,): ``STICKS`` or ``CREEPS`` if it holds, else ``MOVES``.

    A loaded contact sticks, or moves by less than ``STICTION_M_S``: then the modes of stage I, whose forces are unique,
    are used. With unbounded friction it sticks with a tangential impulse of at most ``most`` times its normal one; more
    is not explained by its load.  face: out, as of ``classify``.
    """
    classify(Y, c, gap_speed, mu, edges, False, u, face)
    mode, creeps = face.mode, False
    for i in range(mode.shape[0]):
        first, second = abs(z[3 * i + 1]), abs(z[3 * i + 2])
        if mode[i] == STICKING:
            if np.isinf(mu[i]) and first + second > most * z[3 * i]:
                return MOVES
        elif z[3 * i] != 0.0 or first != 0.0 or second != 0.0:
            if np.isinf(mu[i]):
                return MOVES
            w = _moves(Y, c, gap_speed, u, i)
            if max(w[0], np.hypot(w[1], w[2])) > STICTION_M_S:
                return MOVES
            creeps = True
    if creeps:
        classify(Y, c, gap_speed, mu, edges, True, u, face)
        return CREEPS
    return STICKS
