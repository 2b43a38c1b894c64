"""Cholesky factor of a small dense matrix, and substitution with it."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel


@bare_kernel
def cholesky(matrix, n, tolerance):
    """Factor the lower triangle of ``matrix`` (n, n) in place; False when it is not positive definite."""
    for j in range(n):
        diagonal = matrix[j, j]
        pivot = diagonal
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > tolerance * abs(diagonal):
            return False
        pivot = np.sqrt(pivot)
        matrix[j, j] = pivot
        row, inverse = matrix[j], 1.0 / pivot
        for i in range(j + 1, n):
            other = matrix[i]
            total = other[j]
            for k in range(j):
                total -= other[k] * row[k]
            other[j] = total * inverse
    return True


@bare_kernel
def forward_substitute(L, n, x):
    """x <- L^-1 x for lower triangular L (n, n)."""
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]


@bare_kernel
def backward_substitute(L, n, x):
    """x <- L^-T x for lower triangular L (n, n)."""
    for i in range(n - 1, -1, -1):
        row = L[i]  # along rows, which lie together: half the time of sums down the columns
        value = x[i] / row[i]
        x[i] = value
        for k in range(i):
            x[k] -= row[k] * value
