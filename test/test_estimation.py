"""Whole-body dynamics from sensors: Nori (2017) put right, judged by Pinocchio and plain numpy."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pinocchio as pin
import pytest
import scipy.sparse as sparse
from numba.core.runtime import _nrt_python

from contact_id_controller import RobotModel, estimation
from contact_id_controller.estimation.dynamics_estimator import DynamicsEstimator
from contact_id_controller.estimation.newton_euler_system import (
    SWAP,
    newton_euler_system,
)
from contact_id_controller.estimation.sensors import (
    Accelerometer,
    AngularAcceleration,
    Contact,
    ContactWrench,
    ForceTorque,
    Gyroscope,
    JointAcceleration,
    JointEffort,
    KnownWrench,
    StationaryFrame,
)
from contact_id_controller.estimation.sweep import MOTION_WIDTH, inverse_dynamics
from contact_id_controller.estimation.tree import Mechanism
from contact_id_controller.exceptions import (
    ConfigurationError,
    ContactIdError,
    RobotDescriptionError,
    StateError,
    UnobservableError,
)
from experiments.papers.sparse_dynamics_equations import triangular_order

SOLO12 = "example-robot-data://solo_description/robots/solo12.urdf"
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
ROBOTS = {
    "solo12": (SOLO12, True),
    "talos": ("example-robot-data://talos_data/robots/talos_reduced.urdf", True),
    "panda": ("example-robot-data://panda_description/urdf/panda.urdf", False),
    "kinova": ("example-robot-data://kinova_description/robots/kinova.urdf", False),  # continuous
}


def random_tree(seed, joints=None, floating=False, branching=1.0):
    """A random robot of revolute and prismatic joints, numbered so that branches interleave."""
    rng = np.random.default_rng(seed)
    pin.seed(seed)
    joints = joints or int(rng.integers(2, 25))
    model = pin.Model()
    model.gravity = pin.Motion(np.array([0.0, 0.0, -9.81]), np.zeros(3))
    kinds = [
        pin.JointModelRX(),
        pin.JointModelRZ(),
        pin.JointModelPY(),
        pin.JointModelRevoluteUnaligned(np.array([0.6, 0.8, 0.0])),
        pin.JointModelRUBY(),
    ]
    for i in range(1, joints + 1):
        parent = int(np.floor((i - 2 + np.ceil(branching)) / branching)) if i > 1 else 0
        kind = pin.JointModelFreeFlyer() if floating and i == 1 else kinds[rng.integers(5)]
        joint = model.addJoint(parent, kind, pin.SE3.Random(), f"j{i}")
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
        model.addFrame(pin.Frame(f"tip{i}", joint, pin.SE3.Random(), pin.FrameType.OP_FRAME))
    model.lowerPositionLimit[:], model.upperPositionLimit[:] = -1.0, 1.0
    return RobotModel(model)


def state_of(robot, seed=0):
    """Configuration, velocity, acceleration, and the proper acceleration of the base origin."""
    rng, model = np.random.default_rng(seed), robot.model
    pin.seed(seed)
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-1.0, 1.0, model.nv))
    v, acceleration = rng.normal(size=model.nv), rng.normal(size=model.nv)
    return q, v, acceleration, base_acceleration(robot, q, v, acceleration)


def base_acceleration(robot, q, v, acceleration):
    gravity = robot.model.gravity.linear
    if not robot.floating_base:
        return np.concatenate([-gravity, np.zeros(3)])
    axes = pin.Quaternion(q[3:7]).matrix()
    linear = acceleration[:3] + np.cross(v[3:6], v[:3]) - axes.T @ gravity
    return np.concatenate([linear, acceleration[3:6]])


@pytest.mark.parametrize("seed", range(40))
def test_paper_system_holds_on_random_trees(seed):
    robot = random_tree(seed, floating=seed % 2 == 1, branching=(1.0, 1.5, 2.0)[seed % 3])
    model, data, rng = robot.model, robot.model.createData(), np.random.default_rng(seed)
    q, v, acceleration, _ = state_of(robot, seed)
    external = [np.zeros(6)] + [rng.normal(size=6) for _ in range(model.njoints - 1)]
    forces = pin.StdVec_Force()
    for wrench in external:
        forces.append(pin.Force(SWAP @ wrench))
    effort = pin.rnea(model, data, q, v, acceleration, forces)
    system = newton_euler_system(robot, q, v)
    d = np.zeros(system.D.shape[1])
    for i in range(1, model.njoints):
        own = slice(model.joints[i].idx_v, model.joints[i].idx_v + model.joints[i].nv)
        d[system.columns["a", i]] = SWAP @ data.a_gf[i].vector
        d[system.columns["f", i]] = SWAP @ data.f[i].vector
        d[system.columns["tau", i]], d[system.columns["qdd", i]] = effort[own], acceleration[own]
        d[system.columns["fx", i]] = external[i]
    assert np.abs(system.D @ d + system.b).max() <= 1e-12 * np.abs(d).max()


@pytest.mark.parametrize("joints", [6, 30, 100])
def test_inverse_dynamics_is_triangular_by_permutation(joints):
    robot = random_tree(1, joints, branching=1.5)
    q, v, *_ = state_of(robot)
    system = newton_euler_system(robot, q, v)
    known = [system.columns[name, i] for i in range(1, joints + 1) for name in ("fx", "qdd")]
    picks = [np.arange(part.start, part.stop) for part in known]
    at = np.concatenate(picks)
    measured = sparse.csr_matrix(
        (np.ones(len(at)), (np.arange(len(at)), at)), (len(at), system.D.shape[1])
    )
    square = sparse.vstack([system.D, measured])
    assert square.shape[0] == square.shape[1] == triangular_order(square)
    # Forward dynamics is not: the order of Property 2 needs a transformation first.
    known = [system.columns[name, i] for i in range(1, joints + 1) for name in ("fx", "tau")]
    at = np.concatenate([np.arange(part.start, part.stop) for part in known])
    measured = sparse.csr_matrix(
        (np.ones(len(at)), (np.arange(len(at)), at)), (len(at), system.D.shape[1])
    )
    assert triangular_order(sparse.vstack([system.D, measured])) < square.shape[0]


@pytest.mark.parametrize("name", ROBOTS)
def test_sweep_is_pinocchio_s_inverse_dynamics(name):
    robot = RobotModel.from_urdf(*ROBOTS[name])
    mechanism = Mechanism(robot)
    q, v, acceleration, base = state_of(robot)
    expected = pin.rnea(robot.model, robot.model.createData(), q, v, acceleration)
    n = len(mechanism)
    buffer, effort, known = np.zeros(MOTION_WIDTH * n + 15), np.zeros(robot.nv), np.zeros(n)
    known[1:] = acceleration[mechanism.tree.velocity[1:]]
    turning = v[3:6] if robot.floating_base else np.zeros(3)
    inverse_dynamics(
        mechanism.integers, mechanism.numbers, buffer, q, v, turning, base, known, effort
    )
    if robot.floating_base:
        effort[:6] = buffer[30 * n : 30 * n + 6]
    np.testing.assert_allclose(effort, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_efforts_alone_give_forward_dynamics(name):
    robot = RobotModel.from_urdf(*ROBOTS[name])
    q, v, _, _ = state_of(robot)
    effort = np.random.default_rng(1).normal(size=robot.nv)
    if robot.floating_base:
        effort[:6] = 0.0
    expected = pin.aba(robot.model, robot.model.createData(), q, v, effort)
    estimator = DynamicsEstimator(robot, [JointEffort(0.0)])
    own = estimator.mechanism.tree.velocity[1:]
    found = estimator.estimate(q, v, None, {"joint_effort": effort[own]})
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found.joint_accelerations, expected[own], rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(
        found.base_acceleration, base_acceleration(robot, q, v, expected), rtol=0, atol=1e-9 * scale
    )


class Contacted:
    """A floating robot with known efforts and contact wrenches, and what follows by Pinocchio."""

    def __init__(self, robot, frames, seed=0, wrenches=False):
        rng, model = np.random.default_rng(seed), robot.model
        data = model.createData()
        self.robot = robot
        self.q, self.v, _, _ = state_of(robot, seed)
        self.effort = rng.normal(size=robot.nv)
        self.effort[:6] = 0.0
        pin.computeJointJacobians(model, data, self.q)
        pin.updateFramePlacements(model, data)
        self.axes = pin.Quaternion(self.q[3:7]).matrix()
        push, self.wrenches = np.zeros(robot.nv), {}
        for frame in frames:
            local = rng.normal(size=6) * 10.0
            if not wrenches:
                local[3:] = 0.0
            jacobian = pin.getFrameJacobian(model, data, robot.frame_id(frame), pin.LOCAL)
            push += jacobian.T @ local
            self.wrenches[frame] = local
        self.acceleration = pin.aba(model, data, self.q, self.v, self.effort + push)
        self.base = base_acceleration(robot, self.q, self.v, self.acceleration)
        pin.forwardKinematics(model, data, self.q, self.v, self.acceleration)
        self.data = data

    def measurements(self, estimator):
        """What ideal sensors would say."""
        own = estimator.mechanism.tree.velocity[1:]
        found = {}
        for sensor in estimator._layout.sensors:
            if isinstance(sensor, JointAcceleration):
                value = self.acceleration[own]
            elif isinstance(sensor, JointEffort):
                value = self.effort[own]
            elif isinstance(sensor, (ContactWrench, KnownWrench)):
                frame = sensor.frame if isinstance(sensor, KnownWrench) else sensor.contact
                value = self.wrenches[frame]
                if isinstance(sensor, ContactWrench):
                    value = value[list(estimator.contacts[frame].components)]
            elif isinstance(sensor, StationaryFrame):
                continue
            else:
                frame = self.robot.frame_id(sensor.frame)
                kind = pin.LOCAL
                turn = pin.getFrameVelocity(self.robot.model, self.data, frame, kind)
                if isinstance(sensor, Gyroscope):
                    value = turn.angular
                elif isinstance(sensor, AngularAcceleration):
                    value = pin.getFrameAcceleration(
                        self.robot.model, self.data, frame, kind
                    ).angular
                elif isinstance(sensor, Accelerometer):
                    classical = pin.getFrameClassicalAcceleration(
                        self.robot.model, self.data, frame, kind
                    )
                    placement = pin.updateFramePlacement(self.robot.model, self.data, frame)
                    value = (
                        classical.linear - placement.rotation.T @ self.robot.model.gravity.linear
                    )
                else:
                    raise AssertionError(sensor)
            found[sensor.name] = np.array(value)
        return found


GENERAL = [JointAcceleration(20.0), JointEffort(0.05), Accelerometer("base_link", 0.1)]


@pytest.fixture(scope="module")
def solo():
    return RobotModel.from_urdf(SOLO12)


@pytest.mark.parametrize("by_limbs", [True, False])
def test_ideal_sensors_give_the_truth(solo, by_limbs):
    truth = Contacted(solo, FEET)
    estimator = DynamicsEstimator(solo, GENERAL, dict.fromkeys(FEET, "point"))
    assert estimator.by_limbs
    estimator.by_limbs = by_limbs
    found = estimator.estimate(truth.q, truth.v, None, truth.measurements(estimator))
    scale = np.abs(truth.acceleration).max()
    np.testing.assert_allclose(found.base_acceleration, truth.base, rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(
        found.joint_accelerations, truth.acceleration[6:], rtol=0, atol=1e-10 * scale
    )
    np.testing.assert_allclose(found.joint_efforts, truth.effort[6:], rtol=0, atol=1e-10)
    for foot in FEET:
        np.testing.assert_allclose(
            found.contact_wrenches[foot], truth.wrenches[foot][:3], rtol=0, atol=1e-9
        )
        world = truth.axes @ found.contact_force(foot)
        placement = truth.data.oMf[solo.frame_id(foot)]
        np.testing.assert_allclose(
            world, placement.rotation @ truth.wrenches[foot][:3], rtol=0, atol=1e-9
        )
    assert max(found.normalised_residuals.values()) < 1e-6


def test_noisy_sensors_weighed_as_by_dense_least_squares(solo):
    """The judge is numpy's lstsq on rows made by finite differences of the estimator's own door."""
    truth = Contacted(solo, FEET)
    estimator = DynamicsEstimator(
        solo, GENERAL, dict.fromkeys(FEET, "point"), model_force_noise_n=0.3
    )
    rng = np.random.default_rng(2)
    noisy = {
        name: value + rng.normal(size=value.shape) * 0.3
        for name, value in truth.measurements(estimator).items()
    }
    found = estimator.estimate(truth.q, truth.v, None, noisy)
    z = np.concatenate([estimator._layout.results.base, estimator._layout.results.z])
    residual = {name: value.copy() for name, value in found.residuals.items()}
    estimator.by_limbs = False
    estimator.estimate(truth.q, truth.v, None, noisy)
    np.testing.assert_allclose(
        np.concatenate([estimator._layout.results.base, estimator._layout.results.z]),
        z,
        rtol=0,
        atol=1e-8 * np.abs(z).max(),
    )
    A, target, B = estimator._assemble(truth.q, truth.v, truth.v[3:6], np.array([0.0, 0.0, 1.0]))
    layout = estimator._layout
    weight = np.sqrt(layout.rows.weight)
    prior = np.sqrt(layout.columns.prior)
    rows = np.vstack([
        A * weight[:, None],
        np.diag(np.concatenate([np.zeros(6), prior]))[6:],
        B / np.sqrt(layout.system.facts.softness)[:, None],
    ])  # fmt: skip
    y = estimator._y
    right = np.concatenate([
        target * weight,
        prior * np.where(prior > 0.0, y[layout.columns.prior_value], 0.0),
        -layout.system.motion.fb[0] / np.sqrt(layout.system.facts.softness),
    ])  # fmt: skip
    best = np.linalg.lstsq(rows, right, rcond=None)[0]
    np.testing.assert_allclose(z, best, rtol=0, atol=1e-7 * np.abs(best).max())
    assert residual["joint_effort"].shape == (12,) and residual["accelerometer"].shape == (3,)


@pytest.mark.parametrize("model_force_noise_n", [0.0, 0.5])
def test_covariance_is_what_many_noises_scatter(solo, model_force_noise_n):
    truth = Contacted(solo, FEET)
    estimator = DynamicsEstimator(
        solo, GENERAL, dict.fromkeys(FEET, "point"), model_force_noise_n=model_force_noise_n
    )
    ideal, rng = truth.measurements(estimator), np.random.default_rng(3)
    sigma = {"joint_acceleration": 20.0, "joint_effort": 0.05, "accelerometer": 0.1}
    samples = {"base_acceleration": [], "joint_efforts": [], "FL_FOOT": []}
    for _ in range(1500):
        noisy = {k: x + sigma[k] * rng.normal(size=x.shape) for k, x in ideal.items()}
        found = estimator.estimate(truth.q, truth.v, None, noisy)
        samples["base_acceleration"].append(found.base_acceleration.copy())
        samples["joint_efforts"].append(found.joint_efforts.copy())
        samples["FL_FOOT"].append(found.contact_wrenches["FL_FOOT"])
    if model_force_noise_n:
        return _no_more_than(found, samples)
    for name, values in samples.items():
        expected = np.sqrt(np.diag(found.covariance(name)))
        np.testing.assert_allclose(np.std(values, axis=0), expected, rtol=0.12, atol=1e-9)


def _no_more_than(found, samples):
    """With a softened base equation the covariance covers its noise too, which the samples lack."""
    for name, values in samples.items():
        assert (
            np.std(values, axis=0) <= 1.12 * np.sqrt(np.diag(found.covariance(name))) + 1e-9
        ).all()


def test_force_torque_known_wrench_and_distal_imu(solo):
    truth = Contacted(solo, FEET, wrenches=True)
    model, data, joint = solo.model, truth.data, solo.model.getJointId("FL_KFE")
    sensors = [
        JointAcceleration(1.0),
        JointEffort(0.01),
        Accelerometer("FL_UPPER_LEG", 0.1, name="thigh"),
        AngularAcceleration("base_link", 1.0),
        Gyroscope("FL_LOWER_LEG", 0.01),
        ForceTorque("FL_KFE", "FL_FOOT", 0.1, "child_to_parent"),
        *(KnownWrench(foot, f"known_{foot}") for foot in FEET[1:]),
    ]
    estimator = DynamicsEstimator(solo, sensors, {"FL_FOOT": "surface"})
    # The wrench through the knee, by Pinocchio's recursion on the foot's own link.
    forces = pin.StdVec_Force()
    for _ in range(model.njoints):
        forces.append(pin.Force.Zero())
    for foot in FEET:
        frame = model.frames[solo.frame_id(foot)]
        forces[frame.parentJoint] += frame.placement.act(pin.Force(truth.wrenches[foot]))
    pin.rnea(model, data, truth.q, truth.v, truth.acceleration, forces)
    through = model.frames[solo.frame_id("FL_FOOT")].placement.actInv(data.f[joint])
    measurements = {"force_torque": -through.vector}
    for sensor in sensors:
        if isinstance(sensor, KnownWrench):
            measurements[sensor.name] = truth.wrenches[sensor.frame]
    partial = type("Estimator", (), {})()
    partial.mechanism, partial.contacts = estimator.mechanism, estimator.contacts
    partial._layout = type("Layout", (), {"sensors": sensors[:5]})()
    pin.forwardKinematics(model, data, truth.q, truth.v, truth.acceleration)
    measurements |= truth.measurements(partial)
    found = estimator.estimate(truth.q, truth.v, None, measurements)
    np.testing.assert_allclose(
        found.contact_wrenches["FL_FOOT"], truth.wrenches["FL_FOOT"], rtol=0, atol=1e-7
    )
    assert max(np.abs(value).max() for value in found.residuals.values()) < 1e-6


@pytest.mark.parametrize("gone", [["FL_KFE"], ["FL_HAA", "HR_HFE"], ["HL_HAA", "HL_HFE", "HL_KFE"]])
def test_what_is_left_out_is_as_if_no_sensor_measured_it(solo, gone):
    """The judge is an estimator without those sensors, which needs the dense method for it."""
    truth, rng = Contacted(solo, FEET), np.random.default_rng(5)
    contacts, feet = dict.fromkeys(FEET, "point"), ContactWrench("FR_FOOT", 0.2)
    whole = DynamicsEstimator(solo, [*GENERAL, feet], contacts, model_force_noise_n=0.5)
    joints = [name for name in whole.joint_names if name not in gone]
    fewer = [GENERAL[0], JointEffort(0.05, joints), GENERAL[2]]
    judge = DynamicsEstimator(solo, fewer, contacts, model_force_noise_n=0.5)
    assert whole.by_limbs and not judge.by_limbs
    noisy = {
        name: value + 0.2 * rng.normal(size=value.shape)
        for name, value in truth.measurements(whole).items()
    }
    before = whole.estimate(truth.q, truth.v, None, noisy)._estimator._layout.results.z.copy()
    missing = np.zeros(12 + 12 + 3 + 3, dtype=bool)
    order = [whole.joint_names.index(name) for name in gone]
    places = [whole.slices["joint_effort"].start + k for k in order]
    missing[places], missing[whole.slices["contact_wrench"]] = True, True
    whole.leave_out(missing)
    holed = {name: value.copy() for name, value in noisy.items()}
    holed["joint_effort"][order], holed["contact_wrench"][:] = np.nan, np.nan
    found = whole.estimate(truth.q, truth.v, None, holed)
    kept = np.delete(noisy["joint_effort"], order)
    expected = judge.estimate(truth.q, truth.v, None, {**noisy, "joint_effort": kept})
    z, wanted = whole._layout.results.z, judge._layout.results.z
    np.testing.assert_allclose(z, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
    scale = np.abs(expected.joint_efforts).max()
    np.testing.assert_allclose(
        found.joint_efforts, expected.joint_efforts, rtol=0, atol=3e-4 * scale
    )
    for deviation, foot in zip(whole.deviations(), FEET):
        wanted = np.sqrt(np.linalg.eigvalsh(expected.covariance(foot))[-1])
        assert deviation == pytest.approx(wanted, rel=1e-4)
    sizes, wanted = found.normalised_residuals, expected.normalised_residuals
    assert sizes.pop("contact_wrench") == 0.0
    assert sizes == pytest.approx(wanted, rel=1e-3, abs=0.05)  # 1 is usual
    whole.leave_out(np.zeros(30, dtype=bool))
    whole.estimate(truth.q, truth.v, None, noisy)
    assert (whole._layout.results.z == before).all(), "all are used again"


def test_exact_measurements_cannot_be_left_out(solo):
    sensors = [JointAcceleration(0.0), JointEffort(0.05), Accelerometer("base_link", 0.0)]
    estimator = DynamicsEstimator(solo, sensors, dict.fromkeys(FEET, "point"))
    for name in ("joint_acceleration", "accelerometer"):
        missing = np.zeros(27, dtype=bool)
        missing[estimator.slices[name].start] = True
        with pytest.raises(ConfigurationError, match=f"{name} is exact and cannot be left out"):
            estimator.leave_out(missing)
    with pytest.raises(ConfigurationError, match=r"missing must have shape \(27,\), got \(3,\)"):
        estimator.leave_out(np.zeros(3, dtype=bool))


def test_spherical_foot_touches_below_its_centre(solo):
    radius, up = 0.016, np.array([0.1, -0.2, 0.97])
    up /= np.linalg.norm(up)
    truth = Contacted(solo, FEET)
    force = truth.wrenches["FL_FOOT"][:3]
    # The same force at the contact point is a force and a moment at the centre.
    placement = truth.data.oMi[1].inverse() * truth.data.oMf[solo.frame_id("FL_FOOT")]
    arm = placement.rotation.T @ (-radius * up)
    model, data = solo.model, solo.model.createData()
    pin.computeJointJacobians(model, data, truth.q)
    pin.updateFramePlacements(model, data)
    push = np.zeros(solo.nv)
    for foot in FEET:
        local = truth.wrenches[foot].copy()
        if foot == "FL_FOOT":
            local[3:] = np.cross(arm, force)
        push += pin.getFrameJacobian(model, data, solo.frame_id(foot), pin.LOCAL).T @ local
    acceleration = pin.aba(model, data, truth.q, truth.v, truth.effort + push)
    contacts = {foot: Contact(foot, "point", radius if foot == "FL_FOOT" else 0.0) for foot in FEET}
    estimator = DynamicsEstimator(solo, GENERAL, contacts)
    base = base_acceleration(solo, truth.q, truth.v, acceleration)
    found = estimator.estimate(
        truth.q, truth.v, None,
        {"joint_acceleration": acceleration[6:], "joint_effort": truth.effort[6:], "accelerometer": base[:3]},
        up,
    )  # fmt: skip
    np.testing.assert_allclose(found.contact_wrenches["FL_FOOT"], force, rtol=0, atol=1e-8)


def observability(sensors, contacts, robot):
    """Rank and structural rank without refusing."""
    try:
        estimator = DynamicsEstimator(robot, sensors, contacts, regularisation=None)
    except UnobservableError as error:
        return str(error)
    return estimator.observability


def test_structural_rank_is_not_observability(solo):
    exact = [
        JointAcceleration(0.0),
        Accelerometer("base_link", 0.0),
        AngularAcceleration("base_link", 0.0),
    ]
    message = observability(exact, dict.fromkeys(FEET[:2], "point"), solo)
    assert "opposite forces on FL_FOOT and FR_FOOT along the line between them" in message
    estimator = DynamicsEstimator(
        solo, exact, dict.fromkeys(FEET[:2], "point"), regularisation=100.0
    )
    seen = estimator.observability
    assert seen.structural_rank == seen.unknowns and seen.rank == seen.unknowns - 1
    assert seen.undetermined == 0 and "effort of FL_KFE" in seen.unobservable
    for count, missing in ((3, 3), (4, 6)):
        estimator = DynamicsEstimator(
            solo, exact, dict.fromkeys(FEET[:count], "point"), regularisation=100.0
        )
        assert estimator.observability.rank == estimator.observability.unknowns - missing


@pytest.mark.parametrize(
    ("sensors", "kind", "missing"),
    [
        ((JointAcceleration(0.0), "base"), "surface", 6),
        ((JointAcceleration(0.0), "base"), "load_cells", 1),
        ((JointAcceleration(0.0), "base"), (0, 1, 3, 4, 5), None),
        ((JointAcceleration(0.0), JointEffort(0.1)), "point", 0),
        ((JointEffort(0.1), "imu"), "point", None),
    ],
)
def test_rank_is_that_of_the_papers_system(solo, sensors, kind, missing):
    """Numeric rank of [D; Y] by its own SVD: the judge of the null space in few unknowns."""
    chosen = []
    for sensor in sensors:
        if sensor == "base":
            chosen += [Accelerometer("base_link", 0.0), AngularAcceleration("base_link", 0.0)]
        elif sensor == "imu":
            chosen.append(Accelerometer("base_link", 0.1))
        else:
            chosen.append(sensor)
    estimator = DynamicsEstimator(solo, chosen, dict.fromkeys(FEET[:2], kind), regularisation=1e3)
    seen = estimator.observability
    from contact_id_controller.estimation.observability import _system

    ranks = []
    for q, v in seen.states:
        whole = _system(estimator, q, v)[0].toarray()
        whole /= np.abs(whole).max(axis=1, keepdims=True)
        values = np.linalg.svd(whole, compute_uv=False)
        ranks.append(int((values > 1e-9).sum()))
    assert seen.rank == max(ranks)
    if missing is not None:
        assert seen.unknowns - seen.rank == missing


EXACT = [
    JointAcceleration(0.0),
    Accelerometer("base", 0.0),
    AngularAcceleration("base", 0.0),
]
IMU = [Accelerometer("base", 0.1)]
TORQUES = [JointEffort(0.1)]
LOADED = (0, 1, 5)  # what load cells under a sole leave unknown: f_x, f_y, n_z
SETS = {  # sensors, unknown components of each foot's wrench, structural and numeric rank of 190
    "wrenches": (EXACT, range(6), 184, 184),
    "wrenches and torques": (EXACT + TORQUES, range(6), 188, 188),
    "load cells": (EXACT, LOADED, 190, 189),
    "slippery": (EXACT, (5,), 190, 190),
    "points": (EXACT, range(3), 190, 189),
    "points and torques": ([JointAcceleration(0.0), *TORQUES], range(3), 190, 190),
    "points, torques and IMU": (IMU + TORQUES, range(3), 187, 187),
}


def paper_tree():
    """Nine bodies on a floating base, each with two children, and two of its ends as feet: 190 unknowns."""
    robot = random_tree(3, 9, floating=True, branching=2.0)
    robot.model.addFrame(pin.Frame("base", 1, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    return RobotModel(robot.model), ("tip5", "tip6")


def undetermined(robot, feet, sensors, free, q, v):
    """Rank of the paper's [D; Y], made here by hand, and the names of what its null space moves."""
    model, system = robot.model, newton_euler_system(robot, q, v)
    rows = [system.D.toarray()]
    columns = system.columns

    def know(quantity, joint, block):
        matrix = np.zeros((len(block), system.D.shape[1]))
        matrix[:, columns[quantity, joint]] = block
        rows.append(matrix)

    know("tau", 1, np.eye(6))  # no effort acts on a floating base
    placed = {model.frames[robot.frame_id(foot)].parentJoint: foot for foot in feet}
    for joint in range(1, model.njoints):
        in_frame = np.eye(6)
        if joint in placed:
            frame = model.frames[robot.frame_id(placed[joint])].placement
            held = [k for k in range(6) if k not in free]
            in_frame = np.linalg.inv(frame.toDualActionMatrix())[held]
        if len(in_frame):
            know("fx", joint, in_frame @ SWAP.T)
        if joint > 1 and any(isinstance(s, JointAcceleration) for s in sensors):
            know("qdd", joint, np.eye(1))
        if joint > 1 and any(isinstance(s, JointEffort) for s in sensors):
            know("tau", joint, np.eye(1))
    kinds = [type(sensor) for sensor in sensors]
    if Accelerometer in kinds:
        know("a", 1, np.eye(6)[:3] @ SWAP.T)
    if AngularAcceleration in kinds:
        know("a", 1, np.eye(6)[3:] @ SWAP.T)
    whole = np.vstack(rows)
    whole /= np.abs(whole).max(axis=1, keepdims=True)
    _, values, right = np.linalg.svd(whole)
    rank = int((values > 1e-9).sum())
    moved = np.abs(right[rank:]).max(axis=0) if rank < len(right) else np.zeros(len(right))
    axes = ("x", "y", "z", "about x", "about y", "about z")
    names = {
        f"base acceleration {axes[k]}"
        for k in np.flatnonzero(SWAP.T @ moved[columns["a", 1]] > 1e-7)
    }
    for joint in range(2, model.njoints):
        name = model.names[joint]
        for quantity, word in (("qdd", "acceleration"), ("tau", "effort")):
            if moved[columns[quantity, joint]].max() > 1e-7:
                names.add(f"{word} of {name}")
        at = np.flatnonzero(np.abs(SWAP.T @ moved[columns["f", joint]]) > 1e-7)
        parts = ("fx", "fy", "fz", "nx", "ny", "nz")
        names |= {f"joint wrench {parts[k]} of {name}" for k in at}
    return rank, names


