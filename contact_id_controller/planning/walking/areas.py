"""Where on a height map a foot may stand: flat areas about its usual place, each a box of footholds on one plane.

An area is grown from a place on which the whole foot is on one plane: step by step to the four sides, turned as the foot
is, as long as the ground that the foot covers stays on that plane. Where it ends, footholds keep ``EDGE_M`` from it. As
the foot's size is counted when an area grows, an area is where its middle may be.

Of the ground below a foot all points of the map's grid are seen, of a grid finer than ``FINEST_M`` every few of them, and
what is between them each ``SPACING_M``. Outside the map the ground goes on as high as at its border.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.geometry import HeightField
from contact_id_controller.geometry.height_field import height_in
from contact_id_controller.kernels.compile import bare_kernel, kernel

FLAT_M = 0.005
"""Distance of the ground from a plane up to which it counts as that plane."""

STEEPEST = 0.36
"""Slope of a plane on which feet stand, tan 20 degrees."""

EDGE_M = 0.015
"""Of a foot from the end of its plane: places are missed by some millimetres."""

SPACING_M = 0.02
"""Largest distance of points at which the ground below a foot is looked up."""

FINEST_M = 0.005
"""Least distance of points of the map's grid that are looked up."""

GROWN_M, GROWTH_M = 0.2, 0.01
"""An area that reaches so far to a side has no bound there; length by which it grows."""

SEED_M = 0.05
"""Distance of places from which areas are grown."""

MOST_AREAS = 4

OUTWARDS = np.array([-1.0, -1.0, 1.0, 1.0])
"""Signs of the sides of a box of footholds, see ``_grow``."""

LEAST_M = 0.01
"""Half size of a foot that is a point."""


class Area(NamedTuple):
    """Places for the middle of a foot.

    Attributes:
        normals (k, 2), bounds (k,): normals x <= bounds, m, world.
        middle (2,), height_m, slope (2,): of its plane, z = height + slope (x - middle), world.
    """

    normals: np.ndarray
    bounds: np.ndarray
    middle: np.ndarray
    height_m: float
    slope: np.ndarray

    def height_at(self, place: np.ndarray) -> float:
        """Height of its plane at a place (2,), m."""
        return self.height_m + float(self.slope @ (place - self.middle))

    def nearest(self, place: np.ndarray) -> np.ndarray:
        """A place (2,) brought into it, edge by edge, m."""
        return brought_into(self.normals, self.bounds, place)

    def bounded(self, normal: np.ndarray, bound: float) -> Area:
        """The part of it in which normal (2,) x <= bound, m."""
        normals, bounds = np.vstack([self.normals, normal]), np.append(self.bounds, bound)
        return self._replace(normals=normals, bounds=bounds)

    def holds(self, place: np.ndarray) -> bool:
        """Whether a place (2,) is one of it."""
        return bool((self.normals @ place <= self.bounds + 1e-9).all())


def spot(place: np.ndarray, height_m: float, slope: np.ndarray) -> Area:
    """One place (2,), m, of that height and slope (2,), as an area."""
    normals = np.vstack([np.eye(2), -np.eye(2)])
    return Area(normals, normals @ place, place, height_m, slope)


def brought_into(normals: np.ndarray, bounds: np.ndarray, point: np.ndarray) -> np.ndarray:
    """A point (2,) brought into a region, edge by edge."""
    for _ in range(3):
        over = normals @ point - bounds
        k = int(np.argmax(over)) if len(over) else 0
        if not len(over) or over[k] <= 0.0:
            break
        point = point - over[k] * normals[k]
    return point


