"""Plugin of pytest: what becomes of the queue of files when a process of `make test` dies."""

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem, sched):
    """A test in which a process died has failed and is not run again; the rest of its file is.

    pytest-xdist would run it in each new process, until there may be no more and all the rest is left out.
    """
    for tests in getattr(sched, "workqueue", {}).values():
        if crashitem in tests:
            tests[crashitem] = True
