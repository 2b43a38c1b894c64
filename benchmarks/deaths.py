"""kill -9 of controller and command watchdog, again and again, in every state, under load.

    python benchmarks/deaths.py --kills 100 --load 2

The two nodes run as processes of their own; this one stands in for the robot, which holds the last torque
for ever, and sends its state at 200 Hz. For each process that may die (the controller, the watchdog's
worker, its reserve, its keeper) and in turn for each state: bring both nodes there, kill, and take the time
from the kill until a command that was sent after it arrives: damping, which for joints at rest is zero
torque, after the death of a controller that commanded; else whatever is to go on. Then the longest time
without a command in the rest of `SILENCE_S`, and until a new keeper, where it was killed, has taken over.
Ends with 1 where one took longer than the watchdog's time-out and `ALLOWANCE_S`.
"""

from __future__ import annotations

import argparse
import datetime
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import checkout  # noqa: F401  before what is not installed
import numpy as np
from real_time_walks import load

from experiments.faults.fuzz_world import FuzzWorld
from experiments.faults.nodes import CONTROLLER, WATCHDOG

ALLOWANCE_S = 0.02
PATIENCE_S = 5.0
BACK_S = 60.0
SETTLED_S, SILENCE_S = 0.3, 0.3
"""How long torque flows before a kill, and how long states are silent."""

ZERO_NM = 1e-9


class Given(NamedTuple):
    """A command: when it arrived and was sent, s; its largest torque, N·m."""

    at_s: float
    sent_s: float
    torque_nm: float

    @property
    def zero(self) -> bool:
        """Whether it is no torque."""
        return self.torque_nm <= ZERO_NM


