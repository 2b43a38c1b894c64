"""The controller for a host that calls Python once a period, arrays in, torques out. Knows no ROS.

Whatever comes in, finite torques within the limits go out: the controller's, or the safe output.
What happens when something is wrong is the same as in the node: see `control.safety`.
"""

from __future__ import annotations

import math
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.warm_up import warm_up
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.robot import RobotModel
from contact_id_controller.safety.machine import SafetyLimits, SafetyMachine, SafetyState
from contact_id_controller.safety.odometry_jump import OdometryJump
from contact_id_controller.safety.safe_output import SafeOutput
from contact_id_controller.safety.torque_output import TorqueOutput
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.solution import NOT_CONVERGED
from contact_id_controller.state import RobotState

_BASE = 13
_UNIT_TOLERANCE = 1e-2
"""Largest deviation of the norm of a measured quaternion from 1."""


class InProcessController:
    """One `Controller`, guarded: no method but the constructor raises.

    The state is one array: positions (na,), rad or m, then velocities (na,), of the joints in the
    order of `robot.joint_names`; a floating base follows, or comes through `take_base`: position
    (3,), m, and quaternion xyzw (4,) in the world frame, linear (3,), m/s, and angular velocity
    (3,), rad/s, in the base frame. Without plans it holds the posture of its first good state.

    Args:
        settings: the same as those of the ROS node; mode, stamps and topics do not matter here.
        warn: takes one line (or a traceback) for the log, from `post_update` only; once for each
            reason.
        clock: Time, s, in which the plans are stamped: that of ROS without simulated time.

    Raises:
        ContactIdError: settings that do not fit the robot.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        warn: Callable[[str], None] = print,
        clock: Callable[[], float] = time.time,
    ) -> None:
        robot = RobotModel.from_urdf(
            settings.urdf, settings.floating_base, list(settings.joints) or None
        )
        self.robot = robot
        self.controller = Controller(robot, settings)
        self.safety = SafetyMachine(
            SafetyLimits(
                settings.recovery_window_s,
                settings.failures_in_a_row,
                settings.overruns_in_a_row,
                settings.tilt_limit_rad,
            )
        )
        self.refused: Counter[str] = Counter()
        """States and plans that were refused, by reason."""
        self.result: StepResult | None = None
        """The last step's result, None while the safe output is commanded."""
        self._warn, self._clock = warn, clock
        self._news: list[str] = []
        self._stop_told = ""
        limits = self.controller.effort_limits
        damping = settings.spread("damping_nm_s_rad", robot.na)
        self._safe = SafeOutput(settings.safe_output, damping, limits)
        self._emergency = SafeOutput(settings.emergency_stop_output, damping, limits)
        self._output = TorqueOutput(settings, limits)
        self._jump = OdometryJump(settings.odometry_jump_m, settings.odometry_jump_rad)
        self._timeout_s, self._period_s = settings.state_timeout_s, settings.period_s
        self._velocity, self._velocity_s = np.zeros(robot.na), -math.inf
        self._base, self._base_s, self._moved = np.zeros(_BASE), -math.inf, False
        self._q, self._v = robot.neutral(), robot.velocity(None, 0.0)
        self._state: RobotState | None = None
        self._keep_upright = False
        self._good_s = -math.inf
        self._commanding = True
        warm_up(self.controller)
        self._jump.take(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.zeros(6), 1)
        self._jump.take(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.zeros(6), 2)
        self._jump.reset()
        self._output.follow(self._output.sent)
        # Nobody tells when the host is activated: it begins to call.
        self.safety.activate()
        self._output.ramp()

    def update(self, state: Sequence[float]) -> np.ndarray:
        """Torques (na,), N·m, in the order of `robot.joint_names`, for a measured state."""
        begun_s = time.perf_counter()
        self.result = None
        wanted = self.guarded("step", self._step, state)
        if wanted is None:
            self.safety.failed("an error in the step, see the log")
        commanding = self.safety.commanding and self.result is not None
        if self.safety.latched:
            self.result = None
            sent = self._output.jump(self._safe_torques())
        else:
            # To the safe output and back: an offset belongs to the source it was taken from.
            if commanding != self._commanding:
                self._output.blend()
            sent = self._output.follow(wanted if commanding else self._safe_torques())
        self._commanding = commanding
        if commanding:
            self.safety.timed(time.perf_counter() - begun_s > self._period_s)
        self.controller.commanded[:] = sent
        return sent.copy()

    def post_update(self) -> None:
        """Log what was refused, outside of the time-critical part."""
        news, self._news = self._news, []
        stopped = self.safety.reason if self.safety.latched else ""
        if stopped != self._stop_told:
            self._stop_told = stopped
            news.append(f"stopped: {stopped}" if stopped else "commanding again")
        for line in news:
            self.guarded("log", self._warn, line)

    def take_base(self, base: Sequence[float]) -> None:
        """Keep the floating base's state (13,) for the next states, up to `state_timeout_s`."""
        self.guarded("base", self._take_base, base)

    def follow(self, what: str, plan: Callable[[], Any]) -> None:
        """Follow the plan that `plan` makes, and that may raise: a bad one changes nothing.

        `what`: trajectory (of the joints), base_trajectory or contact_schedule.
        """
        self.guarded(what, self._follow, what, plan)

    def emergency_stop(self, engage: bool) -> None:
        """Stop with `emergency_stop_output`, or release that stop, which `resume` then leaves."""
        if engage:
            self.safety.engage_emergency_stop()
        else:
            self.safety.release_emergency_stop(active=True)

    def resume(self) -> None:
        """Leave a stop and hold the posture of the next state; refused unless states are good."""
        if time.perf_counter() - self._good_s > self._timeout_s:
            refusal = f"no good state for {self._timeout_s:g} s"
        else:
            refusal = self.safety.resume(None if self._state is None else self._state.time_s)
        if refusal:
            self._refuse("resume", refusal)
            return
        self._state, self._keep_upright = None, True
        self._jump.reset()
        self._output.ramp()
        self._commanding = True

    def guarded(self, what: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """Call an action; after an error count it, keep it for the log, and return None."""
        try:
            return action(*arguments)
        except _Refused as refusal:
            self._refuse(*refusal.args)
        except ContactIdError as error:
            self._refuse(what, str(error))
        except Exception as error:
            self._refuse(f"{what}_{type(error).__name__}", traceback.format_exc().strip())
        return None

    def _refuse(self, reason: str, detail: str) -> None:
        if not self.refused[reason]:
            self._news.append(f"{reason}: {detail}")
        self.refused[reason] += 1

    def _safe_torques(self) -> np.ndarray:
        fresh = time.perf_counter() - self._velocity_s <= self._timeout_s
        stopped = self.safety.state is SafetyState.EMERGENCY_STOP
        return (self._emergency if stopped else self._safe).torques(
            self._velocity if fresh else None
        )

    def _step(self, state: Sequence[float]) -> np.ndarray:
        """Torques wanted; `result` stays None when they are the safe output."""
        try:
            measured = self._measure(state)
        except _Refused as refusal:
            self._refuse(*refusal.args)
            self.safety.interrupt(": ".join(refusal.args))
            return self._safe_torques()
        controller = self.controller
        if self._state is None:
            controller.reset(measured, self._keep_upright)
            self._output.ramp()  # however long the first good state was waited for
        elif self._moved:
            controller.hold_here(measured)
            self._output.blend()
        self._state, self._moved, self._good_s = measured, False, time.perf_counter()
        if not self.safety.good_state(measured.time_s, controller.tilt(measured.q)):
            return self._safe_torques()
        result = controller.step(measured)
        if not np.isfinite(result.torques).all():
            self._refuse("torque_not_finite", f"controller returned {result.torques}")
            self.safety.failed("torque not finite")
            return self._safe_torques()
        self.safety.stepped(result.status != NOT_CONVERGED, result.following)
        if self.safety.commanding:
            self.result = result
        return result.torques

    def _measure(self, state: Sequence[float]) -> RobotState:
        values = np.asarray(state, dtype=float)
        na, floating = self.robot.na, self.robot.floating_base
        sizes = (2 * na, 2 * na + _BASE) if floating else (2 * na,)
        if values.ndim != 1 or values.size not in sizes:
            raise _Refused(
                "wrong_size", f"state has shape {values.shape}, must have one of the sizes {sizes}"
            )
        velocity = values[na : 2 * na]
        if np.isfinite(velocity).all():
            self._velocity[:] = velocity
            self._velocity_s = time.perf_counter()
        if not np.isfinite(values).all():
            bad = np.flatnonzero(~np.isfinite(values)).tolist()
            raise _Refused("state_not_finite", f"state is not finite at {bad}")
        if floating:
            if values.size > 2 * na:
                self._take_base(values[2 * na :])
            age_s = time.perf_counter() - self._base_s
            if age_s > self._timeout_s:
                raise _Refused("base_missing", f"state of the base is {age_s:.3f} s old")
            self._q[:7], self._v[:6] = self._base[:7], self._base[7:]
        self._q[self.robot.q_index] = values[:na]
        self._v[self.robot.actuated] = velocity
        return RobotState(self._clock(), self._q, self._v)

    def _take_base(self, base: Sequence[float]) -> None:
        self._base_s = -math.inf
        values = np.array(base, dtype=float)
        if values.shape != (_BASE,) or not np.isfinite(values).all():
            raise _Refused("base_bad", f"state of the base is {values}")
        norm = np.linalg.norm(values[3:7])
        if abs(norm - 1.0) > _UNIT_TOLERANCE:
            raise _Refused("base_bad", f"quaternion of the base has norm {norm:g}, must be 1")
        values[3:7] /= norm
        away, moved = self._jump.take(values[:7], values[7:], int(self._clock() * 1e9))
        if away:
            raise _Refused("odometry_jump", away)
        self._moved = self._moved or moved
        self._base[:], self._base_s = values, time.perf_counter()

    def _follow(self, what: str, plan: Callable[[], Any]) -> None:
        if self._state is None:
            raise _Refused(what, "a plan before the first state of the robot is not followed")
        if what == "trajectory":
            self.controller.set_trajectory(plan(), self._clock())
        else:
            getattr(self.controller, f"set_{what}")(plan())


class _Refused(Exception):
    """Reason to count, and detail for the log."""
