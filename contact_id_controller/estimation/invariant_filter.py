"""One step of a contact-aided right-invariant extended Kalman filter, compiled.

State: rotation R, velocity v and position p of the IMU in the odometry frame, gyroscope and
accelerometer bias, one centre d_i of every foot in the odometry frame, the rotation Z_i of every flat
one. The error xi is that of the group, X = exp(xi) X_hat, the biases' error their difference, so that
with g the gravity vector

    xi_R' = -R db_g                        xi_v' = g x xi_R - v x R db_g - R db_a
    xi_p' = xi_v - p x R db_g              xi_d' = -d x R db_g
    h_i = R^T (d_i - p):    R h_i - (d_i - p) = xi_d - xi_p + noise
    M_i = R^T Z_i:          log(R M_i Z_i^T) = xi_Z - xi_R + noise,   Z = exp(xi_Z) Z_hat, xi_Z' = 0

Neither depends on the state but through the biases, so nothing that cannot be observed (position,
rotation about gravity) is ever believed to be. A sphere that rolls moves its centre: d_i' = (R w_i) x
r_i up while it stands, w_i the foot's angular velocity. The noise of a flat foot's M_i and h_i is that of
the joints j up to it, sum_j [a_j; a_j x r_j] e_j with their axes a_j and levers r_j: drives give way and
have play, and the measured turn and displacement of a sole are correlated. A sole rocks
as if it were one more joint, and creeps along the ground and turns about the vertical as the leg moves
over it.

Source: Hartley et al. (2020), Contact-aided invariant extended Kalman filtering for robot state
estimation; there the foot's frame stands still; rolling and soles are ours. In words: docs/theory.md.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.estimation.sweep import (
    MOTION_WIDTH,
    cross,
    propagate,
    rotate,
    unpack_motion,
)
from contact_id_controller.estimation.tree import PRISMATIC, unpack_tree
from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel

# Places in the state (21 + 3 feet + 9 soles,): rotations of the flat feet, by rows, come last.
ROTATION, VELOCITY, POSITION, GYRO_BIAS, ACCEL_BIAS, FEET = 0, 9, 12, 15, 18, 21
# Places in the error (15 + 3 feet + 3 soles,), and so in the covariance.
E_ROTATION, E_VELOCITY, E_POSITION, E_GYRO, E_ACCEL, E_FEET = 0, 3, 6, 9, 12, 15
# Places in the facts; from F_FEET on, for each foot: its centre in its link (3,), its radius.
F_GYRO, F_ACCEL, F_GYRO_WALK, F_ACCEL_WALK, F_FOOT_WALK, F_FOOT = 0, 1, 2, 3, 4, 5
F_GATE, F_SLIP_SPEED, F_SLIP_TIME, F_ROLLING, F_GROUND, F_GRAVITY = 6, 7, 8, 9, 10, 11
F_LARGEST_MEAN, F_LARGEST_GYRO_BIAS, F_LARGEST_ACCEL_BIAS = 12, 13, 14
F_JOINT, F_SOLE_WALK, F_SOLE_TURN, F_SOLE_CREEP, F_ACCEL_BIAS = 15, 16, 17, 18, 19
F_IMU_ROTATION, F_IMU_POSITION, F_FEET = 20, 29, 32
# Places in the inputs; then q, v and the contacts.
I_DT, I_GYRO, I_ACCEL, I_NOISE, I_SKEW, I_DISPUTED, INPUTS = 0, 1, 4, 7, 8, 9, 10
# Places in the record: outputs, the mean acceleration (3,), the last sample of the
# accelerometer (3,), then what is remembered of each foot.
O_POSITION, O_ROTATION, O_VELOCITY, O_ANGULAR, O_ACCELERATION = 0, 3, 12, 15, 18
O_USED, O_SLIPPING, O_WITHOUT_FEET, O_REFUSED_S, O_MEAN, O_SAMPLE = 21, 22, 23, 24, 25, 28
# Height of level ground, m, not a number where none is known; by how much it has held the height, m; path along it, m;
# for how long gyroscope and accelerometer have repeated their samples, s; how much footholds speak against level ground.
O_LEVEL, O_HELD, O_WALKED, O_REPEATS, O_DOUBT, O_FEET = 34, 35, 36, 37, 39, 40
FOOT_RECORD = 14
# What is remembered of a foot: what it does, since when, its velocity on the ground, low-passed (3,),
# its centre in the base's axes from the IMU (3,), the velocity that it keeps while it is refused (3,), for how long, and
# by how much a sole has turned of late about the horizontal axes, rad (2,).
DOES, SINCE, SLIP, CENTRE, KEEPS, KEPT_S, ROCKS = 0, 1, 2, 5, 8, 11, 12
AIR, STANDS, GATED = 0.0, 1.0, 2.0
SOUND, UNSOUND, TURNED, LARGE_GYRO_BIAS, LARGE_ACCEL_BIAS = range(5)
"""Outcomes of a step."""
SHORT_S = 0.03
"""So long after a touch-down feet bounce and slide: one may be refused before it counts as slipping, and the place of one
that stands is the less sure the shorter it has stood."""
ONE_CHANGE, VIBRATION = 1.0 / 12.0, 1.0 / 2.0
"""Variance of a signal's mean over a period by the square of the change between its two samples: if it changed once, at
any time between, as forces do where feet land; and if it vibrates faster than it is sampled, as rates of a robot do, so
that both samples are chance."""
LEVEL_M, LEVEL_SLOPE = 0.04, 0.05
"""A foothold that is farther from level ground, or a height that has to be held by more than the first and the second
for each metre walked, says that the ground is not level. Zeros of joints and the accelerometer, one degree off, make
.02 to .04; steps and ramps make more."""
TELLS_TILT_M = 0.005
"""Ground that is level to within this tells the tilt, too: of a robot, half a degree."""
LEVEL_DOUBT = 4.0
"""The ground is a slope when what level ground would take is less likely than two deviations: the accelerometer's bias
aside, squared, by its variance, and the squares y^2 / S of the footholds, less one each. On level ground a foothold's is
below .3, also with cheap sensors."""
ROCKED_S, ROCKED_RAD, ROCKS_S, HALF_SOLE = 0.2, 0.05, 0.6, 0.125
"""A sole that turns about the horizontal by the second angle within the first time stands on its heel or an edge. Its
rotation walks then, with the third's variance for its rate, and its centre with half a sole, as a share of the leg's
length, for an arm. By less, joints yield, and the turn tells how far: from .03 rad on, an iCub's drift was 3 % (.7)."""
REPEATS_S = 0.02
"""For so long an IMU that is slower than its log repeats a sample; for longer one without noise, of a robot at rest."""
VERTICAL_SHARE = 1e-4
"""Of the variance by which the gyroscope's bias walks, about the vertical: there only feet tell it, and they slide as they
turn, while gravity tells the rest."""
MEAN_S = 1.0
"""Time constant of the mean acceleration."""
RELEASE = 0.5
"""Share of the speed that gates a foot below which it stands again."""
CONTACT = 0.5
"""Probability from which on a contact counts."""
UNTRUE_M_S2 = 10.0
"""To so much the mean acceleration is believed while feet touch and none agrees with it: one sample of an
accelerometer in a period in which feet land, or whose tilt is doubtful, is not better than that."""
SMALL_ANGLE = 1e-5
LARGEST = 1e9


