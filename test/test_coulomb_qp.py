"""coulomb/qp: stage I against an independent QP, stage II against every other feasible force."""

import clarabel
import numpy as np
import pytest
from robots import (
    SOLO_FEET,
    frame_positions,
    gliding_solo,
    point_kinematics,
    random_contacts,
    random_state,
    solo12,
    standing_solo,
)
from scipy import sparse

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.exceptions import UnknownModelError
from contact_id_controller.models import row_of
from contact_id_controller.models.coulomb_qp import prepare_frames
from contact_id_controller.models.frame_problems import UNTOLD
from contact_id_controller.models.steps.consistency import project_plan
from contact_id_controller.models.steps.motion import SOLVED, STICTION_M_S, stage_one
from contact_id_controller.models.steps.reduced import answer_room, matrices, read_answer
from experiments.benchmark.quadprog_two_stages import MODEL as BY_QUADPROG
from experiments.benchmark.quadprog_two_stages import generators
from experiments.benchmark.sliding_problems import sliding_problem
from experiments.benchmark.speed import stance, states
from experiments.papers import kinetic_energy

DT = 1e-3


@pytest.fixture(scope="module")
def robot():
    return solo12()


def edges_of(problem, edges=4):
    E = np.zeros((3 * len(problem), edges * len(problem)))
    for i, mu in enumerate(problem.contacts.friction):
        E[3 * i : 3 * i + 3, edges * i : edges * (i + 1)] = generators(mu, edges).T
    return E


def clarabel_qp(P, q, A, b, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(A), b, cones, settings
    )
    return solver.solve()


@pytest.mark.parametrize("edges", [3, 4, 8])
def test_stage_one_matches_clarabel_on_random_states(robot, edges):
    rng = np.random.default_rng(edges)
    solved = 0
    for _ in range(30):
        q, v = random_state(robot, rng)
        contacts, _ = random_contacts(
            robot, q, SOLO_FEET[: rng.integers(1, 5)], rng, rng.uniform(0.1, 1.0)
        )
        problem = build_problem(robot, q, v, rng.normal(size=12), contacts, DT)
        solution = solve(problem, edges=edges, consistency="report", sliding="parting")
        E = edges_of(problem, edges)
        YE = problem.Y.T @ E
        linear = E.T @ (
            problem.c + np.repeat(problem.gap_speed, 3) * np.tile([1, 0, 0], len(problem))
        )
        m = E.shape[1]
        answer = clarabel_qp(
            YE.T @ YE, linear, -np.eye(m), np.zeros(m), [clarabel.NonnegativeConeT(m)]
        )
        if solution.status != "solved":
            assert str(answer.status) != "Solved"
            continue
        if str(answer.status) != "Solved":
            continue  # the judge itself gave up
        solved += 1
        ours = problem.Y.T @ solution.impulses
        np.testing.assert_allclose(
            ours, YE @ np.array(answer.x), atol=1e-6 * max(1.0, np.abs(ours).max())
        )
        residuals = solution.residuals(q, v)
        assert residuals["cone_n"] < 1e-9 and residuals["adhesion_n"] < 1e-9
        assert residuals["gap_m_s"] < 1e-9 and residuals["dynamics"] < 1e-7
    assert solved > 15


