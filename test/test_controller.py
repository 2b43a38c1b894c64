"""The controller step without ROS: standing, walking in MuJoCo, limits, references."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from robots import QUADRUPED, QUADRUPED_FEET, frame_positions, point_kinematics

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.feedback import consistent_acceleration
from contact_id_controller.exceptions import (
    ConfigurationError,
    RobotDescriptionError,
    StateError,
    TrajectoryError,
)
from contact_id_controller.geometry import FootContacts, HalfSpace, SphereFoot
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.gait import GaitSettings
from contact_id_controller.simulation.mujoco_robot import MujocoRobot
from contact_id_controller.state import RobotState

POSTURE = np.array([0.1, 0.8, 1.2, -0.1, -0.8, -1.2, -0.1, -0.8, -1.2, 0.1, 0.8, 1.2])
RADIUS = 0.01


EXPERIMENTAL = ControllerSettings.experimental()


def make(**changes):
    mapping = {
        "urdf": QUADRUPED,
        "contact_frames": QUADRUPED_FEET,
        "contact_radii_m": [RADIUS],
        "allow_moving_trajectory_end": True,
        **changes,
    }
    experimental = {name: mapping.pop(name) for name in EXPERIMENTAL & set(mapping)}
    settings = ControllerSettings.from_mapping(mapping, **experimental)
    return Controller(RobotModel.from_urdf(QUADRUPED, settings.floating_base), settings)


@pytest.fixture(scope="module")
def simulated():
    return MujocoRobot(QUADRUPED, [SphereFoot(f, RADIUS) for f in QUADRUPED_FEET], friction=0.6)


def stand(simulated, posture=POSTURE):
    robot = simulated.robot
    return simulated.reset(
        simulated.place_on_ground(robot.configuration([0, 0, 0, 0, 0, 0, 1], posture))
    )


def test_standing_predicts_the_force_that_the_ground_returns(simulated):
    controller, state = make(), stand(simulated)
    controller.reset(state)
    start = state.q.copy()
    for _ in range(600):
        result = controller.step(state)
        state = simulated.step(result.torques)
    assert result.status == "solved" and result.contact.all()
    np.testing.assert_allclose(result.forces, simulated.contact_forces(), atol=0.02)
    np.testing.assert_allclose(state.q, start, atol=1e-3)


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
def test_a_copy_of_a_controller_steps_as_the_first_one_does(simulated, how):
    controller, state = make(), stand(simulated)
    controller.reset(state)
    first = controller.step(state)
    twin = (
        getattr(copy, how)(controller)
        if how != "pickle"
        else pickle.loads(pickle.dumps(controller))
    )
    np.testing.assert_array_equal(twin.step(state).torques, controller.step(state).torques)
    assert first.status == "solved"
    twin.sent(first.torques)
    np.testing.assert_array_equal(twin.commanded, first.torques)
    assert not twin.commanded.flags.writeable
    if how == "copy":  # the arrays are the first one's
        return
    joints = JointTrajectory(
        controller.robot.joint_names, [0.0, 0.1], [POSTURE, POSTURE + 0.1], np.zeros((2, 12))
    )
    for each in (controller, twin):
        each.follow(Plan(joints=joints), state.time_s)
    for k in range(1, 51):
        later = RobotState(state.time_s + 0.001 * k, state.q, state.v)
        found, wanted = twin.step(later), controller.step(later)
        np.testing.assert_array_equal(found.torques, wanted.torques)
        np.testing.assert_array_equal(found.reference, wanted.reference)
    assert found.reference.position[0] > POSTURE[0] + 0.04


@pytest.mark.parametrize("plan_base", [True, False])
def test_trot_in_place_of_the_paper_walks_in_mujoco(simulated, plan_base):
    """1.5 s of the paper's trot; predicted and real normal force agree, plan and joints too."""
    controller, state = make(), stand(simulated)
    controller.reset(state)
    planner = GaitPlanner(
        RobotModel.from_urdf(QUADRUPED),
        GaitSettings.from_mapping(
            {
                "feet": QUADRUPED_FEET,
                "foot_radius_m": RADIUS,
                "waypoints_m": [0.0, 0.0, 0.5, 0.0],
            }
        ),
    )
    height, weight = state.q[2], controller.robot.weight
    gap, error = [], []
    for k in range(1500):
        if k % 50 == 0:
            plan = planner.plan(state.time_s, state.q, state.v)
            if not plan_base:
                plan = dataclasses.replace(plan, base=None)
            controller.follow(plan, state.time_s)
        result = controller.step(state)
        error.append(np.abs(result.reference.position - state.q[7:]).mean())
        state = simulated.step(result.torques)
        gap.append(abs(result.forces[:, 2].sum() - simulated.contact_forces()[:, 2].sum()) / weight)
    assert state.q[2] > 0.9 * height
    assert state.q[0] > 0.1
    assert np.mean(gap) < 0.03
    assert np.mean(error) < 0.03


