"""A small dense LU factorisation with partial pivoting, in place, for kernels."""

from __future__ import annotations

from contact_id_controller.kernels.compile import bare_kernel as kernel

SINGULAR = 1e-14  # pivots below this share of the largest entry count as zero


@kernel
def lu_factor(A, n, rows):
    """Factor P A = L U in place on the leading (n, n) of ``A``; False when numerically singular.

    ``rows`` (n,) receives the order of the rows: row i of the factors is row ``rows[i]`` of A.
    """
    largest = 0.0
    for i in range(n):
        rows[i] = i
        for j in range(n):
            largest = max(largest, abs(A[i, j]))
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if not abs(A[best, k]) > SINGULAR * largest:
            return False
        if best != k:
            rows[k], rows[best] = rows[best], rows[k]
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
        inverse = 1.0 / A[k, k]
        for i in range(k + 1, n):
            factor = A[i, k] * inverse
            A[i, k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
    return True


@kernel
def lu_solve(A, n, rows, b, x):
    """Solve A x = b (n,) with the factors of ``lu_factor``; ``b`` is kept."""
    for i in range(n):
        value = b[rows[i]]
        for j in range(i):
            value -= A[i, j] * x[j]
        x[i] = value
    for i in range(n - 1, -1, -1):
        value = x[i]
        for j in range(i + 1, n):
            value -= A[i, j] * x[j]
        x[i] = value / A[i, i]
