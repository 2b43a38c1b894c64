"""Uneven ground from YAML files: boxes on a floor, or a grid of heights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import ConfigurationError, RobotDescriptionError, choices
from contact_id_controller.files import read_yaml
from contact_id_controller.geometry.height_field import HeightField
from contact_id_controller.robot import resolve_urdf

CELL_M, MARGIN_M = 0.01, 2.0
"""Defaults: distance of the grid points that boxes are drawn on; floor around the boxes."""
MOST_POINTS = 4_000_000
OF_BOXES = ("boxes", "floor_m", "cell_m", "margin_m")
OF_BOX = ("size_m", "top_m", "turned_deg")
OF_GRID = ("x_m", "y_m", "heights_m")


def read_ground(location: str | Path) -> HeightField:
    """Read the height field of a ground file: a path, or ``package://`` as for a URDF.

    Either ``boxes``, each with ``size_m`` (length, width, height), ``top_m`` (x, y, z of the middle
    of its upper face) and ``turned_deg`` (roll, pitch, yaw; 0 unless given), standing on a floor at
    ``floor_m`` (0) that reaches ``margin_m`` (2) beyond them, on a grid of ``cell_m`` (0.01):
    upper faces are exact, sides lean by one cell. Or ``x_m`` (nx), ``y_m`` (ny) and ``heights_m``
    (nx rows of ny), as for ``HeightField``.

    Raises:
        ConfigurationError: no such file, not YAML, or not such a ground; the message names the entry.
    """
    try:
        path = resolve_urdf(location)
        return _read(path, path.stat().st_mtime_ns)
    except (RobotDescriptionError, OSError) as error:
        line = " ".join(str(error).removeprefix("URDF ").split())
        raise ConfigurationError(f"ground file {str(location)!r} cannot be read: {line}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"ground file {str(location)!r}: {error}") from error


@lru_cache(maxsize=4)
def _read(path: Path, _modified_ns: int) -> HeightField:
    """Read a file; cached by path and modification time, as all nodes of a process use the same ground."""
    return ground_of(read_yaml(path))


def ground_of(content: Any) -> HeightField:
    """Height field of a ground file's content.

    Raises:
        ConfigurationError: see ``read_ground``.
    """
    if not isinstance(content, Mapping) or ("boxes" in content) == ("heights_m" in content):
        raise ConfigurationError("must have either 'boxes' or 'heights_m'")
    if "boxes" in content:
        _refuse_unknown(content, OF_BOXES, "the ground")
        return _of_boxes(content)
    _refuse_unknown(content, OF_GRID, "the ground")
    x, y = (_numbers(content, name, None) for name in OF_GRID[:2])
    try:
        heights = np.array(content["heights_m"], dtype=float)
    except (TypeError, ValueError) as error:
        raise ConfigurationError("'heights_m' must be rows of numbers of one length") from error
    return HeightField(x, y, heights)


def _of_boxes(content: Mapping[str, Any]) -> HeightField:
    """Height field of boxes: a grid of ``cell_m`` raised to the highest top over each point."""
    boxes = content["boxes"]
    if not isinstance(boxes, list) or not boxes:
        raise ConfigurationError("'boxes' must be a list of boxes")
    placed = [_box(values, number) for number, values in enumerate(boxes, 1)]
    floor, cell, margin = (
        float(_numbers({name: content.get(name, default)}, name, 1)[0])
        for name, default in (("floor_m", 0.0), ("cell_m", CELL_M), ("margin_m", MARGIN_M))
    )
    if not (cell > 0.0 and margin > 0.0):
        raise ConfigurationError(f"'cell_m' {cell:g} and 'margin_m' {margin:g} must be above 0")
    corners = np.vstack([_corners(*box) for box in placed])[:, :2]
    low, high = corners.min(axis=0) - margin, corners.max(axis=0) + margin
    first, last = np.floor(low / cell).astype(int), np.ceil(high / cell).astype(int)
    points = np.prod((last - first + 1).astype(float))
    if points > MOST_POINTS:
        raise ConfigurationError(
            f"the ground has {points:.3g} grid points, must have at most {MOST_POINTS:g}: make "
            "'cell_m' larger, or 'margin_m' smaller"
        )
    x, y = (cell * np.arange(a, b + 1) for a, b in zip(first, last))
    heights = np.full((len(x), len(y)), floor)
    for placement, half in placed:
        _raise_by_box(heights, x, y, placement, half)
    return HeightField(x, y, heights)


def _box(values: Any, number: int) -> tuple[pin.SE3, np.ndarray]:
    """Pose of a box's centre, and its half edges (3,), m."""
    what = f"box {number}"
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{what} is {values!r}, must have {choices(OF_BOX)}")
    _refuse_unknown(values, OF_BOX, what)
    turned = {"turned_deg": [0.0, 0.0, 0.0], **values}
    size, top, angles = (_numbers(turned, name, 3, what) for name in OF_BOX)
    if not (size > 0.0).all():
        raise ConfigurationError(f"'size_m' of {what} is {size.tolist()}, must be above 0")
    rotation = pin.rpy.rpyToMatrix(np.deg2rad(angles))
    if not rotation[2, 2] > 0.0:
        raise ConfigurationError(f"{what} is turned by {angles.tolist()} deg: its top looks down")
    return pin.SE3(rotation, top - 0.5 * size[2] * rotation[:, 2]), 0.5 * size


