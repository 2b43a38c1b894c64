"""Motion of feet and base at the points of a plan, compiled, as it would need hundreds of small numpy arrays."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from contact_id_controller.kernels.compile import kernel

STANCE, CUBIC, QUINTIC, SHIFT = range(4)
"""Kinds of rows. Each begins with kind, begin and a time: the time constant of a stance, else the end.

A stance goes on with place, offset and its rate (3 each); a swing with start, start velocity, target and
height of the bump; a shift, which belongs to the swing before it, with the shift."""

WIDTH = 14
LANDED = 13
"""Column of the last touchdown time in the row of a stance or a swing."""


@register_jitable
def fading(value, rate, time, s):
    """e, e', e'' of e'' = -2 e' / T - e / T^2 (critically damped) at s, s, after value and rate; T: time, s."""
    slope = rate + value / time
    decay = np.exp(-s / time)
    return (
        (value + slope * s) * decay,
        (rate - slope * s / time) * decay,
        (slope * s / time - slope - rate) / time * decay,
    )


@register_jitable
def reference(position, rate, target, turn, time, s):
    """Position x, velocity and acceleration of a track, x' = target e^(i turn s) + (rate - target) e^(-s / time).

    Complex: x + iy, m; turn, rad/s; s, time: s.
    """
    missing = (rate - target) * np.exp(-s / time)
    turning, arc = target + 0.0 * s, target * s
    if turn != 0.0:
        turning = target * np.exp(1j * turn * s)
        # Its integral, accurate for small angles too.
        arc = arc * np.exp(0.5j * turn * s) * np.sinc(turn * s / (2.0 * np.pi))
    travel = arc + (rate - target - missing) * time
    return position + travel, turning + missing, 1j * turn * turning - missing / time


@kernel
def bump(kind, u):
    """Height of a swing's bump and its first two derivatives, at part u of the swing.

    Cubic: clamped spline through 0, 1, 0; quintic: 64 u^3 (1 - u)^3.
    """
    if kind == CUBIC:
        sign, w = (1.0, 2.0 * u) if u < 0.5 else (-1.0, 2.0 - 2.0 * u)
        return w**2 * (3.0 - 2.0 * w), sign * 12.0 * w * (1.0 - w), 24.0 * (1.0 - 2.0 * w)
    w, slope = u * (1.0 - u), 1.0 - 2.0 * u
    return 64.0 * w**3, 192.0 * w**2 * slope, 384.0 * w * (slope**2 - w)


@kernel
def sway_at(s, offset, time, phase, starts, states):
    """Displacements of the base and their rates (2, 5) at one time.

    offset (2, 5): value and rate of what fades since s, s, with the time constant ``time``; phase: s, in a cycle of the
    motion with starts (k,) and states (3, k, 5), see ``SupportMotion``; k = 0: none.
    """
    out = np.zeros((2, offset.shape[1]))
    row = np.searchsorted(starts, phase, side="right") - 1
    for d in range(offset.shape[1]):
        out[0, d], out[1, d], _ = fading(offset[0, d], offset[1, d], time, s)
        if row >= 0:
            past, rate, bend = phase - starts[row], states[1, row, d], states[2, row, d]
            out[0, d] += states[0, row, d] + (rate + 0.5 * bend * past) * past
            out[1, d] += rate + bend * past
    return out


@kernel
def smooth_step(u):
    """Quintic from 0 to 1 without velocity and acceleration at its ends; with derivatives."""
    v = 1.0 - u
    return (
        u**3 * (10.0 - 15.0 * u + 6.0 * u**2),
        30.0 * u**2 * v**2,
        60.0 * u * v * (v - u),
    )


@kernel
def _swing(row, t, position, velocity, acceleration):
    """Position, velocity, acceleration (3,) of a swing at t, s, without its shifts: polynomial plus ``bump`` along z.

    row (WIDTH,): see `QUINTIC`; m, m/s.
    """
    kind, duration = int(row[0]), row[2] - row[1]
    u = (t - row[1]) / duration
    for d in range(3):
        start, rate, change = row[3 + d], row[6 + d] * duration, row[9 + d] - row[3 + d]
        if kind == CUBIC:
            c2, c3, c4, c5 = 3.0 * change - 2.0 * rate, rate - 2.0 * change, 0.0, 0.0
        else:
            c2, c3 = 0.0, 10.0 * change - 6.0 * rate
            c4, c5 = -15.0 * change + 8.0 * rate, 6.0 * change - 3.0 * rate
        position[d] = start + u * (rate + u * (c2 + u * (c3 + u * (c4 + u * c5))))
        velocity[d] = rate + u * (2.0 * c2 + u * (3.0 * c3 + u * (4.0 * c4 + u * 5.0 * c5)))
        acceleration[d] = 2.0 * c2 + u * (6.0 * c3 + u * (12.0 * c4 + u * 20.0 * c5))
    height, slope, bend = bump(kind, u)
    position[2] += row[12] * height
    velocity[2] += row[12] * slope
    acceleration[2] += row[12] * bend
    for d in range(3):
        velocity[d] /= duration
        acceleration[d] /= duration**2


@kernel
def _segment(rows, first, t, position, velocity, acceleration):
    """Position, velocity, acceleration (3,) at t, s, of the segment that begins at row ``first``, with its shifts."""
    row = rows[first]
    if int(row[0]) == STANCE:
        for d in range(3):
            offset, rate, bend = fading(row[6 + d], row[9 + d], row[2], t - row[1])
            position[d], velocity[d], acceleration[d] = row[3 + d] + offset, rate, bend
        return
    _swing(row, t, position, velocity, acceleration)
    for k in range(first + 1, rows.shape[0]):
        shift = rows[k]
        if int(shift[0]) != SHIFT:
            break
        rest = shift[2] - shift[1]
        u = min(max((t - shift[1]) / rest, 0.0), 1.0)
        share, rate, bend = smooth_step(u)
        for d in range(3):
            position[d] += share * shift[3 + d]
            velocity[d] += rate / rest * shift[3 + d]
            acceleration[d] += bend / rest**2 * shift[3 + d]


@kernel
def sample_path(rows, times, picks, leg, position, velocity, acceleration, stance, landed):
    """Sample the path of foot ``leg`` at times (p,), s.

    Args:
        rows: (m, WIDTH), see `STANCE`.
        picks: (p,) s, times by which the segment is chosen.
        position, velocity, acceleration: (p, L, 3) out, of which [:, leg] is written, m.
        stance, landed: (p, L) out, bool and last touchdown, s.
    """
    for k in range(times.shape[0]):
        first = 0
        for r in range(1, rows.shape[0]):
            if int(rows[r, 0]) != SHIFT and rows[r, 1] <= picks[k]:
                first = r
        _segment(rows, first, times[k], position[k, leg], velocity[k, leg], acceleration[k, leg])
        stance[k, leg] = int(rows[first, 0]) == STANCE
        landed[k, leg] = rows[first, LANDED]


@kernel
def find_grip(times, stance, landed, radius_m, roll_in_s, grip):
    """Write the radius with which each foot rolls and its rate, grip (2, p, L) m, m/s: 0 in swing.

    A foot lands with its centre at rest; the radius increases from 0 to radius_m over ``roll_in_s``.
    times (p,) s; stance, landed (p, L): of ``sample_path``.
    """
    for k in range(times.shape[0]):
        for leg in range(stance.shape[1]):
            grip[0, k, leg] = grip[1, k, leg] = 0.0
            if stance[k, leg]:
                u = min(max((times[k] - landed[k, leg]) / roll_in_s, 0.0), 1.0)
                grip[0, k, leg] = radius_m * u * u * (3.0 - 2.0 * u)
                grip[1, k, leg] = radius_m * 6.0 * u * (1.0 - u) / roll_in_s


@kernel
def centers_at(times, position, velocity, t, out):
    """Interpolate the feet's centres at time t, s, into out (L, 3), m: Hermite cubics through points at times (p,).

    position, velocity (p, L, 3).
    """
    k = 1
    while k < times.shape[0] - 1 and times[k] <= t:
        k += 1
    step = times[k] - times[k - 1]
    u = (t - times[k - 1]) / step
    for leg in range(out.shape[0]):
        for d in range(3):
            start, change = position[k - 1, leg, d], position[k, leg, d] - position[k - 1, leg, d]
            v0, v1 = velocity[k - 1, leg, d] * step, velocity[k, leg, d] * step
            out[leg, d] = start + u * (
                v0 + u * (3.0 * change - 2.0 * v0 - v1 + u * (v0 + v1 - 2.0 * change))
            )


@register_jitable
def along_heading(motion, yaw, rate, acceleration):
    """Displacement x + iy, rate and acceleration in the world of a motion (3,) along a heading that turns."""
    turn, place, speed = np.exp(1j * yaw), motion[0], motion[1]
    change = motion[2] + 2j * rate * speed + (1j * acceleration - rate**2) * place
    return turn * place, turn * (speed + 1j * rate * place), turn * change


@kernel
def sample_tilt(tilt, time, s, out):
    """Height, roll, pitch and their derivatives, (3, 3), of tilt (3, 3): see ``Tilt.numbers``."""
    for d in range(3):
        offset = fading(tilt[1, d], tilt[2, d], time, s)
        for order in range(3):
            out[order, d] = offset[order]
        out[0, d] += tilt[0, d]


@kernel
def sample_base(times, tracks, rates, tilt, tilt_time, sway, linear, rotation, spins, quaternion):
    """Sample the base at p times since its start.

    tracks (2, 5) complex, horizontal x + iy and yaw: position, rate, target, offset, its rate; rates
    (2, 3): turn, time constants of track and offset; tilt: as in ``sample_tilt``; sway (3, p, 5) displacement
    along the heading, x, y, height, roll, pitch, and its derivatives. Out: linear (3, p, 3) position and
    derivatives; rotation (p, 3, 3); spins (2, p, 3) velocity and acceleration, world frame; quaternion (p, 4) xyzw.
    """
    lean, angles = np.empty((3, 3)), np.empty((3, 3))
    for k in range(times.shape[0]):
        s = times[k]
        sample_tilt(tilt, tilt_time, s, lean)
        way = _track(tracks[0], rates[0], s)
        yaw = _track(tracks[1], rates[1], s)
        aside = along_heading(
            sway[:, k, 0] + 1j * sway[:, k, 1], yaw[0].real, yaw[1].real, yaw[2].real
        )
        for order in range(3):
            linear[order, k, 0] = way[order].real + aside[order].real
            linear[order, k, 1] = way[order].imag + aside[order].imag
            linear[order, k, 2] = lean[order, 0] + sway[order, k, 2]
            angles[order, 0] = lean[order, 1] + sway[order, k, 3]
            angles[order, 1] = lean[order, 2] + sway[order, k, 4]
            angles[order, 2] = yaw[order].real
        _euler_motion(angles, rotation[k], spins[0, k], spins[1, k], quaternion[k])


@kernel
def _track(track, rates, s):
    """Position, rate and acceleration of a track at time s, s, from its start: reference plus fading error.

    track (5,): position, rate, target rate, error and its rate; rates (3,): turn rate of the target, time constants, s.
    """
    one = reference(track[0], track[1], track[2], rates[0], rates[1], s)
    two = fading(track[3], track[4], rates[2], s)
    return one[0] + two[0], one[1] + two[1], one[2] + two[2]


@kernel
def _euler_motion(angles, R, spin, spin_rate, quaternion):
    """Rotation, angular velocity and acceleration, world frame, from roll, pitch, yaw.

    R = Rz(yaw) Ry(pitch) Rx(roll); angles (3, 3) with their first two time derivatives.
    """
    cr, cp, cy = np.cos(angles[0, 0]), np.cos(angles[0, 1]), np.cos(angles[0, 2])
    sr, sp, sy = np.sin(angles[0, 0]), np.sin(angles[0, 1]), np.sin(angles[0, 2])
    R[0, 0], R[0, 1], R[0, 2] = cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr
    R[1, 0], R[1, 1], R[1, 2] = sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr
    R[2, 0], R[2, 1], R[2, 2] = -sp, cp * sr, cp * cr
    # Axes of the rates of roll and pitch in the world, and how they turn; that of yaw is z.
    d_roll, d_pitch, d_yaw = angles[1, 0], angles[1, 1], angles[1, 2]
    r2, p2, y2 = angles[2, 0], angles[2, 1], angles[2, 2]
    spin[0] = d_roll * cy * cp - d_pitch * sy
    spin[1] = d_roll * sy * cp + d_pitch * cy
    spin[2] = -d_roll * sp + d_yaw
    spin_rate[0] = (
        r2 * cy * cp
        - p2 * sy
        + d_roll * (-sy * cp * d_yaw - cy * sp * d_pitch)
        - d_pitch * cy * d_yaw
    )
    spin_rate[1] = (
        r2 * sy * cp
        + p2 * cy
        + d_roll * (cy * cp * d_yaw - sy * sp * d_pitch)
        - d_pitch * sy * d_yaw
    )
    spin_rate[2] = -r2 * sp + y2 - d_roll * cp * d_pitch
    a, b, c = 0.5 * angles[0, 0], 0.5 * angles[0, 1], 0.5 * angles[0, 2]
    cr, cp, cy, sr, sp, sy = np.cos(a), np.cos(b), np.cos(c), np.sin(a), np.sin(b), np.sin(c)
    quaternion[0] = sr * cp * cy - cr * sp * sy
    quaternion[1] = cr * sp * cy + sr * cp * sy
    quaternion[2] = cr * cp * sy - sr * sp * cy
    quaternion[3] = cr * cp * cy + sr * sp * sy
