"""Coulomb's law with complementarity as the fixed point of a projection, on exact cones.

    z = AC(z - rho w)        w = Y^T Y z + c,   any rho > 0

AC(y) of one contact: 0 where y_N <= 0 (apart), y where |y_T| <= mu y_N (sticks), otherwise
(y_N, mu y_N y_T / |y_T|) (slides). Its derivative and the matrices made of it have six coefficients a contact
(``linear``). Vectors of contacts have all normals first, then all first, then all second tangents.

Source: Alart and Curnier (1991); de Saxce and Feng (1998).
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.kernels.exact_cones.linear import (
    COEFFICIENTS,
    FIRST,
    FIRST_FIRST,
    FIRST_SECOND,
    SCALE,
    SECOND,
    SECOND_SECOND,
    motion,
    velocities,
)

HUGE = 1e6  # impulses, in the problem's units, that only a contradiction asks for


@bare_kernel
def respond(mu, y, z):
    """z (3n,) = AC(y)."""
    n = mu.shape[0]
    for i in range(n):
        normal, first, second = y[i], y[n + i], y[2 * n + i]
        bound = mu[i] * normal
        square = first * first + second * second
        share = 1.0
        if square > bound * bound:
            share = bound / math.sqrt(square)
        if normal <= 0.0:
            normal, share = 0.0, 0.0
        z[i] = normal
        z[n + i] = share * first
        z[2 * n + i] = share * second


@bare_kernel
def defect(law, z, u, y, image):
    """Largest entry of z - AC(z - w), relative to the largest of z and 1; infinite where z is huge.

    Out: u (nu,) = Y z, y (3n,) = z - w, image (3n,) = AC(y).
    """
    motion(law, z, u)
    velocities(law, law.c, u, y)
    for r in range(z.shape[0]):
        y[r] = z[r] - y[r]
    respond(law.mu, y, image)
    worst, largest = 0.0, 1.0
    for r in range(z.shape[0]):
        worst = max(worst, abs(z[r] - image[r]))
        largest = max(largest, abs(z[r]))
        if not abs(image[r]) < np.inf:
            return np.inf
    return worst / largest if largest <= HUGE else np.inf


@bare_kernel
def derivative(mu, y, factor, C):
    """Coefficients C (6, n) of factor AC'(y)."""
    n = mu.shape[0]
    for i in range(n):
        normal, first, second = y[i], y[n + i], y[2 * n + i]
        bound = mu[i] * normal
        square = first * first + second * second
        for k in range(COEFFICIENTS):
            C[k, i] = 0.0
        if normal > 0.0:
            C[SCALE, i] = factor
            if square <= bound * bound:
                C[FIRST_FIRST, i] = C[SECOND_SECOND, i] = factor
            else:
                length = math.sqrt(square)
                first, second = first / length, second / length
                across = factor * bound / length
                C[FIRST, i], C[SECOND, i] = factor * mu[i] * first, factor * mu[i] * second
                C[FIRST_FIRST, i] = across * second * second
                C[FIRST_SECOND, i] = -across * first * second
                C[SECOND_SECOND, i] = across * first * first


@bare_kernel
def eliminated(mu, y, rest, shrink, C, g):
    """Each contact's block B = (I - q D)^-1, q = 1 - shrink, D = AC'(y): C (6, n) out = B D, g (3n,) out = B rest.

    With q = 1 the block of a sticking contact would have no inverse.
    """
    n = mu.shape[0]
    q, stiff = 1.0 - shrink, 1.0 / shrink
    for i in range(n):
        normal, first, second = y[i], y[n + i], y[2 * n + i]
        r0, r1, r2 = rest[i], rest[n + i], rest[2 * n + i]
        bound = mu[i] * normal
        square = first * first + second * second
        for k in range(COEFFICIENTS):
            C[k, i] = 0.0
        if normal <= 0.0:
            g[i], g[n + i], g[2 * n + i] = r0, r1, r2
        elif square <= bound * bound:
            C[SCALE, i] = C[FIRST_FIRST, i] = C[SECOND_SECOND, i] = stiff
            g[i], g[n + i], g[2 * n + i] = stiff * r0, stiff * r1, stiff * r2
        else:
            length = math.sqrt(square)
            first, second = first / length, second / length
            share = bound / length
            across = 1.0 / (1.0 - q * share)
            along = mu[i] + q * mu[i] * stiff
            C[SCALE, i] = stiff
            C[FIRST, i], C[SECOND, i] = along * first, along * second
            C[FIRST_FIRST, i] = share * across * second * second
            C[FIRST_SECOND, i] = -share * across * first * second
            C[SECOND_SECOND, i] = share * across * first * first
            inward = first * r1 + second * r2 + q * mu[i] * stiff * r0
            sideways = across * (first * r2 - second * r1)
            g[i] = stiff * r0
            g[n + i] = first * inward - second * sideways
            g[2 * n + i] = second * inward + first * sideways
