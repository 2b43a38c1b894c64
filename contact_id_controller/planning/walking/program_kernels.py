"""The compiled part of `program`: costs and constraints of one step program, and its cheapest time of landing.

    min sum_t w_t |row_t . z - goal_t|^2        A z + b >= 0, the first ``equalities`` rows = 0

z (12,), m, world: p0 centre of pressure until the next landing, u1, u2, u3 footholds of the next steps, d1, d2 the
centre of pressure from u1, u2, each (x, y). xi = c + c'/w is the capture point of the centre of mass c.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import cholesky, forward_substitute
from contact_id_controller.kernels.nearest_point import SOLVED, nearest_point
from contact_id_controller.planning.walking.step_rules import Rules, Situation, Weights

UNKNOWNS = 6  # per axis: p0, u1, d1, u2, d2, u3
P0, U1, D1, U2, D2, U3 = range(UNKNOWNS)
END = 7  # the cost of xi at the end, which depends on the time of landing
EDGES = 8  # of the polygon inside the circle that a leg reaches
INSTANT_S = 1e-6  # a shift of weight that is shorter takes no time
POINT_M = 1e-4  # half size of a foot that is a point, for the centre of pressure
PEAK = 5.8  # largest acceleration of a quintic from rest to rest, times duration^2 over way
LATEST_SHARE = 0.4  # of the time left in which a foot moves at least, however long it settles
SINGULAR = 1e-14  # share of a pivot below which the program has no unique solution


@kernel
def shift_of_weight(rate, duration_s):
    """E and G of a phase in which p goes linearly from a to b: xi' = E xi - (E - 1 - G) a - G b."""
    if duration_s < INSTANT_S:
        return 1.0, 0.0
    grown = math.exp(rate * duration_s)
    return grown, (grown - 1.0) / (rate * duration_s) - 1.0


@kernel
def chain(rules, first_s, both, row):
    """Write the row (6,) of xi where the fourth stance begins; returns its factor of xi now.

    First p0 for ``first_s``; unless ``both`` stand and u1 already carries, weight then shifts to u1 + d1.
    """
    grown, part = shift_of_weight(rules.rate, rules.double_s)
    swing, first = math.exp(rules.rate * rules.swing_s), math.exp(rules.rate * first_s)
    for k in range(UNKNOWNS):
        row[k] = 0.0
    row[P0], factor = 1.0 - first, first
    if not both:
        row[P0], factor = grown * row[P0] - (grown - 1.0 - part), grown * factor
        row[U1] -= part
        row[D1] -= part
    for here, there in ((U1, U2), (U2, U3)):
        for k in range(UNKNOWNS):
            row[k] *= swing
        row[here] += 1.0 - swing
        row[here + 1] += 1.0 - swing
        for k in range(UNKNOWNS):
            row[k] *= grown
        row[here] -= grown - 1.0 - part
        row[here + 1] -= grown - 1.0 - part
        row[there] -= part
        if there == U2:
            row[there + 1] -= part
        factor *= swing * grown
    return factor


@kernel
def periodic_offset(rules, alternation, drift, angle, out):
    """Write xi - u (2,) where a group begins to carry alone; the next step is alternation + drift, (2,) each.

    Each later step is turned by ``angle``, rad: as complex numbers xi - u = (1 + G) (alternation / (E S + e^{i angle})
    + drift / (E S - e^{i angle})), S that of the swing.
    """
    grown, part = shift_of_weight(rules.rate, rules.double_s)
    grown *= math.exp(rules.rate * rules.swing_s)
    turn = complex(math.cos(angle), math.sin(angle))
    offset = complex(alternation[0], alternation[1]) / (grown + turn)
    offset += complex(drift[0], drift[1]) / (grown - turn)
    out[0], out[1] = (1.0 + part) * offset.real, (1.0 + part) * offset.imag


@kernel
def _turned(heading, x, y, sign, out):
    """Write sign (x, y), given in the heading frame, into ``out`` (2,) in the world."""
    c, s = math.cos(heading), math.sin(heading)
    out[0], out[1] = sign * (c * x - s * y), sign * (s * x + c * y)


