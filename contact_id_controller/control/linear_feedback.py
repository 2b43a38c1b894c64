"""Torques with the feedback of the solved problem, for a robot's side that is never late.

Each solution is commanded as a ``StateFeedback``: its torques, its state and the derivative of the torques by
the state with the active set held (``state_gain``). Where the solution has none, the local feedback of
the joints (``torques_ahead.local_gains``) stands in.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.state_gain import StateGain
from contact_id_controller.control.torques_ahead import TorquesAhead, local_gains
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.lazy import loaded
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.settings.shared_rows import GREATEST_LOCAL_GAIN
from contact_id_controller.state import RobotState

_BASE = 6


class LinearSteps:
    """Steps a controller, and after each solution has the feedback that goes on from it.

    Every ``solve_every``-th state is solved; the others get the torques of the last feedback, within
    the controller's limits.

    Attributes:
        command: of the last solution.
        substituted: how many solutions had no derivative, ever.

    Raises:
        ConfigurationError: something other than a floating base is not actuated.
    """

    def __init__(self, controller: Controller):
        robot = controller.robot
        if robot.nu != (_BASE if robot.floating_base else 0):
            raise ConfigurationError(
                f"parameter 'command_interface' is {controller.settings.command_interface!r}, which "
                "needs a command for each "
                f"joint: {robot.na} joints are commanded, {robot.nv} coordinates move"
            )
        self.controller = controller
        self.command = StateFeedback(robot)
        self.substituted = 0
        self._gain = StateGain(controller)
        self._last: StepResult | None = None
        self._left = 0

    def begin(self) -> None:
        """Forget what was solved: the next state is solved."""
        self._last = None
        self._left = 0

    def step(self, state: RobotState) -> StepResult:
        """Torques for the coming period: solved, or of the last feedback."""
        controller = self.controller
        if self._left > 0 and self._last is not None:
            self._left -= 1
            torques = self.command.torques(state.q, state.v)
            self._last = controller.between_solutions(state, torques, self._last)
            return self._last
        self._last = None  # an error on the way: the next state is solved
        result = controller.step(state)
        self._say(state, result)
        self._last, self._left = result, controller.settings.solve_every - 1
        return result

    @property
    def solved_now(self) -> bool:
        """Whether the last step solved, and so made a feedback."""
        return self._last is not None and self._left == self.controller.settings.solve_every - 1

    def solve_ahead(
        self, until_s: float = -math.inf, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Nothing is solved ahead."""

    def _say(self, state: RobotState, result: StepResult) -> None:
        """Write the command: state, torques and the gain -d tau / d (q, v) of this period.

        Where the solution has no derivative, or one beyond ``GREATEST_LOCAL_GAIN``, the joint gains stand in.
        """
        out = self.command
        state = self.controller.answered or state
        gain = self._gain.compute(state, result)
        if gain is None or np.abs(gain).max() > GREATEST_LOCAL_GAIN:
            self.substituted += 1
            gain = self._of_joints(state.q)
        out.time_s = state.time_s
        out.q[:], out.v[:] = state.q, state.v
        out.effort[:], out.gain[:] = result.torques, gain

    def _of_joints(self, q: np.ndarray) -> np.ndarray:
        """K (na, 2 nv) of the joints' own feedback."""
        robot = self.controller.robot
        gain = np.zeros((robot.na, 2 * robot.nv))
        rows, columns = np.arange(robot.na), robot.actuated
        gain[rows, columns], gain[rows, robot.nv + columns] = local_gains(
            robot, self.controller.settings, q
        )
        return gain


def ahead_of(controller: Controller) -> TorquesAhead | LinearSteps | None:
    """What steps a controller so that the robot's side can go on without it; None: itself."""
    settings = controller.settings
    if settings.interface.steps:
        return loaded(settings.interface.steps)(controller)
    return TorquesAhead(controller) if settings.looks_ahead else None
