"""Inputs of `plan_motion` from settings and a file of footsteps; stones under the footholds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.planning.kinodynamic.clearance import STONE_MARGIN_M
from contact_id_controller.planning.kinodynamic.contact_plan import (
    ContactPlan,
    ContactPlanError,
    Foothold,
    Sole,
)
from contact_id_controller.planning.kinodynamic.standing import standing_start
from contact_id_controller.planning.kinodynamic.straight_walk import straight_footsteps
from contact_id_controller.robot import RobotModel, resolve_urdf
from contact_id_controller.settings.kinodynamic_planner import KinodynamicPlannerSettings
from contact_id_controller.settings.parameter_file import read_yaml

SIDE_M = 0.01
"""The sides of stones lean by so much, a cell of `geometry.read_ground`."""

INSTALLED = "package://"

_SIGNS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])

STEEPEST_DEG = 75.0
"""A foot does not step onto ground that leans more."""

STONE_DEPTH_M = 0.03
"""And this far below the floor at its middle, so that a tilted one leaves no gap."""


class Task(NamedTuple):
    """Robot, initial configuration and contact plan.

    Attributes:
        robot: the model.  start: (nq,) at rest on the first footholds.
        contact_plan: from there on.
    """

    robot: RobotModel
    start: np.ndarray
    contact_plan: ContactPlan


def read_task(settings: KinodynamicPlannerSettings, footsteps: str | Path) -> Task:
    """Make the task of the settings and a file of footsteps.

    Raises:
        ConfigurationError: settings or a posture that do not fit the robot, or a file that cannot
            be read.
        ContactPlanError: footsteps that contradict each other.
    """
    return _task(
        settings,
        lambda soles, _: read_footsteps(footsteps, soles, settings.friction_coefficient),
    )


def task_of(settings: KinodynamicPlannerSettings, folder: Path | None = None) -> Task:
    """Make the task of the settings alone: walk to their goal, or make their file's footsteps.

    Raises:
        ConfigurationError, ContactPlanError: see `walk_task`, `read_task`, `footsteps_file`.
    """
    if settings.goal:
        return walk_task(settings, settings.goal)
    return read_task(settings, footsteps_file(settings, folder))


def walk_task(settings: KinodynamicPlannerSettings, goal: tuple[float, ...]) -> Task:
    """Make the task to walk straight to a goal (x, y, m; heading, rad) on level ground.

    Raises:
        ConfigurationError: settings or a posture that do not fit the robot, or an invalid goal.
    """
    return _task(
        settings,
        lambda soles, stance: straight_footsteps(
            soles,
            stance,
            stance,
            (goal[0], goal[1], goal[2]),
            stride_m=settings.stride_m,
        ),
    )


def _task(settings: KinodynamicPlannerSettings, steps: Callable[..., Iterable[Foothold]]) -> Task:
    """Make a task; ``steps(soles, stance)`` gives the footsteps."""
    robot, soles = settings.robot(), soles_of(settings)
    start, stance = standing_posture(robot, soles, settings)
    plan = ContactPlan.from_footsteps(
        soles,
        stance,
        steps(soles, stance),
        support_s=settings.support_s,
        swing_s=settings.swing_s,
    )
    return Task(robot, start, plan)


def standing_posture(
    robot: RobotModel, soles: Sequence[Sole], settings: KinodynamicPlannerSettings
) -> tuple[np.ndarray, tuple[Foothold, ...]]:
    """Put the robot in the settings' posture, feet around the origin: q (nq,) and footholds; see `standing_start`.

    Raises:
        ConfigurationError: a posture that does not fit the robot.
    """
    posture = np.array(settings.posture or (0.0,) * robot.na)
    if len(posture) != robot.na:
        raise ConfigurationError(
            f"parameter 'posture' has {len(posture)} values, must have {robot.na}, one per joint"
        )
    return standing_start(robot, soles, posture, settings.friction_coefficient)


def footsteps_file(settings: KinodynamicPlannerSettings, folder: Path | None = None) -> Path:
    """Path of the settings' file of footsteps; a relative path begins at ``folder``, if any.

    Raises:
        ConfigurationError: the settings name none.
    """
    if not settings.footsteps:
        raise ConfigurationError("parameters 'goal' and 'footsteps' are both empty")
    if settings.footsteps.startswith(INSTALLED):
        return resolve_urdf(settings.footsteps)
    return (folder or Path()) / settings.footsteps


def soles_of(settings: KinodynamicPlannerSettings) -> tuple[Sole, ...]:
    """Soles of the settings' feet, spherical ones first: points at the lowest place of their spheres."""
    radii = settings.spread("contact_radii_m", len(settings.contact_frames)).tolist()
    round_feet = (
        Sole(frame, center_m=(0.0, 0.0, -radius))
        for frame, radius in zip(settings.contact_frames, radii)
    )
    flat_feet = (
        Sole(foot.frame, foot.half_size_m, foot.center_m, settings.cop_margin_m)
        for foot in settings.flat_feet
    )
    return (*round_feet, *flat_feet)


