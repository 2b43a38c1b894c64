"""Where the base shall go: a velocity command, or the way to the next of some points."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError

ARRIVAL_RADIUS_M = 0.03
"""A point is reached when the base is closer than this: a step of the slowest walk."""

HEADING_GAIN = 2.0
"""Yaw rate per error of heading, 1/s: slower than the velocity of the plan follows."""

_FACING_RAD = 0.02
"""Error of heading that a robot at rest does not correct."""


@dataclasses.dataclass(frozen=True)
class VelocityCommand:
    """Velocity of the base: x + iy in m/s at the time of the plan, world frame; yaw rate in rad/s.

    `turns`: the velocity was given in the base frame, so its direction turns with the base.
    """

    velocity: complex = 0.0
    yaw_rate: float = 0.0
    turns: bool = False

    @classmethod
    def of(cls, linear: Any, yaw_rate: float, frame: str) -> VelocityCommand:
        """From a velocity (x, y) in m/s, in the `base` or `world` frame.

        Raises:
            ConfigurationError: a frame of another name, or numbers that are not finite.
        """
        if frame not in ("base", "world"):
            raise ConfigurationError(f"frame of a velocity is {frame!r}, must be 'base' or 'world'")
        numbers = (float(linear[0]), float(linear[1]), float(yaw_rate))
        if not all(map(math.isfinite, numbers)):
            raise ConfigurationError(f"commanded velocity {numbers} is not finite")
        return cls(complex(*numbers[:2]), numbers[2], frame == "base")

    @property
    def moves(self) -> bool:
        """Whether there is anywhere to go."""
        return abs(self.velocity) > 1e-6 or abs(self.yaw_rate) > 1e-6


class WaypointFollower:
    """Goes to each point in order, and from the last to the first again.

    Args:
        points: (w, 2) m, world frame; none: stands still and keeps its heading.
        speed_m_s: speed on the way.
        heading: `fixed` keeps the first heading; `travel` turns towards the point and walks
            the slower the less it faces it.
        max_yaw_rate_rad_s: bound of the yaw rate that corrects the heading.
    """

    def __init__(
        self,
        points: np.ndarray,
        speed_m_s: float,
        heading: str = "fixed",
        max_yaw_rate_rad_s: float = 1.0,
    ):
        self.points = np.asarray(points, dtype=float).reshape(-1, 2)
        self.speed_m_s = speed_m_s
        self.heading = heading
        self.max_yaw_rate_rad_s = max_yaw_rate_rad_s
        self.reached = 0
        self._heading: float | None = None

    def command(self, position: complex, yaw: float) -> VelocityCommand:
        """Velocity at a base position x + iy (m) and yaw (rad); moves on at each point reached."""
        if self._heading is None:
            self._heading = yaw
        way = self._way(position)
        speed = self.speed_m_s
        if self.heading == "travel" and way:
            self._heading = math.atan2(way.imag, way.real)
            speed *= max(math.cos(self._heading - yaw), 0.0)
        error = math.remainder(self._heading - yaw, 2.0 * math.pi)
        if not way:
            return VelocityCommand(0.0, self._turn(error) if abs(error) > _FACING_RAD else 0.0)
        return VelocityCommand(speed * way / abs(way), self._turn(error))

    def _turn(self, error: float) -> float:
        bound = self.max_yaw_rate_rad_s
        return min(max(HEADING_GAIN * error, -bound), bound)

    def _way(self, position: complex) -> complex:
        """Vector to the point aimed at, 0 at the only point; points reached are passed."""
        for _ in range(len(self.points)):
            x, y = self.points[self.reached % len(self.points)]
            way = complex(x, y) - position
            if abs(way) > ARRIVAL_RADIUS_M:
                return way
            if len(self.points) == 1:
                self.reached = 1
                return 0.0
            self.reached += 1
        return 0.0
