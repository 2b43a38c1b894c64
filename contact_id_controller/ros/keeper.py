"""A keeper process that replaces a worker process which is killed or hangs.

Starting Python and importing ROS takes a second, and discovery up to three more, ten times as long on a busy machine.
So the keeper, which runs no ROS itself, forks workers that have everything loaded, and keeps one in reserve: it has
connected, is discovered, and waits. When the working one is ended by a signal that was not sent through the keeper, the
reserve takes over, and another reserve is started. A worker that hangs is killed first: each counts beats in a page of
memory shared with the keeper, and states the longest time between two. When the keeper dies its workers die with it,
except a working one that has called `Worker.outlive_keeper`.
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
from pathlib import Path
from typing import Any

from contact_id_controller.ros.signals import ENDING, keep_running

SHORTEST_LIFE_S, SHORT_LIVES = 1.0, 5
"""After so many workers in a row that were killed within this time no other is started; a reserve is, after _LATER_S."""

_LOOK_S = 0.01
"""Time between two checks whether workers hang; a death is noticed at once."""

_LONGEST_LOOK_S = 2.0 * _LOOK_S
"""Longest time between two checks that counts: beyond it the keeper was suspended, perhaps with all others."""

_AGAIN_S = 0.5
"""Time between two attempts to start a worker that the system refuses."""

_LATER_S = 10.0
"""Time until reserves are started again after so many that died at their start, as of a short lack of memory."""

_RESERVE_SILENT_S = 1.0
"""Longest time between two beats of a reserve, until it has been called and works."""

_PROVEN, _READY, _WANTS_RESERVE, _BEATS, _SILENT_NS = 0, 1, 2, 3, 5
"""Words of the shared page: whether a worker was ever ready; whether this one is; whether it wants a reserve; for each
of the two workers: its beats, and the longest time between two, ns, 0: no limit."""

_WORDS = 7

_PR_SET_PDEATHSIG = 1


class Worker:
    """The worker's side of the shared page.

    Attributes:
        reserve: whether it is to connect and then to wait for ``is_called``.
        keeper: process number of the keeper.
    """

    def __init__(self, page: memoryview, place: int, call: int | None, keeper: int) -> None:
        self._page, self._place, self._call, self.keeper = page, place, call, keeper
        self.reserve = call is not None

    @property
    def is_proven(self) -> bool:
        """Whether an earlier worker was ready: then the parameters are good."""
        return self._page[_PROVEN] != 0

    def ready(self, wants_reserve: bool) -> None:
        """Report that it works; wants_reserve: whether a reserve is to be started."""
        self._page[_PROVEN] = self._page[_READY] = 1
        self._page[_WANTS_RESERVE] = wants_reserve

    def beat(self, silent_s: float) -> None:
        """Report that it does not hang; it does if the next beat is later than silent_s, unless that is 0."""
        self._page[_SILENT_NS + self._place] = int(1e9 * silent_s)
        self._page[_BEATS + self._place] += 1

    @property
    def has_keeper(self) -> bool:
        """Whether the keeper is alive."""
        return os.getppid() == self.keeper

    def outlive_keeper(self) -> None:
        """Let this process survive the keeper."""
        _end_with_parent(0)

    def is_called(self, wait_s: float) -> bool:
        """Wait up to ``wait_s`` for the call to take over; return whether it came. Ends the process with the keeper."""
        assert self._call is not None, "only a reserve waits"
        self.beat(_RESERVE_SILENT_S)
        if not select.select([self._call], [], [], wait_s)[0]:
            return False
        if not os.read(self._call, 1):
            os._exit(1)
        self.reserve = False
        return True


def _end_with_parent(number: int) -> None:
    """Set the signal that this process gets when its parent dies; 0: none."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


