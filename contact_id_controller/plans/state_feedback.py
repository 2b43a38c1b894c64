"""A torque that belongs to one state, and linear feedback of the whole state around it.

    tau(q, v) = effort + K (q_0 (-) q, v_0 - v)

(-) is Pinocchio's ``difference`` from q to q_0, a tangent vector (nv,) of which a floating base's six
components come first, in the frame of the measured base. This is what the ros2_control plugin
linear_feedback_controller makes of its message Control, with K as it stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.state import RobotState


class StateFeedback:
    """One torque with its state and gain; whoever makes it writes into the arrays.

    Attributes:
        time_s: of the state, s.  q, v: the state (nq,), (nv,), Pinocchio's convention.
        effort: (na,) N·m, at that state.
        gain: K (na, 2 nv), N·m per rad or m and per rad/s or m/s: rows in command order, columns
            in that of v, twice.
    """

    holds_still = False
    """It goes on for ever: its sender ends it."""

    def __init__(self, robot: RobotModel):
        self._robot = robot
        self.time_s = 0.0
        self.q, self.v = robot.neutral(), np.zeros(robot.nv)
        self.effort, self.gain = np.zeros(robot.na), np.zeros((robot.na, 2 * robot.nv))

    def like(self) -> StateFeedback:
        """Another one for the same robot."""
        return StateFeedback(self._robot)

    def copy_from(self, other: StateFeedback, added_effort: np.ndarray, share: float) -> None:
        """Become another one, with an effort (na,) added, and this share of its gain."""
        self.time_s = other.time_s
        self.q[:], self.v[:] = other.q, other.v
        np.add(other.effort, added_effort, out=self.effort)
        np.multiply(other.gain, share, out=self.gain)

    def rest(self, time_s: float, position: np.ndarray, effort: np.ndarray) -> None:
        """From ``time_s`` on an effort (na,) and no feedback; the joints were measured at a position."""
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
    """What the robot's own side does at its own rate with a ``StateFeedback`` that came from elsewhere.

    Args:
        effort_limits: (na,) N·m, largest torque; infinite where there is none.

    Attributes:
        command: that is followed; None: none has come.
    """

    def __init__(self, effort_limits: np.ndarray):
        self._limits = np.asarray(effort_limits, dtype=float)
        self.command: StateFeedback | None = None

    @classmethod
    def of(
        cls, robot: RobotModel, effort_limits: np.ndarray, gains: Sequence[np.ndarray]
    ) -> LinearFeedback:
        """That of a robot, whose gains come with each command."""
        return cls(effort_limits)

    def forget(self) -> None:
        """No command has arrived."""
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
