"""Scheduling of a node's process: priority, processors, locked memory.

    controller --rt-priority 80 --cpus 1 --ros-args ...

The priority is set when the node has finished compiling: a process that computes for minutes at SCHED_FIFO would stop
the machine. It is set for *every* thread of the process: messages arrive in threads of the middleware, and if these
kept an ordinary priority a busy machine would delay them while the node, at a high one, waits for them. Later threads
inherit it.
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
"""MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT of mlockall: pages in use stay in memory, others are not loaded."""

COLLECT_S = 0.25
"""Time between two garbage collections while a node is active."""

BORNE_S = 0.01
"""Longest pause by the kernel that is not reported: a walk tolerates twice as long without a command."""

LIMITS = Path("/proc/sys/kernel")
"""Files in which Linux states the share of time for real-time threads."""


def longest_pause_s() -> float:
    """Longest time, s, for which the kernel stops real-time threads that have used their share; 0: none, or unknown."""
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

    priority: of SCHED_FIFO, 1 to 99; 0: the ordinary one.  cpus: numbers of processors; none: all.
    """

    priority: int = 0
    cpus: tuple[int, ...] = ()

    def words(self) -> list[str]:
        """The same as arguments of a node's command line."""
        priority = ["--rt-priority", str(self.priority)] if self.priority else []
        cpus = ["--cpus", ",".join(map(str, self.cpus))] if self.cpus else []
        return priority + cpus


def cores(text: str) -> tuple[int, ...]:
    """Numbers of processors from text such as ``1`` or ``0,2-3``.

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
        ConfigurationError: not a whole number within 0 to 99.
    """
    if not (text.isdigit() and int(text) <= 99):
        raise ConfigurationError(f"rt-priority is {text!r}, must be a whole number from 0 to 99")
    return int(text)


def is_allowed(number: int) -> bool:
    """Whether the system allows this process a real-time priority."""
    try:
        policy, before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(number))
        os.sched_setscheduler(0, policy, before)
    except (OSError, AttributeError):  # AttributeError: not Linux
        return False
    return True


def from_command_line(arguments: Sequence[str]) -> tuple[Scheduling, list[str]]:
    """The scheduling options before the ROS arguments of a command line; and all other arguments.

    Raises:
        ConfigurationError: a bad value.
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
    """Scheduling of this process. What the system refuses is logged, and the process continues without it.

    Args:
        requested: priority and processors.
    """

    def __init__(self, requested: Scheduling) -> None:
        self.requested = requested
        self._refusals: list[str] = []
        self._warned_of_pauses = False
        if requested.cpus:
            # Before any other thread is made: they inherit it.
            self._try(
                f"--cpus {','.join(map(str, requested.cpus))}",
                lambda: os.sched_setaffinity(0, requested.cpus),
            )

    def settle(self, warn: Callable[[str], None]) -> None:
        """After everything permanent is made: exclude it from garbage collection, lock memory, take the priority.

        warn: logs a line for each refusal by the system.
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
            if pause_s > BORNE_S and not self._refusals and not self._warned_of_pauses:
                self._warned_of_pauses = True
                warn(
                    f"the kernel may stop real-time threads for {1e3 * pause_s:.0f} ms at a time, when "
                    "they use nearly all of a core; docs/real_time.md: how to shorten that"
                )
        for line in self._refusals:
            warn(line)
        self._refusals.clear()

    def unsettle(self) -> None:
        """Undo `settle` before much is made again: ordinary priority."""
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
        """Call ``action``; a refusal by the system becomes a line of ``_refusals``."""
        try:
            action()
        except (OSError, AttributeError) as error:  # AttributeError: not Linux
            self._refusals.append(
                f"{what} is refused by the system ({error}): continues without it; docs/real_time.md "
                "lists what to allow"
            )


def _lock_memory() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(_KEEP_MEMORY):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


process = Process(Scheduling())
"""The process of this node; ``take`` replaces it."""


def take(requested: Scheduling) -> None:
    """Request this scheduling, as far as possible before the node exists."""
    global process
    process = Process(requested)


def unsettle() -> None:
    """See ``Process.unsettle``."""
    process.unsettle()


def settle(warn: Callable[[str], None]) -> None:
    """See ``Process.settle``; nodes call it when everything permanent is made."""
    process.settle(warn)


class GarbageBreak:
    """Collects garbage between steps while a node is active, never during one.

    What configure made is collected once, before activation, and then excluded: that takes longer than a watchdog waits
    for a command.

    Args:
        configured, active: return whether the node is.
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
        """Collect garbage every ``COLLECT_S`` s while active; call it between periods."""
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
