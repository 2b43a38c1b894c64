"""Points of round feet from the placements of the joints that carry them, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from contact_id_controller.kernels.compile import bare_kernel


class Placements:
    """Pinocchio's joint placements as one array: a placement fetched by itself costs a microsecond.

    A copy looks anew: what one points into is not the copy's.

    Attributes:
        data: whose placements were looked at last.  table: of that.
    """

    def __init__(self) -> None:
        self.data: Any = None
        self.table: NDArray[np.float64] = np.zeros((0, 4, 3))

    def of(self, data: Any) -> NDArray[np.float64]:
        """View (njoints, 4, 3) of ``data.oMi``: for each joint the columns of R, then the translation."""
        if data is not self.data:
            self.table = _table(data)
            self.data = data
        return self.table

    def __reduce__(self) -> tuple[Any, ...]:
        return Placements, ()


def _table(data: Any) -> NDArray[np.float64]:
    """Such a view; they lie in one block, which is checked.

    Raises RuntimeError where this Pinocchio keeps them otherwise.
    """
    places = data.oMi
    first = places[0].rotation
    table = as_strided(first, (len(places), 4, 3), (_size(places), 24, 8), writeable=False)
    for place, row in zip(places, table):
        same = all(_at(part) == _at(view) for part, view in _parts(place, row))
        if not same or place.rotation.strides != (8, 24):
            raise RuntimeError("joint placements do not lie as rotation, translation in one block")
    return table


def _parts(place: Any, row: NDArray[np.float64]) -> tuple[tuple[Any, Any], ...]:
    return (place.rotation, row[:3]), (place.translation, row[3])


def _size(places: Any) -> int:
    """Bytes from one placement to the next."""
    return _at(places[1].rotation) - _at(places[0].rotation) if len(places) > 1 else 96


def _at(array: NDArray[np.float64]) -> int:
    return int(array.__array_interface__["data"][0])


@bare_kernel
def foot_centers(places, joints, offsets, centers):
    """Centres (n, 3) m, world frame, of balls at ``offsets`` (n, 3) in the frames of joints (n,)."""
    for i in range(joints.shape[0]):
        place, offset = places[joints[i]], offsets[i]
        for d in range(3):
            centers[i, d] = (
                place[0, d] * offset[0]
                + place[1, d] * offset[1]
                + place[2, d] * offset[2]
                + place[3, d]
            )


@bare_kernel
def feet_on_plane(places, joints, offsets, radii, normal, height, points, gaps):
    """Lowest points (n, 3) m of balls and their distances (n,) m from the plane normal . x = height."""
    foot_centers(places, joints, offsets, points)
    for i in range(joints.shape[0]):
        gaps[i] = -height
        for d in range(3):
            points[i, d] -= radii[i] * normal[d]
            gaps[i] += points[i, d] * normal[d]
