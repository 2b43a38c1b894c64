"""Torque at one state, and linear feedback of the full state around it.

    tau(q, v) = effort + K (q_0 (-) q, v_0 - v)

(-) is Pinocchio's ``difference`` from q to q_0, a tangent vector (nv,) of which a floating base's six
components come first, in the frame of the measured base. The ros2_control plugin
linear_feedback_controller does the same with its message Control and this K.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.state import RobotState


class StateFeedback:
    """One torque with its state and gain; its maker writes into the arrays.

    Attributes:
        time_s: of the state, s.  q, v: the state (nq,), (nv,), Pinocchio's convention.
        effort: (na,) N·m, at that state.
        gain: K (na, 2 nv), N·m per rad or m and per rad/s or m/s: rows in command order, columns
            in that of v, twice.
    """

    holds_still = False
    """It goes on for ever: its sender ends it."""

    damping: np.ndarray | None = None
    """At rest: none."""

    def __init__(self, robot: RobotModel):
        self._robot = robot
        self.time_s = 0.0
        self.q, self.v = robot.neutral(), np.zeros(robot.nv)
        self.effort, self.gain = np.zeros(robot.na), np.zeros((robot.na, 2 * robot.nv))

    def like(self) -> StateFeedback:
        """Allocate another one for the same robot."""
        return StateFeedback(self._robot)

    def copy_from(self, other: StateFeedback, added_effort: np.ndarray, share: float) -> None:
        """Copy another one, with an effort (na,) added, and its gain times ``share``."""
        self.time_s = other.time_s
        self.q[:], self.v[:] = other.q, other.v
        np.add(other.effort, added_effort, out=self.effort)
        np.multiply(other.gain, share, out=self.gain)

    def rest(
        self,
        time_s: float,
        position: np.ndarray,
        effort: np.ndarray,
        beyond: np.ndarray | None = None,
    ) -> None:
        """Command an effort (na,) without feedback from ``time_s`` on; position (na,): of the joints, as measured."""
        self.time_s = time_s
        self._robot.put_joints(self.q, position)
        self.v[:] = 0.0
        self.effort[:], self.gain[:] = effort, 0.0

    def torques(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Torques (na,), N·m, at a state q (nq,), v (nv,), by the equation above; no limit is applied."""
        import pinocchio as pin  # a watchdog reads commands without it

        nv = self._robot.nv
        away = np.empty(2 * nv)
        away[:nv] = pin.difference(self._robot.model, q, self.q)
        np.subtract(self.v, v, out=away[nv:])
        return self.effort + self.gain @ away


class LinearFeedback:
    """Feedback on the robot's side, at its own rate, by a received ``StateFeedback``.

    Args:
        effort_limits: (na,) N·m, largest torque; infinite without one.

    Attributes:
        command: being followed; None: none has arrived.
    """

    def __init__(self, effort_limits: np.ndarray):
        self._limits = np.asarray(effort_limits, dtype=float)
        self.command: StateFeedback | None = None

    @classmethod
    def of(
        cls, robot: RobotModel, effort_limits: np.ndarray, gains: Sequence[np.ndarray]
    ) -> LinearFeedback:
        """Make that of a robot, whose gains come with each command."""
        return cls(effort_limits)

    def forget(self) -> None:
        """Discard the command."""
        self.command = None

    def follow(self, command: StateFeedback, now_s: float) -> None:
        """Follow another command from now on."""
        self.command = command

    def answer(self, robot: RobotModel, state: RobotState) -> np.ndarray:
        """Torques (na,), N·m, in a state of the robot."""
        return self.torques(state.q, state.v)

    def torques(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Torques (na,), N·m, at a measured state; zero without a command."""
        if self.command is None:
            return np.zeros_like(self._limits)
        return np.clip(self.command.torques(q, v), -self._limits, self._limits)
