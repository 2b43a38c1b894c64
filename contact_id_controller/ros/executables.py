"""Entry points of the package's executables: each imports its node, which takes a second, and runs it.

An interrupt meanwhile ends it without a traceback.
"""

from __future__ import annotations

import functools
import importlib

from contact_id_controller.ros.signals import leave_at_once


def _start(node: str) -> int:
    leave_at_once()
    return importlib.import_module(f"contact_id_controller.{node}").main()


controller = functools.partial(_start, "ros.controller")
command_watchdog = functools.partial(_start, "ros.command_watchdog")
dynamics_estimator = functools.partial(_start, "ros.dynamics_estimator")
gait_planner = functools.partial(_start, "ros.gait_planner")
kinodynamic_planner = functools.partial(_start, "ros.kinodynamic_planner")
simulated_robot = functools.partial(_start, "ros.simulated_robot")
viewer = functools.partial(_start, "view.viewer")