@pytest.mark.parametrize("friction, n", [(0.6, 4), (0.6, 24), (np.inf, 8), (1e-4, 8)])
def test_contacts_at_rest_have_the_motion_that_the_search_finds(robot, friction, n):
    q, contacts = stance(robot, n)
    mu = np.full(n, friction)
    for state in states(robot, q)[:8]:
        problem = build_problem(robot, *state, contacts, DT, contact_time_constant_s=0.05)
        moved, delta = np.empty(3 * n), np.empty(robot.na)
        project_plan(problem.reduced, mu, True, delta, moved)
        found = []
        for vertex in (False, True):
            u, z, none = np.empty(6), np.empty(3 * n), np.empty(0, np.bool_)
            law = problem.Y, moved, problem.gap_speed, mu, 4
            status, steps = stage_one(*law, none, vertex, u, z)
            assert status == SOLVED
            np.testing.assert_allclose(problem.Y.T @ z, u, atol=1e-9 * np.abs(u).max())
            force = z.reshape(n, 3)
            if friction < np.inf:
                most = friction * force[:, 0] + 1e-12 * np.abs(z).max()
                assert (np.abs(force[:, 1]) + np.abs(force[:, 2]) <= most).all()
            assert (force[:, 0] >= 0.0).all()
            found.append((u, steps))
        (at_rest, once), (sought, steps) = found
        np.testing.assert_allclose(at_rest, sought, atol=1e-11 * np.abs(sought).max())
        # With friction 1e-4 the feet cannot hold the robot still, and both search.
        assert once == (steps if friction == 1e-4 else 1) and steps > 1


@pytest.mark.parametrize("distribution", ["least_torque", "least_force"])
def test_distribution_matches_clarabel_on_the_optimal_face(robot, distribution):
    rng = np.random.default_rng(11)
    for _ in range(20):
        q, contacts = standing_solo(robot)
        v = np.zeros(18)
        v[:6] = 0.0
        problem = build_problem(robot, q, v, rng.normal(size=12), contacts, DT)
        solution = solve(problem, distribution=distribution)
        vertex = solve(problem, distribution="none")
        np.testing.assert_allclose(
            problem.Y.T @ solution.impulses, problem.Y.T @ vertex.impulses, atol=1e-9
        )
        z, offset = forces_by_clarabel(problem, vertex, distribution)

        def cost(z):
            return (
                np.sum(solution_torques(problem, offset, z) ** 2)
                if distribution == "least_torque"
                else np.sum(z**2)
            )

        assert cost(solution.impulses) <= cost(z) * (1 + 1e-5)


def forces_by_clarabel(problem, vertex, distribution="least_torque"):
    """Impulses (3n,) of least torque, or force, with the motion of another solution; torques without them."""
    moved = -problem.period * problem.T @ vertex.joint_velocity_change + problem.c
    slack = edges_of(problem).T @ (problem.Y @ (problem.Y.T @ vertex.impulses) + moved)
    E = edges_of(problem)[:, slack < 1e-7]
    offset = vertex.torques - problem.T.T @ vertex.impulses
    TE = problem.T.T @ E if distribution == "least_torque" else E * 100.0
    offset = offset if distribution == "least_torque" else np.zeros(12)
    m = E.shape[1]
    A = np.vstack([problem.Y.T @ E, -np.eye(m)])
    b = np.concatenate([problem.Y.T @ vertex.impulses, np.zeros(m)])
    answer = clarabel_qp(
        TE.T @ TE + 1e-9 * np.eye(m),
        TE.T @ offset,
        A,
        b,
        [clarabel.ZeroConeT(6), clarabel.NonnegativeConeT(m)],
    )
    return E @ np.array(answer.x), offset


@pytest.mark.parametrize("n", [4, 5, 8, 12, 40, 250])
def test_torques_are_the_least_with_few_contacts_and_with_many(robot, n):
    """Whatever the method; from 5 on a thousandth may be paid for forces that are alike."""
    q, contacts = stance(robot, n)
    for _, v, acceleration in states(robot, q)[:3]:
        problem = build_problem(
            robot, q, v, acceleration, contacts, DT, contact_time_constant_s=0.05
        )
        solution, vertex = solve(problem), solve(problem, distribution="none")
        assert solution.status == "solved"
        moved = problem.Y.T @ vertex.impulses
        np.testing.assert_allclose(
            problem.Y.T @ solution.impulses, moved, atol=1e-9 * np.abs(moved).max()
        )
        z, offset = forces_by_clarabel(problem, vertex)
        least = np.sum(solution_torques(problem, offset, z) ** 2)
        assert np.sum(solution.torques**2) <= (1.0 + 1e-3) * least
        assert (solution.forces[:, 2] >= 0.0).all()


