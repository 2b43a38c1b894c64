"""Locked joints: the robot is as if they were welded, in model, controller, simulation and plans."""

import copy
import pickle

import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.exceptions import ConfigurationError, UnknownJointError
from contact_id_controller.robot import RobotModel

TALOS = "example-robot-data://talos_data/robots/talos_reduced.urdf"
LOCKED = {"gripper_left_joint": -0.3, "gripper_right_joint": 0.0, "head_1_joint": 0.2}


def test_a_welded_robot_has_the_dynamics_of_the_whole_one_with_these_joints_at_rest():
    whole, welded = RobotModel.from_urdf(TALOS), RobotModel.from_urdf(TALOS, locked=LOCKED)
    assert welded.joint_names == [name for name in whole.joint_names if name not in LOCKED]
    assert welded.locked == LOCKED
    rng = np.random.default_rng(3)
    positions = dict(zip(whole.joint_names, rng.uniform(-0.3, 0.3, whole.na))) | LOCKED
    base = [0.1, 0.2, 0.9, *np.array([0.1, 0.2, -0.1, 0.9]) / np.linalg.norm([0.1, 0.2, -0.1, 0.9])]
    kept = np.r_[range(6), [whole.actuated[whole.joint_names.index(n)] for n in welded.joint_names]]
    q, qw = (
        robot.configuration(base, [positions[n] for n in robot.joint_names])
        for robot in (whole, welded)
    )
    v = np.zeros(whole.nv)
    v[kept] = rng.normal(size=welded.nv)
    M = pin.crba(whole.model, whole.model.createData(), q)
    Mw = pin.crba(welded.model, welded.model.createData(), qw)
    upper = np.triu_indices(welded.nv)
    np.testing.assert_allclose(Mw[upper], M[np.ix_(kept, kept)][upper], atol=1e-12)
    h = pin.nonLinearEffects(whole.model, whole.model.createData(), q, v)
    hw = pin.nonLinearEffects(welded.model, welded.model.createData(), qw, v[kept])
    np.testing.assert_allclose(hw, h[kept], atol=1e-10)


@pytest.mark.parametrize(
    "locked, joints, error, told",
    [
        ({"no_joint": 0.0}, None, UnknownJointError, "'no_joint' cannot be locked"),
        ({"gripper_left_joint": 2.0}, None, ConfigurationError, r"locked at 2, must be within \[-1"),
        ({"head_1_joint": np.nan}, None, ConfigurationError, "locked at nan"),
        ({"head_1_joint": 0.0}, ["head_1_joint"], UnknownJointError, "'head_1_joint' is locked"),
    ],
)  # fmt: skip
def test_what_cannot_be_locked_is_refused(locked, joints, error, told):
    with pytest.raises(error, match=told):
        RobotModel.from_urdf(TALOS, True, joints, locked)


def test_copies_know_what_is_locked():
    robot = RobotModel.from_urdf(TALOS, locked=LOCKED)
    for other in (
        copy.deepcopy(robot),
        pickle.loads(pickle.dumps(robot)),
        robot.with_object(1.0, np.eye(3)),
    ):
        assert other.locked == LOCKED
