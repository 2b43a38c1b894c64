"""Round and flat feet on a plane: fast contact geometry for the control loop of walking robots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.contacts import ContactSet
from contact_id_controller.exceptions import ContactSetError
from contact_id_controller.geometry.half_space import HalfSpace
from contact_id_controller.kernels.compile import Kernel, bare_kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.views import dense
from contact_id_controller.robot import RobotModel


class SphereFoot(NamedTuple):
    """A spherical foot: the robot frame it moves with, its radius and its centre there (m)."""

    frame: str
    radius_m: float
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)


CORNER_RADIUS_M = 0.002
"""Of the balls that stand for a sole's corners: a turned sole then rolls over its edge by no more."""


class FlatFoot(NamedTuple):
    """A rectangular sole on a robot frame whose z axis points out of the ground.

    half_size_m: half its lengths along the frame's x and y; center_m: its middle in the frame.
    """

    frame: str
    half_size_m: tuple[float, float]
    center_m: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def corners(self) -> tuple[SphereFoot, ...]:
        """Four balls whose lowest points are the sole's corners."""
        (x, y, z), (a, b) = self.center_m, self.half_size_m
        return tuple(
            SphereFoot(self.frame, CORNER_RADIUS_M, (x + i * a, y + j * b, z + CORNER_RADIUS_M))
            for i in (1, -1)
            for j in (1, -1)
        )


def contact_names(frames: Sequence[str]) -> tuple[str, ...]:
    """Name for each contact: that of its frame, numbered from 1 on if the frame has several."""
    count: dict[str, int] = {}
    names = []
    for frame in frames:
        count[frame] = count.get(frame, 0) + 1
        names.append(f"{frame}_{count[frame]}" if frames.count(frame) > 1 else frame)
    return tuple(names)


def feet_of_contacts(names: Sequence[str], frames: Sequence[str]) -> np.ndarray | None:
    """Indices (n,) of the frames that contacts of these names are on; None if one is on none of them.

    names: as `contact_names` makes them.
    """
    numbers = []
    for name in names:
        stem, _, last = name.rpartition("_")
        frame = name if name in frames else stem if last.isdecimal() else ""
        if frame not in frames:
            return None
        numbers.append(frames.index(frame))
    return np.array(numbers, dtype=int) if set(numbers) == set(range(len(frames))) else None


class FeetOnGround(Protocol):
    """Interface for controllers and simulated robots of n contacts over ground of any shape.

    A contact is a round foot, or a corner of a flat one: contacts of one frame are one foot. Points,
    normals and gaps are allocated once: ``update`` writes into them.

    Attributes:
        feet: in the order of all rows.  links: (n,) indices of the joints that carry them.
        foot: (n,) number of the foot that each contact is part of; feet are numbered in the order
            of their first contacts.
        points: (n, 3) m, the point of each foot nearest to the ground, world frame.
        normals: (n, 3) unit normals of the ground there, world frame.
        gaps: (n,) m, positive when apart.
        rise: (n,) m, by which the real ground is felt to be higher: the nearest point of a field is sought from there,
            for a foot that stands lower than believed may be nearer to a stone's side than to its top.
        up: (3,) unit vector, world frame: along it a robot is lifted off this ground.
        level: whether all normals are ``up``, so that contacts need none of their own; a controller that corrects the
            ground clears it.
    """

    feet: tuple[SphereFoot, ...]
    links: NDArray[np.int64]
    foot: NDArray[np.int64]
    points: NDArray[np.float64]
    normals: NDArray[np.float64]
    gaps: NDArray[np.float64]
    rise: NDArray[np.float64]
    up: NDArray[np.float64]
    level: bool

    def __len__(self) -> int: ...

    def update(self, data: Any) -> None:
        """Compute points, normals and gaps from joint placements ``data.oMi``."""

    def select(
        self, mask: NDArray[np.bool_], load_share: NDArray[np.float64] | None = None
    ) -> ContactSet:
        """Nearest contacts of the feet where ``mask`` (n,) is true, at the last update."""


class Placements:
    """Pinocchio's joint placements as one array: fetching one placement takes a microsecond.

    A copy has views of its own, as these must not point into the original's data.

    Attributes:
        data: whose placements were viewed last.  table: of that.  on_plane: call of `feet_on_plane` for it.
    """

    def __init__(self) -> None:
        self.data: Any = None
        self.table: NDArray[np.float64] = np.zeros((0, 4, 3))
        self.on_plane: Kernel

    def of(self, data: Any) -> NDArray[np.float64]:
        """View (njoints, 4, 3) of ``data.oMi``: for each joint the columns of R, then the translation."""
        if data is not self.data:
            self.table = _table(data)
            row, table = np.empty(1), np.empty((1, 3))
            own = np.empty(1, np.int64), table, row, row, 0.0, table, row, table
            self.on_plane = direct(feet_on_plane, self.table, *own)
            self.data = data
        return self.table

    def __reduce__(self) -> tuple[Any, ...]:
        return Placements, ()