def test_pid_needs_no_model_and_holds_the_posture(simulated):
    controller, state = make(friction="none", solver="pid"), stand(simulated)
    controller.reset(state)
    for _ in range(300):
        result = controller.step(state)
        state = simulated.step(result.torques)
    assert result.status == "pid" and result.solution is None
    assert np.abs(result.reference.position - state.q[7:]).max() < 0.2
    error = result.reference.position - state.q[7:]
    assert np.abs(error).max() > 1e-3  # a PD alone sags: nothing is compensated


def test_contact_ignored_lets_the_robot_sink(simulated):
    controller, state = make(friction="none", solver="none"), stand(simulated)
    controller.reset(state)
    result = controller.step(state)
    assert np.abs(result.forces).max() == 0.0
    with_contact = make()
    with_contact.reset(state)
    assert np.abs(with_contact.step(state).torques).max() > 3 * np.abs(result.torques).max()


def test_integral_does_not_wind_up_at_the_limit(simulated):
    controller, state = make(effort_limits_nm=[1e-6], joint_integral_gain=[10.0]), stand(simulated)
    controller.reset(state)
    moved = RobotState(state.time_s, state.q + np.r_[np.zeros(7), 0.1 * np.ones(12)], state.v)
    for _ in range(50):
        assert controller.step(moved).saturated.all()
    assert np.abs(controller.period.integral).max() == 0.0


def test_integral_stands_still_while_something_else_is_sent(simulated):
    controller, state = make(joint_integral_gain=[10.0]), stand(simulated)
    controller.reset(state)
    moved = RobotState(state.time_s, state.q + np.r_[np.zeros(7), 1e-3 * np.ones(12)], state.v)
    for _ in range(5):
        assert not controller.step(moved).saturated.any()
    grown = np.abs(controller.period.integral)
    assert grown.all()
    for _ in range(5):
        controller.sent(np.zeros(12))
        controller.step(moved)
    assert np.array_equal(np.abs(controller.period.integral), grown)
    controller.step(moved)
    assert (np.abs(controller.period.integral) > grown).all()


def test_without_a_model_speed_limits_act_on_the_torque_alone(simulated):
    state = stand(simulated)
    torques = []
    for changes in ({}, {"velocity_limits_rad_s": [1.0]}):
        controller = make(friction="none", solver="pid", **changes)
        controller.reset(state)
        fast = RobotState(state.time_s, state.q.copy(), state.v.copy())
        fast.q[7] -= 0.5  # its posture asks for more of the motion
        fast.v[6] = 2.0
        torques.append(controller.step(fast).torques)
    assert torques[0][0] > 0.0 == torques[1][0]
    assert np.array_equal(torques[0][1:], torques[1][1:])


def test_holds_the_posture_until_a_trajectory_comes_and_then_follows_it(simulated):
    controller, state = make(), stand(simulated)
    controller.reset(state)
    np.testing.assert_allclose(controller.step(state).reference.position, POSTURE)
    goal = POSTURE + 0.1
    goals = np.array([goal, goal])
    plan = Plan(JointTrajectory(controller.robot.joint_names, [1.0, 2.0], goals))
    controller.follow(plan, 10.0)
    middle = RobotState(10.5, state.q, state.v)
    np.testing.assert_allclose(controller.step(middle).reference.position, POSTURE + 0.05)
    late = RobotState(13.0, state.q, state.v)
    np.testing.assert_allclose(controller.step(late).reference.position, goal)


