"""Torques with the linear feedback of the solved problem, for local feedback at a higher rate.

Each solution is commanded as a ``StateFeedback``: its torques, its state and the derivative of the torques by
the state with the active set fixed (``state_gain``). If the solution has none, a foot lands, or a force is at the
edge of its cone, the local feedback of the joints (``torques_ahead.local_gains``) is used instead.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.held_steps import HeldSteps, require_each_joint
from contact_id_controller.control.state_gain import StateGain
from contact_id_controller.control.torques_ahead import TorquesAhead, local_gains
from contact_id_controller.lazy import loaded
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.settings.shared_rows import GREATEST_LOCAL_GAIN
from contact_id_controller.state import RobotState


class LinearSteps(HeldSteps):
    """See the module and ``HeldSteps``.

    Attributes:
        substituted: number of solutions for which the joint feedback was used instead, since construction.

    Raises:
        ConfigurationError: a coordinate besides a floating base is not actuated.
    """

    command: StateFeedback

    def __init__(self, controller: Controller):
        require_each_joint(controller)
        super().__init__(controller, StateFeedback(controller.robot))
        self.substituted = 0
        self._gain = StateGain(controller)

    def _fill_command(self, state: RobotState, result: StepResult) -> None:
        """Fill the command: state, torques and the gain -d tau / d (q, v) of this period.

        The joint feedback's gain replaces one that does not exist or outlasts no change of the state, one beyond
        ``GREATEST_LOCAL_GAIN``, and any while a foot lands.
        """
        out, points = self.command, self._gain.points(state.v)
        # A foot that lands bounces, and is in the air by the time that the command acts.
        gain = None
        if not points.land(result.contact, state.v):
            gain = self._gain.compute(state, result, points, lasting=True)
        if gain is None or np.abs(gain).max() > GREATEST_LOCAL_GAIN:
            self.substituted += 1
            gain = self._of_joints(state.q)
            gain[result.limits != 0] = 0.0
        out.time_s = state.time_s
        out.q[:], out.v[:] = state.q, state.v
        out.effort[:], out.gain[:] = result.torques, gain

    def _held(self, state: RobotState) -> np.ndarray:
        return self.command.torques(state.q, state.v)

    def _of_joints(self, q: np.ndarray) -> np.ndarray:
        """K (na, 2 nv) of the joints' own feedback."""
        robot, rotors = self.controller.robot, self.controller.period.motors[0]
        gain = np.zeros((robot.na, 2 * robot.nv))
        rows, columns = np.arange(robot.na), robot.actuated
        gain[rows, columns], gain[rows, robot.nv + columns] = local_gains(
            robot, self.controller.settings, q, rotors
        )
        return gain


def ahead_of(controller: Controller) -> HeldSteps | None:
    """Steps of a controller whose commands the robot's side executes by itself; None: the settings use none."""
    settings = controller.settings
    if settings.interface.steps:
        return loaded(settings.interface.steps)(controller)
    return TorquesAhead(controller) if settings.looks_ahead else None
