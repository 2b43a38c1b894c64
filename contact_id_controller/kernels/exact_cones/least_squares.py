"""Least squares over exact friction cones and rays, by a semismooth Newton method on the dual.

    min 1/2 |z|^2 + 1/2 |y|^2_{D^-1}   z_i in K_i,  D^(1/2) y = W^T z - target

is, in the multipliers x of the last line, smooth and convex:

    min 1/2 x^T D x + target^T x + 1/2 |P_K(-W x)|^2

K_i is the cone |z_T| <= mu z_N, three rows of W, or a ray, one row. As ``cone_newton`` for polygons; here the
pieces are curved, so that steps converge quadratically instead of ending. An entry of D may be zero: that row
holds with equality. Where no z meets it the multipliers grow without bound, and soon prove it (Farkas).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.inlined import bare_inlined
from contact_id_controller.kernels.triangular import (
    backward_substitute,
    cholesky,
    forward_substitute,
)

TIGHT = 1e-14  # defect, relative to the largest target, below which there is nothing to gain
ACCEPTED = 1e-11  # defect that will do where rounding lets the method descend no further
DAMPING = 1e-14  # smallest Levenberg term relative to the Hessian's trace
MORE_DAMPING = 100.0
LEAST_DAMPING = 1e-12
MAX_DAMPINGS = 8
FLAT = 0.1  # a line search ends where this share of the first slope is left
INWARD = 0.05  # and keeps this share of its bracket away from both of its ends
MAX_TRIALS = 20
LITTLE = (
    1e-6  # defect from which on steps that gain ever the same share say where the method would end
)
SLOW = 0.1  # share of the defect left by a step after which a proof of failure is looked for
ABSURD = 1e3  # forces this much larger than the targets held with equality count as none


class Sets(NamedTuple):
    """Cones first, three rows of W each, then rays, a row each.

    W (3p + q, dim), mu (p,) finite and positive.
    """

    W: np.ndarray
    mu: np.ndarray


class Search(NamedTuple):
    """Room: forces, trial, slope (rows,); R (rows, dim); H (dim, dim); gradient, step (dim,)."""

    forces: np.ndarray
    trial: np.ndarray
    slope: np.ndarray
    R: np.ndarray
    H: np.ndarray
    gradient: np.ndarray
    step: np.ndarray


@bare_kernel
def _project(mu, forces, z):
    """z (rows,): the nearest points of the cones and rays to ``forces`` (rows,)."""
    p = mu.shape[0]
    for i in range(p):
        normal, first, second = forces[3 * i], forces[3 * i + 1], forces[3 * i + 2]
        length = math.sqrt(first * first + second * second)
        if length <= mu[i] * normal:
            z[3 * i], z[3 * i + 1], z[3 * i + 2] = normal, first, second
        elif mu[i] * length <= -normal:
            z[3 * i] = z[3 * i + 1] = z[3 * i + 2] = 0.0
        else:
            height = (normal + mu[i] * length) / (1.0 + mu[i] * mu[i])
            share = mu[i] * height / length
            z[3 * i], z[3 * i + 1], z[3 * i + 2] = height, share * first, share * second
    for r in range(3 * p, z.shape[0]):
        z[r] = max(forces[r], 0.0)


@bare_kernel
def _pieces(W, mu, forces, R):
    """Rows R whose R^T R is the Hessian's part W^T P' W at ``forces``; returns how many."""
    p, dim, count = mu.shape[0], W.shape[1], 0
    for i in range(p):
        normal, first, second = forces[3 * i], forces[3 * i + 1], forces[3 * i + 2]
        length = math.sqrt(first * first + second * second)
        if length <= mu[i] * normal:
            for d in range(3):
                source, target = W[3 * i + d], R[count]
                for k in range(dim):
                    target[k] = source[k]
                count += 1
        elif mu[i] * length > -normal:
            unit = 1.0 / math.sqrt(1.0 + mu[i] * mu[i])
            across = math.sqrt(mu[i] * (normal + mu[i] * length) / length) * unit / length
            along = mu[i] * unit / length
            a, b, c = W[3 * i], W[3 * i + 1], W[3 * i + 2]
            generator, tangent = R[count], R[count + 1]
            for k in range(dim):
                generator[k] = unit * a[k] + along * (first * b[k] + second * c[k])
                tangent[k] = across * (first * c[k] - second * b[k])
            count += 2
    for r in range(3 * p, W.shape[0]):
        if forces[r] > 0.0:
            source, target = W[r], R[count]
            for k in range(dim):
                target[k] = source[k]
            count += 1
    return count


@bare_kernel
def _add_gram(R, rows, H):
    """H (dim, dim), lower triangle, += R^T R of the first ``rows`` rows, four at a time."""
    dim = R.shape[1]
    whole = rows - rows % 4
    for r in range(0, whole, 4):
        first, second, third, fourth = R[r], R[r + 1], R[r + 2], R[r + 3]
        for a in range(dim):
            target = H[a]
            w, x, y, z = first[a], second[a], third[a], fourth[a]
            for b in range(a + 1):
                target[b] += w * first[b] + x * second[b] + y * third[b] + z * fourth[b]
    for r in range(whole, rows):
        row = R[r]
        for a in range(dim):
            target = H[a]
            for b in range(a + 1):
                target[b] += row[a] * row[b]


@bare_kernel
def _hessian(sets, weight, damping, inside, search):
    """Lower triangle of the damped Hessian at search.forces; ``inside``: as if all lay in their sets.

    Returns its trace.
    """
    H, dim = search.H, sets.W.shape[1]
    for a in range(dim):
        fill(H[a], 0.0)
        H[a, a] = weight[a]
    if inside:
        _add_gram(sets.W, sets.W.shape[0], H)
    else:
        _add_gram(search.R, _pieces(sets.W, sets.mu, search.forces, search.R), H)
    trace = 0.0
    for k in range(dim):
        trace += H[k, k]
    for k in range(dim):
        H[k, k] += damping + DAMPING * trace
    return trace


@bare_kernel
def _gradient(W, weight, target, x, z, gradient):
    """target + weight x - W^T z; returns its largest entry, infinite where it is not finite."""
    for k in range(x.shape[0]):
        gradient[k] = target[k] + weight[k] * x[k]
    for r in range(z.shape[0]):
        amount, row = z[r], W[r]
        if amount != 0.0:
            for k in range(x.shape[0]):
                gradient[k] -= row[k] * amount
    largest = 0.0
    for k in range(x.shape[0]):
        if not abs(gradient[k]) < np.inf:
            return np.inf
        largest = max(largest, abs(gradient[k]))
    return largest


@bare_kernel
def _excluded(sets, weight, target, x, search):
    """Whether no z of ordinary size meets the rows held with equality: W^T z = target there.

    For every such z in the sets, target^T x = z^T W x >= -|z| |P_K(-W x)|, x taken on these rows alone.
    """
    W, forces, nearest = sets.W, search.trial, search.slope
    power, size, length = 0.0, 0.0, 0.0
    for k in range(x.shape[0]):
        if weight[k] == 0.0:
            power += target[k] * x[k]
            size = max(size, abs(target[k]))
    if not power < 0.0:
        return False
    for r in range(W.shape[0]):
        row, total = W[r], 0.0
        for k in range(x.shape[0]):
            total -= row[k] * x[k] if weight[k] == 0.0 else 0.0
        forces[r] = total
    _project(sets.mu, forces, nearest)
    for r in range(W.shape[0]):
        length += nearest[r] * nearest[r]
    return -power > ABSURD * size * math.sqrt(length)


@bare_inlined
def _descend(sets, weight, target, x, z, search):
    """Share of the step at which the objective along it is nearly flat; search.trial and z belong to it.

    Returns 0 where the objective does not fall.
    """
    forces, trial, slope_of, step = search.forces, search.trial, search.slope, search.step
    W, mu, gradient = sets.W, sets.mu, search.gradient
    start, curvature, level = 0.0, 0.0, 0.0
    for k in range(step.shape[0]):
        start += gradient[k] * step[k]
        level += (target[k] + weight[k] * x[k]) * step[k]
        curvature += weight[k] * step[k] * step[k]
    if not start < 0.0:
        return 0.0
    for r in range(W.shape[0]):
        row, total = W[r], 0.0
        for k in range(step.shape[0]):
            total += row[k] * step[k]
        slope_of[r] = total
    low, high, low_slope, high_slope, share = 0.0, 1.0, start, 0.0, 1.0
    for attempt in range(MAX_TRIALS):
        for r in range(forces.shape[0]):
            trial[r] = forces[r] - share * slope_of[r]
        _project(mu, trial, z)
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


@bare_kernel
def _minimise(sets, weight, target, limit, x, z, search):
    """The method from x = 0, see ``least_squares``; its first step takes all forces to lie inside their sets."""
    W, mu, H, step = sets.W, sets.mu, search.H, search.step
    dim = W.shape[1]
    norm = 0.0
    for k in range(dim):
        norm = max(norm, abs(target[k]))
        x[k] = 0.0
    for r in range(W.shape[0]):
        search.forces[r] = z[r] = 0.0
    if norm == 0.0:
        return 0
    before = _gradient(W, weight, target, x, z, search.gradient)
    for iteration in range(limit):
        damping, share = 0.0, 0.0
        for attempt in range(MAX_DAMPINGS):
            trace = _hessian(sets, weight, damping, iteration == 0, search)
            for k in range(dim):
                step[k] = -search.gradient[k]
            if cholesky(H, dim, 0.0):
                forward_substitute(H, dim, step)
                backward_substitute(H, dim, step)
                share = _descend(sets, weight, target, x, z, search)
            if share > 0.0:
                break
            damping = max(MORE_DAMPING * damping, LEAST_DAMPING * trace)
        if share > 0.0:
            for k in range(dim):
                x[k] += share * step[k]
            for r in range(W.shape[0]):
                search.forces[r] = search.trial[r]
        else:
            _project(mu, search.forces, z)
        now = _gradient(W, weight, target, x, z, search.gradient)
        if now <= TIGHT * norm or (now <= ACCEPTED * norm and (share == 0.0 or now > 0.5 * before)):
            return iteration + 1
        if share == 0.0 or not now < np.inf:
            return -iteration - 1
        if now > SLOW * before:
            ahead = limit - iteration - 1
            if now <= LITTLE * norm and now * (now / before) ** ahead > ACCEPTED * norm:
                return -iteration - 1
            if _excluded(sets, weight, target, x, search):
                return -iteration - 1
        before = now
    return -limit


@kernel
def least_squares(W, mu, weight, target, limit, x, z):
    """Solve in place. Returns Newton steps, negative where there is no solution or the method failed by ``limit``.

    Args:
        W (3p + q, dim), mu (p,): see ``Sets``.
        weight (dim,): the diagonal of D, none negative.  target (dim,).
        x (dim,), z (3p + q,): multipliers and forces, out.
    """
    rows, dim = W.shape
    search = Search(
        np.empty(rows),
        np.empty(rows),
        np.empty(rows),
        np.empty((rows, dim)),
        np.empty((dim, dim)),
        np.empty(dim),
        np.empty(dim),
    )
    return _minimise(Sets(W, mu), weight, target, limit, x, z, search)
