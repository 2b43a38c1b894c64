"""Kinodynamic plans: momentum problem and whole-body problem solved in turn until they agree.

    h   = argmin over forces   w |h - (h_kin - lambda)|^2        momentum.py
    q   = argmin over motions  w |h_kin(q) - (h + lambda)|^2     whole_body.py
    lambda <- lambda + h - h_kin(q)                              (plain: lambda = 0)

h are the CoM at the knots and the angular momentum in the middle of the intervals. The first pass
tracks a CoM above the feet, at rest, with a small weight of the whole body's angular momentum. The resulting
trajectories have exactly the CoM of the forces; the difference of the angular momenta is reported.

Source: Herzog, Schaal, Righetti, "Structured contact force optimization for kinodynamic motion
generation", algorithm 1; the multipliers are those of the scaled alternating direction method.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.planning.kinodynamic.between_knots import (
    FineMotion,
    between_knots,
    trajectories,
)
from contact_id_controller.planning.kinodynamic.clearance import swing_heights
from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan, Sole
from contact_id_controller.planning.kinodynamic.momentum import MomentumPlan, solve_momentum
from contact_id_controller.planning.kinodynamic.momentum_problem import (
    MomentumReference,
    MomentumWeights,
    build_momentum_problem,
)
from contact_id_controller.planning.kinodynamic.placement import is_flat
from contact_id_controller.planning.kinodynamic.standing import (
    carried_along,
    reach,
    require_whole_body,
)
from contact_id_controller.planning.kinodynamic.swing import foot_motion
from contact_id_controller.planning.kinodynamic.torques import PlannedTorques, planned_torques
from contact_id_controller.planning.kinodynamic.violations import (
    refuse_beyond_limits,
    refuse_missed,
)
from contact_id_controller.planning.kinodynamic.whole_body import (
    DEFAULT_WEIGHTS,
    MotionProblem,
    MotionWeights,
    WholeBodyMotion,
    solve_motion,
)
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.forces import PlannedForces
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.trajectories import ContactSchedule, JointTrajectory
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.kinodynamic_planner import KinodynamicSettings

FIRST = MomentumWeights()
FOLLOWING = MomentumWeights(com=(200.0,) * 3, velocity=(20.0,) * 3, spin=(500.0,) * 3)
"""Weights of the momentum problem in the first pass, and from the second on, when it tracks a whole-body motion."""
SOLE_FORCE = (10.0, 10.0, 10.0)
"""Their weights of forces at flat soles: the centre of pressure stays in the middle of soles, and moves from one to the
next during double support. With .1 the centre of mass sways by a quarter less, but soles loaded on an edge tip about it
under model errors. Point feet keep .1: two of them cannot share the weight at will."""


PLAIN, MULTIPLIERS = "plain", "multipliers"
"""Values of ``consensus`` of `plan_motion`."""

PASSES = 2
"""Number of passes, as in the paper: after it the two plans of its scene and of ours differ by less than their
tolerances (results/reproduced.md)."""

GRID_S = 0.035
"""Largest time between two points of the trajectories, at which feet and centre of mass are exact. Half of the
paper's time step."""

JOINT_LIMIT_MARGIN = 0.03
"""Distance of the plan from the joint limits, rad (m): what a controller needs for corrections, short of the soft
stops that begin .05 before an end."""

FIRST_SPIN = 0.1
"""Factor on the whole body's weight of angular momentum in the first pass, so that arms need not compensate the
legs."""


