"""The dynamics estimator beside iDynTree's BERDY, and both beside a dense solution in plain numpy."""

import numpy as np
import pinocchio as pin
import pytest
from test_estimation import Contacted

from contact_id_controller import RobotModel
from contact_id_controller.estimation.dynamics_estimator import DynamicsEstimator
from contact_id_controller.estimation.sensors import (
    Accelerometer,
    AngularAcceleration,
    Contact,
    ContactWrench,
    JointAcceleration,
    JointEffort,
)
from experiments.benchmark.berdy import Berdy, Noise

ROBOTS = {  # the feet are points: with flat feet BERDY itself is .01 N off
    "solo12": (
        "example-robot-data://solo_description/robots/solo12.urdf",
        dict.fromkeys(("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"), "point"),
    ),
    "anymal_c": (
        "example-robot-data://anymal_c_simple_description/urdf/anymal.urdf",
        dict.fromkeys(("LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT"), "point"),
    ),
    "talos": (
        "example-robot-data://talos_data/robots/talos_reduced.urdf",
        dict.fromkeys(("left_sole_link", "right_sole_link"), "point"),
    ),
}
NOISE = Noise()


def sensors(contacts):
    """Everything noisy; contact wrenches are expected to be zero within a noise that says nothing."""
    return [
        JointAcceleration(NOISE.joint_acceleration),
        JointEffort(NOISE.joint_effort),
        Accelerometer("root_joint", NOISE.accelerometer),
        AngularAcceleration("root_joint", NOISE.angular_acceleration),
        *(ContactWrench(contact, NOISE.contact, contact) for contact in contacts),
    ]


def noisy(truth, estimator, seed):
    """Measurements of the truth with the noise that the estimators are told, wrenches zero."""
    rng = np.random.default_rng(seed)
    found = truth.measurements(estimator)
    for name, values in found.items():
        if name in estimator.contacts:
            found[name] = np.zeros(len(values))
        else:
            found[name] = values + getattr(NOISE, name) * rng.normal(size=values.shape)
    return found


def dense(truth, estimator, measurements):
    """The same problem by its KKT system, made of Pinocchio's M, h and J: x = (a_0, qdd, wrenches)."""
    robot = truth.robot
    model, n = robot.model.copy(), robot.nv - 6
    model.gravity.linear = np.zeros(3)  # in a_0, which is proper
    data, q, v = model.createData(), truth.q.copy(), truth.v.copy()
    q[:7], v[:3] = [0, 0, 0, 0, 0, 0, 1], 0.0
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.rnea(model, data, q, v, np.zeros(robot.nv))
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    blocks = [
        pin.getFrameJacobian(model, data, robot.frame_id(contact.frame), pin.LOCAL)[list(contact.components)]
        for contact in estimator.contacts.values()
    ]  # fmt: skip
    whole = np.hstack([M, -np.vstack(blocks).T])  # whole x + h = S^T tau
    own = estimator.mechanism.tree.velocity[1:]
    rows = [np.eye(6, whole.shape[1])[:3], np.eye(6, whole.shape[1])[3:]]
    rows += [np.eye(whole.shape[1])[own], whole[own], np.eye(whole.shape[1])[6 + n :]]
    values = [
        measurements["accelerometer"], measurements["angular_acceleration"],
        measurements["joint_acceleration"], measurements["joint_effort"] - h[own],
        np.zeros(whole.shape[1] - 6 - n),
    ]  # fmt: skip
    sigma = np.concatenate([
        np.full(len(value), getattr(NOISE, name)) for name, value in zip(
            ("accelerometer", "angular_acceleration", "joint_acceleration", "joint_effort", "contact"),
            values,
        )
    ])  # fmt: skip
    A, y = np.vstack(rows) / sigma[:, None], np.concatenate(values) / sigma
    # min |A x - y| subject to E x = e, by the null space of E: no squares of condition numbers.
    E, e = whole[:6], -h[:6]
    particular = np.linalg.lstsq(E, e, rcond=None)[0]
    null = np.linalg.svd(E)[2][6:].T
    x = particular + null @ np.linalg.lstsq(A @ null, y - A @ particular, rcond=None)[0]
    # Karush-Kuhn-Tucker: the gradient is a combination of the equality's rows.
    gradient = A.T @ (A @ x - y)
    multiplier = np.linalg.lstsq(E.T, -gradient, rcond=None)[0]
    assert np.abs(gradient + E.T @ multiplier).max() < 1e-7 * max(1.0, np.abs(A.T @ y).max())
    return x, whole @ x + h


@pytest.fixture(scope="module", params=ROBOTS)
def case(request):
    """URDF, robot, contacts and the estimator."""
    urdf, contacts = ROBOTS[request.param]
    robot = RobotModel.from_urdf(urdf, True)
    return urdf, robot, contacts, DynamicsEstimator(robot, sensors(contacts), contacts)


@pytest.mark.parametrize("seed", range(3))
def test_same_numbers_as_dense_least_squares(case, seed):
    _, robot, contacts, estimator = case
    truth = Contacted(robot, contacts, seed)
    measurements = noisy(truth, estimator, seed)
    found = estimator.estimate(truth.q, truth.v, None, measurements)
    x, effort = dense(truth, estimator, measurements)
    own, n = estimator.mechanism.tree.velocity[1:], robot.nv - 6
    np.testing.assert_allclose(found.joint_efforts, effort[own], rtol=0, atol=1e-6)
    forces = np.concatenate(list(found.contact_wrenches.values()))
    np.testing.assert_allclose(forces, x[6 + n :], rtol=0, atol=1e-6 * np.abs(forces).max())
    np.testing.assert_allclose(found.base_acceleration, x[:6], rtol=0, atol=1e-7 * np.abs(x).max())


@pytest.mark.parametrize("seed", range(3))
def test_same_numbers_as_berdy(case, seed):
    pytest.importorskip("idyntree", reason="BERDY, the peer, comes with the extra test")
    urdf, robot, contacts, estimator = case
    truth = Contacted(robot, contacts, seed)
    measurements = noisy(truth, estimator, seed)
    found = estimator.estimate(truth.q, truth.v, None, measurements)
    components = {name: Contact(name, kind).components for name, kind in contacts.items()}
    berdy = Berdy(robot, urdf, components, NOISE)
    names, joints = list(robot.model.names)[2:], {}
    for key in ("joint_acceleration", "joint_effort"):
        by_name = dict(zip(estimator.joint_names, measurements[key]))
        joints[key] = np.array([by_name[joint] for joint in names])
    berdy.state(truth.q[7:], truth.v[6:], truth.v[3:6])
    berdy.measure({**measurements, **joints})
    berdy.settle()
    efforts = dict(zip(names, berdy.joint_efforts()))
    theirs = np.array([efforts[joint] for joint in estimator.joint_names])
    np.testing.assert_allclose(found.joint_efforts, theirs, rtol=0, atol=5e-4)
    for contact, wrench in found.contact_wrenches.items():
        judged = berdy.contact_wrench(contact)[list(components[contact])]
        np.testing.assert_allclose(wrench, judged, rtol=0, atol=1e-3)
