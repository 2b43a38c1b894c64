"""Feet that are not points: soles by their settings, schedules of feet, touchdown of whole feet."""

import numpy as np
import pinocchio as pin
import pytest
from robots import frame_positions, point_kinematics

from contact_id_controller.control.controller import Controller
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.exceptions import ConfigurationError, TrajectoryError
from contact_id_controller.geometry import FlatFoot, FootContacts, HalfSpace
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule
from contact_id_controller.runs.estimated_state import EstimatedState
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.simulation.from_settings import build_robot
from contact_id_controller.state import RobotState

TALOS = "example-robot-data://talos_data/robots/talos_reduced.urdf"
SOLES = ["left_sole_link", "right_sole_link"]
LOCKED = ["gripper_left_joint", "gripper_right_joint", "head_1_joint", "head_2_joint"]
HALF = (0.1, 0.06)
SIZE = f"half_length_m={HALF[0]} half_width_m={HALF[1]}"
LEG = [0.0, 0.0, -0.41, 0.86, -0.45, 0.0]
ARM = [0.26, 0.17, 0.0, -0.53, 0.0, 0.0, 0.1]
RIGHT_ARM = [-0.26, -0.17, 0.0, -0.53, 0.0, 0.0, 0.1]
POSTURE = [*LEG, *LEG, 0.0, 0.0, *ARM, *RIGHT_ARM]
ROBOT = {
    "urdf": TALOS,
    "locked_joints": LOCKED,
    "soles": [f"{sole} {SIZE}" for sole in SOLES],
}


def controller_settings(**changes):
    return ControllerSettings.from_mapping({**ROBOT, **changes})


def simulated(**changes):
    values = {**ROBOT, "initial_joint_positions": POSTURE, "contact_radii_m": 0.01}
    return build_robot(SimulatedRobotSettings.from_mapping({**values, **changes}))


def test_a_sole_touches_where_its_corners_are():
    """Independent: corners by Pinocchio's frame placement, on a robot turned and lifted."""
    settings = controller_settings(
        soles=[f"{sole} {SIZE} x_m=0.01 y_m=-0.02 z_m=0.003" for sole in SOLES]
    )
    robot = settings.robot()
    feet = FootContacts(robot, settings.feet, HalfSpace())
    q = robot.configuration([0.1, 0.2, 1.2, 0.0, 0.0, np.sin(0.4), np.cos(0.4)], POSTURE)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    feet.update(data)
    assert settings.contact_names == tuple(f"{sole}_{k}" for sole in SOLES for k in (1, 2, 3, 4))
    assert feet.foot.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    for number, sole in enumerate(SOLES):
        placement = data.oMf[robot.frame_id(sole)]
        for k, (a, b) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
            corner = placement.act(np.array([0.01 + a * 0.1, -0.02 + b * 0.06, 0.003]))
            # The posture's soles are level within a milliradian.
            np.testing.assert_allclose(feet.points[4 * number + k], corner, atol=2e-5)
            np.testing.assert_allclose(feet.gaps[4 * number + k], corner[2], atol=2e-5)


@pytest.mark.parametrize(
    "changes, told",
    [
        ({"soles": SOLES}, "whose half_length_m must be above 0, at most 1"),
        ({"soles": ["foot half_length_m=0.1"]}, "whose half_width_m must be above 0"),
        ({"soles": [f"foot {SIZE} z_m=-2"]}, "whose z_m must be within -1 and 1"),
        ({"soles": [f"foot {SIZE} z_m=nan"]}, "z_m is nan, must be finite"),
        ({"soles": [f"foot {SIZE} z_m=low"]}, "z_m is 'low', no number"),
        ({"soles": [f"foot {SIZE} height=1"]}, "'height' is none of 'half_length_m'"),
        ({"soles": [SIZE]}, "does not begin with a name"),
        ({"soles": [f"{SOLES[0]} {SIZE}"] * 2}, "'left_sole_link' more than once"),
        ({"contact_frames": SOLES[:1]}, "name 'left_sole_link' more than once"),
        ({"locked_joints": [f"{LOCKED[0]}=up"]}, "or name=position"),
        ({"locked_joints": [LOCKED[0]] * 2}, "'gripper_left_joint' more than once"),
        ({"friction_coefficient": [0.6] * 8}, "has 8 values, must have 1 or 2"),
    ],
)  # fmt: skip
def test_soles_that_make_no_sense_are_refused(changes, told):
    with pytest.raises(ConfigurationError, match=told):
        controller_settings(**changes)


def test_values_of_a_foot_are_those_of_its_corners():
    settings = controller_settings(
        friction_coefficient=[0.4, 0.7], least_normal_force_n=[0.0, 40.0]
    )
    controller = Controller(settings.robot(), settings)
    controller.feet.update(controller.robot.data)
    chosen = controller.feet.select(np.ones(8, dtype=bool))
    assert chosen.friction.tolist() == [0.4] * 4 + [0.7] * 4
    assert controller.period.settings.push_n.tolist() == [0.0] * 4 + [10.0] * 4
    controller.measure_feet(np.array([[0.0, 0.0, 8.0], [4.0, 0.0, 0.0]]))
    assert controller.memory.forces[0].tolist() == [[0, 0, 2]] * 4 + [[1, 0, 0]] * 4


