"""Faults of processes: killed, stopped for a while."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import time

from contact_id_controller.files import write_text
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.settings.command_interfaces import INTERFACES
from experiments.faults.nodes import CONTROLLER, PLANNER, ROBOT, STALL, WATCHDOG
from experiments.faults.row import (
    WALKS_AGAIN,
    WALKS_ON,
    Fault,
    Observed,
    ending,
    when_asked,
    when_dead,
    when_silent,
)
from experiments.faults.world import STALL_S, FaultWorld

STILL_RAD_S = 0.3
STILL_STATES = 50
SETTLE_S = 0.2
SHORT_STALL_S = 0.02
LOAD_S = 2.0
"""In simulated time."""
BOTH_STOPPED_S = 0.2
"""In simulated time, too."""
AFTERWARDS_S = 0.5
"""Wall time in which no torque may come back."""
END_S, START_S = 10.0, 60.0
"""Patience, wall time, with the end and with the start of a process."""
WORDS_FOR_A_MASS = ("inf", "nan", "heavy")
SIGNALS = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


def kill_planner(world: FaultWorld) -> Observed:
    relay = world.relay
    begun_s = world.kill(PLANNER)
    moved = relay.states

    def still() -> bool:
        nonlocal moved
        if abs(relay.velocity).max() > STILL_RAD_S:
            moved = relay.states
        return relay.states > moved + STILL_STATES

    stands = world.until(still, 10.0)
    reaction_s = time.monotonic() - begun_s - STILL_STATES * world.period_s
    stands = stands and world.upright
    world.restart(PLANNER)
    world.until(lambda: abs(relay.velocity).max() > 3.0 * STILL_RAD_S or not world.upright)
    return Observed(reaction_s if stands else None, ending(world))


def kill_controller(world: FaultWorld) -> Observed:
    reaction_s = world.until_safe(world.kill(CONTROLLER))
    world.begin()
    return Observed(reaction_s, WALKS_AGAIN)


def kill_watchdog(world: FaultWorld) -> Observed:
    words = "takes over from one"
    before = world.nodes[WATCHDOG].output().count(words)
    begun_s = world.kill(WATCHDOG)
    world.restart(WATCHDOG)
    watchdog = world.nodes[WATCHDOG]
    taken_over = world.until(lambda: watchdog.output().count(words) > before, 30.0)
    return Observed(time.monotonic() - begun_s if taken_over else None, ending(world))


def kill_watchdogs_worker(world: FaultWorld) -> Observed:
    relay = world.relay
    begun_s, commands = world.kill_worker(WATCHDOG), len(relay.times_s)
    # The first two may have been on their way.
    goes_on = world.until(lambda: len(relay.times_s) > commands + 2)
    return Observed(relay.times_s[commands + 2] - begun_s if goes_on else None, ending(world))


def kill_robot(world: FaultWorld) -> Observed:
    reaction_s = world.until_safe(world.kill(ROBOT))
    world.begin()
    return Observed(reaction_s, WALKS_AGAIN)


def _stall(world: FaultWorld, simulated_s: float) -> float | None:
    node = world.nodes[CONTROLLER]
    begun_s = time.monotonic()
    node.send(signal.SIGSTOP)
    world.spin(simulated_s / world.real_time_factor)
    node.send(signal.SIGCONT)
    return world.until_safe(begun_s, 0.5)


def solver_stalls(world: FaultWorld) -> Observed:
    """Within the step, so that the process cannot even answer."""
    begun_s = time.monotonic()
    world.nodes[CONTROLLER].send(STALL)
    world.spin(STALL_S / world.real_time_factor)
    reaction_s = world.until_safe(begun_s, 0.5)
    if not INTERFACES[world.interface].bridges:
        world.begin()
        return Observed(reaction_s, WALKS_AGAIN)
    return Observed(None, ending(world))


def bridged_stall(world: FaultWorld, simulated_s: float = SHORT_STALL_S) -> Observed:
    _stall(world, simulated_s)
    return Observed(None, ending(world))


def long_stall(world: FaultWorld, simulated_s: float) -> Observed:
    reaction_s = _stall(world, simulated_s)
    world.begin()
    return Observed(reaction_s, WALKS_AGAIN)


def signalled(world: FaultWorld, name: str, number: int) -> Observed:
    begun_s = world.ask_to_end(name, number)
    reaction_s = world.until_safe(begun_s)
    node = world.nodes[name]
    world.until(lambda: not node.running, END_S)
    world.spin(AFTERWARDS_S)
    calm = world.stays_safe(begun_s)
    # No process is left behind the watchdog to end a torque that is held.
    if name == WATCHDOG:
        calm = calm and not world.relay.group.efforts.any()
    code = node.exit_code
    world.begin()
    ended = WALKS_AGAIN if calm and code == 0 else f"{calm=}, exit code {code}"
    return Observed(reaction_s, ended)


def emergency_stop_outlives(world: FaultWorld, name: str) -> Observed:
    begun_s = time.monotonic()
    stopped = world.stop(name)
    reaction_s = world.until_safe(begun_s)
    world.kill_all(name)
    world.restart(name)
    world.figures(name, START_S)
    world.spin(AFTERWARDS_S)
    # Of the watchdog's the controller knows by its heartbeat.
    world.change("deactivate")
    kept = not world.change("activate")
    world.spin(AFTERWARDS_S)
    calm = world.stays_safe(begun_s)
    world.relay.group.deactivate()
    released = world.stop(name, engage=False)
    world.begin()
    well = stopped and kept and calm and released
    return Observed(reaction_s, WALKS_AGAIN if well else f"{stopped=} {kept=} {calm=} {released=}")


def both_stopped(world: FaultWorld) -> Observed:
    """The controller stays stopped while we look: nothing new can come."""
    try:
        world.send_all(WATCHDOG, signal.SIGSTOP)
        world.spin(5.0 * world.period_s)  # these commands wait before its door
        world.send_all(CONTROLLER, signal.SIGSTOP)
        world.spin(BOTH_STOPPED_S / world.real_time_factor)
        commands = len(world.relay.times_s)
        begun_s = world.send_all(WATCHDOG, signal.SIGCONT)
        reaction_s = world.until_safe(begun_s)
        world.spin(AFTERWARDS_S)
        old = world.relay.safe[commands:].count(False)
    finally:
        for name in (WATCHDOG, CONTROLLER):
            world.send_all(name, signal.SIGCONT)
    world.begin()
    return Observed(reaction_s, f"{old} old commands were sent on" if old else WALKS_AGAIN)


def masses_that_do_not_parse(world: FaultWorld) -> Observed:
    text = resolve_urdf(world.parameters[CONTROLLER]["urdf"]).read_text(encoding="utf-8")
    urdf, wrong = world.folder / "spoiled.urdf", []
    begun_s = world.kill(CONTROLLER)
    world.until_safe(begun_s)
    try:
        for word in WORDS_FOR_A_MASS:
            write_text(urdf, re.sub(r'<mass value="[^"]*"', f'<mass value="{word}"', text, count=1))
            world.write_parameters(urdf=str(urdf.resolve()))
            printed = len(world.nodes[CONTROLLER].output())
            world.restart(CONTROLLER)
            node = world.nodes[CONTROLLER]
            world.until(lambda: not node.running, START_S)
            told = f"mass value is '{word}'" in node.output()[printed:]
            if node.exit_code != 1 or not told:
                wrong.append(f"{word}: exit code {node.exit_code}, {told=}")
            world.kill(CONTROLLER)
    finally:
        world.write_parameters()
    if not world.stays_safe(begun_s):
        wrong.append("torque with a wrong mass")
    world.begin()
    return Observed(None, "; ".join(wrong) or WALKS_AGAIN, f"{len(WORDS_FOR_A_MASS)} starts")


def load(world: FaultWorld) -> Observed:
    """A process that only computes on each core, with the priority that everyone has."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        world.spin(LOAD_S / world.real_time_factor)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return Observed(None, ending(world), f"{len(busy)} processes beside it")


