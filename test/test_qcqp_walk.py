"""coulomb/qcqp on the simulated quadruped: within its torque limits, and pulled harder than friction allows."""

import math

import numpy as np
import pytest
import walking

from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.plan import Plan

MU = 0.3


def statuses(run):
    return {result.status for result in run.results}


def outside_cone(run, mu):
    """Largest predicted force beyond its exact cone, N."""
    forces = np.array([result.forces for result in run.results])
    return (np.hypot(forces[..., 0], forces[..., 1]) - mu * forces[..., 2]).max()


def test_walks_with_torque_limits_at_60_percent_of_what_the_pyramid_needs():
    free = walking.run("quadruped", 1.5, MU, solver="qp")
    peak = np.abs([result.torques for result in free.results]).max()
    limit = 0.6 * peak
    run = walking.run("quadruped", 1.5, MU, solver="qcqp", effort_limits_nm=[float(limit)])
    torques = np.abs([result.torques for result in run.results])
    assert statuses(run) == {"solved", "relaxed"}
    assert torques.max() <= limit and torques.max() > 0.99 * limit
    assert not any(
        result.saturated.any() for result in run.results
    )  # the solver keeps the limits itself
    assert outside_cone(run, MU) <= 1e-6 * run.robot.weight
    heights = np.array([state.q[2] for state in run.states])
    assert np.abs(heights - heights[0]).max() < 0.02 * heights[0] + 0.005
    assert run.states[-1].q[0] > 0.1  # and it came forward
    predicted = np.array([result.forces for result in run.results])[500:, :, 2].sum(axis=1)
    error = np.abs(predicted - run.forces[500:, :, 2].sum(axis=1)).mean() / run.robot.weight
    assert error < 0.04


def jerk_sideways(acceleration):
    """The base is to start and stop within 0.12 s, then to stay."""
    half, sent = 0.06, []

    def plan(control, state):
        if sent:
            return
        sent.append(True)
        t = np.linspace(0.0, 0.5, 26)
        first, second = np.minimum(t, half), np.clip(t - half, 0.0, half)
        speed = acceleration * (first - second)
        way = acceleration * (0.5 * first**2 + half * second - 0.5 * second**2)
        positions, velocities = np.tile(state.q[:3], (26, 1)), np.zeros((26, 3))
        positions[:, 0] += way
        velocities[:, 0] = speed
        attitudes, spins = np.tile(state.q[3:7], (26, 1)), np.zeros((26, 3))
        base = BaseTrajectory(t, positions, attitudes, velocities, spins, state.time_s)
        control.follow(Plan(base=base), state.time_s)

    return plan


def slip(run):
    """Farthest way of a foot over the ground, m."""
    return np.linalg.norm((run.feet - run.feet[0])[..., :2], axis=2).max()


def test_a_plan_beyond_friction_costs_tracking_not_contact():
    within = walking.run("quadruped", 0.3, MU, plan=jerk_sideways(0.5 * MU * 9.81), solver="qcqp")
    beyond = walking.run("quadruped", 0.3, MU, plan=jerk_sideways(2.0 * MU * 9.81), solver="qcqp")
    pyramid = walking.run("quadruped", 0.3, MU, plan=jerk_sideways(2.0 * MU * 9.81), solver="qp")
    assert statuses(within) == {"solved"} and statuses(beyond) == {"solved", "relaxed"}
    assert outside_cone(beyond, MU) <= 1e-6 * beyond.robot.weight
    assert slip(beyond) < 1e-3 and slip(pyramid) > 5.0 * slip(beyond)
    assert all(result.contact.all() for result in beyond.results)
    given_up = max(np.abs(result.solution.disturbance).max() for result in beyond.results)
    assert given_up > 1.0


def test_power_loss_is_that_of_the_motor_constants():
    run = walking.run(
        "quadruped",
        0.01,
        MU,
        solver="qcqp",
        motor_constant_nm_sqrt_w=[8.0**-0.5],
    )
    for result in run.results:
        assert result.power_loss_w == pytest.approx(8.0 * np.square(result.torques).sum())
    bare = walking.run(
        "quadruped",
        0.002,
        MU,
        solver="qcqp",
        motor_constant_nm_sqrt_w=[],
    )
    assert all(math.isnan(result.power_loss_w) for result in bare.results)
