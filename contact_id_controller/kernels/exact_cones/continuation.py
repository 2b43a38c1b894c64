"""Coulomb's law on exact cones: proximal stages with growing rho, from several starts.

Convergence is not guaranteed: the law is not monotone, may have several solutions or none.
A solution is certified by its defect, see ``coulomb.defect``. Measured: ``benchmarks/exact_cones.py``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.exact_cones.coulomb import HUGE, defect
from contact_id_controller.kernels.exact_cones.linear import MANY, Law, law_of, motion
from contact_id_controller.kernels.exact_cones.newton import make_work, polish, stage

SOLVED, NOT_SOLVED, PAUSED = 0, 1, 2

TOLERANCE = 1e-10  # accepted defect
RHO = (100.0, 1000.0, 1.0, 30.0, 1e4)  # of each start
GROWTH = (10.0, 10.0, 10.0, 3.0, 10.0)  # factor of rho after a stage that took few steps
STARTS = 5
START_STEPS = 120  # Newton steps that a start may take
MANY_RHO, MANY_GROWTH = 5.0, 2.0  # of the first start with MANY unknowns: as many steps at most
FEW = 8
LARGEST_RHO, LEAST_RHO = 1e8, 1e-3
RETREAT = 0.2  # factor of rho after a stage that failed
FAILURES = 25  # failed stages after which a start is given up
WARM_POLISH, POLISH = 8, 6  # steps
LATE_RHO = 1e4  # first rho from a guess that is nearly a solution
LITTLE, FRICTION_GROWTH = 0.1, 1.2  # first bound of coefficients, and factor to the next
LARGE, LARGE_GROWTH = 4.0, 4.0  # bound from which factors are larger: hardly a contact slides
LEAST_FRICTION_GROWTH, FRICTIONS, FRICTION_STEPS = 1.005, 60, 2000
GAIN = 0.5  # a stage that leaves more than this share of the defect gains nothing
NEARLY = 1e-6  # defect below which a start may pause
NEAR = 0.1  # defect below which a first guess is where the first start begins
REST = 1e-300  # velocities below this are none


class Budget(NamedTuple):
    """Steps of polish of a first guess; starts to make, [first, end); rho of the first, 0 for the default.

    With all of them, growing friction is tried before the second. patience: number of stages without
    improvement after which a start that is near pauses, 0 for never.
    """

    polish: int
    first: int
    end: int
    rho: float
    patience: int


class Stages(NamedTuple):
    """First rho of a start, its factor, the most steps; patience: see ``Budget``."""

    rho: float
    growth: float
    limit: int
    patience: int


class Room(NamedTuple):
    """Workspace of a search: trial, polished, reached, next (3n,), mu (n,)."""

    trial: np.ndarray
    polished: np.ndarray
    reached: np.ndarray
    next: np.ndarray
    mu: np.ndarray


@bare_kernel
def _scales(Y, c, gap_speed):
    """Mean square norm of the rows of Y (3n, nu), and the largest velocity, m/s, that the contacts must remove.

    c (3n,), gap_speed (n,): m/s.
    """
    inertia, speed = 0.0, 0.0
    for r in range(c.shape[0]):
        speed = max(speed, abs(c[r]))
        for k in range(Y.shape[1]):
            inertia += Y[r, k] * Y[r, k]
    for i in range(gap_speed.shape[0]):
        speed = max(speed, -gap_speed[i])
    return inertia / max(c.shape[0], 1), speed


@kernel
def certify(Y, c, gap_speed, mu, z):
    """Defect of impulses z (3n,), computed from the unscaled problem; infinite if not finite or huge."""
    inertia, speed = _scales(Y, c, gap_speed)
    n, nu = gap_speed.shape[0], Y.shape[1]
    if not speed > REST:
        inertia, speed = 0.0, 1.0
    worst, largest = 0.0, 1.0
    u = np.zeros(nu)
    amount = inertia / speed
    for r in range(3 * n):
        if not abs(z[r]) * amount <= HUGE:
            return np.inf
        largest = max(largest, abs(z[r]) * amount)
        for k in range(nu):
            u[k] += Y[r, k] * z[r]
    for i in range(n):
        at = 3 * i
        normal, first, second = c[at] + gap_speed[i], c[at + 1], c[at + 2]
        for k in range(nu):
            normal += Y[at, k] * u[k]
            first += Y[at + 1, k] * u[k]
            second += Y[at + 2, k] * u[k]
        normal = amount * z[at] - normal / speed
        first = amount * z[at + 1] - first / speed
        second = amount * z[at + 2] - second / speed
        length = math.sqrt(first * first + second * second)
        share = min(1.0, mu[i] * normal / length) if length > 0.0 else 1.0
        if normal <= 0.0:
            normal, share = 0.0, 0.0
        worst = max(
            worst,
            abs(amount * z[at] - normal),
            abs(amount * z[at + 1] - share * first),
            abs(amount * z[at + 2] - share * second),
        )
        if not worst < np.inf:
            return np.inf
    return worst / largest


@kernel
def solve_law(Y, c, gap_speed, mu, budget, z):
    """Find impulses z (3n,) that satisfy Coulomb's law with complementarity; z in: first guess, zero for none.

    Args:
        Y (3n, nu), c (3n,) m/s, gap_speed (n,) m/s, mu (n,) finite: see ``Problem``.
        budget: see ``Budget``.

    Returns (SOLVED, PAUSED if the last start was out of patience, or NOT_SOLVED; Newton steps; defect). If it is
    not solved z is the best found, its defect infinite where z is huge.
    """
    n, nu = gap_speed.shape[0], Y.shape[1]
    inertia, speed = _scales(Y, c, gap_speed)
    if not (inertia > 0.0 and speed > REST):
        fill(z, 0.0)
        least = certify(Y, c, gap_speed, mu, z)
        return SOLVED if least <= TOLERANCE else NOT_SOLVED, 0, least
    size = 3 * n
    scaled, moved = np.empty((nu, size)), np.empty(size)
    best, work = np.empty(size), make_work(n, nu)
    room = Room(np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(n))
    unit, amount = 1.0 / math.sqrt(inertia), inertia / speed
    warm = False
    for i in range(n):
        for d in range(3):
            r, place = 3 * i + d, d * n + i
            for k in range(nu):
                scaled[k, place] = unit * Y[r, k]
            moved[place] = (c[r] + (gap_speed[i] if d == 0 else 0.0)) / speed
            best[place] = amount * z[r]
            warm = warm or z[r] != 0.0
    law = law_of(scaled, moved, mu)
    least, steps, paused = _search(law, budget, warm, best, room, work)
    largest = 0.0
    for i in range(n):
        for d in range(3):
            largest = max(largest, abs(best[d * n + i]))
            z[3 * i + d] = best[d * n + i] / amount
    if not largest <= HUGE:
        least = np.inf
    if least <= TOLERANCE:
        return SOLVED, steps, least
    return PAUSED if paused else NOT_SOLVED, steps, least


@bare_kernel
def first_start_steps(nu):
    """Most Newton steps of the first start with nu unknowns."""
    return max(START_STEPS, nu) if nu >= MANY else START_STEPS


@bare_kernel
def _search(law, budget, warm, best, room, work):
    """Run all starts; best (3n,) in and out. Returns (its defect, Newton steps, whether the last start paused)."""
    steps, nu, trial, paused = 0, work.u.shape[0], room.trial, False
    least = defect(law, best, work.F, work.y, work.image)
    if warm and budget.polish and least > TOLERANCE:
        least, steps = polish(law, best, TOLERANCE, budget.polish, work)
    for start in range(budget.first, budget.end):
        if start == 1 and budget.end >= STARTS and least > TOLERANCE:
            least, taken = _grow_friction(law, least, best, room, work)
            steps += taken
        if least <= TOLERANCE:
            break
        rho, growth, limit = RHO[start % STARTS], GROWTH[start % STARTS], START_STEPS
        if start == 0:
            limit = first_start_steps(nu)
        if start == 0 and nu >= MANY:
            rho, growth = MANY_RHO, MANY_GROWTH
        if start == 0 and budget.rho > 0.0:
            rho = budget.rho
        if start == 0 and warm and least < NEAR:
            assign(trial, best)
        else:
            fill(trial, 0.0)
        stages = Stages(rho, growth, limit, budget.patience)
        least, taken, paused = _descend(law, stages, least, best, room, work)
        steps += taken
    return least, steps, paused


@bare_kernel
def _descend(law, stages, least, best, room, work):
    """Run stages from room.trial on; best (3n,), whose defect is ``least``, in and out.

    Returns (its defect, steps, whether patience was exceeded).
    """
    trial, polished, steps, failures, idle = room.trial, room.polished, 0, 0, 0
    rho, limit = stages.rho, stages.limit
    motion(law, trial, work.u)
    while steps < limit and least > TOLERANCE and failures <= FAILURES:
        taken = stage(law, trial, rho, TOLERANCE, limit - steps, work)
        if taken < 0:
            steps -= taken
            failures += 1
            rho = max(RETREAT * rho, LEAST_RHO)
            motion(law, trial, work.u)
            continue
        steps += max(taken, 1)
        assign(trial, work.image)
        assign(polished, trial)
        found, more = polish(law, polished, TOLERANCE, POLISH, work)
        steps += more
        idle = 0 if found <= GAIN * least else idle + 1
        if found < least:
            least = found
            assign(best, polished)
        motion(law, trial, work.u)
        largest = 0.0
        for r in range(trial.shape[0]):
            largest = max(largest, abs(trial[r]))
        if not largest <= HUGE:
            break
        if idle >= stages.patience > 0 and least <= NEARLY:
            return least, steps, True
        if taken <= FEW:
            rho = min(LARGEST_RHO, stages.growth * rho)
    return least, steps, False


@bare_kernel
def _grow_friction(law, least, best, room, work):
    """Solve with friction of at most ``LITTLE``, then a little more, and so on, each from the last solution.

    As ``_descend``, but ``best`` changes only with the last. With little friction the law is nearly convex.
    """
    most, n, nu = 0.0, room.mu.shape[0], work.u.shape[0]
    for i in range(n):
        most = max(most, law.mu[i])
    if most <= LITTLE:
        return least, 0
    weaker = Law(law.Y, law.c, room.mu, law.starts, law.columns, law.blocks)
    rho, growth, limit = RHO[0], GROWTH[0], first_start_steps(nu)
    if nu >= MANY:
        rho, growth = MANY_RHO, MANY_GROWTH
    bound, reached, factor, steps, patience = LITTLE, 0.0, FRICTION_GROWTH, 0, FRICTION_STEPS
    if nu >= MANY:
        patience = max(patience, 20 * nu)
    fill(room.reached, 0.0)
    for _ in range(FRICTIONS):
        for i in range(n):
            room.mu[i] = min(law.mu[i], bound)
        assign(room.next, room.reached)
        found, taken = polish(weaker, room.next, TOLERANCE, WARM_POLISH, work)
        steps += taken
        if found > TOLERANCE:
            assign(room.trial, room.reached)
            stages = Stages(rho, growth, limit, 0)
            found, taken, _ = _descend(weaker, stages, found, room.next, room, work)
            steps += taken
        if found <= TOLERANCE:
            assign(room.reached, room.next)
            if bound >= most:
                assign(best, room.reached)
                return found, steps
            reached, rho = bound, LATE_RHO
            usual = LARGE_GROWTH if bound >= LARGE else FRICTION_GROWTH
            factor = min(usual, 1.0 + 1.5 * (factor - 1.0)) if bound < LARGE else usual
        else:
            if reached == 0.0 or steps > patience:
                break
            factor = 1.0 + 0.5 * (bound / reached - 1.0)
            if factor < LEAST_FRICTION_GROWTH:
                break
        bound = min(most, factor * reached)
    return least, steps


@kernel
def coulomb_cones(Y, c, gap_speed, mu, starts, z):
    """``solve_law`` for calls from Python; mu (n,) finite, z (3n,) in and out."""
    return solve_law(Y, c, gap_speed, mu, Budget(WARM_POLISH, 0, starts, 0.0, 0), z)
