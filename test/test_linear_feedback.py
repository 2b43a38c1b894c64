"""Torques with the feedback of the solved problem: what is said, what the robot's side makes of it, stops."""

import copy

import numpy as np
import pinocchio as pin
import pytest
from robots import QUADRUPED
from test_torques_ahead import (
    QUADRUPED_VALUES,
    STANDING,
    bad_base,
    joint_error,
    quadruped_guard,
    send,
    walk,
)

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.linear_feedback import LinearSteps
from contact_id_controller.control.state_gain import StateGain
from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.plans.state_feedback import LinearFeedback, StateFeedback
from contact_id_controller.robot import RobotModel
from contact_id_controller.runs import one_process
from contact_id_controller.safety.in_process import InProcessController
from contact_id_controller.settings.controller import ControllerSettings

LINEAR = {"command_interface": "linear_feedback"}


def random_feedback(robot, seed=0):
    rng = np.random.default_rng(seed)
    feedback = StateFeedback(robot)
    feedback.q[:] = pin.randomConfiguration(robot.model, -np.ones(robot.nq), np.ones(robot.nq))
    feedback.v[:], feedback.effort[:] = rng.normal(size=robot.nv), rng.normal(size=robot.na)
    feedback.gain[:] = rng.normal(size=feedback.gain.shape)
    return feedback


def test_law_is_that_of_the_plugin():
    """Feed-forward plus gain times the way from the measured to the said state, base first."""
    robot = RobotModel.from_urdf(QUADRUPED)
    feedback, rng = random_feedback(robot), np.random.default_rng(1)
    away = 0.3 * rng.normal(size=2 * robot.nv)
    q = pin.integrate(robot.model, feedback.q, away[: robot.nv])
    v = feedback.v + away[robot.nv :]
    np.testing.assert_allclose(
        feedback.torques(q, v), feedback.effort - feedback.gain @ away, atol=1e-9
    )
    limits = np.full(robot.na, 0.5)
    local = LinearFeedback(limits)
    np.testing.assert_array_equal(local.torques(q, v), 0.0)
    local.command = feedback
    np.testing.assert_allclose(
        local.torques(q, v), np.clip(feedback.torques(q, v), -0.5, 0.5), atol=1e-12
    )


def torques_at(guard, velocity=0.0, position=STANDING):
    robot = guard.controller.robot
    q = robot.configuration([0.0, 0.0, 0.162, 0.0, 0.0, 0.0, 1.0], position)
    v = np.r_[np.zeros(6), np.full(12, velocity)]
    return guard.command.torques(q, v)


def test_ramp_and_blending_are_in_the_command():
    """At the state that was solved the sum is what is sent; gains grow with the start ramp."""
    guard = quadruped_guard(start_ramp_s=0.5, **LINEAR)
    assert guard.command is None
    for number in range(100):
        sent, time_s = send(guard, number, 0.05)
        np.testing.assert_allclose(torques_at(guard, 0.05), sent, atol=1e-9)
        assert guard.command.time_s == time_s
    np.testing.assert_allclose(guard.command.gain, 0.2 * guard.ahead.command.gain, atol=1e-12)
    assert np.abs(guard.command.gain).max() > 0.0 and guard.ahead.substituted == 0


def test_efforts_that_are_not_those_commanded_mean_nothing_where_the_whole_gain_acts_beside_them():
    """In real time the torque of a kick by the gain was held as that of another command: 6 of 10 walks fell."""
    watches = [
        quadruped_guard(start_ramp_s=0.5, command_interface=interface).effort_monitor.watches
        for interface in ("linear_feedback", "effort", "joint_trajectory")
    ]
    assert watches == [False, True, True]


@pytest.mark.parametrize("kind", ["zero", "damping"])
def test_a_stop_has_no_feedback(kind):
    guard = quadruped_guard(emergency_stop_output=kind, damping_nm_s_rad=[0.5], **LINEAR)
    for number in range(30):
        send(guard, number, 0.1)
    assert np.abs(guard.command.gain).max() > 0.0
    guard.emergency_stop()
    np.testing.assert_array_equal(guard.command.gain, 0.0)
    for number in range(30, 33):
        sent, time_s = send(guard, number, 0.1, STANDING + 1e-4 * number)
        np.testing.assert_allclose(sent, -0.05 if kind == "damping" else 0.0)
        np.testing.assert_array_equal(guard.command.gain, 0.0)
        np.testing.assert_array_equal(guard.command.effort, sent)
        assert guard.command.time_s == pytest.approx(time_s)


def test_bad_states_silence_and_the_end_have_no_feedback():
    """The plugin would hold the last state for ever; what comes after is blended, as with efforts."""
    guard = quadruped_guard(blend_rate_nm_s=[1.0], damping_nm_s_rad=[0.5], **LINEAR)
    for end in ("bad", "silence", "stop"):
        for number in range(30):
            sent, _ = send(guard, number)
        assert np.abs(guard.command.gain).max() > 0.0
        if end == "bad":
            bad_base(guard, 30)
        elif end == "silence":
            guard.silence()
        else:
            guard.stop()
        np.testing.assert_array_equal(guard.command.gain, 0.0)
        np.testing.assert_array_equal(guard.command.effort, guard.output.sent)
        guard.start(state_is_known=False)
    send(guard, 0)
    guard.silence()
    sent, _ = send(guard, 1)
    assert np.abs(sent - guard.result.torques).max() > 0.1
    np.testing.assert_allclose(torques_at(guard), sent, atol=1e-9)


