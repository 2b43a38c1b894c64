"""Momentum problem: forces at given footholds with which CoM and momentum track a reference.

    min  sum_t dt/2 |r - r_ref|^2 + |v - v_ref|^2 + |k/M - k_ref/M|^2 + dt/2 sum |f/(M g) - nominal|^2
         + the same at the last knot
    s.t. the exact map of centroidal.py, forces inside their friction cones, at corners inside the soles

each square with its weights. Corner forces limit centre of pressure, friction and yaw torque to what the sole can
transmit, without constraints of their own (paper: (18) to (20)).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from contact_id_controller.exceptions import ConfigurationError, choices
from contact_id_controller.planning.kinodynamic import centroidal
from contact_id_controller.planning.kinodynamic.contact_plan import ContactPlan, KnotContacts

GRAVITY = (0.0, 0.0, -9.81)
INNER_PYRAMID, EXACT_CONE, OUTER_PYRAMID = "pyramid", "cone", "outer_pyramid"
CONES = {INNER_PYRAMID: 1 / np.sqrt(2), EXACT_CONE: 1.0, OUTER_PYRAMID: 1.0}
"""How a force is held to Coulomb's cone, and the share of the coefficient that its rows see.

pyramid: the largest inside the cone; cone: itself; outer_pyramid: the paper's (20), around it.
"""


@dataclass(frozen=True)
class MomentumWeights:
    """Weights of the squares, per second of the plan, in axes of the world (force: of the ground).

    Attributes:
        com: of the position, 1/m2.  velocity: of momentum / mass, (s/m)2.
        spin: of angular momentum / mass, (s/m2)2.  force: of forces / weight.
        last: of the last knot's nine, com, velocity, spin; not per second.
    """

    com: tuple[float, ...] = (20.0, 20.0, 50.0)
    velocity: tuple[float, ...] = (2.0, 2.0, 2.0)
    spin: tuple[float, ...] = (100.0, 100.0, 100.0)
    force: tuple[float, ...] = (0.1, 0.1, 0.1)
    last: tuple[float, ...] = (100.0,) * 9

    def __post_init__(self) -> None:
        for field in fields(self):
            values = np.asarray(getattr(self, field.name), dtype=float)
            least = np.finfo(float).tiny if field.name == "force" else 0.0
            default: Any = field.default
            count = len(default)
            if values.shape != (count,) or not (least <= values).all():
                raise ConfigurationError(
                    f"weights {field.name} {getattr(self, field.name)!r}: {count} "
                    f"{'positive' if least else 'non-negative'} numbers are needed"
                )


@dataclass(frozen=True)
class MomentumReference:
    """Reference at the T + 1 knots, each (T + 1, 3) in world axes.

    Attributes:
        com: m.  momentum: linear, kg m/s.  angular_momentum: about the centre of mass, kg m2/s.
    """

    com: np.ndarray
    momentum: np.ndarray
    angular_momentum: np.ndarray


@dataclass(frozen=True)
class MomentumProblem:
    """Immutable input of ``solve_momentum``.

    Attributes:
        contact_plan, contacts: the plan and its sample on knots.
        mass_kg: of the robot.  gravity: (3,) m/s2.
        start: com (m), linear momentum (kg m/s), angular momentum (kg m2/s), (3, 3).
        reference, weights: of the cost.
        cone: one of ``CONES``.
    """

    contact_plan: ContactPlan
    contacts: KnotContacts
    mass_kg: float
    gravity: np.ndarray
    start: np.ndarray
    reference: MomentumReference
    weights: MomentumWeights
    cone: str

    @property
    def knots(self) -> int:
        """T, the number of intervals."""
        return len(self.contacts)

    @property
    def weight_n(self) -> float:
        """Weight M |g|, N."""
        return self.mass_kg * float(np.linalg.norm(self.gravity))

    @property
    def origins(self) -> np.ndarray:
        """Fixed point of each knot, (T + 1, 3) m, world: the reference of the centre of mass."""
        return self.reference.com

    @cached_property
    def height_m(self) -> float:
        """Mean height of the CoM's reference above the corners in contact, m: a scale of the robot's size."""
        up = -self.gravity / np.linalg.norm(self.gravity)
        standing = self.contacts.standing
        above = (self.reference.com[:-1, None] - self.contacts.points) @ up
        return float(above[standing].mean()) if standing.any() else float(np.ptp(self.origins @ up))

    def nominal_forces(self) -> np.ndarray:
        """Weight shared by the corners in contact, along their normals: (T, n, 3), ground axes, / (M g).

        During a phase the load moves from corners that lift off at its end to the others, and onto those that have just
        touched down.
        """
        standing = self.contacts.standing
        share = np.zeros((*standing.shape, 3))
        changes = 1 + np.flatnonzero((standing[1:] != standing[:-1]).any(1))
        for begin, end in pairwise([0, *changes, self.knots]):
            done = (np.arange(end - begin)[:, None] + 0.5) / (end - begin)
            stands = standing[begin]
            lands = stands & ~standing[max(begin - 1, 0)]
            leaves = stands & ~standing[min(end, self.knots - 1)]
            part = stands * np.where(lands, done, 1.0) * np.where(leaves, 1.0 - done, 1.0)
            share[begin:end, :, 2] = part / np.where(stands.any(), part.sum(1, keepdims=True), 1.0)
        return share


def build_momentum_problem(
    contact_plan: ContactPlan,
    knots: int,
    mass_kg: float,
    *,
    height_m: float | None = None,
    reference: MomentumReference | None = None,
    start: Iterable[Any] | None = None,
    weights: MomentumWeights | None = None,
    cone: str = INNER_PYRAMID,
    gravity: Iterable[float] = GRAVITY,
) -> MomentumProblem:
    """Build the problem of a contact plan.

    Args:
        contact_plan: footholds and phases; these must end on knots.
        knots: T.
        mass_kg: of the robot.
        height_m: of the centre of mass above its feet, for ``resting_reference``.
        reference: instead of it.
        start: com, momentum, angular momentum at the first knot, (3, 3); None: the reference's
            position, at rest.
        weights: of the cost.
        cone: one of ``CONES``.
        gravity: (3,) m/s2.

    Raises:
        ContactPlanError: phases that do not end on knots.
        ConfigurationError: a value of wrong shape or outside its range.
    """
    contacts = contact_plan.sample(knots)
    gravity = _finite(gravity, (3,), "gravity")
    if not 0 < mass_kg < np.inf:
        raise ConfigurationError(f"mass_kg {mass_kg!r} must be positive")
    if not np.linalg.norm(gravity) > 0:
        raise ConfigurationError(
            f"gravity {gravity} must not vanish: forces are divided by the weight"
        )
    if cone not in CONES:
        raise ConfigurationError(f"cone {cone!r} does not exist; there are {choices(CONES)}")
    if (reference is None) == (height_m is None):
        raise ConfigurationError("either height_m or a reference is needed")
    if reference is None:
        assert height_m is not None
        reference = resting_reference(contact_plan, contacts, height_m, gravity)
    checked = (
        _finite(getattr(reference, field.name), (knots + 1, 3), f"reference {field.name}")
        for field in fields(reference)
    )
    reference = MomentumReference(*checked)
    start = [reference.com[0], np.zeros(3), np.zeros(3)] if start is None else start
    return MomentumProblem(
        contact_plan,
        contacts,
        float(mass_kg),
        gravity,
        _finite(start, (3, 3), "start"),
        reference,
        weights or MomentumWeights(),
        cone,
    )


def resting_reference(
    contact_plan: ContactPlan, contacts: KnotContacts, height_m: float, gravity: np.ndarray
) -> MomentumReference:
    """Reference with zero momentum and the centre of mass ``height_m`` above the mean of all feet (paper, V-B).

    A swinging foot counts on the straight line between its footholds, so the mean moves during swings and rests while
    all feet are in contact.
    """
    times = contacts.times_s
    begins = contact_plan.boundaries_s
    feet = []
    for sole in contact_plan.soles:
        at, where = [], []
        for number, phase in enumerate(contact_plan.phases):
            foothold = phase.foothold_of(sole.frame)
            if foothold is not None:
                at += [begins[number], begins[number + 1]]
                where += [foothold.position] * 2
        if at:
            feet.append(
                np.stack([np.interp(times, at, axis) for axis in np.array(where).T], axis=1)
            )
    if not feet:
        raise ConfigurationError("no foot ever stands: a reference is needed")
    up = -gravity / np.linalg.norm(gravity)
    rest = np.zeros((len(times), 3))
    return MomentumReference(np.mean(feet, axis=0) + height_m * up, rest, rest)


def centroidal_map(problem: MomentumProblem) -> centroidal.CentroidalMap:
    """The exact map between the problem's knots."""
    return centroidal.exact_map(problem.origins, problem.contacts.time_step_s, problem.gravity)


def _finite(value: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """A read-only array of this shape; ConfigurationError where it is not, or not finite."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != shape or not np.isfinite(array).all():
        raise ConfigurationError(
            f"{what} must be {shape} finite numbers, not {array.shape} {np.ravel(array)[:9]}"
        )
    array.setflags(write=False)
    return array
