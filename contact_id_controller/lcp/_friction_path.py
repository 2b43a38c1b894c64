"""Path of Lemke's method on the factored friction problem, from no load to a solution.

Contacts without load take part by their normal velocity only.  When that blocks, the contact gets
a slot and starts sliding against its velocity; when its normal force vanishes the slot is
released.  A path is hence as long as the number of contacts that carry load, not the number of
contacts.  Releasing slots can in rare, degenerate cases close a loop: then the next attempt
keeps them, which is Lemke's method proper (Cottle, Pang and Stone, 1992, algorithm 4.4.5).

In each turn the complement of the variable that left enters, and the basic variable that reaches zero
first, ``blocking``, leaves: below n the w_N of a contact without load, which then gets a slot; else a
pair of a slot; COVERING is z_0, which ends the path; NOTHING a ray.

The first attempt covers normal velocities alone, breaks ties by the lexicographic rule, updates
values and releases slots.  Later ones cover tangential velocities too, each in directions of
its own: that breaks the ties of contacts at rest, so that of variables that vanish
within rounding the best pivot may be taken.  They evaluate values from the data at each pivot,
and every second one keeps the slots.
"""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel as kernel
from contact_id_controller.lcp._friction_core import (
    CONSTANT,
    CONTACT,
    FRICTION,
    MOTION,
    MOTION_CHANGE,
    OFFSET,
    SHARE,
    factor_core,
    solve_core,
)
from contact_id_controller.lcp._ratio_test import (
    CHANGE,
    COVERING,
    GOLDEN,
    NOTHING,
    SPREAD,
    TIE_TOLERANCE,
    VALUE,
    first_blocking,
    raise_cover,
    steadiest_blocking,
)
from contact_id_controller.lcp.status import INACCURATE, PIVOT_LIMIT, PIVOTS, RAY, SOLVED

LATERAL = 0.5  # covering velocity along the tangents, as a share of what friction lets them be
SILVER = math.sqrt(2.0) - 1.0  # multiples of it, modulo 1, spread its directions
ROUNDING = 1e-12  # of scaled values; z_0 has reached zero when no more than this is left of it


@kernel
def follow_path(problem, attempt, slots, max_pivots, work, report):
    """Drive z_0 to zero; returns (status, number of loaded contacts), with final values in work.level[VALUE].

    Args:
        problem: ``FrictionProblem`` with the scales of ``scaled``.
        attempt: 0 for the first path.
        slots: 0, or the number of contacts of a warm basis in the slots: no path then, its values are computed.
        max_pivots: of this attempt; counted in report[PIVOTS].
    """
    n, r = work.cover.shape[1], work.axes.shape[2]
    width, level, basic, edges = work.basic.shape[1], work.level, work.basic, problem.edges
    u, du = work.vectors[MOTION, :r], work.vectors[MOTION_CHANGE, :r]
    careful, keep = attempt > 0, attempt % 2 == 1
    limit = report[PIVOTS] + max_pivots
    blocking, z0, z0_spread = np.int64(COVERING), 0.0, 0.0
    if slots == 0:
        blocking, z0, z0_spread = _unload(problem, attempt, u, work)
    while True:
        covered = blocking != COVERING
        s, j, entering_z = blocking, blocking, True  # slot and pair of what enters; -1 at the end
        if covered and blocking < n:
            s, j = slots, np.int64(0)
            slots += 1
            place_contact(problem, s, blocking, work)
            _start_sliding(work, edges, s, u, z0)
        elif covered:
            s, j = (blocking - n) // width, (blocking - n) % width
            entering_z = basic[s, j] == 0
            basic[s, j] = 0
        unloading = j == 0 and not entering_z and not keep
        if unloading:  # its normal force has vanished: friction and lambda go with it
            for e in range(1, width):
                basic[s, e] = 0
        m = factor_core(work, edges, slots, s, j, covered)
        if m < 0:
            return INACCURATE, slots
        z0_change = 0.0
        if careful or not covered:
            _problem_terms(work, slots, u)
            found = solve_core(work, edges, slots, m, u, VALUE)
            if covered:
                z0 = found
                _free_normals(problem, work, slots, z0, u, VALUE)
        if covered:
            _entering_terms(work, edges, slots, s, j, entering_z, du)
            z0_change = solve_core(work, edges, slots, m, du, CHANGE)
            _free_normals(problem, work, slots, z0_change, du, CHANGE)
        else:
            _refine(work, edges, slots, m, du)
            return SOLVED, slots
        entered, end = n + s * width + j, n + slots * width
        for b in range(
            entered - j if unloading else entered, entered + (width if unloading else 1)
        ):
            level[CHANGE, b] = 0.0
        blocking, theta, tilt = _blocking(careful, level, end, z0, z0_spread, z0_change)
        if blocking == NOTHING:
            return RAY, slots
        if report[PIVOTS] >= limit:
            return PIVOT_LIMIT, slots
        report[PIVOTS] += 1.0
        normal = _prefer_normal(level, basic, n, blocking, theta)
        if normal != blocking:
            blocking, tilt = normal, level[SPREAD, normal] / -level[CHANGE, normal]
        _advance(level, end, theta, tilt)
        for x in range(r):
            u[x] += theta * du[x]
        z0 += theta * z0_change
        z0_spread += tilt * z0_change
        if unloading:  # w_N of a contact without slot has entered; the last slot fills the gap
            entered = work.slot[CONTACT, s]
            slots -= 1
            _copy_slot(work, slots, s)
            if blocking >= n + slots * width:
                blocking -= (slots - s) * width
        else:
            basic[s, j] = 1 if entering_z else 0
        level[VALUE, entered], level[SPREAD, entered] = theta, tilt


