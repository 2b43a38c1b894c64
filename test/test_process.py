"""Signals end a process in order, wherever they meet it."""

import os
import signal
import subprocess
import sys
import time

import pytest
from paths import ROOT

pytest.importorskip("rclpy", reason="needs ROS 2")


PATIENCE_S = 30.0
NODE = """
import sys, time
from rclpy.node import Node
from std_msgs.msg import String
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.ros.direct_loop import take_newest
from contact_id_controller.ros.process import run_node

LONG_S = 60.0

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
    subscription = node.create_subscription(String, "words", print, 1)
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
def probe(tmp_path):
    """Starts the node above in a process of its own."""
    environment = dict(
        os.environ,
        PYTHONPATH=str(ROOT),
        ROS_LOG_DIR=str(tmp_path),
    )
    started = []

    def start(*arguments, **options):
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", NODE, *arguments],
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                **options,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def _ignore_signals():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.parametrize("arguments", [(), ("work",)], ids=["serving", "working"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once_with_code_0_and_without_a_word(probe, number, arguments):
    process = probe(*arguments, preexec_fn=_ignore_signals)
    assert process.stdout.readline() == "ready\n", process.communicate()
    start = time.monotonic()
    process.send_signal(number)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (0, "", "")
    assert time.monotonic() - start < PATIENCE_S


def test_an_error_of_ours_is_one_line_and_code_1(probe):
    process = probe("refuse")
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (1, "", "probe: a bad parameter\n")
