"""Least power by Newton's method on a guessed set of active limits and cones.

    min u^T W u + 1/2 x^T D x    u = offset + G^T x,  E x = k,  |u| <= limit,  |x_T| <= x_N

x are the forces in units of their cones, and the disturbance if there is one. On a fixed set of active constraints
the optimum is the zero of the KKT equations: with none active, as in standing or walking with enough friction and
torque, one linear solve. Constraints that the new point violates are added, those with a multiplier of the wrong sign
removed. Primal-dual active sets may cycle; then the interior-point method takes over. A point returned as solved has
passed the same optimality test.
Source: Hintermueller, Ito and Kunisch, The primal-dual active set strategy (2002).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import cholesky
from contact_id_controller.kernels.inlined import bare_inlined
from contact_id_controller.models.least_power.holding import held_rows
from contact_id_controller.models.least_power.task import (
    cone_price,
    disturbance_price,
    force_price,
    into_rows,
    units_of_cone,
)

MOST_FORCES = 12  # beyond these the interior-point method, linear in the contacts, is faster
ROUNDS = 10  # Newton steps before giving up
EXACT = 1e-11  # relative defects of the constraints that end the iteration
OPTIMAL = 1e-10  # the same of the gradient and of the gap
OUTSIDE = 1e-12  # a constraint joins when violated by this share of its terms
TIP = 1e-6  # an active cone needs a force of this share of the largest: its tip is not smooth
SOFT = 1e-11  # share by which active rows give way where they depend on each other
NEGLIGIBLE = 1e-14  # an objective below this share of its terms' squares counts as this


class Condensed(NamedTuple):
    """The task in its forces and disturbance alone: u = offset + G^T x, E in the first rows of R.

    G (m, na), R (., m), H (m, m) lower half of D + 2 G W G^T, price (m,) the diagonal D, unit (m,) SI
    units of each variable, place (n,) index of each contact's force in x or -1.
    """

    G: np.ndarray
    R: np.ndarray
    H: np.ndarray
    price: np.ndarray
    unit: np.ndarray
    place: np.ndarray


class Active(NamedTuple):
    """The point and the active set.

    x (m,); w (rows,) multipliers of the rows; u (na,) torques; sign (na,): of the active limits, else 0;
    pressing (na,): their multipliers, with that sign; cones (n, 2): 1 where active, and its multiplier.
    """

    x: np.ndarray
    w: np.ndarray
    u: np.ndarray
    sign: np.ndarray
    pressing: np.ndarray
    cones: np.ndarray


class Kkt(NamedTuple):
    """The KKT equations at the point. defect, size (rows,): of each row and of its terms; gradient (m,).

    F (m, m) factor of the Hessian, V (rows, m) = R F^-T, S (rows, rows) factor of V V^T; the factors' diagonals
    hold their inverses. dw (rows,), dx (m,), heat (na,): workspace.
    """

    defect: np.ndarray
    size: np.ndarray
    gradient: np.ndarray
    F: np.ndarray
    V: np.ndarray
    S: np.ndarray
    dw: np.ndarray
    dx: np.ndarray
    heat: np.ndarray


@kernel
def least_power(task, guess, optimum):
    """Solve the program of the module for one ``Task``, if it is small and few steps suffice.

    guess: ``Optimum.memory`` (na + 4n,) of a similar task, its first na entries if contacts differ, or (0,) for none:
    where the active set begins. It changes the steps, not the optimum. optimum: out.
    Returns (whether ``optimum`` is the optimum, steps).
    """
    n, na = task.mu.shape[0], task.T.shape[1]
    m = task.joints
    for i in range(n):
        if task.held[i]:
            m += held_rows(task.mu[i])
    if m > MOST_FORCES:
        return False, 0
    rows = task.rank + na + n
    condensed = Condensed(
        np.empty((m, na)),
        np.empty((rows, m)),
        np.empty((m, m)),
        np.empty(m),
        np.empty(m),
        np.empty(n, np.int64),
    )
    on_rows, on_forces, on_joints = np.empty((4, rows)), np.empty((3, m)), np.empty((3, na))
    _condense(task, condensed, on_joints[0])
    active = Active(
        on_forces[0],
        on_rows[0],
        on_joints[0],
        on_joints[1],
        optimum.memory[:na],
        np.empty((n, 2)),
    )
    kkt = Kkt(
        on_rows[1],
        on_rows[2],
        on_forces[1],
        np.empty((m, m)),
        np.empty((rows, m)),
        np.empty((rows, rows)),
        on_rows[3],
        on_forces[2],
        on_joints[2],
    )
    fill(optimum.memory, 0.0)
    _start(task, condensed, guess, active)
    solved, steps = _newton(task, condensed, active, kkt, optimum.figures)
    if solved:
        for i in range(m):
            active.x[i] *= condensed.unit[i]
        _hand_out(task.mu, condensed.place, active, optimum)
        for j in range(task.joints):
            optimum.disturbance[j] = active.x[m - task.joints + j]
    return solved, steps


@bare_inlined
def _condense(task, condensed, double):
    """Fill ``condensed``: with u = offset + G^T x, x = (forces in units of their cones, d), the task is one in x.

        H = D + 2 G W G^T (lower half),   E x = k: first rank rows of R

    double (na,): workspace.
    """
    G, R, H, price, unit, place = condensed
    T, Y, K, schur, W = task.T, task.Y, task.K, task.schur, task.W
    n, nu, na, m = task.mu.shape[0], Y.shape[1], T.shape[1], G.shape[0]
    tie = force_price(T, W)
    at = 0
    for i in range(n):
        place[i] = -1
        if task.held[i]:
            place[i] = at
            normal, tangent = units_of_cone(task.mu[i])
            for d in range(held_rows(task.mu[i])):
                factor = normal if d == 0 else tangent
                unit[at], price[at] = factor, cone_price(tie, normal, d)
                row, out = T[3 * i + d], G[at]
                for j in range(na):
                    out[j] = factor * row[j]
                into_rows(K, task.rank, factor, Y[3 * i + d], R[:, at])
                at += 1
    for j in range(task.joints):
        unit[at], price[at] = 1.0, 2.0 * task.rho * disturbance_price(schur, W)
        row = G[at]
        for i in range(na):
            row[i] = schur[i, j]
        for a in range(task.rank):
            R[a, at] = K[a, nu + j] / task.unit
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


@bare_inlined
def _start(task, condensed, guess, active):
    """Initialise active set and forces from the guess (na,) or (na + 4n,), see ``Optimum.memory``, or (0,) for none."""
    x, w, _, sign, pressing, cones = active
    n, na = task.mu.shape[0], sign.shape[0]
    fill(x, 0.0)
    fill(w, 0.0)
    if guess.shape[0] >= na:
        assign(pressing, guess[:na])
    for j in range(na):
        sign[j] = 1.0 if pressing[j] > 0.0 else (-1.0 if pressing[j] < 0.0 else 0.0)
    for i in range(n):
        cones[i, 0], cones[i, 1] = 0.0, 0.0
        at = condensed.place[i]
        if at >= 0 and guess.shape[0] == na + 4 * n:
            cones[i, 1] = guess[na + 4 * i + 3]
            cones[i, 0] = 1.0 if cones[i, 1] > 0.0 else 0.0
            for d in range(held_rows(task.mu[i])):
                x[at + d] = guess[na + 4 * i + d] / condensed.unit[at + d]


@bare_inlined
def _newton(task, condensed, active, kkt, figures):
    """Newton's method on the KKT equations, with an update of the active set after each step.

    Without curved cones the equations are linear: the first step on the right set is exact. figures: see ``Optimum``.
    Returns (whether the point is optimal, steps).
    """
    x, w, u, sign, pressing, cones = active
    G, H, price, place = condensed.G, condensed.H, condensed.price, condensed.place
    mu, limits, W, offset, rank = task.mu, task.limits, task.W, task.offset, task.rank
    m, na = G.shape
    plain, changed = False, True  # whether F is the factor of H alone; whether the set has changed
    for step in range(ROUNDS + 1):
        for j in range(na):
            u[j] = offset[j]
        for i in range(m):
            row, amount = G[i], x[i]
            for j in range(na):
                u[j] += row[j] * amount
        if step and not changed:
            changed = _exchange(mu, limits, place, active)
        q, curved = _active_rows(task.k, rank, mu, limits, condensed, active, kkt)
        if q < 0:
            return False, step
        primal = _optimality(q, offset, W, price, condensed, active, kkt, figures)
        if not primal < np.inf:
            return False, step
        if step and not changed and primal <= EXACT and max(figures[1], figures[2]) <= OPTIMAL:
            return True, step
        if step == ROUNDS:
            return False, step
        if curved or not plain:
            if not _factor_hessian(H, mu, place, x, cones, kkt.F):
                return False, step
            plain, changed = not curved, True
        if changed and not _factor_rows(q, rank, condensed.R, kkt.F, kkt.V, kkt.S):
            return False, step
        _step(q, kkt, x, w)
        q, changed = rank, False
        for j in range(na):
            if sign[j] != 0.0:
                pressing[j] = sign[j] * w[q]
                q += 1
        for i in range(place.shape[0]):
            if cones[i, 0] > 0.0:
                cones[i, 1] = w[q]
                q += 1
    return False, ROUNDS


@bare_inlined
def _exchange(mu, limits, place, active):
    """Add violated constraints to the active set, remove those of wrong sign; returns whether any changed.

    A limit joins where |u| > limit, a cone where |x_T| > x_N; each leaves when its multiplier is negative.
    mu, place (n,): see ``Condensed``; limits (na,) N·m.
    """
    x, _, u, sign, pressing, cones = active
    changed = False
    for j in range(u.shape[0]):
        if sign[j] == 0.0:
            if abs(u[j]) > limits[j] * (1.0 + OUTSIDE):
                sign[j], changed = (1.0 if u[j] > 0.0 else -1.0), True
        elif sign[j] * pressing[j] < 0.0:
            sign[j], pressing[j], changed = 0.0, 0.0, True
    for i in range(place.shape[0]):
        at = place[i]
        if at < 0:
            continue
        if cones[i, 0] == 0.0:
            length = 0.0
            if 0.0 < mu[i] < np.inf:
                length = np.sqrt(x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2])
            if length - x[at] > OUTSIDE * abs(x[at]):
                cones[i, 0], cones[i, 1], changed = 1.0, 0.0, True
        elif cones[i, 1] < 0.0:
            cones[i, 0], cones[i, 1], changed = 0.0, 0.0, True
    return changed


@bare_inlined
def _active_rows(k, rank, mu, limits, condensed, active, kkt):
    """Write gradients R, defects and multipliers w of the active constraints E x = k, sign u = limit, |x_T| = x_N.

    Returns (number of rows q, whether any is a curved cone's); q is -1 if a cone's force is at its tip, where it has no
    gradient. k (rank,), mu (n,), limits (na,).
    """
    G, R, place = condensed.G, condensed.R, condensed.place
    x, w, u, sign, pressing, cones = active
    defect, size = kkt.defect, kkt.size
    m = x.shape[0]
    q, curved = rank, False
    for a in range(rank):
        row, total, terms = R[a], -k[a], abs(k[a])
        for i in range(m):
            total += row[i] * x[i]
            terms += abs(row[i] * x[i])
        defect[a], size[a] = total, terms
    for j in range(sign.shape[0]):
        if sign[j] != 0.0:
            row = R[q]
            for i in range(m):
                row[i] = sign[j] * G[i, j]
            defect[q], size[q], w[q] = sign[j] * u[j] - limits[j], limits[j], abs(pressing[j])
            q += 1
    largest = 0.0
    for i in range(m):
        largest = max(largest, abs(x[i]))
    for i in range(place.shape[0]):
        if cones[i, 0] > 0.0:
            at, row = place[i], R[q]
            fill(row, 0.0)
            row[at] = -1.0
            length = 0.0
            if 0.0 < mu[i] < np.inf:
                length = np.sqrt(x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2])
                if not length > TIP * largest:
                    return -1, curved
                row[at + 1], row[at + 2] = x[at + 1] / length, x[at + 2] / length
                curved = True
            defect[q], size[q] = length - x[at], max(abs(x[at]), TIP * largest)
            w[q] = cones[i, 1]
            q += 1
    return q, curved


@bare_inlined
def _optimality(q, offset, W, price, condensed, active, kkt, figures):
    """KKT residuals of the point: min u^T W u + 1/2 x^T D x, q rows of R x = k with multipliers w.

    The gradient D x + 2 G W u + R^T w goes into ``kkt.gradient``; figures[1]: relative duality gap,
    |gradient x| + |w defect| over the objective; figures[2]: largest relative defect.
    price: the diagonal D; offset: u at x = 0.

    Returns the largest relative defect of the rows, inf if not finite.
    """
    G, R = condensed.G, condensed.R
    x, w, u = active.x, active.w, active.u
    gradient, heat = kkt.gradient, kkt.heat
    m, na = G.shape
    objective, terms, scale = 0.0, 0.0, 0.0
    for j in range(na):
        heat[j] = 2.0 * W[j] * u[j]
        objective += W[j] * u[j] * u[j]
        terms += W[j] * (offset[j] * offset[j] + u[j] * u[j])
    leak, dual = 0.0, 0.0
    for i in range(m):
        row, total = G[i], price[i] * x[i]
        objective += 0.5 * price[i] * x[i] * x[i]
        for j in range(na):
            total += row[j] * heat[j]
        scale = max(scale, abs(total))
        for a in range(q):
            total += R[a, i] * w[a]
        gradient[i] = total
        leak += abs(total * x[i])
        dual = max(dual, abs(total))
    primal = 0.0
    for a in range(q):
        size = kkt.size[a]
        leak += abs(w[a] * kkt.defect[a])
        primal = max(primal, abs(kkt.defect[a]) / size if size > 0.0 else abs(kkt.defect[a]))
    figures[1] = leak / max(objective, NEGLIGIBLE * terms) if leak > 0.0 else 0.0
    figures[2] = max(primal, dual / scale if scale > 0.0 else dual)
    return primal if leak < np.inf else np.inf


@bare_inlined
def _factor_hessian(H, mu, place, x, cones, F):
    """Factor F (m, m) of H plus the curvature of the active cones, (|x_T| I - x_T x_T^T / |x_T|) w / |x_T|^2.

    mu, place (n,), cones (n, 2): see ``Condensed`` and ``Active``; x (m,).
    """
    m = F.shape[0]
    for i in range(m):
        row, source = F[i], H[i]
        for c in range(i + 1):
            row[c] = source[c]
    for i in range(place.shape[0]):
        at = place[i]
        if at >= 0 and cones[i, 1] > 0.0 and 0.0 < mu[i] < np.inf:
            square = x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2]
            bend = cones[i, 1] / (square * np.sqrt(square))
            F[at + 1, at + 1] += bend * x[at + 2] * x[at + 2]
            F[at + 2, at + 1] -= bend * x[at + 1] * x[at + 2]
            F[at + 2, at + 2] += bend * x[at + 1] * x[at + 1]
    if not cholesky(F, m, 0.0):
        return False
    for i in range(m):
        F[i, i] = 1.0 / F[i, i]
    return True


@bare_inlined
def _factor_rows(q, rank, R, F, V, S):
    """Compute V = R F^-T (q, m) and S (q, q), the factor of V V^T = R (F F^T)^-1 R^T; False where it is singular.

    Rows of active limits and cones, from ``rank`` on, may depend on each other: their diagonal grows by SOFT.
    """
    m = F.shape[0]
    for a in range(q):
        assign(V[a], R[a])
        _forward(F, m, V[a])
        for c in range(a + 1):
            total = 0.0
            for i in range(m):
                total += V[a, i] * V[c, i]
            S[a, c] = total
        S[a, a] *= 1.0 if a < rank else 1.0 + SOFT
    if not cholesky(S, q, 0.0):
        return False
    for a in range(q):
        S[a, a] = 1.0 / S[a, a]
    return True


@bare_inlined
def _step(q, kkt, x, w):
    """Solve H dx + R^T dw = -gradient,  R dx = -defect (q rows) by the factors in ``kkt``; updates x (m,), w (q,)."""
    F, V, S, dw, dx = kkt.F, kkt.V, kkt.S, kkt.dw, kkt.dx
    m = x.shape[0]
    assign(dx, kkt.gradient)
    _forward(F, m, dx)
    for a in range(q):
        total = kkt.defect[a]
        for i in range(m):
            total -= V[a, i] * dx[i]
        dw[a] = total
    _forward(S, q, dw)
    _backward(S, q, dw)
    for a in range(q):
        w[a] += dw[a]
        for i in range(m):
            dx[i] += V[a, i] * dw[a]
    _backward(F, m, dx)
    for i in range(m):
        x[i] -= dx[i]


@bare_inlined
def _hand_out(mu, place, active, optimum):
    """Convert the forces x to impulses z, N·s; also into the memory, with the cones' multipliers.

    Rounding errors outside a cone are removed.
    """
    x, cones, z, memory = active.x, active.cones, optimum.z, optimum.memory
    first = optimum.memory.shape[0] - 4 * place.shape[0]
    for i in range(place.shape[0]):
        at = place[i]
        if at < 0:
            continue
        x[at] = max(x[at], 0.0)
        if 0.0 < mu[i] < np.inf:
            length = np.sqrt(x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2])
            most = mu[i] * x[at]
            if length > most:
                x[at + 1] *= most / length
                x[at + 2] *= most / length
        for d in range(held_rows(mu[i])):
            z[3 * i + d] = memory[first + 4 * i + d] = x[at + d]
        memory[first + 4 * i + 3] = cones[i, 1]


@bare_kernel
def _forward(L, n, x):
    """x <- L^-1 x, first n of x; the diagonal of L (n, n) holds its inverse."""
    for i in range(n):
        row, total = L[i], x[i]
        for c in range(i):
            total -= row[c] * x[c]
        x[i] = total * row[i]


@bare_kernel
def _backward(L, n, x):
    """x <- L^-T x, first n of x; the diagonal of L (n, n) holds its inverse."""
    for i in range(n - 1, -1, -1):
        row = L[i]
        amount = x[i] * row[i]
        x[i] = amount
        for c in range(i):
            x[c] -= row[c] * amount
