"""Reduction of the dynamics to the free coordinates, as in ``build_problem``.

Coordinates are ordered unactuated, actuated, (u, a); symbols are those of ``Problem``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, inlined_kernel, kernel
from contact_id_controller.kernels.dense import cholesky
from contact_id_controller.kernels.inlined import bare_inlined
from contact_id_controller.kernels.spatial import (
    FIT,
    link_motion,
    make_rigid,
    point_acceleration,
    point_velocity,
    tangents,
)
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.kernels.views import columns, keep, rows, view

TOUCHING_SPEED = 0.05  # m/s; a contact touches when its gap allows no more closing speed than this
SINGULAR_INERTIA = 1e-12  # smallest accepted pivot of M_uu relative to its diagonal


class Dynamics(NamedTuple):
    """The robot's dynamics: M (nv, nv) upper triangle, J (6, nv) axes in the world, h (nv,), v (nv,).

    acceleration: (na,) desired, rad/s2.  force: (nv,) external, or (0,).
    """

    M: Any
    J: Any
    h: Any
    v: Any
    acceleration: Any
    force: Any


class Tree(NamedTuple):
    """Indices of actuated (na,) and unactuated (nu,) coordinates in v; supports and joints, see ``RobotModel``."""

    actuated: Any
    unactuated: Any
    supports: Any
    coordinate_joint: Any


class Contacts(NamedTuple):
    """Pairs of bodies (p, 2) and each contact's (n,); points, normals, surface velocities (n, 3)."""

    bodies: Any
    pair: Any
    points: Any
    normals: Any
    gaps: Any
    surface: Any


class Shares(NamedTuple):
    """Share of the present contact velocity that stays; of a penetration that is undone; of Jdot v."""

    keep: Any
    penetration_gain: Any
    drift_share: Any


class Mechanism(Struct):
    """Inputs of the reduction from a robot with nv coordinates; one for each thread.

    Attributes:
        M (nv, nv), J (6, nv), h (nv,): inertia (upper triangle), joint axes in the world and bias forces,
            in Pinocchio's memory; of m frames M (nv, m nv), J (6, m nv), h (m nv,).
        actuated (na,), unactuated (nu,): indices in v.
        supports (njoints, nv) bool, coordinate_joint (nv,): coordinates that move a link, see ``RobotModel``.
    """

    M: NDArray[np.float64]
    J: NDArray[np.float64]
    h: NDArray[np.float64]
    actuated: NDArray[np.int64]
    unactuated: NDArray[np.int64]
    supports: NDArray[np.bool_]
    coordinate_joint: NDArray[np.int64]


@structref.register
class MechanismType(StructType):
    """numba's type of `Mechanism`."""


_pack = packing(Mechanism, MechanismType)


@kernel
def _packed(values):
    """The struct ``Mechanism``, from the tuple of its fields' values."""
    return _pack(values)


Mechanism.packed = staticmethod(_packed)

HEAD = 4
"""Numbers at the beginning of a problem's store: dt, s, and those of ``Shares``."""


class Reduced(NamedTuple):
    """The reduced problem (see ``Problem``), n contacts, nu unactuated, na actuated coordinates.

    Y (3n, nu) with G = Y Y^T; c (3n,) contact velocity at z = 0, m/s; gap_speed (n,) m/s; T (3n, na)
    torque per impulse; offset (na,) torque at z = 0, N·m; L (nu, nu), C (nu, na), base (nu,): the
    unactuated motion is L^-T (base - C delta + Y^T z); schur (na, na) inertia of the actuated
    coordinates; desired (na,) rad/s; dt s; actuated (na,), unactuated (nu,) indices in v;
    speed (3n,) present contact velocity, m/s; frames (n, 3, 3) rows normal, tangents.
    """

    Y: Any
    c: Any
    gap_speed: Any
    T: Any
    offset: Any
    L: Any
    C: Any
    base: Any
    schur: Any
    desired: Any
    dt: Any
    actuated: Any
    unactuated: Any
    speed: Any
    frames: Any


def _sizes(nu: int, na: int) -> tuple[int, int]:
    """Number of elements of a problem without contacts, and for each contact."""
    return HEAD + nu * (nu + na + 1) + na * (na + 2), 3 * (nu + na) + 16


sizes = bare_kernel(_sizes)


@lru_cache(maxsize=256)
def store_size(n: int, nu: int, na: int) -> int:
    """Number of elements of a problem with n contacts."""
    fixed, each = _sizes(nu, na)
    return fixed + n * each


