"""Who may command, and how fast a torque may change; without ROS."""

from types import SimpleNamespace

import numpy as np
import pytest
from test_command_watchdog import COMMAND, DAMPING, NAMES, TIMEOUT_S, VELOCITY, make

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.safety.command_watchdog import WatchdogState
from contact_id_controller.safety.commanders import ASK_PERIOD_S, Commanders
from contact_id_controller.safety.effort_rate import EffortRate
from contact_id_controller.settings.command_watchdog import CommandWatchdogSettings

CONTROLLER, ROGUE, NEW = b"c", b"r", b"n"
NODES = {CONTROLLER: "/controller", ROGUE: "/rogue", NEW: "/controller"}


def commanders(*allowed, known=NODES):
    return Commanders(allowed, "/controller", lambda: dict(known))


@pytest.fixture
def without_a_controller():
    return {ROGUE: "/rogue", b"s": "/script"}


def test_the_first_is_followed_and_everybody_else_refused_until_it_is_let_go(without_a_controller):
    who = commanders(known=without_a_controller)
    assert who.refusal(ROGUE, 0.0) == "" and who.follow(ROGUE, 0.0)
    assert who.followed.node == "/rogue"
    for k in range(100):
        assert who.refusal(b"s", 1e-3 * k) == "second_commander"
        assert who.refusal(ROGUE, 1e-3 * k) == "" and not who.follow(ROGUE, 1e-3 * k)
    assert who.refusal(b"s", 1e6) == "second_commander", "time alone changes nothing"
    who.let_go()
    assert who.followed is None
    assert who.refusal(b"s", 1e6) == "" and who.follow(b"s", 1e6)
    assert who.refusal(ROGUE, 1e6) == "second_commander"


def test_the_watched_controller_goes_before_whoever_is_quicker():
    who = commanders()
    assert who.refusal(ROGUE, 0.0) == "not_a_commander"
    assert who.refusal(CONTROLLER, 1.0) == "" and who.follow(CONTROLLER, 1.0)
    who.let_go()
    assert who.refusal(ROGUE, 2.0) == "not_a_commander"
    assert who.refusal(NEW, 2.0) == "", "another publisher of the same node: it was started anew"


def test_the_name_of_who_is_followed_pushes_nobody_aside():
    who = commanders("/controller")
    assert who.refusal(CONTROLLER, 0.0) == "" and who.follow(CONTROLLER, 0.0)
    assert NODES[NEW] == NODES[CONTROLLER]
    assert who.refusal(NEW, 1.0) == "second_commander" and who.refusal(CONTROLLER, 1.0) == ""


@pytest.mark.parametrize("allowed", [(), ("/controller",)])
def test_among_too_many_to_look_at_only_who_was_known_before_may_command(allowed):
    """Names of thousands of silent publishers take longer to look at than a stop may wait."""
    found = [dict(NODES)]
    who = Commanders(allowed, "/controller", lambda: found[0])
    assert who.refusal(CONTROLLER, 0.0) == "" and who.follow(CONTROLLER, 0.0)
    who.let_go()
    found[0] = None
    assert who.refusal(b"unknown", 1.0) == "not_a_commander"
    assert who.refusal(ROGUE, 1.0) == "not_a_commander"
    assert who.refusal(CONTROLLER, 1.0) == ""
    alone = Commanders(allowed, "/controller", lambda: None)
    assert alone.refusal(CONTROLLER, 0.0) == "not_a_commander"


def test_whoever_is_named_may_and_nobody_else():
    who = commanders("/rogue", "/other")
    assert who.refusal(CONTROLLER, 0.0) == "not_a_commander"
    assert who.refusal(b"never seen", 1.0) == "not_a_commander"
    assert who.refusal(ROGUE, 2.0) == "" and who.follow(ROGUE, 2.0)
    who.let_go()
    assert who.refusal(CONTROLLER, 3.0) == "not_a_commander"


def test_a_name_that_discovery_brings_later_counts_then():
    known = {}
    who = Commanders(("/controller",), "/controller", lambda: dict(known))
    assert who.refusal(CONTROLLER, 0.0) == "not_a_commander"
    known.update(NODES)
    assert who.refusal(CONTROLLER, 1.01 * ASK_PERIOD_S) == ""


def test_who_is_followed_before_discovery_told_the_name_gets_it_then():
    known = {}
    who = Commanders((), "/controller", lambda: dict(known))
    assert who.refusal(CONTROLLER, 0.0) == "" and who.follow(CONTROLLER, 0.0)
    assert who.known(ASK_PERIOD_S / 2).node == ""
    known[CONTROLLER] = "/controller"
    assert who.known(2 * ASK_PERIOD_S).node == "/controller" == who.followed.node
    who.let_go()
    assert who.known(1.0) is None


def test_a_node_that_discovery_does_not_know_has_no_name():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from contact_id_controller.ros.senders import known_publishers_of, publishers_of

    told = [
        SimpleNamespace(endpoint_gid=[1], node_name="rogue", node_namespace="/"),
        SimpleNamespace(
            endpoint_gid=[2],
            node_name="_NODE_NAME_UNKNOWN_",
            node_namespace="_NODE_NAMESPACE_UNKNOWN_",
        ),
    ]
    node = SimpleNamespace(
        get_publishers_info_by_topic=lambda topic: told, count_publishers=lambda topic: len(told)
    )
    assert known_publishers_of(node, "/commands") == {b"\x01": "/rogue"}
    assert len(publishers_of(node, "/commands")) == 2, (
        "whoever sends is seen, with a name or without"
    )


