"""Torques with set-points and gains for drives of MIT type, which close the loop at their own rate.

Each solution is commanded as a ``LowLevelCommand``: its torques, the measured state of the joints, at which the
drives' feedback is zero, and the gains of a local feedback (``torques_ahead.local_gains``).
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.held_steps import HeldSteps
from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.plans.low_level import LowLevelCommand
from contact_id_controller.state import RobotState


class LowLevelSteps(HeldSteps):
    """See the module and ``HeldSteps``."""

    command: LowLevelCommand

    def __init__(self, controller: Controller):
        robot = controller.robot
        super().__init__(controller, LowLevelCommand(robot.na))
        # A stop before the first solution is damped, too.
        self._tune(robot.neutral())

    def _fill_command(self, state: RobotState, result: StepResult) -> None:
        """Fill the command: joints as measured, torques as solved."""
        out, robot = self.command, self.controller.robot
        out.time_s = state.time_s
        out.position[:], out.velocity[:] = robot.joints_of(state.q), state.v[robot.actuated]
        self._tune(state.q)
        out.effort[:] = result.torques

    def _tune(self, q: np.ndarray) -> None:
        """Set the gains for a configuration (nq,)."""
        out, controller = self.command, self.controller
        rotors = controller.period.motors[0]
        gains = local_gains(controller.robot, controller.settings, q, rotors)
        out.stiffness[:], out.damping[:] = gains

    def _held(self, state: RobotState) -> np.ndarray:
        robot = self.controller.robot
        return self.command.torques(robot.joints_of(state.q), state.v[robot.actuated], robot.turns)
