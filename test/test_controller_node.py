"""The controller's lifecycle node in one process: transitions, bad configuration, bad input.

Whatever comes in, the node lives on, and what goes out is its torque or the safe output.
"""

import itertools
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from ros_bench import (
    JOINTS,
    STANDING,
    VELOCITY,
    Bench,
    joint_state,
    joint_trajectory,
)

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
DAMPING = -0.5 * VELOCITY
NAN = math.nan


@pytest.fixture(scope="module")
def lasting():
    bench = Bench()
    bench.start()
    bench.now_s = 1.0
    yield bench
    bench.close()


@pytest.fixture
def running(lasting):
    """A bench in its active state, for tests that leave it so; time goes on from test to test."""
    lasting.settle()  # while other tests ran no state came, which was answered when this began
    return lasting


def later(bench):
    bench.now_s = round(bench.now_s + 0.001, 6)
    return bench.now_s


# Transitions


def test_transitions_repeat_in_one_process(bench_of):
    bench = bench_of()
    node = bench.node
    for _ in range(3):
        bench.configure()
        for _ in range(2):
            assert bench.activate() == SUCCESS
            assert node.active
            assert node.trigger_deactivate() == SUCCESS
            assert not node.active
        assert node.trigger_cleanup() == SUCCESS
        assert node.loop is None
        assert node.direct_subscriptions == []
    assert bench.until(lambda: bench.count_publishers() == 0)
    assert node.trigger_shutdown() == SUCCESS
    assert node.finalized


@pytest.mark.parametrize("transitions", [[], ["configure"], ["configure", "activate"]])
def test_shutdown_works_from_every_state(bench_of, transitions):
    bench = bench_of()
    node = bench.node
    for name in transitions:
        getattr(bench, name)()
    assert node.trigger_shutdown() == SUCCESS
    assert node.loop is None and not node.active


def test_holds_the_first_posture_and_carries_the_weight(running):
    running.answer(later(running), joint_state(running.now_s, velocity=np.zeros(12)))
    result = running.node.loop.result
    weight = running.node.loop.controller.robot.weight
    assert result.status == "solved"
    assert np.isclose(result.forces[:, 2].sum(), weight, rtol=0.05)
    assert np.allclose(result.reference.position, STANDING)


def test_deactivation_ends_in_damping_and_silence(bench_of):
    bench = bench_of()
    torque = bench.start()
    assert not np.allclose(torque, DAMPING, atol=1e-3)
    count = len(bench.commands)
    bench.node.trigger_deactivate()
    assert bench.until(lambda: len(bench.commands) > count)
    assert np.allclose(bench.commands[-1], DAMPING)
    assert bench.answer(2.0, patience_s=0.3) is None


def test_shutdown_of_an_active_node_ends_in_damping_and_silence(bench_of):
    bench = bench_of()
    bench.start()
    count = len(bench.commands)
    bench.node.trigger_shutdown()
    assert bench.until(lambda: len(bench.commands) > count)
    bench.send(2.0)
    bench.until(lambda: False, 0.3)
    assert len(bench.commands) == count + 1 and np.allclose(bench.commands[-1], DAMPING)


def test_activation_after_deactivation_holds_the_new_posture_even_if_time_went_back(bench_of):
    bench = bench_of()
    bench.start()
    bench.answer(5.0)
    count = len(bench.commands)
    bench.node.trigger_deactivate()
    assert bench.until(lambda: len(bench.commands) > count)
    assert bench.activate() == SUCCESS
    moved = STANDING + 0.01
    bench.answer(0.5, joint_state(0.5, position=moved))
    assert bench.node.loop.result is not None
    assert np.allclose(bench.node.loop.result.reference.position, moved)


def test_error_in_a_transition_ends_unconfigured_with_the_safe_output(bench_of, monkeypatch):
    bench = bench_of()
    bench.start()
    count = len(bench.commands)
    monkeypatch.setattr(bench.node.loop, "save", lambda: 1 / 0)
    bench.node.trigger_deactivate()
    assert bench.until(lambda: len(bench.commands) > count)
    assert np.allclose(bench.commands[-1], DAMPING)
    assert bench.node.loop is None
    bench.configure()
    assert bench.activate() == SUCCESS


