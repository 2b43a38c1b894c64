"""Connects the node's messages with the guard.

`safety.guard` decides; here messages are converted, settings changed and steps recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.warm_up import warm_up
from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.plans.plan import Plan
from contact_id_controller.ros import conversions, goals_messages, plan_bytes
from contact_id_controller.ros.contact_input import ContactInput
from contact_id_controller.ros.state_input import StateInput
from contact_id_controller.ros.step_recording import Recorder
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.latch import EmergencyLatch
from contact_id_controller.safety.machine import SafetyMachine
from contact_id_controller.safety.monitor import StepMonitor
from contact_id_controller.safety.torque_output import TorqueOutput
from contact_id_controller.settings.controller import ControllerSettings


class ControlLoop:
    """Runs a guarded controller on the messages of a robot; only methods that change settings raise.

    Args:
        controller: the controller, with its robot and settings.
        warn: logs one line (or a traceback); called by `report` only.
        latch: of the emergency stop, see `Guard`.
    """

    def __init__(
        self,
        controller: Controller,
        warn: Callable[[str], None],
        latch: EmergencyLatch | None = None,
    ) -> None:
        settings, robot = controller.settings, controller.robot
        self.guard = Guard(controller, lockstep=settings.mode == "lockstep", latch=latch)
        self.input = StateInput(robot.joint_names, self.guard.checks)
        self.contact_input: ContactInput | None = None
        """Source of measured contact, if there is any."""
        self.recorder = None
        if settings.record_path:
            self.recorder = Recorder(
                settings.record_path, robot.joint_names, settings.contact_names, warn
            )
        self._warn = warn
        self._sensed = controller.sensed
        self._measured = controller.measured
        self._live_models = {controller.model}
        self._candidate: Controller | None = None

    @property
    def controller(self) -> Controller:
        """The guarded controller; `apply` replaces it."""
        return self.guard.controller

    @property
    def result(self) -> StepResult | None:
        """The last step's result, None while the safe output is commanded."""
        return self.guard.result

    @property
    def safety(self) -> SafetyMachine:
        """The state machine."""
        return self.guard.machine

    @property
    def output(self) -> TorqueOutput:
        """Start ramp and blending of torques."""
        return self.guard.output

    @property
    def monitor(self) -> StepMonitor:
        """Counts and times."""
        return self.guard.monitor

    # Settings

    def warm_up(self) -> None:
        """Compile the model of the settings and those of `live_models`; takes seconds.

        Raises ConfigurationError or UnknownModelError for models that do not exist.
        """
        self.guard.warm_up()
        plan_bytes.warm_up()
        robot, settings = self.controller.robot, self.controller.settings
        for pair in settings.live_models:
            friction, solver = pair.split("/")
            other = Controller(robot, replace(settings, friction=friction, solver=solver))
            if other.model not in self._live_models:
                warm_up(other)
                self._live_models.add(other.model)

    def check(self, settings: ControllerSettings) -> None:
        """Prepare the controller of other settings for `apply`.

        Raises:
            ConfigurationError, UnknownModelError: these cannot be used while configured.
        """
        self._candidate = Controller(self.controller.robot, settings)
        if self._candidate.model not in self._live_models:
            pairs = sorted("/".join(model) for model in self._live_models)
            raise ConfigurationError(
                f"{'/'.join(self._candidate.model)} was not compiled in configure; prepared "
                f"are {choices(pairs)}: name it in live_models"
            )
        if self._candidate.sensed and not self._sensed:
            raise ConfigurationError(
                f"solver {settings.solver!r} can only be chosen before configure, which subscribes "
                "to forces"
            )
        if settings.measured and (
            self.contact_input is None or settings.measured != self._measured
        ):
            raise ConfigurationError(
                f"contact source {settings.measured!r} can only be chosen before configure, which subscribes"
            )
        TorqueOutput(settings, self._candidate.effort_limits)

    def apply(self, settings: ControllerSettings) -> None:
        """Continue with other settings that were checked; call it between two steps.

        Torques are blended at blend_rate_nm_s.
        """
        candidate, self._candidate = self._candidate, None
        if settings == self.controller.settings:
            return  # Blending would hold the torque back for nothing.
        if candidate is None or candidate.settings != settings:
            candidate = Controller(self.controller.robot, settings)
        candidate.take_over(self.controller)
        self.guard.take_over(candidate)

    # Each period

    def command(self, message: bytes, now_ns: int | None) -> np.ndarray:
        """Torques (na,), N·m, for a serialised JointState; now_ns: the clock, None: there is none."""
        return self.guard.step(self._measure(message), now_ns)

    def observe(self, message: bytes, now_ns: int | None) -> None:
        """Check a JointState without commanding; stamps and frames may restart."""
        self.input.odometry.forget_frames()
        self.guard.observe(self._measure(message), now_ns)
        self.report()

    def finish(self, arrival_s: float) -> None:
        """Finish a step after its command was sent: time, count, record and report it.

        arrival_s: when its state arrived, on time.perf_counter.
        """
        guard = self.guard
        step_s = guard.finish(arrival_s)
        if self.recorder is not None and guard.result is not None:
            try:
                self._record(guard, step_s)
            except Exception as error:  # as by ``guarded``, without its call
                guard.caught("record", error)
        if guard.has_news:
            self.report()

    def report(self) -> None:
        """Log new refusals and stops; call it after the command was sent."""
        for line in self.guard.news():
            self._warn(line)

    def _measure(self, message: bytes) -> Any:
        """Read joints: a reading, a Refusal, or None after an error. Measured contact is passed to the guard."""
        guard = self.guard
        if self.contact_input is not None:
            guard.guarded("contact", self.contact_input.pass_on, guard)
        try:
            return self.input.joints.read(message)
        except Exception as error:
            guard.caught("state", error)
            return None

    def _record(self, guard: Guard, step_s: float) -> None:
        joints, result, now_s = self.input.joints, guard.result, guard.state.now_s
        assert result is not None and now_s is not None and self.recorder is not None
        position = guard.controller.robot.nearest(joints.position, result.reference.position)
        self.recorder.add(now_s, position, joints.velocity, result, step_s)

    def save(self) -> None:
        """Write the record, if there is one. Raises RecordError."""
        if self.recorder is not None:
            self.recorder.save(
                self.monitor.refusals, self.monitor.deadline_misses, self.guard.following.outcome
            )

    # Between the states

    def take_odometry(self, message: bytes) -> None:
        """Keep the newest Odometry for the next state; errors are counted."""
        try:
            self.input.checks.take_base(*self.input.odometry.read(message))
        except Exception as error:
            self.guard.caught("odometry", error)

    def take_joint_trajectory(
        self, message: bytes, taken: Callable[[], None] = lambda: None
    ) -> None:
        """Follow a JointTrajectory; a bad one is counted and changes nothing. taken: see `Guard.read`."""
        moving = self.controller.settings.allow_moving_trajectory_end
        self._follow(
            "joint_trajectory",
            lambda: Plan(conversions.joint_trajectory(message, moving)),
            message,
            taken,
        )

    def take_base_trajectory(
        self, message: bytes, taken: Callable[[], None] = lambda: None
    ) -> None:
        """Follow a MultiDOFJointTrajectory of the base; a bad one is counted and changes nothing."""
        self._follow(
            "base_trajectory",
            lambda: Plan(base=conversions.base_trajectory(message)),
            message,
            taken,
        )

    def take_contact_schedule(
        self, message: bytes, taken: Callable[[], None] = lambda: None
    ) -> None:
        """Follow a schedule of contacts; a bad one is counted and changes nothing."""
        self._follow(
            "contact_schedule",
            lambda: Plan(contacts=conversions.contact_schedule(message)),
            message,
            taken,
        )

    def take_task_goals(self, message: bytes, taken: Callable[[], None] = lambda: None) -> None:
        """Follow task goals; bad ones are counted and change nothing."""
        self._follow(
            "task_goals",
            lambda: Plan(goals=goals_messages.task_goals(message)),
            message,
            taken,
        )

    def _follow(
        self, what: str, plan: Callable[[], Plan], message: bytes, taken: Callable[[], None]
    ) -> None:
        self.guard.read(what, plan, long=plan_bytes.is_long(message), taken=taken)
        self.report()
