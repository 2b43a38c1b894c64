"""Locked joints: the robot is as if they were welded, in model, controller, simulation and plans."""

import copy
import pickle

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError, TrajectoryError, UnknownJointError
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import JointTrajectory
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.state import RobotState

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


def test_a_joint_with_the_name_of_a_link_can_be_locked():
    """SO-100 has a joint and a link `gripper`: locking any joint ended in Pinocchio's own words."""
    urdf = "example-robot-data://so_arm_description/urdf/so100.urdf"
    whole = RobotModel.from_urdf(urdf, floating_base=False)
    names = [frame.name for frame in whole.model.frames]
    for joint in ("gripper", "wrist_roll"):
        welded = RobotModel.from_urdf(urdf, floating_base=False, locked={joint: 0.1})
        assert welded.joint_names == [name for name in whole.joint_names if name != joint]
        assert sorted(frame.name for frame in welded.model.frames) == sorted(names)
        q = whole.configuration(None, [0.1 if name == joint else 0.3 for name in whole.joint_names])
        places = []
        for robot, at in ((whole, q), (welded, np.full(welded.nq, 0.3))):
            pin.framesForwardKinematics(robot.model, robot.data, at)
            places.append([robot.data.oMf[robot.frame_id(n)].homogeneous for n in set(names)])
        np.testing.assert_allclose(*places, atol=1e-12)


def test_copies_know_what_is_locked():
    robot = RobotModel.from_urdf(TALOS, locked=LOCKED)
    for other in (
        copy.deepcopy(robot),
        pickle.loads(pickle.dumps(robot)),
        robot.with_object(1.0, np.eye(3)),
    ):
        assert other.locked == LOCKED


def test_a_plan_that_names_a_locked_joint_is_refused():
    settings = ControllerSettings.from_mapping(
        {
            "urdf": TALOS,
            "locked_joints": [f"{name}={position!r}" for name, position in LOCKED.items()],
        }
    )
    robot = settings.robot()
    assert robot.locked == LOCKED
    controller = Controller(robot, settings)
    controller.reset(RobotState(1.0, robot.neutral(), np.zeros(robot.nv)))
    names = [*robot.joint_names, "head_1_joint"]
    plan = Plan(JointTrajectory(names, [0.1], np.zeros((1, len(names)))))
    with pytest.raises(
        TrajectoryError, match="joint 'head_1_joint', which is locked: leave it out"
    ):
        controller.follow(plan, 1.0)
    kept = JointTrajectory(robot.joint_names, [0.1], np.zeros((1, robot.na)))
    controller.follow(Plan(kept), 1.0)


def test_mujoco_holds_them_where_the_whole_robot_has_them():
    """Judge: MuJoCo's model of the whole robot; masses, places and accelerations of free fall."""
    whole, welded = MujocoRobot(TALOS, []), MujocoRobot(TALOS, [], locked=LOCKED)
    positions = dict.fromkeys(whole.robot.joint_names, 0.1) | LOCKED
    positions = {n: min(p, u) for (n, p), u in zip(positions.items(), whole.robot.upper)} | LOCKED
    base = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    for world in (whole, welded):
        world.reset(
            world.robot.configuration(base, [positions[n] for n in world.robot.joint_names])
        )
    for data in (whole.mujoco_data, welded.mujoco_data):
        assert np.isfinite(data.qpos).all()
    model = welded.mujoco_model
    assert abs(model.body_mass.sum() - whole.mujoco_model.body_mass.sum()) < 1e-9
    centers = [world.mujoco_data.subtree_com[0] for world in (whole, welded)]
    np.testing.assert_allclose(centers[1], centers[0], atol=1e-9)
    # The welded robot's inertia is that of the whole one without the rows of the locked joints.
    places = [whole.robot.joint_names.index(name) for name in welded.robot.joint_names]
    kept = [*range(6), *whole._map.actuated[places]]
    own = [*range(6), *welded._map.actuated]
    expected = inertia(whole)[np.ix_(kept, kept)]
    np.testing.assert_allclose(inertia(welded)[np.ix_(own, own)], expected, atol=1e-8)


def inertia(world):
    """(nv, nv) by MuJoCo, column by column."""
    model, column = world.mujoco_model, np.zeros(world.mujoco_model.nv)
    columns = []
    for unit in np.eye(model.nv):
        mujoco.mj_mulM(model, world.mujoco_data, column, unit)
        columns.append(column.copy())
    return np.array(columns).T
