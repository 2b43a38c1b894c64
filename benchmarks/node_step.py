"""What a step costs around the solver: alone in a loop, in the controller, and in the node in real time.

    python benchmarks/node_step.py --seconds 60
    python benchmarks/node_step.py --seconds 20 --rt-priority 80 --cpus controller=1 --set NAME=VALUE

One run, so that whatever else the machine does meets all of it:

- *bare*: (q, v, qdd) -> torques of coulomb/qp in a loop, on the states and contacts of a walk of the paper's
  quadruped (MuJoCo, way-points, trot);
- *step*: `Controller.step` on the same states and plans, in turn with the bare step in blocks of 100; and
  as it was in the walk itself, with planner and simulator in between;
- *replan*: `GaitPlanner.plan` in that walk;
- *node*: the three processes of `contact_id demo --mode real_time`; from a state's arrival to its
  command's departure, periods missed, and the share of a core that each process took (/proc; Linux).

Ends with 1 where an aim is missed. Measured figures: results/real_time_runs.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contact_id_controller import build_problem, solve
from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.plans.plan import Plan
from contact_id_controller.report.metrics import measure
from contact_id_controller.runs import one_process
from contact_id_controller.runs.record import merge_records
from contact_id_controller.runs.ros_run import run_nodes
from contact_id_controller.runs.setup import (
    CONTROLLER_RECORD,
    ESTIMATOR_RECORD,
    ROBOT_RECORD,
    RunSetup,
    make_setup,
)
from contact_id_controller.state import RobotState

ROBOT, MU = "quadruped", 1.0
BLOCK = 100
SETTLED_S = 1.0  # of a real-time run: the start is not looked at
SAMPLE_S = 0.25
MS = 1e3
UP = np.array([0.0, 0.0, 1.0])
CONTROLLER, PLANNER, SIMULATION = "controller", "gait_planner", "simulated_robot"
NODES = CONTROLLER, SIMULATION, PLANNER
AIMS = {
    "Controller.step": 2.0,
    "node, median": 4.0,
    "node, p99.9": 15.0,
    "replan, ms": 2.0,
    "missed periods, %": 0.1,
    f"{CONTROLLER}, % of a core": 35.0,
    f"{SIMULATION}, % of a core": 40.0,
}
"""At most; the first three are ratios to the bare step."""


class Walk(NamedTuple):
    """A walk in one process: its states, steps, plans with the number of their period, replan times."""

    settings: object
    robot: object
    states: list[RobotState]
    results: list[StepResult]
    plans: dict[int, Plan]
    replans_s: list[float]


def walk(seconds: float) -> Walk:
    """Walk in one process and keep what it was made of."""
    settings = one_process.controller_settings(ROBOT, friction_coefficient=[MU])
    world = one_process.mujoco_robot(settings, MU)
    run = one_process.InProcessRun(ROBOT, settings, world)
    replans_s, plan = [], run.planner.plan

    def timed(*arguments):
        begun = time.perf_counter()
        made = plan(*arguments)
        replans_s.append(time.perf_counter() - begun)
        return made

    run.planner.plan = timed
    states, results, plans = [], [], {}
    for k in range(round(seconds / settings.period_s)):
        state = run.state
        states.append(RobotState(state.time_s, state.q.copy(), state.v.copy()))
        period = run.advance()
        results.append(period.result)
        if period.plan is not None:
            plans[k] = period.plan
    return Walk(settings, run.robot, states, results, plans, replans_s)


def bare_and_step(kept: Walk) -> tuple[np.ndarray, np.ndarray, float]:
    """Times of the bare step and of the controller's, s, and the largest difference of torque, N·m."""
    settings, robot = kept.settings, kept.robot
    controller = Controller(robot, settings)
    controller.reset(kept.states[0])
    pair = controller.model
    tasks = []
    for state, result in zip(kept.states, kept.results):
        problem = result.solution.problem
        speed = state.v[robot.actuated]
        acceleration = (problem.desired_velocity - speed) / settings.period_s
        tasks.append((state.q, state.v, acceleration, problem.contacts))
    bare, step, difference = [], [], 0.0
    for begin in range(0, len(tasks), BLOCK):
        block = range(begin, min(begin + BLOCK, len(tasks)))
        for k in block:
            state = kept.states[k]
            if k in kept.plans:
                one_process.follow(controller, kept.plans[k], state.time_s)
            begun = time.perf_counter()
            result = controller.step(state)
            step.append(time.perf_counter() - begun)
            away = np.abs(result.torques - kept.results[k].torques).max()
            difference = max(difference, float(away))
        for k in block:
            q, v, acceleration, contacts = tasks[k]
            begun = time.perf_counter()
            problem = build_problem(
                robot,
                q,
                v,
                acceleration,
                contacts,
                settings.period_s,
                contact_time_constant_s=settings.contact_time_constant_s,
            )
            _ = solve(problem, *pair).torques
            bare.append(time.perf_counter() - begun)
    return np.array(bare), np.array(step), difference


