"""The safety state machine, without ROS: every fault, its reaction and its recovery."""

import itertools
from types import SimpleNamespace

import pytest
from paths import ROOT

from contact_id_controller.safety.machine import SafetyLimits, SafetyMachine, SafetyState
from contact_id_controller.safety.monitor import StepMonitor
from contact_id_controller.safety.states import Pace

LIMITS = SafetyLimits(
    recovery_window_s=0.2, failures_in_a_row=3, overruns_in_a_row=4, tilt_limit_rad=1.0
)


def running(time_s=1.0):
    machine = SafetyMachine(LIMITS)
    assert machine.activate() == ""
    step(machine, time_s)
    return machine


def step(machine, time_s, tilt_rad=0.0, converged=True, following=False):
    """A good state and the step on it; whether its torque may go out."""
    if not machine.good_state(time_s, tilt_rad):
        return False
    machine.stepped("" if converged else "solver not converged", following)
    return machine.commanding


def test_inactive_never_commands():
    machine = SafetyMachine(LIMITS)
    assert not step(machine, 1.0)
    machine.interrupt("nan")
    machine.failed("error")
    machine.stop("tilt")
    assert machine.state is SafetyState.INACTIVE
    assert "not stopped" in machine.resume()


def test_holds_until_a_plan_comes_and_again_after_it():
    machine = running()
    assert machine.state is SafetyState.HOLDING
    assert step(machine, 1.001, following=True) and machine.state is SafetyState.FOLLOWING
    assert step(machine, 1.002) and machine.state is SafetyState.HOLDING


def test_overruns_stop_nothing_where_no_number_is_given():
    machine = running()
    machine.limits = LIMITS._replace(overruns_in_a_row=0)
    for _ in range(10_000):
        machine.timed(True)
    assert machine.commanding


def test_time_that_was_slept_is_no_gap():
    machine = running()
    assert machine.good_state(5.0, 0.0, slept_s=3.85) and machine.commanding
    assert not machine.good_state(10.0, 0.0, slept_s=4.75)
    assert machine.state is SafetyState.STOPPED


@pytest.mark.parametrize("tilt_rad", [1.01, float("nan")])
def test_tilt_stops(tilt_rad):
    machine = running()
    assert not step(machine, 1.001, tilt_rad=tilt_rad)
    assert machine.state is SafetyState.STOPPED and "tilted" in machine.reason


def test_emergency_stop_holds_through_everything_but_its_release():
    machine = running()
    machine.engage_emergency_stop()
    for attempt in (machine.activate, machine.resume):
        assert "emergency stop" in attempt()
    machine.deactivate()
    machine.interrupt("nan")
    machine.stop("tilt")
    assert not step(machine, 1.001)
    assert machine.state is SafetyState.EMERGENCY_STOP
    machine.release_emergency_stop(active=True)
    assert machine.state is SafetyState.STOPPED and "resume" in machine.reason
    assert not step(machine, 1.002)
    assert machine.resume() == ""
    assert step(machine, 1.003)


def test_emergency_stop_while_inactive_prevents_activation_until_released():
    machine = SafetyMachine(LIMITS)
    machine.engage_emergency_stop()
    assert "emergency stop" in machine.activate()
    machine.release_emergency_stop(active=False)
    assert machine.state is SafetyState.INACTIVE
    assert machine.activate() == ""


def test_activation_leaves_a_stop_and_forgets_the_past():
    machine = running()
    machine.stop("tilt")
    machine.deactivate()
    assert machine.activate() == ""
    assert step(machine, 0.5)  # time may begin anywhere


def test_whatever_happens_no_torque_goes_out_of_a_latched_state():
    """All sequences of five events: only resume and activate lead out of a stop."""
    events = {
        "good": lambda m: step(m, next(clock)),
        "bad": lambda m: m.interrupt("bad"),
        "failed": lambda m: m.failed("error"),
        "late": lambda m: m.timed(True),
        "stop": lambda m: m.stop("tilt"),
        "engage": lambda m: m.engage_emergency_stop(),
        "release": lambda m: m.release_emergency_stop(True),
        "resume": lambda m: m.resume(),
    }
    for names in itertools.product(events, repeat=4):
        clock = itertools.count(1.001, 0.001)
        machine = running()
        for name in names:
            latched = machine.latched
            events[name](machine)
            if latched and name != "resume":
                assert machine.latched, names
            assert machine.commanding == (
                machine.state in (SafetyState.HOLDING, SafetyState.FOLLOWING)
            )


def test_the_pace_of_a_simulation_is_a_mean_and_never_faster_than_the_clock():
    pace = Pace()
    for k in range(300):
        pace.observe(1e-3 * k, 1e-4 * k)
    assert pace.factor == 1.0
    pace = Pace()
    for k in range(300):
        pace.observe(1e-3 * k, 1e-2 * k)
    assert pace.factor == pytest.approx(10.0)
    pace.observe(0.3, 3.0 + 0.05)  # one state late by five of its periods
    assert 10.0 < pace.factor < 12.0
    for k in range(301, 501):
        pace.observe(1e-3 * k, 3.05 + 2e-3 * (k - 300))
    assert pace.factor == pytest.approx(2.0, rel=0.1)


def test_a_simulation_that_waited_is_soon_taken_for_as_fast_as_it_is():
    """While it waits its stamps grow by a nanosecond; then silence is to be noticed again."""
    pace = Pace()
    for k in range(300):
        pace.observe(1e-9 * k, 6e-3 * k)
    for k in range(1, 301):
        pace.observe(1e-3 * k, 1.8 + 1e-3 * k)
    assert pace.factor < 2.0


def test_a_gap_right_after_activation_or_resume_stops_as_any_other():
    machine = SafetyMachine(LIMITS)
    assert machine.activate(last_good_s=1.0) == ""
    machine.interrupt("no joint state for 0.02 s")
    assert not step(machine, 60.0) and machine.state is SafetyState.STOPPED
    assert machine.resume(last_good_s=60.0) == ""
    assert not step(machine, 90.0) and machine.state is SafetyState.STOPPED
    assert machine.resume(last_good_s=90.0) == ""
    assert step(machine, 90.001)
    machine.deactivate()
    assert machine.activate(last_good_s=91.0) == ""
    assert step(machine, 0.5)  # time has begun anew


def test_the_page_of_results_has_one_place_for_the_table_of_faults():
    """`python -m experiments faults --write results/faults.md` refuses a page with none or two."""
    text = (ROOT / "results" / "faults.md").read_text("utf-8")
    assert text.count("<!-- faults: begin -->") == text.count("<!-- faults: end -->") == 1


def test_one_nap_changes_the_mean_delay_by_little_and_a_slower_computer_is_learnt():
    monitor, result = StepMonitor(0.001, real_time=True), SimpleNamespace(
        status="solved", step_time_s=0.0, solve_time_s=0.0
    )  # fmt: skip

    def delays(steps_s):
        found = []
        for step_s in steps_s:
            monitor.step(0.0, 0.0, step_s, result)
            found.append(monitor.delay_s(0.0002))
        return found

    usual = delays([0.0003] * 300)[-1]
    assert usual == pytest.approx(0.0005)
    assert max(delays([2.0] + [0.0003] * 50)) < 1.2 * usual
    assert delays([0.004] * 200)[-1] == pytest.approx(0.0042, rel=0.02)
