"""Coulomb friction without complementarity, as two small quadratic programs (first paper, section 6).

Stage I, on the reduced problem with the friction pyramid's edges e_j as generators of the forces:

    min 1/2 |u|^2   subject to   e_j^T (Y u + c + gap) >= 0   for every edge of every contact

whose multipliers are the edges' impulses: the contact model of eq. 75 as a nearest-point problem
in nu dimensions, however many contacts there are; no regularisation, no n x n matrix. Stage II:
``models.distribution``.
"""

from __future__ import annotations

import numpy as np

from ..exceptions import UnknownModelError, choices
from ..lcp._compile import kernel
from ..lcp.dual_qp import INFEASIBLE, SOLVED, nearest_point
from ..problem import Problem, backward_substitute
from ..solution import INCONSISTENT, NOT_CONVERGED, Solution
from ..solution import SOLVED as SOLVED_NAME
from .consistency import project_plan
from .distribution import APART, SLIDING, STICKING, distribute
from .kinetic_energy import minimise_kinetic_energy

OBJECTIVES = ("contact_velocity", "kinetic_energy")
DISTRIBUTIONS = ("least_torque", "least_force", "none")
CONSISTENCIES = ("project", "report")
_STATUS = {SOLVED: SOLVED_NAME, INFEASIBLE: INCONSISTENT}

STICKING_SPEED = 1e-6    # a contact sticks below this share of the problem's largest velocity
ADDED = 1e-15            # m/s, keeps the test meaningful when nothing moves


def solve_coulomb_qp(problem: Problem, *, warm_start: Solution | None = None, edges: int = 4,
                     objective: str = "contact_velocity", distribution: str = "least_torque",
                     consistency: str = "project") -> Solution:
    """Contact forces and torques under Coulomb friction, both stages.

    Args:
        edges: of the friction pyramid, inscribed in the cone.
        objective: ``contact_velocity`` (eq. 75) or ``kinetic_energy`` (eq. 69, as in the paper; it
            brakes a walking robot).
        distribution: of the forces with the same effect on the base: ``least_torque`` (stage II),
            ``least_force``, or ``none`` (the solver's vertex).
        consistency: ``project`` replaces a plan that the contacts contradict by the closest one
            that they allow; ``report`` only says so.

    Guarantees: stage I always ends, with the optimum or the proof that the plan is contradictory
    (status ``inconsistent``, forces of the best effort). G may have any rank.

    Source: first paper, eq. 75, sections 6.1 to 6.2; Anitescu (2006).
    """
    _check("objective", objective, OBJECTIVES)
    _check("distribution", distribution, DISTRIBUTIONS)
    _check("consistency", consistency, CONSISTENCIES)
    if edges < 3:
        raise UnknownModelError(f"edges must be at least 3, got {edges}")
    if objective == "kinetic_energy":
        return minimise_kinetic_energy(problem, edges, distribution)
    n, na = len(problem), problem.robot.na
    z, torques, velocity = np.empty(3 * n), np.empty(na), np.empty(problem.robot.nv)
    delta = np.empty(na)
    code, steps, contradiction = _solve(
        problem.Y, problem.c, problem.gap_speed, problem.T, problem.torque_offset, problem.L,
        problem.C, problem.base, problem.schur, problem.desired_velocity,
        problem.contacts.friction, problem.period, edges, DISTRIBUTIONS.index(distribution),
        consistency == "project", problem.robot.actuated, problem.robot.unactuated, z, torques,
        velocity, delta)
    return Solution(problem, _STATUS.get(code, NOT_CONVERGED), torques, z, velocity, steps, delta,
                    contradiction)


def _check(name, value, valid):
    if value not in valid:
        raise UnknownModelError(f"{name} is {value!r}; choose one of {choices(valid)}")


@kernel
def finish(L, C, base, schur, offset, desired, T, Y, z, delta, dt, actuated, unactuated, torques,
           velocity):
    """Torques and end velocity from impulses z (3n,) and the change delta (na,) of joint velocity."""
    nu, na = L.shape[0], torques.shape[0]
    x = np.empty(nu)
    for k in range(nu):
        x[k] = base[k]
        for j in range(na):
            x[k] -= C[k, j] * delta[j]
    for j in range(na):
        torques[j] = offset[j]
        for k in range(na):
            torques[j] += schur[j, k] * delta[k] / dt
        velocity[actuated[j]] = desired[j] + delta[j]
    for r in range(z.shape[0]):
        amount = z[r]
        if amount != 0.0:
            for k in range(nu):
                x[k] += Y[r, k] * amount
            for j in range(na):
                torques[j] += T[r, j] * amount
    backward_substitute(L, nu, x)
    for k in range(nu):
        velocity[unactuated[k]] = x[k]


