"""The setup of a run: a configuration file, with the changes of the command line."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contact_id_controller.control.torques_ahead import local_gains
from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.geometry import read_ground
from contact_id_controller.models import row_of
from contact_id_controller.plans.trajectories import JointTrajectory
from contact_id_controller.ros.scheduling import Scheduling, cores, priority
from contact_id_controller.runs.estimated_state import controller_changes, estimator_changes
from contact_id_controller.runs.joint_motion_file import SECTION as MOTION
from contact_id_controller.runs.joint_motion_file import joint_motion
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import (
    ESTIMATOR,
    DynamicsEstimatorSettings,
    estimator_parameters,
)
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.nodes import SETTINGS
from contact_id_controller.settings.parameter_file import (
    ParameterFile,
    parse_value,
    write_parameters,
)
from contact_id_controller.settings.robot_files import file_of, robots
from contact_id_controller.settings.shared_rows import LOCAL_GAINS
from contact_id_controller.simulation.sensor_noise import preset

NEEDED, PLANNER = ("controller", "simulated_robot"), "gait_planner"
WHOLE_BODY = "kinodynamic_planner"
MOVERS = {
    PLANNER: "for a robot that walks",
    WHOLE_BODY: "for one that steps over footholds",
    MOTION: "for any other",
}
"""Section -> for which robots: what moves the robot; a run has one of them."""
SECTIONS = (*NEEDED, *MOVERS)
"""Sections of a parameter file that a run reads."""

STATES = ("oracle", "estimated")
"""Source of the base's state for controller and planner: the simulator, or the estimator."""
ESTIMATE_PATIENCE_S = 5.0
"""Longest wall time that a state in lockstep waits for its estimate."""
SENSORS = "good"
"""Default preset of the sensors of a run on estimates."""

MODES = ("lockstep", "real_time")
CONTROLLER_RECORD, ROBOT_RECORD = "controller.npz", "simulated_robot.npz"
ESTIMATOR_RECORD = "dynamics_estimator.npz"
NODE_RECORDS = (CONTROLLER_RECORD, ROBOT_RECORD, ESTIMATOR_RECORD)
RECORD = "record.npz"
"""The merged record, which replaces those of the nodes."""
WAIT_FOR_PLAN_S = 0.1


