"""Prediction of the state at which the next command will act, from commands that do not act yet."""

from __future__ import annotations

import copy

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.robot import RobotModel
from contact_id_controller.state import RobotState

MOST = 64
"""Number of commands that are stored; the oldest represents all before it."""


class PendingCommands:
    """Accelerations that the last solutions predict, each from the time at which its command acts.

    A Smith predictor whose model is the contact problem: each solution predicts the effect of its torques, so the
    effect of pending ones follows without solving again.

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
        """An independent copy."""
        return copy.deepcopy(self)

    def forget(self) -> None:
        """Discard all commands."""
        self._count = 0

    def add(self, acts_s: float, acceleration: NDArray[np.float64]) -> None:
        """Add a command that acts from ``acts_s`` on, with its predicted acceleration (nv,).

        Commands that were to act later are removed: the delay has become shorter.
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
        """Predicted state at a later time, s: v' = v + sum a_k h_k, q' = q (+) (v h + sum a_k h_k (t - m_k)).

        h_k: duration of command k until then, m_k: its middle. Before the first known command the acceleration is taken
        to be that command's.
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
