"""Torques for the state in which they will act; solving as fast as it can, and saying how fast."""

import numpy as np
import pinocchio as pin
import pytest
from test_torques_ahead import (
    ARM_POSTURE,
    QUADRUPED_VALUES,
    STANDING,
    arm_controller,
    arm_motion,
)

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.pending_commands import MOST, PendingCommands
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import JointTrajectory
from contact_id_controller.runs import one_process
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.machine import SafetyState
from contact_id_controller.safety.monitor import SolutionRate
from contact_id_controller.safety.states import JointReading
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.simulation.disturbed_robot import DisturbedRobot
from contact_id_controller.state import RobotState


def followed(**changes):
    controller = arm_controller(command_interface="effort", **changes)
    robot = controller.robot
    controller.reset(RobotState(2.0, robot.configuration(None, ARM_POSTURE), np.zeros(robot.nv)))
    controller.follow(Plan(arm_motion(2.0)), 2.0)
    return controller


def on_plan(time_s):
    goal = arm_motion(2.0).sample(time_s)
    return RobotState(time_s, np.array(goal.position), np.array(goal.velocity))


def test_torques_are_those_of_the_state_predicted_for_when_they_act():
    """An arm on its plan: after the first solution its torques are those of 5 ms later."""
    late, judge = followed(command_delay_s=0.005), followed()
    first = late.step(on_plan(2.3))
    np.testing.assert_array_equal(first.torques, judge.step(on_plan(2.3)).torques)
    assert late.answered.time_s == 2.3
    second = late.step(on_plan(2.301))
    assert late.answered.time_s == pytest.approx(2.306)
    there = on_plan(2.306)
    np.testing.assert_allclose(late.answered.q, there.q, atol=2e-5)
    np.testing.assert_allclose(late.answered.v, there.v, atol=1e-2)
    np.testing.assert_allclose(second.torques, judge.step(there).torques, rtol=0.05, atol=0.05)
    now = judge.step(on_plan(2.301)).torques
    assert np.abs(second.torques - now).max() > 0.05
    # What is said of the plan is of the measured state.
    np.testing.assert_allclose(second.reference.position, on_plan(2.301).q)


def test_reference_before_the_start_of_the_predicted_plan_is_that_of_the_plan_before():
    """Torques 5 ms late, a plan that starts within that time: the reference stepped to its first point, at rest."""
    controller = followed(command_delay_s=0.005)
    controller.step(on_plan(2.3))
    controller.follow(Plan(arm_motion(2.303)), 2.301)
    for time_s in (2.301, 2.302, 2.303):
        result = controller.step(on_plan(time_s))
        assert controller.answered.time_s == pytest.approx(time_s + 0.005)
        goal = arm_motion(2.0 if time_s < 2.303 else 2.303).sample(time_s)
        np.testing.assert_array_equal(result.reference.position, goal.position)
        np.testing.assert_array_equal(result.reference.velocity, goal.velocity)
        assert result.following


def test_a_plan_that_comes_meanwhile_goes_on_from_the_predicted_plan():
    """It was joined to the plan before, which ends where the predicted one starts."""
    controller = followed(command_delay_s=0.005)
    controller.step(on_plan(2.3))
    controller.follow(Plan(arm_motion(2.303)), 2.301)
    controller.step(on_plan(2.301))
    later = arm_motion(0.0)
    names, times_s = later.names, later.times_s + 0.3
    rest = 0.0 * later.positions
    later = JointTrajectory(names, times_s, later.positions, rest, start_s=2.4)
    controller.follow(Plan(later), 2.302)
    joined = controller.memory.course.joints.waiting
    goal = arm_motion(2.303).sample(2.4)
    np.testing.assert_array_equal(joined.positions[0], goal.position)
    np.testing.assert_array_equal(joined.velocities[0], goal.velocity)


def test_prediction_integrates_the_last_solutions_accelerations():
    controller = followed(command_delay_s=0.004)
    rng = np.random.default_rng(2)
    state = on_plan(2.3)
    result = controller.step(state)
    found = (result.solution.velocity - state.v) / 1e-3
    q, v = state.q + rng.normal(scale=0.01, size=7), state.v + rng.normal(scale=0.1, size=7)
    controller.step(RobotState(2.301, q, v))
    expected = pin.integrate(controller.robot.model, q, 0.004 * v + 0.5 * 0.004**2 * found)
    np.testing.assert_allclose(controller.answered.q, expected, atol=1e-12)
    np.testing.assert_allclose(controller.answered.v, v + 0.004 * found, atol=1e-12)
    controller.reset(state)
    controller.step(state)
    assert controller.answered is state  # off again for the first solution


