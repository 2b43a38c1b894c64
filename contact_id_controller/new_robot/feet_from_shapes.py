"""Feet of a description: the lowest collision shapes at the end of each leg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import coal
import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import RobotDescriptionError
from contact_id_controller.robot import frame_index

SAME_PLACE_M = 1e-3
"""Largest distance of frames and centres that count as coincident."""

SOLE_THICKNESS_M = 5e-3
"""Height above the lowest point of a foot up to which points belong to its sole."""

UNKNOWN_RADIUS_M = 0.01
"""Radius of a round foot of unknown shape."""

LEVEL = 0.99
"""Least vertical component of a sole's z axis with the joints near zero."""

ROUND_DIRECTIONS = 8


class RoundFoot(NamedTuple):
    """A spherical foot around the origin of a frame; known: whether the description has its radius."""

    frame: str
    radius_m: float
    known: bool
    center_m: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Sole(NamedTuple):
    """A rectangle on a frame whose z axis points out of the ground; m, in the frame."""

    frame: str
    half_size_m: tuple[float, float]
    center_m: tuple[float, float, float]


def round_foot(model: pin.Model, q: np.ndarray, joint: int, parts: list[Any]) -> RoundFoot:
    """The foot at the end of a leg with few joints: a frame in the centre of a sphere, else the lowest frame."""
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    own = [part for part in parts if part.parentJoint == joint]
    frames = _bodies(model, joint)
    for part in own:
        if isinstance(part.geometry, coal.Sphere):
            for frame in frames:
                away = frame.placement.translation - part.placement.translation
                if np.linalg.norm(away) < SAME_PLACE_M:
                    return RoundFoot(frame.name, float(part.geometry.radius), True)
    heights = [data.oMf[frame_index(model, frame.name)].translation[2] for frame in frames]
    lowest = int(np.argmin(heights))
    points = [float(_points(data.oMi[joint], part)[:, 2].min()) for part in own]
    radius = heights[lowest] - min(points) if points else 0.0
    known = radius > SAME_PLACE_M
    return RoundFoot(frames[lowest].name, float(radius) if known else UNKNOWN_RADIUS_M, known)


def alike(feet: Sequence[RoundFoot]) -> list[RoundFoot]:
    """Round feet with one radius, their largest, where they differ by drawing inaccuracy only."""
    radii = [foot.radius_m for foot in feet]
    same = max(radii) - min(radii) < SAME_PLACE_M
    return [foot._replace(radius_m=max(radii)) if same else foot for foot in feet]


def sole(model: pin.Model, q: np.ndarray, joint: int, parts: list[Any]) -> Sole:
    """The sole at the end of a leg with many joints: the rectangle around its lowest points.

    Raises:
        RobotDescriptionError: no shape, one without length or width, or no frame with an upright z axis.
    """
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    name = model.names[joint]
    own = [_points(data.oMi[joint], part) for part in parts if part.parentJoint == joint]
    if not own:
        raise RobotDescriptionError(
            f"the foot behind joint {name!r} has no collision shape that can be read: give its link a "
            "<collision> in the URDF, such as a box of the sole's size, and run contact_id new again"
        )
    upright = [
        frame
        for frame in _bodies(model, joint)
        if data.oMf[frame_index(model, frame.name)].rotation[2, 2] > LEVEL
    ]
    if not upright:
        raise RobotDescriptionError(
            f"no frame of the foot behind joint {name!r} has its z axis upright when all joints are "
            "near zero, as soles must: fix a link to it in the URDF that has, and run "
            "contact_id new again"
        )
    frame = upright[0]
    placement = data.oMf[frame_index(model, frame.name)]
    within = (np.concatenate(own) - placement.translation) @ placement.rotation
    lowest = within[:, 2].min()
    touching = within[within[:, 2] < lowest + SOLE_THICKNESS_M, :2]
    low, high = touching.min(axis=0), touching.max(axis=0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    if min(half) < SAME_PLACE_M:
        raise RobotDescriptionError(
            f"the lowest shape of the foot behind joint {name!r} is {2e3 * half[0]:.0f} x {2e3 * half[1]:.0f} mm: "
            "give its link a <collision> in the URDF, such as a box of the sole's size, and run contact_id new again"
        )
    return Sole(
        frame.name,
        (float(half[0]), float(half[1])),
        (float(middle[0]), float(middle[1]), float(lowest)),
    )


def _bodies(model: pin.Model, joint: int) -> list[Any]:
    """Frames of the links that move with a joint."""
    return [
        frame
        for frame in model.frames
        if frame.parentJoint == joint and frame.type == pin.FrameType.BODY
    ]


def _points(place: pin.SE3, part: Any) -> np.ndarray:
    """Extreme points (p, 3) of a shape in the world, m; place: pose of its joint."""
    shape, placed = part.geometry, place * part.placement
    if isinstance(shape, coal.Sphere):
        return placed.translation + shape.radius * np.concatenate([np.eye(3), -np.eye(3)])
    if isinstance(shape, coal.BVHModelBase):
        local = np.array(shape.vertices()).reshape(-1, 3)
    elif isinstance(shape, coal.Cylinder):
        angles = np.linspace(0.0, 2.0 * np.pi, ROUND_DIRECTIONS, endpoint=False)
        ring = shape.radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
        half = np.array([0.0, 0.0, shape.halfLength])
        local = np.concatenate([ring + half, ring - half])
    else:
        shape.computeLocalAABB()
        sides = np.array([shape.aabb_local.min_, shape.aabb_local.max_]).reshape(2, 3)
        local = np.array(np.meshgrid(*sides.T)).reshape(3, -1).T
    return local @ placed.rotation.T + placed.translation