def _table(data: Any) -> NDArray[np.float64]:
    """Make the view of ``Placements.of``; checks that the placements lie in one block.

    Raises RuntimeError if this Pinocchio stores them otherwise.
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
def feet_on_plane(places, joints, offsets, radii, normal, height, points, gaps, normals):
    """Write lowest points (n, 3), m, of balls, their distances (n,), m, from the plane normal . x = height, and normals."""
    foot_centers(places, joints, offsets, points)
    for i in range(joints.shape[0]):
        gaps[i] = -height
        for d in range(3):
            points[i, d] -= radii[i] * normal[d]
            gaps[i] += points[i, d] * normal[d]
            normals[i, d] = normal[d]


@bare_kernel
def _pick(rows, points, gaps, normals, some_points, some_gaps, some_normals):
    """Copy ``rows`` (m,) of points (n, 3), gaps (n,) and normals (n, 3) into those of m contacts; (0, 3): no normals."""
    for i in range(rows.shape[0]):
        some_gaps[i] = gaps[rows[i]]
        for d in range(3):
            some_points[i, d] = points[rows[i], d]
    for i in range(some_normals.shape[0]):
        for d in range(3):
            some_normals[i, d] = normals[rows[i], d]


@cache
def _entry() -> Kernel:
    """Compiled call of `_pick`."""
    row, table = np.empty(1), np.empty((1, 3))
    return direct(_pick, np.empty(1, np.int64), table, row, table, table, row, table)


class FootContacts:
    """The possible contacts of spherical feet with flat ground (``FeetOnGround``).

    Identities are the foot frames' names (numbered where a frame has several feet): a foot that
    lifts off and lands is the same contact. Not thread-safe: ``update`` writes into it.

    Args:
        feet: the n feet.  ground: the plane.
        friction: Coulomb coefficient: a number, one a foot, or a function of points (n, 3), m, such as
            ``FrictionMap``.
        viscosity: N s/m, a number or one a foot.

    Raises:
        ContactSetError: a negative radius, or friction outside its range.
        UnknownFrameError: a frame the robot lacks.
    """

    def __init__(
        self,
        robot: RobotModel,
        feet: Sequence[SphereFoot],
        ground: HalfSpace,
        friction: ArrayLike | Callable[..., Any] = 1.0,
        viscosity: ArrayLike = 0.0,
    ):
        self.feet, self.ground = tuple(feet), ground
        self.up = ground.up
        n = len(self.feet)
        joints, offsets = [], []
        for foot in self.feet:
            if not foot.radius_m >= 0.0:
                raise ContactSetError(
                    f"radius_m of foot {foot.frame!r} is {foot.radius_m}, must not be negative"
                )
            frame = robot.model.frames[robot.frame_id(foot.frame)]
            joints.append(frame.parentJoint)
            offsets.append(frame.placement.act(np.array(foot.center, dtype=float)))
        self._offsets = np.array(offsets, dtype=float).reshape(-1, 3)
        self.links = np.array(joints, dtype=np.int64)
        numbers: dict[str, int] = {}
        self.foot = np.array(
            [numbers.setdefault(foot.frame, len(numbers)) for foot in self.feet], dtype=np.int64
        )
        self.level = True
        self._radii = np.array([foot.radius_m for foot in self.feet], dtype=float)
        self._placements = Placements()
        frames = [foot.frame for foot in self.feet]
        names = frames if len(set(frames)) == n else None
        self._friction: Any = friction if callable(friction) else None
        self.points, self.gaps, self.rise = np.zeros((n, 3)), np.zeros(n), np.zeros(n)
        self.normals = np.tile(self.up, (n, 1))
        self._all = ContactSet(
            self.points,
            self.normals,
            frames,
            1.0 if callable(friction) else friction,
            identities=names,
            viscosity=viscosity,
        )
        self._all.links(robot)
        self._subsets: dict[bytes, tuple[ContactSet, NDArray[np.int64]]] = {}

    def __len__(self) -> int:
        return len(self.feet)

    def update(self, data: Any) -> None:
        """Compute points and gaps from joint placements ``data.oMi`` (forward kinematics done)."""
        places = self._placements
        table = places.table if places.data is data else places.of(data)
        places.on_plane(
            table,
            self.links,
            self._offsets,
            self._radii,
            self.up,
            self.ground.offset,
            self.points,
            self.gaps,
            self.normals,
        )

    def select(
        self, mask: NDArray[np.bool_], load_share: NDArray[np.float64] | None = None
    ) -> ContactSet:
        """Contacts where ``mask`` (n,) is true, at the last update's points and gaps.

        load_share: (n,) floats in (0, 1] of all feet, see ``ContactSet``, not checked; None for 1.
        """
        known = self._subsets.get(key := mask.tobytes())
        if known is None:
            known = self._subsets[key] = self._all.subset(mask), np.flatnonzero(mask)
        base, rows = known
        points, gaps = np.empty((len(rows), 3)), np.empty(len(rows))
        normals = None if self.level else np.empty((len(rows), 3))
        own = self.points, self.gaps, self.normals
        _entry()(rows, *own, points, gaps, points[:0] if normals is None else normals)
        return base.at(
            points,
            gaps,
            normals,
            None if load_share is None else load_share.take(rows),
            None if self._friction is None else self._friction_at(points),
        )

    def _friction_at(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients (n,) that the function of points (n, 3) gives; ContactSetError for another shape."""
        found = dense(self._friction(points))
        if found.shape != points.shape[:1]:
            raise ContactSetError(
                f"friction of {len(points)} points has shape {found.shape}, must have ({len(points)},)"
            )
        return found
