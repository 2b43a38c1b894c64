"""Compiles the kernels of the nodes of a parameter file, so that none compiles while a robot waits."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contact_id_controller.control.controller import Controller
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.kernels.compile_progress import Compiling
from contact_id_controller.planning.by_velocity import velocity_planner
from contact_id_controller.planning.kinodynamic.motion_planner import MotionPlanner
from contact_id_controller.safety.guard import Guard
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.parameter_file import ParameterFile


def compile_for(file: Path, tell: Callable[[str], object]) -> int:
    """Compile for every node that a file describes; return the number of kernels that were not in the cache.

    tell: called with lines on the way.

    Raises:
        ContactIdError: a node refuses the file.
    """
    sections = ParameterFile(file).sections()
    wanted = [name for name in sections if name in _NODES]
    if not wanted:
        raise ConfigurationError(
            f"'{file}' has no section of a node that compiles, which are {', '.join(_NODES)}"
        )
    kernels = 0
    for name in wanted:

        def tell_of(line: str, name: str = name) -> object:
            return tell(f"{name}: {line}")

        with Compiling(tell_of) as compiling:
            _NODES[name](sections[name])
        kernels += compiling.kernels
        tell(f"{name}: ready")
    return kernels


def _controller(values: Mapping[str, Any]) -> None:
    """Compile a controller's kernels by warming one up, with ROS's conversions if ROS is installed."""
    settings = ControllerSettings.from_mapping(values)
    controller = Controller(settings.robot(), settings)
    if importlib.util.find_spec("rclpy") is None:
        Guard(controller).warm_up()
        return
    from contact_id_controller.ros.control_loop import ControlLoop

    ControlLoop(controller, _silent).warm_up()


def _gait_planner(values: Mapping[str, Any]) -> None:
    settings = GaitPlannerSettings.from_mapping(values)
    velocity_planner(settings.robot(), settings, settings.terrain)


def _kinodynamic_planner(values: Mapping[str, Any]) -> None:
    MotionPlanner(KinodynamicPlannerSettings.from_mapping(values)).warm_up()


def _dynamics_estimator(values: Mapping[str, Any]) -> None:
    settings = DynamicsEstimatorSettings.from_mapping(values)
    EstimationPipeline(
        settings.robot(), settings.foot_frames, settings.foot_radii_m, settings.pipeline
    )


def _silent(line: str) -> None:
    """A log that drops its lines."""


_NODES: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "controller": _controller,
    "gait_planner": _gait_planner,
    "kinodynamic_planner": _kinodynamic_planner,
    "dynamics_estimator": _dynamics_estimator,
}
