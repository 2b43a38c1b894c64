"""cone: exact, stage II of coulomb/qp on the whole cone of sticking contacts."""

import numpy as np
import pytest
from clarabel_programs import by_clarabel
from robots import gliding_solo, random_contacts, solo12, standing_solo

from contact_id_controller import ContactSet, build_problem, solve
from contact_id_controller.exceptions import UnknownModelError
from contact_id_controller.models.steps.exact_law import FINE_TIE_BREAK
from experiments.benchmark.random_problems import random_problem
from experiments.projected.program import QcqpProgram

DT = 1e-3


@pytest.fixture(scope="module")
def robot():
    return solo12()


def planted(robot, mu):
    q, v, acceleration, contacts = gliding_solo(robot, 0.3, mu)
    return build_problem(robot, q, v, acceleration, contacts, DT), q, v


@pytest.mark.parametrize("mu", [0.15, 0.3, 0.6])
def test_sticking_contacts_agree_with_clarabel(robot, mu):
    problem, q, v = planted(robot, mu)
    exact, pyramid = solve(problem, cone="exact"), solve(problem)
    assert exact.status == "solved"
    np.testing.assert_allclose(exact.velocity, pyramid.velocity, atol=1e-8)
    assert exact.torques @ exact.torques <= pyramid.torques @ pyramid.torques * (1 + 1e-6)
    assert max(exact.residuals(q, v).values()) < 1e-6
    motion = problem.Y.T @ pyramid.impulses
    A = np.block([[np.eye(12), -DT * problem.T.T], [np.zeros((6, 12)), DT * problem.Y.T]])
    program = QcqpProgram(
        A,
        np.concatenate([problem.torque_offset, motion]),
        np.full(4, mu),
        1.0,
        force_weight=FINE_TIE_BREAK * np.square(DT * problem.T).sum() / 12,
    )
    judge = np.array(by_clarabel(program).x)[:12]
    assert exact.torques @ exact.torques == pytest.approx(judge @ judge, rel=1e-5)


def test_the_pyramid_is_what_costs_torque(robot):
    """Somewhere the exact cone must save something, or the option were idle."""
    problem, _, _ = planted(robot, 0.15)
    exact, pyramid = solve(problem, cone="exact").torques, solve(problem).torques
    fine = solve(problem, edges=64).torques
    assert exact @ exact < 0.999 * (pyramid @ pyramid)
    assert exact @ exact <= fine @ fine * (1 + 1e-6)
    assert fine @ fine < 1.01 * (exact @ exact)


def test_sliding_contacts_stay_on_their_edge(robot):
    q, contacts = standing_solo(robot, 0.1)
    v = np.zeros(robot.nv)
    v[0] = 1.0  # the whole robot slides forward
    problem = build_problem(robot, q, v, np.zeros(12), contacts, DT)
    exact, pyramid = solve(problem, cone="exact"), solve(problem)
    np.testing.assert_allclose(exact.velocity, pyramid.velocity, atol=1e-8)
    z = exact.impulses.reshape(-1, 3)
    np.testing.assert_allclose(np.abs(z[:, 1:]).sum(axis=1), 0.1 * z[:, 0], atol=1e-7 * z.max())
    assert exact.residuals()["cone_n"] < 1e-6


def test_motion_is_that_of_the_pyramid_on_random_contacts(robot):
    rng = np.random.default_rng(5)
    for number in range(20):
        case = random_problem(31, number)
        exact, pyramid = solve(case.problem, cone="exact"), solve(case.problem)
        assert exact.status == pyramid.status, case.description
        # Relative to what the contacts do to the motion, most of which may cancel.
        change = np.linalg.solve(case.problem.L.T, case.problem.Y.T @ pyramid.impulses)
        scale = max(np.abs(pyramid.velocity).max(), np.abs(change).max(initial=0.0))
        np.testing.assert_allclose(exact.velocity, pyramid.velocity, rtol=0, atol=1e-5 * scale)
        assert np.isfinite(exact.torques).all()
    q, _ = standing_solo(robot)
    contacts, _ = random_contacts(robot, q, ["FL_FOOT", "HR_FOOT"], rng, np.array([0.0, np.inf]))
    problem = build_problem(robot, q, np.zeros(robot.nv), np.zeros(12), contacts, DT)
    assert solve(problem, cone="exact").status == "solved"
    empty = build_problem(robot, q, np.zeros(robot.nv), np.zeros(12), ContactSet.empty(), DT)
    assert solve(empty, cone="exact").status == "solved"


@pytest.mark.parametrize(
    "options",
    [
        {"cone": "round"},
        {"cone": "exact", "distribution": "least_force"},
        {"cone": "exact", "polygon": "circumscribed"},
    ],
)
def test_impossible_options_are_refused(robot, options):
    with pytest.raises(UnknownModelError):
        solve(planted(robot, 0.6)[0], **options)
