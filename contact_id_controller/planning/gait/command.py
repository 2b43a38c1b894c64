"""Velocity command of the base: given as such, or computed from the way to the next waypoint."""

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
    """Commanded horizontal velocity x + iy, m/s, world frame, and yaw rate, rad/s.

    `turns`: the velocity was given in the base frame, so its direction turns with the base.
    """

    velocity: complex = 0.0
    yaw_rate: float = 0.0
    turns: bool = False

    @classmethod
    def of(cls, linear: Any, yaw_rate: float, frame: str) -> VelocityCommand:
        """Check and convert a velocity (x, y), m/s, in the `base` or `world` frame; yaw_rate in rad/s.

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
        """Whether the velocity or the yaw rate differs from zero."""
        return abs(self.velocity) > 1e-6 or abs(self.yaw_rate) > 1e-6


class WaypointFollower:
    """Velocity commands that visit waypoints in order and start again from the first after the last.

    Args:
        points: (w, 2) m, world frame; none: stands still and keeps its heading.
        speed_m_s: speed between waypoints.
        heading: `fixed` keeps the heading of the first call; `travel` faces the next waypoint, with the speed
            multiplied by the cosine of the heading error (0 beyond a right angle).
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
        """Return the command at base position x + iy (m) and yaw (rad), world.

        Advances past waypoints that are reached.
        """
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
        """Vector x + iy (m) to the next waypoint, 0 at the only one; increments ``reached`` for each one passed."""
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
