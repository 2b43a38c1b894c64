"""The command that the robot's own side executes between two solutions, or without them."""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.held_steps import HeldSteps
from contact_id_controller.control.linear_feedback import ahead_of
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.low_level import LowLevelCommand
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.safety.machine import SafetyMachine, SafetyState


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
        if self.command is None and self.ahead and controller.settings.interface.bridges:
            self.command = self.ahead.command.like()

    @property
    def damping(self) -> np.ndarray | None:
        """(na,) N·m·s/rad, damping by drives at rest; None: the interface has none."""
        return None if self.command is None else self.command.damping

    def forget(self) -> None:
        """Solve for the next state."""
        if self.ahead is not None:
            self.ahead.begin()

    def update(
        self,
        sent: np.ndarray,
        result: StepResult | None,
        share: float,
        *,
        goes_on: bool,
        time_s: float,
        position: np.ndarray,
        beyond: np.ndarray,
    ) -> None:
        """Update the command from a solution; without one it rests, unless it goes on.

        Args:
            sent: (na,) N·m in this period; the difference to the solution (ramp, blending, limits) is kept until the
                next solution.
            result: None without a solution.
            share: see `TorqueOutput.share`.
            goes_on: see `goes_on`.
            time_s, position: of the joints (na,), rad, as last measured, where it rests.
            beyond: (na,) N·m, what blending adds to the wanted torques.
        """
        if self.command is None:
            return
        if result is None:
            if not goes_on:
                self.command.rest(time_s, position, sent, beyond)
                self.leads = False
        elif self.ahead is not None and self.ahead.solved_now:
            self.command.copy_from(self.ahead.command, sent - result.torques, share)
            self.leads = True

    def goes_on(self, machine: SafetyMachine) -> bool:
        """Whether the robot's side continues the command: it is of a solution, comes to rest by itself, and no stop."""
        if self.command is None or not (self.leads and self.command.holds_still):
            return False
        return not (machine.latched or machine.state is SafetyState.INACTIVE)
