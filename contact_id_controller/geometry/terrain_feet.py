"""Spherical feet on a height field, and placing of robots on any ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.geometry.feet import FeetOnGround, FootContacts, SphereFoot, foot_centers
from contact_id_controller.geometry.half_space import HalfSpace
from contact_id_controller.geometry.height_field import HeightField, cell_of, height_in
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.robot import RobotModel

AT_SURFACE_M = 1e-9
FAR_M = 0.03  # what is farther away need not be known exactly
PLACED_M = 1e-9  # gap that placing a robot on the ground may leave
PLACING_STEPS = 200
STANDING_STEPS = 50
REACHED_M = 1e-6  # gap above which a leg is too short
LOWERINGS = 5
LARGEST_STEP = 0.3  # rad or m, of a joint in one step
STIFF = 1e-6  # damps legs that are stretched


class TerrainFeet(FootContacts):
    """The contacts of spherical feet with a height field (``FeetOnGround``).

    Each foot has one contact, its nearest point. Gaps above ``FAR_M`` are not exact: the true one is between ``FAR_M``
    and the height above the ground. The gap of a foot outside the field is infinite.

    Args:
        robot, feet: as for ``FootContacts``.  terrain: the ground.
        friction: Coulomb coefficient: a number, one a foot, or a function of points (n, 3), m.
        viscosity: N s/m, a number or one a foot.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: Sequence[SphereFoot],
        terrain: HeightField,
        friction: ArrayLike | Callable[..., Any] = 1.0,
        viscosity: ArrayLike = 0.0,
    ) -> None:
        # Of the ground the base takes only ``up``: ``update`` is here.
        super().__init__(robot, feet, cast(HalfSpace, terrain), friction, viscosity)
        self.terrain = terrain
        self.level = False  # normals depend on the place
        self._centers = np.zeros((len(self.feet), 3))  # m, world

    def update(self, data: Any) -> None:
        """Compute points, gaps and normals from joint placements ``data.oMi``."""
        foot_centers(self._placements.of(data), self.links, self._offsets, self._centers)
        field = self.terrain
        grid = field.x, field.y, field.heights
        _feet_on_field(self._centers, self._radii, self.rise, *grid, self.normals, self.gaps)
        np.subtract(self._centers, self._radii[:, None] * self.normals, out=self.points)


@kernel
def _feet_on_field(centers, radii, rise, x, y, heights, normals, gaps):
    """Find the nearest contact of each ball (centers (n, 3), radii (n,), m): normals (n, 3), gaps (n,), m.

    rise (n,), m: of the ground at each ball; the gaps are those from the field itself.
    """
    center = np.empty(3)
    for i in range(centers.shape[0]):
        normals[i, 0], normals[i, 1], normals[i, 2] = 0.0, 0.0, 1.0
        gaps[i] = np.inf
        center[0], center[1], center[2] = centers[i, 0], centers[i, 1], centers[i, 2] - rise[i]
        row, column = cell_of(x, center[0]), cell_of(y, center[1])
        if row < 0 or column < 0:
            continue
        surface = height_in(x, y, heights, row, column, center)
        below = center[2] < surface
        reach = max(radii[i], min(abs(center[2] - surface), radii[i] + FAR_M))
        distance = _search(center, reach, below, x, y, heights, row, column, normals[i])
        gaps[i] = (-distance if below else distance) - radii[i] + rise[i] * normals[i, 2]


@kernel
def cells_within(grid, cell, low, high):
    """First and last cell, about the given one, that the interval [low, high], m, meets."""
    first, last = cell, cell
    while first > 0 and grid[first] > low:
        first -= 1
    while last < grid.shape[0] - 2 and grid[last + 1] < high:
        last += 1
    return first, last


@kernel
def triangle_corners(x, y, heights, i, j, upper, out):
    """Corners (3, 3) of a cell's lower or upper triangle, counter-clockwise from above."""
    ends = ((0, 0), (1, 1), (0, 1)) if upper else ((0, 0), (1, 0), (1, 1))
    for k in range(3):
        a, b = i + ends[k][0], j + ends[k][1]
        out[k, 0], out[k, 1], out[k, 2] = x[a], y[b], heights[a, b]


@kernel
def nearest_on_triangle(point, corners, normal, foot):
    """Write a triangle's nearest point foot (3,) and its normal (3,)."""
    a, b, c = corners[0], corners[1], corners[2]
    ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    wx, wy, wz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    nx, ny, nz = uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx
    size = np.sqrt(nx * nx + ny * ny + nz * nz)
    normal[0], normal[1], normal[2] = nx / size, ny / size, nz / size
    height = 0.0
    for d in range(3):
        height += (point[d] - corners[0, d]) * normal[d]
    inside = True
    closest = np.inf
    for k in range(3):
        after = (k + 1) % 3
        ex, px = corners[after, 0] - corners[k, 0], point[0] - corners[k, 0]
        ey, py = corners[after, 1] - corners[k, 1], point[1] - corners[k, 1]
        ez, pz = corners[after, 2] - corners[k, 2], point[2] - corners[k, 2]
        outward = (
            (ey * normal[2] - ez * normal[1]) * px
            + (ez * normal[0] - ex * normal[2]) * py
            + (ex * normal[1] - ey * normal[0]) * pz
        )
        if outward > 0.0:
            inside = False
        share = (px * ex + py * ey + pz * ez) / (ex * ex + ey * ey + ez * ez)
        share = min(max(share, 0.0), 1.0)
        dx, dy, dz = px - share * ex, py - share * ey, pz - share * ez
        distance = dx * dx + dy * dy + dz * dz
        if distance < closest:
            closest = distance
            foot[0], foot[1], foot[2] = point[0] - dx, point[1] - dy, point[2] - dz
    if inside:
        for d in range(3):
            foot[d] = point[d] - height * normal[d]


