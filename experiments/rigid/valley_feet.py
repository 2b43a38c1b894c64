"""All contacts of spherical feet with a height field: a ball in a valley has several."""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_id_controller.contacts import ContactSet
from contact_id_controller.geometry import TerrainFeet
from contact_id_controller.geometry.feet import foot_centers
from contact_id_controller.geometry.height_field import cell_of, height_in
from contact_id_controller.geometry.terrain_feet import (
    AT_SURFACE_M,
    FAR_M,
    cells_within,
    nearest_on_triangle,
    triangle_corners,
)
from contact_id_controller.kernels.compile import kernel
from experiments.rigid.terrain import APART, ON_FACE

MOST = 8  # contacts of one ball: the nearest ones where a pit has more sides


class ValleyFeet(TerrainFeet):
    """``TerrainFeet`` with ``touching``: all contacts, of which a ball in a valley has several."""

    def update(self, data: Any) -> None:
        """Compute points, gaps and normals from joint placements ``data.oMi``."""
        n, field = len(self), self.terrain
        # Normals, gaps, m, and number of all contacts of each foot.
        self._many, self._many_gaps = np.zeros((n, MOST, 3)), np.zeros((n, MOST))
        self._count = np.zeros(n, np.int64)
        foot_centers(self._placements.of(data), self.links, self._offsets, self._centers)
        _feet_on_field(
            self._centers,
            self._radii,
            field.x,
            field.y,
            field.heights,
            self.normals,
            self.gaps,
            self._many,
            self._many_gaps,
            self._count,
        )
        np.subtract(self._centers, self._radii[:, None] * self.normals, out=self.points)

    def touching(self, anticipation_m: float) -> tuple[ContactSet, np.ndarray]:
        """All contacts with gaps up to ``anticipation_m``, and the index of each one's foot (n,).

        They are named (frame, foot, k), k counting counter-clockwise from +x by the normals.
        """
        rows = [
            (i, k)
            for i in range(len(self))
            for k in range(self._count[i])
            if self._many_gaps[i, k] <= anticipation_m
        ]
        if not rows:
            return ContactSet.empty(), np.zeros(0, np.int64)
        numbers = np.array(rows)
        foot = numbers[:, 0]
        frames = [self.feet[i].frame for i in foot]
        normals = self._many[foot, numbers[:, 1]]
        points = self._centers[foot] - self._radii[foot, None] * normals
        contacts = ContactSet(
            points,
            normals,
            frames,
            self._all.friction[foot] if self._friction is None else self._friction(points),
            self._many_gaps[foot, numbers[:, 1]],
            viscosity=self._all.viscosity[foot],
            identities=[(frame, *row) for frame, row in zip(frames, numbers.tolist())],
        )
        return contacts, foot


@kernel
def _feet_on_field(centers, radii, x, y, heights, normals, gaps, many, many_gaps, count):
    """Find nearest and all contacts of each ball (centers (n, 3), radii (n,), m), as ``ball_points`` does.

    Out: normals (n, 3), gaps (n,), m, of the nearest; many (n, MOST, 3) normals, many_gaps (n, MOST), count (n,).
    """
    best = np.empty((MOST, 3))
    for i in range(centers.shape[0]):
        normals[i, 0], normals[i, 1], normals[i, 2] = 0.0, 0.0, 1.0
        gaps[i] = np.inf
        count[i] = 0
        center = centers[i]
        row, column = cell_of(x, center[0]), cell_of(y, center[1])
        if row < 0 or column < 0:
            continue
        surface = height_in(x, y, heights, row, column, center)
        below = center[2] < surface
        reach = max(radii[i], min(abs(center[2] - surface), radii[i] + FAR_M))
        found = _search(
            center, radii[i], reach, below, x, y, heights, row, column, best, many_gaps[i]
        )
        for k in range(found):
            many[i, k] = best[k]
        count[i] = found
        nearest = 0
        for k in range(1, found):
            if many_gaps[i, k] < many_gaps[i, nearest]:
                nearest = k
        if found:
            normals[i] = best[nearest]
            gaps[i] = many_gaps[i, nearest]


@kernel
def _search(center, radius, reach, below, x, y, heights, row, column, best, gaps):
    """Find the contacts of one ball: normals into best (MOST, 3), gaps (MOST,), m; returns their number.

    reach: m, horizontal distance within which triangles are searched; below: the centre is below the surface.
    """
    first, last = cells_within(x, row, center[0] - reach, center[0] + reach)
    left, right = cells_within(y, column, center[1] - reach, center[1] + reach)
    most = 2 * (last - first + 1) * (right - left + 1)
    found, distances, faces = np.empty((most, 3)), np.empty(most), np.zeros(most, np.bool_)
    corners, normal, foot = np.empty((3, 3)), np.empty(3), np.empty(3)
    number = 0
    nearest = 0
    for i in range(first, last + 1):
        for j in range(left, right + 1):
            for upper in range(2):
                triangle_corners(x, y, heights, i, j, upper, corners)
                nearest_on_triangle(center, corners, normal, foot)
                distance = 0.0
                for d in range(3):
                    distance += (center[d] - foot[d]) ** 2
                distance = np.sqrt(distance)
                distances[number] = distance
                if distance < AT_SURFACE_M:
                    for d in range(3):
                        found[number, d] = normal[d]
                else:
                    along = 0.0
                    for d in range(3):
                        size = -distance if below else distance
                        found[number, d] = (center[d] - foot[d]) / size
                        along += found[number, d] * normal[d]
                    faces[number] = along > ON_FACE
                if distance < distances[nearest]:
                    nearest = number
                number += 1
    best[0] = found[nearest]
    gaps[0] = (-distances[nearest] if below else distances[nearest]) - radius
    if below or radius == 0.0 or distances[nearest] < AT_SURFACE_M:
        return 1
    count = 1
    used = np.zeros(number, np.bool_)
    used[nearest] = True
    while count < MOST:
        next_one = -1
        for k in range(number):
            if used[k] or not faces[k]:
                continue
            apart = True
            for other in range(count):
                along = 0.0
                for d in range(3):
                    along += found[k, d] * best[other, d]
                apart = apart and along < APART
            if apart and (next_one < 0 or distances[k] < distances[next_one]):
                next_one = k
        if next_one < 0:
            break
        used[next_one] = True
        best[count] = found[next_one]
        gaps[count] = distances[next_one] - radius
        count += 1
    _sort_by_direction(best, gaps, count)
    return count


@kernel
def _sort_by_direction(normals, gaps, count):
    """Sort contacts in place counter-clockwise from +x by the normal's horizontal direction."""
    angle = np.empty(count)
    for k in range(count):
        angle[k] = np.arctan2(normals[k, 1], normals[k, 0]) % (2.0 * np.pi)
    for k in range(1, count):
        for m in range(k, 0, -1):
            if angle[m] >= angle[m - 1]:
                break
            angle[m], angle[m - 1] = angle[m - 1], angle[m]
            gaps[m], gaps[m - 1] = gaps[m - 1], gaps[m]
            for d in range(3):
                normals[m, d], normals[m - 1, d] = normals[m - 1, d], normals[m, d]
