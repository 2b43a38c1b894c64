"""The compiled arithmetic of a period against plain numpy, scipy and Pinocchio."""

import copy

import numpy as np
import pinocchio as pin
import pytest
from robots import QUADRUPED, QUADRUPED_FEET
from scipy.spatial.transform import Rotation

from contact_id_controller import RobotModel, build_problem
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.step_kernels import agreed_contacts
from contact_id_controller.exceptions import StateError
from contact_id_controller.geometry import FootContacts, HalfSpace, SphereFoot
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

POSTURE = np.array([0.1, 0.8, 1.2, -0.1, -0.8, -1.2, -0.1, -0.8, -1.2, 0.1, 0.8, 1.2])
GAINS = {
    "joint_position_gain": [400.0],
    "joint_velocity_gain": [30.0],
    "joint_integral_gain": [7.0],
    "base_linear_position_gain": [50.0, 40.0, 30.0],
    "base_linear_velocity_gain": [15.0],
    "base_angular_position_gain": [100.0],
    "base_angular_velocity_gain": [20.0, 10.0, 5.0],
}


def make(penetration_gain=0.0, **changes):
    settings = ControllerSettings.from_mapping(
        {"urdf": QUADRUPED, "contact_frames": QUADRUPED_FEET, "contact_radii_m": [0.01], **changes},
        penetration_gain=penetration_gain,
    )
    return Controller(RobotModel.from_urdf(QUADRUPED), settings)


def test_feet_are_where_pinocchio_has_them():
    robot = RobotModel.from_urdf(QUADRUPED)
    ground = HalfSpace((0.1, -0.2, 1.0), 0.03)
    feet = FootContacts(
        robot, [SphereFoot(f, 0.01, (0.01, 0.0, 0.02)) for f in QUADRUPED_FEET], ground
    )
    rng = np.random.default_rng(0)
    twin = copy.deepcopy(feet)
    other = robot.model.createData()
    for _ in range(3):
        for data, asked in ((robot.data, feet), (other, feet), (other, twin)):
            q = pin.randomConfiguration(robot.model, -np.ones(robot.nq), np.ones(robot.nq))
            q[7:] += 0.1 * rng.normal(size=robot.na)
            pin.framesForwardKinematics(robot.model, data, q)
            asked.update(data)
            for k, name in enumerate(QUADRUPED_FEET):
                center = data.oMf[robot.frame_id(name)].act(np.array([0.01, 0.0, 0.02]))
                point = center - 0.01 * ground.normal
                np.testing.assert_allclose(asked.points[k], point, atol=1e-14)
                np.testing.assert_allclose(asked.gaps[k], ground.normal @ point - 0.03, atol=1e-14)


def test_what_is_wanted_is_feedback_along_the_plan():
    """Joints: kp e + kd e' + ki I + planned; base: the same of its pose, by scipy's rotations."""
    controller = make(
        **GAINS, velocity_limits_rad_s=[1e6], position_stops=False, effort_above_description=True
    )
    robot, rng = controller.robot, np.random.default_rng(1)
    times, start = [0.0, 0.5, 1.0], 2.0
    joints = POSTURE + 0.1 * rng.normal(size=(3, 12))
    speeds, bends = rng.normal(size=(3, 12)), rng.normal(size=(3, 12))
    speeds[-1] = 0.0
    turns = Rotation.from_rotvec(0.3 * rng.normal(size=(3, 3)))
    places, velocities, spins = 0.1 * rng.normal(size=(3, 3, 3))
    plan = Plan(
        JointTrajectory(robot.joint_names, times, joints, speeds, bends, start),
        BaseTrajectory(times, places + [0.1, 0.2, 1.0], turns.as_quat(), velocities, spins, start),
        ContactSchedule(QUADRUPED_FEET, times, np.ones((3, 4)), start),
    )
    turn = Rotation.from_rotvec([0.1, -0.2, 0.3])
    q = robot.configuration([0.1, 0.2, 1.0, *turn.as_quat()], joints[0])
    v = rng.normal(size=18)
    controller.reset(RobotState(start - 0.001, q, v))
    controller.follow(plan, start - 0.001)
    controller.period.integral[:] = integral = rng.normal(size=12)
    t = start + 0.7
    controller.step(RobotState(t, q, v))
    joint, base = plan.joints.sample(t), plan.base.sample(t)
    wanted = 400.0 * (joint.position - q[7:]) + 30.0 * (joint.velocity - v[6:]) + 7.0 * integral
    np.testing.assert_allclose(
        controller.period.wanted[6:], wanted + joint.acceleration, rtol=1e-12
    )
    R = turn.as_matrix()
    tilt = (Rotation.from_quat(base.quaternion_xyzw) * turn.inv()).as_rotvec()
    linear = base.linear_acceleration + [50, 40, 30] * (base.position - q[:3])
    linear = linear + 15.0 * (base.linear_velocity - R @ v[:3])
    angular = base.angular_acceleration + 100.0 * tilt
    angular = angular + [20, 10, 5] * (base.angular_velocity - R @ v[3:6])
    goal = np.r_[R.T @ linear - np.cross(v[3:6], v[:3]), R.T @ angular]
    np.testing.assert_allclose(controller.period.wanted[:6], goal, rtol=1e-9, atol=1e-9)


