"""Goals into accelerations: against plain numpy and Pinocchio, and what they do to a robot in MuJoCo."""

import copy
import math
import pickle

import numpy as np
import pinocchio as pin
import pytest
import quadprog
from scipy.spatial import ConvexHull

from contact_id_controller.control import balance, tasks
from contact_id_controller.control.balance_kernels import (
    TASK_COMPLIANCE,
    _lengthen,
    _within_bounds,
)
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.feedback import project
from contact_id_controller.control.following import Following
from contact_id_controller.control.tasks_kernels import aim_feet, com_acceleration, nearest_in_hull
from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.goals import (
    ComGoal,
    FootPath,
    FrameGoal,
    Heading,
    Posture,
    TaskGoals,
)
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.one_process import controller_settings, mujoco_robot, section
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot, Push
from contact_id_controller.state import RobotState

TALOS = str(resolve_urdf("package://contact_id_controller/config/plans/talos.yaml"))
G1 = str(resolve_urdf("package://contact_id_controller/config/plans/g1.yaml"))
RATE, HEIGHT_M = 3.4, 0.85
SIDES = "right", "left"


@pytest.fixture(scope="module")
def standing():
    """TALOS's controller, and a configuration in which its soles touch the ground."""
    settings = controller_settings(TALOS, base_feedback="center_of_mass")
    controller = Controller(settings.robot(), settings)
    robot = controller.robot
    posture = section(TALOS, "simulated_robot")["initial_joint_positions"]
    q = robot.configuration((0, 0, 0, 0, 0, 0, 1), np.array(posture))
    pin.forwardKinematics(robot.model, robot.data, q)
    controller.feet.update(robot.data)
    q[2] -= controller.feet.gaps.max()
    return controller, q


def soles(controller):
    """Middles (2, 3) of the soles at the controller's last update."""
    feet = controller.feet
    return np.array([feet.points[feet.foot == k].mean(axis=0) for k in range(2)])


def begun(controller, q):
    """Places of both soles of a robot that begins at 1 s in q (nq,), at rest."""
    robot = controller.robot
    controller.reset(RobotState(1.0, q, np.zeros(robot.nv)))
    pin.forwardKinematics(robot.model, robot.data, q)
    controller.feet.update(robot.data)
    return soles(controller)


def goals_of(robot, q, com, feet=(), **changes):
    posture = Posture(robot.joint_names, robot.joints_of(q))
    return TaskGoals(com, posture, dict(feet), changes.pop("lasts_s", 1.0), **changes)


def resting_path(place, may_land_from_s=None):
    return FootPath([0.0], [[*place, 0.0]], np.zeros((1, 4)), np.zeros((1, 4)), may_land_from_s)


