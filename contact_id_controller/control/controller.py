"""The controller: one step from measured state to joint torques, without ROS."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.control.balance import Balance
from contact_id_controller.control.contact_sources import ContactSources
from contact_id_controller.control.effort_ceiling import refuse_above_description
from contact_id_controller.control.feedback import tilt, up_in_base
from contact_id_controller.control.limits import Limits
from contact_id_controller.control.plan_limits import plan_limits
from contact_id_controller.control.problem_of_step import StepProblem
from contact_id_controller.control.step_kernels import (
    BALANCED,
    DEADBEAT,
    EARLY,
    ERROR,
    GOAL,
    LANDED_M,
    LANDING,
    LANDS,
    NO_GOAL,
    POSITION,
    SENSED,
    SOLES,
    TORQUES,
    TOUCHING,
    VELOCITY,
    Numbers,
    after_problem,
    before_problem,
)
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry import FeetOnGround, contact_names, feet_on
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.kernels.views import dense
from contact_id_controller.models import Tangential, row_of, solve
from contact_id_controller.models.steps.plan import TOUCHING_SPEED
from contact_id_controller.plans import rotations
from contact_id_controller.plans.base_trajectory import BaseReference
from contact_id_controller.plans.checks import Followed, prepare, ready_to_follow
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.sampling import BASE_NUMBERS
from contact_id_controller.plans.trajectories import (
    ContactSchedule,
    JointTrajectory,
    PlanSlot,
    Reference,
)
from contact_id_controller.problem import Problem, compute_dynamics
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.solution import RELAXED, SOLVED, Solution
from contact_id_controller.state import RobotState

SUPPLIED = ("torque_limits", "weights", "forces")
"""The options of contact models that the controller knows: limits and loss of the motors, and the
measured contact forces."""

CENTER_OF_MASS = "center_of_mass"
"""The value of ``base_feedback`` that needs `Balance`."""

SOLE_LANDED_M = 1e-3  # a sole has landed when its first corner is as near; the others follow
PRESSED_M = 1e-4  # the same where a sole that stands is pressed on at once, by what it shall bear


class StepResult(NamedTuple):
    """What one period's step decided.

    torques (na,) N·m after limits; status of the solution (of feedback alone: its solver's name); reference; forces
    (n, 3) N, world frame, predicted at each foot, or corner of a flat one, zero out of contact; contact (n,) bool;
    saturated (na,) bool; solve_time_s: problem and solution; step_time_s: the whole step.
    power_loss_w: R (torque / Kt)^2 summed over the joints, NaN without motor constants.
    following: along a plan that lasts. limits (na,) uint8: which limits act, bits of limits.NAMES.
    """

    torques: np.ndarray
    status: str
    reference: Reference
    forces: np.ndarray
    contact: np.ndarray
    saturated: np.ndarray
    solution: Solution | None
    solve_time_s: float
    step_time_s: float
    power_loss_w: float = math.nan
    following: bool = False
    limits: np.ndarray | None = None


class Workings(NamedTuple):
    """What the last step's desired acceleration was made of; arrays that the next step overwrites.

    wanted, acceleration (nv,): before and after standing and landing feet (n,) bool had their say;
    weights (nv,) of that; base: its goal. gains: of position, velocity and integral of the joints;
    base_gains (4, 3): of the base's linear and angular position and velocity. options: of the model.
    stops_early: a foot is being stopped within the period.
    """

    wanted: np.ndarray
    acceleration: np.ndarray
    standing: np.ndarray
    landing: np.ndarray
    weights: np.ndarray
    base: BaseReference
    gains: list[np.ndarray]
    base_gains: np.ndarray
    options: dict[str, Any]
    stops_early: bool


def effective_model(settings: ControllerSettings) -> tuple[str, str]:
    """Friction and solver with which the settings' problem is solved.

    Where no contact ever slips that is the limit which the model's row names.
    """
    row = row_of(settings.friction, settings.solver)
    unbounded = min(settings.friction_coefficient) >= UNBOUNDED_FRICTION
    return row.without_slip if unbounded and row.without_slip else row.pair


def loss_weights(robot: RobotModel, settings: ControllerSettings) -> np.ndarray | None:
    """R/Kt^2 (na,) of the motors, W/(N·m)^2; None where they are not known."""
    if not settings.motor_resistance_ohm:
        return None
    resistance = settings.spread("motor_resistance_ohm", robot.na)
    return resistance / settings.spread("motor_torque_constant_nm_a", robot.na) ** 2


class Controller:
    """Feedback, contact set, contact inverse dynamics and limits for one robot.

    Holds the posture of ``reset``, or of the first state, until a trajectory is set; and the last
    one of a plan that ends in motion without another one, with all feet on the ground.

    Args:
        feet: contacts of the feet where the ground is not the plane of the settings
            (``TerrainFeet``).

    Attributes:
        feet: the n contacts.  contact_names: theirs.  plan_limits: those of plans.
        commanded: (na,) N·m, what the robot was really given in the last period. ``step`` sets it;
            whoever sends something else than its torques writes that here.
        delay_s: until the torques of a step act, s: they are for the state predicted for then.
        answered: the state that the last step's torques are for.

    Raises:
        ConfigurationError, UnknownFrameError, UnknownModelError: settings do not fit the robot.
    """

    def __init__(
        self, robot: RobotModel, settings: ControllerSettings, feet: FeetOnGround | None = None
    ):
        self.robot, self.settings = robot, settings
        self.row = row_of(*effective_model(settings))
        self.model = self.row.pair
        self.pid = self.row.feedback_only
        self.sensed = self.row.takes("forces")
        if not robot.floating_base and settings.floating_base:
            raise ConfigurationError(
                "parameter 'floating_base' is true, but the robot's base is fixed"
            )
        if feet is None:
            feet = feet_on(
                robot,
                settings.feet,
                settings.ground,
                settings.spread_over_contacts("friction_coefficient"),
                settings.spread_over_contacts("viscosity"),
            )
        self.feet = feet
        self.contact_names = contact_names([foot.frame for foot in feet.feet])
        count, na = len(feet), robot.na
        corners = np.bincount(feet.foot)[feet.foot]  # of the foot that each contact is part of
        # Contact that stops a foot within the period foresees impacts; slower contact does not, and
        # feet that land early are better left to their feedback. They must be able to part again.
        self._deadbeat = (
            settings.contact_time_constant_s == settings.period_s
            and self.row.predicts_forces
            and not self.row.holds_touching
        )
        self._unbounded = (
            row_of(settings.friction, settings.solver).tangential is Tangential.COULOMB
            and max(settings.friction_coefficient) >= UNBOUNDED_FRICTION
        )
        self._links = self.feet.links
        refuse_above_description(robot, settings)
        self.limits = Limits(robot, settings)
        self.effort_limits = self.limits.effort
        self.sources = ContactSources(feet.foot, settings)
        gains = ("joint_position_gain", "joint_velocity_gain", "joint_integral_gain")
        torque_gains = ("pid_position_gain", "pid_velocity_gain", "pid_integral_gain")
        self._gains = [settings.spread(name, na) for name in (torque_gains if self.pid else gains)]
        self._balance = None
        if settings.base_feedback == CENTER_OF_MASS:
            if not robot.floating_base:
                raise ConfigurationError(
                    f"parameter 'base_feedback' is '{CENTER_OF_MASS}', but the robot's base is fixed"
                )
            self._balance = Balance(robot, feet, settings, self._planned_at)
        parts = "linear_position", "linear_velocity", "angular_position", "angular_velocity"
        self._base_gains = np.array([settings.spread(f"base_{part}_gain", 3) for part in parts])
        self.loss_weights = loss_weights(robot, settings)
        # Row 0 is the newest measurement; the last one is what the solver sees.
        self._measured = np.zeros((settings.sensed_delay, count, 3))
        supplied = (self.effort_limits, self.loss_weights, self._measured[-1])
        self._options = self.row.keywords(settings, dict(zip(SUPPLIED, supplied, strict=True)))
        self._weights = np.full(robot.nv, settings.joint_weight)
        self._wanted, self._acceleration = np.zeros(robot.nv), np.zeros(robot.nv)
        self._desired = np.zeros(na)
        self._sample, self._goal = np.zeros((3, na)), np.zeros(BASE_NUMBERS)
        self._reference_now, self._base_now = Reference(*self._sample), BaseReference.of(self._goal)
        self._joint_plan: PlanSlot[JointTrajectory] = PlanSlot()
        self._base_plan: PlanSlot = PlanSlot()
        self._schedule: PlanSlot[ContactSchedule] = PlanSlot(early=False)
        self.plan_limits = plan_limits(robot, settings)
        self._integral = np.zeros(na)
        self._previous: Solution | None = None
        self._standing = np.ones(count, dtype=bool)
        self._at_rest = np.zeros(count)
        self._push = settings.spread_over_contacts("least_normal_force_n") / corners
        self._part_of_foot = (1.0 / corners)[:, None]
        sole_landed_m = SOLE_LANDED_M if self._balance is None else PRESSED_M
        self._landed_m = np.where(corners > 1, sole_landed_m, LANDED_M)
        self._pushes = bool(self._push.any())
        self._known = np.zeros((LANDING + 1, count), dtype=bool)
        self._foot_touches = np.zeros(len(np.bincount(feet.foot)), dtype=bool)
        self._closing, self._room = np.zeros(count), np.zeros((3, 3))
        self._joints, self._bounded = np.zeros((3, na)), np.zeros(na, dtype=np.uint8)
        self._hold = np.zeros(na)
        self._measured_q: np.ndarray | None = None
        self._task = (
            SENSED * self.sensed
            | SOLES * bool((corners > 1).any())
            | DEADBEAT * self._deadbeat
            | TORQUES * self.pid
            | BALANCED * (self._balance is not None)
        )
        self._numbers = self._period_numbers()
        self._problems = StepProblem(robot, settings)
        self._table = np.vstack([self.limits.table, *self._gains])
        self._hold_base: np.ndarray | None = None
        self._up_in_base: np.ndarray | None = None
        self._has_posture = self._lower_feet = False
        self.commanded, self._decided = np.zeros(na), np.zeros(na)
        self.delay_s = settings.command_delay_s
        self.answered: RobotState | None = None
        self._found: np.ndarray | None = None

    def _period_numbers(self) -> np.ndarray:
        settings, limits = self.settings, self.limits
        numbers = Numbers(
            settings.period_s,
            settings.contact_time_constant_s,
            settings.touchdown_time_constant_s,
            settings.touchdown_speed_m_s,
            float(settings.velocity_product_term),
            settings.contact_gap_m,
            settings.force_ramp_s,
            limits.stop_gain,
            limits.time_constant_s,
            limits.speed_margin,
            limits.power_w,
        )
        return np.array(numbers, dtype=float)

    def reset(self, state: RobotState, keep_upright: bool = False) -> None:
        """Forget plans and history; hold the posture of ``state``.

        keep_upright: ``tilt`` goes on counting from the attitude of the reset before.
        """
        self._drop_plans()
        if self._balance is not None:
            self._balance.foresight.forget()
        self._integral[:] = 0.0
        self._measured[:] = 0.0
        self._known[:] = False
        self._previous = self._found = None
        self._hold = self.robot.joints_of(state.q)
        self._joints[POSITION], self._measured_q = self._hold, state.q
        self._hold_base = state.q[:7].copy() if self.robot.floating_base else None
        if self._up_in_base is None or not keep_upright:
            self._up_in_base = self._up(state.q)
        self._decided[:] = self.commanded
        self._has_posture, self._lower_feet = True, False
        self.sources.begin()

    def hold_here(self, state: RobotState) -> None:
        """Drop the plans and hold the posture of ``state``, with feet in the air coming down."""
        moving = self._joint_plan.at(state.time_s) is not None
        self.reset(state, keep_upright=True)
        self._lower_feet = moving

    def take_over(self, other: Controller) -> None:
        """Go on where another controller of the same robot stands."""
        for name in (
            "_joint_plan",
            "_base_plan",
            "_schedule",
            "_integral",
            "_measured",
            "_hold",
            "_joints",
            "_measured_q",
            "_hold_base",
            "_up_in_base",
            "_has_posture",
            "_lower_feet",
            "commanded",
            "_decided",
            "_known",
            "_found",
            "sources",
        ):
            setattr(self, name, getattr(other, name))
        if self._balance is not None:
            self._balance.foresight.forget()
        self.sources.apply(self.settings)
        self._integral[self._gains[2] == 0.0] = 0.0
        self.feet.update(self.robot.data)  # asked for before the next step, by the markers
        self._previous = other._previous if self.model == other.model else None

    def follow_as(self, other: Controller) -> None:
        """Follow from now on what another controller of the same robot follows, which goes on too."""
        for name in ("_joint_plan", "_base_plan", "_schedule"):
            setattr(self, name, getattr(other, name).copy())
        for name in ("_hold", "_hold_base", "_has_posture", "_lower_feet", "_up_in_base"):
            setattr(self, name, getattr(other, name))
        self._integral[:] = other._integral

    def planned_state(self, t: float) -> RobotState | None:
        """Where the plans say that the robot is at time t, s; None: they do not say it of the base."""
        robot = self.robot
        q, v = robot.neutral(), np.zeros(robot.nv)
        if robot.floating_base:
            if not self._take_goal(t):
                return None
            goal = self._goal.tolist()
            turn = rotations.conjugate(goal[3:7])
            q[:7], v[:3] = goal[:7], rotations.rotate(turn, goal[7:10])
            v[3:6] = rotations.rotate(turn, goal[10:13])
        self._take_reference(t)
        robot.put_joints(q, self._sample[0])
        v[robot.actuated] = self._sample[1]
        return RobotState(t, q, v)

    def plans_at(self, t: float) -> tuple[object, object, object]:
        """The plans of joints, base and contacts that will count at time t, s, by those known now."""
        return self._joint_plan.peek(t), self._base_plan.peek(t), self._schedule.peek(t)

    def reference_at(self, t: float) -> Reference:
        """The joint motion that will be followed at time t, s, by the plans known now."""
        plan = self._joint_plan.peek(t)
        if plan is None:
            rest = np.zeros(self.robot.na)
            return Reference(self._hold, rest, rest)
        return plan.sample(t)

    def tilt(self, q: np.ndarray) -> float:
        """Angle, rad, by which a floating base tilts from its attitude at ``reset``; else 0."""
        return 0.0 if self._up_in_base is None else tilt(q, self._up_in_base)

    def _up(self, q: np.ndarray) -> np.ndarray | None:
        return up_in_base(q) if self.robot.floating_base else None

    def _drop_plans(self) -> None:
        for slot in (self._joint_plan, self._base_plan, self._schedule):
            slot.clear()

    def follow(self, plan: Plan, now_s: float) -> None:
        """Follow a plan, each part from its start on; a bad part refuses the whole plan.

        Planned joints replace every earlier plan of the joints. Where their first point lies later
        than their start, or than now, the way there is interpolated from the motion that was
        followed until then.

        Args:
            now_s: time of the last state, s; a part that starts at 0 starts now.

        Raises:
            TrajectoryError: see ``plans.checks.ready_to_follow``; the plan before goes on.
        """
        ready = ready_to_follow(plan, now_s, self._followed())
        for slot, part in (
            (self._joint_plan, ready.joints),
            (self._base_plan, ready.base),
            (self._schedule, ready.contacts),
        ):
            if part is not None:
                slot.replace(part)
        if ready.joints is not None:
            self._lower_feet = False
        if self._balance is not None:
            self._balance.foresight.forget()

    def prepare(self, plan: Plan) -> Plan:
        """The same plan, with what takes long of `follow` done: may be called by another thread."""
        return prepare(plan, self._followed())

    def _followed(self) -> Followed:
        measured = self._measured_q
        return Followed(
            self.robot.joint_names,
            [foot.frame for foot in self.feet.feet],
            self._joint_plan,
            self._hold,
            self._joints[POSITION] if self._has_posture else None,
            self.settings.plan_jump_limit,
            self.plan_limits,
            self._base_plan,
            self._hold_base,
            None if self._hold_base is None or measured is None else measured[:7],
            self.robot.locked,
            self.robot.turns,
        )

    def planned_stance(self, t: float) -> np.ndarray:
        """The contacts (n,) bool that are planned to stand at time t, s; all without a plan."""
        schedule = self._schedule.at(t)
        return self._standing if schedule is None else schedule.sample(t)

    def planned_feet(self, t: float) -> np.ndarray:
        """The same for whole feet, (f,) bool: those of which a contact is planned to stand."""
        return np.bincount(self.feet.foot, self.planned_stance(t)) > 0.0

    def measure(self, forces: np.ndarray) -> None:
        """Take the ground's forces at the contacts over the last period, (n, 3) N, world frame.

        Only models that take measured forces use them.
        """
        self._measured[1:] = self._measured[:-1]
        self._measured[0] = forces

    def measure_feet(self, forces: np.ndarray) -> None:
        """The same for forces on whole feet, (f, 3) N."""
        self.measure(self.over_contacts(forces))

    def over_contacts(self, forces: np.ndarray) -> np.ndarray:
        """Forces (n, 3) of the contacts for those of feet (f, 3): equal parts for a sole's corners."""
        return forces[self.feet.foot] * self._part_of_foot

    def step(self, state: RobotState) -> StepResult:
        """Torques for the coming period."""
        begun = time.perf_counter()
        if not self._has_posture:
            self.reset(state)
        measured, state = state, self._when_it_acts(state)
        robot, t, q, v = self.robot, state.time_s, dense(state.q), dense(state.v)
        self._measured_q = q
        # State and plan.
        following = self._follows(t)
        self._take_reference(t)
        schedule = self._schedule.at(t)
        planned = self._standing if schedule is None else schedule.sample(t)
        if self.pid:
            pin.computeJointJacobians(robot.model, robot.data, q)
        else:
            compute_dynamics(robot, q, v)
        self.feet.update(robot.data)
        # Contact set and desired acceleration; problem, solution; or torque from the errors alone.
        contact = np.empty(len(planned), dtype=bool)
        ready = self._decide(t, q, v, planned, schedule is not None, contact)
        touching = self._known[TOUCHING]
        solution, solve_time = None, 0.0
        torques, status, impulses = self._desired, self.settings.solver, _NO_IMPULSES
        if not self.pid:
            desired = self._desired if ready else self._balanced(t, q, v, touching)
            started = time.perf_counter()
            share = None
            if self.settings.force_ramp_s:
                leaves_in = None if schedule is None else schedule.leaves_in(t)
                share = self.sources.load_share(t, leaves_in)
            problem = self._problem(v, desired, contact, touching, share)
            solution = self._solve(problem)
            solve_time = time.perf_counter() - started
            torques, status, impulses = solution.torques, solution.status, solution.impulses
        # Limits, effort.
        forces = np.zeros((len(planned), 3))
        limited, acting, loss = self._limit(
            torques, impulses, contact, _NOWHERE if solution is None else forces
        )
        self.answered = state
        if self.delay_s > 0.0 and solution is not None:
            self._found = (solution.velocity - v) / self.settings.period_s
            self._take_reference(measured.time_s)
        return StepResult(
            limited,
            status,
            self._reference_now,
            forces,
            contact,
            acting != 0,
            solution,
            solve_time,
            time.perf_counter() - begun,
            loss,
            following,
            acting,
        )

    def _when_it_acts(self, state: RobotState) -> RobotState:
        """The state in which the torques will find the robot, by the last solution's accelerations.

        Before the first solution, and where there is no delay, the state itself.
        """
        delay, found = self.delay_s, self._found
        if delay <= 0.0 or found is None:
            return state
        change = (state.v + 0.5 * delay * found) * delay
        q = pin.integrate(self.robot.model, state.q, change)
        return RobotState(state.time_s + delay, q, state.v + delay * found)

    @property
    def touching(self) -> np.ndarray:
        """Which contacts stand where they should, (n,) bool; overwritten by the next step."""
        return self._known[TOUCHING]

    @property
    def joint_errors(self) -> np.ndarray:
        """Planned less measured positions of the last step, (na,) rad; overwritten by the next one."""
        return self._joints[ERROR]

    @property
    def workings(self) -> Workings:
        """Of the last step, for whoever differentiates it (``state_gain``)."""
        return Workings(
            self._wanted,
            self._acceleration,
            self.touching,
            self._known[LANDING],
            self._weights,
            self._base_now,
            self._gains,
            self._base_gains,
            self._options,
            bool(self._known[EARLY].any()),
        )

    def between_solutions(
        self, state: RobotState, torques: np.ndarray, last: StepResult
    ) -> StepResult:
        """A period of which nothing is solved: torques (na,) from elsewhere, within the same limits.

        last: of the period before.
        """
        begun = time.perf_counter()
        robot, t, joints = self.robot, state.time_s, self._joints
        following = self._follows(t)
        self._take_reference(t)
        joints[POSITION] = robot.joints_near(state.q, self._sample[0])
        joints[VELOCITY] = state.v[robot.actuated]
        joints[ERROR] = self._sample[0] - joints[POSITION]
        limited, acting, loss = self._limit(torques, _NO_IMPULSES, last.contact, _NOWHERE)
        return last._replace(
            torques=limited,
            reference=self._reference_now,
            saturated=acting != 0,
            solve_time_s=0.0,
            step_time_s=time.perf_counter() - begun,
            power_loss_w=loss,
            following=following,
            limits=acting,
        )

    def _decide(
        self,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        planned: np.ndarray,
        scheduled: bool,
        contact: np.ndarray,
    ) -> bool:
        """Contacts, and the acceleration wanted; whether `_desired` holds it, or torques.

        The closest that standing and landing feet allow, unless `Balance` is to make it.
        """
        robot, feet, sources = self.robot, self.feet, self.sources
        task = self._task
        if scheduled or self._lower_feet:
            task |= LANDS
        if robot.floating_base:
            task |= GOAL if self._take_goal(t) else NO_GOAL
        if task & NO_GOAL:
            task &= ~BALANCED
        ready: bool = before_problem(
            t,
            task,
            self._numbers,
            q,
            v,
            robot.q_index,
            robot.turns,
            robot.actuated,
            robot.jacobian_view,
            robot.supports,
            robot.coordinate_joint,
            self._sample,
            self._goal,
            self._table,
            self._base_gains,
            self._integral,
            feet.links,
            feet.foot,
            feet.points,
            feet.normals,
            feet.gaps,
            self._landed_m,
            planned,
            sources.bits,
            sources.measured(t),
            sources.since_s,
            sources.last,
            self._foot_touches,
            self._known,
            contact,
            self._closing,
            self._joints,
            self._bounded,
            self._desired,
            self._wanted,
            self._weights,
            self._acceleration,
        )
        return ready

    def _balanced(self, t: float, q: np.ndarray, v: np.ndarray, touching: np.ndarray) -> np.ndarray:
        """Joint accelerations (na,) by `Balance`."""
        self._balance.acceleration(
            t,
            q,
            v,
            self._reference_now,
            self._base_now,
            self._wanted,
            touching,
            self._known[LANDING],
            self._closing,
            self._acceleration,
        )
        # What stands is to bear: pressed on, it comes down where it does not touch yet.
        gaps = self.feet.gaps
        np.minimum(gaps, 0.0, out=gaps, where=touching)
        return self._acceleration[self.robot.actuated]

    def _problem(
        self,
        v: np.ndarray,
        desired: np.ndarray,
        contact: np.ndarray,
        touching: np.ndarray,
        share: np.ndarray | None,
    ) -> Problem:
        settings, contacts = self.settings, self.feet.select(contact, share)
        if self._unbounded:
            # Models without complementarity let it hold without load, here even before it touches.
            parting = contacts.gaps > TOUCHING_SPEED * settings.period_s
            contacts = contacts.moved(
                friction=np.where(
                    (contacts.friction >= UNBOUNDED_FRICTION) & parting, 0.0, contacts.friction
                )
            )
        return self._problems.at(v, desired, contacts, self._pushing(touching))

    def _solve(self, problem: Problem) -> Solution:
        if self.sensed:
            self._options["forces"] = self._measured[-1]
        # Not kept through an error: what caused it would be there again the next time.
        previous, self._previous = self._previous, None
        solution = solve(problem, *self.model, warm_start=previous, **self._options)
        self._previous = solution if solution.status in (SOLVED, RELAXED) else None
        return solution

    def _limit(
        self,
        torques: np.ndarray,
        impulses: np.ndarray,
        contact: np.ndarray,
        forces: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Torques (na,) that the machine can take, which limits act, W lost; the integral goes on.

        forces: gets what ground and feet exert on each other, where it has rows.
        """
        limited, acting = np.empty(self.robot.na), np.empty(self.robot.na, np.uint8)
        loss = after_problem(
            self._numbers,
            torques,
            impulses,
            self._joints,
            self._table,
            self._bounded,
            contact,
            self._known,
            self._push,
            self.feet.normals,
            self._room,
            self._integral,
            self._decided,
            self.commanded,
            limited,
            acting,
            forces,
        )
        return limited, acting, math.nan if self.loss_weights is None else loss

    def _follows(self, t: float) -> bool:
        """Whether a plan lasts at time t; one that has ended in motion becomes a posture to hold."""
        plan = self._joint_plan.at(t)
        if plan is None:
            return False
        if t < plan.end_s:
            return True
        if plan.ends_in_motion:
            self._hold = plan.positions[-1].copy()
            base = self._base_plan.at(t)
            if base is not None:
                self._hold_base = np.r_[base.positions[-1], base.quaternions_xyzw[-1]]
            self._drop_plans()
            self._lower_feet = True
        return False

    def _pushing(self, touching: np.ndarray) -> np.ndarray | None:
        """Generalized force (nv,) of the ground where it is pushed on as commanded; None: nowhere.

        What the contact model adds lies in the cone, and so does the sum.
        """
        robot, total = self.robot, None
        if not self._pushes:
            return None
        for i in np.flatnonzero(touching & (self._push > 0.0)):
            force = self._push[i] * self.feet.normals[i]
            wrench = np.concatenate([force, np.cross(self.feet.points[i], force)])
            row = robot.supports[self._links[i]] * (wrench @ robot.jacobian_view)
            total = row if total is None else total + row
        return total

    def _take_reference(self, t: float) -> None:
        """The joints' motion at time t, into `_sample`."""
        plan = self._joint_plan.at(t)
        if plan is None:
            self._sample[0], self._sample[1:] = self._hold, 0.0
        else:
            plan.fill(t, self._sample)

    def _planned_at(self, t: float) -> tuple[Reference, BaseReference, NDArray[np.bool_]] | None:
        """Joints, base and stance as planned for a later time; None where no base is."""
        joints, plan, schedule = self.plans_at(t)
        base = self._base_motion(plan, joints, t)
        if base is None:
            return None
        stance = self._standing if schedule is None else schedule.sample(t)
        return self.reference_at(t), base, stance

    def _take_goal(self, t: float) -> bool:
        """Planned motion of the base, or its pose to hold, into `_goal`; False: the legs alone decide."""
        plan = self._base_plan.at(t)
        if plan is not None:
            plan.fill(t, self._goal)
            return True
        if self._joint_plan.at(t) is not None or self._hold_base is None:
            return False
        self._goal[:7], self._goal[7:] = self._hold_base, 0.0
        return True

    def _base_motion(self, plan, joints, t: float) -> BaseReference | None:
        if plan is not None:
            return plan.sample(t)
        if joints is not None or self._hold_base is None:
            return None
        return BaseReference(self._hold_base[:3], self._hold_base[3:], *(_STILL,) * 4)


_STILL = np.zeros(3)
_NO_IMPULSES, _NOWHERE = np.zeros(0), np.zeros((0, 3))
