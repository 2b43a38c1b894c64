"""Emergency stop, resume, live changes and measured contact, over real topics and services."""

import itertools
import json
import os
import time
from unittest.mock import MagicMock

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import WrenchStamped
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from ros_bench import (
    FEET,
    RELIABLE,
    VELOCITY,
    joint_state,
    odometry,
)
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from contact_id_controller.control import contact_sources
from contact_id_controller.ros import controller
from contact_id_controller.ros.controller import ControllerNode, _Autostart
from contact_id_controller.ros.process import Interrupt
from contact_id_controller.safety.heartbeat import Heart
from contact_id_controller.safety.machine import SafetyState

RCLError = rclpy_implementation.RCLError

DAMPING = -0.5 * VELOCITY
NAN_STATE = {"velocity": np.r_[np.nan, VELOCITY[1:]]}


def call(bench, kind, name, **request):
    client = bench.peer.create_client(kind, f"controller/{name}")
    assert bench.until(client.service_is_ready)
    future = client.call_async(kind.Request(**request))
    assert bench.until(future.done)
    return future.result()


def watchdog_of(bench):
    """The publisher of its heartbeat; and what waits for a condition while it beats in a state."""
    beats, heart = bench.peer.create_publisher(String, "command_watchdog/heartbeat", 1), Heart()

    def beating(state, condition):
        words = String(data=heart.words(state))
        return bench.until(lambda: beats.publish(words) or condition())

    return beats, beating


def diagnostics(bench):
    bench.diagnostics.clear()
    assert bench.until(lambda: bench.diagnostics)
    status = bench.diagnostics[-1].status[0]
    return status, {pair.key: pair.value for pair in status.values}


def test_emergency_stop_sends_zero_until_it_is_released_and_resumed(bench_of):
    bench = bench_of()
    bench.start()
    assert np.abs(bench.answer(1.0)).max() > 0.1
    count = len(bench.commands)
    assert call(bench, SetBool, "emergency_stop", data=True).success
    assert bench.until(lambda: len(bench.commands) > count)
    assert not bench.commands[-1].any()  # at once, without a state
    assert not bench.answer(1.001).any()
    status, values = diagnostics(bench)
    assert values["safety state"] == "emergency_stop" and status.level == b"\x02"
    refused = call(bench, Trigger, "resume")
    assert not refused.success and "emergency stop is engaged" in refused.message
    assert "waiting for resume" in call(bench, SetBool, "emergency_stop", data=False).message
    assert np.allclose(bench.answer(1.002), DAMPING)  # stopped: the safe output
    assert call(bench, Trigger, "resume").success
    assert np.abs(bench.answer(1.003)).max() > 0.1
    assert diagnostics(bench)[1]["safety state"] == "holding"
    assert not call(bench, Trigger, "resume").success


def test_emergency_stop_is_answered_before_configure_and_kept(bench_of, tmp_path):
    bench = bench_of(state_folder=str(tmp_path))
    assert call(bench, SetBool, "emergency_stop", data=True).success
    (path,) = tmp_path.iterdir()
    assert path == bench.node.latch.path
    again = ControllerNode(
        parameter_overrides=[
            Parameter(name, value=bench.node.get_parameter(name).value)
            for name in ("state_folder", "urdf")
        ],
        namespace=bench.node.get_namespace(),
        context=bench.context,
    )
    assert again.latch.engaged, "of the process before"
    again.destroy_node()
    bench.configure()
    bench.node.trigger_activate()
    assert not bench.node.active
    assert diagnostics(bench)[1]["safety state"] == "emergency_stop"
    assert call(bench, SetBool, "emergency_stop", data=False).success
    assert not path.exists()
    bench.make_ready(1.0)
    bench.node.trigger_activate()
    assert bench.node.active
    assert call(bench, SetBool, "emergency_stop", data=True).success and path.exists()
    bench.node.trigger_cleanup()
    assert call(bench, SetBool, "emergency_stop", data=False).success and not path.exists()
    assert "was not engaged" in call(bench, SetBool, "emergency_stop", data=False).message


