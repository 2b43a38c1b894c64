"""coulomb/ncp: Coulomb's law on exact cones, against other formulations and other solvers."""

import sys

import clarabel
import numpy as np
import pinocchio as pin
import pytest
import scipy.sparse as sparse
from paths import ROOT
from robots import gliding_solo, solo12, standing_solo

from contact_id_controller import ContactSet, build_problem, solve
from contact_id_controller.kernels.exact_cones.continuation import SOLVED, coulomb_cones
from contact_id_controller.kernels.pyramid import effective_friction
from contact_id_controller.models.steps.exact_law import LAWFUL, sticking_motion
from experiments.benchmark.random_problems import random_problem
from experiments.benchmark.sliding_problems import exact_law_defect, sliding_problem
from experiments.benchmark.speed import stance, states

sys.path.insert(0, str(ROOT / "benchmarks"))

from exact_cones import Admm

DT = 1e-3
SEED = 70_211  # never used for tuning
EXACT = 1e-9


@pytest.fixture(scope="module")
def robot():
    return solo12()


def free_velocity(problem, c):
    free = c.copy()
    free[::3] += problem.gap_speed
    return free


def defect(solution):
    """Of a solution, by plain numpy."""
    problem = solution.problem
    speed = max(np.abs(solution.attainable).max(), -problem.gap_speed.min())
    mu = effective_friction(problem.contacts.friction, 1e4)
    free = free_velocity(problem, solution.attainable)
    return exact_law_defect(problem.Y, free, mu, solution.impulses, speed)


def loaded_slip(solution):
    """Slip speeds (m,) of the contacts under load."""
    w = solution.contact_velocity
    return np.hypot(w[:, 1], w[:, 2])[solution.impulses[::3] > 1e-9]


def sliding(robot, mu=0.2, speed=0.5, **keywords):
    """Four feet that slide forwards on flat ground."""
    q, contacts = standing_solo(robot, mu)
    v = np.zeros(robot.nv)
    v[0], v[1] = speed, 0.4 * speed
    return build_problem(robot, q, v, np.zeros(robot.na), contacts, DT, **keywords), q, v


def test_the_judge_knows_the_law_of_one_mass():
    """A point mass of 1 kg: resting, sliding against its velocity, leaving; and what breaks the law."""
    Y, mu = np.eye(3), np.array([0.5])
    for free, z in (
        ([-1.0, 0.3, 0.4], [1.0, -0.3, -0.4]),  # stops: |z_T| = mu z_N
        ([-1.0, 3.0, 4.0], [1.0, -0.3, -0.4]),  # slides on, friction against the slip
        ([0.2, 3.0, 4.0], [0.0, 0.0, 0.0]),  # leaves
    ):
        assert exact_law_defect(Y, np.array(free), mu, np.array(z)) < 1e-15
        for wrong in ([1.1, -0.3, -0.4], [1.0, -0.4, -0.3], [1.0, -0.2, -0.2], [0.1, 0.0, 0.0]):
            if not np.allclose(wrong, z):
                assert exact_law_defect(Y, np.array(free), mu, np.array(wrong)) > 1e-2
    straight, smooth = (
        np.array([0.2, 0.0, 0.0]),
        np.zeros(1),
    )  # leaves along its normal, without friction
    assert exact_law_defect(Y, straight, smooth, np.zeros(3)) == 0.0
    assert exact_law_defect(Y, -straight, smooth, np.zeros(3)) > 1e-2


def test_two_thousand_problems_obey_the_law():
    """The kernel alone and the whole model, on plans contradictory and consistent."""
    missed, unlawful = [], []
    for number in range(2000):
        case = sliding_problem(SEED, number)
        problem, mu = case.problem, case.problem.contacts.friction
        z = np.zeros(3 * len(problem))
        code, _, claimed = coulomb_cones(problem.Y, case.c, problem.gap_speed, mu, 5, z)
        if code != SOLVED:
            missed.append(number)
        elif exact_law_defect(problem.Y, free_velocity(problem, case.c), mu, z) > EXACT:
            unlawful.append((number, claimed))
        if number % 4 == 0:
            solution = solve(problem, "coulomb", "ncp")
            assert solution.status == "solved", number
            assert defect(solution) <= EXACT, number
    assert unlawful == []
    assert len(missed) <= 20, missed  # of the kernel on its own; the model has other means


