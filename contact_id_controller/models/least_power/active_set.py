"""Least power by Newton's method on a guessed set of active limits and cones.

    min u^T W u + 1/2 x^T D x    u = offset + G^T x,  E x = k,  |u| <= limit,  |x_T| <= x_N

x are the forces in units of their cones, and the disturbance where there is one. On a fixed set of active
constraints the optimum is the zero of the KKT equations: with none active, as for a robot that stands or
walks well, one linear solve.
What the new point violates joins the set, what would pull leaves it. Primal-dual active sets need not
settle; then the interior-point method takes over. What is returned as solved has passed the same test.
Source: Hintermueller, Ito and Kunisch, The primal-dual active set strategy (2002).
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.triangular import cholesky
from contact_id_controller.models.least_power.assembly import condense, hand_out

MOST_FORCES = 64  # beyond these the interior-point method, linear in the contacts, is faster
ROUNDS = 10  # Newton steps before giving up
EXACT = 1e-11  # relative defects of the constraints that end the iteration
OPTIMAL = 1e-10  # the same of the gradient and of the gap
OUTSIDE = 1e-12  # a constraint joins when violated by this share of its terms
TIP = 1e-6  # an active cone needs a force of this share of the largest: its tip is not smooth
SOFT = 1e-11  # share by which active rows give way where they depend on each other
NEGLIGIBLE = 1e-14  # an objective below this share of its terms' squares counts as this


@kernel
def least_power(
    Y,
    T,
    offset,
    schur,
    mu,
    held,
    limits,
    W,
    rho,
    K,
    k,
    unit,
    rank,
    joints,
    guess,
    memory,
    z,
    disturbance,
    figures,
):
    """Impulses z (3n,) and disturbance (joints,) out, N·s and rad/s2.

    See ``solve_coulomb_qcqp`` for the program, ``hold`` for K, k, unit and rank.

    guess, memory (na + 4n,): the active set before (or its first na entries only, or none) and after:
    multipliers of the torque limits with the limit's sign, then impulse and multiplier of every cone.
    figures: out, [1] relative gap and [2] largest relative KKT defect.
    Returns (whether z is the optimum, steps).
    """
    n, na = mu.shape[0], T.shape[1]
    m = joints
    for i in range(n):
        if held[i]:
            m += 3 if mu[i] > 0.0 else 1
    if m > MOST_FORCES:
        return False, 0
    rows = rank + na + n
    G, R, H, price = np.empty((m, na)), np.empty((rows, m)), np.empty((m, m)), np.empty(m)
    size, place = np.empty(m), np.empty(n, np.int64)
    condense(
        Y,
        T,
        schur,
        mu,
        held,
        W,
        rho,
        K,
        unit,
        rank,
        joints,
        G,
        R,
        H,
        price,
        size,
        place,
        np.empty(na),
    )
    solved, steps = _newton(
        offset,
        mu,
        limits,
        W,
        k,
        rank,
        G,
        R,
        H,
        price,
        size,
        place,
        guess,
        memory,
        figures,
        np.empty((4, rows)),
        np.empty((rows, m)),
        np.empty((m, m)),
        np.empty((rows, rows)),
        np.empty((3, m)),
        np.empty((3, na)),
    )
    if solved:
        hand_out(mu, place, size, memory[na:], z)
        for j in range(joints):
            disturbance[j] = size[m - joints + j]
    return solved, steps


@bare_kernel
def _newton(
    offset,
    mu,
    limits,
    W,
    k,
    rank,
    G,
    R,
    H,
    price,
    unit,
    place,
    guess,
    memory,
    figures,
    on_rows,
    V,
    F,
    S,
    on_forces,
    on_joints,
):
    """``least_power`` after ``condense``; x replaces the units. The last arrays are workspace."""
    n, (m, na) = mu.shape[0], G.shape
    defect, w, dw, target = on_rows[0], on_rows[1], on_rows[2], on_rows[3]
    x, gradient, pull = on_forces[0], on_forces[1], on_forces[2]
    u, heat, sign = on_joints[0], on_joints[1], on_joints[2]
    pressing, touched = (
        memory[:na],
        memory[na:],
    )  # multipliers of limits; impulses and those of cones
    fill(x, 0.0)
    fill(w, 0.0)
    fill(memory, 0.0)
    if guess.shape[0] >= na:
        assign(pressing, guess[:na])
    for i in range(n):
        if place[i] >= 0 and guess.shape[0] == na + 4 * n:
            touched[4 * i + 3] = guess[na + 4 * i + 3]
            for d in range(3 if mu[i] > 0.0 else 1):
                x[place[i] + d] = guess[na + 4 * i + d] / unit[place[i] + d]
    for j in range(na):
        sign[j] = 1.0 if pressing[j] > 0.0 else (-1.0 if pressing[j] < 0.0 else 0.0)
    for i in range(n):
        touched[4 * i] = 1.0 if touched[4 * i + 3] > 0.0 else 0.0  # whether it is active
    plain, changed = False, True  # whether F is the factor of H alone; whether the set has changed
    for step in range(ROUNDS + 1):
        for j in range(na):
            u[j] = offset[j]
        for i in range(m):
            row, amount = G[i], x[i]
            for j in range(na):
                u[j] += row[j] * amount
        if step and not changed:
            changed = _exchange(mu, limits, place, u, x, sign, pressing, touched)
        # Rows of the active constraints, their defects, the gradient of the Lagrangian.
        q, curved = rank, False
        for a in range(rank):
            row, total, size = R[a], -k[a], abs(k[a])
            for i in range(m):
                total += row[i] * x[i]
                size += abs(row[i] * x[i])
            defect[a], target[a] = total, size
        for j in range(na):
            if sign[j] != 0.0:
                row = R[q]
                for i in range(m):
                    row[i] = sign[j] * G[i, j]
                defect[q], target[q], w[q] = sign[j] * u[j] - limits[j], limits[j], abs(pressing[j])
                q += 1
        largest = 0.0
        for i in range(m):
            largest = max(largest, abs(x[i]))
        for i in range(n):
            at = place[i]
            if at >= 0 and touched[4 * i] > 0.0:
                row = R[q]
                fill(row, 0.0)
                row[at] = -1.0
                length = 0.0
                if 0.0 < mu[i] < np.inf:
                    length = np.sqrt(x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2])
                    if not length > TIP * largest:
                        return False, step
                    row[at + 1], row[at + 2] = x[at + 1] / length, x[at + 2] / length
                    curved = True
                defect[q], target[q] = length - x[at], max(abs(x[at]), TIP * largest)
                w[q] = touched[4 * i + 3]
                q += 1
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
            leak += abs(w[a] * defect[a])
            primal = max(primal, abs(defect[a]) / target[a] if target[a] > 0.0 else abs(defect[a]))
        if not leak < np.inf:
            return False, step
        figures[1] = leak / max(objective, NEGLIGIBLE * terms) if leak > 0.0 else 0.0
        figures[2] = max(primal, dual / scale if scale > 0.0 else dual)
        if step and not changed and primal <= EXACT and max(figures[1], figures[2]) <= OPTIMAL:
            for i in range(m):
                unit[i] *= x[i]
            return True, step
        if step == ROUNDS:
            return False, step

        if curved or not plain:
            for i in range(m):
                row, source = F[i], H[i]
                for c in range(i + 1):
                    row[c] = source[c]
            for i in range(n):
                at = place[i]
                if at >= 0 and touched[4 * i + 3] > 0.0 and 0.0 < mu[i] < np.inf:
                    square = x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2]
                    bend = touched[4 * i + 3] / (square * np.sqrt(square))
                    F[at + 1, at + 1] += bend * x[at + 2] * x[at + 2]
                    F[at + 2, at + 1] -= bend * x[at + 1] * x[at + 2]
                    F[at + 2, at + 2] += bend * x[at + 1] * x[at + 1]
            if not cholesky(F, m, 0.0):
                return False, step
            plain, changed = not curved, True
            for i in range(m):
                F[i, i] = 1.0 / F[i, i]
        if changed:
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
                return False, step
            for a in range(q):
                S[a, a] = 1.0 / S[a, a]
        # H dx + R^T dw = -gradient,  R dx = -defect.
        assign(pull, gradient)
        _forward(F, m, pull)
        for a in range(q):
            total = defect[a]
            for i in range(m):
                total -= V[a, i] * pull[i]
            dw[a] = total
        _forward(S, q, dw)
        _backward(S, q, dw)
        for a in range(q):
            w[a] += dw[a]
            for i in range(m):
                pull[i] += V[a, i] * dw[a]
        _backward(F, m, pull)
        for i in range(m):
            x[i] -= pull[i]
        q, changed = rank, False
        for j in range(na):
            if sign[j] != 0.0:
                pressing[j] = sign[j] * w[q]
                q += 1
        for i in range(n):
            if place[i] >= 0 and touched[4 * i] > 0.0:
                touched[4 * i + 3] = w[q]
                q += 1
    return False, ROUNDS


@bare_kernel
def _exchange(mu, limits, place, u, x, sign, pressing, touched):
    """Violated constraints join the active set, those that pull leave it; whether any did."""
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
        if touched[4 * i] == 0.0:
            length = 0.0
            if 0.0 < mu[i] < np.inf:
                length = np.sqrt(x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2])
            if length - x[at] > OUTSIDE * abs(x[at]):
                touched[4 * i], touched[4 * i + 3], changed = 1.0, 0.0, True
        elif touched[4 * i + 3] < 0.0:
            touched[4 * i], touched[4 * i + 3], changed = 0.0, 0.0, True
    return changed


@bare_kernel
def _forward(L, n, x):
    """x <- L^-1 x; the diagonal of L holds its inverse."""
    for i in range(n):
        row, total = L[i], x[i]
        for c in range(i):
            total -= row[c] * x[c]
        x[i] = total * row[i]


@bare_kernel
def _backward(L, n, x):
    """x <- L^-T x; the diagonal of L holds its inverse."""
    for i in range(n - 1, -1, -1):
        row = L[i]
        amount = x[i] * row[i]
        x[i] = amount
        for c in range(i):
            x[c] -= row[c] * amount