def test_nearest_in_hull_is_the_projection():
    """Certificate: q in the hull, and (p - q) (v - q) <= 0 for each of its points v."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        points, p = rng.normal(size=(rng.integers(3, 9), 2)), 2.0 * rng.normal(size=2)
        q = np.array(nearest_in_hull(points, len(points), *p))
        assert (ConvexHull(points).equations @ [*q, 1.0]).max() < 1e-9
        assert ((points - q) @ (p - q)).max() < 1e-9
    line = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    assert nearest_in_hull(line, 4, 2.0, 0.0) == pytest.approx((1.0, 1.0))
    assert nearest_in_hull(line, 4, 5.0, 5.0) == pytest.approx((2.0, 2.0))
    assert nearest_in_hull(line, 2, 3.0, 4.0) == (0.0, 0.0)


def test_the_height_counts_from_the_edge_on_which_a_sole_stands():
    """A sole that tips by 4 cm asks for no straighter leg."""
    points = np.array(
        [[0.1, 0.05, 0.0], [0.1, -0.05, 0.0], [-0.1, 0.05, 0.04], [-0.1, -0.05, 0.04]]
    )
    corners = points, np.ones(4, dtype=bool), np.zeros(4, dtype=np.int64), 0.9
    com, out = np.array([[0.0, 0.0, HEIGHT_M], [0.0, 0.0, 0.0]]), np.empty(3)
    gains, gravity = (tasks.DIVERGENCE_GAIN, *tasks.HEIGHT_GAINS), np.array([0.0, 0.0, -9.81])
    com_acceleration(
        (np.zeros(6), RATE, np.array([HEIGHT_M, 0.0, 0.0])), com, gains, gravity, corners, True, out
    )
    assert out == pytest.approx(np.zeros(3), abs=1e-12)


def wanted_and_rows(controller, q, v, goal, path_state, frames):
    """Wanted (nv,), weights, hard rows and soft rows of one swing foot, by Pinocchio."""
    robot, feet, settings = controller.robot, controller.feet, controller.settings
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.nv))
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    legs = np.array(["leg" in name for name in robot.joint_names])
    stiffness = np.where(legs, tasks.LEG_STIFFNESS, tasks.OTHER_STIFFNESS)
    wanted = np.zeros(robot.nv)
    wanted[robot.actuated] = -2.0 * np.sqrt(stiffness) * v[robot.actuated]
    turn = pin.Quaternion(q[3:7]).toRotationMatrix()
    kp, kd = settings.base_angular_position_gain[0], settings.base_angular_velocity_gain[0]
    level = pin.rpy.rpyToMatrix(0.0, 0.0, goal.heading.yaw)
    wanted[3:6] = kp * pin.log3(turn.T @ level) + kd * (-v[3:6])
    weights = np.full(robot.nv, tasks.POSTURE_WEIGHT)
    for name in frames:
        joint = model.frames[robot.frame_id(name)].parentJoint
        for each in list(model.supports[joint])[2:]:
            weights[model.joints[each].idx_v] = tasks.LED_WEIGHT
    weights[3:6] = balance.TORSO_WEIGHT
    hard, soft = [], []
    left, right = settings.foot_frames
    for i in np.flatnonzero(feet.foot == 0):
        frame = model.frames[robot.frame_id(left)]
        offset = data.oMi[frame.parentJoint].actInv(feet.points[i])
        at = model.addFrame(
            pin.Frame(f"corner{i}", frame.parentJoint, pin.SE3(np.eye(3), offset), pin.OP_FRAME)
        )
        hard.append((at, -1.0 / settings.contact_time_constant_s))
    data = model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.nv))
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    world = pin.LOCAL_WORLD_ALIGNED
    rows, goals = [], []
    for at, rate in hard:
        rows.append(pin.getFrameJacobian(model, data, at, world)[:3])
        speed = pin.getFrameVelocity(model, data, at, world).linear
        pull = pin.getFrameClassicalAcceleration(model, data, at, world).linear
        goals.append(rate * speed - settings.velocity_product_term * pull)
    A_hard, b_hard = np.vstack(rows), np.concatenate(goals)
    at = robot.frame_id(right)
    place, speed = data.oMf[at], pin.getFrameVelocity(model, data, at, world)
    pull = pin.getFrameClassicalAcceleration(model, data, at, world)
    kp, kd = tasks.FOOT_GAINS[:2]
    error = np.r_[path_state - place.translation, pin.log3(place.rotation.T)]
    soft.append(
        (
            pin.getFrameJacobian(model, data, at, world),
            kp * error - kd * speed.vector - pull.vector,
            TASK_COMPLIANCE,
        )
    )
    kp, kd, most, compliance = tasks.FRAME_GAINS
    for name, frame in frames.items():
        at = robot.frame_id(name)
        J, speed = (
            pin.getFrameJacobian(model, data, at, world),
            pin.getFrameVelocity(model, data, at, world).vector,
        )
        pull = pin.getFrameClassicalAcceleration(model, data, at, world).vector
        if frame.path is not None:
            error = frame.path.points[0, 0, :3] - data.oMf[at].translation
            error *= min(1.0, most / np.linalg.norm(error))
            soft.append((J[:3], kp * error - kd * speed[:3] - pull[:3], compliance))
        if frame.rotation is not None:
            goal_turn = pin.Quaternion(np.array(frame.rotation)).matrix()
            error = pin.log3(goal_turn @ data.oMf[at].rotation.T)
            soft.append((J[3:], kp * error - kd * speed[3:] - pull[3:], compliance))
    com = pin.jacobianCenterOfMass(model, data, q)
    pin.centerOfMass(model, data, q, v, np.zeros(robot.nv))
    c, speed, drift = data.com[0].copy(), data.vcom[0].copy(), data.acom[0].copy()
    ground = feet.points[feet.foot == 0][:, 2].mean()
    gain, kp, kd = tasks.DIVERGENCE_GAIN, *tasks.HEIGHT_GAINS
    lift = kp * (ground + goal.com.height_m - c[2]) - kd * speed[2]
    xi = c[:2] + speed[:2] / goal.com.rate
    p = goal.com.pressure + (1.0 + gain / goal.com.rate) * (xi - goal.com.divergent)
    wish = np.r_[(9.81 + lift) / (c[2] - ground) * (c[:2] - p), lift]
    soft.append((com, wish - drift, TASK_COMPLIANCE))
    return wanted, weights, A_hard, b_hard, soft


def bounded_by_quadprog(tasks, weights, bounds, wanted):
    """Acceleration (nv,): least squares in weights, tasks and how far rows are beyond their bounds."""
    (A, rest, soft), (own, low, high, give), nv = tasks, bounds, len(wanted)
    more = np.where(give > 0.0, give, 1.0)
    H = np.diag(np.r_[weights, 1.0 / more])
    H[:nv, :nv] += A.T @ (A / soft[:, None])
    f = np.r_[weights * wanted + A.T @ ((rest + A @ wanted) / soft), np.zeros(len(low))]
    rows = np.hstack([own, -np.diag((give > 0.0).astype(float))])
    return quadprog.solve_qp(H, f, np.vstack([rows, -rows]).T, np.r_[low, -high])[0][:nv]


def test_joints_that_bear_no_foot_keep_their_bounds():
    """Random tasks, by quadprog; where no bound is exceeded nothing changes, and from there on nothing jumps."""
    rng, acted, nv, free = np.random.default_rng(3), 0, 14, 6
    for _ in range(300):
        tasks_ = rng.normal(size=(7, nv)), 5.0 * rng.normal(size=7), np.full(7, 0.1)
        factor = rng.normal(size=(nv, nv))
        inertia, most = factor @ factor.T + np.eye(nv), rng.uniform(5.0, 100.0, free)
        own = np.vstack([inertia[8:], np.eye(nv)[8:]])
        high = np.r_[most, rng.uniform(0.5, 10.0, free)]
        bounds = own, -0.5 * high, high, np.repeat([0.0, 1.0], free)
        weights, wanted = rng.uniform(0.01, 1.0, nv), 3.0 * rng.normal(size=nv)
        plain = wanted.copy()
        project(tasks_[0].copy(), tasks_[1].copy(), tasks_[2], weights, plain)
        found = plain.copy()
        _within_bounds(tasks_[::2], weights, bounds, found)
        judge = bounded_by_quadprog(tasks_, weights, bounds, wanted)
        np.testing.assert_allclose(found, judge, atol=1e-4 * np.abs(judge).max())
        value = own @ plain
        within = (value <= high).all() and (value >= -0.5 * high).all()
        assert (found == plain).all() == within
        acted += not within
        onset = np.abs(value) * np.r_[1.0 - 1e-4, np.full(2 * free - 1, 2.0)]
        bounds = own, -onset, onset, bounds[3]
        _within_bounds(tasks_[::2], weights, bounds, found := plain.copy())
        assert 0.0 < np.abs(found - plain).max() < 0.01 * np.abs(plain).max()
    assert 100 < acted


def test_arms_and_torso_are_asked_for_no_more_than_they_have(standing):
    """Standing TALOS whose torso and arms turn at up to 4 rad/s: posture alone asked for up to 9 times their torque."""
    controller, q = standing
    robot, rng = controller.robot, np.random.default_rng(2)
    middle = begun(controller, q).mean(axis=0)[:2]
    upper = np.array(["leg" not in name for name in robot.joint_names])
    effort, most = controller.effort_limits[upper], 0.0
    com = ComGoal(middle, middle, RATE, HEIGHT_M)
    for _ in range(10):
        v = np.zeros(robot.nv)
        v[robot.actuated] = upper * rng.uniform(-4.0, 4.0, robot.na)
        controller.reset(RobotState(1.0, q, v))
        controller.follow(Plan(goals=goals_of(robot, q, com)), 1.0)
        torques = controller.step(RobotState(1.0, q, v)).solution.torques[upper]
        most = max(most, (np.abs(torques) / effort).max())
    assert 0.9 < most < 1.001


def hands(robot, q):
    """One hand is led .4 m away, farther than errors count, the other one to a place and a rotation."""
    pin.framesForwardKinematics(robot.model, robot.data, q)
    right, left = (robot.data.oMf[robot.frame_id(f"gripper_{side}_base_link")] for side in SIDES)
    far, near = right.translation + [0.0, -0.4, 0.0], left.translation + [0.03, 0.0, 0.02]
    turned = pin.Quaternion(left.rotation @ pin.rpy.rpyToMatrix(0.05, 0.0, -0.1)).coeffs()
    still = np.zeros((1, 3))
    return {
        f"gripper_{SIDES[0]}_base_link": FrameGoal(FootPath([0.0], [far], still, still)),
        f"gripper_{SIDES[1]}_base_link": FrameGoal(FootPath([0.0], [near], still, still), turned),
    }


@pytest.mark.parametrize("hand", [False, True])
def test_acceleration_is_the_least_squares_solution(standing, hand, monkeypatch):
    """One foot stands, the other one is led back, a hand is led or not: a KKT system by numpy, rows by Pinocchio."""
    controller, q = standing
    free, bounds = controller.tasks._free[:0], tuple(part[:0] for part in controller.tasks._bounds)
    monkeypatch.setattr(controller.tasks, "_free", free)
    monkeypatch.setattr(controller.tasks, "_bounds", bounds)
    robot, rng = controller.robot, np.random.default_rng(11)
    v = 0.005 * rng.normal(size=robot.nv)
    pin.forwardKinematics(robot.model, robot.data, q)
    controller.feet.update(robot.data)
    left, right = soles(controller)
    frames = list(controller.settings.foot_frames)
    com = pin.centerOfMass(robot.model, robot.model.createData(), q)
    controller.reset(RobotState(1.0, q, v))
    xi = com[:2] + np.array([0.01, -0.01])
    p = left[:2] + np.array([0.01, -0.02])
    goal = goals_of(
        robot,
        q,
        ComGoal(p, xi, RATE, HEIGHT_M),
        {frames[1]: resting_path(right + [0.0, 0.0, 0.001], 9.0)},
        heading=Heading(0.005, 0.0),
        frames=hands(robot, q) if hand else {},
    )
    schedule = ContactSchedule(frames, [0.0], [[True, False]])
    controller.follow(Plan(goals=goal, contacts=schedule), 1.0)
    controller.step(RobotState(1.0, q, v))
    assert not controller.tasks.limited
    found = controller.period.acceleration.copy()
    fresh = Controller(controller.settings.robot(), controller.settings)
    pin.forwardKinematics(fresh.robot.model, fresh.robot.data, q)
    fresh.feet.update(fresh.robot.data)
    origin = pin.updateFramePlacement(robot.model, robot.data, robot.frame_id(frames[1]))
    target = origin.translation + [0.0, 0.0, 0.001]
    wanted, weights, A, b, soft = wanted_and_rows(fresh, q, v, goal, target, goal.frames)
    H, f = np.diag(weights), weights * wanted
    for rows, wish, compliance in soft:
        H = H + rows.T @ rows / compliance
        f = f + rows.T @ wish / compliance
    independent = np.linalg.svd(A, full_matrices=False)
    keep = independent[1] > 1e-9
    A, b = independent[2][keep], (independent[0].T @ b)[keep] / independent[1][keep]
    m = len(A)
    kkt = np.block([[H, A.T], [A, np.zeros((m, m))]])
    judge = np.linalg.solve(kkt, np.r_[f, b])[: robot.nv]
    np.testing.assert_allclose(found, judge, atol=2e-3 * np.abs(judge).max())


def test_a_foot_that_may_land_stands_when_it_touches(standing):
    """Planned to be aloft, on the ground: it stands from ``may_land_from_s`` on, until the plan says so itself."""
    controller, q = standing
    robot, v = controller.robot, np.zeros(controller.robot.nv)
    frames = list(controller.settings.foot_frames)
    left, right = begun(controller, q)
    com = ComGoal(left[:2], left[:2], RATE, HEIGHT_M)
    goal = goals_of(robot, q, com, {frames[1]: resting_path(right, 0.1)})
    schedule = ContactSchedule(frames, [0.0], [[True, False]])
    controller.follow(Plan(goals=goal, contacts=schedule), 1.0)
    for time_s, stands in ((1.05, False), (1.11, True)):
        controller.step(RobotState(time_s, q, v))
        assert controller.touching.tolist() == [True] * 4 + [stands] * 4
    aloft = q.copy()
    aloft[robot.q_index[robot.joint_names.index("leg_right_4_joint")]] += 0.1
    later = goals_of(robot, q, com, {frames[1]: resting_path(right, 9.0)})
    controller.follow(Plan(goals=later, contacts=schedule), 1.2)
    controller.step(RobotState(1.2, q, v))
    assert controller.touching[4:].all()  # a new plan of the same swing does not lift it
    both = ContactSchedule(frames, [0.0], [[True, True]])
    controller.follow(Plan(goals=later, contacts=both), 1.3)
    controller.step(RobotState(1.3, q, v))
    controller.follow(Plan(goals=later, contacts=schedule), 1.4)
    controller.step(RobotState(1.4, q, v))
    assert not controller.touching[4:].any()


@pytest.mark.parametrize("degrees", [1.0, 89.0, 120.0, 179.0, 180.0])
def test_a_rotation_far_away_is_as_far_as_its_angle(degrees):
    """The sine, of feet that are never so far, is none of a hand's turn."""
    rng = np.random.default_rng(4)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    measured = pin.exp3(rng.normal(size=3))
    for about in (axis, *np.eye(3), np.array([0.6, -0.8, 0.0])):
        goal = pin.exp3(np.radians(degrees) * about) @ measured
        error = np.sin(np.radians(degrees)) * about
        _lengthen(goal, measured, error)
        np.testing.assert_allclose(pin.exp3(error) @ measured, goal, atol=1e-6)
        if degrees < 180.0:
            np.testing.assert_allclose(error, pin.log3(goal @ measured.T), atol=1e-6)


