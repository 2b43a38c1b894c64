"""Hours of malformed inputs, over real topics, into all nodes.

This process stands in for the robot: it sends good states and takes the commands. Between them it
sends spoiled bytes to every topic that controller, command watchdog, estimator, planners and viewer
subscribe to, and fills the requests of their services with anything; it commands as well, though
nobody made it a commander. What must never happen is counted: a process that dies, an emergency stop
that takes longer than `STOP_S`, a command that is not finite, beyond the limits of the URDF, old, or
this process's own; a message of estimator or planners that is not finite, and one of these nodes that
does not do its work again once nothing spoiled comes.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rclpy.subscription import RCLError

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.files import make_folder
from contact_id_controller.parameter_spec import ParameterSpec
from contact_id_controller.ros.packed import with_stamp
from contact_id_controller.settings.controller import TABLE
from contact_id_controller.settings.nodes import TABLES
from experiments.faults.fuzz_other_nodes import other_node_rows
from experiments.faults.fuzz_world import STOP_TOPIC, FuzzWorld
from experiments.faults.mutations import (
    COUNTS,
    NUMBERS,
    TEXTS,
    filled,
    serialised,
    spoiled,
)
from experiments.faults.nodes import CONTROLLER, WATCHDOG

STOP_S = 0.1
"""Longest time from the request of an emergency stop to zero torque."""

STOP_EVERY_S, SILENCE_EVERY_S, ROW_EVERY_S = 1.0, 15.0, 1.0
MEND_EVERY_S, PUT_BACK_EVERY_S = 0.5, 5.0
WORK_EVERY_S = 20.0
"""Time between two looks whether the nodes beside do their work while only good messages come."""

SILENCE_S, SILENT_AFTER_S = 0.5, 0.15
"""How long all states stop; what is commanded so long after their time-out must be zero."""

LATE_S = 0.1
"""What a busy machine may take beyond a time-out to hand a command on."""

PARTS = 0.04
"""Part of the inputs that are requests of services."""

SELDOM = 0.005
"""Part of what would go to the topic of the emergency stop."""

MOST_WAITING = 20
"""Requests without answer; more are not sent."""

SLOW = ("/plan", "/execute")
"""Of services that take seconds no more than one."""

ROBOT_NAME = "quadruped"

ZERO_NM = 1e-9

TYPES = {
    "string": ParameterType.PARAMETER_STRING,
    "boolean": ParameterType.PARAMETER_BOOL,
    "integer": ParameterType.PARAMETER_INTEGER,
    "number": ParameterType.PARAMETER_DOUBLE,
    "strings": ParameterType.PARAMETER_STRING_ARRAY,
    "numbers": ParameterType.PARAMETER_DOUBLE_ARRAY,
}


class FuzzResult(NamedTuple):
    """What came of it.

    Attributes:
        inputs: by door.  commands: how many were judged.  commanding: part of them that was not zero.
        stops_s: times of the emergency stops, by the way they were requested.  work_s: times until a node beside worked again, by its name.
        forbidden: what must never happen, with its number.
        seconds: how long it took.
    """

    inputs: Counter[str]
    commands: int
    commanding: float
    stops_s: dict[str, list[float]]
    work_s: dict[str, list[float]]
    forbidden: Counter[str]
    seconds: float

    def words(self) -> str:
        """One line."""
        stops = ", ".join(
            f"{way} {len(stops)}, {1e3 * np.median(stops):.0f}, {1e3 * max(stops):.0f}"
            for way, stops in self.stops_s.items()
        )
        line = (
            f"{self.seconds:.0f} s: {self.inputs.total()} inputs, {self.commands} commands judged, "
            f"{100 * self.commanding:.0f} % of them not zero; emergency stops (number, median ms, max "
            f"ms): {stops or 'none'}"
        )
        work = ", ".join(
            f"{name} {len(s)}, {max(s):.1f}" for name, s in sorted(self.work_s.items())
        )
        if work:
            line += f"; works again (number, max s): {work}"
        found = ", ".join(f"{name} {count}" for name, count in sorted(self.forbidden.items()))
        return f"{line}; forbidden: {found or 'nothing'}"


def run_fuzz(
    output: Path,
    *,
    minutes: float,
    seed: int,
    rate_hz: float,
    slower: float = 1.0,
    rt_priority: int = 0,
    only: str = "",
    tell: Callable[[str], None] = print,
) -> FuzzResult:
    """Attack for so long, or until interrupted; rows are printed and written as they come.

    Args:
        output: folder for parameters, logs and ``fuzz.txt``.
        minutes: how long.  seed: of all inputs.  rate_hz: most inputs a second.
        slower, rt_priority: see `FuzzWorld`.
        only: nodes whose name contains it are attacked; controller and watchdog run in any case.
        tell: takes each row.

    Raises:
        ConfigurationError: no node's name contains ``only``.
        RunError: a node does not even begin.
    """
    rows = other_node_rows(ROBOT_NAME)
    names = [name for name in (CONTROLLER, WATCHDOG, *rows) if only in name]
    if not names:
        raise ConfigurationError(
            f"no node's name contains {only!r}; there are {choices((CONTROLLER, WATCHDOG, *rows))}"
        )
    beside = {name: row for name, row in rows.items() if name in names}
    make_folder(output)
    with (
        FuzzWorld(output, slower, ROBOT_NAME, rt_priority=rt_priority, other_nodes=beside) as world,
        open(output / "fuzz.txt", "a", encoding="utf-8") as file,
    ):

        def say(row: str) -> None:
            tell(row)
            print(row, file=file, flush=True)

        world.begin()
        fuzz = Fuzz(world, seed, rate_hz, say, names)
        say(
            f"seed {seed}, {minutes:g} min, at most {rate_hz:g} inputs a second, time-outs times {slower:g}"
        )
        try:
            fuzz.run(60.0 * minutes)
        except KeyboardInterrupt:
            say("interrupted")
        result = fuzz.result()
        for name, count in sorted(result.inputs.items()):
            say(f"  {name}: {count}")
        for line in fuzz.details:
            say(f"  forbidden: {line}")
        say(result.words())
    return result


class Fuzz:
    """The attack on a world whose nodes run."""

    def __init__(
        self,
        world: FuzzWorld,
        seed: int,
        rate_hz: float,
        say: Callable[[str], None],
        nodes: Sequence[str] = (),
    ) -> None:
        self._world, self._say, self._number = world, say, 0
        self._rate_hz, self._begun_s = rate_hz, time.monotonic()
        self._inputs: Counter[str] = Counter()
        self._forbidden: Counter[str] = Counter()
        self.details: list[str] = []
        self._stops_s: dict[str, list[float]] = {}
        self._commands = self._not_zero = 0
        self._stop_asked_s: float | None = None
        self._way = ""
        self._silent_from_s = math.inf
        self._own = world.own_torques
        self._made = Inputs(seed, *world.attacked(nodes), world.words)
        self._work_s: dict[str, list[float]] = {}
        self._resting: dict[str, float] = {}
        world.on_command, world.other_nodes.on_fault = self._judge, self._forbid

    def run(self, duration_s: float) -> None:
        """Attack for so long."""
        world = self._world
        self._begun_s = now_s = time.monotonic()
        end_s = now_s + duration_s
        due = {
            self._row: ROW_EVERY_S,
            self._mend: MEND_EVERY_S,
            self._world.put_back: PUT_BACK_EVERY_S,
            self._stop: STOP_EVERY_S,
            self._be_silent: SILENCE_EVERY_S,
            self._let_work: WORK_EVERY_S,
        }
        next_s = {task: now_s + period_s for task, period_s in due.items()}
        sent, paced_s = 0, now_s
        while (now_s := time.monotonic()) < end_s:
            world.turn(states=now_s < self._silent_from_s)
            for task, period_s in due.items():
                if now_s >= next_s[task]:
                    task()
                    next_s[task] = time.monotonic() + period_s
            while sent < (time.monotonic() - paced_s) * self._rate_hz:
                self._one()
                sent += 1
                if sent % 20 == 0:
                    break
            else:
                sent, paced_s = 0, time.monotonic()
            # Always: at SCHED_FIFO a loop that lags behind its rate would starve the threads that receive.
            time.sleep(2e-4)
            if now_s > self._silent_from_s + SILENCE_S:
                self._silent_from_s = math.inf
            self._check_stop(now_s)
            self._check_work(now_s)

    def result(self) -> FuzzResult:
        """What came of it so far."""
        return FuzzResult(
            self._inputs,
            self._commands,
            self._not_zero / max(self._commands, 1),
            self._stops_s,
            self._work_s,
            self._forbidden,
            time.monotonic() - self._begun_s,
        )

    # Inputs

    def _one(self) -> None:
        """The next input, unless it would spoil what is judged just now."""
        world = self._world
        name, what = self._made.input(self._number, world.other_nodes.time_ns)
        self._number += 1
        if name in world.services:
            self._ask(name, what)
            return
        door = world.doors[name]
        if what is None or door.other_node in self._resting:
            return
        if door.is_state and self._silent_from_s < math.inf:
            return
        with contextlib.suppress(RCLError):  # more bytes than a message of this kind can have
            door.publisher.publish(what)
            self._inputs[name] += 1

    def _ask(self, name: str, request: Any) -> None:
        """A request of a service, without waiting for the answer."""
        world, owner = self._world, self._world.owner(name)
        if owner in self._resting or (not owner and self._silent_from_s < math.inf):
            return
        if world.waiting(name) >= (1 if name.endswith(SLOW) else MOST_WAITING):
            return
        world.ask(name, request)
        self._inputs[name] += 1

    # What must be, whatever comes

    def _judge(self, efforts: np.ndarray, age_s: float, now_s: float) -> None:
        world = self._world
        self._commands += 1
        if efforts.shape != world.limits.shape or not np.isfinite(efforts).all():
            self._forbid("not finite, or of another size", efforts)
            return
        largest = np.abs(efforts).max()
        self._not_zero += bool(largest > ZERO_NM)
        if (np.abs(efforts) > world.limits + ZERO_NM).any():
            self._forbid("over a limit of the URDF", efforts)
        if np.count_nonzero(efforts == self._own) > len(efforts) / 2:
            self._forbid("from a second commander", efforts)
        if age_s > world.state_timeout_s + LATE_S:
            self._forbid("old", f"{age_s:.3f} s")
        begun_s = self._silent_from_s + world.state_timeout_s + SILENT_AFTER_S
        if begun_s < now_s < self._silent_from_s + SILENCE_S and largest > ZERO_NM:
            self._forbid("torque long after the last state", efforts)
        if self._stop_asked_s is not None and largest <= ZERO_NM:
            self._stopped(now_s)

    def _forbid(self, what: str, detail: Any) -> None:
        self._forbidden[what] += 1
        if self._forbidden[what] <= 5:
            passed_s = time.monotonic() - self._begun_s
            self.details.append(f"{what}, after {passed_s:.1f} s: {detail}")
            self._say(f"FORBIDDEN {self.details[-1]}")

    def _stop(self) -> None:
        """Ask for the emergency stop, at a time when there is torque to be taken away."""
        world = self._world
        if self._stop_asked_s is None and self._silent_from_s == math.inf and world.has_torque:
            self._way, self._stop_asked_s = world.emergency_stop()

    def _stopped(self, now_s: float) -> None:
        took_s = now_s - self._stop_asked_s
        self._stops_s.setdefault(self._way, []).append(took_s)
        if took_s > STOP_S:
            self._forbid("emergency stop", f"{took_s:.3f} s by {self._way}")
        self._stop_asked_s = None
        self._world.release()

    def _check_stop(self, now_s: float) -> None:
        if self._stop_asked_s is not None and now_s - self._stop_asked_s > 5.0:
            self._forbid("emergency stop", f"none within 5 s by {self._way}")
            self._stop_asked_s = None
            self._world.release()

    # Now and then

    def _let_work(self) -> None:
        """Spoil nothing more of the nodes beside until each has done its work."""
        if not self._resting:
            self._resting = dict.fromkeys(self._world.other_nodes, time.monotonic())
            self._world.other_nodes.begin_work()

    def _check_work(self, now_s: float) -> None:
        """Patience is by the time of the messages that a node got: this process may be late with them."""
        beside = self._world.other_nodes
        for name, begun_s in list(self._resting.items()):
            if beside.works(name, self._world.ask):
                self._work_s.setdefault(name, []).append(now_s - begun_s)
            elif (waited_s := beside.waited_s(name)) > beside.patience_s(name) * self._world.slower:
                self._forbid("no work again", f"{name} within {waited_s:.1f} s")
            else:
                continue
            del self._resting[name]

    def _be_silent(self) -> None:
        if self._stop_asked_s is None:
            self._silent_from_s = time.monotonic()

    def _mend(self) -> None:
        """Bring the robot back to where it commands: out of stops, active."""
        if self._silent_from_s == math.inf and self._stop_asked_s is None:
            self._world.mend()

    def _row(self) -> None:
        for what in self._world.deaths():
            self._forbid("death", what)
        self._say(self.result().words())


class Inputs:
    """Inputs by number: of the same seed, doors and services the same ones, however fast they are sent.

    Args:
        seed: of all.  doors, services: by full name.  words: texts that mean something to the nodes.
    """

    def __init__(
        self, seed: int, doors: Mapping[str, Any], services: Mapping[str, Any], words: Sequence[str]
    ) -> None:
        self._seed, self._doors, self._services = seed, doors, services
        self._words = list(words)
        self._topics, self._names = sorted(doors), sorted(services)

    def input(self, number: int, now_ns: Callable[[str], int]) -> tuple[str, Any]:
        """Name of a topic or service, and bytes for it (None: it is spared) or a request; stamps are about its node's time."""
        random = Random(f"{self._seed} {number}")
        if self._names and random.random() < PARTS:
            name = random.choice(self._names)
            return name, self._request(name, random)
        name = random.choice(self._topics)
        if name == STOP_TOPIC and random.random() > SELDOM:
            return name, None
        door = self._doors[name]
        if door.commands and random.random() < 0.5:
            return name, door.good
        if door.good and random.random() < 0.85:
            stamp_ns = now_ns(door.other_node) + random.choice((0, 0, 20_000_000))
            good = door.good
            if door.stamped:
                good = with_stamp(good, stamp_ns)
            return name, spoiled(good, random)
        return name, serialised(door.kind, random, self._words)

    def _request(self, name: str, random: Random) -> Any:
        request = filled(self._services[name].Request, random, self._words)
        if hasattr(request, "parameters"):
            table = TABLES.get(name.split("/")[-2], TABLE)
            request.parameters = [
                parameter(random, self._words, table)
                for _ in range(random.choice((0, 1, 1, 2, 30)))
            ]
        return request


