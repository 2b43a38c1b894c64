"""Stand-in for ros2_control's joint_trajectory_controller with the command interface ``effort``.

Kept of it: a trajectory counts from the first update after its arrival; the feedback's error is that of the
time of the update, the effort that of one period later; before the first point it interpolates from the
state measured on arrival, whose effort is that of its last command, feedback included; and the three rules
of replacement (``Replacement``).
"""

from __future__ import annotations

import enum

import numpy as np

from contact_id_controller.plans.effort_trajectory import EffortTrajectory, LocalFeedback


class Replacement(enum.Enum):
    """What becomes of the trajectory that is played when another one arrives.

    BY_STAMP: it is dropped, the new one is played by its stamp, wherever that is: ``allow_trajectory_replacement``
    false, and all releases up to 6.7.  DEFERRED: true in 6.8 and 6.9: a new one with a stamp in the future waits
    for it, and only the newest one waits; else by stamp.  ON_ARRIVAL: true on master since 2026-08-15, after 6.9:
    a new one is played from its first point on at max(stamp, now), and before that what the old one had from the
    last update on, counted from now.
    """

    BY_STAMP = enum.auto()
    DEFERRED = enum.auto()
    ON_ARRIVAL = enum.auto()


class SimulatedTrajectoryController:
    """The efforts, N·m, of some joints; ``update`` is one period of controller_manager.

    Args:
        position_gain, velocity_gain: p, N·m/rad, and d, N·m·s/rad, of its PID, (n,).
        period_s: of controller_manager.
        rule: what a new trajectory does to the one that is played.

    Attributes:
        commanded: (n,) N·m, what stands in the command interfaces.
    """

    def __init__(
        self,
        position_gain: np.ndarray,
        velocity_gain: np.ndarray,
        period_s: float,
        *,
        rule: Replacement,
    ):
        unlimited = np.full(len(position_gain), np.inf)
        self._feedback = LocalFeedback(position_gain, velocity_gain, unlimited)
        self._period_s, self.rule = period_s, rule
        self._arrived: EffortTrajectory | None = None
        self._waits: EffortTrajectory | None = None
        self._last_s = -np.inf
        self.commanded = np.zeros(len(position_gain))

    def forget(self) -> None:
        """Activated: nothing is played."""
        self._arrived = self._waits = self._feedback.trajectory = None

    def take(self, trajectory: EffortTrajectory) -> None:
        """A message on ``~/joint_trajectory``; of several between two updates the last one counts."""
        self._arrived = trajectory

    def update(self, now_s: float, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Efforts (n,) of a period, in the measured state (n,) of the joints; zero before the first trajectory."""
        new, self._arrived = self._arrived, None
        if self.rule is Replacement.DEFERRED:
            new = self._due(new, now_s)
        if new is not None:
            self._feedback.trajectory = self._played(new, now_s, position, velocity)
        self._last_s = now_s
        playing = self._feedback.trajectory
        if playing is None:
            return np.zeros(len(position))
        efforts = self._feedback.torques(now_s, position, velocity)
        self.commanded = (
            efforts + playing.sample(now_s + self._period_s)[2] - playing.sample(now_s)[2]
        )
        return self.commanded

    def _due(self, new: EffortTrajectory | None, now_s: float) -> EffortTrajectory | None:
        """What is to be played now, of one that has come and one that waits."""
        if new is not None and not (self._feedback.trajectory and new.start_s > now_s):
            self._waits = None
            return new
        self._waits = new or self._waits
        due = self._waits if self._waits is not None and self._waits.start_s <= now_s else None
        self._waits = None if due else self._waits
        return due

    def _played(
        self, new: EffortTrajectory, now_s: float, position: np.ndarray, velocity: np.ndarray
    ) -> EffortTrajectory:
        """What is played of a trajectory that is there at an update."""
        old, begins_s = self._feedback.trajectory, new.start_s or now_s
        kept, times_s = np.zeros(0, dtype=int), np.zeros(0)
        if self.rule is Replacement.ON_ARRIVAL and old is not None:
            begins_s = max(begins_s, now_s)
            times_s = old.start_s + old.times_s - self._last_s
            kept = np.flatnonzero((times_s > 0.0) & (times_s < begins_s - now_s))
        ahead = begins_s > now_s
        played = EffortTrajectory(len(new.times_s) + len(kept) + ahead, len(position))
        played.start_s = now_s if ahead else begins_s
        if ahead:
            played.positions[0], played.velocities[0] = position, velocity
            played.efforts[0] = self.commanded
        if len(kept):
            played.values[1 : 1 + len(kept)] = old.values[kept]
            played.times_s[1 : 1 + len(kept)] = times_s[kept]
        played.values[ahead + len(kept) :] = new.values
        played.times_s[0] = 0.0
        played.times_s[ahead + len(kept) :] = begins_s - played.start_s + new.times_s
        return played
