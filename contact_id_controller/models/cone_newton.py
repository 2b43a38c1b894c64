"""Least-squares problems over friction cones, by a semismooth Newton method on their dual.

    min 1/2 |z + shift|^2 + 1/2 |y|^2_{D^-1}   z_i in K_i,  D^(1/2) y = W^T z - target

is, in the multipliers x of the last line, the smooth and piecewise quadratic problem

    min 1/2 x^T D x + target^T x + 1/2 |P_K(-W x - shift)|^2

with one variable for each row of W^T, whatever the number of contacts. A step costs O(n dim^2); the
active pieces of the cones settle in a few steps, and the last step is then exact. An entry of D may
be zero: that row holds with equality.
"""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel
from ..problem import backward_substitute, cholesky, fill, forward_substitute
from .cones import INSIDE, STICKING, ZERO, edge, project_contact

TIGHT = 1e-13       # defect, relative to the largest target, below which there is nothing to gain
ACCEPTED = 1e-9     # defect that will do when rounding lets the method descend no further
DAMPING = 1e-14             # smallest Levenberg term relative to the Hessian's trace
ARMIJO = 1e-4
MAX_STEPS = 60
MAX_HALVINGS = 12
MAX_DAMPINGS = 8


@kernel
def _project(W, x, shift, mode, angle, span, mu, edges, z, pieces, basis, force, first, second):
    """z(x) = projection of -W x - shift; returns 1/2 |z|^2."""
    half = 0.0
    for i in range(mode.shape[0]):
        for r in range(3):
            row = W[3 * i + r]
            total = -shift[3 * i + r] if shift.shape[0] else 0.0
            for k in range(x.shape[0]):
                total -= row[k] * x[k]
            force[r] = total
        pieces[i] = project_contact(mode[i], angle[i], span[i], mu[i], edges, force,
                                    z[3 * i:3 * i + 3], basis[i], first, second)
        for r in range(3):
            half += 0.5 * z[3 * i + r] * z[3 * i + r]
    return half


@kernel
def _hessian(W, weight, pieces, basis, column, H):
    """H = D + sum over the pieces of (W basis)(W basis)^T, lower triangle; returns its trace."""
    dim = W.shape[1]
    for a in range(dim):
        fill(H[a], 0.0)
    for i in range(pieces.shape[0]):
        for r in range(pieces[i]):
            for k in range(dim):
                column[k] = (basis[i, r, 0] * W[3 * i, k] + basis[i, r, 1] * W[3 * i + 1, k]
                             + basis[i, r, 2] * W[3 * i + 2, k])
            for a in range(dim):
                factor = column[a]
                for b in range(a + 1):
                    H[a, b] += factor * column[b]
    trace = 0.0
    for k in range(dim):
        H[k, k] += weight[k]
        trace += H[k, k]
    return trace


@kernel
def assume_inside(mode, angle, span, mu, edges, pieces, basis, z, force, first, second):
    """Pieces for a first step that takes every force to lie inside its cone."""
    for i in range(mode.shape[0]):
        if mode[i] == STICKING and mu[i] > 0.0:
            pieces[i] = INSIDE
            for r in range(3):
                for d in range(3):
                    basis[i, r, d] = 1.0 if r == d else 0.0
        else:
            force[0], force[1], force[2] = 1.0, 0.0, 0.0
            if mode[i] != STICKING:
                edge(mu[i], angle[i] + 0.5 * span[i], force)
            pieces[i] = project_contact(mode[i], angle[i], span[i], mu[i], edges, force,
                                        z[3 * i:3 * i + 3], basis[i], first, second)


@kernel
def _defect(gradient):
    largest = 0.0
    for k in range(gradient.shape[0]):
        if not abs(gradient[k]) <= largest:  # keeps NaN
            largest = abs(gradient[k])
    return largest


@kernel
def cone_newton(W, weight, target, shift, mode, angle, span, mu, edges, x, z):
    """Solve in place. Returns Newton steps, negative when the method failed.

    Args:
        W (3n, dim), weight (dim,) the diagonal of D, target (dim,), shift (3n,) or (0,) for none.
        mode, angle, span (n,), mu (n,), edges: the cones, see ``cones.project_contact``.
        x (dim,): zero for a cold start, or the multipliers of a similar problem; out.
        z (3n,): out.
    """
    n, dim = mode.shape[0], W.shape[1]
    z_try, H, L = np.empty(3 * n), np.empty((dim, dim)), np.empty((dim, dim))
    x_try, gradient, step, column = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    pieces = np.empty(n, np.int64)
    basis = np.zeros((n, 3, 3))
    force, first, second = np.empty(3), np.empty(3), np.empty(3)
    norm, warm = 0.0, False
    for k in range(dim):
        norm = max(norm, abs(target[k]))
        warm = warm or x[k] != 0.0
    if shift.shape[0]:
        for r in range(3 * n):
            for k in range(dim):
                norm = max(norm, abs(W[r, k] * shift[r]))
    value = _project(W, x, shift, mode, angle, span, mu, edges, z, pieces, basis, force, first, second)
    if norm == 0.0:
        return 0
    for k in range(dim):
        gradient[k] = target[k] + weight[k] * x[k]
        value += x[k] * (target[k] + 0.5 * weight[k] * x[k])
        for r in range(3 * n):
            gradient[k] -= W[r, k] * z[r]
    if not warm and not shift.shape[0]:
        assume_inside(mode, angle, span, mu, edges, pieces, basis, z_try, force, first, second)
    for iteration in range(MAX_STEPS):
        trace = _hessian(W, weight, pieces, basis, column, H)
        damping = DAMPING * trace
        descended = False
        trial = value
        for attempt in range(MAX_DAMPINGS):
            for a in range(dim):
                for b in range(a + 1):
                    L[a, b] = H[a, b]
                L[a, a] += damping
            if cholesky(L, dim, 0.0):
                for k in range(dim):
                    step[k] = -gradient[k]
                forward_substitute(L, dim, step)
                backward_substitute(L, dim, step)
                slope = 0.0
                for k in range(dim):
                    slope += gradient[k] * step[k]
                share = 1.0
                for halving in range(MAX_HALVINGS):
                    trial = 0.0
                    for k in range(dim):
                        x_try[k] = x[k] + share * step[k]
                        trial += x_try[k] * (target[k] + 0.5 * weight[k] * x_try[k])
                    trial += _project(W, x_try, shift, mode, angle, span, mu, edges, z_try, pieces,
                                      basis, force, first, second)
                    if trial <= value + ARMIJO * share * slope + 1e-15 * abs(value):
                        descended = True
                        break
                    share *= 0.5
            if descended:
                break
            damping = max(damping, 1e-12 * trace) * 100.0
        if not descended:
            return iteration if _defect(gradient) <= ACCEPTED * norm else -iteration - 1
        value = trial
        for k in range(dim):
            x[k] = x_try[k]
            gradient[k] = target[k] + weight[k] * x[k]
        for r in range(3 * n):
            amount = z_try[r]
            z[r] = amount
            if amount != 0.0:
                for k in range(dim):
                    gradient[k] -= W[r, k] * amount
        if _defect(gradient) <= TIGHT * norm:
            return iteration + 1
    return MAX_STEPS if _defect(gradient) <= ACCEPTED * norm else -MAX_STEPS
