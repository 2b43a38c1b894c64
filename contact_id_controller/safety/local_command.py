"""The command that the robot's own side executes between two solutions, or without them."""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.held_steps import HeldSteps
from contact_id_controller.control.linear_feedback import ahead_of
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.low_level import LowLevelCommand
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.safety.states import StateChecks


class LocalCommand:
    """The command for an interface other than effort, made from each solution and the torques sent.

    Attributes:
        ahead: torques solved ahead, None if the settings do not require them.
        command: None with effort.
        leads: whether it was made from a solution that the robot's side continues.
    """

    def __init__(self) -> None:
        self.ahead: HeldSteps | None = None
        self.command: EffortTrajectory | StateFeedback | LowLevelCommand | None = None
        self.leads = False

    def take_over(self, controller: Controller) -> None:
        """Continue with another controller; the last command stays until the next solution."""
        self.ahead = ahead_of(controller)
        if self.command is None and controller.settings.interface.bridges:
            self.command = self.ahead.command.like()

    def forget(self) -> None:
        """Solve for the next state."""
        if self.ahead is not None:
            self.ahead.begin()

    def follow(self, sent: np.ndarray, result: StepResult, share: float) -> None:
        """Update the command from a solution.

        sent: (na,) N·m in this period; the difference to the solution (ramp, blending, limits) is kept until the next
        solution.  share: see `TorqueOutput.share`.
        """
        if self.ahead.solved_now:
            self.command.copy_from(self.ahead.command, sent - result.torques, share)
            self.leads = True

    @property
    def goes_on(self) -> bool:
        """Whether the robot's side can continue the command: it is of a solution, and comes to rest by itself."""
        return self.leads and self.command.holds_still

    def rest(self, sent: np.ndarray, checks: StateChecks, *, goes_on: bool) -> None:
        """Command rest at the last measured positions, as there is no solution.

        sent: (na,) N·m.  goes_on: keep the last trajectory, as states are only bad or missing.
        """
        if not goes_on:
            self.command.rest(checks.time_s, checks.position, sent)
            self.leads = False
