"""Torques solved ahead on the plan, and the local feedback that follows them while nobody solves."""

import copy

import numpy as np
import pinocchio as pin
import pytest
import yaml
from paths import CONFIG
from robots import JOINTS, QUADRUPED, QUADRUPED_FEET, STANDING
from scipy.interpolate import BPoly

from contact_id_controller.check.held_feedback import largest_factor
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.torques_ahead import TorquesAhead, local_gains
from contact_id_controller.exceptions import ConfigurationError, TrajectoryError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory, LocalFeedback
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import JointTrajectory, PlanSlot
from contact_id_controller.runs import one_process
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.safety.states import JointReading
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

PANDA = "example-robot-data://panda_description/urdf/panda.urdf"
ARM = [f"panda_joint{k}" for k in range(1, 8)]
ARM_POSTURE = np.array([0.1, -0.4, 0.2, -2.0, 0.1, 1.8, 0.5])
AHEAD = {"command_interface": "joint_trajectory"}
QUADRUPED_VALUES = {
    "urdf": QUADRUPED,
    "joints": JOINTS,
    "contact_frames": QUADRUPED_FEET,
    "contact_radii_m": [0.01],
    "start_ramp_s": 0.0,
    "stamp_reference": "stream",
}


def random_trajectory(points=5, joints=3, seed=0):
    rng = np.random.default_rng(seed)
    trajectory = EffortTrajectory(points, joints)
    trajectory.start_s = 7.0
    trajectory.times_s[:] = np.r_[0.0, np.cumsum(rng.uniform(0.005, 0.02, points - 1))]
    for part in ("positions", "velocities", "accelerations", "efforts"):
        getattr(trajectory, part)[:] = rng.normal(size=(points, joints))
    return trajectory


def test_between_points_motion_is_quintic_and_effort_linear():
    """Against scipy's polynomial through positions, velocities and accelerations."""
    trajectory = random_trajectory()
    rows = np.stack([trajectory.positions, trajectory.velocities, trajectory.accelerations], axis=1)
    judge = BPoly.from_derivatives(trajectory.times_s, rows)
    for since in np.linspace(0.0, trajectory.times_s[-1] - 1e-9, 37):
        position, velocity, effort = trajectory.sample(7.0 + since)
        np.testing.assert_allclose(position, judge(since), atol=1e-9)
        np.testing.assert_allclose(velocity, judge.derivative()(since), atol=1e-7)
        for j in range(3):
            linear = np.interp(since, trajectory.times_s, trajectory.efforts[:, j])
            assert effort[j] == pytest.approx(linear, abs=1e-9)
    for time_s, k in ((6.0, 0), (9.0, -1)):
        position, velocity, effort = trajectory.sample(time_s)
        np.testing.assert_array_equal(position, trajectory.positions[k])
        np.testing.assert_array_equal(effort, trajectory.efforts[k])


def test_local_feedback_is_clipped_at_the_effort_limits():
    trajectory = random_trajectory()
    local = LocalFeedback(np.full(3, 10.0), np.full(3, 1.0), np.array([0.1, np.inf, 0.1]))
    np.testing.assert_array_equal(local.torques(7.0, np.zeros(3), np.zeros(3)), np.zeros(3))
    local.trajectory = trajectory
    position, velocity, effort = trajectory.sample(7.01)
    torques = local.torques(7.01, position - [1.0, -0.5, -1.0], velocity - [0.0, 2.0, 0.0])
    np.testing.assert_allclose(torques, [0.1, effort[1] - 5.0 + 2.0, -0.1])
    with pytest.raises(TrajectoryError, match="position gains"):
        LocalFeedback(np.array([-1.0]), np.array([1.0]), np.array([1.0]))


def test_local_feedback_refuses_other_sizes():
    """Compiled code would read beyond them."""
    with pytest.raises(TrajectoryError, match="position gains are 2, must be 1 or 3, one a joint"):
        LocalFeedback(np.ones(2), np.ones(3), np.ones(3))
    local = LocalFeedback(np.array([10.0]), np.array([1.0]), np.full(3, np.inf))  # one for all
    three, two = np.zeros(3), np.zeros(2)
    for points, position, velocity in ((3, two, three), (3, three, two), (2, three, three)):
        local.trajectory = random_trajectory(joints=points)
        with pytest.raises(TrajectoryError, match="must be 3 each"):
            local.torques(7.01, position, velocity)
    local.trajectory = trajectory = random_trajectory(joints=3)
    expected = trajectory.sample(7.01)
    torques = local.torques(7.01, three + 0.1, three)
    np.testing.assert_allclose(torques, expected[2] + 10.0 * (expected[0] - 0.1) + expected[1])


