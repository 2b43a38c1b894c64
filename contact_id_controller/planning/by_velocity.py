"""The planner that a gait asks for: all are driven by a velocity, and used alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contact_id_controller.geometry import HeightField
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.planning.walking.planner import WalkingPlanner
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.gait import STEP, GaitSettings


def _by_clock(robot: RobotModel, settings: Any, surface: HeightField | None) -> GaitPlanner:
    return GaitPlanner(robot, settings, surface)


def _by_motion(robot: RobotModel, settings: Any, surface: HeightField | None) -> WalkingPlanner:
    return WalkingPlanner.of(robot, settings)


_Maker = Callable[[RobotModel, Any, HeightField | None], GaitPlanner | WalkingPlanner]
_OF_GAIT: dict[str, _Maker] = {STEP: _by_motion}
"""Gaits that have a planner of their own; the gait planner has all others."""


def velocity_planner(
    robot: RobotModel, settings: GaitSettings, surface: HeightField | None = None
) -> GaitPlanner | WalkingPlanner:
    """The planner of a robot by its settings.

    surface: height map of the ground, for gaits that look at it.

    Raises:
        ConfigurationError: settings that do not fit the robot or the map.
        UnknownFrameError: a foot frame that the robot lacks.
    """
    return _OF_GAIT.get(settings.gait, _by_clock)(robot, settings, surface)
