"""Solver, friction model and gains change while a quadruped trots: no fall, no jump of torque.

The control loop of the node gets real messages, from MuJoCo instead of topics.
"""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from ros_bench import joint_state, odometry

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.models import contact_models
from contact_id_controller.ros.control_loop import ControlLoop
from contact_id_controller.runs import one_process as in_process
from contact_id_controller.safety.machine import SafetyState
from contact_id_controller.simulation.mujoco_robot import MujocoRobot

BLEND_NM_S, RATE_NM_S = 100.0, 1000.0
MODELS = [row.pair for row in contact_models() if row.switchable]


@pytest.fixture
def walk():
    settings = in_process.controller_settings(
        "quadruped",
        friction_coefficient=[1.0],
        start_ramp_s=0.0,
        mode="lockstep",
        blend_rate_nm_s=[BLEND_NM_S],
        effort_rate_limits_nm_s=[RATE_NM_S],
    )
    world = MujocoRobot(
        settings.urdf,
        in_process.feet_of(settings),
        joints=settings.joints,
        friction=1.0,
        period_s=settings.period_s,
    )
    return in_process.InProcessRun("quadruped", settings, world)


@pytest.fixture
def loop(walk):
    made = ControlLoop(walk.controller, pytest.fail)
    made.warm_up()
    return made


def messages(walk, state):
    """A state of the simulated robot as odometry and joint state."""
    q, v, robot = state.q, state.v, walk.robot
    message = odometry(state.time_s, quaternion=q[3:7], height_m=q[2])
    message.pose.pose.position.x, message.pose.pose.position.y = q[0], q[1]
    twist = message.twist.twist
    twist.linear.x, twist.linear.y, twist.linear.z = v[:3]
    twist.angular.x, twist.angular.y, twist.angular.z = v[3:6]
    joints = q[robot.q_index], v[robot.actuated]
    return message, joint_state(state.time_s, robot.joint_names, *joints)


def follow(walk, controller, state):
    plan = walk.planner.plan(state.time_s, state.q, state.v)
    controller.follow(plan, state.time_s)


def test_fifty_switches_while_trotting(walk, loop):
    state, period_s = walk.state, walk.settings.period_s
    base, joints = messages(walk, state)
    loop.take_odometry(base)
    loop.observe(joints, None)
    assert loop.guard.start() == ""
    height, switches, jumps, fastest, furthest = state.q[2], 0, [], 0.0, 0.0
    last = loop.output.sent.copy()
    for k in range(3600):
        switched = k >= 500 and k % 60 == 0 and switches < 50
        if switched:
            friction, solver = MODELS[(switches + 1) % len(MODELS)]
            settings = dataclasses.replace(
                loop.controller.settings,
                friction=friction,
                solver=solver,
                friction_coefficient=(0.8 + 0.1 * (switches % 3),),
                joint_position_gain=(1500.0 + 50.0 * (switches % 4),),
            )
            loop.check(settings)
            loop.apply(settings)
            switches += 1
        base, joints = messages(walk, state)
        loop.take_odometry(base)
        torques = loop.command(joints, None).copy()
        if k % 50 == 0:
            follow(walk, loop.controller, state)
        if switched:
            jumps.append(np.abs(torques - last).max() / period_s)
            assert loop.safety.state is SafetyState.FOLLOWING
        fastest = max(fastest, np.abs(torques - last).max() / period_s)
        last = torques
        state = walk.world.step(torques)
        furthest = max(furthest, state.q[0])
    assert fastest <= (RATE_NM_S + BLEND_NM_S) * (1 + 1e-9)
    assert switches == 50
    assert max(jumps) <= BLEND_NM_S * (1 + 1e-9)
    assert state.q[2] > 0.9 * height and loop.controller.tilt(state.q) < 0.2
    assert furthest > 0.15  # it walked on
    assert not loop.monitor.refusals


