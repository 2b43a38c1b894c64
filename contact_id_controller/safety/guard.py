"""The guard: measurements and plans in, torques out. The only copy of the safety logic; no ROS.

    joints, base, contact -> checks -> state -> state machine -> controller -> output -> torques
                                |                                                  ^
                             refusal -------------- safe output -------------------+

Both doors of the controller stand before it, the node (`ros.control_loop`) and the call from another
process' loop (`safety.in_process`); they turn messages or arrays into values and torques back.
Whatever comes in, finite torques within the limits go out: the controller's, or the safe output.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.following import Following
from contact_id_controller.control.linear_feedback import LinearSteps, ahead_of
from contact_id_controller.control.torques_ahead import TorquesAhead
from contact_id_controller.control.warm_up import warm_up
from contact_id_controller.exceptions import ContactIdError, TrajectoryError
from contact_id_controller.models.steps.plan import TOUCHING_SPEED
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.parts import PlanParts
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.safety import states
from contact_id_controller.safety.attention import Attention, Pace
from contact_id_controller.safety.command_limits import CommandLimits
from contact_id_controller.safety.given_efforts import PROBE, GivenEfforts
from contact_id_controller.safety.incidents import Incidents
from contact_id_controller.safety.latch import EmergencyLatch
from contact_id_controller.safety.machine import SafetyLimits, SafetyMachine, SafetyState
from contact_id_controller.safety.monitor import (
    StepMonitor,
    contact_figures,
    gave_way_m_s,
    shortfall,
)
from contact_id_controller.safety.plan_reader import PlanReader, Read
from contact_id_controller.safety.safe_output import SafeOutput
from contact_id_controller.safety.states import JointReading, Refusal, StateChecks, all_finite
from contact_id_controller.safety.torque_output import TorqueOutput
from contact_id_controller.settings.shared_rows import AS_FAST_AS_IT_CAN, EFFORT
from contact_id_controller.solution import NOT_CONVERGED
from contact_id_controller.state import RobotState

LATE_STEPS = 100
"""So many steps in a row that each lost states are worth a line in the log."""

LONGEST_DELAY_S = 0.05
"""A state is predicted no further, however late it is."""

OK, WARNING, ERROR = range(3)
"""Levels of `Guard.summary`."""


class Guard:
    """One controller, guarded: between two calls it always has torques that may be sent.

    No method raises but `follow`, `take_contact_forces` and `take_contact_states`, which doors call
    through `guarded`, and those of the settings.

    Args:
        controller: the controller, with its robot and settings.
        lockstep: whether whoever sends states waits for the answer: then neither silence nor a
            long step means anything.
        clock: seconds of a clock that never jumps. Only silence is judged by it, less what this
            process itself slept (`look`); all else by the times of the measurements.
        latch: what keeps an emergency stop that outlives the process; one that is engaged already
            stops this guard from the beginning. None: none does.

    Attributes:
        result: of the last step, None while the safe output is commanded.
        ahead: torques solved ahead, None where the settings ask for none.
        host_enforces: whether the robot's side is known to enforce the limits of the URDF.
        simulated_time: whether stamps are of a time that may go slower than the clock.
        timeout_s: longest time between two good states, s.
        reads_at_once: whether nobody waits for the next step while a long plan is read.
        guarded: the one door at which errors end (`Incidents.guarded`): counted, told once, None
            returned. Whatever a host or a callback calls goes through it, or it could end the process.
        machine, checks, output, monitor, clock: state machine, checks of states, blending of
            torques, counts and times; the clock given.
        following: whether the robot does what is planned.
    """

    def __init__(
        self,
        controller: Controller,
        lockstep: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        latch: EmergencyLatch | None = None,
    ) -> None:
        settings, robot = controller.settings, controller.robot
        self.controller, self.lockstep = controller, lockstep
        self.checks = StateChecks(robot)
        self.machine = SafetyMachine(_limits(controller))
        self.output = TorqueOutput(settings, controller.effort_limits)
        self.monitor = StepMonitor(settings.period_s, real_time=not lockstep)
        self.following = Following(controller)
        self._measured: np.ndarray | None = None  # forces, in a step that has new ones
        self.result: StepResult | None = None
        self.clock = clock
        self.host_enforces = self.simulated_time = False
        self._limits, self._pace = CommandLimits(robot), Pace()
        self._slower = 1.0  # seconds of the clock in one of the states' time
        self._watched: tuple[float, float] | None = None
        self._parts, self._reader = PlanParts(), PlanReader()
        self.reads_at_once = lockstep
        self._now_s: float | None = None
        self._commanding = self._keep_upright = self._moved = False
        self._before: Controller | None = None
        self._good_s, self._good_stamp_s = -math.inf, None
        self.ahead: TorquesAhead | LinearSteps | None = None
        self._command: EffortTrajectory | StateFeedback | None = None
        self._leads = False
        self._attention = Attention()
        self._slept_by_good_s = self._slept_between_s = 0.0
        self._trouble = "no joint state"
        self._velocity_s = -math.inf
        count = len(settings.foot_frames)
        self._forces, self._sizes = np.zeros((count, 3)), np.full(count, math.nan)
        self._contacts = np.full(count, math.nan)
        self._new_sizes = self._new_forces = self._new_contacts = self._all_measured = False
        self._news: list[str] = []
        self._incidents = Incidents(
            lambda line: self._news.append(line), self.monitor.refusals, lambda: self.clock()
        )
        self.guarded = self._incidents.guarded
        self._stop_told = ""
        self._reported, self._gave_way_m_s = (0, self.monitor.statuses.copy()), 0.0
        self._latch = latch
        self._take_over()
        if latch is not None and latch.engaged:
            self.machine.engage_emergency_stop()

    @property
    def command(self) -> EffortTrajectory | StateFeedback | None:
        """What to send with another command_interface than effort, from now on.

        joint_trajectory: set-points and efforts; in a stop and at the end rest where the joints were
        measured last, the safe output as effort; while states are bad or missing the last one, which
        ends at rest by itself. linear_feedback: torques and their feedback; where those are the safe
        output, no feedback. None with effort, and while no joints were ever measured.
        """
        return self._command if self.checks.has_position else None

    @property
    def time_s(self) -> float | None:
        """Time of the last state since the start, s; None before the first."""
        return self._now_s

    # Settings

    def warm_up(self) -> None:
        """Compile everything that a step needs; takes seconds."""
        warm_up(self.controller)
        self.output.follow(self.output.sent)
        states.warm_up()
        zero = np.zeros(self.controller.robot.na)
        self._limits.enforce(zero, zero, zero)
        GivenEfforts(len(zero), 1.0, 1.0).warm_up()

    def take_over(self, controller: Controller) -> None:
        """Go on with another controller of the same robot, made with `Controller.take_over`."""
        if self._before is None and self.result is not None:
            self._before = self.controller  # the first, of several changes before the next state
        self.controller = controller
        self._take_over()
        self.output.apply(controller.settings, controller.effort_limits)
        self.output.blend()

    def _take_over(self) -> None:
        controller, settings = self.controller, self.controller.settings
        damping = settings.spread("damping_nm_s_rad", controller.robot.na)
        self.ahead = ahead_of(controller)
        # What was commanded last stays until the next solution.
        if self._command is None and settings.command_interface != EFFORT:
            self._command = self.ahead.command.like()
        limits = controller.effort_limits
        self._safe = SafeOutput(settings.safe_output, damping, limits)
        self._emergency = SafeOutput(settings.emergency_stop_output, damping, limits)
        self.machine.limits = _limits(controller)
        self.checks.apply(settings)
        self.timeout_s, self._period_s = settings.state_timeout_s, settings.period_s
        watched_s = settings.effort_gap_s if settings.start_ramp_s > 0.0 else 0.0
        if (watched_s, self._period_s) != self._watched:
            self._watched = watched_s, self._period_s
            self.given = GivenEfforts(controller.robot.na, *self._watched)
            self.output.go_on()
        self._needs_contact = controller.sensed or "measured" in settings.contact_sources

    # Start and stop

    def not_ready(self) -> str:
        """Why the robot's state is not known well enough to command it; empty when it is."""
        if self.lockstep:
            return "" if self._good_s > -math.inf else self._trouble
        if self._silent_in_s() >= 0.0:
            return ""
        return f"no good state for {self.timeout_s:g} s: {self._trouble}"

    def observe(self, joints: JointReading | Refusal | None, now_ns: int | None) -> None:
        """Look at a state without commanding; time may begin anew meanwhile."""
        if isinstance(joints, JointReading) and self.checks.is_before_the_last(joints.time_ns):
            self.checks.reset()
        self.guarded("state", self._take, joints, now_ns)

    def start(self, state_is_known: bool = True) -> str:
        """Begin anew: the first state that is accepted is the posture to hold.

        Returns why not, or nothing. state_is_known: False where no state can come before.
        """
        refusal = (self.not_ready() if state_is_known else "") or self.machine.activate(
            self._good_stamp_s
        )
        if not refusal:
            self.checks.reset()
            self.monitor.pause()
            self.result = self._now_s = None
            self._keep_upright = False
            self._velocity_s = -math.inf
            self._jump(np.zeros_like(self.output.sent))
            self._begin()
        return refusal

    def stop(self) -> np.ndarray:
        """Command no more; the last torques (na,) to send."""
        self.machine.deactivate()
        self.checks.reset()
        self._good_s, self._trouble = -math.inf, "no joint state"
        self.result = None
        return self._jump(self.safe_torques())

    def resume(self) -> str:
        """Leave a stop, and hold the posture of the next state; returns why not, or nothing."""
        refusal = self.not_ready() or self.machine.resume(self._good_stamp_s)
        if not refusal:
            self._now_s, self._keep_upright = None, True
            self.checks.reset_place()
            self._begin()
        return refusal

    def _begin(self) -> None:
        """The next torque begins the start ramp, not a blend from the safe output."""
        self._incidents.tell_anew()
        self._before = None
        self._parts.clear()
        self._reader.clear()
        self.given.forget()
        self._moved = False
        self._forget_ahead()
        self.following.begin()
        self.output.ramp()
        self._commanding = True

    def emergency_stop(self) -> np.ndarray:
        """Engage the emergency stop; the torques (na,) to send at once."""
        self.machine.engage_emergency_stop()
        if self._latch is not None:
            self._latch.engage()  # `news` writes it down: the torques go first
        self.result = None
        return self._jump(self.safe_torques())

    def release_emergency_stop(self, active: bool) -> str:
        """Release the emergency stop, which `resume` or `start` then leaves; why it is not, or nothing."""
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
        """The next state may have any time: plans are dropped, its posture is held."""
        self.checks.reset()
        self._moved = True

    def look(self) -> None:
        """The door could take a message now. Doors that wait for messages say so after each wait."""
        self._attention.look(self.clock())

    # Measurements and plans between the states

    def take_base(
        self, base: np.ndarray, time_ns: int, variances: np.ndarray | None = None
    ) -> None:
        """Keep the base (13,) for the next states; a bad one refuses them. See `StateChecks`."""
        self.checks.take_base(base, time_ns, variances)

    def take_contact_forces(self, forces: np.ndarray, seen: np.ndarray) -> None:
        """Keep measured forces (f, 3), N, world frame, of the feet ``seen`` (f,) bool.

        They count from the next state on; one that is not finite is none. Raises ContactIdError
        for arrays of another size.
        """
        if np.shape(forces) != self._forces.shape or np.shape(seen) != self._sizes.shape:
            raise ContactIdError(
                f"contact forces have shape {np.shape(forces)}, must have {self._forces.shape}"
            )
        good = np.isfinite(forces).all(axis=1) & seen
        self._forces[seen] = np.where(good[:, None], forces, 0.0)[seen]
        self._sizes[seen] = np.where(good, np.linalg.norm(forces, axis=1), math.nan)[seen]
        self._all_measured = bool(good.all())
        self._new_sizes = self._new_forces = True

    def take_contact_states(self, contacts: np.ndarray) -> None:
        """Keep measured contact (f,), 1 or 0, NaN where not measured, for the next state.

        Raises ContactIdError for an array of another size.
        """
        if np.shape(contacts) != self._contacts.shape:
            raise ContactIdError(
                f"contacts have shape {np.shape(contacts)}, must have {self._contacts.shape}"
            )
        self._contacts[:] = contacts
        self._new_contacts = True

    def follow(self, plan: Plan) -> None:
        """Follow a plan, or parts of one (`PlanParts`).

        Raises TrajectoryError for one that is refused: the plan before is followed.
        """
        if self._now_s is None:
            raise TrajectoryError("a plan before the first state of the robot is not followed")
        joined = self._parts.join(plan, self._now_s)
        if joined is None:
            return
        try:
            self.controller.follow(joined, self._now_s)
        except TrajectoryError:
            self._parts.told(joined, refused=True)
            raise
        self._parts.told(joined, refused=False)

    def read(
        self,
        what: str,
        make: Callable[[], Plan],
        *,
        long: bool = False,
        taken: Callable[[], None] = lambda: None,
    ) -> None:
        """Follow the plan that ``make`` makes, and that may raise; a bad one changes nothing.

        long: it is made beside the steps, and followed after one of the next; so is what comes while
        another one is made.  what: under which a bad one is counted.  taken: called when it is
        followed.
        """
        if self.reads_at_once or not (long or self._reader.is_busy):
            taken()
            self.guarded(what, lambda: self.follow(make()))
            return
        self._reader.read(what, lambda: self.controller.prepare(make()), taken)

    def _follow_read(self, read: Read) -> None:
        read.taken()
        self.follow(read.result())

    # Each period

    def step(self, joints: JointReading | Refusal | None, now_ns: int | None = None) -> np.ndarray:
        """Torques (na,), N·m, for measured joints, their refusal, or None: reading them failed.

        `now_ns` is the time by the clock of the stamps, None if there is none. After bad input or
        an error the torques move to the safe output, in a stop they are it; a view of `output`.
        """
        self.result = None
        wanted = self.guarded("step", self._wanted, joints, now_ns)
        self._before = None
        if wanted is None:
            self.machine.failed("an error in the step, see the log")
        if isinstance(joints, JointReading):
            self._look_at_efforts(joints)
        commanding = self.machine.commanding and self.result is not None
        if self.machine.latched:
            self.result = None
            sent = self.output.jump(self.safe_torques())
        elif not commanding and not self.lockstep and self._silent_in_s() < 0.0:
            sent = self.output.jump(self.safe_torques())
        else:
            # To the safe output and back: an offset belongs to the source it was taken from.
            if commanding and not self._commanding and self._leads:
                self.output.settle()  # the robot was not given the safe output meanwhile
            elif commanding != self._commanding:
                self.output.blend()
            sent = self.output.follow(wanted if commanding else self.safe_torques())
        self._commanding = commanding
        return self._sent(sent)

    def _sent(self, torques: np.ndarray) -> np.ndarray:
        """What is sent of torques (na,), which are changed to it: known to all who go on from it."""
        checks, told = self.checks, self.controller.settings.enforce_command_limits
        enforces = told == "on" or (told == "auto" and self.host_enforces)
        if enforces and checks.velocity_is_true:
            self._limits.enforce(torques, checks.position, checks.velocity)
        self.given.command(torques)
        self.controller.sent(torques)
        self._lead_on(torques)
        return torques

    def _look_at_efforts(self, joints: JointReading) -> None:
        """Hold the start ramp back while the robot is given something else, and let it act then."""
        given = self.given
        before = given.lost
        if not given.measure(joints.time_ns * states.NANO, joints.effort):
            return
        if given.lost:
            self.output.hold(given.held, PROBE)
            if before:
                return
            self.monitor.refuse("efforts_differ")
            self._news.append(
                "the measured efforts are no longer those commanded: group controller inactive, or "
                f"another command? {PROBE:.0%} of the torque is sent until they follow again"
            )
        else:
            self._news.append("the measured efforts follow again: start ramp")
            self.output.go_on()

    def _lead_on(self, sent: np.ndarray) -> None:
        """Make the command that goes with the torques (na,) of this period.

        What ramp, blending and limits changed of them stays changed until the next solution. While
        states are bad or missing a trajectory goes on, and ends at rest by itself; all else, a stop
        and the end of commanding say rest at once.
        """
        command, result, checks = self._command, self.result, self.checks
        if command is None:
            return
        if result is not None:
            if self.ahead.solved_now:
                added = sent - result.torques
                command.copy_from(self.ahead.command, added, self.output.share)
                self._leads = True
            return
        stopped = self.machine.latched or self.machine.state is SafetyState.INACTIVE
        if stopped or not (self._leads and command.holds_still):
            command.rest(checks.time_s, checks.position, sent)
            self._leads = False

    def _forget_ahead(self) -> None:
        if self.ahead is not None:
            self.ahead.begin()

    def finish(self, arrival_s: float) -> float:
        """After the command has left: count and time the step; how long it took, s.

        arrival_s: when its state arrived, by the clock of this guard.
        """
        step_s = self.clock() - arrival_s
        result = self.result
        if self._reader.done:
            read = self._reader.done.popleft()
            self.guarded(read.what, self._follow_read, read)
        self.monitor.pace = self._slower
        if result is not None:
            lost = self.monitor.step(
                self._now_s,
                arrival_s,
                step_s,
                result.step_time_s,
                result.solve_time_s,
                result.status,
            )
            self._count_solution()
            self.guarded("following", self._look_at_following, result)
            # Solving as fast as it can, it means to miss states.
            self.machine.timed(lost and self.controller.settings.solve_every != AS_FAST_AS_IT_CAN)
            if self.machine.overruns == LATE_STEPS:
                self._news.append(
                    f"late: the last {LATE_STEPS} states were each more than 1.5 times period_s "
                    f"{self._period_s:g} s apart, this step took {step_s:.2g} s: states came while "
                    "others were answered, or are published less often than period_s says"
                )
            if self.ahead is not None:
                until_s = -math.inf if self.lockstep else arrival_s + 0.5 * self._period_s
                self.guarded("torques_ahead", self.ahead.solve_ahead, until_s, self.clock)
        return step_s

    def _look_at_following(self, result: StepResult) -> None:
        """Judge whether the robot does what is planned, after the command of the step has left."""
        following = self.following
        before = following.reason
        now = following.look(self.controller, result, self._now_s, self._measured)
        if now and not before:
            self._news.append(f"not following: {now}")
        elif before and not now:
            self._news.append("following again")

    def _count_solution(self) -> None:
        if self.ahead is not None and not self.ahead.solved_now:
            return
        rate = self.monitor.solutions
        told = rate.count(self._now_s)
        if told and self.controller.settings.solve_every == AS_FAST_AS_IT_CAN:
            self._news.append(f"solves {rate.hz:.0f} times a second")

    def silent_in_s(self) -> float:
        """So long from now, s, it is silent if no good state comes.

        Negative: it is, none has come for `state_timeout_s` in which the door listened.
        """
        self.look()
        return self._silent_in_s()

    def silence(self, refusal: Refusal | None = None) -> np.ndarray:
        """No good state has come for `state_timeout_s`: the safe output (na,) to send at once."""
        self.result = None
        refusal = refusal or Refusal("states_stopped", f"no good state for {self.timeout_s:g} s")
        self.refuse(refusal)
        self.machine.interrupt(refusal.detail)
        return self._jump(self.safe_torques())

    def safe_torques(self) -> np.ndarray:
        """The safe output (na,), N·m; it damps only a velocity measured a moment ago."""
        fresh = self.clock() - self._velocity_s <= self.timeout_s
        stopped = self.machine.state is SafetyState.EMERGENCY_STOP
        safe = self._emergency if stopped else self._safe
        return safe.torques(self.checks.velocity if fresh else None)

    def _wanted(self, joints: JointReading | Refusal | None, now_ns: int | None):
        """Torques wanted; `result` stays None when they are the safe output."""
        state, controller = self._take(joints, now_ns), self.controller
        limits = self.machine.limits
        if not isinstance(state, RobotState):
            self.checks.prediction.forget()  # what the safe output does to the base is not known
        if state is None:
            return None
        if isinstance(state, Refusal):
            self.refuse(state)
            self.machine.interrupt(f"{state.reason}: {state.detail}")
            return self.safe_torques()
        if self._now_s is None:
            controller.reset(state, self._keep_upright)
            self.output.ramp()  # however long the first good state was waited for
        elif self._moved or self._slept_through_s(state.time_s) > limits.recovery_window_s:
            controller.hold_here(state)
            self.following.begin()
            self._forget_ahead()
            self._parts.clear()
            self.output.blend()
        self._now_s, self._moved = state.time_s, False
        tilt, slept_s = controller.tilt(state.q), self._slept_between_s
        if not self.machine.good_state(state.time_s, tilt, slept_s):
            return self.safe_torques()
        if self._parts.waiting:
            for part in self._parts.due(state.time_s):
                self.guarded("plan", self.follow, part)
        self._measured = None
        if self._new_forces:
            self._new_forces = False
            controller.measure_feet(self._forces)
            self._measured = self._forces if self._all_measured else None
        if controller.settings.measured_delay and not self.lockstep:
            age_s = 0.0 if now_ns is None else now_ns * states.NANO - state.time_s
            delay_s = controller.settings.command_delay_s + self.monitor.delay_s(age_s)
            controller.act_after(min(delay_s, LONGEST_DELAY_S))
        if self._before is not None:
            self.guarded("blend", self._continue, self._before, state)
        result = (self.ahead or controller).step(state)
        if not all_finite(result.torques):
            self.refuse(Refusal("torque_not_finite", f"controller returned {result.torques}"))
            self.machine.failed("torque not finite")
            return self.safe_torques()
        if self.checks.predicts:
            self._carry_on(state, result)
        self.machine.stepped(self._failure(result), result.following, self.following.reason)
        if self.machine.commanding:
            self.result = result
        return result.torques

    def _carry_on(self, state: RobotState, result: StepResult) -> None:
        """Let a base that is predicted accelerate as this solution says."""
        if result.solution is not None and (self.ahead is None or self.ahead.solved_now):
            speed = self.controller.answered.v
            acceleration = (result.solution.velocity[:6] - speed[:6]) / self._period_s
            if all_finite(acceleration):
                self.checks.prediction.accelerate(round(state.time_s / states.NANO), acceleration)

    def _failure(self, result: StepResult) -> str:
        """What is wrong with a step's solution, which by itself stops nothing; empty: nothing."""
        if result.status == NOT_CONVERGED:
            return "solver not converged"
        gave_way = gave_way_m_s(result)
        self._gave_way_m_s = max(self._gave_way_m_s, gave_way)
        if gave_way > TOUCHING_SPEED:
            return f"contacts give way by {gave_way:.2g} m/s"
        return ""

    def _continue(self, before: Controller, state: RobotState) -> None:
        """Blend from what the controller until now would do in this state."""
        torques = before.step(state).torques
        if all_finite(torques):
            self.output.blend_from(torques)

    def _slept_through_s(self, time_s: float) -> float:
        """Time of the robot since the last good state that passed while nobody listened, s.

        A simulation may have waited, or run slower than the clock.
        """
        return min(self._slept_between_s, time_s - self._now_s)

    def _take(
        self, joints: JointReading | Refusal | None, now_ns: int | None
    ) -> RobotState | Refusal | None:
        if joints is None or isinstance(joints, Refusal):
            state = joints
        else:
            checks = self.checks
            state = checks.take(joints, now_ns)
            if checks.velocity_is_true:
                self._velocity_s = self.clock()
            # Kept until it has been acted on: an error on the way must not lose it.
            self._moved = self._moved or checks.moved_elsewhere
            if isinstance(state, RobotState):
                state = self._check_contact(state.time_s) or state
        if isinstance(state, RobotState):
            self._good_s, self._good_stamp_s = self.clock(), state.time_s
            if self.simulated_time:
                self._pace.state(state.time_s, self._good_s)
                self._slower = self._pace.factor
            slept_s = self._attention.slept_s
            self._slept_between_s = (slept_s - self._slept_by_good_s) / self._slower
            self._slept_by_good_s = slept_s
        elif state is not None:
            self._trouble = state.detail
        return state

    def _check_contact(self, time_s: float) -> Refusal | None:
        """Hand on what was measured of the contacts; refuse a state when that is nothing at all.

        No foot would be in contact by it: the robot would be let go as if it flew.
        """
        detector = self.controller.sources.detector
        if self._new_sizes:
            detector.take_forces(self._sizes, time_s)
            self._sizes[:] = math.nan
        if self._new_contacts:
            detector.take_states(self._contacts, time_s)
        self._new_sizes = self._new_contacts = False
        if not self._needs_contact or detector.knows_any(time_s):
            return None
        return Refusal(
            "contact_not_measured", f"no contact was measured for {detector.timeout_s:g} s"
        )

    def _silent_in_s(self) -> float:
        slept_s = self._attention.slept_s - self._slept_by_good_s
        return self.timeout_s * self._slower - (self.clock() - self._good_s - slept_s)

    def _jump(self, torques: np.ndarray) -> np.ndarray:
        """Send torques (na,) at once; the controller's rate limit counts from them."""
        return self._sent(self.output.jump(torques))

    # Errors, counts, words

    def refuse(self, refusal: Refusal) -> None:
        """Count a refusal by its reason; the first one of each since the start is news.

        So is the next one 10 s later, with their number.
        """
        self._incidents.count(refusal.reason, refusal.detail)

    def news(self) -> list[str]:
        """Lines for the log since the last call: new refusals, a stop with its reason, its end.

        Not on the way from a state to its torques: an emergency stop is written down here.
        """
        if self._latch is not None and (failure := self._latch.keep()):
            self._news.append(failure)
        stopped = self.machine.reason if self.machine.latched else ""
        if stopped != self._stop_told:
            if stopped:
                self._news.append(f"stopped: {stopped}")
            elif self.machine.state is not SafetyState.INACTIVE:
                self._news.append("commanding again")
            self._stop_told = stopped
        if not self._news:
            return self._news
        news, self._news = self._news, []
        return news

    def summary(self) -> tuple[int, str]:
        """Level and words for diagnostics: what it does now, and what went wrong since last time."""
        machine, monitor = self.machine, self.monitor
        (refusals, statuses), new = (
            self._reported,
            (
                monitor.refusals.total(),
                monitor.statuses.copy(),
            ),
        )
        self._reported = new
        gave_way, self._gave_way_m_s = self._gave_way_m_s, 0.0
        if machine.state is SafetyState.INACTIVE:
            return OK, "inactive"
        if machine.latched:
            return ERROR, f"{machine.state.value}: {machine.reason}"
        if self.result is None:
            return ERROR, f"safe output: {machine.reason}"
        if machine.state is SafetyState.NOT_FOLLOWING:
            return ERROR, f"not following: {machine.reason}"
        if new[0] > refusals:
            return WARNING, "commanding, some input refused"
        problems = shortfall(new[1], statuses, gave_way)
        return (WARNING, f"commanding; {problems}") if problems else (OK, "commanding")

    def figures(self) -> dict[str, str]:
        """Names and values of all counts and times, of the state and of the last solution."""
        figures = self.monitor.figures()
        figures["safety state"] = self.machine.state.value
        figures["safety reason"] = self.machine.reason or "none"
        if self.result is not None:
            figures.update(contact_figures(self.result, self.controller.robot.joint_names))
            figures.update(self.following.figures())
        return figures


def _limits(controller: Controller) -> SafetyLimits:
    settings = controller.settings
    return SafetyLimits(
        settings.recovery_window_s,
        settings.failures_in_a_row,
        settings.overruns_in_a_row,
        settings.tilt_limit_rad,
    )
