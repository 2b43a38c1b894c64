"""A keeper has a second worker at hand when the first is killed. No ROS here."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from other_processes import alive, state_of
from waiting import until

PATIENCE_S = 60.0
PROGRAM = """
import os, signal, sys, time
from contact_id_controller.ros.keeper import keep
ending = []
{before}
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def work(worker):
    role = "reserve" if worker.reserve else "active"
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    say(role, os.getpid(), int(worker.is_proven))
    while worker.reserve and not worker.is_called(0.2):
        pass
    if role == "reserve":
        say("called", os.getpid(), 1)
    {body}
    if {outlives}:
        worker.outlive_keeper()
    worker.ready(True)
    if {spins}:
        worker.beat({silent_s})
        signal.alarm(5)
        while True:
            pass
    while not ending:
        worker.beat({silent_s})
        time.sleep(0.005)
    return 7
sys.exit(keep("worker", work))
"""


@pytest.fixture
def start(python_of):
    def started(
        body="pass", outlives=False, silent_s=0.0, spins=False, before="", stderr=subprocess.PIPE
    ):
        program = PROGRAM.format(
            body=body, outlives=outlives, silent_s=silent_s, spins=spins, before=before
        )
        return python_of(program, stderr=stderr)

    return started


def said(process):
    role, pid, proven = process.stdout.readline().split()
    return role, int(pid), proven == "1"


def ended(process):
    """Ask it to end, which it does with its worker's exit code; what it has said."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 7
    return process.stderr.read() if process.stderr else ""


def gone(pid):
    return until(lambda: not alive(pid))


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
    lines = ended(process)
    assert gone(active) and gone(reserve) and lines.count("the reserve takes over") == 3


@pytest.mark.parametrize(("silent_s", "number"), [(0.0, signal.SIGKILL), (0.06, signal.SIGSTOP)])
def test_a_reserve_that_is_killed_or_hangs_is_replaced_while_the_active_one_works(
    start, silent_s, number
):
    process = start(silent_s=silent_s)
    (_, active, _), (_, reserve, _) = said(process), said(process)
    time.sleep(0.2)
    os.kill(reserve, number)
    role, other, _ = said(process)
    assert role == "reserve" and gone(reserve) and alive(active) and alive(other)


def test_reserves_that_die_at_their_start_are_tried_again_later(start):
    """A lack of memory for seconds: without another try the next death left the robot to the last torque."""
    with tempfile.NamedTemporaryFile(delete=False) as lack:
        before = (
            "import contact_id_controller.ros.keeper as keeper\n"
            "keeper._LATER_S, called = 1.0, keeper.Worker.is_called\n"
            "def is_called(self, patience_s):\n"
            f"    if os.path.exists({lack.name!r}):\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "    return called(self, patience_s)\n"
            "keeper.Worker.is_called = is_called\n"
        )
        process = start(before=before)
    said(process)
    dead = [said(process)[1] for _ in range(5)]
    assert len(set(dead)) == 5 and gone(dead[-1])
    os.unlink(lack.name)
    role, reserve, _ = said(process)
    assert role == "reserve" and reserve not in dead
    time.sleep(0.3)
    assert alive(reserve)
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "5 reserves died at their start, the next in 1 s" in errors


def test_both_killed_at_once_are_followed_by_new_ones(start):
    process = start()
    (_, active, _), (_, reserve, _) = said(process), said(process)
    process.send_signal(signal.SIGSTOP)  # it hears of both at once
    assert until(lambda: state_of(process.pid) == "T")
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
    assert process.wait(PATIENCE_S) == 3
    assert process.stdout.read().count("active") == 1


def test_what_is_killed_at_each_start_is_given_up(start):
    process = start("os.kill(os.getpid(), signal.SIGKILL)")
    assert process.wait(PATIENCE_S) == 128 + signal.SIGKILL
    assert process.stdout.read().count("active") == 5
    assert "killed 5 times at its start" in process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGINT])
def test_every_signal_that_asks_to_end_reaches_the_worker(start, number):
    process = start(f"signal.signal({int(number)}, lambda *_: ending.append(1))")
    said(process)
    role, _, _ = said(process)
    assert role == "reserve", "the first is ready"
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 7, "asked to end, not killed: it had its last word"


def test_a_worker_that_breaks_while_it_works_is_followed_by_the_reserve(start):
    process = start(
        "if role == 'active': broken = worker.ready; worker.ready = lambda wants: "
        "(broken(wants), time.sleep(1.5), sys.exit('broken'))"
    )
    _, active, _ = said(process)
    _, reserve, _ = said(process)
    assert said(process) == ("called", reserve, True) and gone(active)
    assert "ended with code 1, the reserve takes over" in ended(process)


