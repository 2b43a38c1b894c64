"""The path of Lemke's method on the factored friction problem, from no load at all to a solution."""

from __future__ import annotations

import math

from ._compile import bare_kernel as kernel
from ._friction_core import (CHANGE, CONSTANT, CONTACT, FRICTION, MOTION, MOTION_CHANGE, OFFSET, SHARE, SPREAD,
                             VALUE, factor_core, solve_core)
from ._tableau import PIVOT_TOLERANCE, TIE_TOLERANCE
from .status import INACCURATE, PIVOT_LIMIT, PIVOTS, RAY, SOLVED

GOLDEN = 0.618033988749895  # spreads perturbations and later covering vectors over [1, 2)
LOOSEST_TIE = 1e-8  # the tie tolerance grows tenfold with each restart, up to this
COVERING, NOTHING = -1, -2  # what blocks, when it is not an entry of the levels


@kernel
def follow_path(Y, c, mu, edges, scale_Y, scale_c, restart, slots, max_pivots, work, report):
    """Drive z_0 to zero; returns the status and the number of loaded contacts, whose values are final.

    With ``slots`` > 0 nothing is driven: the values at the warm basis in the slots are computed.
    Contacts without load take part by their normal velocity only.  When that blocks, the contact
    gets a slot and starts sliding against its velocity.
    """
    n, r = work.cover.shape[0], work.axes.shape[2]
    width, level, basic = work.basic.shape[1], work.level, work.basic
    u, du = work.vectors[MOTION, :r], work.vectors[MOTION_CHANGE, :r]
    z0, z0_spread, blocking = 0.0, 0.0, slots - slots + COVERING
    if slots == 0:
        z0, z0_spread, blocking = _raise_cover(c, scale_c, restart, work)
        for x in range(r):
            u[x] = 0.0
    s, j = blocking, blocking
    tie = min(TIE_TOLERANCE * 10.0 ** max(restart, 0), LOOSEST_TIE)
    limit = report[PIVOTS] + max_pivots
    careful = restart > 0
    while report[PIVOTS] < limit:
        entering_z = True
        if blocking == COVERING:
            s, j = blocking, blocking
        elif blocking < n:
            s, j = slots, slots - slots
            slots += 1
            place_contact(Y, c, mu, edges, scale_Y, scale_c, s, blocking, work)
            _start_sliding(work, edges, s, u)
        else:
            s, j = (blocking - n) // width, (blocking - n) % width
            entering_z = basic[s, j] == 0
            basic[s, j] = 0
        unloading = j == 0 and not entering_z and not careful
        if unloading:
            for e in range(1, width):
                basic[s, e] = 0
        covered = blocking != COVERING
        m = factor_core(work, edges, slots, s, j, covered)
        if m < 0:
            return INACCURATE, slots
        z0_change = 0.0
        for target in range(VALUE if careful or not covered else CHANGE, CHANGE + 1):
            motion = du if target == CHANGE else u
            if target == VALUE:
                _problem_terms(work, slots, motion)
            elif covered:
                _entering_terms(work, edges, slots, s, j, entering_z, motion)
            else:
                _residual_terms(work, edges, slots, motion)
            z0_change = solve_core(work, edges, slots, m, motion, target)
            if covered:
                _free_normals(c, scale_c, work, slots, z0_change, motion, target)
            if target == VALUE:
                z0 = z0_change
        if not covered:  # the last pass refined the values
            for b in range(n, n + slots * width):
                level[VALUE, b] += level[CHANGE, b]
            return SOLVED, slots
        first = n + s * width
        for b in range(first if unloading else first + j, first + (width if unloading else j + 1)):
            level[CHANGE, b] = 0.0
        blocking, theta, tilt = _first_blocking(work, slots, tie, z0, z0_spread, z0_change)
        if blocking == NOTHING:
            return RAY, slots
        report[PIVOTS] += 1.0
        for b in range(n + slots * width):
            level[VALUE, b] += theta * level[CHANGE, b]
            level[SPREAD, b] += tilt * level[CHANGE, b]
        for x in range(r):
            u[x] += theta * du[x]
        z0 += theta * z0_change
        z0_spread += tilt * z0_change
        entered = first + j
        if unloading:
            entered = work.slot[CONTACT, s]
            slots -= 1
            if s < slots:
                _copy_slot(work, slots, s)
                if blocking >= n + slots * width:
                    blocking -= (slots - s) * width
        else:
            basic[s, j] = 1 if entering_z else 0
        level[VALUE, entered], level[SPREAD, entered] = theta, tilt
    return PIVOT_LIMIT, slots


