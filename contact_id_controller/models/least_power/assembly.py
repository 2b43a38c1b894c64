"""The programs of coulomb/qcqp as arrays: holding equations, assembly, the interior-point solution."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.interior_point.barrier import (
    ROWS,
    SCALING,
    WORK_ROWS,
    central_path,
)
from contact_id_controller.kernels.interior_point.rank import independent_rows
from contact_id_controller.kernels.interior_point.scaling import equilibrate, out_of_units
from contact_id_controller.models.steps.yielding import mean_diagonal

TIE_BREAK = 1e-8  # price of forces against that of the torques they cause: makes them unique
LEAST_TIE = 1e-9  # the same in the solver's units, where the disturbance costs about one
YIELD = 1e2  # price of a contact that yields against that of the same motion of the joints
YIELDING = 1e-6  # softness of contacts that no joint moves, relative to their inertia
ON_BOUND = 1e-6  # limits and cones closer than this, relatively, are active in the next guess
NARROW = 1e-9  # limits closer to each other than this share of the largest are set apart


@kernel
def hold(Y, T, moved, mu, held, dt, joints, K, k, residual):
    """Independent equations K (y, d) = k that hold the contacts; joints: number of columns for d.

    residual (3n,) or (0,): m/s, what no y can take away. Returns (rank, length of that, unit of d): d is
    counted in units that make its columns as large as the others, so that the rank means something.
    """
    nu = Y.shape[1]
    rows = 0
    unit = 1.0
    if joints:
        first, second = 0.0, 0.0
        for r in range(3 * held.shape[0]):
            for a in range(nu):
                first += Y[r, a] * Y[r, a]
            for a in range(joints):
                second += dt * dt * T[r, a] * dt * dt * T[r, a]
        if first > 0.0 and second > 0.0:
            unit = np.sqrt(first / second)
    for i in range(held.shape[0]):
        if not held[i]:
            continue
        for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
            for a in range(nu):
                K[rows, a] = Y[r, a]
            for a in range(joints):
                K[rows, nu + a] = -dt * dt * T[r, a] * unit
            k[rows] = -moved[r]
            rows += 1
    order, norms = np.empty(nu + joints, np.int64), np.empty(nu + joints)
    rank, left = independent_rows(K, k, rows, order, norms)
    if residual.shape[0]:
        fill(residual, 0.0)
        fill(norms, 0.0)
        for i in range(rank - 1, -1, -1):
            total = k[i]
            for j in range(i + 1, rank):
                total -= K[i, order[j]] * norms[order[j]]
            norms[order[i]] = total / K[i, order[i]]
        for i in range(held.shape[0]):
            if held[i]:
                for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                    residual[r] = moved[r]
                    for a in range(nu):
                        residual[r] += Y[r, a] * norms[a]
    return rank, left, unit


@bare_kernel
def units_of_cone(mu):
    """Units of normal and tangential force in which the cone is x0 >= |x_T|."""
    return (1.0, mu) if mu <= 1.0 else (1.0 / mu, 1.0)


@bare_kernel
def force_price(T, W):
    """Second derivative of the tie break in a force; one where no torque depends on any."""
    cost = 0.0
    for r in range(T.shape[0]):
        row = T[r]
        for j in range(row.shape[0]):
            cost += W[j] * row[j] * row[j]
    return 2.0 * TIE_BREAK * cost / T.shape[0] if cost > 0.0 else 1.0


@bare_kernel
def disturbance_price(schur, W):
    """Price of a disturbance at rho = 1: that of the torques that cause it, averaged over the joints."""
    total = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[0]):
            total += W[i] * schur[i, j] * schur[i, j]
    return total / W.shape[0]


@bare_kernel
def condense(
    Y, T, schur, mu, held, W, rho, K, turn, rank, joints, G, R, H, price, unit, place, double
):
    """The program of ``least_power``: u = offset + G^T x, E at the head of R, H = D + 2 G W G^T.

    Out: G (m, na), R (., m), H (m, m) its lower half, price (m,) the diagonal D, unit (m,) of each
    variable, place (n,) of each contact's force in x or -1. turn: the unit of ``hold``. double (na,):
    workspace.
    """
    n, nu, na, m = mu.shape[0], Y.shape[1], T.shape[1], G.shape[0]
    fill(price, force_price(T, W))
    at = 0
    for i in range(n):
        place[i] = -1
        if held[i]:
            place[i] = at
            normal, tangent = units_of_cone(mu[i]) if mu[i] < np.inf else (1.0, 1.0)
            for d in range(3 if mu[i] > 0.0 else 1):
                factor = normal if d == 0 else tangent
                unit[at] = factor
                row, out = T[3 * i + d], G[at]
                for j in range(na):
                    out[j] = factor * row[j]
                row = Y[3 * i + d]
                for a in range(rank):
                    line, total = K[a], 0.0
                    for c in range(nu):
                        total += line[c] * row[c]
                    R[a, at] = factor * total
                at += 1
    for j in range(joints):
        unit[at], price[at] = 1.0, 2.0 * rho * disturbance_price(schur, W)
        row = G[at]
        for i in range(na):
            row[i] = schur[i, j]
        for a in range(rank):
            R[a, at] = K[a, nu + j] / turn
        at += 1
    for i in range(m):
        row, out = G[i], H[i]
        for j in range(na):
            double[j] = 2.0 * W[j] * row[j]
        for other in range(i + 1):
            line, total = G[other], 0.0
            for j in range(na):
                total += line[j] * double[j]
            out[other] = total
        out[i] += price[i]


@bare_kernel
def hand_out(mu, place, forces, touched, z):
    """Impulses z (3n,), N·s, from the forces of ``condense``; also into the memory ``touched`` (4n,).

    What rounding leaves outside a cone is taken away.
    """
    for i in range(place.shape[0]):
        at = place[i]
        if at < 0:
            continue
        forces[at] = max(forces[at], 0.0)
        if 0.0 < mu[i] < np.inf:
            length = np.sqrt(forces[at + 1] * forces[at + 1] + forces[at + 2] * forces[at + 2])
            most = mu[i] * forces[at]
            if length > most:
                forces[at + 1] *= most / length
                forces[at + 2] *= most / length
        for d in range(3 if mu[i] > 0.0 else 1):
            z[3 * i + d] = touched[4 * i + d] = forces[at + d]


@kernel
def solve_program(
    Y,
    T,
    offset,
    schur,
    dt,
    mu,
    held,
    limits,
    W,
    rho,
    yields,
    K,
    k,
    unit,
    rank,
    joints,
    place,
    weight,
    linear,
    At,
    b,
    soft,
    lower,
    upper,
    x,
    memory,
    figures,
):
    """One program: assemble, scale, solve. x (N,), memory (na + 4n,) out: see ``least_power``.

    Variables: torques, the disturbance (``joints`` of them), forces without friction limit, cones.
    place (n,) out: where the force of a contact stands, or -1. Returns (status, steps).
    """
    n, nu, na = mu.shape[0], Y.shape[1], T.shape[1]
    N, p = At.shape
    boxes = lower.shape[0]
    for j in range(N):
        fill(At[j], 0.0)
    fill(weight, 0.0)
    fill(linear, 0.0)
    fill(soft, 0.0)
    largest = 0.0
    for j in range(na):
        if limits[j] < np.inf:
            largest = max(largest, limits[j])
    for j in range(na):
        weight[j] = 2.0 * W[j]
        upper[j] = max(limits[j], NARROW * largest)
        lower[j] = -upper[j]
        At[j, j] = 1.0
        b[j] = offset[j]
    price, lever = 1.0, 0.0
    if joints:
        # rho in units of the torques that move a free joint; yielding in those of the same motion.
        for r in range(3 * n):
            for j in range(na):
                lever += dt * dt * T[r, j] * T[r, j]
        price = (1.0 if yields else rho) * disturbance_price(schur, W)
        lever /= 3 * n * na
        for j in range(na):
            weight[na + j] = 2.0 * price
            lower[na + j], upper[na + j] = -np.inf, np.inf
            for i in range(na):
                At[na + j, i] = -schur[i, j]
            for i in range(rank):
                At[na + j, na + i] = K[i, nu + j] / unit
    for i in range(rank):
        b[na + i] = k[i]
    tie = force_price(T, W)
    if yields:
        inertia = mean_diagonal(Y)
        yielding = (
            0.5 * lever * dt * dt / (YIELD * price)
            if lever > 0.0
            else YIELDING * inertia * inertia / tie
        )
        for i in range(rank):
            soft[na + i] = yielding
    box, cone = na + joints, boxes
    for i in range(n):
        place[i] = -1
        if not held[i]:
            continue
        bounded = mu[i] < np.inf
        at = cone if bounded else box
        place[i] = at
        normal, tangent = units_of_cone(mu[i]) if bounded else (1.0, 1.0)
        for d in range(3):
            factor = normal if d == 0 else tangent
            weight[at + d] = tie
            row = T[3 * i + d]
            for j in range(na):
                At[at + d, j] = -factor * row[j]
            row = Y[3 * i + d]
            for a in range(rank):
                total = 0.0
                for c in range(nu):
                    total += K[a, c] * row[c]
                At[at + d, na + a] = factor * total
            if not bounded:
                lower[at + d] = 0.0 if d == 0 else -np.inf
                upper[at + d] = np.inf
        if bounded:
            cone += 3
        else:
            box += 3
    column, row = np.empty(N), np.empty(p)
    beta, kappa = equilibrate(weight, linear, At, b, soft, lower, upper, column, row)
    for j in range(na + joints, N):
        weight[j] = max(weight[j], LEAST_TIE)
    cones = (N - boxes) // 3
    y, s, r = np.empty(p), np.empty(N), np.empty(boxes)
    status, steps, gap, defect = central_path(
        weight,
        linear,
        At,
        b,
        soft,
        lower,
        upper,
        False,
        x,
        y,
        s,
        r,
        np.empty((4, max(N, p))),
        np.empty((WORK_ROWS, N)),
        np.empty((ROWS, p)),
        np.empty((p, p)),
        np.empty((cones, SCALING)),
    )
    figures[1], figures[2] = gap, defect
    out_of_units(x, y, s, r, column, row, beta, kappa)
    fill(memory, 0.0)
    for j in range(na):
        if limits[j] - abs(x[j]) <= ON_BOUND * limits[j]:
            memory[j] = r[j] if x[j] > 0.0 else -s[j]
    for i in range(n):
        at = place[i]
        if at >= boxes:
            normal, tangent = units_of_cone(mu[i])
            for d in range(3):
                memory[na + 4 * i + d] = (normal if d == 0 else tangent) * x[at + d]
            if x[at] - np.hypot(x[at + 1], x[at + 2]) <= ON_BOUND * x[at]:
                memory[na + 4 * i + 3] = s[at]
    return status, steps
