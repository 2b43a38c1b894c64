"""Joint motions that the contacts can follow.

With joint velocities prescribed and touching points that must not slip or part, a plan can be
impossible: legs that splay, fingers that squeeze a rigid box with velocity. The closest possible
plan is found by weighted least squares over the joint velocities' change ``delta`` and the base:

    min |delta|^2    Y (base motion) + c - dt T delta = 0   at the touching contacts

(first paper, section 4.5). Contacts that the plan lifts are left out: lifting is no contradiction.
"""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel
from ..problem import assign, backward_substitute, cholesky, fill, forward_substitute

TOUCHING_SPEED = 0.05    # m/s; a contact touches when its gap allows no more closing speed than this
LIFT_ACCELERATION = 5.0  # m/s2; plans that part a contact faster than this lift it off on purpose
CHANGE_WEIGHT = 1e-9     # weight of delta against the contradiction, relative to traces
REFINEMENTS = 6
ROUNDING = 1e-13         # refining ends when the contradiction is below this share of the motion
NOISE = 1e-6             # contradictions below this share of the motion are taken for rounding
BASE_WEIGHT = 1e-13      # keeps the base motion determined when the contacts leave it free


@kernel
def project_plan(Y, T, c, gap_speed, mu, dt, lift, delta, moved):
    """Smallest change ``delta`` (na,) rad/s of the planned joint velocities that the contacts allow.

    mu (n,): contacts without friction hold in the normal direction only. ``lift``: allow contacts to
    be lifted off on purpose. ``moved`` (3n,), m/s: the contact velocities at z = 0 of the changed
    plan. Returns the largest contradiction found, m/s: the
    contact velocity that ``delta`` takes away.
    """
    held = np.empty(gap_speed.shape[0], np.bool_)
    touching(gap_speed, held)
    return project_held(Y, T, c, mu, dt, lift, held, delta, moved)


@kernel
def touching(gap_speed, held):
    """Mark the contacts (n,) that touch; returns how many."""
    count = 0
    for i in range(gap_speed.shape[0]):
        held[i] = gap_speed[i] <= TOUCHING_SPEED
        if held[i]:
            count += 1
    return count


@kernel
def project_held(Y, T, c, mu, dt, lift, held, delta, moved):
    """``project_plan`` for the contacts marked in held (n,); those lifted off are unmarked."""
    n, nu, na = held.shape[0], Y.shape[1], T.shape[1]
    dim = nu + na
    count = 0
    for i in range(n):
        if held[i]:
            count += 1
    fill(delta, 0.0)
    assign(moved, c)
    row = np.empty(dim)
    H = np.empty((dim, dim))
    x = np.empty(dim)
    total = np.empty(dim)
    largest = 0.0
    while count > 0:
        for a in range(dim):
            fill(H[a], 0.0)
        fill(x, 0.0)
        for i in range(n):
            if not held[i]:
                continue
            for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                for k in range(nu):
                    row[k] = Y[r, k]
                for k in range(na):
                    row[nu + k] = -dt * T[r, k]
                for a in range(dim):
                    factor = row[a]
                    if factor == 0.0:
                        continue
                    if a < nu:
                        x[a] -= factor * c[r]
                    for b in range(a + 1):
                        H[a, b] += factor * row[b]
        trace_u, trace_a = 0.0, 0.0
        for k in range(nu):
            trace_u += H[k, k]
        for k in range(nu, dim):
            trace_a += H[k, k]
        if trace_a == 0.0:
            return 0.0
        for k in range(nu):
            H[k, k] += BASE_WEIGHT * trace_u
        for k in range(nu, dim):
            H[k, k] += CHANGE_WEIGHT * trace_a
        if not cholesky(H, dim, 0.0):
            return 0.0
        # The base's own best fit first: what it leaves over is the contradiction, free of the
        # rounding errors of the (large) motion that every contact shares. Refining then takes the
        # weights' bias away, which is large where the contacts nearly lock the joints.
        forward_substitute(H, nu, x)
        backward_substitute(H, nu, x)
        for k in range(dim):
            total[k] = x[k] if k < nu else 0.0
        for refinement in range(REFINEMENTS):
            fill(x, 0.0)
            left, scale = 0.0, 0.0
            for i in range(n):
                if not held[i]:
                    continue
                for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                    rest = c[r]
                    scale = max(scale, abs(rest))
                    for k in range(nu):
                        rest += Y[r, k] * total[k]
                    for k in range(na):
                        rest -= dt * T[r, k] * total[nu + k]
                    left = max(left, abs(rest))
                    for k in range(nu):
                        x[k] -= Y[r, k] * rest
                    for k in range(na):
                        x[nu + k] += dt * T[r, k] * rest
            if left <= ROUNDING * scale:
                break
            forward_substitute(H, dim, x)
            backward_substitute(H, dim, x)
            for k in range(dim):
                total[k] += x[k]
        largest = 0.0
        leaving, most = -1, LIFT_ACCELERATION * dt
        for i in range(n):
            if not held[i]:
                continue
            for d in range(3 if mu[i] > 0.0 else 1):
                change = 0.0
                for k in range(na):
                    change += dt * T[3 * i + d, k] * total[nu + k]
                largest = max(largest, abs(change))
                if d == 0 and change > most:
                    leaving, most = i, change
        if not lift or leaving < 0:
            for k in range(na):
                delta[k] = total[nu + k]
            left, scale = 0.0, 0.0
            for r in range(3 * n):
                for k in range(na):
                    moved[r] -= dt * T[r, k] * delta[k]
                if held[r // 3] and (r % 3 == 0 or mu[r // 3] > 0.0):
                    rest = moved[r]
                    for k in range(nu):
                        rest += Y[r, k] * total[k]
                    left, scale = max(left, abs(rest)), max(scale, abs(c[r]))
            if left <= NOISE * scale:
                # What rounding and the weights leave over would look like slip: take it away.
                for r in range(3 * n):
                    if held[r // 3] and (r % 3 == 0 or mu[r // 3] > 0.0):
                        moved[r] = 0.0
                        for k in range(nu):
                            moved[r] -= Y[r, k] * total[k]
            return largest
        held[leaving] = False
        count -= 1
    return 0.0
