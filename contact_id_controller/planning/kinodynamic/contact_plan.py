"""Contact plans: footholds, phases of contact, and both sampled on knots.

A plan is a sequence of phases; in each phase some feet are in contact with their footholds and the others swing.
Knots are equally spaced, and phases change on knots only: a force that is constant from one knot to the next would
otherwise act on a foot that has lifted off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import TrajectoryError, choices

MOST_KNOTS = 10_000
"""Largest number of time steps of a plan: more would take too long to plan while the robot waits."""

ON_A_KNOT = 1e-6
"""Tolerance, in time steps, with which a phase ends on a knot."""


class ContactPlanError(TrajectoryError):
    """A contact plan that contradicts itself; the message names the phase and the foot."""


@dataclass(frozen=True)
class Sole:
    """Contact area of a foot: a rectangle in the x-y plane of its frame, a line, or a point.

    Attributes:
        frame: the robot's frame; the sole lies in its x-y plane, z points out of the ground.
        half_size_m: half lengths along x and y; 0 along both is a point foot (one corner).
        center_m: middle of the rectangle in the frame.
        cop_margin_m: distance of the planned centre of pressure from each edge, a margin for the controller.
        reach_m: largest distance of the centre of mass from the foothold; None: unchecked.
    """

    frame: str
    half_size_m: tuple[float, float] = (0.0, 0.0)
    center_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    cop_margin_m: float = 0.0
    reach_m: float | None = None

    def __post_init__(self) -> None:
        half = _finite(self.half_size_m, (2,), f"half_size_m of sole {self.frame!r}")
        _finite(self.center_m, (3,), f"center_m of sole {self.frame!r}")
        if (half < 0).any():
            raise ContactPlanError(
                f"sole {self.frame!r}: half_size_m {tuple(half)} must not be negative"
            )
        if not 0 <= self.cop_margin_m or (half[half > 0] <= self.cop_margin_m).any():
            raise ContactPlanError(
                f"sole {self.frame!r}: cop_margin_m {self.cop_margin_m} must be at least 0 and less "
                f"than the half size {tuple(half)}"
            )
        if self.reach_m is not None and not 0 < self.reach_m < np.inf:
            raise ContactPlanError(f"sole {self.frame!r}: reach_m {self.reach_m} must be positive")

    @cached_property
    def corners(self) -> np.ndarray:
        """Corners of the area allowed to the centre of pressure, (m, 3) m, in the frame; m is 4, 2 or 1."""
        x, y = (
            (half - self.cop_margin_m, self.cop_margin_m - half) if half else (0.0,)
            for half in self.half_size_m
        )
        return np.array([[a, b, 0.0] for a in x for b in y]) + self.center_m


@dataclass(frozen=True)
class Foothold:
    """Pose of a foot in contact.

    Attributes:
        foot: name of the sole's frame.
        position: of the frame, (3,) world, m.
        rotation: frame to world, (3, 3); its third column is the ground's normal.
        friction_coefficient: Coulomb's, of the ground there.
    """

    foot: str
    position: np.ndarray
    rotation: np.ndarray = None  # type: ignore[assignment]  # not given: level, set in __post_init__
    friction_coefficient: float = 0.6

    def __post_init__(self) -> None:
        rotation = np.eye(3) if self.rotation is None else self.rotation
        what = f"of a foothold of {self.foot!r}"
        object.__setattr__(self, "position", _finite(self.position, (3,), f"position {what}"))
        object.__setattr__(self, "rotation", _finite(rotation, (3, 3), f"rotation {what}"))
        if np.abs(self.rotation @ self.rotation.T - np.eye(3)).max() > 1e-6:
            raise ContactPlanError(f"rotation {what} is not orthonormal")
        if not 0 <= self.friction_coefficient < np.inf:
            raise ContactPlanError(
                f"friction_coefficient {what} is {self.friction_coefficient}, must be at least 0"
            )

    @classmethod
    def from_row(cls, row: Mapping[str, Any], friction_coefficient: float = 0.6) -> Foothold:
        """Make a foothold from a row of a file: ``{foot: name, at: [x, y, z] m, turned: [roll, pitch, yaw] deg}``.

        The row may also have ``friction_coefficient``. Rotation is Rz(yaw) Ry(pitch) Rx(roll).

        Raises:
            ContactPlanError: what is missing, unknown or of wrong shape.
        """
        known = {"foot", "at", "turned", "friction_coefficient"}
        if not isinstance(row, Mapping) or not {"foot", "at"} <= set(row) <= known:
            raise ContactPlanError(
                f"a foothold needs 'foot' and 'at', and may have 'turned' and "
                f"'friction_coefficient'; found {row!r}"
            )
        turned = _finite(row.get("turned", (0, 0, 0)), (3,), "turned")
        mu = row.get("friction_coefficient", friction_coefficient)
        return cls(row["foot"], row["at"], pin.rpy.rpyToMatrix(*np.deg2rad(turned)), float(mu))

    def same_place(self, other: Foothold) -> bool:
        """Whether the foot stays where it is, within rounding."""
        apart = np.abs(self.position - other.position).max()
        return apart < 1e-9 and np.abs(self.rotation - other.rotation).max() < 1e-9


@dataclass(frozen=True)
class ContactPhase:
    """A time interval with constant contacts.

    Attributes:
        duration_s: s.
        footholds: of the feet in contact; empty in flight.
    """

    duration_s: float
    footholds: tuple[Foothold, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "footholds", tuple(self.footholds))

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet in contact."""
        return tuple(foothold.foot for foothold in self.footholds)

    def foothold_of(self, foot: str) -> Foothold | None:
        """Foothold of a foot; None if it is not in contact."""
        return next((each for each in self.footholds if each.foot == foot), None)


