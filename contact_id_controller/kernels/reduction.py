"""The reduction of the dynamics to the coordinates that stay free: what ``build_problem`` computes."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.spatial import (
    link_motion,
    point_acceleration,
    point_velocity,
    tangents,
)
from contact_id_controller.kernels.triangular import cholesky, forward_substitute

SINGULAR_INERTIA = 1e-12  # smallest accepted pivot of M_uu relative to its diagonal


@bare_kernel
def body_rows(J, link, sign, supports, point, position, rows_u, rows_a):
    """Add one body's share to the six Jacobian rows, linear then angular, of a pair's motion at a point."""
    nu = rows_u.shape[1]
    for k in range(J.shape[1]):
        if supports[link, k]:
            rows, at = (rows_u, position[k]) if position[k] < nu else (rows_a, position[k] - nu)
            rows[0, at] += sign * (J[0, k] + J[4, k] * point[2] - J[5, k] * point[1])
            rows[1, at] += sign * (J[1, k] + J[5, k] * point[0] - J[3, k] * point[2])
            rows[2, at] += sign * (J[2, k] + J[3, k] * point[1] - J[4, k] * point[0])
            for r in range(3, 6):
                rows[r, at] += sign * J[r, k]


@bare_kernel
def _pair_rows(
    J, bodies, supports, point, position, L, C, base, desired, dt, rows_u, rows_t, planned
):
    """What one pair of bodies adds at a point, a row for each of six directions: Y, T, planned motion."""
    nu, na = L.shape[0], desired.shape[0]
    for r in range(6):
        fill(rows_u[r], 0.0)
        fill(rows_t[r], 0.0)
    body_rows(J, bodies[0], 1.0, supports, point, position, rows_u, rows_t)
    if bodies[1]:
        body_rows(J, bodies[1], -1.0, supports, point, position, rows_u, rows_t)
    for r in range(6):
        row, torque = rows_u[r], rows_t[r]
        forward_substitute(L, nu, row)
        total = 0.0
        for k in range(nu):
            total += row[k] * base[k]
        for j in range(na):
            total += torque[j] * desired[j]
            torque[j] = -torque[j]
        planned[r] = total
        for k in range(nu):
            factor = row[k]
            for j in range(na):
                torque[j] += C[k, j] * factor
        for j in range(na):
            torque[j] /= dt


@kernel
def reduce(
    M,
    J,
    h,
    v,
    acceleration,
    force,
    actuated,
    unactuated,
    supports,
    coordinate_joint,
    bodies,
    pair,
    points,
    normals,
    gaps,
    surface,
    dt,
    keep,
    penetration_gain,
    drift_share,
    desired,
    L,
    C,
    base,
    Y,
    c,
    speeds,
    gap_speed,
    T,
    torque_offset,
    schur,
    frames,
):
    """Fill the arrays of a ``Problem``; False when the result is not finite or A not definite."""
    nu, na, nv, n = L.shape[0], desired.shape[0], v.shape[0], points.shape[0]
    position = np.empty(nv, np.int64)
    for i in range(nu):
        position[unactuated[i]] = i
    for i in range(na):
        position[actuated[i]] = nu + i
        desired[i] = v[actuated[i]] + dt * acceleration[i]
    # Momentum less the period's known forces, M v - dt (h - f), in (u, a) order.
    push = np.zeros(nv)
    for i in range(nv):
        for j in range(i, nv):
            push[position[i]] += M[i, j] * v[j]
            if j != i:
                push[position[j]] += M[i, j] * v[i]
        push[position[i]] -= dt * h[i]
        if force.shape[0]:
            push[position[i]] += dt * force[i]
    for i in range(nu):
        row = unactuated[i]
        for j in range(i + 1):
            col = unactuated[j]
            L[i, j] = M[min(row, col), max(row, col)]
        for j in range(na):
            col = actuated[j]
            C[i, j] = M[min(row, col), max(row, col)]
    if not cholesky(L, nu, SINGULAR_INERTIA):
        return False
    # C = L^-1 M_ua and base = L^T p = L^-1 push_u - C qd_des.
    for i in range(nu):
        for k in range(i):
            for j in range(na):
                C[i, j] -= L[i, k] * C[k, j]
        for j in range(na):
            C[i, j] /= L[i, i]
        base[i] = push[i]
        for k in range(i):
            base[i] -= L[i, k] * base[k]
        base[i] /= L[i, i]
    for i in range(nu):
        for j in range(na):
            base[i] -= C[i, j] * desired[j]
    for i in range(na):
        for j in range(i + 1):
            row, col = actuated[i], actuated[j]
            total = M[min(row, col), max(row, col)]
            for k in range(nu):
                total -= C[k, i] * C[k, j]
            schur[i, j] = total
            schur[j, i] = total
    for i in range(na):
        total = -push[nu + i]
        for j in range(na):
            row, col = actuated[i], actuated[j]
            total += M[min(row, col), max(row, col)] * desired[j]
        for k in range(nu):
            total += C[k, i] * base[k]
        torque_offset[i] = total / dt
        if not np.isfinite(total):
            return False
    for i in range(nu):
        if not np.isfinite(base[i]):
            return False

    joints = supports.shape[0]
    twist = np.empty((joints, 6))
    drift = np.empty((joints, 6))
    if n:
        link_motion(J, v, supports, coordinate_joint, twist, drift)
    # Contacts of the same two bodies share six rows, taken at the first one's point.
    pairs = bodies.shape[0]
    rows_u, rows_t = np.empty((pairs, 6, nu)), np.empty((pairs, 6, na))
    planned, origin, met = np.empty((pairs, 6)), np.empty((pairs, 3)), np.zeros(pairs, np.bool_)
    speed, pull, work, arm, w = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(6)
    speed2, pull2 = np.empty(3), np.empty(3)
    for i in range(n):
        frame, point, p = frames[i], points[i], pair[i]
        first, second = bodies[p, 0], bodies[p, 1]
        tangents(normals[i], frame)
        if not met[p]:
            met[p] = True
            assign(origin[p], point)
            _pair_rows(
                J,
                bodies[p],
                supports,
                point,
                position,
                L,
                C,
                base,
                desired,
                dt,
                rows_u[p],
                rows_t[p],
                planned[p],
            )
        point_velocity(twist[first], point, speed)
        point_acceleration(twist[first], drift[first], point, pull, work)
        if second:
            point_velocity(twist[second], point, speed2)
            point_acceleration(twist[second], drift[second], point, pull2, work)
            for d in range(3):
                speed[d] -= speed2[d]
                pull[d] -= pull2[d]
        for d in range(3):
            if surface.shape[0]:
                speed[d] -= surface[i, d]
            arm[d] = point[d] - origin[p, d]
        U, V, plan = rows_u[p], rows_t[p], planned[p]
        for d in range(3):
            r = 3 * i + d
            w[0], w[1], w[2] = frame[d, 0], frame[d, 1], frame[d, 2]
            w[3] = arm[1] * w[2] - arm[2] * w[1]
            w[4] = arm[2] * w[0] - arm[0] * w[2]
            w[5] = arm[0] * w[1] - arm[1] * w[0]
            row, torque = Y[r], T[r]
            for k in range(nu):
                row[k] = (
                    w[0] * U[0, k]
                    + w[1] * U[1, k]
                    + w[2] * U[2, k]
                    + w[3] * U[3, k]
                    + w[4] * U[4, k]
                    + w[5] * U[5, k]
                )
            for j in range(na):
                torque[j] = (
                    w[0] * V[0, j]
                    + w[1] * V[1, j]
                    + w[2] * V[2, j]
                    + w[3] * V[3, j]
                    + w[4] * V[4, j]
                    + w[5] * V[5, j]
                )
            speeds[r] = w[0] * speed[0] + w[1] * speed[1] + w[2] * speed[2]
            total = 0.0
            for k in range(6):
                total += w[k] * plan[k]
            for k in range(3):
                share = dt * drift_share * pull[k] - keep * speed[k]
                if surface.shape[0]:
                    share -= surface[i, k]
                total += w[k] * share
            c[r] = total
            if not np.isfinite(total):
                return False
        gap = gaps[i]
        gap_speed[i] = gap / dt if gap >= 0.0 else penetration_gain * gap / dt
    return True
