"""The torques of a run in one process while the estimate of its base is lost."""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.controller import Controller
from contact_id_controller.safety.machine import SafetyMachine, limits_of
from contact_id_controller.safety.safe_output import SafeOutput
from contact_id_controller.safety.torque_output import TorqueOutput


class LostEstimate:
    """Reacts as `safety.guard` to the estimator's node, which publishes no odometry while the base is lost: a bad state.

    Torques move to the safe output at ``blend_rate_nm_s``, and back once the base is found. After more than
    ``recovery_window_s`` they stay the safe output to the end of the run, in which nobody resumes. The tilt is not
    judged.

    Attributes:
        machine: says whether it is interrupted or stopped, and why.
    """

    def __init__(self, controller: Controller) -> None:
        settings, limits = controller.settings, controller.effort_limits
        damping = settings.spread("damping_nm_s_rad", controller.robot.na)
        self._safe = SafeOutput(settings.safe_output, damping, limits)
        self._output = TorqueOutput(settings, limits)
        self._rests = False
        self.machine = SafetyMachine(limits_of(settings))
        self.machine.activate()

    def commands(self, ready: bool, time_s: float) -> bool:
        """Whether the controller commands at the state of ``time_s``; ready: whether its base is known."""
        if ready:
            return self.machine.good_state(time_s, tilt_rad=0.0)
        self.machine.interrupt("the base is lost")
        return False

    def rest(self, sent: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Torques (na,), N·m, of a period in which the controller does not command.

        sent: (na,) N·m, of the period before.  velocity: (na,) rad/s, of the joints.
        """
        if not self._rests:
            self._rests = True
            self._output.jump(sent)
        return self._output.follow(self._safe.torques(velocity)).copy()

    def back(self, wanted: np.ndarray) -> np.ndarray:
        """Torques (na,), N·m, of a period in which the controller commands ``wanted``."""
        if self._rests:
            self._rests = False
            self._output.blend()
        elif self._output.settled:
            return wanted
        return self._output.follow(wanted).copy()