@kernel
def _unload(problem, attempt, u, work):
    """Start without load at the least z_0 with w_N = c_N + d_N z_0 >= 0.

    Returns (the contact whose w_N is then zero, or COVERING if all c_N >= 0; z_0; its spread); u (r,) is set to zero.
    Covering velocities d, in work.cover (3, n), differ by ``attempt``; each lies within the dual of its contact's cone,
    d_N > mu |d_T|, which like a vector of ones prevents the path from ending on a ray.
    """
    for x in range(u.shape[0]):
        u[x] = 0.0
    cover, level = work.cover, work.level
    for i in range(cover.shape[1]):
        normal, turn = 1.0 + attempt * GOLDEN * i % 1.0, attempt * SILVER * (i + 1) % 1.0
        lateral = 0.0 if attempt == 0 else LATERAL * normal / (1.0 + problem.mu[i])
        cover[0, i] = normal
        cover[1, i] = lateral * math.cos(2.0 * math.pi * turn)
        cover[2, i] = lateral * math.sin(2.0 * math.pi * turn)
        level[VALUE, i] = problem.c[3 * i] * problem.scale_c
        level[SPREAD, i] = 1.0 + GOLDEN * (i + 1) % 1.0
    contact, z0, z0_spread = raise_cover(level, cover[0], cover.shape[1])
    return contact if contact != NOTHING else contact - NOTHING + COVERING, z0, z0_spread


@kernel
def _blocking(careful, level, end, z0, z0_spread, z0_change):
    """Ratio test: (variable that leaves, step of values, step of spreads), as ``first_blocking`` returns them.

    careful: by the largest pivot among those within rounding (``steadiest_blocking``), not by the spreads.
    """
    if not careful:
        return first_blocking(level, end, TIE_TOLERANCE, z0, z0_spread, z0_change)
    blocking, theta = steadiest_blocking(level, end, ROUNDING, z0, z0_change)
    if blocking != NOTHING and z0_change < 0.0 and z0 + theta * z0_change <= ROUNDING:
        return np.int64(COVERING), z0 / -z0_change, 0.0
    return blocking, theta, 0.0


@kernel
def _advance(level, end, theta, tilt):
    """Move values by theta and spreads by tilt times the changes of the first ``end`` variables."""
    for b in range(end):
        level[VALUE, b] += theta * level[CHANGE, b]
        level[SPREAD, b] += tilt * level[CHANGE, b]


@kernel
def _refine(work, edges, slots, m, du):
    """Correct the final values of the slots by one step of iterative refinement; du (r,): workspace."""
    n, width, level = work.cover.shape[1], work.basic.shape[1], work.level
    _residual_terms(work, edges, slots, du)
    solve_core(work, edges, slots, m, du, CHANGE)
    for b in range(n, n + slots * width):
        level[VALUE, b] += level[CHANGE, b]


@kernel
def place_contact(problem, s, i, work):
    """Copy contact i into slot s: scaled rows of Y (3, r), constants g (p,), mu / (1 + mu) and 1 / (1 + mu)."""
    c, mu, edges, scale_c = problem.c, problem.mu[i], problem.edges, problem.scale_c
    offset, last = work.terms[OFFSET], work.basic.shape[1] - 1
    work.slot[CONTACT, s] = i
    work.weights[FRICTION, s] = mu / (1.0 + mu)
    work.weights[SHARE, s] = 1.0 / (1.0 + mu)
    for a in range(3):
        for x in range(work.axes.shape[2]):
            work.axes[s, a, x] = problem.Y[3 * i + a, x] * problem.scale_Y
    offset[s, 0] = c[3 * i] * scale_c
    for e in range(1, last):
        offset[s, e] = scale_c * (edges[e - 1, 0] * c[3 * i + 1] + edges[e - 1, 1] * c[3 * i + 2])
    offset[s, last] = 0.0


