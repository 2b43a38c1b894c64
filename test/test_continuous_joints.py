"""Joints that turn without end (URDF type `continuous`) do what the same joints with far ends do."""

import re

import numpy as np
import pinocchio as pin
import pytest
from kinodynamic_cases import walk as walk_over
from paths import QUADRUPED_URDF, ROOT
from robots import point_kinematics

from contact_id_controller import ContactSet, RobotModel, build_problem, solve
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.torques_ahead import TorquesAhead
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.exceptions import TrajectoryError, UnknownJointError
from contact_id_controller.kernels.turns import TURN
from contact_id_controller.planning.kinodynamic.between_knots import trajectories
from contact_id_controller.planning.kinodynamic.contact_plan import Sole
from contact_id_controller.planning.kinodynamic.standing import carried_along, standing_start
from contact_id_controller.planning.kinodynamic.swing import foot_motion
from contact_id_controller.planning.kinodynamic.whole_body import MotionProblem, solve_motion
from contact_id_controller.plans.effort_trajectory import LocalFeedback
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import JointTrajectory
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.one_process import InProcessRun, mujoco_robot
from contact_id_controller.safety.states import JointReading, Refusal, StateChecks
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from contact_id_controller.state import RobotState
from experiments.benchmark.sensed_walk import readings, sensed_walk
from experiments.rigid.constraints import Coupling, stack

KINOVA = "example-robot-data://kinova_description/robots/kinova.urdf"
ARM = [f"j2s6s200_joint_{k}" for k in range(1, 7)]
HAND = "j2s6s200_link_6"
TURNING = np.array([True, False, False, True, False, True])
START = np.array([0.3, 3.0, 1.5, -0.4, 0.5, 0.2])
GOAL = START + TURNING * [5.1 * TURN, 0.0, 0.0, -3.2 * TURN, 0.0, 2.0 * TURN] + 0.2 * ~TURNING
FAR = 1000.0
KP, KD = 400.0, 40.0


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The arm with its endless joints, and with ends that are far away; strong and fast motors."""
    folder = tmp_path_factory.mktemp("urdf")
    text = resolve_urdf(KINOVA).read_text(encoding="utf-8")
    text = re.sub(r'(effort|velocity)="[^"]*"', rf'\1="{FAR:g}"', text)
    assert text.count('type="continuous"') == TURNING.sum()
    ends = re.sub(r'(lower|upper)="(-?)6\.28[^"]*"', rf'\1="\g<2>{FAR:g}"', text)
    ends = ends.replace('type="continuous"', 'type="revolute"')
    (folder / "endless.urdf").write_text(text, encoding="utf-8")
    (folder / "ends.urdf").write_text(ends, encoding="utf-8")
    return folder / "endless.urdf", folder / "ends.urdf"


def arm(file, **changes):
    """A controller of the arm, with its feedback only where torques are checked by others."""
    values = {
        "urdf": str(file),
        "joints": ARM,
        "floating_base": False,
        "position_stops": False,
        "joint_position_gain": [KP],
        "joint_velocity_gain": [KD],
        **changes,
    }
    settings = ControllerSettings.from_mapping(values)
    return Controller(settings.robot(), settings)


def turning_motion(start_s=1.0, seconds=4.0):
    """From rest to rest over several turns, both ways round; a quintic."""
    rest = np.zeros((2, len(ARM)))
    return JointTrajectory(ARM, [0.0, seconds], [START, GOAL], rest, rest, start_s)


def at(robot, time_s, position, velocity=None):
    v = np.zeros(robot.nv) if velocity is None else velocity
    return RobotState(time_s, robot.configuration(None, position), v)


# The model


def test_positions_go_into_configurations_and_come_back(files):
    robot = RobotModel.from_urdf(files[0], False, ARM[::-1])
    assert robot.nq == 6 + TURNING.sum() and robot.nv == robot.na == 6
    np.testing.assert_array_equal(robot.turns, TURNING[::-1])
    assert (robot.upper[robot.turns] == np.inf).all() and (
        robot.lower[robot.turns] == -np.inf
    ).all()
    x = np.random.default_rng(0).uniform(-20.0, 20.0, (4, 5, 6))
    q = np.tile(robot.neutral(), (4, 5, 1))
    robot.put_joints(q, x)
    for part in robot.unit_parts:
        np.testing.assert_allclose(np.linalg.norm(q[..., part[1]], axis=-1), 1.0)
    np.testing.assert_allclose(robot.joints_near(q, x + 3.0), x, atol=1e-12)
    back = robot.joints_of(q)
    turned = (x - back)[..., robot.turns] / TURN
    np.testing.assert_allclose(turned, np.rint(turned), atol=1e-12)
    assert np.abs(back[..., robot.turns]).max() <= np.pi and np.abs(turned).max() > 2.5
    np.testing.assert_array_equal(back[..., ~robot.turns], x[..., ~robot.turns])


def test_joints_are_taken_without_being_named_and_a_coupling_says_why_not(files):
    robot = RobotModel.from_urdf(files[0], False)
    assert set(ARM) <= set(robot.joint_names)
    q, v = robot.neutral(), np.zeros(robot.nv)
    with pytest.raises(UnknownJointError, match="turns without end"):
        stack(robot, q, v, [Coupling((ARM[0], ARM[1]))])


# Torques


def test_torques_over_several_turns_are_those_of_inverse_dynamics(files):
    """Pinocchio's recursive Newton-Euler on the arm with ends is the judge of both."""
    endless, ends = (arm(file) for file in files)
    model, data = ends.robot.model, ends.robot.model.createData()
    motion, rng = turning_motion(), np.random.default_rng(1)
    for controller in (endless, ends):
        controller.reset(at(controller.robot, 1.0, START))
        controller.follow(Plan(motion), 1.0)
    for time_s in np.linspace(1.0, 4.99, 60):
        goal = motion.sample(time_s)
        x = goal.position + rng.normal(scale=0.05, size=6)
        v = goal.velocity + rng.normal(scale=0.3, size=6)
        wanted = goal.acceleration + KP * (goal.position - x) + KD * (goal.velocity - v)
        judge = pin.rnea(model, data, x, v, wanted)
        for controller in (endless, ends):
            result = controller.step(at(controller.robot, time_s, x, v))
            np.testing.assert_allclose(result.torques, judge, rtol=1e-8, atol=1e-7)
            np.testing.assert_array_equal(result.reference.position, goal.position)
    assert np.ptp([START, GOAL], axis=0).max() > 5 * TURN


