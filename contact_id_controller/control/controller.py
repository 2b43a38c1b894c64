"""The controller: one step from measured state to joint torques, without ROS."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.control import delay_estimate, grip, joint_velocity, motor_estimate
from contact_id_controller.control.balance import Balance
from contact_id_controller.control.contact_estimate import contact_room, forget_contacts
from contact_id_controller.control.contact_sources import ContactSources
from contact_id_controller.control.course import Course
from contact_id_controller.control.disturbance import (
    LONGEST_S,
    NOT_SEEN,
    Disturbance,
    bounds,
    room,
)
from contact_id_controller.control.effort_ceiling import refuse_above_description
from contact_id_controller.control.feedback import tilt_entry, up_in_base
from contact_id_controller.control.limits import JointLimits, joint_limits
from contact_id_controller.control.memory import Memory
from contact_id_controller.control.pending_commands import PendingCommands
from contact_id_controller.control.period import Period, PeriodSettings
from contact_id_controller.control.robot_plan_limits import plan_limits
from contact_id_controller.control.step_kernels import (
    LANDED_M,
    after_solving,
    before_solving,
    take_state,
)
from contact_id_controller.control.tasks import Tasks
from contact_id_controller.control.touch import Touch
from contact_id_controller.exceptions import (
    ConfigurationError,
    RobotDescriptionError,
    StateError,
    TrajectoryError,
    require,
)
from contact_id_controller.geometry import FeetOnGround, contact_names, feet_on
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.pyramid import UNBOUNDED_FRICTION
from contact_id_controller.kernels.reduction import TOUCHING_SPEED
from contact_id_controller.kernels.views import dense
from contact_id_controller.models import Tangential, row_of
from contact_id_controller.models.contact_model import Chosen, ContactModel
from contact_id_controller.plans.base_trajectory import BaseReference
from contact_id_controller.plans.checks import Followed, prepare, ready_to_follow
from contact_id_controller.plans.goals import TaskGoals
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.sampling import BASE_NUMBERS
from contact_id_controller.plans.trajectories import Reference
from contact_id_controller.problem import Problem, ProblemMaker, compute_dynamics
from contact_id_controller.robot import RobotModel, real_array, vector
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.controller_rows import ESTIMATE
from contact_id_controller.solution import RELAXED, SOLVED, Solution
from contact_id_controller.state import RobotState

CENTER_OF_MASS = "center_of_mass"
"""The value of ``base_feedback`` that needs `Balance`."""

SOLE_LANDED_M = 1e-3  # a sole has landed when its first corner is as near; the others follow
PRESSED_M = 1e-4  # the same where a sole that stands is pressed on at once, by what it shall bear
SOUGHT_S = 0.02  # of friction ahead of goals: long against noise of speeds, short against a swing
RESTS = 0.5  # least share of its friction that a sole uses: as much as it bears of an even share of the weight


class StepResult(NamedTuple):
    """Result of one period's step.

    torques (na,) N·m after limits; status of the solution (of feedback alone: its solver's name); reference; forces
    (n, 3) N, world frame, predicted at each foot, or corner of a flat one, zero out of contact; contact (n,) bool;
    limits (na,) uint8: active limits, bits of limits.NAMES. solve_time_s: problem and solution; step_time_s: the whole
    step.
    power_loss_w: R (torque / Kt)^2 summed over the joints, NaN without motor constants.
    following: along a plan that has not ended.
    """

    torques: np.ndarray
    status: str
    reference: Reference
    forces: np.ndarray
    contact: np.ndarray
    limits: np.ndarray
    solution: Solution | None
    solve_time_s: float
    step_time_s: float
    power_loss_w: float = math.nan
    following: bool = False

    @property
    def saturated(self) -> NDArray[np.bool_]:
        """Joints at a limit, (na,)."""
        saturated: NDArray[np.bool_] = self.limits != 0
        return saturated


PID_GAINS = {"position": 20.0, "velocity": 0.1, "integral": 3e-3}
"""Of solver pid, N·m/rad, N·m·s/rad and N·m/(rad·s): the first paper's, for comparison with its figures."""


class Workings(NamedTuple):
    """Terms of the last step's desired acceleration; arrays that the next step overwrites.

    wanted, acceleration (nv,): before and after the projection for standing and landing feet (n,) bool;
    weights (nv,) of that; base: its goal. gains: of position, velocity and integral of the joints;
    base_gains (4, 3): of the base's linear and angular position and velocity. options: of the model.
    stops_early: a foot is being stopped within the period. rotors (na,): inertia beyond the model's, kg m^2.
    friction_slope (na,): derivative of the friction torque by the joint's position, N·m/rad.
    """

    wanted: np.ndarray
    acceleration: np.ndarray
    standing: np.ndarray
    landing: np.ndarray
    weights: np.ndarray
    base: BaseReference
    gains: list[np.ndarray]
    base_gains: np.ndarray
    options: Chosen
    stops_early: bool
    rotors: np.ndarray
    friction_slope: np.ndarray


SUPPLIED = ("torque_limits", "weights", "forces")
"""The options of contact models that the controller knows: limits and loss of the motors, and the
measured contact forces."""


def effective_row(settings: ControllerSettings) -> ContactModel:
    """Row of the model that solves the settings' problem.

    With unbounded friction everywhere it is the model that the row names for that limit.
    """
    row = row_of(settings.friction, settings.solver)
    unbounded = min(settings.friction_coefficient) >= UNBOUNDED_FRICTION
    return row_of(*row.without_slip) if unbounded and row.without_slip else row


def loss_weights(robot: RobotModel, settings: ControllerSettings) -> NDArray[np.float64] | None:
    """R/Kt^2 (na,) of the motors, W/(N·m)^2; None if they are not known."""
    if not settings.motor_constant_nm_sqrt_w:
        return None
    weights: NDArray[np.float64] = settings.spread("motor_constant_nm_sqrt_w", robot.na) ** -2.0
    return weights


class StepSolver:
    """Makes and solves the problems of one controller.

    Args:
        robot, feet, settings: as for the controller.  row: of the model.  period: of the controller.
        limits: of the motors.

    Attributes:
        options: of the model.  period: of the controller.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: FeetOnGround,
        settings: ControllerSettings,
        row: ContactModel,
        period: Period,
        limits: JointLimits,
    ):
        self._robot, self._feet, self.period, self._row = robot, feet, period, row
        self._period_s = settings.period_s
        self._problems = ProblemMaker(
            robot,
            settings.period_s,
            velocity_product_term=settings.velocity_product_term,
            contact_time_constant_s=settings.contact_time_constant_s,
            penetration_gain=settings.penetration_gain,
        )
        self._pushes = bool(period.settings.push_n.any())
        self._disturbed = bool(period.settings.bounds.any())
        kp, kd = period.settings.position_gain, period.settings.velocity_gain
        self._pace = 0.5 * (kd - np.sqrt(np.maximum(kd**2 - 4.0 * kp, 0.0)))
        self._measured = row.takes("forces")
        self._soles = period.settings.estimates and period.settings.soles
        self._unbounded = (
            row_of(settings.friction, settings.solver).tangential is Tangential.COULOMB
            and max(settings.friction_coefficient) >= UNBOUNDED_FRICTION
        )
        supplied = limits.effort, loss_weights(robot, settings), None
        self.options = row.complete(
            row.keywords(settings, dict(zip(SUPPLIED, supplied, strict=True)))
        )

    def problem(
        self,
        t: float,
        acceleration: NDArray[np.float64],
        share: NDArray[np.float64] | None,
        by_goals: bool,
    ) -> Problem:
        """Make the problem of the period's contacts at time t, s.

        Args:
            acceleration: (na,) rad/s2.  share: (n,) of the load, None: 1.
            by_goals: the joints follow goals, no plan of their own.
        """
        period = self.period
        contacts = self._feet.select(period.contact, share)
        friction = believed = contacts.friction
        if self._unbounded:
            # Models without complementarity let it hold without load, here even before it touches.
            parting = contacts.gaps > TOUCHING_SPEED * self._period_s
            friction = np.where((friction >= UNBOUNDED_FRICTION) & parting, 0.0, friction)
        if period.slips[0]:
            friction = np.minimum(friction, period.grip[period.contact])
        if self._soles:
            borne = period.pressure[period.contact] / period.settings.share_n
            used = friction * np.clip(borne, RESTS, 1.0)
            friction = np.where(friction < UNBOUNDED_FRICTION, used, friction)
        if friction is not believed:
            contacts = contacts.at(friction=friction)
        known = period.external.copy() if self._disturbed else None
        if self._pushes:
            known = self._pushing(known)
        if period.rubs[0]:
            known = np.zeros(self._robot.nv) if known is None else known
            goal = acceleration if by_goals else None
            known[self._robot.actuated] -= self._friction(t, period, goal)
        return self._problems.at(period.v, acceleration, contacts, known)

    def friction_slope(self) -> NDArray[np.float64]:
        """Derivative (na,), N·m/rad, of `_friction` by the joints' positions, on which its speeds depend."""
        period = self.period
        (dry, viscous, width), (_, more_dry, more_viscous) = period.settings.friction, period.motors
        speed = period.reference[1] + self._pace * period.error
        turns = 1.0 - np.tanh(speed / width) ** 2
        slope: NDArray[np.float64] = (dry + more_dry) * turns / width + viscous + more_viscous
        return -self._pace * slope

    def _friction(
        self, t: float, period: Period, acceleration: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Friction of the joints (na,), N·m, modelled and estimated, at the speeds with which errors return.

        Those of the plan, and of its error with the slower root of the feedback. They do not depend on the measured
        speed: friction at that one would make torque chatter about rest. Goals, which joints follow away from their
        posture, give an acceleration (na,) only: the speed is its integral, which returns to the measured one within
        `SOUGHT_S` and begins there if the last step was longer before t, s.
        """
        (dry, viscous, width), (_, more_dry, more_viscous) = period.settings.friction, period.motors
        measured, sought = period.v[self._robot.actuated], period.sought[:-1]
        since = t - period.sought[-1]
        period.sought[-1] = t
        if acceleration is None:
            sought[:] = measured
            speed = period.reference[1] + self._pace * period.error
        else:
            if not 0.0 <= since < SOUGHT_S:
                sought[:], since = measured, self._period_s
            np.copyto(sought, measured, where=~np.isfinite(sought))
            kept = math.exp(-since / SOUGHT_S)
            sought *= kept
            sought += (1.0 - kept) * (measured + SOUGHT_S * acceleration)
            speed = sought
        taken: NDArray[np.float64] = (viscous + more_viscous) * speed
        taken += (dry + more_dry) * np.tanh(speed / width)
        return taken

    def solve(
        self,
        problem: Problem,
        warm_start: Solution | None,
        forces: NDArray[np.float64],
    ) -> Solution:
        """Solve the problem; forces (n, 3) N: measured on all contacts, for models that use them."""
        options = self.options.but(forces=forces) if self._measured else self.options
        solution: Solution = self._row.function(problem, options, warm_start)
        return solution

    def _pushing(self, known: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Known generalized forces (nv,) plus those of the ground at contacts with a commanded pressing force.

        The contact model's forces lie in the cone, and so does their sum with these.
        """
        period, total = self.period, known
        push, links = period.pressed, period.settings.links
        for i in np.flatnonzero(period.touching & (push > 0.0)):
            force = push[i] * period.normals[i] + period.rubbed[i]
            wrench = np.concatenate([force, np.cross(period.points[i], force)])
            row = self._robot.supports[links[i]] * (wrench @ self._robot.jacobian_view)
            total = row if total is None else total + row
        return total


class Controller:
    """Feedback, contact set, contact inverse dynamics and limits for one robot.

    Holds the posture of ``reset``, or of the first state, until a trajectory is set; and the last
    one of a plan that ends in motion without another one, with all feet on the ground.

    Args:
        feet: contacts of the feet if the ground is not the plane of the settings
            (``TerrainFeet``).

    Attributes:
        feet: the n contacts.  contact_names: theirs.  plan_limits: those of plans.
        period: arrays of the last step.  memory: state kept for the next step.
        commanded: (na,) N·m, torques sent to the robot in the last period (`sent`); read only.
        delay_s: time until the torques of a step act, s: they are for the state predicted for then.
        tasks: follow goals; None if goals are not followed.
        disturbance: observed disturbance of the base; None if it is not observed.

    Raises:
        ConfigurationError, UnknownFrameError, UnknownModelError: settings do not fit the robot.
    """

    def __init__(
        self, robot: RobotModel, settings: ControllerSettings, feet: FeetOnGround | None = None
    ):
        require("robot", robot, RobotModel, RobotDescriptionError)
        require("settings", settings, ControllerSettings, ConfigurationError)
        self.robot, self.settings = robot, settings
        self._shapes = (robot.nq,), (robot.nv,)
        self._seen: tuple[np.ndarray, np.ndarray] = _NOTHING, _NOTHING
        self.row = effective_row(settings)
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
        refuse_above_description(robot, settings)
        self.limits = joint_limits(robot, settings)
        self.effort_limits = self.limits.effort
        self.plan_limits = plan_limits(robot)
        self.loss_weights = loss_weights(robot, settings)
        self._balance: Balance | None = None
        self.tasks: Tasks | None = None
        if settings.base_feedback == CENTER_OF_MASS:
            if not robot.floating_base:
                raise ConfigurationError(
                    f"parameter 'base_feedback' is '{CENTER_OF_MASS}', but the robot's base is fixed"
                )
            self._balance = Balance(robot, feet, settings, self._planned_at)
            if not self.pid:
                self.tasks = Tasks(robot, feet, settings)
        self.sources = ContactSources(feet.foot, settings)
        self.period, self._data = self._make_period(), robot.data
        self._open()
        forces = np.zeros((settings.sensed_delay, len(feet), 3))
        course, pending = Course(robot, len(feet)), PendingCommands(robot.nv)
        self.memory = Memory(self.period, course, self.sources, forces, pending)
        bounded = bool(self.period.settings.bounds.any())
        self._observes = bounded or self.period.settings.estimates
        self.disturbance = Disturbance(robot, self.period) if bounded else None
        push_n = self.period.settings.push_n
        if push_n.any() and not robot.floating_base and not self.pid:
            friction = settings.spread_over_contacts("friction_coefficient")
            self.memory.touch = Touch(robot, feet, push_n, friction)
        self._by_measurement = bool(settings.measured)
        if self.period.settings.estimates:
            feet.level = False
        self._solver: StepSolver | None = None
        if not self.pid:
            self._solver = StepSolver(robot, feet, settings, self.row, self.period, self.limits)
        self.delay_s = settings.command_delay_s
        self._answered: RobotState | None = None
        self._corrected, self._filters = False, settings.joint_velocity_filter_s > 0.0

    def _open(self) -> None:
        """Compiled entries of a step, called directly: it chooses the types of their arguments; and views."""
        self.commanded = self.period.commanded.view()
        self.commanded.flags.writeable = False
        self._take = direct(take_state, *2 * (_NOTHING,), 0.0, self.period)
        self._before = direct(before_solving, 0.0, True, True, self.period)
        self._after = direct(after_solving, 0.0, *3 * (_NOTHING,), True, 0.0, self.period)
        self._reference = Reference(*self.period.reference)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in _MADE_ANEW}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def _make_period(self) -> Period:
        """Allocate the arrays of one control period; feet, sources and the Jacobian are views."""
        robot, feet, count = self.robot, self.feet, len(self.feet)
        flags = (
            "planned",
            "measured",
            "contact",
            "touching",
            "landing",
            "landed",
            "lifted",
            "early",
        )
        joints = (
            "position",
            "velocity",
            "error",
            "integral",
            "desired",
            "limited",
            "decided",
            "commanded",
        )
        settings = self._make_settings()
        return Period(
            settings=settings,
            q=robot.neutral(),
            v=np.zeros(robot.nv),
            **self._views(),
            **room(robot, count),
            **contact_room(count),
            **grip.room(count),
            **motor_estimate.room(robot),
            **delay_estimate.room(robot),
            **joint_velocity.room(robot.na),
            reference=np.zeros((3, robot.na)),
            base_goal=np.zeros(BASE_NUMBERS),
            points=feet.points,
            normals=feet.normals,
            gaps=feet.gaps,
            rise=feet.rise,
            since_s=self.sources.since_s,
            last=self.sources.last,
            foot_touches=np.zeros(int(feet.foot.max(initial=-1)) + 1, dtype=bool),
            closing=np.zeros(count),
            bounded=np.zeros(robot.na, dtype=np.uint8),
            wanted=np.zeros(robot.nv),
            weights=np.full(robot.nv, self.settings.joint_weight),
            acceleration=np.zeros(robot.nv),
            acting=np.zeros(robot.na, dtype=np.uint8),
            forces=np.zeros((count, 3)),
            frame=np.zeros((3, 3)),
            pressed=settings.push_n.copy(),
            rubbed=np.zeros((count, 3)),
            parting=np.zeros((count, robot.nv)),
            sought=np.full(robot.na + 1, -np.inf),
            **{name: np.zeros(count, dtype=bool) for name in flags},
            **{name: np.zeros(robot.na) for name in joints},
        )

    def _can_observe(self) -> bool:
        """Whether disturbances can be observed: the base floats, and the model gives forces to separate from them."""
        return self.robot.floating_base and not self.pid and self.row.predicts_forces

    def _can_estimate(self, corners: np.ndarray) -> bool:
        """Whether contact is estimated: enabled by settings, and for feet whose legs can detect contact.

        With delayed torques the predicted states contain errors of the solutions, which would be taken for contact.
        Not if solutions are too far apart; nor for soles under `Balance`, which presses them on the ground.
        """
        settings, feet = self.settings, self.feet
        return (
            ESTIMATE in settings.contact_sources
            and settings.period_s * max(1, settings.solve_every) <= LONGEST_S
            and self._can_observe()
            and not self.sensed
            and bool((np.diff(feet.foot) >= 0).all())
            and (self._balance is None or bool((corners == 1).all()))
            and not self._deadbeat
        )

    def _make_settings(self) -> PeriodSettings:
        """Constants of the compiled step: indices, thresholds of contact, gains, limits."""
        robot, feet, settings = self.robot, self.feet, self.settings
        begins = np.searchsorted(feet.foot, np.arange(int(feet.foot.max(initial=-1)) + 2))
        corners = np.bincount(feet.foot)[feet.foot]  # of the foot that each contact is part of
        self._part_of_foot = (1.0 / corners)[:, None]
        # Contact that stops a foot within the period foresees impacts; slower contact does not, and
        # feet that land early are better left to their feedback. They must be able to part again.
        self._deadbeat = (
            settings.contact_time_constant_s == settings.period_s
            and self.row.predicts_forces
            and not self.row.holds_touching
        )
        estimates = self._can_estimate(corners)
        pressed = self._balance is not None or (
            estimates and settings.joint_velocity_filter_s > 0.0
        )
        sole_landed_m = PRESSED_M if pressed else SOLE_LANDED_M
        kp, kd, ki = (
            np.full(robot.na, gain)
            if self.pid
            else np.array(settings.spread(f"joint_{part}_gain", robot.na), dtype=float)
            for part, gain in PID_GAINS.items()
        )
        parts = "linear_position", "linear_velocity", "angular_position", "angular_velocity"
        return PeriodSettings(
            q_index=robot.q_index,
            actuated=robot.actuated,
            turns=robot.turns,
            supports=robot.supports,
            coordinate_joint=robot.coordinate_joint,
            links=feet.links,
            foot=feet.foot,
            begins=begins,
            landed_m=np.where(corners > 1, sole_landed_m, LANDED_M),
            radii=np.array([foot.radius_m for foot in feet.feet], dtype=float),
            share_n=robot.weight / max(1, len(begins) - 1),
            estimates=estimates,
            joint_weight=float(settings.joint_weight),
            push_n=settings.spread_over_contacts("least_normal_force_n") / corners,
            sources=self.sources.bits,
            has_base=robot.floating_base,
            sensed=self.sensed,
            soles=bool((corners > 1).any()),
            deadbeat=self._deadbeat,
            torques_only=self.pid,
            balanced=self._balance is not None,
            period_s=float(settings.period_s),
            contact_time_constant_s=float(settings.contact_time_constant_s),
            touchdown_time_constant_s=float(settings.touchdown_time_constant_s),
            touchdown_speed_m_s=float(settings.touchdown_speed_m_s),
            contact_gap_m=float(settings.contact_gap_m),
            ramp_s=float(settings.force_ramp_s),
            drift_share=float(settings.velocity_product_term),
            position_gain=kp,
            velocity_gain=kd,
            integral_gain=ki,
            bounds=bounds(robot, settings.disturbance_limit)
            if self._can_observe()
            else np.zeros(2),
            friction=np.array(robot.motors[1:]),
            lags=0 if settings.command_delay_s else delay_estimate.lags(settings.period_s),
            velocity_filter_s=float(settings.joint_velocity_filter_s),
            base_gains=np.array([settings.spread(f"base_{part}_gain", 3) for part in parts]),
            limits=self.limits,
        )

    def reset(self, state: RobotState, keep_upright: bool = False) -> None:
        """Reset plans and history; hold the posture of ``state``.

        keep_upright: ``tilt`` continues to count from the attitude of the previous reset.

        Raises:
            StateError: a state of another shape, or not finite.
        """
        self._look_at_arrays(state)
        q, v = self._seen
        if not np.isfinite(q).all() or not np.isfinite(v).all():
            raise StateError("q and v of the state must be finite")
        memory, period = self.memory, self.period
        self._plan_changed()
        memory.forget(keep_ground=keep_upright)
        memory.course.hold(q)
        period.position[:], period.q[:] = memory.course.posture, q
        if self.robot.floating_base and (memory.up_in_base is None or not keep_upright):
            memory.up_in_base = up_in_base(period.q)

    def _look_at_arrays(self, state: RobotState) -> RobotState:
        """Keep a state's arrays as kernels take them, which often are those of the next one; return a state with them.

        Raises:
            StateError: no state, no numbers, or not as many as this robot has.
        """
        require("state", state, RobotState, StateError)
        shapes = np.shape(state.q), np.shape(state.v)
        if shapes != self._shapes:
            (q, v), got = self._shapes, shapes
            raise StateError(f"q and v must have shapes {q} and {v}, got {got[0]} and {got[1]}")
        self._seen = real_array("q", state.q, StateError), real_array("v", state.v, StateError)
        kept = self._seen[0] is state.q and self._seen[1] is state.v
        return state if kept else RobotState(state.time_s, *self._seen)

    @property
    def measured(self) -> str:
        """Kind of topic from which measured contact comes, force or state; empty: none. A sensed model needs forces."""
        return "force" if self.sensed else self.settings.measured

    def _plan_changed(self) -> None:
        if self._balance is not None:
            self._balance.preview.forget()

    def hold_here(self, state: RobotState, keep_upright: bool = True) -> None:
        """Drop the plans and hold the posture of ``state``; feet in the air come down. keep_upright: as in `reset`."""
        course, t = self.memory.course, state.time_s
        moving = course.joints.at(t) is not None or course.goals.at(t) is not None
        self.reset(state, keep_upright)
        self.memory.course.lower_feet = moving

    def take_over(self, other: Controller) -> None:
        """Continue with the plans and state of another controller of the same robot."""
        memory = self.memory
        memory.restore(other.memory)
        if self.tasks is None and memory.course.has_goals:
            memory.course.hold(self.period.q)  # nothing here follows them
            memory.course.lower_feet = True
        if not self._observes or self.settings.solve_every != 1:
            grip.forget(self.period)  # it would never learn otherwise
        if not (other.period.settings.estimates and self.period.settings.estimates):
            forget_contacts(self.period)  # what is not estimated would stay as it was
        self._plan_changed()
        self.sources.apply(self.settings)
        memory.period.integral[self.period.settings.integral_gain == 0.0] = 0.0
        self.feet.update(self.robot.data)  # read before the next step, by the markers
        if self.model != other.model:
            memory.solution = None

    def follow_as(self, other: Controller) -> None:
        """Follow the same plans as another controller of the same robot, which continues too."""
        self.memory.follow_as(other.memory)
        self._observes = False

    def sent(self, torques: np.ndarray) -> None:
        """Record that the robot gets these torques (na,), N·m, in this period instead of those of the step."""
        self.period.commanded[:] = torques

    def act_after(self, delay_s: float) -> None:
        """Set the delay of torques, s."""
        self.delay_s = delay_s

    def _planned_at(self, t: float) -> tuple[Reference, BaseReference, np.ndarray] | None:
        """See ``Course.planned_at``; a method, of which a copy of the controller has its own."""
        return self.memory.course.planned_at(t)

    def planned_state(self, t: float) -> RobotState | None:
        """Planned state at time t, s; None without a plan of the base."""
        return self.memory.course.state_at(t)

    def plans_at(self, t: float) -> tuple[object, object, object]:
        """Plans of joints, base and contacts that will be active at time t, s, of those received so far."""
        return self.memory.course.plans_at(t)

    def reference_at(self, t: float) -> Reference:
        """Joint motion at time t, s, by the plans received so far."""
        return self.memory.course.reference_at(t)

    def tilt(self, q: np.ndarray) -> float:
        """Angle, rad, between a floating base's z axis and its direction at ``reset``, of q (nq,); else 0.

        Raises:
            StateError: another shape, or no numbers.
        """
        up = self.memory.up_in_base
        if up is None:
            return 0.0
        if q is not self._seen[0]:
            q = vector("q", q, self.robot.nq)
        angle: float = tilt_entry()(q, up)
        return angle

    def follow(self, plan: Plan, now_s: float) -> None:
        """Follow a plan, each part from its start on; an invalid part refuses the whole plan.

        Planned joints replace every earlier plan of the joints. If their first point lies later
        than their start, or than now, the approach is interpolated from the motion that was
        followed until then.

        Args:
            now_s: time of the last state, s; a part that starts at 0 starts now.

        Raises:
            TrajectoryError: see ``plans.checks.ready_to_follow``; the plan before continues.
        """
        require("plan", plan, Plan, TrajectoryError)
        if not math.isfinite(now_s):
            raise TrajectoryError(f"now_s must be a finite time in seconds, got {now_s}")
        self.memory.course.follow(ready_to_follow(plan, now_s, self._followed()), now_s)
        self._plan_changed()

    def prepare(self, plan: Plan) -> Plan:
        """Do the slow part of `follow` for a plan; may be called by another thread."""
        return prepare(plan, self._followed())

    def _followed(self) -> Followed:
        """State against which a new plan is checked: the followed plan and the commanded pose."""
        course, period, tasks = self.memory.course, self.period, self.tasks
        return Followed(
            self.robot.joint_names,
            [foot.frame for foot in self.feet.feet],
            course.joints,
            course.posture,
            period.position if course.is_set else None,
            self.settings.plan_jump_limit,
            self.plan_limits,
            course.base,
            course.base_pose,
            None if course.base_pose is None else period.q[:7],
            self.robot.locked,
            self.robot.turns,
            takes_goals=self.tasks is not None,
            feet_measured=self._places_of_feet()
            if self.tasks and course.base_pose is not None
            else None,
            others=() if tasks is None else tasks.others,
            places_of=None if tasks is None else lambda frames: tasks.places_of(frames, period.q),
            goals=course.goals,
            floating_base=self.robot.floating_base,
        )

    def _places_of_feet(self) -> np.ndarray:
        """Middles (f, 3), m, world, of the feet's contacts in the last step."""
        foot, points = self.feet.foot, self.period.points
        count = np.maximum(np.bincount(foot), 1)
        return np.stack([np.bincount(foot, axis) / count for axis in points.T], axis=1)

    def goal_errors(self) -> tuple[float, int, float] | None:
        """``Tasks.errors`` of the last step; None without goals."""
        goals = self.memory.course.goals.current
        if goals is None or self.tasks is None:
            return None
        return self.tasks.errors(goals, self.period)

    def planned_stance(self, t: float) -> np.ndarray:
        """Planned contacts (n,) bool at time t, s; all without a plan."""
        return self.memory.course.stance(t)

    def planned_feet(self, t: float) -> np.ndarray:
        """Feet (f,) bool with a planned contact at time t, s."""
        return np.bincount(self.feet.foot, self.planned_stance(t)) > 0.0

    def measure(self, forces: np.ndarray) -> None:
        """Remember the measured ground forces at the contacts over the last period, (n, 3) N, world frame.

        Those of the periods before are kept, too. Only models that take measured forces use them.
        """
        kept = self.memory.forces
        kept[1:] = kept[:-1]
        kept[0] = forces

    def measure_feet(self, forces: np.ndarray) -> None:
        """As ``measure``, for forces on feet, (f, 3) N, world frame."""
        self.measure(self.over_contacts(forces))

    def over_contacts(self, forces: np.ndarray) -> np.ndarray:
        """Distribute forces of feet (f, 3) to contacts (n, 3): equal parts for a sole's corners."""
        return forces[self.feet.foot] * self._part_of_foot

    def step(self, state: RobotState) -> StepResult:
        """Compute the torques for the coming period; StateError for a state of another shape, or not finite."""
        begun = time.perf_counter()
        memory, robot = self.memory, self.robot
        q, v = self._seen
        if not isinstance(state, RobotState) or state.q is not q or state.v is not v:
            state = self._look_at_arrays(state)
        if not memory.course.is_set:
            self.reset(state)
        # State, predicted for when the torques act, and plan.
        data, measured = robot.data, state
        period = self.period if data is self._data else self._move_to_thread(data)
        delay_s = self._take(*self._seen, self.delay_s, period)
        if delay_s > 0.0 and memory.pending:
            state = memory.pending.state_at(robot, state, state.time_s + delay_s)
            period.q[:], period.v[:] = state.q, state.v
        course, t = memory.course, state.time_s
        corrected = self._filters and joint_velocity.correct_velocities(t, period)
        following, has_goal, schedule = course.sample(
            t, period.reference, period.base_goal, period.planned
        )
        if self._solver is None:
            pin.computeJointJacobians(robot.model, data, period.q)
        else:
            compute_dynamics(robot, period.q, period.v)
        self.feet.update(data)
        if self._by_measurement:
            period.measured[:] = self.sources.measured(t)
        if memory.touch is not None:
            memory.touch.look(t, course, period)
        goals = course.goals.current
        if goals is not None and self.tasks is not None:
            self.tasks.look(t, goals, course, period)
        # Contact set and desired acceleration; problem, solution; or torque from the errors alone.
        lands = schedule is not None or course.lower_feet
        ready = self._before(t, has_goal, lands, period)
        if memory.touch is not None:
            memory.touch.settle(t, period)
        solution, solve_time, velocity = None, 0.0, _NOTHING
        torques, status, impulses = period.desired, self.settings.solver, _NOTHING
        if self._solver is not None:
            plain, share = ready and goals is None, None
            desired = period.desired if plain else self._desired(t, ready, goals)
            started = time.perf_counter()
            if self.settings.force_ramp_s:
                leaves_in = None if schedule is None else schedule.leaves_in(t)
                share = self.sources.load_share(t, leaves_in)
            problem = self._solver.problem(t, desired, share, goals is not None)
            # Not kept through an error: what caused it would be there again the next time.
            previous, memory.solution = memory.solution, None
            solution = self._solver.solve(problem, previous, memory.forces[-1])
            if solution.status in (SOLVED, RELAXED):
                memory.solution = solution
            solve_time = time.perf_counter() - started
            torques, status, impulses = solution.torques, solution.status, solution.impulses
            if memory.solution is not None:
                velocity = solution.velocity
        # Disturbance, limits, effort.
        seen_s = (-math.inf if memory.solution is None else t) if self._observes else NOT_SEEN
        heat = self._after(t, torques, impulses, velocity, solution is not None, seen_s, period)
        self._answered, self._corrected = state, corrected
        if delay_s > 0.0 and solution is not None:
            acceleration = (solution.velocity - period.v) / self.settings.period_s
            memory.pending.add(measured.time_s + delay_s, acceleration)
            course.take(measured.time_s, period.reference)
        decided = (
            period.limited.copy(),
            status,
            self._reference,
            period.forces.copy(),
            self._contact(),
            period.acting.copy(),
            solution,
            solve_time,
            time.perf_counter() - begun,
            math.nan if self.loss_weights is None else heat,
            following,
        )
        result: StepResult = _new(StepResult, decided)  # a third of the time of its constructor
        return result

    def _contact(self) -> np.ndarray:
        """Contacts (n,) bool, a copy: those of the problem, and those that slide by plan."""
        contact, touch = self.period.contact.copy(), self.memory.touch
        return contact if touch is None else contact | touch.slides

    def _move_to_thread(self, data: Any) -> Period:
        """Let the period's arrays view the calling thread's Pinocchio data."""
        self._data = data
        self.period = self.memory.period = self.period.changed(**self._views())
        if self._solver is not None:
            self._solver.period = self.period
        return self.period

    def _views(self) -> dict[str, np.ndarray]:
        """Views of the calling thread's Pinocchio data, by the period's names."""
        robot = self.robot
        return {
            "jacobian": robot.jacobian_view,
            "inertia": robot.mass_matrix_view,
            "bias": robot.nonlinear_effects_view,
        }

    @property
    def answered(self) -> RobotState | None:
        """State for which the last torques were computed, joint velocities filtered; None before the first step."""
        state = self._answered
        if state is None or not self._corrected:
            return state
        return RobotState(state.time_s, state.q, self.period.v.copy())

    @property
    def touching(self) -> np.ndarray:
        """Planned contacts that touch, (n,) bool; overwritten by the next step."""
        return self.period.touching

    @property
    def felt_contacts(self) -> np.ndarray | None:
        """Estimated contacts (n,) bool, a copy; None if contact is not estimated."""
        return self.period.stands.copy() if self.period.settings.estimates else None

    @property
    def workings(self) -> Workings:
        """Terms of the last step, for its derivative (``state_gain``)."""
        period, settings = self.period, self.period.settings
        return Workings(
            period.wanted,
            period.acceleration,
            period.touching,
            period.landing,
            period.weights,
            BaseReference.of(period.base_goal),
            [settings.position_gain, settings.velocity_gain, settings.integral_gain],
            settings.base_gains,
            Chosen() if self._solver is None else self._solver.options,
            bool(period.early.any()),
            period.motors[0],
            np.zeros(self.robot.na)
            if self._solver is None or self.memory.course.goals.current is not None
            else self._solver.friction_slope(),
        )

    def between_solutions(
        self, state: RobotState, torques: np.ndarray, last: StepResult
    ) -> StepResult:
        """Step without a solution: torques (na,) from elsewhere, within the same limits.

        last: result of the period before.
        """
        begun = time.perf_counter()
        robot, period = self.robot, self.period
        following = self.memory.course.take(state.time_s, period.reference)
        period.position[:] = robot.joints_near(state.q, period.reference[0])
        period.velocity[:] = state.v[robot.actuated]
        period.error[:] = period.reference[0] - period.position
        heat = self._after(
            state.time_s, dense(torques), _NOTHING, _NOTHING, False, NOT_SEEN, period
        )
        return last._replace(
            torques=period.limited.copy(),
            reference=self._reference,
            limits=period.acting.copy(),
            solve_time_s=0.0,
            step_time_s=time.perf_counter() - begun,
            power_loss_w=math.nan if self.loss_weights is None else heat,
            following=following,
        )

    def _desired(self, t: float, ready: bool, goals: TaskGoals | None) -> np.ndarray:
        """Joint accelerations (na,), rad/s^2: by `Tasks` for goals, the period's if complete, else by `Balance`."""
        if goals is not None and self.tasks is not None:
            self.tasks.acceleration(goals, self.period)
            return self._borne()
        return self.period.desired if ready else self._balanced(t)

    def _balanced(self, t: float) -> np.ndarray:
        """Joint accelerations (na,), rad/s^2, by `Balance` at time t, s.

        It writes (nv,) into ``period.acceleration``.
        """
        period, balance = self.period, self._balance
        assert balance is not None, "the period's acceleration is complete without it"
        balance.acceleration(
            t,
            period.q,
            period.v,
            self._reference,
            BaseReference.of(period.base_goal),
            period.wanted,
            period.touching,
            period.landing,
            period.closing,
            period.acceleration,
        )
        return self._borne()

    def _borne(self) -> np.ndarray:
        """Joint accelerations (na,), rad/s^2; sets positive gaps of touching contacts to 0, so that they are loaded."""
        period = self.period
        np.minimum(period.gaps, 0.0, out=period.gaps, where=period.touching)
        return period.acceleration[self.robot.actuated]


_NOTHING = np.zeros(0)
_MADE_ANEW = "_take", "_before", "_after", "_reference", "commanded"  # in a copy
_new: Any = tuple.__new__
