"""Force distribution: of all forces with the same effect on the unactuated bodies, those of least torque.

A contact model decides v_u+, hence u = Y^T z. The forces that share this u and respect the model
(inside the cone where a contact sticks, on an edge where it slides, zero where it parts) form a
convex set; the one of least torque is

    min 1/2 |torque_offset + T z|^2 + eps/2 |z|^2 + 1/2 sum_i w_i |z_i|^2    Y^T z = u,  z_i in K_i

(first paper, section 6.2, stage II). The weight w_i = kappa (1/r_i^2 - 1), relative to the mean
diagonal of T T^T like eps, is zero at contacts with the load share r_i = 1; a contact whose share
is ramped up after touchdown and down before lift-off is loaded and unloaded gradually, if
the others can carry the rest. Few contacts: a dual active-set method on the free force
components. Many: the dual of the problem has na + nu variables for any number of contacts and
is piecewise quadratic, so a semismooth Newton method solves it in a few steps, each linear in the
number of contacts.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.cone_newton import MAX_STEPS, cone_newton, pyramids
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
    forward_substitute_rows,
)
from contact_id_controller.kernels.nearest_point import FEASIBILITY, SOLVED, nearest_point
from contact_id_controller.kernels.pyramid import (
    APART,
    HOLDING,
    SLIDING,
    STICKING,
    edge,
    edge_directions,
    project_contact,
)
from contact_id_controller.kernels.views import keep, view

TIE_BREAK = 1e-6  # eps: weight of the force norm against the torque norm, relative to traces
NO_LEVER = 1e-6  # N·m/(N·s); forces with less effect on the torques have none but rounding
SAME_MOTION = 1e-8  # accepted change of u, relative to its largest entry
DENSE_COMPONENTS = 12  # up to here the active-set method is faster than the Newton method
RELUCTANCE = 0.3  # kappa: a foot at half its share carries about half its load
INDEPENDENT = 1e-6  # least sin^2 of the angle between equations solved by their Gram matrix
CORRECTIONS = 2  # the second takes away the rounding of the first
LEAST_SHARE = 1e-2  # smaller load shares count as this: a force of 1e-4 of its own is none
NESTED, STRIDE = 200, 7  # from so many contacts on the multipliers of each seventh are the start
MANY_TIE_BREAK = 1e-3  # eps for more contacts: costs 3e-4 of torque at most, saves half the steps


@kernel
def distribute(T, torque_offset, Y, u, face, cones, torque_weight, z):
    """Replace z (3n,), impulses with Y^T z = u, in place by the admissible ones of least torque.

    Returns the number of steps; negative, with z unchanged, when the method failed.

    Args:
        T (3n, na), torque_offset (na,), Y (3n, nu), u (nu,): see ``Problem``.
        face, cones: admissible set of each contact, see ``Face`` and ``Cones``.
        torque_weight: 1 for least torque, 0 for least force.
    """
    best = np.empty(z.shape[0])
    assign(best, z)
    components = 0
    for i in range(face.mode.shape[0]):
        if face.mode[i] != APART:
            components += 3 if face.mode[i] == STICKING else 2
    if components <= DENSE_COMPONENTS:
        steps = _distribute_dense(T, torque_offset, Y, u, face, cones, torque_weight, z)
    else:
        steps = _distribute_newton(T, torque_offset, Y, u, face, cones, torque_weight, z)
    if steps >= 0 and not same_motion(Y, u, z):
        steps = -steps - 1
    if steps < 0:
        assign(z, best)
    return steps


@bare_kernel
def reluctance(share):
    """Weight RELUCTANCE (1 / share^2 - 1) of a contact's squared force, relative to the mean diagonal of T T^T."""
    if share >= 1.0:
        return 0.0
    share = max(share, LEAST_SHARE)
    return RELUCTANCE * (1.0 / (share * share) - 1.0)


