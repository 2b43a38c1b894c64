"""Infeasible contact plans: the phase, the foot, and the limit that is exceeded.

The momentum problem always has a solution, since forces only have to stay in their cones: a fall is a solution, too.
A plan is refused when the CoM is out of reach of a leg, or when CoM or angular momentum leave the reference by more
than a robot of that size can.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.planning.kinodynamic.momentum_problem import CONES

LARGEST_COM_ERROR = 0.25
"""Of the height: a centre of mass that is farther from its reference has fallen."""

RADIUS_OF_GYRATION = 0.35
"""Of the height, about the centre of mass: of a standing body, rather too small than too large."""

LARGEST_TURN_RAD = 1.0
"""A body that the error of angular momentum turns farther than this has tipped over."""

USED_UP = 0.98
"""Share of friction, or of the way from the sole's middle to its edge, beyond which it is used up."""


class InfeasiblePlanError(TrajectoryError):
    """No motion follows the contact plan; the message names phase, foot and the limit that is exceeded."""


def refuse_infeasible(plan: Any) -> None:
    """Raise if a momentum plan cannot be followed.

    Raises:
        InfeasiblePlanError: a leg out of reach, or a fall.
    """
    _refuse_out_of_reach(plan)
    _refuse_fallen(plan)


def _refuse_out_of_reach(plan: Any) -> None:
    """InfeasiblePlanError where the CoM is further from a standing foot than its leg reaches."""
    contact_plan, phase_of = plan.problem.contact_plan, plan.problem.contacts.phase
    for number, phase in enumerate(contact_plan.phases):
        intervals = np.flatnonzero(phase_of == number)
        com = plan.com[intervals[0] : intervals[-1] + 2]
        for foothold in phase.footholds:
            reach = contact_plan.sole_of(foothold.foot).reach_m
            away = np.linalg.norm(com - foothold.position, axis=1).max()
            if reach is not None and away > reach:
                raise InfeasiblePlanError(
                    f"phase {number}, foot {foothold.foot}: CoM {away:.3g} m from the foothold, "
                    f"reach {reach:.3g} m"
                )


def _refuse_fallen(plan: Any) -> None:
    """Raise InfeasiblePlanError if the solved motion leaves its reference so far that the robot would fall.

    Checked are the CoM's distance, m, and the integrated error of angular momentum as a rotation, rad, at
    the inertia of the whole robot (mass times radius of gyration squared).
    """
    problem, reference = plan.problem, plan.problem.reference
    height, dt = problem.height_m, problem.contacts.time_step_s
    com = np.linalg.norm(plan.com - reference.com, axis=1)
    spin = plan.angular_momentum - reference.angular_momentum
    inertia = problem.mass_kg * (RADIUS_OF_GYRATION * height) ** 2
    turn = np.linalg.norm(np.cumsum(spin, axis=0) * dt / inertia, axis=1)
    most_com = LARGEST_COM_ERROR * height
    fallen = (com > most_com) | (turn > LARGEST_TURN_RAD)
    if not fallen.any():
        return
    knot = int(np.argmax(fallen))
    if com[knot] > most_com:
        what = f"the CoM leaves its reference by {com[knot]:.2g} m (at most {most_com:.2g})"
    else:
        what = (
            f"the error of angular momentum turns the body by {turn[knot]:.2g} rad "
            f"(at most {LARGEST_TURN_RAD:g})"
        )
    number = int(problem.contacts.phase[max(0, knot - 1)])
    foot, missing = _missing(plan, number)
    raise InfeasiblePlanError(
        f"phase {number}, {foot}: {what} at {plan.times_s[knot]:.3g} s; {missing}"
    )


def _missing(plan: Any, number: int) -> tuple[str, str]:
    """The foot of a phase nearest to its friction or centre-of-pressure limit, and a message about that limit."""
    problem = plan.problem
    feet = problem.contact_plan.phases[number].feet
    if not feet:
        duration = problem.contact_plan.phases[number].duration_s
        return "no foot", f"support is missing: no foot stands for {duration:.3g} s"
    intervals = problem.contacts.phase == number
    usages = []
    for foot in feet:
        friction, coefficient = _friction_used(plan, intervals, foot)
        pressure = _sole_used(plan, intervals, foot)
        usages += [
            (
                friction,
                foot,
                f"friction is missing: coefficient {coefficient:.3g}, {friction:.0%} used",
            ),
            (
                pressure,
                foot,
                f"support is missing: the centre of pressure is {pressure:.0%} of the way from the "
                f"sole's middle to its edge",
            ),
        ]
    used, foot, missing = max(usages, key=lambda usage: usage[0])
    if used < USED_UP:
        return f"foot {foot}", "the reference asks for more than the weights let it have"
    return f"foot {foot}", missing


def _corners_of(plan: Any, foot: str) -> np.ndarray:
    problem = plan.problem
    index = [sole.frame for sole in problem.contact_plan.soles].index(foot)
    return problem.contacts.sole_of_corner == index


def _friction_used(plan: Any, intervals: np.ndarray, foot: str) -> tuple[float, float]:
    """Largest share of the planned friction that the foot uses in these intervals, and the friction coefficient."""
    corners = _corners_of(plan, foot)
    local = plan.local_forces()[intervals][:, corners].sum(1)
    coefficient = float(plan.problem.contacts.friction[intervals][:, corners].max())
    share = CONES[plan.problem.cone]
    tangential = np.abs(local[:, :2]).max(1) if share < 1 else np.linalg.norm(local[:, :2], axis=1)
    limit = share * coefficient * local[:, 2]
    loaded = local[:, 2] > 1e-3 * plan.problem.weight_n
    used = np.divide(tangential, limit, out=np.ones_like(limit), where=limit > 0)
    return float(used[loaded].max(initial=0.0)), coefficient


def _sole_used(plan: Any, intervals: np.ndarray, foot: str) -> float:
    """Largest distance of the centre of pressure from the sole's middle, relative to the planned edge.

    0 for a point.
    """
    problem, corners = plan.problem, _corners_of(plan, foot)
    normal = plan.local_forces()[intervals][:, corners, 2]
    corner = problem.contact_plan.sole_of(foot).corners
    half = np.abs(corner - corner.mean(0))[:, :2].max(0)
    loaded = normal.sum(1) > 1e-3 * problem.weight_n
    if not loaded.any() or not half.any():
        return 0.0
    centre = normal[loaded] @ (corner - corner.mean(0))[:, :2] / normal[loaded].sum(1)[:, None]
    return float(np.abs(centre[:, half > 0] / half[half > 0]).max())
