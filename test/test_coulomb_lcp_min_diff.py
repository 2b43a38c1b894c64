"""coulomb/lcp_min_diff (first paper, algorithm 3) against all solutions of the LCP, basis by basis."""

import numpy as np
import pytest
from lcp_enumeration import all_bases, coulomb_lcp, modes, solutions
from robots import SOLO_FEET, random_contacts, random_state, solo12, standing_solo

from contact_id_controller import ContactSet, Solution, build_problem, solve
from contact_id_controller.exceptions import UnknownModelError
from contact_id_controller.models.coulomb_lcp import NO_SLIP
from experiments.benchmark.model_laws import violation

DT = 1e-3
PAIR = ("coulomb", "lcp_min_diff")


@pytest.fixture(scope="module")
def robot():
    return solo12()


def random_case(robot, seed, n, mu=None, edges=4):
    """A moving robot with n contacts in any direction, and impulses of the period before."""
    rng = np.random.default_rng([seed, n])
    q, v = random_state(robot, rng)
    frames = [SOLO_FEET[i] for i in rng.integers(0, 4, n)]
    contacts, _ = random_contacts(
        robot, q, frames, rng, rng.uniform(0.2, 1.5, n) if mu is None else mu
    )
    problem = build_problem(
        robot,
        q,
        0.3 * v,
        5.0 * rng.normal(size=robot.na),
        contacts,
        DT,
        contact_time_constant_s=0.05,
    )
    cold = solve(problem, *PAIR, edges=edges)
    size = np.abs(cold.impulses).max() or DT
    last = cold.impulses + rng.choice([0.0, 0.3, 3.0]) * size * rng.normal(size=3 * n)
    return problem, cold, last


def after(cold, last):
    """A solution with the impulses ``last``, to start from."""
    return Solution(cold.problem, "solved", cold.torques, last, cold.velocity)


def judge(cold, last, bases, edges, loose):
    """All solutions by the enumeration, in scaled variables: impulses (N·s) nearest to ``last``."""
    problem = cold.problem
    inertia = np.square(problem.Y).sum() / len(problem.c)
    speed = np.abs(cold.attainable).max()
    free = cold.attainable.copy()
    free[::3] += problem.gap_speed
    mu = np.minimum(problem.contacts.friction, NO_SLIP)
    M, q, D = coulomb_lcp(problem.Y / np.sqrt(inertia), free / speed, mu, edges)
    unit = speed / inertia
    return [unit * z for z in solutions(M, q, D, last / unit, bases, loose)]


def check_nearest(cold, last, bases, edges=4):
    """The warm-started solution is the nearest of all; returns them and it."""
    ours = solve(cold.problem, *PAIR, warm_start=after(cold, last), edges=edges)
    assert ours.status == "solved"
    assert violation("coulomb", "lcp", ours, edges, "inscribed") < 1e-8
    bases = list(bases)
    found = judge(cold, last, bases, edges, 1e-11)
    lower = min(np.linalg.norm(z - last) for z in judge(cold, last, bases, edges, 1e-8))
    upper = min(np.linalg.norm(z - last) for z in found)
    scale = max(np.abs(ours.impulses).max(), np.abs(last).max()) + 1e-12
    mine = np.linalg.norm(ours.impulses - last)
    assert lower - 1e-6 * scale <= mine <= upper + 1e-6 * scale
    return found, ours


@pytest.mark.parametrize(
    "n, edges, count, bases",
    [
        (1, 3, 8, all_bases),
        (1, 4, 8, all_bases),
        (1, 6, 3, all_bases),
        (2, 3, 3, all_bases),
        (2, 4, 1, all_bases),
        (2, 5, 8, modes),
        (3, 4, 3, modes),
        (4, 3, 1, modes),
    ],
)
def test_nearest_of_all_solutions(robot, n, edges, count, bases):
    for seed in range(count):
        _, cold, last = random_case(robot, seed, n, edges=edges)
        check_nearest(cold, last, bases(n, edges), edges)
        check_nearest(cold, np.zeros(3 * n), bases(n, edges), edges)


@pytest.mark.parametrize("mu", [0.0, np.inf])
def test_nearest_of_all_solutions_without_and_with_unbounded_friction(robot, mu):
    for seed in range(4):
        _, cold, last = random_case(robot, seed, 2, mu, 3)
        check_nearest(cold, last, modes(2, 3) if mu else all_bases(2, 3), 3)