def test_random_robots_obey_the_law_or_are_called_what_they_are():
    counts = {}
    for number in range(150):
        solution = solve(random_problem(SEED, number).problem, "coulomb", "ncp")
        counts[solution.status] = counts.get(solution.status, 0) + 1
        assert np.isfinite(solution.torques).all() and np.isfinite(solution.impulses).all()
        if solution.status == "solved" and len(solution.problem):
            assert defect(solution) <= EXACT, number
    assert counts["solved"] > 100 and counts.get("not_converged", 0) <= 1, counts


@pytest.mark.parametrize("mu", [0.1, 0.3])
def test_sliding_motion_is_that_of_pinocchios_admm(robot, mu):
    problem, _, _ = sliding(robot, mu, contact_time_constant_s=DT)
    ours = solve(problem, "coulomb", "ncp")
    free, mus = free_velocity(problem, ours.attainable), problem.contacts.friction
    admm = Admm(robot.model, problem.Y @ problem.Y.T, free, mus, 1e-10, 50_000)
    admm.solve()
    theirs = admm.impulses()
    assert exact_law_defect(problem.Y, free, mus, theirs) < 1e-6
    assert loaded_slip(ours).max() > 0.1
    np.testing.assert_allclose(problem.Y.T @ ours.impulses, problem.Y.T @ theirs, atol=1e-6)


def test_sticking_contacts_are_those_of_the_equations_of_motion(robot):
    """Feet planted and body moving: J v+ as the contacts ask, by least squares on J alone."""
    q, v, acceleration, contacts = gliding_solo(robot, 0.3, 0.6)
    problem = build_problem(robot, q, v, acceleration, contacts, DT)
    solution = solve(problem, "coulomb", "ncp")
    motion = np.linalg.lstsq(problem.Y, -solution.attainable, rcond=None)[0]
    np.testing.assert_allclose(problem.Y.T @ solution.impulses, motion, atol=1e-12)
    assert solution.status == "solved" and defect(solution) <= 1e-11
    np.testing.assert_allclose(solution.velocity, solve(problem).velocity, atol=1e-9)
    assert max(solution.residuals(q, v).values()) < 1e-8


def measured(solution):
    """Contact velocities (n, 3) over the gaps' and their unit, m/s, in which the law's defect is relative."""
    problem = solution.problem
    w = solution.contact_velocity.copy()
    w[:, 0] += problem.gap_speed
    inertia = np.square(problem.Y).sum() / len(problem.Y)
    speed = max(np.abs(solution.attainable).max(), -problem.gap_speed.min())
    return w, max(speed, inertia * np.abs(solution.impulses).max()), inertia


