"""Kinodynamic plans: forces and motion agree, limits hold, and what cannot be done is named."""

import numpy as np
import pinocchio as pin
import pytest
from kinodynamic_cases import solo12, talos, walk
from scipy.integrate import solve_ivp

from contact_id_controller.planning.kinodynamic import plan_motion
from contact_id_controller.planning.kinodynamic.alternation import (
    MULTIPLIERS,
    middle_angular_momentum,
)
from contact_id_controller.planning.kinodynamic.feasibility import InfeasiblePlanError
from contact_id_controller.settings.kinodynamic_planner import KinodynamicSettings

TILTED = pin.rpy.rpyToMatrix(-0.2, -0.1, 0.0)


def settings(**changes):
    return KinodynamicSettings.from_mapping({"time_step_s": 0.1, **changes})


def planned(robot_case, steps, phase_s, consensus=MULTIPLIERS, passes=2, **changes):
    robot, _, q, _ = robot_case()
    plan = walk(robot_case(), steps, swing_s=phase_s, support_s=phase_s)
    values = settings(**changes)
    return robot, plan_motion(robot, plan, values, start=q, consensus=consensus, passes=passes)


@pytest.fixture(scope="module")
def talos_plan():
    """One step of 0.2 m onto a tilted stone of 6 cm."""
    return planned(talos, [(1, (0.2, -0.02, 0.06), TILTED)], 0.7)


@pytest.fixture(scope="module")
def solo12_plan():
    """Two steps of a quadruped."""
    steps = [(0, (0.05, 0.01, 0.02), None), (3, (0.05, 0, 0), None)]
    return planned(solo12, steps, 0.3, time_step_s=0.05, swing_height_m=0.04)


@pytest.fixture(params=["talos_plan", "solo12_plan"])
def case(request):
    return request.getfixturevalue(request.param)


def states(robot, plan, times):
    """q and v of the trajectories that are handed on."""
    begin_s = 1.0
    plan.joints.start_s = plan.base.start_s = begin_s
    for time_s in times:
        joints, base = plan.joints.sample(begin_s + time_s), plan.base.sample(begin_s + time_s)
        q, v = robot.neutral(), np.zeros(robot.nv)
        q[:3], q[3:7], q[robot.q_index] = base.position, base.quaternion_xyzw, joints.position
        turn = pin.Quaternion(base.quaternion_xyzw).toRotationMatrix()
        v[:3], v[3:6] = turn.T @ base.linear_velocity, turn.T @ base.angular_velocity
        v[robot.actuated] = joints.velocity
        yield q, v


def test_both_plans_agree_after_two_passes(case):
    """Section 8 of the design: 2 mm, 2 kg m/s and .2 kg m2/s for a humanoid of 90 kg."""
    robot, plan = case
    last = plan.passes[-1]
    assert len(plan.passes) == 2
    assert last.com < 2e-3
    assert last.momentum < 2.0 * robot.mass / 90.0
    assert last.angular_momentum < 0.2 * robot.mass / 90.0


def test_what_is_handed_on_has_the_momentum_of_the_forces(case):
    """CoM and momenta of the trajectories, by Pinocchio, at the knots and between them."""
    robot, plan = case
    model, data, momentum = robot.model, robot.model.createData(), plan.momentum
    scale = robot.mass * plan.momentum.com[0, 2] * np.sqrt(9.81 * plan.momentum.com[0, 2])
    dt = momentum.times_s[1]
    inner = momentum.times_s[1:-1]
    for row, (q, v) in enumerate(states(robot, plan, inner), start=1):
        h = pin.computeCentroidalMomentum(model, data, q, v)
        np.testing.assert_allclose(data.com[0], momentum.com[row], atol=1e-7)
        np.testing.assert_allclose(h.linear, momentum.momentum[row], atol=1e-5 * robot.mass)
        np.testing.assert_allclose(h.angular, momentum.angular_momentum[row], atol=1e-3 * scale)
    middles = middle_angular_momentum(momentum)[1:]
    for row, (q, v) in enumerate(states(robot, plan, momentum.times_s[:-1] + dt / 2)):
        h = pin.computeCentroidalMomentum(model, data, q, v)
        np.testing.assert_allclose(h.angular, middles[row], atol=4e-3 * scale)


