"""Spatial motion of links, and of points that move with them, in the world frame."""

from __future__ import annotations

import math

from contact_id_controller.kernels.compile import bare_kernel

ROUNDING = 1e-12
"""Share of the trace of a 3 x 3 matrix of squares that is far above its rounding."""


@bare_kernel
def tangents(normal, frame):
    """Complete a unit normal (3,) to a right-handed frame with rows normal, tangent 1, tangent 2.

    The construction (Duff et al. 2017) is continuous everywhere but at normal z = -1.
    """
    x, y, z = normal[0], normal[1], normal[2]
    sign = 1.0 if z >= 0.0 else -1.0
    a = -1.0 / (sign + z)
    b = x * y * a
    frame[0, 0], frame[0, 1], frame[0, 2] = x, y, z
    frame[1, 0], frame[1, 1], frame[1, 2] = 1.0 + sign * x * x * a, sign * b, -sign * x
    frame[2, 0], frame[2, 1], frame[2, 2] = b, sign + y * y * a, -y


@bare_kernel
def point_column(J, k, point):
    """Column k of the Jacobian of the velocity of a point (3,): J_v + J_w x point, world axes.

    J (6, nv): at the world's origin, linear part first. The caller knows whether coordinate k moves the point's link.
    """
    x, y, z = point[0], point[1], point[2]
    return (
        J[0, k] + J[4, k] * z - J[5, k] * y,
        J[1, k] + J[5, k] * x - J[3, k] * z,
        J[2, k] + J[3, k] * y - J[4, k] * x,
    )


@bare_kernel
def middle_of(points, first, last, middle):
    """Middle (3,) of points first to last - 1 of (n, 3); root mean square of their distances from it."""
    for d in range(3):
        middle[d] = 0.0
    for i in range(first, last):
        for d in range(3):
            middle[d] += points[i, d] / (last - first)
    square = 0.0
    for i in range(first, last):
        for d in range(3):
            square += (points[i, d] - middle[d]) ** 2 / (last - first)
    return math.sqrt(square)


@bare_kernel
def link_motion(J, v, supports, coordinate_joint, twist, drift):
    """World-frame spatial velocity and zero-acceleration spatial acceleration of every link.

    J (6, nv) holds the joints' motion axes in the world at its origin; twist, drift (njoints, 6).
    The axes turn with their own link: d/dt J_k = twist(link of k) x J_k.
    """
    joints, nv = supports.shape
    begin = 0
    for j in range(joints):
        end = begin
        while end < nv and coordinate_joint[end] == j:
            end += 1
        # A link moves as what carries it, and by its own coordinates; what carries it has smaller numbers.
        carrier = begin - 1
        while carrier >= 0 and not supports[j, carrier]:
            carrier -= 1
        t, d = twist[j], drift[j]
        for r in range(6):
            t[r] = twist[coordinate_joint[carrier], r] if carrier >= 0 else 0.0
            d[r] = drift[coordinate_joint[carrier], r] if carrier >= 0 else 0.0
            for k in range(begin, end):
                t[r] += J[r, k] * v[k]
        for k in range(begin, end):
            lx, ly, lz = J[0, k] * v[k], J[1, k] * v[k], J[2, k] * v[k]
            wx, wy, wz = J[3, k] * v[k], J[4, k] * v[k], J[5, k] * v[k]
            d[0] += t[4] * lz - t[5] * ly + t[1] * wz - t[2] * wy
            d[1] += t[5] * lx - t[3] * lz + t[2] * wx - t[0] * wz
            d[2] += t[3] * ly - t[4] * lx + t[0] * wy - t[1] * wx
            d[3] += t[4] * wz - t[5] * wy
            d[4] += t[5] * wx - t[3] * wz
            d[5] += t[3] * wy - t[4] * wx
        begin = end


@bare_kernel
def point_velocity(twist, point, out):
    """Velocity (3,) of a world point moving with a spatial velocity (6,) at the world origin."""
    out[0] = twist[0] + twist[4] * point[2] - twist[5] * point[1]
    out[1] = twist[1] + twist[5] * point[0] - twist[3] * point[2]
    out[2] = twist[2] + twist[3] * point[1] - twist[4] * point[0]


