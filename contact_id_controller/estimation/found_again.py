"""Which way is up for a base that moves and has been lost: by the mean of what its accelerometer feels.

Feet that stand make the mean acceleration of a walk vanish over part of a step, so the mean specific force,
turned into one frame by the gyroscope, is gravity's reaction.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin

WINDOW_S = 0.3
"""Time over which the mean is taken: about half a cycle of the gaits here."""

TILT_RAD = 0.1
"""Standard deviation of the tilt that is found so, of a robot that trots."""

TURNING_RAD_S = 0.2
"""With which the yaw becomes unknown while the gyroscope's samples are not believed."""


class UpwardsInMotion:
    """Follows the attitude of a lost base by its gyroscope, and finds its tilt.

    Attributes:
        rotation: (3, 3) of the base in the odometry frame, as far as it is known.
    """

    def __init__(self, rotation: np.ndarray) -> None:
        self.rotation = np.array(rotation)
        self.begin()

    def begin(self) -> None:
        """The samples that follow are not continuous with those before."""
        self._felt, self._time_s = np.zeros(3), 0.0

    def add(self, dt: float, rate: np.ndarray, force: np.ndarray) -> None:
        """A sample of dt, s: angular rate (3,), rad/s, and specific force (3,), m/s^2, in base axes, free of bias."""
        self.rotation = self.rotation @ pin.exp3(dt * rate)
        self._felt += dt * (self.rotation @ force)
        self._time_s += dt

    @property
    def complete(self) -> bool:
        """Whether the samples suffice."""
        return self._time_s >= WINDOW_S

    def level(self, gravity_m_s2: float) -> float:
        """Turn ``rotation`` so that what was felt points upwards; by how much its size differs from gravity, m/s^2."""
        mean = self._felt / self._time_s
        size = math.sqrt(mean @ mean)
        up = np.array([0.0, 0.0, 1.0])
        if size > 0.0:
            axis = np.cross(mean / size, up)
            sine = math.sqrt(axis @ axis)
            angle = math.atan2(sine, float(mean[2]) / size)
            if sine > 0.0:
                self.rotation = pin.exp3(axis * (angle / sine)) @ self.rotation
        self.begin()
        return abs(size - gravity_m_s2)
