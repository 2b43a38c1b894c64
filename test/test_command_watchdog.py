"""The watchdog of commands, without ROS: what it forwards, when it trips, how it returns."""

import numpy as np
import pytest

from contact_id_controller.safety.command_watchdog import (
    FOLLOWED_S,
    CommandWatchdog,
    JointVelocities,
    WatchdogState,
)
from contact_id_controller.safety.latch import EmergencyLatch

NAMES = ("hip", "knee", "ankle")
LIMITS = np.array([10.0, 5.0, np.inf])
DAMPING = np.array([0.5, 1.0, 2.0])
VELOCITY = np.array([1.0, -2.0, 3.0])
COMMAND = np.array([1.0, 2.0, 3.0])
TIMEOUT_S, PERIOD_S, AGE_S = 0.010, 0.002, 0.020


def make(**changes):
    options = dict(timeout_s=TIMEOUT_S, period_s=PERIOD_S, refused_in_a_row=3)
    return CommandWatchdog(JointVelocities(NAMES, AGE_S), DAMPING, LIMITS, **{**options, **changes})


def forwarding(now_s=0.0, **changes):
    """A watchdog that forwarded one command and knows the velocities."""
    watchdog = make(**changes)
    watchdog.velocities.take(NAMES, VELOCITY, now_s)
    assert np.array_equal(watchdog.take_command(COMMAND, now_s), COMMAND)
    return watchdog


def tripped():
    watchdog = forwarding()
    assert watchdog.tick(TIMEOUT_S) is not None
    assert watchdog.state is WatchdogState.TRIPPED
    return watchdog


def test_fresh_commands_pass_unchanged():
    watchdog = make()
    for k in range(100):
        torques = COMMAND * np.cos(k)
        assert np.array_equal(watchdog.take_command(torques, k * 0.009), torques)
        assert watchdog.tick(k * 0.009 + 0.0089) is None
    assert watchdog.forwarded == 100 and watchdog.trips == watchdog.clipped == 0


def test_what_exceeds_the_limits_is_clipped_and_counted():
    watchdog = make()
    sent = watchdog.take_command(np.array([-1e300, 5.1, 1e6]), 0.0)
    assert np.array_equal(sent, [-10.0, 5.0, 1e6])
    assert watchdog.clipped == watchdog.forwarded == 1


def test_silence_trips_at_the_timeout_and_damps_each_period():
    watchdog = forwarding(1.0)
    assert watchdog.tick(1.0 + 0.99 * TIMEOUT_S) is None
    expected = np.clip(-DAMPING * VELOCITY, -LIMITS, LIMITS)
    late_s = 1.0 + TIMEOUT_S + 0.001
    assert np.array_equal(watchdog.tick(late_s), expected)
    assert watchdog.trip_reason == "commands_stopped" and watchdog.trips == 1
    assert watchdog.reaction_s == pytest.approx(TIMEOUT_S + 0.001)
    assert watchdog.tick(late_s + 0.9 * PERIOD_S) is None
    watchdog.velocities.take(NAMES, 2 * VELOCITY, late_s)
    assert np.array_equal(watchdog.tick(late_s + PERIOD_S), 2 * expected)
    assert watchdog.trips == 1
    assert watchdog.reaction_s == pytest.approx(TIMEOUT_S + 0.001), "of the first damping torque"


def test_damping_stays_within_the_limits():
    watchdog = forwarding()
    watchdog.velocities.take(NAMES, [1e3, -1e3, 1.0], 0.0)
    assert np.array_equal(watchdog.tick(TIMEOUT_S), [-10.0, 5.0, -2.0])


@pytest.mark.parametrize(
    "bad, reason",
    [
        (np.array([1.0, np.nan, 0.0]), "not_finite"),
        (np.array([np.inf, 0.0, 0.0]), "not_finite"),
        (np.zeros(2), "wrong_size"),
        (np.zeros(4), "wrong_size"),
        (np.zeros(0), "wrong_size"),
    ],
)
def test_bad_commands_are_not_forwarded_and_trip_when_they_repeat(bad, reason):
    watchdog = forwarding()
    assert watchdog.take_command(bad, 0.001) is None
    assert watchdog.take_command(bad, 0.002) is None
    assert watchdog.take_command(COMMAND, 0.003) is not None, "two in a row are borne"
    for now_s in (0.004, 0.005):
        assert watchdog.take_command(bad, now_s) is None
    assert np.array_equal(watchdog.take_command(bad, 0.006), -DAMPING * VELOCITY)
    assert watchdog.state is WatchdogState.TRIPPED and watchdog.trip_reason == reason
    assert watchdog.refused == {reason: 5}
    assert watchdog.reaction_s == pytest.approx(0.003)