def test_it_is_activated_only_with_a_planner_where_one_is_required(bench_of):
    bench = bench_of(planner_required=True)
    bench.configure()
    assert bench.node.not_ready == ""
    bench.withdraw("base_trajectory")
    assert bench.until(lambda: bench.node.not_ready)
    missing = bench.node.resolve_topic_name("base_trajectory")
    assert f"there is no publisher on {missing}, nor on" in bench.node.not_ready
    bench.node.trigger_activate()
    assert not bench.node.active
    bench.peer.create_publisher(MultiDOFJointTrajectory, "base_trajectory", 1)
    assert bench.until(lambda: not bench.node.not_ready)
    bench.activate()
    assert bench.node.active


def test_it_commands_only_while_a_watchdog_that_is_required_beats(bench_of):
    bench = bench_of(watchdog_required=True, state_timeout_s=10.0)
    beats, beating = watchdog_of(bench)
    bench.node.trigger_configure()
    times_s = itertools.count(1e-5, 1e-5)
    assert bench.until(
        lambda: bench.send(next(times_s)) or "never received" in bench.node.not_ready
    )
    bench.node.trigger_activate()
    assert not bench.node.active
    assert beating("forwarding", lambda: not bench.node.not_ready)
    bench.node.trigger_activate()
    assert bench.node.active
    bench.diagnostics.clear()
    assert beating("forwarding", lambda: bench.diagnostics)
    figures = {pair.key: pair.value for pair in bench.diagnostics[-1].status[0].values}
    assert figures["command watchdog"] == "forwarding"
    machine = bench.node.loop.safety
    assert bench.until(lambda: machine.state is SafetyState.STOPPED)
    assert "slow" in machine.reason, "this process, which plays it, lives"
    for words in ("", "{}", "x" * 100_000):
        count = bench.node.incidents.counts["heartbeat"]
        beats.publish(String(data=words))
        assert bench.until(lambda n=count: bench.node.incidents.counts["heartbeat"] > n)
    refused = call(bench, Trigger, "resume")
    assert not refused.success and "slow" in refused.message
    client = bench.peer.create_client(Trigger, "controller/resume")
    assert beating("tripped", lambda: client.service_is_ready() and not bench.node.not_ready)
    resumed = client.call_async(Trigger.Request())
    assert beating("tripped", resumed.done) and resumed.result().success
    assert beating("emergency stop", lambda: machine.state is SafetyState.STOPPED)
    assert "emergency stop of the command watchdog" in machine.reason


def test_it_says_what_it_does(bench_of):
    bench = bench_of()
    said = []
    bench.peer.create_subscription(
        String, "controller/heartbeat", lambda message: said.append(json.loads(message.data)), 1
    )
    assert bench.until(lambda: bench.node.beat() or said)
    assert said[-1]["state"] == "not configured" and said[-1]["pid"] == os.getpid()
    bench.configure()
    assert bench.until(lambda: bench.node.beat() or said[-1]["state"] == "inactive")


def test_gap_stops_and_resume_holds_the_new_posture(bench_of):
    bench = bench_of(recovery_window_s=0.2)
    bench.start()
    bench.answer(1.0)  # more than 0.2 s after the first state
    assert np.allclose(bench.answer(1.001), DAMPING)
    status, values = diagnostics(bench)
    assert values["safety state"] == "stopped" and "no good state for" in values["safety reason"]
    assert "stopped" in status.message
    assert call(bench, Trigger, "resume").success
    assert np.abs(bench.answer(1.002)).max() > 0.1


