"""The regularised cone program, solved to rounding whatever its scales: the careful way.

    min F(u) = 1/2 |u|^2 + 1/(2 eps) |P_K(-(Y u + b))|^2      z = P_K(-(Y u + b)) / eps

F is strongly convex, piecewise quadratic and once differentiable, so its minimum is the only point
with gradient u - Y^T z = 0. ``cone_newton`` compares values of F, which rounding blurs long before the
gradient is small; here steps are judged by gradients alone, and line searches find where the slope
along the step, which only grows, changes sign.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.pyramid import STICKING, Pieces, edge_directions, project_contact
from contact_id_controller.kernels.triangular import (
    backward_substitute,
    cholesky,
    forward_substitute,
)

EPSILON = 2.3e-16  # rounding of one operation
ROUNDINGS = 4.0  # a gradient of so many roundings of its largest terms is zero
PRECISE = 1e-12  # or one of this share of u
ENOUGH = 1e-9  # share of u that will do when rounding allows no further step
MAX_STEPS = 200
REFINEMENTS = 2
MAX_SECTIONS = 60  # evaluations of one line search


@kernel
def _gradient(Y, b, eps, mu, directions, u, z, gradient, pieces):
    """z(u), the gradient u - Y^T z, its largest entry and that of its rounding error."""
    n, nu = mu.shape[0], u.shape[0]
    for k in range(nu):
        gradient[k] = u[k]
    noise = 0.0
    sizes, force = np.empty(3), np.empty(3)
    for i in range(n):
        for d in range(3):
            r = 3 * i + d
            total = -b[r]
            large = abs(b[r])
            for k in range(nu):
                term = Y[r, k] * u[k]
                total -= term
                large += abs(term)
            force[d], sizes[d] = total / eps, large
        pieces.number[i] = project_contact(
            STICKING,
            0.0,
            0.0,
            mu[i],
            directions,
            force,
            z[3 * i : 3 * i + 3],
            pieces.basis[i],
            pieces.first,
            pieces.second,
        )
        if pieces.number[i] > 0:
            # Within a pyramid the rounding of one direction reaches the others.
            most = 0.0 if np.isinf(mu[i]) else max(sizes[0], sizes[1], sizes[2])
            for d in range(3):
                r = 3 * i + d
                if z[r] != 0.0:
                    for k in range(nu):
                        gradient[k] -= Y[r, k] * z[r]
                        noise = max(noise, abs(Y[r, k]) * max(most, sizes[d]) / eps)
    largest = 0.0
    for k in range(nu):
        if not abs(gradient[k]) <= largest:  # keeps NaN
            largest = abs(gradient[k])
    return largest, noise * EPSILON


@kernel
def _along(Y, basis, i, r, column):
    """column (nu,) = direction r of contact i's piece times the contact's rows."""
    for k in range(column.shape[0]):
        column[k] = (
            basis[i, r, 0] * Y[3 * i, k]
            + basis[i, r, 1] * Y[3 * i + 1, k]
            + basis[i, r, 2] * Y[3 * i + 2, k]
        )


@kernel
def _newton_step(Y, eps, gradient, pieces, H, column, step):
    """Solve (I + Y_p^T Y_p / eps) step = -gradient on the cones' present pieces p; False without a factor."""
    nu = gradient.shape[0]
    for a in range(nu):
        fill(H[a], 0.0)
    for i in range(pieces.number.shape[0]):
        for r in range(pieces.number[i] & 3):
            _along(Y, pieces.basis, i, r, column)
            for a in range(nu):
                for c in range(a + 1):
                    H[a, c] += column[a] * column[c]
    # Times eps: the same system with entries of the size of Y's.
    for k in range(nu):
        H[k, k] += eps
        step[k] = -eps * gradient[k]
    if not cholesky(H, nu, 0.0):
        for k in range(nu):  # only overflow gets here: steepest descent
            step[k] = -gradient[k]
        return False
    forward_substitute(H, nu, step)
    backward_substitute(H, nu, step)
    return True