def solution_torques(problem, offset, z):
    return offset + problem.T.T @ z


def test_planted_feet_moving_body_predicts_the_weight(robot):
    """Issue of the walking robot: contact velocity objective 100 %, no Jdot 104 %, energy 13 times."""
    q, v, acceleration, contacts = gliding_solo(robot)
    share = {}
    for name, built, solver in [
        ("contact_velocity", {}, "qp"),
        ("no drift", {"velocity_product_term": False}, "qp"),
        ("kinetic_energy", {}, "qp_energy"),
    ]:
        problem = build_problem(robot, q, v, acceleration, contacts, DT, **built)
        with kinetic_energy.registered():
            solution = solve(problem, friction="coulomb", solver=solver)
        share[name] = solution.forces[:, 2].sum() / robot.weight
    assert abs(share["contact_velocity"] - 1.0) < 1e-3
    assert 0.03 < abs(share["no drift"] - 1.0) < 0.05
    assert share["kinetic_energy"] > 5.0


def test_contradictory_plan_is_reported_and_projected(robot):
    """All legs splay outwards faster than friction could be meant to allow: no base motion fits."""
    q, contacts = standing_solo(robot)
    J, _ = point_kinematics(robot, q, np.zeros(18), SOLO_FEET)
    outwards = 20.0 * np.array([0, 1, 0, 0, -1, 0, 0, 1, 0, 0, -1, 0])
    acceleration = np.linalg.solve(J[:, 6:], outwards)
    problem = build_problem(robot, q, np.zeros(18), acceleration, contacts, DT)
    solution = solve(problem)
    assert solution.status == "solved"
    assert solution.contradiction_m_s == pytest.approx(0.02, rel=1e-3)
    np.testing.assert_allclose(solution.contact_velocity, 0.0, atol=1e-6)
    assert solution.residuals(q, np.zeros(18))["dynamics"] < 1e-6
    reported = solve(problem, consistency="report")
    assert reported.status == "solved" and np.abs(reported.contact_velocity[:, 1:]).max() > 0.01
    slip = reported.contact_velocity[:, 1:]
    friction = reported.impulses.reshape(-1, 3)[:, 1:]
    assert np.sum(slip * friction, axis=1).max() <= 1e-9  # friction brakes the slip


def squeezed(robot):
    """Two walls, one each side of one foot, that approach each other."""
    q, _ = standing_solo(robot)
    point = frame_positions(robot, q, ["FL_FOOT"])[0]
    contacts = ContactSet(
        [point, point],
        [[0, 1, 0], [0, -1, 0]],
        ["FL_FOOT"] * 2,
        0.5,
        surface_velocities=[[0, 1, 0], [0, -1, 0]],
    )
    return q, contacts


def test_impossible_contacts_get_a_named_status_and_finite_torques(robot):
    q, contacts = squeezed(robot)
    problem = build_problem(robot, q, np.zeros(18), np.zeros(12), contacts, DT)
    solution = solve(problem)
    assert solution.status == "inconsistent"
    assert np.isfinite(solution.torques).all() and np.isfinite(solution.forces).all()


def test_lifting_a_foot_is_not_a_contradiction(robot):
    q, contacts = standing_solo(robot)
    J, _ = point_kinematics(robot, q, np.zeros(18), SOLO_FEET)
    acceleration = np.linalg.solve(J[:, 6:], 40.0 * np.eye(12)[2])  # left front foot rises
    problem = build_problem(robot, q, np.zeros(18), acceleration, contacts, DT)
    solution = solve(problem)
    assert solution.status == "solved"
    assert solution.forces[0, 2] == pytest.approx(0.0, abs=1e-9)
    assert solution.contact_velocity[0, 0] > 0.01
    np.testing.assert_allclose(solution.joint_velocity_change[:3], 0.0, atol=1e-9)