class Areas:
    """The areas of one map for feet of one size.

    Args:
        field: the map.  half_sizes (2,): of a sole, m; 0: points.
        search_m: how far from the usual place areas are looked for.
    """

    def __init__(self, field: HeightField, half_sizes: np.ndarray, search_m: float) -> None:
        cells = [(len(axis) - 1) / float(axis[-1] - axis[0]) for axis in (field.x, field.y)]
        self._field = field.x, field.y, field.heights, np.array(cells)
        self._half = np.maximum(half_sizes, LEAST_M)
        count = int(search_m / SEED_M + 1e-9)
        grid = SEED_M * np.arange(-count, count + 1)
        seeds = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
        away = np.linalg.norm(seeds, axis=1)
        order = np.argsort(away, kind="stable")
        self._seeds = seeds[order][away[order] <= search_m + 1e-9]

    def near(self, place: np.ndarray, yaw: float, alone: bool = False) -> list[Area]:
        """The areas about a place (2,), m, for a foot of that yaw, rad; the one at the place first.

        alone: no other one if the place lies in it.
        """
        boxes, planes = np.empty((MOST_AREAS, 4)), np.empty((MOST_AREAS, 3))
        turn = _turn(yaw)
        count = _areas_near(self._field, place, turn, self._half, self._seeds, alone, boxes, planes)
        sides = np.concatenate([-turn.T, turn.T])
        away, found = boxes[:count] * OUTWARDS, []
        for each, plane in zip(away, planes):
            bounded = np.isfinite(each)
            normals = sides[bounded]
            bounds = each[bounded] + normals @ place
            found.append(Area(normals, bounds, place, float(plane[0]), plane[1:]))
        return found

    def height_at(self, place: np.ndarray) -> float:
        """Height of the ground at a place (2,), m."""
        return float(_height(self._field, place[0], place[1]))

    def covers(self, place: np.ndarray) -> bool:
        """Whether a place (2,), m, is on the map."""
        return all(bool(axis[0] <= at <= axis[-1]) for axis, at in zip(self._field[:2], place))

    def highest(self, begin: np.ndarray, end: np.ndarray, yaw: float) -> float:
        """Height of the highest ground below a foot that goes from begin (2,) to end (2,), m."""
        return float(_highest(self._field, begin, end, _turn(yaw), self._half))


def _turn(yaw: float) -> np.ndarray:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s], [s, c]])


@bare_kernel
def _cell(axis, per_m, at):
    """Number of the cell of a grid's axis that contains a place on it, m; per_m: mean number of cells."""
    last = axis.shape[0] - 2
    k = min(int((at - axis[0]) * per_m), last)
    while at < axis[k]:
        k -= 1
    while k < last and at >= axis[k + 1]:
        k += 1
    return k


@bare_kernel
def _height(field, at_x, at_y):
    """Height of the ground, m; outside the map that of its border."""
    x, y, heights, per_m = field
    if np.isnan(at_x + at_y):
        return np.nan
    at_x, at_y = min(max(at_x, x[0]), x[-1]), min(max(at_y, y[0]), y[-1])
    i, j = _cell(x, per_m[0], at_x), _cell(y, per_m[1], at_y)
    return height_in(x, y, heights, i, j, (at_x, at_y))


@bare_kernel
def _numbers(axis, low, high):
    """First number, end and stride of the points of a grid's axis between two places, m."""
    first, end = np.searchsorted(axis, low), np.searchsorted(axis, high, side="right")
    cell = (axis[-1] - axis[0]) / (len(axis) - 1)
    return first, end, max(int(FINEST_M / cell + 1e-6), 1)


