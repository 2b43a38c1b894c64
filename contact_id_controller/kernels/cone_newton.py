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

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.pyramid import (
    INSIDE,
    STICKING,
    AdmissibleSets,
    Pieces,
    edge,
    edge_directions,
    project_contact,
)
from contact_id_controller.kernels.triangular import (
    backward_substitute,
    cholesky,
    forward_substitute,
)

TIGHT = 1e-13  # defect, relative to the largest target, below which there is nothing to gain
ACCEPTED = 1e-9  # defect that will do when rounding lets the method descend no further
DAMPING = 1e-14  # smallest Levenberg term relative to the Hessian's trace
FLAT = 0.1  # a line search ends where this share of the first slope is left
INWARD = 0.05  # and keeps this share of its bracket away from both of its ends
MAX_STEPS = 60
MAX_TRIALS = 20
MAX_DAMPINGS = 8
NONE = -1  # no piece yet


@bare_kernel
def _project(forces, sets, z, pieces):
    """z (3n,) and its pieces: the projection of ``forces`` (3n,), contact by contact."""
    mode, angle, span, mu, directions = sets.mode, sets.angle, sets.span, sets.mu, sets.directions
    number, basis, first, second = pieces.number, pieces.basis, pieces.first, pieces.second
    for i in range(mode.shape[0]):
        force, out = forces[3 * i : 3 * i + 3], z[3 * i : 3 * i + 3]
        number[i] = project_contact(
            mode[i], angle[i], span[i], mu[i], directions, force, out, basis[i], first, second
        )


@bare_kernel
def _times(W, x, out):
    """out = W x."""
    for r in range(W.shape[0]):
        row, total = W[r], 0.0
        for k in range(x.shape[0]):
            total += row[k] * x[k]
        out[r] = total


@bare_kernel
def _gradient(W, weight, target, x, z, gradient):
    """target + weight x - W^T z."""
    for k in range(x.shape[0]):
        gradient[k] = target[k] + weight[k] * x[k]
    for r in range(z.shape[0]):
        amount, row = z[r], W[r]
        if amount != 0.0:
            for k in range(x.shape[0]):
                gradient[k] -= row[k] * amount


@bare_kernel
def _add_piece(W, i, piece, basis, sign, columns, H):
    """H += sign (W_i basis)(W_i basis)^T, lower triangle; basis (3, 3), its first rows count."""
    dim = W.shape[1]
    rank = piece & 3
    if rank == 0:
        return
    first, second, third = W[3 * i], W[3 * i + 1], W[3 * i + 2]
    if rank < 3:
        for r in range(3):
            x, y, z = basis[r, 0], basis[r, 1], basis[r, 2]
            if r >= rank:
                x, y, z = 0.0, 0.0, 0.0
            for k in range(dim):
                columns[r, k] = x * first[k] + y * second[k] + z * third[k]
        first, second, third = columns[0], columns[1], columns[2]
    for a in range(dim):
        x, y, z = sign * first[a], sign * second[a], sign * third[a]
        row = H[a]
        for b in range(a + 1):
            row[b] += x * first[b] + y * second[b] + z * third[b]


@bare_kernel
def _update_hessian(W, weight, pieces, basis, held, held_basis, columns, H):
    """H = D + sum of W basis (W basis)^T for the given pieces; only what changed since ``held``.

    A piece's basis never changes, so equal numbers mean equal terms. Returns the trace.
    """
    n, dim = pieces.shape[0], W.shape[1]
    changed = 0
    for i in range(n):
        if pieces[i] != held[i]:
            changed += 1
    anew = 3 * changed > n  # cheaper, and without the rounding of what would be taken away
    if anew:
        for a in range(dim):
            fill(H[a], 0.0)
            H[a, a] = weight[a]
    for i in range(n):
        if anew or pieces[i] != held[i]:
            if not anew:
                _add_piece(W, i, held[i], held_basis[i], -1.0, columns, H)
            _add_piece(W, i, pieces[i], basis[i], 1.0, columns, H)
            held[i] = pieces[i]
            for r in range(3):
                for d in range(3):
                    held_basis[i, r, d] = basis[i, r, d]
    trace = 0.0
    for k in range(dim):
        trace += H[k, k]
    return trace


@bare_kernel
def _assume_inside(sets, pieces, z, force):
    """Pieces for a first step that takes every force to lie inside its cone; z (3n,), force (3,): work."""
    mode, angle, span, mu, directions = sets.mode, sets.angle, sets.span, sets.mu, sets.directions
    number, basis, first, second = pieces.number, pieces.basis, pieces.first, pieces.second
    for i in range(mode.shape[0]):
        if mode[i] == STICKING and mu[i] > 0.0:
            number[i] = INSIDE
            for r in range(3):
                for d in range(3):
                    basis[i, r, d] = 1.0 if r == d else 0.0
        else:
            force[0], force[1], force[2] = 1.0, 0.0, 0.0
            if mode[i] != STICKING:
                edge(mu[i], angle[i] + 0.5 * span[i], force)
            out = z[3 * i : 3 * i + 3]
            number[i] = project_contact(
                mode[i], angle[i], span[i], mu[i], directions, force, out, basis[i], first, second
            )