def test_foot_above_ground_carries_nothing(robot):
    q, contacts = standing_solo(robot)
    raised = contacts.moved(contacts.points, gaps=np.array([0.002, 0, 0, 0]))
    solution = solve(build_problem(robot, q, np.zeros(18), np.zeros(12), raised, DT))
    assert solution.forces[0] == pytest.approx(np.zeros(3), abs=1e-12)
    assert solution.forces[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6)


@pytest.mark.parametrize("mu", [0.0, 0.3, np.inf])
def test_friction_from_none_to_infinite(robot, mu):
    q, contacts = standing_solo(robot, mu)
    solution = solve(build_problem(robot, q, np.zeros(18), np.zeros(12), contacts, DT))
    assert solution.status == "solved"
    assert solution.forces[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6)
    if mu == 0.0:
        assert np.abs(solution.forces[:, :2]).max() < 1e-9


def test_impossible_pair_and_options_are_refused_with_the_choices(robot):
    q, contacts = standing_solo(robot)
    problem = build_problem(robot, q, np.zeros(18), np.zeros(12), contacts, DT)
    with pytest.raises(UnknownModelError, match="'magic'.*coulomb/qp"):
        solve(problem, friction="coulomb", solver="magic")
    with pytest.raises(UnknownModelError, match="'egdes'.*'edges'"):
        solve(problem, egdes=4)
    with pytest.raises(UnknownModelError, match="'most'.*'least_torque'"):
        solve(problem, distribution="most")
    with pytest.raises(UnknownModelError, match="at least 3"):
        solve(problem, edges=2)


def test_a_bad_option_is_refused_however_often_it_comes(robot):
    """Options are looked at once for each set of values; what is refused, or no key, is looked at again."""
    q, contacts = standing_solo(robot)
    problem = build_problem(robot, q, np.zeros(18), np.zeros(12), contacts, DT)
    bad = (
        {"distribution": "most"},
        {"distribution": ["least_torque"]},
        *({"edges": edges} for edges in (2, 4.5, np.nan, "4")),
    )
    for _ in range(2):
        solve(problem)
        for options in bad:
            with pytest.raises(UnknownModelError, match=next(iter(options))):
                solve(problem, **options)


def test_no_contact_and_airborne_robot(robot):
    q, contacts = standing_solo(robot)
    ignored = solve(
        build_problem(robot, q, np.zeros(18), np.zeros(12), contacts, DT), "none", "none"
    )
    assert np.abs(ignored.forces).max() == 0.0
    airborne = solve(build_problem(robot, q, np.zeros(18), np.zeros(12), ContactSet.empty(), DT))
    assert airborne.forces.shape == (0, 3) and airborne.status == "solved"
    np.testing.assert_allclose(ignored.torques, airborne.torques, atol=1e-12)


def test_quadprog_agrees_with_the_kernels(robot):
    rng = np.random.default_rng(21)
    for _ in range(20):
        q, contacts = standing_solo(robot, rng.uniform(0.2, 1.0))
        v = 0.02 * rng.normal(size=18)
        problem = build_problem(
            robot, q, v, rng.normal(size=12), contacts, DT, contact_time_constant_s=0.05
        )
        ours = solve(problem, sliding="parting")
        theirs = BY_QUADPROG.function(problem, BY_QUADPROG.defaults)
        assert ours.status == theirs.status == "solved"
        np.testing.assert_allclose(ours.velocity, theirs.velocity, atol=1e-7)
        np.testing.assert_allclose(ours.torques, theirs.torques, atol=2e-3)


