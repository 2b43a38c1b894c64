"""Sweeps over a robot's links: motion, inertia and bias of everything in one frame.

The common frame has the base's axes and its origin, so that no vector is ever transformed between
links. The base turns with w and does not translate: all that follows is invariant to its velocity.

    v_i = v_l + S_i qd_i                            ab_i = ab_l + v_i x S_i qd_i
    a_i = a_0 + ab_i + sum_{k on path(i)} S_k qdd_k   (a_0: proper, gravity inside)
    f_j = Ic_j a_0 + sum_{k below j} P_k qdd_k + Ic_j sum_{k above j} S_k qdd_k + fb_j - contacts
    fb_j = sum_{i in subtree(j)} I_i ab_i + v_i x* I_i v_i,   P_k = Ic_k S_k

Spatial vectors have their linear part first; a wrench's moment is about the common origin.
Source: Nori (2017), eqs. 3 and 5, in the frame and with the unknowns of docs/theory.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.estimation.tree import PRISMATIC, REVOLUTE, unpack_tree
from contact_id_controller.kernels.compile import bare_kernel, kernel


class Motion(NamedTuple):
    """What a sweep computes, n links.

    R (n, 9) by rows, p (n, 3) m: placement.  S, v, ab (n, 6): joint axis, velocity and acceleration
    at a_0 = 0, qdd = 0.  fb (n, 6): bias wrench of the subtree, N and N m.  P (n, 6) = Ic S.
    Ic (n, 10): the subtree's inertia, moments about the origin xx xy xz yy yz zz, m c, mass.
    """

    R: np.ndarray
    p: np.ndarray
    S: np.ndarray
    v: np.ndarray
    ab: np.ndarray
    fb: np.ndarray
    P: np.ndarray
    Ic: np.ndarray


MOTION_WIDTH = 52


@kernel
def unpack_motion(buffer, n):
    """A ``Motion`` of views into one buffer (52 n,)."""
    return Motion(
        buffer[: 9 * n].reshape((n, 9)),
        buffer[9 * n : 12 * n].reshape((n, 3)),
        buffer[12 * n : 18 * n].reshape((n, 6)),
        buffer[18 * n : 24 * n].reshape((n, 6)),
        buffer[24 * n : 30 * n].reshape((n, 6)),
        buffer[30 * n : 36 * n].reshape((n, 6)),
        buffer[36 * n : 42 * n].reshape((n, 6)),
        buffer[42 * n : 52 * n].reshape((n, 10)),
    )


@bare_kernel
def cross(ax, ay, az, bx, by, bz):
    """a x b, of two vectors by their entries, as a tuple."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@bare_kernel
def rotate(R, x, y, z):
    """R (9,) by rows times a vector."""
    return (
        R[0] * x + R[1] * y + R[2] * z,
        R[3] * x + R[4] * y + R[5] * z,
        R[6] * x + R[7] * y + R[8] * z,
    )


@bare_kernel
def inertia_times(I, s, out):
    """out (6,) = inertia (10,) times a motion (6,): a wrench."""
    lx, ly, lz, wx, wy, wz = s[0], s[1], s[2], s[3], s[4], s[5]
    hx, hy, hz, mass = I[6], I[7], I[8], I[9]
    out[0] = mass * lx + wy * hz - wz * hy
    out[1] = mass * ly + wz * hx - wx * hz
    out[2] = mass * lz + wx * hy - wy * hx
    out[3] = I[0] * wx + I[1] * wy + I[2] * wz + hy * lz - hz * ly
    out[4] = I[1] * wx + I[3] * wy + I[4] * wz + hz * lx - hx * lz
    out[5] = I[2] * wx + I[4] * wy + I[5] * wz + hx * ly - hy * lx


