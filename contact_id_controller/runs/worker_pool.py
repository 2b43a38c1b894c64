"""Processes and cluster workers for many runs at once; whose sources differ is refused."""

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

from contact_id_controller.exceptions import MissingExtraError, RunError
from contact_id_controller.runs.fingerprint import code_fingerprint

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
CONNECT_S, CLOSE_S = 30.0, 5.0

AHEAD = 2
"""Items that are taken for each process before it asks for them; all that is kept in memory."""

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
    """Each item with ``function(item)``, in any order; what it raises is the result.

    Args:
        executor: calls the function.
        most: items that are under way at once; no others are taken.
        begun: filled with those under way; they are left there when a process dies.

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
    """The same in processes of this machine. One that dies takes no other item's result along."""
    waiting = iter(items)
    while True:
        begun: list[Item] = []
        try:
            with processes(jobs) as executor:
                yield from by_executor(executor, function, waiting, AHEAD * jobs, begun)
            return
        except BrokenProcessPool:
            pass
        # It is not known whose process it was: one item after the other shows it.
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
    """Processes with one thread each; none outlives an exception, such as that of Ctrl-C."""
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
    """Let a worker end with its parent, by no other signal of the terminal, and at once when it is done."""
    # The parent ends its workers in order; Ctrl-C in a terminal reaches everyone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Killed with -9 it cannot end its workers, which would wait for ever.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Its results are out by then; to take numba and pinocchio apart would take half a second.
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
    """The workers of a Dask scheduler behind the interface of ``concurrent.futures``, and their threads.

    A task whose worker dies is done by another one.

    Args:
        address: of the scheduler.
        fingerprint: of the sources that the tasks need; the workers' must be the same.

    Raises:
        MissingExtraError: Dask is not installed.
        RunError: no scheduler at this address, or another version of the package there.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            "--cluster needs the extra cluster: pip install 'contact_id_controller[cluster]'"
        ) from error
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
        # Two equal descriptions are never submitted; a function is not pure where time is measured.
        with client.get_executor(pure=False, retries=0) as executor:
            yield executor, sum(client.nthreads().values())
    finally:
        client.close(timeout=CLOSE_S)
