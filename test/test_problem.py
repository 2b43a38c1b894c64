"""The reduced problem against the un-reduced dynamics, assembled with Pinocchio and numpy alone."""

import re

import numpy as np
import pinocchio as pin
import pytest
from robots import SOLO_FEET, point_kinematics, random_contacts, random_state, solo12

from contact_id_controller import ContactSet, Solution, build_problem, solve
from contact_id_controller.exceptions import (
    ConfigurationError,
    ContactSetError,
    RobotDescriptionError,
    StateError,
    UnknownFrameError,
    UnknownJointError,
)
from contact_id_controller.kernels.spatial import tangents
from contact_id_controller.models import contact_models
from contact_id_controller.robot import RobotModel

DT = 1e-3


@pytest.fixture(scope="module")
def robot():
    return solo12()


@pytest.mark.parametrize("time_constant", [DT, 0.05])
def test_reduced_problem_equals_full_dynamics(robot, time_constant):
    rng = np.random.default_rng(3)
    for _ in range(20):
        q, v = random_state(robot, rng)
        acceleration = rng.normal(size=robot.na)
        contacts, offsets = random_contacts(robot, q, SOLO_FEET, rng)
        force = rng.normal(size=robot.nv)
        problem = build_problem(
            robot,
            q,
            v,
            acceleration,
            contacts,
            DT,
            contact_time_constant_s=time_constant,
            external_forces=force,
        )
        data = robot.model.createData()
        M = pin.crba(robot.model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        h = pin.nonLinearEffects(robot.model, data, q, v) - force
        J, drift = point_kinematics(robot, q, v, SOLO_FEET, offsets)
        R = np.zeros((12, 12))
        for i in range(4):
            R[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = problem.frames[i]
        J, drift = R @ J, R @ drift
        z = rng.normal(size=12) * 0.01
        # Un-reduced: unknown end velocity and torques, joint velocities prescribed.
        joint_velocity = v[robot.actuated] + DT * acceleration
        P = np.zeros((robot.na, robot.nv))
        P[np.arange(robot.na), robot.actuated] = 1.0
        system = np.block([[M, -DT * P.T], [P, np.zeros((robot.na, robot.na))]])
        answer = np.linalg.solve(system, np.concatenate([M @ v + J.T @ z - DT * h, joint_velocity]))
        end, torques = answer[: robot.nv], answer[robot.nv :]
        contact_velocity = J @ end + DT * drift - (1.0 - DT / time_constant) * (J @ v)
        np.testing.assert_allclose(
            problem.Y @ (problem.Y.T @ z) + problem.c, contact_velocity, atol=1e-11
        )
        np.testing.assert_allclose(problem.torque_offset + problem.T.T @ z, torques, atol=1e-9)
        base = np.linalg.solve(problem.L.T, problem.base + problem.Y.T @ z)
        np.testing.assert_allclose(base, end[robot.unactuated], atol=1e-11)


def test_contact_between_two_moving_bodies(robot):
    rng = np.random.default_rng(5)
    q, v = random_state(robot, rng)
    point = np.array([0.1, 0.0, 0.2])
    arms = []
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    for name in ("FL_FOOT", "FR_FOOT"):
        arms.append(point - data.oMf[robot.frame_id(name)].translation)
    J, drift = point_kinematics(robot, q, v, ["FL_FOOT", "FR_FOOT"], np.array(arms))
    contacts = ContactSet([point], [[0, 1, 0]], ["FL_FOOT"], against=["FR_FOOT"])
    problem = build_problem(robot, q, v, np.zeros(robot.na), contacts, DT)
    relative, relative_drift = J[:3] - J[3:], drift[:3] - drift[3:]
    end = np.empty(robot.nv)
    end[robot.actuated] = v[robot.actuated]
    end[robot.unactuated] = np.linalg.solve(problem.L.T, problem.base)
    expected = problem.frames[0] @ (relative @ end + DT * relative_drift)
    np.testing.assert_allclose(problem.c, expected, atol=1e-11)


def test_moving_environment_shifts_contact_velocity(robot):
    rng = np.random.default_rng(6)
    q, v = random_state(robot, rng)
    contacts, _ = random_contacts(robot, q, SOLO_FEET, rng)
    belt = rng.normal(size=(4, 3))
    moving = ContactSet(
        contacts.points,
        contacts.normals,
        contacts.frames,
        0.6,
        contacts.gaps,
        surface_velocities=belt,
    )
    still = build_problem(robot, q, v, np.zeros(robot.na), contacts, DT)
    carried = build_problem(robot, q, v, np.zeros(robot.na), moving, DT)
    shift = np.einsum("ijk,ik->ij", still.frames, belt).ravel()
    np.testing.assert_allclose(carried.c, still.c - shift, atol=1e-12)


def test_gap_speed_allows_closing_and_scales_opening(robot):
    q, v = robot.neutral(), np.zeros(robot.nv)
    contacts = ContactSet(np.zeros((2, 3)), [[0, 0, 1]] * 2, ["FL_FOOT"] * 2, 1.0, [0.001, -0.001])
    problem = build_problem(robot, q, v, np.zeros(robot.na), contacts, DT, penetration_gain=0.2)
    np.testing.assert_allclose(problem.gap_speed, [1.0, -0.2])


def test_frames_are_right_handed_with_the_normal_first():
    rng = np.random.default_rng(1)
    frame = np.empty((3, 3))
    for normal in [*rng.normal(size=(50, 3)), [0, 0, 1.0], [0, 0, -1.0], [1.0, 0, 0]]:
        normal = np.asarray(normal) / np.linalg.norm(normal)
        tangents(normal, frame)
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(frame[0], normal)
        assert np.linalg.det(frame) > 0.99


def test_no_contact_is_plain_inverse_dynamics_of_a_free_robot(robot):
    rng = np.random.default_rng(2)
    q, v = random_state(robot, rng)
    acceleration = rng.normal(size=robot.na)
    problem = build_problem(robot, q, v, acceleration, ContactSet.empty(), DT)
    end = np.empty(robot.nv)
    end[robot.unactuated] = np.linalg.solve(problem.L.T, problem.base)
    end[robot.actuated] = problem.desired_velocity
    data = robot.model.createData()
    effort = pin.rnea(robot.model, data, q, v, (end - v) / DT)
    np.testing.assert_allclose(effort[:6], 0.0, atol=1e-9)
    np.testing.assert_allclose(effort[6:], problem.torque_offset, atol=1e-9)


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"period": 0.0}, ConfigurationError, "period"),
        ({"period": float("nan")}, ConfigurationError, "period"),
        ({"contact_time_constant_s": 1e-4}, ConfigurationError, "contact_time_constant_s"),
        ({"penetration_gain": 2.0}, ConfigurationError, "penetration_gain"),
        ({"period": "1 ms"}, ConfigurationError, "period must be a positive number .*'1 ms'"),
        ({"period": None}, ConfigurationError, "period must be a positive number .* None"),
        ({"period": [DT]}, ConfigurationError, "period must be a positive number"),
        ({"q": np.zeros(3)}, StateError, "q must have shape"),
        ({"q": ["a"] * 19}, StateError, "q must be an array of real numbers, got .'a'"),
        ({"v": np.zeros(18) + 1j}, StateError, "v must be an array of real numbers"),
        ({"desired_acceleration": None}, StateError, "desired_acceleration .* got None"),
        ({"contacts": [[0, 0, 0]]}, ContactSetError, "contacts must be a ContactSet, got a list"),
        ({"v": np.full(18, np.nan)}, StateError, "finite"),
        ({"desired_acceleration": np.full(12, np.inf)}, StateError, "finite"),
    ],
)
def test_bad_problem_is_refused_by_name(robot, change, error, words):
    good = {
        "q": robot.neutral(),
        "v": np.zeros(18),
        "desired_acceleration": np.zeros(12),
        "contacts": ContactSet.empty(),
        "period": DT,
    }
    with pytest.raises(error, match=words):
        build_problem(robot, **{**good, **change})