@dataclass(frozen=True)
class RunSetup:
    """The setup of one run.

    Attributes:
        robot: name of the configuration.  config: its file.
        duration_s: simulated time.  mode: ``lockstep`` or ``real_time``.
        parameters: section -> name -> value, as passed to the nodes.
        settings: the controller's, checked.
        changes: options ``--set``.
        state: one of ``STATES``.
        scheduling: node of the package -> priority and processors.
        planner: script of the user's own planning node; None: a section moves the robot.
    """

    robot: str
    config: Path
    duration_s: float
    mode: str
    parameters: dict[str, dict[str, Any]]
    settings: ControllerSettings
    changes: tuple[str, ...]
    state: str = "oracle"
    scheduling: dict[str, Scheduling] = field(default_factory=dict)
    planner: Path | None = None

    @property
    def sensors(self) -> str:
        """Preset of the simulated robot's sensors."""
        return str(self.parameters["simulated_robot"].get("sensors", "perfect"))

    @property
    def friction_coefficient(self) -> float:
        """Coefficient of the ground; if the file has none, that of the controller's model."""
        return float(
            self.parameters["simulated_robot"].get(
                "friction_coefficient", self.settings.friction_coefficient[0]
            )
        )

    @property
    def title(self) -> str:
        """Title of the run: robot, friction, sensors, changes."""
        knows = [f"estimated from {self.sensors} sensors"] if self.state == "estimated" else []
        return ", ".join([self.robot, f"mu {self.friction_coefficient:g}", *knows, *self.changes])

    @property
    def normal(self) -> np.ndarray:
        """Unit normal of the ground, (3,)."""
        normal = np.array(self.settings.ground_normal, dtype=float)
        return normal / np.linalg.norm(normal)

    @property
    def waypoints(self) -> np.ndarray:
        """Way-points of the planner, (w, 2), m."""
        values = self.parameters.get(PLANNER, {}).get("waypoints_m", ())
        return np.array(values, dtype=float).reshape(-1, 2)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the run, each a process."""
        return tuple(name for name in self.parameters if name != MOTION)

    @property
    def motion(self) -> JointTrajectory | None:
        """The joint motion of a run without planner; None: it has one."""
        if MOTION not in self.parameters:
            return None
        settings = self.settings
        robot = settings.robot()
        return joint_motion(self.parameters[MOTION], robot.joint_names)

    @property
    def listeners(self) -> tuple[str, ...]:
        """The nodes that receive its motion: in lockstep the simulation waits for it."""
        waits = self.parameters["simulated_robot"].get("wait_for_plan_s", 0.0) > 0.0
        return NEEDED if waits and self.mode == "lockstep" else ("controller",)

    def command(self, output: Path) -> str:
        """The command line that repeats this run."""
        own = robots().get(self.robot) != self.config
        chosen = ("--config", str(self.config)) if own else ("--robot", self.robot)
        words = [
            "contact_id",
            "demo",
            *chosen,
            "--duration",
            f"{self.duration_s:g}",
            "--friction",
            self.settings.friction,
            "--solver",
            self.settings.solver,
            "--mu",
            f"{self.friction_coefficient:g}",
            "--mode",
            self.mode,
        ]
        if self.state != "oracle":
            words += ["--state", self.state]
        if self.sensors != "perfect":
            words += ["--sensors", self.sensors]
        if self.settings.ground_file:
            words += ["--ground", self.settings.ground_file]
        if self.planner is not None:
            words += ["--planner", str(self.planner)]
        priority = max((each.priority for each in self.scheduling.values()), default=0)
        words += Scheduling(priority).words()
        for name, each in self.scheduling.items():
            if each.cpus:
                words += ["--cpus", f"{name}={','.join(map(str, each.cpus))}"]
        for change in self.changes:
            words += ["--set", change]
        return shlex.join([*words, "--output", str(output)])

    def write(self, path: Path) -> None:
        """Write the parameters of all nodes as one ROS parameter file."""
        write_parameters(path, self.parameters)


def read_setup(parameters: Path) -> RunSetup:
    """The setup of a run from the parameter file that it wrote; its duration is not known (0).

    Raises:
        ConfigurationError: unreadable file, or values the controller refuses.
    """
    file = ParameterFile(parameters)
    sections = file.sections()
    settings = ControllerSettings.from_mapping(file.section("controller"))
    sections.setdefault("simulated_robot", {})
    if MOTION in sections:
        sections[MOTION] = file.own_section(MOTION)
    robot = Path(settings.urdf.rpartition("/")[2]).stem
    state = "estimated" if ESTIMATOR in sections else "oracle"
    return RunSetup(robot, parameters, 0.0, settings.mode, sections, settings, (), state)


def make_setup(
    folder: Path,
    *,
    robot: str,
    config: Path | None = None,
    duration_s: float = 30.0,
    mode: str = "lockstep",
    friction: str | None = None,
    solver: str | None = None,
    mu: float | None = None,
    state: str = "oracle",
    sensors: str | None = None,
    ground: Path | None = None,
    planner: Path | None = None,
    changes: Sequence[str] = (),
    rt_priority: str | int = 0,
    cpus: Sequence[str] = (),
    driven: bool = False,
    switchable: bool = False,
) -> RunSetup:
    """Make the setup of a run.

    Args:
        folder: for the nodes' records.
        robot: name of a robot that walks (`robots`); only a name where ``config``, a parameter file, is given.
        duration_s: simulated time.  mode: one of `MODES`.
        friction, solver: as in the table of contact models; None: as in the file.
        mu: friction coefficient of the ground and in the controller; None: as in the file.
        state: ``estimated``: controller and planner get IMU, encoders and efforts only.
        sensors: preset of the simulated sensors; None: as in the file, ``SENSORS`` for an estimate.
        ground: file of uneven ground for all nodes; None: as in the file.
        planner: script of the user's own planning node, in place of the file's; its section has the script's name.
        changes: ``[NODE.]NAME=VALUE`` each.  rt_priority, cpus: see `ros.scheduling`.
        driven: it follows `cmd_vel` instead of way-points.
        switchable: contact models of ``live_models`` may be chosen while it runs; by default only its own is compiled.

    Raises:
        ConfigurationError: unknown robot, unreadable file, or values the controller refuses.
        UnknownModelError: no such pair of friction and solver.
    """
    if not duration_s > 0.0:
        raise ConfigurationError(f"the duration is {duration_s:g} s, must be above 0")
    for name, value, known in (("mode", mode, MODES), ("state", state, STATES)):
        if value not in known:
            raise ConfigurationError(f"{name} is {value!r}, must be one of {choices(known)}")
    config = file_of(robot) if config is None else config
    parameters = _read(config, planner)
    _choose(parameters, friction, solver, mu, sensors)
    if ground is not None:
        _lay(ground, parameters)
    _prepare(parameters, folder, mode, float(duration_s), state)
    if mode == "lockstep" and (planner is not None or MOTION in parameters):
        # The simulation waits for its first plan, which may be its only one.
        parameters["simulated_robot"].setdefault("wait_for_plan_s", float(duration_s))
    if driven:
        if PLANNER not in parameters:
            raise ConfigurationError(f"{str(config)!r} has no {PLANNER!r}: nothing can be driven")
        parameters[PLANNER].pop("waypoints_m", None)
    if state == "estimated":
        _estimate(parameters, ParameterFile(config), mode, folder)
    for change in changes:
        _apply(change, parameters)
    _refuse_bad_values(parameters)
    if WHOLE_BODY in parameters:
        _plan_at_once(parameters, config, folder, mode)
    settings = _agreed(parameters, switchable)
    setup = RunSetup(
        robot,
        config,
        duration_s,
        mode,
        parameters,
        settings,
        tuple(changes),
        state,
        _scheduling(parameters, rt_priority, cpus, planner),
        planner,
    )
    _ = setup.motion  # raises now, before the nodes start
    return setup


def _choose(
    parameters: dict[str, Any],
    friction: str | None,
    solver: str | None,
    mu: float | None,
    sensors: str | None,
) -> None:
    """Write the given choices into the parameters, in place."""
    controller, simulated = (parameters[name] for name in NEEDED)
    if friction is not None:
        controller["friction"] = friction
    if solver is not None:
        controller["solver"] = solver
    if mu is not None:
        controller["friction_coefficient"] = [float(mu)]
        simulated["friction_coefficient"] = float(mu)
    if sensors is not None:
        preset(sensors)  # refuses a name that does not exist
        simulated["sensors"] = sensors


def _prepare(
    parameters: dict[str, Any], folder: Path, mode: str, duration_s: float, state: str
) -> None:
    """Write what every run sets: time, records, and what differs for a simulated robot."""
    controller, simulated = (parameters[name] for name in NEEDED)
    simulated["duration_s"] = duration_s
    simulated.setdefault("publish_robot", state != "estimated")  # a link has one place on /tf
    for values, record in ((controller, CONTROLLER_RECORD), (simulated, ROBOT_RECORD)):
        values["mode"] = mode
        values["record_path"] = str((folder / record).resolve())
    # The simulated robot already stands on its feet: a ramp would let it sink.
    controller.setdefault("start_ramp_s", 0.0)
    controller["use_sim_time"] = True
    controller["state_folder"] = ""  # the run's own: its emergency stop must not stop the robot
    if PLANNER in parameters:
        parameters[PLANNER]["use_sim_time"] = True
        controller.setdefault("planner_required", True)
        if mode == "lockstep":
            simulated.setdefault("wait_for_plan_s", WAIT_FOR_PLAN_S)


def _agreed(parameters: dict[str, Any], switchable: bool) -> ControllerSettings:
    """Check the controller's settings, and fill in parameters that nodes take from each other."""
    controller, simulated = (parameters[name] for name in NEEDED)
    if simulated.get("mounted_sensors") and ESTIMATOR in parameters:
        parameters[ESTIMATOR].setdefault("mounted_sensors", list(simulated["mounted_sensors"]))
    settings = ControllerSettings.from_mapping(controller)
    row_of(settings.friction, settings.solver)  # refuses a pair that does not exist
    if not switchable:
        controller.setdefault("live_models", [f"{settings.friction}/{settings.solver}"])
    _give_local_feedback(simulated, settings)
    if ESTIMATOR in parameters:
        for name, value in estimator_changes(settings).items():
            parameters[ESTIMATOR].setdefault(name, value)
        DynamicsEstimatorSettings.from_mapping(parameters[ESTIMATOR])
    return settings