def test_friction_ahead_of_goals_is_not_that_of_the_measured_speed(standing):
    """It would make torque chatter about rest: a jump of the speed changes a twentieth of it in a period."""
    controller, q = standing
    robot = controller.robot
    goal = goals_of(robot, q, ComGoal(q[:2], q[:2], RATE, HEIGHT_M))
    controller.reset(RobotState(1.0, q, np.zeros(robot.nv)))
    controller.follow(Plan(goals=goal), 1.0)
    controller.step(RobotState(1.0, q, np.zeros(robot.nv)))
    solver, period = controller._solver, controller.period
    rubs = period.settings.friction[0] > 0.0
    assert rubs.any()
    torques, still = [], np.zeros(robot.na)
    for speed in (0.0, 0.01):
        period.sought[:-1], period.sought[-1] = 0.0, 1.0
        period.v[robot.actuated] = speed
        torques.append(solver._friction(1.001, period, still).copy())
    dry, _, width = period.settings.friction
    assert np.abs(torques[1])[rubs].max() < 0.06 * (dry * 0.01 / width).max() + 1e-3
    pushed = solver._friction(1.002, period, np.full(robot.na, 50.0))[rubs]
    assert (pushed > 0.5 * dry[rubs]).all()


@pytest.mark.parametrize("periods", [1, 5, 15])
def test_the_speed_that_goals_require_is_followed_however_rarely_they_are_solved(standing, periods):
    """Joints swing at 1.5 Hz under their own acceleration; of missed states, only the time since counts."""
    controller, q = standing
    robot, period, solver = controller.robot, controller.period, controller._solver
    controller.reset(RobotState(1.0, q, np.zeros(robot.nv)))
    turn, errors = 2.0 * math.pi * 1.5, []
    for t in np.arange(1.0, 3.0, 0.001 * periods):
        speed = math.sin(turn * t)
        period.v[robot.actuated] = speed
        solver._friction(t, period, np.full(robot.na, turn * math.cos(turn * t)))
        errors.append(period.sought[0] - speed)
    assert np.sqrt(np.mean(np.square(errors))) < 0.06  # of .71