def buffer_size(links: int, feet: int, soles: int) -> int:
    """Numbers of work space that ``step`` needs."""
    m = E_FEET + 3 * (feet + soles)
    return MOTION_WIDTH * links + 39 + links + m * m + 8 * m + 140


@bare_kernel
def _feet_in(x, n):
    """Number of feet of a state x with n entries of the error: 3 numbers a foot, and 9 and 3 a sole."""
    soles = (x.shape[0] - FEET - n + E_FEET) // 6
    return (n - E_FEET) // 3 - soles


@bare_kernel
def _carry(y, x, dt, gravity):
    """y <- Phi y for an error y (n,): xi' of the module integrated over dt, s, to second order; gravity, m/s2."""
    bx, by, bz = rotate(x, y[E_GYRO], y[E_GYRO + 1], y[E_GYRO + 2])
    ax, ay, az = rotate(x, y[E_ACCEL], y[E_ACCEL + 1], y[E_ACCEL + 2])
    half = 0.5 * dt * dt
    # g x xi_R with g = (0, 0, -gravity)
    ux, uy, uz = cross(x[VELOCITY], x[VELOCITY + 1], x[VELOCITY + 2], bx, by, bz)
    ux, uy, uz = gravity * y[1] - ux - ax, -gravity * y[0] - uy - ay, -uz - az
    px, py, pz = cross(x[POSITION], x[POSITION + 1], x[POSITION + 2], bx, by, bz)
    y[E_POSITION] += dt * y[E_VELOCITY] + half * ux - dt * px
    y[E_POSITION + 1] += dt * y[E_VELOCITY + 1] + half * uy - dt * py
    y[E_POSITION + 2] += dt * y[E_VELOCITY + 2] + half * uz - dt * pz
    y[E_VELOCITY] += dt * ux - half * gravity * by
    y[E_VELOCITY + 1] += dt * uy + half * gravity * bx
    y[E_VELOCITY + 2] += dt * uz
    y[0] -= dt * bx
    y[1] -= dt * by
    y[2] -= dt * bz
    for i in range(_feet_in(x, y.shape[0])):
        k = FEET + 3 * i
        dx, dy, dz = cross(x[k], x[k + 1], x[k + 2], bx, by, bz)
        k = E_FEET + 3 * i
        y[k] -= dt * dx
        y[k + 1] -= dt * dy
        y[k + 2] -= dt * dz


@bare_kernel
def _between_samples(a, dt, share, before, repeats):
    """Variance of an axis of the integral over dt of a signal a (3,), m/s2 or rad/s, known at its two samples only.

        share (dt + repeats)^2 |a - before|^2 / 3

    At 1 kHz it is next to nothing, at 100 Hz most of the variance that is added while feet land.

    Args:
        share: of the square of the change, ONE_CHANGE or VIBRATION.
        before: (3,) the sample before, NaN if there was none; becomes a.
        repeats: (1,) for how long, s, samples have been the same: nothing is known of the signal in that time.
    """
    total, none = 0.0, math.isnan(before[0])
    for k in range(3):
        total += (a[k] - before[k]) ** 2
        before[k] = a[k]
    span = repeats[0] + dt
    repeats[0] = min(span, REPEATS_S) if total == 0.0 else 0.0
    return 0.0 if none else share * span * span * total / 3.0


@bare_kernel
def _gyro_noise(x, B):
    """B (n, 3): how noise of the gyroscope, in the odometry frame, enters the error."""
    for k in range(B.shape[0]):
        B[k, 0] = B[k, 1] = B[k, 2] = 0.0
    for k in range(3):
        B[k, k] = 1.0
    for i in range(_feet_in(x, B.shape[0]) + 2):
        at = E_FEET + 3 * (i - 2) if i > 1 else E_VELOCITY + 3 * i
        k = FEET + 3 * (i - 2) if i > 1 else VELOCITY + 3 * i
        B[at, 1], B[at, 2] = -x[k + 2], x[k + 1]
        B[at + 1, 0], B[at + 1, 2] = x[k + 2], -x[k]
        B[at + 2, 0], B[at + 2, 1] = -x[k + 1], x[k]


