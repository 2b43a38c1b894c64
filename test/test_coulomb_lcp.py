"""coulomb/lcp with plans taken as they are: what has a solution is not called inconsistent."""

import numpy as np
import pytest

from contact_id_controller import solve
from experiments.benchmark.random_problems import random_problem

UNFELT = 2e-6  # of the largest contact velocity: what stiff contacts may yield


def polygon_violation(problem, impulses, edges):
    """How far impulses are from the LCP on the inscribed polygon, relative; plain numpy."""
    z = impulses.reshape(-1, 3) / np.abs(impulses).max()
    w = (problem.Y @ (problem.Y.T @ impulses) + problem.c).reshape(-1, 3)
    w[:, 0] += problem.gap_speed
    w /= np.abs(problem.c).max()
    mu = problem.contacts.friction
    angle = 2.0 * np.pi * np.arange(edges) / edges
    middle = angle + np.pi / edges
    directions = np.array([np.cos(angle), np.sin(angle)])
    outward = (z[:, 1:] @ np.array([np.cos(middle), np.sin(middle)])).max(axis=1)
    slip = (-w[:, 1:] @ directions).max(axis=1)
    power = (z[:, 1:] * w[:, 1:]).sum(axis=1) + mu * z[:, 0] * slip
    return max(
        -z[:, 0].min(),
        -w[:, 0].min(),
        (np.maximum(outward - mu * np.cos(np.pi / edges) * z[:, 0], 0.0) / (1.0 + mu)).max(),
        np.abs(z[:, 0] * w[:, 0]).max(),
        np.abs(power / (1.0 + mu)).max(),
    )


@pytest.mark.parametrize("number", [1604, 2256, 2741, 2875])
def test_what_has_a_solution_is_not_called_inconsistent(number):
    problem = random_problem(12, number).problem
    solution = solve(problem, "coulomb", "lcp", consistency="report", edges=4)
    assert polygon_violation(problem, solution.impulses, 4) <= UNFELT
    assert solution.status == "solved"
    np.testing.assert_array_equal(solution.joint_velocity_change, 0.0)
    assert solution.contradiction_m_s <= UNFELT * np.abs(problem.c).max()


def test_what_has_none_still_is():
    # Seven of a seed's problems with one or two contacts of which no mode has a solution.
    found = 0
    for number in range(120):
        case = random_problem(12, number)
        if not 0 < len(case.problem) <= 16 or np.isinf(case.problem.contacts.friction).any():
            continue
        solution = solve(case.problem, "coulomb", "lcp", consistency="report", edges=4)
        if solution.status == "inconsistent":
            found += 1
            assert solution.contradiction_m_s > 1e-7 * np.abs(case.problem.c).max()
    assert found >= 3
