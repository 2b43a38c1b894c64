"""Spherical feet on flat ground: the quick way of a walking robot's control loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ContactSetError
from contact_id_controller.geometry.shapes import HalfSpace
from contact_id_controller.robot import RobotModel


class SphereFoot(NamedTuple):
    """A spherical foot: the robot frame it moves with, its radius and its centre there (m)."""

    frame: str
    radius_m: float
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)


class FootContacts:
    """The possible contacts of spherical feet with flat ground, followed through a motion.

    Identities are the foot frames' names (numbered where a frame has several feet): a foot that
    lifts off and lands is the same contact.
    """

    def __init__(self, robot: RobotModel, feet, ground: HalfSpace, friction=1.0, viscosity=0.0):
        self.feet, self.ground = tuple(feet), ground
        n = len(self.feet)
        self._joints, self._offsets = [], []
        for foot in self.feet:
            if not foot.radius_m >= 0.0:
                raise ContactSetError(
                    f"radius_m of foot {foot.frame!r} is {foot.radius_m}, must not be negative"
                )
            frame = robot.model.frames[robot.frame_id(foot.frame)]
            self._joints.append(frame.parentJoint)
            self._offsets.append(frame.placement.act(np.array(foot.center, dtype=float)))
        self._reach = np.array([foot.radius_m for foot in self.feet])[:, None] * ground.normal
        frames = [foot.frame for foot in self.feet]
        names = frames if len(set(frames)) == n else None
        self._all = ContactSet(
            np.zeros((n, 3)),
            np.tile(ground.normal, (n, 1)),
            frames,
            friction,
            identities=names,
            viscosity=viscosity,
        )
        self._all.links(robot)
        self._subsets: dict[bytes, ContactSet] = {}
        self.points = np.zeros((n, 3))
        self.gaps = np.zeros(n)

    def __len__(self):
        return len(self.feet)

    def update(self, data) -> None:
        """Take points and gaps from joint placements ``data.oMi`` (forward kinematics done)."""
        placements = data.oMi
        for i, joint in enumerate(self._joints):
            self.points[i] = placements[joint].act(self._offsets[i])
        self.points -= self._reach
        self.gaps = self.ground.distance(self.points)

    def select(self, mask: np.ndarray, load_share: np.ndarray | None = None) -> ContactSet:
        """The contacts where ``mask`` (n,) is true, at the last update's points and gaps.

        load_share: (n,) floats in (0, 1] of all feet, see ``ContactSet``, not checked; None for 1.
        """
        key = mask.tobytes()
        base = self._subsets.get(key)
        if base is None:
            base = self._subsets[key] = self._all.subset(mask)
        return base.moved(
            self.points[mask],
            self.gaps[mask],
            load_share=None if load_share is None else load_share[mask],
        )