@kernel
def stage_one(Y, c, gap_speed, mu, edges, u, z):
    """Stage I; u (nu,) and vertex impulses z (3n,) out. Returns (status, steps)."""
    n, nu = gap_speed.shape[0], Y.shape[1]
    equalities, rows = 0, 0
    for i in range(n):
        if np.isinf(mu[i]):
            equalities += 2
            rows += 3
        elif mu[i] == 0.0:
            rows += 1
        else:
            rows += edges
    A = np.empty((rows, nu))
    b = np.empty(rows)
    cosine, sine = np.empty(edges), np.empty(edges)
    for j in range(edges):
        cosine[j], sine[j] = np.cos(2.0 * np.pi * j / edges), np.sin(2.0 * np.pi * j / edges)
    upper, row = 0, equalities
    for i in range(n):
        at = 3 * i
        normal = c[at] + gap_speed[i]
        if np.isinf(mu[i]) or mu[i] == 0.0:
            A[row] = Y[at]
            b[row] = normal
            row += 1
            if mu[i] > 0.0:
                for d in range(1, 3):
                    A[upper] = Y[at + d]
                    b[upper] = c[at + d]
                    upper += 1
        else:
            for j in range(edges):
                first, second = mu[i] * cosine[j], mu[i] * sine[j]
                for k in range(nu):
                    A[row, k] = Y[at, k] + first * Y[at + 1, k] + second * Y[at + 2, k]
                b[row] = normal + first * c[at + 1] + second * c[at + 2]
                row += 1
    multipliers = np.empty(rows)
    u[:] = 0.0
    status, steps = nearest_point(A, b, equalities, u, multipliers, np.empty(nu + 1, np.int64),
                                  np.empty((nu, nu)), np.empty((nu, nu)), np.empty((4, nu + 1)))
    z[:] = 0.0
    if status != SOLVED:
        return status, steps
    upper, row = 0, equalities
    for i in range(n):
        at = 3 * i
        if np.isinf(mu[i]) or mu[i] == 0.0:
            z[at] = multipliers[row]
            row += 1
            if mu[i] > 0.0:
                z[at + 1], z[at + 2] = multipliers[upper], multipliers[upper + 1]
                upper += 2
        else:
            for j in range(edges):
                amount = multipliers[row]
                z[at] += amount
                z[at + 1] += mu[i] * cosine[j] * amount
                z[at + 2] += mu[i] * sine[j] * amount
                row += 1
    return status, steps


@kernel
def classify(Y, c, gap_speed, mu, edges, u, mode, angle, span):
    """What each contact may carry at the motion u: the optimal face of stage I."""
    n, nu = gap_speed.shape[0], Y.shape[1]
    scale = 0.0
    for r in range(3 * n):
        scale = max(scale, abs(c[r]))
    tolerance = STICKING_SPEED * scale + ADDED
    width = 2.0 * np.pi / edges
    for i in range(n):
        w = np.empty(3)
        for d in range(3):
            w[d] = c[3 * i + d]
            for k in range(nu):
                w[d] += Y[3 * i + d, k] * u[k]
        w[0] += gap_speed[i]
        slip = np.hypot(w[1], w[2])
        angle[i], span[i] = 0.0, 0.0
        if np.isinf(mu[i]) or mu[i] == 0.0 or slip <= tolerance:
            mode[i] = STICKING if w[0] <= tolerance else APART
        else:
            # Edges with no slack: the one against the slip, or the two beside it.
            mode[i] = APART
            against = np.arctan2(-w[2], -w[1])
            first = np.floor(against / width)
            tight_first, tight_second = False, False
            for j in range(2):
                theta = (first + j) * width
                slack = w[0] + mu[i] * (np.cos(theta) * w[1] + np.sin(theta) * w[2])
                if slack <= tolerance:
                    if j == 0:
                        tight_first = True
                    else:
                        tight_second = True
            if tight_first or tight_second:
                mode[i] = SLIDING
                angle[i] = (first if tight_first else first + 1) * width
                span[i] = width if tight_first and tight_second else 0.0


@kernel
def _solve(Y, c, gap_speed, T, offset, L, C, base, schur, desired, mu, dt, edges, distribution,
           project, actuated, unactuated, z, torques, velocity, delta):
    n, nu, na = gap_speed.shape[0], Y.shape[1], T.shape[1]
    delta[:] = 0.0
    contradiction = 0.0
    u = np.zeros(nu)
    status, steps = SOLVED, 0
    if n:
        moved = c.copy()
        shifted = offset.copy()
        for attempt in range(2):
            if project or attempt:
                # First the contradictions that are noise; if that is not enough, all of them.
                contradiction = project_plan(Y, T, c, gap_speed, dt, attempt == 0, delta)
                for r in range(3 * n):
                    moved[r] = c[r]
                    for k in range(na):
                        moved[r] -= dt * T[r, k] * delta[k]
            status, steps = stage_one(Y, moved, gap_speed, mu, edges, u, z)
            if status == SOLVED or not project:
                break
        if status == SOLVED and distribution < 2:
            for j in range(na):
                for k in range(na):
                    shifted[j] += schur[j, k] * delta[k] / dt
            mode = np.empty(n, np.int64)
            angle, span = np.empty(n), np.empty(n)
            classify(Y, moved, gap_speed, mu, edges, u, mode, angle, span)
            steps += abs(distribute(T, shifted, Y, u, mode, angle, span, mu, edges,
                                    1.0 if distribution == 0 else 0.0, z))
    finish(L, C, base, schur, offset, desired, T, Y, z, delta, dt, actuated, unactuated, torques,
           velocity)
    return status, steps, contradiction
