"""Which forces, among all with the same effect on the unactuated bodies, cost the least torque.

A contact model decides v_u+, hence u = Y^T z. The forces that share this u and respect the model
(inside the cone where a contact sticks, on an edge where it slides, zero where it parts) form a
convex set; the one of least torque is

    min 1/2 |torque_offset + T z|^2 + eps/2 |z|^2    Y^T z = u,  z_i in K_i

(first paper, section 6.2, stage II). Few contacts: a dual active-set method on the free force
components. Many: the dual of the problem has na + nu variables whatever the number of contacts and
is piecewise quadratic, so a semismooth Newton method solves it in a few steps, each linear in the
number of contacts.
"""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel
from ..lcp.dual_qp import SOLVED, nearest_point
from ..problem import backward_substitute, cholesky, forward_substitute

# What a contact may carry at the chosen motion.
APART, STICKING, SLIDING = 0, 1, 2
# Which piece of its cone a contact's force lies on (rank of the piece: 0, 1, 2, 3).
_ZERO, _RAY, _PLANE, _INSIDE = 0, 1, 2, 3

TIE_BREAK = 1e-6        # eps: weight of the force norm against the torque norm, relative to traces
EQUALITY_TOLERANCE = 1e-8  # accepted |Y z - u| relative to |u|, after scaling
DAMPING = 1e-14         # smallest Levenberg term relative to the Hessian's trace
MAX_NEWTON_STEPS = 60
MAX_HALVINGS = 12
DENSE_CONTACTS = 14     # up to here the active-set method is faster than the Newton method


@kernel
def edge(mu, angle, out):
    """Generator (normal 1, tangents mu cos, mu sin) of a friction pyramid; mu is finite."""
    out[0], out[1], out[2] = 1.0, mu * np.cos(angle), mu * np.sin(angle)


@kernel
def project_sector(force, first, second, out, basis):
    """Nearest point of cone(first, second) to ``force``; basis rows span the piece; returns its rank."""
    aa = first[0] * first[0] + first[1] * first[1] + first[2] * first[2]
    bb = second[0] * second[0] + second[1] * second[1] + second[2] * second[2]
    ab = first[0] * second[0] + first[1] * second[1] + first[2] * second[2]
    fa = first[0] * force[0] + first[1] * force[1] + first[2] * force[2]
    fb = second[0] * force[0] + second[1] * force[1] + second[2] * force[2]
    determinant = aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb:
        alpha = (bb * fa - ab * fb) / determinant
        beta = (aa * fb - ab * fa) / determinant
        if alpha > 0.0 and beta > 0.0:
            norm = np.sqrt(aa)
            rest = 0.0
            for d in range(3):
                out[d] = alpha * first[d] + beta * second[d]
                basis[0, d] = first[d] / norm
                basis[1, d] = second[d] - ab / aa * first[d]
                rest += basis[1, d] * basis[1, d]
            rest = np.sqrt(rest)
            for d in range(3):
                basis[1, d] /= rest
            return _PLANE
    # Off the sector: the better of the two edges.
    along, chosen, square = fa / np.sqrt(aa), first, aa
    if fb / np.sqrt(bb) > along:
        along, chosen, square = fb / np.sqrt(bb), second, bb
    if along <= 0.0:
        for d in range(3):
            out[d] = 0.0
        return _ZERO
    norm = np.sqrt(square)
    for d in range(3):
        out[d] = along * chosen[d] / norm
        basis[0, d] = chosen[d] / norm
    return _RAY