def painleve(robot, n):
    """n independent contacts of Painleve's kind: each may part, slide or jam.

    Free motion parts (w_N = .8) and slides (w_T = 2); friction 2 presses the contact together.
    """
    q, contacts = standing_solo(robot, 2.0)
    problem = build_problem(
        robot, q, np.zeros(robot.nv), np.zeros(robot.na), contacts.subset(np.arange(4) < n), DT
    )
    problem.Y[:], problem.c[:], problem.gap_speed[:] = 0.0, np.tile([0.8, 2.0, 0.0], n), 0.0
    for i in range(n):
        problem.Y[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = [
            [1, 0, 0],
            [0.9, np.sqrt(0.19), 0],
            [0, 0, 1],
        ]
    return problem


@pytest.mark.parametrize("n, bases", [(1, all_bases), (2, modes)])
def test_painleves_contacts_stay_in_the_solution_that_they_are_in(robot, n, bases):
    problem = painleve(robot, n)
    cold = solve(problem, *PAIR, consistency="report")
    assert not cold.impulses.any()  # parting is the least
    found = np.unique(np.round(judge(cold, np.zeros(3 * n), bases(n, 4), 4, 1e-9), 6), axis=0)
    assert len(found) == 3**n
    assert len(np.unique(np.round(found @ problem.Y, 6), axis=0)) == 3**n  # as many motions
    np.testing.assert_allclose(np.unique(found[:, 0]), [0.0, 1.0, 1.0 / 0.19], atol=1e-6)
    rng = np.random.default_rng(0)
    for z in found:
        last = z + 0.1 * rng.normal(size=3 * n)
        ours = solve(problem, *PAIR, warm_start=after(cold, last), consistency="report")
        assert violation("coulomb", "lcp", ours, 4, "inscribed") < 1e-8
        np.testing.assert_allclose(ours.impulses, z, atol=2e-6)


def test_coplanar_feet_are_nearest_too(robot):
    q, contacts = standing_solo(robot)
    rng = np.random.default_rng(1)
    for n in (2, 3, 4):
        few = contacts.subset(np.arange(4) < n)
        problem = build_problem(
            robot,
            q,
            1e-3 * rng.normal(size=robot.nv),
            rng.normal(size=robot.na),
            few,
            DT,
            contact_time_constant_s=0.05,
        )
        cold = solve(problem, *PAIR, edges=3)
        last = cold.impulses + 1e-3 * rng.normal(size=3 * n)
        check_nearest(cold, last, modes(n, 3), 3)


def test_renumbered_contacts_are_matched_by_identity(robot):
    order = np.array([2, 0, 1])
    rng = np.random.default_rng(2)
    q, contacts = standing_solo(robot)
    old = contacts.subset(np.arange(4) < 3)
    new = ContactSet(
        old.points[order],
        old.normals[order],
        [old.frames[i] for i in order],
        0.6,
        identities=[old.identities[i] for i in order],
    )
    for _ in range(5):
        v, acceleration = 1e-3 * rng.normal(size=robot.nv), rng.normal(size=robot.na)
        first, second = (build_problem(robot, q, v, acceleration, each, DT) for each in (old, new))
        last = after(solve(first, *PAIR), 0.02 * rng.normal(size=9))
        expected = solve(first, *PAIR, warm_start=last).forces
        forces = solve(second, *PAIR, warm_start=last).forces
        np.testing.assert_allclose(forces, expected[order], atol=1e-6 * np.abs(expected).max())


def test_the_answer_obeys_the_equations_of_motion(robot):
    rng = np.random.default_rng(5)
    q, contacts = standing_solo(robot)
    v = 1e-2 * rng.normal(size=robot.nv)
    problem = build_problem(robot, q, v, rng.normal(size=robot.na), contacts, DT)
    solution = solve(problem, *PAIR)
    assert max(solution.residuals(q, v).values()) < 1e-8


def test_no_contact_contacts_out_of_reach_and_too_many(robot):
    q, contacts = standing_solo(robot)
    v, rest = np.zeros(robot.nv), np.zeros(robot.na)
    assert solve(build_problem(robot, q, v, rest, ContactSet.empty(), DT), *PAIR).status == "solved"
    far = contacts.moved(contacts.points, gaps=np.ones(4))
    assert not solve(build_problem(robot, q, v, rest, far, DT), *PAIR).impulses.any()
    five = ContactSet(contacts.points[[0, 1, 2, 3, 0]], [[0, 0, 1]] * 5, SOLO_FEET + SOLO_FEET[:1])
    with pytest.raises(UnknownModelError, match="at most 4 contacts, got 5; choose coulomb/lcp"):
        solve(build_problem(robot, q, v, rest, five, DT), *PAIR)


def test_without_a_solution_forces_can_be_used_all_the_same(robot):
    """Two plates that close on a foot from both sides."""
    q, contacts = standing_solo(robot)
    crushing = ContactSet(
        contacts.points[[0, 0]],
        [[0, 0, 1], [0, 0, -1]],
        contacts.frames[:1] * 2,
        0.6,
        surface_velocities=[[0, 0, 1], [0, 0, -1]],
    )
    problem = build_problem(robot, q, np.zeros(robot.nv), np.zeros(robot.na), crushing, DT)
    solution = solve(problem, *PAIR, consistency="report")
    assert solution.status == "inconsistent"
    assert np.isfinite(solution.torques).all()
    assert solution.residuals()["cone_n"] < 1e-9 and solution.residuals()["adhesion_n"] == 0.0


@pytest.mark.parametrize("distribution", ["least_torque", "least_force"])
def test_distributed_forces_keep_the_motion_that_was_chosen(robot, distribution):
    for seed in range(12):
        problem, _, _ = random_case(robot, 900 + seed, 4)
        nearest, shared = solve(problem, *PAIR), solve(problem, *PAIR, distribution=distribution)
        assert shared.status == nearest.status == "solved"
        np.testing.assert_allclose(
            shared.velocity, nearest.velocity, atol=1e-7 * np.abs(nearest.velocity).max()
        )
        assert violation(*PAIR, shared, 4, "inscribed") < 1e-6
        cost = [
            np.linalg.norm(s.torques if distribution == "least_torque" else s.impulses)
            for s in (shared, nearest)
        ]
        assert cost[0] <= cost[1] * (1.0 + 1e-3)


def test_standing_with_least_torque_is_that_of_the_lcp(robot):
    q, contacts = standing_solo(robot)
    problem = build_problem(robot, q, np.zeros(robot.nv), np.zeros(robot.na), contacts, DT)
    nearest, shared = solve(problem, *PAIR), solve(problem, *PAIR, distribution="least_torque")
    np.testing.assert_allclose(shared.torques, solve(problem, "coulomb", "lcp").torques, atol=1e-6)
    assert np.linalg.norm(shared.torques) < 0.99 * np.linalg.norm(nearest.torques)