def test_a_change_holds_back_no_torque_of_the_motion(walk, loop):
    """A foot that landed in the moment of any change was not loaded for 50 ms; the robot fell now and then."""
    state, period_s = walk.state, walk.settings.period_s
    states, sent, plans = [], [], {}
    base, joints = messages(walk, state)
    loop.take_odometry(base)
    loop.observe(joints, None)
    assert loop.guard.start() == ""
    for k in range(1500):
        base, joints = messages(walk, state)
        states.append((base, joints))
        loop.take_odometry(base)
        sent.append(loop.command(joints, None).copy())
        if k % 50 == 0:
            plans[k] = walk.planner.plan(state.time_s, state.q, state.v), state.time_s
            loop.controller.follow(*plans[k])
        state = walk.world.step(sent[-1])
    sent = np.array(sent)
    steps = np.abs(np.diff(sent, axis=0)).max(axis=1)
    quickest = 800 + int(steps[800:-20].argmax())
    jump = steps[quickest]
    assert jump > 5.0 * BLEND_NM_S * period_s
    # The same states once more, with a change just before that step that hardly changes anything.
    controller = type(walk.controller)(walk.robot, walk.settings)
    again = ControlLoop(controller, pytest.fail)
    again.warm_up()
    again.take_odometry(states[0][0])
    again.observe(states[0][1], None)
    assert again.guard.start() == ""
    for k in range(quickest + 8):
        if k == quickest + 1:
            settings = dataclasses.replace(
                again.controller.settings, contact_time_constant_s=0.0501
            )
            again.check(settings)
            again.apply(settings)
        again.take_odometry(states[k][0])
        torques = again.command(states[k][1], None).copy()
        if k in plans:
            again.controller.follow(*plans[k])
        away = np.abs(torques - sent[k]).max()
        if k <= quickest:
            assert away == 0.0
        elif k == quickest + 1:
            assert np.abs(torques - sent[k - 1]).max() <= BLEND_NM_S * period_s * (1 + 1e-9)
        else:
            assert away < 0.1 * jump, (k - quickest, away, jump)


def test_model_that_was_not_compiled_is_refused_and_nothing_changes(walk, loop):
    settings = dataclasses.replace(walk.settings, solver="lcp_min_diff")
    with pytest.raises(ConfigurationError, match="coulomb/lcp_min_diff was not compiled.*live_mod"):
        loop.check(settings)
    with pytest.raises(ConfigurationError, match="'force' can only be chosen before"):
        loop.check(dataclasses.replace(walk.settings, contact_sources=("force",)))
    assert loop.controller is walk.controller


def test_unbounded_friction_needs_the_model_that_it_becomes(walk, loop):
    settings = dataclasses.replace(walk.settings, solver="lcp", friction_coefficient=(np.inf,))
    loop.check(settings)
    loop._live_models.discard(("no_slip", "lcp"))
    with pytest.raises(ConfigurationError, match="no_slip/lcp was not compiled"):
        loop.check(settings)


def test_lost_plan_becomes_a_posture_with_all_feet_on_the_ground(walk, loop):
    """The planner dies in the middle of a step: the robot stands on all feet and stays."""
    state = walk.state
    base, joints = messages(walk, state)
    loop.take_odometry(base)
    loop.observe(joints, None)
    assert loop.guard.start() == ""
    states = []
    for k in range(3000):
        base, joints = messages(walk, state)
        loop.take_odometry(base)
        torques = loop.command(joints, None).copy()
        if k % 50 == 0 and k <= 700:
            follow(walk, loop.controller, state)
        states.append(loop.safety.state)
        state = walk.world.step(torques)
    assert states[800] is SafetyState.FOLLOWING and states[-1] is SafetyState.HOLDING
    assert loop.result.contact.all()
    assert np.abs(state.v).max() < 0.05
    assert state.q[2] > 0.9 * walk.state.q[2]
    follow(walk, loop.controller, state)  # and walks on with the next plan
    base, joints = messages(walk, state)
    loop.take_odometry(base)
    loop.command(joints, None)
    assert loop.safety.state is SafetyState.FOLLOWING


def test_sensed_forces_that_nobody_subscribed_to_cannot_be_chosen(walk, loop):
    loop._live_models.add(("none", "sensed"))  # as named in live_models
    with pytest.raises(ConfigurationError, match="'sensed' can only be chosen before configure"):
        loop.check(dataclasses.replace(walk.settings, friction="none", solver="sensed"))


def test_integral_without_gain_does_not_wait_for_one(walk, loop):
    state, plain = walk.state, walk.controller
    plain.reset(state)
    plain.memory.course.posture += 0.01
    for _ in range(3):
        plain.step(state)
    assert not plain.period.integral.any()
    with_gain = dataclasses.replace(walk.settings, joint_integral_gain=(1.0,))
    loop.apply(with_gain)
    loop.controller.period.integral[:] = 0.5
    loop.apply(walk.settings)
    assert not loop.controller.period.integral.any()


def test_feet_are_known_between_a_live_change_and_the_next_step(walk, loop):
    loop.controller.reset(walk.state)
    loop.controller.step(walk.state)
    points = loop.controller.feet.points.copy()
    loop.apply(dataclasses.replace(walk.settings, friction_coefficient=(0.5,)))
    assert points.any() and np.array_equal(loop.controller.feet.points, points)


def test_error_of_the_solver_does_not_keep_its_warm_start(walk, monkeypatch):
    walk.controller.reset(walk.state)
    walk.controller.step(walk.state)
    assert walk.controller.memory.solution is not None
    monkeypatch.setitem(vars(walk.controller.row), "function", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        walk.controller.step(walk.state)
    assert walk.controller.memory.solution is None
