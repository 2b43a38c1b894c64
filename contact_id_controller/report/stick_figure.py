"""Pictures of a recorded motion without OpenGL: links as lines, forces as arrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from contact_id_controller.report.style import PREDICTED, SIMULATED
from contact_id_controller.robot import RobotModel

AZIMUTH, ELEVATION = np.radians(125.0), np.radians(20.0)
LINK, SHADOW, GRID = "#495057", "#ced4da", "#e9ecef"
ARROW_PER_WEIGHT = 1.5
"""Length of the arrow of a force of the robot's weight, in heights of the robot."""

DOTS_PER_INCH = 100
GRID_M = 0.1


def draw_stick_figure(
    robot: RobotModel,
    feet: Sequence[Any],
    q: np.ndarray,
    simulated: np.ndarray,
    predicted: np.ndarray,
    *,
    stride: int,
    width: int,
    height: int,
) -> Iterator[np.ndarray]:
    """Draw one picture of every ``stride``-th row, seen in parallel projection, following the base.

    Args:
        feet: objects with ``frame`` and ``center`` (m, in the frame).
        q: configurations, (n, nq).
        simulated, predicted: forces on the feet, (n, f, 3), world frame, N; a picture shows their
            mean over its stride.

    Yields:
        Pictures (height, width, 3), uint8, RGB.
    """
    inches = width / DOTS_PER_INCH, height / DOTS_PER_INCH
    figure = Figure(figsize=inches, dpi=DOTS_PER_INCH, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    size = _size(robot, feet, q[0])
    metres_per_newton = ARROW_PER_WEIGHT * size / robot.weight
    for start in range(0, len(q), stride):
        axis.clear()
        axis.set_axis_off()
        segments, tips = _skeleton(robot, feet, q[start])
        centre = q[start, :3] * (1.0, 1.0, 0.0) if robot.floating_base else np.zeros(3)
        _draw_lines(axis, _grid(centre, 8.0 * size), GRID, 1.0)
        _draw_lines(axis, segments * (1.0, 1.0, 0.0), SHADOW, 2.5)
        _draw_lines(axis, segments, LINK, 4.0)
        x, y = _project(tips).T
        axis.scatter(x, y, s=22, color=LINK, zorder=3)
        block = slice(start, start + stride)
        for forces, colour, thickness in ((simulated, SIMULATED, 4.0), (predicted, PREDICTED, 1.8)):
            _draw_arrows(
                axis, tips, metres_per_newton * forces[block].mean(axis=0), colour, thickness
            )
        middle = _project(centre + np.array([0.0, 0.0, 0.9 * size]))
        axis.set_xlim(middle[0] - 2.4 * size, middle[0] + 2.4 * size)
        axis.set_ylim(
            middle[1] - 2.4 * size * height / width, middle[1] + 2.4 * size * height / width
        )
        canvas.draw()  # type: ignore[no-untyped-call]
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _skeleton(
    robot: RobotModel, feet: Sequence[Any], q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Segments (s, 2, 3) from each joint to its parent and to its feet, and the feet (f, 3)."""
    model, data = robot.model, robot.data
    pin.forwardKinematics(model, data, q)
    pin.updateFramePlacements(model, data)
    segments = [
        (data.oMi[model.parents[joint]].translation, data.oMi[joint].translation)
        for joint in range(1, model.njoints)
        if model.parents[joint] > 0
    ]
    tips = []
    for foot in feet:
        frame = robot.frame_id(foot.frame)
        tip = data.oMf[frame].act(np.asarray(foot.center, dtype=float))
        segments.append((data.oMi[model.frames[frame].parentJoint].translation, tip))
        tips.append(tip)
    return np.array(segments).reshape(-1, 2, 3), np.array(tips).reshape(-1, 3)


def _size(robot: RobotModel, feet: Sequence[Any], q: np.ndarray) -> float:
    """Height of the robot above its lowest foot, m; of a fixed one, its reach."""
    segments, tips = _skeleton(robot, feet, q)
    points = segments.reshape(-1, 3)
    if robot.floating_base and len(tips):
        return float(max(q[2] - tips[:, 2].min(), 1e-3))
    return float(max(0.5 * np.ptp(points, axis=0).max(), 1e-3))


def _project(points: np.ndarray) -> np.ndarray:
    """Project points (..., 3) onto the picture plane, (..., 2), m."""
    right = np.array([np.sin(AZIMUTH), -np.cos(AZIMUTH), 0.0])
    up = np.array(
        [
            np.cos(AZIMUTH) * np.sin(ELEVATION),
            np.sin(AZIMUTH) * np.sin(ELEVATION),
            np.cos(ELEVATION),
        ]
    )
    return points @ np.stack([right, up], axis=1)


def _grid(centre: np.ndarray, extent: float) -> np.ndarray:
    """Grid lines on the ground, z = 0, at multiples of ``GRID_M`` about ``centre``: (s, 2, 3)."""
    first = np.floor((centre[:2] - extent / 2) / GRID_M)
    ticks = GRID_M * (first[:, None] + np.arange(int(extent / GRID_M) + 2))
    (x0, x1), (y0, y1) = ticks[0, [0, -1]], ticks[1, [0, -1]]
    lines = [((x, y0, 0.0), (x, y1, 0.0)) for x in ticks[0]]
    return np.array(lines + [((x0, y, 0.0), (x1, y, 0.0)) for y in ticks[1]])


def _draw_lines(axis: Axes, segments: np.ndarray, colour: str, width: float) -> None:
    axis.add_collection(
        LineCollection(list(_project(segments)), colors=colour, linewidths=width, capstyle="round")
    )


def _draw_arrows(
    axis: Axes, starts: np.ndarray, vectors: np.ndarray, colour: str, width: float
) -> None:
    """Draw vectors (n, 3) m from points (n, 3) m in the figure's projection."""
    for start, end in zip(_project(starts), _project(starts + vectors)):
        if np.linalg.norm(end - start) > 0.0:
            axis.annotate(
                "",
                end,
                start,
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": colour,
                    "linewidth": width,
                    "shrinkA": 0,
                    "shrinkB": 0,
                    "mutation_scale": 5.0 + 3.0 * width,
                },
            )
