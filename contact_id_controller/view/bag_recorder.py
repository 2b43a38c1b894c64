"""Records a running controller and the robot's sensors into a rosbag2 bag, in a process of its own.

rclpy's executors need a third of a millisecond per message, and `ros2 bag` a ROS installation: here waiting messages
are taken as bytes, some hundred times a second, and written unchanged.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from contact_id_controller.exceptions import RecordError
from contact_id_controller.logs.bag_files import STATES
from contact_id_controller.models import row_of
from contact_id_controller.ros.process import Interrupt, run_node
from contact_id_controller.settings.command_interfaces import TOPICS
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import ESTIMATOR, DynamicsEstimatorSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.view.topics import EVENTS, Topic, replayed_topics, sensed_topics

STORAGES = {"sqlite3": StoragePlugin.SQLITE3, "mcap": StoragePlugin.MCAP}
READY = "ready"
"""The line that is printed when messages arrive: later ones are in the bag."""

_WAIT_S = 0.005
_SETTLE_S = 0.5
"""Time after discovery for the publishers' side to know the recorder, too."""

_QUIET_S, _LONGEST_S = 0.1, 1.0
"""Time without messages after which the bag is closed, and the longest time to wait for that."""

_SAVE_S = 1.0
"""Time between two commits of an sqlite3 bag: a killed process loses so much of it."""


class BagRecorder:
    """Takes the messages of some topics and writes them, with the time at which they were sent.

    Args:
        node: owner of the subscriptions.
        topics: topics to record.
        folder: of the bag, must not exist.
        storage: name among `STORAGES`.

    Raises:
        RecordError: the folder exists.
    """

    def __init__(self, node: Node, topics: list[Topic], folder: Path, storage: str) -> None:
        if folder.exists():
            raise RecordError(f"{str(folder)!r} exists; a bag is written into a new folder")
        self.taken: dict[str, int] = {topic.name: 0 for topic in topics}
        """Number of messages so far, by topic."""
        types = get_typestore(Stores.ROS2_KILTED)
        self._writer = Writer(folder, version=9, storage_plugin=STORAGES[storage])
        self._writer.open()
        self._sources: list[tuple[str, Subscription, Any]] = []
        for name, kind, qos in topics:
            subscription = node.create_subscription(kind, name, lambda _: None, qos, raw=True)
            package, _, _ = kind.__module__.partition(".")
            connection = self._writer.add_connection(
                subscription.topic_name, f"{package}/msg/{kind.__name__}", typestore=types
            )
            self._sources.append((name, subscription, connection))
        self._save_at = time.monotonic() + _SAVE_S
        self._node = node
        self._known_at: float | None = None
        self._sent = [name for name, *_ in topics if name in TOPICS or name.endswith(EVENTS)]

    def is_ready(self) -> bool:
        """Whether states arrive, and the controller's publishers have known the recorder for a moment.

        Messages before are lost, as the first command would be.
        """
        known = self.taken[STATES] and all(map(self._node.count_publishers, self._sent))
        self._known_at = (self._known_at or time.monotonic()) if known else None
        return self._known_at is not None and time.monotonic() > self._known_at + _SETTLE_S

    def take(self) -> int:
        """Write the waiting messages; return their number."""
        count = 0
        for name, subscription, connection in self._sources:
            with subscription.handle:
                while (
                    taken := subscription.handle.take_message(subscription.msg_type, True)
                ) is not None:
                    data, info = taken
                    self._writer.write(connection, info["source_timestamp"], data)
                    self.taken[name] += 1
                    count += 1
        if time.monotonic() > self._save_at:
            self._save_at = time.monotonic() + _SAVE_S
            connection = getattr(self._writer.storage, "conn", None)
            if connection is not None:
                connection.commit()
        return count

    def close(self) -> None:
        """Write messages until none arrives for a moment, and close the bag."""
        now_s = time.monotonic()
        quiet_s, latest_s = now_s + _QUIET_S, now_s + _LONGEST_S
        while now_s < min(quiet_s, latest_s):
            if self.take():
                quiet_s = now_s + _QUIET_S
            time.sleep(_WAIT_S)
            now_s = time.monotonic()
        self._writer.close()


def main(arguments: list[str] | None = None) -> int:
    """Record until interrupted; 1 after an error of which one line has been printed."""
    parser = argparse.ArgumentParser(prog="bag_recorder", description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=Path, required=True, help="of the controller")
    parser.add_argument("--bag", type=Path, required=True, help="new folder for the bag")
    parser.add_argument("--storage", choices=STORAGES, default="sqlite3")
    parser.add_argument("--controller", default="controller", help="name of the node")
    given = parser.parse_args(arguments)

    def serve(node: Node, interrupt: Interrupt) -> int:
        file = ParameterFile(given.parameters)
        settings = ControllerSettings.from_mapping(file.section(given.controller))
        sensed = row_of(settings.friction, settings.solver).takes("forces")
        topics = replayed_topics(settings, sensed, given.controller)
        if ESTIMATOR in file:
            estimator = DynamicsEstimatorSettings.from_mapping(file.section(ESTIMATOR))
            known = {topic.name for topic in topics}
            topics += [each for each in sensed_topics(estimator) if each.name not in known]
        recorder = BagRecorder(node, topics, given.bag, given.storage)
        reported = False
        try:
            while not interrupt.requested:
                count = recorder.take()
                if not reported and recorder.is_ready():
                    reported = True
                    print(READY, flush=True)
                if not count:
                    time.sleep(_WAIT_S)
        finally:
            recorder.close()
        return 0

    return run_node("bag_recorder", lambda _: Node("bag_recorder"), serve, [])


if __name__ == "__main__":
    sys.exit(main())
