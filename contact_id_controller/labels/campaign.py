"""Labelling of many motions in parallel, on this machine or a Dask cluster; existing labels are kept."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pickle
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, RecordError
from contact_id_controller.files import make_folder, write_with
from contact_id_controller.labels.chunks import LabelFolder, chunks
from contact_id_controller.labels.labeller import (
    REASONS,
    RECORDED,
    REFUSED_FRAMES,
    STATUSES,
    Labeller,
)
from contact_id_controller.labels.opening import open_motion
from contact_id_controller.labels.recorded_motion import NO_PERIOD, MotionBlock, blocks_of
from contact_id_controller.labels.sources import BagReading, MotionFile, Shapes
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.fingerprint import code_fingerprint
from contact_id_controller.runs.worker_pool import (
    AHEAD,
    by_executor,
    cluster_executor,
    in_processes,
    reason,
)
from contact_id_controller.solution import RELAXED, SOLVED

CHUNK = 4096
"""Frames of a chunk: a fraction of a second of work, some megabytes."""

PIECE_BYTES = 1 << 20
"""Of a motion's file, read at once for its fingerprint."""

FAILED = "failed.csv"
WELL = (SOLVED, RELAXED, NO_PERIOD)
"""Statuses of frames that are not listed in that file."""

Labels = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Labelled:
    """Result of one motion.

    Attributes:
        path: of the motion.  folder: of its labels.
        frames: labelled now or before.  counts: status -> frames.
        found: frames that were labelled before.
        unlabelled: first frame of each chunk without labels -> reason; the next run tries them again.
        unread: messages of a bag that do not fit their type.
        announced: frames that the file announces.
        wall_s: time of this run.
    """

    path: Path
    folder: Path
    frames: int
    counts: dict[str, int]
    found: int
    unlabelled: dict[int, str]
    unread: int
    announced: int
    wall_s: float

    @property
    def unconnected(self) -> bool:
        """Whether no row had a next one, so that nothing was labelled."""
        return set(self.counts) == {NO_PERIOD}

    @property
    def failed(self) -> int:
        """Frames without a certified solution."""
        return sum(count for status, count in self.counts.items() if status not in WELL)


@dataclasses.dataclass(frozen=True)
class Workers:
    """Processes that label.

    jobs: processes on this machine; 1: this one.  cluster: address of a Dask scheduler, whose workers
    are used instead.
    """

    jobs: int = 1
    cluster: str | None = None

    def label(
        self, labeller: Labeller, folder: LabelFolder, blocks: Iterator[MotionBlock]
    ) -> Generator[tuple[MotionBlock, str], None, None]:
        """Label blocks into a folder; yields each block, in any order, with an error message, empty if it has labels.

        Raises:
            MissingExtraError, RunError: see ``runs.worker_pool.cluster_executor``.
            RecordError: the folder cannot be written to.
        """
        # The workers of a cluster need not see the folder.
        task = partial(
            label_packed, pickle.dumps((labeller, None if self.cluster is not None else folder))
        )
        with contextlib.ExitStack() as stack:
            if self.cluster is not None:
                executor, threads = stack.enter_context(cluster_executor(self.cluster))
                results = by_executor(executor, task, blocks, AHEAD * max(1, threads), [])
            elif self.jobs == 1:
                results = by_executor(_Here(), task, blocks, 1, [])
            else:
                results = in_processes(task, blocks, self.jobs)
            for block, labels in stack.enter_context(contextlib.closing(results)):
                if isinstance(labels, RecordError):
                    raise labels
                if isinstance(labels, Exception):
                    yield block, reason(labels)
                    continue
                if labels is not None:
                    folder.save(block.first, labels)
                yield block, ""


class _Here(Executor):
    """Executor that runs each call at once, in this process."""

    def submit(self, function: Callable[..., Any], /, *values: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*values, **named))
        except Exception as error:  # noqa: BLE001  one bad block must not end the others, and is listed
            future.set_exception(error)
        return future


def label_packed(data: bytes, block: MotionBlock) -> Labels | None:
    """Label a block in a worker process; saves the labels or, without a folder, returns them.

    data: pickle of the ``Labeller``, so that the worker needs none of the files of its settings, and of the
    ``LabelFolder`` or None. The last one unpacked is cached. Saving here avoids sending labels between processes.
    """
    labeller, folder = _unpacked(data)
    labels = labeller.label(block)
    if folder is None:
        return labels
    folder.save(block.first, labels)
    return None


@lru_cache(maxsize=2)
def _unpacked(data: bytes) -> tuple[Labeller, LabelFolder | None]:
    unpacked: tuple[Labeller, LabelFolder | None] = pickle.loads(data)
    return unpacked


