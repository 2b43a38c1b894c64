"""The labels of one motion on disk: a folder with a manifest and a file for each chunk of frames.

A chunk's file appears whole or not at all, and is never written again: what ends in the middle goes on where
it was, and nothing is labelled twice or left out.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from contact_id_controller.exceptions import RecordError
from contact_id_controller.files import make_folder, plain, write_arrays, write_json
from contact_id_controller.labels.labeller import STATUSES
from contact_id_controller.labels.motion import MotionBlock

MANIFEST, LOCK = "manifest.json", "lock"
_CHUNK = "chunk_{:012d}.npz"


class LabelFolder:
    """The labels of a motion.

    Args:
        folder: made where there is none.
        facts: what the labels depend on, values that JSON knows; other labels are not mixed with these.

    Raises:
        RecordError: the folder cannot be written to, or holds labels made otherwise.
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
        """Nobody else labels into this folder meanwhile.

        Raises:
            RecordError: somebody does.
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
        """Whether the labels of these frames are there, and whole."""
        try:
            with np.load(self.path(block.first), allow_pickle=False) as file:
                frames = file["frame"]
        except (OSError, ValueError, EOFError, KeyError, BadZipFile):
            return False
        return bool(
            len(frames) == block.count and frames[0] == block.first and "status" in file.files
        )

    def save(self, first: int, labels: Mapping[str, np.ndarray]) -> None:
        """Keep the labels of a chunk.

        Raises:
            RecordError: the file cannot be written.
        """
        write_arrays(self.path(first), labels)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Say in the manifest that all frames are labelled, and how.

        Raises:
            RecordError: the file cannot be written.
        """
        self._write({"finished": True, **summary})

    def _write(self, more: Mapping[str, Any]) -> None:
        content = {"made_from": self._facts, "statuses": STATUSES, "finished": False, **more}
        write_json(self.folder / MANIFEST, content)


def chunks(folder: Path, names: Collection[str] | None = None) -> Iterator[dict[str, np.ndarray]]:
    """The labels in a folder, chunk after chunk, in the order of the frames; see ``labeller.LABELS``.

    Args:
        folder: of one motion.
        names: of the arrays that are read; None: all.

    Raises:
        RecordError: no labels there, or a file that cannot be read.
    """
    folder = Path(folder)
    if _manifest(folder / MANIFEST) is None:
        raise RecordError(f"no labels at {str(folder)!r}: it has no {MANIFEST}")
    for path in sorted(folder.glob(_CHUNK.replace("{:012d}", "*"))):
        try:
            with np.load(path, allow_pickle=False) as file:
                yield {name: file[name] for name in (file.files if names is None else names)}
        except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
            raise RecordError(f"cannot read the labels {str(path)!r}: {error}") from error


def _manifest(path: Path) -> dict[str, Any] | None:
    """None where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot read {str(path)!r}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise RecordError(f"{str(path)!r} is no manifest of labels")
    return content
