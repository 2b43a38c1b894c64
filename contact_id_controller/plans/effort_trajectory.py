"""Joint motion over a horizon with its efforts, and the local feedback along it.

    tau(t, q, v) = effort(t) + K (q_set(t) - q) + D (v_set(t) - v)

Between points positions are quintic Hermite polynomials and efforts linear; after the last point that
one is held. ros2_control's joint_trajectory_controller does the same with such a trajectory, the
command interface effort and a PID with the gains K and D.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from contact_id_controller.exceptions import TrajectoryError

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.state import RobotState

REST_S = 0.05
"""Efforts fade in this time where set-points come to rest: the sender may not come back."""


class EffortTrajectory:
    """p points of na joints; its maker writes into the arrays.

    Attributes:
        start_s: time of the first point, s.
        times_s: (p,), from ``start_s``, the first 0, strictly increasing.
        values: (p, 4, na), of which the following are views.
        positions, velocities, accelerations: (p, na), rad, rad/s, rad/s^2.
        efforts: (p, na), N·m.
    """

    holds_still = True
    """It ends at rest by itself."""

    damping: np.ndarray | None = None
    """At rest: the feedback is the robot's own."""

    def __init__(self, points: int, joints: int):
        self.start_s = 0.0
        self.times_s = np.arange(points, dtype=float)
        self.values = np.zeros((points, 4, joints))
        self.positions, self.velocities = self.values[:, 0], self.values[:, 1]
        self.accelerations, self.efforts = self.values[:, 2], self.values[:, 3]

    def like(self) -> EffortTrajectory:
        """Allocate another one of the same size."""
        return EffortTrajectory(*self.positions.shape)

    def copy_from(
        self, other: EffortTrajectory, added_effort: np.ndarray, share: float = 1.0
    ) -> None:
        """Copy another trajectory of this size, with an effort (na,) added to each point.

        share: of the feedback, ignored, as the gains are the robot's own here.
        """
        self.start_s = other.start_s
        self.times_s[:] = other.times_s
        self.values[:] = other.values
        self.efforts += added_effort

    def rest(
        self,
        time_s: float,
        position: np.ndarray,
        effort: np.ndarray,
        beyond: np.ndarray | None = None,
    ) -> None:
        """Hold a position (na,) from ``time_s`` on, with an effort (na,) that fades over ``REST_S``."""
        count = len(self.times_s)
        self.start_s = time_s
        self.times_s[:] = np.linspace(0.0, REST_S, count)
        self.positions[:] = position
        self.velocities[:] = self.accelerations[:] = 0.0
        np.multiply.outer(np.linspace(1.0, 0.0, count), effort, out=self.efforts)

    def sample(self, t_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, velocity and effort (na,) at a time; before the first point its values."""
        out = np.empty((3, self.values.shape[2]))
        _kernels().sample_efforts(self.times_s, self.values, t_s - self.start_s, out)
        return out[0], out[1], out[2]


@cache
def _kernels() -> ModuleType:
    """Module of the sampling kernels, loaded on use: a watchdog, which samples nothing, needs no compiler."""
    from contact_id_controller.plans import sampling

    return sampling


class LocalFeedback:
    """Local feedback on the robot's side, at its own rate, along a trajectory received from the controller.

    Args:
        position_gain, velocity_gain: K, N·m/rad, and D, N·m·s/rad, (na,).
        effort_limits: (na,) N·m, largest torque; infinite without one.
        turns: (na,) bool, joints without limits: their error is taken within half a turn.
            None: none.

    Attributes:
        trajectory: being followed; None: none has arrived.

    Raises:
        TrajectoryError: gains that are negative, not finite, or of another number than the joints.
    """

    def __init__(
        self,
        position_gain: np.ndarray,
        velocity_gain: np.ndarray,
        effort_limits: np.ndarray,
        turns: np.ndarray | None = None,
    ):
        self._limits = np.array(effort_limits, dtype=float, ndmin=1)
        self._turns = np.zeros(len(self._limits), dtype=bool)
        self._gains = np.empty((2, len(self._limits)))
        if turns is not None:
            self._turns[:] = turns
        for name, row, gain in zip(
            ("position", "velocity"), self._gains, (position_gain, velocity_gain)
        ):
            if not (np.isfinite(gain).all() and np.greater_equal(gain, 0.0).all()):
                raise TrajectoryError(
                    f"local {name} gains are {gain}, must be finite, not negative"
                )
            if np.size(gain) not in (1, len(row)):
                raise TrajectoryError(
                    f"local {name} gains are {np.size(gain)}, must be 1 or {len(row)}, one a joint"
                )
            row[:] = gain
        # Compiled now, not with the first trajectory.
        self.trajectory: EffortTrajectory | None = EffortTrajectory(2, len(self._limits))
        self.torques(0.5, self._limits, self._limits)
        self.forget()

    @classmethod
    def of(
        cls, robot: RobotModel, effort_limits: np.ndarray, gains: Sequence[np.ndarray]
    ) -> LocalFeedback:
        """Make the feedback of a robot, with gains K and D."""
        stiffness, damping = gains
        return cls(stiffness, damping, effort_limits, robot.turns)

    def tune(self, gains: Sequence[np.ndarray]) -> None:
        """Set gains K and D."""
        self._gains[:] = gains

    def forget(self) -> None:
        """Discard the trajectory."""
        self.trajectory = None

    def follow(self, trajectory: EffortTrajectory, now_s: float) -> None:
        """Follow another trajectory; one with start_s = 0 starts at ``now_s``."""
        trajectory.start_s = trajectory.start_s or now_s
        self.trajectory = trajectory

    def answer(self, robot: RobotModel, state: RobotState) -> np.ndarray:
        """Torques (na,), N·m, in a state of the robot."""
        return self.torques(state.time_s, robot.joints_of(state.q), state.v[robot.actuated])

    def torques(self, t_s: float, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Torques (na,), N·m, at a time for measured positions and velocities (na,); zero without a trajectory."""
        if self.trajectory is None:
            return np.zeros_like(self._limits)
        followed, joints = self.trajectory, len(self._limits)
        if not followed.values.shape[2] == len(position) == len(velocity) == joints:
            raise TrajectoryError(
                f"a trajectory of {followed.values.shape[2]} joints, {len(position)} positions and "
                f"{len(velocity)} velocities, must be {joints} each"
            )
        out = np.empty((4, joints))
        _kernels().follow_efforts(
            followed.times_s,
            followed.values,
            t_s - followed.start_s,
            position,
            velocity,
            self._gains,
            self._turns,
            self._limits,
            out,
        )
        return out[3]

    @property
    def position_gain(self) -> np.ndarray:
        """K (na,), N·m/rad."""
        return self._gains[0]

    @property
    def velocity_gain(self) -> np.ndarray:
        """D (na,), N·m·s/rad."""
        return self._gains[1]