def test_what_is_no_robot_and_no_problem_is_refused_by_name(robot):
    with pytest.raises(RobotDescriptionError, match="robot must be a RobotModel, got a str"):
        build_problem("solo12", [], [], [], ContactSet.empty(), DT)
    with pytest.raises(StateError, match="problem must be a Problem, got a NoneType"):
        solve(None)


def test_a_bad_configuration_is_refused_by_name(robot):
    base, joints = [0, 0, 0, 0, 0, 0, 1], [0.0] * 12
    for arguments, words in [
        ((base[1:], joints), r"base_pose must have shape \(7,\), got \(6,\)"),
        ((base, joints[1:]), r"joint_positions must have shape \(12,\), got \(11,\)"),
        ((base, 0.0), r"joint_positions must have shape \(12,\), got \(\)"),
        ((base, ["a"] * 12), "joint_positions must be an array of real numbers"),
    ]:
        with pytest.raises(StateError, match=words):
            robot.configuration(*arguments)


def test_residuals_of_another_robots_state_are_refused(robot):
    q, v = robot.neutral(), np.zeros(18)
    solution = solve(build_problem(robot, q, v, np.zeros(12), ContactSet.empty(), DT))
    with pytest.raises(StateError, match=r"q must have shape \(19,\), got \(18,\)"):
        solution.residuals(q[1:], v)