def test_the_speed_that_goals_require_begins_at_the_measured_one(standing):
    """After a reset, a long time without it, and a number that is not finite; another controller goes on from it."""
    controller, q = standing
    robot, period, solver = controller.robot, controller.period, controller._solver
    still = np.zeros(robot.na)
    period.v[robot.actuated] = 1.0
    for spoil in (
        lambda: controller.reset(RobotState(1.0, q, np.zeros(robot.nv))),
        lambda: solver._friction(2.0, period, np.full(robot.na, 500.0)),
        lambda: solver._friction(2.999, period, np.full(robot.na, np.nan)),
    ):
        period.sought[:-1], period.sought[-1] = 9.0, 1.9999
        spoil()
        period.v[robot.actuated] = 1.0
        solver._friction(3.0, period, still)
        np.testing.assert_allclose(period.sought[:-1], 1.0, atol=1e-9)
    solver._friction(3.001, period, np.full(robot.na, 100.0))
    other = Controller(robot, controller.settings)
    other.take_over(controller)
    np.testing.assert_array_equal(other.period.sought, period.sought)
    assert period.sought[0] > 1.05


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_a_copy_follows_the_same_goals(standing, how):
    """Its arrays are its own: it led no foot, with torques 86 N·m away."""
    controller, q = standing
    state = aloft(controller, q)
    twin = (
        copy.deepcopy(controller) if how == "deepcopy" else pickle.loads(pickle.dumps(controller))
    )
    for k in range(1, 4):
        later = RobotState(1.0 + 0.001 * k, state.q, state.v)
        np.testing.assert_array_equal(controller.step(later).torques, twin.step(later).torques)


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_a_copy_follows_the_same_motion_of_joints_and_base(standing, how):
    """Soles are balanced by the reference of now, not by that of the time of the copy: 29 N·m apart after .4 s."""
    _, q = standing
    settings = controller_settings(TALOS, base_feedback="center_of_mass")
    controller = Controller(settings.robot(), settings)
    robot = controller.robot
    state = RobotState(1.0, q, np.zeros(robot.nv))
    controller.reset(state)
    controller.step(state)
    start, still = robot.joints_of(q), np.zeros((2, 3))
    joints = JointTrajectory(
        robot.joint_names, [0.0, 0.5], [start, start + 0.1], np.zeros((2, robot.na))
    )
    base = BaseTrajectory(
        [0.0, 0.5], [q[:3], q[:3] + [0.02, 0.0, -0.02]], [q[3:7]] * 2, still, still
    )
    controller.follow(Plan(joints=joints, base=base), 1.0)
    controller.step(RobotState(1.001, q, state.v))
    twin = (
        copy.deepcopy(controller) if how == "deepcopy" else pickle.loads(pickle.dumps(controller))
    )
    begun = controller.period.reference.copy()
    for k in range(1, 51):
        later = RobotState(1.001 + 0.008 * k, q, state.v)
        wanted, found = controller.step(later), twin.step(later)
        np.testing.assert_array_equal(found.torques, wanted.torques)
        np.testing.assert_array_equal(found.reference, wanted.reference)
    assert np.abs(np.array(found.reference) - begun)[0].max() > 0.05


