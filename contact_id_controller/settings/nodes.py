"""The nodes that have parameters, and their tables."""

from __future__ import annotations

from contact_id_controller.parameter_spec import ParameterSpec
from contact_id_controller.settings.base import Settings
from contact_id_controller.settings.command_watchdog import CommandWatchdogSettings
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.settings.dynamics_estimator import DynamicsEstimatorSettings
from contact_id_controller.settings.gait_planner import GaitPlannerSettings
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.simulated_robot import SimulatedRobotSettings
from contact_id_controller.settings.specification import table_of

SETTINGS: dict[str, type[Settings]] = {
    "controller": ControllerSettings,
    "gait_planner": GaitPlannerSettings,
    "kinodynamic_planner": KinodynamicPlannerSettings,
    "dynamics_estimator": DynamicsEstimatorSettings,
    "simulated_robot": SimulatedRobotSettings,
    "command_watchdog": CommandWatchdogSettings,
}
"""The settings of each node."""

TABLES: dict[str, tuple[ParameterSpec, ...]] = {
    node: table_of(settings) for node, settings in SETTINGS.items()
}
"""The rows of each node."""

_ROWS = [spec.name for table in TABLES.values() for spec in table]

SHARED = frozenset(name for name in _ROWS if _ROWS.count(name) > 1)
"""Names of rows that several nodes have, which a file may give all nodes at once, in its section ``/**``."""