def test_bad_contacts_are_refused_by_name(robot):
    up = [[0, 0, 1]]
    for arguments, words in [
        ((np.zeros((1, 2)), up, ["FL_FOOT"]), "points"),
        ((np.zeros((1, 3)), [[0, 0, 2]], ["FL_FOOT"]), "length 1"),
        ((np.zeros((1, 3)), up, ["FL_FOOT"], -0.1), "friction"),
        ((np.zeros((1, 3)), up, ["FL_FOOT"], 0.5, [np.nan]), "gaps"),
        ((np.zeros((1, 3)), up, []), "frames"),
        ((np.zeros((1, 3)), up, None), "frames must be 1 names, got None"),
        ((np.zeros((1, 3)), up, "F"), "frames must be 1 names, got 'F'"),
        ((np.zeros((1, 3)), up, ["FL_FOOT"], "ice"), "friction must be an array .* got 'ice'"),
        (([[0, 0, 0], [0, 0]], up * 2, ["FL_FOOT"] * 2), "points must be an array"),
        ((np.zeros((2, 3)), up * 2, ["FL_FOOT"] * 2, 1.0, None, ["a", "a"]), "identities"),
    ]:
        with pytest.raises(ContactSetError, match=words):
            ContactSet(*arguments)
    unknown = ContactSet(np.zeros((1, 3)), up, ["NO_FOOT"])
    with pytest.raises(UnknownFrameError, match="NO_FOOT.*FL_FOOT"):
        build_problem(robot, robot.neutral(), np.zeros(18), np.zeros(12), unknown, DT)


@pytest.mark.parametrize(
    "name", ["points", "gaps", "normals", "load_share", "friction", "viscosity"]
)
def test_moved_refuses_values_of_another_shape_or_out_of_range(name):
    contacts = ContactSet(np.zeros((3, 3)), [[0, 0, 1]] * 3, ["FL_FOOT"] * 3)
    good = getattr(contacts, name)
    for bad in (good[:2], np.concatenate([good, good]), 0.5):
        shapes = f"{name} must have shape {good.shape}, got {np.shape(bad)}"
        with pytest.raises(ContactSetError, match=re.escape(shapes)):
            contacts.moved(**{name: bad})
    assert getattr(contacts.moved(**{name: good.tolist()}), name).tolist() == good.tolist()
    for bad in (np.full_like(good, np.nan), *([] if name in ("points", "gaps") else [good - 2.0])):
        with pytest.raises(ContactSetError, match=name):
            contacts.moved(**{name: bad})


def test_bad_robot_is_refused_by_name(tmp_path):
    with pytest.raises(RobotDescriptionError, match="nowhere.urdf"):
        RobotModel.from_urdf("/nowhere.urdf")
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot><link></robot>")
    with pytest.raises(RobotDescriptionError, match="cannot be read"):
        RobotModel.from_urdf(broken)
    with pytest.raises(UnknownJointError, match="'NO_JOINT'.*FL_HAA"):
        RobotModel.from_urdf(
            "example-robot-data://solo_description/robots/solo12.urdf", joints=["NO_JOINT"]
        )


def test_command_order_is_the_callers(robot):
    names = robot.joint_names[::-1]
    other = RobotModel.from_urdf(
        "example-robot-data://solo_description/robots/solo12.urdf", joints=names
    )
    q = other.configuration([0, 0, 1, 0, 0, 0, 1], np.arange(12) * 0.1)
    assert q[robot.q_index[0]] == pytest.approx(1.1)
    assert other.joint_names == names


def test_dynamics_defect_counts_external_forces(robot):
    rng = np.random.default_rng(8)
    q, v = random_state(robot, rng)
    contacts, _ = random_contacts(robot, q, SOLO_FEET, rng)
    force = 20.0 * rng.normal(size=robot.nv)
    problem = build_problem(
        robot, q, v, rng.normal(size=robot.na), contacts, DT, external_forces=force
    )
    solution = solve(problem)
    assert solution.residuals(q, v)["dynamics"] < 1e-7
    np.testing.assert_array_equal(problem.external_forces, force)
    without = build_problem(robot, q, v, rng.normal(size=robot.na), contacts, DT)
    forgetful = Solution(
        without, solution.status, solution.torques, solution.impulses, solution.velocity
    )
    assert forgetful.dynamics_defect(q, v) > 1.0


@pytest.mark.parametrize("pair", [str(row) for row in contact_models()])
def test_compiled_code_writes_every_number_of_problem_and_answer(robot, pair, monkeypatch):
    """What it only writes and never reads, a compiler may take for dead."""
    rng = np.random.default_rng(8)
    q, v = random_state(robot, rng)
    contacts, _ = random_contacts(robot, q, SOLO_FEET, rng)
    contacts = contacts.moved(gaps=np.zeros(len(contacts)))
    model = pair.split("/")
    arguments = (robot, q, v, np.zeros(robot.na), contacts, DT)
    solve(build_problem(*arguments), *model)  # compiled while numba finds numpy as it is
    empty = np.empty

    def poisoned(*arguments, **keywords):
        array = empty(*arguments, **keywords)
        if array.dtype == float:
            array.fill(np.nan)
        return array

    monkeypatch.setattr(np, "empty", poisoned)
    problem = build_problem(*arguments)
    assert np.isfinite(problem.store).all()
    solution = solve(problem, *model)
    for array in (solution.torques, solution.impulses, solution.velocity):
        assert np.isfinite(array).all()
    for array in (solution.joint_velocity_change, solution.attainable):
        assert array is None or np.isfinite(array).all()
