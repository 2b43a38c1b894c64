"""Rotor inertia and friction of the joints: in the mass matrix, in the torques, in the simulated robot, in estimates."""

import pickle

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import QUADRUPED_URDF, ROOT
from test_delay import followed, on_plan
from test_mujoco_robot import mass_matrix
from test_torques_ahead import arm_motion

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.estimation import DynamicsEstimator
from contact_id_controller.estimation.sensors import JointAcceleration, JointEffort
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.new_robot.first_parameters import propose
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.from_settings import build_robot
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.state import RobotState

ARM_URDF = ROOT / "urdf" / "arm.urdf"
FEET = ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]
MOTORS = (
    ("*", {"rotor_inertia_kg_m2": 0.01, "dry_friction_nm": 0.2, "viscous_friction_nm_s_rad": 0.05}),
    ("*_KFE", {"rotor_inertia_kg_m2": 0.02}),
)
ROWS = [
    "* rotor_inertia_kg_m2=0.01 dry_friction_nm=0.2 viscous_friction_nm_s_rad=0.05",
    "*_KFE rotor_inertia_kg_m2=0.02",
]
INERTIA = np.tile([0.01, 0.01, 0.02], 4)


def quadruped(**motors):
    return MujocoRobot(QUADRUPED_URDF, [SphereFoot(frame, 0.01) for frame in FEET], **motors)


def in_the_air(robot, seed=3):
    """A state far above the ground, every joint faster than the width of its friction."""
    random = np.random.default_rng(seed)
    q = robot.configuration([0, 0, 5.0, 0, 0, 0, 1], random.uniform(-1.0, 1.0, robot.na))
    v = random.uniform(-0.5, 0.5, robot.nv)
    v[6:] = random.choice([-1.0, 1.0], robot.na) * random.uniform(2.0, 5.0, robot.na)
    return q, v


def test_the_simulated_robot_has_the_motors_joint_by_joint():
    """Mass matrix and passive torque of MuJoCo, with and without."""
    plain, geared = quadruped(), quadruped(motors=MOTORS)
    q, v = in_the_air(plain.robot)
    for world in (plain, geared):
        world.reset(q, v)
    joints = geared.mujoco_dofs
    added = (mass_matrix(geared) - mass_matrix(plain))[np.ix_(joints, joints)]
    np.testing.assert_allclose(added, np.diag(INERTIA), atol=1e-12)
    passive = geared.mujoco_data.qfrc_passive[joints]
    np.testing.assert_allclose(passive, -0.05 * v[6:], atol=1e-12)
    assert not plain.mujoco_data.qfrc_passive.any()


def test_torques_for_an_acceleration_give_it_in_mujoco():
    """The inverse problem with motors, judged by MuJoCo's forward dynamics with armature, frictionloss, damping."""
    world = quadruped(motors=MOTORS)
    robot, random = world.robot, np.random.default_rng(0)
    q, v = in_the_air(robot)
    wanted = random.uniform(-20.0, 20.0, robot.na)
    none = ContactSet(np.zeros((0, 3)), np.zeros((0, 3)), [], 0.6)
    known = np.zeros(robot.nv)
    known[robot.actuated] = -robot.motors.friction(v[robot.actuated])
    problem = build_problem(robot, q, v, wanted, none, 1e-3, external_forces=known)
    torques = solve(problem, "coulomb", "qp").torques
    world.reset(q, v)
    data = world.mujoco_data
    data.qfrc_applied[world.mujoco_dofs] = torques
    mujoco.mj_forward(world.mujoco_model, data)
    np.testing.assert_allclose(data.qacc[world.mujoco_dofs], wanted, atol=0.01)
    without = solve(build_problem(robot, q, v, wanted, none, 1e-3), "coulomb", "qp").torques
    assert np.abs(torques - without).min() > 0.2


