"""Small dense matrices, in place: Cholesky and LU factors, substitution, and the QR factors of rows.

Workspace is the caller's; a missing factor is reported by False. Sizes are those of a robot's bodies, 3 to 60:
these loops are faster there than LAPACK with its checks (numba 0.68, one core, us: Cholesky of
18 / 38 / 64 rows .5 / 3.2 / 11.1 against .9 / 3.8 / 10.1; LU 1.9 / 12.4 / 51 against 2.8 / 10.6 / 29). LU factors
from ``LAPACK_FROM`` rows on are therefore LAPACK's, by the symbols that numba itself calls it by.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel

_VERSIONS = ((0, 68),)
"""Versions of numba whose name for LAPACK's dgetrf was tried; others take our own loops for all sizes."""

_GETRF = types.ExternalFunction(
    "numba_xxgetrf",
    types.intc(
        types.char,  # kind
        types.intp,  # m
        types.intp,  # n
        types.CPointer(types.float64),
        types.intp,  # stride of columns
        types.CPointer(types.int64),  # room of the rows' exchanges, written as 32 bit numbers
    ),
)
_DOUBLE = ord("d")

_KNOWN = numba.version_info[:2] in _VERSIONS and not numba.config.DISABLE_JIT
LAPACK_FROM = 36 if _KNOWN else 2**62
TILE = 8  # of a matrix that is transposed
NEAR = 256  # numbers of each row that stay in the nearest cache
SINGULAR = 1e-14  # pivots below this share of the largest entry count as zero
INDEPENDENCE = 1e-8  # a direction counts when this share of the largest one is left


# Products with many short rows: three rows at a time, as a loop over one does little but begin and end


@bare_kernel
def add_rows(W, z, sign, out):
    """out (k,) += sign W^T z; W (m, k), z (m,)."""
    whole = z.shape[0] - z.shape[0] % 3
    for r in range(0, whole, 3):
        x, y, w = sign * z[r], sign * z[r + 1], sign * z[r + 2]
        if x == 0.0 and y == 0.0 and w == 0.0:
            continue
        first, second, third = W[r], W[r + 1], W[r + 2]
        for k in range(out.shape[0]):
            out[k] += first[k] * x + second[k] * y + third[k] * w
    for r in range(whole, z.shape[0]):
        row, amount = W[r], sign * z[r]
        for k in range(out.shape[0]):
            out[k] += row[k] * amount


@bare_kernel
def times_rows(W, x, out):
    """out (m,) = W x; W (m, k), x (k,)."""
    whole = out.shape[0] - out.shape[0] % 3
    for r in range(0, whole, 3):
        first, second, third = W[r], W[r + 1], W[r + 2]
        p = q = s = 0.0
        for k in range(x.shape[0]):
            p += first[k] * x[k]
            q += second[k] * x[k]
            s += third[k] * x[k]
        out[r], out[r + 1], out[r + 2] = p, q, s
    for r in range(whole, out.shape[0]):
        row, total = W[r], 0.0
        for k in range(x.shape[0]):
            total += row[k] * x[k]
        out[r] = total


@bare_kernel
def add_squares(first, second, third, sign, H):
    """Lower triangle of H (dim, dim) += sign times the sum of x x^T of the three vectors x (dim,)."""
    for a in range(first.shape[0]):
        x, y, z = sign * first[a], sign * second[a], sign * third[a]
        row = H[a]
        for b in range(a + 1):
            row[b] += x * first[b] + y * second[b] + z * third[b]