@kernel
def _search(center, reach, below, x, y, heights, row, column, best):
    """Write the normal of the nearest contact of a ball into best (3,); returns the distance of its centre, m.

    reach: m, horizontal distance within which triangles are searched; below: the centre is below the surface.
    """
    first, last = cells_within(x, row, center[0] - reach, center[0] + reach)
    left, right = cells_within(y, column, center[1] - reach, center[1] + reach)
    corners, normal, foot = np.empty((3, 3)), np.empty(3), np.empty(3)
    nearest = np.inf
    for i in range(first, last + 1):
        for j in range(left, right + 1):
            for upper in range(2):
                triangle_corners(x, y, heights, i, j, upper, corners)
                nearest_on_triangle(center, corners, normal, foot)
                distance = 0.0
                for d in range(3):
                    distance += (center[d] - foot[d]) ** 2
                distance = np.sqrt(distance)
                if distance >= nearest:
                    continue
                nearest = distance
                if distance < AT_SURFACE_M:
                    for d in range(3):
                        best[d] = normal[d]
                else:
                    for d in range(3):
                        best[d] = (center[d] - foot[d]) / (-distance if below else distance)
    return nearest


def feet_on(
    robot: RobotModel, feet: Any, ground: Any, friction: Any = 1.0, viscosity: Any = 0.0
) -> FeetOnGround:
    """Make the contacts of spherical feet with a ``HalfSpace`` or a ``HeightField``.

    Args:
        robot, feet, friction, viscosity: as for ``FootContacts``.

    Raises:
        ConfigurationError: a ground of another kind.
    """
    if isinstance(ground, HalfSpace):
        return FootContacts(robot, feet, ground, friction, viscosity)
    if isinstance(ground, HeightField):
        return TerrainFeet(robot, feet, ground, friction, viscosity)
    raise ConfigurationError(
        f"ground must be a HalfSpace or a HeightField, got {type(ground).__name__}"
    )


def lower_onto(feet: FeetOnGround, model: pin.Model, data: Any, q: np.ndarray) -> np.ndarray:
    """Move the floating base of q (nq,) vertically until the nearest foot touches; returns the new q.

    Works for flat ground and for height fields; the feet must be above the field.
    """
    q = np.array(q, dtype=float)
    for _ in range(PLACING_STEPS):
        pin.forwardKinematics(model, data, q)
        feet.update(data)
        gap = feet.gaps.min()
        q[2] -= gap
        if abs(gap) < PLACED_M:
            break
    return q


def stand_on(feet: FeetOnGround, robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """Put every foot of q (nq,) on its ground, with the base at the mean height above them; returns the new q.

    Each leg is moved so that its foot moves vertically, a sole until its first corner
    touches. Where a leg is too short the base is lower. A foot that cannot reach the ground even so stays above it.
    """
    model, data = robot.model, robot.model.createData()
    q = np.array(q, dtype=float)
    for _ in range(2):
        pin.forwardKinematics(model, data, q)
        feet.update(data)
        q[2] -= feet.gaps.mean()
    for _ in range(LOWERINGS):
        q, gap = _reach_down(feet, robot, q)
        if gap < REACHED_M:
            break
        q[2] -= gap
    return q


def _reach_down(feet: FeetOnGround, robot: RobotModel, q: np.ndarray) -> tuple[np.ndarray, float]:
    """Move the legs of q (nq,) until the feet touch; returns the new q and the largest gap that is left, m."""
    model, data = robot.model, robot.model.createData()
    _, first = np.unique(feet.foot, return_index=True)
    frames = [robot.frame_id(feet.feet[contact].frame) for contact in first]
    for _ in range(STANDING_STEPS):
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        feet.update(data)
        gaps = [feet.gaps[feet.foot == number].min() for number in range(len(frames))]
        if np.abs(gaps).max() < PLACED_M:
            break
        change = np.zeros(robot.nv)
        for frame, gap in zip(frames, gaps):
            rows = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)[:3].copy()
            rows[:, robot.unactuated] = 0.0
            square = rows @ rows.T
            square += STIFF * np.trace(square) * np.eye(3)
            change += rows.T @ np.linalg.solve(square, [0.0, 0.0, -gap])
        # A straight leg has no finite step.
        change *= LARGEST_STEP / max(float(np.abs(change).max()), LARGEST_STEP)
        q = pin.integrate(model, q, change)
    return q, float(np.abs(gaps).max())
