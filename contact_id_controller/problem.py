"""The reduced contact problem: what is left of inverse dynamics once joint velocities are fixed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from .contacts import ContactSet
from .exceptions import ConfigurationError, StateError
from .lcp._compile import bare_kernel, kernel
from .robot import RobotModel

SINGULAR_INERTIA = 1e-12  # smallest accepted pivot of M_uu relative to its diagonal


class Problem:
    """One period's contact problem in the coordinates that stay free; immutable.

    With A = M_uu = L L^T and impulses z (3n,) ordered normal, tangent 1, tangent 2 of each contact:

        L^T v_u+ = base + Y z            contact velocity = Y^T (Y z) + c
        torques  = torque_offset + T z

    Attributes:
        robot, contacts, period (s).
        desired_velocity: (na,) joint velocities at the period's end, rad/s.
        L: (nu, nu) Cholesky factor of M_uu.  C: (nu, na) = L^-1 M_ua.
        base: (nu,) = L^T p.
        Y: (3n, nu), row r is L^-1 J_u[r]: the factor of G = Y Y^T (stored by rows).
        c: (3n,) m/s, contact velocity at z = 0 less the share (1 - dt/T_c) of today's that may stay.
        keep: that share.  speed: (3n,) m/s, today's contact velocity.
        gap_speed: (n,) m/s, the closing speed a gap allows (negative: the opening speed asked for).
        T: (3n, na), row r is d torques / d z_r, N·m/(N·s).
        torque_offset: (na,) N·m.  schur: (na, na) = M_aa - C^T C.
        frames: (n, 3, 3), rows normal, tangent 1, tangent 2 in the world.
        external_forces: (nv,) generalized forces known from elsewhere, N and N·m; None for none.
    """

    __slots__ = ("robot", "contacts", "period", "desired_velocity", "L", "C", "base", "Y", "c",
                 "keep", "speed", "gap_speed", "T", "torque_offset", "schur", "frames",
                 "external_forces")

    def __init__(self, robot, contacts, period, desired_velocity, n):
        nu, na = robot.nu, robot.na
        self.robot, self.contacts, self.period = robot, contacts, period
        self.desired_velocity = desired_velocity
        self.L = np.zeros((nu, nu))
        self.C = np.empty((nu, na))
        self.base = np.empty(nu)
        self.Y = np.empty((3 * n, nu))
        self.c = np.empty(3 * n)
        self.keep = 0.0
        self.speed = np.empty(3 * n)
        self.gap_speed = np.empty(n)
        self.T = np.empty((3 * n, na))
        self.torque_offset = np.empty(na)
        self.schur = np.empty((na, na))
        self.frames = np.empty((n, 3, 3))
        self.external_forces = None

    def __len__(self):
        """Number of contacts."""
        return len(self.gap_speed)


def build_problem(robot: RobotModel, q, v, desired_acceleration, contacts: ContactSet,
                  period: float, *, velocity_product_term: bool = True,
                  contact_time_constant_s: float | None = None, penetration_gain: float = 0.0,
                  external_forces=None) -> Problem:
    """Reduce inverse dynamics with contact to the unactuated coordinates.

        M (v+ - v) = J^T z + dt (P^T tau - h + f_ext),   P v+ = P v + dt qdd_des

    Args:
        q, v: Pinocchio configuration (nq,) and velocity (nv,).
        desired_acceleration: (na,) rad/s2 of the actuated joints, in ``robot.joint_names`` order.
        contacts: where the robot touches or is about to touch.
        period: dt, s.
        velocity_product_term: keep dt Jdot v, the drift of the contact points.
        contact_time_constant_s: T_c, the time over which a contact's present velocity is taken
            away; None means the period (rigid, deadbeat contact as in the papers).
        penetration_gain: share in [0, 1] of a penetration that is undone within one period.
        external_forces: (nv,) generalized forces known from elsewhere, N and N·m.

    Raises:
        StateError: non-finite or wrongly shaped state, or an inertia that is not positive definite.
        ConfigurationError: period, time constant or gain outside its range.
        UnknownFrameError: a contact frame the robot lacks.

    Source: first paper, eq. 34 to 37 and section 4.
    """
    time_constant = period if contact_time_constant_s is None else contact_time_constant_s
    if not 0.0 < period < np.inf:
        raise ConfigurationError(f"period must be a positive number of seconds, got {period}")
    if not time_constant >= period:
        raise ConfigurationError(
            f"contact_time_constant_s must be at least the period {period} s, got {time_constant}")
    if not 0.0 <= penetration_gain <= 1.0:
        raise ConfigurationError(f"penetration_gain must lie in [0, 1], got {penetration_gain}")
    q = _vector("q", q, robot.nq)
    v = _vector("v", v, robot.nv)
    acceleration = _vector("desired_acceleration", desired_acceleration, robot.na)
    force = _NO_FORCE if external_forces is None else _vector("external_forces", external_forces, robot.nv)
    model, data = robot.model, robot.data
    pin.crba(model, data, q, pin.Convention.WORLD)  # this convention also fills data.J
    pin.nonLinearEffects(model, data, q, v)
    bodies, pair = contacts.links(robot)
    n = len(contacts)
    problem = Problem(robot, contacts, period, np.empty(robot.na), n)
    if external_forces is not None:
        problem.external_forces = force.copy()
    surface = contacts.surface_velocities
    keep = problem.keep = 0.0 if time_constant == period else 1.0 - period / time_constant
    sound = _reduce(
        robot.mass_matrix_view, robot.jacobian_view, robot.nonlinear_effects_view, v, acceleration,
        force, robot.actuated, robot.unactuated, robot.supports, robot.coordinate_joint, bodies,
        pair, contacts.points, contacts.normals, contacts.gaps,
        _NO_SURFACE if surface is None else surface, period, keep, penetration_gain,
        1.0 if velocity_product_term else 0.0, problem.desired_velocity, problem.L, problem.C,
        problem.base, problem.Y, problem.c, problem.speed, problem.gap_speed, problem.T, problem.torque_offset,
        problem.schur, problem.frames)
    if not sound:
        raise StateError("state or inertia gives no finite problem: q, v, desired_acceleration must be "
                         "finite and the unactuated inertia positive definite")
    return problem


_NO_FORCE = np.zeros(0)
_NO_SURFACE = np.zeros((0, 3))


def _vector(name, value, size):
    if type(value) is not np.ndarray or value.dtype != np.float64 or not value.flags.c_contiguous:
        value = np.ascontiguousarray(value, dtype=np.float64)
    if value.shape != (size,):
        raise StateError(f"{name} must have shape ({size},), got {value.shape}")
    return value


@bare_kernel
def fill(array, value):
    """Set every entry of a vector; numba compiles this loop in a tenth of ``array[:] = value``."""
    for k in range(array.shape[0]):
        array[k] = value


@bare_kernel
def assign(array, values):
    """Copy a vector into another of the same length."""
    for k in range(array.shape[0]):
        array[k] = values[k]


@bare_kernel
def tangents(normal, frame):
    """Complete a unit normal (3,) to a right-handed frame with rows normal, tangent 1, tangent 2.

    The construction (Duff et al. 2017) is continuous everywhere but at normal z = -1.
    """
    x, y, z = normal[0], normal[1], normal[2]
    sign = 1.0 if z >= 0.0 else -1.0
    a = -1.0 / (sign + z)
    b = x * y * a
    frame[0, 0], frame[0, 1], frame[0, 2] = x, y, z
    frame[1, 0], frame[1, 1], frame[1, 2] = 1.0 + sign * x * x * a, sign * b, -sign * x
    frame[2, 0], frame[2, 1], frame[2, 2] = b, sign + y * y * a, -y


@bare_kernel
def cholesky(matrix, n, tolerance):
    """Factor the lower triangle of ``matrix`` (n, n) in place; False when it is not positive definite."""
    for j in range(n):
        diagonal = matrix[j, j]
        pivot = diagonal
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > tolerance * abs(diagonal):
            return False
        pivot = np.sqrt(pivot)
        matrix[j, j] = pivot
        row, inverse = matrix[j], 1.0 / pivot
        for i in range(j + 1, n):
            other = matrix[i]
            total = other[j]
            for k in range(j):
                total -= other[k] * row[k]
            other[j] = total * inverse
    return True


@bare_kernel
def forward_substitute(L, n, x):
    """x <- L^-1 x for lower triangular L (n, n)."""
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]


@bare_kernel
def backward_substitute(L, n, x):
    """x <- L^-T x for lower triangular L (n, n)."""
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= L[k, i] * x[k]
        x[i] = total / L[i, i]


@bare_kernel
def link_motion(J, v, supports, coordinate_joint, twist, drift):
    """World-frame spatial velocity and zero-acceleration spatial acceleration of every link.

    J (6, nv) holds the joints' motion axes in the world at its origin; twist, drift (njoints, 6).
    The axes turn with their own link: d/dt J_k = twist(link of k) x J_k.
    """
    joints, nv = supports.shape
    for j in range(joints):
        for r in range(6):
            twist[j, r] = 0.0
            drift[j, r] = 0.0
        for k in range(nv):
            if supports[j, k]:
                for r in range(6):
                    twist[j, r] += J[r, k] * v[k]
    for j in range(joints):
        for k in range(nv):
            if supports[j, k]:
                t = twist[coordinate_joint[k]]
                lx, ly, lz = J[0, k] * v[k], J[1, k] * v[k], J[2, k] * v[k]
                wx, wy, wz = J[3, k] * v[k], J[4, k] * v[k], J[5, k] * v[k]
                drift[j, 0] += t[4] * lz - t[5] * ly + t[1] * wz - t[2] * wy
                drift[j, 1] += t[5] * lx - t[3] * lz + t[2] * wx - t[0] * wz
                drift[j, 2] += t[3] * ly - t[4] * lx + t[0] * wy - t[1] * wx
                drift[j, 3] += t[4] * wz - t[5] * wy
                drift[j, 4] += t[5] * wx - t[3] * wz
                drift[j, 5] += t[3] * wy - t[4] * wx


@bare_kernel
def point_velocity(twist, point, out):
    """Velocity (3,) of a world point moving with a spatial velocity (6,) at the world origin."""
    out[0] = twist[0] + twist[4] * point[2] - twist[5] * point[1]
    out[1] = twist[1] + twist[5] * point[0] - twist[3] * point[2]
    out[2] = twist[2] + twist[3] * point[1] - twist[4] * point[0]


@bare_kernel
def point_acceleration(twist, drift, point, out, work):
    """Classical acceleration (3,) of a material point: a + alpha x r + omega x (v + omega x r)."""
    point_velocity(drift, point, out)
    point_velocity(twist, point, work)
    out[0] += twist[4] * work[2] - twist[5] * work[1]
    out[1] += twist[5] * work[0] - twist[3] * work[2]
    out[2] += twist[3] * work[1] - twist[4] * work[0]


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
def _pair_rows(J, bodies, supports, point, position, L, C, base, desired, dt, rows_u, rows_t, planned):
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
def _reduce(M, J, h, v, acceleration, force, actuated, unactuated, supports, coordinate_joint,
            bodies, pair, points, normals, gaps, surface, dt, keep, penetration_gain, drift_share,
            desired, L, C, base, Y, c, speeds, gap_speed, T, torque_offset, schur, frames):
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
            _pair_rows(J, bodies[p], supports, point, position, L, C, base, desired, dt, rows_u[p],
                       rows_t[p], planned[p])
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
                row[k] = (w[0] * U[0, k] + w[1] * U[1, k] + w[2] * U[2, k]
                          + w[3] * U[3, k] + w[4] * U[4, k] + w[5] * U[5, k])
            for j in range(na):
                torque[j] = (w[0] * V[0, j] + w[1] * V[1, j] + w[2] * V[2, j]
                             + w[3] * V[3, j] + w[4] * V[4, j] + w[5] * V[5, j])
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
