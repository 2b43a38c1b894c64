"""Least power under exact friction cones and torque limits: contacts hold, the plan may give way.

    min u^T W u        u = torque_offset + T^T z           (the reduced dynamics)
                       Y Y^T z + c = 0                     (touching contacts neither slip nor part)
                       z_N >= 0, |z_T| <= mu z_N, -limit <= u <= limit

W = diag(R/Kt^2), so the objective is the power that heats the motors. When no forces and torques do
this, the physics stay and the planned joint accelerations change by the disturbance d (na,):

    min u^T W u + rho |d|^2     u = torque_offset + T^T z + schur d,   Y Y^T z + c - dt^2 T d = 0

(section 3.3). Only where no d holds them either, contacts yield: least squares in their velocities. Source: Aghili,
Optimal control of legged robots subject to friction cone constraints, eq. 26 to 33.
"""

from __future__ import annotations

import numpy as np

from ..exceptions import ConfigurationError
from ..lcp._compile import kernel
from ..problem import Problem, assign, fill
from ..projected.barrier import ROWS, SCALING, SOLVED, WORK_ROWS, central_path
from ..projected.rank import independent_rows
from ..projected.scaling import equilibrate, into_units, out_of_units
from ..solution import INCONSISTENT, NOT_CONVERGED, RELAXED, Certificate, Solution
from ..solution import SOLVED as SOLVED_NAME
from .consistency import NOISE, TOUCHING_SPEED, project_held, touching
from .easing import TOLERATED, mean_diagonal
from .stages import CONSISTENCIES, buffers, check_option, finish, matrices, shift_offset

RELAXED_CODE = 3
CONTRADICTORY = 4
STATUS_NAMES = {SOLVED: SOLVED_NAME, RELAXED_CODE: RELAXED, CONTRADICTORY: INCONSISTENT}

TIE_BREAK = 1e-8       # price of forces against that of the torques they cause: makes them unique
LEAST_TIE = 1e-9       # the same in the solver's units, where the disturbance costs about one
YIELD = 1e2            # price of a contact that yields against that of the same motion of the joints
YIELDING = 1e-6        # softness of contacts that no joint moves, relative to their inertia
ROUGH = 1e-6           # accuracy that does for a disturbance, in the solver's units
ROUGHER = 1e-3         # and where contacts yield
MARGIN = 1e-3          # a warm start keeps this distance from bounds, as a share of their width
NARROW = 1e-9          # limits closer to each other than this share of the largest are set apart


def solve_coulomb_qcqp(problem: Problem, *, warm_start: Solution | None = None, torque_limits=None,
                       weights=None, consistency: str = "project", rho: float = 1e4) -> Solution:
    """Forces in their exact cones and torques within limits, of least power.

    Contacts that touch are held: J v+ is what ``problem.c`` leaves of today's velocity. Contacts with
    a gap, and those that the plan lifts, carry nothing. Penetrations are not undone.

    Args:
        warm_start: the last period's solution; where the same contacts hold, a point of its central
            path is the first guess. It saves steps and does not change the result.
        torque_limits: (na,) or scalar, N·m, positive or inf; by default ``robot.effort_limits``.
        weights: (na,) or scalar, diagonal of W = R/Kt^2 in W/(N·m)^2; by default ones.
        consistency: ``project`` replaces a plan that the contacts contradict by the closest one
            that they allow; ``report`` only says so.
        rho: price of the disturbance, relative: 1 is that of the torques that cause it at joints
            that are free to move.

    The status is ``solved``; ``relaxed`` when forces and torques have no solution for the plan, the
    disturbance then being in ``Solution.disturbance``; ``inconsistent`` when holding the contacts
    is contradictory by itself (as for coulomb/qp). Forces are inside their cones in every case, torques
    within limits in all but ``not_converged``. ``Solution.certificate`` tells how good the optimum is.

    Raises:
        ConfigurationError: limits, weights or rho that are not positive, or of the wrong shape.
        UnknownModelError: an unknown value of ``consistency``.
    """
    check_option("consistency", consistency, CONSISTENCIES)
    na, n = problem.robot.na, len(problem)
    limits = _positive("torque_limits", problem.robot.effort_limits if torque_limits is None
                       else torque_limits, na)
    W = _positive("weights", 1.0 if weights is None else weights, na)
    if not (0.0 < rho < np.inf and np.isfinite(W).all()):
        raise ConfigurationError(f"weights and rho must be finite and positive, got {weights}, {rho}")
    z, delta, torques, velocity = buffers(problem)
    moved, disturbance, figures = problem.c.copy(), np.zeros(na), np.zeros(3)
    held, width = np.zeros(n, np.bool_), 2 * na + 3 * n
    start = np.empty((0, width))
    held_before = np.empty(0, np.bool_)
    if warm_start is not None and warm_start.memory is not None \
            and warm_start.problem.contacts.identities == problem.contacts.identities \
            and warm_start.memory[1].shape == (5, width):
        held_before, start = warm_start.memory
    memory = np.empty((5, width))
    code, steps, contradiction = _solve(
        *matrices(problem), problem.speed, problem.contacts.friction, limits, W, rho,
        consistency == "project", held_before, start, held, memory, moved, z, delta, disturbance,
        figures, torques, velocity)
    return Solution(problem, STATUS_NAMES.get(code, NOT_CONVERGED), torques, z, velocity, steps,
                    delta, contradiction, (held, memory), moved, disturbance, Certificate(*figures.tolist()))


