"""Faults that end no process: one that hangs, a log that is not read, a keeper that the system refuses all."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

from contact_id_controller.ros.command_watchdog import HANGS
from experiments.faults.inputs import emergency_stop, malformed_plans
from experiments.faults.nodes import CONTROLLER, WATCHDOG
from experiments.faults.processes import AFTERWARDS_S, END_S, START_S, at_once
from experiments.faults.row import WALKS_AGAIN, WALKS_ON, Fault, Observed, when_asked
from experiments.faults.world import FaultWorld

KNOWN_S = 4.0
"""After so long a reserve is connected."""

NOTHING = 3
"""So many file descriptors: none more than a process has at its start."""


def when_hanging(world: FaultWorld) -> float:
    """So many time-outs without a turn of its loop, then the reserve is called."""
    return HANGS * world.command_timeout_s + at_once(world)


def _goes_on(world: FaultWorld, begun_s: float) -> float | None:
    """Time from a fault of the watchdog until commands reach the robot again; None: they do not."""
    relay, commands = world.relay, len(world.relay.times_s)
    # The first two may have been on their way.
    if not world.until(lambda: len(relay.times_s) > commands + 2):
        return None
    return relay.times_s[commands + 2] - begun_s


def watchdog_hangs(world: FaultWorld) -> Observed:
    """The last torque is held meanwhile, with which a robot that walks may fall."""
    world.spin(KNOWN_S)
    hung = world.workers(WATCHDOG)[0]
    begun_s = world.kill_worker(WATCHDOG, signal.SIGSTOP)
    reaction_s = _goes_on(world, begun_s)
    with contextlib.suppress(ProcessLookupError):
        os.kill(hung, signal.SIGCONT)  # it may not command beside the one that followed
    world.spin(AFTERWARDS_S)
    left = hung in world.workers(WATCHDOG)
    world.begin()
    return Observed(reaction_s, "the one that hung is still there" if left else WALKS_AGAIN)


@contextlib.contextmanager
def _nothing_left(pid: int) -> Iterator[None]:
    """Inside a process can open and start nothing."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (NOTHING, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def refused_keeper(world: FaultWorld) -> Observed:
    """Its lines are not read, and what it wants to start is refused, when its worker is killed; then again."""
    keeper = world.nodes[WATCHDOG].pid
    world.spin(KNOWN_S)
    for pid in _of_group(keeper):
        if b"output.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    with _nothing_left(keeper):
        first_s = _goes_on(world, world.kill_worker(WATCHDOG))
        world.spin(AFTERWARDS_S)
    world.need(lambda: len(world.workers(WATCHDOG)) == 2, "another reserve", START_S)
    world.spin(KNOWN_S)
    second_s = _goes_on(world, world.kill_worker(WATCHDOG))
    ended = WALKS_ON if world.walks_on() else WALKS_AGAIN
    # One whose lines are read again.
    world.ask_to_end(WATCHDOG, signal.SIGTERM)
    world.until(lambda: not world.nodes[WATCHDOG].running, END_S)
    world.begin()
    times_s = [each for each in (first_s, second_s) if each is not None]
    return Observed(max(times_s) if len(times_s) == 2 else None, ended, "the slower of two kills")


def _of_group(group: int) -> list[int]:
    """Processes of a process group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(folder.name)) == group:
                found.append(int(folder.name))
    return found


def unread_logs(world: FaultWorld) -> Observed:
    """From their start on what controller and watchdog print is not read; plans are refused, then a stop."""
    read, write = full_pipe()
    try:
        for name in (CONTROLLER, WATCHDOG):
            world.kill_all(name)
            world.restart(name, write)
        world.begin()
        refused = malformed_plans(world)
        stopped = emergency_stop(world)
    finally:
        for name in (CONTROLLER, WATCHDOG):
            world.kill_all(name)
        for handle in (read, write):
            os.close(handle)
    world.begin()
    ended = stopped.ended if refused.ended == WALKS_ON else refused.ended
    return Observed(stopped.reaction_s, ended, refused.remark)


def full_pipe() -> tuple[int, int]:
    """A pipe, reading and writing side, that takes nothing more."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"full\n")
    os.set_blocking(write, True)
    return read, write


FAULTS = (
    Fault(
        "SIGSTOP to the watchdog's working process",
        "the last torque is held; killed, the one in reserve goes on",
        when_hanging,
        WALKS_AGAIN,
        watchdog_hangs,
    ),
    Fault(
        "logs of controller and watchdog that nobody reads, plans refused, emergency stop",
        "zero torque until it is released",
        when_asked,
        WALKS_AGAIN,
        unread_logs,
    ),
    Fault(
        "watchdog's keeper refused forks and its log, its working process killed twice",
        "the one in reserve goes on, another one is started",
        at_once,
        WALKS_ON,
        refused_keeper,
    ),
)
