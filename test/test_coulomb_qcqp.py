"""coulomb/qcqp: contacts hold with forces in exact cones, torques within limits, least power."""

import sys
from functools import partial

import numpy as np
import pytest
from clarabel_programs import by_clarabel, relaxed_by_clarabel
from paths import ROOT
from robots import (
    SOLO12,
    SOLO_FEET,
    frame_positions,
    gliding_solo,
    random_state,
    solo12,
    standing_solo,
)

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION, effective_friction
from contact_id_controller.solution import STATUSES
from experiments.benchmark.random_problems import random_problem

sys.path.insert(0, str(ROOT / "benchmarks"))

from qcqp import reduced_program

DT = 1e-3


@pytest.fixture(scope="module")
def robot():
    return solo12()


def gliding(robot, mu=0.6, acceleration=0.0, contacts=None):
    """Feet planted, body moving and accelerating forward: problem, q, v."""
    q, v, joints, planted = gliding_solo(robot, 0.3, mu)
    problem = build_problem(robot, q, v, joints, planted, DT)
    if acceleration:
        # Joint accelerations that move the body forward with the feet where they are.
        legs = -DT * problem.T.T
        pull = np.linalg.lstsq(legs.T, problem.Y @ problem.L.T[:, 0] * acceleration, rcond=None)[0]
        joints = joints - pull
    return build_problem(robot, q, v, joints, planted if contacts is None else contacts, DT), q, v


def test_standing_robot_satisfies_everything_and_agrees_with_clarabel(robot):
    for limit in (0.5, 0.6, 3.0):
        problem, q, v = gliding(robot)
        solution = solve(problem, "coulomb", "qcqp", torque_limits=limit)
        assert solution.status == "solved"
        assert max(solution.residuals(q, v).values()) < 1e-8
        assert np.abs(solution.contact_velocity).max() < 1e-10
        assert np.abs(solution.torques).max() <= limit
        assert np.all(solution.disturbance == 0.0)
        judge = by_clarabel(reduced_program(problem, limit))
        torques = np.array(judge.x)[:12]
        assert abs(solution.certificate.objective / (torques @ torques) - 1.0) < 1e-6
        assert solution.certificate.gap < 1e-7 and solution.certificate.residual < 1e-7


def test_weights_are_the_motors_loss(robot):
    problem, _, _ = gliding(robot)
    weights = np.tile([1.0, 1.0, 50.0], 4)
    plain = solve(problem, "coulomb", "qcqp").torques
    saving = solve(problem, "coulomb", "qcqp", weights=weights)
    assert saving.certificate.objective == pytest.approx(weights @ saving.torques**2)
    assert weights @ saving.torques**2 < 0.999 * (weights @ plain**2)
    assert saving.torques @ saving.torques >= plain @ plain


def test_exact_cone_needs_no_more_than_the_pyramid_inside_it(robot):
    for mu in (0.2, 0.4):
        problem, _, _ = gliding(robot, mu)
        exact, pyramid = solve(problem, "coulomb", "qcqp"), solve(problem, "coulomb", "qp")
        assert exact.status == pyramid.status == "solved"
        assert exact.torques @ exact.torques <= (pyramid.torques @ pyramid.torques) * (1 + 1e-6)


def test_plan_beyond_friction_degrades_tracking_not_contact(robot):
    """Pulled forward harder than friction allows, the body accelerates less; nothing slips."""
    fine, _, _ = gliding(robot, 0.3, acceleration=1.0)
    assert solve(fine, "coulomb", "qcqp").status == "solved"
    problem, q, v = gliding(robot, 0.3, acceleration=8.0)
    solution = solve(problem, "coulomb", "qcqp")
    assert solution.status == "relaxed"
    assert np.abs(solution.disturbance).max() > 1.0
    residuals = solution.residuals(q, v)
    assert residuals["cone_n"] < 1e-9 and residuals["dynamics"] < 1e-6
    assert np.abs(solution.contact_velocity).max() < 1e-7
    used = np.hypot(*solution.impulses.reshape(-1, 3)[:, 1:].T).sum() / solution.impulses[::3].sum()
    assert used > 0.29  # at the limit of friction
    np.testing.assert_allclose(solution.joint_velocity_change, DT * solution.disturbance, atol=1e-9)


