"""A walk in one process: gait planner, controller and a simulated robot, without ROS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contact_id_controller.control.controller import Controller, StepResult
from contact_id_controller.control.following import Following
from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.exceptions import ConfigurationError, SimulationError, TrajectoryError
from contact_id_controller.geometry import (
    FeetOnGround,
    HalfSpace,
    HeightField,
    SphereFoot,
    stand_on,
)
from contact_id_controller.lazy import loaded
from contact_id_controller.planning.by_velocity import velocity_planner
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.planning.walking.planner import WalkingPlanner
from contact_id_controller.plans.effort_trajectory import EffortTrajectory
from contact_id_controller.plans.low_level import LowLevelCommand
from contact_id_controller.plans.plan import Plan
from contact_id_controller.plans.state_feedback import StateFeedback
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.runs.estimated_state import EstimatedState
from contact_id_controller.runs.lost_estimate import LostEstimate
from contact_id_controller.runs.record import Estimated, RecordBuilder, RunRecord
from contact_id_controller.safety.local_command import LocalCommand
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import (
    ESTIMATOR,
    DynamicsEstimatorSettings,
    estimator_parameters,
)
from contact_id_controller.settings.gait import LOOK_TIME_S
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile
from contact_id_controller.simulation.recording import FallDetector
from contact_id_controller.state import RobotState

if TYPE_CHECKING:
    from contact_id_controller.simulation.mujoco_robot import MujocoRobot

CONFIG = "package://contact_id_controller/config"
TOUCHES = 0.02
"""Load, as a share of the weight, from which on the gait planner takes a foot as in contact."""
AT_ORIGIN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


class Period(NamedTuple):
    """One control period: its state, the controller's result, and the state at its end.

    forces: of the ground on the feet over the period, (n_feet, 3) N, world frame.
    plan: made at its start, or None.
    believed: the state that planner and controller received.
    estimated_forces: (n_feet, 3) N, of the period; None where they received the true ones.
    """

    before: RobotState
    result: StepResult
    forces: np.ndarray
    after: RobotState
    plan: Plan | None
    believed: RobotState
    estimated_forces: np.ndarray | None = None


def section(name: str, node: str, **changes: Any) -> dict[str, Any]:
    """A node's parameters in a configuration file (its name in the package, or a path), with changes."""
    return {**_file(name).section(node), **changes}


def _file(name: str) -> ParameterFile:
    own = name.endswith(".yaml")
    return ParameterFile(Path(name) if own else resolve_urdf(f"{CONFIG}/{name}.yaml"))


def controller_settings(
    name: str, experimental: Mapping[str, Any] | None = None, **changes: Any
) -> ControllerSettings:
    """The controller's settings of a robot, with changes, and with fields that are not parameters."""
    mapping = section(name, "controller", **changes)
    return ControllerSettings.from_mapping(mapping, **(experimental or {}))


def gait_planner(
    name: str, robot: RobotModel, surface: HeightField | None = None, **changes: Any
) -> GaitPlanner | WalkingPlanner:
    """The gait planner of a robot, with changes of its settings; surface: its map of the ground."""
    settings = GaitPlannerSettings.from_mapping(section(name, "gait_planner", **changes))
    return velocity_planner(robot, settings, settings.terrain if surface is None else surface)


def estimated_state(
    name: str,
    world: Any,
    noise: str,
    seed: int = 0,
    *,
    true_forces: bool = False,
    at: np.ndarray | None = None,
    **changes: Any,
) -> EstimatedState:
    """Make an estimator of the state, for a controller that gets sensor readings only.

    Args:
        name: of the robot's configuration, whose section ``dynamics_estimator`` is used, if there is one.
        world: a simulated robot with an IMU.
        noise, seed: of its sensors.
        true_forces, at: see ``EstimatedState``.
        changes: of the section.
    """
    own = estimator_parameters(
        _file(name).sections().get(ESTIMATOR, {}), section(name, "controller")
    )
    settings = DynamicsEstimatorSettings.from_mapping({**own, **changes})
    pipeline = EstimationPipeline(
        world.robot, settings.foot_frames, settings.foot_radii_m, settings.pipeline
    )
    return EstimatedState(world, pipeline, noise, seed, true_forces, at)