@pytest.mark.parametrize("speed", [1.0, -5.0, 20.0])
def test_dry_friction_in_mujoco_is_dry(speed):
    """All of it, or as much as stops the joint within a step: that of shanks was viscous up to some rad/s."""
    world = quadruped(motors=[("*KFE", {"dry_friction_nm": 0.6})])
    dofs = world.mujoco_dofs[2::3]
    world.reset(*in_the_air(world.robot))
    model, data = world.mujoco_model, world.mujoco_data
    model.opt.gravity[:] = data.qvel[:] = 0.0
    data.qvel[dofs] = speed
    mujoco.mj_step(model, data)
    full = np.abs(data.qfrc_constraint[dofs] + np.sign(speed) * 0.6) < 1e-3
    stopped = np.abs(data.qvel[dofs]) < 1e-3 * abs(speed)
    assert (full | stopped).all()
    data.qvel[:] = 0.0
    data.qfrc_applied[dofs] = 0.5
    for _ in range(100):
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel[dofs]).max() < 1e-3


def test_the_reduced_problem_is_exact_with_rotor_inertia():
    """Standing on four feet: what is solved obeys Pinocchio's equations of motion with its own armature."""
    robot = RobotModel.from_urdf(QUADRUPED_URDF, motors=MOTORS)
    q, v = in_the_air(robot)
    pin.framesForwardKinematics(robot.model, robot.data, q)
    points = np.array([robot.data.oMf[robot.frame_id(foot)].translation for foot in FEET])
    contacts = ContactSet(points, np.tile([0.0, 0.0, 1.0], (4, 1)), FEET, 0.6)
    wanted = np.random.default_rng(1).uniform(-20.0, 20.0, robot.na)
    solution = solve(build_problem(robot, q, v, wanted, contacts, 1e-3), "coulomb", "qp")
    plain = RobotModel.from_urdf(QUADRUPED_URDF)
    M = pin.crba(plain.model, plain.data, q)
    M = np.triu(M) + np.triu(M, 1).T
    M[np.arange(6, 18), np.arange(6, 18)] += INERTIA
    acceleration = (solution.velocity - v) / 1e-3
    h = pin.nonLinearEffects(plain.model, plain.data, q, v)
    ground = np.zeros(robot.nv)
    for point, foot, force in zip(points, FEET, solution.forces):
        frame = plain.frame_id(foot)
        J = pin.computeFrameJacobian(plain.model, plain.data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        ground += J[:3].T @ force
    effort = M @ acceleration + h - ground
    np.testing.assert_allclose(effort[:6], 0.0, atol=1e-8)
    np.testing.assert_allclose(effort[6:], solution.torques, atol=1e-8)


def test_the_controller_feeds_friction_of_the_planned_speed_and_rotor_inertia_forward():
    """An arm on its plan: more torque than without motors, by what they take at the planned motion."""
    motors = ["* rotor_inertia_kg_m2=0.05 dry_friction_nm=0.4 viscous_friction_nm_s_rad=0.1"]
    plain = followed(motors=["* viscous_friction_nm_s_rad=0"])  # the URDF's
    geared = followed(motors=motors)
    for time_s in (2.3, 2.301, 2.302):
        state = on_plan(time_s)
        noisy = RobotState(time_s, state.q, state.v + 0.3)
        goal = arm_motion(2.0).sample(time_s)
        more = geared.step(noisy).torques - plain.step(noisy).torques
        speed = np.array(goal.velocity)  # the plan's: on it nothing is added, whatever is measured
        friction = 0.4 * np.tanh(speed / 0.03) + 0.1 * speed
        wanted = plain.workings.acceleration
        np.testing.assert_allclose(more, friction + 0.05 * wanted, atol=1e-9)


def test_motors_of_the_description_count_where_nothing_else_is_set(tmp_path):
    """URDF dynamics: damping and friction, in the model and in MuJoCo."""
    text = QUADRUPED_URDF.read_text().replace(
        '<joint name="LF_KFE" type="revolute">',
        '<joint name="LF_KFE" type="revolute"><dynamics damping="0.3" friction="0.7"/>',
    )
    assert 'damping="0.3"' in text
    file = tmp_path / "rubbing.urdf"
    file.write_text(text)
    robot = RobotModel.from_urdf(file)
    at = robot.joint_names.index("LF_KFE")
    expected = np.zeros(robot.na)
    expected[at] = 0.7
    np.testing.assert_array_equal(robot.motors.dry_friction_nm, expected)
    world = MujocoRobot(file, [SphereFoot(frame, 0.01) for frame in FEET])
    dof = world.mujoco_dofs[at]
    assert world.mujoco_model.dof_damping[dof] == 0.3
    assert world.mujoco_model.dof_frictionloss[dof] == 0.7
    smooth = RobotModel.from_urdf(file, motors=[("LF_KFE", {"dry_friction_nm": 0.0})])
    assert smooth.motors.viscous_friction_nm_s_rad[at] == 0.3
    assert not smooth.motors.dry_friction_nm.any()


def test_every_node_has_the_same_rows_and_copies_keep_them():
    values = {"urdf": str(QUADRUPED_URDF), "contact_frames": FEET, "motors": ROWS}
    controller = ControllerSettings.from_mapping(values).robot()
    simulated = build_robot(SimulatedRobotSettings.from_mapping(values)).robot
    for robot in (controller, simulated, pickle.loads(pickle.dumps(controller))):
        np.testing.assert_array_equal(robot.motors.rotor_inertia_kg_m2, INERTIA)
        np.testing.assert_array_equal(robot.model.armature[6:], INERTIA)
    beside = controller.with_object(1.0, np.eye(3))
    np.testing.assert_array_equal(beside.model.armature[beside.actuated], INERTIA)
    assert beside.motors.dry_friction_nm.any()


def test_a_new_file_has_the_motors_of_urdf_or_mjcf(tmp_path):
    """What `contact_id new` writes gives the robot what was stated."""
    mjcf = tmp_path / "robot.xml"
    joints = RobotModel.from_urdf(QUADRUPED_URDF).joint_names
    body = "".join(
        f'<body><joint name="{name}" class="leg"/><geom type="mesh" mesh="none"/></body>'
        for name in joints
    )
    mjcf.write_text(
        '<mujoco><default><default class="leg"><joint armature="0.01" frictionloss="0.2" '
        'damping="0.05"/></default></default><asset><mesh name="none" file="none.stl"/></asset>'
        f"<worldbody>{body}</worldbody></mujoco>"
    )
    values = yaml.safe_load(propose(str(QUADRUPED_URDF), mjcf=mjcf).text)["/**"]["ros__parameters"]
    assert values["motors"] == [
        "* rotor_inertia_kg_m2=0.01 dry_friction_nm=0.2 viscous_friction_nm_s_rad=0.05"
    ]
    assert (
        "motors" not in yaml.safe_load(propose(str(QUADRUPED_URDF)).text)["/**"]["ros__parameters"]
    )
    mjcf.write_text('<mujoco><worldbody><body><joint name="tail"/></body></worldbody></mujoco>')
    with pytest.raises(ConfigurationError, match="no joint of the URDF, only 'tail'"):
        propose(str(QUADRUPED_URDF), mjcf=mjcf)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("*_TAIL dry_friction_nm=1", "fit no joint"),
        ("* dry_friction_nm=-1", "dry_friction_nm is -1"),
        ("* friction_speed_rad_s=0", "friction_speed_rad_s is 0"),
        ("* inertia=1", "'inertia' is none of"),
        ("* dry_friction_nm=much", "no number"),
    ],
)
def test_motors_that_cannot_be_are_refused(row, message):
    with pytest.raises(ConfigurationError, match=message):
        ControllerSettings.from_mapping({"urdf": str(QUADRUPED_URDF), "motors": [row]}).robot()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_estimator_finds_the_motion_behind_the_motors(noise):
    """Efforts of motors with rotors, from Pinocchio; joint accelerations exact or not."""
    robot = RobotModel.from_urdf(
        ARM_URDF, floating_base=False, motors=[("*", {"rotor_inertia_kg_m2": 0.3})]
    )
    random = np.random.default_rng(5)
    q, v, a = robot.neutral(), random.normal(size=robot.nv), random.normal(size=robot.nv)
    efforts = pin.rnea(robot.model, robot.model.createData(), q, v, a)
    sensors = [JointAcceleration(noise, robot.joint_names), JointEffort(0.01, robot.joint_names)]
    estimator = DynamicsEstimator(robot, sensors, {})
    joints = robot.actuated
    values = {"joint_acceleration": a[joints], "joint_effort": efforts[joints]}
    found = estimator.estimate(q, v, measurements=values)
    np.testing.assert_allclose(found.joint_accelerations, a[robot.actuated], atol=1e-8)
    link = efforts[robot.actuated] - 0.3 * a[robot.actuated]
    np.testing.assert_allclose(found.joint_efforts, link, atol=1e-8)
    for residual in found.residuals.values():
        np.testing.assert_allclose(residual, 0.0, atol=1e-5)
