"""The least-squares problem of all sensors, solved limb by limb.

    min |Sigma^-1/2 (H z - y)|^2   subject to   f_0 = 0 (softened: f_0 of variance s^2)

The unknowns of one limb couple with nothing but the base's acceleration a_0 and the multiplier of
f_0 = 0. Each limb is eliminated by a Cholesky factor of its own; what remains is 12 x 12:

    [ K_aa - sum Y_a^T H^-1 Y_a   Ic_0 - ...  ] [a_0   ]
    [ Ic_0 - ...                 -s^2 - ...   ] [lambda]

so the cost grows with the largest limb, not with the robot. ``dense`` solves the same problem with
exact rows and limbs that only the base's equation determines, by one pivoted factorisation.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.estimation.rows import (
    ACCELERATION,
    contact_wrench,
    row_coefficients,
)
from contact_id_controller.estimation.sweep import accumulate, dot6, inertia_times, propagate
from contact_id_controller.kernels.compile import bare_kernel, kernel

SOLVED, SINGULAR = 0, 1
SINGULAR_PIVOT = 1e-13  # smallest accepted pivot relative to the largest diagonal entry


@bare_kernel
def sweep(system, scratch, q, v, w, up, y):
    """Everything in the common frame, with what is known exactly folded into the bias.

    q (nq,), v (nv,) as Pinocchio has them, w (3,) rad/s base's angular velocity, up (3,) unit vector, base axes;
    y (values + 1,) measurements, 0 last.
    """
    columns, motion, units = system.columns, system.motion, system.units
    for i in range(1, scratch.known.shape[0]):
        scratch.known[i] = y[columns.joint_value[i]] if columns.joint[i] < 0 else 0.0
    propagate(system.tree, q, v, w, system.facts.base_bias, scratch.known, motion, scratch.sweep)
    for c in range(columns.wrench.shape[0]):
        contact_wrench(columns, c, motion, up, units[c])
        if columns.wrench[c] < 0 and columns.wrench_value[c] >= 0:
            force, link = y[columns.wrench_value[c]], columns.wrench_link[c]
            for k in range(6):
                motion.fb[link, k] -= force * units[c, k]
    accumulate(system.tree, motion)


@bare_kernel
def measured(system, m, y, up, r):
    """The value of row m; that of a stationary frame is gravity, m/s^2, against ``up`` (3,); r (6,): its row."""
    rows, columns, j = system.rows, system.columns, system.rows.link[m]
    if rows.value[m] >= 0:
        value = y[rows.value[m]]
        if rows.rotor[m] != 0.0 and columns.joint[j] < 0:
            value -= rows.rotor[m] * y[columns.joint_value[j]]
        return value
    return system.facts.gravity * (r[0] * up[0] + r[1] * up[1] + r[2] * up[2])


@bare_kernel
def _add_row(h, base, weight, target, columns, H, Y, K):
    """Add weight |h z + base a_0 - target|^2 / 2 of one sensor row to the normal equations of a limb and of the base.

    h (columns,), base (6,); H, Y, K: see ``_eliminate``.
    """
    for i in range(columns):
        f = weight * h[i]
        if f != 0.0:
            row, right = H[i], Y[i]
            for k in range(i + 1):
                row[k] += f * h[k]
            for k in range(6):
                right[k] += f * base[k]
            right[12] += f * target
    for i in range(6):
        f = weight * base[i]
        if f != 0.0:
            row = K[i]
            for k in range(6):
                row[k] += f * base[k]
            row[12] += f * target


@bare_kernel
def _base_equation(I, fb, softness, K):
    """Write the base's equation f_0 = Ic_0 a_0 + ... + fb_0 and its multiplier into K (12, 13).

        [ K_aa Ic_0 ] [a_0   ]   [ ..  ]
        [ Ic_0 -s^2 ] [lambda] = [-fb_0]

    I (10,): composite inertia of the robot; fb (6,): bias wrench; softness (6,): s^2.
    """
    for i in range(6):
        for j in range(6):
            K[i, 6 + j] = 0.0
            K[6 + i, j] = 0.0
        K[6 + i, 6 + i] = -softness[i]
        K[6 + i, 12] = -fb[i]
    mass = I[9]
    for i in range(3):
        K[i, 6 + i] = mass
        K[6 + i, i] = mass
    # Force = mass l + w x h: rows of force, columns of w; moment = h x l.
    hx, hy, hz = I[6], I[7], I[8]
    for a, b, h in ((0, 4, hz), (1, 5, hx), (2, 3, hy)):
        K[a, 6 + b] = h
        K[b, 6 + a] = h
        K[6 + a, b] = h
        K[6 + b, a] = h
    for a, b, h in ((0, 5, hy), (1, 3, hz), (2, 4, hx)):
        K[a, 6 + b] = -h
        K[b, 6 + a] = -h
        K[6 + a, b] = -h
        K[6 + b, a] = -h
    K[3, 9], K[3, 10], K[3, 11] = I[0], I[1], I[2]
    K[4, 9], K[4, 10], K[4, 11] = I[1], I[3], I[4]
    K[5, 9], K[5, 10], K[5, 11] = I[2], I[4], I[5]
    for i in range(3, 6):
        for j in range(9, 12):
            K[6 + i, j - 6] = K[i, j]


@bare_kernel
def _pivot(H, Y, j, smallest):
    """Divide row j of H (lower) and Y by the root of its pivot; False: too small."""
    row, right = H[j], Y[j]
    if not row[j] > smallest:
        return False
    inverse = 1.0 / np.sqrt(row[j])
    for z in range(j):
        row[z] *= inverse
    row[j] = inverse
    for z in range(13):
        right[z] *= inverse
    return True


@bare_kernel
def _eliminate(H, Y, n, K):
    """Eliminate a limb's n unknowns z from  H z + Y (a_0, lambda, -1) = 0,  its normal equations.

        H (n, n; lower) <- L with H = L^T L, 1 / L_jj on its diagonal;   Y (n, 13) <- L^-T Y
        K (12, 13) <- K - Y[:, :12]^T H^-1 Y   (of Y before)

    The 12 columns are the base's acceleration a_0 (6) and the multiplier lambda (6) of f_0 = 0, the last the right
    side. From the last row to the first, so that all loops begin at zero and are vectorised; two rows at a time, for
    half the passes over what remains. Returns False where H is singular.
    """
    smallest = 0.0
    for j in range(n):
        smallest = max(smallest, SINGULAR_PIVOT * H[j, j])
    for step in range(n // 2):
        j = n - 1 - 2 * step
        first, second, y1, y2 = H[j], H[j - 1], Y[j], Y[j - 1]
        if not _pivot(H, Y, j, smallest):
            return False
        f = first[j - 1]
        for z in range(j):
            second[z] -= f * first[z]
        for z in range(13):
            y2[z] -= f * y1[z]
        if not _pivot(H, Y, j - 1, smallest):
            return False
        for i in range(j - 1):
            f, g = first[i], second[i]
            if f != 0.0 or g != 0.0:
                row, right = H[i], Y[i]
                for z in range(i + 1):
                    row[z] -= f * first[z] + g * second[z]
                for z in range(13):
                    right[z] -= f * y1[z] + g * y2[z]
        for i in range(12):
            f, g, row = y1[i], y2[i], K[i]
            for z in range(13):
                row[z] -= f * y1[z] + g * y2[z]
    if n % 2 == 1:
        if not _pivot(H, Y, 0, smallest):
            return False
        y1 = Y[0]
        for i in range(12):
            f, row = y1[i], K[i]
            for z in range(13):
                row[z] -= f * y1[z]
    return True


@bare_kernel
def solve_pivoted(K, n):
    """Solve K (n, n + 1) x = its last column in place, with partial pivoting; False: singular."""
    largest = 0.0
    for i in range(n):
        for j in range(n):
            largest = max(largest, abs(K[i, j]))
    for i in range(n):
        best = i
        for r in range(i + 1, n):
            if abs(K[r, i]) > abs(K[best, i]):
                best = r
        if not abs(K[best, i]) > SINGULAR_PIVOT * largest:
            return False
        if best != i:
            for z in range(i, n + 1):
                K[i, z], K[best, z] = K[best, z], K[i, z]
        inverse, row = 1.0 / K[i, i], K[i]
        for r in range(i + 1, n):
            other = K[r]
            f = other[i] * inverse
            if f != 0.0:
                for z in range(i + 1, n + 1):
                    other[z] -= f * row[z]
    for i in range(n - 1, -1, -1):
        total = K[i, n]
        for z in range(i + 1, n):
            total -= K[i, z] * K[z, n]
        K[i, n] = total / K[i, i]
    return True


@bare_kernel
def _limb(system, b, y, up, scratch):
    """Write the normal equations of limb b into scratch.H[b], scratch.Y[b]; add its rows to the base's, scratch.K.

        H (n, n), lower = sum w h h^T + priors,   Y (n, 13) = sum w h (base, target), and lambda's columns

    system: ``System``; y (values + 1,): measurements; up (3,): unit vector, base axes.
    """
    columns, limbs, motion = system.columns, system.limbs, system.motion
    h, base, H, Y = scratch.h, scratch.base, scratch.H[b], scratch.Y[b]
    first = limbs.column[b]
    n = limbs.column_end[b] - first
    for i in range(n):
        for k in range(i + 1):
            H[i, k] = 0.0
        for k in range(13):
            Y[i, k] = 0.0
    if system.facts.floating:
        for i in range(limbs.link[b], limbs.link_end[b]):
            if columns.joint[i] >= 0:
                for k in range(6):
                    Y[columns.joint[i], 6 + k] = motion.P[i, k]
        for c in range(limbs.component[b], limbs.component_end[b]):
            if columns.wrench[c] >= 0:
                for k in range(6):
                    Y[columns.wrench[c], 6 + k] = -system.units[c, k]
    for m in range(limbs.row[b], limbs.row_end[b]):
        for i in range(n):
            h[i] = 0.0
        bias = row_coefficients(system, m, b, scratch.r[m], base, h)
        if not system.facts.floating:
            for k in range(6):
                base[k] = 0.0
        target = measured(system, m, y, up, scratch.r[m]) - bias
        scratch.target[m] = target
        _add_row(h, base, system.rows.weight[m], target, n, H, Y, scratch.K)
    for i in range(n):
        weight = columns.prior[first + i]
        if weight > 0.0:
            H[i, i] += weight
            Y[i, 12] += weight * y[columns.prior_value[first + i]]


@bare_kernel
def _base(system, y, up, scratch):
    """Write scratch.K (12, 13): the base's equation, and the rows of its own sensors; arguments as of ``_limb``."""
    K, facts, limbs = scratch.K, system.facts, system.limbs
    for i in range(12):
        for j in range(13):
            K[i, j] = 0.0
    if facts.floating:
        _base_equation(system.motion.Ic[0], system.motion.fb[0], facts.softness, K)
    for m in range(limbs.row_end[limbs.link.shape[0] - 1], system.rows.kind.shape[0]):
        bias = row_coefficients(system, m, -1, scratch.r[m], scratch.base, scratch.h)
        target = measured(system, m, y, up, scratch.r[m]) - bias
        scratch.target[m] = target
        _add_row(
            scratch.h, scratch.base, system.rows.weight[m], target, 0, scratch.H[0], scratch.Y[0], K
        )


