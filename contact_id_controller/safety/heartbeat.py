"""Heartbeats: what a process reports of itself, and whether another one is lost or only slow. Without ROS.

Times are passed in: seconds of a steady clock.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from contact_id_controller.exceptions import StateError

BEAT_S = 0.1
"""Time between two beats."""

LOST_S = 0.5
"""A process is lost after this long, s, without a heartbeat; only time in which we could receive counts."""

_LONGEST_LOOK_S = 0.1
"""Longest time between two looks that counts: beyond it the listener itself was suspended."""

_STATE, _START_TIME = 0, 19
"""Fields of /proc/PID/stat behind the name."""

_KINDS = {"pid": int, "started": int, "machine": str, "state": str}


def process_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat behind the name; None: there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def machine() -> str:
    """Identity of the boot and the process namespace (container), in which a process number is valid; "": unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


class Heart:
    """The heartbeat of this process."""

    def __init__(self) -> None:
        fields = process_fields(os.getpid())
        self._facts = {
            "pid": os.getpid(),
            "started": int(fields[_START_TIME]) if fields else 0,
            "machine": machine(),
        }
        self._next_s = -float("inf")

    def is_due(self, now_s: float) -> bool:
        """Whether to publish a beat now; if so the next one is due `BEAT_S` later."""
        if now_s < self._next_s:
            return False
        self._next_s = now_s + BEAT_S
        return True

    def words(self, state: str) -> str:
        """A beat as JSON text."""
        return json.dumps({**self._facts, "state": state})


class Pulse:
    """The heartbeat of another process.

    Attributes:
        state: the state that it reported, empty before the first beat.
        silent_s: time since its last beat in which this process could receive, s.
    """

    def __init__(self) -> None:
        self.state = ""
        self.silent_s = float("inf")
        self._facts: dict[str, Any] = {}
        self._looked_s: float | None = None
        self._here = machine()

    def take(self, words: str) -> None:
        """Receive a beat.

        Raises:
            StateError: not a beat.
        """
        try:
            facts = json.loads(words)
            good = all(type(facts[name]) is kind for name, kind in _KINDS.items())
        except (ValueError, TypeError, KeyError, RecursionError):
            good = False
        if not good:
            raise StateError("a heartbeat is no JSON of pid, started, machine and state")
        self._facts, self.state, self.silent_s = facts, facts["state"], 0.0

    def look(self, now_s: float) -> None:
        """Count the time since the last look as without a beat: one would have been received in it."""
        if self._looked_s is not None:
            self.silent_s += min(now_s - self._looked_s, _LONGEST_LOOK_S)
        self._looked_s = now_s

    @property
    def is_lost(self) -> bool:
        """Whether no beat was received for `LOST_S`, or ever."""
        return self.silent_s > LOST_S

    def words(self) -> str:
        """Its condition: never received, gone, stopped, slow, or the state that it reports."""
        if not self._facts:
            return "never received"
        pid = self._facts["pid"]
        last = f"last received {self.silent_s:.2f} s ago"
        if self._here and self._facts["machine"] == self._here:
            fields = process_fields(pid)
            if fields is None or int(fields[_START_TIME]) != self._facts["started"]:
                return f"process {pid} is gone"
            if fields[_STATE] in "ZX":
                return f"process {pid} is dead"
            if fields[_STATE] in "Tt":
                return f"process {pid} is stopped by a signal, {last}"
            if self.is_lost:
                return f"process {pid} lives but is slow, {last}"
        elif self.is_lost:
            return f"process {pid} of another machine is silent, {last}"
        return self.state
