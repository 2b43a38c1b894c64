"""Torques at their limits: joints that have torque left move as before. Judges: plain numpy, quadprog, MuJoCo."""

import numpy as np
import pytest
import quadprog
from paths import CONFIG

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.least_change import least_change
from contact_id_controller.control.limits import EFFORT, RATE
from contact_id_controller.control.step_kernels import PRESSED, SPARED, share_torques
from contact_id_controller.runs.one_process import controller_settings
from contact_id_controller.runs.perturbed_runs import Case, run
from contact_id_controller.state import RobotState

PANDA = str(CONFIG / "arms" / "panda.yaml")


def random_inertia(rng, n):
    factor = rng.normal(size=(n, n))
    return factor @ factor.T + 0.01 * np.eye(n)


def test_a_thousand_answers_are_those_of_the_conditions_and_of_quadprog():
    """Sizes 1 to 12, bounds of 1 to 1e7 or none in one problem: no tolerance of the others depends on the largest."""
    rng = np.random.default_rng(4)
    for _ in range(1000):
        n = int(rng.integers(1, 13))
        G, value = random_inertia(rng, n), 20.0 * rng.normal(size=n)
        high = rng.choice([1.0, 5.0, 30.0, 1e7, np.inf], n)
        low, z = -rng.choice([0.5, 1.0, 1.0, np.inf], n) * high, np.empty(n)
        assert least_change(G.copy(), value, low, high, z)
        w, scale = value + G @ z, 1e-8 * (np.abs(value).max() + 1.0)
        assert (w >= low - scale).all() and (w <= high + scale).all()
        np.testing.assert_allclose(w[z > 0.0], low[z > 0.0], atol=scale)
        np.testing.assert_allclose(w[z < 0.0], high[z < 0.0], atol=scale)
        # Of the same conditions: least y' G^-1 y, y = G z, within the bounds.
        rows, bounds = np.vstack([np.eye(n), -np.eye(n)]), np.r_[low - value, value - high]
        finite = np.isfinite(bounds)
        inverse = np.linalg.inv(G)
        if not finite.any():
            continue
        judge = quadprog.solve_qp(
            0.5 * (inverse + inverse.T), np.zeros(n), rows[finite].T, bounds[finite]
        )[0]
        np.testing.assert_allclose(w - value, judge, atol=1e-6 * (np.abs(judge).max() + 1.0))


@pytest.fixture(scope="module")
def panda():
    """A controller of a Panda after a step at rest."""
    settings = controller_settings(PANDA)
    controller = Controller(settings.robot(), settings)
    posture = 0.5 * (controller.robot.lower + controller.robot.upper)
    q = controller.robot.configuration((), posture) if settings.floating_base else posture
    controller.step(RobotState(0.0, q, np.zeros(controller.robot.nv)))
    controller.period.contact[:] = False
    return controller


def shared(controller, torques):
    controller.period.bounded[:] = 0
    return share_torques(torques, controller.period)


def test_joints_with_torque_left_accelerate_as_before(panda):
    """And those at their limit only as it requires; reported as its effort or its rate."""
    rng, period, na = np.random.default_rng(6), panda.period, panda.robot.na
    effort, inertia = panda.effort_limits.copy(), period.inertia.copy()
    for _ in range(200):
        period.decided[:] = effort * rng.uniform(-1.0, 1.0, na)
        step = rng.choice([np.inf, 5.0], na)
        panda.limits.rate_step[:] = step
        wanted = effort * rng.uniform(-2.0, 2.0, na)
        low = np.maximum(-effort, period.decided - step)
        high = np.minimum(effort, period.decided + step)
        found = shared(panda, wanted)
        change = np.linalg.solve(inertia, found - wanted)
        acts = period.bounded != 0
        assert (np.abs(change[~acts]) < 1e-9 * (1.0 + np.abs(change).max())).all()
        assert (found >= low - 1e-9).all() and (found <= high + 1e-9).all()
        at = np.where(change > 0.0, low, high)
        np.testing.assert_allclose(found[acts], at[acts], atol=1e-9)
        by_rate = np.abs(at) < effort
        np.testing.assert_array_equal(period.bounded[acts], np.where(by_rate, RATE, EFFORT)[acts])
    panda.limits.rate_step[:] = np.inf
    inside = 0.99 * effort
    assert shared(panda, inside) is not None and (shared(panda, inside) == inside).all()


