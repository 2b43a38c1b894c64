"""Command of a drive of MIT type each period, and the drive's feedback at its own rate until the next one.

    tau(q, v) = effort + K (q_set - q) + D (v_set - v)

for each joint by itself, with gains that come with the command. As a row of numbers (``robot_side_message``
has the header, kind 4) the body is (5, n): positions, velocities, stiffness K, damping D, efforts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from contact_id_controller.exceptions import StateError
from contact_id_controller.kernels.turns import nearest
from contact_id_controller.plans.robot_side_message import (
    GREATEST_GAIN,
    HEADER,
    checked_size,
    header,
    stamp_of,
)

if TYPE_CHECKING:
    from contact_id_controller.robot import RobotModel
    from contact_id_controller.state import RobotState

LOW_LEVEL = 4.0
"""Kind of a message."""

PARTS = ("position", "velocity", "stiffness", "damping", "effort")


class LowLevelCommand:
    """Set-point, gains and torque of n drives; its maker writes into the arrays.

    Attributes:
        time_s: of the state for which it was made, s.
        values: (5, n), of which the following are views.
        position, velocity: (n,) rad, rad/s.  stiffness, damping: (n,) K, N·m/rad, and D, N·m·s/rad.
        effort: (n,) N·m.
    """

    holds_still = False
    """A drive goes on for ever: its sender ends it."""

    def __init__(self, joints: int):
        self.time_s = 0.0
        self.values = np.zeros((len(PARTS), joints))
        self.position, self.velocity, self.stiffness, self.damping, self.effort = self.values

    def like(self) -> LowLevelCommand:
        """Another one for the same drives, at rest: no stiffness, the same damping."""
        out = LowLevelCommand(len(self.effort))
        out.damping[:] = self.damping
        return out

    def copy_from(self, other: LowLevelCommand, added_effort: np.ndarray, share: float) -> None:
        """Copy another one, with an effort (n,) added, and its stiffness times ``share``."""
        self.time_s = other.time_s
        self.values[:] = other.values
        self.effort += added_effort
        self.stiffness *= share

    def rest(
        self,
        time_s: float,
        position: np.ndarray,
        effort: np.ndarray,
        beyond: np.ndarray | None = None,
    ) -> None:
        """Command damping by the drives from ``time_s`` on; drives without damping get the effort (n,), N·m, instead.

        position: (n,) rad, as last measured.  beyond: (n,) N·m, what the drives add to their damping; None: nothing.
        """
        self.time_s = time_s
        self.position[:] = position
        self.velocity[:] = self.stiffness[:] = 0.0
        self.effort[:] = np.where(self.damping > 0.0, 0.0 if beyond is None else beyond, effort)

    def torques(self, position: np.ndarray, velocity: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """Torques (n,), N·m, at measured positions and velocities (n,).

        turns: (n,) bool, joints without limits: their error is taken within half a turn.
        """
        away = nearest(self.position, position, turns) - position
        return self.effort + self.stiffness * away + self.damping * (self.velocity - velocity)

    def require_good(self) -> None:
        """Raise StateError if the command must not be followed."""
        if not np.isfinite(self.values).all():
            raise StateError("a number of the command is not finite")
        gains = self.values[2:4]
        if gains.min(initial=0.0) < 0.0 or gains.max(initial=0.0) > GREATEST_GAIN:
            raise StateError(
                f"gains are {gains.min():.3g} to {gains.max():.3g}, must be 0 to {GREATEST_GAIN:g}"
            )


class DriveFeedback:
    """Feedback of drives at their own rate by a received ``LowLevelCommand``.

    Args:
        effort_limits: (n,) N·m, largest torque; infinite without one.
        turns: (n,) bool, see ``LowLevelCommand.torques``.

    Attributes:
        command: being followed; None: none has arrived.
    """

    def __init__(self, effort_limits: np.ndarray, turns: np.ndarray):
        self._limits, self._turns = np.asarray(effort_limits, dtype=float), turns
        self.command: LowLevelCommand | None = None

    @classmethod
    def of(
        cls, robot: RobotModel, effort_limits: np.ndarray, gains: Sequence[np.ndarray]
    ) -> DriveFeedback:
        """Make that of a robot, whose gains come with each command."""
        return cls(effort_limits, robot.turns)

    def forget(self) -> None:
        """Discard the command."""
        self.command = None

    def follow(self, command: LowLevelCommand, now_s: float) -> None:
        """Follow another command from now on."""
        self.command = command

    def answer(self, robot: RobotModel, state: RobotState) -> np.ndarray:
        """Torques (n,), N·m, in a state of the robot; zero without a command."""
        if self.command is None:
            return np.zeros_like(self._limits)
        torques = self.command.torques(
            robot.joints_of(state.q), state.v[robot.actuated], self._turns
        )
        return np.clip(torques, -self._limits, self._limits)


def packed_low_level(
    command: LowLevelCommand, joint_names: Sequence[str], session: int = 0
) -> np.ndarray:
    """Pack a command to these joints into a row of numbers."""
    head = header(joint_names, LOW_LEVEL, session, command.time_s, len(PARTS))
    return np.concatenate([head, command.values.ravel()])


def unpacked_low_level(numbers: np.ndarray, joint_names: Sequence[str]) -> LowLevelCommand:
    """Unpack the command to these joints from a row of numbers.

    Raises:
        StateError: there is none, it is of other joints, or must not be followed.
    """
    n = len(joint_names)
    rows = checked_size(numbers, LOW_LEVEL, joint_names)
    if rows != len(PARTS) or numbers.size != HEADER + rows * n:
        raise StateError(f"a command of {rows} rows has {numbers.size} numbers")
    out = LowLevelCommand(n)
    out.time_s = stamp_of(numbers)
    out.values[:] = numbers[HEADER:].reshape(rows, n)
    out.require_good()
    return out