def least_torque(solution, w=None, tie=1e-3):
    """Least torque at the solution's motion by Clarabel: cone where a contact sticks, ray where it slides.

    Velocities w (n, 3) are as exact as the law is kept, EXACT of their unit: what is slower sticks, and the ray is
    where the law takes z - w. Along w alone a slip of 1e-7 of the unit would turn it by that error, 1e-3 rad.
    """
    problem = solution.problem
    n, mu = len(problem), problem.contacts.friction
    found, unit_m_s, inertia = measured(solution)
    w = found if w is None else w
    slip = np.hypot(w[:, 1], w[:, 2])
    against = (inertia * solution.impulses.reshape(-1, 3) - w)[:, 1:]
    against /= np.maximum(np.linalg.norm(against, axis=1, keepdims=True), 1e-300)
    fast = EXACT * unit_m_s
    touching = w[:, 0] <= fast
    price = tie * np.square(problem.T.reshape(n, -1)[touching]).sum() / (3 * touching.sum())
    columns, cones, facets = [], [], []
    for i in np.flatnonzero(touching):
        sticks = slip[i] <= fast
        ray = [1.0, *(mu[i] * against[i])]
        for local in np.eye(3) if sticks else [ray]:
            column = np.zeros(3 * n)
            column[3 * i : 3 * i + 3] = local
            columns.append(column)
        facets.append(-np.diag([mu[i], 1.0, 1.0]) if sticks else -np.eye(1))
        cones.append(clarabel.SecondOrderConeT(3) if sticks else clarabel.NonnegativeConeT(1))
    B = np.array(columns).T
    offset = problem.torque_offset + problem.schur @ solution.joint_velocity_change / problem.period
    left, size, right = np.linalg.svd(problem.Y.T @ B, full_matrices=False)
    kept = size > 1e-9 * size[0]
    equal = right[kept]
    unit = np.abs(solution.impulses).max()
    side = left[:, kept].T @ (problem.Y.T @ solution.impulses) / size[kept] / unit
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    scale = 1.0 / np.square(problem.T).max()
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(
            np.triu(scale * B.T @ (problem.T @ problem.T.T + price * np.eye(3 * n)) @ B)
        ),
        scale * B.T @ problem.T @ offset / unit,
        sparse.csc_matrix(np.vstack([equal, sparse.block_diag(facets).toarray()])),
        np.concatenate([side, np.zeros(sum(len(facet) for facet in facets))]),
        [clarabel.ZeroConeT(len(equal)), *cones],
        settings,
    ).solve()
    assert str(answer.status) == "Solved"
    z = unit * B @ np.array(answer.x)
    return np.square(offset + problem.T.T @ z).sum() + price * z @ z, price


def test_forces_are_those_of_least_torque_at_the_motion(robot):
    """Sticking, sliding and both, few contacts and many."""
    kinds = set()
    cases = [sliding(robot, 0.2)[0], sliding(robot, 0.9)[0], sliding(robot, 0.2, 0.0)[0]]
    cases += [sliding_problem(SEED + 1, number).problem for number in range(40)]
    for problem in cases:
        solution = solve(problem, "coulomb", "ncp")
        if not (solution.impulses > 1e-9).any():
            continue
        best, price = least_torque(solution)
        ours = solution.torques @ solution.torques + price * np.square(solution.impulses).sum()
        assert ours == pytest.approx(best, rel=1e-5)
        fast = loaded_slip(solution) > 1e-9
        kinds.add((bool(fast.any()), bool((~fast).any())))
    assert kinds == {(True, False), (False, True), (True, True)}


@pytest.mark.parametrize("number", [4, 9])
def test_the_judge_of_least_torque_takes_no_rounding_for_sliding(number):
    """Slips of some nm/s: velocities moved within the law's tolerance, as on another processor, change nothing."""
    solution = solve(sliding_problem(SEED + 1, number).problem, "coulomb", "ncp")
    w, unit_m_s, _ = measured(solution)
    best, _ = least_torque(solution)
    for seed in range(5):
        rounding = np.random.default_rng(seed).uniform(-1.0, 1.0, w.shape) * LAWFUL * unit_m_s
        assert least_torque(solution, w + rounding)[0] == pytest.approx(best, rel=1e-5)


def test_where_many_contacts_slide_alike_the_choice_is_given_up_soon(robot):
    """Their forces are next to parallel: a method that crawls is not waited for."""
    q, planted = stance(robot, 20)
    for k, (_, v, acceleration) in enumerate(states(robot, q, seed=7)[:8]):
        v = v.copy()
        v[:2] += 0.6 * np.cos(k), 0.6 * np.sin(k)
        problem = build_problem(
            robot, q, v, acceleration, planted, DT, contact_time_constant_s=0.05
        )
        solution = solve(problem, "coulomb", "ncp")
        assert solution.status == "solved" and defect(solution) <= 1e-9
        assert solution.iterations <= 50


def test_every_distribution_gives_the_same_motion(robot):
    for problem in (sliding(robot, 0.2)[0], sliding(robot, 0.9)[0]):
        one, two, three = (
            solve(problem, "coulomb", "ncp", distribution=name)
            for name in ("least_torque", "least_force", "none")
        )
        np.testing.assert_allclose(two.velocity, one.velocity, atol=1e-9)
        np.testing.assert_allclose(three.velocity, one.velocity, atol=1e-9)
        assert np.linalg.norm(two.impulses) <= np.linalg.norm(one.impulses) * (1 + 1e-9)
        assert np.linalg.norm(one.torques) <= np.linalg.norm(two.torques) * (1 + 1e-2)