def test_goals_without_their_feedback_are_refused(standing):
    _, q = standing
    settings = controller_settings(TALOS)
    controller = Controller(settings.robot(), settings)
    controller.reset(RobotState(1.0, q, np.zeros(controller.robot.nv)))
    goal = goals_of(controller.robot, q, ComGoal([0, 0], [0, 0], RATE, HEIGHT_M))
    with pytest.raises(TrajectoryError, match="need base_feedback 'center_of_mass'"):
        controller.follow(Plan(goals=goal), 1.0)


def hand_away(controller, away_m):
    """The right hand is led to rest this far ahead of where it is; its last velocity is one of rounding."""
    robot, q = controller.robot, controller.period.q
    pin.framesForwardKinematics(robot.model, robot.data, q)
    name = "gripper_right_base_link"
    place = robot.data.oMf[robot.frame_id(name)].translation + [away_m, 0.0, 0.0]
    path = FootPath([0.0], [place], np.full((1, 3), 1e-9), np.zeros((1, 3)))
    assert not path.points[-1, 1].any()
    return {name: FrameGoal(path)}


def test_goals_of_another_place_are_refused(standing):
    """As a planner sends them that goes on in the world after a jump of the odometry."""
    controller, q = standing
    state = RobotState(1.0, q, np.zeros(controller.robot.nv))
    controller.reset(state)
    controller.step(state)
    left, right = soles(controller)
    frames = list(controller.settings.foot_frames)
    com = ComGoal(left[:2], left[:2], RATE, HEIGHT_M)
    there = goals_of(controller.robot, q, com, {frames[1]: resting_path(right + [1.0, 0, 0])})
    with pytest.raises(TrajectoryError, match="is 1 m from the foot"):
        controller.follow(Plan(goals=there), 1.0)
    still = np.zeros((1, 3))
    hand = FrameGoal(FootPath([0.0], [[3.0, 0.0, 1.0]], still, still))
    frames = {"gripper_right_base_link": hand}
    with pytest.raises(TrajectoryError, match="'gripper_right_base_link' .* m from the frame"):
        controller.follow(Plan(goals=goals_of(controller.robot, q, com, frames=frames)), 1.0)
    later = copy.deepcopy(controller)
    later.follow(Plan(goals=goals_of(controller.robot, q, com, frames=hand_away(later, 0.2))), 1.0)
    later.step(state)
    # A hand that is out of reach, or blocked, is away from a path that goes on.
    later.follow(Plan(goals=goals_of(controller.robot, q, com, frames=hand_away(later, 0.6))), 1.01)
    later.step(RobotState(1.01, q, state.v))
    with pytest.raises(TrajectoryError, match="is 1.2 m from the frame"):
        later.follow(
            Plan(goals=goals_of(controller.robot, q, com, frames=hand_away(later, 1.2))), 1.02
        )
    turned = goals_of(controller.robot, q, com, heading=Heading(2.0, 0.0))
    with pytest.raises(TrajectoryError, match="heading is 2 rad from the base's"):
        controller.follow(Plan(goals=turned), 1.0)