@kernel
def aside(offset):
    """Unit vector (x, y) from group 1 to group 0 by their offset (2,): to the left where their middles are one.

    Along it no leg crosses the other; across it, along (y, -x), they reach as far as they do.
    """
    size = math.sqrt(offset[0] ** 2 + offset[1] ** 2)
    if size > 0.0:
        return offset[0] / size, offset[1] / size
    return 0.0, 1.0


@kernel
def _headings(rules, now, out):
    """Write the headings (4,) when u1 to u3 and the one after them land, rad."""
    cycle_s = rules.swing_s + rules.double_s
    first_s = now.left_s - rules.double_s if now.both else now.left_s
    for k in range(4):
        out[k] = now.heading + now.turn * (first_s + k * cycle_s)


@kernel
def _costs(rules, weights, now, headings, terms, nominal):
    """Write weight, row (6,) over p0, u1, d1, u2, d2, u3 and goal (2,) of each cost into ``terms`` (8, 9), m.

    A cost is weight |row . unknowns - goal|^2 in both axes of the ground:

        0, 1  shift of the centre of pressure in the soles: d1 = 0, d2 = 0
        2     centre of pressure p0 in the middle of what stands
        3     foothold u1 one nominal step from who carries; with both standing where that group stands
        4, 5  steps u2 - u1 and u3 - u2 nominal: offset of the groups, turned, and velocity times the cycle
        6     u1 as it was planned last, if it was
        7     left for the end (``END``), whose xi - u3 (2,) goes into ``nominal``, see ``periodic_offset``

    headings (4,): rad, when u1 to u3 and the one after them land.
    """
    terms[:] = 0.0
    steps, drifts, other = np.empty((4, 2)), np.empty((4, 2)), 1 - now.carry
    cycle_s = rules.swing_s + rules.double_s
    sign = 1.0 if now.carry == 1 else -1.0  # from who carries
    for k in range(4):
        _turned(headings[k], rules.offset[0], rules.offset[1], sign, steps[k])
        angle = headings[k] - now.heading
        _turned(angle, now.velocity[0] * cycle_s, now.velocity[1] * cycle_s, 1.0, drifts[k])
        if k > 0 or not now.both:  # with both standing the one at u1 carries first
            sign = -sign
    terms[0, 0], terms[0, 1 + D1] = weights.shift, 1.0
    terms[1, 0], terms[1, 1 + D2] = weights.shift, 1.0
    terms[2, 0], terms[2, 1 + P0] = weights.pressure, 1.0
    terms[3, 0], terms[3, 1 + U1] = weights.step, 1.0
    terms[4, 0], terms[4, 1 + U2], terms[4, 1 + U1] = weights.later, 1.0, -1.0
    terms[5, 0], terms[5, 1 + U3], terms[5, 1 + U2] = weights.later, 1.0, -1.0
    for d in range(2):
        here = now.feet[now.carry, d]
        terms[2, 7 + d] = 0.5 * (here + now.feet[other, d]) if now.both else here
        terms[3, 7 + d] = here if now.both else here + steps[0, d] + drifts[0, d]
        terms[4, 7 + d] = steps[1, d] + drifts[1, d]
        terms[5, 7 + d] = steps[2, d] + drifts[2, d]
    if not (now.both or math.isnan(now.previous[0])):
        terms[6, 0], terms[6, 1 + U1] = weights.keep, 1.0
        terms[6, 7:] = now.previous
    periodic_offset(rules, steps[3], drifts[3], now.turn * cycle_s, nominal)


@kernel
def _between(A, b, n, index, minus, turn, centre, low, high):
    """Write low <= turn^T (z_index - z_minus - centre) <= high into A (rows, 12), b (rows,) from row n on.

    turn (2, 2): its columns are the box's axes; low, high, centre (2,), m; minus -1: nothing is subtracted. Returns the
    number of rows so far.
    """
    for axis in range(2):
        at = turn[0, axis] * centre[0] + turn[1, axis] * centre[1]
        for d in range(2):
            A[n, 2 * index + d] = turn[d, axis]
            A[n + 1, 2 * index + d] = -turn[d, axis]
            if minus >= 0:
                A[n, 2 * minus + d] = -turn[d, axis]
                A[n + 1, 2 * minus + d] = turn[d, axis]
        b[n], b[n + 1] = -low[axis] - at, high[axis] + at
        n += 2
    return n


