"""The nodes that have parameters, and their tables."""

from __future__ import annotations

from contact_id_controller.settings.command_watchdog import CommandWatchdogSettings
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.kino_dynamic_planner import KinoDynamicPlannerSettings
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.settings.specification import ParameterSpec, table_of

TABLES: dict[str, tuple[ParameterSpec, ...]] = {
    "controller": table_of(ControllerSettings),
    "gait_planner": table_of(GaitPlannerSettings),
    "kino_dynamic_planner": table_of(KinoDynamicPlannerSettings),
    "dynamics_estimator": table_of(DynamicsEstimatorSettings),
    "simulated_robot": table_of(SimulatedRobotSettings),
    "command_watchdog": table_of(CommandWatchdogSettings),
}
"""The rows of each node."""
