"""The simulated robot against Pinocchio, Newton and Coulomb."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from paths import QUADRUPED_URDF as QUADRUPED
from robots import JOINTS, LEGS, STANDING

from contact_id_controller.exceptions import (
    ConfigurationError,
    RobotDescriptionError,
    StateError,
    UnknownFrameError,
    UnknownJointError,
)
from contact_id_controller.geometry import SphereFoot
from contact_id_controller.simulation.mujoco_model import GroundSettings
from contact_id_controller.simulation.mujoco_robot import MujocoRobot

QUADRUPED_FEET = [SphereFoot(f"{leg}_FOOT", 0.01) for leg in LEGS]
SOLO = "example-robot-data://solo_description/robots/solo12.urdf"
SOLO_FEET = [SphereFoot(f"{leg}_FOOT", 0.016) for leg in ("FL", "FR", "HL", "HR")]
ANYMAL = "example-robot-data://anymal_b_simple_description/robots/anymal.urdf"
ICUB = "example-robot-data://icub_description/robots/icub_reduced.urdf"
ANYMAL_FEET = [SphereFoot(f"{leg}_FOOT", 0.03) for leg in LEGS]

INERTIAL = (
    '<inertial><origin xyz="{com}"/><mass value="{mass}"/>'
    '<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'
)
BLOCK = (
    '<robot name="block"><link name="block">'
    + INERTIAL.format(com="0 0 0", mass=2, i=0.02)
    + "</link></robot>"
)
ARM = (
    '<robot name="arm"><link name="ground_plate"/>'
    '<link name="upper">' + INERTIAL.format(com="0.1 0 0", mass=1, i=0.01) + "</link>"
    '<link name="lower">' + INERTIAL.format(com="0 0.1 0", mass=1, i=0.01) + "</link>"
    '<link name="flange"/><link name="tip"/>'
    '<joint name="z_turn" type="continuous"><parent link="ground_plate"/><child link="upper"/>'
    '<origin xyz="0 0 0.5" rpy="0.3 0.2 0.1"/><axis xyz="0 0 1"/></joint>'
    '<joint name="a_bend" type="revolute"><parent link="upper"/><child link="lower"/>'
    '<origin xyz="0.2 0 0" rpy="0 0.4 0"/><axis xyz="0 0.6 0.8"/>'
    '<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
    '<joint name="f1" type="fixed"><parent link="lower"/><child link="flange"/>'
    '<origin xyz="0 0.2 0" rpy="1 0 0"/></joint>'
    '<joint name="f2" type="fixed"><parent link="flange"/><child link="tip"/>'
    '<origin xyz="0 0 0.1" rpy="0 1 0"/></joint></robot>'
)


def quadruped(**settings):
    return MujocoRobot(QUADRUPED, QUADRUPED_FEET, joints=JOINTS, **settings)


def standing(simulated):
    q = simulated.robot.configuration([0, 0, 0, 0, 0, 0, 1], STANDING)
    return simulated.place_on_ground(q)


def hold(simulated, seconds, target=STANDING):
    """Hold joint angles by a PD for some time."""
    robot, state = simulated.robot, simulated.state()
    for _ in range(round(seconds / simulated.period_s)):
        error = target - state.q[robot.q_index]
        state = simulated.step(40.0 * error - 0.1 * state.v[robot.actuated])
    return state


def block(tmp_path, **settings):
    """A block on four small spheres, 5 cm below its centre."""
    path = tmp_path / "block.urdf"
    path.write_text(BLOCK)
    feet = [SphereFoot("block", 0.01, (x, y, -0.04)) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
    simulated = MujocoRobot(path, feet, **settings)
    simulated.reset(simulated.place_on_ground(simulated.robot.neutral()))
    return simulated


def arm(tmp_path, **settings):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    tip = SphereFoot("tip", 0.02, (0.01, 0.02, 0.03))
    return MujocoRobot(path, [tip], floating_base=False, joints=["a_bend"], **settings)


ROBOTS = {
    "quadruped": lambda path: quadruped(),
    "solo12": lambda path: MujocoRobot(SOLO, SOLO_FEET),
    "anymal, whose sensors have impossible inertias": lambda path: MujocoRobot(ANYMAL, ANYMAL_FEET),
    "fixed arm with a continuous joint": lambda path: arm(path),
}


@pytest.fixture(params=ROBOTS)
def simulated(request, tmp_path):
    return ROBOTS[request.param](tmp_path)


def random_state(robot, seed):
    """A configuration with the base anywhere in the air, and a velocity."""
    rng = np.random.default_rng(seed)
    q = pin.integrate(robot.model, robot.neutral(), rng.uniform(-1, 1, robot.nv))
    if robot.floating_base:
        q[2] += 10.0
    return q, rng.uniform(-1, 1, robot.nv)


def velocity_transform(simulated, q):
    """T with qvel = T v, one column at a time."""
    columns = []
    for unit in np.eye(simulated.robot.nv):
        simulated.reset(q, unit)
        columns.append(simulated.mujoco_data.qvel.copy())
    return np.array(columns).T


def mass_matrix(simulated):
    """MuJoCo's mass matrix, in MuJoCo's coordinates."""
    rows = []
    for unit in np.eye(simulated.robot.nv):
        row = np.zeros(simulated.robot.nv)
        mujoco.mj_mulM(simulated.mujoco_model, simulated.mujoco_data, row, unit)
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("seed", range(3))
def test_mass_matrix_is_pinocchios(simulated, seed):
    q, _ = random_state(simulated.robot, seed)
    transform = velocity_transform(simulated, q)
    simulated.reset(q)
    mass = mass_matrix(simulated)
    expected = pin.crba(simulated.robot.model, simulated.robot.model.createData(), q)
    np.testing.assert_allclose(transform.T @ mass @ transform, expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_gravity_torques_are_pinocchios(simulated, seed):
    q, _ = random_state(simulated.robot, seed)
    transform = velocity_transform(simulated, q)
    simulated.reset(q)
    expected = pin.computeGeneralizedGravity(
        simulated.robot.model, simulated.robot.model.createData(), q
    )
    np.testing.assert_allclose(transform.T @ simulated.mujoco_data.qfrc_bias, expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_acceleration_under_torque_is_pinocchios(simulated, seed):
    robot = simulated.robot
    q, v = random_state(robot, seed)
    torques = np.random.default_rng(seed + 100).uniform(-1, 1, robot.na)
    tau = np.zeros(robot.nv)
    tau[robot.actuated] = torques
    expected = pin.aba(robot.model, robot.model.createData(), q, v, tau)
    if robot.floating_base:  # from the derivative of body components to that of the vector itself
        expected[:3] += np.cross(v[3:6], v[:3])
    transform = velocity_transform(simulated, q)
    simulated.reset(q, v)
    simulated.step(torques)
    np.testing.assert_allclose(simulated.mujoco_data.qacc, transform @ expected, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_foot_positions_are_pinocchios(simulated, seed):
    q, _ = random_state(simulated.robot, seed)
    simulated.reset(q)
    model = simulated.robot.model
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    expected = [
        data.oMf[model.getFrameId(foot.frame)].act(np.array(foot.center)) for foot in simulated.feet
    ]
    np.testing.assert_allclose(simulated.foot_positions(), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_state_survives_the_way_to_mujoco_and_back(simulated, seed):
    q, v = random_state(simulated.robot, seed)
    state = simulated.reset(q, v)
    np.testing.assert_allclose(state.q, q, atol=1e-12)
    np.testing.assert_allclose(state.v, v, atol=1e-12)


@pytest.mark.parametrize("name", ["quadruped", "solo12"])
def test_a_spinning_thrown_body_keeps_its_momentum_in_pinocchios_words(name):
    simulated = ROBOTS[name](None)
    robot = simulated.robot
    q, v = random_state(robot, 7)
    state = simulated.reset(q, v)
    data = robot.model.createData()
    before = pin.computeCentroidalMomentum(robot.model, data, state.q, state.v).vector.copy()
    for _ in range(20):
        state = simulated.step(np.zeros(robot.na))
    after = pin.computeCentroidalMomentum(robot.model, data, state.q, state.v).vector.copy()
    after[2] += robot.weight * state.time_s
    np.testing.assert_allclose(after, before, atol=2e-3 * np.abs(before).max())


def test_ground_carries_the_weight_of_a_standing_robot():
    simulated = quadruped()
    simulated.reset(standing(simulated))
    hold(simulated, 2.0)
    forces = simulated.contact_forces()
    np.testing.assert_allclose(forces.sum(axis=0), (0, 0, 47.088), atol=1e-3)
    np.testing.assert_allclose(forces[:, 2], 47.088 / 4, rtol=1e-3)


def test_forces_belong_to_their_feet_when_the_robot_leans():
    simulated = quadruped()
    simulated.reset(standing(simulated))
    lean = STANDING + np.array([0, 0, 0.3, 0, 0, 0, 0, 0, 0, 0, 0, 0.2])
    state = hold(simulated, 4.0, lean)
    forces, robot = simulated.contact_forces(), simulated.robot
    centre = pin.centerOfMass(robot.model, robot.model.createData(), state.q)
    points = simulated.foot_positions() - (0, 0, 0.01)
    assert np.ptp(forces[:, 2]) > 2.0
    # 0.02 N m is the weight on a lever of 0.4 mm; a swapped pair of feet would make 0.7 N m.
    np.testing.assert_allclose(np.cross(points - centre, forces).sum(axis=0), 0, atol=0.02)


@pytest.mark.parametrize("substeps", [1, 5])
def test_time_advances_by_whole_periods(substeps):
    simulated = quadruped(period_s=0.002, substeps=substeps)
    simulated.reset(standing(simulated))
    times = [simulated.step(np.zeros(12)).time_s for _ in range(5)]
    np.testing.assert_allclose(times, 0.002 * np.arange(1, 6), atol=1e-15)
    assert simulated.mujoco_data.time == pytest.approx(0.01)
    assert simulated.reset(standing(simulated)).time_s == 0.0


@pytest.mark.parametrize("friction", [0.1, 0.5])
def test_a_sliding_block_is_slowed_by_mu_g(tmp_path, friction):
    simulated = block(tmp_path, friction=friction)
    start = np.array([1.0, 0.5, 0, 0, 0, 0])
    simulated.reset(simulated.state().q, start)
    for _ in range(100):
        state = simulated.step(np.zeros(0))
    forces = simulated.contact_forces()
    tangential = np.hypot(forces[:, 0], forces[:, 1])
    np.testing.assert_allclose(tangential, friction * forces[:, 2], rtol=1e-3)
    speed = np.linalg.norm(start) - friction * 9.81 * 0.1
    np.testing.assert_allclose(state.v[:2], speed * start[:2] / np.linalg.norm(start), atol=2e-2)


def _slides(tmp_path, exact, friction, start):
    """Normal force, as a share of the weight, in each period of .1 s of sliding, and the last speed, m/s."""
    ground = GroundSettings(exact_friction=exact)
    simulated = block(tmp_path, friction=friction, ground=ground)
    simulated.reset(simulated.state().q, np.array(start))
    pressing = []
    for _ in range(100):
        state = simulated.step(np.zeros(0))
        pressing.append(simulated.contact_forces()[:, 2].sum() / simulated.robot.weight)
    return np.array(pressing), state.v[:2]


@pytest.mark.parametrize("friction", [0.1, 0.3, 0.6])
def test_with_exact_friction_a_sliding_block_stays_on_the_ground(tmp_path, friction):
    pressing, _ = _slides(tmp_path, False, friction, [1.0, 0.5, 0, 0, 0, 0])
    assert (pressing == 0.0).mean() > 0.5 and pressing.max() > 10.0  # MuJoCo lifts it, and it hops
    pressing, speed = _slides(tmp_path, True, friction, [1.0, 0.5, 0, 0, 0, 0])
    np.testing.assert_allclose(pressing[20:], 1.0, atol=0.02)
    assert 0.95 < pressing[1:].min() and pressing.max() < 2.0
    slowed = np.hypot(1.0, 0.5) - friction * 9.81 * 0.1
    np.testing.assert_allclose(
        speed, slowed * np.array([2, 1]) / 5**0.5, atol=2e-3 + 0.01 * friction
    )


def test_with_exact_friction_what_turns_and_what_stands_is_pressed_by_its_weight(tmp_path):
    pressing, _ = _slides(tmp_path, True, 0.3, [0.5, 0, 0, 0, 0, 6.0])
    np.testing.assert_allclose(pressing[20:], 1.0, atol=0.02)
    _, still = _slides(tmp_path, True, 1.0, [0.5, 0, 0, 0, 0, 0])
    assert np.abs(still).max() < 1e-4


def test_without_friction_nothing_slows_it(tmp_path):
    simulated = block(tmp_path, friction=0.0)
    simulated.reset(simulated.state().q, np.array([1.0, 0, 0, 0, 0, 0]))
    for _ in range(100):
        state = simulated.step(np.zeros(0))
    assert state.v[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("friction, slope", [(0.1, 0.08), (0.6, 0.48), (np.inf, 0.7)])
def test_below_its_limit_friction_holds_with_less_than_a_tenth_of_a_millimetre_per_second(
    tmp_path, friction, slope
):
    simulated = block(tmp_path, friction=friction)
    simulated.mujoco_model.opt.gravity[0] = slope * 9.81
    for _ in range(300):
        state = simulated.step(np.zeros(0))
    before = state.q[0]
    for _ in range(500):
        state = simulated.step(np.zeros(0))
    assert abs(state.q[0] - before) / 0.5 < 1e-4


def test_beyond_its_limit_friction_lets_go(tmp_path):
    simulated = block(tmp_path, friction=0.6)
    simulated.mujoco_model.opt.gravity[0] = 0.7 * 9.81
    for _ in range(500):
        state = simulated.step(np.zeros(0))
    assert state.v[0] == pytest.approx(0.1 * 9.81 * 0.5, rel=0.05)


def test_default_ground_is_hard_and_a_soft_one_can_be_had():
    depth = {}
    soft = GroundSettings(time_constant_s=0.02, impedance=(0.9, 0.95))
    for name, ground in (("hard", GroundSettings()), ("soft", soft)):
        simulated = quadruped(ground=ground)
        simulated.reset(standing(simulated))
        hold(simulated, 1.0)
        depth[name] = 0.01 - simulated.foot_positions()[:, 2].max()
    assert 0.0 < depth["hard"] < 2e-5
    assert 5e-4 < depth["soft"] < 2e-3


def test_only_feet_touch_the_ground():
    simulated = quadruped()
    q = standing(simulated)
    q[2] = -0.05
    q[3:7] = (1, 0, 0, 0)  # upside down, the body below the ground, the feet above
    simulated.reset(q)
    simulated.step(np.zeros(12))
    assert simulated.mujoco_data.ncon == 0


def test_placing_touches_with_the_lowest_foot_of_a_tilted_robot():
    simulated = quadruped()
    q = standing(simulated)
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.2, 0.1, 0.5)).coeffs()
    placed = simulated.place_on_ground(q)
    simulated.reset(placed)
    assert simulated.foot_positions()[:, 2].min() == pytest.approx(0.01, abs=1e-12)
    np.testing.assert_array_equal(np.delete(placed, 2), np.delete(q, 2))


def test_torques_are_applied_as_they_come_beyond_the_urdfs_limits(tmp_path):
    simulated = arm(tmp_path)
    simulated.reset(simulated.robot.neutral())
    simulated.step(np.array([50.0]))
    tau = np.zeros(simulated.robot.nv)
    tau[simulated.robot.actuated] = 50.0
    data = simulated.robot.model.createData()
    zero = np.zeros(simulated.robot.nv)
    expected = pin.aba(simulated.robot.model, data, simulated.robot.neutral(), zero, tau)
    v = simulated.state().v
    np.testing.assert_allclose(v, 1e-3 * expected, rtol=1e-6)  # nor does the URDF's damping act


def test_armature_and_damping_of_the_actuated_joint_are_added_when_given(tmp_path):
    rows = [("*", {"rotor_inertia_kg_m2": 0.5, "viscous_friction_nm_s_rad": 2.0})]
    plain, geared = arm(tmp_path), arm(tmp_path, motors=rows)
    index = plain.robot.actuated[0]
    start = np.zeros(plain.robot.nv)
    start[index] = 1.0
    mass = []
    for simulated in (plain, geared):
        simulated.reset(simulated.robot.neutral(), start)
        mass.append(mass_matrix(simulated))
    np.testing.assert_allclose(mass[1] - mass[0], np.diag([0.0, 0.5]), atol=1e-12)
    assert geared.mujoco_data.qfrc_passive == pytest.approx([0.0, -2.0])
    assert not plain.mujoco_data.qfrc_passive.any()


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(urdf="nowhere.urdf"), RobotDescriptionError, "nowhere.urdf"),
        (dict(feet=[SphereFoot("PAW", 0.01)]), UnknownFrameError, "'PAW'.*'LF_FOOT'"),
        (dict(feet=[SphereFoot("LF_FOOT", 0.0)]), ConfigurationError, "radius_m.*'LF_FOOT'"),
        (dict(joints=["LF_HAA", "TAIL"]), UnknownJointError, "'TAIL'"),
        (dict(friction=-0.1), ConfigurationError, "-0.1"),
        (dict(friction=np.nan), ConfigurationError, "nan"),
        (dict(period_s=0.0), ConfigurationError, "period_s is 0.0"),
        (dict(substeps=0), ConfigurationError, "substeps 0"),
    ],
)
def test_bad_settings_are_refused_by_name(change, error, message):
    settings = dict(urdf=QUADRUPED, feet=QUADRUPED_FEET)
    settings.update(change)
    with pytest.raises(error, match=message):
        MujocoRobot(settings.pop("urdf"), settings.pop("feet"), **settings)


@pytest.mark.parametrize(
    "change",
    [
        dict(time_constant_s=0.0),
        dict(damping_ratio=-1.0),
        dict(impedance=(0.9, 1.0)),
        dict(impedance=(0.9,)),
        dict(tangential_stiffening=np.inf),
    ],
)
def test_impossible_ground_is_refused(change):
    with pytest.raises(ConfigurationError, match=next(iter(change))):
        GroundSettings(**change)


def test_links_that_are_points_move_as_pinocchios():
    """MuJoCo refuses points, such as iCub's hips and ankles; a ball of less than .1 mm is as good."""
    simulated = MujocoRobot(ICUB, [])
    q, v = random_state(simulated.robot, 1)
    simulated.reset(q, v)
    kinetic = 0.5 * mass_matrix(simulated) @ simulated.mujoco_data.qvel @ simulated.mujoco_data.qvel
    model = simulated.robot.model
    expected = pin.computeKineticEnergy(model, model.createData(), q, v)
    assert kinetic == pytest.approx(expected, rel=1e-6)


