"""Where a robot's contact points are and how far from the ground."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .contacts import ContactSet
from .exceptions import ConfigurationError, ContactSetError
from .robot import RobotModel


class SphereFoot(NamedTuple):
    """A spherical foot: the robot frame it moves with, its radius (m), its centre in that frame (m)."""

    frame: str
    radius_m: float
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)


class HalfSpace:
    """Flat ground: the points x with normal . x <= offset are inside it (world frame, m)."""

    def __init__(self, normal=(0.0, 0.0, 1.0), offset: float = 0.0):
        direction = np.array(normal, dtype=float)
        length = float(np.linalg.norm(direction)) if direction.shape == (3,) else 0.0
        if not np.isfinite(length) or length == 0.0 or not np.isfinite(offset):
            raise ConfigurationError(f"ground needs a normal of 3 finite numbers, not all 0, and a "
                                     f"finite offset, got {normal} and {offset}")
        self.normal = direction / length
        self.offset = float(offset)

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Signed distance (n,) of points (n, 3), m; positive above the ground."""
        return points @ self.normal - self.offset


class FootContacts:
    """The possible contacts of spherical feet with flat ground, followed through a motion.

    Identities are the foot frames' names: a foot that lifts off and lands again is the same contact.
    """

    def __init__(self, robot: RobotModel, feet, ground: HalfSpace, friction=1.0):
        self.feet, self.ground = tuple(feet), ground
        n = len(self.feet)
        self._joints, self._offsets = [], []
        for foot in self.feet:
            if not foot.radius_m >= 0.0:
                raise ContactSetError(f"radius_m of foot {foot.frame!r} is {foot.radius_m}, must not be negative")
            frame = robot.model.frames[robot.frame_id(foot.frame)]
            self._joints.append(frame.parentJoint)
            self._offsets.append(frame.placement.act(np.array(foot.center, dtype=float)))
        self._reach = np.array([foot.radius_m for foot in self.feet])[:, None] * ground.normal
        frames = [foot.frame for foot in self.feet]
        self._all = ContactSet(np.zeros((n, 3)), np.tile(ground.normal, (n, 1)), frames, friction,
                               identities=frames)
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

    def select(self, mask: np.ndarray) -> ContactSet:
        """The contacts where ``mask`` (n,) is true, at the last update's points and gaps."""
        key = mask.tobytes()
        base = self._subsets.get(key)
        if base is None:
            base = self._subsets[key] = self._all.subset(mask)
        return base.moved(self.points[mask], self.gaps[mask])
