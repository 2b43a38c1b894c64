"""Stamps ahead of the clock are found by the ages of states; lateness of ours is not taken for one."""

import math

import numpy as np
import pytest
from test_torques_ahead import STANDING, quadruped_guard

from contact_id_controller.safety.clock_offset import ClockOffset
from contact_id_controller.safety.states import JointReading

PERIOD_S = 0.001


def ages(offset, values):
    for k, age_s in enumerate(values):
        offset.see(10_000_000_000 + k * 1_000_000, age_s)


def test_the_least_age_of_a_second_proves_a_lead_whatever_the_load():
    offset, rng = ClockOffset(warned_s=PERIOD_S), np.random.default_rng(0)
    ages(offset, [0.02] * 999)
    assert math.isnan(offset.least_age_s) and offset.words == ""
    late = rng.exponential(0.01, 1001)
    late += 0.0003 - late[:1000].min()
    ages(offset, late - 0.003)
    assert offset.least_age_s == pytest.approx(-0.0027)
    assert "2.7 ms ahead of the clock" in offset.words
    assert offset.news() == offset.words and offset.news() == ""


@pytest.mark.parametrize("age_s", [0.0, 0.0009, 0.05, 3.0, -0.0009])
def test_an_age_is_no_offset(age_s):
    """Late by our own load, or by the way: nothing is proved; a little ahead is jitter of two clocks."""
    offset = ClockOffset(warned_s=PERIOD_S)
    ages(offset, [age_s] * 3000)
    assert offset.least_age_s == age_s and offset.words == offset.news() == ""


def test_time_that_goes_back_begins_anew():
    offset = ClockOffset(warned_s=PERIOD_S)
    ages(offset, [-0.1] * 500)
    offset.see(1_000_000_000, 0.0)
    for k in range(1, 1002):
        offset.see(1_000_000_000 + k * 1_000_000, 0.001)
    assert offset.least_age_s == 0.0


def commanded(ahead_s, interface, steps=1100):
    """A guard whose states come stamped ahead of its clock; how many were answered."""
    guard = quadruped_guard(command_interface=interface, period_s=PERIOD_S)
    answered = 0
    for number in range(steps):
        time_ns = 10_000_000_000 + 1_000_000 * number
        guard.take_base(np.r_[0.0, 0.0, 0.162, 0.0, 0.0, 0.0, 1.0, np.zeros(6)], time_ns)
        now_ns = time_ns - round(1e9 * ahead_s)
        guard.step(JointReading(time_ns, STANDING, np.zeros(12)), now_ns)
        guard.finish(0.0)
        answered += guard.result is not None
    return guard, answered


def test_stamps_ahead_are_in_the_diagnostics_and_warned_of():
    guard, answered = commanded(2.0 * PERIOD_S, "joint_trajectory")
    assert answered == 1100
    assert float(guard.figures()["least age of states (us)"]) == pytest.approx(-2000.0)
    level, words = guard.summary()
    assert level == 1 and "2 ms ahead of the clock" in words
    assert sum("ahead of the clock" in line for line in guard.news()) == 1
    guard, _ = commanded(0.5 * PERIOD_S, "joint_trajectory")
    assert guard.summary() == (0, "commanding") and guard.news() == []


def test_beyond_five_periods_no_trajectory_is_sent():
    """Torques alone have no time: they go on."""
    guard, answered = commanded(6.0 * PERIOD_S, "joint_trajectory", steps=20)
    assert answered == 0 and guard.monitor.refusals["future"] == 20
    assert any("0.006000 s ahead of the clock, may be 0.005 s" in line for line in guard.news())
    _, answered = commanded(6.0 * PERIOD_S, "effort", steps=20)
    assert answered == 20


@pytest.mark.parametrize("wrong_s", [7200.0, -7200.0])
def test_a_stamp_that_is_refused_says_nothing_of_the_clock(wrong_s):
    guard = quadruped_guard(command_interface="effort", period_s=PERIOD_S)
    for number in range(2200):
        time_ns = now_ns = 10_000_000_000_000 + 1_000_000 * number
        if number == 50:
            time_ns += round(1e9 * wrong_s)
        guard.take_base(np.r_[0.0, 0.0, 0.162, 0.0, 0.0, 0.0, 1.0, np.zeros(6)], time_ns)
        guard.step(JointReading(time_ns, STANDING, np.zeros(12)), now_ns)
        guard.finish(0.0)
        if number == 100:
            assert math.isnan(guard.offset.least_age_s)
    assert guard.offset.least_age_s == 0.0 and guard.offset.words == ""
