"""A keeper has a second worker at hand when the first is killed. No ROS here."""

import os
import signal
import subprocess
import sys
import time

import pytest
from paths import ROOT

PROGRAM = """
import os, signal, sys, time
from contact_id_controller.ros.keeper import keep
ending = []
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def work(worker):
    role = "reserve" if worker.reserve else "active"
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    say(role, os.getpid(), int(worker.is_proven))
    while worker.reserve and not worker.is_called(0.01):
        pass
    if role == "reserve":
        say("called", os.getpid(), 1)
    {body}
    if {outlives}:
        worker.outlive_keeper()
    worker.ready(True)
    while not ending:
        time.sleep(0.005)
    return 7
sys.exit(keep("worker", work))
"""


@pytest.fixture
def start():
    processes = []

    def started(body="pass", outlives=False):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(body=body, outlives=outlives)],
            env=dict(os.environ, PYTHONPATH=str(ROOT)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def said(process):
    role, pid, proven = process.stdout.readline().split()
    return role, int(pid), proven == "1"


def state_of(pid):
    """Letter of a process's state, X where there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


def alive(pid):
    """Whether a process runs, rather than waits to be looked at."""
    return state_of(pid) not in "ZX"


def gone(pid):
    end_s = time.monotonic() + 10.0
    while alive(pid) and time.monotonic() < end_s:
        time.sleep(0.005)
    return not alive(pid)


def test_the_reserve_goes_on_and_another_one_takes_its_place(start):
    process = start()
    role, active, proven = said(process)
    assert (role, proven) == ("active", False)
    for _ in range(3):
        role, reserve, proven = said(process)
        assert (role, proven) == ("reserve", True)
        time.sleep(0.05)
        os.kill(active, signal.SIGKILL)
        assert said(process) == ("called", reserve, True)
        active = reserve
    role, reserve, _ = said(process)
    assert role == "reserve" and alive(active) and alive(reserve)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10.0) == 7, "the exit code of the worker that was asked to end"
    assert gone(active) and gone(reserve)
    assert process.stderr.read().count("the reserve goes on") == 3


def test_a_reserve_that_is_killed_is_replaced_while_the_active_one_works(start):
    process = start()
    (_, active, _), (_, reserve, _) = said(process), said(process)
    os.kill(reserve, signal.SIGKILL)
    role, other, _ = said(process)
    assert role == "reserve" and other != reserve and alive(active)


def test_both_killed_at_once_are_followed_by_new_ones(start):
    process = start()
    (_, active, _), (_, reserve, _) = said(process), said(process)
    process.send_signal(signal.SIGSTOP)  # it hears of both at once
    end_s = time.monotonic() + 10.0
    while state_of(process.pid) != "T" and time.monotonic() < end_s:
        time.sleep(0.005)
    for pid in (reserve, active):
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
    process.send_signal(signal.SIGCONT)
    (role, other, _), (standing_by, another, _) = said(process), said(process)
    assert (role, standing_by) == ("active", "reserve") and alive(other) and alive(another)


def test_without_a_reserve_another_one_is_forked_after_the_kill(start):
    process = start("ready = worker.ready; worker.ready = lambda wants: ready(False)")
    for _ in range(2):
        role, active, _ = said(process)
        assert role == "active"
        time.sleep(0.05)
        os.kill(active, signal.SIGKILL)
    assert said(process)[0] == "active"


def test_the_death_of_the_keeper_is_that_of_its_workers(start):
    process = start()
    (_, active, _), (_, reserve, _) = said(process), said(process)
    process.kill()
    assert gone(active) and gone(reserve)


def test_a_worker_that_asked_to_outlive_its_keeper_does_and_hears_signals_itself(start):
    process = start("say(int(worker.has_keeper), 0, 0)", outlives=True)
    (_, active, _), (had, _, _), (_, reserve, _) = said(process), said(process), said(process)
    assert had == "1"
    time.sleep(0.05)
    process.kill()
    assert gone(reserve)
    assert alive(active)
    os.kill(active, signal.SIGTERM)
    assert gone(active)


def test_what_ends_by_itself_is_not_started_again(start):
    process = start("return 3")
    assert process.wait(10.0) == 3
    assert process.stdout.read().count("active") == 1


def test_what_is_killed_at_each_start_is_given_up(start):
    process = start("os.kill(os.getpid(), signal.SIGKILL)")
    assert process.wait(30.0) == 128 + signal.SIGKILL
    assert process.stdout.read().count("active") == 5
    assert "killed 5 times at its start" in process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGINT])
def test_every_signal_that_asks_to_end_reaches_the_worker(start, number):
    process = start(f"signal.signal({int(number)}, lambda *_: ending.append(1))")
    said(process)
    role, _, _ = said(process)
    assert role == "reserve", "the first is ready"
    process.send_signal(number)
    assert process.wait(10.0) == 7, "asked to end, not killed: it had its last word"


def test_a_worker_that_breaks_while_it_works_is_followed_by_the_reserve(start):
    process = start(
        "if role == 'active': broken = worker.ready; worker.ready = lambda wants: "
        "(broken(wants), time.sleep(1.5), sys.exit('broken'))"
    )
    _, active, _ = said(process)
    _, reserve, _ = said(process)
    assert said(process) == ("called", reserve, True) and gone(active)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10.0) == 7
    assert "ended with code 1, the reserve goes on" in process.stderr.read()
