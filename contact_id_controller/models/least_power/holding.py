"""Equations that keep the constrained contacts at rest, without those that depend on the others.

    Y y - dt^2 T d + moved = 0        y = Y^T z (nu,), d (na,) rad/s2, at each constrained contact

Their rows depend on each other as soon as several contacts hold one body; the solvers need independent ones.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import independent_rows


@bare_kernel
def held_rows(mu):
    """Number of constrained velocities of a contact with friction mu: 3, without friction the normal one only."""
    return 3 if mu > 0.0 else 1


@bare_kernel
def unit_of_disturbance(Y, T, dt, joints):
    """Unit of d, |Y| / |dt^2 T| (Frobenius norms): in it the columns of d in K are as large as those of y.

    Otherwise the numerical rank would depend on the period. Y (3n, nu); T (3n, joints); dt, s.
    """
    first, second = 0.0, 0.0
    for r in range(Y.shape[0]):
        for a in range(Y.shape[1]):
            first += Y[r, a] * Y[r, a]
        for a in range(joints):
            second += dt * dt * T[r, a] * dt * dt * T[r, a]
    return np.sqrt(first / second) if first > 0.0 and second > 0.0 else 1.0


@kernel
def hold(Y, T, dt, mu, held, moved, K, k, residual):
    """Reduce Y y - dt^2 T d + moved = 0 at the constrained contacts to independent equations K (y, d / unit) = k.

    Args:
        mu, held: (n,) friction; bool, the constrained contacts.
        moved: (3n,) m/s, contact velocities at y = d = 0.
        K, k: out, (3n, nu + joints) and (3n,), of which the first rank rows count; joints = 0: no columns for d.
        residual: out, (3n,) m/s, contact velocities that no y removes; (0,) if not needed.

    Returns (rank, norm of the velocities that nothing removes, unit of d: see ``unit_of_disturbance``).
    """
    nu = Y.shape[1]
    joints = K.shape[1] - nu
    unit = unit_of_disturbance(Y, T, dt, joints)
    rows = 0
    for i in range(held.shape[0]):
        if not held[i]:
            continue
        for r in range(3 * i, 3 * i + held_rows(mu[i])):
            for a in range(nu):
                K[rows, a] = Y[r, a]
            for a in range(joints):
                K[rows, nu + a] = -dt * dt * T[r, a] * unit
            k[rows] = -moved[r]
            rows += 1
    order, norms = np.empty(nu + joints, np.int64), np.empty(nu + joints)
    rank, left = independent_rows(K, k, rows, order, norms)
    if residual.shape[0]:
        _left_over(Y, mu, held, moved, K, k, order[:rank], norms, residual)
    return rank, left, unit


@bare_kernel
def _left_over(Y, mu, held, moved, K, k, order, y, residual):
    """Write residual (3n,) = Y y + moved at the contacts held (n,) bool, for the y (nu,) that solves K y = k; else 0.

    order (rank,): pivot columns of K; y is workspace.
    """
    rank = order.shape[0]
    fill(residual, 0.0)
    fill(y, 0.0)
    for i in range(rank - 1, -1, -1):
        total = k[i]
        for j in range(i + 1, rank):
            total -= K[i, order[j]] * y[order[j]]
        y[order[i]] = total / K[i, order[i]]
    for i in range(held.shape[0]):
        if held[i]:
            for r in range(3 * i, 3 * i + held_rows(mu[i])):
                residual[r] = moved[r]
                for a in range(Y.shape[1]):
                    residual[r] += Y[r, a] * y[a]