def test_an_arm_whose_hand_touches_or_slides_shares_no_torque(panda):
    """What slides is not in the problem: shared, torques would push it as if nothing touched."""
    period, beyond = panda.period, 2.0 * panda.effort_limits
    period.decided[:] = 0.0
    assert (shared(panda, beyond) != beyond).any()
    for touches in (period.contact, period.touching):
        touches[:] = True
        assert (shared(panda, beyond) == beyond).all() and not period.bounded.any()
        touches[:] = False


@pytest.mark.parametrize(("touches", "share"), [(False, SPARED), (True, PRESSED)])
def test_a_pressing_force_is_kept_while_joints_have_torque_left(panda, touches, share):
    """And the joints' accelerations are the nearest ones; quadprog's, of the same problem."""
    rng, period, na = np.random.default_rng(9), panda.period, panda.robot.na
    effort, inertia = panda.effort_limits, period.inertia.copy()
    period.decided[:], kept = 0.0, 0
    for _ in range(100):
        wanted, row = effort * rng.uniform(-1.0, 1.0, na), inertia @ rng.normal(size=na)
        wanted[rng.integers(na)] *= 2.0
        period.parting[0], period.touching[0] = row, touches
        change = shared(panda, wanted) - wanted
        if not change.any():
            continue
        square = inertia @ inertia
        H = np.linalg.inv(square) + np.outer(row, row) / (share * (row @ square @ row))
        size = 1.0 / np.sqrt(np.diag(H))
        sides = np.vstack([np.diag(size), -np.diag(size)]).T
        bounds = np.r_[-effort - wanted, wanted - effort]
        H *= np.outer(size, size)
        judge = size * quadprog.solve_qp(0.5 * (H + H.T), np.zeros(na), sides, bounds)[0]
        np.testing.assert_allclose(change / effort, judge / effort, atol=1e-5)
        clipped = np.clip(wanted, -effort, effort) - wanted
        kept += abs(row @ change) < (1.0 if touches else 0.05) * abs(row @ clipped)
    period.parting[:], period.touching[:] = 0.0, False
    assert kept > 15


def test_torques_do_not_jump_as_limits_begin_to_act(panda):
    """Along random lines of wanted torques: a step of 5e-4 of the limits changes the torques by no more than .025."""
    rng, na, effort = np.random.default_rng(7), panda.robot.na, panda.effort_limits
    panda.period.decided[:], acted = 0.0, set()
    for _ in range(20):
        way, last = effort * rng.uniform(-1.0, 1.0, na), None
        for share in np.arange(0.5, 3.0, 1e-4 * 5):
            found = shared(panda, share * way)
            if last is not None:
                assert (np.abs(found - last) / effort).max() < 25e-3
            last = found
            acted.add(tuple(panda.period.bounded))
    assert len(acted) > 20


def test_an_answer_is_always_within_limits_that_were_lowered(panda):
    """To a third, with the last torques far beyond."""
    rng, na, effort = np.random.default_rng(8), panda.robot.na, panda.effort_limits.copy()
    panda.limits.rate_step[:] = 0.1
    for _ in range(100):
        panda.period.decided[:] = effort * rng.uniform(-1.0, 1.0, na)
        panda.effort_limits[:] = effort / 3.0
        found = shared(panda, effort * rng.uniform(-2.0, 2.0, na))
        assert (np.abs(found) <= effort / 3.0 + 1e-9).all()
    panda.effort_limits[:], panda.limits.rate_step[:] = effort, np.inf


def test_an_overloaded_arm_keeps_the_joints_that_have_torque_left():
    """Panda, three times as heavy as told: its mean joint error was .33 rad in 2 s."""
    pytest.importorskip("mujoco", reason="needs the simulated robot")
    outcome = run(Case(PANDA, "mass", 2.0, 0, 2.0))
    assert outcome.limits["torque"] > 0.3
    assert outcome.joint_error_rad < 0.1
