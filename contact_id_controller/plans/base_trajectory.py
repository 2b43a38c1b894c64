"""Planned motion of the floating base as a function of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.kernels.views import dense
from contact_id_controller.plans.interpolation import base_coefficients
from contact_id_controller.plans.points import checked_array, checked_start, checked_times
from contact_id_controller.plans.sampling import BASE_NUMBERS, sample_base

_UNIT_TOLERANCE = 1e-3
"""Largest deviation of a quaternion's norm from 1."""


class BaseReference(NamedTuple):
    """Desired base motion at one time, world frame: m, quaternion xyzw, SI velocities."""

    position: np.ndarray
    quaternion_xyzw: np.ndarray
    linear_velocity: np.ndarray
    angular_velocity: np.ndarray
    linear_acceleration: np.ndarray
    angular_acceleration: np.ndarray

    @property
    def pose(self) -> np.ndarray:
        """Position and quaternion xyzw, (7,)."""
        return np.concatenate([self.position, self.quaternion_xyzw])

    @classmethod
    def of(cls, numbers: np.ndarray) -> BaseReference:
        """Views of the array (19,) that ``BaseTrajectory.fill`` writes."""
        n = numbers
        return cls(n[:3], n[3:7], n[7:10], n[10:13], n[13:16], n[16:])


class BaseTrajectory:
    """Planned motion of the floating base, world frame.

    Position: cubic Hermite. Attitude: between points k and k + 1, R = R_k exp(phi(t)) with phi a
    cubic Hermite polynomial whose end slopes are those of the given angular velocities.

    Args:
        times_s: (p,), as in `JointTrajectory`.
        positions: (p, 3) m.  quaternions_xyzw: (p, 4).
        linear_velocities: (p, 3) m/s.  angular_velocities: (p, 3) rad/s; both world frame.
        start_s: as in `JointTrajectory`.

    Raises:
        TrajectoryError: as `JointTrajectory`, or a quaternion that is not of unit length.
    """

    def __init__(
        self,
        times_s: ArrayLike,
        positions: ArrayLike,
        quaternions_xyzw: ArrayLike,
        linear_velocities: ArrayLike,
        angular_velocities: ArrayLike,
        start_s: float | None = None,
    ) -> None:
        self.times_s = checked_times(times_s)
        p = len(self.times_s)
        self.positions = checked_array("base positions", positions, (p, 3))
        self.quaternions_xyzw = _unit_quaternions(quaternions_xyzw, p)
        self.linear_velocities = checked_array("base velocities", linear_velocities, (p, 3))
        self.angular_velocities = checked_array(
            "base angular velocities", angular_velocities, (p, 3)
        )
        self.start_s = checked_start(start_s)
        self.segments = base_coefficients(
            self.times_s,
            self.positions,
            self.quaternions_xyzw,
            self.linear_velocities,
            self.angular_velocities,
        )
        self.judged: tuple[object, TrajectoryError | None] = (None, None)
        """By which limits it was judged (`limits.check_base`), and why it is refused."""
        rates, places = 1.0 / np.diff(self.times_s), (self.positions, self.quaternions_xyzw)
        self.motion = self.times_s, rates, self.segments, *map(dense, places)

    def sample(self, t_s: float) -> BaseReference:
        """Desired base motion at time t_s, s; outside the plan its first or last pose, at rest."""
        out = np.empty(BASE_NUMBERS)
        self.fill(t_s, out)
        return BaseReference.of(out)

    def fill(self, t_s: float, out: np.ndarray) -> None:
        """Write the desired base motion at time t_s into ``out`` (19,), in the order of `BaseReference`."""
        since = t_s if self.start_s is None else t_s - self.start_s
        sample_base(*self.motion, since, out)


def _unit_quaternions(values: ArrayLike, count: int) -> np.ndarray:
    quaternions = checked_array("base quaternions", values, (count, 4))
    norms = np.linalg.norm(quaternions, axis=1)
    wrong = np.abs(norms - 1.0) > _UNIT_TOLERANCE
    if wrong.any():
        raise TrajectoryError(f"base quaternion of norm {norms[wrong][0]:g}, must be 1")
    return quaternions / norms[:, None]
