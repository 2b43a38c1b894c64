"""Linear algebra of the factored friction problem: the loaded contacts and the core they share.

A loaded contact has k + 2 complementary pairs j: 0 normal, 1..k friction edges, k + 1 slip speed
lambda.  With u = sum Y f (r,) loaded contacts decouple:

    w_N = y_N u + d z_0 + g_N,    w_e = y_e u + lambda + g_e,    w_l = mu f_N - sum f_e + g_l

with the row y_j of Y along the normal or an edge, the covering velocity d and the constant g of
each pair, and z_0 that Lemke's method drives to zero.  So lambda and one edge force of each sliding
contact are eliminated locally, and a dense core of about r unknowns remains: its columns are the
other basic forces and z_0, its rows the other equations w_j = 0.
The unknown of the normal is (1 + mu) f_N, so that a sliding contact's column has the size of a row
of Y for any mu.  A contact without load needs no pairs: its friction force is zero, its lambda
follows from its velocity.  Loaded contacts are numbered by slots.

n contacts, k edges, p = k + 2 pairs, ``slots`` loaded contacts, Y of rank r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.kernels.compile import kernel as allocating_kernel
from contact_id_controller.kernels.dense import SINGULAR, lu_factor, lu_solve

EXTRA = 4  # capacity of the core beyond the rank r: z_0, the pair being exchanged, and spares

OFFSET, CONSTANT = 0, 1  # of Work.terms
ROWS, COLUMNS, CORE = 0, 1, 2  # of Work.blocks
FRICTION, SHARE = 0, 1  # of Work.weights
SOLUTION, MOTION, MOTION_CHANGE = 0, 1, 2  # of Work.vectors
CONTACT, HELD, SLIPPING = 0, 1, 2  # of Work.slot
ORDER, UNKNOWN_SLOT, UNKNOWN, ROW_SLOT, ROW = 0, 1, 2, 3, 4  # of Work.order


class FrictionProblem(NamedTuple):
    """The problem of ``lemke_friction`` and the scales in which it is solved."""

    Y: np.ndarray
    c: np.ndarray
    mu: np.ndarray
    edges: np.ndarray
    scale_Y: float
    scale_c: float


class FrictionAnswer(NamedTuple):
    """Arrays for the result in the caller's units, as in ``FrictionResult``."""

    basis: np.ndarray
    z: np.ndarray
    w: np.ndarray
    impulses: np.ndarray


class Work(NamedTuple):
    """Views into the caller's workspace; n contacts, p = k + 2 pairs, cores up to m = r + EXTRA."""

    normals: np.ndarray  # (r, n) scaled normal rows of the factor, transposed
    cover: np.ndarray  # (3, n) covering velocities: of w_N, along the two tangents
    level: np.ndarray  # (3, n + n p) w_N of contacts without slot, then the slots' basic variables:
    #                    value, change per unit of the entering variable, spread (``_ratio_test``)
    axes: np.ndarray  # (n, 3, r) scaled factor rows of the slots: normal, tangents
    terms: np.ndarray  # (2, n, p) constants of the slots' rows: the problem's, the present solve's
    blocks: np.ndarray  # (3, m, m) what multiplies u in a row, what an unknown adds to u, the core
    weights: np.ndarray  # (2, n) mu / (1 + mu) and 1 / (1 + mu) of the slots
    vectors: np.ndarray  # (3, m) solution, u, change of u
    basic: np.ndarray  # (n, p) 1 where z is basic
    slot: np.ndarray  # (3, n) contact, edge whose force is given by w_l = 0, edge whose row w_e = 0
    #                   gives lambda (-1: none)
    order: np.ndarray  # (5, m) order of the factors, slot and pair of each unknown (slot -1: z_0)
    #                    and of each row


@allocating_kernel
def friction_workspace(n, r, k):
    """Allocate buffers for n contacts, rank r, k edges: one of float64, one of int64."""
    m, p = r + EXTRA, k + 2
    reals = (4 * r + 8 + 5 * p) * n + m * (3 * m + 3)
    return np.empty(reals), np.empty(n * (p + 3) + 5 * m, np.int64)


@kernel
def split(real, integer, n, r, k):
    """The named views of ``friction_workspace``."""
    m, p = r + EXTRA, k + 2
    a = r * n
    b = a + 3 * n
    c = b + 3 * n * (1 + p)
    d = c + 3 * n * r
    e = d + 2 * n * p
    f = e + 3 * m * m
    g = f + 2 * n
    h = n * p
    i = h + 3 * n
    return Work(
        real[:a].reshape(r, n),
        real[a:b].reshape(3, n),
        real[b:c].reshape(3, n * (1 + p)),
        real[c:d].reshape(n, 3, r),
        real[d:e].reshape(2, n, p),
        real[e:f].reshape(3, m, m),
        real[f:g].reshape(2, n),
        real[g : g + 3 * m].reshape(3, m),
        integer[:h].reshape(n, p),
        integer[h:i].reshape(3, n),
        integer[i : i + 5 * m].reshape(5, m),
    )