@bare_kernel
def by_limbs(system, y, up, scratch, results):
    """Solve the least-squares problem: results.base a_0 (6,), results.z (N,); returns SOLVED, or SINGULAR.

    Each limb is eliminated, the base's 12 x 12 solved, then each limb by z = L^-1 (Y_12 - Y (a_0, lambda)).
    Arguments as of ``_limb``.
    """
    limbs, K, floating = system.limbs, scratch.K, system.facts.floating
    _base(system, y, up, scratch)
    for b in range(limbs.link.shape[0]):
        _limb(system, b, y, up, scratch)
        if not _eliminate(scratch.H[b], scratch.Y[b], limbs.column_end[b] - limbs.column[b], K):
            return SINGULAR
    if floating and not solve_pivoted(K, 12):
        return SINGULAR
    centre = scratch.sweep  # a_0 and multiplier, one after the other
    for k in range(12):
        centre[k] = K[k, 12] if floating else 0.0
    for k in range(6):
        results.base[k] = centre[k]
    for b in range(limbs.link.shape[0]):
        first, factor, right = limbs.column[b], scratch.H[b], scratch.Y[b]
        z = results.z[first : limbs.column_end[b]]
        for i in range(z.shape[0]):
            row, known = factor[i], right[i]
            total = known[12]
            for k in range(12):
                total -= known[k] * centre[k]
            for k in range(i):
                total -= row[k] * z[k]
            z[i] = total * row[i]
    return SOLVED


