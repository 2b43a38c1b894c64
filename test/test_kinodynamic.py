"""Whole-body motion of the kinodynamic planner, judged by Pinocchio's kinematics and differences."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from kinodynamic_cases import solo12, talos, walk
from scipy.interpolate import CubicSpline

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic import whole_body
from contact_id_controller.planning.kinodynamic.between_knots import between_knots, trajectories
from contact_id_controller.planning.kinodynamic.contact_plan import (
    ContactPhase,
    ContactPlan,
    ContactPlanError,
)
from contact_id_controller.planning.kinodynamic.placement import is_flat
from contact_id_controller.planning.kinodynamic.standing import carried_along, standing_start
from contact_id_controller.planning.kinodynamic.swing import foot_motion
from contact_id_controller.planning.kinodynamic.whole_body import MotionProblem, solve_motion

TILTED = pin.rpy.rpyToMatrix(-0.2, -0.1, 0.3)
STEPS = {
    "talos": (talos, [(1, (0.22, -0.02, 0.06), TILTED)], 0.7),
    "solo12": (solo12, [(0, (0.05, 0, 0.02), None), (3, (0.05, 0, 0), None)], 0.3),
}


@pytest.fixture(scope="module", params=STEPS)
def case(request):
    """A robot, its contact plan, and a problem whose CoM follows the mean of the feet."""
    robot_case, steps, phase_s = STEPS[request.param]
    robot, soles, q, _ = robot_case()
    plan = walk(robot_case(), steps, swing_s=phase_s, support_s=phase_s)
    times = np.linspace(0.0, plan.duration_s, round(plan.duration_s / phase_s) * 4 + 1)
    feet = foot_motion(plan, times, 0.05)
    flat = tuple(is_flat(sole) for sole in soles)
    frames = tuple(sole.frame for sole in soles)
    posture, com = carried_along(robot, soles, q, feet)
    problem = MotionProblem(robot, times, frames, flat, feet, com, np.zeros_like(com), posture)
    return plan, problem


@pytest.fixture(scope="module")
def motion(case):
    return solve_motion(case[1])


def test_feet_leave_and_land_at_rest_and_move_as_their_velocities_say(case):
    plan, _ = case
    step = 1e-5
    times = np.linspace(0.0, plan.duration_s, 500)
    here, there = (foot_motion(plan, times + shift, 0.05) for shift in (-step, step))
    now = foot_motion(plan, times, 0.05)
    np.testing.assert_allclose(
        (there.positions - here.positions) / (2 * step), now.velocities, atol=1e-6
    )
    turns = there.rotations @ here.rotations.swapaxes(-1, -2)
    spins = np.array([[pin.log3(turn) for turn in row] for row in turns]) / (2 * step)
    np.testing.assert_allclose(spins, now.spins, atol=1e-6)
    assert now.standing.sum() < now.standing.size
    for column, sole in enumerate(plan.soles):
        for number, phase in enumerate(plan.phases):
            foothold = phase.foothold_of(sole.frame)
            if foothold is not None:
                ends = foot_motion(plan, plan.boundaries_s[[number, number + 1]], 0.05)
                assert ends.standing[:, column].all()
                np.testing.assert_array_equal(ends.velocities[:, column], 0.0)
                np.testing.assert_array_equal(ends.positions[:, column], [foothold.position] * 2)


def test_a_swing_rises_above_both_of_its_ends(case):
    plan, _ = case
    feet = foot_motion(plan, np.linspace(0.0, plan.duration_s, 500), 0.05)
    for column in range(len(plan.soles)):
        aloft = ~feet.standing[:, column]
        if aloft.any():
            ends = feet.positions[feet.standing[:, column], column, 2].max()
            assert feet.positions[aloft, column, 2].max() > ends + 0.03
            assert feet.positions[aloft, column, 2].min() > -1e-12 + min(
                feet.positions[[0, -1], column, 2]
            )


def test_a_foot_that_begins_aloft_is_named():
    _, soles, _, stance = solo12()
    plan = ContactPlan(soles, (ContactPhase(0.5, stance[1:]), ContactPhase(0.5, stance)))
    with pytest.raises(ContactPlanError, match=r"phase 0, foot FL_FOOT: is aloft at the beginning"):
        foot_motion(plan, np.zeros(1), 0.05)


def test_the_gradient_is_that_of_finite_differences(case):
    """At a motion far from the solution, along a random direction; limits are active there."""
    rng = np.random.default_rng(0)
    model = case[1].robot.model
    problem = dataclasses.replace(case[1], start_velocity=rng.normal(size=model.nv))
    shape = (len(problem.times_s), model.nv)
    q = [
        pin.integrate(model, row, 0.3 * dq)
        for row, dq in zip(problem.posture, rng.normal(size=shape))
    ]
    along, step = rng.normal(size=shape), 1e-6
    costs = [
        whole_body.linearise(
            problem, np.array([pin.integrate(model, a, s * b) for a, b in zip(q, along)])
        ).cost
        for s in (-step, step)
    ]
    slope = np.sum(whole_body.linearise(problem, np.array(q)).gradient * along)
    assert (costs[1] - costs[0]) / (2 * step) == pytest.approx(slope, rel=1e-6)


def test_the_blocks_are_the_curvature_of_small_residuals(case, motion):
    """H d is the change of the gradient: where the residuals are small, up to their curvature."""
    problem, q = case[1], motion.configurations
    model = problem.robot.model
    at = whole_body.linearise(problem, q)
    along = np.random.default_rng(1).normal(size=at.gradient.shape)
    step = 1e-5
    gradients = [
        whole_body.linearise(
            problem, np.array([pin.integrate(model, a, s * b) for a, b in zip(q, along)])
        ).gradient
        for s in (-step, step)
    ]
    product = (at.diagonal @ along[..., None])[..., 0]
    product[1:] += (at.lower @ along[:-1, :, None])[..., 0]
    product[:-1] += (at.lower.swapaxes(1, 2) @ along[1:, :, None])[..., 0]
    change = (gradients[1] - gradients[0]) / (2 * step)
    assert np.linalg.norm(change - product) < 1e-2 * np.linalg.norm(product)


def test_motion_reaches_feet_and_com_within_the_limits(motion):
    residuals = motion.residuals()
    assert motion.converged
    assert residuals["com"] < 2e-3
    assert residuals["standing_position"] < 3e-4 and residuals["standing_rotation"] < 1e-3
    assert residuals["position_limit"] < 0 and residuals["speed_limit"] < 1
    start = motion.problem.posture[0]
    np.testing.assert_array_equal(motion.configurations[0], start)


def test_the_momentum_of_an_interval_stands_in_the_row_of_its_end(motion):
    """Row t + 1 is Pinocchio's centroidal momentum half way from knot t to knot t + 1; row 0 is rest."""
    robot, q = motion.problem.robot, motion.configurations
    model, data = robot.model, robot.model.createData()
    dt = motion.problem.time_step_s
    assert not motion.velocities[0].any() and not motion.angular_momentum[0].any()
    for t in range(len(q) - 1):
        way = pin.difference(model, q[t], q[t + 1])
        middle = pin.integrate(model, q[t], way / 2)
        momentum = pin.computeCentroidalMomentum(model, data, middle, way / dt)
        np.testing.assert_allclose(motion.angular_momentum[t + 1], momentum.angular, atol=1e-12)
        np.testing.assert_allclose(motion.velocities[t + 1], way / dt, atol=1e-12)
        np.testing.assert_allclose(
            motion.linear_momentum[t + 1], momentum.linear, atol=0.02 * robot.mass
        )


