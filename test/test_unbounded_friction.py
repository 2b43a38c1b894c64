"""From 1e3 on a coefficient of friction is infinite, in every model that takes one."""

import numpy as np
import pytest
from robots import solo12, standing_solo

from contact_id_controller import build_problem, solve
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.models import Tangential, contact_models

LARGE = [1e3, 1e4, 1e7, 1e9, 1e15, 1e100, 1e300, np.inf]
MODELS = [row.pair for row in contact_models() if row.tangential is Tangential.COULOMB]


@pytest.fixture(scope="module")
def robot():
    return solo12()


def pushed_solo(robot, mu):
    """Solo12 standing, its joints accelerating a little: feet need friction."""
    q, contacts = standing_solo(robot, mu)
    rng = np.random.default_rng(2)
    v, acceleration = 0.01 * rng.normal(size=robot.nv), 0.5 * rng.normal(size=robot.na)
    return build_problem(robot, q, v, acceleration, contacts, 1e-3, contact_time_constant_s=0.05)


@pytest.mark.parametrize("friction, solver", MODELS)
def test_every_large_coefficient_is_infinite(robot, friction, solver):
    without_slip = solve(pushed_solo(robot, np.inf), friction, solver)
    weight = -robot.mass * robot.model.gravity.linear[2]
    for mu in LARGE:
        solution = solve(pushed_solo(robot, mu), friction, solver)
        assert solution.status == without_slip.status == "solved"
        assert abs(solution.forces[:, 2].sum() - weight) < 0.1 * weight
        np.testing.assert_allclose(solution.velocity, without_slip.velocity, atol=1e-9)
        np.testing.assert_allclose(
            solution.torques, without_slip.torques, atol=1e-6 * np.abs(without_slip.torques).max()
        )
        assert solution.residuals()["cone_n"] == 0.0


@pytest.mark.parametrize("friction, solver", MODELS)
def test_all_models_agree_on_the_motion_without_slip(robot, friction, solver):
    expected = solve(pushed_solo(robot, np.inf), "no_slip", "lcp")
    for mu in (UNBOUNDED_FRICTION, 1e300):
        solution = solve(pushed_solo(robot, mu), friction, solver)
        # One stage yields by 1e-6 of its forces.
        np.testing.assert_allclose(solution.velocity, expected.velocity, atol=1e-5)
        np.testing.assert_allclose(
            solution.forces.sum(axis=0),
            expected.forces.sum(axis=0),
            atol=1e-3 * expected.forces.max(),
        )