def _scheduling(
    parameters: dict[str, Any], rt_priority: str | int, cpus: Sequence[str], planner: Path | None
) -> dict[str, Scheduling]:
    """Priority and processors of the process of each node of the package."""
    others = (MOTION, *([planner.stem] if planner else ()))
    nodes = [name for name in parameters if name not in others]
    kept: dict[str, tuple[int, ...]] = {}
    for text in cpus:
        name, equals, numbers = text.rpartition("=")
        if equals and name not in nodes:
            raise ConfigurationError(f"--cpus {text!r} names no node, must be {choices(nodes)}")
        kept.update(dict.fromkeys([name] if equals else nodes, cores(numbers)))
    number = priority(str(rt_priority))
    # A plan takes longer than a period and may wait: the planner has a lower priority than the loop. The simulated
    # robot has the lowest: on a slow machine the simulation slows down then, and commands are not late.
    least = min(number, 1)
    below = dict.fromkeys(MOVERS, max(number - 1, least))
    below["simulated_robot"] = max(number - 2, least)
    return {name: Scheduling(below.get(name, number), kept.get(name, ())) for name in nodes}


def _give_local_feedback(simulated: dict[str, Any], settings: ControllerSettings) -> None:
    """Give the simulated robot the controller's command interface, and gains that fit it."""
    simulated["command_interface"] = settings.command_interface
    if settings.interface.has_joint_gains:
        robot = settings.robot()
        q = robot.neutral()
        robot.put_joints(q, simulated.get("initial_joint_positions") or 0.0)
        for name, gain in zip(LOCAL_GAINS, local_gains(robot, settings, q)):
            simulated.setdefault(name, gain.tolist())


