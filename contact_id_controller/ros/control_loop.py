"""From measured messages to torques: the part of the node that needs no node.

Whatever comes in, a finite command within the limits goes out: the controller's, or the safe output
with its reason counted and logged once.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.safe_output import SafeOutput
from contact_id_controller.control.settings import ControllerSettings
from contact_id_controller.control.state import RobotState
from contact_id_controller.exceptions import TrajectoryError
from contact_id_controller.ros import conversions
from contact_id_controller.ros.conversions import Refusal
from contact_id_controller.ros.diagnostics import StepMonitor
from contact_id_controller.ros.recording import Recorder
from contact_id_controller.ros.state_input import StateInput


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
        self._warn = warn
        self._warned: set[str] = set()
        self._state: RobotState | None = None
        self._velocity = np.zeros(robot.na)
        self._velocity_s = -np.inf
        self.check(settings)
        self.apply(settings)

    def check(self, settings: ControllerSettings) -> None:
        """Raise ConfigurationError if `apply` could not take the settings over."""
        settings.spread("damping_nm_s_rad", self.controller.robot.na)

    def apply(self, settings: ControllerSettings) -> None:
        """Take over the parameters that may change at any time."""
        damping = settings.spread("damping_nm_s_rad", self.controller.robot.na)
        self._safe = SafeOutput(settings.safe_output, damping, self.controller.effort_limits)
        self._timeout_s = self.input.age_limit_s = settings.state_timeout_s
        self.input.odometry_age_limit_s = settings.odometry_age_limit_s

    def start(self) -> None:
        """Begin anew: the first state that is accepted is the posture to hold."""
        self.input.reset()
        self.monitor.pause()
        self.result = self._state = None
        self._velocity_s = -np.inf
        self._warned.clear()

    def command(self, message, now_ns: int | None) -> np.ndarray:
        """Torques (na,), N·m, for a JointState and the time by the clock (None: no clock).

        Never raises: after bad input or an error it is the safe output.
        """
        self.result = None
        torques = self.guarded("step", self._step, message, now_ns)
        return self.safe_torques() if torques is None else torques

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
        self.monitor.step(state.time_s, arrival_s, step_s, result.solve_time_s, result.status)
        if self.recorder is not None:
            joints = self.input.joints
            self.recorder.add(state.time_s, joints.position, joints.velocity, result, step_s)

    def safe_torques(self) -> np.ndarray:
        """The safe output (na,), N·m; it damps only a velocity measured a moment ago."""
        fresh = time.perf_counter() - self._velocity_s <= self._timeout_s
        return self._safe.torques(self._velocity if fresh else None)

    def stopped(self) -> None:
        """No state has come for too long: the safe output holds from now on."""
        self.result = None
        self.refuse(Refusal("states_stopped", f"no joint state for {self._timeout_s:g} s"))

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

    def _step(self, message, now_ns: int | None) -> np.ndarray | None:
        state = self.input.take_joint_state(message, now_ns)
        if self.input.velocity_is_true:
            self._velocity[:] = self.input.joints.velocity
            self._velocity_s = time.perf_counter()
        if isinstance(state, Refusal):
            self.refuse(state)
            return None
        if self._state is None:
            self.controller.reset(state)
        self._state = state
        result = self.controller.step(state)
        if not conversions.all_finite(result.torques):
            self.refuse(Refusal("torque_not_finite", f"controller returned {result.torques}"))
            return None
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