def test_standing_feet_rest_between_the_knots(case, motion):
    """At 1 kHz, along the cubic trajectories that the controller follows: 0.3 mm, 1 mrad."""
    plan, problem = case
    robot = problem.robot
    path = CubicSpline(problem.times_s, problem.com, bc_type="clamped")
    fine = between_knots(
        motion,
        plan,
        problem.com,
        path(problem.times_s, 1),
        problem.angular_momentum,
        parts=2,
        swing_height_m=0.05,
    )
    assert fine.misses.max() < 1e-7
    begin_s = 1.0
    joints, base = trajectories(robot, fine.times_s, fine.configurations, fine.velocities, begin_s)
    data = robot.model.createData()
    q = robot.neutral()
    for time_s in np.arange(0.0, plan.duration_s, 1e-3):
        pose, angles = base.sample(begin_s + time_s), joints.sample(begin_s + time_s).position
        q[:3], q[3:7], q[robot.q_index] = pose.position, pose.quaternion_xyzw, angles
        pin.framesForwardKinematics(robot.model, data, q)
        feet = foot_motion(plan, [time_s], 0.05)
        for column in np.flatnonzero(feet.standing[0]):
            place = data.oMf[robot.frame_id(problem.frames[column])]
            assert np.linalg.norm(place.translation - feet.positions[0, column]) < 3e-4
            if problem.flat[column]:
                turned = feet.rotations[0, column].T @ place.rotation
                assert np.linalg.norm(pin.log3(turned)) < 1e-3


def test_a_posture_whose_feet_cannot_be_level_is_refused():
    robot, soles, _, _ = talos()
    posture = np.zeros(robot.na)
    posture[robot.joint_names.index("leg_left_4_joint")] = 0.1
    posture[robot.joint_names.index("leg_left_6_joint")] = 0.5
    posture[robot.joint_names.index("leg_right_2_joint")] = -0.5
    with pytest.raises(ConfigurationError, match="cannot be put on its first foothold"):
        standing_start(robot, soles, posture)
