"""Steps of a controller whose commands the robot's side executes until the next one: one for each solution."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.state import RobotState


class HeldSteps:
    """Steps a controller, and makes after each solution the command that continues it.

    Every ``solve_every``-th state is solved; for the others the torques of the last command are used, within
    the controller's limits.

    Args:
        controller: that solves.
        command: of a kind of ``plans``, which ``_fill_command`` fills.

    Attributes:
        command: of the last solution.
    """

    def __init__(self, controller: Controller, command: Any):
        self.controller = controller
        self.command = command
        self._last: StepResult | None = None
        self._left = 0

    def _fill_command(self, state: RobotState, result: StepResult) -> None:
        """Fill the command from a solution at a state."""
        raise NotImplementedError

    def _held(self, state: RobotState) -> np.ndarray:
        """Torques (na,), N·m, of the last command in a state."""
        raise NotImplementedError

    def begin(self) -> None:
        """Discard the last solution: the next state is solved."""
        self._last = None
        self._left = 0

    def step(self, state: RobotState) -> StepResult:
        """Torques for the coming period: solved each ``solve_every``-th time, which fills the command, else by that."""
        controller = self.controller
        if self._left > 0 and self._last is not None:
            self._left -= 1
            self._last = controller.between_solutions(state, self._held(state), self._last)
            return self._last
        self._last = None  # an error on the way: the next state is solved
        result = controller.step(state)
        self._fill_command(controller.answered or state, result)
        self._last, self._left = result, controller.settings.solve_every - 1
        return result

    @property
    def solved_now(self) -> bool:
        """Whether the last step solved, and so made a command."""
        return self._last is not None and self._left == self.controller.settings.solve_every - 1

    def solve_ahead(
        self, until_s: float = -math.inf, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Does nothing; ``TorquesAhead`` solves future states here."""


def require_each_joint(controller: Controller) -> None:
    """Raise ConfigurationError if a coordinate besides the floating base is not actuated."""
    robot, base = controller.robot, 6
    if robot.nu != (base if robot.floating_base else 0):
        raise ConfigurationError(
            f"parameter 'command_interface' is {controller.settings.command_interface!r}, which "
            "needs a command for each "
            f"joint: {robot.na} joints are commanded, {robot.nv} coordinates move"
        )
