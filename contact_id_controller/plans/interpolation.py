"""Piecewise polynomials through given points, evaluated fast enough for a 1 kHz loop.

A segment between two points is a polynomial of degree 1, 3 or 5 in u = (t - t_k) / h_k in [0, 1]:
degree 1 passes through the positions, degree 3 also has the velocities of both ends (cubic
Hermite), degree 5 also their accelerations (quintic Hermite). Coefficients are computed once, by
compiled code: a controller takes plans between two of its steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.plans.rotations import (
    conjugate,
    logarithm,
    multiply,
    rotate,
    vector_rate,
)


def segment_coefficients(
    times_s: np.ndarray,
    positions: np.ndarray,
    velocities: np.ndarray | None = None,
    accelerations: np.ndarray | None = None,
) -> np.ndarray:
    """Coefficients of all segments in powers of u, lowest first.

    Shapes: times (p,), the others (p, j); result (p - 1, degree + 1, j).
    """
    degree = 1 if velocities is None else 3 if accelerations is None else 5
    velocities = positions if velocities is None else velocities
    accelerations = positions if accelerations is None else accelerations
    out = np.empty((max(len(times_s) - 1, 0), degree + 1, positions.shape[1]))
    _fill_segments(times_s, positions, velocities, accelerations, out)
    return out


def base_coefficients(
    times_s: np.ndarray,
    positions: np.ndarray,
    quaternions_xyzw: np.ndarray,
    linear_velocities: np.ndarray,
    angular_velocities: np.ndarray,
) -> np.ndarray:
    """Coefficients (p - 1, 4, 6) of a base's segments in powers of u, lowest first: of its position, m, then of phi, rad.

    u: time since the segment's start, as a share of its length. phi: rotation vector from the attitude at the segment's
    start, in the base's frame there; its rates at both ends are those of the angular velocities.

    Args:
        times_s (p,).  positions (p, 3) m, linear_velocities (p, 3) m/s, angular_velocities (p, 3) rad/s: world frame.
        quaternions_xyzw (p, 4): base to world.
    """
    out = np.empty((max(len(times_s) - 1, 0), 4, 6))
    _fill_base_segments(
        times_s, positions, quaternions_xyzw, linear_velocities, angular_velocities, out
    )
    return out


@bare_kernel
def _fill_cubic(out, column, start, change, v0, v1):
    """Hermite coefficients (4, j) of a column from start value, change and end slopes in u."""
    out[0, column], out[1, column] = start, v0
    out[2, column], out[3, column] = 3.0 * change - 2.0 * v0 - v1, v0 + v1 - 2.0 * change


@bare_kernel
def quintic(change, v0, v1, a0, a1):
    """Hermite coefficients of u^3, u^4, u^5 from change, first and second derivatives in u at the ends."""
    return (
        10.0 * change - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1,
        -15.0 * change + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1,
        6.0 * change - 3.0 * (v0 + v1) + 0.5 * (a1 - a0),
    )


@bare_kernel
def _fill_segments(times_s, positions, velocities, accelerations, out):
    """``segment_coefficients`` into out (p - 1, degree + 1, j), of points at times_s (p,); see there.

    positions, velocities, accelerations (p, j): those that the degree does not use are ignored.
    """
    degree = out.shape[1] - 1
    for k in range(out.shape[0]):
        step = times_s[k + 1] - times_s[k]
        for j in range(out.shape[2]):
            start = positions[k, j]
            change = positions[k + 1, j] - start
            if degree == 1:
                out[k, 0, j], out[k, 1, j] = start, change
                continue
            # Derivatives with respect to u instead of t.
            v0, v1 = velocities[k, j] * step, velocities[k + 1, j] * step
            if degree == 3:
                _fill_cubic(out[k], j, start, change, v0, v1)
                continue
            a0, a1 = accelerations[k, j] * step * step, accelerations[k + 1, j] * step * step
            out[k, 0, j], out[k, 1, j], out[k, 2, j] = start, v0, 0.5 * a0
            out[k, 3, j], out[k, 4, j], out[k, 5, j] = quintic(change, v0, v1, a0, a1)


@bare_kernel
def _fill_base_segments(times_s, positions, quaternions, linear, angular, out):
    """``base_coefficients`` into out (p - 1, 4, 6), of points at times_s (p,); arguments as there."""
    for k in range(out.shape[0]):
        step = times_s[k + 1] - times_s[k]
        for d in range(3):
            v0, v1 = linear[k, d] * step, linear[k + 1, d] * step
            start = positions[k, d]
            _fill_cubic(out[k], d, start, positions[k + 1, d] - start, v0, v1)
        back = conjugate(_four(quaternions[k]))
        end_back = conjugate(_four(quaternions[k + 1]))
        phi = logarithm(multiply(back, conjugate(end_back)))
        rate = rotate(back, _three(angular[k]))
        end_rate = vector_rate(phi, rotate(end_back, _three(angular[k + 1])))
        for d in range(3):  # every segment has its own phi, which starts at 0
            _fill_cubic(out[k], 3 + d, 0.0, phi[d], rate[d] * step, end_rate[d] * step)


@bare_kernel
def _three(row):
    """The first three entries of a row, as a tuple."""
    return row[0], row[1], row[2]


@bare_kernel
def _four(row):
    """The first four entries of a row, as a tuple."""
    return row[0], row[1], row[2], row[3]


@bare_kernel
def polynomial(coefficients, column, u, rate):
    """Value and first two time derivatives of sum_k coefficients[k, column] u^k (Horner); rate: du/dt, 1/s."""
    value = slope = bend = 0.0
    for k in range(coefficients.shape[0] - 1, -1, -1):
        bend = bend * u + slope
        slope = slope * u + value
        value = value * u + coefficients[k, column]
    return value, slope * rate, 2.0 * bend * rate * rate


_SAMPLES = 0.5 - 0.5 * np.cos(np.pi * np.arange(9) / 8)
"""Where on a segment rates are looked at: between these a quintic is at most 10 % beyond."""


def range_between(positions: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest value (j,) of points (p, j) and of the segments between them."""
    if not len(coefficients):
        return positions.min(axis=0), positions.max(axis=0)
    powers = np.arange(coefficients.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        # One large product instead of p small ones: (s, n) by (p, n, j).
        values = np.tensordot(_SAMPLES[:, None] ** powers, coefficients, axes=(1, 1))
    return values.min(axis=(0, 1)), values.max(axis=(0, 1))


def doubtful(steps_s: np.ndarray, coefficients: np.ndarray, limits: Any) -> np.ndarray:
    """Mask (p,) of segments that a quick bound does not clear, few of a long plan.

    limits: lowest and highest value, largest first and second derivative, (j,) each, the last a number.
    """
    out = np.empty(len(coefficients), dtype=bool)
    lower, upper, speed, acceleration = limits
    _mark_doubtful(steps_s, coefficients, lower, upper, speed, float(acceleration), out)
    return out


@bare_kernel
def _mark_doubtful(steps_s, coefficients, lower, upper, speed, acceleration, out):
    """out (s,) bool: segments that may exceed a limit, by the bound sum |c_n| of their polynomials.

    coefficients (s, 6, na) in s = t / step in [0, 1]; lower, upper (na,) rad, speed (na,) rad/s, acceleration rad/s^2.
    The bound is cheap and never too small: only segments it cannot clear are examined exactly.
    """
    for k in range(coefficients.shape[0]):
        step, good = steps_s[k], True
        for j in range(coefficients.shape[2]):
            reach = first = second = 0.0
            for n in range(1, coefficients.shape[1]):
                size = abs(coefficients[k, n, j])
                reach += size
                first += n * size
                second += n * (n - 1) * size
            start = coefficients[k, 0, j]
            good &= start - reach >= lower[j] and start + reach <= upper[j]
            good &= first <= speed[j] * step and second <= acceleration * step * step
        out[k] = not good


def largest_rates(
    steps_s: np.ndarray, coefficients: np.ndarray, vectors: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Largest size of the first and of the second derivative over all segments.

    Shapes: durations (p,), coefficients (p, degree + 1, j); results (j,). ``vectors``: of each three
    columns the norm, (j / 3,). Infinite where numbers overflow; 0 without segments.
    """
    width = 3 if vectors else 1
    largest = np.zeros((2, coefficients.shape[2] // width))
    _find_largest_rates(_SAMPLES, steps_s, coefficients, width, largest)
    return largest[0], largest[1]


@bare_kernel
def _find_largest_rates(samples, steps_s, coefficients, width, largest):
    """Write into ``largest`` (2, j / width), zero before, the largest norms of first and second derivatives.

    samples: u in [0, 1] evaluated in each segment; steps_s (s,); coefficients (s, degree + 1, j); width: columns of
    one vector.
    """
    for k in range(coefficients.shape[0]):
        rate = 1.0 / steps_s[k]
        for u in samples:
            for column in range(largest.shape[1]):
                first2 = second2 = 0.0
                for j in range(column * width, (column + 1) * width):
                    _, slope, bend = polynomial(coefficients[k], j, u, rate)
                    first2 += slope * slope
                    second2 += bend * bend
                # NaN counts as infinite, so that it is refused.
                for row, size2 in ((0, first2), (1, second2)):
                    size = math.sqrt(size2) if size2 >= 0.0 else math.inf
                    largest[row, column] = max(largest[row, column], size)