def test_copied_feet_know_the_bodies_of_the_copied_robot():
    """Else they are looked up at each step."""
    settings = ControllerSettings.from_mapping({**QUADRUPED_VALUES, **AHEAD})
    controller = Controller(settings.robot(), settings)
    ahead = TorquesAhead(controller)._ahead
    contacts = ahead.feet.select(np.ones(4, dtype=bool))
    assert ahead.robot is not controller.robot and contacts._resolved[0] is ahead.robot
    assert copy.deepcopy(controller.feet.select(np.ones(4, dtype=bool)))._resolved is None


def arm_controller(**changes):
    settings = ControllerSettings.from_mapping(
        {
            "urdf": PANDA,
            "joints": ARM,
            "locked_joints": ["panda_finger_joint1", "panda_finger_joint2"],
            "floating_base": False,
            "position_stops": False,
            **AHEAD,
            **changes,
        }
    )
    return Controller(settings.robot(), settings)


def moving_arm(**changes):
    """Torques ahead of an arm in its first period, its controller, and the state; it moves at 2 s."""
    controller = arm_controller(**changes)
    ahead, robot = TorquesAhead(controller), controller.robot
    state = RobotState(2.0, robot.configuration(None, ARM_POSTURE), np.zeros(robot.nv))
    controller.reset(state)
    controller.follow(Plan(arm_motion(2.0)), 2.0)
    ahead.step(state)
    return ahead, controller, state


def arm_motion(start_s):
    times = np.linspace(0.0, 0.6, 7)
    swing = ARM_POSTURE + 0.3 * (1.0 - np.cos(5.0 * times))[:, None] * np.linspace(0.5, 1.0, 7)
    speed = 1.5 * np.sin(5.0 * times)[:, None] * np.linspace(0.5, 1.0, 7)
    push = 7.5 * np.cos(5.0 * times)[:, None] * np.linspace(0.5, 1.0, 7)
    return JointTrajectory(ARM, times, swing, speed, push, start_s, allow_moving_end=True)


def test_efforts_ahead_are_those_of_inverse_dynamics_on_the_plan():
    """An arm's, against Pinocchio's recursive Newton-Euler; the present error is not in them."""
    controller = arm_controller()
    robot, ahead = controller.robot, TorquesAhead(controller)
    q = robot.neutral()
    q[robot.q_index] = ARM_POSTURE + 0.02
    state = RobotState(2.0, q, np.full(robot.nv, 0.1))
    controller.reset(RobotState(2.0, robot.configuration(None, ARM_POSTURE), np.zeros(robot.nv)))
    controller.follow(Plan(arm_motion(2.0)), 2.0)
    ahead.step(state)
    for _ in range(19):
        ahead.solve_ahead()
    ahead.step(RobotState(2.001, q, state.v))
    ahead.solve_ahead()
    trajectory, data = ahead.command, robot.model.createData()
    assert ahead.knots_solved == 11  # each once, while the plan stays
    later = trajectory.times_s > 0.031  # the correction has faded
    assert later.sum() > 6
    for k in np.flatnonzero(later)[:-1]:
        goal = arm_motion(2.0).sample(trajectory.start_s + trajectory.times_s[k])
        judge = pin.rnea(robot.model, data, goal.position, goal.velocity, goal.acceleration)
        judge += robot.model.damping * goal.velocity  # viscous friction that the URDF states
        np.testing.assert_allclose(trajectory.efforts[k], judge, atol=1e-6)


