"""Measured contact: forces or states of the contact frames, polled once a step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile

from contact_id_controller.exceptions import StateError
from contact_id_controller.ros.conversions import PositionsByName
from contact_id_controller.ros.direct_loop import take, take_waiting
from contact_id_controller.ros.packed import JOINT_STATE, WRENCH, PackedReader
from contact_id_controller.safety.guard import Guard


class ContactInput:
    """Subscriptions to measured contact, passed on to a guard.

    Args:
        node, qos: owner of the subscriptions, and their quality of service.
        kind: "force": `ground_reaction/<frame>`, WrenchStamped; "state": `contact_states`,
            JointState.
        frames: the contact frames, f.
    """

    def __init__(self, node: Node, qos: QoSProfile, kind: str, frames: Sequence[str]) -> None:
        self._node, self._frames = node, list(frames)
        self._forces, self._seen = np.zeros((len(frames), 3)), np.zeros(len(frames), dtype=bool)
        topics = [f"ground_reaction/{frame}" for frame in frames]
        packable = WRENCH
        self.pass_on = self._pass_forces
        if kind == "state":
            topics, packable, self.pass_on = ["contact_states"], JOINT_STATE, self._pass_states
        self._kept: list[bytes | None] = [None] * len(topics)
        self._readers = [PackedReader(packable) for _ in topics]
        self._states = PositionsByName(frames)
        self.subscriptions = [
            node.create_subscription(packable.kind, topic, partial(self._keep, k), qos, raw=True)
            for k, topic in enumerate(topics)
        ]

    def _keep(self, k: int, message: bytes) -> None:
        """Keep a message that the executor takes between two steps."""
        self._kept[k] = message

    def _newest(self, k: int) -> bytes | None:
        """The newest message that has not been passed on, or None."""
        kept, self._kept[k] = self._kept[k], None
        taken = take(self.subscriptions[k])
        if taken is None:
            return kept
        for newer in (taken[0], *take_waiting(self.subscriptions[k])):
            kept = newer
        return kept

    def destroy(self) -> None:
        """Destroy the subscriptions."""
        for subscription in self.subscriptions:
            self._node.destroy_subscription(subscription)

    def _pass_forces(self, guard: Guard) -> None:
        """Pass the newest measured force of each foot, N, to the guard, and which of them have arrived.

        Raises:
            StateError: a message is none; those of the other feet have been passed on.
        """
        failure: StateError | None = None
        for i in range(len(self._frames)):
            data = self._newest(i)
            self._seen[i] = False
            if data is None:
                continue
            try:
                arrays = self._readers[i].arrays(data)
                if arrays is not None:
                    self._forces[i] = arrays[0][:3]
                else:
                    force = self._readers[i].message(data).wrench.force
                    self._forces[i] = force.x, force.y, force.z
            except StateError as error:
                failure = error
                continue
            self._seen[i] = True
        if self._seen.any():
            guard.take_contact_forces(self._forces, self._seen)
        if failure is not None:
            raise failure

    def _pass_states(self, guard: Guard) -> None:
        data = self._newest(0)
        if data is None:
            return
        guard.take_contact_states(self._states.read(data))