class Robot:
    """The stand-in: what it was given, and when."""

    def __init__(self, world: FuzzWorld) -> None:
        self.world = world
        self.states = True
        self.given: list[Given] = []
        self.handovers_s: list[float] = []
        world.on_command = self._take

    def _take(self, efforts: np.ndarray, age_s: float, now_s: float) -> None:
        self.given.append(Given(now_s, now_s - age_s, float(np.abs(efforts).max())))

    def spin(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Be the robot for so long, or until a condition holds; whether it does."""
        end_s = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end_s:
                return False
            self.world.turn(states=self.states)
            time.sleep(2e-4)
        return True

    def torque_flows(self) -> bool:
        """Whether all of the last `SETTLED_S` was torque."""
        since_s = time.monotonic() - SETTLED_S
        recent = [each.zero for each in self.given[-200:] if each.at_s > since_s]
        return len(recent) > 20 and not any(recent)

    def bring_back(self) -> None:
        """Both nodes run, the controller commands, a reserve stands by."""
        world = self.world
        self.states = True
        handover = not world.nodes[WATCHDOG].running
        end_s = time.monotonic() + BACK_S
        while self._restarts() or not self.spin(1.0, self.torque_flows):
            world.mend()
            if time.monotonic() > end_s:
                raise SystemExit(f"no torque any more:\n{self.last_words()}")
        if not self.spin(BACK_S, lambda: len(self.workers()) == 2):
            raise SystemExit(f"no reserve any more:\n{self.last_words()}")
        reserve = self.workers()[1]
        stands_by = f"process {reserve} stands by"
        if not self.spin(BACK_S, lambda: stands_by in world.nodes[WATCHDOG].output()):
            raise SystemExit(f"the reserve is never ready:\n{self.last_words()}")
        while not self.spin(1.0, self.torque_flows):
            world.mend()
        if handover:
            self.handovers_s.append(float(np.diff([each.at_s for each in self.given]).max()))
        self.given.clear()

    def _restarts(self) -> bool:
        """Start what has ended; whether there was something."""
        nodes = self.world.nodes
        ended = [name for name in (CONTROLLER, WATCHDOG) if not nodes[name].running]
        for name in ended:
            self.world.restart(name)
            self.given.clear()  # meanwhile nothing was received
        return bool(ended)

    def last_words(self) -> str:
        """Of both nodes."""
        return "\n".join(self.world.nodes[name].last_lines() for name in (CONTROLLER, WATCHDOG))

    def workers(self) -> list[int]:
        """The watchdog's, the one at work first."""
        pid = self.world.nodes[WATCHDOG].pid
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return list(map(int, words))  # in the order in which they were made


# States of a robot that commands.


def commanding(robot: Robot) -> None:
    """As it is."""


def silent(robot: Robot) -> None:
    """No joint states come any more: the controller's safe output."""
    robot.states = False
    robot.spin(SILENCE_S)


def inactive(robot: Robot) -> None:
    """The controller is deactivated, the watchdog has tripped."""
    robot.world.deactivate()
    robot.spin(SILENCE_S)


def stopped(robot: Robot) -> None:
    """Both are in the emergency stop."""
    robot.world.emergency_stop()
    robot.spin(SILENCE_S)


STATES = {
    "commanding": commanding,
    "no joint states": silent,
    "controller inactive": inactive,
    "emergency stop": stopped,
}


def process_of(robot: Robot, who: str) -> int:
    """Number of the process that is to die."""
    nodes, workers = robot.world.nodes, robot.workers()
    return {
        "controller": nodes[CONTROLLER].pid,
        "watchdog's worker": workers[0],
        "watchdog's reserve": workers[-1],
        "watchdog's keeper": nodes[WATCHDOG].pid,
    }[who]


class Role(NamedTuple):
    """Whether torque has to end with a process, else another one goes on; and whether it sends commands."""

    ends: bool
    sends: bool


WHO = {
    "controller": Role(ends=True, sends=True),
    "watchdog's worker": Role(ends=False, sends=True),
    "watchdog's reserve": Role(ends=False, sends=False),
    "watchdog's keeper": Role(ends=False, sends=False),
}
"""Who may die."""


def kill(robot: Robot, who: str, state: str) -> tuple[float, float]:
    """Time from the death of a process to what is safe, and the longest silence after that, s."""
    robot.bring_back()
    STATES[state](robot)
    pid = process_of(robot, who)
    torque_before = state == "commanding"
    ends = torque_before and WHO[who].ends
    handle = os.pidfd_open(pid)
    robot.given.clear()
    killed_s = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    select.select([handle], [], [])
    gone_s = time.monotonic() if WHO[who].sends else killed_s
    os.close(handle)

    def first() -> int | None:
        """Place of the first safe command of a process that still lives."""
        places = (k for k, each in enumerate(robot.given) if each.sent_s > gone_s or ends)
        return next((k for k in places if robot.given[k].zero or not ends), None)

    robot.spin(PATIENCE_S, lambda: first() is not None)
    robot.spin(SILENCE_S)
    begin = first()
    if begin is None:
        return np.inf, np.inf
    given = robot.given[begin:]
    if (ends or not torque_before) and not all(each.zero for each in given):
        return np.inf, np.inf
    times_s = np.array([each.at_s for each in given])
    return times_s[0] - killed_s, float(np.diff(times_s, append=time.monotonic()).max())


def main() -> int:
    """Print a row for each process and state."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of each process, over all states")
    parser.add_argument("--load", type=int, default=0, help="processes that compute beside it")
    parser.add_argument(
        "--rt-priority", type=int, default=0, help="of both nodes, of this process one less"
    )
    parser.add_argument("--only", default="", help="processes whose name contains these words")
    parser.add_argument("--states", nargs="+", choices=STATES, default=list(STATES), metavar="S")
    given = parser.parse_args()
    slow = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        load(given.load),
        FuzzWorld(Path(folder), rt_priority=given.rt_priority) as world,
    ):
        world.begin()
        robot = Robot(world)
        limit_s = world.command_timeout_s + ALLOWANCE_S
        now = datetime.datetime.now(datetime.timezone.utc)
        print(
            f"{now:%Y-%m-%d %H:%M} UTC, load {given.load}, time-out {world.command_timeout_s} s\n"
        )
        print(
            "| killed | state | kills | median, ms | largest, ms | beyond time-out + 20 ms | longest silence then, ms |"
        )
        print("|---|---|---|---|---|---|---|", flush=True)
        for who in WHO:
            if given.only not in who:
                continue
            for state in given.states:
                number = -(-given.kills // len(given.states))
                times, silent = np.array([kill(robot, who, state) for _ in range(number)]).T
                late = int((times > limit_s).sum())
                slow += late
                print(
                    f"| {who} | {state} | {number} | {1e3 * np.median(times):.1f} "
                    f"| {1e3 * times.max():.1f} | {late} | {1e3 * silent.max():.0f} |",
                    flush=True,
                )
    print(f"\n{slow} beyond {1e3 * limit_s:.0f} ms")
    if robot.handovers_s:
        print(
            f"{len(robot.handovers_s)} times a new keeper took over from one that was killed: at most "
            f"{1e3 * max(robot.handovers_s):.0f} ms without a command"
        )
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
