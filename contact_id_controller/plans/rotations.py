"""Rotations as quaternions (x, y, z, w) and rotation vectors.

Functions take one rotation in plain floats: for three numbers, Python is several times faster than
numpy; compiled functions call them too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from numba.extending import register_jitable

Vector = Sequence[float]

_SMALL_ANGLE = 1e-2
"""Below this angle, rad, series replace the quotients that would lose digits."""


@register_jitable
def cross(a: Vector, b: Vector) -> tuple[float, float, float]:
    """Vector product a x b of two vectors (3,), as a tuple."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@register_jitable
def multiply(p: Vector, q: Vector) -> tuple[float, float, float, float]:
    """Quaternion product, (x, y, z, w): first q, then p."""
    return (
        p[3] * q[0] + p[0] * q[3] + p[1] * q[2] - p[2] * q[1],
        p[3] * q[1] - p[0] * q[2] + p[1] * q[3] + p[2] * q[0],
        p[3] * q[2] + p[0] * q[1] - p[1] * q[0] + p[2] * q[3],
        p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2],
    )


@register_jitable
def conjugate(q: Vector) -> tuple[float, float, float, float]:
    """The inverse of a unit quaternion (x, y, z, w)."""
    return (-q[0], -q[1], -q[2], q[3])


@register_jitable
def rotate(q: Vector, a: Vector) -> tuple[float, float, float]:
    """The vector a (3,) turned by the unit quaternion q (x, y, z, w)."""
    t = cross(q, a)
    s = cross(q, t)
    return (
        a[0] + 2.0 * (q[3] * t[0] + s[0]),
        a[1] + 2.0 * (q[3] * t[1] + s[1]),
        a[2] + 2.0 * (q[3] * t[2] + s[2]),
    )


@register_jitable
def exponential(phi: Vector) -> tuple[float, float, float, float]:
    """Unit quaternion (x, y, z, w) of the rotation vector phi (3,), rad."""
    angle = math.sqrt(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2])
    scale = math.sin(angle / 2) / angle if angle > 1e-9 else 0.5
    return (scale * phi[0], scale * phi[1], scale * phi[2], math.cos(angle / 2))


@register_jitable
def logarithm(q: Vector) -> tuple[float, float, float]:
    """Rotation vector (3,), rad, of a unit quaternion (x, y, z, w); its angle is in [0, pi]."""
    sine = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2])
    scale = 2.0 * math.atan2(sine, abs(q[3])) / sine if sine > 1e-12 else 2.0
    if q[3] < 0.0:
        scale = -scale
    return (scale * q[0], scale * q[1], scale * q[2])


@register_jitable
def vector_rate(phi: Vector, velocity: Vector) -> tuple[float, float, float]:
    """Time derivative of a rotation vector phi.

    `velocity`: angular velocity in the turning frame; the result is J^-1 velocity with the right
    Jacobian J of `body_motion`.
    """
    angle2 = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    if angle2 < _SMALL_ANGLE**2:
        factor = 1.0 / 12.0 + angle2 / 720.0
    else:
        angle = math.sqrt(angle2)
        factor = (1.0 - 0.5 * angle * math.sin(angle) / (1.0 - math.cos(angle))) / angle2
    c = cross(phi, velocity)
    d = cross(phi, c)
    return (
        velocity[0] + 0.5 * c[0] + factor * d[0],
        velocity[1] + 0.5 * c[1] + factor * d[1],
        velocity[2] + 0.5 * c[2] + factor * d[2],
    )


@register_jitable
def body_motion(phi: Vector, rate: Vector, rate2: Vector) -> tuple[Vector, Vector]:
    """Angular velocity and acceleration, in the turning frame, of the motion exp(phi(t)).

    `rate`, `rate2`: first and second time derivatives of phi. With the right Jacobian of the
    rotation group, J = I - a [phi] + b [phi]^2, a = (1 - cos t) / t^2, b = (t - sin t) / t^3:
    velocity = J rate; acceleration = J rate2 + dJ/dt rate.
    """
    a, b, da, db = _jacobian_factors(phi, rate)
    c, d = cross(phi, rate), cross(phi, rate2)
    phi_c, phi_d, rate_c = cross(phi, c), cross(phi, d), cross(rate, c)
    velocity = (
        rate[0] - a * c[0] + b * phi_c[0],
        rate[1] - a * c[1] + b * phi_c[1],
        rate[2] - a * c[2] + b * phi_c[2],
    )
    acceleration = (
        rate2[0] - a * d[0] + b * (phi_d[0] + rate_c[0]) - da * c[0] + db * phi_c[0],
        rate2[1] - a * d[1] + b * (phi_d[1] + rate_c[1]) - da * c[1] + db * phi_c[1],
        rate2[2] - a * d[2] + b * (phi_d[2] + rate_c[2]) - da * c[2] + db * phi_c[2],
    )
    return velocity, acceleration


@register_jitable
def _jacobian_factors(phi: Vector, rate: Vector) -> tuple[float, float, float, float]:
    """a, b of `body_motion` and their time derivatives."""
    angle2 = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    growth = phi[0] * rate[0] + phi[1] * rate[1] + phi[2] * rate[2]  # angle times its rate
    if angle2 < _SMALL_ANGLE**2:
        return (
            0.5 - angle2 / 24.0,
            1.0 / 6.0 - angle2 / 120.0,
            growth * (-1.0 / 12.0 + angle2 / 180.0),
            growth * (-1.0 / 60.0 + angle2 / 1260.0),
        )
    angle = math.sqrt(angle2)
    sine, cosine = math.sin(angle), math.cos(angle)
    a = (1.0 - cosine) / angle2
    b = (angle - sine) / (angle2 * angle)
    da = growth * (sine / angle - 2.0 * a) / angle2
    db = growth * ((1.0 - cosine) / angle2 - 3.0 * b) / angle2
    return a, b, da, db