def _positive(name, value, size):
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (size,):
        array = np.ascontiguousarray(value)
        if (array > 0.0).all():
            return array
    array = np.empty(size)
    try:
        array[:] = value
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name} must be a number or have shape ({size},), got {value}") from None
    if not np.all(array > 0.0):
        raise ConfigurationError(f"{name} must be positive, got {np.asarray(value).tolist()}")
    return array


@kernel
def _hold(Y, T, moved, mu, held, dt, joints, K, k, residual):
    """Independent equations K (y, d) = k that hold the contacts; joints: number of columns for d.

    residual (3n,) or (0,): m/s, what no y can take away. Returns (rank, length of that, unit of d): d is
    counted in units that make its columns as large as the others, so that the rank means something.
    """
    nu = Y.shape[1]
    rows = 0
    unit = 1.0
    if joints:
        first, second = 0.0, 0.0
        for r in range(3 * held.shape[0]):
            for a in range(nu):
                first += Y[r, a] * Y[r, a]
            for a in range(joints):
                second += dt * dt * T[r, a] * dt * dt * T[r, a]
        if first > 0.0 and second > 0.0:
            unit = np.sqrt(first / second)
    for i in range(held.shape[0]):
        if not held[i]:
            continue
        for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
            for a in range(nu):
                K[rows, a] = Y[r, a]
            for a in range(joints):
                K[rows, nu + a] = -dt * dt * T[r, a] * unit
            k[rows] = -moved[r]
            rows += 1
    order, norms = np.empty(nu + joints, np.int64), np.empty(nu + joints)
    rank, left = independent_rows(K, k, rows, order, norms)
    if residual.shape[0]:
        fill(residual, 0.0)
        fill(norms, 0.0)
        for i in range(rank - 1, -1, -1):
            total = k[i]
            for j in range(i + 1, rank):
                total -= K[i, order[j]] * norms[order[j]]
            norms[order[i]] = total / K[i, order[i]]
        for i in range(held.shape[0]):
            if held[i]:
                for r in range(3 * i, 3 * i + (3 if mu[i] > 0.0 else 1)):
                    residual[r] = moved[r]
                    for a in range(nu):
                        residual[r] += Y[r, a] * norms[a]
    return rank, left, unit


@kernel
def _factors(mu):
    """Units of normal and tangential force in which the cone is x0 >= |x_T|."""
    return (1.0, mu) if mu <= 1.0 else (1.0 / mu, 1.0)


