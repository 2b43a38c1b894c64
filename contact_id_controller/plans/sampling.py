"""Plans at one time, compiled: what a controller asks a thousand times a second."""

from __future__ import annotations

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.plans.rotations import body_motion, exponential, multiply, rotate

BASE_NUMBERS = 19
"""Of a base's motion: position, quaternion xyzw, velocities and accelerations, linear before angular."""


@bare_kernel
def _polynomial(coefficients, column, u, rate):
    """Value and first two time derivatives of one column's polynomial (degree + 1, j) at u."""
    value = slope = bend = 0.0
    for k in range(coefficients.shape[0] - 1, -1, -1):
        bend = bend * u + slope
        slope = slope * u + value
        value = value * u + coefficients[k, column]
    return value, slope * rate, 2.0 * bend * rate * rate


@bare_kernel
def sample_polynomials(coefficients, u, rate, out):
    """Position, velocity, acceleration (3, j) on a segment of ``interpolation``.

    coefficients (degree + 1, j); u in [0, 1]; rate is 1 / h of the segment, 1/s.
    """
    for j in range(out.shape[1]):
        out[0, j], out[1, j], out[2, j] = _polynomial(coefficients, j, u, rate)


@bare_kernel
def sample_base(coefficients, attitude, u, rate, out):
    """Motion of a base (``BASE_NUMBERS``,), world frame, on a segment that begins at an attitude (4,).

    coefficients (4, 6): of the position and of the rotation vector from that attitude on.
    """
    for d in range(3):
        out[d], out[7 + d], out[13 + d] = _polynomial(coefficients, d, u, rate)
    x, x_rate, x_rate2 = _polynomial(coefficients, 3, u, rate)
    y, y_rate, y_rate2 = _polynomial(coefficients, 4, u, rate)
    z, z_rate, z_rate2 = _polynomial(coefficients, 5, u, rate)
    phi = (x, y, z)
    spin, spin_rate = body_motion(phi, (x_rate, y_rate, z_rate), (x_rate2, y_rate2, z_rate2))
    start = (attitude[0], attitude[1], attitude[2], attitude[3])
    turn = multiply(start, exponential(phi))
    out[3], out[4], out[5], out[6] = turn
    out[10], out[11], out[12] = rotate(turn, spin)
    out[16], out[17], out[18] = rotate(turn, spin_rate)