@kernel
def _polygon(A, b, n, index, normals, bounds):
    """Write normals (m, 2) z_index <= bounds (m,) into A, b from row n on; returns the number of rows so far."""
    for k in range(bounds.shape[0]):
        A[n, 2 * index] = -normals[k, 0]
        A[n, 2 * index + 1] = -normals[k, 1]
        b[n] = bounds[k]
        n += 1
    return n


@kernel
def _constraints(rules, now, headings, A, b):
    """Write the rows A z + b >= 0 that no time of landing changes; returns (equalities, rows).

    With both groups standing u1 = the feet of the one that carries first (equality); p0 inside the hull of what stands;
    d1, d2 inside the soles; steps within the rules' reach and width, in axes of their headings; the next foothold
    inside the walkable area. headings (4,): see ``_headings``; A (rows, 12), b (rows,): out.
    """
    n, here, nowhere = 0, now.feet[now.carry], np.zeros(2)
    turn, low, high = np.empty((2, 2)), np.empty(2), np.empty(2)
    if now.both:
        for d in range(2):
            A[d, 2 * U1 + d], b[d] = 1.0, -here[d]
        n = 2
    equalities = n
    n = _polygon(A, b, n, P0, now.hull_normals, now.hull_bounds)
    turn[0, 0] = turn[1, 1] = math.cos(now.heading)
    turn[1, 0], turn[0, 1] = math.sin(now.heading), -math.sin(now.heading)
    for d in range(2):
        high[d] = max(rules.sole[d], POINT_M)
        low[d] = -high[d]
    for index in (D1, D2):
        n = _between(A, b, n, index, -1, turn, nowhere, low, high)
    x, y = aside(rules.offset)
    lands = now.carry if now.both else 1 - now.carry  # the group that stands or lands at u1
    for k, index, minus in ((0, U1, -1), (1, U2, U1), (2, U3, U2)):
        _turned(headings[k], y, -x, 1.0, turn[:, 0])
        _turned(headings[k], x, y, 1.0, turn[:, 1])
        low[0], high[0] = -rules.reach[1], rules.reach[0]
        if lands == 0:
            low[1], high[1] = rules.width[0], rules.width[1]
        else:
            low[1], high[1] = -rules.width[1], -rules.width[0]
        if index != U1:
            n = _between(A, b, n, index, minus, turn, nowhere, low, high)
        elif not now.both:
            n = _between(A, b, n, index, minus, turn, here, low, high)
        lands = 1 - lands
    n = _polygon(A, b, n, U2 if now.both else U1, now.area_normals, now.area_bounds)
    return equalities, n


@kernel
def _leg_rows(rules, now, first_s, A, b, n):
    """Rows that keep both feet within the legs' reach of the centre of mass when the next one lands.

    c(T) = p0 + cosh(w T) (c - p0) + sinh(w T) c'/w; where both stand, T and then a swing about u1 + d1. The circle of
    radius leg_m about each hip is a polygon of EDGES edges. first_s: T, s; A, b, n: see ``_between``.
    """
    w = rules.rate
    ch, sh = math.cosh(w * first_s), math.sinh(w * first_s)
    far_ch, far_sh = 1.0, 0.0
    if now.both:
        far_ch, far_sh = math.cosh(w * rules.swing_s), math.sinh(w * rules.swing_s)
    by_place, by_speed = far_ch * ch + far_sh * sh, far_ch * sh + far_sh * ch
    by_pressure, by_foot = far_ch * (1.0 - ch) - far_sh * sh, 1.0 - far_ch
    index = U2 if now.both else U1
    hip, radius = np.empty((2, 2)), rules.leg_m * math.cos(math.pi / EDGES)
    for group in range(2):
        _turned(now.heading, rules.hips[group, 0], rules.hips[group, 1], 1.0, hip[group])
    for k in range(EDGES):
        angle = 2.0 * math.pi * k / EDGES
        normal = (math.cos(angle), math.sin(angle))
        b[n], b[n + 1] = radius, radius
        for d in range(2):
            com = by_place * now.com[d] + by_speed * now.speed[d] / w
            A[n, 2 * index + d] -= normal[d]
            for row, group in ((n, 1 - now.carry), (n + 1, now.carry)):
                A[row, 2 * P0 + d] += normal[d] * by_pressure
                A[row, 2 * U1 + d] += normal[d] * by_foot
                A[row, 2 * D1 + d] += normal[d] * by_foot
                b[row] += normal[d] * (com + hip[group, d])
            b[n + 1] -= normal[d] * now.feet[now.carry, d]
        n += 2
    return n