def test_a_worker_that_hangs_is_killed_and_followed(start):
    """Its last torque was held for as long as it was stopped."""
    process = start(silent_s=0.06)
    (_, active, _), (_, reserve, _) = said(process), said(process)
    time.sleep(0.2)
    os.kill(active, signal.SIGSTOP)
    assert said(process) == ("called", reserve, True) and gone(active)
    role, other, _ = said(process)
    assert role == "reserve" and alive(reserve) and alive(other)
    lines = ended(process)
    assert f"process {active} has been silent" in lines and lines.count("silent") == 1


def test_a_worker_that_turns_round_and_round_is_killed_and_followed(start):
    process = start(silent_s=0.06, spins="role == 'active'")
    (_, active, _), (_, reserve, _) = said(process), said(process)
    assert said(process) == ("called", reserve, True) and gone(active)
    assert f"process {active} has been silent" in ended(process)


def test_a_reserve_that_hangs_when_it_is_called_is_followed(start):
    process = start(silent_s=0.06)
    (_, active, _), (_, reserve, _) = said(process), said(process)
    time.sleep(0.2)
    os.kill(reserve, signal.SIGSTOP)
    os.kill(active, signal.SIGKILL)
    (role, other, _), (standing_by, _, _) = said(process), said(process)
    assert (role, standing_by) == ("active", "reserve") and gone(reserve) and alive(other)


def test_who_was_suspended_with_its_keeper_does_not_hang(start):
    process = start(silent_s=0.06)
    (_, active, _), (_, reserve, _) = said(process), said(process)
    time.sleep(0.2)
    pids = active, reserve, process.pid
    for _ in range(2):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5)
        for pid in reversed(pids):  # the keeper wakes first
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)
    time.sleep(0.5)
    assert alive(active) and alive(reserve)
    assert "silent" not in ended(process)


def test_who_waits_for_a_core_does_not_hang(start):
    core = min(os.sched_getaffinity(0))
    code = f"import os, time; os.sched_setaffinity(0, [{core}]); end = time.time() + 60\n"
    code += "while time.time() < end: pass"
    process = start(silent_s=0.02)
    (_, active, _), (_, reserve, _) = said(process), said(process)
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    try:
        for pid in (active, reserve):
            os.sched_setaffinity(pid, [core])
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        time.sleep(3.0)
        assert alive(active) and alive(reserve)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    for pid in (active, reserve):  # they end in time wherever somebody else computes
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(pid, os.sched_getaffinity(0))
    assert "silent" not in ended(process)


@pytest.mark.parametrize("place", ["full", "closed"])
def test_a_keeper_whose_lines_nobody_takes_goes_on(start, place):
    """It died of its own line on a full disk: the second kill left the last torque to the end."""
    if place == "full":
        with open("/dev/full", "w") as file:
            process = start(stderr=file)
    else:
        process = start()
        process.stderr.close()
        process.stderr = None
    _, active, _ = said(process)
    for _ in range(3):
        _, reserve, _ = said(process)
        time.sleep(0.05)
        os.kill(active, signal.SIGKILL)
        assert said(process) == ("called", reserve, True)
        active = reserve
    assert said(process)[0] == "reserve"
    ended(process)


FAILS = """
forks, fork = [], os.fork
def failing():
    forks.append(1)
    if len(forks) in {fails}:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()
os.fork = failing
"""


@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_fork_that_fails_is_tried_again(start, first):
    process = start(before=FAILS.format(fails=set(range(first, first + 3))))
    (_, active, _), (_, reserve, _) = said(process), said(process)
    time.sleep(0.05)
    os.kill(active, signal.SIGKILL)
    assert said(process) == ("called", reserve, True)
    role, other, _ = said(process)
    assert role == "reserve" and alive(reserve) and alive(other)
    assert ended(process).count("cannot start another process") == 1


def test_without_a_reserve_a_fork_that_fails_is_tried_again(start):
    process = start(
        "ready = worker.ready; worker.ready = lambda wants: ready(False)",
        before=FAILS.format(fails={2, 3, 4}),
    )
    _, active, _ = said(process)
    time.sleep(0.05)
    os.kill(active, signal.SIGKILL)
    role, other, _ = said(process)
    assert role == "active" and alive(other)
    ended(process)