def test_a_single_bad_command_does_not_put_the_timeout_off():
    watchdog = forwarding()
    watchdog.take_command(np.full(3, np.nan), 0.009)
    assert watchdog.tick(TIMEOUT_S) is not None
    assert watchdog.trip_reason == "commands_stopped"


def test_tripped_it_forwards_nothing_however_good():
    watchdog = tripped()
    for k in range(100):
        assert watchdog.take_command(COMMAND, 0.02 + 0.001 * k) is None
    assert watchdog.refused["tripped"] == 100 and watchdog.forwarded == 1
    assert watchdog.tick(0.12) is not None


def test_the_controller_that_becomes_active_again_is_forwarded():
    watchdog = tripped()
    watchdog.controller_changed(active=True)
    assert watchdog.tick(1.0) is not None, "damping goes on until its first command"
    assert watchdog.take_command(np.full(3, np.nan), 1.0) is None
    assert np.array_equal(watchdog.take_command(COMMAND, 1.001), COMMAND)
    assert watchdog.state is WatchdogState.FORWARDING
    assert watchdog.tick(1.001 + TIMEOUT_S) is not None and watchdog.trips == 2
    assert watchdog.take_command(COMMAND, 1.1) is None, "one activation, one return"


def test_an_activation_before_the_trip_does_not_count():
    watchdog = forwarding()
    watchdog.controller_changed(active=True)
    watchdog.tick(TIMEOUT_S)
    assert watchdog.take_command(COMMAND, 0.02) is None


def test_an_activation_that_was_taken_back_does_not_count():
    watchdog = tripped()
    watchdog.controller_changed(active=True)
    watchdog.controller_changed(active=False)
    assert watchdog.take_command(COMMAND, 0.02) is None


def test_reset_needs_commands_that_flow():
    watchdog = tripped()
    assert "no good command" in watchdog.reset(1.0)
    assert watchdog.take_command(COMMAND, 1.001) is None
    assert watchdog.reset(1.002) is None
    assert watchdog.take_command(COMMAND, 1.003) is not None
    assert "not tripped" in watchdog.reset(1.004)


def test_before_the_first_command_it_damps_or_keeps_silent():
    watchdog = make()
    assert np.array_equal(watchdog.tick(5.0), np.zeros(3)), "no velocity is known"
    watchdog.velocities.take(NAMES, VELOCITY, 5.0)
    assert watchdog.tick(5.001) is None
    assert np.array_equal(watchdog.tick(5.002), -DAMPING * VELOCITY)
    assert watchdog.trips == 0 and watchdog.take_command(COMMAND, 5.003) is not None
    silent = make(damp_before_first_command=False)
    assert silent.tick(5.0) is None and silent.wait_s(5.0) == PERIOD_S


def test_bad_commands_before_the_first_good_one_are_counted_only():
    watchdog = make()
    for _ in range(10):
        assert watchdog.take_command(np.zeros(2), 0.0) is None
    assert watchdog.state is WatchdogState.WAITING and watchdog.refused["wrong_size"] == 10


def test_it_says_how_long_it_may_wait():
    watchdog = forwarding()
    assert watchdog.wait_s(0.0) == PERIOD_S
    assert watchdog.wait_s(0.0095) == pytest.approx(0.0005)
    assert watchdog.wait_s(1.0) == 0.0
    watchdog.tick(1.0)
    assert watchdog.wait_s(1.0005) == pytest.approx(0.0015)


def test_velocities_are_mapped_by_name():
    velocities = JointVelocities(NAMES, AGE_S)
    velocities.take(["tail", "ankle", "hip", "knee"], [9.0, 3.0, 1.0, -2.0], 0.0)
    assert np.array_equal(velocities.known(0.0), VELOCITY)


