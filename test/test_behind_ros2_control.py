"""What ros2_control does to commands, and what the controller must know of it.

The judge is the stand-in for a group controller (`SimulatedEffortController`), which was written from ros2_control's
sources and from what controller_manager 5.16 did outside of this project.
"""

import contextlib

import numpy as np
import pytest
from robots import QUADRUPED, QUADRUPED_FEET
from test_guard import BASE, JOINTS, LIFTED, STANDING

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import Controller
from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.exceptions import SimulationError
from contact_id_controller.runs.one_process import (
    InProcessRun,
    controller_settings,
    follow,
    mujoco_robot,
)
from contact_id_controller.safety.effort_monitor import PROBE, EffortMonitor
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.states import JointReading
from contact_id_controller.safety.torque_output import CARRIES, TAKE_OVER_S
from contact_id_controller.settings.controller import ControllerSettings
from experiments.faults.simulated_effort_controller import SimulatedEffortController, UrdfLimits

PERIOD_S, RAMP_S, GAP_S = 0.001, 0.3, 0.02
AT_REST = np.zeros(12)
LAG = 3
"""Periods from a command to the state that tells it."""


class Machine:
    """Guard, group controller and a robot that stays in one state, with effort states."""

    def __init__(
        self,
        *,
        group=None,
        robot=None,
        noise=0.0,
        told=lambda efforts: efforts,
        gap_s=GAP_S,
        **changes,
    ):
        self.robot = robot or RobotModel.from_urdf(QUADRUPED, True, JOINTS)
        values = {
            "urdf": QUADRUPED,
            "joints": JOINTS,
            "contact_frames": QUADRUPED_FEET,
            "contact_radii_m": [0.01],
            "start_ramp_s": RAMP_S,
            "stamp_reference": "stream",
            **changes,
        }
        self.steady_s, self.time_s, self.slowness = 0.0, 100.0, 1.0
        settings = ControllerSettings.from_mapping(values, effort_gap_s=gap_s)
        self.guard = Guard(Controller(self.robot, settings), clock=lambda: self.steady_s)
        self.group = group or SimulatedEffortController(12)
        self.group.activate()
        self.told, self.noise, self.rng = told, noise, np.random.default_rng(1)
        self.acting = []
        self.guard.start(state_is_known=False)

    def period(self, position=STANDING, velocity=AT_REST, base=BASE):
        """A state, its answer, and what acts because of it."""
        self.time_s += PERIOD_S
        self.steady_s += self.slowness * PERIOD_S
        late = self.acting[-LAG] if len(self.acting) >= LAG else np.zeros(12)
        efforts = self.told(late + self.noise * self.rng.standard_normal(12))
        self.guard.take_base(base.copy(), round(self.time_s * 1e9))
        joints = JointReading(round(self.time_s * 1e9), position, velocity, efforts)
        sent = self.guard.step(joints).copy()
        self.guard.finish(self.steady_s)
        self.group.command(sent)
        self.group.update(position, velocity)
        self.acting.append(self.group.efforts.copy())
        return sent

    def periods(self, duration_s, **state):
        for _ in range(round(duration_s / PERIOD_S)):
            sent = self.period(**state)
        return sent


def limited_robot(effort_nm=0.6):
    """The quadruped with an end for each joint, which its own URDF does not state."""
    robot = RobotModel.from_urdf(QUADRUPED, True, JOINTS)
    robot.lower[:], robot.upper[:] = STANDING - 0.5, STANDING + 0.5
    robot.effort_limits[:] = effort_nm
    return robot


