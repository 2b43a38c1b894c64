"""Signals end a process in order, wherever they meet it."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from waiting import until

pytest.importorskip("rclpy", reason="needs ROS 2")


from contact_id_controller.ros.signals import ENDING
from experiments.faults.nodes import FAIL, RAISE, STALL

PATIENCE_S = 120.0
"""A node takes 15 s until it answers where its two cores have seven others."""
NODE = """
import os, sys, time
from rclpy.node import Node
from std_msgs.msg import String
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.ros.direct_loop import take_newest
from contact_id_controller.ros.process import run_node

LONG_S = 300.0

def make(interrupt):
    node = Node("probe")
    if "refuse" in sys.argv:
        raise ConfigurationError("a bad parameter")
    if "work" in sys.argv:
        with interrupt.leaving_at_once(node):
            print("ready", flush=True)
            time.sleep(LONG_S)
    return node

def serve(node, interrupt):
    if "profile" in sys.argv:
        print(os.environ["FASTDDS_DEFAULT_PROFILES_FILE"], flush=True)
    subscription = node.create_subscription(String, "words", print, 1)
    if "talk" in sys.argv:
        for number in range(1500):
            node.get_logger().warning(f"line {number} " + 1000 * "x")
            print("printed", number, 1000 * "x", file=sys.stderr)
        open(os.environ["ROS_LOG_DIR"] + "/done", "x")
    if "break" in sys.argv:
        raise RuntimeError("broken")
    if "abort" in sys.argv:
        print("its last line", file=sys.stderr)
        os.kill(os.getpid(), 9)
    print("ready", flush=True)
    end = time.monotonic() + LONG_S
    while not interrupt.requested and time.monotonic() < end:
        # Nearly all of the time in conversions between Python and C++.
        take_newest(subscription)
    node.create_publisher(String, "words", 1).publish(String(data="the last word"))
    return 0

sys.exit(run_node("probe", make, serve))
"""


@pytest.fixture
def probe(python_of, tmp_path):
    """Starts the node above in a process of its own."""

    def start(*arguments, log=tmp_path, **options):
        environment = {"ROS_LOG_DIR": str(log)}
        options = {"stderr": subprocess.PIPE, **options}
        return python_of(NODE, *arguments, environment=environment, **options)

    return start


ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]


def _ignore_signals():
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.parametrize("arguments", [(), ("work",)], ids=["serving", "working"])
@pytest.mark.parametrize("number", [*ENDS, signal.SIGHUP])
def test_a_signal_ends_it_at_once_with_code_0_and_without_a_word(probe, number, arguments):
    """A lost connection is SIGHUP: without the last word of the node its last torque stayed."""
    process = probe(*arguments, preexec_fn=_ignore_signals)
    assert process.stdout.readline() == "ready\n", process.communicate()
    start = time.monotonic()
    process.send_signal(number)
    output, errors = process.communicate(timeout=3.0 * PATIENCE_S)  # it still has to import
    assert (process.returncode, output, errors) == (0, "", "")
    assert time.monotonic() - start < PATIENCE_S


def _no_hang_up():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_nohup_means_what_it_says(probe):
    process = probe(preexec_fn=_no_hang_up)
    assert process.stdout.readline() == "ready\n", process.communicate()
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_no_terminal_suspends_it(probe):
    process = probe()
    assert process.stdout.readline() == "ready\n", process.communicate()
    for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        process.send_signal(number)
    time.sleep(0.2)
    with open(f"/proc/{process.pid}/stat") as file:
        assert file.read().rpartition(")")[2].split()[0] in "RS"


def test_a_log_folder_that_cannot_be_written_ends_nothing(probe):
    process = probe(log="/dev/null/log")
    assert process.stdout.readline() == "ready\n", process.communicate()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    (line,) = errors.splitlines()
    assert process.returncode == 0 and "/dev/null/log" in line and "no log file" in line


def test_output_that_nobody_reads_keeps_no_node_waiting(probe, tmp_path):
    """One line in the loop blocked on a terminal after Ctrl-S, with the torque on."""
    process = probe("talk")
    assert until(lambda: (tmp_path / "done").exists()), "it waits for a reader"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and output == "ready\n"
    lines = errors.splitlines()
    dropped = sum(
        int(line.split()[1]) for line in lines if line.endswith("not written in time ...")
    )
    assert "line 0 " in errors and 0 < dropped <= 3000 - len(lines) + 10


def test_a_node_ends_though_nobody_reads_its_last_words(probe, tmp_path):
    process = probe("talk")
    assert until(lambda: (tmp_path / "done").exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_the_log_file_has_what_a_node_prints_and_no_node_writes_it(probe, tmp_path):
    process = probe()
    assert process.stdout.readline() == "ready\n", process.communicate()
    (log,) = tmp_path.glob("probe_*.log")
    assert until(lambda: log.read_text() == "ready\n")
    opened = [os.path.realpath(each) for each in Path(f"/proc/{process.pid}/fd").iterdir()]
    assert not [each for each in opened if each.startswith(str(tmp_path))]


@pytest.mark.parametrize(
    "way, words", [("break", "RuntimeError: broken"), ("abort", "its last line")]
)
def test_the_last_words_of_a_node_that_breaks_are_not_lost(probe, way, words):
    _, errors = probe(way).communicate(timeout=PATIENCE_S)
    assert words in errors


@pytest.mark.parametrize("own", ["", "mine.xml"])
@pytest.mark.parametrize("where", ["LOCALHOST", "SUBNET"])
def test_lost_messages_are_asked_for_soon_unless_a_profile_says_else(
    probe, monkeypatch, where, own
):
    """Fast DDS asks each 3 s by default: an emergency stop of 20 in a flood took 3.0 s."""
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", where)
    monkeypatch.delenv("ROS_DISTRO", raising=False)
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    if own:
        monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", own)
    process = probe("profile")
    profile = process.stdout.readline().strip()
    assert profile == own if own else "<nanosec>20000000</nanosec>" in Path(profile).read_text()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert own or not errors, "the middleware takes it"


EARLY = """
import sys, time
from contact_id_controller.ros import executables

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "rclpy":
            print("ready", flush=True)
            time.sleep(60.0)

sys.meta_path.insert(0, Slow())
sys.exit(executables.controller())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_loads_is_no_traceback(python_of, number):
    process = python_of(EARLY, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    output, errors = process.communicate(timeout=3.0 * PATIENCE_S)  # it still has to import
    assert (process.returncode, output, errors) == (0, "", "")


def test_an_error_of_ours_is_one_line_and_code_1(probe):
    process = probe("refuse")
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (1, "", "probe: a bad parameter\n")


def test_words_that_ros_cannot_read_are_one_line_and_code_1(probe):
    process = probe("--ros-args", "--params-file", "nowhere.yaml")
    _, error = process.communicate(timeout=PATIENCE_S)
    told = error.splitlines()[-1]  # behind a line of ROS
    assert process.returncode == 1 and told.startswith("probe: ") and "nowhere.yaml" in told, error
    assert "Traceback" not in error


def test_no_signal_of_the_fault_campaign_asks_a_node_to_end():
    """It tells a controller by signals that its solver shall fail."""
    assert not {FAIL, RAISE, STALL} & set(ENDING)
