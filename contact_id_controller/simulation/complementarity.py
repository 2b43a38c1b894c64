"""Complementarity for contact models that give it up, by solving them a few times a step.

A complementarity-free model asks w_N + gap speed >= mu lambda of a contact that slips at lambda.  In a
time stepper that throws a body which begins to slide: its first step lifts it by mu lambda dt, and the
velocity mu lambda stays.  Let every contact close by s more than its gap allows, and with

    s = mu lambda(s)

the model's law becomes 0 <= f_N perp w_N + gap speed >= 0, Coulomb's.  Each solve is convex as before.

Source: De Saxce and Feng (1998) for the change of variable; Cadoux (2009) and Acary, Cadoux,
Lemarechal and Malick (2011) for the fixed point.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from contact_id_controller.forward import ForwardProblem
from contact_id_controller.solution import SOLVED, Solution

AGREEMENT_M_S = 1e-6
"""Change of s at which the fixed point is reached: what contacts may part or close by mistake."""

MOST_SOLVES = 40
LARGEST_STEP = 10.0  # of the relaxation, which is 1 for plain iteration


def solve_with_complementarity(
    problem: ForwardProblem,
    solve: Callable[[ForwardProblem], Solution],
    corners: np.ndarray,
    directions: np.ndarray | None,
) -> tuple[Solution, bool]:
    """The solution of a complementarity-free model whose sliding contacts do not part.

    The fixed point is looked for from today's slip, by Aitken's relaxation; each contact's map is
    monotone, and for a point of mass it contracts by mu^2 / (1 + mu^2).

    Args:
        problem: its gap speeds are those of the true gaps.
        solve: the model.
        corners: (n,) friction force per normal force at the polygon's corners, or of the cone.
        directions: (k, 2) unit edges of the friction polygon; None: the cone is exact.

    Returns:
        The solution, of ``problem``, and whether the fixed point was reached; where it was not, the
        model's own solution.
    """
    corners = np.where(np.isfinite(corners), corners, 0.0)  # what never slips never glides
    allowed = corners * _slip(problem.speed.reshape(-1, 3), directions)
    relaxation, before = 1.0, None
    for _ in range(MOST_SOLVES):
        solution = solve(_widened(problem, allowed))
        miss = corners * _slip(solution.contact_velocity, directions) - allowed
        if solution.status != SOLVED:
            break
        if np.abs(miss).max(initial=0.0) <= AGREEMENT_M_S:
            return _of(solution, problem), True
        if before is not None:
            change = miss - before
            relaxation *= -(before @ change) / (change @ change)
            relaxation = min(relaxation, LARGEST_STEP) if relaxation > 0.0 else 1.0
        allowed, before = np.maximum(allowed + relaxation * miss, 0.0), miss
    return solve(problem), False


def _slip(velocity: np.ndarray, directions: np.ndarray | None) -> np.ndarray:
    """lambda (n,) of contact velocities (n, 3): slip speed, for a polygon along its edges."""
    if directions is None:
        return np.hypot(velocity[:, 1], velocity[:, 2])
    return np.maximum(-(velocity[:, 1:] @ directions.T).min(axis=1), 0.0)


def _widened(problem: ForwardProblem, allowed: np.ndarray) -> ForwardProblem:
    widened = copy.copy(problem)
    object.__setattr__(widened, "store", problem.store.copy())
    widened.gap_speed[:] += allowed
    return widened


def _of(solution: Solution, problem: ForwardProblem) -> Solution:
    """The solution as one of the problem with the true gaps."""
    moved = copy.copy(solution)
    object.__setattr__(moved, "problem", problem)
    return moved
