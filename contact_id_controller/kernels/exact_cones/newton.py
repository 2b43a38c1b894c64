"""Newton's method on Coulomb's law: one proximal stage in nu unknowns, and the polish of impulses.

A stage keeps impulses z_k and rho and solves, in the motion u alone,

    F(u) = u - Y AC(z_k - rho (Y^T u + c)) = 0        F'(u) = I + rho Y D Y^T

which is the exact law of w + (z_{k+1} - z_k) / rho: redundant contacts do no harm, and a stage that
no longer changes z solves the law itself. F' is not symmetric where contacts slide, and F no gradient there, so
there is no merit function that must fall: the step rule prefers |F|, then the slope of F along the step.

The polish is Newton's method on z - AC(z - w), each contact's 3x3 block eliminated; the
residual is computed from z each time, so that rounding errors are removed too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel, inlined_kernel
from contact_id_controller.kernels.dense import lu_factor, lu_solve
from contact_id_controller.kernels.exact_cones.coulomb import (
    defect,
    derivative,
    eliminated,
    respond,
)
from contact_id_controller.kernels.exact_cones.linear import (
    COEFFICIENTS,
    apply,
    assemble,
    motion,
    velocities,
)
from contact_id_controller.kernels.inlined import bare_inlined

STAGE_STEPS = 30
FALLS = 1e-4  # least relative decrease of |F|^2 that takes a full step
FLAT = 0.1  # a slope is flat below this share of the one at the start
GROWTH = 100.0  # |F|^2 may grow by this factor where the slope along the step is flat
INWARD = 0.05  # share of a bracket kept away from its ends
TRIALS, HALVINGS = 20, 12
ROUNDING = 1e-14  # of F, relative to u and rho
CLOSER = 1e-2  # accuracy of a stage, relative to that of the whole

SHRINK = 1e-10  # q = 1 - SHRINK in the polish's blocks
WORTHWHILE, PATIENCE = 0.5, 3  # the polish ends after so many steps that gain less


class Work(NamedTuple):
    """Workspace of the methods, see ``make_work``.

    u, step, trial, F, F_trial (nu,); A (nu, nu); order (nu,) int64; V (nu, 3n); C (6, n); y, image, g, best (3n,).
    """

    u: np.ndarray
    step: np.ndarray
    trial: np.ndarray
    F: np.ndarray
    F_trial: np.ndarray
    A: np.ndarray
    order: np.ndarray
    V: np.ndarray
    C: np.ndarray
    y: np.ndarray
    image: np.ndarray
    g: np.ndarray
    best: np.ndarray


@inlined_kernel
def make_work(n, nu):
    """Allocate workspace for n contacts and nu unknowns."""
    size = 3 * n
    return Work(
        u=np.empty(nu),
        step=np.empty(nu),
        trial=np.empty(nu),
        F=np.empty(nu),
        F_trial=np.empty(nu),
        A=np.empty((nu, nu)),
        order=np.empty(nu, np.int64),
        V=np.empty((nu, size)),
        C=np.empty((COEFFICIENTS, n)),
        y=np.empty(size),
        image=np.empty(size),
        g=np.empty(size),
        best=np.empty(size),
    )


@bare_kernel
def _balance(law, z, rho, u, y, image, F):
    """Write F (nu,) at u, with y = z - rho w and image = AC(y); returns |F|^2."""
    velocities(law, law.c, u, y)
    for r in range(y.shape[0]):
        y[r] = z[r] - rho * y[r]
    respond(law.mu, y, image)
    motion(law, image, F)
    total = 0.0
    for k in range(u.shape[0]):
        F[k] = u[k] - F[k]
        total += F[k] * F[k]
    return total


@bare_kernel
def stage(law, z, rho, tolerance, limit, work):
    """Solve one stage from work.u, which becomes its motion; work.image (3n,) are its impulses.

    z (3n,): impulses of the stage before; tolerance: of F; limit: Newton steps. Returns Newton steps, negative (and one
    more) on failure.
    """
    u, y, image, F = work.u, work.y, work.image, work.F
    square = _balance(law, z, rho, u, y, image, F)
    for steps in range(min(limit, STAGE_STEPS) + 1):
        size = 1.0
        for k in range(u.shape[0]):
            size = max(size, abs(u[k]))
        if math.sqrt(square) <= max(CLOSER * tolerance, ROUNDING * max(1.0, rho)) * size:
            return steps
        if steps == min(limit, STAGE_STEPS):
            break
        derivative(law.mu, y, rho, work.C)
        assemble(law, work.C, work.V, work.A)
        for k in range(u.shape[0]):
            work.step[k] = -F[k]
        if not lu_factor(work.A, u.shape[0], 0.0, work.order):
            return -steps - 1
        lu_solve(work.A, u.shape[0], work.order, work.step)
        square = _advance(law, z, rho, square, work)
        if not square < np.inf:
            return -steps - 1
    return -min(limit, STAGE_STEPS) - 1


@bare_inlined
def _advance(law, z, rho, square, work):
    """Move work.u along work.step as far as the step rule allows; returns |F|^2 there, infinite for no step."""
    u, step, trial, F, F_trial = work.u, work.step, work.trial, work.F, work.F_trial
    nu = u.shape[0]
    share, low, high, start, slope, low_slope, high_slope = 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0
    accepted, reached = False, 0.0
    for attempt in range(TRIALS + 1):
        for k in range(nu):
            trial[k] = u[k] + share * step[k]
        reached = _balance(law, z, rho, trial, work.y, work.image, F_trial)
        slope = 0.0
        for k in range(nu):
            slope += F_trial[k] * step[k]
        if attempt == 0:
            for k in range(nu):
                start += F[k] * step[k]
            low_slope, high_slope = start, slope
            accepted = reached <= (1.0 - FALLS) * square or (
                start < 0.0 and slope <= FLAT * abs(start) and reached <= GROWTH * square
            )
        elif start < 0.0:
            accepted = (
                abs(slope) <= -FLAT * start or reached <= 0.5 * (1.0 - FALLS * share) * square
            )
        else:
            accepted = reached <= (1.0 - FALLS * share) * square
        if accepted or (start >= 0.0 and attempt == HALVINGS):
            break
        if start >= 0.0:
            share *= 0.5
            continue
        if attempt > 0:
            if slope > 0.0:
                high, high_slope = share, slope
            else:
                low, low_slope = share, slope
        width = high - low
        share = 0.5 * (low + high)
        if high_slope > low_slope:
            share = low - low_slope * width / (high_slope - low_slope)
        share = min(max(share, low + INWARD * width), high - INWARD * width)
    if not accepted and start >= 0.0:
        return np.inf
    for k in range(nu):
        u[k], F[k] = trial[k], F_trial[k]
    return reached


@bare_kernel
def polish(law, z, tolerance, limit, work):
    """Newton's method on z - AC(z - w) from z (3n,), which becomes the best iterate.

    Returns (its defect, steps).
    """
    best, step, y, image, g = work.best, work.trial, work.y, work.image, work.g
    least = defect(law, z, work.F, y, image)
    for r in range(z.shape[0]):
        best[r] = z[r]
    idle, steps = 0, 0
    while least > tolerance and steps < limit and idle < PATIENCE:
        for r in range(z.shape[0]):
            image[r] = z[r] - image[r]
        eliminated(law.mu, y, image, SHRINK, work.C, g)
        assemble(law, work.C, work.V, work.A)
        motion(law, g, step)
        for k in range(step.shape[0]):
            step[k] = -step[k]
        steps += 1
        if not lu_factor(work.A, step.shape[0], 0.0, work.order):
            break
        lu_solve(work.A, step.shape[0], work.order, step)
        for r in range(z.shape[0]):
            image[r] = 0.0
        velocities(law, image, step, y)
        apply(work.C, y, image)
        for r in range(z.shape[0]):
            z[r] -= g[r] + image[r]
        found = defect(law, z, work.F, y, image)
        if not found < np.inf:
            break
        if not found <= WORTHWHILE * least:
            idle += 1
        if found < least:
            least = found
            for r in range(z.shape[0]):
                best[r] = z[r]
    for r in range(z.shape[0]):
        z[r] = best[r]
    return least, steps