@kernel
def factor_core(work, edges, slots, open_slot, open_pair, covered):
    """Build and factor the core of ``slots`` loaded contacts; returns its order m, or -1 if singular.

        core (m, m)[b, a] = rows[b] . columns[a]

    rows (m, r): y_j of each equation w_j = 0, less the edge row that gives lambda where lambda is basic.
    columns (m, r): what a unit of each unknown adds to u, with the edge force that w_l = 0 gives with it.
    w_l has no row in u: its entry is mu / (1 + mu). The last column, of z_0, has the covering velocities.

    Args:
        edges: (k, 2) unit vectors in the tangent plane.
        open_slot, open_pair: of the entering variable: its z and its w are both non-basic, so its w = 0 is a row too;
            open_slot -1: none enters.
        covered: whether z_0 is basic, as it is until the path ends.
    """
    axes, basic, index, blocks = work.axes, work.basic, work.order, work.blocks
    mu, share, slot = work.weights[FRICTION], work.weights[SHARE], work.slot
    capacity, last, r = blocks.shape[1], basic.shape[1] - 1, axes.shape[2]
    a, b = np.int64(0), np.int64(0)
    for s in range(slots):
        _choose_eliminated(basic, slot, s, open_slot, open_pair)
        held, slipping = slot[HELD, s], slot[SLIPPING, s]
        if basic[s, last] == 1 and slipping < 0:
            return -1  # no row determines its lambda
        for j in range(last + 1):
            row = basic[s, j] == 1 or (open_slot == s and open_pair == j)
            if a == capacity or b == capacity:
                return -1
            if j < last and basic[s, j] == 1 and j != held:
                weight = 0.0 if held < 0 else (mu[s] if j == 0 else -1.0)
                _combine(axes, edges, s, j, share[s], held, weight, blocks[COLUMNS, a])
                index[UNKNOWN_SLOT, a], index[UNKNOWN, a] = s, j
                a += 1
            if row and (j != slipping if j < last else held < 0):
                weight = -1.0 if 0 < j < last else 0.0
                _combine(axes, edges, s, j, 1.0, slipping, weight, blocks[ROWS, b])
                index[ROW_SLOT, b], index[ROW, b] = s, j
                b += 1
    if covered:
        if a == capacity:
            return -1
        for x in range(r):
            blocks[COLUMNS, a, x] = 0.0
        index[UNKNOWN_SLOT, a] = -1
    size = a + 1 if covered else a
    if size != b:
        return -1
    for b in range(size):
        s, j = index[ROW_SLOT, b], index[ROW, b]
        for c in range(a):
            value = 0.0
            if j < last:
                for x in range(r):
                    value += blocks[ROWS, b, x] * blocks[COLUMNS, c, x]
            elif index[UNKNOWN_SLOT, c] == s:  # w_l of a contact without edge forces
                value = mu[s]
            blocks[CORE, b, c] = value
        if covered:
            blocks[CORE, b, a] = _covering(work, edges, s, j)
            if 0 < j < last and slot[SLIPPING, s] > 0:
                blocks[CORE, b, a] -= _covering(work, edges, s, slot[SLIPPING, s])
    return size if lu_factor(blocks[CORE], size, SINGULAR, index[ORDER]) else -1


@kernel
def _choose_eliminated(basic, slot, s, open_slot, open_pair):
    """Choose what slot s eliminates locally, into ``slot``: HELD and SLIPPING, an edge each or -1 for none.

    HELD: the edge whose force follows from w_l = 0, mu f_N = sum f_e, if that equation holds. SLIPPING: the edge whose
    row w_e = 0 gives lambda = -(y_e u + d_e z_0 + g_e), if lambda is basic. Both are the first edge with a force,
    or the entering one. basic (n, p): 1 where z is basic; open_slot, open_pair: see ``factor_core``.
    """
    last = basic.shape[1] - 1
    slips = basic[s, last] == 1
    first = -1
    for e in range(last - 1, 0, -1):
        if basic[s, e] == 1:
            first = e
    slot[HELD, s] = first if slips or (open_slot == s and open_pair == last) else -1
    if first < 0 and open_slot == s and 0 < open_pair < last:
        first = open_pair
    slot[SLIPPING, s] = first if slips else -1


