"""Operational-space laws on the projected dynamics: the errors follow the law that they are given."""

import numpy as np
import pinocchio as pin
import pytest
from robots import SOLO_FEET, frame_positions, solo12, standing_solo

from contact_id_controller import ContactSet
from contact_id_controller.exceptions import ConfigurationError
from experiments.projected.dynamics import ProjectedDynamics
from experiments.projected.operational_space import (
    center_of_mass_task,
    frame_pose_task,
    frame_position_task,
    joint_task,
    program,
    regulate,
    track,
)

STIFFNESS, DAMPING, STEP_S = 100.0, 20.0, 1e-3


@pytest.fixture(scope="module")
def robot():
    return solo12()


def standing(robot, feet=(0, 1, 2, 3), mu=0.6, speed=0.2, seed=0):
    """Solo12 on some of its feet, moving as they allow."""
    q, contacts = standing_solo(robot, mu)
    contacts = contacts.subset(np.isin(np.arange(4), feet))
    v = speed * np.random.default_rng(seed).normal(size=robot.nv)
    return q, ProjectedDynamics(robot, q, np.zeros(robot.nv), contacts).P @ v, contacts


def body_task(model, offset=(0, 0, 0), turn=(0, 0, 0)):
    placement = pin.SE3(
        pin.exp3(np.asarray(turn, dtype=float)), np.array([0.0, 0.0, model.q[2]]) + offset
    )
    return frame_pose_task(model, "base_link", placement, STIFFNESS, DAMPING)


def accelerations(model, tau_c):
    """qdd (nv,) when P B u = tau_c."""
    right = tau_c - model.P @ model.gravity - model.Cbar @ model.v
    return np.linalg.solve(model.Mbar, right)


def expected(task, v):
    rate = task.velocity - task.jacobian @ v
    return task.acceleration + task.damping * rate + task.stiffness * task.error


def test_tracking_gives_every_task_its_second_order_law(robot):
    q, v, contacts = standing(robot, feet=(0, 1, 2))
    model = ProjectedDynamics(robot, q, v, contacts)
    swing = frame_positions(robot, q, SOLO_FEET)[3]
    tasks = [
        body_task(model, [0.02, -0.01, 0.01], [0.1, 0.0, -0.1]),
        frame_position_task(
            model, "HR_FOOT", swing + [0.0, 0.0, 0.05], STIFFNESS, DAMPING, 0.1, 0.3
        ),
    ]
    qdd = accelerations(model, track(model, tasks))
    np.testing.assert_allclose(model.A @ qdd + model.A_dot @ v, 0.0, atol=1e-9)
    for task in tasks:
        np.testing.assert_allclose(
            task.jacobian @ qdd + task.jacobian_dot @ v, expected(task, v), atol=1e-8
        )


def test_a_posture_completes_and_does_not_disturb(robot):
    q, v, contacts = standing(robot, feet=(0, 1, 2))
    model = ProjectedDynamics(robot, q, v, contacts)
    task = center_of_mass_task(model, [0.0, 0.0, q[2]], STIFFNESS, DAMPING)
    with pytest.raises(ConfigurationError):
        track(model, [task])
    posture = joint_task(model, q[7:] + 0.1, STIFFNESS, DAMPING)
    qdd = accelerations(model, track(model, [task], posture))
    np.testing.assert_allclose(
        task.jacobian @ qdd + task.jacobian_dot @ v, expected(task, v), atol=1e-8
    )


def test_rates_of_the_tasks_are_their_derivatives(robot):
    q, v, contacts = standing(robot, feet=())
    step = 1e-6

    def values(at):
        model = ProjectedDynamics(robot, at, v, contacts)
        return [
            center_of_mass_task(model, np.zeros(3), 1.0, 1.0),
            frame_position_task(model, "FL_FOOT", np.zeros(3), 1.0, 1.0),
            frame_pose_task(model, "base_link", pin.SE3.Identity(), 1.0, 1.0),
        ]

    ahead, now, behind = (values(pin.integrate(robot.model, q, s * v)) for s in (step, 0.0, -step))
    for a, n, b in zip(ahead, now, behind):
        rate = (a.error[:3] - b.error[:3]) / (2.0 * step)  # e = x_d - x, x_d at rest
        np.testing.assert_allclose(rate, -(n.jacobian @ v)[:3], atol=1e-6)
        drift = (a.jacobian @ v - b.jacobian @ v) / (2.0 * step)
        np.testing.assert_allclose(drift, n.jacobian_dot @ v, atol=1e-5)


