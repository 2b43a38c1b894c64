"""All contacts of a robot: its bodies against the environment and against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.geometry import HalfSpace, HeightField
from contact_id_controller.robot import RobotModel
from experiments.rigid.manifold import ContactPoint, contact_points
from experiments.rigid.solids import Solid
from experiments.rigid.terrain import field_points, plane_points


class Body(NamedTuple):
    """A solid on a robot frame; placement: (4, 4) its pose there, None for the identity."""

    frame: str
    shape: Solid
    placement: np.ndarray | None = None


class Surface(NamedTuple):
    """A part of the environment.

    shape: a solid, a ``HalfSpace`` or a ``HeightField``; placement: (4, 4) world pose of a solid or
    half-space, None for the identity. linear_velocity, angular_velocity: of its material, m/s and
    rad/s, world frame, about the placement's origin (a conveyor's belt moves, its shape does not).
    """

    name: str
    shape: Solid | HalfSpace | HeightField
    placement: np.ndarray | None = None
    linear_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    angular_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Scene:
    """Contacts of bodies with surfaces and with each other, named (frame, body, other, body of other, feature...).

    Args:
        bodies: solids on the robot's frames (objects' frames included).
        surfaces: the environment; every body is checked against every surface.
        pairs: pairs of frames whose bodies are checked against each other.
        friction: coefficient, or a mapping from (frame, other name) to one (key None: all others).
        anticipation_m: largest gap of a contact.

    Raises:
        UnknownFrameError, ConfigurationError: names that do not exist or exist twice.
    """

    def __init__(
        self,
        robot: RobotModel,
        bodies: Any,
        surfaces: Any = (),
        pairs: Any = (),
        friction: Any = 1.0,
        anticipation_m: float = 0.01,
    ) -> None:
        if not 0.0 <= anticipation_m < np.inf:
            raise ConfigurationError(f"anticipation_m must not be negative, got {anticipation_m}")
        self.robot, self.anticipation_m = robot, float(anticipation_m)
        self.bodies, surfaces = tuple(bodies), tuple(surfaces)
        self.surfaces = {surface.name: surface for surface in surfaces}
        if len(self.surfaces) != len(surfaces):
            raise ConfigurationError(
                f"surfaces need different names, got {[s.name for s in surfaces]}"
            )
        self._friction = friction if hasattr(friction, "get") else {None: friction}
        self._frames = [robot.model.frames[robot.frame_id(body.frame)] for body in self.bodies]
        self._local = [
            frame.placement * _pose(body.placement)
            for frame, body in zip(self._frames, self.bodies)
        ]
        known = {body.frame for body in self.bodies}
        for pair in pairs:
            for frame in pair:
                if frame not in known:
                    raise ConfigurationError(
                        f"pair {pair} names a frame without a body; there is {choices(known)}"
                    )
        self._pairs = [
            (i, k)
            for first, second in pairs
            for i, one in enumerate(self.bodies)
            if one.frame == first
            for k, other in enumerate(self.bodies)
            if other.frame == second
        ]
        self._data = robot.model.createData()
        self._placed = {name: _place(surface) for name, surface in self.surfaces.items()}

    def move(self, name: str, **change: Any) -> None:
        """Change a surface's ``placement``, ``linear_velocity`` or ``angular_velocity``."""
        if name not in self.surfaces:
            raise ConfigurationError(
                f"surface {name!r} does not exist; there is {choices(self.surfaces)}"
            )
        self.surfaces[name] = self.surfaces[name]._replace(**change)
        self._placed[name] = _place(self.surfaces[name])

    def contacts(self, q: np.ndarray) -> ContactSet:
        """The contacts at configuration q (nq,)."""
        pin.forwardKinematics(self.robot.model, self._data, np.asarray(q, dtype=float))
        return self.contacts_from(self._data)

    def contacts_from(self, data: Any) -> ContactSet:
        """The contacts at joint placements ``data.oMi`` (forward kinematics done)."""
        poses = [
            data.oMi[frame.parentJoint] * local for frame, local in zip(self._frames, self._local)
        ]
        rows = []
        for i, body in enumerate(self.bodies):
            for surface in self.surfaces.values():
                shape, placement = self._placed[surface.name]
                for point in self._against_surface(body.shape, poses[i], shape, placement):
                    arm = point.point - point.gap * point.normal - placement.translation
                    speed = surface.linear_velocity - pin.skew(arm) @ np.array(
                        surface.angular_velocity
                    )
                    rows.append(
                        (
                            point,
                            body.frame,
                            None,
                            speed,
                            surface.name,
                            (body.frame, i, surface.name, 0, *point.feature),
                        )
                    )
        for i, k in self._pairs:
            body, other = self.bodies[i], self.bodies[k]
            if self._far(body.shape, poses[i], other.shape, poses[k]):
                continue
            for point in contact_points(
                body.shape, poses[i], other.shape, poses[k], self.anticipation_m
            ):
                rows.append(
                    (
                        point,
                        body.frame,
                        other.frame,
                        np.zeros(3),
                        other.frame,
                        (body.frame, i, other.frame, k, *point.feature),
                    )
                )
        return self._collect(rows)

    def _against_surface(
        self, solid: Any, pose: pin.SE3, shape: Any, placement: Any
    ) -> list[ContactPoint]:
        """Contact points of a solid against one surface, within ``anticipation_m``; empty if none."""
        if isinstance(shape, HalfSpace):
            return plane_points(solid, pose, shape, self.anticipation_m)
        if isinstance(shape, HeightField):
            return field_points(solid, pose, shape, self.anticipation_m)
        if self._far(solid, pose, shape, placement):
            return []
        return contact_points(solid, pose, shape, placement, self.anticipation_m)

    def _far(self, first: Any, first_pose: pin.SE3, second: Any, second_pose: pin.SE3) -> bool:
        apart = np.linalg.norm(first_pose.translation - second_pose.translation)
        return apart > first.reach_m + second.reach_m + self.anticipation_m

    def _collect(self, rows: Any) -> ContactSet:
        """The contact set of rows (point, frame, other frame, surface velocity, other's name, identity)."""
        if not rows:
            return ContactSet.empty()
        points, frames, against, speeds, others, identities = zip(*rows)
        speeds = np.array(speeds)
        friction = [
            self._friction.get((frame, other), self._friction.get(None, 1.0))
            for frame, other in zip(frames, others)
        ]
        normals = np.array([point.normal for point in points])
        return ContactSet(
            [point.point for point in points],
            normals / np.linalg.norm(normals, axis=1)[:, None],
            frames,
            friction,
            [point.gap for point in points],
            _unique(identities),
            against if any(against) else None,
            speeds if speeds.any() else None,
        )


def _pose(placement: Any) -> pin.SE3:
    if placement is None:
        return pin.SE3.Identity()
    return pin.SE3(np.array(placement, dtype=float))


def _place(surface: Any) -> tuple[Any, pin.SE3]:
    """A surface's shape and pose; half-spaces are turned into the world."""
    pose, shape = _pose(surface.placement), surface.shape
    if isinstance(shape, HalfSpace):
        normal = pose.rotation @ shape.normal
        shape = HalfSpace(normal, shape.offset + normal @ pose.translation)
    return shape, pose


def _unique(identities: Sequence[Any]) -> tuple[Any, ...]:
    """Number identities that occur several times, as when one pair of features touches at two places."""
    count, names = {}, []
    for identity in identities:
        count[identity] = count.get(identity, -1) + 1
        names.append(identity if count[identity] == 0 else (*identity, count[identity]))
    return names
