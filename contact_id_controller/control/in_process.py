"""The controller for a host that calls Python once a period, arrays in, torques out. Knows no ROS.

Whatever comes in, finite torques within the limits go out: the controller's, or the safe output.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.safe_output import SafeOutput
from contact_id_controller.control.settings import ControllerSettings
from contact_id_controller.control.state import RobotState
from contact_id_controller.control.warm_up import warm_up
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.robot import RobotModel

_BASE = 13
_UNIT_TOLERANCE = 1e-2
"""Largest deviation of the norm of a measured quaternion from 1."""


class InProcessController:
    """One `Controller`, guarded: no method but the constructor raises.

    The state is one array: positions (na,), rad or m, then velocities (na,), of the joints in the
    order of `robot.joint_names`; a floating base follows, or comes through `take_base`: position
    (3,), m, and quaternion xyzw (4,) in the world frame, linear (3,), m/s, and angular velocity
    (3,), rad/s, in the base frame. Without plans it holds the posture of its first good state.

    Parameters
    ----------
    settings
        The same as those of the ROS node; mode, stamps and topics do not matter here.
    warn
        Takes one line (or a traceback) for the log, from `post_update` only; once for each reason.
    clock
        Time, s, in which the plans are stamped: that of ROS without simulated time.

    Raises
    ------
    ContactIdError
        Settings that do not fit the robot.
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
        self.refused: Counter[str] = Counter()
        """States and plans that were refused, by reason."""
        self.result: StepResult | None = None
        """The last step's result, None while the safe output is commanded."""
        self._warn, self._clock = warn, clock
        self._news: list[str] = []
        self._safe = SafeOutput(
            settings.safe_output, settings.spread("damping_nm_s_rad", robot.na),
            self.controller.effort_limits,
        )
        self._timeout_s = settings.state_timeout_s
        self._velocity, self._velocity_s = np.zeros(robot.na), -np.inf
        self._base, self._base_s = np.full(_BASE, np.nan), -np.inf
        self._q, self._v = robot.neutral(), robot.velocity(None, 0.0)
        self._started = False
        warm_up(self.controller)

    def update(self, state: Sequence[float]) -> np.ndarray:
        """Torques (na,), N·m, in the order of `robot.joint_names`, for a measured state."""
        self.result = None
        torques = self.guarded("step", self._step, state)
        if torques is None:
            fresh = time.perf_counter() - self._velocity_s <= self._timeout_s
            torques = self._safe.torques(self._velocity if fresh else None)
        return np.ascontiguousarray(torques, dtype=float)

    def post_update(self) -> None:
        """Log what was refused, outside of the time-critical part."""
        news, self._news = self._news, []
        for line in news:
            self.guarded("log", self._warn, line)

    def take_base(self, base: Sequence[float]) -> None:
        """Keep the state of the floating base (13,) for the next states, up to `state_timeout_s`."""
        self.guarded("base", self._take_base, base)

    def follow(self, what: str, plan: Callable[[], Any]) -> None:
        """Follow the plan that `plan` makes, and that may raise: a bad one changes nothing.

        `what`: trajectory (of the joints), base_trajectory or contact_schedule.
        """
        self.guarded(what, self._follow, what, plan)

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

    def _step(self, state: Sequence[float]) -> np.ndarray:
        values = np.asarray(state, dtype=float)
        na, floating = self.robot.na, self.robot.floating_base
        if values.shape != (2 * na,) and not (floating and values.shape == (2 * na + _BASE,)):
            or_base = f" or {2 * na + _BASE}" if floating else ""
            raise _Refused("wrong_size", f"state of shape {values.shape}, must have {2 * na}{or_base}")
        velocity = values[na:2 * na]
        if np.isfinite(velocity).all():
            self._velocity[:] = velocity
            self._velocity_s = time.perf_counter()
        if not np.isfinite(values).all():
            bad = np.flatnonzero(~np.isfinite(values)).tolist()
            raise _Refused("state_not_finite", f"state is not finite at {bad}")
        if floating:
            self._set_base(values[2 * na:])
        self._q[self.robot.q_index] = values[:na]
        self._v[self.robot.actuated] = velocity
        measured = RobotState(self._clock(), self._q, self._v)
        if not self._started:
            self.controller.reset(measured)
        result = self.controller.step(measured)
        self._started = True
        if not np.isfinite(result.torques).all():
            raise _Refused("torque_not_finite", f"controller returned {result.torques}")
        self.result = result
        return result.torques

    def _set_base(self, base: np.ndarray) -> None:
        if base.size:
            self._take_base(base)
        age_s = time.perf_counter() - self._base_s
        if age_s > self._timeout_s:
            raise _Refused("base_missing", f"state of the base is {age_s:.3f} s old")
        self._q[:7], self._v[:6] = self._base[:7], self._base[7:]

    def _take_base(self, base: Sequence[float]) -> None:
        self._base_s = -np.inf
        values = np.array(base, dtype=float)
        if values.shape != (_BASE,) or not np.isfinite(values).all():
            raise _Refused("base_bad", f"state of the base is {values}")
        norm = np.linalg.norm(values[3:7])
        if abs(norm - 1.0) > _UNIT_TOLERANCE:
            raise _Refused("base_bad", f"quaternion of the base has norm {norm:g}, must be 1")
        values[3:7] /= norm
        self._base[:], self._base_s = values, time.perf_counter()

    def _follow(self, what: str, plan: Callable[[], Any]) -> None:
        if not self._started:
            raise _Refused(what, "a plan before the first state of the robot is not followed")
        if what == "trajectory":
            self.controller.set_trajectory(plan(), self._clock())
        else:
            getattr(self.controller, f"set_{what}")(plan())


class _Refused(Exception):
    """Reason to count, and detail for the log."""
