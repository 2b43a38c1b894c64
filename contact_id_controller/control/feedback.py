"""Desired acceleration: feedback projected onto motions that legs in stance can make.

Joint and base errors each give a desired acceleration a0 (nv,). The commanded acceleration is the
closest to it, in weights w, at which feet in stance move as the contact model requires:

    min 1/2 (a - a0)^T diag(w) (a - a0)   subject to   J a + Jdot v = b

b = -J v / T_c for a foot on the ground (its velocity fades over the contact time constant), and
-(J v + s n) / T_l for a foot that is planned in stance but still in the air: it comes down at speed s, or as
fast as the base falls there, but in ``DOWN_S`` at least: else the leg would fold under a base that tips onto it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import Kernel, bare_kernel, kernel
from contact_id_controller.kernels.dense import (
    add_rows,
    backward_substitute,
    cholesky,
    forward_substitute,
)
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.spatial import (
    link_motion,
    point_acceleration,
    point_column,
    point_velocity,
)
from contact_id_controller.kernels.views import keep, view

BASE_WEIGHT = 1.0
DOWN_S = 0.005  # in which a late foot comes down at least, with the base that falls
SEARCH_S = 0.05  # in which a foot that is late comes down by as much as heights differed from what was expected
UNPLANNED = 1e-6  # weight of the base when no base motion is planned
SOFTNESS = 1e-10  # damps redundant constraints, relative to their size


class Tree(NamedTuple):
    """J (6, nv) joint axes in the world, v (nv,), supports and coordinate_joint as in ``RobotModel``."""

    J: np.ndarray
    v: np.ndarray
    supports: np.ndarray
    coordinate_joint: np.ndarray


class Feet(NamedTuple):
    """Links (n,), points and normals (n, 3) of all contacts; standing and landing (n,) bool.

    Closing speed (n,), m/s, of those that land, too.
    """

    links: np.ndarray
    points: np.ndarray
    normals: np.ndarray
    standing: np.ndarray
    landing: np.ndarray
    closing: np.ndarray


class Fading(NamedTuple):
    """Time constants, s, of standing and of landing contacts; share of Jdot v."""

    standing: float
    landing: float
    drift_share: float


@kernel
def consistent_acceleration(period):
    """Project ``wanted`` (nv,) of a ``Period`` on the motions that standing and landing contacts allow.

    Writes ``acceleration`` (nv,), from axes, velocity, contacts, closing speeds and weights of the period.
    """
    settings = period.settings
    tree = Tree(period.jacobian, period.v, settings.supports, settings.coordinate_joint)
    feet = Feet(
        settings.links,
        period.points,
        period.normals,
        period.touching,
        period.landing,
        period.closing,
    )
    fading = Fading(
        settings.contact_time_constant_s,
        settings.touchdown_time_constant_s,
        settings.drift_share,
    )
    wanted, acceleration = period.wanted, period.acceleration
    assign(acceleration, wanted)
    rows = 0
    for i in range(feet.points.shape[0]):
        if feet.standing[i] or feet.landing[i]:
            rows += 3
    if rows > 0:
        _landing_speeds(period, settings)
        A, rest = np.zeros((rows, wanted.shape[0])), np.empty(rows)
        foot_rows(tree, feet, fading, wanted, A, rest)
        project(A, rest, np.zeros(rows), period.weights, acceleration)


@kernel
def _landing_speeds(period, settings):
    """Write into ``closing``, m/s, the speeds at which landing contacts come down.

    The configured one, faster where heights were unexpected, and where the base falls: as fast as a point fixed to
    the base, but no contact closes its gap in less than ``DOWN_S``.
    """
    twist, falls = np.zeros(6), np.empty(3)
    if settings.has_base:
        for r in range(6):
            for k in range(6):
                twist[r] += period.jacobian[r, k] * period.v[k]
    least = max(settings.touchdown_speed_m_s, period.rough[0] / SEARCH_S)
    for i in range(period.landing.shape[0]):
        if period.landing[i]:
            point_velocity(twist, period.points[i], falls)
            fall = 0.0
            for d in range(3):
                fall -= period.normals[i, d] * falls[d]
            period.closing[i] = max(least, min(fall, period.gaps[i] / DOWN_S))


@kernel
def foot_rows(tree, feet, fading, wanted, A, rest):
    """Write rows A (3m, nv) of the m standing or landing contacts, and rest (3m,) = b - A wanted - share Jdot v, m/s2.

        standing:  b = -(x' + closing n) / fading.standing        n: normal, x': velocity of the contact
        landing:   b = -(x' + closing n) / fading.landing

    wanted (nv,): desired acceleration; A: zeros before.
    """
    J, supports = tree.J, tree.supports
    joints, nv = supports.shape
    twist, drift = np.empty((joints, 6)), np.empty((joints, 6))
    link_motion(J, tree.v, supports, tree.coordinate_joint, twist, drift)
    speed, pull, work = np.empty(3), np.empty(3), np.empty(3)
    row = 0
    for i in range(feet.points.shape[0]):
        if not (feet.standing[i] or feet.landing[i]):
            continue
        link, point = feet.links[i], feet.points[i]
        point_velocity(twist[link], point, speed)
        point_acceleration(twist[link], drift[link], point, pull, work)
        for k in range(nv):
            if supports[link, k]:
                A[row, k], A[row + 1, k], A[row + 2, k] = point_column(J, k, point)
        fade_s = fading.standing if feet.standing[i] else fading.landing
        for d in range(3):
            total = -(speed[d] + feet.closing[i] * feet.normals[i, d]) / fade_s
            total -= fading.drift_share * pull[d]
            for k in range(nv):
                total -= A[row + d, k] * wanted[k]
            rest[row + d] = total
        row += 3


@kernel
def project(A, rest, compliance, weights, acceleration):
    """Add to ``acceleration`` (nv,), in place, the smallest change in ``weights`` (nv,) with A change = rest.

    A (rows, nv) and rest (rows,) are overwritten.  compliance (rows,): 0: the row is satisfied exactly, c: it is a
    least-squares task of weight 1 / c.
    """
    rows, nv = A.shape
    room = np.empty(rows * (rows + nv) + nv)
    S, scaled = view(room, 0, (rows, rows)), view(room, rows * rows, (rows, nv))
    inverse, trace = view(room, rows * (rows + nv), (nv,)), 0.0
    for k in range(nv):
        inverse[k] = 1.0 / weights[k]  # once: a division takes as long as twenty products
    for a in range(rows):
        one, own = A[a], scaled[a]
        for k in range(nv):
            own[k] = one[k] * inverse[k]
        for b in range(a + 1):
            other, total = scaled[b], 0.0
            for k in range(nv):
                total += one[k] * other[k]
            S[a, b] = total
        trace += S[a, a]
    for a in range(rows):
        S[a, a] += SOFTNESS * trace + compliance[a]
    if cholesky(S, rows, 0.0):
        forward_substitute(S, rows, rest)
        backward_substitute(S, rows, rest)
        add_rows(scaled, rest, 1.0, acceleration)
    keep(room)


@bare_kernel
def base_error(q, v, goal, R, out):
    """Base errors in the world frame: position, velocity, rotation vector, angular velocity (4, 3).

    q (7+,) starts with x, y, z and the quaternion xyzw; v (6+,) is the twist in the base frame; goal
    (13+,) is pose and velocities, world frame. R (3, 3) out: the base's attitude.
    """
    x, y, z, w = q[3], q[4], q[5], q[6]
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
    # Rotation from the measured to the desired attitude, as a world-frame rotation vector.
    a, b, c, d = goal[3], goal[4], goal[5], goal[6]
    ex = -d * x + a * w - b * z + c * y
    ey = -d * y + b * w - c * x + a * z
    ez = -d * z + c * w - a * y + b * x
    ew = d * w + a * x + b * y + c * z
    if ew < 0.0:
        ex, ey, ez, ew = -ex, -ey, -ez, -ew
    sine = np.sqrt(ex * ex + ey * ey + ez * ez)
    scale = 2.0 * np.arctan2(sine, ew) / sine if sine > 1e-12 else 2.0
    out[2, 0], out[2, 1], out[2, 2] = scale * ex, scale * ey, scale * ez
    for i in range(3):
        out[0, i] = goal[i] - q[i]
        out[1, i] = goal[7 + i]
        out[3, i] = goal[10 + i]
        for j in range(3):
            out[1, i] -= R[i, j] * v[j]
            out[3, i] -= R[i, j] * v[3 + j]


@bare_kernel
def base_feedback(R, v, error, gains, goal, wanted):
    """Write into wanted[:6] the base acceleration that tracks ``goal``, spatial, linear then angular, base frame.

    wanted[:3] = R^T linear - omega x v, as Pinocchio's free-flyer has it; wanted[3:6] = R^T angular.

    Args:
        R (3, 3): base to world.  v[:6]: base velocity, linear, m/s, then angular, rad/s, base frame.
        error (4, 3): goal minus measured, world: position, linear velocity, rotation vector, angular velocity.
        gains (4, 3): of these, by world axis: 1/s^2, 1/s, 1/s^2, 1/s.
        goal (19,): goal[13:16], goal[16:19] linear and angular feedforward acceleration, world.
    """
    fill(wanted[:6], 0.0)
    for j in range(3):
        linear = goal[13 + j] + gains[0, j] * error[0, j] + gains[1, j] * error[1, j]
        angular = goal[16 + j] + gains[2, j] * error[2, j] + gains[3, j] * error[3, j]
        for i in range(3):
            wanted[i] += R[j, i] * linear
            wanted[3 + i] += R[j, i] * angular
    wanted[0] -= v[4] * v[2] - v[5] * v[1]
    wanted[1] -= v[5] * v[0] - v[3] * v[2]
    wanted[2] -= v[3] * v[1] - v[4] * v[0]


@bare_kernel
def _up(q, out):
    """out (3,): the world's z axis in the base frame, from the quaternion in q (nq,)."""
    x, y, z, w = q[3], q[4], q[5], q[6]
    out[0] = 2.0 * (x * z - w * y)
    out[1] = 2.0 * (y * z + w * x)
    out[2] = 1.0 - 2.0 * (x * x + y * y)


@bare_kernel
def _tilt(q, up):
    """Angle, rad, between the world's z axis in the base frame, from q (nq,), and ``up`` (3,)."""
    x, y, z, w = q[3], q[4], q[5], q[6]
    cosine = 2.0 * (x * z - w * y) * up[0] + 2.0 * (y * z + w * x) * up[1]
    cosine += (1.0 - 2.0 * (x * x + y * y)) * up[2]
    return math.acos(min(max(cosine, -1.0), 1.0))


@cache
def tilt_entry() -> Kernel:
    """Compiled call of `_tilt`."""
    return direct(_tilt, np.empty(7), np.empty(3))


def up_in_base(q: np.ndarray) -> np.ndarray:
    """The world's z axis in the frame of a floating base, (3,)."""
    out = np.empty(3)
    _up(q, out)
    return out