def _corners(placement: pin.SE3, half: np.ndarray) -> np.ndarray:
    signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    return placement.translation + (signs * half) @ placement.rotation.T


def _raise_by_box(
    heights: np.ndarray, x: np.ndarray, y: np.ndarray, placement: pin.SE3, half: np.ndarray
) -> None:
    """Raise heights (nx, ny), m, in place, to the top of a box of half sizes (3,) where vertical lines meet it (slabs)."""
    corners = _corners(placement, half)
    i0, j0 = (np.searchsorted(grid, corners[:, k].min()) for k, grid in enumerate((x, y)))
    i1, j1 = (np.searchsorted(grid, corners[:, k].max(), "right") for k, grid in enumerate((x, y)))
    plan = np.meshgrid(x[i0:i1], y[j0:j1], indexing="ij")
    start = np.stack([*plan, np.zeros_like(plan[0])], axis=-1) - placement.translation
    start, along = start @ placement.rotation, placement.rotation.T @ [0.0, 0.0, 1.0]
    enters, leaves = np.full(plan[0].shape, -np.inf), np.full(plan[0].shape, np.inf)
    for axis in range(3):
        if abs(along[axis]) < 1e-12:
            outside = np.abs(start[..., axis]) > half[axis] + 1e-9
            leaves[outside] = -np.inf
            continue
        ends = (np.array([-1.0, 1.0]) * half[axis] - start[..., axis, None]) / along[axis]
        enters = np.maximum(enters, ends.min(axis=-1))
        leaves = np.minimum(leaves, ends.max(axis=-1))
    part = heights[i0:i1, j0:j1]
    np.maximum(part, leaves, out=part, where=leaves >= enters - 1e-9)


def _refuse_unknown(values: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    for name in values:
        if name not in known:
            raise ConfigurationError(f"{what} has {name!r}, known are {choices(known)}")


def _numbers(
    values: Mapping[str, Any], name: str, count: int | None, what: str = "the ground"
) -> np.ndarray:
    """``count`` finite numbers of a mapping's entry (None: any number of them); ConfigurationError names the entry."""
    try:
        found = np.array(values[name], dtype=float).reshape(-1)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{what} lacks {name!r}, or it is not numbers") from error
    if (count is not None and len(found) != count) or not np.isfinite(found).all():
        wanted = f"{count} finite numbers" if count else "finite numbers"
        raise ConfigurationError(f"{name!r} of {what} is {values[name]!r}, must be {wanted}")
    return found