@bare_kernel
def dot6(a, b):
    """Power of a wrench (6,) on a motion (6,), both linear part first."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@bare_kernel
def _turn(kind, axis, cosine, sine, F, R):
    """R = F times the rotation by the joint's angle about its axis (3,); R, F (9,) by rows.

    kind 0, 1, 2: axes x, y, z; else Rodrigues' formula. cosine, sine: of the angle.
    """
    for r in range(3):
        x, y, z = F[3 * r], F[3 * r + 1], F[3 * r + 2]
        if kind == 0:
            R[3 * r], R[3 * r + 1], R[3 * r + 2] = x, cosine * y + sine * z, cosine * z - sine * y
        elif kind == 1:
            R[3 * r], R[3 * r + 1], R[3 * r + 2] = cosine * x - sine * z, y, cosine * z + sine * x
        elif kind == 2:
            R[3 * r], R[3 * r + 1], R[3 * r + 2] = cosine * x + sine * y, cosine * y - sine * x, z
        else:  # Rodrigues, a row times I + sin [a] + (1 - cos) [a]^2
            a0, a1, a2 = axis[0], axis[1], axis[2]
            along = (1.0 - cosine) * (x * a0 + y * a1 + z * a2)
            cx, cy, cz = cross(x, y, z, a0, a1, a2)
            R[3 * r] = cosine * x + sine * cx + along * a0
            R[3 * r + 1] = cosine * y + sine * cy + along * a1
            R[3 * r + 2] = cosine * z + sine * cz + along * a2


@bare_kernel
def _place(tree, i, angle, cosine, sine, motion, fixed):
    """Placement R (9,), p (3,) m and axis S (6,) of link i from its parent's, in the base frame.

    angle: of the joint, rad (m for sliders), with its cosine and sine. fixed (9,): workspace.
    """
    parent = motion.R[tree.parent[i]]
    R, p, S, B, axis = motion.R[i], motion.p[i], motion.S[i], tree.rotation[i], tree.axis[i]
    at = tree.translation[i]
    for r in range(3):
        x, y, z = parent[3 * r], parent[3 * r + 1], parent[3 * r + 2]
        p[r] = motion.p[tree.parent[i], r] + x * at[0] + y * at[1] + z * at[2]
        for k in range(3):
            fixed[3 * r + k] = x * B[k] + y * B[3 + k] + z * B[6 + k]
    kind = tree.kind[i]
    if kind == PRISMATIC:
        for k in range(9):
            R[k] = fixed[k]
        sx, sy, sz = rotate(fixed, axis[0], axis[1], axis[2])
        p[0] += sx * angle
        p[1] += sy * angle
        p[2] += sz * angle
        S[0], S[1], S[2], S[3], S[4], S[5] = sx, sy, sz, 0.0, 0.0, 0.0
        return
    _turn(kind, axis, cosine, sine, fixed, R)
    if kind == REVOLUTE:
        sx, sy, sz = rotate(fixed, axis[0], axis[1], axis[2])
    else:
        sx, sy, sz = fixed[kind], fixed[3 + kind], fixed[6 + kind]
    S[0], S[1], S[2] = cross(p[0], p[1], p[2], sx, sy, sz)
    S[3], S[4], S[5] = sx, sy, sz


@bare_kernel
def _advance(S, rate, v_parent, ab_parent, v, ab):
    """Velocity and bias acceleration of a link from its parent's: v = v_parent + S rate, ab += v_parent x S rate.

    All (6,), linear part first, at the base frame's origin; rate: rad/s or m/s.
    """
    ux, uy, uz = S[0] * rate, S[1] * rate, S[2] * rate
    vx, vy, vz = S[3] * rate, S[4] * rate, S[5] * rate
    lx, ly, lz, wx, wy, wz = (
        v_parent[0], v_parent[1], v_parent[2], v_parent[3], v_parent[4], v_parent[5],
    )  # fmt: skip
    ab[0] = ab_parent[0] + wy * uz - wz * uy + ly * vz - lz * vy
    ab[1] = ab_parent[1] + wz * ux - wx * uz + lz * vx - lx * vz
    ab[2] = ab_parent[2] + wx * uy - wy * ux + lx * vy - ly * vx
    ab[3] = ab_parent[3] + wy * vz - wz * vy
    ab[4] = ab_parent[4] + wz * vx - wx * vz
    ab[5] = ab_parent[5] + wx * vy - wy * vx
    v[0], v[1], v[2], v[3], v[4], v[5] = lx + ux, ly + uy, lz + uz, wx + vx, wy + vy, wz + vz


@bare_kernel
def _body(tree, i, R, p, I):
    """Write the inertia I (10,) of link i about the base's origin in base axes; R (9,), p (3,): its placement."""
    mass, lever, J = tree.mass[i], tree.lever[i], tree.inertia[i]
    gx, gy, gz = rotate(R, lever[0], lever[1], lever[2])
    gx += p[0]
    gy += p[1]
    gz += p[2]
    hx, hy, hz = mass * gx, mass * gy, mass * gz
    # R J R^T by rows of R J.
    a0, a1, a2 = J[0], J[1], J[2]
    b1, b2, c2 = J[3], J[4], J[5]
    t0, t1, t2 = (
        R[0] * a0 + R[1] * a1 + R[2] * a2,
        R[0] * a1 + R[1] * b1 + R[2] * b2,
        R[0] * a2 + R[1] * b2 + R[2] * c2,
    )
    t3, t4, t5 = (
        R[3] * a0 + R[4] * a1 + R[5] * a2,
        R[3] * a1 + R[4] * b1 + R[5] * b2,
        R[3] * a2 + R[4] * b2 + R[5] * c2,
    )
    t6, t7, t8 = (
        R[6] * a0 + R[7] * a1 + R[8] * a2,
        R[6] * a1 + R[7] * b1 + R[8] * b2,
        R[6] * a2 + R[7] * b2 + R[8] * c2,
    )
    I[0] = t0 * R[0] + t1 * R[1] + t2 * R[2] + hy * gy + hz * gz
    I[1] = t0 * R[3] + t1 * R[4] + t2 * R[5] - hx * gy
    I[2] = t0 * R[6] + t1 * R[7] + t2 * R[8] - hx * gz
    I[3] = t3 * R[3] + t4 * R[4] + t5 * R[5] + hx * gx + hz * gz
    I[4] = t3 * R[6] + t4 * R[7] + t5 * R[8] - hy * gz
    I[5] = t6 * R[6] + t7 * R[7] + t8 * R[8] + hx * gx + hy * gy
    I[6], I[7], I[8], I[9] = hx, hy, hz, mass