@bare_kernel
def _off_plane(field, place, turn, plane, first, last, known):
    """Largest distance, m, of the ground from a plane over a rectangle; not a number if its height is none.

    place (2,): of the plane, m.  turn (2, 2): columns are the rectangle's axes.  plane (3,): height at the place and slopes
    along these axes.  first, last (2,): corners along them, m from the place.  known: axis along which the side at first is on
    the plane already, or -1.
    """
    x, y, heights, _ = field
    worst = 0.0
    wide, long = last[0] - first[0], last[1] - first[1]
    many_a = max(int(np.ceil(abs(wide) / SPACING_M - 1e-9)), 0)
    many_b = max(int(np.ceil(abs(long) / SPACING_M - 1e-9)), 0)
    for i in range(1 if known == 0 else 0, many_a + 1):
        a = first[0] + wide * i / max(many_a, 1)
        for j in range(1 if known == 1 else 0, many_b + 1):
            b = first[1] + long * j / max(many_b, 1)
            height = _height(
                field,
                place[0] + turn[0, 0] * a + turn[0, 1] * b,
                place[1] + turn[1, 0] * a + turn[1, 1] * b,
            )
            off = abs(height - plane[0] - plane[1] * a - plane[2] * b)
            if not off <= worst:
                worst = off
            if not worst <= FLAT_M:
                return worst
    middle = 0.5 * (first[0] + last[0]), 0.5 * (first[1] + last[1])
    half = 0.5 * abs(last[0] - first[0]), 0.5 * abs(last[1] - first[1])
    x_m = place[0] + turn[0, 0] * middle[0] + turn[0, 1] * middle[1]
    y_m = place[1] + turn[1, 0] * middle[0] + turn[1, 1] * middle[1]
    wide_x = abs(turn[0, 0]) * half[0] + abs(turn[0, 1]) * half[1]
    wide_y = abs(turn[1, 0]) * half[0] + abs(turn[1, 1]) * half[1]
    first_x, end_x, stride_x = _numbers(x, x_m - wide_x, x_m + wide_x)
    first_y, end_y, stride_y = _numbers(y, y_m - wide_y, y_m + wide_y)
    for i in range(first_x, end_x, stride_x):
        for j in range(first_y, end_y, stride_y):
            away_x, away_y = x[i] - place[0], y[j] - place[1]
            a = turn[0, 0] * away_x + turn[1, 0] * away_y
            b = turn[0, 1] * away_x + turn[1, 1] * away_y
            if abs(a - middle[0]) <= half[0] and abs(b - middle[1]) <= half[1]:
                worst = max(worst, abs(heights[i, j] - plane[0] - plane[1] * a - plane[2] * b))
                if worst > FLAT_M:
                    return worst
    return worst


@bare_kernel
def _plane_below(field, place, turn, half, plane):
    """Write the plane (3,) through the ground at a foot's corners: height at its middle, m, slopes along its axes.

    Least squares. field: x, y, heights of the map; place (2,), turn (2, 2): of the foot, see ``_off_plane``;
    half (2,): its half sizes, m.
    """
    plane[:] = 0.0
    for i in (-1.0, 1.0):
        for j in (-1.0, 1.0):
            a, b = i * half[0], j * half[1]
            height = _height(
                field,
                place[0] + turn[0, 0] * a + turn[0, 1] * b,
                place[1] + turn[1, 0] * a + turn[1, 1] * b,
            )
            plane[0] += 0.25 * height
            plane[1] += 0.25 * height * i / half[0]
            plane[2] += 0.25 * height * j / half[1]


@kernel
def _grow(field, place, turn, half, plane, box):
    """Write how far a foot can be moved from a place on its plane, box (4,), m: back, right (negative), forwards, left.

    Grown by GROWTH_M side by side while the ground stays on the plane (FLAT_M), less EDGE_M; infinite from GROWN_M on.
    Arguments as of ``_plane_below``.
    """
    first, last = np.empty(2), np.empty(2)
    box[:] = 0.0
    open_sides = np.ones(4, dtype=np.bool_)
    for step in range(1, round(GROWN_M / GROWTH_M) + 1):
        for side in range(4):
            if not open_sides[side]:
                continue
            d, ahead = side % 2, side >= 2
            for k in range(2):
                first[k], last[k] = box[k] - half[k], box[2 + k] + half[k]
            if ahead:
                first[d], last[d] = last[d], last[d] + GROWTH_M
            else:
                last[d] = first[d] - GROWTH_M
            if _off_plane(field, place, turn, plane, first, last, d) <= FLAT_M:
                box[side] += GROWTH_M if ahead else -GROWTH_M
            else:
                open_sides[side] = False
    for side in range(4):
        sign = 1.0 if side >= 2 else -1.0
        if open_sides[side]:
            box[side] = sign * np.inf
        else:
            box[side] -= sign * EDGE_M
    for d in range(2):  # a plane no longer than the foot holds it in its middle
        if box[d] > box[2 + d]:
            box[d] = box[2 + d] = 0.5 * (box[d] + box[2 + d])


