"""Does many runs on all cores or on a Dask cluster; what is finished is not done again."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence

from contact_id_controller.runs.computer import describe_machine
from contact_id_controller.runs.worker_pool import (
    by_executor,
    cluster_executor,
    in_processes,
    reason,
)
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
        MissingExtraError: a cluster is requested, and Dask is not installed.
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
    with contextlib.ExitStack() as stack:
        executor = None
        if cluster:
            executor, _ = stack.enter_context(cluster_executor(cluster, code_fingerprint))
        for batch, count in ((together, jobs), *(([task], 1) for task in alone)):
            most = max(1, len(batch))
            if executor is None:
                results = in_processes(_perform, batch, min(count, most))
            else:
                results = by_executor(executor, _perform, batch, most, [])
            for task, result in results:
                if isinstance(result, Exception):  # such as a worker of the cluster that was killed
                    result = _lost(task[1], reason(result))
                keep(result)
    return [store.load(task[1]) or _lost(task[1], "its result cannot be read") for task in tasks]


def _perform(task: tuple[RunFunction, RunDescription]) -> RunResult:
    return perform(*task)


def _lost(description: RunDescription, why: str) -> RunResult:
    return RunResult(description, {}, why, 0.0, "")
