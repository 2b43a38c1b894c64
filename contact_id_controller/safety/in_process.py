"""The guarded controller for calls from another process' loop: arrays in, torques out, once per period. Without ROS.

Faults are handled by `safety.guard`, as in the node.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.exceptions import ConfigurationError, StateError
from contact_id_controller.plans.plan import Plan
from contact_id_controller.safety.guard import Guard
from contact_id_controller.safety.latch import EmergencyLatch, state_folder
from contact_id_controller.safety.machine import SafetyMachine
from contact_id_controller.safety.odometry_jump import BASE_SIZE
from contact_id_controller.safety.states import JointReading, Refusal
from contact_id_controller.settings.command_interfaces import TORQUES_ONLY
from contact_id_controller.settings.controller import ControllerSettings

_NANO = 1_000_000_000

_NODES_ONLY = {
    "watchdog_required": "no command watchdog can be in between",
    "planner_required": "plans come with the calls",
}
"""Settings of the node that cannot be used here, and why."""

_new: Any = tuple.__new__

_LAST_S = 9e9
"""Largest time, s: in nanoseconds it must fit into 64 bits."""


class InProcessController:
    """A guarded `Controller`; only the constructor raises.

    The state is one array: positions (na,), rad or m, then velocities (na,), of the joints in the
    order of `robot.joint_names`; a floating base follows, or comes through `take_base`: position
    (3,), m, and quaternion xyzw (4,) in the world frame, linear (3,), m/s, and angular velocity
    (3,), rad/s, in the base frame. Without a plan it holds the posture of its first good state.

    Args:
        settings: the same as those of the ROS node; mode, stamps and topics are not used here.
        warn: logs one line (or a traceback); called by `post_update` only, at a limited rate for each reason.
        clock: time, s, of the stamps of plans and bases: that of ROS without simulated time.
            If it is set back, plans are dropped and the present posture is held.

    Raises:
        ContactIdError: settings that do not fit the robot.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        warn: Callable[[str], None] = print,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if settings.interface.bridges:
            raise ConfigurationError(
                f"parameter 'command_interface' is {settings.command_interface!r}, must be "
                f"{TORQUES_ONLY} in the process of ros2_control, which takes torques"
            )
        for name, why in _NODES_ONLY.items():
            if getattr(settings, name):
                raise ConfigurationError(
                    f"parameter {name!r} is true, must be false in the process of ros2_control: {why}"
                )
        self.robot = settings.robot()
        robot_name = self.robot.model.name or "robot"
        latch = EmergencyLatch(state_folder(settings.state_folder), "in_process", robot_name)
        self.guard = Guard(Controller(self.robot, settings), latch=latch)
        self._warn, self._clock = warn, clock
        self._period_ns = round(settings.period_s * _NANO)
        self._last_ns: int | None = None
        self.guard.stamps_states = True
        self.guard.warm_up()
        # There is no message when the host is activated: it begins to call.
        self.guard.start(state_is_known=False)

    @property
    def controller(self) -> Controller:
        """The guarded controller."""
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
    def refused(self) -> Counter[str]:
        """Number of refused states, plans and errors, by reason."""
        return self.guard.monitor.refusals

    def update(self, state: ArrayLike) -> np.ndarray:
        """Torques (na,), N·m, in the order of `robot.joint_names`, for a measured state."""
        guard = self.guard
        begun_s = guard.clock()
        joints: JointReading | Refusal | None = None
        try:
            joints = self._read(state)
        except Exception as error:
            guard.caught("state", error)
        sent = guard.step(joints).copy()
        guard.finish(begun_s)
        return sent

    def post_update(self) -> None:
        """Log refusals and errors; call it outside of the time-critical part."""
        for line in self.guard.news():
            self.guarded("log", self._warn, line)

    def take_base(self, base: Sequence[float], time_s: float | None = None) -> None:
        """Keep the floating base's state (13,) for the next states, up to `odometry_age_limit_s`.

        time_s: when it was measured, by ``clock``; None: now.
        """
        self.guarded("base", self._take_base, base, time_s)

    def take_contact_forces(self, forces: ArrayLike, seen: ArrayLike | None = None) -> None:
        """Keep the ground's forces (n, 3), N, world frame, on the contact frames of the settings.

        seen (n,): the frames that were measured; None: all.
        """
        self.guarded("contact", self._take_contact_forces, forces, seen)

    def take_contact_states(self, contacts: Sequence[float]) -> None:
        """Keep the measured contact (n,) of the frames: 1 or 0; NaN: not measured."""
        self.guarded(
            "contact", lambda: self.guard.take_contact_states(np.array(contacts, dtype=float))
        )

    def follow(self, plan: Callable[[], Plan], what: str = "plan", long: bool = False) -> None:
        """Follow the plan that ``plan`` returns; if it raises, the error is counted and nothing changes.

        what: reason under which it is counted.  long: make it in a thread, and follow it once it is made.
        """
        self.guard.read(what, plan, long=long)

    def emergency_stop(self, engage: bool) -> None:
        """Engage the emergency stop, or release it, which `resume` then leaves.

        Engaged it survives the process: the next one of the same robot starts with it.
        """
        if engage:
            self.guard.emergency_stop()
        elif refusal := self.guard.release_emergency_stop(active=True):
            self.guard.refuse(Refusal("emergency_stop", refusal))

    def resume(self) -> None:
        """Leave a stop and hold the posture of the next state; refused without recent good states."""
        refusal = self.guard.resume()
        if refusal:
            self.guard.refuse(Refusal("resume", refusal))

    def guarded(self, what: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``action``; return its result, or None after an error, which is counted and logged."""
        return self.guard.guarded(what, action, *arguments)

    def _read(self, state: ArrayLike) -> JointReading | Refusal:
        """Positions, velocities and, if present, the base of a state vector; a Refusal for another size."""
        values = np.array(state, dtype=float)  # a copy: compiled checks know one layout
        na, floating = self.robot.na, self.robot.floating_base
        sizes = (2 * na, 2 * na + BASE_SIZE) if floating else (2 * na,)
        if values.ndim != 1 or values.size not in sizes:
            return Refusal(
                "wrong_size", f"state has shape {values.shape}, must have one of the sizes {sizes}"
            )
        # After the time of the state before, unless the clock was set back.
        now_ns, last_ns = round(self._clock() * _NANO), self._last_ns
        if last_ns is not None and now_ns <= last_ns:
            if last_ns - now_ns > self._period_ns:
                self.guard.time_began_anew()
            else:
                now_ns = last_ns + 1
        self._last_ns = now_ns
        if values.size > 2 * na:
            self.guard.checks.take_base(values[2 * na :], now_ns)
        # Faster than the constructor of the NamedTuple.
        reading: JointReading = _new(JointReading, (now_ns, values[:na], values[na : 2 * na], None))
        return reading

    def _take_base(self, base: Sequence[float], time_s: float | None) -> None:
        time_s = self._clock() if time_s is None else time_s
        if not abs(time_s) < _LAST_S:
            raise StateError(f"the base was measured at {time_s:g} s, must be below {_LAST_S:g} s")
        self.guard.take_base(np.array(base, dtype=float), round(time_s * _NANO))

    def _take_contact_forces(self, forces: np.ndarray, seen: np.ndarray) -> None:
        forces = np.array(forces, dtype=float)
        seen = np.ones(len(forces), dtype=bool) if seen is None else np.array(seen, dtype=bool)
        self.guard.take_contact_forces(forces, seen)
