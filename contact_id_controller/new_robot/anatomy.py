"""Finds the limbs of a description: legs, and joints to be driven or locked.

A *limb* is attached to the trunk by one joint, or with others to the end of a waist. *Legs* are the limbs of a
floating robot with at least three joints in series whose ends are lowest; there are two or more of them, or else
three or more with two joints, or none: a robot without legs has a fixed base. A wheel at the end of a leg is locked,
a foot. If no limb reaches down with its joints at zero, as legs that are level then, three or more that can hang
straight down are legs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from contact_id_controller.control.limits import stop_margin
from contact_id_controller.settings.robot_description import without_inertia

LEG_JOINTS = 3
"""Least number of joints in series with which a leg reaches a foothold."""

LEG_KINDS = ((LEG_JOINTS, 2), (2, 3))
"""Least number of joints of a leg, and of such legs: planar legs need three."""

SOLE_JOINTS = 5
"""Number of joints in series with which a leg can keep a sole on the ground; with fewer its foot must roll."""

FINGER_MASS = 5e-3
"""Share of the robot's mass below which branches of a limb are fingers."""

LOWEST_PART = 0.25
"""Share of the robot's height within which the ends of all legs are."""

LEVEL_LEGS = 3
"""Least number of legs that do not reach down with their joints at zero: two such limbs are arms."""

HANGS = 0.85
"""Least distance by which a leg can hang below its hip, as a share of its length from the hip."""

SWEPT = 25
"""Number of positions of a joint that are tried for the lowest one."""

SWEEPS = 3

BESIDE = 0.5
"""Largest distance of a wheel's centre of mass from its axis, in its radii of gyration; a rod about its end has 1.7."""

SPARE = 2.0
"""Distance of other joints than the legs' from the ends of their ranges, in soft stops: they do not touch these."""

BASE, FREE = 1, 0
"""Joint indices in a model with a floating base: the base, and the world."""


@dataclass(frozen=True)
class Anatomy:
    """The limbs of one robot; joints are indices in a model with a floating base.

    Attributes:
        legs: joints of each leg from the trunk to the foot; in the order front left, front right,
            hind left, hind right, or left, right.
        posture: q (nq,) with each joint as near to zero as possible and the legs below the base; the base at the
            origin.
        held: names of joints that cannot be driven: without effort limit or without inertia, and of
            fingers.
        wheels: names of joints without end at the ends of the legs.
        arms: names of joints without end of two limbs that reach down, which for them are no legs.
    """

    legs: tuple[tuple[int, ...], ...]
    posture: np.ndarray
    held: tuple[str, ...]
    wheels: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()

    @property
    def walks_on_soles(self) -> bool:
        """Whether the feet are soles."""
        return bool(self.legs) and all(len(leg) >= SOLE_JOINTS for leg in self.legs)


def anatomy(
    model: pin.Model, floating: bool | None = None, endless: Collection[str] = ()
) -> Anatomy:
    """The anatomy of a model with a floating base.

    Args:
        floating: whether the base floats; None: as the limbs suggest.
        endless: joints without end that have one in this model; like wheels, not in legs of two.
    """
    children, q = _children(model), posture_near_zero(model)
    legs: list[tuple[int, ...]] = []
    if floating is not False:
        legs = _reaching_down(model, children, q)
        hanging = q if legs else _hanging(model, children, q)
        low = [] if legs else _reaching_down(model, children, hanging)
        low = [leg for leg in low if _hangs(model, hanging, leg)]
        if len(low) >= LEVEL_LEGS:
            legs, q = low, hanging
    ends = [model.names[wheel] for leg in legs for wheel in children[leg[-1]]]
    arms: list[str] = []
    if len(legs) < LEVEL_LEGS:
        arms = [model.names[j] for leg in legs for j in leg if model.names[j] in endless] + ends
    if arms:
        legs, ends = [], []
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    places = {leg: data.oMi[leg[0]].translation for leg in legs}
    across = {leg: data.oMi[leg[-1]].translation[1] for leg in legs}
    middle = float(np.mean([place[0] for place in places.values()])) if legs else 0.0
    legs.sort(key=lambda leg: (places[leg][0] < middle - 1e-3, across[leg] < 0.0))
    held = _held(model, children, {j for leg in legs for j in leg})
    return Anatomy(tuple(legs), q, held, tuple(ends), tuple(arms))


def swinging(model: pin.Model) -> list[str]:
    """Names of joints without end that are no wheels: their body's centre of mass is beside their axis."""
    data, found = model.createData(), []
    pin.computeJointJacobians(model, data, pin.neutral(model))
    for joint in range(2, model.njoints):
        body = model.inertias[joint]
        if model.joints[joint].nq != 2 or not body.mass > 0.0:
            continue
        axis = data.oMi[joint].rotation.T @ data.J[3:, model.joints[joint].idx_v]
        square = max(float(axis @ body.inertia @ axis) / body.mass, 0.0)
        if np.linalg.norm(np.cross(axis, body.lever)) > BESIDE * np.sqrt(square):
            found.append(str(model.names[joint]))
    return found


def _reaching_down(
    model: pin.Model, children: dict[int, list[int]], q: np.ndarray
) -> list[tuple[int, ...]]:
    """The limbs whose ends are lowest and below the base; none if they are too few for legs."""
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    heights = np.array([placement.translation[2] for placement in data.oMi])
    height = np.ptp(heights[1:])
    able = [chain for limb in children[BASE] for chain in _able(model, limb, children, heights)]
    for joints, count in LEG_KINDS:
        long = [chain for chain in able if len(chain) >= joints]
        lowest = min((heights[chain[-1]] for chain in long), default=heights[BASE])
        reach = lowest + LOWEST_PART * max(height, 1e-9)
        low = [chain for chain in long if heights[chain[-1]] <= reach and lowest < heights[BASE]]
        if len(low) >= count:
            return low
    return []


