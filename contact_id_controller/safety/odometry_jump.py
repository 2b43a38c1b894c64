"""Distinguishes motion of the base from jumps of its odometry."""

from __future__ import annotations

import math

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.safety.jump_filter import JumpFilter

BASE_SIZE = 13
"""Size of a base: position, quaternion xyzw, linear and angular velocity."""

FASTEST_M_S2, FASTEST_RAD_S2 = 20.0, 200.0
"""Largest accelerations between two poses: a change that they explain is no jump."""


RAD_PER_M = 2.0
"""Ratio of the limits of attitude and position, as in the defaults that walks and faults were measured with."""


def jump_limits(jump_m: float) -> tuple[float, float]:
    """Least changes of position, m, and of attitude, rad, that are jumps."""
    return jump_m, RAD_PER_M * jump_m


class OdometryJump(JumpFilter):
    """A `JumpFilter` on the pose and twist of a floating base.

    Attributes:
        limits: (2,) m, rad, largest change of pose beyond that explained by the twist.
    """

    def __init__(self, limit_m: float = math.inf, limit_rad: float = math.inf):
        super().__init__(BASE_SIZE)
        self.limits = np.array([limit_m, limit_rad])
        self._row = np.zeros(BASE_SIZE)

    def take(self, pose: np.ndarray, twist: np.ndarray, stamp_ns: int) -> tuple[str, bool]:
        """Check a pose (7,), world frame, with its twist (6,), base frame.

        Returns why it is refused (empty: it is not), and whether it is accepted at a new place.
        """
        self._row[:7], self._row[7:] = pose, twist
        return self.judge(self._row, stamp_ns)

    def _away(self, place: np.ndarray, row: np.ndarray, dt: float) -> str:
        """Distance of the base from its extrapolated pose, as text, if beyond limit + a dt² / 2; else empty."""
        distance, angle = unexplained(place, row, dt)
        if (
            distance <= self.limits[0] + 0.5 * FASTEST_M_S2 * dt * dt
            and angle <= self.limits[1] + 0.5 * FASTEST_RAD_S2 * dt * dt
        ):
            return ""
        return f"the base is {distance:.3f} m and {angle:.3f} rad from its pose extrapolated over {dt:.4f} s"


@bare_kernel
def unexplained(place, pose, dt):
    """Distance, m, and angle, rad, of a pose from ``place`` (13,), pose and twist, extrapolated over dt, s."""
    x, y, z, w = place[3], place[4], place[5], place[6]
    a, b, c = place[7], place[8], place[9]
    # R v, with t = 2 q x v.
    t0, t1, t2 = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    vx = a + w * t0 + y * t2 - z * t1
    vy = b + w * t1 + z * t0 - x * t2
    vz = c + w * t2 + x * t1 - y * t0
    d0 = pose[0] - place[0] - dt * vx
    d1 = pose[1] - place[1] - dt * vy
    d2 = pose[2] - place[2] - dt * vz
    # The turn expected, as a quaternion on the right of the old one.
    h0, h1, h2 = 0.5 * dt * place[10], 0.5 * dt * place[11], 0.5 * dt * place[12]
    half = np.sqrt(h0 * h0 + h1 * h1 + h2 * h2)
    s = np.sin(half) / half if half > 1e-9 else 1.0
    e0, e1, e2, e3 = s * h0, s * h1, s * h2, np.cos(half)
    p0 = w * e0 + x * e3 + y * e2 - z * e1
    p1 = w * e1 - x * e2 + y * e3 + z * e0
    p2 = w * e2 + x * e1 - y * e0 + z * e3
    p3 = w * e3 - x * e0 - y * e1 - z * e2
    dot = abs(p0 * pose[3] + p1 * pose[4] + p2 * pose[5] + p3 * pose[6])
    size = np.sqrt(
        (pose[3] ** 2 + pose[4] ** 2 + pose[5] ** 2 + pose[6] ** 2)
        * (p0 * p0 + p1 * p1 + p2 * p2 + p3 * p3)
    )
    return np.sqrt(d0 * d0 + d1 * d1 + d2 * d2), 2.0 * np.arccos(min(dot / size, 1.0))