def test_a_goal_after_another_is_approached_from_where_the_joints_are(simulated):
    """Single points, as people send them by hand: nothing jumps, whatever plan is there."""
    controller, state = make(), stand(simulated)
    state = RobotState(1.0, state.q, state.v)
    controller.reset(state)
    names, reference, furthest = controller.robot.joint_names, POSTURE, 0.0
    for step in range(300):
        if step % 60 == 0:
            goal = POSTURE + 0.2 * (-1.0) ** (step // 60)
            plan = Plan(JointTrajectory(names, [0.1], goal[None]))
            controller.follow(plan, state.time_s)
        result = controller.step(RobotState(1.0 + 1e-3 * step, state.q, state.v))
        state = RobotState(1.0 + 1e-3 * (step + 1), state.q, state.v)
        furthest = max(furthest, np.abs(result.reference.position - reference).max())
        reference = result.reference.position.copy()
    assert 1e-3 < furthest < 5e-3  # rad in a period of 1 ms


@pytest.mark.parametrize("start_s", [None, 3.0])
def test_a_plan_lasts_until_its_last_point(start_s):
    plan = JointTrajectory(["a"], [0.1, 0.7], [[1.0], [2.0]], start_s=start_s)
    begun_s, out = start_s or 0.0, np.empty((3, 1))
    for t, lasts, place in (
        (0.0, True, 1.0),
        (0.4, True, 1.5),
        (0.7, False, 2.0),
        (9.0, False, 2.0),
    ):
        assert plan.fill(begun_s + t, out) is lasts and out[0, 0] == pytest.approx(place)


def test_a_plan_that_begins_far_away_is_refused_unless_the_joints_are_there(simulated):
    controller, state = make(plan_jump_limit=0.3), stand(simulated)
    controller.reset(state)
    names, now = controller.robot.joint_names, state.time_s
    far = POSTURE.copy()
    far[4] += 0.31

    def plan(position, **when):
        return Plan(JointTrajectory(names, [0.0, 1.0], np.tile(position, (2, 1)), **when))

    for _ in range(2):  # without a plan, and with one
        with pytest.raises(TrajectoryError, match=f"{names[4]}' would jump by 0.31 .*limit is 0.3"):
            controller.follow(plan(far), now)
        controller.follow(plan(POSTURE), now)
        controller.step(state)
    q = state.q.copy()
    q[controller.robot.q_index] = far
    controller.step(RobotState(now + 1e-3, q, state.v))  # somebody has moved the leg
    controller.follow(plan(far), now + 2e-3)


def test_a_plan_begins_though_the_next_one_comes_at_its_start(simulated):
    """With plan_period_s as short as the planner's lead all feet were taken to stand for good."""
    controller, state = make(), stand(simulated)
    controller.reset(state)
    for swings in range(3):
        stance, now_s = np.arange(4) != swings, state.time_s + 0.02 * swings
        schedule = ContactSchedule(QUADRUPED_FEET, [0.0, 1.0], [stance] * 2, now_s + 0.02)
        controller.follow(Plan(contacts=schedule), now_s)
        expected = np.arange(4) != swings - 1
        np.testing.assert_array_equal(controller.planned_stance(now_s), expected | (swings == 0))


def test_a_plan_is_followed_or_refused_as_a_whole(simulated):
    controller, state = make(plan_jump_limit=0.3), stand(simulated)
    controller.reset(state)
    names, still = controller.robot.joint_names, np.zeros((2, 3))

    def plan(position=POSTURE, frames=QUADRUPED_FEET, base_start_s=state.time_s):
        times, start_s, base = [0.0, 1.0], state.time_s, np.tile(state.q[:7], (2, 1))
        base[:, 2] += 0.01
        return Plan(
            JointTrajectory(names, times, np.tile(position, (2, 1)), start_s=start_s),
            BaseTrajectory(times, base[:, :3], base[:, 3:], still, still, base_start_s),
            ContactSchedule(frames, times, [[0, 1, 1, 1]] * 2, start_s),
        )

    before = controller.step(state)
    for bad, words in (
        (plan(POSTURE + 0.5), "would jump"),
        (plan(frames=[*QUADRUPED_FEET[:3], "TAIL"]), "'TAIL'"),
        (plan(base_start_s=state.time_s + 0.5), "begin together: joints at .*, base at"),
    ):
        with pytest.raises(TrajectoryError, match=words):
            controller.follow(bad, state.time_s)
        after = controller.step(state)
        assert not after.following and after.contact.all()
        np.testing.assert_allclose(after.torques, before.torques, atol=1e-6)
    controller.follow(plan(), state.time_s)
    after = controller.step(state)
    assert after.following and after.contact.tolist() == [False, True, True, True]
    assert np.abs(after.torques - before.torques).max() > 0.1


@pytest.mark.parametrize(
    ("drift_share", "gap_m"), [(1.0, 0.0), (0.0, 0.0), (1.0, 0.002), (1.0, 1.0)]
)
def test_consistent_acceleration_matches_a_numpy_kkt_system(drift_share, gap_m):
    controller = make(
        contact_time_constant_s=0.05,
        touchdown_time_constant_s=0.01,
        touchdown_speed_m_s=0.08,
        velocity_product_term=bool(drift_share),
    )
    robot = controller.robot
    rng = np.random.default_rng(0)
    import pinocchio as pin

    q = robot.configuration([0.1, 0, 0.2, 0, 0, 0, 1], POSTURE + 0.1 * rng.normal(size=12))
    v = rng.normal(size=18)
    wanted, weights = rng.normal(size=18), rng.uniform(0.1, 2.0, 18)
    pin.computeJointJacobians(robot.model, robot.data, q)
    controller.feet.update(robot.data)
    period = controller.period
    period.v[:], period.wanted[:], period.weights[:] = v, wanted, weights
    period.touching[:], period.landing[:] = [1, 0, 0, 1], [0, 1, 0, 0]
    period.closing[:], period.gaps[1] = [0.0, 0.3, 0.3, 0.2], gap_m
    consistent_acceleration(period)
    acceleration = period.acceleration
    used = [0, 1, 3]
    arms = np.tile([0, 0, -RADIUS], (3, 1))
    J, drift = point_kinematics(robot, q, v, [QUADRUPED_FEET[i] for i in used], arms)
    goal = -(J @ v) / np.repeat([0.05, 0.01, 0.05], 3) - drift_share * drift
    twist = robot.jacobian_view[:, :6] @ v[:6]
    falls = -(twist[:3] + np.cross(twist[3:], controller.feet.points[1]))[2]
    assert falls > 0.1
    goal[5] -= max(0.08, min(falls, period.gaps[1] / 0.005)) / 0.01
    goal[8] -= 0.2 / 0.05
    system = np.block([[np.diag(weights), J.T], [J, np.zeros((9, 9))]])
    expected = np.linalg.solve(system, np.concatenate([weights * wanted, goal]))[:18]
    np.testing.assert_allclose(acceleration, expected, atol=1e-5 * np.abs(expected).max())


def test_feet_on_tilted_ground():
    robot = RobotModel.from_urdf(QUADRUPED)
    import pinocchio as pin

    ground = HalfSpace([0, 1, 1], 0.02)
    feet = FootContacts(robot, [SphereFoot(f, RADIUS) for f in QUADRUPED_FEET], ground, 0.6)
    q = robot.configuration([0, 0, 0.2, 0, 0, 0, 1], POSTURE)
    pin.computeJointJacobians(robot.model, robot.data, q)
    feet.update(robot.data)
    centers = frame_positions(robot, q, QUADRUPED_FEET)
    normal = np.array([0, 1, 1]) / np.sqrt(2)
    np.testing.assert_allclose(feet.gaps, centers @ normal - 0.02 - RADIUS, atol=1e-12)
    np.testing.assert_allclose(feet.points, centers - RADIUS * normal, atol=1e-12)
    contacts = feet.select(np.array([True, False, True, False]))
    assert contacts.identities == ("LF_FOOT", "LH_FOOT") and len(contacts) == 2


@pytest.mark.parametrize("delay", [1, 2])
def test_sensed_forces_are_used_as_old_as_stated(simulated, delay):
    controller, state = make(friction="none", solver="sensed", sensed_delay=delay), stand(simulated)
    controller.reset(state)
    reference = make()
    reference.reset(state)
    predicted = reference.step(state)
    for _ in range(delay):
        before = controller.step(state)
        controller.measure(predicted.forces)
    after = controller.step(state)
    np.testing.assert_allclose(after.forces, predicted.forces, atol=1e-12)
    np.testing.assert_allclose(after.torques, predicted.torques, atol=1e-9)
    assert np.abs(before.torques - after.torques).max() > 0.1


def test_sensed_feet_that_are_not_felt_land_and_do_not_stand(simulated):
    """Their planned standing makes them neither stand nor slide before they touch."""
    controller = make(friction="none", solver="sensed", contact_sources=["state"])
    state = stand(simulated)
    controller.reset(state)
    controller.sources.detector.take_states(np.array([0.0, 1.0, 1.0, 1.0]), 0.0)
    result = controller.step(state)
    assert (controller.feet.gaps > 0.0).tolist() == [True, False, False, False]
    assert result.contact.all(), "of each foot the force is used that was measured"


def test_a_foot_that_has_landed_stands_though_it_is_a_little_off_the_ground(simulated):
    """Bumps under a foot that rolls, or noise: 20 um were enough to make it stamp."""
    controller, state = make(touchdown_speed_m_s=0.2), stand(simulated)
    stance = np.ones((2, 4), dtype=bool)
    schedule = ContactSchedule(tuple(QUADRUPED_FEET), np.array([0.0, 1.0]), stance, 0.0)
    lifted = RobotState(1e-3, state.q + 2e-5 * np.eye(len(state.q))[2], state.v)

    def fastest_joint(*states):
        controller.reset(state)
        controller.follow(Plan(contacts=schedule), 0.0)
        for each in states:
            result = controller.step(each)
        return np.abs(result.solution.velocity[6:]).max()

    assert fastest_joint(state, lifted) < 0.01 * fastest_joint(lifted)


def test_what_a_controller_cannot_use_is_refused_in_one_line(simulated):
    controller, state = make(), stand(simulated)
    q, v = state.q, state.v
    for bad, words in [
        (RobotState(0.0, q[:-1], v), r"q and v must have shapes \(19,\) and \(18,\), got \(18,\)"),
        (RobotState(0.0, q, v[None]), r"got \(19,\) and \(1, 18\)"),
        (RobotState(0.0, q[:, None], v), r"got \(19, 1\) and \(18,\)"),
    ]:
        for use in (controller.reset, controller.step):
            with pytest.raises(StateError, match=words):
                use(bad)
    for use in (controller.reset, controller.step):
        with pytest.raises(StateError, match="state must be a RobotState, got a tuple"):
            use((0.0, q, v))
        for numbers in (q.astype(object), q + 0j, np.array(["a"] * 19)):
            with pytest.raises(StateError, match="q must be an array of real numbers"):
                use(RobotState(0.0, numbers, v))
    for bad in (RobotState(0.0, np.nan * q, v), RobotState(0.0, q, np.nan * v)):
        with pytest.raises(StateError, match="q and v of the state must be finite"):
            controller.reset(bad)
    controller.reset(RobotState(0.0, list(q), list(v)))
    assert controller.step(state).status == "solved", "what was refused has left no trace"
    with pytest.raises(StateError, match=r"got \(19, 1\) and \(18,\)"):
        controller.step(RobotState(0.001, q[:, None], v))
    for plan, now_s, words in [
        (None, 0.0, "plan must be a Plan, got a NoneType"),
        (Plan(), np.nan, "now_s must be a finite time in seconds, got nan"),
    ]:
        with pytest.raises(TrajectoryError, match=words):
            controller.follow(plan, now_s)
    for times in (["a"], None):
        with pytest.raises(TrajectoryError, match="times of the points must be an array of real n"):
            JointTrajectory(["a"], times, [[0.0]])
    with pytest.raises(RobotDescriptionError, match="robot must be a RobotModel, got a str"):
        Controller("quadruped", controller.settings)
    with pytest.raises(ConfigurationError, match="settings must be a ControllerSettings, got a di"):
        Controller(controller.robot, {})


def test_without_reset_the_first_posture_is_held(simulated):
    controller, state = make(), stand(simulated)
    np.testing.assert_allclose(controller.step(state).reference.position, POSTURE)


def test_tilt_is_the_angle_between_gravity_now_and_at_reset():
    import pinocchio as pin

    controller = make()
    rng = np.random.default_rng(3)
    for _ in range(20):
        first, yaw, roll = pin.SE3.Random().rotation, rng.uniform(-3, 3), rng.uniform(-1.5, 1.5)
        q = np.r_[np.zeros(3), pin.Quaternion(first).coeffs(), POSTURE]
        controller.reset(RobotState(0.0, q, np.zeros(18)))
        turned = pin.rpy.rpyToMatrix(0, 0, yaw) @ pin.rpy.rpyToMatrix(roll, 0, 0) @ first
        q[3:7] = pin.Quaternion(turned).coeffs()
        assert controller.tilt(q) == pytest.approx(abs(roll), abs=1e-7)


def test_a_state_of_lists_is_one_where_torques_act_late(simulated):
    """It was integrated to the time at which they act as the list that it is: "can't multiply sequence"."""
    state, torques = stand(simulated), []
    for given in (np.array, list):
        controller = make(command_delay_s=0.003)
        for k in range(5):
            each = RobotState(0.001 * k, given(state.q), given(state.v + 0.01))
            torques.append(controller.step(each).torques)
    np.testing.assert_array_equal(torques[:5], torques[5:])


def test_tilt_of_numbers_of_any_kind():
    """A view was read as the numbers in between, a list or None could end the process."""
    controller, q = make(), np.r_[np.zeros(6), 1.0, POSTURE]
    controller.reset(RobotState(0.0, q, np.zeros(18)))
    spread = np.zeros(38)
    spread[::2] = q[:3].tolist() + [0.6, 0.0, 0.0, 0.8] + POSTURE.tolist()
    for given in (spread[::2], spread[::2].tolist(), spread[::2].astype(np.float32)):
        assert controller.tilt(given) == pytest.approx(2.0 * np.arcsin(0.6))
    for bad in (None, q[:5], q[None]):
        with pytest.raises(StateError, match="q must"):
            controller.tilt(bad)


@pytest.mark.parametrize("sources", [["schedule"], ["state"]])
def test_without_geometry_the_height_of_the_base_does_not_matter(simulated, sources):
    """Odometry that has sunk or risen by 5 cm: the same torques as with the right height."""
    controller, state = make(contact_sources=sources), stand(simulated)
    torques = []
    for drift_m in (0.0, -0.05, 0.05):
        q = state.q.copy()
        q[2] += drift_m
        moved = RobotState(state.time_s, q, state.v)
        controller.reset(moved)
        controller.sources.detector.take_states(np.ones(4), state.time_s)
        result = controller.step(moved)
        assert result.contact.all() and result.status == "solved"
        torques.append(result.torques)
    np.testing.assert_allclose(torques[1:], [torques[0]] * 2, atol=1e-9)


def test_regularisation_reaches_the_one_stage_solver(simulated):
    """Contacts that yield more carry less of a falling robot."""
    controller, state = make(solver="qp_one_stage"), stand(simulated)
    falling = state.v.copy()
    falling[2] = -0.2
    carried = []
    for options in ({}, {"regularisation": 1e-6}, {"regularisation": 0.5}):
        controller = make(solver="qp_one_stage", options=options)
        controller.reset(state)
        result = controller.step(RobotState(state.time_s, state.q, falling))
        carried.append(result.forces[:, 2].sum())
    assert carried[0] == pytest.approx(carried[1])  # the solver's own default
    assert carried[2] < 0.9 * carried[1]
