"""Priority, cores and memory of a node's process: what is asked for, and what the system refuses."""

import argparse
import gc
import os
import subprocess
import sys

import pytest

from contact_id_controller.commands import demo
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.ros import scheduling
from contact_id_controller.ros.scheduling import Process, Scheduling, cores, from_command_line
from contact_id_controller.runs.setup import make_setup


@pytest.fixture(autouse=True)
def unfrozen():
    yield
    gc.unfreeze()


def test_cores_are_numbers_and_ranges():
    assert cores("1") == (1,) and cores("3,0-1") == (0, 1, 3)
    for text in ("", "a", "2-1", "-1", "1,,2"):
        with pytest.raises(ConfigurationError, match="cpus is"):
            cores(text)


def test_words_before_the_ros_arguments_are_ours():
    words = ["--rt-priority", "80", "--cpus", "0-1", "--ros-args", "-p", "cpus:=5"]
    asked, rest = from_command_line(words)
    assert asked == Scheduling(80, (0, 1)) and rest == words[4:]
    assert from_command_line([*asked.words(), *rest]) == (asked, rest)
    assert from_command_line(["--ros-args", "--rt-priority", "5"])[0] == Scheduling()
    for wrong in ("100", "-1", "high"):
        with pytest.raises(ConfigurationError, match=r"rt-priority.*0 to 99|expected one argument"):
            from_command_line([f"--rt-priority={wrong}"])


def test_what_the_system_refuses_is_said_once_and_the_process_goes_on(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    monkeypatch.setattr(scheduling, "_lock_memory", refuse)
    lines = []
    process = Process(Scheduling(80, (0,)))
    process.settle(lines.append)
    assert [line.split(" is refused")[0] for line in lines] == [
        "--cpus 0",
        "memory that stays",
        "--rt-priority 80",
    ]
    assert all("docs/real_time.md" in line for line in lines)
    process.unsettle()


@pytest.mark.parametrize(
    ("period", "runtime", "pause_ms"),
    [("1000000", "950000", 50), ("100000", "95000", None), ("1000000", "-1", None), ("", "", None)],
)
def test_long_pauses_of_the_kernel_are_told_once(monkeypatch, tmp_path, period, runtime, pause_ms):
    (tmp_path / "sched_rt_period_us").write_text(f"{period}\n")
    (tmp_path / "sched_rt_runtime_us").write_text(f"{runtime}\n")
    monkeypatch.setattr(scheduling, "LIMITS", tmp_path)
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: None)
    monkeypatch.setattr(scheduling, "_lock_memory", lambda: None)
    lines = []
    process = Process(Scheduling(80))
    for _ in range(2):
        process.settle(lines.append)
        process.unsettle()
    assert len(lines) == (pause_ms is not None)
    for line in lines:
        assert f"for {pause_ms} ms" in line and "docs/real_time.md" in line
    monkeypatch.setattr(scheduling, "LIMITS", tmp_path / "nowhere")
    assert scheduling.longest_pause_s() == 0.0


def test_nothing_is_touched_unless_asked_for(monkeypatch):
    def fail(*_):
        raise AssertionError

    for name in ("sched_setscheduler", "sched_setaffinity"):
        monkeypatch.setattr(os, name, fail)
    monkeypatch.setattr(scheduling, "_lock_memory", fail)
    process = Process(Scheduling())
    process.settle(fail)
    process.unsettle()


SCRIPT = """
import os, threading
from pathlib import Path
from contact_id_controller.ros.scheduling import Process, Scheduling
core = min(os.sched_getaffinity(0))
process = Process(Scheduling(7, (core,)))
begin, end = threading.Event(), threading.Event()
early = threading.Thread(target=end.wait)
early.start()
policies = lambda: {os.sched_getscheduler(int(t.name)) for t in Path("/proc/self/task").iterdir()}
process.settle(lambda line: print("refused", line) if "is refused" in line else None)
late = threading.Thread(target=end.wait)
late.start()
print(os.sched_getaffinity(0) == {core}, policies() == {os.SCHED_FIFO}, len(os.listdir("/proc/self/task")))
process.unsettle()
print(policies() == {os.SCHED_OTHER})
end.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="priorities and cores as Linux has them")
def test_every_thread_takes_the_priority_and_gives_it_back():
    """The threads of the middleware too: left behind, they would starve the node of its messages."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    if lines[0].startswith("refused"):  # an ordinary user: said, and gone on
        assert "docs/real_time.md" in lines[0]
        return
    assert lines[0].startswith("True True") and int(lines[0].split()[-1]) >= 3
    assert lines[-1] == "True"


@pytest.mark.parametrize("allowed", [True, False])
def test_a_demo_in_real_time_goes_first_where_that_is_allowed(monkeypatch, capsys, allowed):
    before, made = os.sched_getscheduler(0), []

    def refuse(*arguments):
        made.append(arguments)
        if not allowed:
            raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    for words, number in (
        ([], 0),
        (["--mode", "real_time"], demo.REAL_TIME_PRIORITY if allowed else 0),
        (["--mode", "real_time", "--rt-priority", "0"], 0),
        (["--mode", "real_time", "--rt-priority", "60"], 60),
    ):
        parser = argparse.ArgumentParser()
        demo.add_arguments(parser)
        runs = demo.planned(parser.parse_args(["--robot", "quadruped", *words]))
        assert [int(choices["rt_priority"]) for _, choices in runs] == [number]
    assert ("at an ordinary priority" in capsys.readouterr().err) == (not allowed)
    if allowed:
        assert [policy for _, policy, _ in made] == [os.SCHED_FIFO, before], "given back"


def test_a_demo_hands_it_to_its_nodes(tmp_path):
    setup = make_setup(tmp_path, robot="quadruped", rt_priority="60", cpus=["0", "controller=1"])
    assert setup.scheduling == {
        "controller": Scheduling(60, (1,)),
        "simulated_robot": Scheduling(58, (0,)),
        "gait_planner": Scheduling(59, (0,)),
    }
    for asked, given in (("0", {0}), ("1", {1}), ("2", {1, 2})):
        lowest = make_setup(tmp_path, robot="quadruped", rt_priority=asked).scheduling
        assert {each.priority for each in lowest.values()} == given
    command = setup.command(tmp_path)
    assert "--rt-priority 60" in command and "--cpus controller=1" in command
    assert "--cpus" not in make_setup(tmp_path, robot="quadruped").command(tmp_path)
    with pytest.raises(ConfigurationError, match="names no node.*controller"):
        make_setup(tmp_path, robot="quadruped", cpus=["magic=1"])