def empty_store(n: int, nu: int, na: int, frames: int = 1) -> Any:
    """Allocate one array for all arrays of a problem, which a compiled entry takes as fast as a single one.

    frames: number of problems, one after the other.
    """
    return np.empty(frames * store_size(n, nu, na))


@inlined_kernel
def open_store(store, actuated, unactuated):
    """The arrays of a problem, as views of its store (HEAD + .., ), whose first number is dt; see ``sizes``.

    Y (3n, nu), T (3n, na), c (3n,), L (nu, nu), C (nu, na), frames (n, 3, 3): see ``Reduced``.
    """
    nu, na = unactuated.shape[0], actuated.shape[0]
    fixed, each = sizes(nu, na)
    n = (store.shape[0] - fixed) // each
    at_C = HEAD
    at_L = at_C + nu * na
    at_schur = at_L + nu * nu
    at_base = at_schur + na * na
    at_offset = at_base + nu
    at_desired = at_offset + na
    at_T = fixed + 3 * n * nu
    at_c = at_T + 3 * n * na
    at_speed = at_c + 3 * n
    at_gap = at_speed + 3 * n
    at_frames = at_gap + n
    return Reduced(
        Y=view(store, fixed, (3 * n, nu)),
        c=view(store, at_c, (3 * n,)),
        gap_speed=view(store, at_gap, (n,)),
        T=view(store, at_T, (3 * n, na)),
        offset=view(store, at_offset, (na,)),
        L=view(store, at_L, (nu, nu)),
        C=view(store, at_C, (nu, na)),
        base=view(store, at_base, (nu,)),
        schur=view(store, at_schur, (na, na)),
        desired=view(store, at_desired, (na,)),
        dt=store[0],
        actuated=actuated,
        unactuated=unactuated,
        speed=view(store, at_speed, (3 * n,)),
        frames=view(store, at_frames, (n, 3, 3)),
    )


@bare_kernel
def body_rows(J, link, sign, supports, point, position, rows_u, rows_a):
    """Add, in place, one body's share to the Jacobian rows, linear then angular, of a pair's motion at a point.

    row = sign (J_v + J_w x point), world axes. J (6, nv): at the world's origin; supports (links, nv) bool:
    coordinates that move a link; position (nv,): column of each, unactuated first; rows_u (6, nu), rows_a (6, na), or
    (3, nu), (3, na): the linear ones alone.
    """
    count, nu = rows_u.shape
    for k in range(J.shape[1]):
        if supports[link, k]:
            rows, at = (rows_u, position[k]) if position[k] < nu else (rows_a, position[k] - nu)
            rows[0, at] += sign * (J[0, k] + J[4, k] * point[2] - J[5, k] * point[1])
            rows[1, at] += sign * (J[1, k] + J[5, k] * point[0] - J[3, k] * point[2])
            rows[2, at] += sign * (J[2, k] + J[3, k] * point[1] - J[4, k] * point[0])
            for r in range(3, count):
                rows[r, at] += sign * J[r, k]


@bare_kernel
def _through_inertia(L, inverse, C, base, desired, dt, rows_u, rows_t, planned):
    """Convert Jacobian rows (r, nu), (r, na) in place to rows of Y and T; planned (r,): the planned motion along them.

    Y = J_u L^-T, T = (Y C - J_a) / dt, planned = Y base + J_a qd_des. inverse (nu,): of L's diagonal.
    """
    nu, na = L.shape[0], desired.shape[0]
    rate = 1.0 / dt
    for r in range(planned.shape[0]):
        row, torque = rows_u[r], rows_t[r]
        for i in range(nu):
            total = row[i]
            for k in range(i):
                total -= L[i, k] * row[k]
            row[i] = total * inverse[i]
        total = 0.0
        for k in range(nu):
            total += row[k] * base[k]
        for j in range(na):
            total += torque[j] * desired[j]
            torque[j] *= -rate
        planned[r] = total
        for k in range(nu):
            factor = rate * row[k]
            for j in range(na):
                torque[j] += C[k, j] * factor