@kernel
def _swing_rows(rules, now, first_s, A, b, n):
    """Rows that keep u1 where the foot in the air gets to, and stops, by its landing; the number of rows so far.

        |u1 - x - v T / 2| <= min(foot_speed T, (a T^2 - v^2 / a) / PEAK) + slack        each axis of the heading

    x, v: its place and speed; T: time of its motion, s; a: foot_acceleration. The place to which it is on its way stays
    in reach in the time it has, as it may brake already. first_s: time to the landing, s; A, b, n: see ``_between``.
    """
    if now.both or math.isnan(now.aloft[0, 0]):
        return n
    moves_s, most = max(first_s - rules.settle_s, LATEST_SHARE * first_s), rules.foot_acceleration
    turn, low, high, at = np.empty((2, 2)), np.empty(2), np.empty(2), np.empty(2)
    turn[0, 0] = turn[1, 1] = math.cos(now.heading)
    turn[1, 0], turn[0, 1] = math.sin(now.heading), -math.sin(now.heading)
    on_its_way = first_s > now.left_s - INSTANT_S and not math.isnan(now.previous[0])
    for d in range(2):
        at[d] = now.aloft[0, d] + 0.5 * moves_s * now.aloft[1, d]
    for d in range(2):
        speed = turn[0, d] * now.aloft[1, 0] + turn[1, d] * now.aloft[1, 1]
        by_peak = max(most * moves_s * moves_s - speed * speed / most, 0.0) / PEAK
        high[d] = min(rules.foot_speed * moves_s, by_peak)
        low[d] = -high[d]
        if on_its_way:
            ahead = turn[0, d] * (now.previous[0] - at[0]) + turn[1, d] * (now.previous[1] - at[1])
            low[d], high[d] = min(low[d], ahead), max(high[d], ahead)
        low[d], high[d] = low[d] - rules.slack_m, high[d] + rules.slack_m
    return _between(A, b, n, U1, -1, turn, at, low, high)


@kernel
def _in_root(terms, root, inverse, target):
    """Factor the costs' Hessian sum w row row^T = L L^T, the same for both axes; False if it is singular.

    terms (8, 9): see ``_costs``; out: root L (6, 6), inverse: L^-T by rows, target (2, 6): L^-1 sum w row goal of x, y.
    """
    root[:] = 0.0
    target[:] = 0.0
    for t in range(terms.shape[0]):
        weight = terms[t, 0]
        if weight == 0.0:
            continue
        for i in range(UNKNOWNS):
            scaled = weight * terms[t, 1 + i]
            if scaled == 0.0:
                continue
            for d in range(2):
                target[d, i] += scaled * terms[t, 7 + d]
            for j in range(i + 1):
                root[i, j] += scaled * terms[t, 1 + j]
    if not cholesky(root, UNKNOWNS, SINGULAR):
        return False
    for d in range(2):
        forward_substitute(root, UNKNOWNS, target[d])
    inverse[:] = 0.0
    for j in range(UNKNOWNS):  # inverse[j]: column j of L^-1, which is a row of L^-T
        inverse[j, j] = 1.0
        forward_substitute(root, UNKNOWNS, inverse[j])
    return True


@kernel
def _cost_of(terms, z):
    """Sum of the weighted squares at z (12,)."""
    total = 0.0
    for t in range(terms.shape[0]):
        if terms[t, 0] == 0.0:
            continue
        for d in range(2):
            miss = -terms[t, 7 + d]
            for k in range(UNKNOWNS):
                miss += terms[t, 1 + k] * z[2 * k + d]
            total += terms[t, 0] * miss * miss
    return total