@pytest.mark.parametrize("name", SETS)
def test_the_seven_sets_of_sensors(name):
    """Ranks as in the table of results/errata.md; names as the null space of the paper's own system says."""
    sensors, free, structural, numeric = SETS[name]
    robot, feet = paper_tree()
    contacts = {foot: Contact(foot, tuple(free)) for foot in feet}
    if numeric == 190:
        seen = DynamicsEstimator(robot, sensors, contacts).observability
    else:
        with pytest.raises(UnobservableError):
            DynamicsEstimator(robot, sensors, contacts)
        seen = DynamicsEstimator(
            robot, sensors, contacts, regularisation=1e3, model_force_noise_n=0.0
        )
        seen = seen.observability
    assert (seen.unknowns, seen.structural_rank, seen.rank) == (190, structural, numeric)
    rank, expected = undetermined(robot, feet, sensors, free, *seen.states[0])
    assert rank == numeric
    of_feet = {label for label in seen.unobservable if label.partition(" of ")[2] in feet}
    assert set(seen.unobservable) - of_feet == expected
    assert bool(of_feet) == (numeric < 190)
    assert len(seen.directions) == 190 - numeric


@pytest.mark.parametrize("unknown", [LOADED, (2, 3, 4)])
def test_load_cells_are_never_well_posed(unknown):
    """Remark 5, stronger: three components of two soles have rank 5 of 6 in every pose of 2000."""
    rng, chosen = np.random.default_rng(0), np.eye(6)[:, list(unknown)]
    poses = [pin.SE3(pin.exp3(w), p) for w, p in rng.normal(size=(2000, 2, 3))]
    other = np.array([pose.toDualActionMatrix() for pose in poses]) @ chosen
    values = np.linalg.svd(
        np.concatenate([np.broadcast_to(chosen, other.shape), other], axis=2), compute_uv=False
    )
    assert ((values > 1e-10 * values[:, :1]).sum(axis=1) == 5).all()
    flat = np.hstack(
        [chosen, pin.SE3(np.eye(3), np.array([0.1, 0.3, 0.0])).toDualActionMatrix() @ chosen]
    )
    assert np.linalg.matrix_rank(flat, 1e-10) == 3  # on one plane