@kernel
def dense(system, y, up, scratch, A, target, B):
    """The same problem over all unknowns x = (a_0, z), for tests and inspection.

    A (m, 6 + N), target (m,): A x = target of the rows. B (6, 6 + N): f_0 = B x + fb_0.
    """
    columns, limbs, motion, tree = system.columns, system.limbs, system.motion, system.tree
    A[:] = 0.0
    B[:] = 0.0
    for m in range(system.rows.kind.shape[0]):
        limb = tree.limb[system.rows.link[m]]
        first, n = 0, 0
        if limb >= 0:
            first, n = limbs.column[limb], limbs.column_end[limb] - limbs.column[limb]
        scratch.h[:n] = 0.0
        bias = row_coefficients(system, m, limb, scratch.r[m], scratch.base, scratch.h)
        target[m] = measured(system, m, y, up, scratch.r[m]) - bias
        scratch.target[m] = target[m]
        A[m, :6] = scratch.base
        A[m, 6 + first : 6 + first + n] = scratch.h[:n]
    unit, image = scratch.h, scratch.base  # h has room for six at least
    for k in range(6):
        unit[k] = 0.0
    for k in range(6):
        unit[k] = 1.0
        inertia_times(motion.Ic[0], unit, image)
        unit[k] = 0.0
        for i in range(6):
            B[i, k] = image[i]
    for j in range(1, tree.parent.shape[0]):
        if columns.joint[j] >= 0:
            B[:, 6 + limbs.column[tree.limb[j]] + columns.joint[j]] = motion.P[j]
    for b in range(limbs.link.shape[0]):
        for c in range(limbs.component[b], limbs.component_end[b]):
            if columns.wrench[c] >= 0:
                B[:, 6 + limbs.column[b] + columns.wrench[c]] = -system.units[c]