def test_a_base_plan_has_the_motion_of_its_poses():
    """Velocities and accelerations are the derivatives of position and attitude, by differences."""
    rng = np.random.default_rng(2)
    times = [0.0, 0.3, 0.7]
    turns = Rotation.from_rotvec(rng.normal(size=(3, 3)))
    plan = BaseTrajectory(
        times, rng.normal(size=(3, 3)), turns.as_quat(), *rng.normal(size=(2, 3, 3)), start_s=1.0
    )
    h = 1e-5
    for t in (1.1, 1.5):
        before, now, after = (plan.sample(t + k * h) for k in (-1, 0, 1))
        assert now.quaternion_xyzw @ now.quaternion_xyzw == pytest.approx(1.0)
        difference = (after.position - before.position) / (2 * h)
        np.testing.assert_allclose(now.linear_velocity, difference, atol=1e-6)
        difference = (after.linear_velocity - before.linear_velocity) / (2 * h)
        np.testing.assert_allclose(now.linear_acceleration, difference, atol=1e-5)
        ends = [Rotation.from_quat(here.quaternion_xyzw) for here in (before, after)]
        spin = (ends[1] * ends[0].inv()).as_rotvec() / (2 * h)
        np.testing.assert_allclose(now.angular_velocity, spin, atol=1e-6)
        difference = (after.angular_velocity - before.angular_velocity) / (2 * h)
        np.testing.assert_allclose(now.angular_acceleration, difference, atol=1e-5)


def test_forces_are_the_solutions_and_what_is_pressed_on():
    controller = make(least_normal_force_n=[2.0])
    robot = controller.robot
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], POSTURE)
    pin.forwardKinematics(robot.model, robot.data, q)
    controller.feet.update(robot.data)
    q[2] -= controller.feet.gaps.min()
    v = 0.01 * np.random.default_rng(3).normal(size=18)
    result = controller.step(RobotState(1.0, q, v))
    expected = np.zeros((4, 3))
    expected[result.contact] = result.solution.forces
    expected[controller.period.touching, 2] += 2.0
    assert result.contact.any() and np.abs(expected[:, :2]).max() > 0.0
    np.testing.assert_allclose(result.forces, expected, atol=1e-12)


@pytest.mark.parametrize("bits", range(1, 8))
def test_sources_of_contact_must_agree(bits):
    rng = np.random.default_rng(bits)
    gaps, planned, measured = rng.normal(size=50), rng.random(50) < 0.5, rng.random(50) < 0.5
    votes = np.array([gaps <= 0.1, planned, measured])[[bool(bits & 1 << k) for k in range(3)]]
    since, last, contact = np.full(50, -np.inf), rng.random(50) < 0.5, np.empty(50, dtype=bool)
    new = votes.all(axis=0) & ~last
    agreed_contacts(gaps, 0.1, planned, bits, measured, 3.0, 0.5, since, last, contact)
    assert (contact == votes.all(axis=0)).all() and (last == contact).all()
    assert (since == np.where(new, 3.0, -np.inf)).all()


@pytest.mark.parametrize("time_constant_s", [0.001, 0.05])
def test_the_problem_of_a_step_is_what_build_problem_makes(time_constant_s):
    controller = make(contact_time_constant_s=time_constant_s, penetration_gain=0.3)
    robot, settings, rng = controller.robot, controller.settings, np.random.default_rng(4)
    turn = Rotation.from_rotvec([0.05, -0.1, 0.4]).as_quat()
    q = robot.configuration([0.1, 0.2, 0.16, *turn], POSTURE + 0.05 * rng.normal(size=12))
    v = rng.normal(size=18)
    result = controller.step(RobotState(1.0, q, v))
    problem = result.solution.problem
    acceleration = (problem.desired_velocity - v[robot.actuated]) / settings.period_s
    expected = build_problem(
        RobotModel.from_urdf(QUADRUPED),
        q,
        v,
        acceleration,
        problem.contacts,
        settings.period_s,
        contact_time_constant_s=time_constant_s,
        penetration_gain=0.3,
    )
    assert len(problem) and problem.keep == expected.keep
    np.testing.assert_allclose(problem.store, expected.store, rtol=1e-11, atol=1e-13)
    with pytest.raises(StateError, match="norm 1.2"):
        controller.step(RobotState(2.0, np.r_[q[:3], 1.2 * q[3:7], q[7:]], v))