def test_torque_limits_below_the_weight_are_kept(robot):
    problem, q, v = gliding(robot)
    for limit in (0.3, 0.1):
        solution = solve(problem, "coulomb", "qcqp", torque_limits=limit)
        assert solution.status == "relaxed"
        assert np.abs(solution.torques).max() <= limit
        assert np.abs(solution.contact_velocity).max() < 1e-6
        assert solution.residuals(q, v)["dynamics"] < 1e-6


def test_a_higher_price_disturbs_less(robot):
    problem, _, _ = gliding(robot, 0.3, acceleration=8.0)
    sizes = [
        np.linalg.norm(solve(problem, "coulomb", "qcqp", rho=rho).disturbance)
        for rho in (1e-2, 1.0, 1e4)
    ]
    assert sizes[0] >= sizes[1] >= sizes[2] > 0.0


def pitching(robot, mu):
    """A standing Solo12 whose plan bends one leg: tight torque limits make the active set change."""
    q, contacts = standing_solo(robot, mu)
    joints = np.zeros(12)
    joints[1] = 30.0
    return build_problem(robot, q, np.zeros(robot.nv), joints, contacts, DT)


@pytest.mark.parametrize("mu", [10.0, 999.0, 1e3, 1e7, 1e9, 1e300])
def test_large_friction_is_that_of_no_slip(robot, mu):
    """People write 1e9 for "no slip"; the price that makes forces unique must not grow with it."""
    compared = 0
    for seed in range(-1, 12):
        make = pitching if seed < 0 else partial(random_state_problem, seed=seed)
        for limit in (0.5, 3.0, np.inf):
            ours = solve(make(robot, mu=mu), "coulomb", "qcqp", torque_limits=limit)
            sticking = solve(make(robot, mu=np.inf), "coulomb", "qcqp", torque_limits=limit)
            normal, *tangents = sticking.forces.reshape(-1, 3)[:, [2, 0, 1]].T
            if mu < UNBOUNDED_FRICTION and np.any(np.hypot(*tangents) > 0.9 * mu * normal):
                assert seed >= 0  # a random motion may need more friction than this
                continue
            compared += 1
            assert ours.status == sticking.status
            for mine, other in ((ours.torques, sticking.torques), (ours.forces, sticking.forces)):
                size = np.abs(other).max(initial=0.0)
                np.testing.assert_allclose(mine, other, atol=1e-4 * size)
    assert compared >= 20


@pytest.mark.parametrize("mu", [1e-300, 1e-13, 1e-11, 1e-6])
def test_almost_no_friction_carries_what_needs_none(robot, mu):
    q, contacts = standing_solo(robot, mu)
    problem = build_problem(robot, q, np.zeros(robot.nv), np.zeros(12), contacts, DT)
    solution = solve(problem, "coulomb", "qcqp")
    assert solution.status == "solved"
    assert solution.forces[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6)


def random_state_problem(robot, seed, mu, feet=SOLO_FEET):
    """A robot in a random posture, its feet on level ground, moving at random."""
    rng = np.random.default_rng(seed)
    q, v = random_state(robot, rng)
    v *= rng.choice([0.0, 0.01, 0.1, 1.0])
    joints = rng.normal(size=robot.na) * rng.choice([0.1, 3.0])
    feet = feet[: rng.integers(1, len(feet) + 1)]
    normals = np.tile([0.0, 0.0, 1.0], (len(feet), 1))
    contacts = ContactSet(frame_positions(robot, q, feet), normals, feet, mu)
    constant = rng.choice([DT, 0.05])
    return build_problem(robot, q, v, joints, contacts, DT, contact_time_constant_s=constant)


GO2 = (
    "example-robot-data://go2_description/urdf/go2.urdf",
    ["FL_foot", "FR_foot", "RL_foot", "RR_foot"],
)


