"""Walks in real time, again and again: how many fall, and how late the computer was in each.

    python benchmarks/real_time_walks.py --runs 10 --seconds 300 --rt-priority 70
    python benchmarks/real_time_walks.py --runs 10 --seconds 300 --rt-priority 70 --load 2 \\
        --set command_interface=joint_trajectory

Each run is the three processes of `contact_id demo --robot quadruped --mode real_time`. With ``--load N``,
N processes that compute run beside them. A row is printed as soon as its run is over. Ends with 1 where
one fell. Measured: docs/real_time_runs.md.

On each core a process that may go before all others (SCHED_FIFO 99) only waits, and says how late it was
woken at the latest: so long nobody ran there, because the kernel held real-time threads or the machine
that this one is a guest of stood still.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from ctypes import c_double as SharedFloat
from pathlib import Path

import numpy as np
from node_step import CONTROLLER, PLANNER, SIMULATION, in_node

from contact_id_controller.exceptions import RunError
from contact_id_controller.runs.ros_run import LOGS

NODES = CONTROLLER, SIMULATION, PLANNER
COLUMNS = (
    "begun, UTC",
    "walked, s",
    "joint error, rad",
    "state to command, µs: median, p99.9",
    "periods missed, %",
    "states unanswered, %",
    "periods the simulation was late",
    "% of a core: controller, simulated robot, planner",
    "memory grown, MB: the same",
    "nobody ran for, ms: each core",
    "load before, after",
)
LAST_LINES = 25
WATCH_PRIORITY, WATCH_S = 99, 0.002


def compute(others: np.ndarray) -> None:
    """Arithmetic and memory, until the process that began it is gone."""
    parent = os.getppid()
    while os.getppid() == parent:
        others = np.sort(others[::-1] * 1.000001)


@contextlib.contextmanager
def load(number: int) -> Iterator[None]:
    """So many processes that compute, at the ordinary priority."""
    make = multiprocessing.get_context("spawn").Process
    numbers = np.linspace(0.0, 1.0, 200_000)
    beside = [make(target=compute, args=(numbers,), daemon=True) for _ in range(number)]
    for process in beside:
        process.start()
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.join()


def watch(core: int, longest_s: SharedFloat) -> None:
    """Keep how late this process was woken on a core at the latest, until its parent is gone."""
    try:
        os.sched_setaffinity(0, [core])
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(WATCH_PRIORITY))
    except OSError:
        return  # an ordinary process would see others run before it
    parent, longest_s.value = os.getppid(), 0.0
    while os.getppid() == parent:
        due = time.monotonic() + WATCH_S
        time.sleep(WATCH_S)
        longest_s.value = max(longest_s.value, time.monotonic() - due)


@contextlib.contextmanager
def watched() -> Iterator[list[SharedFloat]]:
    """How long nobody ran on each core, s."""
    context = multiprocessing.get_context("spawn")
    cores = sorted(os.sched_getaffinity(0))
    longest_s = [context.Value("d", math.nan, lock=False) for _ in cores]
    watching = [
        context.Process(target=watch, args=each, daemon=True) for each in zip(cores, longest_s)
    ]
    for process in watching:
        process.start()
    try:
        yield longest_s
    finally:
        for process in watching:
            process.kill()
            process.join()


def tell_logs(folder: Path) -> None:
    """The last words of each process, to stderr."""
    for log in sorted((folder / LOGS).glob("*")):
        if log.is_file():
            lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
            print(f"{log.name}:", *lines, sep="\n  ", file=sys.stderr)


def row(seconds: float, **choices) -> tuple[list[str], bool]:
    """The cells of one run, and whether it fell."""
    begun, before = datetime.datetime.now(datetime.timezone.utc), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, watched() as longest_s:
        try:
            node = in_node(seconds, Path(folder), **choices)
        except RunError as error:  # such as a simulation that diverged
            tell_logs(Path(folder))
            cells = [""] * len(COLUMNS)
            cells[:2] = f"{begun:%m-%d %H:%M}", f"**{str(error).splitlines()[0]}**"
            return cells, True
        if node.fell_s is not None:
            tell_logs(Path(folder))
    median, late = 1e6 * np.percentile(node.steps_s, (50.0, 99.9))
    fell = node.fell_s is not None
    cells = [
        f"{begun:%m-%d %H:%M}",
        f"**fell at {node.fell_s:.1f}**" if fell else f"{seconds:g}",
        f"{node.error_rad:.4f}",
        f"{median:.0f}, {late:.0f}",
        f"{100.0 * node.missed:.3f}",
        f"{100.0 * node.unanswered:.3f}",
        f"{node.late_periods}",
        ", ".join(f"{100.0 * node.shares[name]:.0f}" for name in NODES),
        ", ".join(f"{node.grown_mb[name]:.1f}" for name in NODES),
        ", ".join(f"{1e3 * each.value:.0f}" for each in longest_s),
        f"{before:.1f}, {os.getloadavg()[0]:.1f}",
    ]
    return cells, fell


def main() -> int:
    """Print the table row by row; 1 where a walk fell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=300.0, help="of each walk")
    parser.add_argument("--load", type=int, default=0, help="processes that compute beside it")
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="NAME=VALUE")
    parser.add_argument("--rt-priority", default="0", metavar="N", help="as of contact_id demo")
    parser.add_argument("--cpus", action="append", default=[], metavar="[NODE=]LIST")
    given = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    falls = 0
    with load(given.load):
        for _ in range(given.runs):
            cells, fell = row(
                given.seconds,
                changes=given.changes,
                rt_priority=given.rt_priority,
                cpus=given.cpus,
            )
            falls += fell
            print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{given.runs - falls} of {given.runs} did not fall")
    return int(falls > 0)


if __name__ == "__main__":
    sys.exit(main())
