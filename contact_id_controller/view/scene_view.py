"""The three-dimensional part of the page: robot, ground, forces, friction cones, plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import viser

from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.markers import ARROW_M_PER_WEIGHT
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.view.listener import Listener
from contact_id_controller.view.visuals import RobotShapes

AHEAD_S = 1.0
AHEAD_POINTS = 12
_BLUE, _GREEN, _GREY, _ORANGE = (25, 130, 230), (30, 160, 60), (120, 120, 120), (230, 140, 20)
_NOTHING = np.zeros((1, 2, 3))
_TRACE = 400
"""Number of points of the base's trace."""


class Scene:
    """Draws a robot, its ground, forces, friction cones and plan, in a frame that follows it.

    Args:
        server: of the page.
        robot, settings: of the controller.
    """

    def __init__(
        self, server: viser.ViserServer, robot: RobotModel, settings: ControllerSettings
    ) -> None:
        self._server, self._robot, self._settings = server, robot, settings
        self._scale = ARROW_M_PER_WEIGHT / robot.weight
        self.shapes = RobotShapes(robot, settings.urdf)
        self._feet = [robot.frame_id(frame) for frame in settings.foot_frames]
        self._data = robot.model.createData()
        scene = server.scene
        scene.set_up_direction("+z")
        scene.configure_environment_map(None)
        self._world = scene.add_frame("/world", show_axes=False)
        self._meshes = [
            scene.add_mesh_simple(
                f"/world/robot/{number}_{shape.name}",
                shape.vertices,
                shape.faces,
                color=shape.colour,
                flat_shading=True,
            )
            for number, shape in enumerate(self.shapes.shapes)
        ]
        self._sticks = self._lines("robot/sticks", _GREY, 4.0) if self.shapes.sticks else None
        self._lay_ground()
        self._predicted = self._arrows("predicted", _BLUE)
        self._measured = self._arrows("measured", _GREEN)
        self._cones = self._lines("cones", _GREY, 1.0)
        self._plan = self._lines("plan", _ORANGE, 2.0)
        self._trace = self._lines("trace", _GREY, 1.5)
        self._way: list[np.ndarray] = []
        self._points = scene.add_point_cloud(
            "/world/contacts", np.zeros((1, 3)), (200, 30, 30), point_size=0.012
        )

    def _arrows(self, name: str, colour: Any) -> viser.ArrowsHandle:
        """Add a hidden set of arrows."""
        return self._server.scene.add_arrows(
            f"/world/{name}",
            _NOTHING,
            colour,
            shaft_radius=0.005,
            head_radius=0.012,
            head_length=0.025,
            visible=False,
        )

    def _lines(self, name: str, colour: Any, width: float) -> viser.LineSegmentsHandle:
        """Add a hidden set of line segments; ``width`` in pixels."""
        return self._server.scene.add_line_segments(
            f"/world/{name}",
            _NOTHING,
            colour,
            thickness=width,
            thickness_units="screen",
            visible=False,
        )

    def _lay_ground(self) -> None:
        """Draw the ground: terrain as a mesh, or a grid on its plane."""
        scene, settings = self._server.scene, self._settings
        terrain = settings.terrain
        if terrain is not None:
            scene.add_mesh_simple(
                "/world/ground",
                terrain.points.astype(np.float32),
                terrain.corners,
                color=(190, 185, 175),
                flat_shading=True,
                side="double",
            )
            return
        normal = np.array(settings.ground_normal, dtype=float)
        normal /= np.linalg.norm(normal)
        scene.add_grid(
            "/world/ground",
            40.0,
            40.0,
            cell_size=0.1,
            section_size=1.0,
            plane_opacity=0.4,
            wxyz=_turn_to(normal),
            position=settings.ground_offset_m * normal,
        )

    def show(self, listener: Listener) -> None:
        """Draw the messages received last."""
        q = listener.q
        with self._server.atomic():
            for mesh, (position, wxyz) in zip(self._meshes, self.shapes.place(q), strict=True):
                mesh.position, mesh.wxyz = position, wxyz
            if self._sticks is not None:
                self.shapes.place(q)
                _draw(self._sticks, self.shapes.stick_ends())
            if self._robot.floating_base:
                self._world.position = (-q[0], -q[1], 0.0)
                self._leave_trace(q[:3].copy())
            feet = self._feet_at(q)
            _draw(
                self._predicted, np.array([[arrow.start, arrow.end] for arrow in listener.forces])
            )
            _draw(self._cones, listener.cones)
            starts = np.array([arrow.start for arrow in listener.forces]).reshape(-1, 3)
            self._points.visible = bool(len(starts))
            if len(starts):
                self._points.points = starts.astype(np.float32)
            frames = self._settings.foot_frames
            measured = [
                [foot, foot + self._scale * listener.measured[frame]]
                for frame, foot in zip(frames, feet)
                if frame in listener.measured and np.abs(listener.measured[frame]).max() > 1e-9
            ]
            _draw(self._measured, np.array(measured))

    def show_plan(self, listener: Listener) -> None:
        """Draw the planned paths of base and feet over the next second."""
        joints, base, robot = listener.joint_plan, listener.base_plan, self._robot
        paths: list[np.ndarray] = []
        if joints is not None and (base is not None or not robot.floating_base):
            q, places = listener.q.copy(), []
            for t in listener.time_s + np.linspace(0.0, AHEAD_S, AHEAD_POINTS):
                robot.put_joints(q, joints.sample(t).position)
                if base is not None and robot.floating_base:
                    goal = base.sample(t)
                    q[:3], q[3:7] = goal.position, goal.quaternion_xyzw
                places.append([*([q[:3].copy()] if robot.floating_base else []), *self._feet_at(q)])
            paths = list(np.array(places).swapaxes(0, 1)) if places[0] else []
        lines = [np.stack([path[:-1], path[1:]], axis=1) for path in paths]
        _draw(self._plan, np.concatenate(lines) if lines else np.zeros((0, 2, 3)))

    def _leave_trace(self, place: np.ndarray) -> None:
        if not self._way or np.linalg.norm(place - self._way[-1]) > 0.01:
            self._way.append(place)
            del self._way[:-_TRACE]
            if len(self._way) > 1:
                _draw(self._trace, np.stack([self._way[:-1], self._way[1:]], axis=1))

    def _feet_at(self, q: np.ndarray) -> list[np.ndarray]:
        pin.framesForwardKinematics(self._robot.model, self._data, q)
        return [self._data.oMf[frame].translation.copy() for frame in self._feet]


def _draw(handle: Any, ends: np.ndarray) -> None:
    """Show lines or arrows (n, 2, 3); hide them if there are none."""
    if len(ends):
        handle.points = np.ascontiguousarray(ends, dtype=np.float32)
    if handle.visible != bool(len(ends)):
        handle.visible = bool(len(ends))


def _turn_to(normal: np.ndarray) -> np.ndarray:
    """Quaternion wxyz that rotates the z axis to a unit vector."""
    wxyz = np.array([1.0 + normal[2], -normal[1], normal[0], 0.0])
    size = np.linalg.norm(wxyz)
    return wxyz / size if size > 1e-6 else np.array([0.0, 1.0, 0.0, 0.0])