@kernel
def _areas_near(field, place, turn, half, seeds, alone, boxes, planes):
    """Write the areas about a place (2,), m; returns their number k. field, turn, half: see ``_plane_below``.

    Args:
        seeds: (n, 2) places from which areas are grown, m along the foot's axes from the place, nearest first.
        alone: whether the area at the place is enough, if the place lies in it.
        boxes: (most, 4) out, of footholds along the foot's axes, m from the place, as ``_grow``.
        planes: (most, 3) out, height at the place, m, and slopes in the world.
    """
    count, plane, seed = 0, np.empty(3), np.empty(2)
    for s in range(seeds.shape[0]):
        a, b = seeds[s]
        seed[0] = place[0] + turn[0, 0] * a + turn[0, 1] * b
        seed[1] = place[1] + turn[1, 0] * a + turn[1, 1] * b
        known = False
        for k in range(count):
            inside = boxes[k, 0] - EDGE_M - GROWTH_M <= a <= boxes[k, 2] + EDGE_M + GROWTH_M
            inside &= boxes[k, 1] - EDGE_M - GROWTH_M <= b <= boxes[k, 3] + EDGE_M + GROWTH_M
            known |= inside
        if known:
            continue
        _plane_below(field, seed, turn, half, plane)
        if not plane[1] ** 2 + plane[2] ** 2 <= STEEPEST**2:
            continue
        if not _off_plane(field, seed, turn, plane, -half, half, -1) <= FLAT_M:
            continue
        box = boxes[count]
        _grow(field, seed, turn, half, plane, box)
        box[0] += a
        box[1] += b
        box[2] += a
        box[3] += b
        planes[count, 0] = plane[0] - plane[1] * a - plane[2] * b
        planes[count, 1] = turn[0, 0] * plane[1] + turn[0, 1] * plane[2]
        planes[count, 2] = turn[1, 0] * plane[1] + turn[1, 1] * plane[2]
        count += 1
        here = box[0] <= 0.0 <= box[2] and box[1] <= 0.0 <= box[3]
        if count == boxes.shape[0] or (alone and here):
            break
    return count


@bare_kernel
def _highest(field, begin, end, turn, half):
    """Height, m, of the highest ground below a foot from begin to end (2,), m; the rest as ``_plane_below``."""
    x, y, heights, _ = field
    along, across = end[0] - begin[0], end[1] - begin[1]
    way = np.sqrt(along**2 + across**2)
    many, highest = int(np.ceil(way / SPACING_M)), -np.inf
    for k in range(many + 1):
        share = k / max(many, 1)
        for i in range(-2, 3):
            for j in range(-1, 2):
                a, b = 0.5 * i * half[0], j * half[1]
                height = _height(
                    field,
                    begin[0] + share * along + turn[0, 0] * a + turn[0, 1] * b,
                    begin[1] + share * across + turn[1, 0] * a + turn[1, 1] * b,
                )
                if height > highest:
                    highest = height
    # Points of the grid: below the foot at either end, or so near to the line between as its corners are.
    wide_x = abs(turn[0, 0]) * half[0] + abs(turn[0, 1]) * half[1]
    wide_y = abs(turn[1, 0]) * half[0] + abs(turn[1, 1]) * half[1]
    goes_a = turn[0, 0] * along + turn[1, 0] * across
    goes_b = turn[0, 1] * along + turn[1, 1] * across
    beside = abs(goes_a) * half[1] + abs(goes_b) * half[0]
    first_x, end_x, stride_x = _numbers(
        x, min(begin[0], end[0]) - wide_x, max(begin[0], end[0]) + wide_x
    )
    first_y, end_y, stride_y = _numbers(
        y, min(begin[1], end[1]) - wide_y, max(begin[1], end[1]) + wide_y
    )
    for i in range(first_x, end_x, stride_x):
        for j in range(first_y, end_y, stride_y):
            if not heights[i, j] > highest:
                continue
            away_x, away_y = x[i] - begin[0], y[j] - begin[1]
            a = turn[0, 0] * away_x + turn[1, 0] * away_y
            b = turn[0, 1] * away_x + turn[1, 1] * away_y
            low_a, high_a = min(goes_a, 0.0) - half[0], max(goes_a, 0.0) + half[0]
            low_b, high_b = min(goes_b, 0.0) - half[1], max(goes_b, 0.0) + half[1]
            inside = low_a <= a <= high_a and low_b <= b <= high_b
            if inside and abs(goes_a * b - goes_b * a) <= beside:
                highest = heights[i, j]
    return highest