class _Child:
    """The keeper's side of a worker.

    Attributes:
        pid, handle: process number, and a file descriptor that is readable once the process has ended.
        call: pipe on which it is called.
        place: its index in the page.
        begun_s: when it was started.
    """

    def __init__(self, pid: int, handle: int, call: int, place: int) -> None:
        self.pid, self.handle, self.call, self.place = pid, handle, call, place
        self.begun_s = self._looked_s = time.monotonic()
        self._silent_s, self._beats = 0.0, 0
        self._used_s: float | None = None

    def hangs(self, page: memoryview, most_s: float) -> bool:
        """Whether it has not beaten for longer than ``most_s`` although it could have; call it every `_LOOK_S`.

        Not counted are the time in which the keeper was suspended and, from half of it on, the time in which the worker
        waited for a processor or a disk.
        """
        now_s = time.monotonic()
        passed_s, self._looked_s = min(now_s - self._looked_s, _LONGEST_LOOK_S), now_s
        if self._silent_s > 0.5 * most_s:  # a look at its threads costs half a millisecond
            busy, used_s = _threads(self.pid)
            before_s, self._used_s = self._used_s, used_s
            if busy:
                passed_s = 0.0 if before_s is None else min(passed_s, max(used_s - before_s, 0.0))
        else:
            passed_s = min(passed_s, most_s - self._silent_s)  # one interval alone is no evidence
        beats = page[_BEATS + self.place]  # only now: this process may have been suspended above
        if beats != self._beats:
            self._beats, self._silent_s, self._used_s = beats, 0.0, None
            return False
        self._silent_s += passed_s
        return self._silent_s > most_s

    def close(self) -> None:
        """Close its file descriptors."""
        for handle in (self.handle, self.call):
            os.close(handle)


def _threads(pid: int) -> tuple[bool, float]:
    """Whether a process that is not stopped runs or waits for a processor or a disk; and its computing time, s."""
    busy, stopped, used_ns = False, False, 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            state = (task / "stat").read_bytes().rpartition(b")")[2].split()[0]
            busy, stopped = busy or state in b"RD", stopped or state in b"Tt"
            used_ns += int((task / "schedstat").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):  # a thread has just ended: the process has not
        busy = True
    return busy and not stopped, 1e-9 * used_ns


def keep(name: str, work: Callable[[Worker], int]) -> int:
    """Run ``work`` in worker processes; return the exit code of the one that ended by itself.

    Args:
        name: begins the lines that are printed when a worker is killed.
        work: called in each worker; its result is the exit code.
    """
    return _Keeper(name, work).run()


