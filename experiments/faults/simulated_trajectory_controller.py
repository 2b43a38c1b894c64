"""Stand-in for ros2_control's joint_trajectory_controller with the command interface ``effort``.

Kept of it: a trajectory counts from the first update after its arrival; the feedback's error is that of the
time of the update, the effort that of one period later; before the first point it interpolates from the
state measured on arrival, whose effort is zero, so that a stamp ahead of the clock starves the effort; and
both rules of replacement (``allow_trajectory_replacement``, ros2_controllers 6.8):

    false  the new one is played by its stamp, wherever that is; the old one is dropped
    true   while another one is played, a new one is played from its first point on at max(stamp, now),
           and what the old one had until then after the last update, counted from now on
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.plans.effort_trajectory import EffortTrajectory, LocalFeedback


class SimulatedTrajectoryController:
    """The efforts, N·m, of some joints; ``update`` is one period of controller_manager.

    Args:
        position_gain, velocity_gain: p, N·m/rad, and d, N·m·s/rad, of its PID, (n,).
        period_s: of controller_manager.
        replaces: its parameter ``allow_trajectory_replacement``.
    """

    def __init__(
        self,
        position_gain: np.ndarray,
        velocity_gain: np.ndarray,
        period_s: float,
        *,
        replaces: bool,
    ):
        unlimited = np.full(len(position_gain), np.inf)
        self._feedback = LocalFeedback(position_gain, velocity_gain, unlimited)
        self._period_s, self._replaces = period_s, replaces
        self._arrived: EffortTrajectory | None = None
        self._last_s = -np.inf

    def forget(self) -> None:
        """Activated: nothing is played."""
        self._arrived = self._feedback.trajectory = None

    def take(self, trajectory: EffortTrajectory) -> None:
        """A message on ``~/joint_trajectory``; of several between two updates the last one counts."""
        self._arrived = trajectory

    def update(self, now_s: float, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Efforts (n,) of a period, in the measured state (n,) of the joints; zero before the first trajectory."""
        if self._arrived is not None:
            self._feedback.trajectory = self._played(self._arrived, now_s, position, velocity)
            self._arrived = None
        self._last_s = now_s
        playing = self._feedback.trajectory
        if playing is None:
            return np.zeros(len(position))
        efforts = self._feedback.torques(now_s, position, velocity)
        return efforts + playing.sample(now_s + self._period_s)[2] - playing.sample(now_s)[2]

    def _played(
        self, new: EffortTrajectory, now_s: float, position: np.ndarray, velocity: np.ndarray
    ) -> EffortTrajectory:
        """What is played of a trajectory that is there at an update."""
        old, begins_s = self._feedback.trajectory, new.start_s or now_s
        kept, times_s = np.zeros(0, dtype=int), np.zeros(0)
        if self._replaces and old is not None:
            begins_s = max(begins_s, now_s)
            times_s = old.start_s + old.times_s - self._last_s
            kept = np.flatnonzero((times_s > 0.0) & (times_s < begins_s - now_s))
        ahead = begins_s > now_s
        played = EffortTrajectory(len(new.times_s) + len(kept) + ahead, len(position))
        played.start_s = now_s if ahead else begins_s
        if ahead:
            played.positions[0], played.velocities[0] = position, velocity
        if len(kept):
            played.values[1 : 1 + len(kept)] = old.values[kept]
            played.times_s[1 : 1 + len(kept)] = times_s[kept]
        played.values[ahead + len(kept) :] = new.values
        played.times_s[0] = 0.0
        played.times_s[ahead + len(kept) :] = begins_s - played.start_s + new.times_s
        return played