@kernel
def solve_one(terms, A, b, rows, equalities, preferred, z):
    """Solve the program of one time of landing for z (12,); returns (whether it is feasible, cost).

    In y = L^T z, L of ``_in_root``, the cost is |y - target|^2: y is the nearest point with A L^-T y + b >= 0.

    Args:
        terms: (8, 9) see ``_costs``.
        A, b: (>= rows, 12), (>= rows,); the first ``equalities`` rows are equations.
        preferred: (>= rows,) bool, rows that are tried first, see `nearest_point`; out: those that are active.
    """
    root, inverse = np.empty((UNKNOWNS, UNKNOWNS)), np.empty((UNKNOWNS, UNKNOWNS))
    target, dim = np.empty((2, UNKNOWNS)), 2 * UNKNOWNS
    if not _in_root(terms, root, inverse, target):
        return False, np.inf
    turned, y = np.zeros((rows, dim)), np.empty(dim)
    for i in range(UNKNOWNS):
        for d in range(2):
            y[2 * i + d] = target[d, i]
    for r in range(rows):
        for i in range(UNKNOWNS):
            for d in range(2):
                value = A[r, 2 * i + d]
                if value != 0.0:
                    for j in range(i, UNKNOWNS):
                        turned[r, 2 * j + d] += value * inverse[i, j]
    multipliers = np.empty(rows)
    status, _ = nearest_point(
        turned,
        b[:rows],
        equalities,
        preferred[:rows],
        y,
        multipliers,
        np.zeros(dim + 1, dtype=np.int64),
        np.zeros((dim, dim)),
        np.zeros((dim, dim)),
        np.zeros((3, dim + 1)),
    )
    if status != SOLVED:
        return False, np.inf
    for i in range(UNKNOWNS):
        for d in range(2):
            total = 0.0
            for j in range(i, UNKNOWNS):
                total += inverse[i, j] * y[2 * j + d]
            z[2 * i + d] = total
    for r in range(rows):
        preferred[r] = r >= equalities and multipliers[r] > 0.0
    return True, _cost_of(terms, z)


@kernel
def best_landing(rules, weights, situation, times, leg_rows, z):
    """Solve the program for each time of landing; z (12,), out, is that of the cheapest.

    Args:
        rules, weights, situation: the values of ``Rules``, ``Weights``, ``Situation``, in their order.
        times: (k,) s from now.
        leg_rows: whether the legs' reach counts.

    Returns (index of the cheapest time, -1: none is feasible; its cost, with those of the time itself).
    """
    rules, weights, now = Rules(*rules), Weights(*weights), Situation(*situation)
    terms, nominal = np.empty((END + 1, 9)), np.empty(2)
    headings = np.empty(4)
    _headings(rules, now, headings)
    _costs(rules, weights, now, headings, terms, nominal)
    room = 2 + 20 + 4 + 2 * EDGES + now.hull_bounds.shape[0] + now.area_bounds.shape[0]
    A, b = np.zeros((room, 2 * UNKNOWNS)), np.zeros(room)
    equalities, fixed = _constraints(rules, now, headings, A, b)
    preferred, trial = np.zeros(room, dtype=np.bool_), np.empty(2 * UNKNOWNS)
    best, least, row = -1, np.inf, np.empty(UNKNOWNS)
    for k in range(times.shape[0]):
        first_s = times[k]
        factor = chain(rules, first_s, now.both, row)
        row[U3] -= 1.0
        terms[END, 0] = weights.end
        for i in range(UNKNOWNS):
            terms[END, 1 + i] = row[i]
        for d in range(2):
            xi = now.com[d] + now.speed[d] / rules.rate
            terms[END, 7 + d] = nominal[d] - factor * xi
        A[fixed:] = 0.0
        n = _swing_rows(rules, now, first_s, A, b, fixed)
        if leg_rows:
            n = _leg_rows(rules, now, first_s, A, b, n)
        solved, cost = solve_one(terms, A, b, n, equalities, preferred, trial)
        if not solved:
            continue
        cost += weights.time * (first_s - now.nominal_s) ** 2
        cost += weights.stay * (first_s - now.left_s) ** 2
        if cost < least:
            best, least = k, cost
            assign(z, trial)
    return best, least