def aloft(controller, q):
    """Follow goals with the right foot in the air; the state."""
    robot = controller.robot
    raised = q.copy()
    raised[robot.q_index[robot.joint_names.index("leg_right_4_joint")]] += 0.3
    state = RobotState(1.0, raised, np.zeros(robot.nv))
    controller.reset(state)
    controller.step(state)
    left, right = soles(controller)
    frames = list(controller.settings.foot_frames)
    goal = goals_of(
        robot,
        q,
        ComGoal(left[:2], left[:2], RATE, HEIGHT_M),
        {frames[1]: resting_path(right)},
        lasts_s=0.1,
    )
    schedule = ContactSchedule(frames, [0.0], [[True, False]])
    controller.follow(Plan(goals=goal, contacts=schedule), 1.0)
    controller.step(state)
    return state


@pytest.mark.parametrize(
    "higher_m, away_m, hand_m, said",
    [
        (0.0, 0.0, 0.05, ""),
        (0.2, 0.0, 0.0, "lower above"),
        (0.0, 0.3, 0.0, "foot right_sole_link 0"),
        (0.0, 0.0, 0.2, "frame gripper_right_base_link 0.1"),
    ],
)
def test_goals_that_are_missed_are_told_and_joints_that_give_way_are_not(
    standing, higher_m, away_m, hand_m, said
):
    controller, q = standing
    robot, v = controller.robot, np.zeros(controller.robot.nv)
    frames = list(controller.settings.foot_frames)
    left, right = begun(controller, q)
    above_m = pin.centerOfMass(robot.model, robot.data, q)[2] - left[2]
    com = ComGoal(left[:2], left[:2], RATE, above_m + higher_m)
    elsewhere = robot.joints_of(q).copy()
    elsewhere[robot.joint_names.index("arm_left_1_joint")] += 0.35
    posture = Posture(robot.joint_names, elsewhere)
    path = resting_path(right + [away_m, 0.0, 0.0], 9.0)
    hand = hand_away(controller, hand_m) if hand_m else {}
    goal = TaskGoals(com, posture, {frames[1]: path}, 2.0, frames=hand)
    raised = q.copy()
    raised[robot.q_index[robot.joint_names.index("leg_right_4_joint")]] += 0.1
    controller.follow(
        Plan(goals=goal, contacts=ContactSchedule(frames, [0.0], [[True, False]])), 1.0
    )
    following = Following(controller)
    for time_s in np.arange(1.0, 2.0, 0.01):
        controller.step(RobotState(float(time_s), raised, v))
        reason = following.look(controller, float(time_s))
    assert said in reason and bool(said) == bool(reason)