def test_the_momentum_in_the_middle_is_that_of_the_held_forces(case):
    """Against an integration of the same forces by scipy."""
    _, plan = case
    momentum = plan.momentum
    problem, dt = momentum.problem, momentum.times_s[1]
    middles = middle_angular_momentum(momentum)
    for t in range(0, problem.knots, 3):
        points, forces = problem.contacts.points[t], momentum.forces[t]
        acceleration = forces.sum(0) / problem.mass_kg + problem.gravity

        def change(_, x, points=points, forces=forces, acceleration=acceleration):
            torque = np.cross(points - x[:3], forces).sum(0)
            return np.concatenate([x[3:6], acceleration, torque])

        start = np.concatenate(
            [momentum.com[t], momentum.velocity[t], momentum.angular_momentum[t]]
        )
        end = solve_ivp(change, (0.0, dt / 2), start, rtol=1e-10, atol=1e-12).y[:, -1]
        np.testing.assert_allclose(middles[t + 1], end[6:], atol=1e-8)


def test_forces_and_inertia_explain_each_other(case):
    """The base needs no force and little moment that the planned forces do not give; Newton and Euler."""
    robot, plan = case
    unexplained = plan.torques.unexplained
    assert np.abs(unexplained[:, :3]).max() < 5e-3 * robot.weight
    assert np.abs(unexplained[:, 3:]).max() < 0.03 * robot.weight * plan.momentum.com[0, 2]
    assert (np.abs(plan.torques.torques) <= robot.effort_limits).all()


def test_the_plan_is_one_that_a_controller_follows(case):
    """Joints, base and contacts begin together and end at rest; forces stand where feet do."""
    robot, plan = case
    assert set(plan.parts) == {"joints", "base", "contacts"}
    assert plan.joints.names == tuple(robot.joint_names)
    assert not plan.joints.ends_in_motion
    duration = plan.contact_plan.duration_s
    assert plan.joints.times_s[-1] == pytest.approx(duration)
    plan.contacts.start_s = plan.forces.start_s = 1.0
    for time_s in np.linspace(0.01, duration - 0.01, 50):
        standing = plan.contacts.sample(1.0 + time_s)
        forces = plan.forces.sample(1.0 + time_s)
        for name, stands in zip(plan.contacts.frames, standing):
            own = np.array([frame == name for frame in plan.forces.frames])
            assert stands == bool(np.abs(forces[own]).max() > 0)


def test_plain_alternation_agrees_less_after_the_same_passes():
    steps = [(0, (0.05, 0.01, 0.02), None)]
    apart = {}
    for consensus in ("plain", "multipliers"):
        _, plan = planned(solo12, steps, 0.3, time_step_s=0.05, passes=4, consensus=consensus)
        apart[consensus] = plan.passes[-1].angular_momentum
    assert apart["multipliers"] < apart["plain"]


@pytest.mark.parametrize(
    ("robot_case", "steps", "message"),
    [
        (
            talos,
            [(1, (0.9, 0, 0), None)],
            r"phase \d, foot \w+_sole_link: CoM [\d.]+ m from the foothold",
        ),
        (
            talos,
            [(1, (0.2, 0, 0), pin.rpy.rpyToMatrix(0.9, 0, 0))],
            r"phase \d, (foot|joint) \w+: ",
        ),
        (solo12, [(0, (0.6, 0, 0), None)], r"phase \d, foot \w+_FOOT: "),
    ],
    ids=["a stone too far", "a stone too steep", "a leg too short"],
)
def test_what_cannot_be_reached_is_named(robot_case, steps, message):
    with pytest.raises(InfeasiblePlanError, match=message):
        planned(robot_case, steps, 0.7)


def test_a_step_too_fast_for_a_joint_is_named():
    with pytest.raises(InfeasiblePlanError, match=r"phase \d, joint \w+: (moves at|needs)"):
        planned(talos, [(1, (0.25, 0, 0.1), None)], 0.2, time_step_s=0.05)


def test_a_step_without_friction_is_refused():
    robot, soles, q, _ = talos()
    plan = walk(talos(), [(1, (0.2, 0, 0.0), TILTED)], swing_s=0.7, support_s=0.7)
    slippery = [
        type(phase)(
            phase.duration_s,
            tuple(
                type(hold)(hold.foot, hold.position, hold.rotation, 0.0) for hold in phase.footholds
            ),
        )
        for phase in plan.phases
    ]
    with pytest.raises(InfeasiblePlanError, match="phase"):
        plan_motion(robot, type(plan)(soles, tuple(slippery)), settings(), start=q)
