"""One compiled call examines a state; jumps are judged as by the filters alone."""

import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from paths import QUADRUPED_URDF

from contact_id_controller.robot import RobotModel
from contact_id_controller.runs.one_process import section
from contact_id_controller.safety.joint_jump import JointJump
from contact_id_controller.safety.odometry_jump import BASE_SIZE, OdometryJump, jump_limits
from contact_id_controller.safety.states import JointReading, Refusal, StateChecks
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

MS = 1_000_000


@pytest.fixture(scope="module")
def robot():
    return RobotModel.from_urdf(QUADRUPED_URDF)


@pytest.fixture
def checks(robot):
    checks = StateChecks(robot)
    checks.apply(ControllerSettings.from_mapping(section("quadruped", "controller")))
    return checks


def base(x=0.0):
    numbers = np.zeros(BASE_SIZE)
    numbers[0], numbers[2], numbers[6] = x, 0.2, 1.0
    return numbers


def take(checks, ms, position, x=0.0):
    checks.take_base(base(x), ms * MS)
    return checks.take(JointReading(ms * MS, position, np.zeros(len(position))), None)


def test_a_state_takes_no_other_name(robot, checks):
    """Python's own guard of a frozen class with slots stumbled: "super(type, obj)"."""
    state = take(checks, 1000, np.zeros(robot.na))
    for name in ("q", "position"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(state, name, 0.0)


def test_a_stamp_before_the_start_is_a_jump_where_no_clock_judges(robot, checks):
    assert isinstance(take(checks, 1000, np.zeros(robot.na)), RobotState)
    checks.begin()
    assert take(checks, 500, np.zeros(robot.na)).reason == "stamp_jump"


def kinds(numbers):
    """The same numbers as arrays that a compiled call would read as others, or end the process on."""
    spread = np.zeros(2 * len(numbers))
    spread[::2] = numbers
    turned = numbers[::-1].copy()[::-1]
    return (
        spread[::2],
        turned,
        numbers.astype(np.float32),
        numbers.astype(">f8"),
        numbers.tolist(),
        memoryview(numbers),
    )


def test_numbers_of_any_kind_are_read_as_they_are(robot):
    """A view of every other number was read as the numbers in between, a list of them could end the process."""
    given, place = np.arange(robot.na) / 16.0, base(0.5)
    for position, pose, variances in zip(kinds(given), kinds(place), kinds(np.full(6, 0.25))):
        checks = StateChecks(robot)
        checks.take_base(pose, MS, variances)
        state = checks.take(JointReading(MS, position, position), None)
        np.testing.assert_allclose(state.q, np.r_[place[:7], given], atol=1e-7)
        np.testing.assert_allclose(state.v[6:], given)
        np.testing.assert_array_equal(checks._variances, 0.25)


def test_integers_are_numbers_and_another_number_of_joints_is_refused(robot, checks):
    whole = np.zeros(robot.na, dtype=int)
    assert isinstance(take(checks, 1, whole), RobotState)
    for bad in (np.zeros(5), np.zeros(2 * robot.na), np.zeros((robot.na, 1))):
        refusal = take(checks, 2, bad)
        assert refusal.reason == "wrong_size" and str(bad.shape) in refusal.detail


def test_jumps_of_joints_and_base_are_those_of_the_filters_alone(robot, checks):
    """A random walk with outliers and moves that stay; plain filters look at the same measurements."""
    settings = ControllerSettings.from_mapping(section("quadruped", "controller"))
    joints = JointJump(robot.joint_names, settings.joint_jump)
    bases = OdometryJump(*jump_limits(settings.odometry_jump_m))
    rng, place, x, told = np.random.default_rng(4), np.zeros(robot.na), 0.0, set()
    for ms in range(1, 2000):
        if rng.random() < 0.03:
            place = place + rng.uniform(-0.6, 0.6, robot.na)
        if rng.random() < 0.03:
            x += rng.uniform(-0.5, 0.5)
        out, aside = rng.random(2) < 0.05
        position = place + 1.0 * out * np.eye(robot.na)[3]
        here = x + 0.7 * aside
        row = np.concatenate([position, np.zeros(robot.na)])
        away, moved = joints.judge(row, ms * MS)
        reason = "joint_jump" if away else ""
        if not away:
            away, base_moved = bases.judge(base(here), ms * MS)
            reason, moved = "odometry_jump" if away else "", moved or base_moved
        found = take(checks, ms, position, here)
        told.add((reason, moved))
        if reason:
            assert isinstance(found, Refusal) and found == Refusal(reason, away)
            if reason == "odometry_jump":
                assert np.array_equal(checks.position, position), "the joints are good"
        else:
            assert isinstance(found, RobotState) and found.q[0] == here
            assert np.array_equal(found.q[robot.q_index], position)
        assert checks.moved_elsewhere == moved
        assert checks.velocity_is_true == (reason != "joint_jump")
    assert len(told) == 5, (
        "refused by each, also where the joints had moved, and accepted at a new place"
    )


def test_numbers_come_before_stamps_and_stamps_before_places(checks, robot):
    still = np.zeros(robot.na)
    assert isinstance(take(checks, 5, still), RobotState)
    assert take(checks, 5, np.full(robot.na, np.nan)).reason == "joint_state_not_finite"
    assert take(checks, 5, still + 1.0).reason == "out_of_order"
    assert take(checks, 6, still + 1.0).reason == "joint_jump"
    assert take(checks, 6, still).reason == "out_of_order", "a stamp counts without its joints"
    assert isinstance(take(checks, 7, still), RobotState)


def test_no_stamp_counts_twice_whatever_its_sign(checks, robot):
    """Zero, too, is a time; so is one before it."""
    still = np.zeros(robot.na)
    for ms in (-2, 0, 3):
        assert isinstance(take(checks, ms, still), RobotState)
        assert take(checks, ms, still).reason == "out_of_order"
        assert take(checks, ms - 1, still).reason == "out_of_order"
    assert checks.take(JointReading(1 << 80, still, still), None).reason == "stamp_impossible"


@pytest.mark.parametrize("lags", [False, True])
def test_states_are_compared_with_the_clock_at_both_sides(checks, robot, lags):
    """A lagging clock (simulated time) lets stamps lie ahead of it; to be late is late for any."""
    checks.age_limit_s, checks.clock_lags, still = 0.0045, lags, np.zeros(robot.na)
    reasons = []
    for ms, now_ms in ((10, 14), (11, 16), (12, 8), (13, 8)):
        checks.take_base(base(), ms * MS)
        found = checks.take(JointReading(ms * MS, still, still), now_ms * MS)
        reasons.append(found.reason if isinstance(found, Refusal) else "")
    assert reasons == ["", "stale", "", "" if lags else "future"]


def reason(checks, robot, ms):
    """Take a robot that stands; empty where the state is accepted."""
    checks.take_base(base(), ms * MS)
    still = np.zeros(robot.na)
    found = checks.take(JointReading(ms * MS, still, still), None)
    return found.reason if isinstance(found, Refusal) else ""


@pytest.fixture
def in_time(checks, robot):
    """The checks after three states at 1 kHz from 100 s on; 1 ms of a steady clock passes from one to the next."""
    checks.stamps.passed_s = lambda: 1e-3
    for ms in range(3):
        assert not reason(checks, robot, 100_000 + ms)
    return checks


@pytest.mark.parametrize("wrong_ms", [1, 500, 1000, 99_000, 100_500])
def test_one_wrong_stamp_right_after_a_start_is_refused_and_confirmed_by_none(
    in_time, robot, wrong_ms
):
    in_time.begin()
    assert reason(in_time, robot, wrong_ms) == "stamp_jump"
    assert [reason(in_time, robot, 100_003 + ms) for ms in range(3)] == ["", "", ""]


def test_a_stamp_that_was_refused_after_a_start_confirms_none_after_the_next(in_time, robot):
    in_time.begin()
    assert reason(in_time, robot, 600_000) == "stamp_jump"
    in_time.reset()
    assert not reason(in_time, robot, 300_000)
    in_time.begin()
    assert reason(in_time, robot, 600_400) == "stamp_jump"
    assert not reason(in_time, robot, 300_001)


def test_one_pause_of_the_stamps_lets_no_stamp_far_ahead_pass_later(in_time, robot):
    assert reason(in_time, robot, 102_000) == "stamp_jump"
    assert not reason(in_time, robot, 102_900), "confirms the one before"
    assert not reason(in_time, robot, 102_901)
    assert reason(in_time, robot, 104_600) == "stamp_jump"
    assert not any(reason(in_time, robot, 102_902 + ms) for ms in range(100))


def test_a_pause_that_time_explains_lets_no_stamp_ahead_pass_later(in_time, robot):
    in_time.stamps.passed_s = lambda: 0.4
    assert not reason(in_time, robot, 100_402)
    in_time.stamps.passed_s = lambda: 1e-3
    assert reason(in_time, robot, 101_100) == "stamp_jump"
    assert not reason(in_time, robot, 100_403)


@pytest.mark.parametrize(
    "step_ms, passed_s",
    [
        ([20], [0.0005] * 9 + [0.02]),
        ([50], [0.0005] * 9 + [0.05]),
        ([12, 12, 12, 12, 9], [0.0003]),
        ([8, 12], [0.0003]),
        ([5, 10, 15, 30], [0.001, 0.002, 0.003, 0.006]),
    ],
)
def test_rare_and_uneven_states_are_refused_once(checks, robot, step_ms, passed_s):
    """In lockstep, or in a simulation faster than real time; a slow period of ours is no measure of theirs."""
    ms, refused = 100_000, []
    for k in range(400):
        checks.stamps.passed_s = lambda k=k: passed_s[k % len(passed_s)]
        ms += step_ms[k % len(step_ms)]
        if reason(checks, robot, ms):
            refused.append(k)
    assert refused in ([], [1])


def test_after_a_long_silence_one_stamp_further_ahead_than_a_minute_needs_the_next(in_time, robot):
    in_time.stamps.passed_s = lambda: 600.0
    assert reason(in_time, robot, 1_100_000) == "stamp_jump"
    assert not reason(in_time, robot, 130_000), "half a minute"
    assert reason(in_time, robot, 730_000) == "stamp_jump"
    assert not reason(in_time, robot, 730_001)


def test_a_state_is_examined_in_few_calls(checks, robot):
    """The way of each state: no function for what one condition says, none of numba's for a struct."""
    still, entered = np.zeros(robot.na), []
    for ms in (1, 2, 3):
        checks.take_base(base(), ms * MS)
        reading = JointReading(ms * MS, still, still)
        entered.clear()
        sys.setprofile(
            lambda frame, event, _: event == "call" and entered.append(frame.f_code.co_name)
        )
        try:
            checks.take(reading, ms * MS)
        finally:
            sys.setprofile(None)
    assert len(entered) <= 4, entered
