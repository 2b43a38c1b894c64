"""All solutions of a small Coulomb LCP, basis by basis, in plain numpy and quadprog.

Nothing of the package is used but the matrices of the problem. For each choice of basic variables
the solutions form a polyhedron {x >= 0, w >= 0}, x basic, w nonbasic; of each the point nearest to
given impulses is found.
"""

from itertools import product

import numpy as np
import quadprog

WEAK = 1e-11  # weight of what the impulses do not depend on


def coulomb_lcp(Y, free, mu, edges):
    """The matrix and vector of eq. 64, corrected, and D with impulses = D^T x.

    Variables contact by contact: normal, edges, slip speed (edges + 2 each).
    """
    n, block = len(mu), edges + 2
    angle = 2.0 * np.pi * np.arange(edges) / edges
    D = np.zeros((n * block, 3 * n))
    M = np.zeros((n * block, n * block))
    for i in range(n):
        at = i * block
        D[at, 3 * i] = 1.0
        D[at + 1 : at + 1 + edges, 3 * i + 1] = np.cos(angle)
        D[at + 1 : at + 1 + edges, 3 * i + 2] = np.sin(angle)
    M += D @ Y @ Y.T @ D.T
    for i in range(n):
        first, slip = i * block, i * block + edges + 1
        M[first + 1 : slip, slip] = 1.0
        M[slip, first + 1 : slip] = -1.0
        M[slip, first] = mu[i]
    return M, D @ free, D


def all_bases(n, edges):
    """Every choice of basic variables."""
    return product([False, True], repeat=n * (edges + 2))


def modes(n, edges):
    """The bases that suffice: a contact parts, sticks, slides on an edge or between two."""
    single = [np.arange(edges + 2) == edges + 1, np.arange(edges + 2) <= edges]
    for j in range(edges):
        for width in (1, 2):
            basic = np.zeros(edges + 2, dtype=bool)
            basic[[0, edges + 1, *(1 + (j + k) % edges for k in range(width))]] = True
            single.append(basic)
    return (np.concatenate(choice) for choice in product(single, repeat=n))


def solutions(M, q, D, last, bases, loose=1e-9):
    """Of every basis with solutions the impulses nearest to ``last``: a list of vectors (3n,).

    loose: by which conditions are relaxed, for many polyhedra are thin.
    """
    found = []
    for basis in bases:
        x = np.zeros(len(q))
        basic = np.flatnonzero(basis)
        if len(basic):
            x[basic] = _nearest(M, q, D, last, basic, loose)
        w = M @ x + q
        # Trust no solver: everything once more on the whole LCP.
        if np.minimum(x, w).min() >= -2.0 * loose and np.minimum(x, w).max() <= 2.0 * loose:
            found.append(D.T @ x)
    return found


def _nearest(M, q, D, last, basic, loose):
    """The nearest basic variables x, nan when there are none."""
    rest = np.setdiff1d(np.arange(len(q)), basic)
    none = np.full(len(basic), np.nan)
    # Those that satisfy their equations: particular + span @ y.
    left, size, right = np.linalg.svd(M[np.ix_(basic, basic)])
    rank = int((size > 1e-10 * max(size[0], 1.0)).sum())
    particular = -right[:rank].T @ ((left[:, :rank].T @ q[basic]) / size[:rank])
    if np.abs(M[np.ix_(basic, basic)] @ particular + q[basic]).max() > loose:
        return none
    span = right[rank:].T
    if span.shape[1] == 0:
        return particular
    A = np.vstack([np.eye(len(basic)), M[np.ix_(rest, basic)]])
    bound = -A @ particular - np.concatenate([np.zeros(len(basic)), q[rest]]) - loose
    Z = D[basic].T @ span
    H = Z.T @ Z + WEAK * np.eye(span.shape[1])
    try:
        y = quadprog.solve_qp(
            H, Z.T @ (last - D[basic].T @ particular), np.ascontiguousarray((A @ span).T), bound
        )[0]
    except ValueError:  # empty
        return none
    return particular + span @ y if np.isfinite(y).all() else none
