"""The guard: measurements and plans in, torques out. The only copy of the safety logic; no ROS.

    joints, base, contact -> checks -> state -> state machine -> controller -> output -> torques
                                |                                                  ^
                             refusal -------------- safe output -------------------+

Two callers use it: the node (`ros.control_loop`) and the in-process controller (`safety.in_process`); they convert
messages or arrays. For any input the torques are finite and within the limits: the controller's, or the safe output.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from contact_id_controller.control import delay_estimate, grip, motor_estimate
from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.following import Following
from contact_id_controller.control.held_steps import HeldSteps
from contact_id_controller.control.warm_up import warm_up
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.low_level import LowLevelCommand
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.safety import states
from contact_id_controller.safety.clock_offset import WARNED_PERIODS, ClockOffset
from contact_id_controller.safety.command_limits import CommandLimits
from contact_id_controller.safety.effort_monitor import PROBE, EffortMonitor
from contact_id_controller.safety.guard_log import TROUBLED, WARNING, GuardLog
from contact_id_controller.safety.latch import EmergencyLatch
from contact_id_controller.safety.local_command import LocalCommand
from contact_id_controller.safety.machine import SafetyMachine, SafetyState, limits_of
from contact_id_controller.safety.measured_contacts import MeasuredContacts
from contact_id_controller.safety.monitor import StepMonitor, contact_figures
from contact_id_controller.safety.plan_intake import PlanIntake
from contact_id_controller.safety.safe_output import SafeOutput
from contact_id_controller.safety.states import (
    GoodStates,
    JointReading,
    Refusal,
    StateChecks,
)
from contact_id_controller.safety.torque_output import TorqueOutput
from contact_id_controller.settings.shared_rows import AS_FAST_AS_IT_CAN
from contact_id_controller.state import RobotState

LATE_STEPS = 100
"""Number of steps in a row that lost states which is logged."""

FIRST_STEPS = 10
"""Good states since the start after which a place that differs from theirs says nothing against them."""

LONGEST_DELAY_S = 0.05
"""Longest time by which a state is predicted."""


@dataclass
class GuardState:
    """What the guard keeps from one period to the next, beside its parts.

    Attributes:
        now_s: stamp of the last state since the start, s; None before the first.
        keep_upright: whether the next reset of the controller keeps the attitude from which tilt is measured.
        steps: number of good states since the start.
        moved: whether the next good state may be anywhere: plans are dropped then, its posture is held.
        before: the controller before the changes since the last state, from which torques are blended.
        measured: (f, 3) N, world frame, forces on all feet, if measured since the last step.
    """

    now_s: float | None = None
    keep_upright: bool = False
    steps: int = 0
    moved: bool = False
    before: Controller | None = None
    measured: np.ndarray | None = None


class Guard:
    """A controller with its safety checks: after each call it has torques that may be sent.

    Only `follow`, `take_contact_forces`, `take_contact_states` and methods that change settings raise; callers use
    `guarded` for them.

    Args:
        controller: the controller, with its robot and settings.
        lockstep: whether the sender of states waits for the command: then neither a missing state nor a
            long step is a fault.
        clock: seconds of a steady clock. Used for timeouts only, less the time in which this process was
            suspended or busy (`look`); everything else uses stamps.
        latch: keeps an emergency stop beyond the process; an engaged one stops this guard from the beginning.
            None: emergency stops end with the process.

    Attributes:
        result: of the last step, None while the safe output is commanded.
        host_enforces: whether the robot's side is known to enforce the limits of the URDF.
        stamps_states: whether the caller itself stamps the states, by this computer's clock.
        state: `GuardState`.
        guarded, caught: of `Incidents`: errors are counted and logged there, and None is returned. Every call from a
            host
            or a callback goes through them: an error could end the process.
        machine, checks, output, monitor: state machine, checks of states, blending of torques, counts and times.
        good: arrival of good states.  contacts: measured at the feet.  plans: received, not yet followed.
        local: command for the robot's own side.  effort_monitor: compares measured and commanded efforts.
        log: lines and counts to report.  following: whether the robot follows the plan.  offset: of stamps and clock.
    """

    def __init__(
        self,
        controller: Controller,
        lockstep: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        latch: EmergencyLatch | None = None,
    ) -> None:
        settings, robot = controller.settings, controller.robot
        self.controller, self.lockstep, self.clock = controller, lockstep, clock
        self.result: StepResult | None = None
        self._kept: StepResult | None = None
        self.state = GuardState()
        self.host_enforces = self.stamps_states = False
        self.checks = StateChecks(robot)
        self.machine = SafetyMachine(limits_of(settings))
        self.output = TorqueOutput(settings, controller.effort_limits)
        self.monitor = StepMonitor(settings.period_s, real_time=not lockstep)
        self.following, self.offset = Following(controller), ClockOffset()
        self.good = GoodStates()
        self.checks.stamps.passed_s = self._passed_s
        self.contacts = MeasuredContacts(len(settings.foot_frames))
        self.local = LocalCommand()
        self.log = GuardLog(self.monitor, lambda: self.clock())
        self.guarded, self.caught = self.log.incidents.guarded, self.log.incidents.caught
        self.plans = PlanIntake(self.guarded, reads_at_once=lockstep)
        self.effort_monitor = EffortMonitor(robot.na, 0.0, settings.period_s)
        self._limits, self._latch = CommandLimits(robot), latch
        self._all_finite, self._is_within = states.checks_of_arrays()
        self._take_over()
        if latch is not None and latch.engaged:
            self.machine.engage_emergency_stop()

    @property
    def command(self) -> EffortTrajectory | StateFeedback | LowLevelCommand | None:
        """What to send with another command_interface than effort, from now on; None with effort.

        joint_trajectory: set-points and efforts. In a stop and at the end they rest at the last measured positions,
        with the safe output as effort; while states are bad or missing the last trajectory, which ends at rest, stays.
        linear_feedback: torques and feedback; no feedback with the safe output. None until joints were measured.
        """
        return self.local.command if self.checks.has_position else None

    @property
    def ahead(self) -> HeldSteps | None:
        """Torques solved ahead; None if the settings do not require them."""
        return self.local.ahead

    @property
    def time_s(self) -> float | None:
        """Time of the last state since the start, s; None before the first."""
        return self.state.now_s

    # Settings

    def warm_up(self) -> None:
        """Compile everything that a step calls; takes seconds."""
        warm_up(self.controller)
        following = Following(self.controller)
        for time_s in (0.0, 1.0):  # the first one only begins
            following.look(self.controller, time_s)
        self.output.follow(self.output.sent)
        states.warm_up(self.controller.robot)
        zero = np.zeros(self.controller.robot.na)
        self._limits.enforce(zero, zero, zero)
        EffortMonitor(len(zero), 1.0, 1.0).warm_up()

    def take_over(self, controller: Controller) -> None:
        """Continue with another controller of the same robot, made with `Controller.take_over`; torques are blended."""
        if self.state.before is None and self.result is not None:
            self.state.before = self.controller  # of several changes before a state the first
        self.controller = controller
        self._take_over()
        self.output.apply(controller.settings, controller.effort_limits)
        self.output.blend()

    def _take_over(self) -> None:
        """Apply the controller's settings to all parts: at the start, and after each change of the controller."""
        controller, settings = self.controller, self.controller.settings
        damping = settings.spread("damping_nm_s_rad", controller.robot.na)
        self.local.take_over(controller)
        limits = controller.effort_limits
        self._safe = SafeOutput(settings.safe_output, damping, limits)
        self._emergency = SafeOutput(settings.emergency_stop_output, damping, limits)
        self.machine.limits = limits_of(settings)
        self.checks.apply(settings)
        self.good.timeout_s = settings.state_timeout_s
        self.offset.warned_s = WARNED_PERIODS * settings.period_s
        # Measured efforts are compared with commanded ones only where those are all that acts: not with a full gain on
        # the robot's side.
        comparable = settings.start_ramp_s > 0.0 and not settings.interface.needs_derivative
        watched_s = settings.effort_gap_s if comparable else 0.0
        if (watched_s, settings.period_s) != self.effort_monitor.watched:
            self.effort_monitor = EffortMonitor(
                controller.robot.na, watched_s, settings.period_s, controller.robot.effort_limits
            )
            self.output.go_on()  # a ramp that the monitor before has stopped
        self.contacts.needed = bool(controller.measured)

    # Start and stop

    def not_ready(self) -> str:
        """Why there is no good recent state, as needed to command the robot; empty: there is."""
        if self.lockstep:
            return "" if self.good.last_s > -math.inf else self.good.trouble
        if self.good.overdue_in_s(self.clock()) >= 0.0:
            return ""
        return f"no good state for {self.good.timeout_s:g} s: {self.good.trouble}"

    def observe(self, joints: JointReading | Refusal | None, now_ns: int | None) -> None:
        """Check a state without commanding; its stamp may be before the last one's. now_ns: clock of the stamps."""
        if isinstance(joints, JointReading) and self.checks.is_before_the_last(joints.time_ns):
            self.checks.reset()
        self.guarded("state", self._take, joints, now_ns)

    def start(self, state_is_known: bool = True) -> str:
        """Start to command: the posture of the first accepted state is held.

        Returns why not, or an empty string. state_is_known: False where no state can arrive before the start.
        """
        refusal = (self.not_ready() if state_is_known else "") or self.machine.activate(
            self.good.stamp_s
        )
        if not refusal:
            self.checks.begin()
            self.monitor.pause()
            self.result = self.state.now_s = None
            self.state.keep_upright, self.state.steps = False, 0
            self.good.velocity_s = -math.inf
            self.local.leads = False
            self._jump(np.zeros_like(self.output.sent))
            self._begin_to_command()
        return refusal

    def stop(self) -> np.ndarray:
        """Stop commanding; return the last torques (na,), N·m, to send."""
        self.machine.deactivate()
        self.checks.reset()
        self.good.forget()
        self.result = None
        return self._jump(self.safe_torques())

    def resume(self) -> str:
        """Leave a stop, and hold the posture of the next state; return why not, or an empty string."""
        refusal = self.not_ready() or self.machine.resume(self.good.stamp_s)
        if not refusal:
            self.state.now_s, self.state.keep_upright = None, True
            self.checks.reset_place()
            self._begin_to_command()
        return refusal

    def _begin_to_command(self) -> None:
        """Reset plans, measured efforts and logged faults of before; torques grow by the start ramp."""
        self.log.incidents.tell_anew()
        self.plans.clear()
        self.effort_monitor.forget()
        self.local.forget()
        self.following.begin()
        self.output.ramp()
        state = self.state
        state.before, state.moved, self.output.commanding = None, False, True

    def emergency_stop(self) -> np.ndarray:
        """Engage the emergency stop; return the torques (na,), N·m, to send at once."""
        self.machine.engage_emergency_stop()
        if self._latch is not None:
            self._latch.engage()  # `news` writes it down: the torques go first
        self.result = None
        return self._jump(self.safe_torques())

    def release_emergency_stop(self, active: bool) -> str:
        """Release the emergency stop, which `resume` or `start` then leaves; return why not, or an empty string.

        active: whether the controller is active, so that `resume` is the one.
        """
        if self.machine.state is not SafetyState.EMERGENCY_STOP:
            return "the emergency stop was not engaged"
        try:
            if self._latch is not None:
                self._latch.release()
        except ContactIdError as error:
            return str(error)
        self.machine.release_emergency_stop(active)
        return ""

    def time_began_anew(self) -> None:
        """Accept any stamp next: plans are dropped, the posture of the next state is held."""
        self.checks.reset()
        self.state.moved = True

    def look(self) -> None:
        """Note that messages can be received now; callers that wait for messages call it after each wait."""
        self.good.listening.look(self.clock())

    # Measurements and plans between the states

    def take_base(
        self, base: np.ndarray, time_ns: int, variances: np.ndarray | None = None
    ) -> None:
        """Keep the base (13,) for the next states, see `StateChecks.take_base`; a bad one makes them refused."""
        self.checks.take_base(base, time_ns, variances)

    def take_contact_forces(self, forces: np.ndarray, seen: np.ndarray) -> None:
        """Keep measured forces (f, 3), N, world frame, of the feet ``seen`` (f,) bool, for the next state.

        A force that is not finite counts as not measured. Raises ContactIdError for arrays of another size.
        """
        self.contacts.take_forces(forces, seen)

    def take_contact_states(self, contacts: np.ndarray) -> None:
        """Keep measured contact (f,), 1 or 0, NaN where not measured, for the next state.

        Raises ContactIdError for an array of another size.
        """
        self.contacts.take_states(contacts)

    def follow(self, plan: Plan) -> None:
        """Follow a plan, or parts of one (`PlanParts`).

        Raises TrajectoryError for a refused plan; the plan before is followed then.
        """
        self.plans.follow(self.controller, plan, self.state.now_s)

    def read(
        self,
        what: str,
        make: Callable[[], Plan],
        *,
        long: bool = False,
        taken: Callable[[], None] = lambda: None,
    ) -> None:
        """Follow the plan that ``make`` returns; if it raises, the error is counted and nothing changes.

        Args:
            what: reason under which an error is counted.  make: makes the plan.
            long: make it in a thread, and follow it after one of the next steps; so are plans that arrive meanwhile.
            taken: called when the plan is followed.
        """
        if self.plans.waits(long):
            self.plans.reader.read(what, lambda: self.controller.prepare(make()), taken)
            return
        taken()
        self.guarded(what, lambda: self.follow(make()))

    # Each period

    def step(self, joints: JointReading | Refusal | None, now_ns: int | None = None) -> np.ndarray:
        """Torques (na,), N·m, for measured joints; a Refusal, or None after an error, if they could not be read.

        now_ns: the clock of the stamps; None: there is none. After bad input or an error the torques move to the safe
        output, in a stop they are the safe output. Returns a view of the array in `output`.
        """
        self._kept, self.result = self.result, None  # its arrays are freed after the command
        state, machine = self.state, self.machine
        wanted = None
        try:
            wanted = self._wanted(joints, now_ns)
        except Exception as error:  # as by ``guarded``, without its call
            self.caught("step", error)
        state.before = None
        if wanted is None:
            machine.failed("an error in the step, see the log")
        if self.effort_monitor.watches and isinstance(joints, JointReading):
            self._look_at_efforts(joints)
        if machine.latched:
            self.result = None
        commanding = machine.commanding and self.result is not None
        silent = not self.lockstep and not commanding and self.good.overdue_in_s(self.clock()) < 0.0
        local = self.local
        sent = self.output.send(
            wanted if commanding else None,
            self.safe_torques,
            at_once=machine.latched or silent,
            goes_on=local.leads
            and local.goes_on(machine),  # looked at first: most have none, and a call costs
        )
        return self._sent(sent)

    def _sent(self, torques: np.ndarray) -> np.ndarray:
        """Apply the command limits to torques (na,), in place, and record them as sent."""
        checks, choice = self.checks, self.controller.settings.enforce_command_limits
        local = self.local
        if local.command is not None:
            # Before the limits, which are for this state's velocity; the drives damp any.
            beyond = torques - self.output.wanted
        enforces = choice == "on" or (choice == "auto" and self.host_enforces)
        if enforces and checks.velocity_is_true:
            self._limits.enforce(torques, checks.position, checks.velocity)
        given = self.effort_monitor
        if given.watches:
            given.ring[given.count % len(given.ring)] = torques
            given.count += 1
        self.controller.sent(torques)
        if local.command is not None:
            local.update(
                torques,
                self.result,
                self.output.share,
                goes_on=local.goes_on(self.machine),
                time_s=checks.time_s,
                position=checks.position,
                beyond=beyond,
            )
        return torques

    def _look_at_efforts(self, joints: JointReading) -> None:
        """Hold the start ramp while the measured efforts are not those commanded; continue it when they are again."""
        given = self.effort_monitor
        before = given.lost
        if not given.measure(joints.time_ns * states.NANO, joints.effort):
            return
        if given.lost:
            self.output.hold(given.held, PROBE)
            if before:
                return
            self.monitor.refuse("efforts_differ")
            self.log.lines.append(
                "the measured efforts are no longer those commanded: group controller inactive, or "
                f"another command? {PROBE:.0%} of the torque is sent until they follow again"
            )
        else:
            self.log.lines.append("the measured efforts follow again: start ramp")
            self.output.go_on(None if self.result is None else self.result.torques)

    def finish(self, arrival_s: float) -> float:
        """Finish a step after its command was sent: count, time, and follow plans that were read; return its time, s.

        arrival_s: when its state arrived, by the clock of this guard.
        """
        step_s = self.clock() - arrival_s
        result, self._kept = self.result, None
        if self.plans.reader.done:
            self.plans.follow_read(self.controller, self.state.now_s)
        self.monitor.pace = self.good.slower
        if result is not None:
            now_s, settings = self.state.now_s, self.controller.settings
            ahead = self.local.ahead
            assert now_s is not None, "a state was answered"
            lost = self.monitor.step(now_s, arrival_s, step_s, result)
            if ahead is None or ahead.solved_now:
                rate = self.monitor.solutions
                if rate.count(now_s) and settings.solve_every == AS_FAST_AS_IT_CAN:
                    self.log.lines.append(f"solves {rate.hz:.0f} times a second")
            try:
                self._look_at_following()
            except Exception as error:
                self.caught("following", error)
            # Solving as fast as it can, it misses states on purpose.
            self.machine.timed(lost and settings.solve_every != AS_FAST_AS_IT_CAN)
            if self.machine.overruns == LATE_STEPS:
                self.log.lines.append(
                    f"late: the last {LATE_STEPS} states were each more than 1.5 times period_s "
                    f"{settings.period_s:g} s apart, this step took {step_s:.2g} s: states came while "
                    "others were answered, or are published less often than every period_s"
                )
            if ahead is not None:
                until_s = -math.inf if self.lockstep else arrival_s + 0.5 * settings.period_s
                self.guarded("torques_ahead", ahead.solve_ahead, until_s, self.clock)
        return step_s

    def _look_at_following(self) -> None:
        """Check whether the robot follows the plan; log changes."""
        following = self.following
        assert self.state.now_s is not None, "a state was answered"
        before = following.reason
        now = following.look(self.controller, self.state.now_s, self.state.measured)
        if now and not before:
            self.log.lines.append(f"not following: {now}")
        elif before and not now:
            self.log.lines.append("following again")

    def silent_in_s(self) -> float:
        """Time, s, until `state_timeout_s` has passed without a good state; negative: it has.

        Time in which the process could not receive states does not count.
        """
        self.look()
        return self.good.overdue_in_s(self.clock())

    def silence(self, refusal: Refusal | None = None) -> np.ndarray:
        """Return the torques (na,) to send after `state_timeout_s` without a good state.

        The safe output; the last torques if the robot's side has a trajectory that it continues.
        """
        self.result = None
        refusal = refusal or Refusal(
            "states_stopped", f"no good state for {self.good.timeout_s:g} s"
        )
        self.refuse(refusal)
        self.machine.interrupt(refusal.detail)
        if self.local.goes_on(self.machine):
            return self._sent(self.output.sent)
        return self._jump(self.safe_torques())

    def safe_torques(self) -> np.ndarray:
        """The safe output (na,), N·m; it damps only if a velocity was measured within state_timeout_s."""
        good = self.good
        fresh = self.clock() - good.velocity_s <= good.timeout_s
        stopped = self.machine.state is SafetyState.EMERGENCY_STOP
        safe = self._emergency if stopped else self._safe
        return safe.torques(self.checks.velocity if fresh else None, self.local.damping)

    def _wanted(
        self, joints: JointReading | Refusal | None, now_ns: int | None
    ) -> np.ndarray | None:
        """Torques (na,) wanted in this period, None after an error; `result` stays None if they are the safe output."""
        found, controller, state = self._take(joints, now_ns), self.controller, self.state
        machine, good = self.machine, self.good
        if not isinstance(found, RobotState):
            return self._without_state(found)
        time_s = found.time_s
        if state.now_s is None:
            controller.reset(found, state.keep_upright)
            self.output.ramp()  # however long the first good state was waited for
        # Time of the robot that passed while no state could be taken; a simulation may have waited.
        elif state.moved or (
            good.slept_between_s > machine.limits.recovery_window_s
            and time_s - state.now_s > machine.limits.recovery_window_s
        ):
            self._hold_here(found)
        state.now_s, state.moved = time_s, False
        state.steps += 1
        if not machine.good_state(time_s, controller.tilt(found.q), good.slept_between_s):
            return self.safe_torques()
        if self.plans.parts.waiting:
            self.plans.follow_due(controller, time_s)
        state.measured = None
        if self.contacts.forces_came:
            state.measured = self.contacts.pass_forces_on(controller)
        if controller.settings.command_delay_s and not self.lockstep:
            age_s = 0.0 if now_ns is None else now_ns * states.NANO - time_s
            delay_s = controller.settings.command_delay_s + self.monitor.delay_s(age_s)
            controller.act_after(min(delay_s, LONGEST_DELAY_S))
        if state.before is not None:
            self.guarded("blend", self._continue, state.before, found)
        disturbance = controller.disturbance
        if disturbance is not None and not self._is_within(disturbance.wrench, disturbance.squares):
            self.refuse(Refusal("disturbance_beyond_limit", f"observed {disturbance.wrench}"))
            disturbance.forget()
        result = (self.local.ahead or controller).step(found)
        if not self._all_finite(result.torques):
            self.refuse(Refusal("torque_not_finite", f"controller returned {result.torques}"))
            machine.failed("torque not finite")
            return self.safe_torques()
        if self.checks.predicts:
            self._carry_on(found, result)
        failure = self.log.failure(result) if result.status in TROUBLED else ""
        machine.stepped(failure, result.following, self.following.reason)
        if machine.commanding:
            self.result = result
        return result.torques

    def _without_state(self, refusal: Refusal | None) -> np.ndarray | None:
        """Interrupt the controller, and return the safe output, after a refused state; None after an error."""
        self.checks.prediction.forget()  # what the safe output does to the base is not known
        if refusal is None:
            return None
        self.refuse(refusal)
        self.machine.interrupt(f"{refusal.reason}: {refusal.detail}")
        return self.safe_torques()

    def _hold_here(self, found: RobotState) -> None:
        """Drop the plans and hold the posture of this state."""
        # Elsewhere right after the start: it began with a wrong state, whose attitude is no measure of tilt.
        self.controller.hold_here(found, not self.state.moved or self.state.steps >= FIRST_STEPS)
        self.following.begin()
        self.local.forget()
        self.plans.parts.clear()
        self.output.blend()

    def _carry_on(self, state: RobotState, result: StepResult) -> None:
        """Give the base acceleration of this solution to the prediction of the base."""
        if result.solution is not None and (self.ahead is None or self.ahead.solved_now):
            answered = self.controller.answered
            assert answered is not None
            acceleration = (
                result.solution.velocity[:6] - answered.v[:6]
            ) / self.controller.settings.period_s
            if self._all_finite(acceleration):
                self.checks.prediction.accelerate(round(state.time_s / states.NANO), acceleration)

    def _continue(self, before: Controller, state: RobotState) -> None:
        """Blend from the torques that the controller before a change computes for this state."""
        torques = before.step(state).torques
        if self._all_finite(torques):
            self.output.blend_from(torques)

    def _take(
        self, joints: JointReading | Refusal | None, now_ns: int | None
    ) -> RobotState | Refusal | None:
        """Check measured joints: the state to act on, a Refusal, or None after an error. Records arrival and jumps."""
        good, contacts = self.good, self.contacts
        found: RobotState | Refusal | None
        if not isinstance(joints, JointReading):
            found = joints
        else:
            checks = self.checks
            found = checks.take(joints, now_ns)
            if checks.velocity_is_true:
                good.velocity_s = self.clock()
                if now_ns is not None and not checks.clock_lags:
                    self.offset.see(joints.time_ns, (now_ns - joints.time_ns) * states.NANO)
            # Kept until it has been acted on: an error on the way must not lose it.
            self.state.moved = self.state.moved or checks.moved_elsewhere
            if (contacts.came or contacts.needed) and isinstance(found, RobotState):
                found = contacts.pass_on(self.controller, found.time_s) or found
        if isinstance(found, RobotState):
            good.came(found.time_s, self.clock(), now_ns is not None or self.stamps_states)
        elif found is not None:
            good.trouble = found.detail
        return found

    def _passed_s(self) -> float:
        """Time since the last joints in order, s, for stamps that the caller has not made."""
        last_s = max(self.good.last_s, self.good.velocity_s)
        return math.inf if self.stamps_states else self.clock() - last_s

    def _jump(self, torques: np.ndarray) -> np.ndarray:
        """Send torques (na,) at once; the controller's rate limit counts from them."""
        return self._sent(self.output.jump(torques))

    # Errors, counts, words

    def refuse(self, refusal: Refusal) -> None:
        """Count a refusal by its reason; the first of each is logged, then one every 10 s with their number."""
        self.log.incidents.count(refusal.reason, refusal.detail)

    @property
    def has_news(self) -> bool:
        """Whether `news` should be called after this step; what else it returns may wait for the next chores."""
        log, machine = self.log, self.machine
        return bool(log.lines) or machine.latched or log.told_of_stop

    def news(self) -> list[str]:
        """Lines for the log since the last call: new refusals, a stop with its reason, its end.

        Call it after the command was sent: it writes an emergency stop to disk.
        """
        if self._latch is not None and (failure := self._latch.keep()):
            self.log.lines.append(failure)
        if ahead := self.offset.news():
            self.log.lines.append(ahead)
        return self.log.news(self.machine)

    def summary(self) -> tuple[int, str]:
        """Level and text for the diagnostics: present state, and what went wrong since the last call."""
        level, words = self.log.summary(self.machine, self.result)
        ahead = self.offset.words
        return (max(level, WARNING), f"{words}; {ahead}") if ahead else (level, words)

    def figures(self) -> dict[str, str]:
        """Names and values of all counts and times, of the state and of the last solution."""
        figures = self.monitor.figures()
        figures["safety state"] = self.machine.state.value
        figures["safety reason"] = self.machine.reason or "none"
        if not math.isnan(least_s := self.offset.least_age_s):
            figures["least age of states (us)"] = f"{1e6 * least_s:.1f}"
        if self.result is not None:
            figures.update(contact_figures(self.result, self.controller.robot.joint_names))
            figures.update(self.following.figures())
        if self.controller.disturbance is not None:
            figures.update(self.controller.disturbance.figures())
            figures.update(grip.figures(self.controller.period))
            figures.update(motor_estimate.figures(self.controller.period))
            figures.update(delay_estimate.figures(self.controller.period))
        return figures