@pytest.mark.parametrize("description, feet", [(SOLO12, SOLO_FEET), GO2], ids=["solo12", "go2"])
def test_without_torque_limits_the_answer_is_still_the_optimum(description, feet):
    """Random states, stopped within a period or 50 ms: up to 1e5 rad/s2 where a plan asks for 6.

    That is the least disturbance: Clarabel, in units of that size, finds the same.
    """
    robot, judged, largest = RobotModel.from_urdf(description), 0, 0.0
    for seed in range(32):
        for mu in (0.0, 0.1, 0.6, np.inf):
            problem = random_state_problem(robot, seed, mu, feet=feet)
            solution = solve(problem, "coulomb", "qcqp", torque_limits=np.inf)
            assert solution.status in ("solved", "relaxed"), (seed, mu)
            status, best, cost, d = relaxed_by_clarabel(problem, solution)
            if "Solved" in status:
                judged += 1
                assert cost == pytest.approx(best, rel=1e-4, abs=1e-9), (seed, mu, status)
                largest = max(largest, d)
    assert judged >= 124 and largest > 1e4


def test_without_friction_only_the_normal_is_held(robot):
    """On ice a foot that the plan moves sideways slides, one that it pushes down or lifts does not move so."""
    for seed in range(20):
        problem = random_state_problem(robot, seed, 0.0)
        solution = solve(problem, "coulomb", "qcqp", torque_limits=np.inf)
        assert solution.status in ("solved", "relaxed")
        normal = solution.contact_velocity.reshape(-1, 3)[:, 0]
        speed = np.abs(problem.c).max()
        held = normal <= 1e-6 * speed
        assert np.all(solution.impulses.reshape(-1, 3)[:, 1:] == 0.0)
        assert np.all(solution.impulses.reshape(-1, 3)[~held] == 0.0)
        assert np.abs(normal[held]).max(initial=0.0) <= 1e-6 * speed
    q, v, joints, contacts = gliding_solo(robot, 0.3, 0.0)
    joints[[0, 3]] += 20.0  # two legs abduct: with friction the plan would have to give way
    sliding = solve(build_problem(robot, q, v, joints, contacts, DT), "coulomb", "qcqp")
    assert sliding.status == "solved"
    assert np.abs(sliding.contact_velocity.reshape(-1, 3)[:, 1:]).max() > 1e-3


def test_contacts_in_the_air_carry_nothing(robot):
    problem, _, _ = gliding(robot)
    contacts = problem.contacts
    lifted = contacts.moved(contacts.points, gaps=np.array([0.01, 0.0, 0.0, 0.0]))
    solution = solve(gliding(robot, contacts=lifted)[0], "coulomb", "qcqp")
    assert np.all(solution.impulses[:3] == 0.0)
    empty = solve(gliding(robot, contacts=ContactSet.empty())[0], "coulomb", "qcqp")
    assert empty.status == "solved" and empty.forces.shape == (0, 3)


def test_a_contact_that_closes_beyond_its_gap_is_named(robot):
    """All feet come down at 1 m/s and are held by nothing until they touch."""
    problem, q, v = gliding(robot)
    v = v.copy()
    v[2] -= 1.0
    for gap_m, status in ((0.01, "solved"), (2e-4, "relaxed")):
        contacts = problem.contacts.moved(gaps=np.full(4, gap_m))
        solution = solve(
            build_problem(robot, q, v, np.zeros(robot.na), contacts, DT), "coulomb", "qcqp"
        )
        assert solution.status == status and not solution.impulses.any()
        closing = solution.residuals()["gap_m_s"]
        if status == "relaxed":
            assert closing == pytest.approx(1.0 - gap_m / DT, abs=0.05)
            assert solution.contradiction_m_s == pytest.approx(closing)
        else:
            assert closing == 0.0


def test_warm_start_does_not_change_the_result(robot):
    problem, _, _ = gliding(robot)
    nearby, _, _ = gliding(robot, acceleration=0.1)
    cold = solve(nearby, "coulomb", "qcqp")
    warm = solve(nearby, "coulomb", "qcqp", warm_start=solve(problem, "coulomb", "qcqp"))
    assert warm.iterations <= cold.iterations
    np.testing.assert_allclose(warm.torques, cold.torques, atol=1e-7)
    after_relaxed = solve(problem, "coulomb", "qcqp", torque_limits=0.1)
    again = solve(nearby, "coulomb", "qcqp", warm_start=after_relaxed)
    np.testing.assert_allclose(again.torques, cold.torques, atol=1e-7)