def feet_of(settings: ControllerSettings) -> list[SphereFoot]:
    """The contacts of the settings: round feet, then corners of soles."""
    return list(settings.feet)


def mujoco_robot(settings: ControllerSettings, friction: float, **options: Any) -> MujocoRobot:
    """Make the robot of a controller's settings in MuJoCo; ``options``: of ``MujocoRobot``."""
    from contact_id_controller.simulation.mujoco_robot import MujocoRobot  # an extra

    options.setdefault("terrain", settings.terrain)
    options.setdefault("motors", settings.motor_rows)
    return MujocoRobot(
        settings.urdf,
        settings.feet,
        joints=settings.joints or None,
        locked=settings.locked,
        friction=friction,
        period_s=settings.period_s,
        **options,
    )


def follow(controller: Controller, plan: Plan, now_s: float) -> bool:
    """Follow a gait planner's plan; False if it is refused, and the one before is followed.

    The plan of a robot that has fallen may start far from its state.
    """
    try:
        controller.follow(plan, now_s)
    except TrajectoryError:
        return False
    return True


class InProcessRun:
    """One robot that is planned for, controlled and simulated, period by period.

    Args:
        name: of the robot's configuration.
        settings: of the controller.
        world: a simulated robot (``SteppedRobot``), which is put on its ground in
            the posture of the configuration; on uneven ground with all feet down.
        planner: changes of the gait planner's settings.
        feet: as for ``Controller``, if the ground is not level.
        plan: called with controller and state before each step, instead of the gait planner; a `Plan` that it returns
            is followed from that state's time on, None: none is new.
        start: (nq,) initial configuration; None: the posture of the configuration, on the ground.
        estimator: estimates the state for planner and controller from the sensors; None: they
            get the true one. While its base is lost nothing is planned or solved, see `LostEstimate`.
        surface: the gait planner's map of the ground, where its setting ground is ``map``.
        late: called with the time of each state, s; returns whether the computer is late at it: then nothing is
            planned or solved. With command_interface effort the last torques act, with joint_trajectory the
            local feedback continues along the last trajectory, with linear_feedback around the last state
            that was solved.

    Attributes:
        ahead: torques solved ahead, None if the settings do not require them.
        local: the feedback on the robot's side, with other command interfaces than effort.
        safety: the state machine of the run, which a lost estimate interrupts or stops; None without an estimator.
        following: whether the robot does what is planned.
        error: why the simulation diverged; None: it did not.
    """

    def __init__(
        self,
        name: str,
        settings: ControllerSettings,
        world: Any,
        *,
        planner: dict[str, Any] | None = None,
        feet: FeetOnGround | None = None,
        plan: Callable[[Controller, RobotState], Plan | None] | None = None,
        start: np.ndarray | None = None,
        estimator: EstimatedState | None = None,
        surface: HeightField | None = None,
        late: Callable[[float], bool] | None = None,
    ) -> None:
        self.settings, self.world, self._estimator = settings, world, estimator
        self.robot = settings.robot()
        self.controller = Controller(self.robot, settings, feet)
        self.following = Following(self.controller)
        self._command = LocalCommand()
        self._command.take_over(self.controller)
        self.ahead = self._command.ahead
        self._lost = None if estimator is None else LostEstimate(self.controller, self._command)
        self.safety = None if self._lost is None else self._lost.machine
        self.local: Any = None  # of the interface's robot side
        self._late = late
        self._last: StepResult | None = None
        if plan is None:
            self.planner = gait_planner(name, self.robot, surface, **(planner or {}))
            gait = self.planner.settings
            assert gait is not None
            frames = np.array([foot.frame for foot in settings.feet])
            self._feet = [np.flatnonzero(frames == foot) for foot in gait.foot_frames]
            self._every = max(1, round(gait.plan_period_s / settings.period_s))
            self._least = max(1, round(self.planner.lead_s / settings.period_s))
            self._look = max(1, round(LOOK_TIME_S / settings.period_s))
        # Initially all planned contacts touch, for the controller's contact estimate, too.
        self._contact = self.controller.felt_contacts
        if self._contact is not None:
            self._contact[:] = True
        self._landed: np.ndarray | None = None
        self._plan, self._periods, self._planned = plan, 0, -(10**9)
        self.error: str | None = None
        if start is None:
            posture = section(name, "simulated_robot")["initial_joint_positions"]
            start = self.robot.configuration(AT_ORIGIN, np.array(posture))
            start = world.place_on_ground(start)
            if feet is not None or settings.ground_file:
                start = stand_on(self.controller.feet, self.robot, start)
        self.state = self.believed = world.reset(start)
        if estimator is not None:
            self.believed = estimator.begin(self.controller, self.state)
        self.controller.reset(self.believed)
        if settings.interface.robot_side:
            side: Any = loaded(settings.interface.robot_side)
            gains = local_gains(self.robot, settings, self.believed.q)
            self.local = side.of(self.robot, self.controller.effort_limits, gains)

    def advance(self) -> Period:
        """Simulate one period.

        Raises:
            SimulationError: the simulation diverged.
            TrajectoryError: the plan that ``plan`` returned cannot be followed.
        """
        before, believed = self.state, self.believed
        late = self._late is not None and self._late(believed.time_s) and self._last is not None
        lost = (
            self._lost is not None
            and self._estimator is not None
            and not self._lost.commands(self._estimator.estimate.ready, believed.time_s)
        )
        plan = None if late or lost else self._make_plan(believed)
        if lost:
            result = self._rest(believed)
        else:
            result = self._coast(believed) if late else self._step(believed)
        if not (late or lost):
            astray = self.following.look(self.controller, believed.time_s)
            if self.safety is not None:
                self.safety.stepped("", result.following, astray)
        self._last = result
        result = self.given(believed, result)
        self.state = self.believed = self.world.step(result.torques)
        forces, stood = self.world.contact_forces(), self._contact
        if self._estimator is None:
            self._contact = self.controller.felt_contacts
            if self._contact is None:
                self._contact = np.linalg.norm(forces, axis=1) > TOUCHES * self.robot.weight
            self.controller.measure(forces)
            estimated = None
        else:
            self.believed = self._estimator.after(self.controller, self.state)
            estimate = self._estimator.estimate
            self._contact = estimate.contact[
                self.controller.feet.foot
            ]  # a sole's holds for its corners
            estimated = self.controller.over_contacts(estimate.world_forces)
        # A foot that lands bounces: between two plans one touch is enough. One that has only left does not touch.
        began = self._contact if stood is None else self._contact & ~stood
        self._landed = began if self._landed is None else self._landed | began
        self._periods += 1
        # Rows of the reference are reused by the next step.
        reference = type(result.reference)(*(np.array(row) for row in result.reference))
        result = result._replace(reference=reference)
        return Period(before, result, forces, self.state, plan, believed, estimated)

    def _make_plan(self, believed: RobotState) -> Plan | None:
        """Make and follow a new plan, if it is due."""
        if self._plan is not None:
            own = self._plan(self.controller, believed)
            if own is not None:
                if not isinstance(own, Plan):
                    raise ConfigurationError(
                        f"plan(controller, state) returned a {type(own).__name__}, must return a Plan or None"
                    )
                self.controller.follow(own, believed.time_s)
            return own
        number, waited = self._periods // self._every, self._periods - self._planned
        if waited < self._least:
            return None
        if number == self._planned // self._every and not self._is_due(waited, believed):
            return None
        self._planned, contact = self._periods, self._touches()
        self._landed = None
        plan = self.planner.plan(believed.time_s, believed.q, believed.v, contact)
        follow(self.controller, plan, believed.time_s)
        return plan

    def _touches(self) -> np.ndarray | None:
        """Feet (f,) bool that touch, or have landed since the last plan; None: not known."""
        touching, landed = self._contact, self._landed
        if touching is None:
            return None
        touching = touching if landed is None else touching | landed
        return np.array([touching[rows].any() for rows in self._feet])  # a sole by a corner

    def _is_due(self, waited: int, believed: RobotState) -> bool:
        """Whether it is time to look, this many periods after the last plan, and the next is due at once."""
        is_due = self.planner.is_due
        if is_due is None or waited % self._look:
            return False
        return is_due(believed.time_s, believed.q, believed.v, self._touches())

    def _step(self, believed: RobotState) -> StepResult:
        """Step the controller; return its result, with the torques of the feedback on the robot's side, if any."""
        result = (self.ahead or self.controller).step(believed)
        if self._lost is not None:
            result = result._replace(torques=self._lost.send(believed, result))
        if self.ahead is not None:
            self.ahead.solve_ahead()
        if self.local is not None:
            self.local.follow(self.said(believed, result), believed.time_s)
            result = result._replace(torques=self.local.answer(self.robot, believed))
        return result

    def given(self, believed: RobotState, result: StepResult) -> StepResult:
        """The result whose torques act on the robot; experiments override it."""
        return result

    def said(
        self, believed: RobotState, result: StepResult
    ) -> EffortTrajectory | StateFeedback | LowLevelCommand:
        """The command for the robot's side; experiments override it."""
        if self._lost is not None:
            assert self._command.command is not None
            return self._command.command
        assert self.ahead is not None, "what is bridged is solved ahead"
        return self.ahead.command

    def _coast(self, believed: RobotState) -> StepResult:
        """Result of a period without the controller: the last torques, or those of the local feedback."""
        assert self._last is not None
        result = self._last._replace(
            reference=self.controller.reference_at(believed.time_s),
            solve_time_s=0.0,
            step_time_s=0.0,
        )
        if self.local is not None:
            result = result._replace(torques=self.local.answer(self.robot, believed))
        return result

    def _rest(self, believed: RobotState) -> StepResult:
        """Result of a period in which the base is lost: the way to the safe output, or a trajectory that ends at rest."""
        assert self._lost is not None
        sent = self._lost.send(believed, None)
        if self.local is None:
            return self._coast(believed)._replace(torques=sent)
        self.local.follow(self._command.command, believed.time_s)
        return self._coast(believed)

    def record(
        self,
        duration_s: float,
        *,
        each: Callable[[Period], None] = lambda period: None,
        ground_height_m: float = 0.0,
        ground: HeightField | HalfSpace | None = None,
    ) -> RunRecord:
        """Run for ``duration_s``, or until the robot falls or the simulation diverges.

        Args:
            each: called with every period.
            ground_height_m: mean height of the ground, from which the base's height is measured.
            ground: the true ground, if it is not that of the settings.

        Raises:
            RecordError: not even the first period was completed.
        """
        settings = self.settings
        builder = RecordBuilder(
            settings.period_s, self.robot.joint_names, self.controller.contact_names
        )
        terrain = settings.terrain if ground is None else ground
        fall = FallDetector(self.state, settings.floating_base, ground_height_m, terrain)
        fell_time_s = None
        for _ in range(round(duration_s / settings.period_s)):
            try:
                period = self.advance()
            except SimulationError as error:
                self.error, fell_time_s = str(error), self.state.time_s
                break
            builder.add(**row_of(period, self.robot))
            if period.estimated_forces is not None:
                believed = period.believed
                foot = self.controller.feet.foot
                builder.add_estimate(
                    Estimated(believed.q, believed.v, period.estimated_forces, foot)
                )
            each(period)
            if fall.has_fallen(period.after):
                fell_time_s = fall.fell_time_s
                break
        return builder.record(fell_time_s=fell_time_s, **self.following.outcome._asdict())


def row_of(period: Period, robot: RobotModel) -> dict[str, Any]:
    """The row of a record for a period."""
    state, result, believed = period.before, period.result, period.believed
    return {
        "time_s": state.time_s,
        "q": state.q,
        "v": state.v,
        "position": robot.joints_near(believed.q, result.reference.position),
        "velocity": believed.v[robot.actuated],
        "reference_position": result.reference.position,
        "reference_velocity": result.reference.velocity,
        "torques": result.torques,
        "saturated": result.saturated,
        "predicted_forces": result.forces,
        "simulated_forces": period.forces,
        "contact": result.contact,
        "solve_time_s": result.solve_time_s,
        "step_time_s": result.step_time_s,
        "power_loss_w": result.power_loss_w,
        "status": result.status,
    }