@pytest.mark.parametrize("gains", [(0.0, 0.0), (40.0, 2.0)])
def test_at_the_state_that_was_solved_the_sum_is_the_solvers_torque(gains):
    """Whatever gains the robot's side has."""
    controller = arm_controller()
    robot, ahead = controller.robot, TorquesAhead(controller)
    controller.reset(RobotState(2.0, robot.configuration(None, ARM_POSTURE), np.zeros(robot.nv)))
    controller.follow(Plan(arm_motion(2.0)), 2.0)
    rng = np.random.default_rng(3)
    local = LocalFeedback(np.full(7, gains[0]), np.full(7, gains[1]), np.full(7, np.inf))
    local.trajectory = ahead.command
    for k in range(30):
        goal = arm_motion(2.0).sample(2.0 + 0.001 * k)
        position = goal.position + rng.normal(scale=0.02, size=7)
        velocity = goal.velocity + rng.normal(scale=0.2, size=7)
        result = ahead.step(RobotState(2.0 + 0.001 * k, position, velocity))
        ahead.solve_ahead()
        torques = local.torques(2.0 + 0.001 * k, position, velocity)
        np.testing.assert_allclose(torques, result.torques, atol=1e-9)
    # From there the set-points come to the plan.
    after = local.trajectory.sample(2.029 + 0.09)[0] - arm_motion(2.0).sample(2.119).position
    assert np.abs(after).max() < 0.2 * np.abs(position - goal.position).max()


def test_knots_are_solved_again_on_another_plan():
    """Only those at which another plan counts; the plan of before counts until then."""
    ahead, controller, state = moving_arm()
    for _ in range(20):
        ahead.solve_ahead()
    before = ahead.knots_solved
    times = np.array([0.0, 1.0])
    rest = np.tile(arm_motion(2.0).sample(2.055).position, (2, 1))
    controller.follow(Plan(JointTrajectory(ARM, times, rest, start_s=2.055)), 2.0)
    moved = range(6, 11)  # 2.06 to 2.1: farther ahead than SURE_S
    for _ in range(20):
        ahead.solve_ahead()
    assert ahead.knots_solved == before
    solved = ahead.step(state)
    np.testing.assert_allclose(ahead.command.times_s[moved], 0.01 * np.array(moved), atol=1e-12)
    behind = solved.reference.position - ahead.command.positions[0]
    assert np.abs(ahead.command.positions[moved] - rest[0]).max() < 1e-9 + np.abs(behind).max()
    for _ in range(20):
        ahead.solve_ahead(np.inf)
    assert ahead.knots_solved - before == 5


def test_an_unsolvable_knot_keeps_no_other_waiting(monkeypatch):
    ahead, controller, _ = moving_arm()
    planned, asked = Controller.planned_state, []

    def planned_state(self, t):
        asked.append(round(t, 3))
        return None if round(t, 3) == 2.0 else planned(self, t)

    monkeypatch.setattr(Controller, "planned_state", planned_state)
    for _ in range(12):
        ahead.solve_ahead()
    assert ahead.knots_solved == 10 and asked.count(2.0) == 1
    # Another plan may be one on which it can be solved.
    controller.follow(Plan(arm_motion(2.0)), 2.0)
    ahead.solve_ahead(np.inf)
    assert asked.count(2.0) == 2


def test_with_an_integral_all_knots_are_solved_again_in_turn():
    ahead, _, _ = moving_arm(joint_integral_gain=[10.0])
    for _ in range(22):
        ahead.solve_ahead()
    assert ahead.knots_solved == 22 and ahead._solved.min() > 11


def test_knots_that_are_near_are_solved_again_however_late_it_is():
    ahead, controller, _ = moving_arm()
    for _ in range(20):
        ahead.solve_ahead()
    before = ahead.knots_solved
    rest = np.tile(arm_motion(2.0).sample(2.025).position, (2, 1))
    times = np.array([0.0, 1.0])
    controller.follow(Plan(JointTrajectory(ARM, times, rest, start_s=2.025)), 2.0)
    for _ in range(20):
        ahead.solve_ahead()
    assert ahead.knots_solved - before == 3  # 2.03 to 2.05; those to 2.1 wait


def test_the_trajectory_ends_at_rest():
    controller = arm_controller()
    ahead, robot = TorquesAhead(controller), controller.robot
    controller.reset(RobotState(2.0, robot.configuration(None, ARM_POSTURE), np.zeros(robot.nv)))
    controller.follow(Plan(arm_motion(2.0)), 2.0)
    ahead.step(RobotState(2.0, robot.configuration(None, ARM_POSTURE), np.zeros(robot.nv)))
    trajectory = ahead.command
    assert trajectory.times_s[-2] >= controller.settings.command_horizon_s - 1e-9
    assert (np.diff(trajectory.times_s) > 0.0).all()
    np.testing.assert_array_equal(trajectory.velocities[-1], 0.0)
    assert np.abs(trajectory.velocities[-2]).max() > 0.1