@pytest.mark.parametrize("model", [("coulomb", "qp"), ("no_slip", "lcp"), ("coulomb", "lcp")])
def test_contact_forces_too(files, model):
    """The arm on a floating base leans on its hand: equal, and Newton holds by Pinocchio."""
    endless, ends = (RobotModel.from_urdf(file, True, ARM) for file in files)
    rng, frames = np.random.default_rng(2), [HAND, HAND, HAND]
    base = np.array([0.1, -0.2, 0.9, *pin.Quaternion(pin.exp3(rng.normal(size=3))).coeffs()])
    x = START + TURN * np.array([3, 0, 0, -2, 0, 1]) + 0.3 * rng.normal(size=6)
    v, wanted = 0.1 * rng.normal(size=12), rng.normal(size=6)
    offsets, found = 0.05 * rng.normal(size=(3, 3)), []
    for robot in (endless, ends):
        q, data = robot.configuration(base, x), robot.model.createData()
        pin.framesForwardKinematics(robot.model, data, q)
        places = data.oMf[robot.frame_id(HAND)].translation + offsets
        contacts = ContactSet(places, np.tile([0.0, 0.0, 1.0], (3, 1)), frames, 0.6)
        problem = build_problem(robot, q, v, wanted, contacts, 1e-3)
        solution = solve(problem, *model)
        assert solution.status == "solved" and solution.forces[:, 2].max() > 1.0
        J, _ = point_kinematics(robot, q, v, frames, offsets)
        owed = pin.rnea(robot.model, data, q, v, (solution.velocity - v) / 1e-3)
        given = J.T @ solution.forces.ravel()
        given[robot.actuated] += solution.torques
        np.testing.assert_allclose(given, owed, atol=1e-6 * robot.weight)
        found.append(solution)
    np.testing.assert_allclose(found[0].torques, found[1].torques, atol=1e-6 * endless.weight)
    np.testing.assert_allclose(found[0].forces, found[1].forces, atol=1e-6 * endless.weight)


# Plans


def test_a_plan_begins_the_short_way_round(files):
    """From 3.1 to -3.1 rad is .083 rad, whatever the plan before counted."""
    controller = arm(files[0])
    position = START.copy()
    position[0] = 3.1
    controller.reset(at(controller.robot, 1.0, position))
    for turns in (0, 4, -2):
        goal = position.copy()
        goal[0] = -3.1 + turns * TURN
        controller.follow(Plan(JointTrajectory(ARM, [0.5], [goal])), 1.0)
        way = [controller.reference_at(t).position[0] for t in np.linspace(1.0, 1.5, 30)]
        assert np.abs(np.diff(way)).sum() == pytest.approx(TURN - 6.2, abs=1e-9)
        assert way[-1] == goal[0]