def _lay(ground: Path, parameters: dict[str, Any]) -> None:
    """Put uneven ground under the robot and into its planner's map."""
    read_ground(ground)
    for name in (*NEEDED, PLANNER):
        if name in parameters:
            parameters[name]["ground_file"] = str(ground.resolve())
    if PLANNER in parameters:
        parameters[PLANNER].setdefault("ground", "map")


def _estimate(parameters: dict[str, Any], file: ParameterFile, mode: str, folder: Path) -> None:
    """Put the estimator between the simulated sensors and the nodes that need the state."""
    controller, simulated = (parameters[name] for name in NEEDED)
    if not controller.get("floating_base", True):
        raise ConfigurationError("state 'estimated' is for a robot with a floating base")
    parameters[ESTIMATOR] = {
        **estimator_parameters(file.sections().get(ESTIMATOR, {}), controller),
        "mode": mode,
        "autostart": True,
        "use_sim_time": True,
        "record_path": str((folder / ESTIMATOR_RECORD).resolve()),
    }
    if mode == "lockstep":
        controller.setdefault("state_timeout_s", ESTIMATE_PATIENCE_S)
    simulated["ground_truth_topics"] = "separate"
    controller.update(controller_changes(controller, simulated.setdefault("sensors", SENSORS)))


def _read(config: Path, planner: Path | None) -> dict[str, dict[str, Any]]:
    """The sections of a parameter file that a run needs; ConfigurationError unless exactly one moves the robot."""
    file = ParameterFile(config)
    if planner is not None:
        return _read_for_own(file, planner)
    parameters = {name: file.section(name) for name in SECTIONS if name in NEEDED or name in file}
    if MOTION in parameters:
        parameters[MOTION] = file.own_section(MOTION)
    if sum(name in parameters for name in MOVERS) != 1:
        which = ", ".join(f"{name!r} ({whom})" for name, whom in MOVERS.items())
        raise ConfigurationError(
            f"{str(config)!r} must have one of the sections {which}, or --planner name your own node"
        )
    return parameters