def test_a_sensor_that_lies_has_the_largest_residual(solo):
    truth = Contacted(solo, FEET)
    sensors = [*GENERAL, AngularAcceleration("base_link", 1.0), Gyroscope("FL_LOWER_LEG", 0.02)]
    estimator = DynamicsEstimator(solo, sensors, dict.fromkeys(FEET, "point"))
    ideal = truth.measurements(estimator)
    for liar, lie in (("accelerometer", 3.0), ("angular_acceleration", 60.0), ("gyroscope", 0.5)):
        told = {**ideal, liar: ideal[liar] + lie}
        residuals = estimator.estimate(truth.q, truth.v, None, told).normalised_residuals
        assert max(residuals, key=residuals.get) == liar and residuals[liar] > 5.0


def test_arm_finds_payload_and_push():
    """A load of 1 kg in a Panda's hand, from joint efforts alone: 9.81 N downwards, then a push."""
    robot = RobotModel.from_urdf(*ROBOTS["panda"])
    estimator = DynamicsEstimator(
        robot, [JointAcceleration(0.1), JointEffort(0.01)], {"panda_hand": "point"}
    )
    q, v, acceleration, _ = state_of(robot)
    model, data = robot.model, robot.model.createData()
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    frame = robot.frame_id("panda_hand")
    jacobian = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
    for force in ([0.0, 0.0, -9.81], [5.0, -3.0, -9.81]):
        effort = pin.rnea(model, data, q, v, acceleration) - jacobian.T @ np.array(force)
        found = estimator.estimate(
            q, v, None, {"joint_acceleration": acceleration, "joint_effort": effort}
        )
        np.testing.assert_allclose(found.contact_force("panda_hand"), force, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("sensors", "contacts", "error", "words"),
    [
        ([JointEffort(-1.0)], {}, ConfigurationError, "at least 0"),
        ([JointEffort([1.0, 2.0])], {}, ConfigurationError, "one number or 12"),
        ([JointEffort(0.1), JointEffort(0.2)], {}, ConfigurationError, "two sensors"),
        ([JointEffort(0.1, ["KNEE"])], {}, ContactIdError, "KNEE"),
        ([JointEffort(0.1)], {"FL_FOOT": "sphere"}, ConfigurationError, "surface"),
        ([JointEffort(0.1)], {"TOE": "point"}, ContactIdError, "TOE"),
        ([ForceTorque("FL_KFE", "FL_FOOT", 1.0, "up")], {}, ConfigurationError, "child_to_parent"),
        ([ContactWrench("FL_FOOT", 1.0)], {}, ContactIdError, "FL_FOOT"),
        (
            [JointAcceleration(0.0), JointAcceleration(1.0, name="b")],
            {},
            ConfigurationError,
            "twice",
        ),
        ([Accelerometer("base_link", 0.1)], {}, UnobservableError, "acceleration of"),
    ],
)
def test_bad_sets_are_refused_in_one_line(solo, sensors, contacts, error, words):
    with pytest.raises(error, match=words) as caught:
        DynamicsEstimator(solo, sensors, contacts)
    assert "\n" not in str(caught.value)