def parameter(
    random: Random, words: Sequence[str], table: Sequence[ParameterSpec] = TABLE
) -> ParameterMessage:
    """A parameter of a node, by default the controller, with a value that may be right, wrong, or none."""
    spec = random.choice(table)
    name = spec.name if random.random() < 0.9 else random.choice((*TEXTS, *words))
    kind = TYPES[spec.kind]
    if random.random() < 0.15:
        kind = random.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 77, 255))
    number = random.choice((*NUMBERS, random.gauss(0.0, 1.0), random.random()))
    value = ParameterValue(
        type=kind,
        bool_value=random.random() < 0.5,
        integer_value=random.choice((-1, *COUNTS)),
        double_value=number,
        string_value=random.choice((*TEXTS, *words, *spec.choices)),
        double_array_value=[number] * random.choice((0, 1, 2, 12, 2000)),
        string_array_value=[random.choice((*TEXTS, *words))] * random.choice((0, 1, 12)),
    )
    return ParameterMessage(name=name, value=value if random.random() < 0.2 else alone(value))


def alone(value: ParameterValue) -> ParameterValue:
    """The same with nothing but the field of its type."""
    fields = {
        ParameterType.PARAMETER_BOOL: "bool_value",
        ParameterType.PARAMETER_INTEGER: "integer_value",
        ParameterType.PARAMETER_DOUBLE: "double_value",
        ParameterType.PARAMETER_STRING: "string_value",
        ParameterType.PARAMETER_DOUBLE_ARRAY: "double_array_value",
        ParameterType.PARAMETER_STRING_ARRAY: "string_array_value",
    }
    field = fields.get(value.type)
    given = {} if field is None else {field: getattr(value, field)}
    return ParameterValue(type=value.type, **given)