@kernel
def _start_sliding(work, edges, s, u, z0):
    """Let slot s, still without load, slide along the edge most against its velocity at u (r,) and z_0.

    That edge's force, still zero, and lambda = -min_e (y_e u + d_e z_0 + g_e) become basic.
    """
    axes, level, basic = work.axes, work.level, work.basic
    last = basic.shape[1] - 1
    first = work.cover.shape[1] + s * (last + 1)
    contact = work.slot[CONTACT, s]
    along, across = work.cover[1, contact] * z0, work.cover[2, contact] * z0
    for x in range(u.shape[0]):
        along += axes[s, 1, x] * u[x]
        across += axes[s, 2, x] * u[x]
    against = 1
    for e in range(1, last):
        level[VALUE, first + e] = (
            edges[e - 1, 0] * along + edges[e - 1, 1] * across + work.terms[OFFSET, s, e]
        )
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
def _problem_terms(work, slots, u):
    """Set up ``solve_core`` for the values: constants g of the problem, u (r,) from zero."""
    for s in range(slots):
        for j in range(work.basic.shape[1]):
            work.terms[CONSTANT, s, j] = work.terms[OFFSET, s, j]
    for x in range(u.shape[0]):
        u[x] = 0.0


@kernel
def _entering_terms(work, edges, slots, s, j, entering_z, du):
    """Set up ``solve_core`` for the changes by one unit of the variable entering at slot s, pair j.

    A w enters its own row with -1; lambda enters all edge rows; a force enters w_l, and u by its row of Y: du (r,).
    """
    axes, constant, last = work.axes, work.terms[CONSTANT], work.basic.shape[1] - 1
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
            du[x] = (
                work.weights[SHARE, s] * axes[s, 0, x]
                if j == 0
                else edges[j - 1, 0] * axes[s, 1, x] + edges[j - 1, 1] * axes[s, 2, x]
            )


@kernel
def _residual_terms(work, edges, slots, u):
    """Set up ``solve_core`` for a correction: constants are the residuals w_j of the values, u (r,) from zero."""
    axes, basic, constant, value = work.axes, work.basic, work.terms[CONSTANT], work.level[VALUE]
    n, r, last = work.cover.shape[1], u.shape[0], basic.shape[1] - 1
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
            constant[s, e] = (
                edges[e - 1, 0] * along + edges[e - 1, 1] * across + slip + work.terms[OFFSET, s, e]
            )
            if basic[s, e] == 1:
                balance -= value[first + e]
        constant[s, last] = balance
    for x in range(r):
        u[x] = 0.0


@kernel
def _free_normals(problem, work, slots, z0, motion, target):
    """Write w_N of contacts without slot, y_N u + d_N z_0 + g_N, into work.level[target]; zero change for the others.

    target: VALUE, or CHANGE, in which g_N has no part; motion (r,), z0: u and z_0, or their changes.
    """
    out, n = work.level[target], work.cover.shape[1]
    for i in range(n):
        out[i] = work.cover[0, i] * z0
        if target == VALUE:
            out[i] += problem.c[3 * i] * problem.scale_c
    for x in range(motion.shape[0]):
        for i in range(n):
            out[i] += work.normals[x, i] * motion[x]
    if target == CHANGE:
        for s in range(slots):
            out[work.slot[CONTACT, s]] = 0.0


@kernel
def _prefer_normal(level, basic, n, blocking, theta):
    """The blocking variable, or its contact's normal force if that vanishes at the same step theta: it parts then."""
    if blocking < n:
        return blocking
    width = basic.shape[1]
    normal = blocking - (blocking - n) % width
    if basic[(blocking - n) // width, 0] == 1 and level[CHANGE, normal] < 0.0:
        if level[VALUE, normal] <= (theta + TIE_TOLERANCE * (1.0 + theta)) * -level[CHANGE, normal]:
            return normal
    return blocking


@kernel
def _copy_slot(work, source, target):
    """Copy a loaded contact from slot ``source`` to slot ``target``: rows, constants, basis, values and spreads."""
    width, n, level = work.basic.shape[1], work.cover.shape[1], work.level
    if source == target:
        return
    work.slot[CONTACT, target] = work.slot[CONTACT, source]
    for a in range(2):
        work.weights[a, target] = work.weights[a, source]
    for j in range(width):
        work.basic[target, j] = work.basic[source, j]
        work.terms[OFFSET, target, j] = work.terms[OFFSET, source, j]
        level[VALUE, n + target * width + j] = level[VALUE, n + source * width + j]
        level[SPREAD, n + target * width + j] = level[SPREAD, n + source * width + j]
    for a in range(3):
        for x in range(work.axes.shape[2]):
            work.axes[target, a, x] = work.axes[source, a, x]