@bare_kernel
def gram(R, count, H):
    """Lower triangle of R R^T (dim, dim) over the first ``count`` columns of R (dim, m): two rows by two."""
    dim = R.shape[0]
    even = dim - dim % 2
    for a in range(dim):
        fill(H[a], 0.0)
    for begin in range(0, count, NEAR):
        end = min(begin + NEAR, count)
        for a in range(0, even, 2):
            first, second = R[a, begin:end], R[a + 1, begin:end]
            for b in range(0, a + 1, 2):
                other, another = R[b, begin:end], R[b + 1, begin:end]
                p = q = s = t = 0.0
                for r in range(end - begin):
                    p += first[r] * other[r]
                    q += first[r] * another[r]
                    s += second[r] * other[r]
                    t += second[r] * another[r]
                H[a, b] += p
                H[a, b + 1] += q
                H[a + 1, b] += s
                H[a + 1, b + 1] += t
        if even < dim:
            first = R[even, begin:end]
            for b in range(dim):
                other, p = R[b, begin:end], 0.0
                for r in range(end - begin):
                    p += first[r] * other[r]
                H[even, b] += p


# Cholesky factors


@bare_kernel
def cholesky(matrix, n, tolerance):
    """Factor the lower triangle of ``matrix`` (n, n) in place; False when it is not positive definite."""
    for j in range(n):
        row, diagonal = matrix[j], matrix[j, j]
        pivot = diagonal
        for k in range(j):
            pivot -= row[k] * row[k]
        if not pivot > tolerance * abs(diagonal):
            return False
        pivot = np.sqrt(pivot)
        row[j], inverse = pivot, 1.0 / pivot
        odd = (n - j - 1) % 2
        # Two rows at a time: sums of few terms wait for each other.
        for i in range(j + 1 + odd, n, 2):
            other, next_one = matrix[i], matrix[i + 1]
            total, next_total = other[j], next_one[j]
            for k in range(j):
                total -= other[k] * row[k]
                next_total -= next_one[k] * row[k]
            other[j], next_one[j] = total * inverse, next_total * inverse
        for i in range(j + 1, j + 1 + odd):
            other = matrix[i]
            total = other[j]
            for k in range(j):
                total -= other[k] * row[k]
            other[j] = total * inverse
    return True


@bare_kernel
def semidefinite_cholesky(matrix, n, tolerance, root):
    """As ``cholesky`` for a positive semidefinite matrix (n, n): columns of dependent rows vanish.

    Their pivots, below ``tolerance`` times the diagonal, become ``root``: 0, so that L L^T is the matrix, or a
    number so large that substitution makes their unknowns zero.
    """
    for j in range(n):
        row, diagonal = matrix[j], matrix[j, j]
        pivot = diagonal
        for k in range(j):
            pivot -= row[k] * row[k]
        inverse, row[j] = 0.0, root
        if pivot > tolerance * diagonal:
            row[j] = np.sqrt(pivot)
            inverse = 1.0 / row[j]
        for i in range(j + 1, n):
            other = matrix[i]
            total = other[j]
            for k in range(j):
                total -= other[k] * row[k]
            other[j] = total * inverse


@bare_kernel
def forward_substitute(L, n, x):
    """x <- L^-1 x for lower triangular L (n, n)."""
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]


@bare_kernel
def forward_substitute_rows(L, n, X):
    """``forward_substitute`` of every row of X (m, n) at once: one alone waits for its own sums and quotients."""
    for i in range(n):
        row, inverse = L[i], 1.0 / L[i, i]
        for r in range(X.shape[0]):
            x, total = X[r], X[r, i]
            for k in range(i):
                total -= row[k] * x[k]
            x[i] = total * inverse


@bare_kernel
def backward_substitute(L, n, x):
    """x <- L^-T x for lower triangular L (n, n)."""
    for i in range(n - 1, -1, -1):
        row = L[i]  # along rows, which lie together: half the time of sums down the columns
        value = x[i] / row[i]
        x[i] = value
        for k in range(i):
            x[k] -= row[k] * value


# LU factors


@bare_kernel
def _transpose(A, n):
    """Transpose the leading (n, n) in place, tile by tile."""
    for down in range(0, n, TILE):
        for along in range(0, down + 1, TILE):
            for i in range(down, min(down + TILE, n)):
                for j in range(along, min(along + TILE, i)):
                    A[i, j], A[j, i] = A[j, i], A[i, j]


