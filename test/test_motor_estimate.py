"""Rotors and friction that nobody told of: learnt from legs in the air, and then known."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.motor_estimate import PARTS, RIDGE, SCALES, _solve, learn_motors
from contact_id_controller.runs import one_process
from contact_id_controller.simulation.perturbations import Changes, perturbation


def walk(name, seconds, wrong=None, **motors):
    """A run with motors, and what else is wrong, of which nobody told; and its mean joint error, rad."""
    settings = one_process.controller_settings(name, joint_weight=0.1)
    options = {"motors": [("*", motors)]} if motors else {}
    world = one_process.mujoco_robot(settings, 0.8, **options)
    world = world if wrong is None else wrong.applied(world)
    walked = one_process.InProcessRun(name, settings, world)
    record = walked.record(seconds)
    assert not record.fell, f"fell at {record.fell_time_s} s"
    return walked, float(np.abs(record.reference_position - record.position).mean())


def test_bounded_least_squares_is_that_of_scipy():
    """500 joints at random; the bounds act in most of them."""
    random, bounded = np.random.default_rng(3), 0
    for _ in range(500):
        rows = random.normal(size=(12, 1 + PARTS)) * 10.0 ** random.uniform(-1, 1, 1 + PARTS)
        told = np.array([0.0, *random.uniform(0.0, 0.3, 2), 0.0])
        found, gram, squares = np.zeros(PARTS), np.empty((PARTS, PARTS)), rows.T @ rows
        explained = _solve(squares, 1.0, 0.0, told, -np.inf, gram, found)
        ridge = np.sqrt(RIDGE) * np.diag(SCALES)
        A, b = np.vstack([rows[:, 1:], ridge]), np.concatenate([rows[:, 0], np.zeros(PARTS)])
        judge = lsq_linear(A, b, (-told - 1e-15, np.inf), method="bvls")
        bounded += bool((judge.active_mask != 0).any())
        cost = lambda x: 0.5 * np.sum((A @ x - b) ** 2)  # noqa: E731
        assert (found >= -told - 1e-9).all()
        # One bound after another, the worst first: at most a little above the optimum.
        assert cost(found) <= 1.05 * judge.cost + 1e-12
        left = np.sum((rows[:, 0] - rows[:, 1:] @ found) ** 2)
        assert explained == pytest.approx(1.0 - left / squares[0, 0], abs=1e-6)
    assert 120 < bounded < 480


def test_rotors_ten_times_as_heavy_as_the_legs_are_learnt():
    """Untold, the quadruped fell or erred by .14 rad. MuJoCo's armature is the judge."""
    walked, error = walk("quadruped", 3.0, rotor_inertia_kg_m2=0.01)
    inertia, *friction = walked.controller.period.motors
    np.testing.assert_allclose(inertia[3:6], 0.01, rtol=0.1)
    assert np.abs(friction).max() < 0.2  # .09 to .14, of .34 after the first second: it fades
    assert error < 0.025  # .045 where legs were learnt from 2 mm above the ground on
    kept = walked.controller.memory.copy().period.motors
    other = Controller(walked.controller.robot, walked.controller.settings)
    other.take_over(walked.controller)
    np.testing.assert_array_equal(other.period.motors, kept)
    other.hold_here(walked.believed)
    np.testing.assert_array_equal(other.period.motors, kept)
    other.reset(walked.believed)
    assert not other.period.motors.any()


def test_dry_friction_is_learnt():
    """And not taken for viscous friction, which MuJoCo's own was: of .5 N·m, knees were told .05 to .12."""
    walked, error = walk("go2", 2.0, dry_friction_nm=0.5)
    inertia, dry, viscous = walked.controller.period.motors
    np.testing.assert_allclose(dry, 0.5, rtol=0.1)
    assert np.abs(viscous).max() < 0.02 and inertia.max() < 0.01
    assert error < 0.009


@pytest.mark.parametrize("there", [0.0, 0.25, 0.5])
def test_told_friction_counts_as_far_as_it_is_there(there):
    """Of .5 N·m told, what legs in the air do not feel is taken away; MuJoCo's friction is the judge."""
    settings = one_process.controller_settings("go2", motors=["* dry_friction_nm=0.5"])
    world = one_process.mujoco_robot(settings, 0.8, motors=[("*", {"dry_friction_nm": there})])
    walked = one_process.InProcessRun("go2", settings, world)
    assert not walked.record(1.5).fell
    np.testing.assert_allclose(0.5 + walked.controller.period.motors[1], there, atol=0.03)


def test_torques_that_act_late_are_not_taken_for_friction():
    """Solo12 was learnt to have dry friction of .08 N·m in its hips after 2.5 s."""
    late = Changes()
    perturbation("delay").apply(late, 0.005)
    walked, _ = walk("solo12", 2.5, late)
    inertia, dry, _ = walked.controller.period.motors
    assert inertia.max() < 1e-3 and dry.max() < 0.06


@pytest.mark.parametrize("name", ["quadruped", "anymal_c"])
def test_nothing_is_learnt_of_motors_as_believed(name):
    walked, _ = walk(name, 1.2)
    inertia, dry, viscous = np.abs(walked.controller.period.motors)
    assert inertia.max() < 1e-4 and dry.max() < 1e-3 and viscous.max() < 1e-3


def test_a_blow_on_a_swinging_foot_wipes_nothing_out():
    """What little is explained by motors leaves what is known of them."""
    walked, _ = walk("go2", 1.5, dry_friction_nm=0.5)
    controller = walked.controller
    before = controller.period.motors.copy()
    for _ in range(400):
        aloft = controller.period.swing_s[0] > 0.02
        if aloft.any():
            break
        walked.advance()
    known = controller.period.motors[1, aloft].copy()
    for _ in range(10):  # as something that holds the leg would act
        controller.sent(controller.commanded + 20.0 * aloft)
        walked.advance()
    sure = known > 0.1  # of .5: what is hardly known yet may change
    assert sure.any() and before[1].any()
    assert (controller.period.motors[1, aloft] > 0.6 * known)[sure].all()


def test_what_is_learnt_is_bounded_by_the_torques_of_the_walk():
    """A robot that carries .01 N·m is not believed to have friction of .5."""
    walked, _ = walk("go2", 1.5, dry_friction_nm=0.5)
    while not (walked.controller.period.swing_s[0] > 0.03).any():
        walked.advance()
    period = walked.controller.period
    aloft = period.swing_s[0] > 0.03
    assert period.motors[1, aloft].max() > 0.1
    for _ in range(2000):  # twice as long as what is no longer evident is remembered
        period.commanded[:], period.effort[:] = 0.01, (0.01**2, 1.0)
        learn_motors(period, 0.001)
    assert period.motors[1, aloft].max() < 3.1 * 0.01