def test_with_a_delay_the_state_said_is_the_one_predicted():
    """The torques belong to it: there the robot's side gives exactly what was solved."""
    guard = quadruped_guard(command_delay_s=0.004, **LINEAR)
    for number in range(5):
        _, time_s = send(guard, number, 0.5)
    command, robot = guard.ahead.command, guard.controller.robot
    assert command.time_s == pytest.approx(time_s + 0.004)
    away = pin.difference(robot.model, guard.controller.answered.q, command.q)
    np.testing.assert_allclose(away, 0.0, atol=1e-12)
    moved = command.q[robot.q_index] - STANDING
    assert 0.5e-3 < np.abs(moved).max() < 4e-3
    np.testing.assert_allclose(
        command.torques(command.q, command.v), guard.result.torques, atol=1e-12
    )


def test_limits_hold_between_solutions_and_saturated_joints_are_not_led():
    guard = quadruped_guard(solve_every=5, effort_limits_nm=[0.3], plan_jump_limit=10.0, **LINEAR)
    for number in range(11):
        sent, _ = send(guard, number, 0.0, STANDING + (0.2 if number else 0.0))
        assert np.abs(sent).max() <= 0.3
        assert (guard.result.solve_time_s == 0.0) == bool(number % 5)
    saturated = guard.result.limits != 0
    assert saturated.any() and not guard.ahead.command.gain[saturated].any()


def test_a_solution_without_derivative_gets_the_joints_feedback(monkeypatch):
    guard, rotors = quadruped_guard(**LINEAR), np.linspace(0.001, 0.012, 12)
    monkeypatch.setattr(StateGain, "compute", lambda *_, lasting: None)
    send(guard, 0)
    assert guard.ahead.substituted == 1
    robot, gain = guard.controller.robot, guard.command.gain
    settings, q = guard.controller.settings, guard.ahead.command.q
    stiffness, damping = local_gains(robot, settings, q)
    expected = np.zeros((12, 36))
    expected[:, robot.actuated] = np.diag(stiffness)
    expected[:, 18 + robot.actuated] = np.diag(damping)
    np.testing.assert_allclose(gain, expected)
    guard.controller.period.motors[0] = rotors  # as learnt
    send(guard, 1)
    share = guard.ahead.command.gain[:, robot.actuated].diagonal() - stiffness
    np.testing.assert_allclose(share, 4.0 * settings.joint_position_gain[0] * rotors, rtol=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"solver": "lcp"}, "coulomb/lcp provides no active set; it is known of"),
        ({"solver": "pid", "friction": "none"}, "knows no torques ahead"),
        ({"distribution": "none"}, "distribution is 'none', must be least_torque or least_force"),
        ({"base_feedback": "center_of_mass"}, "'base_feedback' is 'center_of_mass'"),
    ],
)
def test_what_has_no_derivative_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        ControllerSettings.from_mapping({**QUADRUPED_VALUES, **LINEAR, **changes})


def test_joints_that_nobody_commands_are_refused():
    joints = QUADRUPED_VALUES["joints"][:-1]
    settings = ControllerSettings.from_mapping({**QUADRUPED_VALUES, **LINEAR, "joints": joints})
    with pytest.raises(ConfigurationError, match="11 joints are commanded, 18 coordinates move"):
        LinearSteps(Controller(settings.robot(), settings))


def test_in_the_process_of_ros2_control_only_efforts_are_commanded():
    with pytest.raises(ConfigurationError, match="must be 'effort'"):
        InProcessController(ControllerSettings.from_mapping({**QUADRUPED_VALUES, **LINEAR}))


def test_a_walk_is_solved_at_100_hz():
    """Where torques alone, held for 10 ms, fall."""
    record = walk(1.2, solve_every=10, **LINEAR)
    assert not record.fell and joint_error(record) < 0.02
    assert np.count_nonzero(record.solve_time_s) == 120


class Late(one_process.InProcessRun):
    """Commands act some periods after their states."""

    under_way = ()

    def said(self, believed, result):
        self.under_way = (*self.under_way, copy.deepcopy(self.ahead.command))[-3:]
        return self.under_way[0]


class Busy(one_process.InProcessRun):
    """A controller that takes 1 to 3 periods for each state, and then takes the newest."""

    def __init__(self, settings, seed):
        self.random, self.number, self.free = np.random.default_rng(seed), -1, 0
        self.under_way, self.acting = None, None
        world = one_process.mujoco_robot(settings, 1.0)
        super().__init__("quadruped", settings, world, late=self.is_busy)

    def is_busy(self, time_s):
        self.number += 1
        if self.number < self.free:
            return True
        self.acting = self.under_way
        self.free = self.number + int(self.random.choice([1, 2, 3], p=[0.2, 0.6, 0.2]))
        return False

    def given(self, believed, result):
        if self.number < self.free:
            self.under_way = copy.deepcopy(self.ahead.command)
        acting = self.under_way if self.acting is None else self.acting
        return result._replace(torques=acting.torques(believed.q, believed.v))


def test_a_walk_whose_commands_act_2_ms_late_does_not_shake():
    """The gain of a foot that stands would drive one that has bounced since, up to 250 rad/s and a fall."""
    settings = one_process.controller_settings("quadruped", **LINEAR)
    run = Late("quadruped", settings, one_process.mujoco_robot(settings, 1.0))
    speeds = [np.abs(run.advance().after.v[6:]).max() for _ in range(2500)]
    assert max(speeds) < 30.0
    assert 0 < run.ahead.substituted < 0.4 * len(speeds)


@pytest.mark.parametrize("seed", [3, 6])
def test_a_walk_with_a_controller_that_is_late_by_one_to_three_periods_does_not_shake(seed):
    """Gains of forces at the edges of their cones, ten times as large as others, drove joints up to 200 rad/s."""
    run = Busy(one_process.controller_settings("quadruped", **LINEAR), seed)
    speeds = [np.abs(run.advance().after.v[6:]).max() for _ in range(6000)]
    assert max(speeds) < 70.0