def test_solving_ahead_changes_nothing_of_what_is_solved_now():
    """The same walk with and without; the solvers' sums depend on where in memory arrays lie."""

    def walk(**changes):
        settings = one_process.controller_settings("quadruped", **changes)
        world = one_process.mujoco_robot(settings, 1.0)
        run = one_process.InProcessRun("quadruped", settings, world)
        run.local = None  # solved torques go to the robot
        return np.array([run.advance().result.torques for _ in range(250)]), run

    plain, _ = walk()
    with_ahead, run = walk(**AHEAD)
    assert run.ahead.knots_solved > 60
    np.testing.assert_allclose(with_ahead, plain, rtol=0.0, atol=1e-10)


def test_a_slot_is_looked_into_and_copied_without_a_change():
    slot = PlanSlot()
    first, second = arm_motion(1.0), arm_motion(2.0)
    slot.replace(first)
    slot.replace(second)
    copy = slot.copy()
    assert slot.peek(2.5) is second and slot.peek(1.5) is first
    assert copy.at(2.5) is second and slot.at(1.5) is first and copy.at(1.5) is second


def walk(seconds, late=None, **changes):
    settings = one_process.controller_settings("quadruped", **changes)
    world = one_process.mujoco_robot(settings, 1.0)
    return one_process.InProcessRun("quadruped", settings, world, late=late).record(seconds)


def joint_error(record):
    return float(np.abs(record.reference_position - record.position).mean())


def blackouts(time_s):
    """100 ms from .5 s on, and each .47 s again: in every phase of the gait."""
    return time_s >= 0.5 and (time_s - 0.5) % 0.47 < 0.1


def test_a_walk_survives_100_ms_without_the_controller():
    """With the last torques kept it does not: it falls, or is left with its legs off their plan."""
    held = walk(2.5, blackouts)
    assert held.fell or held.not_following
    record = walk(2.5, blackouts, **AHEAD)
    assert not record.fell and not record.not_following
    assert joint_error(record) < min(0.02, 0.3 * joint_error(held))


def test_a_walk_is_solved_at_50_hz():
    record = walk(2.5, solve_every=20)
    assert not record.fell and joint_error(record) < 0.02
    assert np.count_nonzero(record.solve_time_s) == 125


def quadruped_guard(**changes):
    settings = ControllerSettings.from_mapping({**QUADRUPED_VALUES, **AHEAD, **changes})
    guard = Guard(Controller(settings.robot(), settings))
    guard.clock = lambda: 0.0
    guard.start(state_is_known=False)
    return guard


def send(guard, number, velocity=0.0, position=STANDING):
    time_ns = 10_000_000_000 + 1_000_000 * number
    guard.take_base(np.r_[0.0, 0.0, 0.162, 0.0, 0.0, 0.0, 1.0, np.zeros(6)], time_ns)
    sent = guard.step(JointReading(time_ns, position, np.full(12, velocity))).copy()
    guard.finish(0.0)
    return sent, time_ns * 1e-9


def sum_at(guard, time_s, velocity, gains=(3.0, 0.2)):
    local = LocalFeedback(np.full(12, gains[0]), np.full(12, gains[1]), np.full(12, np.inf))
    local.trajectory = guard.command
    return local.torques(time_s, STANDING, np.full(12, velocity))


def test_ramp_and_blending_are_in_the_command():
    """During the start ramp the robot's side gives what the guard sends, and no more in 100 ms."""
    guard = quadruped_guard(start_ramp_s=0.5)
    assert guard.command is None
    for number in range(100):
        sent, time_s = send(guard, number, 0.05)
        np.testing.assert_allclose(sum_at(guard, time_s, 0.05), sent, atol=1e-9)
    full = guard.result.torques
    assert np.abs(sent).max() < 0.3 * np.abs(full).max()
    # What the ramp holds back stays back while nobody is there to go on with it.
    np.testing.assert_allclose(
        guard.command.efforts[-1] - guard.ahead.command.efforts[-1], sent - full, atol=1e-12
    )
    assert np.abs(guard.command.efforts).max() < 0.5 * np.abs(full).max()