def label_files(
    paths: Sequence[Path],
    labeller: Labeller,
    output: Path,
    *,
    workers: Workers,
    chunk: int = CHUNK,
    namespace: str | None = None,
    progress: Callable[[MotionFile, int], Any] = lambda motion, frames: None,
) -> Iterator[Labelled]:
    """Label motions one after the other, each into a folder in ``output`` that is named after its file.

    All of them are checked before the first one is labelled.

    Args:
        paths: .npz, .parquet, or bags.
        labeller: of their robot.
        output: made if missing.
        workers: processes that label.
        chunk: frames of a chunk's file.
        namespace: of the topics of bags that hold several robots.
        progress: called with the motion and the number of its frames that are done.

    Raises:
        ContactIdError: a motion that cannot be read or does not fit the robot, or labels in the
            output that were made with other settings.
    """
    if not chunk >= 1:
        raise ConfigurationError(f"chunk must be 1 or more, got {chunk}")
    if not workers.jobs >= 1:
        raise ConfigurationError(f"jobs must be 1 or more, got {workers.jobs}")
    shapes = Shapes.of(labeller.robot, labeller.contacts, labeller.contact == RECORDED)
    how = BagReading(labeller.robot, namespace, labeller.longest_gap_s)
    names: dict[str, Path] = {}
    for path in paths:
        name = path.resolve().name
        if name in names:
            raise ConfigurationError(
                f"'{names[name]}' and '{path}' would be labelled into the same folder {name!r}"
            )
        names[name] = path
    motions = [open_motion(path, shapes, how) for path in paths]
    make_folder(output)
    folders = [
        LabelFolder(output / name, _facts(motion, labeller, chunk))
        for name, motion in zip(names, motions)
    ]
    for motion, folder in zip(motions, folders):
        with folder.locked():
            yield _label(motion, folder, labeller, workers, chunk, progress)


def _label(
    motion: MotionFile,
    folder: LabelFolder,
    labeller: Labeller,
    workers: Workers,
    chunk: int,
    progress: Callable[[MotionFile, int], Any],
) -> Labelled:
    """Label the blocks of one motion that have no labels yet, and write the list of failures."""
    begun = time.perf_counter()
    done = found = 0

    def missing() -> Iterator[MotionBlock]:
        nonlocal done, found
        for block in blocks_of(motion.pieces(), chunk):
            if folder.has(block):
                found += block.count
                done += block.count
                progress(motion, done)
            else:
                yield block

    unlabelled: dict[int, str] = {}
    with contextlib.closing(workers.label(labeller, folder, missing())) as results:
        for block, why in results:
            if why:
                unlabelled[block.first] = why
            done += block.count
            progress(motion, done)
    counts = write_failures(folder.folder)
    unread = getattr(motion, "unread", 0)
    labelled = Labelled(
        motion.path,
        folder.folder,
        sum(counts.values()),
        counts,
        found,
        unlabelled,
        unread,
        motion.frames,
        time.perf_counter() - begun,
    )
    if not unlabelled:
        folder.finish({"frames": labelled.frames, "counts": counts, "unread_messages": unread})
    return labelled


def write_failures(folder: Path) -> dict[str, int]:
    """List the frames without a certified solution in `FAILED`; returns status -> number of frames.

    Raises:
        RecordError: labels that cannot be read, or a list that cannot be written.
    """
    counts = np.zeros(len(STATUSES), dtype=int)
    bad = np.array([status not in WELL for status in STATUSES])

    def write(file: Any) -> None:
        file.write(b"frame,time_s,status,reason\n")
        for labels in chunks(folder, ("frame", "time_s", "status", REFUSED_FRAMES, REASONS)):
            counts[:] += np.bincount(labels["status"], minlength=len(STATUSES))
            why = dict(zip(labels[REFUSED_FRAMES].tolist(), labels[REASONS].tolist()))
            for k in np.flatnonzero(bad[labels["status"]]):
                frame, name = int(labels["frame"][k]), STATUSES[labels["status"][k]]
                reason = str(why.get(frame, "")).replace('"', "'")
                line = f'{frame},{float(labels["time_s"][k])!r},{name},"{reason}"\n'
                file.write(line.encode())

    write_with(folder / FAILED, write)
    return {name: int(count) for name, count in zip(STATUSES, counts) if count}


def _facts(motion: MotionFile, labeller: Labeller, chunk: int) -> Mapping[str, Any]:
    """Everything that labels depend on: settings, file and chunk size, as values for JSON."""
    settings = labeller.settings
    return {
        "motion": _identity(motion.path),
        "friction": settings.friction,
        "solver": settings.solver,
        "settings": _digest(repr(sorted(dataclasses.asdict(settings).items())).encode()),
        "robot": _content(resolve_urdf(settings.urdf)),
        "ground": _content(resolve_urdf(settings.ground_file)) if settings.ground_file else "",
        "contact": labeller.contact,
        "longest_gap_s": labeller.longest_gap_s,
        "base": labeller.base,
        "parting_m_s": labeller.parting_m_s,
        "chunk": chunk,
        "code": code_fingerprint(),
    }


def _identity(path: Path) -> str:
    """Size and fingerprint of the contents of a file, or of those of a folder."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    total, size = hashlib.sha256(), 0
    for each in files:
        total.update(f"{each.relative_to(path)} {each.stat().st_size} ".encode())
        with each.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                total.update(piece)
                size += len(piece)
    return f"{size} bytes, {total.hexdigest()[:12]}"


def _content(path: Path) -> str:
    try:
        return _digest(path.read_bytes())
    except OSError as error:
        raise RecordError(f"cannot read {str(path)!r}: {error.strerror}") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