@pytest.mark.parametrize(
    "names, velocity",
    [
        (["hip", "knee", "ankle"], [1.0, -2.0, np.nan]),
        (["hip", "knee", "ankle"], [1.0, -2.0]),
        (["hip", "knee", "ankle"], [1.0, -2.0, -np.inf]),
    ],
)
def test_a_joint_without_a_finite_velocity_is_not_damped(names, velocity):
    velocities = JointVelocities(NAMES, AGE_S)
    velocities.take(NAMES, VELOCITY, 0.0)
    velocities.take(names, velocity, 0.001)
    assert np.array_equal(velocities.known(0.001), [1.0, -2.0, 0.0])


def test_each_velocity_has_its_own_age():
    velocities = JointVelocities(NAMES, AGE_S)
    velocities.take(NAMES, VELOCITY, 0.0)
    velocities.take(["knee"], [7.0], 0.015)
    assert np.array_equal(velocities.known(0.019), [1.0, 7.0, 3.0])
    assert np.array_equal(velocities.known(0.021), [0.0, 7.0, 0.0])
    assert np.array_equal(velocities.known(0.036), np.zeros(3))


def test_nobody_else_chooses_the_damping_while_one_says_how_fast_the_joints_are():
    velocities = JointVelocities(NAMES, AGE_S)
    velocities.take(NAMES, VELOCITY, 0.0, sender=b"robot")
    velocities.take(NAMES, 100.0 * VELOCITY, 0.001, sender=b"peer")
    velocities.take(NAMES, 100.0 * VELOCITY, 0.001)
    assert np.array_equal(velocities.known(0.001), VELOCITY) and velocities.refused == 6
    velocities.take(NAMES, 2.0 * VELOCITY, FOLLOWED_S, sender=b"robot")
    velocities.take(NAMES, 3.0 * VELOCITY, 1.9 * FOLLOWED_S, sender=b"robot again")
    assert not velocities.known(1.9 * FOLLOWED_S).any(), "silent: no damping"
    velocities.take(NAMES, 3.0 * VELOCITY, 2.1 * FOLLOWED_S, sender=b"robot again")
    assert np.array_equal(velocities.known(2.1 * FOLLOWED_S), 3.0 * VELOCITY)


def test_nor_while_one_stands_by_who_looks_now_and_then():
    """A reserve sees one message of several: half of them a peer's, when that sends as often as the robot."""
    velocities, rng, now_s = JointVelocities(NAMES, AGE_S), np.random.default_rng(1), 0.0
    velocities.take(NAMES, VELOCITY, now_s, sender=b"robot")
    for _ in range(5000):
        velocities.stand_by()
        now_s += 0.2
        velocities.take(NAMES, VELOCITY, now_s, sender=rng.choice([b"robot", b"peer"]))
    velocities.attend(now_s)
    for _ in range(4):  # called: the first that comes may be the peer's, too
        velocities.take(NAMES, 100.0 * VELOCITY, now_s, sender=b"peer")
    assert np.abs(velocities.known(now_s)).max() <= np.abs(VELOCITY).max()
    velocities.take(NAMES, 2.0 * VELOCITY, now_s, sender=b"robot")
    assert np.array_equal(velocities.known(now_s), 2.0 * VELOCITY)
    late_s = now_s + 2.0 * FOLLOWED_S
    velocities.take(NAMES, 3.0 * VELOCITY, late_s, sender=b"peer")
    assert np.array_equal(velocities.known(late_s), 3.0 * VELOCITY), "silent, as ever"


def test_joints_of_several_senders_have_one_each():
    velocities = JointVelocities(NAMES, AGE_S)
    velocities.take(NAMES[:2], VELOCITY[:2], 0.0, sender=b"leg")
    velocities.take(NAMES[2:], VELOCITY[2:], 0.0, sender=b"foot")
    assert np.array_equal(velocities.known(0.0), VELOCITY) and velocities.refused == 0


def test_a_speed_that_nobody_can_believe_is_not_damped():
    velocities = JointVelocities(NAMES, AGE_S, fastest_rad_s=30.0)
    velocities.take(NAMES, [1e30, -31.0, 30.0], 0.0)
    assert np.array_equal(velocities.known(0.0), [0.0, 0.0, 30.0])