@pytest.mark.parametrize("enforce, as_sent", [("on", True), ("off", False), ("auto", False)])
def test_what_is_sent_is_what_acts_beyond_every_limit_of_the_urdf(enforce, as_sent):
    robot = limited_robot()
    limits = UrdfLimits(robot.lower, robot.upper, robot.velocity_limits, robot.effort_limits)
    machine = Machine(
        group=SimulatedEffortController(12, limits),
        robot=robot,
        enforce_command_limits=enforce,
        effort_limits_nm=[5.0],
        effort_above_description=True,
        position_stops=False,
        joint_jump=10.0,
        start_ramp_s=0.0,
    )
    differ, amplitude, rate = 0, 0.6, 30.0  # beyond the ends, and beyond 15 rad/s
    for k in range(400):
        phase = rate * k * PERIOD_S + np.arange(12.0)
        position = STANDING + amplitude * np.sin(phase)
        sent = machine.period(position, amplitude * rate * np.cos(phase))
        assert np.array_equal(machine.guard.controller.commanded, sent)
        differ += not np.array_equal(machine.acting[-1], sent)
    assert (differ == 0) if as_sent else (differ > 300)


def test_auto_follows_what_the_manager_says():
    machine = Machine(
        robot=limited_robot(0.01),
        effort_limits_nm=[5.0],
        effort_above_description=True,
        start_ramp_s=0.0,
    )
    assert np.abs(machine.period()).max() > 0.1
    machine.guard.host_enforces = True
    assert np.abs(machine.periods(0.2)).max() <= 0.01


@pytest.mark.parametrize("enforce", ["on", "off"])
def test_the_integral_does_not_wind_up_against_a_limit_of_the_urdf(enforce):
    machine = Machine(
        robot=limited_robot(0.005),
        enforce_command_limits=enforce,
        effort_limits_nm=[50.0],
        effort_above_description=True,
        gap_s=0.0,
        start_ramp_s=0.0,
        joint_integral_gain=[2e4],
    )
    machine.period(base=LIFTED)
    bent = STANDING + 0.02  # held away from where it is to be
    machine.periods(0.05, position=bent, base=LIFTED)
    first = machine.guard.result.torques.copy()
    machine.periods(1.0, position=bent, base=LIFTED)
    grown = np.abs(machine.guard.result.torques - first).max()
    assert (grown < 0.02) if enforce == "on" else (grown > 0.2)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("stays", [0.0, 0.1, 0.4])
def test_after_a_gap_in_what_was_given_the_start_ramp_acts(stays, noise):
    """stays: part of the last effort that acts meanwhile; one that carries is taken over at once."""
    machine = Machine(group=SimulatedEffortController(12, keeps_last=stays > 0.0), noise=noise)
    machine.periods(RAMP_S + 0.3)
    full = machine.group.efforts.copy()
    assert np.linalg.norm(full) > 0.5 and not machine.guard.effort_monitor.lost
    machine.group.efforts *= stays  # else the effort that stays would be that of the same posture
    machine.group.deactivate()
    before = machine.group.efforts.copy()
    sent = machine.periods(2.0 * GAP_S)
    way = np.linalg.norm(full - before)
    assert machine.guard.effort_monitor.lost
    assert np.linalg.norm(sent - before) < 1.5 * PROBE * way
    assert any("efforts are no longer" in line for line in machine.guard.news())
    machine.periods(0.5)
    assert np.linalg.norm(machine.group.efforts - before) == 0.0
    # Active again: no blow, and full torque only after most of the ramp.
    ramp_s = TAKE_OVER_S if stays > CARRIES else RAMP_S
    machine.group.activate()
    machine.periods(ramp_s / 6.0)
    assert np.linalg.norm(machine.group.efforts - before) < 0.4 * way
    machine.periods(0.6 * ramp_s - ramp_s / 6.0)
    assert not machine.guard.effort_monitor.lost
    assert np.linalg.norm(machine.group.efforts - full) > 0.15 * way
    machine.periods(ramp_s)
    assert np.allclose(machine.group.efforts, full, atol=1e-6)
    steps = np.linalg.norm(np.diff(machine.acting, axis=0), axis=1)[
        -round(1.5 * ramp_s / PERIOD_S) :
    ]
    assert steps.max() < 1.5 * PROBE * way


