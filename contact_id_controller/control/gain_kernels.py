"""Derivatives of the contact points' motion by the configuration, for ``state_gain``.

S (nv, 6), by rows, are the joint axes in the world (linear, angular), so that a link's twist is the sum of
S_k v_k over the coordinates k that move it: supports (njoints, nv) bool. Along the tangent coordinate l an axis
turns with all that l moves: turned (nv, nv, 6), dS_k / dq_l = S_l x S_k where l moves the joint of k,
coordinate_joint (nv,), else 0.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, kernel


@bare_kernel
def _motion_cross(a, b, out):
    """out = a x b of spatial motions (6,), linear first."""
    out[0] = a[4] * b[2] - a[5] * b[1] + a[1] * b[5] - a[2] * b[4]
    out[1] = a[5] * b[0] - a[3] * b[2] + a[2] * b[3] - a[0] * b[5]
    out[2] = a[3] * b[1] - a[4] * b[0] + a[0] * b[4] - a[1] * b[3]
    out[3] = a[4] * b[5] - a[5] * b[4]
    out[4] = a[5] * b[3] - a[3] * b[5]
    out[5] = a[3] * b[4] - a[4] * b[3]


@bare_kernel
def _at(motion, x, y, z, out):
    """Linear part (3,) of a spatial motion (6,) at a point."""
    out[0] = motion[0] + motion[4] * z - motion[5] * y
    out[1] = motion[1] + motion[5] * x - motion[3] * z
    out[2] = motion[2] + motion[3] * y - motion[4] * x


@bare_kernel
def _add_cross(a, b, out):
    """out += a x b (3,)."""
    out[0] += a[1] * b[2] - a[2] * b[1]
    out[1] += a[2] * b[0] - a[0] * b[2]
    out[2] += a[0] * b[1] - a[1] * b[0]


@kernel
def turned_axes(S, supports, coordinate_joint, turned):
    """Write turned[k, l] = dS_k / dq_l."""
    nv = S.shape[0]
    for k in range(nv):
        for m in range(nv):
            if supports[coordinate_joint[k], m]:
                _motion_cross(S[m], S[k], turned[k, m])
            else:
                for d in range(6):
                    turned[k, m, d] = 0.0


@kernel
def _twists(S, turned, supports, coordinate_joint, v, V, VQ, rate):
    """Add twists V (njoints, 6) of the links at v (nv,) and their derivatives VQ (njoints, nv, 6) by q to zeros.

    rate (nv, 6): out, d/dt of the axes, V x S.
    """
    for joint in range(supports.shape[0]):
        for k in range(S.shape[0]):
            if supports[joint, k]:
                for d in range(6):
                    V[joint, d] += S[k, d] * v[k]
                for m in range(S.shape[0]):
                    for d in range(6):
                        VQ[joint, m, d] += turned[k, m, d] * v[k]
    for k in range(S.shape[0]):
        _motion_cross(V[coordinate_joint[k]], S[k], rate[k])


@kernel
def point_derivatives(S, turned, supports, coordinate_joint, links, points, centers, v, out):
    """Write J, dx/dq, d(J v)/dq, d(Jdot v)/dq and d(Jdot v)/dv, out (5, n, 3, nv), of n material points x.

    Args:
        links, points: (n,), (n, 3) m, world, of the points.
        centers: (n, 3) m, world: points of the links with which the contact points move (of a ball its centre).
        v: (nv,). Jdot v is the classical acceleration at zero generalized acceleration.
    """
    J, moved, speed_q, pull_q, pull_v = out[0], out[1], out[2], out[3], out[4]
    nv, joints = S.shape[0], supports.shape[0]
    V, VQ, rate = np.zeros((joints, 6)), np.zeros((joints, nv, 6)), np.zeros((nv, 6))
    _twists(S, turned, supports, coordinate_joint, v, V, VQ, rate)
    A, AQ, term = np.empty(6), np.empty((nv, 6)), np.empty(6)
    swing, change = np.empty(3), np.empty(3)
    for i in range(links.shape[0]):
        link = links[i]
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        A[:] = 0.0
        AQ[:] = 0.0
        for k in range(nv):
            if not supports[link, k]:
                continue
            joint = coordinate_joint[k]
            for d in range(6):
                A[d] += rate[k, d] * v[k]
            for m in range(nv):
                if supports[link, m]:
                    _motion_cross(VQ[joint, m], S[k], term)
                    for d in range(6):
                        AQ[m, d] += term[d] * v[k]
                    _motion_cross(V[joint], turned[k, m], term)
                    for d in range(6):
                        AQ[m, d] += term[d] * v[k]
        _at(V[link], x, y, z, swing)
        omega = V[link, 3:]
        for m in range(nv):
            if not supports[link, m]:
                for d in range(3):
                    J[i, d, m] = moved[i, d, m] = speed_q[i, d, m] = 0.0
                    pull_q[i, d, m] = pull_v[i, d, m] = 0.0
                continue
            column, place = np.empty(3), np.empty(3)
            _at(S[m], x, y, z, column)
            _at(S[m], centers[i, 0], centers[i, 1], centers[i, 2], place)
            # d(J v)/dq: the twist turns, and the place moves.
            _at(VQ[link, m], x, y, z, change)
            _add_cross(omega, place, change)
            pull = np.empty(3)
            _at(AQ[m], x, y, z, pull)
            _add_cross(A[3:], place, pull)
            _add_cross(VQ[link, m, 3:], swing, pull)
            _add_cross(omega, change, pull)
            for d in range(3):
                J[i, d, m], moved[i, d, m] = column[d], place[d]
                speed_q[i, d, m], pull_q[i, d, m] = change[d], pull[d]
            for d in range(6):
                term[d] = VQ[link, m, d] + rate[m, d]
            _at(term, x, y, z, pull)
            _add_cross(S[m, 3:], swing, pull)
            _add_cross(omega, column, pull)
            for d in range(3):
                pull_v[i, d, m] = pull[d]


@kernel
def motion_derivatives(S, turned, supports, links, points, moved, motion, out):
    """out (n, 3, nv) = d(J x)/dq of each point for a fixed motion x (nv,); points, moved: of ``point_derivatives``."""
    nv = S.shape[0]
    total, change = np.empty(6), np.empty(3)
    spin = np.empty(3)
    for i in range(links.shape[0]):
        link = links[i]
        spin[:] = 0.0
        for k in range(nv):
            if supports[link, k]:
                for d in range(3):
                    spin[d] += S[k, 3 + d] * motion[k]
        for m in range(nv):
            total[:] = 0.0
            for k in range(nv):
                if supports[link, k]:
                    for d in range(6):
                        total[d] += turned[k, m, d] * motion[k]
            _at(total, points[i, 0], points[i, 1], points[i, 2], change)
            _add_cross(spin, moved[i, :, m], change)
            for d in range(3):
                out[i, d, m] = change[d]


@kernel
def force_derivatives(S, turned, supports, links, points, moved, forces, out):
    """out (nv, nv) = d(J^T f)/dq for fixed forces f (n, 3), N, world; points, moved: of ``point_derivatives``."""
    nv = S.shape[0]
    wrench, lever = np.empty(6), np.empty(3)
    out[:] = 0.0
    for i in range(links.shape[0]):
        link, force = links[i], forces[i]
        wrench[:3] = force
        wrench[3:] = 0.0
        _add_cross(points[i], force, wrench[3:])
        for m in range(nv):
            lever[:] = 0.0
            _add_cross(moved[i, :, m], force, lever)
            for k in range(nv):
                if supports[link, k]:
                    total = 0.0
                    for d in range(6):
                        total += turned[k, m, d] * wrench[d]
                    for d in range(3):
                        total += S[k, 3 + d] * lever[d]
                    out[k, m] += total