@kernel
def _program(Y, T, offset, schur, dt, mu, held, limits, W, rho, yields, K, k, unit, rank, joints, place,
             weight, linear, At, b, soft, lower, upper, memory, warm, figures):
    """One program: assemble, scale, solve. ``memory`` (5, .): solution and start point, in SI units.

    Variables: torques, the disturbance (``joints`` of them), forces without friction limit, cones.
    place (n,) out: where the force of a contact stands, or -1. Returns (status, steps).
    """
    n, nu, na = mu.shape[0], Y.shape[1], T.shape[1]
    N, p = At.shape
    boxes = lower.shape[0]
    for j in range(N):
        fill(At[j], 0.0)
    fill(weight, 0.0)
    fill(linear, 0.0)
    fill(soft, 0.0)
    largest = 0.0
    for j in range(na):
        if limits[j] < np.inf:
            largest = max(largest, limits[j])
    for j in range(na):
        weight[j] = 2.0 * W[j]
        upper[j] = max(limits[j], NARROW * largest)
        lower[j] = -upper[j]
        At[j, j] = 1.0
        b[j] = offset[j]
    price, lever = 1.0, 0.0
    if joints:
        # rho in units of the torques that move a free joint; yielding in those of the same motion.
        size = 0.0
        for i in range(na):
            for j in range(na):
                size += W[i] * schur[i, j] * schur[i, j]
        for r in range(3 * n):
            for j in range(na):
                lever += dt * dt * T[r, j] * T[r, j]
        price = (1.0 if yields else rho) * size / na
        lever /= 3 * n * na
        for j in range(na):
            weight[na + j] = 2.0 * price
            lower[na + j], upper[na + j] = -np.inf, np.inf
            for i in range(na):
                At[na + j, i] = -schur[i, j]
            for i in range(rank):
                At[na + j, na + i] = K[i, nu + j] / unit
    for i in range(rank):
        b[na + i] = k[i]
    cost = 0.0
    for r in range(3 * n):
        for j in range(na):
            cost += W[j] * T[r, j] * T[r, j]
    tie = 2.0 * TIE_BREAK * cost / (3 * n) if cost > 0.0 else 1.0
    if yields:
        inertia = mean_diagonal(Y)
        yielding = (0.5 * lever * dt * dt / (YIELD * price) if lever > 0.0
                    else YIELDING * inertia * inertia / tie)
        for i in range(rank):
            soft[na + i] = yielding
    box, cone = na + joints, boxes
    for i in range(n):
        place[i] = -1
        if not held[i]:
            continue
        bounded = mu[i] < np.inf
        at = cone if bounded else box
        place[i] = at
        normal, tangent = _factors(mu[i]) if bounded else (1.0, 1.0)
        for d in range(3):
            factor = normal if d == 0 else tangent
            weight[at + d] = tie
            row = T[3 * i + d]
            for j in range(na):
                At[at + d, j] = -factor * row[j]
            row = Y[3 * i + d]
            for a in range(rank):
                total = 0.0
                for c in range(nu):
                    total += K[a, c] * row[c]
                At[at + d, na + a] = factor * total
            if not bounded:
                lower[at + d] = 0.0 if d == 0 else -np.inf
                upper[at + d] = np.inf
        if bounded:
            cone += 3
        else:
            box += 3
    column, row = np.empty(N), np.empty(p)
    beta, kappa = equilibrate(weight, linear, At, b, soft, lower, upper, column, row)
    for j in range(na + joints, N):
        weight[j] = max(weight[j], LEAST_TIE)
    cones = (N - boxes) // 3
    x, y, s, r = memory[0, :N], np.empty(p), np.empty(N), np.empty(boxes)
    if warm:
        _start(memory, lower, upper, column, row, beta, kappa, x, y, s, r)
    status, steps, gap, defect = central_path(
        weight, linear, At, b, soft, lower, upper, warm, x, y, s, r, memory[1:], np.empty((WORK_ROWS, N)),
        np.empty((ROWS, p)), np.empty((p, p)), np.empty((cones, SCALING)))
    figures[1], figures[2] = gap, defect
    out_of_units(x, y, s, r, column, row, beta, kappa)
    out_of_units(memory[1, :N], memory[2, :p], memory[3, :N], memory[4, :boxes], column, row, beta, kappa)
    return status, steps


@kernel
def _start(memory, lower, upper, column, row, beta, kappa, x, y, s, r):
    """The point kept last time, in the units of this one and inside its bounds."""
    assign(x, memory[1, :x.shape[0]])
    assign(y, memory[2, :y.shape[0]])
    assign(s, memory[3, :s.shape[0]])
    assign(r, memory[4, :r.shape[0]])
    into_units(x, y, s, r, column, row, beta, kappa)
    for j in range(lower.shape[0]):
        margin = MARGIN * min(1.0, upper[j] - lower[j])
        x[j] = min(max(x[j], lower[j] + margin), upper[j] - margin)