@kernel
def project_contact(mode, angle, span, mu, edges, force, out, basis, first, second):
    """Nearest admissible force of one contact; fills the piece's orthonormal basis, returns its rank.

    STICKING: the whole pyramid (a half-space of normals when mu is infinite). SLIDING: the sector
    from ``angle`` to ``angle + span`` of the pyramid's edges. APART: zero.
    """
    if mode == APART:
        for d in range(3):
            out[d] = 0.0
        return _ZERO
    if mode == SLIDING:
        edge(mu, angle, first)
        edge(mu, angle + span, second)
        return project_sector(force, first, second, out, basis)
    if np.isinf(mu):
        start = 0
        if force[0] > 0.0:
            out[0] = force[0]
        else:
            out[0] = 0.0
            start = 1
        out[1], out[2] = force[1], force[2]
        for r in range(3 - start):
            for d in range(3):
                basis[r, d] = 1.0 if d == r + start else 0.0
        return _INSIDE - start
    width = 2.0 * np.pi / edges
    # The pyramid is symmetric, so only the sector that the force points into matters.
    sector = np.floor(np.arctan2(force[2], force[1]) / width) * width
    middle = sector + 0.5 * width
    outward = force[1] * np.cos(middle) + force[2] * np.sin(middle)
    if outward <= mu * np.cos(0.5 * width) * force[0] and mu > 0.0:
        for d in range(3):
            out[d] = force[d]
            for r in range(3):
                basis[r, d] = 1.0 if r == d else 0.0
        return _INSIDE
    edge(mu, sector, first)
    edge(mu, sector + width, second)
    return project_sector(force, first, second, out, basis)


@kernel
def _evaluate(W, x, mode, angle, span, mu, edges, z, pieces, basis, force, first, second):
    """z(x) = projection of -W x; returns 1/2 |z|^2."""
    half = 0.0
    d = x.shape[0]
    for i in range(mode.shape[0]):
        for r in range(3):
            total = 0.0
            row = W[3 * i + r]
            for k in range(d):
                total -= row[k] * x[k]
            force[r] = total
        pieces[i] = project_contact(mode[i], angle[i], span[i], mu[i], edges, force,
                                    z[3 * i:3 * i + 3], basis[i], first, second)
        for r in range(3):
            half += 0.5 * z[3 * i + r] * z[3 * i + r]
    return half


@kernel
def distribute(T, torque_offset, Y, u, mode, angle, span, mu, edges, torque_weight, z):
    """Replace z (3n,), impulses with Y^T z = u, by the admissible ones of least torque.

    Returns the number of steps; negative, with z unchanged, when the method failed.

    Args:
        T (3n, na), torque_offset (na,), Y (3n, nu), u (nu,): see ``Problem``.
        mode, angle, span (n,): what each contact may carry, and the sliding sector, rad.
        mu (n,), edges: friction coefficients and number of pyramid edges.
        torque_weight: 1 for least torque, 0 for least force.
    """
    best = z.copy()
    if mode.shape[0] <= DENSE_CONTACTS:
        steps = _distribute_dense(T, torque_offset, Y, u, mode, angle, span, mu, edges,
                                  torque_weight, z)
    else:
        steps = _distribute_newton(T, torque_offset, Y, u, mode, angle, span, mu, edges,
                                   torque_weight, z)
    if steps < 0:
        z[:] = best
    return steps


@kernel
def _free_components(mode, angle, span, mu, edges, columns, contact, facets, facet_contact):
    """Coordinates of the admissible forces: z_i = sum of its columns, facet rows >= 0.

    columns (3n, 3) unit vectors, contact (3n,) whose they are, facets (rows, 3) in the contact's
    own coordinates starting at the column facet_contact[row, 0], facet_contact[row, 1] of them.
    Returns (number of columns, number of facets).
    """
    m = 0
    rows = 0
    for i in range(mode.shape[0]):
        if mode[i] == APART:
            continue
        if mode[i] == STICKING and mu[i] > 0.0:
            width = 2.0 * np.pi / edges
            for d in range(3):
                for k in range(3):
                    columns[m + d, k] = 1.0 if k == d else 0.0
                contact[m + d] = i
            if np.isinf(mu[i]):
                facets[rows, 0], facets[rows, 1], facets[rows, 2] = 1.0, 0.0, 0.0
                facet_contact[rows, 0], facet_contact[rows, 1] = m, 3
                rows += 1
            else:
                for j in range(edges):
                    middle = (j + 0.5) * width
                    facets[rows, 0] = mu[i] * np.cos(0.5 * width)
                    facets[rows, 1], facets[rows, 2] = -np.cos(middle), -np.sin(middle)
                    facet_contact[rows, 0], facet_contact[rows, 1] = m, 3
                    rows += 1
            m += 3
            continue
        sides = 2 if mode[i] == SLIDING and span[i] > 0.0 and mu[i] > 0.0 else 1
        for j in range(sides):
            columns[m, 0], columns[m, 1], columns[m, 2] = 1.0, 0.0, 0.0
            if mode[i] == SLIDING:
                edge(mu[i], angle[i] + j * span[i], columns[m])
            contact[m] = i
            facets[rows, 0] = 1.0
            facet_contact[rows, 0], facet_contact[rows, 1] = m, 1
            rows += 1
            m += 1
    return m, rows


