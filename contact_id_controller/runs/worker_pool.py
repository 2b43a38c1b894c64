"""Processes and cluster workers for many runs at once; workers with other sources are refused."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, util
from typing import TypeVar

from contact_id_controller.exceptions import RunError
from contact_id_controller.runs.fingerprint import code_fingerprint
from contact_id_controller.runs.preparation import check_extras

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
CONNECT_S, CLOSE_S = 30.0, 5.0

AHEAD = 2
"""Number of items queued per process, which are all that is kept in memory."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def reason(error: Exception) -> str:
    """Why an item has no result, in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, RunError) else f"{type(error).__name__}: {text}"


def by_executor(
    executor: Executor,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    most: int,
    begun: list[Item],
) -> Generator[tuple[Item, Result | Exception], None, None]:
    """Yield each item with ``function(item)``, or the exception that it raised, in any order.

    Args:
        executor: calls the function.
        most: largest number of items queued at once.
        begun: filled with the queued items; they remain there if a process dies.

    Raises:
        BrokenProcessPool: a process died.
    """
    futures: dict[Future[Result], Item] = {}

    def finished() -> Iterator[tuple[Item, Result | Exception]]:
        for future in wait(futures, return_when=FIRST_COMPLETED).done:
            item, error = futures.pop(future), future.exception()
            if isinstance(error, BrokenProcessPool):
                raise error
            if isinstance(error, BaseException) and not isinstance(error, Exception):
                raise error
            begun.remove(item)
            yield item, future.result() if error is None else error

    try:
        for item in items:
            begun.append(item)
            futures[executor.submit(function, item)] = item
            if len(futures) >= most:
                yield from finished()
        while futures:
            yield from finished()
    finally:
        for future in futures:
            future.cancel()


def in_processes(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int
) -> Generator[tuple[Item, Result | Exception], None, None]:
    """As `by_executor`, in processes of this machine; one that dies costs only its own item's result."""
    waiting = iter(items)
    while True:
        begun: list[Item] = []
        try:
            with processes(jobs) as executor:
                yield from by_executor(executor, function, waiting, AHEAD * jobs, begun)
            return
        except BrokenProcessPool:
            pass
        # It is not known which item's process died: run them one by one.
        while begun:
            item = begun[0]
            try:
                with processes(1) as executor:
                    yield from by_executor(executor, function, [item], 1, [])
            except BrokenProcessPool:
                yield item, RunError("its process died")
            begun.remove(item)


@contextlib.contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Processes with one thread each; they end with an exception, such as that of Ctrl-C."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # inherited, and read when numpy is loaded
    executor = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _prepare_worker)
    try:
        yield executor
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _prepare_worker() -> None:
    """Let a worker end with its parent, ignore the terminal's signals, and exit fast."""
    # The parent ends its workers in order; Ctrl-C in a terminal reaches everyone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A parent killed by SIGKILL cannot end its workers, which would wait without end.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Its results are sent by then; unloading numba and pinocchio would take half a second.
    util.Finalize(None, _leave, exitpriority=-1)


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextlib.contextmanager
def cluster_executor(
    address: str, fingerprint: Callable[[], str] = code_fingerprint
) -> Iterator[tuple[Executor, int]]:
    """The workers of a Dask scheduler as a ``concurrent.futures`` executor, and the number of their threads.

    A task whose worker dies is repeated by another one.

    Args:
        address: of the scheduler.
        fingerprint: of the sources that the tasks need; the workers' must be the same.

    Raises:
        MissingExtraError: Dask is not installed.
        RunError: no scheduler at this address, or another version of the package there.
    """
    check_extras("--cluster needs", "distributed")
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise RunError(f"no Dask scheduler at {address!r}: {error}") from error
    try:
        others = {
            worker: code
            for worker, code in client.run(fingerprint).items()
            if code != fingerprint()
        }
        if others:
            raise RunError(f"workers {', '.join(others)} have another version of this package")
        # Not pure: functions measure time, and equal items must not share a result.
        with client.get_executor(pure=False, retries=0) as executor:
            yield executor, sum(client.nthreads().values())
    finally:
        client.close(timeout=CLOSE_S)
