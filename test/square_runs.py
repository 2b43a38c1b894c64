"""Runs of an experiment for tests: quick, countable, and able to fail. Loaded by worker processes."""

import os
import signal
import time
from pathlib import Path

from experiments.papers.store import RunDescription

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def square(description):
    """Counts itself in a folder, then does what its parameters say."""
    given = description.parameters
    folder = Path(given["folder"])
    (folder / f"{given['x']}_{os.getpid()}_{time.monotonic_ns()}").touch()
    if given.get("fails"):
        raise ValueError(f"no square of {given['x']}")
    if given.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(given.get("sleep_s", 0.0))
    until = time.monotonic() + 120.0
    while given.get("waits_for_another") and time.monotonic() < until:
        if len({path.name.split("_")[1] for path in folder.iterdir()}) > 1:
            break
        time.sleep(0.02)
    return {
        "square": given["x"] ** 2,
        "pid": os.getpid(),
        "threads": [os.environ.get(name) for name in THREADS],
    }


def describe(folder, x, **more):
    return RunDescription("square", {"folder": str(folder), "x": x, **more})


def tasks(folder, count, alone=False, **more):
    return [(square, describe(folder, x, **more), alone) for x in range(count)]


def times_done(folder):
    """How often each x was begun."""
    names = [path.name.split("_")[0] for path in folder.iterdir() if path.is_file()]
    return {int(x): names.count(x) for x in set(names)}


def fingerprint_of_the_process():
    """Another one in every process."""
    return str(os.getpid())
