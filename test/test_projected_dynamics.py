"""Projected dynamics: Property 1, the constrained motion, and the multipliers, by other means."""

import numpy as np
import pinocchio as pin
import pytest
from robots import (
    QUADRUPED,
    QUADRUPED_FEET,
    SOLO_FEET,
    frame_positions,
    point_kinematics,
    random_state,
    solo12,
)

from contact_id_controller import ContactSet, RobotModel
from contact_id_controller.exceptions import ConfigurationError, StateError
from experiments.projected.dynamics import ProjectedDynamics

PANDA = "example-robot-data://panda_description/urdf/panda.urdf"
STEP_S = 1e-6


@pytest.fixture(scope="module")
def robots():
    """Three robots, two floating and one fixed, with frames to stand on."""
    return [
        (solo12(), SOLO_FEET),
        (RobotModel.from_urdf(QUADRUPED), QUADRUPED_FEET),
        (RobotModel.from_urdf(PANDA, floating_base=False), ["panda_hand", "panda_link5"]),
    ]


def held(robot, q, frames, rng, mu=0.6):
    """Contacts at the frames' origins, in random directions."""
    normals = rng.normal(size=(len(frames), 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return ContactSet(frame_positions(robot, q, frames), normals, frames, mu)


def cases(robots, seed, count=6):
    """Random states on a varying number of contacts: none, some, the same one twice."""
    rng = np.random.default_rng(seed)
    for robot, frames in robots:
        for number in range(count):
            q, v = random_state(robot, rng)
            chosen = [frames[i % len(frames)] for i in range(number % (len(frames) + 2))]
            yield robot, q, v, held(robot, q, chosen, rng), rng


def moved(robot, q, v, contacts, step):
    """The dynamics a moment later, the contacts' points having moved with the robot."""
    there = pin.integrate(robot.model, q, step * v)
    points = frame_positions(robot, there, contacts.frames) if len(contacts) else contacts.points
    return ProjectedDynamics(robot, there, v, contacts.moved(points), scale=1.0)


def test_property_1_positive_definite_and_skew_symmetric(robots):
    for robot, q, v, contacts, rng in cases(robots, 0):
        model = ProjectedDynamics(robot, q, v, contacts, scale=1.0)
        values = np.linalg.eigvalsh(model.Mbar)
        assert values[0] > 0.0 and values[-1] <= max(1.0, np.linalg.eigvalsh(model.M)[-1]) * (
            1 + 1e-12
        )
        ahead, behind = (moved(robot, q, v, contacts, sign * STEP_S) for sign in (1.0, -1.0))
        if ahead.rank != model.rank or behind.rank != model.rank:
            continue
        rate = (ahead.Mbar - behind.Mbar) / (2.0 * STEP_S)
        size = np.abs(rate).max() + np.abs(model.Cbar).max()
        np.testing.assert_allclose(rate, model.Mbar_dot, atol=1e-6 * size)
        skew = rate - 2.0 * model.Cbar
        np.testing.assert_allclose(skew, -skew.T, atol=1e-6 * size)
        np.testing.assert_allclose(
            (ahead.P - behind.P) / (2.0 * STEP_S), model.P_dot, atol=1e-5 * size
        )
        np.testing.assert_allclose(
            (ahead.A - behind.A) / (2.0 * STEP_S), model.A_dot, atol=1e-5 * size
        )


def test_projectors(robots):
    for robot, q, v, contacts, _ in cases(robots, 1):
        model = ProjectedDynamics(robot, q, v, contacts)
        eye = np.eye(robot.nv)
        np.testing.assert_allclose(model.P @ model.P, model.P, atol=1e-12)
        np.testing.assert_allclose(model.A @ model.P, 0.0, atol=1e-12)
        np.testing.assert_allclose(model.S @ model.S, model.S, atol=1e-8)
        np.testing.assert_allclose(model.P @ model.S, 0.0, atol=1e-8)
        assert round(np.trace(model.P)) == robot.nv - model.rank
        if not len(contacts):
            np.testing.assert_allclose(model.P, eye)
            np.testing.assert_allclose(model.Mbar, model.M, atol=1e-12)


def test_motion_and_forces_solve_the_equations_with_multipliers(robots):
    """Against one linear system in (qdd, f), for velocities that the contacts allow."""
    for robot, q, v, contacts, rng in cases(robots, 2):
        v = ProjectedDynamics(robot, q, v, contacts).P @ v
        for scale in (None, 0.01, 10.0):
            model = ProjectedDynamics(robot, q, v, contacts, scale)
            torques = 5.0 * rng.normal(size=robot.na)
            qdd = model.acceleration(torques)
            data = robot.model.createData()
            bias = pin.nonLinearEffects(robot.model, data, q, v)
            push = np.zeros(robot.nv)
            push[robot.actuated] = torques
            m = len(model.A)
            system = np.block([[model.M, -model.A.T], [model.A, np.zeros((m, m))]])
            right = np.concatenate([push - bias, -model.A_dot @ v])
            expected = np.linalg.lstsq(system, right, rcond=1e-12)[0]
            np.testing.assert_allclose(
                qdd, expected[: robot.nv], atol=1e-6 * (1 + np.abs(expected).max())
            )
            F, f0 = model.multipliers()
            pull = model.A.T @ (F @ torques + f0)
            tolerance = 1e-6 * (1 + np.abs(pull).max())
            np.testing.assert_allclose(pull, model.M @ qdd + bias - push, atol=tolerance)


def test_drift_is_that_of_pinocchios_frames(robots):
    robot, frames = robots[0]
    rng = np.random.default_rng(3)
    q, v = random_state(robot, rng)
    contacts = held(robot, q, frames, rng)
    model = ProjectedDynamics(robot, q, v, contacts)
    J, drift = point_kinematics(robot, q, v, frames)
    lengths = np.linalg.norm(drift.reshape(-1, 3), axis=1)
    np.testing.assert_allclose(
        np.linalg.norm((model.A_dot @ v).reshape(-1, 3), axis=1), lengths, rtol=1e-9
    )
    np.testing.assert_allclose(model.A.T @ model.A, J.T @ J, atol=1e-12)


def test_contacts_come_and_go_without_another_model(robots):
    robot, frames = robots[0]
    rng = np.random.default_rng(4)
    q, v = random_state(robot, rng)
    for count in (4, 3, 0, 2):
        model = ProjectedDynamics(robot, q, v, held(robot, q, frames[:count], rng))
        assert model.rank == min(3 * count, robot.nv) and model.Mbar.shape == (robot.nv, robot.nv)
    smooth = ProjectedDynamics(robot, q, v, held(robot, q, frames[:2], rng, mu=0.0))
    assert smooth.rank == 2


def test_bad_states_are_refused(robots):
    robot, _ = robots[0]
    q = robot.neutral()
    with pytest.raises(StateError):
        ProjectedDynamics(robot, q[1:], np.zeros(robot.nv), ContactSet.empty())
    with pytest.raises(StateError):
        ProjectedDynamics(robot, q, np.full(robot.nv, np.nan), ContactSet.empty())
    with pytest.raises(ConfigurationError):
        ProjectedDynamics(robot, q, np.zeros(robot.nv), ContactSet.empty(), scale=0.0)
