"""Independent rows: Householder QR with column pivoting, small and in place."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import kernel

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


@kernel
def concentrate(At, b, chosen, reflectors):
    """Rotate the rows of A x = b in place so that the chosen variables stand in the first ones only.

    At (N, p): A transposed. chosen (N,) bool. reflectors (k, p): out, unit Householder vectors.
    Returns how many there are; ``rotate`` applies them to a vector of the rows.
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