def _read_for_own(file: ParameterFile, planner: Path) -> dict[str, dict[str, Any]]:
    """The sections of a run with the user's own planner; ConfigurationError if that cannot be started."""
    name = planner.stem
    if not planner.is_file():
        raise ConfigurationError(f"--planner {str(planner)!r} is no file")
    if name in (*SETTINGS, MOTION):
        raise ConfigurationError(
            f"--planner {str(planner)!r} has the name of a node of the package"
        )
    own = file.section(name) if name in file else {}
    return {
        **{needed: file.section(needed) for needed in NEEDED},
        name: {**own, "use_sim_time": True},
    }


def _plan_at_once(parameters: dict[str, Any], config: Path, folder: Path, mode: str) -> None:
    """Change ``parameters`` so that the whole-body planner executes its plan at start, without a service call.

    Stones (a ground file in ``folder``) are put under footholds that are not on the floor; the simulated base starts
    at the plan's x, y, m, and yaw, rad. Values that are given are kept, except ``use_sim_time`` and ``footsteps``
    (made absolute). In lockstep the simulation waits for the plan.
    """
    planner = parameters[WHOLE_BODY]
    planner["use_sim_time"] = True
    planner.setdefault("execute_at_once", True)
    settings = KinodynamicPlannerSettings.from_mapping(planner)
    simulated = parameters["simulated_robot"]
    if not (settings.goal or settings.footsteps):
        return
    # Imported here: it loads the planner, which no other run needs.
    from contact_id_controller.planning.kinodynamic.footstep_file import footsteps_file, task_of
    from contact_id_controller.runs.planned_motion import write_stones

    if settings.footsteps:
        planner["footsteps"] = str(footsteps_file(settings, config.parent).resolve())
    task = task_of(settings, config.parent)
    on_stones = write_stones(task.contact_plan, folder)
    for name in NEEDED if on_stones else ():
        parameters[name].setdefault("ground_file", on_stones["ground_file"])
    # Footsteps are relative to the feet of a robot at the origin; so is the base.
    x, y, _, *turn = task.start[:7].tolist()
    simulated.setdefault("initial_base", [x, y, 2.0 * math.atan2(turn[2], turn[3])])
    if mode == "lockstep" and planner["execute_at_once"]:
        # The simulation waits for its only plan.
        simulated.setdefault("wait_for_plan_s", simulated["duration_s"])


def _refuse_bad_values(parameters: dict[str, dict[str, Any]]) -> None:
    """Raise ConfigurationError for parameters that a node would refuse at its start."""
    for node, settings in SETTINGS.items():
        try:
            settings.checked(parameters.get(node, {}))
        except ConfigurationError as error:
            raise ConfigurationError(f"{node}: {error}") from error


def _apply(change: str, parameters: dict[str, dict[str, Any]]) -> None:
    """Apply a change ``[section.]name=value``; the value is YAML."""
    name, equals, text = change.partition("=")
    section, dot, rest = name.strip().partition(".")
    if not dot:
        section, rest = "controller", section
    if not equals or not rest or section not in parameters:
        raise ConfigurationError(
            f"--set {change!r} is not of the form [NODE.]NAME=VALUE, "
            f"with NODE one of {choices(parameters)}"
        )
    try:
        parameters[section][rest] = parse_value(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"--set {change!r}: {error}") from error
