"""Reads long plans in a thread, while steps go on; a later step follows them.

Python lets a thread run for 5 ms before it switches to another one; while a plan is read that is 0.1 ms, so that a
state hardly waits for its step. While many long plans arrive the thread rests between them: each switch of threads
waits for a processor where others compete for it, too.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from contact_id_controller.plans.plan import Plan

SWITCH_S = 1e-4
"""Longest time that reading delays a step, except by a single operation on arrays."""

SHARE = 0.25
"""Largest share of the time that is spent on reading."""


class Read(NamedTuple):
    """A plan that was read, or the error of its reading.

    what: reason under which errors are counted.  taken: called when it is followed.
    """

    what: str
    plan: Plan | Exception
    taken: Callable[[], None]

    def result(self) -> Plan:
        """The plan; raises the error of its reading."""
        if isinstance(self.plan, Exception):
            raise self.plan
        return self.plan


class PlanReader:
    """Reads plans in order of arrival; of waiting ones only the newest of each kind.

    The thread starts with the first plan, and ends when none is waiting.
    """

    def __init__(self) -> None:
        self.done: deque[Read] = deque()
        """Plans that were read; the loop takes them with `popleft`."""
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[Callable[[], Plan], Callable[[], None]]] = {}
        self._thread: threading.Thread | None = None
        self._round, self._rested_s = 0, 0.0

    @property
    def is_busy(self) -> bool:
        """Whether a plan that arrived before is not yet followed."""
        return self._thread is not None or bool(self.done)

    def read(self, what: str, make: Callable[[], Plan], taken: Callable[[], None]) -> None:
        """Start to read a plan; it replaces a waiting one of the same kind."""
        with self._lock:
            self._waiting.pop(what, None)
            self._waiting[what] = make, taken
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="plans", daemon=True)
                thread.start()  # refused where the system has no more: then the next plan tries again
                self._thread = thread

    def clear(self) -> None:
        """Drop all that has arrived."""
        with self._lock:
            self._round += 1
            self._waiting.clear()
            self.done.clear()

    def _work(self) -> None:
        """Read plans until none is waiting, in a thread that yields the interpreter to control steps."""
        _yield_to_steps()
        interval_s = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_S, interval_s))
        try:
            while self._read_one():
                pass
        finally:
            sys.setswitchinterval(interval_s)

    def _read_one(self) -> bool:
        """Read a waiting plan, after a rest that keeps reading below ``SHARE`` of the time; False: none is waiting."""
        with self._lock:
            if not self._waiting:
                self._thread = None
                return False
        time.sleep(max(self._rested_s - time.monotonic(), 0.0))
        with self._lock:
            if not self._waiting:  # forgotten meanwhile
                return True
            what = next(iter(self._waiting))
            (make, taken), number = self._waiting.pop(what), self._round
        begun_s = time.thread_time()
        plan: Any
        try:
            plan = make()
        except Exception as error:
            plan = error
        took_s = time.thread_time() - begun_s
        self._rested_s = time.monotonic() + took_s / SHARE - took_s
        with self._lock:
            if number == self._round:
                self.done.append(Read(what, plan, taken))
        return True


def _yield_to_steps() -> None:
    """Lower this thread's real-time priority, if it has one, below that of the thread that steps."""
    with contextlib.suppress(OSError, AttributeError):  # refused, or not Linux
        policy, priority = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        if policy in (os.SCHED_FIFO, os.SCHED_RR):
            lower = os.SCHED_OTHER if priority <= 1 else policy
            os.sched_setscheduler(0, lower, os.sched_param(max(priority - 1, 0)))