def at_once(world: FaultWorld) -> float:
    """A process that is connected already is called."""
    return 0.5


def start_of_a_process(world: FaultWorld) -> float:
    """A process of Python with ROS, started on a machine with other work; it waits 3 s to be known."""
    return 10.0


def end_of_plan(world: FaultWorld) -> float:
    """The plan is followed to its end, and the posture settles."""
    return (world.plan_s + SETTLE_S) / world.real_time_factor


_BRIDGED = {"reaction": "the last trajectory goes on", "within": None, "ends": WALKS_ON}

BRIDGED = {
    **{
        f"controller stalls for {name}": {
            **_BRIDGED,
            "act": functools.partial(bridged_stall, simulated_s=stall_s),
        }
        for name, stall_s in (("30 ms", 0.03), ("50 ms", 0.05), ("100 ms", 0.1))
    },
    "controller stalls for 20 ms": {"reaction": "the last trajectory goes on"},
    "solver stalls for 100 ms": _BRIDGED,
    "kill -9 of the simulated robot": {"reaction": "none", "within": None},
}
"""Fault -> what is stated otherwise where the robot's side goes on while commands are late."""

FAULTS = (
    Fault(
        "kill -9 of the planner",
        "the plan runs out, the posture is held",
        end_of_plan,
        WALKS_ON,
        kill_planner,
    ),
    Fault("controller stalls for 20 ms", "the last torque is held", None, WALKS_ON, bridged_stall),
    *(
        Fault(
            f"controller stalls for {name}",
            "the watchdog damps",
            when_dead,
            WALKS_AGAIN,
            functools.partial(long_stall, simulated_s=stall_s),
        )
        for name, stall_s in (("30 ms", 0.03), ("50 ms", 0.05), ("100 ms", 0.1), ("1 s", 1.0))
    ),
    Fault("solver stalls for 100 ms", "the watchdog damps", when_dead, WALKS_AGAIN, solver_stalls),
    Fault("load on all cores for 2 s", "none", None, WALKS_ON, load),
    Fault(
        "kill -9 of the controller", "the watchdog damps", when_dead, WALKS_AGAIN, kill_controller
    ),
    Fault(
        "kill -9 of the watchdog's working process",
        "the last torque is held until the one in reserve goes on",
        at_once,
        WALKS_ON,
        kill_watchdogs_worker,
    ),
    Fault(
        "kill -9 of the watchdog",
        "its working process goes on until one that is started anew takes over",
        start_of_a_process,
        WALKS_ON,
        kill_watchdog,
    ),
    Fault("kill -9 of the simulated robot", "safe output", when_silent, WALKS_AGAIN, kill_robot),
    *(
        Fault(
            f"{number.name} to the {words}",
            reaction,
            when_asked,
            WALKS_AGAIN,
            functools.partial(signalled, name=name, number=number),
        )
        for name, words, reaction in (
            (CONTROLLER, "controller", "safe output, then its end"),
            (WATCHDOG, "watchdog", "zero torque, then its end"),
        )
        for number in SIGNALS
    ),
    *(
        Fault(
            f"emergency stop of the {words}, kill -9, started again",
            "zero torque until it is released",
            when_asked,
            WALKS_AGAIN,
            functools.partial(emergency_stop_outlives, name=name),
        )
        for name, words in ((CONTROLLER, "controller"), (WATCHDOG, "watchdog"))
    ),
    Fault(
        "controller and watchdog stopped for 200 ms",
        "what was sent before is not sent on: the watchdog damps",
        when_dead,
        WALKS_AGAIN,
        both_stopped,
    ),
    Fault(
        "a URDF whose mass is inf, nan or a word, at a new start",
        "not configured, the watchdog damps",
        None,
        WALKS_AGAIN,
        masses_that_do_not_parse,
    ),
)
