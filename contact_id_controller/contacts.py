"""Contacts at one instant: points, normals, friction, identities."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_id_controller.exceptions import ContactSetError
from contact_id_controller.frozen import draft_of, sealed
from contact_id_controller.kernels.views import dense
from contact_id_controller.robot import RobotModel, real_array

UNIT_TOLERANCE = 1e-6


@sealed
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class ContactSet:
    """n point contacts; immutable: ``moved`` and ``subset`` give changed ones.

    It may be shared between threads, copied and pickled.

    Args:
        points: (n, 3) m, world frame, on the robot.
        normals: (n, 3) unit vectors, world frame, from the environment towards the robot.
        frames: n names of the robot frames the points move with.
        friction: (n,) or scalar Coulomb coefficient in [0, inf]; from 1e3
            (``kernels.pyramid.UNBOUNDED_FRICTION``) on it counts as infinite: no slip.
        gaps: (n,) m, signed distance, positive when apart; None means touching.
        identities: n hashable names by which a contact is matched from one period to the next; by
            default the frame name and a running number within the frame.
        against: n frame names of the *moving* bodies the contacts press on (None: the environment).
        surface_velocities: (n, 3) m/s, world frame, of the environment's material point.
        viscosity: (n,) or scalar viscous friction coefficient in N s/m, for friction ``viscous``.
        load_share: (n,) or scalar in (0, 1], weight of a contact in the force distribution: of forces with the
            same effect on the unactuated bodies, those small at contacts with a small share are
            preferred (``models.steps.force_distribution``). 1: no penalty; towards 0: only the load that the
            others cannot carry. Ramped in time it loads and unloads a foot gradually; it does not
            change the motion.

    Raises:
        ContactSetError: wrong shape, non-finite value, non-unit normal, negative friction, or a
            load share outside (0, 1].
    """

    points: NDArray[np.float64]
    normals: NDArray[np.float64]
    frames: tuple[str, ...]
    friction: NDArray[np.float64]
    gaps: NDArray[np.float64]
    identities: tuple[Hashable, ...]
    against: tuple[str | None, ...] | None
    surface_velocities: NDArray[np.float64] | None
    viscosity: NDArray[np.float64]
    load_share: NDArray[np.float64]
    _resolved: tuple[RobotModel, NDArray[np.int64], NDArray[np.int64]] | None

    def __new__(
        cls,
        points: ArrayLike,
        normals: ArrayLike,
        frames: Sequence[str],
        friction: ArrayLike = 1.0,
        gaps: ArrayLike | None = None,
        identities: Sequence[Hashable] | None = None,
        against: Sequence[str | None] | None = None,
        surface_velocities: ArrayLike | None = None,
        viscosity: ArrayLike = 0.0,
        load_share: ArrayLike = 1.0,
    ) -> ContactSet:
        contacts: ContactSet = _Draft()
        draft: Any = contacts
        draft.points = _table("points", points, None)
        n = len(draft.points)
        draft.normals = _table("normals", normals, n)
        lengths = np.sqrt((draft.normals**2).sum(axis=1))
        if n and np.abs(lengths - 1.0).max() > UNIT_TOLERANCE:
            raise ContactSetError(f"normals must have length 1, got {lengths.tolist()}")
        draft.frames = _names("frames", frames, n)
        draft.friction = _column("friction", friction, n, infinite=True)
        draft.gaps = _column("gaps", 0.0 if gaps is None else gaps, n, negative=True)
        draft.against = None if against is None else _names("against", against, n)
        draft.surface_velocities = (
            None
            if surface_velocities is None
            else _table("surface_velocities", surface_velocities, n)
        )
        draft.viscosity = _column("viscosity", viscosity, n)
        draft.load_share = _column("load_share", load_share, n)
        if ((draft.load_share <= 0.0) | (draft.load_share > 1.0)).any():
            raise ContactSetError(f"load_share must lie in (0, 1], got {draft.load_share.tolist()}")
        if identities is None:
            identities = _running_identities(draft.frames)
        elif len(identities) != n or len(set(identities)) != n:
            raise ContactSetError(f"identities must be {n} different names, got {list(identities)}")
        draft.identities = tuple(identities)
        draft._resolved = None
        draft.__class__ = cls
        return contacts

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, name) for name in ContactSet.__slots__ if name != "_resolved"]
        return _assembled, (*values, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> ContactSet:
        """Copy together with the robot's copy, if that is made too, so that bodies need not be looked up again."""
        names = [name for name in ContactSet.__slots__ if name != "_resolved"]
        values: list[Any] = [copy.deepcopy(getattr(self, name), memo) for name in names]
        resolved = self._resolved
        if resolved is not None:
            robot = memo.get(id(resolved[0]))
            resolved = None if robot is None else (robot, *resolved[1:])
        values.append(resolved)
        return _assembled(*values)

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def empty(cls) -> ContactSet:
        """A set without contacts."""
        return cls(np.zeros((0, 3)), np.zeros((0, 3)), ())

    def links(self, robot: RobotModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of bodies that touch, (p, 2) joint indices with 0 the environment, and each contact's (n,).

        Raises:
            UnknownFrameError: a frame the robot does not have.
        """
        resolved = self._resolved
        if resolved is None or resolved[0] is not robot:
            joints: dict[str | None, int] = {None: 0}
            for name in (*self.frames, *(self.against or ())):
                if name is not None and name not in joints:
                    joints[name] = robot.model.frames[robot.frame_id(name)].parentJoint
            numbers: dict[tuple[int, int], int] = {}
            others = self.against or (None,) * len(self)
            pair = [
                numbers.setdefault((joints[name], joints[other]), len(numbers))
                for name, other in zip(self.frames, others)
            ]
            resolved = (
                robot,
                np.array(list(numbers), dtype=np.int64).reshape(-1, 2),
                np.array(pair, dtype=np.int64),
            )
            object.__setattr__(self, "_resolved", resolved)  # computed once, in any thread
        return resolved[1:]

    def moved(
        self,
        points: NDArray[np.float64] | None = None,
        gaps: NDArray[np.float64] | None = None,
        normals: NDArray[np.float64] | None = None,
        load_share: NDArray[np.float64] | None = None,
        friction: NDArray[np.float64] | None = None,
        viscosity: NDArray[np.float64] | None = None,
    ) -> ContactSet:
        """The same contacts with the given values, of the constructor's shapes and units; identities are kept.

        Raises:
            ContactSetError: another shape, or as the constructor.
        """
        given = points, gaps, normals, load_share, friction, viscosity
        changed = self.at(*(None if value is None else dense(value) for value in given))
        for name in ("points", "gaps", "normals", "load_share", "friction", "viscosity"):
            shape, found = getattr(self, name).shape, getattr(changed, name).shape
            if found != shape:
                raise ContactSetError(f"{name} must have shape {shape}, got {found}")
        ContactSet(*changed.__reduce__()[1][:-1])  # refuses what it would not take
        return changed

    def at(
        self,
        points: NDArray[np.float64] | None = None,
        gaps: NDArray[np.float64] | None = None,
        normals: NDArray[np.float64] | None = None,
        load_share: NDArray[np.float64] | None = None,
        friction: NDArray[np.float64] | None = None,
        viscosity: NDArray[np.float64] | None = None,
    ) -> ContactSet:
        """As ``moved``, for arrays as ``dense`` gives them: for the control loop, without checks."""
        contacts: ContactSet = _Draft()
        draft: Any = contacts
        draft.points = self.points if points is None else points
        draft.normals = self.normals if normals is None else normals
        draft.gaps = self.gaps if gaps is None else gaps
        draft.friction = self.friction if friction is None else friction
        draft.viscosity = self.viscosity if viscosity is None else viscosity
        draft.load_share = self.load_share if load_share is None else load_share
        draft.frames, draft.identities, draft.against = self.frames, self.identities, self.against
        draft.surface_velocities, draft._resolved = self.surface_velocities, self._resolved
        draft.__class__ = ContactSet
        return contacts

    def subset(self, mask: ArrayLike) -> ContactSet:
        """The contacts where ``mask`` (n,) is true; identities are kept."""
        keep = np.flatnonzero(mask)
        rows = keep.tolist()
        against, velocities, resolved = self.against, self.surface_velocities, self._resolved
        if resolved is not None:
            resolved = (resolved[0], resolved[1], resolved[2][keep])
        return _assembled(
            self.points[keep],
            self.normals[keep],
            tuple([self.frames[i] for i in rows]),
            self.friction[keep],
            self.gaps[keep],
            tuple([self.identities[i] for i in rows]),
            None if against is None else tuple([against[i] for i in rows]),
            None if velocities is None else velocities[keep],
            self.viscosity[keep],
            self.load_share[keep],
            resolved,
        )


_Draft = draft_of(ContactSet)


def _assembled(
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    frames: tuple[str, ...],
    friction: NDArray[np.float64],
    gaps: NDArray[np.float64],
    identities: tuple[Hashable, ...],
    against: tuple[str | None, ...] | None,
    surface_velocities: NDArray[np.float64] | None,
    viscosity: NDArray[np.float64],
    load_share: NDArray[np.float64],
    resolved: tuple[RobotModel, NDArray[np.int64], NDArray[np.int64]] | None,
) -> ContactSet:
    """Make a contact set of checked arrays, as ``dense`` gives them, without copies."""
    contacts: ContactSet = _Draft()
    draft: Any = contacts
    draft.points, draft.normals, draft.gaps = points, normals, gaps
    draft.frames, draft.identities, draft.against = frames, identities, against
    draft.friction, draft.viscosity, draft.load_share = friction, viscosity, load_share
    draft.surface_velocities = surface_velocities
    draft._resolved = resolved
    draft.__class__ = ContactSet
    return contacts


def _table(name: str, value: ArrayLike, n: int | None) -> NDArray[np.float64]:
    """Convert to a finite array (n, 3); n None: any number of rows. ContactSetError names the wrong shape."""
    array = np.array(real_array(name, value, ContactSetError), ndmin=2, order="C")
    if array.size == 0:
        array = array.reshape(0, 3)
    if array.ndim != 2 or array.shape[1] != 3 or (n is not None and len(array) != n):
        expected = "(n, 3)" if n is None else f"({n}, 3)"
        raise ContactSetError(f"{name} must have shape {expected}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ContactSetError(f"{name} must be finite, got {array.tolist()}")
    return dense(array)


def _column(
    name: str, value: ArrayLike, n: int, negative: bool = False, infinite: bool = False
) -> NDArray[np.float64]:
    """Convert a number for all contacts, or one for each, to (n,); ContactSetError for another shape or range."""
    array = np.array(real_array(name, value, ContactSetError))
    if array.ndim == 0:
        array = np.full(n, float(array))
    if array.shape != (n,):
        raise ContactSetError(f"{name} must be a number or have shape ({n},), got {array.shape}")
    if np.isnan(array).any() or (not infinite and np.isinf(array).any()):
        raise ContactSetError(
            f"{name} must be {'a number' if infinite else 'finite'}, got {array.tolist()}"
        )
    if not negative and (array < 0.0).any():
        raise ContactSetError(f"{name} must not be negative, got {array.tolist()}")
    return array


def _names(name: str, value: Sequence[Any], n: int) -> tuple[Any, ...]:
    names = () if isinstance(value, str) or value is None else tuple(value)
    if value is None or len(names) != n:
        raise ContactSetError(f"{name} must be {n} names, got {value!r}")
    return names


def _running_identities(frames: Sequence[str]) -> tuple[Hashable, ...]:
    count: dict[str, int] = {}
    identities = []
    for frame in frames:
        count[frame] = count.get(frame, -1) + 1
        identities.append((frame, count[frame]))
    return tuple(identities)
