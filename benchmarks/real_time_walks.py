"""Walks in real time, again and again: how many fall, and how late the computer was in each.

    python benchmarks/real_time_walks.py --runs 10 --seconds 60 --rt-priority 70 --state estimated \\
        --robot quadruped solo12 go2 anymal_c --sensors good motor_currents
    python benchmarks/real_time_walks.py --runs 10 --seconds 60 --rt-priority 70 --state estimated \\
        --robot quadruped solo12 go2 anymal_c --sensors good motor_currents \\
        --load 2 --set command_interface=joint_trajectory
    python benchmarks/real_time_walks.py --runs 10 --seconds 10 --rt-priority 70 --state estimated \\
        --robot config/plans/talos.yaml

Each run is the processes of `contact_id demo --mode real_time`. With ``--state estimated`` each robot with each
sensors walks in lockstep once, first: joint error and drift of the others are also given as multiples of those
of that walk. With ``--load N``, N processes that compute run beside them. A row is printed as soon as its run is
over. Ends with 1 where one fell. Measured: results/real_time_runs.md.

On each core a process that may go before all others (SCHED_FIFO 99) only waits, and says how late it was
woken at the latest: so long nobody ran there, because the kernel held real-time threads or the machine
that this one is a guest of stood still.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from ctypes import c_double as SharedFloat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from node_step import MU, Node, in_node

from contact_id_controller.exceptions import RunError
from contact_id_controller.runs.ros_run import LOGS
from contact_id_controller.runs.setup import (
    SENSORS,
    STATES,
)
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR

COLUMNS = (
    "begun, UTC",
    "robot, sensors",
    "walked, s",
    "joint error, rad",
    "drift, m",
    "state to command, µs: median, p99.9",
    "periods missed, %",
    "states unanswered, %",
    "periods the simulation was late",
    "% of a core",
    "memory grown, MB",
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


class Walk(NamedTuple):
    """One row: its cells, and the walk itself; None: it broke down."""

    cells: list[str]
    node: Node | None

    @property
    def fell(self) -> bool:
        """Whether the robot did not stay on its feet."""
        return self.node is None or self.node.fell_s is not None


def with_ratio(value: float, reference: float | None, digits: int) -> str:
    """A figure, and in brackets as a multiple of that of the walk in lockstep."""
    ratio = f" ({value / max(reference, 1e-9):.2f})" if reference is not None else ""
    return f"{value:.{digits}f}{ratio}"


def walk(title: str, seconds: float, reference: Node | None, **choices) -> Walk:
    """One run."""
    begun, before = datetime.datetime.now(datetime.timezone.utc), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, watched() as longest_s:
        try:
            node = in_node(seconds, Path(folder), **choices)
        except RunError as error:  # such as a simulation that diverged
            tell_logs(Path(folder))
            cells = [""] * len(COLUMNS)
            cells[:3] = f"{begun:%m-%d %H:%M}", title, f"**{str(error).splitlines()[0]}**"
            return Walk(cells, None)
        if node.fell_s is not None:
            tell_logs(Path(folder))
    median, late = 1e6 * np.percentile(node.steps_s, (50.0, 99.9))
    drift_m = None if reference is None else reference.drift_m
    cells = [
        f"{begun:%m-%d %H:%M}",
        title,
        f"**fell at {node.fell_s:.1f}**" if node.fell_s is not None else f"{seconds:g}",
        with_ratio(node.error_rad, reference and reference.error_rad, 4),
        "" if node.drift_m is None else with_ratio(node.drift_m, drift_m, 4),
        f"{median:.0f}, {late:.0f}",
        f"{100.0 * node.missed:.3f}",
        f"{100.0 * node.unanswered:.3f}",
        f"{node.late_periods}",
        ", ".join(f"{name} {100.0 * share:.0f}" for name, share in node.shares.items()),
        ", ".join(f"{size:.1f}" for size in node.grown_mb.values()),
        ", ".join(f"{1e3 * each.value:.0f}" for each in longest_s),
        f"{before:.1f}, {os.getloadavg()[0]:.1f}",
    ]
    return Walk(cells, node)


def show(cells: Sequence[str]) -> None:
    """Print a row of the table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def chosen(robot: str) -> dict[str, Any]:
    """A robot, by its name or its file, as `make_setup` takes it; a file has its own friction."""
    if robot.endswith(".yaml"):
        return {"robot": Path(robot).stem, "config": Path(robot), "mu": None}
    return {"robot": robot, "mu": MU}


def judged(walks: Sequence[Walk], reference: Node | None) -> str:
    """One line about all walks of a robot with its sensors."""
    nodes = [each.node for each in walks if each.node is not None]
    words = [f"{sum(not each.fell for each in walks)} of {len(walks)} did not fall"]
    if nodes:
        words.append(f"at most {100.0 * max(each.unanswered for each in nodes):.3f} % unanswered")
        shares = [each.shares[ESTIMATOR] for each in nodes if ESTIMATOR in each.shares]
        if shares:
            words.append(f"estimator at most {100.0 * max(shares):.0f} % of a core")
    if nodes and reference is not None:
        error = max(each.error_rad for each in nodes) / reference.error_rad
        drift = np.mean([each.drift_m for each in nodes]) / max(reference.drift_m, 1e-9)
        words.append(
            f"joint error at most {error:.2f} and drift in the mean {drift:.2f} times lockstep's"
        )
    return ", ".join(words)


def main() -> int:
    """Print the table row by row; 1 where a walk fell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=300.0, help="of each walk")
    parser.add_argument("--load", type=int, default=0, help="processes that compute beside it")
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="NAME=VALUE")
    parser.add_argument("--rt-priority", default="0", metavar="N", help="as of contact_id demo")
    parser.add_argument("--cpus", action="append", default=[], metavar="[NODE=]LIST")
    parser.add_argument("--robot", nargs="+", default=["quadruped"], help="names, or files")
    parser.add_argument("--state", choices=STATES, default=STATES[0])
    parser.add_argument("--sensors", nargs="+", default=[SENSORS], help="with --state estimated")
    given = parser.parse_args()
    show(COLUMNS)
    print(f"|{'---|' * len(COLUMNS)}", flush=True)
    estimated, lines, falls = given.state == "estimated", [], 0
    for robot, sensors in itertools.product(given.robot, given.sensors if estimated else [None]):
        choices = {**chosen(robot), "state": given.state, "sensors": sensors}
        choices.update(changes=given.changes, rt_priority=given.rt_priority, cpus=given.cpus)
        title = ", ".join([choices["robot"], *filter(None, [sensors])])
        reference = None
        if estimated:
            lockstep = walk(f"{title}, lockstep", given.seconds, None, mode="lockstep", **choices)
            show(lockstep.cells)
            reference = lockstep.node
        with load(given.load):
            walks = []
            for _ in range(given.runs):
                walks.append(walk(title, given.seconds, reference, **choices))
                show(walks[-1].cells)
        lines.append(f"{title}: {judged(walks, reference)}")
        falls += sum(each.fell for each in walks)
    print("", *lines, sep="\n")
    return int(falls > 0)


if __name__ == "__main__":
    sys.exit(main())