# Configuration


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"urdf": "/nowhere/robot.urdf"}, ["/nowhere/robot.urdf", "not found"]),
        ({"urdf": ""}, ["urdf", "empty"]),
        ({"joints": ["LF_HAA", "tail"]}, ["tail", "LF_HFE"]),
        ({"contact_frames": ["LF_FOOT", "LF_HOOF"]}, ["LF_HOOF", "LF_FOOT"]),
        ({"friction": "coulomb", "solver": "magic"}, ["magic", "coulomb/qp"]),
        ({"perod_s": 0.001}, ["perod_s", "did you mean 'period_s'"]),
        ({"period_s": 7.0}, ["period_s", "7", "0.1"]),
        ({"period_s": "fast"}, ["period_s", "'fast'", "a number"]),
        ({"distribution": "joy"}, ["distribution", "'joy'", "least_torque"]),
        ({"joint_position_gain": [1.0, 2.0]}, ["joint_position_gain", "2 values", "12"]),
        ({"record_path": "/nowhere/x.npz"}, ["/nowhere/x.npz"]),
    ],
)
def test_bad_configuration_is_refused_in_one_clear_line(bench_of, capfd, changes, words):
    node = bench_of(**changes).node
    capfd.readouterr()
    assert node.trigger_configure() == FAILURE
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0]
    assert node.loop is None


def test_configuration_can_be_mended_without_a_restart(bench_of):
    node = bench_of(period_s=7.0).node
    assert node.trigger_configure() == FAILURE
    result = node.set_parameters([Parameter("period_s", value=0.001)])[0]
    assert result.successful
    assert node.trigger_configure() == SUCCESS


# Measured states


def permuted(time_s):
    order = list(reversed(range(12)))
    return joint_state(
        time_s,
        [JOINTS[k] for k in order] + ["tail"],
        [*STANDING[order], 9.0],
        [*VELOCITY[order], 9.0],
    )


def test_order_and_extra_joints_do_not_matter(running):
    plain = running.answer(later(running))
    # What moves the robot of this bench is no torque: it is observed as a disturbance, which grows.
    assert np.allclose(running.answer(later(running), permuted(running.now_s)), plain, atol=5e-3)


def with_one(values, value):
    changed = np.array(values)
    changed[4] = value
    return changed


BAD_JOINT_STATES = {
    "joint_missing": lambda t: joint_state(t, JOINTS[:-1], STANDING[:-1], VELOCITY[:-1]),
    "joint_state_not_finite": lambda t: joint_state(t, position=with_one(STANDING, NAN)),
    "joint_state_size": lambda t: joint_state(t, velocity=VELOCITY[:-1]),
    "out_of_order": lambda t: joint_state(t - 0.5),
}


@pytest.mark.parametrize("reason", BAD_JOINT_STATES)
def test_bad_joint_state_is_counted_and_answered_by_damping(running, reason):
    good = running.answer(later(running))
    before = running.refusals(reason)
    message = BAD_JOINT_STATES[reason](later(running))
    assert np.allclose(running.answer(running.now_s, message), DAMPING)
    assert running.refusals(reason) == before + 1
    assert running.node.loop.result is None
    # One bad message costs one period.
    assert np.allclose(running.answer(later(running)), good, atol=0.05)


def test_stale_state_is_refused_by_the_clock(bench_of):
    bench = bench_of(stamp_reference="clock", odometry_jump_m=math.inf)

    def now_s():
        return bench.node.get_clock().now().nanoseconds * 1e-9

    bench.configure(now_s())
    assert bench.node.trigger_activate() == SUCCESS
    # Since 1970 it has aged, and so has its velocity.
    assert np.array_equal(bench.answer(1.0), np.zeros(12))
    assert bench.refusals("stale") > 0
    bench.answer(now_s())
    assert bench.node.loop.result is not None
    assert not np.allclose(bench.commands[-1], DAMPING)
    bench.answer(now_s() + 3600.0)
    assert bench.refusals("future") == 1
    bench.answer(now_s())
    assert bench.node.loop.result is not None