def test_model_gains_and_friction_change_while_active_and_bad_sets_change_nothing(bench_of):
    bench = bench_of(live_models=["coulomb/lcp", "none/pid"])
    bench.start()
    set_one = bench.node.set_parameters_atomically
    before = bench.node.loop.controller
    for changes, reason in (
        ({"solver": "magic"}, "coulomb/lcp"),
        ({"solver": "qcqp"}, "not compiled in configure"),
        ({"friction_coefficient": [0.5, -1.0, 1.0, 1.0]}, "friction_coefficient"),
        ({"joint_position_gain": [1.0, 2.0], "solver": "lcp"}, "2 values, must have 1 or 12"),
        ({"period_s": 0.002}, "before configure"),
        ({"contact_time_constant_s": 1e-4}, "not be below period_s"),
    ):
        result = set_one([Parameter(name, value=value) for name, value in changes.items()])
        assert not result.successful and reason in result.reason
        assert bench.node.get_parameter("solver").value == "qp"
    bench.answer(0.5)
    assert bench.node.loop.controller is before
    assert set_one(
        [
            Parameter("solver", value="lcp"),
            Parameter("friction_edges", value=8),
            Parameter("friction_coefficient", value=[0.3]),
            Parameter("joint_position_gain", value=[900.0]),
            Parameter("effort_limits_nm", value=[5.0]),
        ]
    ).successful
    assert bench.until(lambda: bench.node.loop.controller is not before)
    controller = bench.node.loop.controller
    assert (controller.settings.solver, controller.settings.friction_edges) == ("lcp", 8)
    bench.answer(0.501)
    assert bench.node.loop.result.solution.problem.contacts.friction[0] == 0.3
    assert (controller.effort_limits == 5.0).all()
    assert set_one(
        [Parameter("friction", value="none"), Parameter("solver", value="pid")]
    ).successful
    assert bench.until(lambda: bench.node.loop.controller is not controller)
    bench.answer(0.502)
    assert bench.node.loop.result.status == "pid"


def test_measured_forces_decide_which_feet_stand(bench_of, monkeypatch):
    monkeypatch.setattr(contact_sources, "TIMEOUT_S", 10.0)
    bench = bench_of(contact_sources=["force"])
    publishers = [
        bench.peer.create_publisher(WrenchStamped, f"ground_reaction/{frame}", RELIABLE)
        for frame in FEET
    ]
    bench.node.trigger_configure()
    assert bench.until(bench.knows_the_node)
    assert bench.until(lambda: all(p.get_subscription_count() for p in publishers))

    def measure(forces):
        for publisher, force in zip(publishers, forces):
            message = WrenchStamped()
            message.wrench.force.z = force
            publisher.publish(message)
        assert bench.until(lambda: None not in bench.node.loop.contact_input._kept)

    def contacts(time_s, forces):
        measure(forces)
        bench.answer(time_s)
        return bench.node.loop.result.contact.tolist()

    bench.send(1e-5)
    assert bench.until(lambda: "no contact was measured" in bench.node.not_ready)
    measure([0.0] * 4)
    bench.make_ready(2e-5)
    assert bench.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    assert contacts(0.5, [20.0, 20.0, 0.0, 3.0]) == [False] * 4  # not long enough yet
    assert contacts(0.51, [20.0, 20.0, 0.0, 3.0]) == [True, True, False, False]
    contacts(0.52, [3.0, 1.0, 9.0, 9.0])
    assert contacts(0.525, [3.0, float("nan"), 9.0, 9.0]) == [True, True, True, True], "one alone"
    contacts(0.526, [3.0, 1.0, 9.0, 9.0])
    assert contacts(0.53, [3.0, float("nan"), 9.0, 9.0]) == [True, False, True, True]


def test_emergency_stop_outlives_cleanup(bench_of):
    bench = bench_of()
    bench.start()
    call(bench, SetBool, "emergency_stop", data=True)
    for transition in ("deactivate", "cleanup", "configure"):
        getattr(bench.node, f"trigger_{transition}")()
    bench.make_ready(2.0)
    bench.node.trigger_activate()
    assert not bench.node.active
    assert bench.node.loop.safety.state is SafetyState.EMERGENCY_STOP
    call(bench, SetBool, "emergency_stop", data=False)
    for transition in ("cleanup", "configure"):
        getattr(bench.node, f"trigger_{transition}")()
    bench.make_ready(3.0)
    bench.node.trigger_activate()
    assert bench.node.active


