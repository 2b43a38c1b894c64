"""Independent rows: Householder QR with column pivoting, small and in place."""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel

INDEPENDENCE = 1e-8  # a direction counts when this share of the largest one is left


@kernel
def independent_rows(K, k, rows, order, norms):
    """Replace K x = k by as many equations as K has independent rows; K, k are overwritten.

    Args:
        K (m, n), k (m,): the system; only the first ``rows`` rows count.
        order (n,) int64, norms (n,): workspace.

    Returns (rank, least-squares residual): the first rank rows of K and k are the new system, in
    the order of the original columns; residual is the length of what no x can satisfy.
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