@bare_kernel
def point_acceleration(twist, drift, point, out, work):
    """Classical acceleration (3,) of a material point: a + alpha x r + omega x (v + omega x r)."""
    point_velocity(drift, point, out)
    point_velocity(twist, point, work)
    out[0] += twist[4] * work[2] - twist[5] * work[1]
    out[1] += twist[5] * work[0] - twist[3] * work[2]
    out[2] += twist[3] * work[1] - twist[4] * work[0]


FIT = 16
"""Numbers of each pair of bodies in ``make_rigid``: contacts that touch, their middle, mean drift, S (6), b (3)."""


@bare_kernel
def make_rigid(pair, points, gaps, touching_m, drifts, fits):
    """Replace drifts Jdot v of contacts of the same two bodies by the nearest ones that a rigid motion has.

    The drift of a point is affine in its place, and a motion of the bodies removes of it a + alpha x r alone; what
    is left, as omega x (omega x r) in the plane of a sole's corners, would contradict contacts that hold (a sole that
    turns by .1 rad/s: 1 µm/s in a period), and single ones get all force. Minimises sum |a + alpha x r - drift|^2, r
    from the middle of those that touch: a is their mean, S alpha = b. One that touches alone keeps its own.

    Args:
        pair (n,): of each contact.  points (n, 3), m.  gaps (n,), m; those of at most ``touching_m`` touch.
        drifts (n, 3): m/s2, changed.  fits (pairs, FIT): memory.
    """
    several = False
    for p in range(fits.shape[0]):
        for k in range(FIT):
            fits[p, k] = 0.0
    for i in range(points.shape[0]):
        if gaps[i] <= touching_m:
            fit = fits[pair[i]]
            fit[0] += 1.0
            several = several or fit[0] > 1.0
            for d in range(3):
                fit[1 + d] += points[i, d]
                fit[4 + d] += drifts[i, d]
    if not several:
        return
    for p in range(fits.shape[0]):
        for k in range(1, 7):
            fits[p, k] /= max(fits[p, 0], 1.0)
    for i in range(points.shape[0]):
        if gaps[i] <= touching_m:
            fit = fits[pair[i]]
            x, y, z = points[i, 0] - fit[1], points[i, 1] - fit[2], points[i, 2] - fit[3]
            u, v, w = drifts[i, 0] - fit[4], drifts[i, 1] - fit[5], drifts[i, 2] - fit[6]
            fit[7] += y * y + z * z
            fit[8] -= x * y
            fit[9] += x * x + z * z
            fit[10] -= x * z
            fit[11] -= y * z
            fit[12] += x * x + y * y
            fit[13] += y * w - z * v
            fit[14] += z * u - x * w
            fit[15] += x * v - y * u
    for p in range(fits.shape[0]):
        if fits[p, 0] > 1.0:
            _turn(fits[p])
    for i in range(points.shape[0]):
        fit = fits[pair[i]]
        if gaps[i] <= touching_m and fit[0] > 1.0:
            x, y, z = points[i, 0] - fit[1], points[i, 1] - fit[2], points[i, 2] - fit[3]
            drifts[i, 0] = fit[4] + fit[14] * z - fit[15] * y
            drifts[i, 1] = fit[5] + fit[15] * x - fit[13] * z
            drifts[i, 2] = fit[6] + fit[13] * y - fit[14] * x


@bare_kernel
def _turn(fit):
    """Solve S alpha = b of ``make_rigid`` in the place of b, by Cholesky's method.

    About the line on which all contacts lie nothing is known: S is raised by its rounding, and alpha is 0 there.
    """
    raised = ROUNDING * (fit[7] + fit[9] + fit[12])
    if raised == 0.0:
        fit[13] = fit[14] = fit[15] = 0.0
        return
    l00 = math.sqrt(fit[7] + raised)
    l10, l20 = fit[8] / l00, fit[10] / l00
    l11 = math.sqrt(fit[9] + raised - l10 * l10)
    l21 = (fit[11] - l20 * l10) / l11
    l22 = math.sqrt(fit[12] + raised - l20 * l20 - l21 * l21)
    y0 = fit[13] / l00
    y1 = (fit[14] - l10 * y0) / l11
    fit[15] = (fit[15] - l20 * y0 - l21 * y1) / (l22 * l22)
    fit[14] = (y1 - l21 * fit[15]) / l11
    fit[13] = (y0 - l10 * fit[14] - l20 * fit[15]) / l00
