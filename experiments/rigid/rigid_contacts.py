"""Contacts of a simulated robot with the ground: of its feet alone, or of all its bodies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.contacts import ContactSet
from contact_id_controller.geometry import HeightField, SphereFoot, feet_on
from contact_id_controller.robot import RobotModel
from experiments.rigid.scene import Body, Scene, Surface
from experiments.rigid.solids import Sphere
from experiments.rigid.valley_feet import ValleyFeet

NO_FOOT = -1


class Touching(NamedTuple):
    """Contacts at one instant, and the index of the foot that each belongs to, (n,), -1 for none."""

    contacts: ContactSet
    foot: np.ndarray


class FeetFinder:
    """Finds the contacts of spherical feet only, which is fast."""

    def __init__(
        self, robot: RobotModel, feet: Any, ground: Any, friction: Any, anticipation_m: float
    ) -> None:
        on_field = isinstance(ground, HeightField)
        self._feet = (ValleyFeet if on_field else feet_on)(robot, feet, ground, friction)
        self._anticipation_m = anticipation_m

    def find(self, data: Any) -> Touching:
        """The contacts at joint placements ``data.oMi``."""
        self._feet.update(data)
        if isinstance(self._feet, ValleyFeet):
            return Touching(*self._feet.touching(self._anticipation_m))
        near = self._feet.gaps <= self._anticipation_m
        return Touching(self._feet.select(near), np.flatnonzero(near))


class SceneFinder:
    """Finds the contacts of feet and other bodies with the ground, and of pairs of bodies."""

    def __init__(
        self,
        robot: RobotModel,
        feet: Any,
        bodies: Any,
        pairs: Any,
        ground: Any,
        friction: Any,
        anticipation_m: float,
    ) -> None:
        self._count = len(feet)
        balls = [Body(foot.frame, Sphere(foot.radius_m), _shift(foot)) for foot in feet]
        self._friction = friction if callable(friction) else None
        coefficients = 1.0 if callable(friction) else friction
        if np.ndim(coefficients):
            # One a foot; bodies rub like the first foot.
            by_foot = {(foot.frame, GROUND): float(mu) for foot, mu in zip(feet, coefficients)}
            coefficients = {**by_foot, None: float(coefficients[0])}
        self._scene = Scene(
            robot, [*balls, *bodies], [Surface(GROUND, ground)], pairs, coefficients, anticipation_m
        )

    def find(self, data: Any) -> Touching:
        """The contacts at joint placements ``data.oMi``."""
        contacts = self._scene.contacts_from(data)
        if self._friction is not None and len(contacts):
            contacts = contacts.moved(friction=self._friction(contacts.points))
        body = np.array([name[1] for name in contacts.identities], dtype=np.int64)
        return Touching(contacts, np.where(body < self._count, body, NO_FOOT))


GROUND = "ground"


def _shift(foot: SphereFoot) -> np.ndarray:
    placement = np.eye(4)
    placement[:3, 3] = foot.center
    return placement