@bare_kernel
def share_weights(T, mode, load_share, torque_weight, weights):
    """Write weights w (n,) of |z_i|^2 beside |torque|^2, or beside |z|^2 if torque_weight is 0; 0 at share 1.

        w_i = reluctance(share_i) mean diagonal of T T^T (over contacts that do not part)

    T (3n, na), mode (n,), load_share (n,).
    """
    whole = True
    for i in range(mode.shape[0]):
        weights[i] = reluctance(load_share[i])
        whole = whole and weights[i] == 0.0
    if whole or torque_weight == 0.0:
        return
    size, components = 0.0, 0
    for i in range(mode.shape[0]):
        if mode[i] != APART:
            components += 3
            for r in range(3 * i, 3 * i + 3):
                for k in range(T.shape[1]):
                    size += T[r, k] * T[r, k]
    if size > NO_LEVER * NO_LEVER * components:
        for i in range(mode.shape[0]):
            weights[i] *= size / components


@bare_kernel
def same_motion(Y, u, z):
    """Whether Y^T z = u up to rounding: z (3n,) moves the unactuated bodies as u (nu,); Y (3n, nu)."""
    largest = 0.0
    for k in range(Y.shape[1]):
        largest = max(largest, abs(u[k]))
    for k in range(Y.shape[1]):
        total = 0.0
        for r in range(Y.shape[0]):
            total += Y[r, k] * z[r]
        if not abs(total - u[k]) <= SAME_MOTION * largest:
            return False
    return True


@bare_kernel
def _free_components(mode, angle, span, mu, columns, contact):
    """Write coordinates of the admissible forces: z_i = sum_a columns_a f_a over its components f.

    Three components of a sticking contact, two tangential ones of a holding one, one for each edge of the face on which
    a sliding one may lie.

    Args:
        mode, angle, span, mu: see ``Face`` and ``Cones``.
        columns, contact: out, (3n, 3) directions; (3n,) the contact of each.

    Returns the number of components.
    """
    m = 0
    for i in range(mode.shape[0]):
        if mode[i] == APART:
            continue
        first = 1 if mode[i] == HOLDING else 0
        if first or (mode[i] == STICKING and mu[i] > 0.0):
            for d in range(first, 3):
                for k in range(3):
                    columns[m, k] = 1.0 if k == d else 0.0
                contact[m] = i
                m += 1
            continue
        for j in range(_sides(mode[i], span[i], mu[i])):
            columns[m, 0], columns[m, 1], columns[m, 2] = 1.0, 0.0, 0.0
            if mode[i] == SLIDING:
                edge(mu[i], angle[i] + j * span[i], columns[m])
            contact[m] = i
            m += 1
    return m


@bare_kernel
def _sides(mode, span, mu):
    """Number of edges of the face on which the force of a contact lies that slides, or sticks without friction."""
    return 2 if mode == SLIDING and span > 0.0 and mu > 0.0 else 1


@bare_kernel
def _facets(mode, span, mu, edges, facets, facet_contact):
    """Write the conditions facets f >= 0 of the components of ``_free_components``; returns their number.

    facets, facet_contact: out, (rows, 3) normals in the contact's own components, of which facet_contact[row] = (the
    first, their number).
    """
    m, rows = 0, 0
    width, known = 2.0 * np.pi / edges, -1  # first facet of a pyramid whose directions are computed
    inner = np.cos(0.5 * width)
    for i in range(mode.shape[0]):
        if mode[i] == APART:
            continue
        if mode[i] == HOLDING:
            m += 2
            continue
        if mode[i] == STICKING and mu[i] > 0.0:
            if np.isinf(mu[i]):
                facets[rows, 0], facets[rows, 1], facets[rows, 2] = 1.0, 0.0, 0.0
                facet_contact[rows, 0], facet_contact[rows, 1] = m, 3
                rows += 1
            else:
                start = rows
                for j in range(edges):
                    facets[rows, 0] = mu[i] * inner
                    if known < 0:
                        middle = (j + 0.5) * width
                        facets[rows, 1], facets[rows, 2] = -np.cos(middle), -np.sin(middle)
                    else:
                        facets[rows, 1], facets[rows, 2] = (
                            facets[known + j, 1],
                            facets[known + j, 2],
                        )
                    facet_contact[rows, 0], facet_contact[rows, 1] = m, 3
                    rows += 1
                known = start
            m += 3
            continue
        for _ in range(_sides(mode[i], span[i], mu[i])):
            facets[rows, 0] = 1.0
            facet_contact[rows, 0], facet_contact[rows, 1] = m, 1
            rows += 1
            m += 1
    return rows


