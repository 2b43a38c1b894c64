"""Footholds optimised in the plane of their ground for the least momentum cost.

    min over d  J(d) + 1/2 w |d|^2        |d_e| <= within        two unknowns a foothold

J(d) is the cost of the momentum problem whose foothold e is moved by d_e along the x and y axes of
its ground. With footholds unknown the dynamics are bilinear in them and the forces; with forces
minimised out they leave a problem in few unknowns, whose gradient is that of the Lagrangian:

    dJ / dd_e = sum over intervals t with e in contact  (lambda_k[t + 1]) . dt |g| (axis x F_t)

lambda_k: multipliers of the angular momentum, F_t: the foot's force in units of the weight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic.contact_plan import (
    ContactPhase,
    ContactPlan,
    Foothold,
)
from contact_id_controller.planning.kinodynamic.feasibility import refuse_infeasible
from contact_id_controller.planning.kinodynamic.momentum import (
    MomentumPlan,
    multipliers,
    solve_unjudged,
)
from contact_id_controller.planning.kinodynamic.momentum_problem import MomentumProblem

UNCHANGED = 1e-5
"""The search ends where a step changes the cost by less, relative."""

MAX_SEARCHES = 40


@dataclasses.dataclass(frozen=True)
class FreedPlan:
    """Optimised footholds and the momentum plan over them.

    Attributes:
        plan: of the momentum; ``plan.problem.contact_plan`` has the footholds.
        moved_m: (E, 2) shift of each foothold but the first ones, in axes of its ground.
        solves: number of momentum problems solved.
    """

    plan: MomentumPlan
    moved_m: np.ndarray
    solves: int


def free_footholds(
    problem: MomentumProblem, within_m: float | Iterable[float], *, weight: float = 0.0
) -> FreedPlan:
    """Optimise the footholds of a problem, except those of its first phase.

    Args:
        problem: its reference is unchanged.
        within_m: bound of a foothold's shift along x and y of its ground, one number or two.
        weight: w, 1/m2, penalty of the shifts in units of the cost.

    Raises:
        ConfigurationError: bounds or a weight that are negative.
        InfeasiblePlanError: no motion follows the plan over the moved footholds.
        MomentumError: not solved.
    """
    bound = np.broadcast_to(np.asarray(within_m, dtype=float), (2,))
    if not (np.isfinite(bound) & (bound >= 0)).all() or not 0 <= weight < np.inf:
        raise ConfigurationError(
            f"within_m {within_m!r} and weight {weight!r} must be finite and not negative"
        )
    places = stays(problem.contact_plan)
    search = _Search(problem, places, weight)
    found = (
        minimize(
            search,
            np.zeros(2 * len(places)),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-limit, limit) for _ in places for limit in bound],
            options={"ftol": UNCHANGED, "maxiter": MAX_SEARCHES},
        )
        if places
        else None
    )
    moved = np.zeros((0, 2)) if found is None else found.x.reshape(-1, 2)
    plan = search.solve(moved)
    refuse_infeasible(plan)
    return FreedPlan(plan, moved, search.solves)


def stays(contact_plan: ContactPlan) -> list[tuple[str, int, int]]:
    """List the stances that begin after the first phase: (foot, first phase, last phase + 1)."""
    found, phases = [], contact_plan.phases
    for sole in contact_plan.soles:
        begin = None
        for number, phase in enumerate(phases):
            stands = phase.foothold_of(sole.frame) is not None
            if stands and begin is None:
                begin = number
            if begin is not None and (not stands or number == len(phases) - 1):
                found.append((sole.frame, begin, number + stands))
                begin = None
    return [stay for stay in found if stay[1] > 0]


def moved_plan(
    contact_plan: ContactPlan, places: list[tuple[str, int, int]], moved_m: np.ndarray
) -> ContactPlan:
    """The contact plan with the stances ``places`` shifted by ``moved_m`` (E, 2), m, in axes of their grounds."""
    phases = [dict(zip(phase.feet, phase.footholds)) for phase in contact_plan.phases]
    for (foot, begin, end), shift in zip(places, moved_m):
        for number in range(begin, end):
            phases[number][foot] = _moved(phases[number][foot], shift)
    return ContactPlan(
        contact_plan.soles,
        tuple(
            ContactPhase(phase.duration_s, tuple(footholds.values()))
            for phase, footholds in zip(contact_plan.phases, phases)
        ),
    )


def _moved(foothold: Foothold, shift: np.ndarray) -> Foothold:
    position = foothold.position + foothold.rotation[:, :2] @ shift
    return dataclasses.replace(foothold, position=position)


class _Search:
    """Cost and gradient as functions of the shifts; each solve is warm started by the last."""

    def __init__(self, problem: MomentumProblem, places: Any, weight: float) -> None:
        self.problem, self.places, self.weight = problem, places, weight
        self.solves = 0
        self.last: MomentumPlan | None = None

    def solve(self, shift: np.ndarray) -> MomentumPlan:
        """Solve with footholds shifted by ``shift`` from those of ``self.problem``, warm started from the last solve.

        shift (E, 2): m, along x and y of each foothold's ground. MomentumError if not converged; feasibility is not
        checked.
        """
        contact_plan = moved_plan(self.problem.contact_plan, self.places, shift)
        problem = dataclasses.replace(
            self.problem,
            contact_plan=contact_plan,
            contacts=contact_plan.sample(self.problem.knots),
        )
        self.solves += 1
        self.last = solve_unjudged(problem, warm_start=self.last)
        return self.last

    def __call__(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        shift = flat.reshape(-1, 2)
        plan = self.solve(shift)
        slope = foothold_slopes(plan, self.places) + self.weight * shift
        return plan.cost + 0.5 * self.weight * (shift**2).sum(), slope.ravel()


def foothold_slopes(plan: MomentumPlan, places: list[tuple[str, int, int]]) -> np.ndarray:
    """Derivative of the optimal cost by the shift of each stance, (E, 2), 1/m."""
    problem = plan.problem
    contacts, contact_plan = problem.contacts, problem.contact_plan
    of_spin = multipliers(plan)[1:, 6:] * contacts.time_step_s
    of_spin = of_spin * np.linalg.norm(problem.gravity)
    names = [sole.frame for sole in contact_plan.soles]
    slopes = np.zeros((len(places), 2))
    for row, (foot, begin, end) in enumerate(places):
        corners = contacts.sole_of_corner == names.index(foot)
        there = (begin <= contacts.phase) & (contacts.phase < end)
        force = plan.forces[there][:, corners].sum(1) / problem.weight_n
        foothold = contact_plan.phases[begin].foothold_of(foot)
        assert foothold is not None
        axes = foothold.rotation[:, :2].T
        for axis in range(2):
            slopes[row, axis] = (of_spin[there] * np.cross(axes[axis], force)).sum()
    return slopes