def test_half_a_turn_is_a_jump_and_a_whole_one_is_none(files):
    endless, ends = (arm(file) for file in files)
    shifts = np.zeros(6), TURN * TURNING, 3.1 * TURNING
    allowed = {endless: (True, True, False), ends: (True, False, False)}
    for controller, answers in allowed.items():
        for shift, answer in zip(shifts, answers):
            controller.reset(at(controller.robot, 1.0, START))
            plan = Plan(JointTrajectory(ARM, [0.0, 1.0], np.tile(START + shift, (2, 1))))
            if answer:
                controller.follow(plan, 1.0)
            else:
                with pytest.raises(TrajectoryError, match="would jump by"):
                    controller.follow(plan, 1.0)


def test_set_points_ahead_never_wind_back(files):
    """Plans that count other turns meet in one horizon; a driver begins anew at each half turn."""
    controller = arm(files[0], command_interface="joint_trajectory")
    robot, ahead = controller.robot, TorquesAhead(controller)
    controller.reset(at(robot, 1.0, START))
    motion = turning_motion(seconds=1.0)
    controller.follow(Plan(motion), 1.0)
    local = LocalFeedback(np.full(6, 40.0), np.full(6, 2.0), np.full(6, np.inf), robot.turns)
    local.trajectory = ahead.command
    after = np.tile(GOAL - TURNING * TURN * [5, 0, 0, -3, 0, 2], (2, 1))
    for k in range(1100):
        time_s = 1.0 + 0.001 * k
        if k == 900:  # begins in .1 s, at the same place, counted anew
            controller.follow(Plan(JointTrajectory(ARM, [0.0, 1.0], after, start_s=2.0)), time_s)
        goal = controller.reference_at(time_s)
        state = at(robot, time_s, goal.position, goal.velocity)
        result = ahead.step(state)
        ahead.solve_ahead()
        steps = np.diff(ahead.command.positions, axis=0)
        assert np.abs(steps).max() < 2.0  # 60 rad/s at most, .025 s of it to come to rest
        told = local.torques(time_s, robot.joints_of(state.q), state.v[robot.actuated])
        np.testing.assert_allclose(told, result.torques, atol=1e-6)


# Measurements


def test_a_driver_may_begin_anew_at_a_turn_or_count_on(files):
    robot = RobotModel.from_urdf(files[0], False, ARM)
    speed = TURNING * 30.0
    kinds = {
        "counts on": lambda x: x,
        "within half a turn": lambda x: np.where(TURNING, np.angle(np.exp(1j * x)), x),
        "within a turn": lambda x: np.where(TURNING, x % TURN, x),
    }
    found = {}
    for kind, told in kinds.items():
        checks, states = StateChecks(robot), []
        checks._joint_jump.limit[:] = 0.05
        for k in range(1, 1001):
            x = START + speed * 1e-3 * k
            state = checks.take(JointReading(1_000_000 * k, told(x), speed), None)
            assert not isinstance(state, Refusal), (kind, k, state)
            states.append(state.q.copy())
        found[kind] = np.array(states)
        away = told(x + speed * 1e-3)
        away[0] += 1.0
        refused = checks.take(JointReading(1_000_000 * 1001, away, speed), None)
        assert refused.reason == "joint_jump"
    for states in found.values():
        np.testing.assert_allclose(states, found["counts on"], atol=1e-12)


# In simulation


def test_an_arm_in_mujoco_follows_over_several_turns(files):
    """As well as the arm with ends does: at 15 rad/s neither follows exactly."""
    errors = []
    for file in files:
        controller = arm(file, joint_position_gain=[1600.0], joint_velocity_gain=[80.0])
        robot, world = controller.robot, mujoco_robot(controller.settings, 0.6, floating_base=False)
        state, rows = world.reset(robot.configuration(None, START)), []
        controller.reset(state)
        controller.follow(Plan(turning_motion(state.time_s, 4.0)), state.time_s)
        for _ in range(4300):
            result = controller.step(state)
            reference = result.reference.position
            rows.append(robot.joints_near(state.q, reference) - reference)
            state = world.step(result.torques)
        np.testing.assert_allclose(reference, GOAL)
        errors.append(np.array(rows))
    assert np.abs(errors[0]).max() < 0.05 and np.abs(errors[0][-1]).max() < 1e-4
    np.testing.assert_allclose(errors[0], errors[1], atol=1e-6)