def test_a_simulated_clock_that_lags_refuses_nothing(bench_of):
    """It comes by a topic, here never: only a clock ahead of a stamp says something of the state."""
    bench = bench_of(stamp_reference="clock", use_sim_time=True, odometry_jump_m=math.inf)
    bench.start()
    bench.answer(5.0)
    assert bench.node.loop.result is not None and bench.refusals("future") == 0


def test_zero_as_safe_output(bench_of):
    bench = bench_of(safe_output="zero")
    bench.start()
    assert np.array_equal(bench.answer(1.0, BAD_JOINT_STATES["joint_missing"](1.0)), np.zeros(12))


def test_states_that_stop_are_answered_by_zero_again_and_again(bench_of):
    bench = bench_of(state_timeout_s=0.05)
    bench.start()
    bench.commands.clear()
    assert bench.until(lambda: len(bench.commands) >= 3)
    # The velocity is not known any more, and damping an old one would be a stale torque.
    assert np.array_equal(bench.commands[-1], np.zeros(12))
    assert bench.refusals("states_stopped") >= 3
    assert bench.node.loop.result is None
    bench.answer(2.0)
    assert bench.node.loop.result is not None


def test_silence_counts_from_the_last_good_state(bench_of):
    """No state sets the timer anew: where it finds that one has come it waits for what is left."""
    bench = bench_of(state_timeout_s=0.5)
    bench.start()
    topics, guard = bench.node._topics, bench.node.loop.guard
    now_s, left_s = [guard.clock()], []
    guard.clock = lambda: now_s[0]
    bench.answer(1.001)
    good_s = guard.good.last_s
    assert good_s == now_s[0]
    timer = topics._watchdog = SimpleNamespace(timer_period_ns=0, cancel=lambda: None)
    timer.reset = lambda: left_s.append(1e-9 * timer.timer_period_ns)
    for _ in range(4):
        for _ in range(20):  # the node listens all the time
            now_s[0] += 0.01
            guard.look()
        refused = bench.refusals("states_stopped")
        topics._on_silence()
        assert bench.refusals("states_stopped") - refused == (now_s[0] > good_s + 0.5)
    assert left_s == pytest.approx([0.3, 0.1, 0.5, 0.5])
    guard.good.slower = 1e6  # a simulation that waits: its stamps grow by a nanosecond each
    topics._on_silence()
    assert left_s[-1] == 0.5, "it may go on at any time"


def test_settings_that_change_again_and_again_put_silence_off_no_further(bench_of):
    bench = bench_of(state_timeout_s=0.3)
    bench.start()
    bench.answer(1.001)
    end_s, refused = time.monotonic() + 120.0, bench.refusals("states_stopped")
    for tilt_rad in itertools.cycle((1.0, 1.001)):
        bench.node.set_parameters([Parameter("tilt_limit_rad", value=tilt_rad)])
        bench.until(bench.node.look, 0.1)
        if bench.refusals("states_stopped") > refused:
            break
        assert time.monotonic() < end_s


def test_a_shorter_time_out_holds_at_once(bench_of):
    bench = bench_of(state_timeout_s=10.0)
    bench.start()
    bench.answer(1.001)
    bench.node.set_parameters([Parameter("state_timeout_s", value=0.05)])
    refused, begun_s = bench.refusals("states_stopped"), time.monotonic()
    assert bench.until(
        lambda: bench.node.look() or bench.refusals("states_stopped") > refused, patience_s=8.0
    )
    assert time.monotonic() - begun_s < 8.0