def _able(
    model: pin.Model, limb: int, children: dict[int, list[int]], heights: np.ndarray
) -> list[tuple[int, ...]]:
    """The lowest chain of a limb, if it can be a leg; of a limb that forks after a waist, both of its branches."""
    waist = [limb]
    while len(children[waist[-1]]) == 1:
        waist += children[waist[-1]]
    lowest = [
        min(_chains(branch, children), key=lambda c: heights[c[-1]])
        for branch in children[waist[-1]]
    ]
    whole = min(_chains(limb, children), key=lambda c: heights[c[-1]])
    legs = [_without_wheel(model, chain) for chain in lowest]
    legs = [leg for leg in legs if len(leg) >= LEG_JOINTS and _can_be_leg(model, leg)]
    legs = legs if len(legs) > 1 else [_without_wheel(model, whole)]
    return [leg for leg in legs if leg and _can_be_leg(model, leg)]


def _without_wheel(model: pin.Model, chain: tuple[int, ...]) -> tuple[int, ...]:
    return chain[:-1] if model.joints[chain[-1]].nq == 2 else chain


def _hanging(model: pin.Model, children: dict[int, list[int]], q: np.ndarray) -> np.ndarray:
    """q (nq,) with the end of each possible leg as low as its joint limits allow."""
    q, data = q.copy(), model.createData()

    def low(x: float, k: int, end: int) -> float:
        tried = q.copy()
        tried[k] = x
        pin.forwardKinematics(model, data, tried)
        return float(_end(model, data, end)[2])

    for chain in (c for limb in children[BASE] for c in _chains(limb, children)):
        for joint in SWEEPS * chain if _can_be_leg(model, chain) else ():
            k = model.joints[joint].idx_q
            first, last = model.lowerPositionLimit[k], model.upperPositionLimit[k]
            tried = np.linspace(max(first, -np.pi), min(last, np.pi), SWEPT)
            lowest, x = min((low(x, k, chain[-1]), float(x)) for x in tried)
            if lowest < low(q[k], k, chain[-1]) - 1e-6:
                q[k] = x
    return q


def _hangs(model: pin.Model, q: np.ndarray, leg: tuple[int, ...]) -> bool:
    """Whether a leg is nearly straight below its hip."""
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    hip = leg[1:] if len(leg) >= LEG_JOINTS else leg
    places = [*(data.oMi[joint].translation for joint in hip), _end(model, data, leg[-1])]
    length = sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(places))
    return bool(places[0][2] - places[-1][2] > HANGS * length)


def _end(model: pin.Model, data: Any, joint: int) -> np.ndarray:
    """The centre of mass (3,) of a leg's last body, m."""
    return np.asarray(data.oMi[joint].act(model.inertias[joint].lever))


def posture_near_zero(model: pin.Model) -> np.ndarray:
    """q (nq,) with each joint as near to zero as its limits allow; the base at the origin."""
    q = pin.neutral(model)
    for joint in list(model.joints)[2:]:
        if joint.nq == 1:
            k = joint.idx_q
            low, high = model.lowerPositionLimit[k], model.upperPositionLimit[k]
            if low < high:
                q[k] = min(max(0.0, low), high)
    return q


def away_from_ends(model: pin.Model, q: np.ndarray, legs: Sequence[Sequence[int]]) -> np.ndarray:
    """q (nq,) with the joints of no leg away from the ends of their ranges, where the controller cuts torque."""
    q = q.copy()
    for joint in list(model.joints)[2:]:
        k = joint.idx_q
        if joint.nq == 1 and not any(joint.id in leg for leg in legs):
            low, high = model.lowerPositionLimit[k], model.upperPositionLimit[k]
            if low < high:
                margin = SPARE * float(stop_margin(low, high))
                q[k] = min(max(q[k], low + margin), high - margin)
    return q


def _children(model: pin.Model) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {joint: [] for joint in range(model.njoints)}
    for joint in range(2, model.njoints):
        children[model.parents[joint]].append(joint)
    return children


def _chains(first: int, children: dict[int, list[int]]) -> list[tuple[int, ...]]:
    """The chains of joints from ``first`` to each end of its limb."""
    if not children[first]:
        return [(first,)]
    return [(first, *rest) for child in children[first] for rest in _chains(child, children)]


def _can_be_leg(model: pin.Model, chain: tuple[int, ...]) -> bool:
    """Whether all joints are driven and none is without end."""
    return all(
        model.joints[joint].nq == 1 and model.upperEffortLimit[model.joints[joint].idx_v] > 0.0
        for joint in chain
    )


def _held(model: pin.Model, children: dict[int, list[int]], legs: set[int]) -> tuple[str, ...]:
    """Names of joints to lock: without a motor, of fingers (light branches away from the base), or without inertia."""
    masses = np.array([body.mass for body in model.inertias])
    for joint in range(model.njoints - 1, 1, -1):  # of all that a joint moves
        masses[model.parents[joint]] += masses[joint]
    total_mass, held, light = masses[BASE], [], without_inertia(model)
    fingers: set[int] = set()
    for joint in range(2, model.njoints):
        parent, kind = model.parents[joint], model.joints[joint]
        branch = parent != BASE and len(children[parent]) > 1 and joint not in legs
        if parent in fingers or (branch and masses[joint] < FINGER_MASS * total_mass):
            fingers.add(joint)
        undriven = not 0.0 < model.upperEffortLimit[kind.idx_v] < np.inf
        if undriven or joint in fingers or joint in light or not masses[joint] > 0.0:
            held.append(model.names[joint])
    return tuple(held)
