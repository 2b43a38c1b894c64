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

The table `REACTIONS` states for each fault what happens, and how it ends.
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


_COMMANDING = frozenset((SafetyState.HOLDING, SafetyState.FOLLOWING, SafetyState.NOT_FOLLOWING))


class Reaction(NamedTuple):
    """What the controller does on a fault, and what ends it; both as sentences for the user."""

    reaction: str
    recovery: str


_BY_ITSELF = "by itself with the next good state"
_EXPLICIT = "~/resume, or deactivate and activate"

REACTIONS = {
    "bad state": Reaction("torque is blended to the safe output at blend_rate_nm_s", _BY_ITSELF),
    "no state": Reaction(
        "after state_timeout_s the safe output at once: damping while the last velocity is fresh, "
        "then zero torque",
        f"{_BY_ITSELF} within recovery_window_s, then {_EXPLICIT}",
    ),
    "gap": Reaction(
        "more than recovery_window_s between two good states, while the controller's process ran: stopped, "
        "safe output",
        _EXPLICIT,
    ),
    "late computer": Reaction(
        "time in which the controller's process was suspended or busy counts neither as time-out nor as gap; "
        "after more than recovery_window_s of it plans are dropped and the measured posture is held",
        "by itself with the next state, and the next plan",
    ),
    "no measured contact": Reaction(
        "contact_sources or the solver require measured forces, and none arrived for 0.05 s: a bad state",
        _BY_ITSELF,
    ),
    "efforts differ": Reaction(
        "measured efforts followed the commands, and differ from them for 0.1 s: the command stays a tenth of the "
        "way from the measured efforts to the wanted torques",
        "by itself once they follow again: over start_ramp_s, or within 0.05 s if the measured efforts are 15 % of the "
        "torque or more, which carries a load",
    ),
    "time back": Reaction(
        "states whose stamps do not increase are bad states, then missing ones; in the process of "
        "ros2_control: plans are dropped and the measured posture is held",
        "deactivate and activate, after which stamps may begin anywhere; in process by itself",
    ),
    "time ahead": Reaction(
        "without a clock (stamp_reference: stream, lockstep) or in simulated time one stamp far ahead is a bad state, as "
        "is one after our own delay at over twice real time; in process a clock set forward by more than 1 s "
        "is a gap",
        "the next state; if it confirms the stamp: a gap",
    ),
    "lost plan": Reaction(
        "the last posture of the plan is held with all feet in contact; with task goals, swinging feet come down at "
        "touchdown_speed_m_s",
        "by itself with the next plan",
    ),
    "bad plan": Reaction(
        "malformed, in the past, starting too far from the robot (goals: a foot .5 m or the heading 1 rad away), or beyond "
        "a limit of position, speed or acceleration: joints, base and contacts of that plan are refused, the plan "
        "before is followed",
        "by itself with the next plan",
    ),
    "impossible state": Reaction(
        "a joint or the base outside its believable range of position or speed: a bad state",
        "by itself with the next good state",
    ),
    "joint jump": Reaction(
        "a bad state; if three states agree with the new position: plans are dropped and the measured posture is held",
        "by itself with the next plan",
    ),
    "odometry jump": Reaction(
        "a bad state; if three agree with the new pose: plans are dropped and the measured posture is held",
        "by itself with the next plan",
    ),
    "late odometry": Reaction(
        "the base is predicted to the stamp of the joints; if the odometry is too old or the prediction too uncertain: a bad "
        "state",
        _BY_ITSELF,
    ),
    "solver failure": Reaction(
        "no convergence (the solver's fallback forces are used), or a relaxed solution with contact velocities off by more than "
        ".05 m/s (its torques are used): after failures_in_a_row of them stopped, safe output",
        _EXPLICIT,
    ),
    "error": Reaction(
        "torque is blended to the safe output at blend_rate_nm_s; after failures_in_a_row stopped",
        f"by itself with the next good step; stopped: {_EXPLICIT}",
    ),
    "overrun": Reaction(
        "steps during which states were lost, by their stamps, are counted; after overruns_in_a_row of them (0: never) "
        "stopped, safe output",
        _EXPLICIT,
    ),
    "second commander": Reaction(
        "another node publishes on the command topic: stopped, safe output; with second_commander report only logged and "
        "counted",
        f"{_EXPLICIT}, once it is silent",
    ),
    "not following": Reaction(
        "joints, base or feet are away from the plan, or forces differ from the predicted ones, for as long as a fall "
        "takes: reported only, the controller's torques go on",
        "by itself, once the robot follows again",
    ),
    "tilt": Reaction("beyond tilt_limit_rad: stopped, safe output", _EXPLICIT),
    "emergency stop": Reaction(
        "emergency_stop_output at once", "release ~/emergency_stop, then ~/resume or activate"
    ),
    "deactivation": Reaction("safe output once, then silence", "activate"),
}
"""Every fault that the controller knows."""


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
        if self.latched or self.state is SafetyState.INACTIVE:
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
        state = SafetyState.FOLLOWING if following else SafetyState.HOLDING
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
