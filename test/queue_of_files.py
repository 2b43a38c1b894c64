"""Plugin of pytest: the queue of files of `make test`, and what becomes of it when a process dies."""

import contextlib
from pathlib import PurePath

import pytest

IN_REAL_TIME = (
    "test_faults.py",
    "test_ros2_control_processes.py",
    "test_ros2_control_plugin.py",
    "test_ros2_control_linear_feedback.py",
    "test_command_watchdog_node.py",
    "test_watchdog_commanders_node.py",
)
"""Several processes that answer each other within milliseconds: one after another, or two of them fail each other."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files go to whichever process is free, those in real time all to one.

    A test in which a process died has failed and is not run again; the rest of its file is. pytest-xdist 3.8 would run
    it in each new process until there may be no more, and waits for ever where a new process is given a file that is
    done, or one test alone.
    """
    from xdist.scheduler import LoadFileScheduling

    class Queue(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "in real time" if PurePath(file).name in IN_REAL_TIME else file

        def _assign_work_unit(self, node):
            # What a process that has just died was given comes back with its end.
            with contextlib.suppress(OSError):
                super()._assign_work_unit(node)

        def _reschedule(self, node):
            if node not in self.registered_collections:
                return
            # A process begins a test when it knows the next one.
            while (
                self.workqueue
                and not node.shutting_down
                and self._pending_of(self.assigned_work[node]) <= 2
            ):
                self._assign_work_unit(node)
            super()._reschedule(node)

        def remove_node(self, node):
            left = {
                file: tests
                for file, tests in self.assigned_work.pop(node).items()
                if not all(tests.values())
            }
            if not left:
                return None
            tests = next(iter(left.values()))
            died = next(test for test, done in tests.items() if not done)
            tests[died] = True
            self.workqueue.update(
                {file: tests for file, tests in left.items() if not all(tests.values())}
            )
            for other in self.nodes:
                self._reschedule(other)
            return died

    return Queue(config, log) if config.getvalue("dist") == "loadfile" else None