@kernel
def _attempt(Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, speed, mu,
           limits, W, rho, project, held_before, start, held, memory, moved, z, delta, disturbance, figures,
           torques, velocity, lift):
    """Contacts that touch hold; with ``lift`` those that the plan parts on purpose are let go."""
    n, nu, na = gap_speed.shape[0], Y.shape[1], T.shape[1]
    contradiction = 0.0
    touching(gap_speed, held)
    if n and project:
        contradiction = project_held(Y, T, c, mu, dt, lift, held, delta, moved)
    shifted = np.empty(na)
    shift_offset(offset, schur, dt, delta, shifted)
    bounded, count = 0, 0
    scale = 0.0
    same = held_before.shape[0] == n and start.shape[0] > 0 and np.isfinite(start[1, 0])
    for i in range(n):
        if held[i]:
            count += 1
            if mu[i] < np.inf:
                bounded += 1
            for r in range(3 * i, 3 * i + 3):
                scale = max(scale, abs(moved[r]), abs(speed[r]))
        same = same and held[i] == held_before[i]
    residual = np.empty(3 * n)
    K, k = np.empty((3 * count, nu + na)), np.empty(3 * count)
    rank, left, unit = _hold(Y, T, moved, mu, held, dt, 0, K[:, :nu], k, residual)
    contradicts = left > (TOLERATED if project else NOISE) * scale
    if left > NOISE * scale:
        contradiction = max(contradiction, left)
    place = np.empty(n, np.int64)
    if same:
        for q in range(5):
            assign(memory[q], start[q])
    status, steps, joints, attempt = SOLVED, 0, 0, 0
    for attempt in range(3):
        if attempt == 1:
            if na == 0 and count == 0:
                break
            joints = na
            rank, _, unit = _hold(Y, T, moved, mu, held, dt, na, K, k, residual[:0])
        boxes = na + joints + 3 * (count - bounded)
        N, p = boxes + 3 * bounded, na + rank
        status, spent = _program(
            Y, T, shifted, schur, dt, mu, held, limits, W, rho, attempt == 2, K, k, unit, rank, joints, place,
            np.empty(N), np.empty(N), np.empty((N, p)), np.empty(p), np.empty(p), np.empty(boxes), np.empty(boxes),
            memory, same and attempt == 0, figures)
        steps += spent
        if attempt and max(figures[1], figures[2]) <= (ROUGH if attempt == 1 else ROUGHER):
            status = SOLVED
        if status == SOLVED:
            break
    if joints:
        memory[1, 0] = np.nan  # a relaxed program's point starts no other
    for i in range(n):
        if place[i] >= 0:
            normal, tangent = _factors(mu[i]) if mu[i] < np.inf else (1.0, 1.0)
            for d in range(3):
                z[3 * i + d] = (normal if d == 0 else tangent) * memory[0, place[i] + d]
    for j in range(joints):
        disturbance[j] = memory[0, na + j]
        delta[j] += dt * disturbance[j]
        for r in range(3 * n):
            moved[r] -= dt * dt * T[r, j] * disturbance[j]
    for r in range(3 * n):
        moved[r] -= residual[r]
    finish(L, C, base, schur, offset, desired, T, Y, z, delta, dt, actuated, unactuated, torques,
           velocity)
    figures[0] = 0.0
    for j in range(na):
        torques[j] = min(max(torques[j], -limits[j]), limits[j])  # but for rounding they are inside
        figures[0] += W[j] * torques[j] * torques[j]
    if status == SOLVED and (contradicts or attempt == 2):
        status = CONTRADICTORY
    elif status == SOLVED and joints:
        status = RELAXED_CODE
    return status, steps, contradiction


@kernel
def _solve(Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, speed, mu,
           limits, W, rho, project, held_before, start, held, memory, moved, z, delta, disturbance, figures,
           torques, velocity):
    status, steps, contradiction = _attempt(
        Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, speed, mu, limits, W,
        rho, project, held_before, start, held, memory, moved, z, delta, disturbance, figures, torques,
        velocity, gap_speed.shape[0] >= 0)
    nu = Y.shape[1]
    u = np.zeros(nu)
    scale = 0.0
    for r in range(z.shape[0]):
        scale = max(scale, abs(moved[r]))
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    for i in range(held.shape[0]):
        if gap_speed[i] <= TOUCHING_SPEED and not held[i]:
            parting = moved[3 * i] + gap_speed[i]
            for k in range(nu):
                parting += Y[3 * i, k] * u[k]
            if parting < -NOISE * scale:
                # What the others do brings a lifted contact back: then it holds like them.
                fill(z, 0.0)
                fill(disturbance, 0.0)
                assign(moved, c)
                status, more, contradiction = _attempt(
                    Y, c, gap_speed, T, offset, L, C, base, schur, desired, dt, actuated, unactuated, speed,
                    mu, limits, W, rho, project, held_before, start, held, memory, moved, z, delta,
                    disturbance, figures, torques, velocity, gap_speed.shape[0] < 0)
                return status, steps + more, contradiction
    return status, steps, contradiction
