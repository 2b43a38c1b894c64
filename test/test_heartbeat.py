"""Who is gone, and who only slow. No ROS here."""

import json
import signal

import pytest
from waiting import until

from contact_id_controller.exceptions import StateError
from contact_id_controller.safety.heartbeat import BEAT_S, LOST_S, Heart, Pulse

BEAT = """
import time
from contact_id_controller.safety.heartbeat import Heart
print(Heart().words("holding"), flush=True)
time.sleep(60.0)
"""


@pytest.fixture
def other(python_of):
    """Another process, and its words."""
    process = python_of(BEAT)
    return process, process.stdout.readline()


def listened(pulse, duration_s):
    begin_s = 1000.0
    for k in range(round(duration_s / 0.05) + 1):
        pulse.look(begin_s + 0.05 * k)


def test_one_that_is_dead_is_told_from_one_that_is_slow(other):
    process, words = other
    pulse = Pulse()
    assert pulse.is_lost and pulse.words() == "never received"
    pulse.take(words)
    assert not pulse.is_lost and pulse.words() == pulse.state == "holding"
    listened(pulse, 2.0 * LOST_S)
    assert pulse.is_lost and f"process {process.pid} lives but is slow" in pulse.words()
    process.send_signal(signal.SIGSTOP)
    assert until(lambda: "is stopped by a signal" in pulse.words())
    process.kill()
    assert until(lambda: "is dead" in pulse.words())
    process.wait()
    assert pulse.words() == f"process {process.pid} is gone"


def test_a_number_that_another_process_has_now_is_gone(other):
    process, words = other
    pulse = Pulse()
    facts = json.loads(words)
    pulse.take(json.dumps({**facts, "started": facts["started"] - 1}))
    assert pulse.words() == f"process {process.pid} is gone"
    pulse.take(json.dumps({**facts, "machine": "another"}))
    assert pulse.words() == "holding", "its numbers mean nothing here"
    listened(pulse, 2.0 * LOST_S)
    assert "of another machine is silent" in pulse.words()


def test_time_in_which_nobody_listened_is_not_silence(other):
    _, words = other
    pulse = Pulse()
    pulse.look(0.0)
    pulse.take(words)
    pulse.look(100.0)  # this process was stopped
    assert not pulse.is_lost


def test_it_beats_as_often_as_it_says():
    heart = Heart()
    due = [heart.is_due(0.01 * k) for k in range(101)]
    assert sum(due) == pytest.approx(1.0 / BEAT_S, abs=1)


@pytest.mark.parametrize(
    "words",
    ["", "[]", "{}", "1", "null", '{"pid": 1}', "[" * 100_000]
    + [
        json.dumps({"pid": 1, "started": 2, "machine": "m", "state": "s", **bad})
        for bad in ({"pid": "1"}, {"pid": True}, {"started": 1.5}, {"state": None}, {"machine": 3})
    ],
)
def test_words_that_are_no_heartbeat_are_refused(words):
    pulse = Pulse()
    with pytest.raises(StateError, match="heartbeat"):
        pulse.take(words)
    assert pulse.is_lost
