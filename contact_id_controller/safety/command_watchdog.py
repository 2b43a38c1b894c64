"""Stops the motors when commands stop: motor drives hold their last torque without limit of time. Without ROS.

Times are passed in: seconds of a steady clock.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence

import numpy as np

from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.safety.effort_rate import EffortRate
from contact_id_controller.safety.latch import EmergencyLatch
from contact_id_controller.safety.safe_output import SafeOutput


class WatchdogState(enum.Enum):
    """State of the watchdog; the value is its name in logs and diagnostics."""

    WAITING = "waiting for the first command"
    FORWARDING = "forwarding"
    TRIPPED = "tripped"
    EMERGENCY_STOP = "emergency stop"


FOLLOWED_S = 1.0
"""A publisher of a joint's velocity is followed until it has not published for this long, s."""

STANDING_BY_S = 5.0
"""The same in a reserve, which takes messages only now and then."""

_LARGEST = float(np.finfo(float).max)


class JointVelocities:
    """The newest joint velocities and positions by name; each joint has an age of its own.

    A joint that a message does not name keeps its velocity until that is too old; one that is named with an impossible
    value, or without one, has none from then on. For each joint one publisher is followed until it stops: another one
    could choose the damping torque.

    Args:
        joint_names: in the order of the commands, n.
        age_limit_s: largest age of a velocity.
        fastest_rad_s: largest possible velocity; finite.
    """

    def __init__(
        self, joint_names: Sequence[str], age_limit_s: float, fastest_rad_s: float = _LARGEST
    ) -> None:
        self._index = {name: k for k, name in enumerate(joint_names)}
        self._age_limit_s, self._fastest_rad_s = age_limit_s, fastest_rad_s
        self._followed_s = self._silent_s = max(age_limit_s, FOLLOWED_S)
        self._sender: list[bytes | None] = [None] * len(joint_names)
        self.refused = 0
        """Number of values from other publishers than the followed one."""
        self._velocity = np.full(len(joint_names), np.nan)
        self.position = np.full(len(joint_names), np.nan)
        """(n,) rad, as measured last; NaN: never."""
        self._arrival_s = np.full(len(joint_names), -np.inf)
        self._heard_s = np.full(len(joint_names), -np.inf)

    def stand_by(self) -> None:
        """Expect messages to be taken only now and then from now on."""
        self._silent_s = max(self._followed_s, STANDING_BY_S)

    def attend(self, now_s: float) -> None:
        """Expect every message to be taken from now on: the followed publisher counts as received now."""
        if self._silent_s != self._followed_s:
            self._silent_s = self._followed_s
            recent = now_s - self._heard_s <= STANDING_BY_S
            self._heard_s[recent] = now_s

    def take(
        self,
        names: Sequence[str],
        velocity: Sequence[float],
        now_s: float,
        position: Sequence[float] = (),
        sender: bytes | None = None,
    ) -> None:
        """Keep a message's velocities and positions, rad/s and rad, in any order; other joints are ignored.

        sender: identity of its publisher, if the middleware reports it.
        """
        for k, name in enumerate(names):
            index = self._index.get(name)
            if index is not None:
                if sender != self._sender[index]:
                    if now_s - self._heard_s[index] <= self._silent_s:
                        self.refused += 1
                        continue
                    self._sender[index] = sender
                self._velocity[index] = velocity[k] if k < len(velocity) else np.nan
                self._arrival_s[index] = self._heard_s[index] = now_s
                if k < len(position) and np.isfinite(position[k]):
                    self.position[index] = position[k]

    @property
    def arrival_s(self) -> float:
        """When a joint was last measured, s; -inf: never."""
        return float(self._arrival_s.max())

    def known(self, now_s: float) -> np.ndarray:
        """Velocities (n,), rad/s; zero where they are missing, impossible or too old."""
        possible = np.abs(self._velocity) <= self._fastest_rad_s
        true = possible & (now_s - self._arrival_s <= self._age_limit_s)
        return np.where(true, self._velocity, 0.0)


