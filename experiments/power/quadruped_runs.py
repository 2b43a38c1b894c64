"""The runs of ``python -m experiments power``: in each period all force allocations for the same state and plan.

A quadruped stands on level ground and on a slope, swaying, and walks, simulated in MuJoCo.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.control.controller import Controller
from contact_id_controller.exceptions import ConfigurationError, SimulationError
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.plans.base_trajectory import BaseTrajectory
from contact_id_controller.plans.plan import Plan
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.runs.one_process import follow, mujoco_robot
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile, load_settings
from experiments.power.allocations import (
    ALLOCATIONS,
    TOLERANCE,
    allocate_reduced,
    breach,
)

SWAY, SWAY_PERIOD_S = 0.1, 2.0  # of a standing base, as a share of its height
KNOT_S = 0.05  # between points of the planned sway
FALLEN = 0.5  # share of its height below which a robot has fallen


class Run(NamedTuple):
    """One run, arrays over its T periods and the four allocations in the order of ``ALLOCATIONS``.

    power (T, 4) W; broken (T, 4, 3) bool: cone, pull, torque; strict (T, 4) bool: nothing broken, without
    tolerance; kept (T, 4) bool: the planned motion is realised; peak (T, 4) N·m: largest torque of a joint.
    """

    name: str
    friction: float
    driver: str
    limit_nm: float | None
    period_s: float
    power: np.ndarray
    broken: np.ndarray
    strict: np.ndarray
    kept: np.ndarray
    peak: np.ndarray


class Record:
    """Collects the periods of a run."""

    def __init__(self, weights: np.ndarray, limits: np.ndarray) -> None:
        self.weights, self.limits = weights, limits
        self.rows: tuple[list[Any], ...] = [], [], [], [], []

    def add(self, answers: Any, friction: Any) -> None:
        """Add a period: losses, broken limits and largest torques of each allocation."""
        order = [answers[name] for name in ALLOCATIONS]
        for column, values in zip(
            self.rows,
            (
                [self.weights @ a.torques**2 for a in order],
                [breach(a, friction, self.limits, TOLERANCE) for a in order],
                [not any(breach(a, friction, self.limits, 0.0)) for a in order],
                [a.kept for a in order],
                [np.abs(a.torques).max() for a in order],
            ),
        ):
            column.append(values)

    def run(self, name: str, friction: Any, driver: Any, limit_nm: Any, period_s: float) -> Run:
        return Run(name, friction, driver, limit_nm, period_s, *map(np.array, self.rows))


def configuration(name: str) -> Path:
    """A configuration file of the package; its motor constants must be known."""
    path = resolve_urdf(f"package://contact_id_controller/config/{name}.yaml")
    if not load_settings(path).motor_constant_nm_sqrt_w:
        raise ConfigurationError(f"{path} has no motor constants, motor_constant_nm_sqrt_w")
    return path


def legged(
    path: Path,
    name: str,
    duration_s: float,
    *,
    walk: bool = False,
    slope_deg: float = 0.0,
    friction: float | None = None,
    limit_nm: float | None = None,
    solver: str = "qp",
) -> Run:
    """A legged robot in MuJoCo, driven by coulomb/``solver``, standing and swaying or walking.

    slope_deg: gravity is turned about y, downhill along x. friction: of the controller; the ground's
    is the larger of this and its own in the file. limit_nm: of all torques, None: the robot's own.
    """
    changes = {"solver": solver} | (
        {} if friction is None else {"friction_coefficient": [friction]}
    )
    changes |= {} if limit_nm is None else {"effort_limits_nm": [limit_nm]}
    controller, simulated, planner, state = _set_up(path, changes, slope_deg)
    settings, height, previous = controller.settings, state.q[2], None
    record = Record(controller.loss_weights, controller.effort_limits)
    if not walk:
        sway = _sway(state.q, duration_s, SWAY * height)
        controller.follow(Plan(base=sway), state.time_s)
    every = max(1, round(planner.settings.plan_period_s / settings.period_s))
    for k in range(round(duration_s / settings.period_s)):
        if walk and k % every == 0:
            plan = planner.plan(state.time_s, state.q, state.v)
            follow(controller, plan, state.time_s)
        result = controller.step(state)
        if len(result.solution.problem):
            answers, mu, previous = allocate_reduced(
                result.solution.problem, controller.loss_weights, controller.effort_limits, previous
            )
            record.add(answers, mu)
        state = simulated.step(result.torques)
        if state.q[2] < FALLEN * height:
            raise SimulationError(f"{name}: the robot fell after {state.time_s:.2f} s")
    return record.run(
        name, settings.friction_coefficient[0], f"coulomb/{solver}", limit_nm, settings.period_s
    )


def peak_torque(run: Run, allocation: str) -> float:
    """Largest torque of any joint in a run, N·m."""
    return float(run.peak[:, ALLOCATIONS.index(allocation)].max())


def _set_up(path: Any, changes: Any, slope_deg: float) -> tuple[Any, ...]:
    """Controller, simulated robot, planner and first state, with gravity turned for all of them."""
    settings = load_settings(path)
    settings = type(settings).from_mapping(ParameterFile(path).section("controller") | changes)
    robot = RobotModel.from_urdf(settings.urdf, settings.floating_base, list(settings.joints))
    body = ParameterFile(path).section("simulated_robot")
    ground = max(body["friction_coefficient"], max(settings.friction_coefficient))
    simulated = mujoco_robot(settings, ground)
    planner_robot = RobotModel.from_urdf(settings.urdf, True, list(settings.joints))
    values = ParameterFile(path).section("gait_planner")
    planner = GaitPlanner(planner_robot, GaitPlannerSettings.from_mapping(values))
    angle = np.deg2rad(slope_deg)
    down = 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    simulated.mujoco_model.opt.gravity[:] = down
    for model in (robot.model, simulated.robot.model, planner_robot.model):
        model.gravity.linear = down
    controller = Controller(robot, settings)
    q = robot.neutral()
    robot.put_joints(q, body["initial_joint_positions"])
    state = simulated.reset(simulated.place_on_ground(q))
    controller.reset(state)
    return controller, simulated, planner, state


def _sway(q: np.ndarray, duration_s: float, amplitude: Any) -> BaseTrajectory:
    """Base motion on an ellipse over the feet and back, starting at rest."""
    times = np.arange(0.0, duration_s + 2 * KNOT_S, KNOT_S)
    rate = 2.0 * np.pi / SWAY_PERIOD_S
    ways = np.column_stack([np.sin(rate * times) ** 2, 0.5 * (1 - np.cos(rate * times)), 0 * times])
    speeds = np.column_stack(
        [rate * np.sin(2 * rate * times), 0.5 * rate * np.sin(rate * times), 0 * times]
    )
    return BaseTrajectory(
        times,
        q[:3] + amplitude * ways,
        np.tile(q[3:7], (len(times), 1)),
        amplitude * speeds,
        np.zeros((len(times), 3)),
    )