@bare_kernel
def _on_plane(A, b, G, y, x):
    """Project x (m,) in place onto A x + b = 0, of independent rows (k, m); returns False if they are not.

    G (k, k), y (k,): workspace.
    """
    rows, dim = A.shape
    gram_of_rows(A, G)
    if not cholesky(G, rows, INDEPENDENT):
        return False
    for _ in range(CORRECTIONS):
        for i in range(rows):
            total = b[i]
            for k in range(dim):
                total += A[i, k] * x[k]
            y[i] = -total
        forward_substitute(G, rows, y)
        backward_substitute(G, rows, y)
        for i in range(rows):
            for k in range(dim):
                x[k] += A[i, k] * y[i]
    return True


@bare_kernel
def gram_of_rows(A, G):
    """Lower triangle of G = A A^T; A (m, k), G (m, m)."""
    for i in range(A.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * A[j, k]
            G[i, j] = total


@bare_kernel
def _inside(facets, facet_contact, rows, force):
    """Whether force (m,) satisfies the first ``rows`` facets, up to rounding; see ``_free_components``."""
    for row in range(rows):
        start, total, size = facet_contact[row, 0], 0.0, 0.0
        for d in range(facet_contact[row, 1]):
            term = facets[row, d] * force[start + d]
            total += term
            size += abs(term)
        if not total >= -FEASIBILITY * size:
            return False
    return True


@kernel
def _nearest_admissible(L, equations, b, facets, facet_contact, rows, w):
    """Project w (m,) in place onto the equations and all facets; returns (status, steps).

    equations (k, m), b (k,): in the same coordinates L^T (components) as w.
    """
    m, k = w.shape[0], equations.shape[0]
    A, at = np.zeros((k + rows, m)), np.zeros(k + rows)
    for row in range(k):
        assign(A[row], equations[row])
        at[row] = b[row]
    for row in range(rows):
        start = facet_contact[row, 0]
        for d in range(facet_contact[row, 1]):
            A[k + row, start + d] = facets[row, d]
    forward_substitute_rows(L, m, A[k:])
    return nearest_point(
        A,
        at,
        k,
        np.empty(0, np.bool_),
        w,
        np.empty(k + rows),
        np.empty(m + 1, np.int64),
        np.empty((m, m)),
        np.empty((m, m)),
        np.empty((3, m + 1)),
    )


@kernel
def _into_cones(face, cones, z):
    """Project impulses z (3n,) in place onto the admissible set of each contact, which removes rounding errors."""
    mode, angle, span = face
    mu, edges, _ = cones
    basis, force, first, second = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3)
    directions = np.empty((edges, 2))
    edge_directions(edges, directions)
    for i in range(mode.shape[0]):
        for d in range(3):
            force[d] = z[3 * i + d]
        project_contact(
            mode[i],
            angle[i],
            span[i],
            mu[i],
            directions,
            force,
            z[3 * i : 3 * i + 3],
            basis,
            first,
            second,
        )


@bare_kernel
def _component_rows(T, Y, columns, contact, torque_weight, TB, A):
    """Write torque TB (m, na), times torque_weight, and motion A (nu, m) of a unit of each component; returns |TB|^2.

    columns, contact: see ``_free_components``.
    """
    size = 0.0
    for a in range(TB.shape[0]):
        i, x, y, z = 3 * contact[a], columns[a, 0], columns[a, 1], columns[a, 2]
        for k in range(T.shape[1]):
            value = (x * T[i, k] + y * T[i + 1, k] + z * T[i + 2, k]) * torque_weight
            TB[a, k] = value
            size += value * value
        for k in range(Y.shape[1]):
            A[k, a] = x * Y[i, k] + y * Y[i + 1, k] + z * Y[i + 2, k]
    return size