class CommandWatchdog:
    """Forwards good commands; when they stop it damps the joints and stays tripped.

    A command is good if it has one finite value for each joint; values beyond the limits are
    clipped. It trips when no good command came for `timeout_s`, or when `refused_in_a_row` commands
    in a row were not good. Tripped, it commands -D qd each `period_s` and forwards nothing until
    the controller has become active after the trip, or `reset` is called; from then on the next
    good command is forwarded. The age of a command counts from when it was sent; one older than
    `timeout_s`, or further in the future, is not good. An engaged emergency stop survives the process by
    its latch; its release leaves the watchdog tripped.

    Parameters
    ----------
    velocities
        Joint velocities for damping.
    damping_nm_s_rad, effort_limits_nm
        D and the largest torque of each joint, (n,).
    timeout_s, period_s
        Longest time without a good command, and time between two damping commands.
    refused_in_a_row
        Number of bad commands in a row that trips.
    damp_before_first_command
        Command damping also before the first good command; otherwise nothing.
    rate
        Limit of the rate of forwarded torques; None: no limit.
    emergency_stop_output
        What is commanded while the emergency stop is engaged: zero or damping.
    latch
        Keeps an emergency stop; None: it ends with the process.
    """

    def __init__(
        self,
        velocities: JointVelocities,
        damping_nm_s_rad: np.ndarray,
        effort_limits_nm: np.ndarray,
        *,
        timeout_s: float,
        period_s: float,
        refused_in_a_row: int = 3,
        damp_before_first_command: bool = True,
        rate: EffortRate | None = None,
        emergency_stop_output: str = "zero",
        latch: EmergencyLatch | None = None,
    ) -> None:
        self.velocities = velocities
        self.state = WatchdogState.WAITING
        self.forwarded = self.clipped = self.trips = 0
        self.refused: Counter[str] = Counter()
        """Commands not forwarded, by reason."""
        self.trip_reason = self.trip_detail = ""
        self.reaction_s = float("nan")
        """Time from the last good command to the first damping torque, s, at the last trip."""
        self._limits = np.array(effort_limits_nm, dtype=float)  # shared with the outputs below
        self._damping = SafeOutput("damping", damping_nm_s_rad, self._limits)
        self._emergency = SafeOutput(emergency_stop_output, damping_nm_s_rad, self._limits)
        self._latch = latch
        self._timeout_s, self._period_s = timeout_s, period_s
        self._refused_in_a_row = refused_in_a_row
        self._damp_first = damp_before_first_command
        self._rate = rate
        self._bad_in_a_row = 0
        self._last_good_s = -np.inf
        self._next_output_s = -np.inf
        self._may_return = False
        self.look_at_latch()

    def take_command(
        self, torques: np.ndarray | None, now_s: float, fault: str = "", age_s: float = 0.0
    ) -> np.ndarray | None:
        """Check a command, (n,) N·m, or (p, n) at p times; return what to send, or None.

        That is the command within the limits, of the same shape; if it trips the watchdog, the damping torques (n,).

        fault: why it could not be read; torques are None then.  age_s: time since it was sent.
        """
        reason = fault if torques is None else fault or self._fault(torques)
        if self.state is WatchdogState.EMERGENCY_STOP:
            self.refused["emergency_stop"] += 1
            return None
        if not reason and age_s > self._timeout_s:
            # Not the sender's fault where this process was late; `tick` checks the timeout.
            self.refused["old"] += 1
            return None
        if not reason and -age_s > self._timeout_s:
            reason = "from_the_future"
        if reason:
            self.refused[reason] += 1
            self._bad_in_a_row += 1
            too_many = self._bad_in_a_row >= self._refused_in_a_row
            if self.state is WatchdogState.FORWARDING and too_many:
                self._trip(reason, f"{self._bad_in_a_row} bad commands in a row")
                return self._damp(now_s)
            return None
        self._bad_in_a_row = 0
        # After a delayed `tick`, what was sent meanwhile is forwarded: it is fresh.
        self._last_good_s = now_s - max(age_s, 0.0)
        if self.state is WatchdogState.TRIPPED and not self._may_return:
            self.refused["tripped"] += 1
            return None
        self.state = WatchdogState.FORWARDING
        self._may_return = False
        self.forwarded += 1
        assert torques is not None, "it has a fault otherwise"
        clipped = np.clip(torques, -self._limits, self._limits)
        self.clipped += not np.array_equal(clipped, torques)
        return clipped if self._rate is None else self._rate.limited(clipped, now_s)

    def lower_limits(self, ceiling_nm: np.ndarray) -> np.ndarray:
        """Lower the torque limits to ceiling_nm (n,); return the indices (m,) of the joints whose limit it lowered."""
        above = np.flatnonzero(self._limits > ceiling_nm)
        np.minimum(self._limits, ceiling_nm, out=self._limits)
        return above

    def without_limit(self) -> np.ndarray:
        """Indices (m,) of joints without a torque limit."""
        return np.flatnonzero(np.isinf(self._limits))

    def refuse_sender(self, reason: str) -> None:
        """Count a command that is ignored because of its sender; it counts neither as good nor as bad."""
        self.refused[reason] += 1

    def stop(self, reason: str, detail: str, now_s: float) -> np.ndarray | None:
        """Trip for a reason other than a command; return the torques (n,) to send, or None if it does not forward."""
        if self.state is not WatchdogState.FORWARDING:
            return None
        self._trip(reason, detail)
        return self._damp(now_s)

    def tick(self, now_s: float) -> np.ndarray | None:
        """The damping torques (n,), N·m, that are due now, or None; call it at least each `wait_s`."""
        if self.state is WatchdogState.FORWARDING:
            if now_s - self._last_good_s < self._timeout_s:
                return None
            self._trip("commands_stopped", f"no good command for {self._timeout_s:g} s")
            return self._damp(now_s)
        return None if self._silent or now_s < self._next_output_s else self._damp(now_s)

    def wait_s(self, now_s: float) -> float:
        """Longest time, s, until the next `tick`, if nothing arrives."""
        if self.state is WatchdogState.FORWARDING:
            due_s = self._last_good_s + self._timeout_s
        elif self._silent:
            return self._period_s
        else:
            due_s = self._next_output_s
        return min(max(due_s - now_s, 0.0), self._period_s)

    @property
    def waits_for_activation(self) -> bool:
        """Whether it is tripped and not yet allowed to forward again."""
        return self.state is WatchdogState.TRIPPED and not self._may_return

    def controller_changed(self, active: bool) -> None:
        """Note that the controller entered or left its active state."""
        self._may_return = active and self.state is WatchdogState.TRIPPED

    def look_at_latch(self) -> None:
        """Stop if the latch is engaged, as by a process before this one."""
        if self._latch is not None and self._latch.is_there():
            self.state = WatchdogState.EMERGENCY_STOP

    def emergency_stop(self, now_s: float) -> np.ndarray:
        """Engage the emergency stop, in any state; return the torques (n,) to send at once.

        Call `keep` after sending them: it writes the latch to disk.
        """
        self.state = WatchdogState.EMERGENCY_STOP
        if self._latch is not None:
            self._latch.engage()
        return self._damp(now_s)

    def keep(self) -> str:
        """Write the latch of an engaged stop to disk; return a line for the log if that fails, else ""."""
        return "" if self._latch is None else self._latch.keep()

    def release_emergency_stop(self) -> str:
        """Release the emergency stop, which leaves the watchdog tripped; return why not, or an empty string."""
        if self.state is not WatchdogState.EMERGENCY_STOP:
            return "the emergency stop was not engaged"
        try:
            if self._latch is not None:
                self._latch.release()
        except ContactIdError as error:
            return str(error)
        self._trip("emergency_stop", "its emergency stop was engaged and is released")
        return ""

    def reset(self, now_s: float) -> str | None:
        """Allow a tripped watchdog to forward the next good command; None, or why it is refused."""
        if self.state is not WatchdogState.TRIPPED:
            return f"not tripped: {self.state.value}"
        if now_s - self._last_good_s >= self._timeout_s:
            # Else a command that begins much later would be forwarded unexpectedly.
            return f"no good command in the last {self._timeout_s:g} s"
        self._may_return = True
        return None

    def figures(self) -> dict[str, str]:
        """Names and values of all counts, for diagnostics."""
        figures = {
            "state": self.state.value,
            "forwarded": str(self.forwarded),
            "clipped": str(self.clipped),
            "trips": str(self.trips),
        }
        if self._rate is not None:
            figures["slowed"] = str(self._rate.slowed)
        if self.trips:
            figures["last trip"] = self.trip_reason
            figures["last reaction time (ms)"] = f"{self.reaction_s * 1e3:.2f}"
        for reason, count in sorted(self.refused.items()):
            figures[f"refused {reason}"] = str(count)
        if self.velocities.refused:
            figures["refused second_state"] = str(self.velocities.refused)
        return figures

    @property
    def _silent(self) -> bool:
        return self.state is WatchdogState.WAITING and not self._damp_first

    def _fault(self, torques: np.ndarray) -> str:
        if torques.shape[-1:] != self._limits.shape:
            return "wrong_size"
        return "" if np.isfinite(torques).all() else "not_finite"

    def _trip(self, reason: str, detail: str) -> None:
        self.state, self.trip_reason = WatchdogState.TRIPPED, reason
        self.trip_detail = detail
        self.trips += 1
        self._may_return = False
        self.reaction_s = float("nan")

    def _damp(self, now_s: float) -> np.ndarray:
        """The watchdog's own torques (na,), N·m: damping, or the emergency stop's output; recorded as sent."""
        tripped = self.state is WatchdogState.TRIPPED and self.trip_reason != "emergency_stop"
        if np.isnan(self.reaction_s) and tripped:
            self.reaction_s = now_s - self._last_good_s
        self._next_output_s = now_s + self._period_s
        stopped = self.state is WatchdogState.EMERGENCY_STOP
        output = self._emergency if stopped else self._damping
        torques = output.torques(self.velocities.known(now_s))
        if self._rate is not None:
            self._rate.sent(torques, now_s)
        return torques
