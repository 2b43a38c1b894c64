"""Random problems that once failed, one or two of each cause; see ``benchmark.random_problems``."""

import numpy as np
import pytest

from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.models import ROWS, options, solve
from contact_id_controller.solution import RELAXED
from experiments.benchmark.random_problems import random_problem
from experiments.benchmark.robustness import (
    IMPOSSIBLE,
    SOLVED,
    TOLERANCE,
    attempt,
    contradictory,
    usable,
)

COULOMB_QP, COULOMB_ONE, COULOMB_LCP = (
    ("coulomb", "qp"),
    ("coulomb", "qp_one_stage"),
    ("coulomb", "lcp"),
)
NO_SLIP_QP, NO_SLIP_ONE, NO_SLIP_LCP = (
    ("no_slip", "qp"),
    ("no_slip", "qp_one_stage"),
    ("no_slip", "lcp"),
)
VISCOUS = ("viscous", "lcp")

FAILED = {
    "Newton's line search ended by rounding": [
        (COULOMB_ONE, 1, 478),
        (COULOMB_ONE, 1, 1356),
        (NO_SLIP_ONE, 1, 615),
        (COULOMB_QP, 1, 86),
    ],
    "rounding of a large gap taken for the gradient's": [(COULOMB_ONE, 8, 6118)],
    "near-dependent contacts with enormous forces": [
        (COULOMB_QP, 1, 508),
        (COULOMB_QP, 1, 1464),
        (NO_SLIP_QP, 1, 727),
        (VISCOUS, 1, 1935),
    ],
    "near-dependent contacts with enormous motions": [(COULOMB_QP, 1, 3871)],
    "large forces excused a wrong motion": [(NO_SLIP_QP, 8, 7892), (COULOMB_LCP, 8, 304)],
    "a large friction coefficient set the tolerance of all": [(COULOMB_QP, 8, 8283)],
    "a far gap set the tolerance of all": [(COULOMB_QP, 1, 130), (COULOMB_LCP, 1, 1929)],
    "eased velocities inexact beside a fast plan": [(NO_SLIP_LCP, 1, 3436)],
    "load for a contact that holds without": [(NO_SLIP_LCP, 1, 1548), (NO_SLIP_LCP, 1, 1616)],
    "no unactuated coordinate": [
        (COULOMB_QP, 1, 228),
        (COULOMB_LCP, 1, 359),
        (COULOMB_LCP, 7, 7593),
    ],
    "contacts without levers": [(COULOMB_LCP, 7, 10578)],
    "Lemke on a ray or inaccurate": [
        (COULOMB_LCP, 1, 594),
        (COULOMB_LCP, 1, 1242),
        (COULOMB_LCP, 8, 12493),
    ],
    "edge forces that cancel": [(COULOMB_LCP, 7, 3692), (COULOMB_LCP, 1, 2715)],
    "velocities of rounding alone": [(COULOMB_LCP, 7, 9987), (COULOMB_QP, 8, 6118)],
}


@pytest.mark.parametrize("cause", FAILED)
def test_once_failed_now_solved(cause):
    for pair, seed, number in FAILED[cause]:
        trial = attempt(*pair, random_problem(seed, number), dynamics=True)
        lawful = trial.outcome in (SOLVED, RELAXED) and trial.violation <= TOLERANCE
        assert lawful, (pair, seed, number, trial)


@pytest.mark.parametrize("pair, seed, number", [(NO_SLIP_LCP, 8, 1398), (NO_SLIP_LCP, 8, 6499)])
def test_contradictions_are_certified_and_have_soft_forces(pair, seed, number):
    case = random_problem(seed, number)
    assert attempt(*pair, case, dynamics=True).outcome == IMPOSSIBLE
    known = {"edges": case.edges, "polygon": case.polygon, "distribution": case.distribution}
    solution = solve(case.problem, *pair, **{k: v for k, v in known.items() if k in options(*pair)})
    assert usable(ROWS[pair], solution, case) and contradictory(ROWS[pair], solution, case)
    # The fallback answers the plan that was certified, and its motion obeys the dynamics.
    plan = case.problem.c - case.problem.period * (case.problem.T @ solution.joint_velocity_change)
    assert np.abs(plan - solution.attainable).max() > 0.0
    # Its forces are of the size that stops a contact, not larger by the contradiction's condition.
    inertia = np.square(case.problem.Y).sum() / max(len(plan), 1) or 1.0
    demand = np.abs(plan).max() + max(-case.problem.gap_speed.min(), 0.0)
    assert np.abs(solution.impulses).max() <= 2.0 * demand / inertia


def test_a_certificate_is_not_given_to_what_can_be_solved():
    for number in range(40):
        case = random_problem(3, number)
        # What slides may have a solution by complementarity though the convex program, of which the proof is, has none.
        known = {"edges": case.edges, "polygon": case.polygon, "sliding": "parting"}
        solution = solve(case.problem, *COULOMB_QP, **known)
        if (
            solution.status == SOLVED
            and np.abs(solution.contradiction_m_s) == 0.0
            and len(case.problem)
        ):
            assert not contradictory(ROWS[COULOMB_QP], solution, case)


def way_given(solution):
    """Largest contact velocity that the changed plan asks for and that no motion gives; and that the plan asked for."""
    problem = solution.problem
    plan = problem.c - problem.period * (problem.T @ solution.joint_velocity_change)
    gap, c = problem.gap_speed, problem.c.copy()
    c[::3] += np.minimum(gap, 0.0)
    touches = gap <= TOUCHING_SPEED
    touching = np.abs(c.reshape(-1, 3)[touches]).max(initial=0.0)
    closing = -(problem.c[::3] + gap)[~touches].min(initial=0.0)
    return np.abs(solution.attainable - plan).max(), max(touching, closing)


@pytest.mark.parametrize(
    "pair, numbers",
    [
        (("coulomb", "qp"), (72, 112, 139)),
        (("no_slip", "qp"), (0, 39, 72, 87)),
        (("no_slip", "lcp"), (28, 39, 87, 108)),
    ],
)
def test_contacts_that_give_way_are_not_called_solved(pair, numbers):
    """Today's velocity is up to a thousand times what a slow contact takes away of it in a period."""
    for number in numbers:
        solution = solve(random_problem(4321, number).problem, *pair)
        size, asked = way_given(solution)
        assert size > 0.05 * asked and solution.status == RELAXED
        assert solution.residuals()["given_way_m_s"] == size
        assert solution.contradiction_m_s > 0.0


@pytest.mark.parametrize("pair", [("coulomb", "qp"), ("no_slip", "qp"), ("no_slip", "lcp")])
def test_what_is_called_solved_gives_what_was_asked_for(pair):
    seen = 0
    for number in range(60):
        problem = random_problem(4321, number).problem
        solution = solve(problem, *pair) if len(problem) else None
        if solution is not None and solution.status == SOLVED:
            size, asked = way_given(solution)
            assert size <= 0.05 * asked + 1e-12, number
            seen += 1
    assert seen > 40