@kernel
def _problem_terms(work, slots, u):
    """Row constants of the problem itself, no source of u."""
    for s in range(slots):
        for j in range(work.basic.shape[1]):
            work.terms[CONSTANT, s, j] = work.terms[OFFSET, s, j]
    for x in range(u.shape[0]):
        u[x] = 0.0


@kernel
def _entering_terms(work, edges, slots, s, j, entering_z, du):
    """Row constants and source of u for one unit of the variable entering at (s, j)."""
    constant, last = work.terms[CONSTANT], work.basic.shape[1] - 1
    for t in range(slots):
        for e in range(last + 1):
            constant[t, e] = 0.0
    for x in range(du.shape[0]):
        du[x] = 0.0
    if not entering_z:
        constant[s, j] = -1.0
    elif j == last:
        for e in range(1, last):
            constant[s, e] = 1.0
    else:
        constant[s, last] = work.weights[FRICTION, s] if j == 0 else -1.0
        for x in range(du.shape[0]):
            du[x] = (work.weights[SHARE, s] * work.axes[s, 0, x] if j == 0 else
                     edges[j - 1, 0] * work.axes[s, 1, x] + edges[j - 1, 1] * work.axes[s, 2, x])


@kernel
def _residual_terms(work, edges, slots, u):
    """What the present values leave over in the rows of the slots: solved again, they refine the values."""
    axes, basic, constant, value = work.axes, work.basic, work.terms[CONSTANT], work.level[VALUE]
    n, r, last = work.cover.shape[0], u.shape[0], basic.shape[1] - 1
    for x in range(r):
        u[x] = 0.0
    for s in range(slots):
        first = n + s * (last + 1)
        normal = work.weights[SHARE, s] * value[first] if basic[s, 0] == 1 else 0.0
        along = across = 0.0
        for e in range(1, last):
            if basic[s, e] == 1:
                along += value[first + e] * edges[e - 1, 0]
                across += value[first + e] * edges[e - 1, 1]
        for x in range(r):
            u[x] += normal * axes[s, 0, x] + along * axes[s, 1, x] + across * axes[s, 2, x]
    for s in range(slots):
        first = n + s * (last + 1)
        normal = along = across = 0.0
        for x in range(r):
            normal += axes[s, 0, x] * u[x]
            along += axes[s, 1, x] * u[x]
            across += axes[s, 2, x] * u[x]
        constant[s, 0] = normal + work.terms[OFFSET, s, 0]
        slip = value[first + last] if basic[s, last] == 1 else 0.0
        balance = work.weights[FRICTION, s] * value[first] if basic[s, 0] == 1 else 0.0
        for e in range(1, last):
            constant[s, e] = (edges[e - 1, 0] * along + edges[e - 1, 1] * across + slip
                              + work.terms[OFFSET, s, e])
            if basic[s, e] == 1:
                balance -= value[first + e]
        constant[s, last] = balance
    for x in range(r):
        u[x] = 0.0


@kernel
def _raise_cover(c, scale_c, restart, work):
    """Nothing loaded, z_0 just large enough: its value, its perturbation, and the contact that fixes it."""
    level, cover = work.level, work.cover
    n = cover.shape[0]
    chosen = n - n + COVERING
    best = lean = 0.0
    for i in range(n):
        cover[i] = 1.0 + restart * GOLDEN * i % 1.0
        level[VALUE, i] = c[3 * i] * scale_c
        level[SPREAD, i] = 1.0 + GOLDEN * (i + 1) % 1.0
        if level[VALUE, i] < 0.0:
            ratio, tilt = -level[VALUE, i] / cover[i], -level[SPREAD, i] / cover[i]
            if ratio > best + TIE_TOLERANCE or chosen < 0 or (ratio >= best - TIE_TOLERANCE and tilt > lean):
                chosen, best, lean = i, ratio, tilt
    for i in range(n):
        level[VALUE, i] += best * cover[i]
        level[SPREAD, i] += lean * cover[i]
    return best, lean, chosen


@kernel
def place_contact(Y, c, mu, edges, scale_Y, scale_c, s, i, work):
    """Give contact i slot s: its scaled rows, constants and friction."""
    offset, last = work.terms[OFFSET], work.basic.shape[1] - 1
    work.slot[CONTACT, s] = i
    work.weights[FRICTION, s], work.weights[SHARE, s] = mu[i] / (1.0 + mu[i]), 1.0 / (1.0 + mu[i])
    for a in range(3):
        for x in range(work.axes.shape[2]):
            work.axes[s, a, x] = Y[3 * i + a, x] * scale_Y
    offset[s, 0] = c[3 * i] * scale_c
    for e in range(1, last):
        offset[s, e] = (edges[e - 1, 0] * c[3 * i + 1] + edges[e - 1, 1] * c[3 * i + 2]) * scale_c
    offset[s, last] = 0.0