def test_bad_measurements_are_refused(solo):
    estimator = DynamicsEstimator(solo, GENERAL, dict.fromkeys(FEET, "point"))
    q, v, *_ = state_of(solo)
    good = {
        "joint_acceleration": np.zeros(12),
        "joint_effort": np.zeros(12),
        "accelerometer": np.zeros(3),
    }
    for bad in (
        {**good, "joint_effort": np.zeros(11)},
        {**good, "accelerometer": np.full(3, np.nan)},
        {"joint_effort": np.zeros(12)},
    ):
        with pytest.raises(StateError):
            estimator.estimate(q, v, None, bad)
    with pytest.raises(StateError):
        estimator.estimate(q[:-1], v, None, good)
    with pytest.raises(StateError, match=r"up is \[0.0, 0.0, 9.81\], must have length 1"):
        estimator.estimate(q, v, None, good, np.array([0.0, 0.0, 9.81]))
    assert np.isfinite(estimator.estimate(q, v, None, good).joint_efforts).all()


def test_any_vector_of_numbers_is_taken_and_nothing_else(solo):
    estimator = DynamicsEstimator(solo, GENERAL, dict.fromkeys(FEET, "point"))
    truth, rng = Contacted(solo, FEET), np.random.default_rng(4)
    y = rng.integers(-5, 5, size=27)
    expected = estimator.estimate(
        truth.q, truth.v, truth.v[3:6], y.astype(float)
    ).joint_efforts.copy()
    frozen = truth.q.copy()
    frozen.setflags(write=False)
    strided = np.repeat(truth.v, 2)[::2]
    for q, v, w, told in (
        (frozen, strided, list(truth.v[3:6]), y),
        (list(truth.q), tuple(truth.v), None, y.astype(float)),
        (truth.q, truth.v, truth.v[3:6], {n: list(y[p]) for n, p in estimator.slices.items()}),
    ):
        found = estimator.estimate(q, v, w, told).joint_efforts
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    one = {
        "q": truth.q,
        "v": truth.v,
        "angular_velocity": truth.v[3:6],
        "measurements": y,
        "up": [0, 0, 1],
    }
    for name, value in one.items():
        for bad in (3.0, [1.0], np.ones((len(value), 1)), np.ones(len(value) + 1)):
            if name == "measurements" and not isinstance(bad, np.ndarray):
                continue
            with pytest.raises(StateError, match="shape"):
                estimator.estimate(**{**one, name: bad})