@inlined_kernel
def _momentum(dynamics, tree, dt, position, inertia, push, desired):
    """push = M v - dt (h - f_ext), inertia (nv, nv) = M, all of it, in (u, a) order; desired = P v + dt qdd_des.

    position (nv,): out, place of each coordinate in that order.
    """
    M, v, h, force = dynamics.M, dynamics.v, dynamics.h, dynamics.force
    nu, na, nv = tree.unactuated.shape[0], desired.shape[0], v.shape[0]
    for i in range(nu):
        position[tree.unactuated[i]] = i
    for i in range(na):
        position[tree.actuated[i]] = nu + i
        desired[i] = v[tree.actuated[i]] + dt * dynamics.acceleration[i]
    fill(push, 0.0)
    for j in range(nv):
        for i in range(j + 1):
            inertia[position[i], position[j]] = M[i, j]
            inertia[position[j], position[i]] = M[i, j]
    for i in range(nv):
        row, speed = inertia[position[i]], v[i]
        for k in range(nv):
            push[k] += row[k] * speed
    for i in range(nv):
        push[position[i]] -= dt * h[i]
        if force.shape[0]:
            push[position[i]] += dt * force[i]


@inlined_kernel
def _factor(inertia, L, C):
    """Factor L L^T = M_uu and C = L^-1 M_ua; False when M_uu is not positive definite.

    inertia (nv, nv) in (u, a) order, L (nu, nu), C (nu, na).
    """
    nu, na = C.shape
    for i in range(nu):
        for j in range(nu):
            L[i, j] = inertia[i, j] if j <= i else 0.0
        for j in range(na):
            C[i, j] = inertia[i, nu + j]
    if not cholesky(L, nu, SINGULAR_INERTIA):
        return False
    for i in range(nu):
        row, inverse = C[i], 1.0 / L[i, i]
        for k in range(i):
            other, amount = C[k], L[i, k]
            for j in range(na):
                row[j] -= amount * other[j]
        for j in range(na):
            row[j] *= inverse
    return True


@inlined_kernel
def _without_contact(inertia, push, dt, reduced):
    """Motion and torques at z = 0; False if they are not finite.

    base = L^-1 push_u - C qd_des, schur = M_aa - C^T C,
    torque_offset = (M_aa qd_des + C^T base - push_a) / dt.
    """
    L, C, base, desired, schur = reduced.L, reduced.C, reduced.base, reduced.desired, reduced.schur
    offset = reduced.offset
    nu, na = C.shape
    for i in range(nu):
        base[i] = push[i]
        for k in range(i):
            base[i] -= L[i, k] * base[k]
        base[i] /= L[i, i]
    for i in range(nu):
        row, total = C[i], 0.0
        for j in range(na):
            total += row[j] * desired[j]
        base[i] -= total
    for i in range(na):
        row, total = schur[i], -push[nu + i]
        for j in range(na):
            row[j] = inertia[nu + i, nu + j]
            total += row[j] * desired[j]
        for k in range(nu):
            other, amount = C[k], C[k, i]
            total += amount * base[k]
            for j in range(na):
                row[j] -= amount * other[j]
        offset[i] = total / dt
        if not abs(total) < np.inf:
            return False
    finite = True
    for i in range(nu):
        finite = finite and abs(base[i]) < np.inf
    return finite


@bare_inlined
def _turned(frame, arm, rows, first, second, third):
    """Write frame times the rows (each, m) of a pair, taken to the point at ``arm``, into three rows (m,).

    frame (3, 3), arm (3,); rows: three linear ones and, unless the arm is zero, three angular ones.
    """
    for k in range(first.shape[0]):
        x, y, z = rows[0, k], rows[1, k], rows[2, k]
        if rows.shape[0] == 6:
            x += rows[4, k] * arm[2] - rows[5, k] * arm[1]
            y += rows[5, k] * arm[0] - rows[3, k] * arm[2]
            z += rows[3, k] * arm[1] - rows[4, k] * arm[0]
        first[k] = frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z
        second[k] = frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z
        third[k] = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z


@inlined_kernel
def _room_size(joints, pairs, contacts, nv):
    """Numbers that ``_open_room`` and ``_open_rows``, or before them the inertia and momentum, need at most."""
    return 12 * joints + 18 + 3 * contacts + nv * (nv + 1) + pairs * (FIT + 4 + 6 * nv + 6)


@inlined_kernel
def _open_room(room, joints, pairs, contacts, nu):
    """Views of the workspace of ``_contact_rows``; an allocation of each costs as much as the reduction of a row.

    twist, drift (joints, 6); drifts (contacts, 3), fits (pairs, FIT), see ``make_rigid``; vectors; of each pair its
    first contact's point (3,) and whether it was met: 0. Then the number of those before ``_open_rows``.
    """
    at = 12 * joints
    motion = view(room, 0, (joints, 6)), view(room, 6 * joints, (joints, 6))
    vectors = (
        view(room, at, (3,)),
        view(room, at + 3, (3,)),
        view(room, at + 6, (3,)),
        view(room, at + 9, (3,)),
        view(room, at + 12, (3,)),
        view(room, at + 15, (3,)),
        view(room, at + 18, (nu,)),
    )
    at += 18 + nu
    drifts, fits = view(room, at, (contacts, 3)), view(room, at + 3 * contacts, (pairs, FIT))
    at += 3 * contacts + FIT * pairs
    origin, met = view(room, at, (pairs, 3)), view(room, at + 3 * pairs, (pairs,))
    fill(met, 0.0)
    return motion, vectors, drifts, fits, origin, met, at + 4 * pairs


