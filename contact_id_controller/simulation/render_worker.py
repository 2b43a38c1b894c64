"""The process that draws for `rendering`: reads a task file, writes raw RGB to standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from contact_id_controller.geometry import SphereFoot, read_ground
from contact_id_controller.simulation.mujoco_robot import MujocoRobot

ARROW_COLOURS = np.array([[0.10, 0.62, 0.35, 1.0], [1.00, 0.50, 0.05, 0.28]], dtype=np.float32)
ARROW_WIDTHS = 0.04, 0.09
"""Widths of arrows as parts of the base's height: of forces, and of predicted ones, seen around them."""

LIGHT_DISTANCE_M = 2.0
CAMERA_LAG_S = 0.3
SMALLEST_FORCE_N = 1e-3


def draw(settings: dict[str, Any], q: np.ndarray, forces: np.ndarray) -> Iterator[np.ndarray]:
    """Draw one picture for each row of q (m, nq) with its forces, and predicted ones, (m, 2, n_feet, 3)."""
    feet = [SphereFoot(*foot) for foot in settings["feet"]]
    simulated = MujocoRobot(
        settings["urdf"],
        feet,
        floating_base=settings["floating_base"],
        locked=settings["locked"],
        terrain=read_ground(settings["ground_file"]) if settings["ground_file"] else None,
        meshes=True,
    )
    model, data = simulated.mujoco_model, simulated.mujoco_data
    model.vis.global_.offwidth = settings["width"]
    model.vis.global_.offheight = settings["height"]
    model.vis.quality.shadowsize = 2048
    model.vis.map.shadowclip = 3.0
    model.vis.quality.offsamples = 2
    model.vis.headlight.ambient[:] = 0.40
    model.vis.headlight.diffuse[:] = 0.30
    size = _size(simulated, q[0])
    scale = settings["metres_per_newton"] or 2.5 * size / simulated.robot.weight
    camera = _camera(size)
    remembered = 1.0 - 1.0 / max(1.0, CAMERA_LAG_S * settings["frames_per_second"])
    target = None
    with mujoco.Renderer(model, settings["height"], settings["width"]) as renderer:
        for configuration, force in zip(q, forces):
            simulated.reset(configuration)
            base = data.xpos[1] if settings["floating_base"] else np.zeros(3)
            centre = np.array([base[0], base[1], 0.6 * size])
            target = centre if target is None else remembered * target + (1 - remembered) * centre
            camera.lookat[:] = target
            # Shadows are drawn only around the point that the light is aimed at.
            data.light_xpos[0] = centre - LIGHT_DISTANCE_M * data.light_xdir[0]
            renderer.update_scene(data, camera)
            points = simulated.foot_positions()
            points[:, 2] -= [foot.radius_m for foot in feet]
            for arrows, width, colour in zip(force, ARROW_WIDTHS, ARROW_COLOURS):
                for point, arrow in zip(points, arrows):
                    if np.linalg.norm(arrow) >= SMALLEST_FORCE_N:
                        _add_arrow(renderer.scene, point, scale * arrow, width * size, colour)
            yield renderer.render()


def _size(simulated: MujocoRobot, q: np.ndarray) -> float:
    """Height of the base above the lowest foot, m; at least a fifth of the robot's extent."""
    extent = float(simulated.mujoco_model.stat.extent)
    if not simulated.robot.floating_base or not simulated.feet:
        return 0.5 * extent
    return max(float(simulated.place_on_ground(q)[2]), 0.2 * extent)


def _camera(size: float) -> mujoco.MjvCamera:
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_FREE
    camera.distance = 5.0 * size
    camera.azimuth = 125.0
    camera.elevation = -16.0
    return camera


def _add_arrow(
    scene: Any, start: np.ndarray, vector: np.ndarray, width: float, colour: np.ndarray
) -> None:
    """Add an arrow to a scene that has been updated, from start (3,) by vector (3,), m, world frame; width: m."""
    if scene.ngeom >= scene.maxgeom:
        return
    geom = scene.geoms[scene.ngeom]
    arrow = mujoco.mjtGeom.mjGEOM_ARROW
    mujoco.mjv_initGeom(geom, arrow, np.zeros(3), np.zeros(3), np.zeros(9), colour)
    # MuJoCo draws an arrow half as long as the distance it is given.
    mujoco.mjv_connector(geom, arrow, width, start, start + 2.0 * vector)
    scene.ngeom += 1


def main() -> None:
    """Draw the task whose file is the first argument."""
    with np.load(sys.argv[1]) as task:
        settings = json.loads(str(task["settings"]))
        q, forces = task["q"], task["forces"]
    for picture in draw(settings, q, forces):
        sys.stdout.buffer.write(picture.tobytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
