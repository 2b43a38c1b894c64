"""Stand-in for the group effort controllers of ros2_control and the manager that runs them.

Kept of `effort_controllers/JointGroupEffortController`, `forward_command_controller` and
controller_manager: a command has one value for each joint, without names; one that is not finite is
dropped (not in Humble), an empty one ignored; one of another length is an error of the update, for
which the manager deactivates the controller; there is no timeout, the last torque is held for ever;
deactivation writes zero, or leaves the last effort (`ForwardCommandController`); activation begins
without a command; each period the manager enforces the limits of the URDF, unless that is switched off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class UrdfLimits(NamedTuple):
    """What the URDF states of each joint, (n,): rad, rad/s, N·m; infinite where nothing."""

    lower: np.ndarray
    upper: np.ndarray
    speed: np.ndarray
    effort: np.ndarray

    def enforced(
        self, efforts: np.ndarray, position: np.ndarray, velocity: np.ndarray
    ) -> np.ndarray:
        """Efforts (n,) as ``enforce_command_limits`` lets them through in a state.

        Source: `compute_effort_limits` of ros2_control's joint_limits.
        """
        down = (velocity < -self.speed) | ((position <= self.lower) & (velocity <= 0.0))
        up = (velocity > self.speed) | ((position >= self.upper) & (velocity >= 0.0))
        least = np.where(down, 0.0, -self.effort)
        return np.clip(efforts, least, np.where(up, 0.0, self.effort))


class SimulatedEffortController:
    """The efforts, N·m, of ``count`` joints; ``update`` is one period of controller_manager.

    Args:
        count: number of joints.
        limits: enforced in each period; None: ``enforce_command_limits`` is false.
        keeps_last: on deactivation, as `ForwardCommandController` does.
        checks_finite: False: as in Humble.

    Attributes:
        efforts: (count,) what the motors get.
        dropped, errors: commands that were not finite, and of another length.
    """

    def __init__(
        self,
        count: int,
        limits: UrdfLimits | None = None,
        *,
        keeps_last: bool = False,
        checks_finite: bool = True,
    ):
        self.efforts = np.zeros(count)
        self.active = False
        self.dropped = self.errors = 0
        self._limits, self._keeps_last, self._checks_finite = limits, keeps_last, checks_finite
        self._command: np.ndarray | None = None

    def activate(self) -> None:
        """Take commands; the efforts stay as they are until one comes."""
        self._command, self.active = None, True

    def deactivate(self) -> None:
        """Zero effort, or the last one for ever."""
        self.active = False
        if not self._keeps_last:
            self.efforts[:] = 0.0

    def command(self, data) -> bool:
        """A message on ``~/commands``; whether it is held from the next update on."""
        data = np.array(data, dtype=float)
        if not self.active or not data.size:
            return False
        if self._checks_finite and not np.isfinite(data).all():
            self.dropped += 1
            return False
        self._command = data
        return data.size == self.efforts.size

    def update(
        self, position: np.ndarray | None = None, velocity: np.ndarray | None = None
    ) -> bool:
        """One period, with the measured state (n,) of the joints; False is return_type::ERROR."""
        if not self.active or self._command is None:
            return True
        if self._command.size != self.efforts.size:
            self.errors += 1
            self.deactivate()
            return False
        self.efforts[:] = self._command
        if self._limits is not None and position is not None and velocity is not None:
            self.efforts[:] = self._limits.enforced(self._command, position, velocity)
        return True