def walk_through_a_guard(away_s, start_ramp_s, at_s=1.5):
    """Heights, m, of a quadruped that walks by a guard's torques, but for a time in which another controller holds it."""
    values = {"start_ramp_s": start_ramp_s, "stamp_reference": "stream", "odometry_jump_m": 1.0}
    settings = controller_settings("quadruped", **values)
    world = mujoco_robot(settings, 1.0)
    run = InProcessRun("quadruped", settings, world)
    state, robot, planner = run.state, run.robot, run.planner
    guard = Guard(Controller(robot, settings), clock=lambda: state.time_s)
    guard.start(state_is_known=False)
    stiffness, damping = local_gains(robot, settings, state.q)
    every = round(planner.settings.plan_period_s / PERIOD_S)
    acting, held, heights = np.zeros(robot.na), None, []
    for k in range(round((at_s + away_s + 2.5) / PERIOD_S)):
        q, v, stamp_ns = robot.joints_of(state.q), state.v[robot.actuated], k * 1_000_000 + 10**9
        if k % every == 0 and k > 0:
            felt = guard.controller.felt_contacts
            plan = planner.plan(1e-9 * stamp_ns, state.q, state.v, felt)
            follow(guard.controller, plan, 1e-9 * stamp_ns)
        guard.take_base(np.r_[state.q[:7], state.v[:6]], stamp_ns)
        sent = guard.step(JointReading(stamp_ns, q, v, acting)).copy()
        guard.finish(state.time_s)
        acting = sent
        if at_s <= k * PERIOD_S < at_s + away_s:
            held = q if held is None else held
            acting = stiffness * (held - q) - damping * v
        state = world.step(acting)
        heights.append(state.q[2])
    return np.array(heights), guard


def test_a_walk_that_another_controller_interrupts_goes_on():
    """Its torques carry the robot: with the whole start ramp it fell while the plan walked on.

    Where the feet are by then is chance: of ten moments of the switch it falls at two or three.
    """
    walks_on = 0
    for at_s in (1.0, 1.2, 1.3):
        with contextlib.suppress(
            SimulationError
        ):  # a robot on its side is no start for the next plan
            heights, guard = walk_through_a_guard(2.0, 0.5, at_s)
            assert any("follow again" in line for line in guard.news())
            assert heights[round(1e3 * at_s) - 500 : round(1e3 * at_s)].min() > 0.16
            walks_on += heights[-300:].min() > 0.16
    assert walks_on >= 2


def commands_pass(machine):
    """A switch, [True]: False keeps the commands on their way, as a process between that sleeps."""
    switch, command = [True], machine.group.command
    machine.group.command = lambda torques: command(torques) if switch[0] else None
    return switch


@pytest.mark.parametrize("after_s, ramp_s", [(0.13, 4.0), (1.0, 0.3)], ids=["ramp", "moving"])
def test_commands_that_arrive_late_are_no_gap(after_s, ramp_s):
    """Efforts that are an old command of ours are given by nobody else: no tenth of the torque."""
    machine = Machine(start_ramp_s=ramp_s, gap_s=0.1)
    passes, fastest = commands_pass(machine), 12.0
    for k in range(round((after_s + 1.0) / PERIOD_S)):
        phase = fastest * k * PERIOD_S + np.arange(12.0)
        passes[0] = not after_s <= k * PERIOD_S < after_s + 0.25
        machine.period(STANDING + 0.02 * np.sin(phase), 0.02 * fastest * np.cos(phase))
        assert not machine.guard.effort_monitor.lost, f"{k * PERIOD_S - after_s:.3f} s late"


def test_a_last_effort_that_stays_for_ever_is_a_gap():
    """In the group controller that keeps it, while the robot moves on."""
    machine = Machine(group=SimulatedEffortController(12, keeps_last=True), gap_s=0.1)
    for k in range(2000):
        phase = 12.0 * k * PERIOD_S + np.arange(12.0)
        if k == 1000:
            machine.group.deactivate()
        machine.period(STANDING + 0.02 * np.sin(phase), 0.24 * np.cos(phase))
    assert machine.guard.effort_monitor.lost


