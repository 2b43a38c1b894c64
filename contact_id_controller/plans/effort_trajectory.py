"""Joint motion over a horizon with the efforts that belong to it, and the local feedback along it.

    tau(t, q, v) = effort(t) + K (q_set(t) - q) + D (v_set(t) - v)

Between points positions are quintic Hermite polynomials and efforts linear; after the last point that
one is held. This is what ros2_control's joint_trajectory_controller makes of such a trajectory with
the command interface effort, its PID having the gains K and D.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.kernels.turns import nearest

_ZERO = np.zeros(1)

REST_S = 0.05
"""Efforts fade in this time where set-points come to rest: nobody may come back."""


class EffortTrajectory:
    """p points of na joints; whoever makes it writes into the arrays and then calls ``replaced``.

    Attributes:
        start_s: time of the first point, s.
        times_s: (p,), from ``start_s``, the first 0, strictly increasing.
        values: (p, 4, na), of which the following are views.
        positions, velocities, accelerations: (p, na), rad, rad/s, rad/s^2.
        efforts: (p, na), N·m.
    """

    holds_still = True
    """It ends at rest by itself."""

    def __init__(self, points: int, joints: int):
        self.start_s = 0.0
        self.times_s = np.arange(points, dtype=float)
        self.values = np.zeros((points, 4, joints))
        self.positions, self.velocities = self.values[:, 0], self.values[:, 1]
        self.accelerations, self.efforts = self.values[:, 2], self.values[:, 3]
        self.replaced()

    def like(self) -> EffortTrajectory:
        """Another one of the same size."""
        return EffortTrajectory(*self.positions.shape)

    def replaced(self) -> None:
        """The arrays hold another trajectory now."""
        self._times = self.times_s.tolist()

    def copy_from(
        self, other: EffortTrajectory, added_effort: np.ndarray, share: float = 1.0
    ) -> None:
        """Become another trajectory of this size, with an effort (na,) added to each point.

        share: of the feedback, which is the robot's here: nothing to do.
        """
        self.start_s = other.start_s
        self.times_s[:] = other.times_s
        self.values[:] = other.values
        self.efforts += added_effort
        self.replaced()

    def rest(self, time_s: float, position: np.ndarray, effort: np.ndarray) -> None:
        """Hold a position (na,) from ``time_s`` on, with an effort (na,) that fades over ``REST_S``."""
        count = len(self.times_s)
        self.start_s = time_s
        self.times_s[:] = np.linspace(0.0, REST_S, count)
        self.positions[:] = position
        self.velocities[:] = self.accelerations[:] = 0.0
        np.multiply.outer(np.linspace(1.0, 0.0, count), effort, out=self.efforts)
        self.replaced()

    def sample(self, t_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, velocity and effort (na,) at a time; before the first point that one's."""
        since, times = t_s - self.start_s, self._times
        if since <= 0.0 or since >= times[-1]:
            k = 0 if since <= 0.0 else -1
            return self.positions[k], self.velocities[k], self.efforts[k]
        k = bisect_right(times, since) - 1
        step = times[k + 1] - times[k]
        out = np.empty((3, self.values.shape[2]))
        _sampler()(self.values, k, step, (since - times[k]) / step, out)
        return out[0], out[1], out[2]


@cache
def _sampler() -> Callable[..., None]:
    """``sample_efforts``; a watchdog, which passes trajectories on and samples none, loads no compiler."""
    from contact_id_controller.plans.sampling import sample_efforts

    return sample_efforts


class LocalFeedback:
    """What the robot's own side does at its own rate with a trajectory that came from elsewhere.

    Args:
        position_gain, velocity_gain: K, N·m/rad, and D, N·m·s/rad, (na,).
        effort_limits: (na,) N·m, largest torque; infinite where there is none.
        turns: (na,) bool, joints that turn without end: their error is that of the short way round.
            None: none does.

    Attributes:
        trajectory: that is followed; None: none has come.

    Raises:
        TrajectoryError: gains that are negative or not finite.
    """

    def __init__(
        self,
        position_gain: np.ndarray,
        velocity_gain: np.ndarray,
        effort_limits: np.ndarray,
        turns: np.ndarray | None = None,
    ):
        self.position_gain = np.array(position_gain, dtype=float)
        self.velocity_gain = np.array(velocity_gain, dtype=float)
        for name, gain in (("position", self.position_gain), ("velocity", self.velocity_gain)):
            if not (np.isfinite(gain).all() and (gain >= 0.0).all()):
                raise TrajectoryError(
                    f"local {name} gains are {gain}, must be finite, not negative"
                )
        self._limits = np.asarray(effort_limits, dtype=float)
        self._turns = turns if turns is not None and np.any(turns) else None
        self.trajectory: EffortTrajectory | None = None
        # Compiled now, not with the first trajectory.
        EffortTrajectory(2, len(self.position_gain)).sample(0.5)

    def forget(self) -> None:
        """Nobody has said anything."""
        self.trajectory = None

    def torques(self, t_s: float, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Torques (na,), N·m, at a time for measured positions and velocities (na,); zero without a trajectory."""
        if self.trajectory is None:
            return np.zeros_like(self._limits)
        wanted, speed, effort = self.trajectory.sample(t_s)
        torques = effort + self.part(wanted - position, speed - velocity)
        return np.clip(torques, -self._limits, self._limits)

    def part(self, position_error: np.ndarray, velocity_error: np.ndarray) -> np.ndarray:
        """The torques (na,) of errors alone."""
        if self._turns is not None:
            position_error = nearest(position_error, _ZERO, self._turns)
        return self.position_gain * position_error + self.velocity_gain * velocity_error