class Cores:
    """Watches how much of a core each node of this process' children takes."""

    def __init__(self, names: Sequence[str] = NODES):
        self._names = frozenset(names)
        self._samples: dict[str, list[tuple[float, float, int]]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Cores:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._done.set()
        self._thread.join()

    def shares(self, seconds: float) -> dict[str, float]:
        """Share of a core of each node over the last seconds before the simulation ended."""
        end = self._samples[SIMULATION][-1][0]
        found = {}
        for name, samples in self._samples.items():
            times, used, _ = np.array([s for s in samples if end - seconds <= s[0] <= end]).T
            found[name] = float((used[-1] - used[0]) / (times[-1] - times[0]))
        return found

    def grown_mb(self, seconds: float) -> dict[str, float]:
        """By how much the memory of each node grew over the last seconds, MB."""
        end = self._samples[SIMULATION][-1][0]
        page_mb = os.sysconf("SC_PAGE_SIZE") / 1e6
        return {
            name: page_mb * float(np.ptp([s[2] for s in samples if end - seconds <= s[0] <= end]))
            for name, samples in self._samples.items()
        }

    def _watch(self) -> None:
        tick = os.sysconf("SC_CLK_TCK")
        nodes: dict[str, Path] = {}
        while not self._done.wait(SAMPLE_S):
            for name in self._names - nodes.keys():
                for process in _children(name):
                    nodes[name] = process
            for name, process in nodes.items():
                try:
                    fields = (process / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if fields[0] != "Z":
                    used = (int(fields[11]) + int(fields[12])) / tick
                    sample = time.monotonic(), used, int(fields[21])
                    self._samples.setdefault(name, []).append(sample)


def _children(name: str) -> list[Path]:
    """The child processes that run a node."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(parent) == os.getpid() and f"contact_id_controller.ros.{name}".encode() in words:
            found.append(process)
    return found


class Node(NamedTuple):
    """A run in real time.

    steps_s, solves_s: times from state to command and of them in the solver, s.  error_rad: mean joint
    error.  missed, unanswered: share of periods and of states.  late_periods: of the simulation.
    shares, grown_mb: of a core, and of memory, by node.  drift_m: of an estimate; None: there is none.
    """

    steps_s: np.ndarray
    solves_s: np.ndarray
    error_rad: float
    missed: float
    unanswered: float
    late_periods: int
    fell_s: float | None
    shares: dict[str, float]
    grown_mb: dict[str, float]
    drift_m: float | None


def in_node(seconds: float, folder: Path, **choices) -> Node:
    """The demo's processes, in real time unless another mode is chosen; ``choices`` as for `make_setup`."""
    chosen = {"robot": ROBOT, "mode": "real_time", "mu": MU, **choices}
    setup = make_setup(folder, duration_s=seconds + SETTLED_S, **chosen)
    with Cores(setup.nodes) as cores:
        run_nodes(setup, folder)
    mine, robot = np.load(folder / CONTROLLER_RECORD), np.load(folder / ROBOT_RECORD)
    stamps = np.round(mine["time_s"] / setup.settings.period_s).astype(int)
    kept = mine["time_s"] >= SETTLED_S
    kept |= ~kept.any()  # it fell before
    steps_s, gaps = mine["step_time_s"][kept], np.diff(stamps[kept])
    periods = stamps[kept][-1] - stamps[kept][0] + 1
    lost = int((gaps - 1).sum())
    long = int((steps_s > setup.settings.period_s).sum())
    return Node(
        steps_s,
        mine["solve_time_s"][kept],
        float(np.abs(mine["reference_position"] - mine["position"])[kept].mean()),
        (int((gaps > 1).sum()) + long) / periods,
        lost / periods,
        int(robot["late_periods"]),
        None if np.isnan(robot["fell_time_s"]) else float(robot["fell_time_s"]),
        cores.shares(seconds),
        cores.grown_mb(0.8 * seconds),
        _drift_m(folder, setup),
    )


def _drift_m(folder: Path, setup: RunSetup) -> float | None:
    """How far the estimate of a walk has drifted at its end, if there was one."""
    estimate = folder / ESTIMATOR_RECORD
    if not estimate.exists():
        return None
    records = folder / CONTROLLER_RECORD, folder / ROBOT_RECORD
    walk = merge_records(*records, setup.settings.period_s, estimate)
    return measure(walk, 1.0, UP, ["estimated_drift_m"])["estimated_drift_m"]


def figures(times_s: np.ndarray, unit: float) -> str:
    """Median, p99 and p99.9 in µs and as ratios to a unit, s, as cells of a table."""
    values = [float(np.median(times_s)), *np.percentile(times_s, [99.0, 99.9])]
    cells = [f"{1e6 * value:.0f} ({value / unit:.1f})" for value in values]
    return " | ".join(cells)


def main() -> int:
    """Measure, print the table; 1 where an aim is missed or the robot fell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of the run in real time")
    parser.add_argument("--walk-seconds", type=float, default=8.0, help="of the walk in a process")
    parser.add_argument("--no-node", action="store_true", help="in one process only")
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="NAME=VALUE")
    parser.add_argument("--rt-priority", default="0", metavar="N", help="as of contact_id demo")
    parser.add_argument("--cpus", action="append", default=[], metavar="[NODE=]LIST")
    given = parser.parse_args()
    kept = walk(given.walk_seconds)
    bare, step, difference = bare_and_step(kept)
    unit = float(np.median(bare))
    replan_ms = MS * float(np.median(kept.replans_s))
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    now = datetime.datetime.now(datetime.timezone.utc)
    priority = f"--rt-priority {given.rt_priority}" if given.rt_priority != "0" else ""
    changes = " ".join([priority, *(f"--cpus {text}" for text in given.cpus), *given.changes])
    print(f"{now:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, load {load} {changes}\n")
    print("| µs (times the bare step) | median | p99 | p99.9 |\n|---|---|---|---|")
    print(f"| bare step in a loop | {figures(bare, unit)} |")
    print(f"| Controller.step, states of the walk | {figures(step, unit)} |")
    in_walk = np.array([result.step_time_s for result in kept.results])
    print(f"| Controller.step in the walk | {figures(in_walk, unit)} |")
    found = {"Controller.step": float(np.median(step)) / unit, "replan, ms": replan_ms}
    fell = False
    if not given.no_node:
        with tempfile.TemporaryDirectory() as folder:
            node = in_node(
                given.seconds,
                Path(folder),
                changes=given.changes,
                rt_priority=given.rt_priority,
                cpus=given.cpus,
            )
        print(f"| node, problem and solution | {figures(node.solves_s, unit)} |")
        print(f"| node, state to command | {figures(node.steps_s, unit)} |")
        found["node, median"] = float(np.median(node.steps_s)) / unit
        found["node, p99.9"] = float(np.percentile(node.steps_s, 99.9)) / unit
        found["missed periods, %"] = 100.0 * node.missed
        for name in NODES:
            found[f"{name}, % of a core"] = 100.0 * node.shares[name]
        fell = node.fell_s is not None
        print(
            f"\nstates lost {100.0 * node.unanswered:.3f} %, simulation late by "
            f"{node.late_periods} periods{f', FELL at {node.fell_s:.2f} s' if fell else ''}"
        )
        grown = ", ".join(f"{name} {size:.1f}" for name, size in node.grown_mb.items())
        print(f"memory, largest less smallest of the last four fifths, MB: {grown}")
    print(f"replay differs from the walk by {difference:.1e} N·m at most\n")
    print("| | measured | aim |\n|---|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:.2f} | {AIMS.get(name, '')} |")
    missed = any(value > AIMS.get(name, np.inf) for name, value in found.items())
    return int(missed or fell)


if __name__ == "__main__":
    sys.exit(main())