@bare_kernel
def _predict_covariance(x, P, facts, dt, gyro, accel, scratch):
    """P <- Phi P Phi^T + Q over dt, s; Q: gyro B B^T, accel on velocities, random walks of biases and footholds.

    gyro, rad2, and accel, (m/s)2: variances of what the samples' noise adds up to in dt. scratch (n n + 4 n,).
    """
    n, gravity = P.shape[0], facts[F_GRAVITY]
    for r in range(n):
        _carry(P[r], x, dt, gravity)
    W, B = scratch[: n * n].reshape((n, n)), scratch[n * n : n * n + 3 * n].reshape((n, 3))
    column = scratch[n * n + 3 * n : n * n + 4 * n]
    _gyro_noise(x, B)
    for c in range(n):
        for r in range(n):
            column[r] = P[r, c]
        _carry(column, x, dt, gravity)
        b0, b1, b2 = gyro * B[c, 0], gyro * B[c, 1], gyro * B[c, 2]
        for r in range(n):
            W[c, r] = column[r] + B[r, 0] * b0 + B[r, 1] * b1 + B[r, 2] * b2
    for r in range(n):
        for c in range(r + 1):
            mean = 0.5 * (W[r, c] + W[c, r])
            P[r, c] = mean
            P[c, r] = mean
    for k in range(3):
        P[E_VELOCITY + k, E_VELOCITY + k] += accel
        P[E_ACCEL + k, E_ACCEL + k] += facts[F_ACCEL_WALK] * dt
        P[E_GYRO + k, E_GYRO + k] += facts[F_GYRO_WALK] * dt
        for j in range(3):
            upwards = (1.0 - VERTICAL_SHARE) * x[6 + k] * x[6 + j]
            P[E_GYRO + k, E_GYRO + j] -= facts[F_GYRO_WALK] * dt * upwards
    soles = E_FEET + 3 * _feet_in(x, n)
    for k in range(E_FEET, n):
        P[k, k] += facts[F_FOOT_WALK if k < soles else F_SOLE_WALK] * dt


@bare_kernel
def _exponential(rx, ry, rz, R, J):
    """R = exp([r]) and its left Jacobian J, exp([r + d]) ~ exp([J d]) exp([r]), of a vector r, rad; (9,) by rows."""
    angle2 = rx * rx + ry * ry + rz * rz
    if angle2 < SMALL_ANGLE * SMALL_ANGLE:
        a, b, c = 1.0 - angle2 / 6.0, 0.5 - angle2 / 24.0, 1.0 / 6.0 - angle2 / 120.0
    else:
        angle = np.sqrt(angle2)
        a = np.sin(angle) / angle
        b = (1.0 - np.cos(angle)) / angle2
        c = (1.0 - a) / angle2
    for M, one, two, three in ((R, 1.0 - b * angle2, a, b), (J, 1.0 - c * angle2, b, c)):
        M[0], M[1], M[2] = (
            one + three * rx * rx,
            three * rx * ry - two * rz,
            three * rx * rz + two * ry,
        )
        M[3], M[4], M[5] = (
            three * rx * ry + two * rz,
            one + three * ry * ry,
            three * ry * rz - two * rx,
        )
        M[6], M[7], M[8] = (
            three * rx * rz - two * ry,
            three * ry * rz + two * rx,
            one + three * rz * rz,
        )


@bare_kernel
def _predict_state(x, w, a, dt, gravity, work):
    """p += dt v + dt^2/2 (R a + g), v += dt (R a + g), R <- R exp(dt w) in the state x.

    w, a (3,): samples of the IMU less their biases, rad/s and m/s2; gravity, m/s2; work (27,).
    """
    ax, ay, az = rotate(x, a[0], a[1], a[2])
    az -= gravity
    half = 0.5 * dt * dt
    x[POSITION] += dt * x[VELOCITY] + half * ax
    x[POSITION + 1] += dt * x[VELOCITY + 1] + half * ay
    x[POSITION + 2] += dt * x[VELOCITY + 2] + half * az
    x[VELOCITY] += dt * ax
    x[VELOCITY + 1] += dt * ay
    x[VELOCITY + 2] += dt * az
    E = work[:9]
    _exponential(dt * w[0], dt * w[1], dt * w[2], E, work[9:18])
    for r in range(3):
        u0, u1, u2 = x[3 * r], x[3 * r + 1], x[3 * r + 2]
        for c in range(3):
            x[3 * r + c] = u0 * E[c] + u1 * E[3 + c] + u2 * E[6 + c]


@bare_kernel
def _orthonormalise(x, work):
    """R <- R (3 - R^T R) / 2: rounding does not grow."""
    for r in range(3):
        for c in range(3):
            total = x[r] * x[c] + x[3 + r] * x[3 + c] + x[6 + r] * x[6 + c]
            work[3 * r + c] = (1.5 if r == c else 0.0) - 0.5 * total
    for r in range(3):
        u0, u1, u2 = x[3 * r], x[3 * r + 1], x[3 * r + 2]
        for c in range(3):
            x[3 * r + c] = u0 * work[c] + u1 * work[3 + c] + u2 * work[6 + c]