def test_strangers_are_asked_about_no_more_often_than_the_period_whatever_they_send():
    asked = []
    who = Commanders((), "/controller", lambda: asked.append(1) or dict(NODES))
    who.follow(CONTROLLER, 0.0)
    del asked[:]
    for k in range(10_000):
        who.refusal(bytes([k % 250]) + b"x", 1.0 + 1e-5 * k)
    assert not asked, "somebody is followed: nobody need be asked"
    who.let_go()
    for k in range(10_000):
        who.refusal(bytes([k % 250]) + b"x", 1.0 + 1e-5 * k)
    assert 1 <= len(asked) <= 0.1 / ASK_PERIOD_S + 1


def test_without_identities_nobody_is_refused():
    """rclpy before Kilted does not tell who sent a message."""
    who = commanders()
    for k in range(3):
        assert who.refusal(None, float(k)) == "" and not who.follow(None, float(k))


def test_names_must_be_full():
    rows = {"joints": ["a"], "effort_limits_nm": [1.0]}
    for name in ("controller", "", "/"):
        with pytest.raises(ConfigurationError, match="be full names, such as /controller"):
            CommandWatchdogSettings.from_mapping({**rows, "commanders": [name]})
    CommandWatchdogSettings.from_mapping(
        {**rows, "commanders": ["/controller", "/left/controller"]}
    )


# How fast a torque may change


def test_a_torque_changes_no_faster_than_it_may_from_zero_on():
    rate = np.array([1000.0, 10.0, np.inf])
    watchdog = make(rate=EffortRate(rate))
    sent = watchdog.take_command(np.array([5.0, 5.0, 5.0]), 10.0)
    assert sent.tolist() == [0.0, 0.0, 5.0], "nothing is known before the first: it begins at zero"
    before, now_s = sent, 10.0
    generator = np.random.default_rng(4)
    for _ in range(500):
        passed_s = generator.choice([0.0, 1e-4, 1e-3, 5e-3])
        now_s += passed_s
        asked = generator.uniform(-20.0, 20.0, 3)
        sent = watchdog.take_command(asked, now_s).copy()
        assert (np.abs(sent - before) <= rate * max(passed_s, 1e-300) + 1e-12).all()
        assert (np.abs(sent) <= [10.0, 5.0, np.inf]).all()
        before = sent
    assert int(watchdog.figures()["slowed"]) > 400


def test_flips_of_two_commanders_end_near_nothing():
    """914 torque flips a second were forwarded once."""
    watchdog, sent = make(rate=EffortRate(np.full(3, 100.0))), []
    for k in range(1000):
        sent.append(watchdog.take_command(5.0 * (-1.0) ** k * np.ones(3), 1e-3 * k).copy())
    assert np.abs(sent).max() <= 0.1 + 1e-9


def test_a_good_command_that_goes_on_is_reached():
    watchdog = make(rate=EffortRate(np.full(3, 100.0)))
    for k in range(100):
        sent = watchdog.take_command(COMMAND, 1e-3 * k)
    assert np.array_equal(sent, COMMAND)


def test_damping_does_not_wait_and_the_return_begins_from_it():
    watchdog = make(rate=EffortRate(np.full(3, 100.0)))
    watchdog.velocities.take(NAMES, VELOCITY, 0.09)
    for k in range(100):
        watchdog.take_command(COMMAND, 1e-3 * k)
    damping = watchdog.tick(0.0991 + TIMEOUT_S)
    assert watchdog.state is WatchdogState.TRIPPED
    assert np.array_equal(damping, np.clip(-DAMPING * VELOCITY, *[[-10, -5, -9e9], [10, 5, 9e9]]))
    watchdog.controller_changed(active=True)
    sent = watchdog.take_command(COMMAND, 0.1 + TIMEOUT_S)
    assert (np.abs(sent - damping) <= 100.0 * 0.001 + 1e-9).all() and not np.array_equal(
        sent, damping
    )


def test_one_row_of_feedback_is_limited_alike():
    watchdog = make(rate=EffortRate(np.full(3, 100.0)))
    watchdog.take_command(np.zeros((1, 3)), 1.0)
    sent = watchdog.take_command(np.full((1, 3), 4.0), 1.01)
    np.testing.assert_allclose(sent, np.full((1, 3), 1.0))


def test_rates_are_refused_where_efforts_are_those_of_times_to_come():
    rows = {"joints": ["a"], "effort_limits_nm": [1.0], "effort_rate_limits_nm_s": [5.0]}
    CommandWatchdogSettings.from_mapping(rows)
    with pytest.raises(ConfigurationError, match="must be empty with command_interface"):
        CommandWatchdogSettings.from_mapping({**rows, "command_interface": "joint_trajectory"})


# Somebody else on the topic of the robot


def test_somebody_else_behind_it_trips_it():
    watchdog = make()
    watchdog.velocities.take(NAMES, VELOCITY, 0.0)
    assert watchdog.stop("second_commander", "/rogue sends, too", 0.0) is None, (
        "nothing to stop yet"
    )
    watchdog.take_command(COMMAND, 0.001)
    assert watchdog.stop("second_commander", "/rogue sends, too", 0.002) is not None
    assert watchdog.state is WatchdogState.TRIPPED and watchdog.trip_reason == "second_commander"
    assert watchdog.take_command(COMMAND, 0.003) is None
    assert watchdog.stop("second_commander", "/rogue sends, too", 0.004) is None


def test_commands_that_are_not_looked_at_are_neither_good_nor_bad():
    watchdog = make()
    watchdog.take_command(COMMAND, 0.0)
    for _ in range(1000):
        watchdog.refuse_sender("second_commander")
    assert watchdog.state is WatchdogState.FORWARDING
    assert watchdog.figures()["refused second_commander"] == "1000"
    assert watchdog.tick(TIMEOUT_S) is not None, "they do not put the time-out off"
