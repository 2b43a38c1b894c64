"""The visual shapes of a robot's URDF as meshes: primitives and mesh files."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import trimesh

from contact_id_controller.robot import RobotModel, model_of, resolve_urdf

_GREY = (0.6, 0.6, 0.65, 1.0)
MOST_TRIANGLES = 20_000
"""Largest number of triangles of a mesh, so that a phone can show the robot."""


class Shape(NamedTuple):
    """A mesh in the frame of its shape: vertices (n, 3) m, faces (t, 3), RGB of 0 to 255."""

    name: str
    vertices: np.ndarray
    faces: np.ndarray
    colour: tuple[int, int, int]


class RobotShapes:
    """The visual shapes of a robot and their poses.

    Args:
        robot: has the configurations to show.
        urdf: its description; shapes whose mesh is missing or unreadable are skipped, a robot
            without any is shown by sticks between its joints.

    Attributes:
        shapes: of the robot.
        remark: what could not be shown, one line; empty: everything is shown.
    """

    def __init__(self, robot: RobotModel, urdf: str) -> None:
        file = resolve_urdf(urdf)
        # The model of all joints, since the robot's own lacks those that are locked.
        self._model = model_of(file, robot.floating_base)
        self._data = self._model.createData()
        self._q = pin.neutral(self._model)
        for name, angle in robot.locked.items():
            self._set(name, angle)
        self._robot = robot
        self.remark = ""
        try:
            geometry = pin.buildGeomFromUrdf(
                self._model,
                str(file),
                pin.GeometryType.VISUAL,
                package_dirs=[str(folder) for folder in file.parents],
            )
            self._objects = list(geometry.geometryObjects)
        except (ValueError, RuntimeError) as error:
            self.remark = f"meshes are not shown: {' '.join(str(error).split())}"
            self._objects = []
        shapes = [(each, _shape(each)) for each in self._objects]
        self._placed = [each for each, shape in shapes if shape is not None]
        self.shapes = [shape for _, shape in shapes if shape is not None]
        self.sticks = not self.shapes

    def _set(self, name: str, angle: float) -> None:
        joint = self._model.joints[self._model.getJointId(name)]
        if joint.nq == 1:
            self._q[joint.idx_q] = angle
        elif joint.nq == 2:
            self._q[joint.idx_q : joint.idx_q + 2] = np.cos(angle), np.sin(angle)

    def place(self, q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Position (3,), m, and quaternion wxyz (4,) of each shape for a configuration of the robot."""
        robot = self._robot
        if robot.floating_base:
            self._q[:7] = q[:7]
        for name, position in zip(robot.joint_names, robot.joints_of(q)):
            self._set(name, position)
        pin.forwardKinematics(self._model, self._data, self._q)
        places = []
        for each in self._placed:
            pose = self._data.oMi[each.parentJoint] * each.placement
            x, y, z, w = pin.Quaternion(pose.rotation).coeffs()
            places.append((pose.translation.copy(), np.array([w, x, y, z])))
        return places

    def height_m(self) -> float:
        """Height of the robot, m, all joints at 0; 0 if it is shown by sticks."""
        places = self.place(self._robot.neutral())
        heights = [
            (pin.Quaternion(*wxyz).toRotationMatrix() @ shape.vertices.T)[2] + place[2]
            for shape, (place, wxyz) in zip(self.shapes, places, strict=True)
        ]
        return float(np.ptp(np.concatenate(heights))) if heights else 0.0

    def stick_ends(self) -> np.ndarray:
        """(s, 2, 3) m: lines from each joint to its parent, of the configuration placed last."""
        model, places = self._model, self._data.oMi
        first = 2 if self._robot.floating_base else 1
        return np.array(
            [
                [places[model.parents[j]].translation, places[j].translation]
                for j in range(first, model.njoints)
            ]
        )


def _shape(each: Any) -> Shape | None:
    """A geometry as a triangle mesh with its colour, 0 to 255; None where it has no mesh."""
    mesh = _mesh(each.geometry)
    if mesh is None or not len(mesh.faces):
        return None
    colour = np.array(each.meshColor if each.meshColor is not None else _GREY)[:3]
    red, green, blue = (255 * np.clip(colour, 0.0, 1.0)).astype(int).tolist()
    vertices = np.asarray(mesh.vertices) * np.array(each.meshScale).ravel()
    return Shape(each.name, vertices.astype(np.float32), mesh.faces, (red, green, blue))


def _mesh(geometry: Any) -> trimesh.Trimesh | None:
    """Triangles (m, in its own frame) of a shape of coal; None for shapes that are not handled here.

    Of a mesh with more than ``MOST_TRIANGLES`` only each k-th triangle is drawn.
    """
    kind = type(geometry).__name__
    if kind == "Box":
        return trimesh.creation.box(extents=2.0 * np.array(geometry.halfSide))
    if kind == "Sphere":
        return trimesh.creation.icosphere(subdivisions=2, radius=geometry.radius)
    if kind == "Cylinder":
        return trimesh.creation.cylinder(geometry.radius, 2.0 * geometry.halfLength, sections=24)
    if kind == "Capsule":
        return trimesh.creation.capsule(2.0 * geometry.halfLength, geometry.radius, count=(12, 12))
    if not hasattr(geometry, "num_tris"):
        return None
    step = -(-geometry.num_tris // MOST_TRIANGLES) or 1
    triangles = map(geometry.tri_indices, range(0, geometry.num_tris, step))
    corners = np.array([(t[0], t[1], t[2]) for t in triangles], dtype=int).reshape(-1, 3)
    used, faces = np.unique(corners, return_inverse=True)
    vertices = np.array(geometry.vertices())[used]
    return trimesh.Trimesh(vertices, faces.reshape(-1, 3), process=False)