def test_circumscribed_polygon_holds_more_than_the_inscribed_one(robot):
    """A body pulled diagonally: the pyramids differ by 1/cos(pi/k) at most."""
    q, contacts = standing_solo(robot, 0.3)
    pull = np.zeros(18)
    pull[:2] = 2.0 * robot.weight
    problem = build_problem(
        robot, q, np.zeros(18), np.zeros(12), contacts, DT, external_forces=pull
    )
    held = {}
    for polygon in ("inscribed", "circumscribed"):
        forces = solve(problem, polygon=polygon, edges=8).forces
        held[polygon] = np.linalg.norm(forces[:, :2].sum(0)) / forces[:, 2].sum()
    assert held["inscribed"] <= 0.3 + 1e-9
    assert 0.3 * np.cos(np.pi / 8) - 1e-9 <= held["inscribed"]
    assert 0.3 - 1e-9 <= held["circumscribed"] <= 0.3 / np.cos(np.pi / 8) + 1e-9


@pytest.mark.parametrize(
    "friction, solver", [("coulomb", "qp"), ("coulomb", "lcp"), ("no_slip", "lcp")]
)
def test_without_a_solution_the_forces_are_those_of_soft_contacts(robot, friction, solver):
    q, contacts = squeezed(robot)
    problem = build_problem(robot, q, np.zeros(18), np.zeros(12), contacts, DT)
    solution = solve(problem, friction, solver)
    assert solution.status in ("inconsistent", "not_converged")
    residuals = solution.residuals(q, np.zeros(18))
    assert residuals["cone_n"] < 1e-9 and residuals["adhesion_n"] < 1e-9
    assert residuals["dynamics"] < 1e-6
    assert 0.0 < np.abs(solution.forces).max() < 1000 * robot.weight


HYQ, HYQ_FEET = (
    "example-robot-data://hyq_description/robots/hyq_no_sensors.urdf",
    ("lf_foot", "rf_foot", "lh_foot", "rh_foot"),
)
HYQ_POSTURE = np.array([-0.2, 0.75, -1.5, -0.2, -0.75, 1.5] * 2)


@pytest.fixture(scope="module")
def hyq():
    return RobotModel.from_urdf(HYQ)


def moving_on_five(robot, number, mu):
    """HyQ on five points at random, in a motion that its contacts cannot all follow."""
    rng = np.random.default_rng([28, number])
    q = robot.neutral()
    robot.put_joints(q, HYQ_POSTURE + 0.3 * rng.normal(size=12))
    points = frame_positions(robot, q, HYQ_FEET)[[0, 1, 2, 3, 0]]
    points[4, :2] += 0.05 * rng.normal(size=2)
    contacts = ContactSet(
        points, np.tile([0, 0, 1.0], (5, 1)), [HYQ_FEET[i % 4] for i in range(5)], mu
    )
    v, acceleration = rng.normal(size=robot.nv), 5.0 * rng.normal(size=12)
    return build_problem(robot, q, v, acceleration, contacts, DT, contact_time_constant_s=0.05)


def torques_at(robot, mu, solver, count=60, **options):
    """Largest torque (count,) N·m of each state."""
    problems = [moving_on_five(robot, number, mu) for number in range(count)]
    return np.array(
        [np.abs(solve(p, "coulomb", solver, **options).torques).max() for p in problems]
    )


@pytest.mark.parametrize("mu", [1.0, 3.0])
def test_much_friction_takes_no_more_torque_than_coulombs_law(hyq, mu):
    exact = torques_at(hyq, mu, "ncp")
    share = torques_at(hyq, mu, "qp") / exact
    assert np.percentile(share, 95) <= 2.0 and share.max() < 10.0
    assert (torques_at(hyq, mu, "qp", sliding="parting") / exact).max() > 50.0


def test_torques_stay_bounded_however_much_friction_there_is(hyq):
    exact, ours = torques_at(hyq, 900.0, "ncp"), torques_at(hyq, 900.0, "qp")
    assert np.percentile(ours / exact, 95) <= 5.0 and ours.max() < 20.0 * exact.max()


