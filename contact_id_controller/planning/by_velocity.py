"""The planner of each gait: all are driven by a velocity, and have the same interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from contact_id_controller.geometry import HeightField
from contact_id_controller.planning.gait.ground import refuse_ground
from contact_id_controller.planning.gait.legs import Legs
from contact_id_controller.planning.gait.planner import GaitPlanner
from contact_id_controller.planning.walking.planner import WalkingPlanner
from contact_id_controller.robot import RobotModel
from contact_id_controller.settings.gait import STEP, GaitSettings


def _by_clock(robot: RobotModel, settings: Any, surface: HeightField | None) -> GaitPlanner:
    return GaitPlanner(robot, settings, surface)


def _by_motion(robot: RobotModel, settings: Any, surface: HeightField | None) -> WalkingPlanner:
    planner = WalkingPlanner.of(robot, settings, surface)
    planner.warm_up()
    return planner


def _legs(robot: RobotModel, settings: GaitSettings, surface: HeightField | None) -> str:
    refuse_ground(settings, surface)
    Legs(robot, settings.feet)
    return f"{len(settings.feet)} legs with three joints or more"


def _feet(robot: RobotModel, settings: GaitSettings, surface: HeightField | None) -> str:
    WalkingPlanner.of(robot, settings, surface)
    return f"{len(settings.feet)} feet that step where the motion asks"


class _Row(NamedTuple):
    """make: the planner.  fits: a finding on whether the robot fits."""

    make: Callable[[RobotModel, Any, HeightField | None], GaitPlanner | WalkingPlanner]
    fits: Callable[[RobotModel, GaitSettings, HeightField | None], str]


_BY_CLOCK = _Row(_by_clock, _legs)
_OF_GAIT = {STEP: _Row(_by_motion, _feet)}
"""Gaits that have a planner of their own; the gait planner has all others."""


def fit(robot: RobotModel, settings: GaitSettings, surface: HeightField | None = None) -> str:
    """A line about the feet of a robot that the planner of its settings can lead, on that map of the ground.

    Raises:
        ConfigurationError, UnknownFrameError: it cannot.
    """
    return _OF_GAIT.get(settings.gait, _BY_CLOCK).fits(robot, settings, surface)


def velocity_planner(
    robot: RobotModel, settings: GaitSettings, surface: HeightField | None = None
) -> GaitPlanner | WalkingPlanner:
    """The planner of a robot by its settings.

    surface: height map of the ground, for gaits that look at it.

    Raises:
        ConfigurationError: settings that do not fit the robot or the map.
        UnknownFrameError: a foot frame that the robot lacks.
    """
    return _OF_GAIT.get(settings.gait, _BY_CLOCK).make(robot, settings, surface)
