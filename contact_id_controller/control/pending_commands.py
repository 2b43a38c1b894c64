"""What the commands that are on their way will do: where they find the robot that the next one is for."""

from __future__ import annotations

import copy

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.robot import RobotModel
from contact_id_controller.state import RobotState

MOST = 64
"""Commands that are kept; beyond them the oldest stands for those before."""


class PendingCommands:
    """Accelerations that the solutions behind the last commands foresee, each from when its command acts.

    A Smith predictor whose model is the contact problem: each solution says what its torques do to the robot, so what
    those under way will have done follows without solving anything again.

    Args:
        nv: size of a velocity.
    """

    __slots__ = ("_accelerations", "_count", "_times_s")

    def __init__(self, nv: int) -> None:
        self._times_s, self._count = np.zeros(MOST), 0
        self._accelerations = np.zeros((MOST, nv))

    def __bool__(self) -> bool:
        return self._count > 0

    def copy(self) -> PendingCommands:
        """The same, kept apart from what is added next."""
        return copy.deepcopy(self)

    def forget(self) -> None:
        """No command is known."""
        self._count = 0

    def add(self, acts_s: float, acceleration: NDArray[np.float64]) -> None:
        """A command that acts from a time on, s, with the acceleration (nv,) that it is to bring.

        One that was to act later than this is taken back: the delay has become shorter.
        """
        times, rows, count = self._times_s, self._accelerations, self._count
        while count and times[count - 1] >= acts_s:
            count -= 1
        if count == MOST:
            times[:-1], rows[:-1] = times[1:], rows[1:]
            count -= 1
        times[count], rows[count] = acts_s, acceleration
        self._count = count + 1

    def state_at(self, robot: RobotModel, state: RobotState, time_s: float) -> RobotState:
        """The state at a later time, s: v' = v + sum a_k h_k, q' = q (+) (v h + sum a_k h_k (t - m_k)).

        h_k: for how long command k acts until then, m_k: the middle of that. What acted before the first one that is
        known did as that one does.
        """
        count = self._count
        rows, edges = self._accelerations[:count], np.empty(count + 1)
        edges[0], edges[1:-1], edges[-1] = state.time_s, self._times_s[1:count], time_s
        edges = np.minimum(np.maximum(edges, state.time_s), time_s)
        spans = edges[1:] - edges[:-1]
        arms = time_s - 0.5 * (edges[1:] + edges[:-1])
        change = (time_s - state.time_s) * state.v + (spans * arms) @ rows
        q = pin.integrate(robot.model, state.q, change)
        return RobotState(time_s, q, state.v + spans @ rows)
