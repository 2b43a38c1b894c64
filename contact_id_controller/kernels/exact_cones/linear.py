"""Impulses to velocities and back, and the matrix of Newton's method, for dense or sparse Y.

Six coefficients a contact, C (6, n), make up matrices

    [ s          ]
    [ a1 b11 b12 ]        s = 0: apart
    [ a2 b12 b22 ]

and Y is (nu, 3n), vectors of contacts (3n,) having all normals first, then all first, then all second tangents:
loops then run along the contacts. With many bodies in contact most of Y is zero, as a contact moves only its two
bodies. Then only nonzero blocks are used (`Law.starts`), 10 to 100 times fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import add_rows, times_rows

SCALE, FIRST, SECOND, FIRST_FIRST, FIRST_SECOND, SECOND_SECOND = range(6)
COEFFICIENTS = 6

HIGH, WIDE = 2, 4  # rows that a product takes at a time, written out
NEAR = 256  # numbers of each of them that stay in the nearest cache

MANY, SPARSE = 64, 0.3
"""Unknowns from which zeros in Y are looked for, and the share of the rest up to which they count."""


class Law(NamedTuple):
    """One problem in units in which Y's mean square and the largest velocity are 1.

    Y (nu, 3n), c (3n,), mu (n,) finite.  starts (n + 1,), columns (m,), blocks (m, 3): contact i moves the
    unknowns ``columns[starts[i] : starts[i + 1]]``, by the blocks' three numbers; empty: each moves all.
    """

    Y: np.ndarray
    c: np.ndarray
    mu: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    blocks: np.ndarray


@kernel
def law_of(Y, c, mu):
    """Make the law from Y (nu, 3n), c (3n,), mu (n,), with the nonzero blocks of Y if these are few."""
    nu, n = Y.shape[0], mu.shape[0]
    starts = np.zeros(n + 1, np.int64)
    if nu >= MANY:
        for k in range(nu):
            for i in range(n):
                if Y[k, i] != 0.0 or Y[k, n + i] != 0.0 or Y[k, 2 * n + i] != 0.0:
                    starts[i + 1] += 1
        for i in range(n):
            starts[i + 1] += starts[i]
    count = starts[n]
    if not 0 < count <= SPARSE * nu * n:
        return Law(Y, c, mu, starts[:0], starts[:0], np.empty((0, 3)))
    columns, blocks, filled = np.empty(count, np.int64), np.empty((count, 3)), starts[:n].copy()
    for k in range(nu):
        for i in range(n):
            if Y[k, i] != 0.0 or Y[k, n + i] != 0.0 or Y[k, 2 * n + i] != 0.0:
                at = filled[i]
                columns[at] = k
                for d in range(3):
                    blocks[at, d] = Y[k, d * n + i]
                filled[i] += 1
    return Law(Y, c, mu, starts, columns, blocks)


@bare_kernel
def velocities(law, c, u, w):
    """w (3n,) = Y^T u + c."""
    n, Y, starts, columns, blocks = law.mu.shape[0], law.Y, law.starts, law.columns, law.blocks
    for r in range(w.shape[0]):
        w[r] = c[r]
    if starts.shape[0]:
        for i in range(n):
            normal = first = second = 0.0
            for e in range(starts[i], starts[i + 1]):
                amount = u[columns[e]]
                normal += amount * blocks[e, 0]
                first += amount * blocks[e, 1]
                second += amount * blocks[e, 2]
            w[i] += normal
            w[n + i] += first
            w[2 * n + i] += second
        return
    add_rows(Y, u, 1.0, w)


@bare_kernel
def motion(law, z, u):
    """u (nu,) = Y z."""
    n, Y, starts, columns, blocks = law.mu.shape[0], law.Y, law.starts, law.columns, law.blocks
    if starts.shape[0]:
        for k in range(u.shape[0]):
            u[k] = 0.0
        for i in range(n):
            normal, first, second = z[i], z[n + i], z[2 * n + i]
            for e in range(starts[i], starts[i + 1]):
                u[columns[e]] += (
                    normal * blocks[e, 0] + first * blocks[e, 1] + second * blocks[e, 2]
                )
        return
    times_rows(Y, z, u)


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
def assemble(law, C, V, A):
    """A (nu, nu) = I + Y C Y^T; V (nu, 3n) is workspace."""
    Y, nu = law.Y, A.shape[0]
    if law.starts.shape[0]:
        _add_contacts(law, C, V, A)
    else:
        for b in range(nu):
            apply(C, Y[b], V[b])
        _products(Y, V, A)
    for a in range(nu):
        A[a, a] += 1.0


@bare_kernel
def _add_contacts(law, C, V, A):
    """A (nu, nu) = Y C Y^T, contact by contact; V (nu, 3n) is workspace."""
    starts, columns, blocks = law.starts, law.columns, law.blocks
    for a in range(A.shape[0]):
        for b in range(A.shape[0]):
            A[a, b] = 0.0
    for i in range(C.shape[1]):
        if C[SCALE, i] == 0.0:
            continue
        begin, count = starts[i], starts[i + 1] - starts[i]
        for e in range(count):
            at = begin + e
            normal, first, second = blocks[at, 0], blocks[at, 1], blocks[at, 2]
            V[e, 0] = C[SCALE, i] * normal
            V[e, 1] = C[FIRST, i] * normal + C[FIRST_FIRST, i] * first + C[FIRST_SECOND, i] * second
            V[e, 2] = (
                C[SECOND, i] * normal + C[FIRST_SECOND, i] * first + C[SECOND_SECOND, i] * second
            )
        for f in range(count):
            at = begin + f
            row, normal, first, second = A[columns[at]], blocks[at, 0], blocks[at, 1], blocks[at, 2]
            for e in range(count):
                row[columns[begin + e]] += normal * V[e, 0] + first * V[e, 1] + second * V[e, 2]


@bare_kernel
def _products(Y, V, A):
    """A (nu, nu) = Y V^T, Y and V (nu, m): blocks of two rows by four, in pieces that fit the cache."""
    nu, m = Y.shape
    high, wide = nu - nu % HIGH, nu - nu % WIDE
    for begin in range(0, max(m, 1), NEAR):
        end = min(begin + NEAR, m)
        for a in range(nu):
            for b in range(nu if begin == 0 else 0):
                A[a, b] = 0.0
        for a in range(0, high, HIGH):
            x, y = Y[a, begin:end], Y[a + 1, begin:end]
            for b in range(0, wide, WIDE):
                p, q = V[b, begin:end], V[b + 1, begin:end]
                s, t = V[b + 2, begin:end], V[b + 3, begin:end]
                xp = xq = xs = xt = yp = yq = ys = yt = 0.0
                for r in range(end - begin):
                    xp += x[r] * p[r]
                    xq += x[r] * q[r]
                    xs += x[r] * s[r]
                    xt += x[r] * t[r]
                    yp += y[r] * p[r]
                    yq += y[r] * q[r]
                    ys += y[r] * s[r]
                    yt += y[r] * t[r]
                A[a, b] += xp
                A[a, b + 1] += xq
                A[a, b + 2] += xs
                A[a, b + 3] += xt
                A[a + 1, b] += yp
                A[a + 1, b + 1] += yq
                A[a + 1, b + 2] += ys
                A[a + 1, b + 3] += yt
        for a in range(nu):
            row = Y[a, begin:end]
            for b in range(wide if a < high else 0, nu):
                other, total = V[b, begin:end], 0.0
                for r in range(end - begin):
                    total += row[r] * other[r]
                A[a, b] += total
