"""Measured contact: forces or states of the contact frames, polled once a step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from contact_id_controller.control.controller import Controller
from contact_id_controller.ros.direct_loop import take_newest


def _ignore(message) -> None:
    """Messages are taken by `ContactInput.pass_on`, before the executor sees them."""


class ContactInput:
    """Subscriptions to measured contact, passed on to a controller.

    Parameters
    ----------
    node, qos
        Owner of the subscriptions, and their quality of service.
    kind
        "force": `ground_reaction/<frame>`, WrenchStamped; "state": `contact_states`, JointState.
    frames
        The contact frames, f.
    """

    def __init__(self, node: Node, qos: QoSProfile, kind: str, frames: Sequence[str]) -> None:
        self._node, self._frames = node, list(frames)
        self._forces, self._sizes = np.zeros((len(frames), 3)), np.zeros(len(frames))
        if kind == "force":
            self.subscriptions = [
                node.create_subscription(WrenchStamped, f"ground_reaction/{frame}", _ignore, qos)
                for frame in frames
            ]
            self.pass_on = self._pass_forces
        else:
            self.subscriptions = [
                node.create_subscription(JointState, "contact_states", _ignore, qos)
            ]
            self.pass_on = self._pass_states

    def destroy(self) -> None:
        """Take the subscriptions from the node."""
        for subscription in self.subscriptions:
            self._node.destroy_subscription(subscription)

    def _pass_forces(self, controller: Controller, time_s: float) -> None:
        news = False
        for i, subscription in enumerate(self.subscriptions):
            message = take_newest(subscription)
            self._sizes[i] = math.nan
            if message is not None:
                force = message.wrench.force
                row = self._forces[i]
                row[0], row[1], row[2] = force.x, force.y, force.z
                self._sizes[i] = math.sqrt(row @ row)
                if not math.isfinite(self._sizes[i]):
                    row[:] = 0.0
                    self._sizes[i] = math.nan
                news = True
        if news:
            controller.sources.detector.take_forces(self._sizes, time_s)
            controller.measure(self._forces)

    def _pass_states(self, controller: Controller, time_s: float) -> None:
        message = take_newest(self.subscriptions[0])
        if message is not None:
            known = dict(zip(message.name, message.position))
            states = np.array([known.get(frame, math.nan) for frame in self._frames])
            controller.sources.detector.take_states(states, time_s)
