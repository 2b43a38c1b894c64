"""What the robot's own side goes on with between two commands, or without them."""

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
    """The command of another command_interface than effort, made of each solution and of what was sent.

    Attributes:
        ahead: torques solved ahead, None where the settings ask for none.
        command: None with effort.
        leads: whether it follows from a solution, which the robot's side goes on from.
    """

    def __init__(self) -> None:
        self.ahead: HeldSteps | None = None
        self.command: EffortTrajectory | StateFeedback | LowLevelCommand | None = None
        self.leads = False

    def take_over(self, controller: Controller) -> None:
        """From now on of another controller; what was commanded last stays until the next solution."""
        self.ahead = ahead_of(controller)
        if self.command is None and controller.settings.interface.bridges:
            self.command = self.ahead.command.like()

    def forget(self) -> None:
        """The next state is solved."""
        if self.ahead is not None:
            self.ahead.begin()

    def follow(self, sent: np.ndarray, result: StepResult, share: float) -> None:
        """Go on from a solution.  sent: (na,) N·m in this period.  share: see `TorqueOutput.share`.

        What ramp, blending and limits changed of the torques stays changed until the next solution.
        """
        if self.ahead.solved_now:
            self.command.copy_from(self.ahead.command, sent - result.torques, share)
            self.leads = True

    @property
    def goes_on(self) -> bool:
        """Whether the robot's side has what it can go on with: of a solution, and it ends at rest by itself."""
        return self.leads and self.command.holds_still

    def rest(self, sent: np.ndarray, checks: StateChecks, *, goes_on: bool) -> None:
        """There is no solution: rest, where the joints were measured last.

        While states are bad or missing a trajectory goes on; all else, a stop and the end of commanding are
        rest at once.
        """
        if not goes_on:
            self.command.rest(checks.time_s, checks.position, sent)
            self.leads = False
