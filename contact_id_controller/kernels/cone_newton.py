"""Least-squares problems over friction cones, by a semismooth Newton method on their dual.

    min 1/2 |z + shift|^2 + 1/2 |y|^2_{D^-1}   z_i in K_i,  D^(1/2) y = W^T z - target

is, in the multipliers x of the last line, the smooth and convex problem

    min 1/2 x^T D x + target^T x + 1/2 |P_K(-W x - shift)|^2

with one variable for each row of W^T, for any number of contacts. K_i is a pyramid or a part of one, the cone
|z_T| <= mu z_N, or a ray. A step costs O(n dim^2). On pyramids and rays the objective is piecewise quadratic: the
active pieces are found in a few steps, and the last step is then exact. On cones steps converge quadratically. An
entry of D may be zero: that row is an equation. If no z satisfies it the multipliers grow without bound, and on cones
soon prove it (Farkas).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import (
    add_rows,
    add_squares,
    backward_substitute,
    cholesky,
    forward_substitute,
    gram,
    times_rows,
)
from contact_id_controller.kernels.inlined import bare_inlined
from contact_id_controller.kernels.pyramid import (
    INSIDE,
    PLANE,
    RAY,
    STICKING,
    ZERO,
    AdmissibleSets,
    Pieces,
    edge,
    edge_directions,
    project_contact,
)

TIGHT = 1e-14  # defect, relative to what is to be met, below which there is nothing to gain
ACCEPTED = 1e-11  # defect that will do where a step gains nothing
ENOUGH = 1e-9  # defect that will do where rounding lets the method descend no further
EPSILON = 2.3e-16  # rounding of one operation
ROUNDINGS = 4.0  # a gradient of so many roundings of its largest terms is zero,
LOST = 100.0  # of so many times more will do where nothing is gained
GAIN = 0.5  # share of the defect that a step leaves at most if it gains something
DAMPING = 1e-14  # smallest Levenberg term relative to the Hessian's trace
FLAT = 0.1  # a line search ends where this share of the first slope is left
INWARD = 0.05  # and keeps this share of its bracket away from both of its ends
MAX_STEPS = 60
MAX_TRIALS = 20
MAX_DAMPINGS = 8
REFINEMENTS = 2
OUTSIDE = 1e-12  # distance of forces from their cones, relative to the largest, that is rounding
NONE = -1  # no piece yet
# Where steps converge only:
SLOW = 0.1  # share of the defect left by a step after which a proof of failure is looked for
LITTLE = 1e-6  # defect from which on the last step's share predicts where the method would end
ABSURD = 1e3  # forces this much larger than the targets held with equality count as none


class Rows(NamedTuple):
    """W (3n + q, dim), weight (dim,) the diagonal of D, target (dim,), shift (3n + q,) or (0,) for none."""

    W: np.ndarray
    weight: np.ndarray
    target: np.ndarray
    shift: np.ndarray


class Search(NamedTuple):
    """Workspace: forces, trial, slope (rows,), gradient, ahead, step (dim,), H, L (dim, dim), columns (3, dim).

    held (n + q,), held_basis (n, 3, 3): the pieces of which H is made now.  across (dim, rows): rows of all pieces.
    """

    forces: np.ndarray
    trial: np.ndarray
    slope: np.ndarray
    gradient: np.ndarray
    ahead: np.ndarray
    step: np.ndarray
    H: np.ndarray
    L: np.ndarray
    columns: np.ndarray
    held: np.ndarray
    held_basis: np.ndarray
    across: np.ndarray


@kernel
def pyramids(mode, angle, span, mu, edges):
    """Admissible sets K_i of n contacts: parts of pyramids with ``edges`` edges, or if 0 cones |z_T| <= mu z_N.

    mode, angle, span, mu (n,): see ``project_contact``.
    """
    directions = np.empty((edges, 2))
    edge_directions(edges, directions)
    return AdmissibleSets(mode, angle, span, mu, directions)


@bare_kernel
def _project_cone(mu, force, z):
    """Project ``force`` (3,) onto |z_T| <= mu z_N, into z (3,); returns the piece, PLANE on the curved side."""
    normal, first, second = force[0], force[1], force[2]
    length = math.sqrt(first * first + second * second)
    if length <= mu * normal:
        z[0], z[1], z[2] = normal, first, second
        return INSIDE
    if mu * length <= -normal:
        z[0] = z[1] = z[2] = 0.0
        return ZERO
    height = (normal + mu * length) / (1.0 + mu * mu)
    share = mu * height / length
    z[0], z[1], z[2] = height, share * first, share * second
    return PLANE


@bare_kernel
def _curved_basis(mu, force, basis):
    """Write rows of ``basis`` (3, 3) whose Gram matrix is the derivative of ``_project_cone`` at ``force`` (3,)."""
    normal, first, second = force[0], force[1], force[2]
    length = math.sqrt(first * first + second * second)
    unit = 1.0 / math.sqrt(1.0 + mu * mu)
    across = math.sqrt(mu * (normal + mu * length) / length) * unit / length
    along = mu * unit / length
    basis[0, 0], basis[0, 1], basis[0, 2] = unit, along * first, along * second
    basis[1, 0], basis[1, 1], basis[1, 2] = 0.0, -across * second, across * first


@bare_kernel
def _project(forces, sets, z, pieces):
    """z = P_K(forces), contact by contact, then ray by ray, (3n + q,); ``pieces``, out: the face on which each lies."""
    mode, angle, span, mu, directions = sets.mode, sets.angle, sets.span, sets.mu, sets.directions
    number, basis, first, second = pieces.number, pieces.basis, pieces.first, pieces.second
    n, exact = mode.shape[0], directions.shape[0] == 0
    for i in range(n):
        force, out = forces[3 * i : 3 * i + 3], z[3 * i : 3 * i + 3]
        if exact:
            number[i] = _project_cone(mu[i], force, out)
        else:
            number[i] = project_contact(
                mode[i], angle[i], span[i], mu[i], directions, force, out, basis[i], first, second
            )
    for r in range(3 * n, forces.shape[0]):
        z[r] = max(forces[r], 0.0)
        number[r - 2 * n] = RAY if forces[r] > 0.0 else ZERO


@bare_kernel
def _gradient(rows, x, z, gradient):
    """gradient (dim,) = target + weight x - W^T z; returns its largest entry, infinite if one is not finite.

    x (dim,), z (3n + q,).
    """
    W, weight, target = rows.W, rows.weight, rows.target
    for k in range(x.shape[0]):
        gradient[k] = target[k] + weight[k] * x[k]
    add_rows(W, z, -1.0, gradient)
    largest = 0.0
    for k in range(x.shape[0]):
        if not abs(gradient[k]) < np.inf:
            return np.inf
        largest = max(largest, abs(gradient[k]))
    return largest


@bare_kernel
def _add_piece(W, i, piece, basis, sign, columns, H):
    """Add sign (B W_i)^T (B W_i) to the lower triangle of H (dim, dim), W_i = W[3 i:3 i + 3], W (3 n, dim).

    B: the first ``piece & 3`` rows (rank 0 to 3) of basis (3, 3), orthonormal, so at rank 3 B^T B = 1 and basis is not
    read. On a cone's curved side see ``_curved_basis``. columns (3, dim): workspace; sign: 1 adds, -1 removes.
    """
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
    add_squares(first, second, third, sign, H)


@bare_kernel
def _pack_piece(W, i, piece, basis, count, across):
    """Write the rows B W_i of ``_add_piece`` into columns of ``across`` (dim, ..) from ``count``; returns the next one."""
    rank = piece & 3
    first, second, third = W[3 * i], W[3 * i + 1], W[3 * i + 2]
    if rank == 3:
        for k in range(W.shape[1]):
            row = across[k]
            row[count], row[count + 1], row[count + 2] = first[k], second[k], third[k]
        return count + 3
    for r in range(rank):
        x, y, z = basis[r, 0], basis[r, 1], basis[r, 2]
        for k in range(W.shape[1]):
            across[k, count + r] = x * first[k] + y * second[k] + z * third[k]
    return count + rank


@bare_kernel
def _add_ray(row, sign, H):
    """Add sign row row^T to the lower triangle of H (nx, nx); row (nx,)."""
    for a in range(row.shape[0]):
        amount, target = sign * row[a], H[a]
        for b in range(a + 1):
            target[b] += amount * row[b]


@bare_kernel
def _update_hessian(rows, sets, pieces, search):
    """Update H = D + sum over pieces of (B W_i)^T (B W_i) where they differ from ``search.held``. Returns the trace.

    Pieces of equal numbers have equal bases B, except on a cone's curved side.
    """
    W, H, held, held_basis = rows.W, search.H, search.held, search.held_basis
    number, basis = pieces.number, pieces.basis
    n, dim, exact = basis.shape[0], W.shape[1], sets.directions.shape[0] == 0
    changed = 0
    for i in range(number.shape[0]):
        if number[i] != held[i]:
            changed += 1
        elif exact and i < n and number[i] == PLANE:
            held[i] += 4  # another plane
            changed += 1
    # Cheaper so, and without the rounding of what would be taken away.
    anew, count = 4 * changed > number.shape[0], 0
    for i in range(n):
        if anew or number[i] != held[i]:
            if exact and number[i] == PLANE:
                _curved_basis(sets.mu[i], search.forces[3 * i : 3 * i + 3], basis[i])
            if anew:
                count = _pack_piece(W, i, number[i], basis[i], count, search.across)
            else:
                _add_piece(W, i, held[i], held_basis[i], -1.0, search.columns, H)
                _add_piece(W, i, number[i], basis[i], 1.0, search.columns, H)
            held[i] = number[i]
            for r in range(2 if number[i] != INSIDE else 0):
                for d in range(3):
                    held_basis[i, r, d] = basis[i, r, d]
    if anew:
        gram(search.across, count, H)
        for a in range(dim):
            H[a, a] += rows.weight[a]
    for i in range(n, number.shape[0]):
        if number[i] == RAY and (anew or held[i] != RAY):
            _add_ray(W[i + 2 * n], 1.0, H)
        elif number[i] == ZERO and held[i] == RAY and not anew:
            _add_ray(W[i + 2 * n], -1.0, H)
        held[i] = number[i]
    trace = 0.0
    for k in range(dim):
        trace += H[k, k]
    return trace


@bare_kernel
def _assume_inside(sets, pieces, z, force):
    """Set ``pieces`` for the Hessian of a cold start, as if every contact carried load inside its set.

    At x = 0 without shift every force is zero, at the tip of its set, where the Hessian would be D alone. So contacts
    that may stick get the whole space (rank 3), without friction the normal, sliding ones the face at the middle of
    their part of the pyramid; rays are loaded. z (3n,), force (3,): workspace.
    """
    mode, angle, span, mu, directions = sets.mode, sets.angle, sets.span, sets.mu, sets.directions
    number, basis, first, second = pieces.number, pieces.basis, pieces.first, pieces.second
    n = mode.shape[0]
    for i in range(n):
        if mode[i] == STICKING and mu[i] > 0.0:
            number[i] = INSIDE
        else:
            force[0], force[1], force[2] = 1.0, 0.0, 0.0
            if mode[i] != STICKING:
                edge(mu[i], angle[i] + 0.5 * span[i], force)
            out = z[3 * i : 3 * i + 3]
            number[i] = project_contact(
                mode[i], angle[i], span[i], mu[i], directions, force, out, basis[i], first, second
            )
    for i in range(n, number.shape[0]):
        number[i] = RAY


@bare_kernel
def _size(rows, x):
    """Largest entry of target and D x, (dim,) each: the scale of the gradient target + D x - W^T z."""
    size = 0.0
    for k in range(x.shape[0]):
        size = max(size, abs(rows.target[k]), abs(rows.weight[k] * x[k]))
    return size


@bare_kernel
def _noise(rows, mu, x, z):
    """Rounding error of W^T z where z = P_K(-W x - shift) is a small difference of large numbers; 0 without shift.

    mu (n,), x (dim,), z (3n,).
    """
    W, shift, noise, most = rows.W, rows.shift, 0.0, 0.0
    for k in range(x.shape[0]):
        most = max(most, abs(x[k]))
    for r in range(0, shift.shape[0], 3):
        reach, large = 0.0, 0.0
        for d in range(r, r + 3):
            longest = 0.0
            for k in range(x.shape[0]):
                longest = max(longest, abs(W[d, k]))
            if z[d] != 0.0:
                reach = max(reach, longest)
            if z[d] != 0.0 or not np.isinf(
                mu[r // 3]
            ):  # bounded, one direction's rounding reaches the others
                large = max(large, abs(shift[d]) + longest * most)
        noise = max(noise, reach * large)
    return ROUNDINGS * EPSILON * noise


@bare_kernel
def _excluded(rows, sets, x, search, pieces):
    """Whether no z of ordinary size satisfies the rows that are equations, W^T z = target.

    For every such z in the sets, target^T x = z^T W x >= -|z| |P_K(-W x)|, x taken on these rows alone.
    """
    W, weight, target, forces, nearest = (
        rows.W,
        rows.weight,
        rows.target,
        search.trial,
        search.slope,
    )
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
    _project(forces, sets, nearest, pieces)
    for r in range(W.shape[0]):
        length += nearest[r] * nearest[r]
    _project(search.forces, sets, forces, pieces)
    return -power > ABSURD * size * math.sqrt(length)


@bare_inlined
def _descend(rows, sets, x, z, pieces, search):
    """Line search: share of the step at which the convex objective is nearly flat; search.trial, z belong to it.

    The derivative target^T step + x^T D step - (W step)^T z is monotone and costs no product with W.
    Returns 0, with z projected anew from ``search.forces``, if the objective does not fall.
    """
    forces, trial, slope_of, step = search.forces, search.trial, search.slope, search.step
    weight, target, gradient = rows.weight, rows.target, search.gradient
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


@bare_inlined
def _whole_step(rows, sets, x, z, pieces, defect, search):
    """1 if the full step reduces the gradient to ``GAIN`` of its size, which rounding of slopes does not blur.

    Else 0.
    """
    forces, trial, ahead, step = search.forces, search.trial, search.ahead, search.step
    for r in range(forces.shape[0]):
        trial[r] = forces[r] - search.slope[r]
    _project(trial, sets, z, pieces)
    for k in range(x.shape[0]):
        ahead[k] = x[k] + step[k]
    if _gradient(rows, ahead, z, search.gradient) <= GAIN * defect:
        return 1.0
    _project(forces, sets, z, pieces)
    _gradient(rows, x, z, search.gradient)
    return 0.0


@bare_inlined
def _advance(rows, sets, x, z, pieces, defect, search):
    """Take a step (H + damping) step = -gradient of ``_descend``'s length; returns this, 0 if rounding allows none.

    Damping grows, up to MAX_DAMPINGS times, while H is singular or the objective does not fall. defect: of the
    gradient, for ``_whole_step``.
    """
    H, L, step, gradient = search.H, search.L, search.step, search.gradient
    dim = x.shape[0]
    trace = _update_hessian(rows, sets, pieces, search)
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
            times_rows(rows.W, step, search.slope)
            share = _descend(rows, sets, x, z, pieces, search)
            if share == 0.0 and attempt == 0:
                share = _whole_step(rows, sets, x, z, pieces, defect, search)
        if share > 0.0:
            break
        damping = max(damping, 1e-12 * trace) * 100.0
    if share > 0.0:
        for k in range(dim):
            x[k] += share * step[k]
        for r in range(z.shape[0]):
            search.forces[r] = search.trial[r]
    return share


@bare_inlined
def _begin(rows, sets, warm, x, z, pieces, search):
    """Initialise forces, pieces and gradient at x (dim,), set to zero unless ``warm``.

    Returns the largest gradient entry.
    """
    forces, shift = search.forces, rows.shift
    if warm:
        times_rows(rows.W, x, forces)
    else:
        fill(forces, 0.0)
    for r in range(z.shape[0]):
        forces[r] = -forces[r] - (shift[r] if shift.shape[0] else 0.0)
    _project(forces, sets, z, pieces)
    return _gradient(rows, x, z, search.gradient)


@bare_kernel
def _minimise(rows, sets, limit, x, z, pieces, search):
    """Newton's method of ``cone_newton``, arguments and result as there; search: workspace."""
    number, held = pieces.number, search.held
    warm = False
    for k in range(x.shape[0]):
        warm = warm or x[k] != 0.0
    before = _begin(rows, sets, warm, x, z, pieces, search)
    if not before < np.inf:
        fill(x, 0.0)
        warm, before = False, _begin(rows, sets, False, x, z, pieces, search)
    if before == 0.0:
        return 0
    for i in range(held.shape[0]):
        held[i] = NONE
    if not warm and not rows.shift.shape[0]:
        _assume_inside(sets, pieces, search.trial, search.slope[:3])
    exact = sets.directions.shape[0] == 0
    for iteration in range(limit):
        share = _advance(rows, sets, x, z, pieces, before, search)
        defect = _gradient(rows, x, z, search.gradient)
        # A whole step on settled pieces is exact: all that is left of the defect is rounding.
        settled, idle = share == 1.0 and not exact, not defect <= GAIN * before
        for i in range(held.shape[0]):
            settled = settled and number[i] == held[i]
        size = _size(rows, x)
        if defect <= (ACCEPTED if settled or idle else TIGHT) * size:
            return iteration + 1
        if settled or idle:
            last = share == 0.0 or (settled and idle)
            noise = _noise(rows, sets.mu, x, z)
            if defect <= (max(ENOUGH * size, LOST * noise) if last else noise):
                return iteration + 1
        if share == 0.0 or not defect < np.inf:
            return -iteration - 1
        if exact and defect > SLOW * before:
            ahead = limit - iteration - 1
            if defect <= LITTLE * size and defect * (defect / before) ** ahead > ACCEPTED * size:
                return -iteration - 1
            if _excluded(rows, sets, x, search, pieces):
                return -iteration - 1
        before = defect
    enough = max(ENOUGH * _size(rows, x), LOST * _noise(rows, sets.mu, x, z))
    return limit if before <= enough and not exact else -limit