def test_in_lockstep_a_state_has_the_whole_time_out_for_its_odometry(bench_of):
    """Whatever was left of the timer when it came."""
    bench = bench_of(mode="lockstep", state_timeout_s=1.0)
    bench.start()
    bench.answer(1.001)
    time.sleep(0.8)
    begun_s = time.monotonic()
    assert bench.answer(1.002, base=False) is not None
    assert bench.refusals("odometry_missing") == 1
    assert time.monotonic() - begun_s > 0.9


def test_in_lockstep_a_lost_estimator_does_not_hold_up_each_state(bench_of):
    """It publishes nothing; a walk of 30 s went on by a period each time-out. Once it does, all of it counts again."""
    bench = bench_of(mode="lockstep", state_timeout_s=0.5)
    bench.start()
    bench.answer(1.001)
    took_s = []
    for k in range(2, 22):
        begun_s = time.monotonic()
        assert bench.answer(1.0 + 0.001 * k, base=False) is not None
        took_s.append(time.monotonic() - begun_s)
    # Whatever the computer does beside, a state that waits takes the whole time-out.
    assert max(took_s) > 0.45 and sorted(took_s)[4] < 0.45
    bench.answer(1.022)
    begun_s = time.monotonic()
    assert bench.answer(1.023, base=False) is not None
    assert time.monotonic() - begun_s > 0.45
    assert bench.refusals("odometry_missing") == 21


# Odometry


def test_without_odometry_it_cannot_be_activated(bench_of, capfd):
    bench = bench_of()
    bench.configure()
    bench.node.trigger_cleanup()
    assert bench.node.trigger_configure() == SUCCESS
    assert bench.until(bench.knows_the_node)
    bench.send(1.0, base=False)
    bench.until(lambda: False, 0.3)
    assert bench.node.trigger_activate() == FAILURE
    assert not bench.node.active
    assert "not activated: no good state for 10 s: no odometry" in capfd.readouterr().err
    bench.make_ready(2.0)
    assert bench.node.trigger_activate() == SUCCESS


def test_activation_needs_a_good_state_of_just_now(bench_of):
    bench = bench_of(state_timeout_s=0.3)
    assert bench.node.trigger_configure() == SUCCESS
    assert bench.until(bench.knows_the_node)
    assert bench.node.trigger_activate() == FAILURE, "nothing came"
    for message in (
        joint_state(0.1, position=with_one(STANDING, NAN)),
        joint_state(0.2, JOINTS[:-1], STANDING[:-1], VELOCITY[:-1]),
    ):
        bench.send(0.2, message)
        bench.until(lambda: False, 0.1)
        assert bench.node.trigger_activate() == FAILURE
    bench.make_ready(1.0)
    time.sleep(0.4)
    assert bench.node.trigger_activate() == FAILURE, "it is old"
    assert bench.activate() == SUCCESS


def test_fixed_base_needs_no_odometry(bench_of):
    bench = bench_of(floating_base=False, contact_frames=[], contact_radii_m=0.0)
    bench.configure()
    assert bench.activate() == SUCCESS
    for number in range(50):
        if bench.answer(10.0 + number, base=False, patience_s=0.2) is not None:
            break
    assert bench.node.loop.result is not None


def test_state_that_waited_is_replaced_by_the_one_of_the_newest_odometry(bench_of):
    bench = bench_of()
    bench.start()
    bench.send(2.0)
    time.sleep(0.3)  # both messages are in the queues now; nobody spins
    states = next(s for s in bench.node.direct_subscriptions if s.topic_name == bench.states_topic)
    states.callback(serialize_message(joint_state(1.9)))
    assert bench.node.loop.result is not None
    assert bench.refusals("odometry_old") == 0
    count = bench.node.loop.monitor.steps
    bench.until(lambda: False, patience_s=0.2)
    assert bench.node.loop.monitor.steps == count  # it is not answered twice


# Plans