@kernel
def _start_sliding(work, edges, s, u):
    """Slot s, still without load, slides along the edge most against its velocity at u."""
    axes, level, basic = work.axes, work.level, work.basic
    last = basic.shape[1] - 1
    first = work.cover.shape[0] + s * (last + 1)
    along = across = 0.0
    for x in range(u.shape[0]):
        along += axes[s, 1, x] * u[x]
        across += axes[s, 2, x] * u[x]
    against = 1
    for e in range(1, last):
        level[VALUE, first + e] = (edges[e - 1, 0] * along + edges[e - 1, 1] * across
                                   + work.terms[OFFSET, s, e])
        level[SPREAD, first + e] = 1.0 + GOLDEN * (first + e) % 1.0
        if level[VALUE, first + e] < level[VALUE, first + against]:
            against = e
    slip = -level[VALUE, first + against]
    for e in range(last):
        basic[s, e] = 0
        level[VALUE, first + e] += slip
    level[VALUE, first] = level[VALUE, first + against] = 0.0
    level[SPREAD, first] = level[SPREAD, first + against] = 0.0
    level[VALUE, first + last], level[SPREAD, first + last] = slip, 1.0 + GOLDEN * first % 1.0
    basic[s, against] = basic[s, last] = 1


@kernel
def _free_normals(c, scale_c, work, slots, z0, motion, target):
    """Values or changes of w_N without slot; no change for the slots' contacts."""
    out, n = work.level[target], work.cover.shape[0]
    for i in range(n):
        out[i] = work.cover[i] * z0
        if target == VALUE:
            out[i] += c[3 * i] * scale_c
    for x in range(motion.shape[0]):
        for i in range(n):
            out[i] += work.normals[x, i] * motion[x]
    if target == CHANGE:
        for s in range(slots):
            out[work.slot[CONTACT, s]] = 0.0


@kernel
def _first_blocking(work, slots, tie, z0, z0_spread, z0_change):
    """Which basic variable reaches zero first, and the steps of values and perturbations that take it there.

    Ties in the values go to z_0, then to the smallest perturbed ratio; a friction variable gives
    way to the normal force of its contact when that vanishes too.
    """
    level, n, width = work.level, work.cover.shape[0], work.basic.shape[1]
    end = n + slots * width
    best, largest = math.inf, 1.0
    for b in range(end):
        largest = max(largest, abs(level[CHANGE, b]))
    smallest = -PIVOT_TOLERANCE * largest
    for b in range(end):
        change = level[CHANGE, b]
        if change < smallest and max(level[VALUE, b], 0.0) < best * -change:
            best = max(level[VALUE, b], 0.0) / -change
    limit = best + tie * (1.0 + best)
    chosen = end - end + NOTHING
    if z0_change < smallest and z0 <= limit * -z0_change:
        return chosen - NOTHING + COVERING, z0 / -z0_change, z0_spread / -z0_change
    tilt = math.inf
    for b in range(end):
        change = level[CHANGE, b]
        if (change < smallest and max(level[VALUE, b], 0.0) <= limit * -change
                and level[SPREAD, b] < tilt * -change):
            chosen, tilt = b, level[SPREAD, b] / -change
    if chosen >= n:
        normal = chosen - (chosen - n) % width
        if (work.basic[(chosen - n) // width, 0] == 1 and level[CHANGE, normal] < smallest
                and max(level[VALUE, normal], 0.0) <= limit * -level[CHANGE, normal]):
            chosen = normal
    if chosen < 0:
        return chosen, 0.0, 0.0
    change = level[CHANGE, chosen]
    return chosen, max(level[VALUE, chosen], 0.0) / -change, level[SPREAD, chosen] / -change


@kernel
def _copy_slot(work, source, target):
    """Move a loaded contact from one slot to another."""
    width, n = work.basic.shape[1], work.cover.shape[0]
    work.slot[CONTACT, target] = work.slot[CONTACT, source]
    work.weights[FRICTION, target] = work.weights[FRICTION, source]
    work.weights[SHARE, target] = work.weights[SHARE, source]
    for j in range(width):
        work.basic[target, j] = work.basic[source, j]
        work.terms[OFFSET, target, j] = work.terms[OFFSET, source, j]
        work.level[VALUE, n + target * width + j] = work.level[VALUE, n + source * width + j]
        work.level[SPREAD, n + target * width + j] = work.level[SPREAD, n + source * width + j]
    for a in range(3):
        for x in range(work.axes.shape[2]):
            work.axes[target, a, x] = work.axes[source, a, x]
