"""What the limbs of a description are: legs, and of the rest what a controller drives or holds.

A *limb* is what hangs on the trunk by one joint. *Legs* are the limbs of a floating robot with at
least three joints in a row whose ends reach lowest; there are two or more of them, or else three or more
with two joints, or none: a robot without legs is bolted to the ground.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

LEG_JOINTS = 3
"""In a row, at least: fewer do not reach a foothold."""

LEG_KINDS = ((LEG_JOINTS, 2), (2, 3))
"""Least joints of a leg, and least number of such legs: what swings in a plane stands on three."""

SOLE_JOINTS = 5
"""With so many joints in a row a leg can keep a sole on the ground; with fewer its foot must roll."""

FINGER_MASS = 5e-3
"""Of the robot's mass; branches of a limb that are lighter are fingers."""

LOWEST_PART = 0.25
"""Of the robot's height, within which the ends of all legs are."""

BASE, FREE = 1, 0
"""Joints of a model whose base floats: the base, and no joint."""


@dataclass(frozen=True)
class Anatomy:
    """The limbs of one robot; joints are numbers of a model with a floating base.

    Attributes:
        legs: of each leg its joints from the trunk to the foot; in the order front left, front right,
            hind left, hind right, or left, right.
        held: names of joints that cannot be driven: without effort limit or without inertia, and of
            fingers.
    """

    legs: tuple[tuple[int, ...], ...]
    held: tuple[str, ...]

    @property
    def walks_on_soles(self) -> bool:
        """Whether the feet are soles."""
        return bool(self.legs) and all(len(leg) >= SOLE_JOINTS for leg in self.legs)


def anatomy(model: pin.Model, floating: bool | None = None) -> Anatomy:
    """The anatomy of a model with a floating base.

    Args:
        floating: whether the base floats; None: as the limbs suggest.
    """
    children = _children(model)
    data = model.createData()
    q = posture_near_zero(model)
    pin.forwardKinematics(model, data, q)
    heights = np.array([placement.translation[2] for placement in data.oMi])
    height = np.ptp(heights[1:])
    ends = {
        limb: min(_chains(limb, children), key=lambda chain: heights[chain[-1]])
        for limb in children[BASE]
    }
    able = [chain for chain in ends.values() if _can_be_leg(model, chain)]
    legs: list[tuple[int, ...]] = []
    for joints, count in LEG_KINDS if floating is not False else ():
        long = [chain for chain in able if len(chain) >= joints]
        lowest = min((heights[chain[-1]] for chain in long), default=heights[BASE])
        reach = lowest + LOWEST_PART * max(height, 1e-9)
        low = [chain for chain in long if heights[chain[-1]] <= reach and lowest < heights[BASE]]
        if len(low) >= count:
            legs = low
            break
    places = {leg: data.oMi[leg[0]].translation for leg in legs}
    across = {leg: data.oMi[leg[-1]].translation[1] for leg in legs}
    middle = float(np.mean([place[0] for place in places.values()])) if legs else 0.0
    legs.sort(key=lambda leg: (places[leg][0] < middle - 1e-3, across[leg] < 0.0))
    return Anatomy(tuple(legs), _held(model, children, {j for leg in legs for j in leg}))


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


def _children(model: pin.Model) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {joint: [] for joint in range(model.njoints)}
    for joint in range(2, model.njoints):
        children[model.parents[joint]].append(joint)
    return children


def _chains(first: int, children: dict[int, list[int]]) -> list[tuple[int, ...]]:
    """From a joint to each end of its limb."""
    if not children[first]:
        return [(first,)]
    return [(first, *rest) for child in children[first] for rest in _chains(child, children)]


def _can_be_leg(model: pin.Model, chain: tuple[int, ...]) -> bool:
    """Whether each of its joints is driven and turns back: none is a wheel."""
    return all(
        model.joints[joint].nq == 1 and model.upperEffortLimit[model.joints[joint].idx_v] > 0.0
        for joint in chain
    )


def _held(model: pin.Model, children: dict[int, list[int]], legs: set[int]) -> tuple[str, ...]:
    """Names of joints to lock: without a motor, of fingers (light branches below the base), or without mass."""
    masses = np.array([body.mass for body in model.inertias])
    for joint in range(model.njoints - 1, 1, -1):  # of all that a joint moves
        masses[model.parents[joint]] += masses[joint]
    whole, held = masses[BASE], []
    fingers: set[int] = set()
    for joint in range(2, model.njoints):
        parent, kind = model.parents[joint], model.joints[joint]
        branch = parent != BASE and len(children[parent]) > 1 and joint not in legs
        if parent in fingers or (branch and masses[joint] < FINGER_MASS * whole):
            fingers.add(joint)
        undriven = not model.upperEffortLimit[kind.idx_v] > 0.0
        if undriven or joint in fingers or not masses[joint] > 0.0:
            held.append(model.names[joint])
    return tuple(held)