@pytest.mark.parametrize("kind", ["zero", "damping"])
def test_a_stop_stops_the_local_feedback(kind):
    """A posture at rest where the joints are, with the safe output as an effort that fades."""
    guard = quadruped_guard(emergency_stop_output=kind, damping_nm_s_rad=[0.5])
    for number in range(30):
        send(guard, number, 0.1)
    moving = guard.command.positions.copy()
    guard.emergency_stop()
    for number in range(30, 33):
        place = STANDING + 1e-4 * number  # more would be refused as a jump
        sent, time_s = send(guard, number, 0.1, place)
        np.testing.assert_allclose(sent, -0.05 if kind == "damping" else 0.0)
        command = guard.command
        np.testing.assert_array_equal(command.positions, np.tile(place, (len(moving), 1)))
        np.testing.assert_array_equal(command.velocities, 0.0)
        np.testing.assert_allclose(command.efforts[0], sent)
        np.testing.assert_allclose(command.efforts[-1], 0.0)
        assert command.start_s == pytest.approx(time_s)


def bad_base(guard, number):
    time_ns = 10_000_000_000 + 1_000_000 * number
    guard.take_base(np.full(13, np.nan), time_ns)
    guard.step(JointReading(time_ns, STANDING, np.zeros(12)))
    assert guard.result is None


def test_while_states_are_bad_or_missing_the_trajectory_goes_on():
    """And the next good state leads on with what was solved, without blending from the safe output."""
    guard = quadruped_guard(blend_rate_nm_s=[1.0])
    for number in range(30):
        send(guard, number)
    before = guard.command.values.copy()
    for number in range(30, 35):
        bad_base(guard, number)
    guard.silence()
    np.testing.assert_array_equal(guard.command.values, before)
    assert guard.command.start_s == pytest.approx(10.029)
    sent, time_s = send(guard, 36)
    np.testing.assert_allclose(sent, guard.result.torques)
    np.testing.assert_allclose(sum_at(guard, time_s, 0.0), sent, atol=1e-9)
    # Silence alone, too: no state came that was bad.
    for number in range(37, 42):
        send(guard, number)
    guard.silence()
    sent, time_s = send(guard, 42)
    np.testing.assert_allclose(sent, guard.result.torques)
    # With efforts the robot was given the safe output, and the way back is blended.
    guard = quadruped_guard(blend_rate_nm_s=[1.0], command_interface="effort")
    for number in range(30):
        send(guard, number)
    guard.silence()
    sent, _ = send(guard, 36)
    assert np.abs(sent - guard.result.torques).max() > 0.1


@pytest.mark.parametrize("bad", [True, False])
def test_silence_within_the_start_ramp_neither_ends_nor_begins_it(bad):
    """The robot's side went on with the share of torque that it was given."""
    guard = quadruped_guard(start_ramp_s=0.1, blend_rate_nm_s=[1.0])
    for number in range(50):
        send(guard, number)
    if bad:
        bad_base(guard, 50)
    guard.silence()
    sent, time_s = send(guard, 51)
    full = guard.result.torques
    np.testing.assert_allclose(sent, 0.51 * full, atol=0.02 * np.abs(full).max())
    np.testing.assert_allclose(sum_at(guard, time_s, 0.0), sent, atol=1e-9)


def test_other_parameters_keep_the_trajectory_until_the_next_solution():
    guard = quadruped_guard()
    for number in range(30):
        send(guard, number)
    before = guard.command.values.copy()
    settings = ControllerSettings.from_mapping(
        {**QUADRUPED_VALUES, **AHEAD, "friction_coefficient": [0.3]}
    )
    other = Controller(guard.controller.robot, settings)
    other.take_over(guard.controller)
    guard.take_over(other)
    bad_base(guard, 30)
    np.testing.assert_array_equal(guard.command.values, before)
    sent, time_s = send(guard, 31)
    np.testing.assert_allclose(sum_at(guard, time_s, 0.0), sent, atol=1e-9)


def test_deactivation_says_a_posture_at_rest():
    guard = quadruped_guard()
    send(guard, 0, 0.1)
    assert np.abs(guard.command.velocities).max() > 0.0
    guard.stop()
    np.testing.assert_array_equal(guard.command.velocities, 0.0)
    np.testing.assert_array_equal(guard.command.positions[-1], STANDING)