def test_without_a_planner_a_foot_aloft_comes_down(standing):
    """Where goals have ended, and where the guard holds the robot where it is."""
    controller, q = standing
    state = aloft(controller, q)
    assert not controller.period.landing.any()
    controller.step(RobotState(1.2, state.q, state.v))
    assert controller.period.landing[4:].all()
    state = aloft(controller, q)
    controller.hold_here(state)
    controller.step(state)
    assert controller.period.landing[4:].all()


def test_a_controller_without_goals_takes_over_from_one_with_them(standing):
    """As when ``base_feedback`` is changed while it walks: it holds, and lets the foot down."""
    controller, q = standing
    state = aloft(controller, q)
    other = Controller(controller.robot, controller_settings(TALOS))
    other.take_over(controller)
    result = other.step(state)
    assert np.isfinite(result.torques).all()
    assert other.period.landing[4:].all()


def test_a_push_is_held_along_goals(standing):
    """Standing, .25 m/s sideways at the torso within .1 s; the divergent component comes back to its goal."""
    _, q = standing
    settings = controller_settings(TALOS, base_feedback="center_of_mass")
    controller = Controller(settings.robot(), settings)
    robot = controller.robot
    push = Push(0.1, 0.1, np.array([0.0, 0.25 * robot.mass, 0.0]))
    world = DisturbedRobot(mujoco_robot(settings, 0.6), 0, [push], "torso_2_link")
    state = world.reset(world.place_on_ground(q))
    controller.reset(state)
    pin.forwardKinematics(robot.model, robot.data, state.q)
    controller.feet.update(robot.data)
    middle = soles(controller).mean(axis=0)[:2]
    height = pin.centerOfMass(robot.model, robot.model.createData(), state.q)[2]
    goal = goals_of(robot, q, ComGoal(middle, middle, np.sqrt(9.81 / height), height), lasts_s=5.0)
    controller.follow(Plan(goals=goal), state.time_s)
    away = []
    for _ in range(900):
        result = controller.step(state)
        state = world.step(result.torques)
        com, speed = controller.tasks.com
        away.append(np.linalg.norm(com[:2] + speed[:2] / goal.com.rate - middle))
    assert 0.05 < max(away)
    assert away[-1] < 0.02
    assert controller.tasks.com[0, 2] == pytest.approx(height, abs=0.01)