def integrate(robot, q, v, contacts, control, seconds):
    """The projected dynamics forward, velocities kept on the contacts; yields (time, model, u)."""
    for number in range(round(seconds / STEP_S)):
        model = ProjectedDynamics(robot, q, v, contacts)
        v = model.P @ v
        model = ProjectedDynamics(robot, q, v, contacts)
        torques = control(model)
        yield number * STEP_S, model
        v_next = v + STEP_S * model.acceleration(torques)
        q, v = pin.integrate(robot.model, q, 0.5 * STEP_S * (v + v_next)), v_next
        contacts = contacts.moved(frame_positions(robot, q, contacts.frames))


def test_simulated_body_follows_the_critically_damped_error(robot):
    """Stiffness 100, damping 20: e(t) = (1 + 10 t) exp(-10 t) e(0), with torques of least power."""
    q, v, contacts = standing(robot, speed=0.0)
    start = None
    goal = q[:3] + [0.01, -0.01, 0.01]

    def control(model):
        task = frame_pose_task(model, "base_link", pin.SE3(np.eye(3), goal), STIFFNESS, DAMPING)
        result = program(model, track(model, [task])).solve()
        assert result.status == "solved"
        return result.torques

    for time_s, model in integrate(robot, q, v, contacts, control, 0.3):
        error = goal - model.q[:3]
        start = error if start is None else start
        decay = (1.0 + 10.0 * time_s) * np.exp(-10.0 * time_s)
        np.testing.assert_allclose(error, decay * start, atol=2e-4)


def test_regulation_comes_to_rest_at_the_goal(robot):
    q, v, contacts = standing(robot)
    goal = q[:3] + [0.005, 0.0, 0.005]

    def control(model):
        task = frame_pose_task(model, "base_link", pin.SE3(np.eye(3), goal), 400.0, 0.0)
        return np.linalg.lstsq(model.P @ model.B, regulate(model, [task], 1.0), rcond=1e-9)[0]

    energy = []
    for _, model in integrate(robot, q, v, contacts, control, 2.0):
        task = frame_pose_task(model, "base_link", pin.SE3(np.eye(3), goal), 400.0, 0.0)
        energy.append(0.5 * model.v @ model.Mbar @ model.v + 200.0 * task.error @ task.error)
    assert np.linalg.norm(goal - model.q[:3]) < 2e-3 and np.linalg.norm(model.v) < 2e-2
    assert energy[-1] < 0.05 * energy[0]
    assert np.max(np.diff(energy)) < 1e-3 * energy[0]  # the Lyapunov function of section 3.1.2


def test_least_power_and_the_disturbance_of_a_plan_that_friction_cannot_hold(robot):
    q, v, contacts = standing(robot, mu=0.3, speed=0.0)
    model = ProjectedDynamics(robot, q, v, contacts)
    gentle = program(model, track(model, [body_task(model, [0.01, 0.0, 0.0])])).solve()
    assert gentle.status == "solved"
    easy = track(model, [body_task(model, [0.01, 0.0, 0.0])])
    plain = np.linalg.lstsq(model.P @ model.B, easy, rcond=1e-9)[0]
    assert gentle.torques @ gentle.torques >= plain @ plain * (1 - 1e-6)  # cones cost, never gain
    tau_c = track(model, [body_task(model, [0.1, 0.0, 0.0])])  # 10 m/s2 forward, friction holds 3
    hard = program(model, tau_c).solve()
    assert hard.status == "relaxed" and hard.level == 1
    assert np.all(
        np.hypot(hard.forces[:, 1], hard.forces[:, 2]) <= 0.3 * hard.forces[:, 0] * (1 + 1e-9)
    )
    d = np.linalg.solve(model.Mbar, model.P @ (model.B @ hard.torques) - tau_c)
    assert np.linalg.norm(d) == pytest.approx(np.linalg.norm(hard.disturbance), rel=1e-5)
    F, f0 = model.multipliers()
    pull = model.A.T @ hard.forces.reshape(-1)
    np.testing.assert_allclose(pull, model.A.T @ (F @ hard.torques + f0), atol=1e-5)


def test_no_contact_at_all_leaves_a_fixed_arm_its_inverse_dynamics():
    from contact_id_controller import RobotModel

    arm = RobotModel.from_urdf(
        "example-robot-data://panda_description/urdf/panda.urdf", floating_base=False
    )
    q = arm.neutral()
    q[:7] = [0.1, -0.5, 0.2, -1.8, 0.1, 1.5, 0.3]
    v = 0.3 * np.ones(arm.nv)
    model = ProjectedDynamics(arm, q, v, ContactSet.empty())
    task = joint_task(model, q[arm.q_index], STIFFNESS, DAMPING)
    result = program(model, track(model, [task])).solve()
    data = arm.model.createData()
    expected_torques = pin.rnea(arm.model, data, q, v, -DAMPING * v)
    np.testing.assert_allclose(result.torques, expected_torques[arm.actuated], atol=1e-5)
