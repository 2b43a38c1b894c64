"""The torques of a run in one process whose base is estimated."""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.safety.local_command import LocalCommand
from contact_id_controller.safety.machine import SafetyMachine, limits_of
from contact_id_controller.safety.safe_output import SafeOutput
from contact_id_controller.safety.torque_output import TorqueOutput
from contact_id_controller.state import RobotState


class LostEstimate:
    """Reacts to a lost base as the nodes in lockstep to a bad state (`safety.guard`); they predict the base a while first.

    Torques move to the safe output at ``blend_rate_nm_s``, and back once the base is found. On the robot's side a
    trajectory goes on to its end, where it rests; other commands rest: an effort without feedback, but damping by drives.
    Found after more than ``recovery_window_s``, the run is stopped: the safe output acts at once, to the end of the run,
    without a way to resume. The tilt is not judged, nor the start ramp used.

    Args:
        controller: whose torques are sent.
        local: the command for the robot's side, see there.

    Attributes:
        machine: says whether the run is interrupted or stopped, and why.
    """

    def __init__(self, controller: Controller, local: LocalCommand) -> None:
        settings, limits = controller.settings, controller.effort_limits
        damping = settings.spread("damping_nm_s_rad", controller.robot.na)
        self._safe = SafeOutput(settings.safe_output, damping, limits)
        self._output = TorqueOutput(settings, limits)
        self._output.commanding = True
        self._controller, self._local = controller, local
        self.machine = SafetyMachine(limits_of(settings))
        self.machine.activate()

    def commands(self, ready: bool, time_s: float) -> bool:
        """Whether the controller commands at the state of ``time_s``; ready: whether its base is known."""
        if ready:
            return self.machine.good_state(time_s, tilt_rad=0.0)
        self.machine.interrupt("the base is lost")
        return False

    def send(self, state: RobotState, result: StepResult | None) -> np.ndarray:
        """Torques (na,), N·m, of the period of a state, which are in the command, too.

        result: of the controller; None: it does not command.
        """
        robot, output = self._controller.robot, self._output
        machine, local = self.machine, self._local
        goes_on = local.goes_on(machine)
        sent = output.send(
            None if result is None else result.torques,
            lambda: self._safe.torques(state.v[robot.actuated], local.damping),
            at_once=machine.latched,
            goes_on=goes_on,
        ).copy()
        self._controller.sent(sent)
        local.update(
            sent,
            result,
            output.share,
            goes_on=goes_on,
            time_s=state.time_s,
            position=robot.joints_of(state.q),
            beyond=sent - output.wanted,
        )
        return sent
