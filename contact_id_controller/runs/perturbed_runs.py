"""Runs, in one process, of a robot that differs from its model, and how large an error it tolerates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.control.controller import Controller
from contact_id_controller.control.limits import joint_limits
from contact_id_controller.exceptions import ConfigurationError, SimulationError
from contact_id_controller.geometry import HalfSpace, HeightField, feet_on
from contact_id_controller.geometry.ground_file import ground_of
from contact_id_controller.plans.plan import Plan
from contact_id_controller.runs.estimated_state import controller_changes, estimator_changes
from contact_id_controller.runs.joint_motion_file import SECTION as MOTION
from contact_id_controller.runs.joint_motion_file import joint_motion
from contact_id_controller.runs.one_process import (
    AT_ORIGIN,
    InProcessRun,
    controller_settings,
    estimated_state,
    mujoco_robot,
    section,
)
from contact_id_controller.runs.record import RunRecord
from contact_id_controller.runs.setup import MOVERS, WHOLE_BODY
from contact_id_controller.runs.worker_pool import in_processes
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile, changed_parameters
from contact_id_controller.settings.robot_files import BIPEDS, QUADRUPEDS, file_of, robots
from contact_id_controller.simulation.perturbations import TABLE, Changes, perturbation
from contact_id_controller.state import RobotState

SECONDS = 4.0
"""Duration of a walk, which has no end; a plan or a joint motion is followed to its end."""
SETTLE_S = 0.5
"""Time for which a robot stands before and after a plan."""
TOUCH_S = 4.0
"""Time for an arm after its motion: it comes down on a surface slowly, and a centimetre farther than planned."""

HALVINGS = 5
"""Number of bisections: the result is within 3 % of the range."""

BEFORE_FALL_S = 0.3
LOADED, SLIDES = 0.02, 0.98
"""Share of the weight from which on a foot is loaded, and of the friction limit from which on it slides."""

NOMINAL = ""
"""Name of the run without an error."""


class Case(NamedTuple):
    """One run.

    Attributes:
        config: parameter file of the robot.
        name, size: of the perturbation; ``NOMINAL``: none.
        seed: of random perturbations and of the sensors' noise.
        seconds: of simulated time; None: ``SECONDS``, or to the end of the plan.
        sensors: preset from which the state is estimated; empty: planner and controller get the true one.
        changes: of the controller's parameters, NAME=VALUE each.
    """

    config: str
    name: str = NOMINAL
    size: float = 0.0
    seed: int = 0
    seconds: float | None = None
    sensors: str = ""
    changes: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """Outcome of a case.

    Attributes:
        failed_s: when it fell, or an arm stopped following its plan, s; None: neither.
        why: message of an error, or why the arm did not follow.
        joint_error_rad: mean distance of a joint from its plan.  speed_m_s: of the base, mean.
        limits: shares, over the whole run or the last .3 s before a fall: ``friction``: of loaded feet, those that
            slide;
            ``torque``: of periods, those with a joint at its limit; ``contact lost``: of feet that the controller
            takes to stand, those without load; ``contact unseen``: of loaded feet, those taken to be in the air.
    """

    case: Case
    failed_s: float | None
    why: str = ""
    joint_error_rad: float = math.nan
    speed_m_s: float = math.nan
    limits: Mapping[str, float] = {}

    @property
    def limit(self) -> str:
        """The largest of ``limits``, as text; empty where all are below 2 %."""
        worst = max(self.limits, key=self.limits.__getitem__, default="")
        share = self.limits.get(worst, 0.0)
        return f"{worst} {100.0 * share:.0f} %" if share > LOADED else ""


class Borne(NamedTuple):
    """Tolerated size of an error: the largest without a failure, and the smallest with one (None: none)."""

    case: Case
    borne: float
    failed: float | None
    outcome: Outcome


def config_of(robot: str) -> Path:
    """The parameter file of a robot of this package, of all kinds.

    Raises:
        ConfigurationError: no robot of that name.
    """
    known = robots(QUADRUPEDS, "arms", "plans", BIPEDS)
    moved = {n: file for n, file in known.items() if any(m in ParameterFile(file) for m in MOVERS)}
    return file_of(robot, moved)


def chosen(only: Sequence[str]) -> list[tuple[str, float]]:
    """Names and sizes of the table's rows: all, or those of ``only``, ``NAME`` or ``NAME=SIZE,SIZE`` each.

    Raises:
        ConfigurationError: a name that does not exist, or a size that is no number.
    """
    found: list[tuple[str, float]] = []
    for text in only or TABLE:
        name, equals, sizes = text.partition("=")
        row = perturbation(name.strip())
        try:
            values = [float(each) for each in sizes.split(",")] if equals else row.sizes
        except ValueError:
            raise ConfigurationError(f"{text!r} is not of the form NAME=SIZE,SIZE") from None
        found += [(row.name, value) for value in values]
    return found


def seeds_of(name: str, seeds: int) -> range:
    """The seeds of a row's runs: a single one if nothing is random."""
    return range(seeds if TABLE[name].drawn else 1)