@bare_kernel
def outputs(system, y, scratch, results):
    """Write accelerations a, wrenches f, joint accelerations, efforts and residuals of all rows from a_0 and z.

    Of the state last swept and assembled. Residuals are (measured less estimated) / sigma, of exact rows in the row's
    own unit. results: ``Results``.
    """
    tree, rows, columns, limbs = system.tree, system.rows, system.columns, system.limbs
    motion, units, a, f = system.motion, system.units, results.a, results.f
    n = tree.parent.shape[0]
    for k in range(6):
        a[0, k] = results.base[k]  # without bias: it is added last
        f[0, k] = 0.0
    for i in range(1, n):
        column = columns.joint[i]
        amount = results.z[limbs.column[tree.limb[i]] + column] if column >= 0 else 0.0
        results.joint_acceleration[i] = amount if column >= 0 else y[columns.joint_value[i]]
        for k in range(6):
            a[i, k] = a[tree.parent[i], k] + motion.S[i, k] * amount
            f[i, k] = motion.P[i, k] * amount
    for b in range(limbs.link.shape[0]):
        for c in range(limbs.component[b], limbs.component_end[b]):
            if columns.wrench[c] >= 0:
                amount, link = (
                    results.z[limbs.column[b] + columns.wrench[c]],
                    columns.wrench_link[c],
                )
                for k in range(6):
                    f[link, k] -= units[c, k] * amount
    for i in range(n - 1, 0, -1):
        for k in range(6):
            f[tree.parent[i], k] += f[i, k]
    for i in range(n):
        inertia_times(motion.Ic[i], a[tree.parent[i]] if i else a[0], scratch.base)
        for k in range(6):
            f[i, k] += scratch.base[k] + motion.fb[i, k]
        results.effort[i] = dot6(motion.S[i], f[i])
    for i in range(n):
        for k in range(6):
            a[i, k] += motion.ab[i, k]
    for m in range(rows.kind.shape[0]):
        j = rows.link[m]
        own, bias = (a[j], motion.ab[j]) if rows.kind[m] == ACCELERATION else (f[j], motion.fb[j])
        difference = scratch.target[m] + dot6(scratch.r[m], bias) - dot6(scratch.r[m], own)
        if rows.rotor[m] != 0.0 and columns.joint[j] >= 0:
            difference -= rows.rotor[m] * results.joint_acceleration[j]
        results.residual[m] = difference if rows.exact[m] else difference * np.sqrt(rows.weight[m])
