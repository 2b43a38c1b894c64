"""Predicts a floating base that was measured some milliseconds ago, with standard deviations.

Joints are measured more often, or arrive sooner, than an estimate of the base made of them. Between its stamp and
theirs the base is integrated: at a constant twist, or with the accelerations of the controller's solutions, which
include plan, contacts and torques. With every odometry 2 ms old, walks fall within a second where the base is used as
it is; with the solutions' accelerations they tolerate 10 ms always and 40 ms now and then (results/real_time_runs.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.safety.odometry_jump import BASE_SIZE, FASTEST_M_S2, FASTEST_RAD_S2

KEPT = 128
"""Number of accelerations that are kept, one per step."""

_NANO = 1e-9
_STRETCH_NS = 1_000_000
"""Longest step of the integration."""

_HOLDS_NS = 100_000_000
"""Longest time for which an acceleration is used: only steps on a predicted base record one."""

_SHORTEST_S = 1e-4
"""Bases closer in time are not compared: they differ by noise."""

_SHARE = 0.02
"""Weight of the newest innovation in their mean."""

_LARGEST_RATIO = 10.0
"""Largest innovation that counts, as a multiple of their mean, unless more than `_OF_ONE` in a row are larger: one twist
that is wrong says nothing of the next ones."""

_OF_ONE = 2
"""Number of innovations that one wrong twist makes: its own, and that of the next one."""

_LEAST = 1e-3, 1e-1
"""Mean below which an innovation is not compared with it, (m/s)2/s and (rad/s)2/s: as if each millisecond had another
acceleration of 1 m/s2, 10 rad/s2."""

_COMPARABLE_S = 0.1
"""Bases farther apart in time are not compared."""

_DIFFUSION = FASTEST_M_S2**2 * 1e-3, FASTEST_RAD_S2**2 * 1e-3
"""Initial growth of the variance of a base's velocities, (m/s)2/s and (rad/s)2/s: as if each millisecond had another
acceleration of the largest size."""


class BasePrediction:
    """Predicts a base, and estimates the growth of the prediction's error from each new one.

    Attributes:
        position_m, attitude_rad: standard deviations of the last prediction.
    """

    def __init__(self) -> None:
        self._times = np.zeros(KEPT, dtype=np.int64)
        self._accelerations = np.zeros((KEPT, 6))
        self._count = 0
        self._last, self._last_ns = np.zeros(BASE_SIZE), 0
        self._here = np.zeros(BASE_SIZE)
        self._diffusion, self._large = np.array(_DIFFUSION), np.zeros(2, dtype=np.int64)
        self.position_m = self.attitude_rad = 0.0
        self._has_last = False

    def forget(self) -> None:
        """Forget all accelerations."""
        self._count = 0

    def accelerate(self, time_ns: int, acceleration: np.ndarray) -> None:
        """Record the acceleration of the twist from ``time_ns`` on: (6,) m/s2, rad/s2, base frame."""
        at = self._count % KEPT
        self._times[at], self._accelerations[at] = time_ns, acceleration
        self._count += 1

    def carry(
        self, base: np.ndarray, base_ns: int, time_ns: int, variances: np.ndarray
    ) -> np.ndarray:
        """The base (13,) predicted from ``base_ns`` to ``time_ns``; the next call overwrites it.

        variances: (6,) of its twist; zeros where unknown.
        """
        if base_ns != self._last_ns:
            self._learn(base, base_ns)
        self._carry(base, base_ns, time_ns, self._here)
        h = _NANO * abs(time_ns - base_ns)
        self.position_m, self.attitude_rad = _grown(variances, h, self._diffusion)
        return self._here

    def _learn(self, base: np.ndarray, base_ns: int) -> None:
        """Compare a new base with the prediction from the one before, unless they are too close or too far apart."""
        dt = _NANO * (base_ns - self._last_ns)
        if self._has_last and _SHORTEST_S <= dt < _COMPARABLE_S:
            self._carry(self._last, self._last_ns, base_ns, self._here)
            _compare(self._here, base, dt, self._diffusion, self._large)
        self._last[:], self._last_ns, self._has_last = base, base_ns, True

    def _carry(self, base: Any, begin_ns: int, end_ns: int, found: Any) -> None:
        _carry(base, begin_ns, end_ns, self._times, self._accelerations, self._count, found)


@bare_kernel
def _grown(variances, h, diffusion):
    """Standard deviations of position, m, and attitude, rad, after h, s.

    variances (6,): of the twist; diffusion (2,): growth of the variances of linear and angular velocity, per s.
    """
    linear, angular, total = 0.0, 0.0, 0.0
    for k in range(3):
        linear, angular = max(linear, variances[k]), max(angular, variances[3 + k])
        total += variances[k] + variances[3 + k]
    if not abs(total) < np.inf:
        return np.inf, np.inf
    grown = h * h * h / 3.0
    return (
        np.sqrt(linear * h * h + diffusion[0] * grown),
        np.sqrt(angular * h * h + diffusion[1] * grown),
    )


@bare_kernel
def _carry(base, begin_ns, end_ns, times, accelerations, count, found):
    """Write the base (13,) at ``end_ns`` into ``found`` (13,), integrated from ``begin_ns``.

    times, accelerations (n,), (n, 6): ring of the last of ``count`` accelerations, each used from its time on.
    """
    for k in range(base.shape[0]):
        found[k] = base[k]
    size = times.shape[0]
    oldest = max(count - size, 0)
    holds = count - 1  # number of the acceleration that holds
    while holds >= oldest and times[holds % size] > begin_ns:
        holds -= 1
    now_ns = begin_ns
    while now_ns < end_ns:
        until_ns = min(end_ns, now_ns + _STRETCH_NS)
        if holds + 1 < count:
            until_ns = min(until_ns, max(times[(holds + 1) % size], now_ns))
        accelerates = holds >= oldest and now_ns - times[holds % size] < _HOLDS_NS
        _integrate(
            accelerations[max(holds, 0) % size], accelerates, 1e-9 * (until_ns - now_ns), found
        )
        now_ns = until_ns
        if holds + 1 < count and times[(holds + 1) % size] <= now_ns:
            holds += 1
    if end_ns < begin_ns:
        _integrate(accelerations[0], False, (end_ns - begin_ns) * 1e-9, found)


@bare_kernel
def _integrate(acceleration, accelerates, h, base):
    """Integrate a base over h, s, in place: at constant twist or, if it ``accelerates``, at constant acceleration.

    Args:
        acceleration (6,): of the twist, m/s2, rad/s2, base frame.
        base (13,): position, m, quaternion x, y, z, w, and twist in the base frame, m/s, rad/s.
    """
    for k in range(6):
        # Half of the change now: pose by the mean twist.
        base[7 + k] += 0.5 * h * acceleration[k] if accelerates else 0.0
    x, y, z, w = base[3], base[4], base[5], base[6]
    a, b, c = base[7], base[8], base[9]
    # R v, with t = 2 q x v.
    t0, t1, t2 = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    base[0] += h * (a + w * t0 + y * t2 - z * t1)
    base[1] += h * (b + w * t1 + z * t0 - x * t2)
    base[2] += h * (c + w * t2 + x * t1 - y * t0)
    h0, h1, h2 = 0.5 * h * base[10], 0.5 * h * base[11], 0.5 * h * base[12]
    half = np.sqrt(h0 * h0 + h1 * h1 + h2 * h2)
    s = np.sin(half) / half if half > 1e-9 else 1.0
    e0, e1, e2, e3 = s * h0, s * h1, s * h2, np.cos(half)
    base[3] = w * e0 + x * e3 + y * e2 - z * e1
    base[4] = w * e1 - x * e2 + y * e3 + z * e0
    base[5] = w * e2 + x * e1 - y * e0 + z * e3
    base[6] = w * e3 - x * e0 - y * e1 - z * e2
    for k in range(6):
        base[7 + k] += 0.5 * h * acceleration[k] if accelerates else 0.0


@bare_kernel
def _compare(expected, base, dt, diffusion, large):
    """Update diffusion (2,), the mean of squared innovations per s, of linear and angular velocity.

    expected, base (13,): predicted over dt, s, and measured.  large (2,): number of large ones in a row; updated.
    """
    for part in range(2):
        surprise = 0.0
        for k in range(7 + 3 * part, 10 + 3 * part):
            surprise += (base[k] - expected[k]) ** 2
        innovation, most = surprise / dt, _LARGEST_RATIO * max(diffusion[part], _LEAST[part])
        large[part] = large[part] + 1 if innovation > most else 0
        if large[part] <= _OF_ONE:
            innovation = min(innovation, most)
        diffusion[part] += _SHARE * (innovation - diffusion[part])
