"""Motions labelled by all cores of a machine or by a Dask cluster; what is labelled is not labelled again."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
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
    label_packed,
    packed,
)
from contact_id_controller.labels.motion import NO_PERIOD, MotionBlock, blocks_of
from contact_id_controller.labels.opening import open_motion
from contact_id_controller.labels.sources import BagReading, MotionFile, Shapes
from contact_id_controller.robot import resolve_urdf
from contact_id_controller.runs.batch import cluster_executor, processes
from contact_id_controller.runs.fingerprint import code_fingerprint
from contact_id_controller.solution import RELAXED, SOLVED

CHUNK = 4096
"""Frames of a chunk: a fraction of a second of work, some megabytes."""

AHEAD = 2
"""Chunks that are read for each worker before it asks for them; all that is kept in memory."""

PIECE_BYTES = 1 << 20
"""Of a motion's file, read at once for its fingerprint."""

FAILED = "failed.csv"
WELL = (SOLVED, RELAXED, NO_PERIOD)
"""Statuses of frames that are not listed in that file."""

Labels = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Labelled:
    """What came of a motion.

    Attributes:
        path: of the motion.  folder: of its labels.
        frames: labelled now or before.  counts: status -> frames.
        found: frames that were labelled before.
        unlabelled: why chunks have no labels, by their first frames; the next run tries them again.
        unread: messages of a bag that are not what their type says.
        announced: frames that the file says it has.
        wall_s: time that it took now.
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
    def failed(self) -> int:
        """Frames without a certified answer."""
        return sum(count for status, count in self.counts.items() if status not in WELL)


@dataclasses.dataclass(frozen=True)
class Workers:
    """Who labels.

    jobs: processes on this machine; 1: this one.  cluster: address of a Dask scheduler, whose workers
    do it instead.
    """

    jobs: int = 1
    cluster: str | None = None

    def label(
        self, labeller: Labeller, blocks: Iterator[MotionBlock]
    ) -> Iterator[tuple[MotionBlock, Labels | str]]:
        """Each block with its labels, or with the reason why there are none, in any order.

        Raises:
            MissingExtraError, RunError: see ``runs.batch.cluster_executor``.
        """
        data = packed(labeller)
        if self.cluster is not None:
            with cluster_executor(self.cluster) as (executor, threads):
                yield from _through(executor, AHEAD * max(1, threads), data, blocks, [])
        elif self.jobs == 1:
            for block in blocks:
                yield block, _result(lambda block=block: label_packed(data, block))
        else:
            yield from self._in_processes(data, blocks)

    def _in_processes(self, data, blocks) -> Iterator[tuple[MotionBlock, Labels | str]]:
        """One that dies takes nobody's labels along."""
        while True:
            begun: list[tuple[MotionBlock, Future | None]] = []
            try:
                with processes(self.jobs) as executor:
                    yield from _through(executor, AHEAD * self.jobs, data, blocks, begun)
                return
            except BrokenProcessPool:
                pass
            # Nobody knows whose process it was: one block after the other tells.
            yield from _alone(data, [block for block, _ in begun])


def _alone(data: bytes, blocks: list) -> Iterator[tuple[MotionBlock, Labels | str]]:
    """In one process, and in another one after each that dies."""
    while blocks:
        try:
            with processes(1) as executor:
                while blocks:
                    labels = _result(executor.submit(label_packed, data, blocks[0]).result)
                    yield blocks.pop(0), labels
        except BrokenProcessPool:
            yield blocks.pop(0), "its process died"


def _through(
    executor: Executor, most: int, data: bytes, blocks: Iterator[MotionBlock], begun: list
) -> Iterator[tuple[MotionBlock, Labels | str]]:
    """At most ``most`` blocks are under way; ``begun`` holds those, with their futures."""
    try:
        for block in blocks:
            begun.append((block, None))
            begun[-1] = (block, executor.submit(label_packed, data, block))
            if len(begun) >= most:
                yield from _done(begun)
        while begun:
            yield from _done(begun)
    except BrokenProcessPool:
        raise
    except BaseException:
        for _, future in begun:
            if future is not None:
                future.cancel()
        raise


def _done(begun: list) -> Iterator[tuple[MotionBlock, Labels | str]]:
    """Those that are ready, at least one; taken off the list."""
    wait([future for _, future in begun], return_when=FIRST_COMPLETED)
    for entry in [entry for entry in begun if entry[1].done()]:
        labels = _result(entry[1].result)
        begun.remove(entry)
        yield entry[0], labels


def _result(ask: Callable[[], Labels]) -> Labels | str:
    try:
        return ask()
    except BrokenProcessPool:
        raise
    except Exception as error:  # noqa: BLE001  one bad block must not end the others, and is listed
        return f"{type(error).__name__}: {' '.join(str(error).split())}"


def label_files(
    paths: Sequence[Path],
    labeller: Labeller,
    output: Path,
    *,
    workers: Workers,
    chunk: int = CHUNK,
    namespace: str | None = None,
    told: Callable[[MotionFile, int], Any] = lambda motion, frames: None,
) -> Iterator[Labelled]:
    """Label motions one after the other, each into a folder in ``output`` that is named after its file.

    All of them are looked at before the first one is labelled.

    Args:
        paths: .npz, .parquet, or bags.
        labeller: of their robot.
        output: made where there is none.
        workers: who does it.
        chunk: frames of a chunk's file.
        namespace: of the topics of bags that hold several robots.
        told: called with the motion and the number of its frames that are done, as they come.

    Raises:
        ContactIdError: a motion that cannot be read or does not fit the robot, or labels in the
            output that were made otherwise.
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
            yield _label(motion, folder, labeller, workers, chunk, told)


def _label(
    motion: MotionFile,
    folder: LabelFolder,
    labeller: Labeller,
    workers: Workers,
    chunk: int,
    told: Callable[[MotionFile, int], Any],
) -> Labelled:
    begun = time.perf_counter()
    done = found = 0

    def missing() -> Iterator[MotionBlock]:
        nonlocal done, found
        for block in blocks_of(motion.pieces(), chunk):
            if folder.has(block):
                found += block.count
                done += block.count
                told(motion, done)
            else:
                yield block

    unlabelled: dict[int, str] = {}
    with contextlib.closing(workers.label(labeller, missing())) as results:
        for block, labels in results:
            if isinstance(labels, str):
                unlabelled[block.first] = labels
            else:
                folder.save(block.first, labels)
            done += block.count
            told(motion, done)
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
    """List the frames without a certified answer in `FAILED`; how many frames have which status.

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
    """What labels depend on."""
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