@pytest.mark.parametrize("stride_s", [0.15, 0.2, 0.3])
@pytest.mark.parametrize("frozen_s", [1.0, 1.03, 1.07, 1.11])
def test_a_last_effort_that_stays_is_a_gap_in_a_trot_too(stride_s, frozen_s):
    """The same torques come again each stride, and would be an old command of ours each time."""
    monitor, period_s = EffortMonitor(12, 0.1, 0.001), 0.001
    given = frozen = np.zeros(12)
    for k in range(2000):
        time_s = k * period_s
        torques = 5.0 + 4.0 * np.sin(2.0 * np.pi * time_s / stride_s + np.arange(12.0))
        frozen = given if time_s < frozen_s else frozen
        monitor.measure(time_s, frozen)
        if monitor.lost:
            break
        monitor.ring[monitor.count % len(monitor.ring)] = given = torques
        monitor.count += 1
    assert frozen_s < time_s < frozen_s + 0.7


def test_one_effort_that_is_wrong_is_neither_held_nor_a_sign_of_following():
    """A reading of 1e6 N·m among efforts that are lost: its mean was held, and 1 ms later all were said to follow."""
    monitor = EffortMonitor(12, 0.1, 0.001, np.full(12, 40.0))
    for k in range(800):
        given = 2.0 * (1.0 + 0.2 * np.sin(0.05 * k)) * np.ones(12)
        monitor.ring[monitor.count % len(monitor.ring)] = given
        monitor.count += 1
        efforts = given if k < 400 else np.zeros(12)
        if k > 400 and monitor.lost and monitor._seen == 50:
            efforts[3] = 1e6
        before = monitor.lost
        monitor.measure(k * 0.001, efforts)
        assert monitor.lost >= before
    assert monitor.lost and np.abs(monitor.held).max() <= 0.4


def test_feedback_of_the_robots_side_for_some_periods_is_no_gap():
    """It acts beside what is commanded: a walk had 3 periods of ten times the torque, which then stayed, and fell."""
    monitor = EffortMonitor(12, 0.1, 0.001)
    given, way = np.zeros(12), np.linspace(-1.0, 1.0, 12)
    for k in range(2000):
        kicked = 1000 <= k < 1008 or 1500 <= k < 1508
        monitor.measure(k * 0.001, given + (10.0 * (-1.0) ** k * way[::-1] if kicked else 0.0))
        assert not monitor.lost, k
        given = way * (1.0 + 0.1 * np.sin(0.02 * k))
        monitor.ring[monitor.count % len(monitor.ring)] = given
        monitor.count += 1
    for k in range(2000, 2200):
        monitor.measure(k * 0.001, np.zeros(12))
        monitor.ring[monitor.count % len(monitor.ring)] = given
        monitor.count += 1
    assert monitor.lost


def test_a_command_of_the_wrong_length_ends_in_the_ramp_too():
    machine = Machine()
    machine.periods(RAMP_S + 0.3)
    full = np.linalg.norm(machine.group.efforts)
    machine.group.command([1.0, 2.0])
    machine.group.update()
    assert not machine.group.active and not machine.group.efforts.any()
    machine.periods(0.1)
    machine.group.activate()
    machine.periods(0.03)
    assert np.linalg.norm(machine.group.efforts) < 0.3 * full


@pytest.mark.parametrize(
    "told",
    [
        lambda efforts: None,
        lambda efforts: np.zeros(12),
        lambda efforts: np.full(12, np.nan),
        lambda efforts: -efforts,
        lambda efforts: 30.0 * efforts,
    ],
    ids=["none", "zero", "nan", "sign", "unit"],
)
def test_efforts_that_never_meant_the_commands_mean_nothing(told):
    machine = Machine(told=told)
    machine.periods(RAMP_S + 0.3)
    full = machine.group.efforts.copy()
    machine.group.deactivate()
    machine.periods(0.2)
    machine.group.activate()
    assert np.allclose(machine.period(), full, atol=1e-6)