@bare_kernel
def bias_wrench(I, v, ab, momentum, out):
    """out (6,) = I ab + v x* (I v), with momentum (6,) as work space."""
    inertia_times(I, v, momentum)
    inertia_times(I, ab, out)
    lx, ly, lz, wx, wy, wz = v[0], v[1], v[2], v[3], v[4], v[5]
    px, py, pz, mx, my, mz = (
        momentum[0], momentum[1], momentum[2], momentum[3], momentum[4], momentum[5],
    )  # fmt: skip
    out[0] += wy * pz - wz * py
    out[1] += wz * px - wx * pz
    out[2] += wx * py - wy * px
    out[3] += wy * mz - wz * my + ly * pz - lz * py
    out[4] += wz * mx - wx * mz + lz * px - lx * pz
    out[5] += wx * my - wy * mx + lx * py - ly * px


@bare_kernel
def propagate(tree, q, v, w, base_bias, known, motion, work):
    """Placement, velocity, bias and inertia of every link, none of them summed over subtrees yet.

    q, v: Pinocchio's; w (3,) rad/s: angular velocity of the base in its own axes. What is known
    exactly goes into the bias: base_bias (6,), the base's proper acceleration where it is bolted
    down, and known (n,), accelerations of joints. work (15,).
    """
    for k in range(9):
        motion.R[0, k] = 1.0 if k % 4 == 0 else 0.0
    for k in range(3):
        motion.p[0, k] = 0.0
        motion.v[0, k], motion.v[0, 3 + k] = 0.0, w[k]
    for k in range(6):
        motion.ab[0, k] = base_bias[k]
        motion.S[0, k] = 0.0
    _body(tree, 0, motion.R[0], motion.p[0], motion.Ic[0])
    bias_wrench(motion.Ic[0], motion.v[0], motion.ab[0], work, motion.fb[0])
    for i in range(1, tree.parent.shape[0]):
        parent, at = tree.parent[i], tree.position[i]
        if tree.turns[i]:
            angle, cosine, sine = 0.0, q[at], q[at + 1]
        elif tree.kind[i] == PRISMATIC:
            angle, cosine, sine = q[at], 1.0, 0.0
        else:
            angle, cosine, sine = q[at], np.cos(q[at]), np.sin(q[at])
        S, ab = motion.S[i], motion.ab[i]
        _place(tree, i, angle, cosine, sine, motion, work[6:])
        _advance(S, v[tree.velocity[i]], motion.v[parent], motion.ab[parent], motion.v[i], ab)
        if known[i] != 0.0:
            for k in range(6):
                ab[k] += S[k] * known[i]
        _body(tree, i, motion.R[i], motion.p[i], motion.Ic[i])
        bias_wrench(motion.Ic[i], motion.v[i], ab, work, motion.fb[i])


@bare_kernel
def accumulate(tree, motion):
    """Sum inertia and bias wrench over subtrees, and P = Ic S."""
    for i in range(tree.parent.shape[0] - 1, 0, -1):
        parent = tree.parent[i]
        for k in range(10):
            motion.Ic[parent, k] += motion.Ic[i, k]
        for k in range(6):
            motion.fb[parent, k] += motion.fb[i, k]
        inertia_times(motion.Ic[i], motion.S[i], motion.P[i])


@kernel
def inverse_dynamics(integers, numbers, buffer, q, v, w, base_acceleration, known, effort):
    """Recursive Newton-Euler: efforts (nv,) of the joints, N m or N; link wrenches stay in the buffer.

    integers, numbers: a mechanism's; buffer (52 n + 15,): its ``Motion`` then holds the wrench f_i
    of each link's joint in fb[i], about the base origin in base axes. base_acceleration (6,):
    proper, of the base origin, in base axes. known (n,): accelerations of the links' joints. fb[0]
    is what the base needs from outside, zero for a floating base that nothing touches.
    """
    n = integers.shape[1]
    tree, motion = unpack_tree(integers, numbers), unpack_motion(buffer, n)
    propagate(tree, q, v, w, base_acceleration, known, motion, buffer[MOTION_WIDTH * n :])
    for i in range(n - 1, 0, -1):
        for k in range(6):
            motion.fb[tree.parent[i], k] += motion.fb[i, k]
        effort[tree.velocity[i]] = dot6(motion.S[i], motion.fb[i])