def test_polygons_of_many_edges_approach_it(robot):
    """And friction does not depend on the direction of the slip, as it does on a polygon of few."""
    problem = sliding(robot, 0.3)[0]
    exact, errors = solve(problem, "coulomb", "ncp"), []
    for edges in (3, 11, 63):
        polygon = solve(problem, "coulomb", "lcp", edges=edges)
        errors.append(np.abs(polygon.velocity - exact.velocity).max())
    assert errors[1] < 0.3 * errors[0] and errors[2] < 0.1 * errors[0]


def test_without_friction_and_without_bound(robot):
    for mu, speed in ((0.0, 0.5), (np.inf, 0.5), (1e7, 0.5)):
        solution = solve(sliding(robot, mu, speed)[0], "coulomb", "ncp")
        assert solution.status == "solved" and defect(solution) <= EXACT
        tangential = np.abs(solution.forces[:, :2]).max()
        assert (tangential == 0.0) == (mu == 0.0)
    mixed = sliding(robot, [0.0, np.inf, 0.3, 0.3])[0]
    assert solve(mixed, "coulomb", "ncp").status == "solved"


def test_no_contact_a_gap_and_contacts_that_crush(robot):
    q, contacts = standing_solo(robot)
    zero = np.zeros(robot.na)
    v = np.zeros(robot.nv)
    empty = solve(build_problem(robot, q, v, zero, ContactSet.empty(), DT), "coulomb", "ncp")
    assert empty.status == "solved" and empty.forces.shape == (0, 3)
    apart = contacts.moved(contacts.points, gaps=np.array([0.01, 0, 0, 0]))
    lifted = solve(build_problem(robot, q, v, zero, apart, DT), "coulomb", "ncp")
    assert lifted.status == "solved" and (lifted.forces[0] == 0.0).all()
    crushed = ContactSet(
        contacts.points[[0, 0]],
        [[0, 0, 1], [0, 0, -1]],
        contacts.frames[:1] * 2,
        0.6,
        surface_velocities=[[0, 0, 1], [0, 0, -1]],
    )
    solution = solve(build_problem(robot, q, v, zero, crushed, DT), "coulomb", "ncp")
    assert solution.status == "inconsistent" and np.isfinite(solution.torques).all()
    assert (solution.forces[:, 2] * [1, -1] >= 0.0).all()


def test_warm_start_follows_contacts_by_identity(robot):
    """A contact that goes, and another order: same motion, fewer steps than from nothing."""
    problem, q, v = sliding(robot, 0.2)
    first = solve(problem, "coulomb", "ncp")
    contacts = problem.contacts
    order = [2, 0, 3]
    fewer = ContactSet(
        contacts.points[order],
        contacts.normals[order],
        [contacts.frames[i] for i in order],
        contacts.friction[order],
        identities=[contacts.identities[i] for i in order],
    )
    again = build_problem(robot, q, v, np.zeros(robot.na), fewer, DT)
    cold, warm = solve(again, "coulomb", "ncp"), solve(again, "coulomb", "ncp", warm_start=first)
    np.testing.assert_allclose(warm.velocity, cold.velocity, atol=1e-8)
    same = solve(problem, "coulomb", "ncp", warm_start=first)
    assert same.iterations < first.iterations
    np.testing.assert_allclose(same.velocity, first.velocity, atol=1e-9)


def test_a_contact_that_holds_needs_no_sliding_solution(robot):
    """Where forces in the cones hold the contacts, whatever came before, nothing slips."""
    q, contacts = standing_solo(robot, 0.9)
    v = np.zeros(robot.nv)
    standing = build_problem(robot, q, v, np.zeros(robot.na), contacts, DT)
    slid = solve(sliding(robot, 0.9, 2.0, contact_time_constant_s=DT)[0], "coulomb", "ncp")
    for warm in (None, slid):
        solution = solve(standing, "coulomb", "ncp", warm_start=warm)
        assert loaded_slip(solution).max() < 1e-12
    assert slid.status == "solved"


