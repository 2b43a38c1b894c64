"""The contacts of one instant: where, in which direction, with which friction, and who they are."""

from __future__ import annotations

import numpy as np

from contact_id_controller.exceptions import ContactSetError

UNIT_TOLERANCE = 1e-6


class ContactSet:
    """n point contacts; immutable.

    Args:
        points: (n, 3) m, world frame, on the robot.
        normals: (n, 3) unit vectors, world frame, from the environment towards the robot.
        frames: n names of the robot frames the points move with.
        friction: (n,) or scalar Coulomb coefficient in [0, inf].
        gaps: (n,) m, signed distance, positive when apart; None means touching.
        identities: n hashable names that stay with a contact from one period to the next; by
            default the frame name and a running number within the frame.
        against: n frame names of the *moving* bodies the contacts press on (None: the environment).
        surface_velocities: (n, 3) m/s, world frame, of the environment's material point.
        viscosity: (n,) or scalar viscous friction coefficient in N s/m, for friction ``viscous``.
        load_share: (n,) or scalar in (0, 1], how willingly a contact is loaded: of forces with the
            same effect on the unactuated bodies, those small at contacts with a small share are
            preferred (``models.distribution``). 1: as willingly as any; towards 0: only what the
            others cannot carry. Ramped in time it loads and unloads a foot gradually; the motion
            is the same whatever it is.

    Raises:
        ContactSetError: wrong shape, non-finite value, non-unit normal, negative friction, or a
            load share outside (0, 1].
    """

    __slots__ = (
        "points",
        "normals",
        "frames",
        "friction",
        "gaps",
        "identities",
        "against",
        "surface_velocities",
        "viscosity",
        "load_share",
        "_resolved",
    )

    def __init__(
        self,
        points,
        normals,
        frames,
        friction=1.0,
        gaps=None,
        identities=None,
        against=None,
        surface_velocities=None,
        viscosity=0.0,
        load_share=1.0,
    ):
        self.points = _table("points", points, None)
        n = len(self.points)
        self.normals = _table("normals", normals, n)
        lengths = np.sqrt((self.normals**2).sum(axis=1))
        if n and np.abs(lengths - 1.0).max() > UNIT_TOLERANCE:
            raise ContactSetError(f"normals must have length 1, got {lengths.tolist()}")
        self.frames = _names("frames", frames, n)
        self.friction = _column("friction", friction, n, infinite=True)
        self.gaps = _column("gaps", 0.0 if gaps is None else gaps, n, negative=True)
        self.against = None if against is None else _names("against", against, n)
        self.surface_velocities = (
            None
            if surface_velocities is None
            else _table("surface_velocities", surface_velocities, n)
        )
        self.viscosity = _column("viscosity", viscosity, n)
        self.load_share = _column("load_share", load_share, n)
        if ((self.load_share <= 0.0) | (self.load_share > 1.0)).any():
            raise ContactSetError(f"load_share must lie in (0, 1], got {self.load_share.tolist()}")
        if identities is None:
            identities = _running_identities(self.frames)
        elif len(identities) != n or len(set(identities)) != n:
            raise ContactSetError(f"identities must be {n} different names, got {list(identities)}")
        self.identities = tuple(identities)
        self._resolved = None

    def __len__(self):
        return len(self.points)

    @classmethod
    def empty(cls) -> ContactSet:
        """No contact at all."""
        return cls(np.zeros((0, 3)), np.zeros((0, 3)), ())

    def links(self, robot) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of bodies that touch, (p, 2) joint indices with 0 the environment, and each contact's (n,).

        Raises:
            UnknownFrameError: a frame the robot does not have.
        """
        if self._resolved is None or self._resolved[0] is not robot:
            joints = {None: 0}
            for name in (*self.frames, *(self.against or ())):
                if name not in joints:
                    joints[name] = robot.model.frames[robot.frame_id(name)].parentJoint
            numbers = {}
            others = self.against or (None,) * len(self)
            pair = [
                numbers.setdefault((joints[name], joints[other]), len(numbers))
                for name, other in zip(self.frames, others)
            ]
            self._resolved = (
                robot,
                np.array(list(numbers), dtype=np.int64).reshape(-1, 2),
                np.array(pair, dtype=np.int64),
            )
        return self._resolved[1:]

    def moved(self, points, gaps=None, normals=None, load_share=None) -> ContactSet:
        """The same contacts at new points (and gaps, normals, load shares); identities stay.

        The caller vouches for shapes and values: this is the control loop's way, without checks.
        """
        other = object.__new__(ContactSet)
        for name in ContactSet.__slots__:
            setattr(other, name, getattr(self, name))
        other.points = points
        if gaps is not None:
            other.gaps = gaps
        if normals is not None:
            other.normals = normals
        if load_share is not None:
            other.load_share = load_share
        return other

    def subset(self, mask) -> ContactSet:
        """The contacts where ``mask`` (n,) is true; identities are kept."""
        keep = np.flatnonzero(mask)
        other = object.__new__(ContactSet)
        for name in ("points", "normals", "friction", "gaps", "viscosity", "load_share"):
            setattr(other, name, getattr(self, name)[keep])
        for name in ("frames", "identities", "against"):
            value = getattr(self, name)
            setattr(other, name, None if value is None else tuple(value[i] for i in keep))
        velocities = self.surface_velocities
        other.surface_velocities = None if velocities is None else velocities[keep]
        other._resolved = None
        if self._resolved is not None:
            robot, bodies, pair = self._resolved
            other._resolved = (robot, bodies, pair[keep])
        return other


def _table(name, value, n):
    array = np.array(value, dtype=float, ndmin=2)
    if array.size == 0:
        array = array.reshape(0, 3)
    if array.ndim != 2 or array.shape[1] != 3 or (n is not None and len(array) != n):
        expected = "(n, 3)" if n is None else f"({n}, 3)"
        raise ContactSetError(f"{name} must have shape {expected}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ContactSetError(f"{name} must be finite, got {array.tolist()}")
    return np.ascontiguousarray(array)


def _column(name, value, n, negative=False, infinite=False):
    array = np.array(value, dtype=float)
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


def _names(name, value, n):
    names = tuple(value)
    if isinstance(value, str) or len(names) != n:
        raise ContactSetError(f"{name} must be {n} names, got {value!r}")
    return names


def _running_identities(frames):
    count = {}
    identities = []
    for frame in frames:
        count[frame] = count.get(frame, -1) + 1
        identities.append((frame, count[frame]))
    return tuple(identities)