@bare_kernel
def _well_inside(mode, mu, edges, z):
    """Whether no contact slides and all impulses z (3n,) are inside the circles inscribed in their pyramids."""
    inner = np.cos(np.pi / edges)
    for i in range(mode.shape[0]):
        normal, first, second = z[3 * i], z[3 * i + 1], z[3 * i + 2]
        if mode[i] == STICKING:
            most = mu[i] * inner * normal
            if not (
                normal >= 0.0
                and (first * first + second * second <= most * most or np.isinf(mu[i]))
            ):
                return False
        elif mode[i] != APART:
            return False
    return True


@bare_kernel
def _compose(columns, contact, force, z):
    """Write impulses z (3n,) of components force (m,), see ``_free_components``."""
    fill(z, 0.0)
    for a in range(force.shape[0]):
        i = 3 * contact[a]
        for d in range(3):
            z[i + d] += columns[a, d] * force[a]


@kernel
def _distribute_dense(T, torque_offset, Y, u, face, cones, torque_weight, z):
    """``distribute`` by a dual active-set method on the force components f (m,); cost cubic in m.

    min 1/2 |torque_offset + TB^T f|^2 + 1/2 f^T (tie + w) f      A f = u, facets f >= 0
    """
    mode, angle, span = face
    mu, edges, load_share = cones
    n, na, nu = mode.shape[0], T.shape[1], Y.shape[1]
    room = np.empty(10 * n + 3 * n * (na + nu + 3 * n + 2) + nu * (nu + 2))
    contact = np.empty(3 * n, np.int64)
    columns, extra = view(room, 0, (3 * n, 3)), view(room, 9 * n, (n,))
    m = _free_components(mode, angle, span, mu, columns, contact)
    if m == 0:
        fill(z, 0.0)
        return 0  # right if u is zero, which the caller checks
    at = 10 * n
    TB, L = view(room, at, (m, na)), view(room, at + m * na, (m, m))
    at += m * (na + m)
    given, A, w = (
        view(room, at, (nu + 1, m)),
        view(room, at, (nu, m)),
        view(room, at + nu * m, (m,)),
    )
    force = view(room, at + (nu + 1) * m, (m,))
    at += (nu + 2) * m
    G, y = view(room, at, (nu, nu)), view(room, at + nu * nu, (nu,))
    b = view(room, at + nu * (nu + 1), (nu,))
    size = _component_rows(T, Y, columns, contact, torque_weight, TB, A)
    for k in range(nu):
        b[k] = -u[k]
    if size <= NO_LEVER * NO_LEVER * m:
        size, torque_weight = 0.0, 0.0
        for a in range(m):
            fill(TB[a], 0.0)
    tie = TIE_BREAK * size / m if size > 0.0 else 1.0
    share_weights(T, mode, load_share, torque_weight, extra)
    for a in range(m):
        weight = tie + extra[contact[a]]
        for c in range(a + 1):
            total = 0.0
            for k in range(na):
                total += TB[a, k] * TB[c, k]
            if contact[a] == contact[c]:
                for d in range(3):
                    total += weight * columns[a, d] * columns[c, d]
            L[a, c] = total
        total = 0.0
        for k in range(na):
            total -= TB[a, k] * torque_offset[k]
        w[a] = total * torque_weight
    if not cholesky(L, m, 0.0):
        return -1
    forward_substitute_rows(L, m, given)
    # In L^T f, L L^T the Hessian, the optimum is the nearest point to w: mostly that on the equations alone.
    assign(force, w)
    on_plane = _on_plane(A, b, G, y, force)
    if on_plane:
        backward_substitute(L, m, force)
        _compose(columns, contact, force, z)
    if on_plane and _well_inside(mode, mu, edges, z):
        keep(room)
        return 1
    most = n * max(edges, 2)
    facets, facet_contact = np.empty((most, 3)), np.empty((most, 2), np.int64)
    rows, steps = _facets(mode, span, mu, edges, facets, facet_contact), 1
    if not (on_plane and _inside(facets, facet_contact, rows, force)):
        status, steps = _nearest_admissible(L, A, b, facets, facet_contact, rows, w)
        if status != SOLVED:
            return -1
        backward_substitute(L, m, w)
        _compose(columns, contact, w, z)
    keep(room)
    _into_cones(face, cones, z)
    return steps