def test_a_step_allocates_nothing(solo):
    """Neither arrays of numpy nor of the kernels: what Python makes in a step is smaller than any."""
    estimator = DynamicsEstimator(solo, GENERAL, dict.fromkeys(FEET, "point"))
    q, v, *_ = state_of(solo)
    w, y, up = np.ones(3), np.random.default_rng(0).normal(size=27), np.array([0.0, 0.0, 1.0])

    def step():
        for _ in range(100):
            estimator.estimate(q, v, w, y, up)

    step()
    _nrt_python.memsys_enable_stats()
    before = _nrt_python.memsys_get_stats_alloc()
    tracemalloc.start()
    step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    after = _nrt_python.memsys_get_stats_alloc()
    _nrt_python.memsys_disable_stats()
    assert after - before == 2 * 100  # numba's note of each of the two stores, no array
    assert peak < 1000


def test_two_trees_are_refused():
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "a")
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "b")
    with pytest.raises(RobotDescriptionError, match="'b'"):
        Mechanism(RobotModel(model))


def test_public_names_load_when_asked_for():
    code = (
        "import sys; import contact_id_controller.estimation as e; "
        "assert 'numba' not in sys.modules and 'DynamicsEstimator' in dir(e); "
        "print(*(getattr(e, name).__name__ for name in e.__all__))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == estimation.__all__
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        estimation.Oracle  # noqa: B018
