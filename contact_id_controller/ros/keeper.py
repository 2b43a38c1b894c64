"""A process that has a second worker at hand when something kills the first.

Starting Python and importing ROS takes a second, and being discovered by others up to three more, ten
times as long on a busy machine. So the keeper, which runs nothing of ROS itself, forks workers that
find everything loaded, and one of them in reserve: it has connected and is known to all, and waits.
When the working one is ended by a signal that did not come through the keeper, the reserve goes on,
and another one takes its place. The keeper's own death is that of its workers, but for one at work that
asked to outlive it.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from contact_id_controller.ros.signals import ENDING, keep_running

SHORTEST_LIFE_S, SHORT_LIVES = 1.0, 5
"""Workers killed so often after so short a life are not followed by others."""

_LOOK_S = 0.02
"""Time between two looks at a worker that is not ready yet."""

_PROVEN, _READY, _WANTS_RESERVE = range(3)
"""Bytes that keeper and workers share: a worker was ready; this one is; it wants one in reserve."""

_PR_SET_PDEATHSIG = 1


class Worker:
    """What a worker knows of its keeper.

    Attributes:
        reserve: whether it is to connect and then to wait for ``is_called``.
        keeper: number of its process.
    """

    def __init__(self, page: mmap.mmap, call: int | None, keeper: int) -> None:
        self._page, self._call, self.keeper = page, call, keeper
        self.reserve = call is not None

    @property
    def is_proven(self) -> bool:
        """Whether a worker before this one was ready: its parameters are good."""
        return self._page[_PROVEN] != 0

    def ready(self, wants_reserve: bool) -> None:
        """It works; whether another one is to stand by."""
        self._page[_PROVEN] = self._page[_READY] = 1
        self._page[_WANTS_RESERVE] = wants_reserve

    @property
    def has_keeper(self) -> bool:
        """Whether the keeper lives."""
        return os.getppid() == self.keeper

    def outlive_keeper(self) -> None:
        """From now on the keeper's death does not end this process."""
        _end_with_parent(0)

    def is_called(self, wait_s: float) -> bool:
        """Whether it is its turn now; waits up to ``wait_s`` for that. Ends the process with the keeper."""
        if not select.select([self._call], [], [], wait_s)[0]:
            return False
        if not os.read(self._call, 1):
            os._exit(1)
        self.reserve = False
        return True


def _end_with_parent(number: int) -> None:
    """Which signal this process is to get when its parent dies; 0: none."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


class _Child(NamedTuple):
    """A worker, seen by its keeper; where it is called, and when it began."""

    pid: int
    call: int
    begun_s: float


def keep(name: str, work: Callable[[Worker], int]) -> int:
    """Run ``work`` in processes of their own; the exit code of the one that ended by itself.

    Args:
        name: begins the lines that are printed when one is killed.
        work: called in each worker; its answer is the exit code.
    """
    return _Keeper(name, work).run()


class _Keeper:
    def __init__(self, name: str, work: Callable[[Worker], int]) -> None:
        self._name, self._work = name, work
        self._page = mmap.mmap(-1, 3)
        self._asked_to_end = False
        self._active: _Child | None = None
        self._reserve: _Child | None = None
        self._short_lives = 0
        self._handed_on = [
            number
            for number in ENDING
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        ]
        for number in self._handed_on:
            signal.signal(number, self._forward)
        keep_running()

    def run(self) -> int:
        self._active = self._fork(reserve=False)
        if self._asked_to_end:
            os.kill(self._active.pid, signal.SIGTERM)
        while True:
            pid, code = self._wait()
            if self._reserve is not None and pid == self._reserve.pid:
                self._close(self._reserve)
                self._reserve = None
                continue
            if pid != self._active.pid:
                continue
            # A worker that was ready ends by itself only when asked: else it broke.
            done = code == 0 or (code > 0 and not self._page[_READY])
            if done or self._asked_to_end or not self._replace(code):
                if self._reserve is not None:
                    os.kill(self._reserve.pid, signal.SIGKILL)
                    os.waitpid(self._reserve.pid, 0)
                return code if code >= 0 else 128 - code
            if self._asked_to_end:  # while the other one took over
                self._forward(signal.SIGTERM, None)

    def _wait(self) -> tuple[int, int]:
        """The next worker that ends, and its exit code, negative: the signal; makes reserves meanwhile."""
        while True:
            ready = self._page[_READY]
            wanted = self._page[_WANTS_RESERVE] and self._short_lives < SHORT_LIVES
            if ready and wanted and self._reserve is None:
                self._reserve = self._fork(reserve=True)
            waits = self._reserve is not None or (ready and not wanted)
            pid, status = os.waitpid(-1, 0 if waits else os.WNOHANG)
            if pid:
                child = self._active if pid == self._active.pid else self._reserve
                if child is not None and pid == child.pid:
                    short = time.monotonic() - child.begun_s < SHORTEST_LIFE_S
                    self._short_lives = self._short_lives + 1 if short else 0
                return pid, os.waitstatus_to_exitcode(status)
            time.sleep(_LOOK_S)

    def _replace(self, code: int) -> bool:
        """Let another worker go on after one that was killed; whether there is one."""
        self._page[_READY] = 0
        self._close(self._active)
        if self._short_lives >= SHORT_LIVES:
            print(f"{self._name}: killed {SHORT_LIVES} times at its start", file=sys.stderr)
            return False
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            try:
                os.write(reserve.call, b"!")
            except BrokenPipeError:  # killed in the same moment; its end is still to be told
                os.waitpid(reserve.pid, 0)
                self._close(reserve)
                reserve = None
        self._active = reserve or self._fork(reserve=False)
        words = "the reserve goes on" if reserve else "started again"
        end = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        print(f"{self._name}: {end}, {words}", file=sys.stderr, flush=True)
        return True

    def _fork(self, reserve: bool) -> _Child:
        keeper, (called, call) = os.getpid(), os.pipe()
        # What comes before the child is known waits; in the worker for handlers of its own.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._handed_on)
        pid = os.fork()
        if not pid:
            os.close(call)
            for other in (self._active, self._reserve):
                if other is not None:
                    self._close(other)
            self._live(Worker(self._page, called if reserve else None, keeper))
        os.close(called)
        child = _Child(pid, call, time.monotonic())
        if not reserve:
            self._active = child
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handed_on)
        return child

    def _live(self, worker: Worker) -> None:
        """The worker's life; does not return."""
        code = 1
        try:
            _end_with_parent(signal.SIGKILL)
            for number in self._handed_on:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handed_on)
            if worker.has_keeper:
                code = self._work(worker)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _forward(self, number, frame) -> None:
        self._asked_to_end = True
        if self._active is not None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self._active.pid, number)

    @staticmethod
    def _close(child: _Child) -> None:
        with contextlib.suppress(OSError):  # closed before
            os.close(child.call)