def test_figures_name_every_count():
    watchdog = tripped()
    watchdog.take_command(np.zeros(1), 0.02)
    assert watchdog.figures() == {
        "state": "tripped",
        "forwarded": "1",
        "clipped": "0",
        "trips": "1",
        "last trip": "commands_stopped",
        "last reaction time (ms)": "10.00",
        "refused wrong_size": "1",
    }


def test_a_late_watchdog_finds_old_commands_before_the_fresh_one_and_does_not_trip():
    """What a socket kept while this process had no core is no fault of the sender."""
    watchdog = forwarding(1.0)
    for late_s in (0.06, 0.05, 0.04, 0.03):
        assert watchdog.take_command(COMMAND, 1.005, age_s=late_s) is None
    assert watchdog.take_command(COMMAND, 1.005, age_s=0.001) is not None
    assert watchdog.trips == 0 and watchdog.refused == {"old": 4}


def test_a_command_counts_from_when_it_was_sent():
    """Both were stopped for 200 ms: what waited is the torque of another time."""
    watchdog = forwarding(1.0)
    assert watchdog.take_command(COMMAND, 1.2, age_s=0.199) is None
    assert watchdog.refused == {"old": 1}
    assert np.array_equal(watchdog.tick(1.2), -DAMPING * 0.0), "no velocity is known so long after"
    assert watchdog.trip_reason == "commands_stopped"

    watchdog = forwarding(1.0)
    assert watchdog.take_command(COMMAND, 1.005, age_s=0.004) is not None
    assert watchdog.tick(1.0109) is None
    assert watchdog.tick(1.0111) is not None, "10 ms after it was sent, 6 after it came"


def test_a_command_from_the_future_is_of_another_clock():
    watchdog = forwarding()
    assert watchdog.take_command(COMMAND, 0.001, age_s=-1.0) is None
    assert watchdog.refused == {"from_the_future": 1}
    assert watchdog.take_command(COMMAND[None], 0.002, "", -1.0) is None
    assert watchdog.take_command(COMMAND, 0.003, age_s=-0.001) is not None


@pytest.mark.parametrize("before", ["waiting", "forwarding", "tripped"])
@pytest.mark.parametrize("output", ["zero", "damping"])
def test_an_emergency_stop_holds_in_any_state_until_it_is_released(tmp_path, before, output):
    def born(**changes):
        latch = EmergencyLatch(tmp_path, "/command_watchdog")
        return make(latch=latch, emergency_stop_output=output, **changes)

    watchdog = born(damp_before_first_command=False)
    watchdog.velocities.take(NAMES, VELOCITY, 0.0)
    if before != "waiting":
        watchdog.take_command(COMMAND, 0.0)
    if before == "tripped":
        watchdog.tick(TIMEOUT_S)
    expected = np.zeros(3) if output == "zero" else -DAMPING * VELOCITY
    assert np.array_equal(watchdog.emergency_stop(TIMEOUT_S), expected)
    assert not watchdog.keep()
    watchdog.controller_changed(active=True)
    assert "not tripped" in watchdog.reset(0.011)
    assert watchdog.take_command(COMMAND, 0.012) is None
    assert watchdog.refused["emergency_stop"] == 1
    assert np.array_equal(watchdog.tick(0.0125), expected), "again and again"
    again = born()
    assert again.state is WatchdogState.EMERGENCY_STOP, "of the process before"
    assert again.take_command(COMMAND, 0.0) is None and not again.tick(0.0).any()
    assert again.release_emergency_stop() == ""
    assert again.state is WatchdogState.TRIPPED and again.waits_for_activation
    assert "was not engaged" in again.release_emergency_stop()
    again.controller_changed(active=True)
    assert np.array_equal(again.take_command(COMMAND, 0.1), COMMAND)
    assert born().state is WatchdogState.WAITING


def test_one_in_reserve_finds_the_stop_that_came_while_it_waited(tmp_path):
    reserve = make(latch=EmergencyLatch(tmp_path, "/command_watchdog"))
    working = make(latch=EmergencyLatch(tmp_path, "/command_watchdog"))
    working.emergency_stop(0.0)
    working.keep()
    reserve.look_at_latch()
    assert reserve.state is WatchdogState.EMERGENCY_STOP
