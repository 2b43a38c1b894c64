"""Symmetric positive definite block tridiagonal systems: block Cholesky, one forward and one backward pass.

        [ D_0  L_0'          ]
    H = [ L_0  D_1  L_1'     ]      H = C C',  C lower triangular: C_t on the diagonal, X_t below it
        [      L_1  D_2  ... ]

C_t C_t' = D_t - X_{t-1} X_{t-1}', X_t C_t' = L_t. Time grows linearly with the number of blocks.
"""

from __future__ import annotations

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import backward_substitute, cholesky, forward_substitute

PIVOT = 1e-13
"""A pivot below this part of its diagonal entry counts as not positive."""

FACTORED = -1
"""Status of `factor`: positive definite; otherwise the block that was not."""


@kernel
def factor(diagonal, lower):
    """Factor H in place: ``diagonal`` (T+1, n, n) becomes C_t (lower triangles), ``lower`` (T, n, n) X_t.

    Only the lower triangles of ``diagonal`` are read. Returns `FACTORED`, or the index of the block
    that is not positive definite.
    """
    blocks, n = len(diagonal), diagonal.shape[1]
    for t in range(blocks):
        D = diagonal[t]
        if t > 0:
            X = lower[t - 1]
            for i in range(n):
                row = X[i]
                for j in range(i + 1):
                    other, total = X[j], D[i, j]
                    for k in range(n):
                        total -= row[k] * other[k]
                    D[i, j] = total
        if not cholesky(D, n, PIVOT):
            return t
        if t + 1 < blocks:
            for i in range(n):
                forward_substitute(D, n, lower[t, i])
    return FACTORED


@kernel
def solve(diagonal, lower, x):
    """x <- H^-1 x in place for ``x`` (T+1, n), with the factors from `factor`."""
    blocks, n = x.shape
    for t in range(blocks):
        if t > 0:
            X = lower[t - 1]
            for i in range(n):
                total = x[t, i]
                for k in range(n):
                    total -= X[i, k] * x[t - 1, k]
                x[t, i] = total
        forward_substitute(diagonal[t], n, x[t])
    for t in range(blocks - 1, -1, -1):
        if t + 1 < blocks:
            X = lower[t]
            for i in range(n):
                value = x[t + 1, i]
                for k in range(n):
                    x[t, k] -= X[i, k] * value
        backward_substitute(diagonal[t], n, x[t])