@kernel
def cone_newton(W, weight, target, shift, sets, limit, x, z):
    """Solve in place. Returns Newton steps, negative if there is no solution or the method failed by ``limit``.

    Args:
        W (3n + q, dim): three rows for each contact, then one for each ray.
        weight (dim,): the diagonal of D, none negative.  target (dim,).  shift (3n + q,), or (0,) for none.
        sets: of the contacts, see ``pyramids``.
        limit: Newton steps, such as ``MAX_STEPS``.
        x (dim,): zero for a cold start, or the multipliers of a similar problem; out.
        z (3n + q,): out, inside the sets in any case.
    """
    count, dim = W.shape
    n = sets.mode.shape[0]
    search = Search(
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(dim),
        np.empty(dim),
        np.empty(dim),
        np.empty((dim, dim)),
        np.empty((dim, dim)),
        np.empty((3, dim)),
        np.empty(count - 2 * n, np.int64),
        np.empty((n, 3, 3)),
        np.empty((dim, 3 * n)),
    )
    pieces = Pieces(
        np.empty(count - 2 * n, np.int64), np.zeros((n, 3, 3)), np.empty(3), np.empty(3)
    )
    return _minimise(Rows(W, weight, target, shift), sets, limit, x, z, pieces, search)


@kernel
def refine(W, eps, shift, sets, x, z):
    """Refine a solution with D = eps and no target, in place, where z is a small difference of large numbers.

    z (3n,) is corrected until (W W^T / eps + 1) z + shift vanishes along its pieces of the pyramids,
    x = W^T z / eps. If that would take forces out of their pyramids both are unchanged.
    """
    n, dim = sets.mode.shape[0], W.shape[1]
    pieces = Pieces(np.empty(n, np.int64), np.zeros((n, 3, 3)), np.empty(3), np.empty(3))
    spare = Pieces(np.empty(n, np.int64), np.zeros((n, 3, 3)), np.empty(3), np.empty(3))
    forces, moved, fit = np.empty(3 * n), np.empty(3 * n), np.empty(dim)
    H, columns = np.zeros((dim, dim)), np.zeros((3 * n, dim))
    rest, old = np.zeros(3 * n), z.copy()
    times_rows(W, x, forces)
    for r in range(3 * n):
        forces[r] = -forces[r] - shift[r]
    _project(forces, sets, z, pieces)
    for i in range(n):
        for r in range(pieces.number[i] & 3):
            for d in range(3):
                for k in range(dim):
                    columns[3 * i + r, k] += pieces.basis[i, r, d] * W[3 * i + d, k]
            _add_ray(columns[3 * i + r], 1.0, H)
    for k in range(dim):
        H[k, k] += eps
    found = cholesky(H, dim, 0.0)
    largest, outside = 0.0, 0.0
    for _ in range(REFINEMENTS if found else 0):
        fill(fit, 0.0)
        add_rows(W, z, 1.0, fit)
        times_rows(W, fit, moved)
        fill(fit, 0.0)
        for i in range(n):
            for r in range(pieces.number[i] & 3):
                rest[3 * i + r] = 0.0
                for d in range(3):
                    at = 3 * i + d
                    rest[3 * i + r] += pieces.basis[i, r, d] * (
                        moved[at] + eps * (z[at] + shift[at])
                    )
                for k in range(dim):
                    fit[k] += columns[3 * i + r, k] * rest[3 * i + r]
        forward_substitute(H, dim, fit)
        backward_substitute(H, dim, fit)
        assign(forces, z)
        for i in range(n):
            for r in range(pieces.number[i] & 3):
                change = -rest[3 * i + r]
                for k in range(dim):
                    change += columns[3 * i + r, k] * fit[k]
                for d in range(3):
                    forces[3 * i + d] += pieces.basis[i, r, d] * change / eps
        _project(forces, sets, z, spare)
        for r in range(3 * n):
            largest = max(largest, abs(forces[r]))
            outside = max(outside, abs(forces[r] - z[r]))
    if not (found and outside <= OUTSIDE * largest):
        assign(z, old)
        return
    fill(x, 0.0)
    add_rows(W, z, 1.0, x)
    for k in range(dim):
        x[k] /= eps
