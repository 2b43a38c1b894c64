"""The region on the ground in which the centre of pressure may lie: the hull of what stands, less a margin."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import kernel

THIN_M = 2e-3
"""Half width of the region of a line of contacts."""

POINT_M = 1e-4
"""Half size of the region of one contact."""

COLLINEAR_M2 = 1e-8
"""Area up to which three points count as a line."""


@kernel
def region_of(points, margin_m):
    """Outward unit normals (m, 2) and bounds (m,), m, of the convex hull of points (n, 2), each edge moved inwards.

    A line of contacts gets ``THIN_M`` to both sides, a single one ``POINT_M``. A margin that would leave nothing is
    as large as leaves the middle.
    """
    order = np.argsort(points[:, 0] + 1e-9 * points[:, 1])
    corners, count = np.empty((2 * points.shape[0] + 1, 2)), 0
    for sweep in range(2):  # lower chain, then upper one
        base = count
        for k in range(order.shape[0]):
            p = points[order[k if sweep == 0 else order.shape[0] - 1 - k]]
            while count - base > 1:
                a, b = corners[count - 2], corners[count - 1]
                turn = (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
                if turn > COLLINEAR_M2:
                    break
                count -= 1
            corners[count] = p
            count += 1
        count -= 1  # the last one begins the other chain
    middle = np.zeros(2)
    for k in range(count):
        middle += corners[k] / count
    if count > 2:
        normals, bounds = np.empty((count, 2)), np.empty(count)
        for k in range(count):
            a, b = corners[k], corners[(k + 1) % count]
            x, y = b[1] - a[1], a[0] - b[0]
            size = np.sqrt(x * x + y * y)
            normals[k, 0], normals[k, 1] = x / size, y / size
            edge = normals[k, 0] * a[0] + normals[k, 1] * a[1]
            inner = normals[k, 0] * middle[0] + normals[k, 1] * middle[1]
            bounds[k] = max(edge - margin_m, min(edge, inner + POINT_M))
        return normals, bounds
    along, half = np.array([1.0, 0.0]), 0.0
    way = points[order[-1]] - points[order[0]]
    middle = points[order[0]] + 0.5 * way
    length = np.sqrt(way[0] ** 2 + way[1] ** 2)
    if length > POINT_M:
        along, half = way / length, 0.5 * length
    normals, bounds = np.empty((4, 2)), np.empty(4)
    thin = THIN_M if half > 0.0 else POINT_M
    for k in range(4):
        sign = 1.0 if k % 2 == 0 else -1.0
        x, y = (along[0], along[1]) if k < 2 else (-along[1], along[0])
        normals[k, 0], normals[k, 1] = sign * x, sign * y
        bounds[k] = normals[k, 0] * middle[0] + normals[k, 1] * middle[1]
        bounds[k] += max(half - margin_m, POINT_M) if k < 2 else thin
    return normals, bounds
