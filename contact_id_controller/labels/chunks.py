"""Labels of one motion on disk: a folder with a manifest and a file for each chunk of frames.

A chunk's file is written atomically and never again, so an interrupted run resumes where it stopped. Each holds a
checksum of its arrays and of what they depend on: one that is damaged, changed or of another folder is labelled again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.exceptions import RecordError
from contact_id_controller.files import BROKEN, make_folder, plain, write_arrays, write_json
from contact_id_controller.labels.labeller import STATUSES
from contact_id_controller.labels.recorded_motion import MotionBlock

MANIFEST, LOCK = "manifest.json", "lock"
CHECKSUM = "checksum"
"""The array of a chunk's file that is no label: SHA-256 of the others."""

_CHUNK = "chunk_{:012d}.npz"


class LabelFolder:
    """Folder of the labels of a motion.

    Args:
        folder: made if missing.
        facts: what the labels depend on, as values for JSON; other labels are not mixed with these.

    Raises:
        RecordError: the folder cannot be written to, or holds labels that depend on other facts.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self.folder, self._facts = make_folder(folder), plain(dict(facts))
        known = _manifest(folder / MANIFEST)
        if known is None:
            self._write({})
            return
        before = known.get("made_from")
        before = before if isinstance(before, dict) else {}
        for name, value in self._facts.items():
            if before.get(name) != value:
                raise RecordError(
                    f"{str(folder)!r} holds labels with {name} {before.get(name)!r}, not {value!r}: "
                    "remove it, or name another --output"
                )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock this folder against other processes that label into it.

        Raises:
            RecordError: another process does.
        """
        with (self.folder / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RecordError(
                    f"another process labels into {str(self.folder)!r}: wait, or end it"
                ) from error
            yield

    def path(self, first: int) -> Path:
        """File of the chunk whose first frame has this number."""
        return self.folder / _CHUNK.format(first)

    def has(self, block: MotionBlock) -> bool:
        """Whether valid labels of these frames exist."""
        try:
            labels = _read(self.path(block.first), self._facts)
        except RecordError:
            return False
        frames = labels["frame"]
        return bool(len(frames) == block.count and frames[0] == block.first)

    def save(self, first: int, labels: Mapping[str, np.ndarray]) -> None:
        """Write the labels of a chunk.

        Raises:
            RecordError: the file cannot be written.
        """
        write_arrays(self.path(first), {**labels, CHECKSUM: _checksum(labels, self._facts)})

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Mark the folder as complete in the manifest, with a summary.

        Raises:
            RecordError: the file cannot be written.
        """
        self._write({"finished": True, **summary})

    def _write(self, more: Mapping[str, Any]) -> None:
        content = {"made_from": self._facts, "statuses": STATUSES, "finished": False, **more}
        write_json(self.folder / MANIFEST, content)


def chunks(folder: Path, names: Collection[str] | None = None) -> Iterator[dict[str, np.ndarray]]:
    """Yield the labels in a folder, chunk after chunk, in the order of the frames; see ``labeller.LABELS``.

    Args:
        folder: of one motion.
        names: of the arrays that are read; None: all.

    Raises:
        RecordError: no labels there, or a file that cannot be read, or, when all arrays are read, a wrong checksum.
    """
    folder = Path(folder)
    manifest = _manifest(folder / MANIFEST)
    if manifest is None:
        raise RecordError(f"no labels at {str(folder)!r}: it has no {MANIFEST}")
    for path in sorted(folder.glob(_CHUNK.replace("{:012d}", "*"))):
        yield _read(path, manifest.get("made_from"), names)


def _read(path: Path, facts: Any, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Read the arrays ``names`` of a chunk; None: all but the checksum, which is verified."""
    try:
        with np.load(path, allow_pickle=False) as file:
            labels = {name: file[name] for name in (file.files if names is None else names)}
        known = None if names is not None else labels.pop(CHECKSUM)
    except BROKEN as error:
        raise RecordError(f"cannot read the labels {str(path)!r}: {error}") from error
    if known is not None and not np.array_equal(known, _checksum(labels, facts)):
        raise RecordError(f"the labels {str(path)!r} are not as they were saved: label again")
    return labels


def _checksum(labels: Mapping[str, np.ndarray], facts: Any) -> np.ndarray:
    """SHA-256 (32,) of arrays with their names, and of what they depend on."""
    total = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, values in sorted(labels.items()):
        values = np.asarray(values)
        total.update(f"{name} {values.dtype.str} {values.shape}".encode() + values.tobytes())
    return np.frombuffer(total.digest(), np.uint8)


def _manifest(path: Path) -> dict[str, Any] | None:
    """Content of the manifest; None if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot read {str(path)!r}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise RecordError(f"{str(path)!r} is no manifest of labels")
    return content