def run(case: Case) -> Outcome:
    """Run one case."""
    try:
        return _run(case)
    except SimulationError as error:
        return Outcome(case, 0.0, str(error))


def run_all(cases: Sequence[Case], jobs: int) -> Iterator[Outcome]:
    """Run cases in parallel processes; outcomes in any order."""
    for case, outcome in in_processes(run, cases, jobs):
        yield Outcome(case, 0.0, str(outcome)) if isinstance(outcome, Exception) else outcome


def bisect(case: Case) -> Borne:
    """Find the tolerated size of a case's error by bisection, between none and the case's size."""
    row = perturbation(case.name)
    good, bad = row.none, case.size
    outcome = run(case)
    if outcome.failed_s is None:
        return Borne(case, bad, None, outcome)
    for _ in range(HALVINGS):
        middle = 0.5 * (good + bad)
        tried = run(case._replace(size=middle))
        if tried.failed_s is None:
            good = middle
        else:
            bad, outcome = middle, tried
    return Borne(case, good, bad, outcome)


def bisect_all(cases: Sequence[Case], jobs: int) -> Iterator[Borne]:
    """Bisect cases in parallel processes; results in any order."""
    for case, borne in in_processes(bisect, cases, jobs):
        if isinstance(borne, Exception):
            borne = Borne(case, math.nan, None, Outcome(case, 0.0, str(borne)))
        yield borne


def _run(case: Case) -> Outcome:
    """Run a case; raises SimulationError where the estimate does not begin."""
    by_file, row = controller_settings(case.config), TABLE.get(case.name)
    robot = by_file.robot()
    changes = Changes(case.seed, joint_limits(robot, by_file).effort)
    if row is not None:
        row.apply(changes, case.size)
    given = changes.parameters(robot, by_file.motors)
    if case.sensors:
        given = {**given, **controller_changes(section(case.config, "controller"), case.sensors)}
    given |= changed_parameters(None, None, case.changes)
    settings = controller_settings(case.config, **given)
    motion = _motion(case.config)
    simulated = section(case.config, "simulated_robot")
    believed = settings.terrain if motion.ground is None else motion.ground
    ground, friction = changes.ground(believed), changes.friction
    if friction is None:
        friction = simulated.get("friction_coefficient", settings.friction_coefficient[0])
    floats = settings.floating_base
    options: dict[str, Any] = {"imu_frame": ""} if floats else {}
    options["motors"] = by_file.motor_rows  # also where the controller's motors are changed
    made = mujoco_robot(settings, friction, terrain=ground, floating_base=floats, **options)
    world, estimator = changes.applied(made), None
    if case.sensors:
        how = estimator_changes(settings)
        if motion.ground is not None:
            how["ground_height_noise_m"] = 0.0  # stones are not level
        at = None if motion.start is None else motion.start[:7]  # a plan's places are odometry's
        estimator = estimated_state(case.config, world, case.sensors, case.seed, at=at, **how)
    start = motion.start
    if start is None:
        posture = np.array(simulated["initial_joint_positions"])
        start = made.robot.configuration(AT_ORIGIN if floats else None, posture)
    if floats:
        start = made.place_on_ground(start)
        if row is not None and row.grounds:
            start = made.stand_on_ground(start)
    feet = None
    if motion.ground is not None:
        mu, viscosity = map(settings.spread_over_contacts, ("friction_coefficient", "viscosity"))
        feet = feet_on(made.robot, settings.feet, motion.ground, mu, viscosity)
    plan = None if motion.plan is None else _once(motion.plan)
    walk = InProcessRun(
        case.config, settings, world, start=start, estimator=estimator, plan=plan, feet=feet
    )
    record = walk.record(case.seconds or motion.seconds, ground=ground)
    normal = ground.normal if isinstance(ground, HalfSpace) else np.array([0.0, 0.0, 1.0])
    return _outcome(case, record, walk, normal, friction)