class _Keeper:
    """Runs a worker and its reserve: forwards signals, replaces a worker that ends or hangs."""

    def __init__(self, name: str, work: Callable[[Worker], int]) -> None:
        self._name, self._work = name, work
        self._page = memoryview(mmap.mmap(-1, 8 * _WORDS)).cast("Q")
        self._asked_to_end = False
        self._active: _Child | None = None
        self._reserve: _Child | None = None
        self._short_lives = 0
        self._next_fork_s, self._refused = 0.0, False
        self._handed_on = [
            number
            for number in ENDING
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        ]
        for number in self._handed_on:
            signal.signal(number, self._forward)
        keep_running()

    def run(self) -> int:
        """Run a worker, replace it by its reserve when it is killed or hangs; return the exit code of the last one."""
        if not self._begin():
            return 0
        if self._asked_to_end and self._active is not None:
            os.kill(self._active.pid, signal.SIGTERM)
        while True:
            code = self._wait()
            # A worker that was ready ends with an error code only if it failed.
            done = code == 0 or (code > 0 and not self._page[_READY])
            if done or self._asked_to_end or not self._replace(code):
                if self._reserve is not None:
                    os.kill(self._reserve.pid, signal.SIGKILL)
                    os.waitpid(self._reserve.pid, 0)
                return code if code >= 0 else 128 - code
            if self._asked_to_end:  # while the other one took over
                self._forward(signal.SIGTERM, None)

    def _begin(self) -> bool:
        """Start a worker that works at once, as soon as the system allows; False: interrupted before."""
        while not self._fork(reserve=False):
            if self._asked_to_end:
                return False
            time.sleep(_AGAIN_S)
        return True

    def _wait(self) -> int:
        """Wait for the active worker to end, starting reserves meanwhile; its exit code, negative: the signal."""
        while True:
            if self._page[_READY] and self._page[_WANTS_RESERVE] and self._reserve is None:
                if time.monotonic() >= self._next_fork_s and not self._fork(reserve=True):
                    self._next_fork_s = time.monotonic() + _AGAIN_S
            children = [each for each in (self._reserve, self._active) if each is not None]
            handles = [each.handle for each in children]
            ended = select.select(handles, [], [], _LOOK_S)[0]
            for child in children:
                if child.handle in ended:
                    code = self._end_of(child)
                    if child is self._active:
                        self._active = None
                        return code
                    self._reserve = None
                    self._rest_after_short_lives()
                else:
                    self._end_if_it_hangs(child)

    def _rest_after_short_lives(self) -> None:
        """Start no reserve for a while after many that died at once."""
        if self._short_lives >= SHORT_LIVES:
            self._log_line(
                f"{SHORT_LIVES} reserves died at their start, the next in {_LATER_S:g} s"
            )
            self._short_lives, self._next_fork_s = 0, time.monotonic() + _LATER_S

    def _end_of(self, child: _Child) -> int:
        """Exit code of a worker that has ended; closes it and counts short lives."""
        _, status = os.waitpid(child.pid, 0)
        child.close()
        short = time.monotonic() - child.begun_s < SHORTEST_LIFE_S
        self._short_lives = self._short_lives + 1 if short else 0
        return os.waitstatus_to_exitcode(status)

    def _end_if_it_hangs(self, child: _Child) -> None:
        """Kill a worker that has not beaten for longer than it allows; more is allowed while there is no reserve."""
        most_s = 1e-9 * self._page[_SILENT_NS + child.place]
        if child is self._active and self._reserve is None:
            most_s = most_s and max(most_s, _RESERVE_SILENT_S)  # another one takes seconds to begin
        if most_s and child.hangs(self._page, most_s):
            os.kill(child.pid, signal.SIGKILL)
            self._page[_SILENT_NS + child.place] = 0
            self._log_line(f"process {child.pid} has been silent for {most_s:g} s, killed")

    def _replace(self, code: int) -> bool:
        """Continue with another worker after one that was killed or failed; return whether there is one."""
        self._page[_READY] = 0
        if self._short_lives >= SHORT_LIVES:
            self._log_line(f"killed {SHORT_LIVES} times at its start")
            return False
        reserve, self._reserve = self._reserve, None
        if reserve is not None:
            try:
                os.write(reserve.call, b"!")
            except BrokenPipeError:  # killed in the same moment
                self._end_of(reserve)
                reserve = None
        self._active = reserve
        words = "the reserve takes over" if reserve else "started again"
        end = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self._log_line(f"{end}, {words}")
        return reserve is not None or self._begin()

    def _fork(self, reserve: bool) -> bool:
        """Start a worker; return whether the system allowed it."""
        other = self._active if reserve else self._reserve
        place = 0 if other is None else 1 - other.place
        self._page[_BEATS + place] = self._page[_SILENT_NS + place] = 0
        # Signals wait until the child is known here, and has its own handlers there.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._handed_on)
        try:
            child = self._child(reserve, place)
        except OSError as error:
            if not self._refused:
                self._log_line(f"cannot start another process: {error.strerror}; tried again")
            self._refused = True
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._handed_on)
        self._refused = False
        if reserve:
            self._reserve = child
        else:
            self._active = child
        return True

    def _child(self, reserve: bool, place: int) -> _Child:
        """Fork a worker. Raises OSError where the system has no room for one."""
        keeper, (called, call) = os.getpid(), os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(called)
            os.close(call)
            raise
        if not pid:
            os.close(call)
            for other in (self._active, self._reserve):
                if other is not None:
                    other.close()
            self._live(Worker(self._page, place, called if reserve else None, keeper))
        os.close(called)
        try:
            return _Child(pid, os.pidfd_open(pid), call, place)
        except OSError:
            os.close(call)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def _live(self, worker: Worker) -> None:
        """Run the worker in the forked process; does not return."""
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
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):  # not read
                    stream.flush()
            os._exit(code)

    def _log_line(self, words: str) -> None:
        """Print a line on standard error; it is dropped if that is closed."""
        with contextlib.suppress(OSError):
            os.write(2, f"{self._name}: {words}\n".encode())

    def _forward(self, number: int, frame: Any) -> None:
        self._asked_to_end = True
        if self._active is not None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self._active.pid, number)