@kernel
def _from_some(W, weight, target, mode, angle, span, mu, edges, x, z):
    """Initial multipliers x (dim,) by every ``STRIDE``-th contact alone; zero if those do not suffice.

    Arguments of ``cone_newton`` and ``pyramids``; z (3n,) is workspace. Returns Newton steps.
    """
    some, dim = (mode.shape[0] + STRIDE - 1) // STRIDE, W.shape[1]
    rows, kind = np.empty((3 * some, dim)), np.empty(some, np.int64)
    first, wide, rough = np.empty(some), np.empty(some), np.empty(some)
    for k in range(some):
        i = STRIDE * k
        kind[k], first[k], wide[k], rough[k] = mode[i], angle[i], span[i], mu[i]
        for d in range(3):
            assign(rows[3 * k + d], W[3 * i + d])
    sets = pyramids(kind, first, wide, rough, edges)
    steps = cone_newton(rows, weight, target, np.empty(0), sets, MAX_STEPS, x, z[: 3 * some])
    if steps < 0:
        fill(x, 0.0)
    return abs(steps)


@kernel
def _distribute_newton(T, torque_offset, Y, u, face, cones, torque_weight, z):
    """Newton method on the multipliers of (torque, u), both blocks scaled to unit mean square.

    A contact with the weight w beside that of the tie-break has the force z = y / sqrt(1 + w / tie)
    in the same cone, y with the weight of the tie-break.
    """
    mode, angle, span = face
    mu, edges, load_share = cones
    na, nu = T.shape[1], Y.shape[1]
    count = 0
    for i in range(mode.shape[0]):
        count += 1 if mode[i] != APART else 0
    W, forces, unit = np.empty((3 * count, na + nu)), np.empty(3 * count), np.empty(count)
    loaded, which = np.empty(count, np.int64), np.empty(count, np.int64)
    first, wide, rough = np.empty(count), np.empty(count), np.empty(count)
    x, target, weight = np.zeros(na + nu), np.empty(na + nu), np.zeros(na + nu)
    size_t, size_y, count = 0.0, 0.0, 0
    for i in range(mode.shape[0]):
        if mode[i] == APART:
            continue
        loaded[count], which[count] = mode[i], i
        first[count], wide[count], rough[count] = angle[i], span[i], mu[i]
        for d in range(3):
            row = W[3 * count + d]
            for k in range(na):
                row[k] = T[3 * i + d, k]
                size_t += row[k] * row[k]
            for k in range(nu):
                row[na + k] = Y[3 * i + d, k]
                size_y += row[na + k] * row[na + k]
        count += 1
    lever = size_t > NO_LEVER * NO_LEVER * 3 * count
    scale_t = torque_weight / np.sqrt(size_t / (3 * count)) if lever else 0.0
    scale_y = 1.0 / np.sqrt(size_y / (3 * count)) if size_y > 0.0 else 0.0
    tie = MANY_TIE_BREAK / (scale_t * scale_t) if scale_t > 0.0 else 1.0
    extra = np.empty(mode.shape[0])
    share_weights(T, mode, load_share, torque_weight, extra)
    for i in range(count):
        unit[i] = 1.0 / np.sqrt(1.0 + extra[which[i]] / tie)
        for r in range(3 * i, 3 * i + 3):
            row = W[r]
            for k in range(na):
                row[k] *= scale_t * unit[i]
            for k in range(na, na + nu):
                row[k] *= scale_y * unit[i]
    for k in range(na):
        target[k] = -torque_offset[k] * scale_t
        weight[k] = MANY_TIE_BREAK
    for k in range(nu):
        target[na + k] = u[k] * scale_y
    before = 0
    if count >= NESTED:
        before = _from_some(W, weight, target, loaded, first, wide, rough, edges, x, forces)
    sets = pyramids(loaded, first, wide, rough, edges)
    steps = cone_newton(W, weight, target, np.empty(0), sets, MAX_STEPS, x, forces)
    steps += before if steps >= 0 else -before
    fill(z, 0.0)
    for i in range(count):
        for d in range(3):
            z[3 * which[i] + d] = unit[i] * forces[3 * i + d]
    return steps