def test_a_schedule_names_a_foot_once_for_all_its_corners():
    frames = [*[SOLES[0]] * 2, "hand", *[SOLES[1]] * 2]
    schedule = ContactSchedule(SOLES[::-1], [0.0, 1.0], [[1, 0], [0, 1]], start_s=5.0)
    ordered = schedule.in_order(frames)
    assert ordered.sample(5.0).tolist() == [False, False, True, True, True]
    assert ordered.sample(6.5).tolist() == [True, True, True, False, False]
    one_by_one = ContactSchedule(frames[:2], [0.0], [[1, 0]], start_s=5.0).in_order(frames)
    assert one_by_one.sample(5.0).tolist() == [True, False, True, True, True]
    with pytest.raises(TrajectoryError, match="'left_sole_link' 3 times, must name it once or 2"):
        ContactSchedule(frames[:1] * 3, [0.0], [[1, 0, 1]]).in_order(frames)


def test_talos_stands_on_its_soles():
    """Own weight within 0.1 %, each sole's corners loaded; what MuJoCo's ground did is the judge."""
    settings, world = controller_settings(), simulated()
    controller = Controller(settings.robot(), settings)
    state = world.state()
    controller.reset(state)
    height = state.q[2]
    for _ in range(500):
        result = controller.step(state)
        state = world.step(result.torques)
    assert result.status == "solved"
    assert abs(state.q[2] - height) < 1e-3
    assert abs(world.contact_forces()[:, 2].sum() / world.robot.weight - 1.0) < 1e-3
    assert (world.foot_forces()[:, 2] > 0.3 * world.robot.weight).all()
    np.testing.assert_allclose(
        world.foot_forces(), world.contact_forces().reshape(2, 4, 3).sum(axis=1)
    )
    assert not result.saturated.any()


def test_flat_foot_corners():
    corners = FlatFoot("sole", (0.1, 0.05), (0.0, 0.0, -0.1)).corners()
    lowest = {(c.center[0], c.center[1], round(c.center[2] - c.radius_m, 12)) for c in corners}
    assert lowest == {(x, y, -0.1) for x in (0.1, -0.1) for y in (0.05, -0.05)}


def test_a_sole_with_one_corner_down_stands_and_the_others_follow():
    """Independent: accelerations of the corners by Pinocchio; each nears the ground, at most slowly.

    Judged corner by corner the others would come down at 8 cm/s within 5 ms: 16 m/s2 on a lever of
    a decimetre.
    """
    settings = controller_settings()
    robot = settings.robot()
    controller = Controller(robot, settings)
    rolled = np.array(POSTURE)
    rolled[5] += 0.03
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], rolled)
    pin.forwardKinematics(robot.model, robot.data, q)
    controller.feet.update(robot.data)
    q[2] -= controller.feet.gaps[:4].min()
    state = RobotState(1.0, q, np.zeros(robot.nv))
    controller.reset(state)
    stance = ContactSchedule(SOLES, [0.0], [[1, 0]], start_s=1.0)
    controller.follow(Plan(contacts=stance), 1.0)
    controller.step(state)
    gaps = controller.feet.gaps[:4]
    assert gaps.min() < 1e-6 and gaps.max() > 3e-3
    points = controller.feet.points[:4]
    offsets = points - frame_positions(robot, q, SOLES[:1])
    J, drift = point_kinematics(robot, q, state.v, SOLES[:1] * 4, offsets)
    found = (J @ controller.period.acceleration + drift).reshape(4, 3)
    speeds = np.minimum(gaps / settings.contact_time_constant_s, settings.touchdown_speed_m_s)
    wanted = -speeds / settings.contact_time_constant_s
    np.testing.assert_allclose(found[:, 2], wanted, atol=2e-3)
    assert np.abs(found).max() < 2.0


def test_the_estimator_feels_the_soles_of_a_standing_talos():
    """Judge: MuJoCo's ground. Contact, the base's height and the force on each foot."""
    settings, world = controller_settings(), simulated(imu_frame="")
    controller = Controller(settings.robot(), settings)
    estimator = DynamicsEstimatorSettings.from_mapping(ROBOT)
    pipeline = EstimationPipeline(
        world.robot, estimator.foot_frames, estimator.foot_radii_m, estimator.pipeline
    )
    told = EstimatedState(world, pipeline)
    state = world.state()
    believed = told.begin(controller, state)
    controller.reset(believed)
    for _ in range(400):
        state = world.step(controller.step(believed).torques)
        believed = told.after(controller, state)
    assert told.estimate.contact.tolist() == [True, True]
    assert np.linalg.norm(believed.q[:3] - state.q[:3]) < 5e-3
    assert abs(believed.q[2] - state.q[2]) < 3e-4
    off = told.estimate.world_forces - world.foot_forces()
    assert np.abs(off).max() < 0.02 * world.robot.weight
    per_corner = controller.over_contacts(told.estimate.world_forces)
    assert per_corner.shape == (8, 3)
    np.testing.assert_allclose(per_corner.sum(axis=0), told.estimate.world_forces.sum(axis=0))