def read_footsteps(
    path: str | Path, soles: Iterable[Sole], friction_coefficient: float = 0.6
) -> tuple[Foothold, ...]:
    """Read the footholds of a YAML file, one row a step: ``{foot: frame, at: [x, y, z], turned: [r, p, y]}``.

    ``at`` is the point of the ground, m, below the origin of the foot's frame; ``turned`` are roll, pitch, yaw of the
    ground there, degrees, 0 unless given.

    Raises:
        ConfigurationError: no such file, or not YAML.
        ContactPlanError: an invalid row, or a foot that the robot lacks.
    """
    rows = read_yaml(path)
    if not isinstance(rows, list) or not rows:
        raise ConfigurationError(f"'{path}' must be a list of footsteps, one row a step")
    return tuple(
        _foothold(row, number, soles, friction_coefficient) for number, row in enumerate(rows, 1)
    )


def _foothold(row: Any, number: int, soles: Iterable[Sole], friction: float) -> Foothold:
    """Pose of the foot's frame above the ground of a row."""
    by_name = {sole.frame: sole for sole in soles}
    try:
        ground = Foothold.from_row(row, friction)
        if ground.foot not in by_name:
            raise ContactPlanError(
                f"foot {ground.foot!r} does not exist; there are {', '.join(by_name)}"
            )
        return standing_on(ground, by_name[ground.foot])
    except ContactPlanError as error:
        raise ContactPlanError(f"footstep {number}: {error}") from error


def standing_on(ground: Foothold, sole: Sole) -> Foothold:
    """Pose of the foot's frame for a pose of the ground below it.

    Raises:
        ContactPlanError: the ground is steeper than `STEEPEST_DEG`, or turned over.
    """
    leans_deg = float(np.rad2deg(np.arccos(np.clip(ground.rotation[2, 2], -1.0, 1.0))))
    if not leans_deg <= STEEPEST_DEG:
        raise ContactPlanError(
            f"the ground of foot {ground.foot!r} leans by {leans_deg:.3g} degrees, must be at most "
            f"{STEEPEST_DEG:g}"
        )
    place = ground.position - sole.center_m[2] * ground.rotation[:, 2]
    return Foothold(ground.foot, place, ground.rotation, ground.friction_coefficient)


def stones_below(plan: ContactPlan) -> dict[str, Any]:
    """Box under each foothold that is not on the floor at height 0, as `geometry.read_ground` reads them.

    The stone of a point foot has the margin alone as its half lengths.

    Raises:
        ContactPlanError: a stone reaches under a sole that stands on another one.
    """
    boxes, stones = [], []
    seen: list[tuple[str, np.ndarray]] = []
    for phase in plan.phases:
        for foothold in phase.footholds:
            sole = plan.sole_of(foothold.foot)
            top = foothold.position + foothold.rotation @ np.array(sole.center_m)
            if any(foothold.foot == foot and np.allclose(top, at) for foot, at in seen):
                continue
            seen.append((foothold.foot, top))
            level = abs(top[2]) < 1e-6 and abs(foothold.rotation[2, 2] - 1.0) < 1e-9
            stones.append((foothold, top, np.array(sole.half_size_m), not level))
            if level:
                continue
            size = 2.0 * (np.array(sole.half_size_m) + STONE_MARGIN_M)
            depth = abs(float(top[2])) + STONE_DEPTH_M
            turned = np.rad2deg(pin.rpy.matrixToRpy(foothold.rotation))
            boxes.append(
                {
                    "size_m": [*_rounded(size), round(depth, 6)],
                    "top_m": _rounded(top),
                    "turned_deg": _rounded(turned),
                }
            )
    _refuse_overlap(stones)
    return {"boxes": boxes, "margin_m": 1.0} if boxes else {}


def _refuse_overlap(stones: Any) -> None:
    """Raise ContactPlanError if a corner of a sole lies above another foothold's stone, whose side would lift it."""
    for one, top, half, _ in stones:
        corners = top + (half * _SIGNS) @ one.rotation[:, :2].T
        for other, centre, reach, is_stone in stones:
            if other is one or not is_stone:
                continue
            away = np.abs((corners - centre) @ other.rotation[:, :2])
            if (away < reach + STONE_MARGIN_M + SIDE_M).all(axis=1).any():
                raise ContactPlanError(
                    f"foot {one.foot} at {_rounded(one.position)} m would stand on the stone of "
                    f"foot {other.foot} at {_rounded(other.position)} m: leave at least "
                    f"{1e3 * (STONE_MARGIN_M + SIDE_M):.0f} mm between these soles"
                )


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 6) for value in values]