@kernel
def _distribute_dense(T, torque_offset, Y, u, mode, angle, span, mu, edges, torque_weight, z):
    """Dual active-set method on the free components; cost cubic in their number."""
    n, na, nu = mode.shape[0], T.shape[1], Y.shape[1]
    columns = np.empty((3 * n, 3))
    contact = np.empty(3 * n, np.int64)
    facets = np.empty((n * max(edges, 2), 3))
    facet_contact = np.empty((n * max(edges, 2), 2), np.int64)
    m, rows = _free_components(mode, angle, span, mu, edges, columns, contact, facets, facet_contact)
    if m == 0:
        z[:] = 0.0
        return 0
    TB = np.empty((m, na))
    A = np.zeros((nu + rows, m))
    b = np.zeros(nu + rows)
    size = 0.0
    for a in range(m):
        i = 3 * contact[a]
        for k in range(na):
            value = (columns[a, 0] * T[i, k] + columns[a, 1] * T[i + 1, k]
                     + columns[a, 2] * T[i + 2, k]) * torque_weight
            TB[a, k] = value
            size += value * value
        for k in range(nu):
            A[k, a] = (columns[a, 0] * Y[i, k] + columns[a, 1] * Y[i + 1, k]
                       + columns[a, 2] * Y[i + 2, k])
    for k in range(nu):
        b[k] = -u[k]
    for row in range(rows):
        start = facet_contact[row, 0]
        for d in range(facet_contact[row, 1]):
            A[nu + row, start + d] = facets[row, d]
    L = np.empty((m, m))
    w = np.empty(m)
    tie = TIE_BREAK * size / m if size > 0.0 else 1.0
    for a in range(m):
        for c in range(a + 1):
            total = 0.0
            for k in range(na):
                total += TB[a, k] * TB[c, k]
            L[a, c] = total
        L[a, a] += tie
        total = 0.0
        for k in range(na):
            total -= TB[a, k] * torque_offset[k]
        w[a] = total * torque_weight
    if not cholesky(L, m, 0.0):
        return -1
    # In w = L^T (components) the objective is the distance from L^-1 times its linear term.
    forward_substitute(L, m, w)
    for row in range(nu + rows):
        forward_substitute(L, m, A[row])
    multipliers = np.empty(nu + rows)
    status, steps = nearest_point(A, b, nu, w, multipliers, np.empty(m + 1, np.int64),
                                  np.empty((m, m)), np.empty((m, m)), np.empty((4, m + 1)))
    if status != SOLVED:
        return -1
    backward_substitute(L, m, w)
    z[:] = 0.0
    for a in range(m):
        i = 3 * contact[a]
        for d in range(3):
            z[i + d] += columns[a, d] * w[a]
    return steps


