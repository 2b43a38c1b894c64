"""Viscous friction with normal complementarity (viscous and no-slip paper, section IV).

    f_T = -mu_v v_T,    0 <= f_N  perp  N v+ + gap >= 0

Explicit: v_T is today's contact velocity, as in the paper. Implicit, the default: v_T is the one at
the period's end, which is stable whatever the period and the coefficient. Eliminating the tangential
impulses turns 1/2 |u|^2 into 1/2 u^T (I + dt Y_T^T mu_v Y_T) u and leaves a positive semidefinite
LCP on the normals.
"""

from __future__ import annotations

import numpy as np

from ..lcp._compile import kernel
from ..lcp.dual_qp import SOLVED, nearest_point
from ..problem import Problem, assign, backward_substitute, cholesky, forward_substitute
from ..solution import Solution
from .cones import APART, STICKING
from .consistency import TOUCHING_SPEED
from .distribution import distribute
from .stages import (
    DISTRIBUTIONS, STICKING_SPEED, STILL_M_S, buffers, check_option, finish, map_identities,
    matrices, outcome,
)

FORMS = ("implicit", "explicit")


def solve_viscous_lcp(problem: Problem, *, warm_start: Solution | None = None,
                      distribution: str = "least_torque", form: str = "implicit") -> Solution:
    """Contact forces and torques under viscous friction, coefficients ``contacts.viscosity`` (N s/m).

    Args:
        warm_start: the last period's solution; its loaded contacts are tried first.
        distribution: of the normal forces; the tangential ones follow from the motion.
        form: ``implicit`` or ``explicit`` in the contact velocity.

    Only touching contacts rub. A plan that drives bodies into each other has no solution (status
    ``inconsistent``).
    """
    check_option("distribution", distribution, DISTRIBUTIONS)
    check_option("form", form, FORMS)
    z, delta, torques, velocity = buffers(problem)
    loaded = np.zeros(len(problem), dtype=bool)
    if warm_start is not None:
        map_identities(problem, warm_start, warm_start.memory, loaded)
    code, steps = _solve(*matrices(problem), problem.speed, problem.keep, problem.contacts.viscosity,
                         DISTRIBUTIONS.index(distribution), form == "implicit", loaded, z, delta,
                         torques, velocity)
    return outcome(problem, code, steps, 0.0, delta, z, torques, velocity, loaded)


@kernel
def _solve(Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, speed,
           keep, viscosity, distribution, implicit, loaded, z, delta, torques, velocity):
    n, nu, na = gap_speed.shape[0], Y.shape[1], T.shape[1]
    status, steps = SOLVED, 0
    if n:
        # Tangential impulse of row r: -rub[r] (slope Y_r u + slip[r]).
        slope = 1.0 if implicit else 0.0
        slip, rub = np.zeros(3 * n), np.zeros(3 * n)
        H = np.zeros((nu, nu))
        w = np.zeros(nu)
        for k in range(nu):
            H[k, k] = 1.0
        for i in range(n):
            if gap_speed[i] > TOUCHING_SPEED:
                continue
            for r in range(3 * i + 1, 3 * i + 3):
                rub[r] = dt * viscosity[i]
                slip[r] = c[r] + keep * speed[r] if implicit else speed[r]
                for a in range(nu):
                    w[a] -= rub[r] * slip[r] * Y[r, a]
                    for b in range(a + 1):
                        H[a, b] += slope * rub[r] * Y[r, a] * Y[r, b]
        cholesky(H, nu, 0.0)
        forward_substitute(H, nu, w)
        A, b = np.empty((n, nu)), np.empty(n)
        for i in range(n):
            assign(A[i], Y[3 * i])
            forward_substitute(H, nu, A[i])
            b[i] = c[3 * i] + gap_speed[i]
        weights = np.empty(n)
        # int64 and not a literal: numba would compile the whole method once more for the constant.
        status, steps = nearest_point(
            A, b, np.int64(0), loaded, w, weights, np.empty(nu + 1, np.int64), np.empty((nu, nu)),
            np.empty((nu, nu)), np.empty((4, nu + 1)))
        u = w
        backward_substitute(H, nu, u)
        if status == SOLVED:
            shifted, rest = np.empty(na), np.empty(nu)
            assign(shifted, offset)
            assign(rest, u)
            scale = 0.0
            for i in range(n):
                loaded[i] = weights[i] > 0.0
                z[3 * i] = weights[i]
                scale = max(scale, abs(c[3 * i]))
                for r in range(3 * i + 1, 3 * i + 3):
                    total = slip[r]
                    for k in range(nu):
                        total += slope * Y[r, k] * u[k]
                    z[r] = -rub[r] * total
                    for k in range(nu):
                        rest[k] -= Y[r, k] * z[r]
                    for j in range(na):
                        shifted[j] += T[r, j] * z[r]
            if distribution < 2:
                mode, normals, nothing = np.empty(n, np.int64), np.zeros(3 * n), np.zeros(n)
                for i in range(n):
                    parting = c[3 * i] + gap_speed[i]
                    for k in range(nu):
                        parting += Y[3 * i, k] * u[k]
                    mode[i] = STICKING if parting <= STICKING_SPEED * scale + STILL_M_S else APART
                    normals[3 * i] = weights[i]
                weight = 1.0 if distribution == 0 else 0.0
                steps += abs(distribute(T, shifted, Y, rest, mode, nothing, nothing, nothing,
                                        np.int64(4), weight, normals))
                for i in range(n):
                    z[3 * i] = normals[3 * i]
    finish(L, C, base, schur, offset, desired, T, Y, z, delta, dt, actuated, unactuated, torques,
           velocity)
    return status, steps