def test_limits_and_integral_go_on_between_solutions():
    """Between solutions torques are within the effort limits, and the integral takes the error."""
    guard = quadruped_guard(
        command_interface="effort",
        solve_every=5,
        effort_limits_nm=[0.3],
        joint_integral_gain=[100.0],
        plan_jump_limit=10.0,
    )
    for number in range(11):
        sent, _ = send(guard, number, 0.0, STANDING + (0.2 if number else 0.0))
        assert np.abs(sent).max() <= 0.3
        assert (guard.result.solve_time_s == 0.0) == bool(number % 5)
    assert guard.command is None


@pytest.mark.parametrize("interface, learns", [("effort", True), ("joint_trajectory", False)])
def test_rotors_that_were_learnt_are_in_gains_of_our_own_alone(interface, learns):
    """Those of a robot's side are written in its own file."""
    guard = quadruped_guard(command_interface=interface, solve_every=2)
    said = []
    for number in range(3):
        send(guard, number)
        ahead, robot = guard.ahead, guard.controller.robot
        ahead.local.trajectory = ahead.command
        at = ahead.command.start_s
        more = [ahead.local.torques(at, STANDING - x, np.zeros(robot.na)) for x in (0.0, 0.001)]
        said.append((more[1] - more[0]) / 0.001)
        guard.controller.period.motors[0] = 0.01
    added = 4.0 * guard.controller.settings.joint_position_gain[0] * 0.01 * learns
    np.testing.assert_allclose(said[2] - said[0], added, atol=1e-6)


def accelerations(robot, q):
    """Of each actuated joint by its torque alone, rad/s2 per N·m, (na, 2): all other ones locked, and free."""
    M = pin.crba(robot.model, robot.model.createData(), q)
    M = np.triu(M) + np.triu(M, 1).T
    found = np.empty((robot.na, 2))
    for j, coordinate in enumerate(robot.actuated):
        others = [k for k in range(robot.nv) if k != coordinate]
        for k, free in enumerate(([*robot.unactuated, coordinate], [*others, coordinate])):
            found[j, k] = np.linalg.solve(M[np.ix_(free, free)], np.eye(len(free))[-1])[-1]
    return found


def test_local_gains_are_twice_as_fast_as_ours():
    """By the inertia of a joint while all others are locked, at most twice that while they give way."""
    settings = ControllerSettings.from_mapping(QUADRUPED_VALUES)
    robot = settings.robot()
    q = robot.configuration([0, 0, 0.162, 0, 0, 0, 1], STANDING)
    stiffness, damping = local_gains(robot, settings, q)
    locked, free = 1.0 / accelerations(robot, q).T
    inertia = np.minimum(locked, 2.0 * free)
    assert (inertia < locked).any() and (inertia == locked).any()
    np.testing.assert_allclose(stiffness, 4.0 * 1600.0 * inertia)
    np.testing.assert_allclose(damping, 2.0 * 80.0 * inertia)


def test_local_gains_of_an_arm_are_stable_in_the_postures_of_its_file():
    """By the inertias of locked joints alone they were 3 to 11 times what is: axes of an arm nearly coincide."""
    file = yaml.safe_load((CONFIG / "arms" / "panda.yaml").read_text(encoding="utf-8"))
    sections = {name: body["ros__parameters"] for name, body in file.items()}
    settings = ControllerSettings.from_mapping(sections["controller"])
    robot = settings.robot()
    start = sections["simulated_robot"]["initial_joint_positions"]
    gains = local_gains(robot, settings, robot.configuration(None, start))
    for posture in np.reshape(sections["joint_motion"]["positions"], (-1, robot.na)):
        at = robot.configuration(None, posture)
        assert largest_factor(robot, settings, at, gains) > 1.15


@pytest.mark.parametrize(
    "changes, message",
    [
        ({**AHEAD, "solver": "pid", "friction": "none"}, "solver 'pid' knows no torques ahead"),
        ({"solve_every": 2, "solver": "sensed", "friction": "none"}, "knows no torques ahead"),
        ({"solve_every": 200}, "'command_horizon_s' is 0.1"),
        ({"command_interface": "position"}, "effort"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        ControllerSettings.from_mapping({**QUADRUPED_VALUES, **changes})


def test_in_the_process_of_ros2_control_only_efforts_are_commanded():
    with pytest.raises(ConfigurationError, match="'joint_trajectory', must be 'effort'"):
        InProcessController(ControllerSettings.from_mapping({**QUADRUPED_VALUES, **AHEAD}))
