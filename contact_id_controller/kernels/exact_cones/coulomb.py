"""Coulomb's law with complementarity as the fixed point of a projection, on exact cones.

    z = AC(z - rho w)        w = Y^T Y z + c,   any rho > 0

AC(y) of one contact: 0 where y_N <= 0 (apart), y where |y_T| <= mu y_N (sticks), otherwise
(y_N, mu y_N y_T / |y_T|) (slides). Its derivative and the matrices made of it have six coefficients a contact,

    [ s          ]
    [ a1 b11 b12 ]        s = 0: apart
    [ a2 b12 b22 ]

Vectors of contacts have all normals first, then all first, then all second tangents, and Y is (nu, 3n):
loops then run along the contacts.

Source: Alart and Curnier (1991); de Saxce and Feng (1998).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel

SCALE, FIRST, SECOND, FIRST_FIRST, FIRST_SECOND, SECOND_SECOND = range(6)
COEFFICIENTS = 6


class Law(NamedTuple):
    """One problem in units in which Y's mean square and the largest velocity are 1.

    Y (nu, 3n), c (3n,), mu (n,) finite.
    """

    Y: np.ndarray
    c: np.ndarray
    mu: np.ndarray


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
def velocities(Y, c, u, w):
    """w (3n,) = Y^T u + c."""
    for r in range(w.shape[0]):
        w[r] = c[r]
    for k in range(u.shape[0]):
        row, amount = Y[k], u[k]
        for r in range(w.shape[0]):
            w[r] += amount * row[r]


@bare_kernel
def motion(Y, z, u):
    """u (nu,) = Y z."""
    for k in range(u.shape[0]):
        row, total = Y[k], 0.0
        for r in range(z.shape[0]):
            total += row[r] * z[r]
        u[k] = total


@bare_kernel
def defect(law, z, u, y, image):
    """Largest entry of z - AC(z - w), relative to the largest of z and 1.

    Out: u (nu,) = Y z, y (3n,) = z - w, image (3n,) = AC(y).
    """
    motion(law.Y, z, u)
    velocities(law.Y, law.c, u, y)
    for r in range(z.shape[0]):
        y[r] = z[r] - y[r]
    respond(law.mu, y, image)
    worst, largest = 0.0, 1.0
    for r in range(z.shape[0]):
        worst = max(worst, abs(z[r] - image[r]))
        largest = max(largest, abs(z[r]))
        if not abs(image[r]) < np.inf:
            return np.inf
    return worst / largest


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
    """The block (I - q D)^-1 of each contact, q = 1 - shrink: C (6, n) of its product with D, g (3n,) with rest.

    D = AC'(y). With q = 1 the block of a sticking contact would have no inverse.
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


@bare_kernel
def apply(C, values, out):
    """out (3n,) = the matrices C (6, n) times values (3n,)."""
    n = C.shape[1]
    for i in range(n):
        normal, first, second = values[i], values[n + i], values[2 * n + i]
        out[i] = C[SCALE, i] * normal
        out[n + i] = C[FIRST, i] * normal + C[FIRST_FIRST, i] * first + C[FIRST_SECOND, i] * second
        out[2 * n + i] = (
            C[SECOND, i] * normal + C[FIRST_SECOND, i] * first + C[SECOND_SECOND, i] * second
        )


@bare_kernel
def assemble(Y, C, V, A):
    """A (nu, nu) = I + Y C Y^T; V (nu, 3n) = Y C^T is room."""
    nu = Y.shape[0]
    for b in range(nu):
        apply(C, Y[b], V[b])
    for a in range(nu):
        row = Y[a]
        for b in range(nu):
            other, total = V[b], 0.0
            for r in range(row.shape[0]):
                total += row[r] * other[r]
            A[a, b] = total
        A[a, a] += 1.0


@bare_kernel
def solve_in_place(A, b):
    """b <- A^-1 b by LU with partial pivoting; A (m, m) is overwritten. False where A is singular."""
    m = b.shape[0]
    for k in range(m):
        pivot, most = k, abs(A[k, k])
        for i in range(k + 1, m):
            if abs(A[i, k]) > most:
                pivot, most = i, abs(A[i, k])
        if not (most > 0.0 and most < np.inf):
            return False
        if pivot != k:
            for j in range(k, m):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            b[k], b[pivot] = b[pivot], b[k]
        row, inverse = A[k], 1.0 / A[k, k]
        for i in range(k + 1, m):
            other = A[i]
            factor = other[k] * inverse
            if factor != 0.0:
                for j in range(k + 1, m):
                    other[j] -= factor * row[j]
                b[i] -= factor * b[k]
    for k in range(m - 1, -1, -1):
        row, total = A[k], b[k]
        for j in range(k + 1, m):
            total -= row[j] * b[j]
        b[k] = total / row[k]
    return True