def test_each_command_on_its_way_counts_for_as_long_as_it_acts():
    """Against a fine integration of accelerations that change with each command."""
    robot, random = followed().robot, np.random.default_rng(4)
    pending, period, delay = PendingCommands(robot.nv), 1e-3, 7e-3
    accelerations = random.normal(scale=50.0, size=(MOST + 20, robot.nv))
    for number, acceleration in enumerate(accelerations):
        pending.add(number * period + delay, acceleration)
    now = (len(accelerations) - 1) * period
    q, v = robot.neutral(), random.normal(size=robot.nv)
    found = pending.state_at(robot, RobotState(now, q, v), now + delay)
    step, speed, place = period / 500, v.copy(), q.copy()
    for acceleration in accelerations[-8:-1]:
        for _ in range(500):
            place, speed = (
                place + step * (speed + 0.5 * step * acceleration),
                speed + step * acceleration,
            )
    np.testing.assert_allclose(found.v, speed, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(robot.joints_of(found.q), robot.joints_of(place), atol=1e-9)
    # A shorter delay takes back what would have acted later.
    pending.add(now + 3e-3, np.zeros(robot.nv))
    sooner = pending.state_at(robot, RobotState(now, q, v), now + 5e-3)
    expected = v + period * accelerations[-8:-5].sum(axis=0)
    np.testing.assert_allclose(sooner.v, expected, rtol=1e-9, atol=1e-9)


def test_a_walk_with_late_torques_is_better_with_the_predicted_state():
    errors = []
    for delay_s in (0.0, 0.005):
        settings = one_process.controller_settings("quadruped", command_delay_s=delay_s)
        world = DisturbedRobot(one_process.mujoco_robot(settings, 1.0), 5)
        record = one_process.InProcessRun("quadruped", settings, world).record(1.2)
        assert not record.fell
        errors.append(float(np.abs(record.reference_position - record.position).mean()))
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize(("periods", "bound"), [(0, 0.0025), (5, 0.009)])
def test_a_delay_that_nobody_told_of_is_learnt(periods, bound):
    """Of 5 ms the quadruped erred by 19.5 mrad; without a delay there is none, and the walk is the same."""
    settings = one_process.controller_settings("quadruped")
    world = DisturbedRobot(one_process.mujoco_robot(settings, 1.0), periods)
    walk = one_process.InProcessRun("quadruped", settings, world)
    record = walk.record(1.5)
    learnt, total = float(walk.controller.period.delay[2]), walk.controller.period.delay[1]
    assert learnt == total == pytest.approx(1e-3 * periods, abs=0.6e-3 if periods else 0.0)
    assert np.abs(record.reference_position - record.position).mean() < bound
    other = Controller(walk.controller.robot, settings)
    other.take_over(walk.controller)
    assert other.period.delay[2] == learnt
    other.reset(walk.believed)
    assert other.period.delay[0] == 0.0


def guard_of(**changes):
    settings = ControllerSettings.from_mapping(
        {**QUADRUPED_VALUES, "overruns_in_a_row": 20, **changes}
    )
    guard = Guard(Controller(settings.robot(), settings), lockstep=settings.mode == "lockstep")
    guard.clock = lambda: 0.0
    guard.start(state_is_known=False)
    return guard


def send(guard, time_ns, now_ns=None, took_s=0.0):
    base = np.r_[0.0, 0.0, 0.162, 0.0, 0.0, 0.0, 1.0, np.zeros(6)]
    guard.take_base(base, time_ns)
    guard.step(JointReading(time_ns, STANDING, np.zeros(12)), now_ns)
    guard.finish(-took_s)


def test_what_is_measured_of_the_delay_is_added():
    """The age of a state by the clock of its stamps, and how long a step takes; never beyond 50 ms."""
    guard = guard_of(command_delay_s=0.001, stamp_reference="clock")
    for number in range(300):
        time_ns = 10_000_000_000 + 1_000_000 * number
        send(guard, time_ns, time_ns + 2_000_000, took_s=0.0005)
    assert guard.controller.delay_s == pytest.approx(0.0035, rel=0.01)
    assert guard.controller.answered.time_s == pytest.approx(10.299 + 0.0035, abs=1e-4)
    guard.monitor._delay_s = 1.0
    send(guard, 10_300_000_000, 10_302_000_000)
    assert guard.controller.delay_s == 0.05
    lockstep = {"mode": "lockstep", "reliable_topics": True}
    for delay_s, changes in ((0.0, {}), (0.001, lockstep)):
        other = guard_of(command_delay_s=delay_s, **changes)
        send(other, 10_000_000_000, took_s=0.0005)
        send(other, 10_001_000_000, took_s=0.0005)
        assert other.controller.delay_s == delay_s


def test_solving_as_fast_as_it_can_misses_states_and_says_its_rate():
    """Each third state, then each second one; with solve_every 1 that stops the controller."""
    guard = guard_of(solve_every=0)
    time_ns, news = 10_000_000_000, []
    for every, count in ((3, 1100), (3, 400), (2, 1600)):
        for _ in range(count):
            time_ns += every * 1_000_000
            send(guard, time_ns)
            news += guard.news()
    assert guard.machine.commanding
    assert [line for line in news if "solves" in line] == [
        "solves 333 times a second",
        "solves 500 times a second",
    ]
    assert guard.figures()["solutions a second"] == "500"
    strict = guard_of(solve_every=1)
    for number in range(30):
        send(strict, 10_000_000_000 + 3_000_000 * number)
    assert strict.machine.state is SafetyState.STOPPED
    assert "lost states" in strict.machine.reason


def test_the_rate_counts_solutions_not_states():
    guard = guard_of(solve_every=4)
    for number in range(2200):
        send(guard, 10_000_000_000 + 1_000_000 * number)
    assert guard.figures()["solutions a second"] == "250"


def test_a_rate_is_told_where_it_changes_by_more_than_a_fifth():
    rate, told, time_s = SolutionRate(), [], 0.0
    for hz in (100, 110, 130, 100, 95):
        for _ in range(int(4.3 * hz)):
            time_s += 1.0 / hz
            if rate.count(time_s):
                told.append(round(rate.hz))
    assert told == pytest.approx([100, 130, 100], abs=2)
    before = rate.hz
    rate.pause()
    assert not rate.count(time_s + 60.0) and rate.hz == before


def test_settings_refuse_a_delay_beyond_prediction():
    settings = ControllerSettings.from_mapping(QUADRUPED_VALUES)
    assert (settings.command_delay_s, settings.solve_every) == (0.0, 1)
    with pytest.raises(Exception, match="command_delay_s"):
        ControllerSettings.from_mapping({**QUADRUPED_VALUES, "command_delay_s": 0.06})