def test_soles_that_rock_are_not_felt_to_slip():
    """G1 lets itself down; its light soles rock over their edges, on the ground believed."""
    settings = controller_settings(G1, base_feedback="center_of_mass")
    controller = Controller(settings.robot(), settings)
    robot = controller.robot
    posture = np.array(section(G1, "simulated_robot")["initial_joint_positions"])
    world = mujoco_robot(settings, 0.6)
    start = robot.configuration((0, 0, 0, 0, 0, 0, 1), posture)
    state = world.reset(world.place_on_ground(start))
    controller.reset(state)
    pin.forwardKinematics(robot.model, robot.data, state.q)
    controller.feet.update(robot.data)
    middle = soles(controller).mean(axis=0)[:2]
    height = pin.centerOfMass(robot.model, robot.model.createData(), state.q)[2] - 0.05
    com = ComGoal(middle, middle, np.sqrt(9.81 / height), height)
    controller.follow(Plan(goals=goals_of(robot, start, com)), state.time_s)
    least = np.inf
    for _ in range(120):
        result = controller.step(state)
        least = min(least, result.solution.problem.contacts.friction.min())
        state = world.step(result.torques)
    assert least > 0.5


def test_a_foot_is_led_onto_a_slope():
    """Its z axis is the plane's normal, its x axis along its yaw; its ground point and that point's motion are the planned ones."""
    rng = np.random.default_rng(8)
    centers, radii = np.array([[0.035, 0.01, -0.033]]), np.array([0.002])
    place, rates = rng.normal(size=6), rng.normal(size=6)
    place[4:], rates[4:] = [0.14, -0.08], [0.2, 0.1]
    origins, step_s = [], 1e-5
    for t in (-step_s, 0.0, step_s):
        poses, motions = np.zeros((1, 4, 3)), np.zeros((2, 1, 6))
        feet = np.array([[place + t * rates, rates, np.zeros(6)]])
        aim_feet(feet, np.ones(1, dtype=bool), centers, radii, poses, motions)
        origins.append(poses[0, 0].copy())
        if t == 0.0:
            (origin, *turn), speed = poses[0].copy(), motions[0, 0].copy()
    turn = np.array(turn)
    normal = np.array([-place[4], -place[5], 1.0]) / math.sqrt(1.0 + place[4] ** 2 + place[5] ** 2)
    assert turn @ turn.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(turn) == pytest.approx(1.0)
    assert turn[:, 2] == pytest.approx(normal, abs=1e-12)
    assert math.atan2(turn[1, 0], turn[0, 0]) == pytest.approx(place[3], abs=1e-12)
    touches = origin + turn @ centers[0] - radii[0] * normal
    assert touches == pytest.approx(place[:3], abs=1e-12)
    moved = (origins[2] - origins[0]) / (2.0 * step_s)
    assert speed[:3] == pytest.approx(moved, abs=0.01)  # to first order in the slopes


def test_the_height_follows_its_climb():
    """Where the centre of mass is and moves as planned, its acceleration is the planned one."""
    points = np.array([[0.1, 0.05, 0.0], [0.1, -0.05, 0.0], [-0.1, 0.0, 0.0]])
    corners = points, np.ones(3, dtype=bool), np.zeros(3, dtype=np.int64), 0.9
    com, out = np.array([[0.0, 0.0, HEIGHT_M], [0.0, 0.0, 0.3]]), np.empty(3)
    gains, gravity = (tasks.DIVERGENCE_GAIN, *tasks.HEIGHT_GAINS), np.array([0.0, 0.0, -9.81])
    height = np.array([HEIGHT_M, 0.3, 1.1])
    com_acceleration((np.zeros(6), RATE, height), com, gains, gravity, corners, True, out)
    assert out[2] == pytest.approx(1.1, abs=1e-9)