def _once(plan: Plan) -> Any:
    """A planner that hands over one plan, at its first call."""
    waiting = [plan]

    def hand_over(controller: Controller, state: RobotState) -> None:
        if waiting:
            controller.follow(waiting.pop(), state.time_s)

    return hand_over


class _Motion(NamedTuple):
    """Motion of a robot: initial configuration, plan (None: the gait planner's), duration, ground."""

    start: np.ndarray | None
    plan: Plan | None
    seconds: float
    ground: HeightField | None = None


@lru_cache(maxsize=4)
def _motion(config: str) -> _Motion:
    """The motion of a parameter file: its joint motion, a plan over its footsteps, or walking by the gait planner."""
    file = ParameterFile(config)
    if MOTION in file:
        robot = controller_settings(config).robot()
        motion = joint_motion(file.own_section(MOTION), robot.joint_names)
        return _Motion(None, Plan(motion), float(motion.times_s[-1]) + TOUCH_S)
    if WHOLE_BODY not in file:
        return _Motion(None, None, SECONDS)
    from contact_id_controller.planning.kinodynamic import plan_motion
    from contact_id_controller.planning.kinodynamic.footstep_file import stones_below, task_of

    settings = KinodynamicPlannerSettings.from_mapping(file.section(WHOLE_BODY))
    task = task_of(settings, Path(config).parent)
    plan = plan_motion(task.robot, task.contact_plan, settings, start=task.start, start_s=SETTLE_S)
    stones, seconds = stones_below(plan.contact_plan), plan.contact_plan.duration_s
    return _Motion(
        plan.fine.configurations[0],
        plan,
        seconds + 2.0 * SETTLE_S,
        ground_of(stones) if stones else None,
    )


def _outcome(
    case: Case, record: RunRecord, walk: InProcessRun, normal: np.ndarray, friction: Any
) -> Outcome:
    """Evaluate the record of a case; normal (3,) and friction: of the true ground."""
    failed, why = record.fell_time_s, walk.error or ""
    if failed is None and not walk.settings.floating_base and record.not_following:
        failed, why = float(record.time_s[-1]), record.not_following
    error = float(np.abs(record.reference_position - record.position).mean())
    speed = 0.0
    if walk.settings.floating_base and len(record.q) > 1:
        path_m = np.linalg.norm(np.diff(record.q[:, :2], axis=0), axis=1).sum()
        speed = float(path_m / (len(record.q) * walk.settings.period_s))
    last = slice(None)
    if record.fell_time_s is not None:
        last = slice(-round(BEFORE_FALL_S / walk.settings.period_s), None)
    limits = {"torque": float(record.saturated[last].any(axis=1).mean())}
    foot = walk.controller.feet.foot
    if len(foot):
        together = np.eye(int(foot.max()) + 1)[foot]
        forces = np.einsum("tcd,cf->tfd", record.simulated_forces[last], together)
        stands = record.contact[last] @ together > 0.0
        limits |= _of_feet(forces, stands, normal, friction, walk.robot.weight)
    return Outcome(case, failed, why, error, speed, limits)


def _of_feet(
    forces: np.ndarray, stands: np.ndarray, normal: np.ndarray, friction: Any, weight: float
) -> dict[str, float]:
    """Shares of loaded feet that slide or are taken to be in the air, and of standing feet without load.

    forces: (t, f, 3) N, world frame.  stands: (t, f) bool, by the controller.  normal (3,); weight, N.
    """
    pressure = forces @ normal
    along = np.linalg.norm(forces - pressure[..., None] * normal, axis=2)
    loaded = pressure > LOADED * weight
    shares = {
        "contact unseen": _share(loaded & ~stands, loaded),
        "contact lost": _share(stands & ~loaded, stands),
    }
    if not callable(friction):
        shares["friction"] = _share(loaded & (along >= SLIDES * friction * pressure), loaded)
    return shares


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / max(1, whole.sum()))