@bare_kernel
def _lu_by_lapack(A, n, order):
    """``lu_factor`` by LAPACK, which counts from 1, in columns and with 32 bit."""
    _transpose(A, n)
    found = _GETRF(_DOUBLE, n, n, A.ctypes, A.strides[0] // 8, order.ctypes) == 0
    _transpose(A, n)
    short = order.view(np.int32)
    for k in range(
        n - 1, -1, -1
    ):  # the last ones lie in the second half, where nothing is left to read
        order[k] = np.int64(short[k]) - 1
    return found


@bare_kernel
def lu_factor(A, n, tolerance, order):
    """Factor P A = L U in place on the leading (n, n) of ``A``; False when numerically singular.

    Pivots count as zero up to ``tolerance`` times the largest entry. order (n,) int64: out, the row with which each row
    was exchanged, in turn. A is in row-major order.
    """
    largest = 0.0
    for i in range(n):
        row = A[i]
        for j in range(n):
            largest = max(largest, abs(row[j]))
    least = tolerance * largest
    if n >= LAPACK_FROM:
        found = _lu_by_lapack(A, n, order)
        for k in range(n):
            found = found and abs(A[k, k]) > least and abs(A[k, k]) < np.inf
        return found
    for k in range(n):
        best, most = k, abs(A[k, k])
        for i in range(k + 1, n):
            if abs(A[i, k]) > most:
                best, most = i, abs(A[i, k])
        if not (most > least and most < np.inf):
            return False
        order[k] = best
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
        row, inverse = A[k], 1.0 / A[k, k]
        for i in range(k + 1, n):
            other = A[i]
            factor = other[k] * inverse
            other[k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    other[j] -= factor * row[j]
    return True


@bare_kernel
def lu_solve(A, n, order, x):
    """x (n,) <- A^-1 x, with the factors and order from ``lu_factor``."""
    for k in range(n):
        if order[k] != k:
            x[k], x[order[k]] = x[order[k]], x[k]
    for i in range(n):
        row, total = A[i], x[i]
        for j in range(i):
            total -= row[j] * x[j]
        x[i] = total
    solve_upper(A, n, x, x)


# QR factors of rows that come and go: m of them, as columns, are Qt^T R; Qt (dim, dim) holds orthonormal rows, the
# first m of them spanning the active ones, R (dim, dim) is upper triangular. A change costs O(dim^2).


@bare_kernel
def no_rows(Qt):
    """Initialise Qt (n, n) = 1 for no active rows."""
    for a in range(Qt.shape[0]):
        for b in range(Qt.shape[0]):
            Qt[a, b] = 1.0 if a == b else 0.0


@bare_kernel
def append_row(Qt, R, m, d):
    """Append the row whose product with Qt is d (dim,), at position m."""
    for a in range(Qt.shape[0] - 1, m, -1):
        d[a - 1] = _rotate(Qt, a - 1, 0, d[a - 1], d[a])
        d[a] = 0.0
    for a in range(m + 1):
        R[a, m] = d[a]


@bare_kernel
def drop_row(Qt, R, m, k):
    """Remove the row at position k of m from Qt (n, n), R (n, n); later ones move up by one."""
    for b in range(k, m - 1):
        for a in range(b + 2):
            R[a, b] = R[a, b + 1]
    for a in range(k, m - 1):
        p, q = R[a, a], R[a + 1, a]
        _rotate(Qt, a, 0, p, q)
        _rotate(R, a, a, p, q)


@bare_kernel
def _rotate(A, a, first, p, q):
    """Rotate rows a, a + 1 of A, from column ``first``, by the rotation of (p, q) to (radius, 0).

    Returns the radius.
    """
    if q == 0.0:
        return p  # the identity, whatever the sign of p
    radius = math.hypot(p, q)
    cosine, sine = p / radius, q / radius
    above, below = A[a], A[a + 1]
    for x in range(first, A.shape[1]):
        upper, lower = above[x], below[x]
        above[x] = cosine * upper + sine * lower
        below[x] = cosine * lower - sine * upper
    return radius


@bare_kernel
def solve_upper(R, m, d, x):
    """R x = d on the leading (m, m); x may be d."""
    for a in range(m - 1, -1, -1):
        row, value = R[a], d[a]
        for b in range(a + 1, m):
            value -= row[b] * x[b]
        x[a] = value / row[a]


# Independent rows: Householder QR


@kernel
def independent_rows(K, k, rows, order, norms):
    """Replace K x = k by as many equations as K has independent rows; K, k are overwritten.

    Args:
        K (m, n), k (m,): the system, of which the first ``rows`` rows are used.
        order (n,) int64, norms (n,): workspace.

    Returns (rank, least-squares residual): the first rank rows of K and k are the new system, in
    the order of the original columns; residual is the norm of what no x can satisfy.
    """
    n = K.shape[1]
    rank = 0
    for j in range(n):
        order[j] = j
    limit = 0.0
    while rank < min(rows, n):
        best, at = 0.0, rank
        for j in range(rank, n):
            total = 0.0
            for i in range(rank, rows):
                total += K[i, order[j]] * K[i, order[j]]
            norms[j] = total
            if total > best:
                best, at = total, j
        if rank == 0:
            limit = INDEPENDENCE * INDEPENDENCE * best
        if not best > limit:
            break
        order[rank], order[at] = order[at], order[rank]
        p = order[rank]
        # Reflect the pivot column onto its first entry: v = column - alpha e, kept in the column.
        alpha = -np.sqrt(best) if K[rank, p] > 0.0 else np.sqrt(best)
        K[rank, p] -= alpha
        beta = -1.0 / (alpha * K[rank, p])
        for j in range(rank + 1, n + 1):
            total = 0.0
            if j == n:
                for i in range(rank, rows):
                    total += K[i, p] * k[i]
                for i in range(rank, rows):
                    k[i] -= beta * total * K[i, p]
            else:
                c = order[j]
                for i in range(rank, rows):
                    total += K[i, p] * K[i, c]
                for i in range(rank, rows):
                    K[i, c] -= beta * total * K[i, p]
        K[rank, p] = alpha
        for i in range(rank + 1, rows):
            K[i, p] = 0.0
        rank += 1
    left = 0.0
    for i in range(rank, rows):
        left += k[i] * k[i]
    return rank, np.sqrt(left)


@kernel
def concentrate(At, b, chosen, reflectors):
    """Rotate the rows of A x = b in place so that the chosen variables occur in the first rows only, one row each.

    At (N, p): A transposed. chosen (N,) bool; dependent columns are skipped. reflectors (k, p): out, unit Householder
    vectors. Returns how many there are; ``rotate`` applies them to a vector of the rows.
    """
    N, p = At.shape
    count = 0
    for j in range(N):
        if not chosen[j] or count == min(p, reflectors.shape[0]):
            continue
        total, tail = 0.0, 0.0
        for i in range(p):
            total += At[j, i] * At[j, i]
            if i >= count:
                tail += At[j, i] * At[j, i]
        if not tail > INDEPENDENCE * INDEPENDENCE * total:
            continue
        v = reflectors[count]
        for i in range(p):
            v[i] = At[j, i] if i >= count else 0.0
        v[count] += np.sqrt(tail) if v[count] >= 0.0 else -np.sqrt(tail)
        length = 0.0
        for i in range(count, p):
            length += v[i] * v[i]
        length = np.sqrt(length)
        for i in range(count, p):
            v[i] /= length
        for other in range(N):
            _reflect(v, count, At[other])
        _reflect(v, count, b)
        count += 1
    return count


@kernel
def rotate(reflectors, count, y, back):
    """Apply the rotation of ``concentrate`` to y (p,), or undo it."""
    for k in range(count):
        i = count - 1 - k if back else k
        _reflect(reflectors[i], i, y)


@kernel
def _reflect(v, start, x):
    """x <- (I - 2 v v^T) x for a unit v that is zero before ``start``."""
    total = 0.0
    for i in range(start, v.shape[0]):
        total += v[i] * x[i]
    if total != 0.0:
        for i in range(start, v.shape[0]):
            x[i] -= 2.0 * total * v[i]