def speeds_of_loaded(problem, edges):
    """Speeds, m/s, at which the contacts that carry load move in stage I."""
    vertex = solve(problem, edges=edges, sliding="parting", distribution="none")
    w = vertex.contact_velocity.copy()
    w[:, 0] += problem.gap_speed
    speeds = np.maximum(np.abs(w[:, 0]), np.hypot(w[:, 1], w[:, 2]))
    return speeds[vertex.impulses.reshape(-1, 3)[:, 0] > 0.0]


@pytest.mark.parametrize("edges", [4, 8])
def test_what_slides_stays_on_the_ground_and_its_friction_is_against_the_slip(edges):
    slides = 0
    for number in range(60):
        problem = sliding_problem(12, number).problem
        solution = solve(problem, edges=edges)
        if solution.status != "solved":
            continue
        w, z = solution.contact_velocity.copy(), solution.impulses.reshape(-1, 3)
        w[:, 0] += problem.gap_speed
        speed, force = np.abs(solution.attainable).max(), z[:, 0].max()
        assert w[:, 0].min() >= -1e-6 * speed
        if speeds_of_loaded(problem, edges).max(initial=0.0) <= STICTION_M_S:
            continue  # what carries load stands, as far as it can be felt
        assert (np.abs(w[:, 0]) * z[:, 0]).max() <= 1e-6 * speed * force
        angle = 2 * np.pi * np.arange(edges) / edges
        slip = -(w[:, 1:] @ np.array([np.cos(angle), np.sin(angle)])).min(axis=1)
        moving = (slip > 1e-5 * speed) & (z[:, 0] > 1e-6 * force)
        # Power of the friction: as much as the cone has.
        mu = problem.contacts.friction
        power = (z[:, 1:] * w[:, 1:]).sum(axis=1)
        np.testing.assert_allclose(
            power[moving], -(mu * z[:, 0] * slip)[moving], atol=1e-6 * speed * force
        )
        slides += moving.any()
    assert slides > 20


def test_what_creeps_imperceptibly_carries_what_it_carries_at_rest():
    """No ground tells the direction of a slip of micrometres a second: forces must not hang on it."""
    crept = 0
    for number in range(60):
        problem = sliding_problem(12, number).problem
        solution, parted = solve(problem), solve(problem, sliding="parting")
        if solution.status != "solved" or parted.status != "solved":
            continue
        if not np.array_equal(solution.attainable, parted.attainable):
            continue  # the laws were asked for different plans
        speed = speeds_of_loaded(problem, 4).max(initial=0.0)
        if 1e-6 < speed <= STICTION_M_S:
            np.testing.assert_array_equal(solution.torques, parted.torques)
            crept += 1
        elif speed > STICTION_M_S:
            assert not np.array_equal(solution.torques, parted.torques)
    assert crept > 3


def test_where_nothing_slides_the_two_programs_are_all_there_is(robot):
    for n in (4, 40):
        q, contacts = stance(robot, n)
        for _, v, acceleration in states(robot, q)[:5]:
            problem = build_problem(
                robot, q, v, acceleration, contacts, DT, contact_time_constant_s=0.05
            )
            np.testing.assert_array_equal(
                solve(problem).torques, solve(problem, sliding="parting").torques
            )


def test_sliding_contacts_have_one_answer_at_all_doors(hyq):
    """Single, with a warm start, prepared, and many frames at a time: the same bits."""
    last, slid = None, 0
    for number in range(8):
        problem = moving_on_five(hyq, number, 0.4)
        solution = solve(problem)
        slid += not np.array_equal(solution.torques, solve(problem, sliding="parting").torques)
        np.testing.assert_array_equal(solution.torques, solve(problem, warm_start=last).torques)
        options = row_of("coulomb", "qp").defaults
        call = prepare_frames(problem.contacts.friction, problem.contacts.load_share, options)
        room = answer_room(problem)
        call(*matrices(problem), 1, room, UNTOLD)
        np.testing.assert_array_equal(solution.torques, read_answer(problem, room).torques)
        last = solution
    assert slid > 2