def test_joint_trajectory_is_followed(bench_of):
    bench = bench_of()
    bench.start()
    bench.answer(1.0)
    goal = STANDING + 0.1
    assert bench.plan("joint_trajectory", joint_trajectory([1.0], [goal[::-1]], JOINTS[::-1]))
    bench.answer(1.5)
    middle = bench.node.loop.result.reference
    assert np.allclose(middle.position, STANDING + 0.05, atol=1e-3)
    assert np.allclose(middle.velocity, 0.1, atol=1e-3)
    bench.answer(3.0)
    assert np.allclose(bench.node.loop.result.reference.position, goal)


# The controller itself


# Diagnostics and parameters at run time


def test_diagnostics_tell_counts_times_and_reasons(bench_of):
    bench = bench_of()
    bench.start()
    bench.answer(1.0, BAD_JOINT_STATES["joint_missing"](1.0))
    bench.answer(1.1)
    bench.diagnostics.clear()
    assert bench.until(lambda: bench.diagnostics)
    status = bench.diagnostics[0].status[0]
    values = {pair.key: pair.value for pair in status.values}
    assert status.name == "controller: contact inverse dynamics"
    assert values["refused joint_missing"] == "1"
    assert int(values["status solved"]) == int(values["steps"]) >= 2
    assert float(values["step time p99 (us)"]) >= float(values["solve time median (us)"]) > 0
    assert values["saturated joints"] == "none"
    assert float(values["residual cone_n"]) < 1e-6


def test_diagnostics_name_the_joints_at_a_limit_and_the_limit(bench_of):
    bench = bench_of(effort_limits_nm=[0.2])
    bench.start()
    bench.answer(1.0)
    bench.diagnostics.clear()
    assert bench.until(lambda: bench.diagnostics)
    values = {pair.key: pair.value for pair in bench.diagnostics[0].status[0].values}
    assert "effort" in values["saturated joints"] and "LF_" in values["saturated joints"]


def test_diagnostics_say_that_a_plan_is_given_up(bench_of):
    """One hundredth of the torque that carries the robot: the plan cannot be met."""
    bench = bench_of(
        solver="qcqp",
        effort_limits_nm=[0.005],
        motor_constant_nm_sqrt_w=[8.0**-0.5],
    )
    bench.start()
    command = bench.answer(1.0)
    assert np.abs(command).max() <= 0.005 + 1e-12
    bench.diagnostics.clear()
    assert bench.until(lambda: bench.diagnostics)
    status = bench.diagnostics[0].status[0]
    values = {pair.key: pair.value for pair in status.values}
    assert (
        "given up in part" in status.message
        and "give way" not in status.message
        and status.level == b"\x01"
    )
    assert int(values["status relaxed"]) >= 1
    assert float(values["plan given up (rad/s2)"]) > 0
    assert 0 < float(values["power loss (W)"]) <= 12 * 0.5 * (0.005 / 0.25) ** 2 + 1e-9


def test_live_parameter_applies_while_active_and_others_wait(bench_of):
    bench = bench_of()
    bench.start()
    refused = bench.node.set_parameters([Parameter("period_s", value=0.002)])[0]
    assert not refused.successful
    assert "before configure" in refused.reason
    wrong = bench.node.set_parameters([Parameter("damping_nm_s_rad", value=[1.0, 2.0])])[0]
    assert not wrong.successful
    assert "12" in wrong.reason
    assert bench.node.set_parameters([Parameter("damping_nm_s_rad", value=0.25)])[0].successful
    assert bench.until(lambda: np.allclose(bench.node.loop.guard.safe_torques(), DAMPING / 2))


def test_an_error_in_one_chore_keeps_no_other_from_being_done(bench_of, monkeypatch):
    """As of the graph of nodes, again and again: the watchdog is looked at, events are published."""
    bench = bench_of()
    bench.start()
    topics, looked = bench.node._topics, []

    def broken():
        raise RuntimeError("no graph")

    monkeypatch.setattr(topics, "_look_at_others", broken)
    monkeypatch.setattr(topics, "_look_at_watchdog", lambda: looked.append(True))
    topics._note("event")
    assert bench.until(lambda: len(looked) > 2)
    assert not topics._journal._untold
    assert bench.node.loop.monitor.refusals["others_RuntimeError"] > 2
