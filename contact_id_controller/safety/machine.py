"""What the controller does when something is wrong: one small state machine, without ROS.

    inactive -- activate --> holding <--> following          the controller's torque
                               |  ^   |        |
                               |  ^  not_following           the controller's torque, and a warning
                     bad state |  | good states again, within recovery_window_s
                               v  |
                            interrupted                      safe output, back by itself
                               |
                               v
                            stopped                          safe output, back by resume or activate
      emergency stop (from any state) --> emergency_stop     back by release, then resume

docs/safety.md states for each fault what happens, and how it ends.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from contact_id_controller.settings.controller import ControllerSettings


class SafetyState(enum.Enum):
    """State of the controller; the value is its name in the diagnostics."""

    INACTIVE = "inactive"
    HOLDING = "holding"
    FOLLOWING = "following"
    NOT_FOLLOWING = "not_following"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    EMERGENCY_STOP = "emergency_stop"


# Of an enum a name is looked up in Python, at each state.
_INACTIVE, _HOLDING, _FOLLOWING = SafetyState.INACTIVE, SafetyState.HOLDING, SafetyState.FOLLOWING
_COMMANDING = frozenset((SafetyState.HOLDING, SafetyState.FOLLOWING, SafetyState.NOT_FOLLOWING))


class SafetyLimits(NamedTuple):
    """Limits of `SafetyMachine`; names and meanings are those of the parameters."""

    recovery_window_s: float
    failures_in_a_row: int
    overruns_in_a_row: int
    tilt_limit_rad: float


def limits_of(settings: ControllerSettings) -> SafetyLimits:
    """The limits in a controller's settings."""
    return SafetyLimits(
        settings.recovery_window_s,
        settings.failures_in_a_row,
        settings.overruns_in_a_row,
        settings.tilt_limit_rad,
    )


class SafetyMachine:
    """Decides in each period whether the controller's torque may be sent.

    Times are stamps of the states, s, so that it works in simulated time as well.

    Attributes:
        state: the present `SafetyState`.  commanding: whether the controller's torque may be sent.
        latched: whether only an explicit call ends the state.
        overruns: number of steps in a row, up to now, that lost states.
        reason: why it is interrupted or stopped, or does not follow, one line; empty otherwise.
        limits: may be replaced at any time.
    """

    def __init__(self, limits: SafetyLimits):
        self.limits = limits
        self._enter(SafetyState.INACTIVE)
        self._forget()

    def _forget(self, last_good_s: float | None = None) -> None:
        self._last_good_s = last_good_s
        self._failures = self.overruns = 0

    # Requested from outside

    def activate(self, last_good_s: float | None = None) -> str:
        """Start to command; return why not, or an empty string. last_good_s: stamp of the last good state."""
        if self.state is SafetyState.EMERGENCY_STOP:
            return "the emergency stop is engaged"
        self._enter(SafetyState.HOLDING)
        self._forget(last_good_s)
        return ""

    def deactivate(self) -> None:
        """Stop commanding; an engaged emergency stop stays engaged."""
        if self.state is not SafetyState.EMERGENCY_STOP:
            self._enter(SafetyState.INACTIVE)

    def engage_emergency_stop(self) -> None:
        """Stop, from any state."""
        self._enter(SafetyState.EMERGENCY_STOP, "emergency stop engaged")

    def release_emergency_stop(self, active: bool) -> None:
        """Release the emergency stop; an active controller stays stopped until `resume`."""
        if self.state is SafetyState.EMERGENCY_STOP:
            if active:
                self._enter(SafetyState.STOPPED, "emergency stop released, waiting for resume")
            else:
                self._enter(SafetyState.INACTIVE)

    def resume(self, last_good_s: float | None = None) -> str:
        """Leave a stop; return why not, or an empty string. last_good_s: stamp of the last good state."""
        if self.state is SafetyState.EMERGENCY_STOP:
            return "the emergency stop is engaged"
        if self.state is not SafetyState.STOPPED:
            return f"the controller is not stopped, it is {self.state.value}"
        self._enter(SafetyState.HOLDING)
        self._forget(last_good_s)
        return ""

    # Reported by the control loop

    def good_state(self, time_s: float, tilt_rad: float, slept_s: float = 0.0) -> bool:
        """Note a good state, and stop after a gap or beyond the tilt limit; return whether to step the controller.

        Args:
            time_s: its stamp.  tilt_rad: of the base.
            slept_s: time since the last good state in which the process could not receive states.
        """
        last_s, self._last_good_s = self._last_good_s, time_s
        if self.latched or self.state is _INACTIVE:
            return False
        limits = self.limits
        if last_s is not None and time_s - last_s - slept_s > limits.recovery_window_s:
            self.stop(
                f"no good state for {time_s - last_s:.3f} s"
                + (f" ({self.reason})" if self.reason else "")
            )
        elif not tilt_rad <= limits.tilt_limit_rad:
            self.stop(f"base tilted by {tilt_rad:.2f} rad")
        return not self.latched

    def interrupt(self, reason: str) -> None:
        """Note a bad or missing state: safe output until the next good one."""
        if not self.latched and self.state is not SafetyState.INACTIVE:
            self._enter(SafetyState.INTERRUPTED, reason)

    def failed(self, reason: str) -> None:
        """Note a step with an error or without a finite torque; several in a row stop."""
        self._failures += 1
        if self._failures >= self.limits.failures_in_a_row:
            self.stop(f"{self._failures} failures in a row, the last: {reason}")
        else:
            self.interrupt(reason)

    def stepped(self, failure: str, following: bool, astray: str = "") -> None:
        """Note a step that returned finite torques.

        Args:
            failure: of its solution; empty: none.
            following: whether it follows a plan that has not ended.
            astray: why the robot does not do what is planned; empty: it does.
        """
        if not failure:
            self._failures = 0
        else:
            self.failed(failure)
            if self.latched:
                return
        state = _FOLLOWING if following else _HOLDING
        if astray:
            state = SafetyState.NOT_FOLLOWING
        if state is not self.state or astray != self.reason:
            self._enter(state, astray)

    def timed(self, overrun: bool) -> None:
        """Note whether states were lost before the last step (``overrun``); overruns_in_a_row of them stop."""
        self.overruns = self.overruns + 1 if overrun else 0
        if 0 < self.limits.overruns_in_a_row <= self.overruns and self.commanding:
            self.stop(
                f"{self.overruns} steps in a row lost states: longer than a period each "
                "(overruns_in_a_row)"
            )
            self.overruns = 0

    def stop(self, reason: str) -> None:
        """Stop until `resume`."""
        if self.state not in (SafetyState.EMERGENCY_STOP, SafetyState.INACTIVE):
            self._enter(SafetyState.STOPPED, reason)

    def _enter(self, state: SafetyState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self.commanding = state in _COMMANDING
        self.latched = state in (SafetyState.STOPPED, SafetyState.EMERGENCY_STOP)