class Pass(NamedTuple):
    """One pass of the alternation: computing effort, and the disagreement of the two plans after it.

    Attributes:
        number: from 1 on.
        momentum_steps, momentum_s, motion_iterations, motion_s: iterations and computing time of the two solvers.
        com: largest distance of the CoMs, m.  momentum: of the linear momenta, kg m/s.
        angular_momentum: of the angular momenta, kg m2/s.
        forces, motion: the two plans.
        middle_momentum: angular, of the force plan in the middle of the intervals, rows as those of ``motion``.
    """

    number: int
    momentum_steps: int
    momentum_s: float
    motion_iterations: int
    motion_s: float
    com: float
    momentum: float
    angular_momentum: float
    forces: MomentumPlan
    motion: WholeBodyMotion
    middle_momentum: np.ndarray

    def line(self) -> str:
        """One line of text for the pass."""
        return (
            f"pass {self.number}: forces {self.momentum_steps} steps {1e3 * self.momentum_s:.0f} ms, "
            f"whole body {self.motion_iterations} steps {1e3 * self.motion_s:.0f} ms; apart: "
            f"CoM {1e3 * self.com:.2f} mm, momentum {self.momentum:.2f} kg m/s, "
            f"angular {self.angular_momentum:.3f} kg m2/s"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MotionPlan(Plan):
    """A plan of the whole body with its contact forces; see `plans.Plan` for the trajectories to follow.

    Attributes:
        momentum: forces, CoM and momentum at the knots.
        motion: of the whole body at the knots.  fine: at the points of the trajectories.
        torques: of the joints.
        passes: of the alternation.
        seconds: computing time of the whole plan.
    """

    joints: JointTrajectory
    base: BaseTrajectory
    contacts: ContactSchedule
    forces: PlannedForces
    momentum: MomentumPlan
    motion: WholeBodyMotion
    fine: FineMotion
    torques: PlannedTorques
    passes: tuple[Pass, ...]
    seconds: float

    @property
    def contact_plan(self) -> ContactPlan:
        """Footholds and phases."""
        return self.momentum.problem.contact_plan


def plan_motion(
    robot: RobotModel,
    contact_plan: ContactPlan,
    settings: KinodynamicSettings | None = None,
    *,
    start: np.ndarray,
    velocity: np.ndarray | None = None,
    posture: np.ndarray | None = None,
    start_s: float | None = None,
    weights: MotionWeights = DEFAULT_WEIGHTS,
    progress: Callable[[Pass], None] | None = None,
    consensus: str = MULTIPLIERS,
    passes: int = PASSES,
) -> MotionPlan:
    """Plan the motion of the whole body over given footholds.

    Args:
        robot: with a floating base.
        contact_plan: footholds and phases, whose durations are rounded to whole time steps.
        settings: of the planner; None: the defaults.
        start: (nq,) initial configuration, the feet on the first footholds; see `standing_start`.
        velocity: (nv,) initial velocity, with the feet at rest; None: at rest.
        posture: (nq,) regularisation posture, carried along with the feet; None: the start's.
        start_s: start time of the trajectories; None: when the plan arrives.
        weights: of the whole body's motion.
        progress: called after each pass.
        consensus: what each subproblem tracks. `PLAIN`: the other's last solution (the paper's algorithm 1);
            `MULTIPLIERS`: that plus the accumulated disagreement, which converges in fewer passes.
        passes: how often forces and whole body are planned in turn, at least 1.

    Raises:
        InfeasiblePlanError: phase, foot or joint, and the limit that is exceeded.
        ContactPlanError: a contact plan that contradicts itself.
        ConfigurationError: settings or a robot that do not fit.
    """
    began = time.perf_counter()
    if consensus not in (PLAIN, MULTIPLIERS):
        raise ConfigurationError(
            f"consensus is {consensus!r}, must be one of {choices((PLAIN, MULTIPLIERS))}"
        )
    settings = settings or KinodynamicSettings()
    require_whole_body(robot, contact_plan.soles)
    contact_plan = _with_reaches(robot, start, contact_plan.on_knots(settings.time_step_s))
    at = _Beginning(
        np.asarray(start, dtype=float),
        np.zeros(robot.nv) if velocity is None else np.asarray(velocity, dtype=float),
        np.asarray(start if posture is None else posture, dtype=float),
    )
    alternation = _Alternation(robot, contact_plan, settings, at, weights, consensus)
    done: list[Pass] = []
    for number in range(1, passes + 1):
        done.append(alternation.run(number))
        if progress is not None:
            progress(done[-1])
    momentum, motion = done[-1].forces, done[-1].motion
    parts = math.ceil(settings.time_step_s / GRID_S - 1e-9)
    moved = momentum.com, momentum.velocity, momentum.angular_momentum
    heights = alternation.swing_heights_m
    fine = between_knots(motion, contact_plan, *moved, parts=parts, swing_height_m=heights)
    refuse_missed(contact_plan, fine)
    torques = planned_torques(robot, fine, momentum, parts)
    refuse_beyond_limits(robot, contact_plan, fine, torques)
    joints, base = trajectories(robot, fine.times_s, fine.configurations, fine.velocities, start_s)
    return MotionPlan(
        joints=joints,
        base=base,
        contacts=_schedule(contact_plan, start_s),
        forces=_forces(momentum, start_s),
        walking=True,
        momentum=momentum,
        motion=motion,
        fine=fine,
        torques=torques,
        passes=tuple(done),
        seconds=time.perf_counter() - began,
    )


def middle_angular_momentum(plan: MomentumPlan) -> np.ndarray:
    """Angular momentum about the CoM in the middle of each interval, (T + 1, 3) kg m2/s; row t + 1 of [t, t + 1].

    Exact for forces that are constant over an interval: k is then a cubic polynomial of time, determined by its ends,
    the CoM's velocity v and its acceleration a,

        k_mid = (k_t + k_{t+1}) / 2 + (dt^2/8 v_t + dt^3/16 a) x F.
    """
    problem = plan.problem
    dt, k, v = problem.contacts.time_step_s, plan.angular_momentum, plan.velocity
    acceleration = np.diff(v, axis=0) / dt
    force = problem.mass_kg * (acceleration - problem.gravity)
    bend = np.cross(dt**2 / 8 * v[:-1] + dt**3 / 16 * acceleration, force)
    middle = np.zeros_like(k)
    middle[1:] = 0.5 * (k[:-1] + k[1:]) + bend
    return middle


class _Beginning(NamedTuple):
    """Initial q (nq,), v (nv,) and the regularisation posture (nq,)."""

    q: np.ndarray
    v: np.ndarray
    posture: np.ndarray


class _Alternation:
    """Alternates between the momentum problem and the whole-body problem."""

    def __init__(
        self,
        robot: RobotModel,
        contact_plan: Any,
        settings: Any,
        at: _Beginning,
        weights: Any,
        consensus: Any,
    ) -> None:
        """Sample the contacts and set the references of the first pass: the posture and CoM carried along by the feet.

        Args:
            contact_plan: footholds and phases.  settings: of the planner, with time_step_s and swing_height_m.
            at: initial q, v and posture.
            weights: of the whole body's problem.  consensus: see ``plan_motion``.
        """
        self.robot, self.contact_plan, self.consensus = robot, contact_plan, consensus
        self.knots = len(contact_plan.sample(round(contact_plan.duration_s / settings.time_step_s)))
        times = np.linspace(0.0, contact_plan.duration_s, self.knots + 1)
        self.swing_heights_m = swing_heights(contact_plan, settings.swing_height_m)
        self.feet = foot_motion(contact_plan, times, self.swing_heights_m)
        soles = contact_plan.soles
        flat = tuple(is_flat(sole) for sole in soles)
        of_soles = {"force": SOLE_FORCE} if any(flat) else {}
        self.momentum_weights = [
            dataclasses.replace(each, **of_soles) for each in (FIRST, FOLLOWING)
        ]
        postures, com = carried_along(robot, soles, at.posture, self.feet)
        postures[0] = at.q
        rest = np.zeros_like(com)
        momentum = pin.computeCentroidalMomentum(robot.model, robot.data, at.q, at.v).copy()
        self.start = [robot.data.com[0].copy(), momentum.linear, momentum.angular]
        self.reference = MomentumReference(com, rest, rest)
        self.problem = MotionProblem(
            robot,
            times,
            tuple(sole.frame for sole in soles),
            flat,
            self.feet,
            com,
            rest,
            postures,
            weights,
            JOINT_LIMIT_MARGIN,
            at.v,
        )
        self.multipliers = np.zeros((2, *com.shape))
        self.motion: WholeBodyMotion | None = None

    def run(self, number: int) -> Pass:
        """Solve one pass and update the references of the next."""
        robot = self.robot
        began = time.perf_counter()
        plan = solve_momentum(
            build_momentum_problem(
                self.contact_plan,
                self.knots,
                robot.mass,
                reference=self.reference,
                start=self.start,
                weights=self.momentum_weights[min(number, 2) - 1],
                gravity=robot.model.gravity.linear,
            )
        )
        between = time.perf_counter()
        spins = middle_angular_momentum(plan)
        problem = dataclasses.replace(
            self.problem,
            com=plan.com + self.multipliers[0],
            angular_momentum=spins + self.multipliers[1],
            weights=self._weights(number),
        )
        earlier = None if self.motion is None else self.motion.configurations
        self.motion = motion = solve_motion(problem, earlier)
        ended = time.perf_counter()
        apart = np.stack([plan.com - motion.com, spins - motion.angular_momentum])
        means = np.zeros_like(plan.com)
        means[1:] = robot.mass * np.diff(plan.com, axis=0) / problem.time_step_s
        linear = means - motion.linear_momentum
        if self.consensus == MULTIPLIERS:
            self.multipliers += apart
            self.multipliers[1] *= problem.weights.spin / self._weights(number + 1).spin
        self.reference = MomentumReference(
            motion.com - self.multipliers[0],
            _at_knots(motion.linear_momentum),
            _at_knots(motion.angular_momentum - self.multipliers[1]),
        )
        return Pass(
            number,
            plan.steps,
            between - began,
            motion.iterations,
            ended - between,
            float(np.abs(apart[0]).max()),
            float(np.abs(linear).max()),
            float(np.abs(apart[1]).max()),
            plan,
            motion,
            spins,
        )

    def _weights(self, number: int) -> MotionWeights:
        """Weights of the whole body's motion in one pass."""
        weights = self.problem.weights
        return weights._replace(spin=weights.spin * (FIRST_SPIN if number == 1 else 1.0))


def _at_knots(intervals: np.ndarray) -> np.ndarray:
    """Interpolate rows of intervals, row t + 1 that of [t, t + 1], to the knots by means of neighbours.

    0 at both ends.
    """
    knots = np.zeros_like(intervals)
    knots[1:-1] = 0.5 * (intervals[1:-1] + intervals[2:])
    return knots


def _with_reaches(robot: RobotModel, start: np.ndarray, plan: ContactPlan) -> ContactPlan:
    """The plan with a reach for each sole that has none: that of its leg, from the configuration start (nq,)."""
    soles = [
        sole
        if sole.reach_m is not None
        else dataclasses.replace(sole, reach_m=reach(robot, start, sole))
        for sole in plan.soles
    ]
    return ContactPlan(tuple(soles), plan.phases)


def _schedule(plan: ContactPlan, start_s: float | None) -> ContactSchedule:
    """Contact schedule of the feet, phase by phase."""
    names = [sole.frame for sole in plan.soles]
    stance = [[name in phase.feet for name in names] for phase in plan.phases]
    return ContactSchedule(names, plan.boundaries_s[:-1], stance, start_s)


def _forces(plan: MomentumPlan, start_s: float | None) -> PlannedForces:
    """Planned forces of each interval, as a plan carries them."""
    contacts = plan.problem.contacts
    soles: Sequence[Sole] = plan.problem.contact_plan.soles
    frames = [soles[index].frame for index in contacts.sole_of_corner]
    return PlannedForces(frames, plan.times_s[:-1], contacts.points, plan.forces, start_s)