@pytest.mark.parametrize("feet", [1, 2, 3, 4])
def test_a_motion_without_slip_is_one_that_forces_can_bring_about(feet):
    """Two points leave a turn about their line free: whatever rounding makes of it, no force does."""
    rng = np.random.default_rng(feet)
    pin.seed(feet)
    for _ in range(200):
        lever = rng.normal(size=(feet, 3)) * rng.choice([0.1, 1.0, 10.0])
        body = np.linalg.cholesky(pin.Inertia.Random().matrix())
        J = np.hstack([np.hstack([np.eye(3), -pin.skew(each)]) for each in lever]).reshape(
            3, feet, 6
        )
        Y = np.linalg.solve(body, J.transpose(1, 0, 2).reshape(-1, 6).T).T.copy()
        free = Y @ rng.normal(size=6)
        u = np.full(6, np.nan)
        sticking_motion(Y, free, np.full(feet, 0.5), np.ones(feet, bool), u)
        expected = np.linalg.lstsq(Y, -free, rcond=1e-12)[0]
        np.testing.assert_allclose(u, expected, atol=1e-11 * np.abs(expected).max())


def test_two_feet_that_hold_are_found_to_hold_at_once():
    """A trot's stance: forces within the cones hold it, which is seen in a few steps and without sliding."""
    robot, rng = solo12(), np.random.default_rng(2)
    for speed in rng.uniform(0.05, 0.5, 100):
        q, v, acceleration, contacts = gliding_solo(robot, speed, 0.9)
        acceleration = acceleration + 0.1 * rng.normal(size=robot.na)
        stance = contacts.subset([0, 3])
        problem = build_problem(robot, q, v, acceleration, stance, DT)
        solution = solve(problem, "coulomb", "ncp")
        assert solution.status == "solved" and loaded_slip(solution).max() < 1e-9
        assert solution.iterations <= 6


@pytest.mark.parametrize("friction", [0.1, 0.3, 1.0])
def test_three_feet_hold_while_one_parts_without_crawling(friction):
    """Gaps of some nanometres make the three slip by rounding: no Newton step takes that away, 500 were tried."""
    robot, rng = solo12(), np.random.default_rng(5)
    for speed in rng.uniform(0.05, 0.5, 60):
        q, v, acceleration, planted = gliding_solo(robot, speed, friction)
        before = solve(build_problem(robot, q, v, acceleration, planted, DT), "coulomb", "ncp")
        gaps = rng.uniform(0.0, 1e-7, 4)
        gaps[2] += 4e-6
        points = planted.points + np.outer(gaps, [0.0, 0.0, 1.0])
        contacts = planted.moved(points, gaps=gaps)
        problem = build_problem(robot, q, v, acceleration, contacts, DT)
        for warm in (before, None):
            solution = solve(problem, "coulomb", "ncp", warm_start=warm)
            assert solution.status == "solved" and defect(solution) < EXACT
            assert solution.impulses[6] == 0.0 and solution.iterations <= 120
            changed = np.abs(solution.attainable - problem.c).max()
            assert changed < 1e-5  # m/s, of the plan


def test_a_start_that_pauses_is_resumed_before_the_plan_gives_way():
    """Thirty contacts of a humanoid: what ended its first start early would have changed the plan by 2.5 m/s."""
    solution = solve(random_problem(5, 2442).problem, "coulomb", "ncp")
    assert solution.status == "solved" and defect(solution) < EXACT
    assert solution.contradiction_m_s < 1e-3
    assert np.abs(solution.joint_velocity_change).max() < 1e-3


def test_contradictory_contacts_are_not_called_solved_by_huge_impulses():
    """Two walls that close on what stands between them: no impulses of any size are called solved."""
    Y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, -1.0], [1.0, 0.0], [0.0, 0.0]])
    c = np.array([-1.0, 0.5, 0.0, -1.0, -0.5, 0.0])
    z = np.zeros(6)
    code, steps, claimed = coulomb_cones(Y, c, np.zeros(2), np.array([0.5, 0.5]), 5, z)
    assert code != SOLVED and claimed > 1e-6 and np.isfinite(z).all()
    assert steps <= 5 * (120 + 40)
