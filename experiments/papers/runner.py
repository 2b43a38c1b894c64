"""Does many runs on all cores or on a Dask cluster; what is finished is not done again."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool

from contact_id_controller.runs.batch import cluster_executor, processes
from contact_id_controller.runs.machine import describe_machine
from experiments.papers.store import RunDescription, RunResult, RunStore, code_fingerprint

RunFunction = Callable[[RunDescription], dict]


def perform(function: RunFunction, description: RunDescription) -> RunResult:
    """Do one run; an exception becomes a result with its traceback."""
    begun = time.perf_counter()
    values, error = {}, ""
    try:
        values = function(description)
    except Exception:  # noqa: BLE001  one bad run must not end the others, and is listed
        error = traceback.format_exc(limit=-6)
    return RunResult(
        description,
        values,
        error,
        time.perf_counter() - begun,
        str(describe_machine()["processor"]),
    )


def run_all(
    tasks: Sequence[tuple[RunFunction, RunDescription, bool]],
    store: RunStore,
    *,
    jobs: int,
    cluster: str | None = None,
    done: Callable[[RunResult], None] = lambda result: None,
) -> list[RunResult]:
    """Do the runs that are not finished; the results of all, in the order of the tasks.

    Args:
        tasks: function of the run, its description, and whether it measures time: such runs are
            done one at a time, after the others.
        jobs: processes at once, each with one thread for linear algebra.
        cluster: address of a Dask scheduler; the runs are then done there, and ``jobs`` is
            ignored. Its workers need this package in the same version.
        done: called with each result as it comes, also with those found.

    Raises:
        MissingExtraError: a cluster is asked for, and Dask is not installed.
        RunError: no scheduler at this address, or another version of the package there.
    """
    pending = []
    for task in tasks:
        found = store.load(task[1])
        if found is None or found.error:
            pending.append(task)
        else:
            done(found)

    def keep(result: RunResult) -> None:
        store.save(result)
        done(result)

    together = [task[:2] for task in pending if not task[2]]
    alone = [task[:2] for task in pending if task[2]]
    with (
        cluster_executor(cluster, code_fingerprint)
        if cluster
        else contextlib.nullcontext() as found
    ):
        executor = None if found is None else found[0]
        for batch, count in ((together, jobs), *(([task], 1) for task in alone)):
            if not batch:
                continue
            if executor is not None:
                _collect(executor, batch, keep)
            else:
                _locally(batch, count, keep)
    return [store.load(task[1]) or _lost(task[1], "its result cannot be read") for task in tasks]


def _collect(executor: Executor, batch, keep) -> None:
    futures = {executor.submit(perform, *task): task for task in batch}
    try:
        for future in as_completed(futures):
            keep(_result(future, futures[future][1]))
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _result(future: Future, description: RunDescription) -> RunResult:
    """Of a future that is done; what kept a worker from answering becomes the error."""
    try:
        return future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:  # noqa: BLE001  such as a worker of the cluster that was killed
        return _lost(description, f"{type(error).__name__}: {error}")


def _locally(batch, jobs: int, keep) -> None:
    """In processes of this machine. One that dies takes nobody's result along."""
    left = {task[1].key: task for task in batch}

    def keep_and_strike(result: RunResult) -> None:
        keep(result)
        del left[result.description.key]

    try:
        with processes(min(jobs, len(batch))) as executor:
            _collect(executor, batch, keep_and_strike)
    except BrokenProcessPool:
        # Nobody knows whose process it was: each run that is left gets a process of its own.
        for task in list(left.values()):
            try:
                with processes(1) as executor:
                    _collect(executor, [task], keep_and_strike)
            except BrokenProcessPool:
                keep_and_strike(_lost(task[1], "its process died"))


def _lost(description: RunDescription, reason: str) -> RunResult:
    return RunResult(description, {}, reason, 0.0, "")
