"""Long plans are read beside the steps: a thread makes them, the next step finds them done.

Python lets one thread go on for 5 ms before another one may; while a plan is read that is 0.1 ms, so
that a state waits no longer for its step. In a flood of long plans the thread rests between them: each
change of threads waits for a core where others want it, too.
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
"""How long the reading may keep the step waiting, but for a single operation on arrays."""

SHARE = 0.25
"""Of the time is spent on reading, at most."""


class Read(NamedTuple):
    """A plan that was read, or why it cannot be.

    what: under which it is counted.  taken: to be called when it is followed.
    """

    what: str
    plan: Plan | Exception
    taken: Callable[[], None]

    def result(self) -> Plan:
        """The plan. Raises what its reading raised."""
        if isinstance(self.plan, Exception):
            raise self.plan
        return self.plan


class PlanReader:
    """Reads plans in the order in which they came; of those that wait, the newest of each kind.

    The thread begins with the first plan, and ends when there is nothing to read.
    """

    def __init__(self) -> None:
        self.done: deque[Read] = deque()
        """What is read: taken by the loop, with `popleft`."""
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[Callable[[], Plan], Callable[[], None]]] = {}
        self._thread: threading.Thread | None = None
        self._round, self._rested_s = 0, 0.0

    @property
    def is_busy(self) -> bool:
        """Whether something that came before is not yet followed."""
        return self._thread is not None or bool(self.done)

    def read(self, what: str, make: Callable[[], Plan], taken: Callable[[], None]) -> None:
        """Begin to make a plan; one of the same kind that still waits is dropped for it."""
        with self._lock:
            self._waiting.pop(what, None)
            self._waiting[what] = make, taken
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="plans", daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Forget all that came so far."""
        with self._lock:
            self._round += 1
            self._waiting.clear()
            self.done.clear()

    def _work(self) -> None:
        """Read plans until none waits, in a thread that yields the interpreter to control periods."""
        _yield_to_steps()
        interval_s = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_S, interval_s))
        try:
            while self._read_one():
                pass
        finally:
            sys.setswitchinterval(interval_s)

    def _read_one(self) -> bool:
        """Read one waiting plan, or rest before it so that reading takes at most ``SHARE`` of the time; False: none."""
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
    """Let this thread run after the one that steps, where that has a real-time priority."""
    with contextlib.suppress(OSError, AttributeError):  # refused, or not Linux
        policy, priority = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        if policy in (os.SCHED_FIFO, os.SCHED_RR):
            lower = os.SCHED_OTHER if priority <= 1 else policy
            os.sched_setscheduler(0, lower, os.sched_param(max(priority - 1, 0)))