@dataclass(frozen=True)
class KnotContacts:
    """A contact plan sampled on T + 1 equally spaced knots; interval t runs from knot t to t + 1.

    Each corner of each sole has its own column, in contact or not; n columns in all.

    Attributes:
        times_s: (T + 1,) of the knots, from the plan's start.
        phase: (T,) index of the phase of each interval.
        standing: (T, n) bool, whether the corner is in contact.
        points: (T, n, 3) corners, world, m; undefined without contact.
        rotations: (T, n, 3, 3) ground to world; the third column is the normal.
        friction: (T, n) Coulomb's coefficient.
        sole_of_corner: (n,) index into the plan's soles.
    """

    times_s: np.ndarray
    phase: np.ndarray
    standing: np.ndarray
    points: np.ndarray
    rotations: np.ndarray
    friction: np.ndarray
    sole_of_corner: np.ndarray

    def __len__(self) -> int:
        return len(self.phase)

    @property
    def time_step_s(self) -> float:
        """Time between knots, s."""
        return float(self.times_s[-1]) / len(self)


@dataclass(frozen=True)
class ContactPlan:
    """Phases of contact of a robot's feet, one after the other.

    Attributes:
        soles: of every foot in the phases; their order is the order of the corners.
        phases: in the order of time.

    Raises:
        ContactPlanError: unknown or doubled feet, durations that are not positive, or a foothold that changes
            without a swing.
    """

    soles: tuple[Sole, ...]
    phases: tuple[ContactPhase, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "soles", tuple(self.soles))
        object.__setattr__(self, "phases", tuple(self.phases))
        names = [sole.frame for sole in self.soles]
        if not self.phases or len(set(names)) < len(names):
            raise ContactPlanError(f"a plan needs a phase, and soles of different names: {names}")
        for number, phase in enumerate(self.phases):
            feet = phase.feet
            if not 0 < phase.duration_s < np.inf:
                raise ContactPlanError(f"phase {number}: duration {phase.duration_s} s")
            if len(set(feet)) < len(feet):
                raise ContactPlanError(f"phase {number}: a foot stands twice in {feet}")
            for foothold in phase.footholds:
                if foothold.foot not in names:
                    raise ContactPlanError(
                        f"phase {number}: foot {foothold.foot!r} has no sole; "
                        f"there are {choices(names)}"
                    )
                before = self.phases[number - 1].foothold_of(foothold.foot) if number else None
                if before is not None and not foothold.same_place(before):
                    raise ContactPlanError(
                        f"phase {number}, foot {foothold.foot}: changes its foothold without being "
                        f"lifted in a phase between"
                    )

    @classmethod
    def from_footsteps(
        cls,
        soles: Sequence[Sole],
        stance: Iterable[Foothold],
        footsteps: Iterable[Foothold],
        *,
        support_s: float,
        swing_s: float,
        start_s: float | None = None,
        end_s: float | None = None,
        touchdowns_s: Sequence[float] | None = None,
    ) -> ContactPlan:
        """Alternate phases with all feet in contact and phases in which one foot swings.

        Args:
            soles: of the feet.
            stance: initial footholds of all feet.
            footsteps: in the order in which they are made.
            support_s: duration with all feet in contact between two footsteps.
            swing_s: duration of a swing.
            start_s, end_s: duration of the first and last phase; None: ``support_s``, and twice that, so that the
                robot comes to rest.
            touchdowns_s: touchdown time of each footstep, from the plan's beginning; None: they follow from
                ``support_s`` and ``start_s``.

        Raises:
            ContactPlanError: footsteps of feet that are not in contact, or that leave no time between swings.
        """
        standing = {foothold.foot: foothold for foothold in stance}
        start_s = support_s if start_s is None else start_s
        steps = tuple(footsteps)
        supports = [start_s] + [support_s] * len(steps)
        if touchdowns_s is not None:
            supports[: len(steps)] = np.diff([0.0, *touchdowns_s]) - swing_s
        phases = [ContactPhase(supports[0], tuple(standing.values()))]
        for number, (step, stood_s, stands_s) in enumerate(zip(steps, supports, supports[1:]), 1):
            if not stood_s > 0.0:
                raise ContactPlanError(
                    f"footstep {number} lands {stood_s + swing_s:.3g} s after what is before, "
                    f"with {swing_s:g} s aloft no time is left to stand"
                )
            if step.foot not in standing:
                raise ContactPlanError(
                    f"a footstep of {step.foot!r}, which does not stand; "
                    f"there are {choices(standing)}"
                )
            others = tuple(each for each in standing.values() if each.foot != step.foot)
            standing[step.foot] = step
            phases += [
                ContactPhase(swing_s, others),
                ContactPhase(stands_s, tuple(standing.values())),
            ]
        last = phases.pop()
        end_s = 2 * support_s if end_s is None else end_s
        return cls(tuple(soles), (*phases, ContactPhase(end_s, last.footholds)))

    @property
    def boundaries_s(self) -> np.ndarray:
        """Times at which phases begin and end, (phases + 1,), s."""
        return np.concatenate([[0.0], np.cumsum([phase.duration_s for phase in self.phases])])

    @property
    def duration_s(self) -> float:
        """Duration of all phases together, s."""
        return float(self.boundaries_s[-1])

    def sole_of(self, foot: str) -> Sole:
        """Sole of a foot by its frame's name."""
        return next(sole for sole in self.soles if sole.frame == foot)

    def on_knots(self, time_step_s: float) -> ContactPlan:
        """Round each phase's duration to whole time steps, at least one, in a new plan.

        Raises:
            ContactPlanError: more than ``MOST_KNOTS`` steps.
        """
        if not self.duration_s <= MOST_KNOTS * time_step_s:
            raise ContactPlanError(
                f"the plan lasts {self.duration_s:.6g} s, {self.duration_s / time_step_s:.3g} steps of "
                f"{time_step_s:g} s, must be at most {MOST_KNOTS}"
            )
        phases = (
            ContactPhase(max(1, round(each.duration_s / time_step_s)) * time_step_s, each.footholds)
            for each in self.phases
        )
        return ContactPlan(self.soles, tuple(phases))

    def sample(self, knots: int) -> KnotContacts:
        """Sample the contacts of ``knots`` equal intervals.

        Raises:
            ContactPlanError: a phase does not end on a knot.
        """
        if not isinstance(knots, int | np.integer) or knots < 1:
            raise ContactPlanError(f"knots {knots!r} must be a positive whole number")
        step = self.duration_s / knots
        ends = self.boundaries_s / step
        off = np.abs(ends - np.round(ends)) > ON_A_KNOT
        whole = np.round(ends).astype(int)
        if off.any() or (np.diff(whole) < 1).any():
            number = int(np.argmax(off)) - 1 if off.any() else int(np.argmin(np.diff(whole)))
            raise ContactPlanError(
                f"phase {number} ends at {self.boundaries_s[number + 1]:.6g} s, which is not on a "
                f"knot of {knots} steps of {step:.6g} s; take other knots, or on_knots(time step)"
            )
        each = [self._corners(phase) for phase in self.phases]
        phase = np.repeat(np.arange(len(each)), np.diff(whole))
        standing, points, rotations, friction = (
            np.stack([corners[part] for corners in each])[phase] for part in range(4)
        )
        counts = [len(sole.corners) for sole in self.soles]
        return KnotContacts(
            times_s=np.arange(knots + 1) * step,
            phase=phase,
            standing=standing,
            points=points,
            rotations=rotations,
            friction=friction,
            sole_of_corner=np.repeat(np.arange(len(counts)), counts),
        )

    def _corners(self, phase: ContactPhase) -> tuple[np.ndarray, ...]:
        """Contact flags (n,), points (n, 3), rotations (n, 3, 3) and friction (n,) of all corners in one phase."""
        parts: tuple[list[Any], ...] = ([], [], [], [])
        for sole in self.soles:
            foothold = phase.foothold_of(sole.frame)
            for corner in sole.corners:
                parts[0].append(foothold is not None)
                if foothold is None:
                    values: tuple[Any, ...] = np.zeros(3), np.eye(3), 0.0
                else:
                    point = corner_point(foothold, corner)
                    values = point, foothold.rotation, foothold.friction_coefficient
                for part, value in zip(parts[1:], values):
                    part.append(value)
        return tuple(np.array(part) for part in parts)


def corner_point(foothold: Foothold, corner: np.ndarray) -> np.ndarray:
    """Position (3,), m, world, of a sole's corner, (3,) in its frame, with the foot on the foothold."""
    return foothold.position + foothold.rotation @ corner


def _finite(value: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """A read-only array of this shape; ContactPlanError where it is not, or not finite."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        array = np.full(shape, np.nan)
    if array.shape != shape or not np.isfinite(array).all():
        raise ContactPlanError(f"{what} must be {shape} finite numbers, not {value!r}")
    array.setflags(write=False)
    return array