@kernel
def _distribute_newton(T, torque_offset, Y, u, mode, angle, span, mu, edges, torque_weight, z):
    """Semismooth Newton method on the dual, x = (torque, wrench) multipliers over eps."""
    n, na, nu = mode.shape[0], T.shape[1], Y.shape[1]
    dim = na + nu
    W = np.empty((3 * n, dim))
    z_try = np.empty(3 * n)
    H = np.empty((dim, dim))
    x, x_try, gradient, step = np.zeros(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    target = np.empty(dim)
    weight = np.zeros(dim)
    pieces = np.empty(n, np.int64)
    basis = np.zeros((n, 3, 3))
    force, first, second = np.empty(3), np.empty(3), np.empty(3)
    column = np.empty(dim)
    # Scale both blocks to unit mean square so that eps and the tolerances mean something.
    size_t = 0.0
    size_y = 0.0
    for r in range(3 * n):
        for k in range(na):
            size_t += T[r, k] * T[r, k]
        for k in range(nu):
            size_y += Y[r, k] * Y[r, k]
    scale_t = 1.0 / np.sqrt(size_t / (3 * n)) if size_t > 0.0 else 0.0
    scale_y = 1.0 / np.sqrt(size_y / (3 * n)) if size_y > 0.0 else 0.0
    scale_t *= torque_weight
    for r in range(3 * n):
        for k in range(na):
            W[r, k] = T[r, k] * scale_t
        for k in range(nu):
            W[r, na + k] = Y[r, k] * scale_y
    norm = 0.0
    for k in range(na):
        target[k] = -torque_offset[k] * scale_t
        weight[k] = TIE_BREAK
    wanted = 0.0
    for k in range(nu):
        target[na + k] = u[k] * scale_y
        wanted = max(wanted, abs(target[na + k]))
    for k in range(dim):
        norm = max(norm, abs(target[k]))
    if norm == 0.0:
        z[:] = 0.0
        return 0
    # phi(x) = 1/2 x_t^T eps x_t + target^T x + 1/2 |P_K(-W x)|^2, gradient eps x_t + target - W^T z.
    # The first step assumes every force inside its cone.
    for i in range(n):
        if mode[i] == STICKING and mu[i] > 0.0:
            pieces[i] = _INSIDE
            for r in range(3):
                for d in range(3):
                    basis[i, r, d] = 1.0 if r == d else 0.0
        elif mode[i] == APART:
            pieces[i] = _ZERO
        else:
            force[0], force[1], force[2] = 1.0, 0.0, 0.0
            if mode[i] == SLIDING:
                edge(mu[i], angle[i] + 0.5 * span[i], force)
            pieces[i] = project_contact(mode[i], angle[i], span[i], mu[i], edges, force,
                                        z[3 * i:3 * i + 3], basis[i], first, second)
    z[:] = 0.0
    for k in range(dim):
        gradient[k] = target[k]
    value = 0.0
    for iteration in range(MAX_NEWTON_STEPS):
        H[:] = 0.0
        for i in range(n):
            for r in range(pieces[i]):
                for k in range(dim):
                    column[k] = (basis[i, r, 0] * W[3 * i, k] + basis[i, r, 1] * W[3 * i + 1, k]
                                 + basis[i, r, 2] * W[3 * i + 2, k])
                for a in range(dim):
                    factor = column[a]
                    for b in range(a + 1):
                        H[a, b] += factor * column[b]
        trace = 0.0
        for k in range(dim):
            H[k, k] += weight[k]
            trace += H[k, k]
        damping = DAMPING * trace
        descended = False
        for attempt in range(8):
            for k in range(dim):
                H[k, k] += damping
            factor_ok = True
            L = H.copy()
            factor_ok = cholesky(L, dim, 0.0)
            if factor_ok:
                slope = 0.0
                for k in range(dim):
                    step[k] = -gradient[k]
                forward_substitute(L, dim, step)
                backward_substitute(L, dim, step)
                for k in range(dim):
                    slope += gradient[k] * step[k]
                share = 1.0
                for halving in range(MAX_HALVINGS):
                    half = 0.0
                    for k in range(dim):
                        x_try[k] = x[k] + share * step[k]
                        half += x_try[k] * (target[k] + 0.5 * weight[k] * x_try[k])
                    trial = half + _evaluate(W, x_try, mode, angle, span, mu, edges, z_try, pieces,
                                             basis, force, first, second)
                    if trial <= value + 1e-4 * share * slope + 1e-15 * abs(value):
                        descended = True
                        break
                    share *= 0.5
            if descended:
                break
            for k in range(dim):
                H[k, k] -= damping
            damping = max(damping, 1e-12 * trace) * 100.0
        if not descended:
            return -iteration - 1
        value = trial
        error_y = 0.0
        error_t = 0.0
        for k in range(dim):
            x[k] = x_try[k]
            gradient[k] = target[k] + weight[k] * x[k]
        for r in range(3 * n):
            amount = z_try[r]
            z[r] = amount
            if amount != 0.0:
                for k in range(dim):
                    gradient[k] -= W[r, k] * amount
        for k in range(na):
            error_t = max(error_t, abs(gradient[k]))
        for k in range(na, dim):
            error_y = max(error_y, abs(gradient[k]))
        if error_y <= EQUALITY_TOLERANCE * norm and error_t <= 1e-6 * norm:
            return iteration + 1
    return -MAX_NEWTON_STEPS