@inlined_kernel
def _open_rows(room, at, pairs, each, nu, na):
    """Zeros for each pair: (each, nu), (each, na), (each,)."""
    size = pairs * each
    fill(view(room, at, (size * (nu + na + 1),)), 0.0)
    return (
        view(room, at, (pairs, each, nu)),
        view(room, at + size * nu, (pairs, each, na)),
        view(room, at + size * (nu + na), (pairs, each)),
    )


@inlined_kernel
def _rows_of_a_pair(pair, met):
    """Rows that contacts of the same two bodies share: six, taken at the first one's point; of a single one three.

    met (pairs,): 0, before and after.
    """
    each = 3
    for i in range(pair.shape[0]):
        if met[pair[i]] > 0.0:
            each = 6
        met[pair[i]] = 1.0
    fill(met, 0.0)
    return each


@inlined_kernel
def _drifts(twist, drift, bodies, pair, points, out, other, work):
    """Write Jdot v (n, 3), m/s2, of all contacts: of their point on the first body, less that on the second."""
    for i in range(points.shape[0]):
        first, second, own = bodies[pair[i], 0], bodies[pair[i], 1], out[i]
        point_acceleration(twist[first], drift[first], points[i], own, work)
        if second:
            point_acceleration(twist[second], drift[second], points[i], other, work)
            for d in range(3):
                own[d] -= other[d]


@inlined_kernel
def _contact_rows(dynamics, tree, contacts, shares, position, room, reduced):
    """Rows of Y, T, c and speed of every contact; False when c is not finite.

    c = J_u p + J_a qd_des + dt Jdot v - keep J v, less the surface's velocity. Jdot v is that of ``make_rigid``.
    """
    # Fields are taken out of their tuples once: within a loop each would be counted as a reference.
    J, v, supports = dynamics.J, dynamics.v, tree.supports
    bodies, pair, points, normals = (
        contacts.bodies,
        contacts.pair,
        contacts.points,
        contacts.normals,
    )
    surface, gaps, frames = contacts.surface, contacts.gaps, reduced.frames
    L, C, base, desired = reduced.L, reduced.C, reduced.base, reduced.desired
    Y, T, c, speeds, gap_speed = reduced.Y, reduced.T, reduced.c, reduced.speed, reduced.gap_speed
    dt, kept, drift_share = reduced.dt, shares.keep, shares.drift_share
    joints, pairs, nu, na = supports.shape[0], bodies.shape[0], L.shape[0], desired.shape[0]
    motion, vectors, drifts, fits, origin, met, at = _open_room(
        room, joints, pairs, points.shape[0], nu
    )
    each = _rows_of_a_pair(pair, met)
    rows_u, rows_t, planned = _open_rows(room, at, pairs, each, nu, na)
    twist, drift = motion
    speed, work, speed2, pull2, arm, wanted, inverse = vectors
    link_motion(J, v, supports, tree.coordinate_joint, twist, drift)
    _drifts(twist, drift, bodies, pair, points, drifts, pull2, work)
    make_rigid(pair, points, gaps, TOUCHING_SPEED * dt, drifts, fits)
    for k in range(nu):
        inverse[k] = 1.0 / L[k, k]  # once: a division costs what twenty products do
    for i in range(points.shape[0]):
        frame, point, p, pull = frames[i], points[i], pair[i], drifts[i]
        first, second = bodies[p, 0], bodies[p, 1]
        tangents(normals[i], frame)
        U, V, plan = rows_u[p], rows_t[p], planned[p]
        if met[p] == 0.0:
            met[p] = 1.0
            assign(origin[p], point)
            body_rows(J, first, 1.0, supports, point, position, U, V)
            if second:
                body_rows(J, second, -1.0, supports, point, position, U, V)
            _through_inertia(L, inverse, C, base, desired, dt, U, V, plan)
        point_velocity(twist[first], point, speed)
        if second:
            point_velocity(twist[second], point, speed2)
            for d in range(3):
                speed[d] -= speed2[d]
        for d in range(3):
            own = surface[i, d] if surface.shape[0] else 0.0
            speed[d] -= own
            arm[d] = point[d] - origin[p, d]
            wanted[d] = plan[d] + dt * drift_share * pull[d] - kept * speed[d] - own
        if each == 6:
            wanted[0] += plan[4] * arm[2] - plan[5] * arm[1]
            wanted[1] += plan[5] * arm[0] - plan[3] * arm[2]
            wanted[2] += plan[3] * arm[1] - plan[4] * arm[0]
        _turned(frame, arm, U, Y[3 * i], Y[3 * i + 1], Y[3 * i + 2])
        _turned(frame, arm, V, T[3 * i], T[3 * i + 1], T[3 * i + 2])
        for d in range(3):
            r, x, y, z = 3 * i + d, frame[d, 0], frame[d, 1], frame[d, 2]
            speeds[r] = x * speed[0] + y * speed[1] + z * speed[2]
            c[r] = x * wanted[0] + y * wanted[1] + z * wanted[2]
            if not abs(c[r]) < np.inf:
                return False
        gap = gaps[i]
        gap_speed[i] = gap / dt if gap >= 0.0 else shares.penetration_gain * gap / dt
    return True


