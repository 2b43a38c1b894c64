"""Reads the messages of a bag as bytes: rosbag2 folders, also unfinished ones, and MCAP files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

from rosbags.rosbag2 import Reader, ReaderError

from contact_id_controller.exceptions import RecordError
from contact_id_controller.logs.bag_files import (
    BAG,
    METADATA,
    STATES,
    STORAGE_FILES,
    find_bag,
    namespace_of,
)
from contact_id_controller.view.topics import EVENTS


class Message(NamedTuple):
    """Time at which a message was sent or recorded, ns, and its bytes."""

    time_ns: int
    data: bytes


@dataclasses.dataclass(frozen=True)
class Bag:
    """The messages of one controller.

    Attributes:
        path: of the bag.
        messages: topic's name without the namespace -> messages in order of their time.
        finished: whether it was closed properly.
    """

    path: Path
    messages: dict[str, list[Message]]
    finished: bool = True

    def __getitem__(self, topic: str) -> list[Message]:
        return self.messages.get(topic, [])


def clear_bag(folder: Path) -> Path:
    """Remove an earlier run's bag from a demo's folder; return the path for a new one.

    Raises:
        RecordError: the folder holds other files than a bag.
    """
    bag = folder / BAG
    known = [METADATA, *STORAGE_FILES, "*.db3-*"]
    for file in [file for pattern in known for file in bag.glob(pattern)]:
        file.unlink()
    try:
        if bag.exists():
            bag.rmdir()
    except OSError as error:
        raise RecordError(
            f"{str(bag)!r} contains files other than a bag; name another --output"
        ) from error
    return bag


def read_bag(path: Path, namespace: str | None = None) -> Bag:
    """Read the messages of one controller.

    Args:
        path: see `find_bag`.
        namespace: of the topics; None: that of the only `joint_states`.

    Raises:
        RecordError: no bag, one that cannot be read, or one without joint states.
    """
    path = find_bag(path)
    try:
        with Reader(path) as reader:
            topics = [connection.topic for connection in reader.connections]
            prefix = namespace_of(topics, namespace)
            names = {
                connection.topic: _name(connection.topic.removeprefix(prefix))
                for connection in reader.connections
                if connection.topic.startswith(prefix)
            }
            wanted = [each for each in reader.connections if each.topic in names]
            messages: dict[str, list[Message]] = {}
            # An empty list would return all messages.
            for connection, time_ns, data in reader.messages(wanted) if wanted else ():
                messages.setdefault(names[connection.topic], []).append(
                    Message(time_ns, bytes(data))
                )
    except (ReaderError, OSError) as error:
        raise RecordError(f"cannot read the bag {str(path)!r}: {error}") from error
    for each in messages.values():
        each.sort(key=lambda message: message.time_ns)
    if not messages.get(STATES):
        raise RecordError(f"the bag {str(path)!r} has no message of {prefix}{STATES}")
    return Bag(path, messages, path.is_dir())


def _name(topic: str) -> str:
    """Name of a topic; a node's private topic of events becomes `EVENTS`, whatever the node's name."""
    node, _, last = topic.rpartition("/")
    return EVENTS if last == EVENTS and node and "/" not in node else topic
