"""Every sensor is rows of two kinds: r^T a_i of a link's acceleration, r^T f_j of a joint's wrench."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.estimation.sweep import cross, dot6, inertia_times, rotate
from contact_id_controller.kernels.compile import bare_kernel

ACCELERATION, WRENCH = 0, 1


class Rows(NamedTuple):
    """m rows, sorted by limb, those of the base last.

    kind (m,).  link (m,): i or j.  carrier (m,): the link in whose axes the row is given.
    point (m,): 1 where the row feels the centripetal acceleration of a point.
    value (m,): place of its measurement in y.  exact (m,): 1 where it has no noise.
    vector (m, 6): in the carrier's frame, linear part first.  position (m, 3): of that point in it.
    weight (m,): 1 / sigma^2.  rotor (m,): kg m2 by which a motor's effort is more than the joint's for each
    rad/s2 of it.
    """

    kind: np.ndarray
    link: np.ndarray
    carrier: np.ndarray
    point: np.ndarray
    value: np.ndarray
    exact: np.ndarray
    vector: np.ndarray
    position: np.ndarray
    weight: np.ndarray
    rotor: np.ndarray


class Columns(NamedTuple):
    """The unknowns of the limbs, N in all, and what is known in their stead.

    joint (n,): column of each link's joint acceleration within its limb, -1 where it is exact.
    joint_value (n,): place of that exact value in y.
    wrench_link (c,), wrench (c,): link and column (-1: exact) of each component of contact wrench;
    wrench_value (c,): place of its exact value in y, -1: zero.
    wrench_vector (c, 6): force and moment per unit, in the link's frame.  radius (c,) m: how far
    below its frame, against ``up``, the contact lies.
    prior (N,): 1 / sigma^2 of a measured column, 0 for none; prior_value (N,): its place in y.
    """

    joint: np.ndarray
    joint_value: np.ndarray
    wrench_link: np.ndarray
    wrench: np.ndarray
    wrench_value: np.ndarray
    wrench_vector: np.ndarray
    radius: np.ndarray
    prior: np.ndarray
    prior_value: np.ndarray


class Limbs(NamedTuple):
    """Runs of links, rows, wrench components and columns of every limb, (limbs,) each."""

    link: np.ndarray
    link_end: np.ndarray
    row: np.ndarray
    row_end: np.ndarray
    component: np.ndarray
    component_end: np.ndarray
    column: np.ndarray
    column_end: np.ndarray


@bare_kernel
def contact_wrench(columns, c, motion, up, out):
    """Write the wrench (6,) of a unit of contact component c about the base's origin, base axes: (R f, R m + x x R f).

    x: the lowest point of a ball, p - radius up; up (3,): unit vector, base axes.
    """
    i = columns.wrench_link[c]
    R, p, local = motion.R[i], motion.p[i], columns.wrench_vector[c]
    fx, fy, fz = rotate(R, local[0], local[1], local[2])
    mx, my, mz = rotate(R, local[3], local[4], local[5])
    r = columns.radius[c]
    ax, ay, az = cross(p[0] - r * up[0], p[1] - r * up[1], p[2] - r * up[2], fx, fy, fz)
    out[0], out[1], out[2], out[3], out[4], out[5] = fx, fy, fz, mx + ax, my + ay, mz + az


@bare_kernel
def row_vector(rows, m, motion, out):
    """Write the vector r (6,) of sensor row m in the base's axes; returns r . w x (v + w x x), m/s2, of its point x.

    That is the centripetal acceleration which an accelerometer measures besides that of its link; 0 for other kinds.
    """
    i = rows.carrier[m]
    R, p, local = motion.R[i], motion.p[i], rows.vector[m]
    lx, ly, lz = rotate(R, local[0], local[1], local[2])
    ax, ay, az = rotate(R, local[3], local[4], local[5])
    if rows.kind[m] == WRENCH:  # a motion: the linear part depends on the origin
        cx, cy, cz = cross(p[0], p[1], p[2], ax, ay, az)
        out[0], out[1], out[2], out[3], out[4], out[5] = lx + cx, ly + cy, lz + cz, ax, ay, az
        return 0.0
    cx, cy, cz = cross(p[0], p[1], p[2], lx, ly, lz)
    out[0], out[1], out[2], out[3], out[4], out[5] = lx, ly, lz, ax + cx, ay + cy, az + cz
    if not rows.point[m]:
        return 0.0
    v, at = motion.v[rows.link[m]], rows.position[m]
    x, y, z = rotate(R, at[0], at[1], at[2])
    wx, wy, wz = v[3], v[4], v[5]
    ux, uy, uz = cross(wx, wy, wz, p[0] + x, p[1] + y, p[2] + z)
    ux, uy, uz = cross(wx, wy, wz, v[0] + ux, v[1] + uy, v[2] + uz)
    return lx * ux + ly * uy + lz * uz


@bare_kernel
def row_coefficients(system, m, limb, r, base, h):
    """Coefficients of row m: base (6,) on a_0 and h (columns of the limb,), added to zeros.

    limb: number of the row's, -1 for the base. r (6,) is filled. Returns the bias, so that
    measurement = bias + base^T a_0 + h^T z.
    """
    rows, tree, columns, motion = system.rows, system.tree, system.columns, system.motion
    bias = row_vector(rows, m, motion, r)
    j = rows.link[m]
    if rows.kind[m] == WRENCH:
        inertia_times(motion.Ic[j], r, base)
        bias += dot6(r, motion.fb[j])
        for i in range(max(j, 1), tree.end[j]):
            if columns.joint[i] >= 0:
                h[columns.joint[i]] = dot6(r, motion.P[i])
        k = tree.parent[j]
        for c in range(system.limbs.component[limb], system.limbs.component_end[limb]):
            if columns.wrench[c] >= 0 and j <= columns.wrench_link[c] < tree.end[j]:
                h[columns.wrench[c]] = -dot6(r, system.units[c])
    else:
        for k in range(6):
            base[k] = r[k]
        bias += dot6(r, motion.ab[j])
        k = j
    while k > 0:
        if columns.joint[k] >= 0:
            h[columns.joint[k]] = dot6(base, motion.S[k])
        k = tree.parent[k]
    if rows.rotor[m] != 0.0 and columns.joint[j] >= 0:
        h[columns.joint[j]] += rows.rotor[m]
    return bias
