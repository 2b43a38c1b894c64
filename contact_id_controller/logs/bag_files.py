"""Finds a bag and the namespace of its topics: rosbag2 folders, also unfinished ones, and MCAP files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from contact_id_controller.exceptions import RecordError, choices

STORAGE_FILES = ("*.mcap", "*.db3")
BAG, METADATA = "bag", "metadata.yaml"
"""Folder of the bag in a demo's folder; the file that a finished bag has."""

STATES, ODOMETRY = "joint_states", "odometry"
"""Topics of a robot's state."""


def find_bag(path: Path) -> Path:
    """Find the bag at a path: the path itself, in a demo's folder, or the file of an unfinished one.

    Raises:
        RecordError: there is none, or there are several.
    """
    if not path.exists():
        raise RecordError(f"no bag at {str(path)!r}: there is no such file or folder")
    if path.is_file() or (path / METADATA).is_file():
        return path
    for folder in (path / BAG, path):
        if (folder / METADATA).is_file():
            return folder
        files = [file for pattern in STORAGE_FILES for file in folder.glob(pattern)]
        if len(files) == 1:
            return files[0]
        if files:
            raise RecordError(
                f"{str(folder)!r} has no {METADATA} and {len(files)} files; name one of "
                f"{choices(file.name for file in files)}"
            )
    raise RecordError(
        f"no bag at {str(path)!r}: neither {METADATA} nor a file {' or '.join(STORAGE_FILES)}, "
        f"there or in its folder {BAG!r}"
    )


def namespace_of(topics: Iterable[str], namespace: str | None = None) -> str:
    """Prefix of the topics of one robot: "/", or "/name/".

    Args:
        topics: of the bag.
        namespace: None: that of the only `joint_states`.

    Raises:
        RecordError: there are no joint states, or those of several robots.
    """
    if namespace is not None:
        return f"/{namespace.strip('/')}/" if namespace.strip("/") else "/"
    topics = list(topics)
    if f"/{STATES}" in topics:
        return "/"
    found = [topic for topic in topics if topic.endswith(f"/{STATES}")]
    if len(found) == 1:
        return found[0].removesuffix(STATES)
    if not found:
        raise RecordError(f"the bag has no topic {STATES}, only {choices(topics) or 'nothing'}")
    raise RecordError(
        f"the bag has several robots, choose one with --namespace: "
        f"{choices(topic.removesuffix('/' + STATES) for topic in found)}"
    )