def test_the_torque_of_an_emergency_stop_goes_before_its_file(bench_of, monkeypatch, tmp_path):
    bench = bench_of(state_folder=str(tmp_path))
    bench.start()
    topics, latch, there = bench.node._topics, bench.node.latch, []
    publish = topics._publish

    def spied(torques):
        there.append((latch.path.exists(), torques.any()))
        publish(torques)

    monkeypatch.setattr(topics, "_publish", spied)
    assert call(bench, SetBool, "emergency_stop", data=True).success
    assert there[0] == (False, False) and latch.path.exists()


def test_the_emergency_stop_of_the_watchdog_stops_it_also_where_none_is_required(bench_of):
    bench = bench_of()
    bench.start()
    (_, beating), machine = watchdog_of(bench), bench.node.loop.safety
    assert beating("emergency stop", lambda: machine.state is SafetyState.STOPPED)
    bench.node.trigger_deactivate()
    bench.send(2.0)
    told = "emergency stop of the command watchdog"
    assert beating("emergency stop", lambda: told in bench.node.not_ready)
    bench.node.trigger_activate()
    assert not bench.node.active


def test_diagnostics_count_what_could_not_be_heard(bench_of):
    bench = bench_of()
    bench.configure()
    beats = bench.peer.create_publisher(String, "command_watchdog/heartbeat", 1)
    counts = bench.node.incidents.counts
    assert bench.until(lambda: beats.publish(String(data="words")) or counts["heartbeat"])
    assert int(diagnostics(bench)[1]["error heartbeat"]) >= 1


@pytest.mark.parametrize("good", [True, False])
def test_states_that_a_stop_answers_are_no_silence(bench_of, good):
    bench = bench_of(state_timeout_s=0.4)
    bench.start()
    call(bench, SetBool, "emergency_stop", data=True)
    before = bench.refusals("states_stopped")
    end = time.monotonic() + 1.2
    for k in itertools.count():
        time_s = 1.0 + 1e-3 * k
        bench.answer(time_s, None if good else joint_state(time_s, **NAN_STATE))
        if time.monotonic() > end:
            break
    assert bench.refusals("states_stopped") == before


def test_limits_set_before_activation_hold_from_the_first_torque(bench_of):
    bench = bench_of()
    bench.configure()
    bench.node.set_parameters_atomically([Parameter("effort_limits_nm", value=[0.01])])
    bench.node.trigger_activate()
    assert bench.node.active
    assert (bench.node.loop.controller.effort_limits == 0.01).all()


def test_new_activation_does_not_begin_at_the_torque_of_the_last(bench_of):
    bench = bench_of()
    bench.start()
    bench.node.loop.controller.sent(np.full(12, 9.0))
    bench.node.trigger_deactivate()
    assert not (bench.node.loop.controller.commanded == 9.0).any()
    bench.make_ready(2.0)
    bench.node.loop.controller.sent(np.full(12, 9.0))
    bench.node.trigger_activate()
    assert bench.node.active and not bench.node.loop.controller.commanded.any()


def test_emergency_stop_ends_autostart(bench_of):
    bench = bench_of(autostart=True)
    bench.configure()
    autostart = _Autostart(bench.node)
    call(bench, SetBool, "emergency_stop", data=True)
    autostart()
    call(bench, SetBool, "emergency_stop", data=False)
    bench.make_ready(1.0)
    autostart()
    assert not bench.node.active
    by_itself = _Autostart(bench.node)
    bench.node.trigger_activate()
    by_itself()  # finds it active
    assert bench.node.active
    bench.node.trigger_deactivate()
    bench.make_ready(2.0)
    by_itself()
    assert not bench.node.active


def test_error_that_ends_the_process_ends_in_the_safe_output(bench_of, monkeypatch):
    class Failing:
        def __init__(self, *arguments, **options):
            pass

        def spin_once(self, timeout_s):
            raise RuntimeError("in a callback")

    bench = bench_of()
    bench.start()
    monkeypatch.setattr(controller, "DirectLoop", Failing)
    monkeypatch.setattr(controller, "GuardedExecutor", MagicMock)
    count = len(bench.commands)
    with pytest.raises(RuntimeError, match="in a callback"):
        controller._serve(bench.node, Interrupt())
    assert bench.until(lambda: len(bench.commands) > count)
    assert np.allclose(bench.commands[-1], DAMPING) and bench.node.finalized


