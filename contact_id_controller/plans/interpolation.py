"""Piecewise polynomials through given points, evaluated fast enough for a 1 kHz loop.

A segment between two points is a polynomial of degree 1, 3 or 5 in u = (t - t_k) / h_k in [0, 1]:
degree 1 passes through the positions, degree 3 also has the velocities of both ends (cubic
Hermite), degree 5 also their accelerations (quintic Hermite). Coefficients are computed once;
position, velocity and acceleration of all columns are then one small matrix product.
"""

from __future__ import annotations

import numpy as np


def segment_coefficients(
    times_s: np.ndarray,
    positions: np.ndarray,
    velocities: np.ndarray | None = None,
    accelerations: np.ndarray | None = None,
) -> np.ndarray:
    """Coefficients of all segments in powers of u, lowest first.

    Shapes: times (p,), the others (p, j); result (p - 1, degree + 1, j).
    """
    step = np.diff(times_s)[:, None]
    start, change = positions[:-1], np.diff(positions, axis=0)
    if velocities is None:
        return np.stack([start, change], axis=1)
    # Derivatives with respect to u instead of t.
    v0, v1 = velocities[:-1] * step, velocities[1:] * step
    if accelerations is None:
        return cubic_coefficients(start, change, v0, v1)
    a0, a1 = accelerations[:-1] * step**2, accelerations[1:] * step**2
    return np.stack(
        [
            start,
            v0,
            a0 / 2,
            10 * change - 6 * v0 - 4 * v1 - 1.5 * a0 + a1 / 2,
            -15 * change + 8 * v0 + 7 * v1 + 1.5 * a0 - a1,
            6 * change - 3 * (v0 + v1) + (a1 - a0) / 2,
        ],
        axis=1,
    )


def cubic_coefficients(
    start: np.ndarray, change: np.ndarray, v0: np.ndarray, v1: np.ndarray
) -> np.ndarray:
    """Hermite coefficients (m, 4, j) from start value, change and end slopes in u, (m, j) each."""
    return np.stack([start, v0, 3 * change - 2 * v0 - v1, v0 + v1 - 2 * change], axis=1)


def fill_basis(basis: np.ndarray, u: float, rate: float) -> None:
    """Fill the powers of u and their first two derivatives with respect to time.

    `basis` (3, degree + 1) with degree 1, 3 or 5; `rate` is 1 / h of the segment, 1/s. The product
    of `basis` and a segment's coefficients (degree + 1, j) is position, velocity, acceleration.
    """
    basis[0, 0] = 1.0
    basis[0, 1] = u
    basis[1, 1] = rate
    degree = basis.shape[1] - 1
    if degree == 1:
        return
    u2, rate2 = u * u, rate * rate
    u3 = u2 * u
    basis[0, 2], basis[0, 3] = u2, u3
    basis[1, 2], basis[1, 3] = 2 * u * rate, 3 * u2 * rate
    basis[2, 2], basis[2, 3] = 2 * rate2, 6 * u * rate2
    if degree == 3:
        return
    u4 = u2 * u2
    basis[0, 4], basis[0, 5] = u4, u4 * u
    basis[1, 4], basis[1, 5] = 4 * u3 * rate, 5 * u4 * rate
    basis[2, 4], basis[2, 5] = 12 * u2 * rate2, 20 * u3 * rate2


_SAMPLES = 0.5 - 0.5 * np.cos(np.pi * np.arange(9) / 8)
"""Where on a segment rates are looked at: between these a quintic is at most 10 % beyond."""


def range_between(positions: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest value (j,) of points (p, j) and of the segments between them."""
    if not len(coefficients):
        return positions.min(axis=0), positions.max(axis=0)
    powers = np.arange(coefficients.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        values = _on_all(_SAMPLES[:, None] ** powers, coefficients)
    return values.min(axis=(0, 1)), values.max(axis=(0, 1))


def doubtful(steps_s: np.ndarray, coefficients: np.ndarray, limits) -> np.ndarray:
    """Segments (p,) bool that a quick bound cannot tell to be within limits: few, of a long plan.

    limits: lowest and highest value, largest first and second derivative, each (j,) or a number.
    """
    lower, upper, speed, acceleration = limits
    with np.errstate(over="ignore", invalid="ignore"):
        size, powers = np.abs(coefficients), np.arange(coefficients.shape[1])
        start, reach = coefficients[:, 0], size[:, 1:].sum(axis=1)
        first = np.tensordot(size, powers, axes=(1, 0))
        second = np.tensordot(size, powers * (powers - 1), axes=(1, 0))
        good = (start - reach >= lower) & (start + reach <= upper)
        good &= first <= speed * steps_s[:, None]
        good &= second <= acceleration * steps_s[:, None] ** 2
    return ~good.all(axis=1)


def largest_rates(
    steps_s: np.ndarray, coefficients: np.ndarray, vectors: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Largest size of the first and of the second derivative over all segments.

    Shapes: durations (p,), coefficients (p, degree + 1, j); results (j,). ``vectors``: of each three
    columns the norm, (j / 3,). Infinite where numbers overflow; 0 without segments.
    """
    count = coefficients.shape[2] // (3 if vectors else 1)
    if not len(coefficients):
        return np.zeros(count), np.zeros(count)
    powers = np.arange(coefficients.shape[1])
    first = powers * _SAMPLES[:, None] ** np.maximum(powers - 1, 0)
    second = powers * (powers - 1) * _SAMPLES[:, None] ** np.maximum(powers - 2, 0)
    step = steps_s[:, None]
    largest = []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for basis, duration in ((first, step), (second, step**2)):
            rates = _on_all(basis, coefficients)
            rates /= duration
            if vectors:
                rates = np.sqrt((rates.reshape(*rates.shape[:2], count, 3) ** 2).sum(axis=3))
            top = np.maximum(rates.max(axis=(0, 1)), -rates.min(axis=(0, 1)))
            largest.append(np.where(np.isnan(top), np.inf, top))
    return largest[0], largest[1]


def _on_all(basis: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Rows of ``basis`` (s, n) times the coefficients (p, n, j) of all segments: (s, p, j)."""
    # One large product instead of p small ones.
    return np.tensordot(basis, coefficients, axes=(1, 1))