def test_optimum_with_any_active_set_agrees_with_clarabel(robot):
    """Nothing active, torque limits, cones, both (with rows that depend on each other), and a relaxed plan."""
    cases = [
        (mu, acceleration, limit)
        for mu, acceleration in ((0.6, 0.0), (0.3, 0.0), (0.3, 2.0), (0.3, 8.0))
        for limit in (0.48, 0.7, 1.5)
    ]
    problems = [gliding(robot, mu, acceleration)[0] for mu, acceleration, _ in cases]
    solutions = [
        solve(problem, "coulomb", "qcqp", torque_limits=case[2])
        for problem, case in zip(problems, cases)
    ]
    for problem, case, cold in zip(problems, cases, solutions):
        warm = solve(problem, "coulomb", "qcqp", torque_limits=case[2], warm_start=cold)
        assert warm.status == cold.status
        np.testing.assert_allclose(warm.torques, cold.torques, atol=1e-8)
        if cold.status == "solved":
            assert cold.certificate.gap < 1e-9 and cold.certificate.residual < 1e-9
            judge = np.array(by_clarabel(reduced_program(problem, case[2])).x)[:12]
            assert abs(cold.certificate.objective / (judge @ judge) - 1.0) < 1e-6
    assert {solution.status for solution in solutions} == {"solved", "relaxed"}
    assert solutions[2].iterations == 1  # a robot that stands well needs one linear solve


def test_contradictory_plan_is_projected_or_reported(robot):
    q, contacts = standing_solo(robot)
    splay = np.zeros(12)
    splay[[0, 6]] = [200.0, 200.0]
    problem = build_problem(robot, q, np.zeros(robot.nv), splay, contacts, DT)
    projected = solve(problem, "coulomb", "qcqp")
    assert projected.status in ("solved", "relaxed") and projected.contradiction_m_s > 1e-3
    assert np.abs(projected.contact_velocity).max() < 1e-6
    assert solve(problem, "coulomb", "qcqp", consistency="report").status == "inconsistent"


def test_random_problems_always_get_a_finite_answer():
    """Up to 64 redundant contacts, robots of any scale: no exception, cones and limits kept."""
    counts = dict.fromkeys(STATUSES, 0)
    for number in range(150):
        case = random_problem(21, number)
        problem = case.problem
        limits = None if number % 3 else np.abs(problem.torque_offset) + 1e-3 * problem.robot.mass
        solution = solve(problem, "coulomb", "qcqp", torque_limits=limits)
        for array in (solution.impulses, solution.torques, solution.velocity, solution.disturbance):
            assert np.isfinite(array).all(), case.description
        z = solution.impulses.reshape(-1, 3)
        mu = effective_friction(problem.contacts.friction, np.inf)
        slack = np.where(np.isinf(mu), np.inf, np.where(np.isinf(mu), 0.0, mu) * z[:, 0])
        assert np.all(
            np.hypot(z[:, 1], z[:, 2]) <= slack * (1 + 1e-9) + 1e-12 * np.abs(z).max(initial=0.0)
        )
        assert np.all(z[:, 0] >= 0.0)
        bound = problem.robot.effort_limits if limits is None else limits
        assert np.all(np.abs(solution.torques) <= bound)
        counts[solution.status] += 1
    assert counts["not_converged"] <= 1 and counts["solved"] > 20


@pytest.mark.parametrize(
    "options",
    [
        {"torque_limits": -1.0},
        {"torque_limits": [1.0, 2.0]},
        {"weights": 0.0},
        {"weights": np.inf},
        {"rho": 0.0},
        {"rho": np.nan},
        {"torque_limits": np.nan},
    ],
)
def test_bad_options_are_refused(robot, options):
    with pytest.raises(ConfigurationError):
        solve(gliding(robot)[0], "coulomb", "qcqp", **options)