def test_one_joint_that_is_given_less_is_no_gap():
    """A driver with a limit of its own on the joint that works most."""
    worst = []

    def told(efforts):
        efforts = efforts.copy()
        if len(machine.acting) > 600:
            worst.append(np.argmax(np.abs(efforts)))
            efforts[worst[-1]] *= 0.6
        return efforts

    machine = Machine(told=told)
    machine.periods(RAMP_S + 0.6)
    assert worst and not machine.guard.effort_monitor.lost


def test_a_gap_survives_silence_and_ends_with_a_new_start():
    machine = Machine()
    machine.periods(RAMP_S + 0.3)
    machine.group.deactivate()
    machine.periods(0.1)
    machine.guard.silence()
    sent = machine.periods(0.1)
    assert machine.guard.effort_monitor.lost and 0.0 < np.linalg.norm(sent) < 0.3
    machine.guard.stop()
    assert machine.guard.start(state_is_known=False) == ""
    assert not machine.guard.effort_monitor.lost
    machine.group.activate()
    machine.periods(RAMP_S + 0.1)
    assert np.linalg.norm(machine.group.efforts) > 0.5


@pytest.mark.parametrize("simulated", [True, False])
def test_a_simulation_slower_than_real_time_is_neither_silent_nor_overrun(simulated):
    machine = Machine(start_ramp_s=0.0, overruns_in_a_row=3, state_timeout_s=0.005)
    machine.guard.good.simulated_time, machine.slowness = simulated, 10.0
    silent = 0
    for _ in range(300):
        machine.period()
        machine.steady_s += 0.009  # the next state is due
        silent += machine.guard.silent_in_s() < 0.0
        machine.steady_s -= 0.009
    assert machine.guard.machine.commanding
    assert (silent < 10) if simulated else (silent == 300)
    # A step of half a period of such a robot: 5 ms by the clock.
    misses = machine.guard.monitor.deadline_misses
    arrival_s = machine.steady_s
    machine.guard.step(
        JointReading(round((machine.time_s + PERIOD_S) * 1e9), STANDING, np.zeros(12))
    )
    machine.steady_s += 0.005
    machine.guard.finish(arrival_s)
    assert machine.guard.monitor.deadline_misses - misses == (0 if simulated else 1)


@pytest.mark.parametrize("apart_s", [1.7e9, -1.7e9])
def test_stamps_of_another_clock_are_called_so(apart_s):
    machine = Machine()
    time_ns = round((2e9 + machine.time_s) * 1e9)
    machine.guard.take_base(BASE.copy(), time_ns - round(apart_s * 1e9))
    machine.guard.step(JointReading(time_ns, STANDING, np.zeros(12)))
    level, words = machine.guard.summary()
    assert level == 2 and "another clock" in words and "get_clock()->now()" in words
    assert machine.guard.monitor.refusals["odometry_clock"] == 1
    machine.guard.take_base(BASE.copy(), time_ns)
    machine.guard.step(
        JointReading(time_ns + 1, STANDING, np.zeros(12)), time_ns + round(apart_s * 1e9)
    )
    assert machine.guard.monitor.refusals["stale" if apart_s > 0.0 else "future"] == 1
    assert any("stamp_reference" in line for line in machine.guard.news())


def test_a_gap_is_a_gap_also_where_the_busy_process_slept_a_part_of_it_in_slow_time():
    """Half a second of the clock is a twentieth of the robot's time: no excuse for a gap of 0.4 s."""
    machine = Machine(start_ramp_s=0.0, recovery_window_s=0.2)
    machine.guard.good.simulated_time, machine.slowness = True, 10.0
    for _ in range(300):
        machine.guard.look()
        machine.period()
    machine.guard.look()
    machine.steady_s += 0.5  # nobody looked
    machine.guard.look()
    machine.time_s += 0.4
    machine.steady_s += 3.5
    machine.period()
    assert machine.guard.machine.latched
