"""Plugin of pytest: the queue of files of `make test`, and what becomes of it when a process dies."""

from pathlib import PurePath

import pytest

IN_REAL_TIME = (
    "test_faults.py",
    "test_ros2_control_processes.py",
    "test_ros2_control_plugin.py",
    "test_command_watchdog_node.py",
    "test_watchdog_commanders_node.py",
)
"""Several processes that answer each other within milliseconds: one after another, or two of them fail each other."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files go to whichever process is free, those in real time all to one."""
    from xdist.scheduler import LoadFileScheduling

    class Queue(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "in real time" if PurePath(file).name in IN_REAL_TIME else file

    return Queue(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem, sched):
    """A test in which a process died has failed and is not run again; the rest of its file is.

    pytest-xdist would run it in each new process, until there may be no more and all the rest is left out.
    """
    for tests in getattr(sched, "workqueue", {}).values():
        if crashitem in tests:
            tests[crashitem] = True