@kernel
def _combine(axes, edges, s, j, share, other, weight, out):
    """out (r,) = y_j + weight y_other: rows of Y of slot s along the normal (j = 0, times ``share``) or an edge.

    Pair ``last`` has no row: zero for it. other: an edge, or -1 for none.
    """
    last = edges.shape[0] + 1
    normal = share if j == 0 else 0.0
    along = across = 0.0
    if 0 < j < last:
        along, across = edges[j - 1, 0], edges[j - 1, 1]
    if other > 0:
        along += weight * edges[other - 1, 0]
        across += weight * edges[other - 1, 1]
    for x in range(axes.shape[2]):
        out[x] = normal * axes[s, 0, x] + along * axes[s, 1, x] + across * axes[s, 2, x]


@kernel
def _covering(work, edges, s, j):
    """Coefficient d_j of z_0 in the row of pair j of slot s: d_N, edge . d_T, and 0 in w_l."""
    i = work.slot[CONTACT, s]
    if j == 0:
        return work.cover[0, i]
    if j > edges.shape[0]:
        return 0.0
    return edges[j - 1, 0] * work.cover[1, i] + edges[j - 1, 1] * work.cover[2, i]


@kernel
def solve_core(work, edges, slots, m, source, target):
    """Solve  core x = -(rows . source + constant)  by the factors of ``factor_core``; returns z_0.

    The basic variables, z or w, of all slots go into work.level[target]; ``source`` (r,) in, u = source + sum Y f out.
    With constants g and source 0 these are values; with a unit of the entering variable, changes (``_entering_terms``).
    m: order of the core. constant: work.terms[CONSTANT] (n, p), of which the edge rows lose that of the row of lambda.
    """
    axes, index, blocks, slot = work.axes, work.order, work.blocks, work.slot
    constant, solution = work.terms[CONSTANT], work.vectors[SOLUTION]
    out = work.level[target]
    r, last, n = axes.shape[2], work.basic.shape[1] - 1, work.cover.shape[1]
    for s in range(slots):
        held, extra = slot[HELD, s], constant[s, last]
        if held > 0 and extra != 0.0:
            along, across = extra * edges[held - 1, 0], extra * edges[held - 1, 1]
            for x in range(r):
                source[x] += along * axes[s, 1, x] + across * axes[s, 2, x]
    for b in range(m):
        s, j = index[ROW_SLOT, b], index[ROW, b]
        value = constant[s, j]
        if 0 < j < last and slot[SLIPPING, s] > 0:
            value -= constant[s, slot[SLIPPING, s]]
        for x in range(r):
            value += blocks[ROWS, b, x] * source[x]
        solution[b] = -value
    lu_solve(blocks[CORE], m, index[ORDER], solution)
    z0 = 0.0
    for a in range(m):
        for x in range(r):
            source[x] += blocks[COLUMNS, a, x] * solution[a]
        if index[UNKNOWN_SLOT, a] < 0:
            z0 = solution[a]
        else:
            out[n + index[UNKNOWN_SLOT, a] * (last + 1) + index[UNKNOWN, a]] = solution[a]
    for s in range(slots):
        _local_values(work, edges, s, source, z0, out)
    return z0


@kernel
def _local_values(work, edges, s, u, z0, out):
    """Compute the basic variables of slot s that are not in the core, from u (r,) and z_0, into ``out``.

        w_N = y_N u + d_N z_0 + g_N,  lambda and w_e = y_e u + d_e z_0 + lambda + g_e,  f_held or w_l = mu f_N - sum f_e

    out (n + n p,): a row of work.level; the slot's entries begin at n + s p.
    """
    axes, basic, constant = work.axes, work.basic, work.terms[CONSTANT]
    last = basic.shape[1] - 1
    first = work.cover.shape[1] + s * (last + 1)
    held, slipping = work.slot[HELD, s], work.slot[SLIPPING, s]
    contact = work.slot[CONTACT, s]
    normal = constant[s, 0] + work.cover[0, contact] * z0
    along, across = work.cover[1, contact] * z0, work.cover[2, contact] * z0
    for x in range(u.shape[0]):
        normal += axes[s, 0, x] * u[x]
        along += axes[s, 1, x] * u[x]
        across += axes[s, 2, x] * u[x]
    balance = constant[s, last]  # becomes w_l
    if basic[s, 0] == 1:
        balance += work.weights[FRICTION, s] * out[first]
    else:
        out[first] = normal
    slip = 0.0
    if slipping > 0:
        slip = -(
            edges[slipping - 1, 0] * along + edges[slipping - 1, 1] * across + constant[s, slipping]
        )
    for e in range(1, last):
        if basic[s, e] == 0:
            out[first + e] = (
                edges[e - 1, 0] * along + edges[e - 1, 1] * across + slip + constant[s, e]
            )
        elif e != held:
            balance -= out[first + e]
    if held > 0:
        out[first + held] = balance
        balance = 0.0
    out[first + last] = slip if basic[s, last] == 1 else balance