@kernel
def _refine(Y, b, eps, mu, directions, H, pieces, column, u, z):
    """Correct z so that (Y Y^T + eps) z + b vanishes along its pieces; H: factor from ``_newton_step``.

    There z is not the small difference of large velocities divided by eps, so rounding is not either.
    Where that would take forces out of their cones, u and z stay as they are.
    """
    n, nu, basis = mu.shape[0], u.shape[0], pieces.basis
    rest, total = np.zeros((n, 3)), np.empty(nu)
    force, spare = np.empty(3), np.empty((3, 3))
    old_u, old_z = u.copy(), z.copy()
    largest, outside = 0.0, 0.0
    for repetition in range(REFINEMENTS):
        fill(u, 0.0)
        fill(total, 0.0)
        for r in range(3 * n):
            for k in range(nu):
                u[k] += Y[r, k] * z[r]
        for i in range(n):
            for d in range(3):
                r = 3 * i + d
                force[d] = b[r] + eps * z[r]
                for k in range(nu):
                    force[d] += Y[r, k] * u[k]
            for r in range(pieces.number[i] & 3):
                rest[i, r] = 0.0
                for d in range(3):
                    rest[i, r] += basis[i, r, d] * force[d]
                _along(Y, basis, i, r, column)
                for k in range(nu):
                    total[k] += column[k] * rest[i, r]
        forward_substitute(H, nu, total)
        backward_substitute(H, nu, total)
        for i in range(n):
            for d in range(3):
                force[d] = z[3 * i + d]
            for r in range(pieces.number[i] & 3):
                _along(Y, basis, i, r, column)
                change = -rest[i, r]
                for k in range(nu):
                    change += column[k] * total[k]
                for d in range(3):
                    force[d] += basis[i, r, d] * change / eps
            if pieces.number[i] > 0:
                project_contact(
                    STICKING,
                    0.0,
                    0.0,
                    mu[i],
                    directions,
                    force,
                    z[3 * i : 3 * i + 3],
                    spare,
                    pieces.first,
                    pieces.second,
                )
                for d in range(3):
                    largest = max(largest, abs(force[d]))
                    outside = max(outside, abs(force[d] - z[3 * i + d]))
    if not outside <= PRECISE * largest:
        assign(u, old_u)
        assign(z, old_z)
        return
    fill(u, 0.0)
    for r in range(3 * n):
        for k in range(nu):
            u[k] += Y[r, k] * z[r]


@kernel
def cone_descent(Y, b, eps, mu, edges, u, z):
    """Solve in place. Returns steps, negative when the gradient did not vanish.

    Args:
        Y (3n, nu), b (3n,) velocities without forces, eps > 0, mu (n,), edges: the pyramids.
        u (nu,): first guess; out.  z (3n,): out, inside the pyramids in any case.

    Ends: a full step is taken when it halves the smallest gradient yet, which can only happen until
    that is rounding; every other step lowers F by at least a share of slope^2 / |H| |step|^2.
    """
    n, nu = mu.shape[0], u.shape[0]
    gradient, trial, step, column = np.empty(nu), np.empty(nu), np.empty(nu), np.empty(nu)
    H = np.empty((nu, nu))
    pieces = Pieces(np.empty(n, np.int64), np.zeros((n, 3, 3)), np.empty(3), np.empty(3))
    best_u, directions = np.empty(nu), np.empty((edges, 2))
    edge_directions(edges, directions)
    defect, noise = _gradient(Y, b, eps, mu, directions, u, z, gradient, pieces)
    if not defect < np.inf:
        fill(u, 0.0)
        defect, noise = _gradient(Y, b, eps, mu, directions, u, z, gradient, pieces)
    best, allowed = defect, 0.0
    assign(best_u, u)
    steps, stalled = 0, 0
    while steps < MAX_STEPS and stalled < 3:
        size = 0.0
        for k in range(nu):
            size = max(size, abs(u[k]))
        allowed = max(PRECISE * size, ROUNDINGS * noise)
        if defect <= allowed:
            break
        steps += 1
        _newton_step(Y, eps, gradient, pieces, H, column, step)
        slope = 0.0
        for k in range(nu):
            slope += gradient[k] * step[k]
        low, high, share = 0.0, np.inf, 1.0
        for section in range(MAX_SECTIONS):
            for k in range(nu):
                trial[k] = u[k] + share * step[k]
            defect, noise = _gradient(Y, b, eps, mu, directions, trial, z, gradient, pieces)
            if section == 0 and defect <= 0.5 * best:
                low = share
                break
            there = 0.0
            for k in range(nu):
                there += gradient[k] * step[k]
            if there <= 0.0:
                low = share
                if there >= 0.5 * slope:
                    break
            else:
                high = share
            share = 2.0 * low if high == np.inf else 0.5 * (low + high)
        if share != low:
            for k in range(nu):
                trial[k] = u[k] + low * step[k]
            defect, noise = _gradient(Y, b, eps, mu, directions, trial, z, gradient, pieces)
        assign(u, trial)
        if defect < 0.9 * best:
            stalled = 0
        elif defect <= 1e4 * allowed:
            stalled += 1  # near the end a step that gains nothing is rounding
        if defect < best:
            best = defect
            assign(best_u, u)
    if best < defect:
        assign(u, best_u)
        defect, noise = _gradient(Y, b, eps, mu, directions, u, z, gradient, pieces)
    size = 0.0
    for k in range(nu):
        size = max(size, abs(u[k]))
    if not defect <= max(ENOUGH * size, 100.0 * ROUNDINGS * noise):
        return -steps - 1
    if _newton_step(Y, eps, gradient, pieces, H, column, step):
        _refine(Y, b, eps, mu, directions, H, pieces, column, u, z)
    return steps