def test_a_middleware_that_publishes_nothing_does_not_end_the_node(bench_of, monkeypatch):
    """As with a clock beyond 2038, whose seconds no stamp holds; the last torque was held for ever."""
    bench, interrupt, beats = bench_of(), Interrupt(), []
    bench.start()

    def beat():
        beats.append(1)
        interrupt.requested = len(beats) > 3
        raise RCLError("cannot publish data")

    class Turns:
        def __init__(self, *arguments, between, **options):
            self.spin_once = lambda timeout_s: between()

    monkeypatch.setattr(bench.node, "beat", beat)
    monkeypatch.setattr(controller, "DirectLoop", Turns)
    monkeypatch.setattr(controller, "GuardedExecutor", MagicMock)
    count = len(bench.commands)
    assert controller._serve(bench.node, interrupt) == 0
    assert bench.node.incidents.counts["heartbeat_RCLError"] == len(beats) > 3
    assert bench.until(lambda: len(bench.commands) > count)
    assert np.allclose(bench.commands[-1], DAMPING) and bench.node.finalized


def test_a_cable_out_right_after_activation_needs_resume_when_it_is_in_again(bench_of):
    bench = bench_of(recovery_window_s=0.2)
    bench.configure(start_s=1.0)
    bench.node.trigger_activate()
    assert bench.node.active
    assert np.allclose(bench.answer(60.0), DAMPING)
    assert bench.node.loop.safety.state is SafetyState.STOPPED


def test_resume_does_not_make_a_fallen_attitude_the_upright_one(bench_of):
    bench = bench_of(tilt_limit_rad=0.5, odometry_jump_m=np.inf)
    bench.start()
    bench.answer(0.5)
    fallen = (np.sin(0.4), 0.0, 0.0, np.cos(0.4))
    for k in range(2):
        bench.answer(0.501 + 0.001 * k, base=odometry(0.501 + 0.001 * k, quaternion=fallen))
        assert bench.node.loop.safety.latched
    assert call(bench, Trigger, "resume").success
    bench.answer(0.504, base=odometry(0.504, quaternion=fallen))
    assert "tilted by 0.80 rad" in bench.node.loop.safety.reason
    assert call(bench, Trigger, "resume").success
    bench.answer(0.506)
    assert not bench.node.loop.safety.latched


def test_every_stop_is_one_line_in_the_log_with_its_reason(bench_of, capfd):
    """Tilt, overruns, a gap; diagnostics are not all that a person looks at."""
    bench = bench_of(
        tilt_limit_rad=0.5,
        odometry_jump_m=np.inf,
        overruns_in_a_row=3,
        recovery_window_s=0.2,
    )
    bench.start()
    times = iter(np.arange(0.15, 10.0, 0.001).tolist())  # the start was a moment ago
    fallen = (np.sin(0.4), 0.0, 0.0, np.cos(0.4))

    def answer_until_latched(every_s=0.0, **state):
        time_s = next(times)
        for _ in range(20):
            while next(times) < time_s + every_s:
                pass
            time_s = next(times)
            base = odometry(time_s, **state) if state else None
            bench.answer(time_s, base=base)
            if bench.node.loop.safety.latched:
                return
        raise AssertionError("no stop")

    reasons = []
    for every_s, state in ((0.0, {"quaternion": fallen}), (0.01, {}), (0.3, {})):
        for _ in range(3):
            bench.answer(next(times))
        capfd.readouterr()
        answer_until_latched(every_s, **state)
        told = capfd.readouterr().err.splitlines()
        lines = [line for line in told if "stopped: " in line]
        assert len(lines) == 1 and "[WARN]" in lines[0], (every_s, told)
        reasons.append(lines[0])
        bench.answer(next(times))
        assert call(bench, Trigger, "resume").success
    for reason, words in zip(
        reasons, ("base tilted", "steps in a row lost states", "no good state")
    ):
        assert words in reason
