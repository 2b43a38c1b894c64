"""How the system runs a node's process: at which priority, on which cores, with its memory kept.

    controller --rt-priority 80 --cpus 1 --ros-args ...

Priority is set when the node has made all it needs, above all compiled: a process that computes for
minutes at SCHED_FIFO would stop the machine. It is set for *every* thread of the process: messages come
through threads of the middleware, and where these keep an ordinary priority a busy machine leaves them
waiting while the node, at a high one, waits for them. Threads made later inherit it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from contact_id_controller.exceptions import ConfigurationError

ROS_ARGUMENTS = "--ros-args"

_KEEP_MEMORY = 1 | 2 | 4
"""MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT of mlockall: what was touched stays, the rest is not fetched."""

COLLECT_S = 0.25
"""Time between two searches for garbage while a node is active."""

BORNE_S = 0.01
"""A pause of the kernel up to this is not worth a word: a walk bears twice as long without a command."""

LIMITS = Path("/proc/sys/kernel")
"""Where Linux states how much of which time real-time threads may take."""


def longest_pause_s() -> float:
    """How long the kernel holds real-time threads that have taken their share of a core; 0: never, or not known."""
    try:
        period_us, share_us = (
            int((LIMITS / f"sched_rt_{name}_us").read_text(encoding="ascii"))
            for name in ("period", "runtime")
        )
    except (OSError, ValueError):
        return 0.0
    return 0.0 if share_us < 0 else 1e-6 * (period_us - share_us)


class Scheduling(NamedTuple):
    """Requested scheduling.

    priority: of SCHED_FIFO, 1 to 99; 0: the ordinary one.  cpus: numbers of cores; none: all.
    """

    priority: int = 0
    cpus: tuple[int, ...] = ()

    def words(self) -> list[str]:
        """The same as words of a node's command line."""
        priority = ["--rt-priority", str(self.priority)] if self.priority else []
        cpus = ["--cpus", ",".join(map(str, self.cpus))] if self.cpus else []
        return priority + cpus


def cores(text: str) -> tuple[int, ...]:
    """Numbers of cores from text such as ``1`` or ``0,2-3``.

    Raises:
        ConfigurationError: another text.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            low, high = 1, 0
        if not 0 <= low <= high:
            raise ConfigurationError(f"cpus is {text!r}, must be numbers as in 1 or 0,2-3")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def priority(text: str) -> int:
    """A priority from text.

    Raises:
        ConfigurationError: not within 0 to 99.
    """
    if not (text.isdigit() and int(text) <= 99):
        raise ConfigurationError(f"rt-priority is {text!r}, must be a whole number from 0 to 99")
    return int(text)


def is_allowed(number: int) -> bool:
    """Whether the system would let this process have a real-time priority."""
    try:
        policy, before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(number))
        os.sched_setscheduler(0, policy, before)
    except (OSError, AttributeError):  # AttributeError: not Linux
        return False
    return True


def from_command_line(arguments: Sequence[str]) -> tuple[Scheduling, list[str]]:
    """What a node's command line asks for before its ROS arguments; and all other words.

    Raises:
        ConfigurationError: a value that is none.
    """
    words = list(arguments)
    at = words.index(ROS_ARGUMENTS) if ROS_ARGUMENTS in words else len(words)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--rt-priority", default="0")
    parser.add_argument("--cpus", default="")
    found, others = parser.parse_known_args(words[:at])
    cpus = cores(found.cpus) if found.cpus else ()
    return Scheduling(priority(found.rt_priority), cpus), others + words[at:]


class Process:
    """This process, as the system runs it. What the system refuses is logged, and it goes on.

    Args:
        requested: priority and processors.
    """

    def __init__(self, requested: Scheduling) -> None:
        self.requested = requested
        self._refusals: list[str] = []
        self._told = False
        if requested.cpus:
            # Before any other thread is made: they inherit it.
            self._try(
                f"--cpus {','.join(map(str, requested.cpus))}",
                lambda: os.sched_setaffinity(0, requested.cpus),
            )

    def settle(self, warn: Callable[[str], None]) -> None:
        """All is made that stays: garbage is not looked for in it, its memory kept, priority taken.

        warn: takes a line for each thing that the system refused.
        """
        gc.collect()
        gc.freeze()
        if self.requested.priority:
            self._try("memory that stays", _lock_memory)
            self._try(
                f"--rt-priority {self.requested.priority}",
                lambda: self._set_priority(os.SCHED_FIFO, self.requested.priority),
            )
            pause_s = longest_pause_s()
            if pause_s > BORNE_S and not self._refusals and not self._told:
                self._told = True
                warn(
                    f"the kernel may hold real-time threads for {1e3 * pause_s:.0f} ms at a time, when "
                    "they want nearly all of a core; docs/real_time.md: how to shorten that"
                )
        for line in self._refusals:
            warn(line)
        self._refusals.clear()

    def unsettle(self) -> None:
        """Much is to be made again: at the ordinary priority."""
        gc.unfreeze()
        if self.requested.priority:
            with contextlib.suppress(OSError, AttributeError):
                self._set_priority(os.SCHED_OTHER, 0)

    @staticmethod
    def _set_priority(policy: int, number: int) -> None:
        parameter = os.sched_param(number)
        for thread in Path("/proc/self/task").iterdir():
            try:
                os.sched_setscheduler(int(thread.name), policy, parameter)
            except ProcessLookupError:
                continue  # it has just ended

    def _try(self, what: str, action: Callable[[], None]) -> None:
        """Do what the system may refuse; a refusal becomes a line of ``refusals``."""
        try:
            action()
        except (OSError, AttributeError) as error:  # AttributeError: not Linux
            self._refusals.append(
                f"{what} is refused by the system ({error}): it goes on without; docs/real_time.md "
                "lists what to allow"
            )


def _lock_memory() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(_KEEP_MEMORY):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


process = Process(Scheduling())
"""That of this node; ``take`` replaces it."""


def take(requested: Scheduling) -> None:
    """Let this process be scheduled as requested, as far as that is possible before the node exists."""
    global process
    process = Process(requested)


def unsettle() -> None:
    """See ``Process.unsettle``."""
    process.unsettle()


def settle(warn: Callable[[str], None]) -> None:
    """See ``Process.settle``; for nodes, when they have made all they need."""
    process.settle(warn)


class GarbageBreak:
    """Collects garbage between steps while a node is active, never in the middle of one.

    What configure has made stays: it is searched once, before activation, because that takes
    longer than a watchdog waits for a command.

    Args:
        configured, active: whether the node is.
        warn: see ``Process.settle``.
    """

    def __init__(
        self,
        configured: Callable[[], bool],
        active: Callable[[], bool],
        warn: Callable[[str], None],
    ) -> None:
        self._configured, self._active, self._warn = configured, active, warn
        self._settled = False
        self._next_s = 0.0

    def __call__(self) -> None:
        """Collect garbage here, between periods, every ``COLLECT_S`` s while active; never within one."""
        configured = self._configured()
        if configured and not self._settled:
            settle(self._warn)
        elif self._settled and not configured:
            unsettle()
        self._settled = configured
        if not self._active():
            gc.enable()
            return
        gc.disable()
        if time.monotonic() >= self._next_s:
            gc.collect()
            self._next_s = time.monotonic() + COLLECT_S
