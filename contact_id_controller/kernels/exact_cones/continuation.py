"""Coulomb's law on exact cones: proximal stages with growing rho, from several starts.

Nothing proves that this ends with a solution: the law is not monotone, may have several solutions or none.
A solution is certified by its defect, see ``coulomb.defect``. Measured: ``benchmarks/exact_cones.py``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.exact_cones.coulomb import Law, defect, motion
from contact_id_controller.kernels.exact_cones.newton import make_work, polish, stage

SOLVED, NOT_SOLVED = 0, 1

TOLERANCE = 1e-10  # accepted defect
RHO = (100.0, 1000.0, 1.0, 30.0, 1e4)  # of each start
GROWTH = (10.0, 10.0, 10.0, 3.0, 10.0)  # factor of rho after a stage that took few steps
STARTS = 5
START_STEPS = 120  # Newton steps that a start may take
FEW = 8
LARGEST_RHO, LEAST_RHO = 1e8, 1e-3
RETREAT = 0.2  # factor of rho after a stage that failed
FAILURES = 25  # failed stages after which a start is given up
WARM_POLISH, POLISH = 8, 6  # steps
NEAR = 0.1  # defect below which a first guess is where the first start begins
HUGE = 1e6  # impulses, in the problem's units, that only a contradiction asks for
REST = 1e-300  # velocities below this are none


class Budget(NamedTuple):
    """Starts to make, and the rho of the first; 0: the usual one."""

    starts: int
    rho: float


@bare_kernel
def _scales(Y, c, gap_speed):
    """Mean square length of Y's rows, and the largest velocity that the contacts have to undo."""
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
    """Defect of impulses z (3n,), measured from the problem as it stands; infinite for what is not finite or huge."""
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
    """Impulses z (3n,) that obey Coulomb's law with complementarity; in: the first guess, zero for none.

    Args:
        Y (3n, nu), c (3n,) m/s, gap_speed (n,) m/s, mu (n,) finite: see ``Problem``.
        budget: see ``Budget``.

    Returns (SOLVED or NOT_SOLVED, Newton steps, defect); of what is not solved z is the best found, its defect
    infinite where z is huge.
    """
    n, nu = gap_speed.shape[0], Y.shape[1]
    inertia, speed = _scales(Y, c, gap_speed)
    if not (inertia > 0.0 and speed > REST):
        fill(z, 0.0)
        least = certify(Y, c, gap_speed, mu, z)
        return SOLVED if least <= TOLERANCE else NOT_SOLVED, 0, least
    size = 3 * n
    law = Law(np.empty((nu, size)), np.empty(size), mu)
    best, trial, polished = np.empty(size), np.empty(size), np.empty(size)
    work = make_work(n, nu)
    unit, amount = 1.0 / math.sqrt(inertia), inertia / speed
    warm = False
    for i in range(n):
        for d in range(3):
            r, place = 3 * i + d, d * n + i
            for k in range(nu):
                law.Y[k, place] = unit * Y[r, k]
            law.c[place] = (c[r] + (gap_speed[i] if d == 0 else 0.0)) / speed
            best[place] = amount * z[r]
            warm = warm or z[r] != 0.0
    least, steps = _search(law, budget, warm, best, trial, polished, work)
    largest = 0.0
    for i in range(n):
        for d in range(3):
            largest = max(largest, abs(best[d * n + i]))
            z[3 * i + d] = best[d * n + i] / amount
    if not largest <= HUGE:
        least = np.inf
    return SOLVED if least <= TOLERANCE else NOT_SOLVED, steps, least


@bare_kernel
def _search(law, budget, warm, best, trial, polished, work):
    """All starts; best (3n,) in and out. Returns (its defect, Newton steps)."""
    steps = 0
    least = defect(law, best, work.F, work.y, work.image)
    if warm and least > TOLERANCE:
        least, steps = polish(law, best, TOLERANCE, WARM_POLISH, work)
    for start in range(budget.starts):
        if least <= TOLERANCE:
            break
        rho, growth, failures = RHO[start % STARTS], GROWTH[start % STARTS], 0
        if start == 0 and budget.rho > 0.0:
            rho = budget.rho
        limit = steps + START_STEPS
        if start == 0 and warm and least < NEAR:
            assign(trial, best)
            motion(law.Y, trial, work.u)
        else:
            fill(trial, 0.0)
            fill(work.u, 0.0)
        while steps < limit and least > TOLERANCE and failures <= FAILURES:
            taken = stage(law, trial, rho, TOLERANCE, limit - steps, work)
            if taken < 0:
                steps -= taken
                failures += 1
                rho = max(RETREAT * rho, LEAST_RHO)
                motion(law.Y, trial, work.u)
                continue
            steps += max(taken, 1)
            assign(trial, work.image)
            assign(polished, trial)
            found, more = polish(law, polished, TOLERANCE, POLISH, work)
            steps += more
            if found < least:
                least = found
                assign(best, polished)
            motion(law.Y, trial, work.u)
            largest = 0.0
            for r in range(trial.shape[0]):
                largest = max(largest, abs(trial[r]))
            if not largest <= HUGE:
                break
            if taken <= FEW:
                rho = min(LARGEST_RHO, growth * rho)
    return least, steps


@kernel
def coulomb_cones(Y, c, gap_speed, mu, starts, z):
    """``solve_law`` for who calls from Python; mu (n,) finite, z (3n,) in and out."""
    return solve_law(Y, c, gap_speed, mu, Budget(starts, 0.0), z)