@bare_kernel
def _correct(x, dx, work):
    """X <- exp(dx) X in the state x, biases += their part of dx; dx (n,) an error, work (27,)."""
    E, J = work[:9], work[9:18]
    _exponential(dx[0], dx[1], dx[2], E, J)
    for c in range(3):
        u0, u1, u2 = x[c], x[3 + c], x[6 + c]
        x[c], x[3 + c], x[6 + c] = rotate(E, u0, u1, u2)
    feet = _feet_in(x, dx.shape[0])
    for i in range(feet + 2):
        k = FEET + 3 * (i - 2) if i > 1 else VELOCITY + 3 * i
        e = E_FEET + 3 * (i - 2) if i > 1 else E_VELOCITY + 3 * i
        ux, uy, uz = rotate(E, x[k], x[k + 1], x[k + 2])
        jx, jy, jz = rotate(J, dx[e], dx[e + 1], dx[e + 2])
        x[k], x[k + 1], x[k + 2] = ux + jx, uy + jy, uz + jz
    for k in range(3):
        x[GYRO_BIAS + k] += dx[E_GYRO + k]
        x[ACCEL_BIAS + k] += dx[E_ACCEL + k]
    _orthonormalise(x, work[18:27])
    for i in range((dx.shape[0] - E_FEET) // 3 - feet):
        sole = x[FEET + 3 * feet + 9 * i : FEET + 3 * feet + 9 * (i + 1)]
        e = E_FEET + 3 * (feet + i)
        _exponential(dx[e], dx[e + 1], dx[e + 2], E, J)
        for c in range(3):
            sole[c], sole[3 + c], sole[6 + c] = rotate(E, sole[c], sole[3 + c], sole[6 + c])
        _orthonormalise(sole, work[18:27])


@bare_kernel
def _factorised(S, y, first, end):
    """Cholesky factor of S (m, m), lower, in place, and y (m,) <- C^-1 y, rows first to end; their |y|^2, or -1."""
    distance = 0.0
    for r in range(first, end):
        for c in range(r + 1):
            total = S[r, c]
            for k in range(c):
                total -= S[r, k] * S[c, k]
            if c < r:
                S[r, c] = total / S[c, c]
            elif total > 0.0:
                S[r, r] = np.sqrt(total)
            else:
                return -1.0
        for k in range(r):
            y[r] -= S[r, k] * y[k]
        y[r] /= S[r, r]
        distance += y[r] * y[r]
    return distance


@bare_kernel
def _update_rows(P, at, of, y, noise, gate, dx, scratch):
    """Kalman update by measurements y (m,) of e[at] - e[of], differences of two entries of the error.

        S = H P H^T + noise = C C^T,   dx += P H^T S^-1 (y - H dx),   P -= P H^T S^-1 H P

    Returns False, with dx and P unchanged, where three of them are implausible given the three before:
    |C^-1 (y - H dx)|^2 > gate. The feet of one step share the state they are linearised at, so dx (n,) gathers.

    Args:
        P, noise: (n, n), (m, m).  at, of: (m,) places in the error.
        scratch: at least m n + m m.
    """
    n, m = P.shape[0], y.shape[0]
    U, S = scratch[: m * n].reshape((m, n)), scratch[m * n : m * n + m * m].reshape((m, m))
    for r in range(m):
        plus, minus = P[at[r]], P[of[r]]
        for k in range(n):
            U[r, k] = plus[k] - minus[k]
        y[r] -= dx[at[r]] - dx[of[r]]
    for r in range(m):
        for c in range(m):
            S[r, c] = U[r, at[c]] - U[r, of[c]] + noise[r, c]
    for first in range(0, m, 3):
        if not 0.0 <= _factorised(S, y, first, first + 3) <= gate:
            return False
    for i in range(0, m, 3):
        y0, y1, y2 = y[i], y[i + 1], y[i + 2]
        for k in range(n):
            u0, u1, u2 = U[i, k], U[i + 1, k], U[i + 2, k]
            for c in range(i):
                u0 -= S[i, c] * U[c, k]
                u1 -= S[i + 1, c] * U[c, k]
                u2 -= S[i + 2, c] * U[c, k]
            u0 /= S[i, i]
            u1 = (u1 - S[i + 1, i] * u0) / S[i + 1, i + 1]
            u2 = (u2 - S[i + 2, i] * u0 - S[i + 2, i + 1] * u1) / S[i + 2, i + 2]
            U[i, k], U[i + 1, k], U[i + 2, k] = u0, u1, u2
            dx[k] += u0 * y0 + u1 * y1 + u2 * y2
        for r in range(n):
            u0, u1, u2 = U[i, r], U[i + 1, r], U[i + 2, r]
            row = P[r]
            for k in range(n):
                row[k] -= u0 * U[i, k] + u1 * U[i + 1, k] + u2 * U[i + 2, k]
    return True


@bare_kernel
def _use_level(i, x, P, facts, record, dx, scratch):
    """The centre of foot i, which touches down, is its radius above level ground, with variance F_GROUND, m^2.

    Kalman update with h = d_z, whose row H in the invariant error is e_d - (d x e_R)_z, after Hartley et al. (2020),
    section 7; with a variance beyond ``TELLS_TILT_M`` it lifts base and feet alone, for zeros of joints that are off
    would be a tilt: P <- P - K u^T - u K^T + S K K^T with u = P H^T for any gain K. x: state, P (n, n) covariance, dx
    (n,): corrections of all feet so far. Ground that turns out not to be level is known no longer: by heights, or as
    unlikely (`LEVEL_DOUBT`); see ``_doubt_tilt``.
    """
    n, at, d = P.shape[0], E_FEET + 3 * i + 2, FEET + 3 * i
    radius, variance = facts[F_FEET + 4 * i + 3], facts[F_GROUND]
    tells_tilt = variance <= TELLS_TILT_M**2
    lever_x, lever_y = x[d], x[d + 1]
    u, gain = scratch[:n], scratch[n : 2 * n]
    for k in range(n):  # of the height: xi_d - d x xi_R
        u[k] = P[at, k] + lever_y * P[0, k] - lever_x * P[1, k]
    known = u[at] + lever_y * u[0] - lever_x * u[1]
    S = known + variance
    y = record[O_LEVEL] + radius - x[d + 2] - (dx[at] + lever_y * dx[0] - lever_x * dx[1])
    held = record[O_HELD] + y * known / S
    off = abs(y) > LEVEL_M + 3.0 * np.sqrt(max(known, 0.0))
    if off or abs(held) > LEVEL_M + LEVEL_SLOPE * record[O_WALKED]:
        record[O_LEVEL] = np.nan
        if tells_tilt:
            _doubt_tilt(x, P, facts, False, dx, u)
        return
    for k in range(n):
        gain[k] = u[k] / S if tells_tilt else 0.0
    upwards = square = 0.0
    for k in range(3):
        bias = x[ACCEL_BIAS + k] + dx[E_ACCEL + k] + gain[E_ACCEL + k] * y
        upwards += bias * x[ROTATION + 6 + k]
        square += bias * bias
    record[O_DOUBT] = max(record[O_DOUBT] + y * y / S - 1.0, 0.0)
    likely = record[O_DOUBT] + (square - upwards * upwards) / facts[F_ACCEL_BIAS] <= LEVEL_DOUBT
    if tells_tilt and not likely:
        record[O_LEVEL] = np.nan
        _doubt_tilt(x, P, facts, True, dx, u)
        return
    record[O_HELD] = held
    for foot in range(-1, -1 if tells_tilt else _feet_in(x, n)):
        gain[E_POSITION + 2 if foot < 0 else E_FEET + 3 * foot + 2] = known / S
    for r in range(n):
        dx[r] += gain[r] * y
        for k in range(n):
            P[r, k] += S * gain[r] * gain[k] - gain[r] * u[k] - u[r] * gain[k]


@bare_kernel
def _doubt_tilt(x, P, facts, back, dx, turn):
    """Add to P the tilt, and the bias aside that looks like it, that standing still leaves unknown (F_ACCEL_BIAS).

        xi_R = e,   R db_a = g x e,   xi_p = xi_d = p x e,   xi_Z = e        for e = e_x, e_y

    about the IMU, which stays where it is: what level ground has told is forgotten. back: dx turns everything until the
    accelerometer has no bias aside, as at the start. Other arguments: see ``_use_level``; turn (n,): work.
    """
    n, gravity = P.shape[0], facts[F_GRAVITY]
    soles = E_FEET + 3 * _feet_in(x, n)
    for axis in range(2):
        across = 1 - axis
        pull = gravity if axis else -gravity  # g x e, along the other axis
        fill(turn, 0.0)
        for k in range(E_POSITION, n, 3):
            if k in (E_GYRO, E_ACCEL) or k >= soles:
                continue
            turn[k + 2] = x[POSITION] if axis else -x[POSITION + 1]
            turn[k + across] = -x[POSITION + 2] if axis else x[POSITION + 2]
        for k in range(soles, n, 3):
            turn[k + axis] = 1.0
        turn[axis] = 1.0
        bias = 0.0
        for k in range(3):
            turn[E_ACCEL + k] = pull * x[3 * across + k]
            bias += x[3 * across + k] * (x[ACCEL_BIAS + k] + dx[E_ACCEL + k])
        variance = facts[F_ACCEL_BIAS] / (gravity * gravity)
        for r in range(n):
            for c in range(n):
                P[r, c] += variance * turn[r] * turn[c]
            if back:
                dx[r] -= bias / pull * turn[r]


@bare_kernel
def _touch_down(P, at, of, noise, dx):
    """What stands begins where the leg has it: its errors e[at], (m,) places, are those of e[of], and the leg's noise.

    noise (m, m). Rows and columns in P (n, n) become those of the base, with the noise added. Source: Hartley et al.
    (2020), section 5.
    """
    n, m = P.shape[0], at.shape[0]
    for r in range(m):
        dx[at[r]] = dx[of[r]]
        for k in range(n):
            P[at[r], k] = P[of[r], k]
    for k in range(n):
        for r in range(m):
            P[k, at[r]] = P[k, of[r]]
    for r in range(m):
        for c in range(m):
            P[at[r], at[c]] += noise[r, c]


@bare_kernel
def _slips(P, facts, foot, dt, velocity, work):
    """Whether the foot moves over the ground, or leaves it, faster than velocities are uncertain.

        u^T (P_vv + s^2 / gate I)^-1 u > gate       u: its velocity, low-passed;  s: F_SLIP_SPEED, gate: F_GATE

    s is multiplied by RELEASE for a foot that does not stand yet; one that comes into contact counts with the velocity
    it has. velocity (3,), m/s: of the point that touches, odometry axes; foot: its record, see SLIP; work (12,).
    """
    share = 1.0 if foot[DOES] == AIR else dt / (dt + facts[F_SLIP_TIME])
    S, y = work[:9].reshape((3, 3)), work[9:12]
    for k in range(3):
        foot[SLIP + k] += share * (velocity[k] - foot[SLIP + k])
        y[k] = foot[SLIP + k]
    speed = facts[F_SLIP_SPEED] * (1.0 if foot[DOES] == STANDS else RELEASE)
    for r in range(3):
        for c in range(3):
            S[r, c] = P[E_VELOCITY + r, E_VELOCITY + c]
        S[r, r] += speed * speed / facts[F_GATE]
    return not 0.0 <= _factorised(S, y, 0, 3) <= facts[F_GATE]


@bare_kernel
def _foot_motion(i, x, w, motion, links, facts, foot, out):
    """Kinematics of foot i by the encoders, in odometry axes; its centre in base axes goes into foot[CENTRE].

        h = R (R_i c_i + p_i - o)                                       centre from the IMU, o = F_IMU_POSITION
        v + R (v_i + w_i x (R_i c_i + p_i) - w x o)                     velocity of the centre
        (R w_i) x r_i up                                                its velocity by rolling

    out (9,): h, m; velocity of the touching point, that of the centre less rolling, m/s; rolling, m/s.
    w (3,) rad/s: of the base; facts: see F_FEET; foot: its record.
    """
    link, at = links[i], F_FEET + 4 * i
    spin, radius = motion.v[link], facts[at + 3]
    hx, hy, hz = rotate(motion.R[link], facts[at], facts[at + 1], facts[at + 2])
    hx, hy, hz = hx + motion.p[link, 0], hy + motion.p[link, 1], hz + motion.p[link, 2]
    ux, uy, uz = cross(spin[3], spin[4], spin[5], hx, hy, hz)
    ux, uy, uz = ux + spin[0], uy + spin[1], uz + spin[2]
    # The base's origin moves around the IMU.
    ox, oy, oz = facts[F_IMU_POSITION], facts[F_IMU_POSITION + 1], facts[F_IMU_POSITION + 2]
    cx, cy, cz = cross(w[0], w[1], w[2], ox, oy, oz)
    foot[CENTRE], foot[CENTRE + 1], foot[CENTRE + 2] = hx - ox, hy - oy, hz - oz
    out[0], out[1], out[2] = rotate(x, hx - ox, hy - oy, hz - oz)
    ux, uy, uz = rotate(x, ux - cx, uy - cy, uz - cz)
    sx, sy, _ = rotate(x, spin[3], spin[4], spin[5])
    rolls = radius * facts[F_ROLLING]
    out[6], out[7], out[8] = rolls * sy, -rolls * sx, 0.0
    out[3] = x[VELOCITY] + ux - out[6]
    out[4] = x[VELOCITY + 1] + uy - out[7]
    out[5] = x[VELOCITY + 2] + uz


@bare_kernel
def _noise_of_leg(link, x, motion, tree, h, joint, foot, noise):
    """Covariance (m, m) of a foot by its encoders: joint, rad^2, of each joint and of the sole, foot, m^2, of the place.

    m = 6: the sole's rotation, rad, and then its place, m; m = 3: its place alone, and of the joints nothing. h (3,):
    place from the base's origin, base axes; the noise is in those of the odometry.
    """
    m = noise.shape[0]
    for r in range(m):
        for c in range(m):
            noise[r, c] = 0.0
        noise[r, r] = foot if r >= m - 3 else joint
    while m == 6 and link > 0:
        S, p = motion.S[link], motion.p[link]
        ax, ay, az = rotate(x, S[3], S[4], S[5])
        bx, by, bz = cross(S[3], S[4], S[5], h[0] - p[0], h[1] - p[1], h[2] - p[2])
        if tree.kind[link] == PRISMATIC:
            bx, by, bz = S[0], S[1], S[2]
        bx, by, bz = rotate(x, bx, by, bz)
        column = (ax, ay, az, bx, by, bz)
        for r in range(6):
            for c in range(6):
                noise[r, c] += joint * column[r] * column[c]
        link = tree.parent[link]


@bare_kernel
def _turn_of_sole(x, sole, turned, seen, y):
    """How a sole is turned by the encoders of its leg, against what the state holds: y = log(R M Z^T) (3,), rad.

    Rotations by rows, (9,): R, at the head of x, takes base axes to those of the odometry; turned: M, sole's to
    base axes by the encoders; sole: Z, sole's to odometry's axes in the state; seen receives R M. The angle must
    be below pi.
    """
    for r in range(3):
        for c in range(3):
            seen[3 * r + c] = (
                x[3 * r] * turned[c] + x[3 * r + 1] * turned[3 + c] + x[3 * r + 2] * turned[6 + c]
            )
    trace = 0.0
    for k in range(9):
        trace += seen[k] * sole[k]
    cosine = min(max(0.5 * (trace - 1.0), -1.0), 1.0)
    angle = np.arccos(cosine)
    share = 0.5 if angle < SMALL_ANGLE else 0.5 * angle / max(np.sin(angle), SMALL_ANGLE)
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        total = 0.0
        for j in range(3):
            total += seen[3 * b + j] * sole[3 * a + j] - seen[3 * a + j] * sole[3 * b + j]
        y[k] = share * total


@bare_kernel
def _rock(x, spin, dt, foot):
    """Write by how much a sole has turned of late about the horizontal axes, odometry's, into foot[ROCKS] (2,), rad.

    spin (6,): velocity of its link, m/s and rad/s, base axes.
    """
    rates = rotate(x, spin[3], spin[4], spin[5])
    stands = foot[DOES] == STANDS
    for k in range(2):
        foot[ROCKS + k] = (
            (foot[ROCKS + k] * (1.0 - dt / ROCKED_S) + dt * rates[k]) if stands else 0.0
        )


@bare_kernel
def _creep(x, P, facts, places, dt, foot, out):
    """Add to P the creep of a sole under its leg's motion: variances F_SOLE_TURN, F_SOLE_CREEP times s^2 dt.

    s: speed of the sole's centre relative to the IMU, m/s, from out, see ``_foot_motion``. They are those of its
    rotation about the vertical, places[2], and of its place along the ground, places[3:5]. While it rocks, see ``_rock``
    and ``HALF_SOLE``, the others and the place walk as well.
    """
    square = 0.0
    for k in range(3):
        square += (out[3 + k] + out[6 + k] - x[VELOCITY + k]) ** 2
    P[places[2], places[2]] += facts[F_SOLE_TURN] * square * dt
    for k in range(3, 5):
        P[places[k], places[k]] += facts[F_SOLE_CREEP] * square * dt
    rocks = foot[ROCKS] * foot[ROCKS] + foot[ROCKS + 1] * foot[ROCKS + 1] - ROCKED_RAD**2
    rocks = max(rocks, 0.0) / ROCKED_S**2 * ROCKS_S * dt
    reach = out[0] * out[0] + out[1] * out[1] + out[2] * out[2]
    for k in range(2):
        P[places[k], places[k]] += rocks
    for k in range(3, 6):
        P[places[k], places[k]] += HALF_SOLE**2 * reach * rocks


@bare_kernel
def _use_foot(i, x, P, facts, places, noise, turned, dt, foot, out, dx, scratch):
    """Touch-down, gates and update by one foot in contact; returns what it does then, STANDS or GATED.

    Measured are h_i and, of a sole, M_i of the module. A sole whose rotation is implausible is measured by its place
    alone, and gets a new rotation.

    Args:
        x, P: state and covariance; of x only the foot's entries change here.
        places: (12,) in the error, see ``step``.
        noise: (m, m) of the measurement, m = 6 for a sole, else 3.
        turned: (9,) rotation of its link in base axes, by the encoders.
        out: see ``_foot_motion``.
        dx: (n,) corrections of all feet so far, added to.
    """
    did, m = foot[DOES], noise.shape[0]
    at, of = places[6 - m : 6], places[12 - m :]
    if did == STANDS:
        for k in range(3):
            x[FEET + 3 * i + k] += dt * out[6 + k]
        if m == 6:
            _creep(x, P, facts, places, dt, foot, out)
    if _slips(P, facts, foot, dt, out[3:6], scratch):
        return GATED
    y, seen, rest = scratch[:m], scratch[6:15], scratch[15:]
    feet = _feet_in(x, P.shape[0])
    z = FEET + 3 * feet + 3 * max(places[0] - E_FEET - 3 * feet, 0)
    sole = x[z : z + 9]
    if m == 6:
        _turn_of_sole(x, sole, turned, seen, y)
    for r in range(3):
        y[m - 3 + r] = out[r] - (x[FEET + 3 * i + r] - x[POSITION + r])
    new = did != STANDS
    if not new:
        believed = _update_rows(P, at, of, y, noise, facts[F_GATE], dx, rest)
        if m == 6 and not believed:
            # The sole has turned, or is not where the joints' noise would have it: its place alone, and a new rotation.
            for r in range(3):
                y[r] = out[r] - (x[FEET + 3 * i + r] - x[POSITION + r])
            believed = new = _update_rows(
                P, at[3:], of[3:], y[:3], noise[3:, 3:], facts[F_GATE], dx, rest
            )
            at, of, noise = at[:3], of[:3], noise[:3, :3]
        if not believed:
            return GATED
    if new and m == 6:
        for k in range(9):
            sole[k] = seen[k]
    if did != STANDS:
        for k in range(3):
            x[FEET + 3 * i + k] = x[POSITION + k] + out[k]
    if new:
        _touch_down(P, at, of, noise, dx)
    return STANDS


@bare_kernel
def _noise_of(i, x, facts, link, motion, tree, probability, dt, skew, foot, out, noise):
    """Write the covariance (m, m) of the leg's measurement of foot i, see ``_noise_of_leg``; m = 6 for a sole, else 3.

        variance of the place = F_FOOT (SHORT_S / time in contact, at least 1)^2 / probability^2 + (skew s)^2

    probability: that the foot touches. skew: s, between the stamps of joints and IMU, in which the foot moves at speed
    s against the IMU. out (12,): see ``_foot_motion``; its last three are overwritten.
    """
    stood_s = dt + foot[SINCE if foot[DOES] == STANDS else KEPT_S]
    unsettled = SHORT_S / stood_s if 0.0 < stood_s < SHORT_S else 1.0
    variance = facts[F_FOOT] * (unsettled / probability) ** 2
    for k in range(3):
        moved = skew * (out[3 + k] + out[6 + k] - x[VELOCITY + k])
        variance += moved * moved
    out[9] = foot[CENTRE] + facts[F_IMU_POSITION]
    out[10] = foot[CENTRE + 1] + facts[F_IMU_POSITION + 1]
    out[11] = foot[CENTRE + 2] + facts[F_IMU_POSITION + 2]
    _noise_of_leg(link, x, motion, tree, out[9:12], facts[F_JOINT], variance, noise)


@bare_kernel
def _use_feet(x, P, w, motion, tree, links, places, facts, contacts, inputs, record, scratch):
    """Update by all feet, one after the other, and correct the state once at the end.

    Returns for how long, s, no foot has been believed while a refused one has kept its velocity (``_kept_for``); soles,
    which rock, do not count. Arguments: see ``step``; w (3,) rad/s, base axes.
    """
    n, dt, skew = P.shape[0], inputs[I_DT], inputs[I_SKEW]
    dx, out, work = scratch[:n], scratch[n : n + 12], scratch[n + 12 : n + 39]
    noises, rest = scratch[n + 39 : n + 75], scratch[n + 75 :]
    fill(dx, 0.0)
    used, believed, slipping, touches, kept_s = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(links.shape[0]):
        foot = record[O_FEET + FOOT_RECORD * i : O_FEET + FOOT_RECORD * (i + 1)]
        _foot_motion(i, x, w, motion, links, facts, foot, out)
        if places[i, 0] >= 0:
            _rock(x, motion.v[links[i]], dt, foot)
        did, does = foot[DOES], AIR
        stood_s = foot[SINCE] if did == STANDS else 0.0
        if contacts[i] > CONTACT:
            m, link = 3 if places[i, 0] < 0 else 6, links[i]
            noise = noises[: m * m].reshape((m, m))
            probability = min(contacts[i], 1.0)
            _noise_of(i, x, facts, link, motion, tree, probability, dt, skew, foot, out, noise)
            turned = motion.R[link]
            does = _use_foot(i, x, P, facts, places[i], noise, turned, dt, foot, out, dx, rest)
        if does == GATED:
            same_s = _kept_for(facts, foot, did == GATED, out[3:6], dt)
            # A sole that stands rocks, and changes its velocity.
            kept_s = max(kept_s, same_s if places[i, 0] < 0 else np.inf)
        foot[DOES] = does
        foot[SINCE] = foot[SINCE] + dt if does == did else 0.0
        used += does == STANDS
        believed += does == STANDS and did == STANDS
        touches += does != AIR
        if does != GATED:
            foot[SINCE] = foot[KEPT_S] if did == GATED else foot[SINCE]
            foot[KEPT_S] = 0.0
        settled = does == STANDS and stood_s < SHORT_S <= foot[SINCE]
        if settled and abs(record[O_LEVEL]) < np.inf:
            _use_level(i, x, P, facts, record, dx, rest)
        slipping += does == GATED and foot[SINCE] > SHORT_S
    for k in range(3):
        out[k] = x[VELOCITY + k]
    _correct(x, dx, work)
    # Velocities of the feet were computed with the velocity before its correction.
    for i in range(links.shape[0]):
        foot = record[O_FEET + FOOT_RECORD * i : O_FEET + FOOT_RECORD * (i + 1)]
        for k in range(3):
            foot[SLIP + k] += x[VELOCITY + k] - out[k]
            foot[KEEPS + k] += x[VELOCITY + k] - out[k]
    record[O_USED], record[O_SLIPPING] = used, slipping
    record[O_WITHOUT_FEET] = 0.0 if used else record[O_WITHOUT_FEET] + dt
    if believed or not touches:
        record[O_REFUSED_S] = 0.0
    elif record[O_REFUSED_S] > 0.0 or not used:
        record[O_REFUSED_S] += dt
    return min(kept_s, record[O_REFUSED_S])


@bare_kernel
def _kept_for(facts, foot, refused, velocity, dt):
    """For how long, s, a foot that is refused has had the velocity (3,) that it has now.

    That of a foot that stands is the error of the base's, which keeps. One that slides, bounces or is still in the air
    changes its own.  refused: whether it was in the last period.
    """
    square = 0.0
    for k in range(3):
        square += (velocity[k] - foot[KEEPS + k]) ** 2
    foot[KEPT_S] += dt
    if not refused or square > facts[F_SLIP_SPEED] ** 2:
        foot[KEPT_S] = 0.0
        for k in range(3):
            foot[KEEPS + k] = velocity[k]
    return foot[KEPT_S]


@bare_kernel
def _doubt_velocity(P, dt, kept_s):
    """Raise the velocity's variance in P by A^2 (kept_s^2 - (kept_s - dt)^2), A = UNTRUE_M_S2.

    While feet touch, none is believed and one keeps its velocity for ``kept_s``, s, the base's velocity may be what is
    wrong. Without this a robot that walks would integrate its IMU alone, trust that more than its feet, and drift away.
    """
    before_s = max(kept_s - dt, 0.0)
    for k in range(3):
        P[E_VELOCITY + k, E_VELOCITY + k] += UNTRUE_M_S2**2 * (kept_s**2 - before_s**2)


@bare_kernel
def _report(x, w, a, facts, record):
    """Write the base's pose in the odometry frame, its twist and proper acceleration in its own axes, into the record.

        p - R o,   R^T v - w x o         o = F_IMU_POSITION

    w rad/s, a m/s2 (3,): of the IMU, less biases, base axes.
    """
    ox, oy, oz = facts[F_IMU_POSITION], facts[F_IMU_POSITION + 1], facts[F_IMU_POSITION + 2]
    px, py, pz = rotate(x, ox, oy, oz)
    record[O_POSITION] = x[POSITION] - px
    record[O_POSITION + 1] = x[POSITION + 1] - py
    record[O_POSITION + 2] = x[POSITION + 2] - pz
    cx, cy, cz = cross(w[0], w[1], w[2], ox, oy, oz)
    vx, vy, vz = x[VELOCITY], x[VELOCITY + 1], x[VELOCITY + 2]
    record[O_VELOCITY] = x[0] * vx + x[3] * vy + x[6] * vz - cx
    record[O_VELOCITY + 1] = x[1] * vx + x[4] * vy + x[7] * vz - cy
    record[O_VELOCITY + 2] = x[2] * vx + x[5] * vy + x[8] * vz - cz
    for k in range(9):
        record[O_ROTATION + k] = x[k]
    for k in range(3):
        record[O_ANGULAR + k] = w[k]
        record[O_ACCELERATION + k] = a[k]


@bare_kernel
def _judge(x, P, a, facts, dt, record):
    """Judge the estimate: returns SOUND, UNSOUND, TURNED, LARGE_GYRO_BIAS or LARGE_ACCEL_BIAS.

    UNSOUND is not finite, or huge; TURNED where the mean of R a + g, over MEAN_S, is not about zero.
    a (3,) m/s2: of the IMU, less bias.
    """
    good = True
    for k in range(x.shape[0]):
        good = good and abs(x[k]) < LARGEST
    for k in range(P.shape[0]):
        good = good and 0.0 < P[k, k] < LARGEST
    if not good:
        return UNSOUND
    fx, fy, fz = rotate(x, a[0], a[1], a[2])
    share, mean = dt / (dt + MEAN_S), record[O_MEAN : O_MEAN + 3]
    mean[0] += share * (fx - mean[0])
    mean[1] += share * (fy - mean[1])
    mean[2] += share * (fz - facts[F_GRAVITY] - mean[2])
    if _size(mean) > facts[F_LARGEST_MEAN]:
        return TURNED
    if _size(x[GYRO_BIAS : GYRO_BIAS + 3]) > facts[F_LARGEST_GYRO_BIAS]:
        return LARGE_GYRO_BIAS
    if _size(x[ACCEL_BIAS : ACCEL_BIAS + 3]) > facts[F_LARGEST_ACCEL_BIAS]:
        return LARGE_ACCEL_BIAS
    return SOUND


@bare_kernel
def _size(a):
    """Length of a vector (3,)."""
    return np.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@kernel
def step(integers, numbers, links, places, facts, x, P, inputs, record, buffer):
    """Predict with one IMU sample over dt, then correct by the feet; returns an outcome of ``_judge``.

    Args:
        integers, numbers: a mechanism's.  links (feet,): that carry the feet.
        places (feet, 12): in the error, of the foot's rotation and place, then of what they are measured from; the
            rotation's are -1 of a foot that is a sphere.
        facts (32 + 4 feet,), x (21 + 3 feet + 9 soles,), P (n, n) with n = 15 + 3 feet + 3 soles, record (39 + 12 feet,),
        inputs (10 + nq + nv + feet,): see the places above.
        buffer: work space, see ``buffer_size``.
    """
    n, feet = integers.shape[1], links.shape[0]
    tree, motion = unpack_tree(integers, numbers), unpack_motion(buffer, n)
    rest = buffer[MOTION_WIDTH * n :]
    w, a, work, zeros = rest[:3], rest[3:6], rest[6:33], rest[33 : 39 + n]
    scratch = rest[39 + n :]
    dt, noise = inputs[I_DT], inputs[I_NOISE]
    imu = facts[F_IMU_ROTATION : F_IMU_ROTATION + 9]
    w[0], w[1], w[2] = rotate(imu, inputs[I_GYRO], inputs[I_GYRO + 1], inputs[I_GYRO + 2])
    a[0], a[1], a[2] = rotate(imu, inputs[I_ACCEL], inputs[I_ACCEL + 1], inputs[I_ACCEL + 2])
    for k in range(3):
        w[k] -= x[GYRO_BIAS + k]
        a[k] -= x[ACCEL_BIAS + k]
    contacts_at = inputs.shape[0] - feet
    nv = n + 5
    q = inputs[INPUTS : contacts_at - nv]
    v = inputs[contacts_at - nv : contacts_at]
    propagate(tree, q, v, w, zeros[:6], zeros, motion, work)
    if dt > 0.0:
        felt = inputs[I_GYRO : I_GYRO + 6]
        gyro = noise * facts[F_GYRO] * dt
        gyro += _between_samples(
            felt[:3],
            dt,
            VIBRATION,
            record[O_SAMPLE + 3 : O_LEVEL],
            record[O_REPEATS : O_REPEATS + 1],
        )
        accel = noise * facts[F_ACCEL] * dt
        accel += _between_samples(
            felt[3:],
            dt,
            ONE_CHANGE,
            record[O_SAMPLE : O_SAMPLE + 3],
            record[O_REPEATS + 1 : O_REPEATS + 2],
        )
        _predict_covariance(x, P, facts, dt, gyro, accel, scratch)
        _predict_state(x, w, a, dt, facts[F_GRAVITY], work)
        record[O_WALKED] += dt * np.sqrt(x[VELOCITY] ** 2 + x[VELOCITY + 1] ** 2)
    contacts = inputs[contacts_at:]
    kept_s = _use_feet(
        x, P, w, motion, tree, links, places, facts, contacts, inputs, record, scratch
    )
    if not inputs[I_DISPUTED]:
        _doubt_velocity(P, dt, kept_s)
    _report(x, w, a, facts, record)
    return _judge(x, P, a, facts, dt, record)
