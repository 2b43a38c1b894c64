"""From measured messages to torques: the part of the node that needs no node.

Whatever comes in, a finite command within the limits goes out: the controller's, or the safe output
with its reason counted and logged once.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.warm_up import warm_up
from contact_id_controller.exceptions import ConfigurationError, TrajectoryError, choices
from contact_id_controller.ros import conversions
from contact_id_controller.ros.conversions import Refusal
from contact_id_controller.ros.diagnostics import StepMonitor
from contact_id_controller.ros.recording import Recorder
from contact_id_controller.ros.state_input import StateInput
from contact_id_controller.safety.machine import SafetyLimits, SafetyMachine, SafetyState
from contact_id_controller.safety.odometry_jump import OdometryJump
from contact_id_controller.safety.safe_output import SafeOutput
from contact_id_controller.safety.torque_output import TorqueOutput
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.solution import NOT_CONVERGED
from contact_id_controller.state import RobotState


class ControlLoop:
    """Runs a controller on the messages of one robot.

    Parameters
    ----------
    controller
        The controller, with its robot and settings.
    warn
        Takes one line (or a traceback) for the log; called once for each kind of trouble.
    """

    def __init__(self, controller: Controller, warn: Callable[[str], None]) -> None:
        settings, robot = controller.settings, controller.robot
        self.controller = controller
        self.lockstep = settings.mode == "lockstep"
        self.input = StateInput(robot, settings.state_timeout_s, settings.odometry_age_limit_s)
        self.monitor = StepMonitor(settings.period_s, real_time=not self.lockstep)
        self.recorder = None
        if settings.record_path:
            self.recorder = Recorder(
                settings.record_path, robot.joint_names, settings.contact_frames
            )
        self.result: StepResult | None = None
        """The last step's result, None while the safe output is commanded."""
        self.safety = SafetyMachine(_safety_limits(settings))
        self.output = TorqueOutput(settings, controller.effort_limits)
        self.measured_contact = None
        """Passes measured contact on (`ContactInput.pass_on`), if there is any."""
        self._warn = warn
        self._warned: set[str] = set()
        self._state: RobotState | None = None
        self._commanding = self._keep_upright = False
        self._good_s = -np.inf
        self._good_stamp_s: float | None = None
        self._trouble = "no joint state"
        self._velocity = np.zeros(robot.na)
        self._velocity_s = -np.inf
        self._sensed = controller.sensed
        self._live_models = {controller.model}
        self._candidate: Controller | None = None
        self._take_over(settings)

    # Settings

    def warm_up(self) -> None:
        """Compile the model of the settings and those of `live_models`; takes seconds.

        Raises ConfigurationError or UnknownModelError for models that do not exist.
        """
        warm_up(self.controller)
        self.output.follow(self.output.sent)
        jump, pose = OdometryJump(), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        for stamp_ns in (1, 2):
            jump.take(pose, np.zeros(6), stamp_ns)
        robot, settings = self.controller.robot, self.controller.settings
        for pair in settings.live_models:
            friction, solver = pair.split("/")
            other = Controller(robot, replace(settings, friction=friction, solver=solver))
            if other.model not in self._live_models:
                warm_up(other)
                self._live_models.add(other.model)

    def check(self, settings: ControllerSettings) -> None:
        """Raise ConfigurationError or UnknownModelError if `apply` could not take these over."""
        self._candidate = Controller(self.controller.robot, settings)
        if self._candidate.model not in self._live_models:
            pairs = sorted("/".join(model) for model in self._live_models)
            raise ConfigurationError(
                f"{'/'.join(self._candidate.model)} was not compiled in configure; prepared "
                f"are {choices(pairs)}: name it in live_models"
            )
        if self._candidate.sensed and not self._sensed:
            raise ConfigurationError(
                "solver 'sensed' can only be chosen before configure, which subscribes to forces"
            )
        if self.measured_contact is None and "measured" in settings.contact_sources:
            raise ConfigurationError(
                "contact source 'measured' can only be chosen before configure, which subscribes"
            )
        TorqueOutput(settings, self._candidate.effort_limits)

    def apply(self, settings: ControllerSettings) -> None:
        """Go on with other settings that were checked; call between two steps.

        Torque moves to what they ask for at blend_rate_nm_s.
        """
        candidate, self._candidate = self._candidate, None
        if settings == self.controller.settings:
            return  # Blending would hold the torque back for nothing.
        if candidate is None or candidate.settings != settings:
            candidate = Controller(self.controller.robot, settings)
        candidate.take_over(self.controller)
        self.controller = candidate
        self._take_over(settings)
        self.output.apply(settings, candidate.effort_limits)
        self.output.blend()

    def _take_over(self, settings: ControllerSettings) -> None:
        limits = self.controller.effort_limits
        damping = settings.spread("damping_nm_s_rad", self.controller.robot.na)
        self._safe = SafeOutput(settings.safe_output, damping, limits)
        self._emergency = SafeOutput(settings.emergency_stop_output, damping, limits)
        self.safety.limits = _safety_limits(settings)
        self._timeout_s = self.input.age_limit_s = settings.state_timeout_s
        self.input.odometry_age_limit_s = settings.odometry_age_limit_s
        self.input.jump.limit_m = settings.odometry_jump_m
        self.input.jump.limit_rad = settings.odometry_jump_rad
        self._period_s = settings.period_s

    # Start and stop

    def not_ready(self) -> str:
        """Why the robot's state is not known well enough to command it; empty when it is."""
        if self.lockstep:
            return "" if self._good_s > 0.0 else self._trouble
        if time.perf_counter() - self._good_s <= self._timeout_s:
            return ""
        return f"no good state for {self._timeout_s:g} s: {self._trouble}"

    def observe(self, message, now_ns: int | None) -> None:
        """Look at a JointState without commanding; time may begin anew meanwhile."""
        if self.input.is_before_the_last(message):
            self.input.reset()
        self.guarded("state", self._take_state, message, now_ns)

    def start(self) -> str:
        """Begin anew: the first state that is accepted is the posture to hold.

        Returns why not, or nothing.
        """
        refusal = self.not_ready() or self.safety.activate(self._good_stamp_s)
        if not refusal:
            self.input.reset()
            self.monitor.pause()
            self.result = self._state = None
            self._keep_upright = False
            self._velocity_s = -np.inf
            self._warned.clear()
            self._jump(np.zeros_like(self.output.sent))
            self._begin()
        return refusal

    def stop(self) -> np.ndarray:
        """Command no more; the last torques (na,) to send."""
        self.safety.deactivate()
        self.input.reset()
        self._good_s, self._trouble = -np.inf, "no joint state"
        self.result = None
        return self._jump(self.safe_torques())

    def resume(self) -> str:
        """Leave a stop, and hold the posture of the next state; returns why not, or nothing."""
        refusal = self.not_ready() or self.safety.resume(self._good_stamp_s)
        if not refusal:
            self._state, self._keep_upright = None, True
            self.input.jump.reset()
            self._begin()
        return refusal

    def _begin(self) -> None:
        """The next torque begins the start ramp, not a blend from the safe output."""
        self.output.ramp()
        self._commanding = True

    def emergency_stop(self) -> np.ndarray:
        """Engage the emergency stop; the torques (na,) to send at once."""
        self.safety.engage_emergency_stop()
        self.result = None
        return self._jump(self.safe_torques())

    def _jump(self, torques: np.ndarray) -> np.ndarray:
        """Send torques (na,) at once; the controller's rate limit counts from them."""
        sent = self.output.jump(torques)
        self.controller.commanded[:] = sent
        return sent

    # Each period

    def command(self, message, now_ns: int | None) -> np.ndarray:
        """Torques (na,), N·m, for a JointState and the time by the clock (None: no clock).

        Never raises: after bad input or an error they move to the safe output, in a stop they are it.
        """
        self.result = None
        wanted = self.guarded("step", self._step, message, now_ns)
        if wanted is None:
            self.safety.failed("an error in the step, see the log")
        commanding = self.safety.commanding and self.result is not None
        if self.safety.latched:
            self.result = None
            sent = self.output.jump(self.safe_torques())
        else:
            if commanding != self._commanding:
                self.output.blend()
            sent = self.output.follow(wanted if commanding else self.safe_torques())
        self._commanding = commanding
        self.controller.commanded[:] = sent
        return sent

    def finish(self, arrival_s: float) -> None:
        """After the command has left: time, count and record the step.

        `arrival_s`: when its state arrived, on time.perf_counter.
        """
        self.guarded("record", self._finish, arrival_s)

    def _finish(self, arrival_s: float) -> None:
        result, state = self.result, self._state
        if result is None:
            return
        step_s = time.perf_counter() - arrival_s
        self.safety.timed(not self.lockstep and step_s > self._period_s)
        self.monitor.step(
            state.time_s, arrival_s, step_s, result.step_time_s, result.solve_time_s, result.status
        )
        if self.recorder is not None:
            joints = self.input.joints
            self.recorder.add(state.time_s, joints.position, joints.velocity, result, step_s)

    def safe_torques(self) -> np.ndarray:
        """The safe output (na,), N·m; it damps only a velocity measured a moment ago."""
        fresh = time.perf_counter() - self._velocity_s <= self._timeout_s
        stopped = self.safety.state is SafetyState.EMERGENCY_STOP
        safe = self._emergency if stopped else self._safe
        return safe.torques(self._velocity if fresh else None)

    def silence(self, refusal: Refusal | None = None) -> np.ndarray:
        """No good state has come for `state_timeout_s`: the safe output (na,) to send at once."""
        self.result = None
        refusal = refusal or Refusal("states_stopped", f"no good state for {self._timeout_s:g} s")
        self.refuse(refusal)
        self.safety.interrupt(refusal.detail)
        return self._jump(self.safe_torques())

    def take_odometry(self, message) -> None:
        """Keep the newest Odometry for the next state."""
        self.guarded("odometry", self.input.take_odometry, message)

    def take_joint_trajectory(self, message) -> None:
        """Follow a JointTrajectory; a bad one is counted and changes nothing."""
        self.guarded("joint_trajectory", self._set_trajectory, message)

    def take_base_trajectory(self, message) -> None:
        """Follow a MultiDOFJointTrajectory of the base; a bad one is counted."""
        self.guarded("base_trajectory", self._set_base_trajectory, message)

    def take_contact_schedule(self, message) -> None:
        """Follow a schedule of contacts; a bad one is counted and changes nothing."""
        self.guarded("contact_schedule", self._set_contact_schedule, message)

    def refuse(self, refusal: Refusal) -> None:
        """Count a refusal by its reason, and log the first one of each reason."""
        self.monitor.refuse(refusal.reason)
        if refusal.reason not in self._warned:
            self._warned.add(refusal.reason)
            self._warn(f"{refusal.reason}: {refusal.detail}")

    def save(self) -> None:
        """Write the record, if there is one. Raises RecordError."""
        if self.recorder is not None:
            self.recorder.save(self.monitor.refusals, self.monitor.deadline_misses)

    def _take_state(self, message, now_ns: int | None) -> RobotState | Refusal:
        state = self.input.take_joint_state(message, now_ns)
        if self.input.velocity_is_true:
            self._velocity[:] = self.input.joints.velocity
            self._velocity_s = time.perf_counter()
        if isinstance(state, Refusal):
            self._trouble = state.detail
        else:
            self._good_s, self._good_stamp_s = time.perf_counter(), state.time_s
        return state

    def _step(self, message, now_ns: int | None) -> np.ndarray:
        """Torques wanted; `result` stays None when they are the safe output."""
        state, controller = self._take_state(message, now_ns), self.controller
        if isinstance(state, Refusal):
            self.refuse(state)
            self.safety.interrupt(f"{state.reason}: {state.detail}")
            return self.safe_torques()
        if self._state is None:
            controller.reset(state, self._keep_upright)
            self.output.ramp()  # however long the first good state was waited for
        elif self.input.moved_elsewhere:
            controller.hold_here(state)
            self.output.blend()
        self._state = state
        if not self.safety.good_state(state.time_s, controller.tilt(state.q)):
            return self.safe_torques()
        if self.measured_contact is not None:
            self.measured_contact(controller, state.time_s)
        result = controller.step(state)
        if not conversions.all_finite(result.torques):
            self.refuse(Refusal("torque_not_finite", f"controller returned {result.torques}"))
            self.safety.failed("torque not finite")
            return self.safe_torques()
        self.safety.stepped(result.status != NOT_CONVERGED, result.following)
        if self.safety.state is not SafetyState.STOPPED:
            self.result = result
        return result.torques

    def _set_trajectory(self, message) -> None:
        trajectory = conversions.joint_trajectory(
            message, self.controller.settings.allow_moving_trajectory_end
        )
        self.controller.set_trajectory(trajectory, self._time_s())

    def _set_base_trajectory(self, message) -> None:
        self._time_s()
        self.controller.set_base_trajectory(conversions.base_trajectory(message))

    def _set_contact_schedule(self, message) -> None:
        self._time_s()
        self.controller.set_contact_schedule(conversions.contact_schedule(message))

    def _time_s(self) -> float:
        if self._state is None:
            raise TrajectoryError("a plan before the first state of the robot is not followed")
        return self._state.time_s

    def guarded(self, what: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """The one door at which unforeseen errors end: counted, logged once, None returned.

        Whatever the node calls from a callback goes through here, or it could kill the process.
        """
        try:
            return action(*arguments)
        except TrajectoryError as error:
            self.refuse(Refusal(what, str(error)))
        except Exception as error:
            kind = f"{what}_{type(error).__name__}"
            self.refuse(Refusal(kind, traceback.format_exc().strip()))
        return None


def _safety_limits(settings: ControllerSettings) -> SafetyLimits:
    return SafetyLimits(
        settings.recovery_window_s,
        settings.failures_in_a_row,
        settings.overruns_in_a_row,
        settings.tilt_limit_rad,
    )
