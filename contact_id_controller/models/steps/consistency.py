"""Projection of planned joint motions onto the contact constraints.

With joint velocities prescribed and touching points that must not slip or part, a plan can be impossible: legs that
splay, fingers that squeeze a rigid box with velocity. The closest possible plan is found by weighted least squares
over the change ``delta`` of the joint velocities and the base motion:

    min |delta|^2    Y (base motion) + c - dt T delta = 0   at the touching contacts

(first paper, section 4.5). Contacts that the plan lifts are left out: lifting is no contradiction; nor is approaching
the ground within the gap.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, inlined_kernel, kernel
from contact_id_controller.kernels.dense import (
    backward_substitute,
    cholesky,
    forward_substitute,
    gram,
)
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.kernels.views import keep, view

HOVERING_SPEED = 2e-3  # m/s; a contact at rest is above the ground by less of it
LIFT_ACCELERATION = 5.0  # m/s2; plans that part a contact faster than this lift it off on purpose
CHANGE_WEIGHT = 1e-9  # weight of delta against the contradiction, relative to traces
REFINEMENTS = 6
ROUNDING = 1e-13  # refining ends when the contradiction is below this share of the motion
STALLED = 0.7  # and where a refinement leaves more than this share of it
NOISE = 1e-4  # contradictions below this share of the motion are taken for rounding
BASE_WEIGHT = 1e-13  # relative; determines the base motion where the contacts leave it free


@bare_kernel
def _pack(Y, T, c, held, mu, dt, R, rhs, place):
    """Copy columns [Y, -dt T] and c of the held contacts' rows into R and rhs, row indices into place; returns rows.

    R (dim, 3n): all loops then run along the rows of the contacts.
    """
    nu, na = Y.shape[1], T.shape[1]
    count = 0
    for i in range(held.shape[0]):
        if held[i]:
            for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                for k in range(nu):
                    R[k, count] = Y[r, k]
                for k in range(na):
                    R[nu + k, count] = -dt * T[r, k]
                rhs[count] = c[r]
                place[count] = r
                count += 1
    return count


@bare_kernel
def _add_product(R, first, last, x, count, out):
    """out[:count] += R[first:last]^T x[first:last]; R (.., count), x (..,)."""
    for k in range(first, last):
        row, amount = R[k], x[k]
        for r in range(count):
            out[r] += amount * row[r]


@bare_kernel
def _take_product(R, last, values, count, out):
    """out[:last] -= R[:last] values[:count]; R (.., count)."""
    for k in range(last):
        row, total = R[k], 0.0
        for r in range(count):
            total += row[r] * values[r]
        out[k] -= total


@inlined_kernel
def project_plan(reduced, mu, lift, delta, moved):
    """Smallest change ``delta`` (na,), rad/s, of the planned joint velocities with which touching contacts rest.

    mu (n,): contacts without friction are constrained in the normal direction only. lift: contacts that the plan lifts
    are not constrained. delta and moved (3n,), m/s, are written: ``moved`` are the contact velocities at z = 0 of the
    changed plan. Returns the largest contradiction, m/s: the contact velocity that ``delta`` removes.
    """
    held = np.empty(mu.shape[0], np.bool_)
    touching(reduced.gap_speed, held)
    return project_held(reduced, mu, lift, held, delta, moved)


@kernel
def touching(gap_speed, held):
    """Mark touching contacts in held (n,); returns how many."""
    count = 0
    for i in range(gap_speed.shape[0]):
        held[i] = gap_speed[i] <= TOUCHING_SPEED
        if held[i]:
            count += 1
    return count


@bare_kernel
def _move(reduced, delta, place, rows, of_base, moved):
    """Update contact velocities moved (3n,), m/s, in place for the change delta (na,) of the joint velocities.

    of_base (rows,): the base motion's contribution to the held rows ``place``, with the opposite sign.
    """
    T, c, dt = reduced.T, reduced.c, reduced.dt
    for r in range(moved.shape[0]):
        for k in range(delta.shape[0]):
            moved[r] -= dt * T[r, k] * delta[k]
    left, scale = 0.0, 0.0
    for r in range(rows):
        # Where nothing is left over, the base's motion alone is the contact's velocity.
        left = max(left, abs(moved[place[r]] + of_base[r]))
        scale = max(scale, abs(c[place[r]]))
    if left <= NOISE * scale:
        # What rounding and the weights leave over would look like slip: take it away.
        for r in range(rows):
            moved[place[r]] = -of_base[r]


@bare_kernel
def _release_nearing(gap_speed, mu, place, rows, speed, held):
    """Unmark contacts with a gap that close no faster than their gaps allow; returns how many.

    A sole's corner that hovers 30 um above the ground would otherwise stay there: unloaded, its approach
    treated as a contradiction. Contacts of unbounded friction, mu (n,), are constrained before they touch.

    speed (rows,) m/s: of the held rows ``place``, by the plan and the base's best fit.
    """
    released = 0
    for r in range(rows):
        i = place[r] // 3
        hovers = gap_speed[i] > HOVERING_SPEED and mu[i] < np.inf
        if place[r] % 3 == 0 and hovers and -gap_speed[i] <= speed[r] < 0.0:
            held[i] = False
            released += 1
    return released


@bare_kernel
def _weigh(H, nu):
    """Add the weights of base motion (nu,) and joint change to the Gram matrix H; False if no joint moves a contact."""
    trace = 0.0
    for k in range(nu, H.shape[0]):
        trace += H[k, k]
    for k in range(nu):
        # Relative to its own size: a light body's columns are large, a free one's zero.
        H[k, k] = H[k, k] * (1.0 + BASE_WEIGHT) if H[k, k] > 0.0 else 1.0
    for k in range(nu, H.shape[0]):
        H[k, k] += CHANGE_WEIGHT * trace
    return trace != 0.0


@kernel
def project_held(reduced, mu, lift, held, delta, moved):
    """``project_plan`` for the contacts marked in held (n,); lifted and released ones are unmarked."""
    Y, T, c, dt = reduced.Y, reduced.T, reduced.c, reduced.dt
    n, nu, na = held.shape[0], Y.shape[1], T.shape[1]
    dim = nu + na
    count = 0
    for i in range(n):
        if held[i]:
            count += 1
    fill(delta, 0.0)
    assign(moved, c)
    room, place = np.empty((dim + 2) * (3 * n + dim)), np.empty(3 * n, np.int64)
    R, H = view(room, 0, (dim, 3 * n)), view(room, 3 * n * dim, (dim, dim))
    at = dim * (3 * n + dim)
    rhs, rest = view(room, at, (3 * n,)), view(room, at + 3 * n, (3 * n,))
    x, total = view(room, at + 6 * n, (dim,)), view(room, at + 6 * n + dim, (dim,))
    while count > 0:
        rows = _pack(Y, T, c, held, mu, dt, R, rhs, place)
        gram(R, rows, H)
        fill(x, 0.0)
        _take_product(R, nu, rhs, rows, x)
        if not (_weigh(H, nu) and cholesky(H, dim, 0.0)):
            return 0.0
        # The base's own best fit first: what it leaves over is the contradiction, free of the
        # rounding errors of the (large) motion that every contact shares. Refining then takes the
        # weights' bias away, which is large where the contacts nearly lock the joints.
        forward_substitute(H, nu, x)
        backward_substitute(H, nu, x)
        for k in range(dim):
            total[k] = x[k] if k < nu else 0.0
        assign(rest, rhs)
        _add_product(R, 0, nu, total, rows, rest)
        nearing = _release_nearing(reduced.gap_speed, mu, place, rows, rest, held)
        if nearing:
            count -= nearing
            continue
        before = np.inf
        for refinement in range(REFINEMENTS):
            fill(x, 0.0)
            left, scale = 0.0, 0.0
            for r in range(rows):
                rest[r] = rhs[r]
                scale = max(scale, abs(rhs[r]))
            _add_product(R, 0, dim, total, rows, rest)
            for r in range(rows):
                left = max(left, abs(rest[r]))
            if left <= ROUNDING * scale or left > STALLED * before:
                break
            before = left
            _take_product(R, dim, rest, rows, x)
            forward_substitute(H, dim, x)
            backward_substitute(H, dim, x)
            for k in range(dim):
                total[k] += x[k]
        fill(rest, 0.0)
        _add_product(R, nu, dim, total, rows, rest)
        largest = 0.0
        leaving, most = -1, LIFT_ACCELERATION * dt
        for r in range(rows):
            largest = max(largest, abs(rest[r]))
            if place[r] % 3 == 0 and -rest[r] > most:
                leaving, most = place[r] // 3, -rest[r]
        if not lift or leaving < 0:
            for k in range(na):
                delta[k] = total[nu + k]
            fill(rhs, 0.0)
            _add_product(R, 0, nu, total, rows, rhs)
            _move(reduced, delta, place, rows, rhs, moved)
            keep(room)
            return largest
        held[leaving] = False
        count -= 1
    return 0.0
