"""Readings of force/torque sensors, each kept with its stamp until the joints of that stamp are there."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile

from contact_id_controller.estimation.stamps import FARTHEST_S, StampFilter
from contact_id_controller.exceptions import StateError
from contact_id_controller.ros.packed import WRENCH
from contact_id_controller.ros.samples import SampleReader

QUEUE = 20


class WrenchInput:
    """Subscriptions to `wrench/<sensor>`.

    Args:
        node, qos: owner of the subscriptions, and their quality of service.
        names: of the sensors, n.
        timeout_s: age above which a reading counts as none.
        heard: called after each message.

    Attributes:
        subscriptions: one a sensor.  heard_s: (n,) monotonic time of the last message of each.
    """

    def __init__(
        self,
        node: Node,
        qos: QoSProfile,
        names: Sequence[str],
        timeout_s: float,
        heard: Callable[[], None],
    ) -> None:
        self._timeout_ns, self._heard = round(1e9 * timeout_s), heard
        self.subscriptions = [
            node.create_subscription(
                WrenchStamped, f"wrench/{name}", partial(self._keep, k), qos, raw=True
            )
            for k, name in enumerate(names)
        ]
        self._readers = [SampleReader(WRENCH) for _ in names]
        self._stamps = [StampFilter(max(FARTHEST_S, timeout_s)) for _ in names]
        self._values = np.zeros((len(names), 6))
        self.begin()

    def begin(self) -> None:
        """Forget all readings."""
        count = len(self.subscriptions)
        self._kept: list[deque] = [deque(maxlen=QUEUE) for _ in range(count)]
        self._given_up = np.zeros(count, dtype=bool)
        self.heard_s = np.full(count, -np.inf)

    def _keep(self, k: int, message: bytes) -> None:
        try:
            reading = self._readers[k].read(message)
        except StateError:
            return  # no wrench: the one before grows old
        if not self._stamps[k].accepts(1e-9 * reading[0]):
            return
        if self._stamps[k].moved:
            self._kept[k].clear()
        self._kept[k].append(reading)
        self._given_up[k], self.heard_s[k] = False, time.monotonic()
        self._heard()

    def waits_for(self, stamp_ns: int) -> bool:
        """Whether a sensor that speaks has not yet told of this stamp."""
        return any(
            not given_up and not (kept and kept[-1][0] >= stamp_ns)
            for given_up, kept in zip(self._given_up, self._kept)
        )

    def give_up(self, stamp_ns: int) -> None:
        """Wait no more for sensors that have not told of this stamp, until they speak again."""
        for k, kept in enumerate(self._kept):
            self._given_up[k] |= not (kept and kept[-1][0] >= stamp_ns)

    def at(self, stamp_ns: int) -> np.ndarray:
        """(n, 6) N, N m, of this stamp or the newest before; not a number where that is too old."""
        for values, kept in zip(self._values, self._kept):
            while len(kept) > 1 and kept[1][0] <= stamp_ns:
                kept.popleft()
            fresh = kept and abs(stamp_ns - kept[0][0]) <= self._timeout_ns
            values[:] = kept[0][1] if fresh else np.nan
        return self._values
