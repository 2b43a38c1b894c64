"""QR factorisation of a changing set of rows, for methods that add and drop one row at a time.

The m active unit rows, as columns, are Q^T R: Qt (r, r) holds orthonormal rows, the first m of them
spanning the active ones, R (r, r) is upper triangular.  Adding or dropping a row costs O(r^2).
"""

from __future__ import annotations

import math

from contact_id_controller.kernels.compile import bare_kernel as kernel


@kernel
def start(Qt):
    """No active rows."""
    for a in range(Qt.shape[0]):
        for b in range(Qt.shape[0]):
            Qt[a, b] = 1.0 if a == b else 0.0


@kernel
def project(Qt, m, units, i, d):
    """d (r,) = Qt times row i; the length of its part outside the active rows."""
    r = Qt.shape[0]
    outside = 0.0
    for a in range(r):
        d[a] = 0.0
        for x in range(r):
            d[a] += Qt[a, x] * units[x, i]
        if a >= m:
            outside += d[a] * d[a]
    return math.sqrt(outside)


@kernel
def append(Qt, R, m, d):
    """Add the row whose projection is d, at position m."""
    for a in range(Qt.shape[0] - 1, m, -1):
        _rotate_rows(Qt, a - 1, 0, d[a - 1], d[a])
        if d[a] != 0.0:
            d[a - 1] = math.hypot(d[a - 1], d[a])
    for a in range(m + 1):
        R[a, m] = d[a]


@kernel
def drop(Qt, R, m, k):
    """Take the row at position k out; later ones move up by one."""
    for b in range(k, m - 1):
        for a in range(b + 2):
            R[a, b] = R[a, b + 1]
    for a in range(k, m - 1):
        p, q = R[a, a], R[a + 1, a]
        _rotate_rows(Qt, a, 0, p, q)
        _rotate_rows(R, a, a, p, q)


@kernel
def _rotate_rows(A, a, first, p, q):
    """Rotate rows a, a + 1 of A, from column ``first``, as it takes (p, q) to (hypot, 0)."""
    radius = math.hypot(p, q)
    if q == 0.0 or radius == 0.0:
        return
    cosine, sine = p / radius, q / radius
    for x in range(first, A.shape[1]):
        above, below = A[a, x], A[a + 1, x]
        A[a, x] = cosine * above + sine * below
        A[a + 1, x] = cosine * below - sine * above


@kernel
def solve_upper(R, m, d, x):
    """R x = d on the leading (m, m)."""
    for a in range(m - 1, -1, -1):
        value = d[a]
        for b in range(a + 1, m):
            value -= R[a, b] * x[b]
        x[a] = value / R[a, a]


@kernel
def add_multipliers(R, m, residual, x):
    """x -= (R^T R)^-1 residual: one Newton step towards zero residual of the active rows."""
    for a in range(m):  # R^T t = residual, t in place
        value = residual[a]
        for b in range(a):
            value -= R[b, a] * residual[b]
        residual[a] = value / R[a, a]
    for a in range(m - 1, -1, -1):
        value = residual[a]
        for b in range(a + 1, m):
            value -= R[a, b] * residual[b]
        residual[a] = value / R[a, a]
        x[a] -= residual[a]