@inlined_kernel
def _reduce(dynamics, tree, contacts, shares, position, room, reduced):
    """Reduce one frame: momentum, inertia, motion without contact, contacts; False if it is not finite.

    Source: first paper, eq. 37 with its sign corrected; J v+ = Y Y^T z + c on the unactuated freedoms.
    """
    nv, dt = dynamics.v.shape[0], reduced.dt
    push, inertia = view(room, 0, (nv,)), view(room, nv, (nv, nv))
    _momentum(dynamics, tree, dt, position, inertia, push, reduced.desired)
    if not _factor(inertia, reduced.L, reduced.C):
        return False
    if not _without_contact(inertia, push, dt, reduced):
        return False
    if contacts.points.shape[0] == 0:
        return True
    return _contact_rows(dynamics, tree, contacts, shares, position, room, reduced)


@kernel
def reduce(
    how,
    force,
    bodies,
    pair,
    normals,
    gaps,
    surface,
    store,
    mechanism,
    v,
    acceleration,
    points,
):
    """Fill the stores of m frames, one after the other; returns the number of frames before the first invalid one.

    The numbers of such a frame are not finite, or A is not definite. A single problem is one frame: both
    run the same instructions, so that results do not depend on the other frames of a batch. Arrays hold
    frame after frame; the tree, bodies and pair are the same in all of them.

    Args:
        mechanism: the robot at the m states.  how: (m, HEAD), see there.
        v (m nv,), acceleration (m na,), force (m nv,) or (0,): see ``Dynamics``.
        bodies, pair, points, normals, gaps, surface: see ``Contacts``; surface (0, 3): all at rest.
        store: see ``empty_store``.

    Arrays that change with each period are passed singly: making a struct of them costs more than it saves.
    """
    M, J, h, supports = mechanism.M, mechanism.J, mechanism.h, mechanism.supports
    actuated, unactuated = mechanism.actuated, mechanism.unactuated
    nv, na, n = actuated.shape[0] + unactuated.shape[0], actuated.shape[0], pair.shape[0]
    frames = how.shape[0]
    size = store.shape[0] // frames
    pushed, moving = force.shape[0] // frames, surface.shape[0] // frames
    tree = Tree(actuated, unactuated, supports, mechanism.coordinate_joint)
    joints, pairs = supports.shape[0], bodies.shape[0]
    position = np.empty(nv, np.int64)
    room = np.empty(_room_size(joints, pairs, n, nv))
    for k in range(frames):
        own = view(store, k * size, (size,))
        for i in range(HEAD):
            own[i] = how[k, i]
        sound = _reduce(
            Dynamics(
                columns(M, k * nv, nv),
                columns(J, k * nv, nv),
                view(h, k * nv, (nv,)),
                view(v, k * nv, (nv,)),
                view(acceleration, k * na, (na,)),
                view(force, k * pushed, (pushed,)),
            ),
            tree,
            Contacts(
                bodies,
                pair,
                rows(points, k * n, n),
                rows(normals, k * n, n),
                view(gaps, k * n, (n,)),
                rows(surface, k * moving, moving),
            ),
            Shares(how[k, 1], how[k, 2], how[k, 3]),
            position,
            room,
            open_store(own, actuated, unactuated),
        )
        if not sound:
            frames = k
            break
    keep(room)
    return frames