def test_a_robot_walks_on_endless_joints_as_on_others(tmp_path):
    """The shipped quadruped with every joint made endless: planner, controller, MuJoCo, record."""
    text = QUADRUPED_URDF.read_text(encoding="utf-8")
    urdf = tmp_path / "endless.urdf"
    urdf.write_text(text.replace('type="revolute"', 'type="continuous"'), encoding="utf-8")
    config = (ROOT / "config" / "quadruped.yaml").read_text(encoding="utf-8")
    shipped = "package://contact_id_controller/urdf/quadruped.urdf"
    assert shipped in config
    walks = {}
    for name, place in (("ends", shipped), ("endless", str(urdf))):
        file = tmp_path / f"{name}.yaml"
        file.write_text(config.replace(shipped, place), encoding="utf-8")
        settings = load_settings(file)
        assert settings.robot().turns.all() == (name == "endless")
        walks[name] = InProcessRun(str(file), settings, mujoco_robot(settings, 0.6)).record(0.6)
    ends, endless = walks["ends"], walks["endless"]
    assert not endless.fell and len(endless) == len(ends) == 600
    assert np.ptp(ends.contact.sum(axis=1)) > 0  # feet have left the ground
    for name in ("position", "reference_position", "torques", "predicted_forces"):
        theirs, ours = getattr(ends, name), getattr(endless, name)
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max(), err_msg=name)


def test_the_estimator_takes_a_driver_that_begins_anew(tmp_path):
    """The same readings of a walk: endless joints told with other turns every 20 ms, and others."""
    walk, urdf = sensed_walk("quadruped", 0.3), tmp_path / "endless.urdf"
    text = QUADRUPED_URDF.read_text(encoding="utf-8")
    urdf.write_text(text.replace('type="revolute"', 'type="continuous"'), encoding="utf-8")
    found = {}
    for place, anew in ((QUADRUPED_URDF, 0.0), (urdf, TURN)):
        robot = RobotModel.from_urdf(place, True, walk.robot.joint_names)
        pipeline, rows = EstimationPipeline(robot, walk.feet, walk.radius_m), []
        for k, reading in readings(walk, "good", still_s=0.2):
            estimate = pipeline.step(
                reading.time_s,
                reading.angular_velocity,
                reading.linear_acceleration,
                reading.position + anew * ((k // 20) % 3 - 1),
                reading.velocity,
                reading.effort,
            )
            base = estimate.odometry
            rows.append([*estimate.forces.ravel(), *base.position, *base.rotation.ravel()])
        found[place] = np.array(rows)
    theirs, ours = found.values()
    assert np.isfinite(theirs[50:]).all()
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * walk.robot.weight)


def test_whole_body_motion_is_planned_for_endless_joints(tmp_path):
    values = ParameterFile(ROOT / "config" / "solo12.yaml").section("gait_planner")
    text = resolve_urdf(values["urdf"]).read_text(encoding="utf-8")
    urdf = tmp_path / "endless.urdf"
    urdf.write_text(text.replace('type="revolute"', 'type="continuous"'), encoding="utf-8")
    center = (0.0, 0.0, -values["foot_radius_m"])
    soles, found = tuple(Sole(foot, center_m=center) for foot in values["feet"]), []
    for place in (values["urdf"], urdf):
        robot = RobotModel.from_urdf(place, joints=values["joints"])
        case = robot, soles, *standing_start(robot, soles, np.array(values["posture"]))
        steps = [(0, (0.05, 0.0, 0.02), None), (3, (0.05, 0.0, 0.0), None)]
        plan = walk_over(case, steps, swing_s=0.3, support_s=0.3)
        times = np.linspace(0.0, plan.duration_s, 21)
        feet = foot_motion(plan, times, 0.05)
        posture, com = carried_along(robot, soles, case[2], feet)
        frames, flat = tuple(sole.frame for sole in soles), (False,) * len(soles)
        still = np.zeros_like(com)
        problem = MotionProblem(robot, times, frames, flat, feet, com, still, posture)
        motion = solve_motion(problem)
        speeds = np.r_[motion.velocities[:-1], np.zeros((1, robot.nv))]
        joints, _ = trajectories(robot, times, motion.configurations, speeds)
        found.append(joints.positions)
    assert np.ptp(found[0], axis=0).max() > 0.1
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
