"""Readings of mounted sensors, each kept with its stamp until the joint state of that stamp arrives."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile

from contact_id_controller.estimation.mounted import Mounted
from contact_id_controller.estimation.stamps import FARTHEST_S, StampFilter
from contact_id_controller.exceptions import StateError
from contact_id_controller.ros.packed import Packable, readable
from contact_id_controller.ros.samples import SampleReader

QUEUE = 20


class Source(NamedTuple):
    """A sensor's topic, how its messages are read, and how many numbers each has."""

    topic: str
    kind: Packable
    size: int

    @classmethod
    def mounted(cls, sensor: Mounted) -> Source:
        """The source of a mounted sensor.

        Raises:
            ConfigurationError: its message cannot be read.
        """
        kind = readable(sensor.message, sensor.numbers)
        return cls(sensor.topic, kind, len(sensor.numbers))


class SensorInput:
    """Subscriptions to mounted sensors.

    Args:
        node, qos: owner of the subscriptions, and their quality of service.
        sources: of n sensors.
        timeout_s: age above which a reading counts as missing.
        arrived: called after each message.

    Attributes:
        sources, subscriptions: one per sensor.  heard_s: (n,) monotonic time of each one's last message.
    """

    def __init__(
        self,
        node: Node,
        qos: QoSProfile,
        sources: Sequence[Source],
        timeout_s: float,
        arrived: Callable[[], None],
    ) -> None:
        self._timeout_ns, self._arrived = round(1e9 * timeout_s), arrived
        self.sources = tuple(sources)
        self.subscriptions = [
            node.create_subscription(
                each.kind.kind, each.topic, partial(self._keep, k), qos, raw=True
            )
            for k, each in enumerate(sources)
        ]
        self._readers = [SampleReader(each.kind) for each in sources]
        self._stamps = [StampFilter(max(FARTHEST_S, timeout_s)) for _ in sources]
        ends = np.cumsum([each.size for each in sources], dtype=int)
        self._all = np.zeros(ends[-1] if len(ends) else 0)
        self._values = [
            self._all[end - each.size : end] for end, each in zip(ends.tolist(), sources)
        ]
        self.begin()

    def begin(self) -> None:
        """Drop all readings."""
        count = len(self.subscriptions)
        self._kept: list[deque[Any]] = [deque(maxlen=QUEUE) for _ in range(count)]
        self._given_up = np.zeros(count, dtype=bool)
        self.heard_s = np.full(count, -np.inf)

    def _keep(self, k: int, message: bytes) -> None:
        """Keep a sample of sensor ``k`` unless its content or stamp is wrong."""
        try:
            reading = self._readers[k].read(message)
        except StateError:
            return  # the reading before stays, until it is too old
        if not self._stamps[k].accepts(1e-9 * reading[0]):
            return
        if self._stamps[k].moved:
            self._kept[k].clear()
        self._kept[k].append(reading)
        self._given_up[k], self.heard_s[k] = False, time.monotonic()
        self._arrived()

    def waits_for(self, stamp_ns: int) -> bool:
        """Whether an active sensor has not yet published this stamp."""
        return any(
            not given_up and not (kept and kept[-1][0] >= stamp_ns)
            for given_up, kept in zip(self._given_up, self._kept)
        )

    def give_up(self, stamp_ns: int) -> None:
        """Do not wait for sensors that have not published this stamp, until they publish again."""
        for k, kept in enumerate(self._kept):
            self._given_up[k] |= not (kept and kept[-1][0] >= stamp_ns)

    def at(self, stamp_ns: int) -> np.ndarray:
        """Numbers of all sensors, concatenated, of this stamp or the newest before; NaN where too old."""
        for values, kept in zip(self._values, self._kept):
            while len(kept) > 1 and kept[1][0] <= stamp_ns:
                kept.popleft()
            fresh = kept and abs(stamp_ns - kept[0][0]) <= self._timeout_ns
            values[:] = kept[0][1] if fresh else np.nan
        return self._all