def test_a_description_with_a_massless_moving_link_is_refused(tmp_path):
    path = tmp_path / "ghost.urdf"
    path.write_text('<robot name="ghost"><link name="ghost"/></robot>')
    with pytest.raises(RobotDescriptionError, match="link 'ghost' moves, but has no mass"):
        MujocoRobot(path, [])


@pytest.mark.parametrize("q", [np.zeros(18), np.full(19, np.nan)])
def test_impossible_states_are_refused(q):
    with pytest.raises(StateError, match="q has shape"):
        quadruped().reset(q)


def test_a_fixed_robot_cannot_be_placed(tmp_path):
    simulated = arm(tmp_path)
    with pytest.raises(ConfigurationError, match="floating base"):
        simulated.place_on_ground(simulated.robot.neutral())


def test_a_foot_that_only_just_touches_pushes_nothing():
    """At distance zero MuJoCo lists the contact but gives it no constraint rows."""
    feet = [SphereFoot(name, 0.016) for name in ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")]
    robot = MujocoRobot("example-robot-data://solo_description/robots/solo12.urdf", feet)
    posture = np.array([0, 0.8, -1.6] * 2 + [0, -0.8, 1.6] * 2)
    q = robot.robot.configuration([0, 0, 0, 0, 0, 0, 1], posture)
    robot.reset(robot.place_on_ground(q))
    for _ in range(5):
        robot.step(np.zeros(12))
    assert np.isfinite(robot.contact_forces()).all()
    assert robot.contact_forces()[:, 2].sum() > 0.0
