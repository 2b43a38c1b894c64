"""Torques from one period to the next on indeterminate stances.

Solo12 stands on 2 to 12 coplanar contacts while its state changes a little at random from period to
period. How far torques jump then is the model's doing, not the robot's.
"""

import numpy as np
import pytest
from robots import SOLO_FEET, frame_positions, solo12, standing_solo

from contact_id_controller import ContactSet, build_problem, solve

DT, PERIODS = 1e-3, 40
MU = 0.6


@pytest.fixture(scope="module")
def robot():
    return solo12()


def stance(robot, n):
    """Solo12 on n contacts, evenly over its feet; three of them on three feet are determinate enough."""
    q, _ = standing_solo(robot, MU)
    feet = frame_positions(robot, q, SOLO_FEET)
    frames = [SOLO_FEET[i % 4] for i in range(n)]
    angle = 2.4 * np.arange(n)
    ring = np.where(np.arange(n) < 4, 0.0, 0.015)
    points = feet[np.arange(n) % 4] + np.stack(
        [ring * np.cos(angle), ring * np.sin(angle), 0 * angle], axis=1
    )
    return q, ContactSet(points, np.tile([0, 0, 1.0], (n, 1)), frames, MU)


def side(robot):
    """Solo12 on its two left feet: the force along the line between them is indeterminate."""
    q, contacts = standing_solo(robot, MU)
    return q, contacts.subset([True, False, True, False])


def periods(robot, q, contacts):
    """The contact problems of successive periods."""
    rng = np.random.default_rng(len(contacts))
    for _ in range(PERIODS):
        yield build_problem(
            robot,
            q,
            1e-4 * rng.normal(size=robot.nv),
            1e-2 * rng.normal(size=robot.na),
            contacts,
            DT,
            contact_time_constant_s=0.05,
        )


def largest_jump(robot, n, friction, solver, warm, **options):
    """Largest torque change (N·m) between successive periods on n contacts."""
    last, jump = None, 0.0
    for problem in periods(robot, *(side(robot) if n == 2 else stance(robot, n))):
        solution = solve(problem, friction, solver, warm_start=last if warm else None, **options)
        assert solution.status == "solved"
        if last is not None:
            jump = max(jump, np.abs(solution.torques - last.torques).max())
        last = solution
    return jump


@pytest.fixture(scope="module")
def determinate(robot):
    """What three contacts show: the change that the motion itself asks for."""
    return max(
        largest_jump(robot, 3, "coulomb", "qp", False),
        largest_jump(robot, 3, "no_slip", "lcp", True),
    )


@pytest.mark.parametrize("n", [4, 6, 8, 12])
@pytest.mark.parametrize(
    "friction, solver", [("coulomb", "qp"), ("no_slip", "lcp"), ("coulomb", "lcp")]
)
def test_least_torque_is_as_smooth_as_a_determinate_stance(robot, determinate, n, friction, solver):
    assert largest_jump(robot, n, friction, solver, True) <= 2.0 * determinate


@pytest.mark.parametrize("n", [4, 6, 8, 12])
def test_forces_alone_make_that_chatter(robot, n):
    """v+ is unique on these stances: the vertex moves like the distributed forces."""
    for problem in periods(robot, *stance(robot, n)):
        vertex = solve(problem, "coulomb", "lcp", distribution="none").velocity
        spread = solve(problem, "coulomb", "lcp", distribution="least_torque").velocity
        np.testing.assert_allclose(vertex, spread, rtol=0, atol=1e-7 * np.abs(spread).max())


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_solution_nearest_to_the_last_is_as_smooth_as_a_determinate_stance(
    robot, determinate, n
):
    """The first paper's own remedy, algorithm 3, where cold vertices chatter."""
    assert largest_jump(robot, n, "coulomb", "lcp", False, distribution="none") > 10.0 * determinate
    assert largest_jump(robot, n, "coulomb", "lcp_min_diff", True) <= 2.0 * determinate


def test_cold_vertices_of_the_lcp_chatter(robot, determinate):
    jumps = [
        largest_jump(robot, n, "coulomb", "lcp", False, distribution="none") for n in (4, 6, 8, 12)
    ]
    assert max(jumps) > 10.0 * determinate
