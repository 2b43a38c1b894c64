"""What is compiled is told while it goes, and never without need."""

import os
import subprocess
import sys
import time

import pytest
from paths import ROOT

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.compile_progress import SIGN, Compiling
from contact_id_controller.runs.precompile import compile_for

KERNELS = """
import numpy as np
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.compile_progress import Compiling

@kernel
def inner(x):
    return np.sin(x) + 1.0

@kernel
def outer(x):
    return 2.0 * inner(x)

with Compiling(print) as compiling:
    assert outer(0.5) == 2.0 * (np.sin(0.5) + 1.0)
print("kernels", compiling.kernels)
"""


def test_kernels_are_counted_once_and_not_when_they_come_from_the_cache(tmp_path):
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS)
    environment = dict(os.environ, PYTHONPATH=str(ROOT), NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    environment.pop("NUMBA_DISABLE_JIT", None)
    told = [
        subprocess.run(
            [sys.executable, str(file)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert told[0][-1] == "kernels 2" and told[1] == ["kernels 0"]
    (line,) = told[0][:-1]
    assert line.startswith(SIGN + "2 kernels in ") and "come from the cache" in line


def test_long_compiling_is_told_as_it_goes_and_silence_is_kept_where_nothing_is(monkeypatch):
    from numba.core import event

    lines = []
    with Compiling(lines.append, every_s=0.01) as compiling:
        time.sleep(0.05)
        assert lines == []
        for _ in range(3):
            with event.trigger_event("numba:compile"):
                time.sleep(0.05)
    assert compiling.kernels == 3
    assert len(lines) > 4 and all(line.startswith(SIGN) for line in lines)
    assert "0 kernels in" in lines[0] and lines[-1].endswith("from now on they come from the cache")
    count = len(lines)
    with event.trigger_event("numba:compile"):
        time.sleep(0.05)
    assert len(lines) == count  # outside nobody listens


def test_a_file_without_nodes_is_refused(tmp_path):
    file = tmp_path / "nothing.yaml"
    file.write_text("watchdog:\n  ros__parameters: {a: 1}\n")
    with pytest.raises(ConfigurationError, match="no section of a node that compiles"):
        compile_for(file, print)


def test_the_command_leaves_nothing_to_compile():
    """Whatever is in the cache: after it, a second process compiles no kernel."""
    pytest.importorskip("rclpy", reason="the nodes' own kernels need ROS 2")
    words = [sys.executable, "-m", "contact_id_controller", "compile", "--robot", "quadruped"]
    told = [
        subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        for _ in range(2)
    ][-1]
    assert told.stdout == "nothing to compile: all is in the cache\n"
    assert "controller: ready" in told.stderr and "gait_planner: ready" in told.stderr
