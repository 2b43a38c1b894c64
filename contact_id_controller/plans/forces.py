"""Planned contact forces, piecewise constant in time, for display and comparison."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.plans.points import checked_array, checked_start, checked_times


class PlannedForces:
    """Forces at n points of feet; each row is held until the next one's time, the last one for ever.

    Args:
        frames: of the foot that each point belongs to, (n,) names.
        times_s: (p,), as in `JointTrajectory`.
        points: (p, n, 3) world, m; undefined in swing.
        forces: (p, n, 3) on the robot, world, N; 0 in swing.
        start_s: as in `JointTrajectory`.

    Raises:
        TrajectoryError: as `JointTrajectory`.
    """

    def __init__(
        self,
        frames: Sequence[str],
        times_s: np.ndarray,
        points: np.ndarray,
        forces: np.ndarray,
        start_s: float | None = None,
    ) -> None:
        self.frames = tuple(frames)
        self.times_s = checked_times(times_s)
        shape = (len(self.times_s), len(self.frames), 3)
        for name, values in (("points", points), ("forces", forces)):
            if np.shape(values) != shape:
                raise TrajectoryError(
                    f"planned {name} of shape {np.shape(values)}, must be {shape}"
                )
        rows = (shape[0], shape[1] * 3)
        self.points = checked_array("points", np.reshape(points, rows), rows).reshape(shape)
        self.forces = checked_array("forces", np.reshape(forces, rows), rows).reshape(shape)
        self.start_s = checked_start(start_s)
        self._times = self.times_s.tolist()

    def loads(self, frames: Sequence[str], times_s: np.ndarray) -> np.ndarray:
        """Mean vertical force of each frame from each time (p,), s from the start, to the next, (p, f) N."""
        own = np.array([[name == frame for name in self.frames] for frame in frames], dtype=float)
        begins = np.append(self.times_s, np.inf)
        ends = np.append(times_s[1:], max(self.times_s[-1], times_s[-1]) + 1.0)
        shared = np.minimum(ends[:, None], begins[1:]) - np.maximum(times_s[:, None], begins[:-1])
        shared = np.maximum(shared, 0.0)
        return shared @ (self.forces[..., 2] @ own.T) / shared.sum(axis=1, keepdims=True)

    def sample(self, t_s: float) -> np.ndarray:
        """Forces at time t_s, (n, 3) N; before the first row its values."""
        since = t_s if self.start_s is None else t_s - self.start_s
        return self.forces[max(bisect_right(self._times, since) - 1, 0)]