@bare_kernel
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
        mode, angle, span (n,), mu (n,), edges: the cones, see ``pyramid.project_contact``.
        x (dim,): zero for a cold start, or the multipliers of a similar problem; out.
        z (3n,): out.
    """
    n, dim = mode.shape[0], W.shape[1]
    forces, trial, slope_of = np.empty(3 * n), np.empty(3 * n), np.empty(3 * n)
    H, L, columns = np.empty((dim, dim)), np.empty((dim, dim)), np.empty((3, dim))
    gradient, step = np.empty(dim), np.empty(dim)
    held, held_basis = np.empty(n, np.int64), np.empty((n, 3, 3))
    number, basis = np.empty(n, np.int64), np.zeros((n, 3, 3))
    pieces = Pieces(number, basis, np.empty(3), np.empty(3))
    directions = np.empty((edges, 2))
    edge_directions(edges, directions)
    sets = AdmissibleSets(mode, angle, span, mu, directions)
    for i in range(n):
        held[i] = NONE
    norm, warm = 0.0, False
    for k in range(dim):
        norm = max(norm, abs(target[k]))
        warm = warm or x[k] != 0.0
    _times(W, x, forces)
    for r in range(3 * n):
        forces[r] = -forces[r]
        if shift.shape[0]:
            forces[r] -= shift[r]
            for k in range(dim):
                norm = max(norm, abs(W[r, k] * shift[r]))
    _project(forces, sets, z, pieces)
    if norm == 0.0:
        return 0
    _gradient(W, weight, target, x, z, gradient)
    if not warm and not shift.shape[0]:
        _assume_inside(sets, pieces, trial, np.empty(3))
    for iteration in range(MAX_STEPS):
        trace = _update_hessian(W, weight, number, basis, held, held_basis, columns, H)
        damping, share = DAMPING * trace, 0.0
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
                _times(W, step, slope_of)
                share = _search(
                    forces, slope_of, weight, target, x, step, gradient, sets, trial, z, pieces
                )
            if share > 0.0:
                break
            damping = max(damping, 1e-12 * trace) * 100.0
        if share > 0.0:
            for k in range(dim):
                x[k] += share * step[k]
            for r in range(3 * n):
                forces[r] = trial[r]
            _gradient(W, weight, target, x, z, gradient)
        defect = _defect(gradient)
        settled = share == 1.0
        for i in range(n):
            settled = settled and number[i] == held[i]
        # A full step on settled pieces is exact: all that is left of the defect is rounding.
        if defect <= (ACCEPTED if settled or share == 0.0 else TIGHT) * norm:
            return iteration + 1
        if share == 0.0:
            return -iteration - 1
    return MAX_STEPS if _defect(gradient) <= ACCEPTED * norm else -MAX_STEPS


@bare_kernel
def _search(forces, slope_of, weight, target, x, step, gradient, sets, trial, z, pieces):
    """Share of ``step`` at which the convex objective along it is nearly flat; trial, z belong to it.

    The derivative target^T step + x^T D step - (W step)^T z is monotone and costs no product with W.
    Returns 0, with z projected anew from ``forces``, where the objective does not fall.
    """
    start, curvature, level = 0.0, 0.0, 0.0
    for k in range(step.shape[0]):
        start += gradient[k] * step[k]
        level += (target[k] + weight[k] * x[k]) * step[k]
        curvature += weight[k] * step[k] * step[k]
    low, high, low_slope, high_slope = 0.0, 1.0, start, 0.0
    share = 1.0 if start < 0.0 else 0.0
    for attempt in range(MAX_TRIALS):
        for r in range(forces.shape[0]):
            trial[r] = forces[r] - share * slope_of[r]
        _project(trial, sets, z, pieces)
        slope = level + share * curvature
        for r in range(forces.shape[0]):
            slope -= slope_of[r] * z[r]
        flat = abs(slope) <= -FLAT * start or (share == 1.0 and slope <= 0.0)
        if flat or share == 0.0 or attempt == MAX_TRIALS - 1:
            break
        if slope > 0.0:
            high, high_slope = share, slope
        else:
            low, low_slope = share, slope
        if attempt == MAX_TRIALS - 2:
            share = low
        else:
            width = high - low
            share = low - low_slope * width / (high_slope - low_slope)
            share = min(max(share, low + INWARD * width), high - INWARD * width)
    return share
