"""Sampling of plans at one time, compiled, for the control loop."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from contact_id_controller.kernels.compile import Kernel, bare_kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.turns import TURN
from contact_id_controller.plans.interpolation import polynomial, quintic
from contact_id_controller.plans.rotations import body_motion, exponential, multiply, rotate

BASE_NUMBERS = 19
"""Of a base's motion: position, quaternion xyzw, velocities and accelerations, linear before angular."""


@bare_kernel
def _segment_at(times_s, since_s):
    """Index of the segment that contains a time within the times (p,), by bisection."""
    low, high = 0, times_s.shape[0]
    while low < high:
        middle = (low + high) // 2
        if since_s < times_s[middle]:
            high = middle
        else:
            low = middle + 1
    return low - 1


@bare_kernel
def sample_joints(times_s, rates, segments, positions, since_s, out):
    """Write position, velocity, acceleration (3, j) at a time since the start; outside the plan at rest at its ends.

    times_s (p,).  rates (p - 1,): 1 / h of each segment, 1/s.  segments (p - 1, degree + 1, j): of
    ``interpolation``.  positions (p, j).
    """
    last = times_s.shape[0] - 1
    if since_s < times_s[0] or since_s >= times_s[last]:
        held = 0 if since_s < times_s[0] else last
        for j in range(out.shape[1]):
            out[0, j], out[1, j], out[2, j] = positions[held, j], 0.0, 0.0
        return
    k = _segment_at(times_s, since_s)
    rate = rates[k]
    u = (since_s - times_s[k]) * rate
    for j in range(out.shape[1]):
        out[0, j], out[1, j], out[2, j] = polynomial(segments[k], j, u, rate)


@bare_kernel
def sample_stance(times_s, stance, since_s, planned):
    """Write planned contacts (n,) bool at a time, from stances (p, n) with their times (p,).

    Before the first its values.
    """
    k = max(_segment_at(times_s, since_s), 0)
    for i in range(planned.shape[0]):
        planned[i] = stance[k, i]


@bare_kernel
def sample_efforts(times_s, values, since_s, out):
    """Write position, velocity, effort (3, na) at a time since the first point; outside those of the first or last one.

    times_s (p,), values (p, 4, na): positions, velocities, accelerations, joined by a quintic, and efforts.
    """
    last = times_s.shape[0] - 1
    if not 0.0 < since_s < times_s[last]:
        held = last if since_s > 0.0 else 0
        for j in range(out.shape[1]):
            out[0, j], out[1, j], out[2, j] = (
                values[held, 0, j],
                values[held, 1, j],
                values[held, 3, j],
            )
        return
    k = 0
    while times_s[k + 1] <= since_s:
        k += 1
    step = times_s[k + 1] - times_s[k]
    u = (since_s - times_s[k]) / step
    for j in range(out.shape[1]):
        start = values[k, 0, j]
        v0, v1 = values[k, 1, j] * step, values[k + 1, 1, j] * step
        a0, a1 = values[k, 2, j] * step * step, values[k + 1, 2, j] * step * step
        c, d, e = quintic(values[k + 1, 0, j] - start, v0, v1, a0, a1)
        out[0, j] = start + u * (v0 + u * (0.5 * a0 + u * (c + u * (d + u * e))))
        out[1, j] = (v0 + u * (a0 + u * (3.0 * c + u * (4.0 * d + u * 5.0 * e)))) / step
        out[2, j] = (1.0 - u) * values[k, 3, j] + u * values[k + 1, 3, j]


@bare_kernel
def follow_efforts(times_s, values, since_s, position, velocity, gains, turns, limits, out):
    """``sample_efforts`` with, in the last row of ``out`` (4, na), the torques with the feedback along it.

    position, velocity (na,): measured.  gains (2, na): of both.  turns (na,): joints without limits.
    limits (na,): the largest torques.
    """
    sample_efforts(times_s, values, since_s, out[:3])
    for j in range(out.shape[1]):
        away = out[0, j] - position[j]
        if turns[j]:
            away -= TURN * np.rint(away / TURN)
        torque = out[2, j] + gains[0, j] * away + gains[1, j] * (out[1, j] - velocity[j])
        if torque > limits[j]:
            torque = limits[j]
        elif torque < -limits[j]:
            torque = -limits[j]
        out[3, j] = torque


@bare_kernel
def sample_base(times_s, rates, segments, positions, attitudes, since_s, out):
    """Write the motion of a base (``BASE_NUMBERS``,), world frame, at a time since the start; outside the plan at rest.

    times_s (p,), rates (p - 1,): as of joints.  segments (p - 1, 4, 6): of the position and of the rotation vector
    from the attitude at the segment's beginning.  positions (p, 3), attitudes (p, 4): of all points.
    """
    last = times_s.shape[0] - 1
    if since_s < times_s[0] or since_s >= times_s[last]:
        held = 0 if since_s < times_s[0] else last
        for i in range(out.shape[0]):
            out[i] = positions[held, i] if i < 3 else attitudes[held, i - 3] if i < 7 else 0.0
        return
    k = _segment_at(times_s, since_s)
    coefficients, attitude, rate = segments[k], attitudes[k], rates[k]
    u = (since_s - times_s[k]) * rate
    for d in range(3):
        out[d], out[7 + d], out[13 + d] = polynomial(coefficients, d, u, rate)
    x, x_rate, x_rate2 = polynomial(coefficients, 3, u, rate)
    y, y_rate, y_rate2 = polynomial(coefficients, 4, u, rate)
    z, z_rate, z_rate2 = polynomial(coefficients, 5, u, rate)
    phi = (x, y, z)
    spin, spin_rate = body_motion(phi, (x_rate, y_rate, z_rate), (x_rate2, y_rate2, z_rate2))
    start = (attitude[0], attitude[1], attitude[2], attitude[3])
    turn = multiply(start, exponential(phi))
    out[3], out[4], out[5], out[6] = turn
    out[10], out[11], out[12] = rotate(turn, spin)
    out[16], out[17], out[18] = rotate(turn, spin_rate)


@cache
def entries() -> tuple[Kernel, Kernel, Kernel]:
    """Compiled calls of `sample_joints`, `sample_base` and `sample_stance`, for the arrays of plans."""
    row, table, parts = np.empty(1), np.empty((2, 2)), np.empty((2, 2, 2))
    return (
        direct(sample_joints, row, row, parts, table, 0.0, table),
        direct(sample_base, row, row, parts, table, table, 0.0, row),
        direct(sample_stance, row, table > 0.0, 0.0, row > 0.0),
    )


@bare_kernel
def find_lift_offs(times_s, stance, out):
    """Write out (p, f): lift-off time of a frame in stance in row k of the stance (p, f); inf: never."""
    last = stance.shape[0] - 1
    for f in range(stance.shape[1]):
        out[last, f] = math.inf
        for k in range(last - 1, -1, -1):
            lifts = stance[k, f] and not stance[k + 1, f]
            out[k, f] = times_s[k + 1] if lifts else out[k + 1, f]
