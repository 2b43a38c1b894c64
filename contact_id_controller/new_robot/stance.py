"""Finds a standing posture: knees bent, feet below the hips, centre of mass between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares

from contact_id_controller.exceptions import ConfigurationError

STRETCHED = (0.85, 0.9, 0.95)
"""Leg length when standing as a share of the straight leg; the first that the joint limits allow: straight legs cannot
push, bent ones need torque."""

ROUNDS = 4
"""Number of iterations that put the feet below the centre of mass, which moves with them."""

STARTS = 8
"""Number of random initial guesses of a leg's joints, besides the middle of their range."""

ALIKE = 0.5
"""Weight of similarity to another leg, relative to that of joints near zero."""

REACHED_M = 1e-4
TOWARDS_MIDDLE = 1e-3
"""Weight of the joints' distance from the initial guess."""

FREE_RANGE = np.pi
"""Half range of the search for a joint without limits, or with wider ones, rad."""


def reach(model: pin.Model, leg: Sequence[int], frame: int, q: np.ndarray) -> float:
    """Length, m, of a straight leg from its hip to its foot."""
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    places = [data.oMi[joint].translation for joint in _from_hip(leg)]
    places.append(data.oMf[frame].translation)
    return float(sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(places)))


def _from_hip(leg: Sequence[int]) -> Sequence[int]:
    """The joints from the hip on; the first of three or more moves the leg sideways."""
    return leg[1:] if len(leg) > 2 else leg


def standing_posture(
    model: pin.Model,
    near: np.ndarray,
    legs: Sequence[Sequence[int]],
    frames: Sequence[int],
    centers: np.ndarray,
    flat: bool,
) -> np.ndarray:
    """q (nq,) with the base level at the origin and all feet at one height.

    Args:
        model: with a floating base.
        near: q (nq,) with the legs below the base: start of the search.
        legs: joints of each leg from the trunk on.
        frames: of the feet.  centers: (legs, 3) m, middles of the feet in their frames.
        flat: whether the feet must be level, too.

    Raises:
        ConfigurationError: a leg that does not reach the ground.
    """
    for part in STRETCHED[:-1]:
        try:
            return _standing(model, near, legs, frames, centers, flat, part)
        except ConfigurationError:
            continue  # bent less
    return _standing(model, near, legs, frames, centers, flat, STRETCHED[-1])


def _standing(
    model: pin.Model,
    near: np.ndarray,
    legs: Sequence[Sequence[int]],
    frames: Sequence[int],
    centers: np.ndarray,
    flat: bool,
    stretched: float,
) -> np.ndarray:
    """As `standing_posture`, with legs at the share ``stretched`` of their length."""
    q, data = near.copy(), model.createData()
    pin.framesForwardKinematics(model, data, q)
    lengths = [reach(model, leg, frame, q) for leg, frame in zip(legs, frames)]
    length = stretched * min(lengths)
    hips = np.array([data.oMi[_from_hip(leg)[0]].translation for leg in legs])
    beside = np.array([data.oMf[frame].translation[1] for frame in frames])
    height = hips[:, 2].min() - length
    ahead, like = 0.0, np.zeros(0)
    for turn in range(ROUNDS):
        for leg, frame, hip, y in zip(legs, frames, hips, beside):
            place = np.array([hip[0] + ahead, y, height])
            q = _put(model, data, q, leg, frame, place, flat, like if turn == 0 else None)
            like = q[_index(model, leg)]
        com = pin.centerOfMass(model, data, q)
        pin.framesForwardKinematics(model, data, q)
        middles = [data.oMf[frame].act(center)[0] for frame, center in zip(frames, centers)]
        ahead += float(com[0] - np.mean(middles))
    return q


def _index(model: pin.Model, leg: Sequence[int]) -> np.ndarray:
    return np.array([model.joints[joint].idx_q for joint in leg])


def _put(
    model: pin.Model,
    data: Any,
    q: np.ndarray,
    leg: Sequence[int],
    frame: int,
    place: np.ndarray,
    flat: bool,
    like: Any,
) -> np.ndarray:
    """The configuration with one foot at a position ``place`` (3,), m.

    like: joints of another leg, which this one is to resemble if it can; None: the leg stays near
    its present joints.
    """
    index = _index(model, leg)
    low = np.maximum(model.lowerPositionLimit[index], -FREE_RANGE)
    high = np.minimum(model.upperPositionLimit[index], FREE_RANGE)
    middle = 0.5 * (low + high)

    def missed(x: np.ndarray, home: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tried = q.copy()
        tried[index] = x
        pin.framesForwardKinematics(model, data, tried)
        pose = data.oMf[frame]
        turn = pose.rotation[:, 2][:2] if flat else np.zeros(0)
        # Feet point ahead.
        yaw = pose.rotation[1:2, 0] if flat else np.zeros(0)
        distance = np.concatenate([pose.translation - place, 0.1 * turn, 0.1 * yaw])
        return np.concatenate([distance, TOWARDS_MIDDLE * 1e-2 * (x - home)]), distance

    rng = np.random.default_rng(0)
    best = None
    starts = [q[index]]
    if like is not None:
        starts += [middle, *(low + (high - low) * rng.random((STARTS, len(leg))))]
    for start in starts:
        found = least_squares(
            lambda x: missed(x, np.clip(0.0, low, high))[0],
            np.clip(start, low + 1e-6, high - 1e-6),
            bounds=(low, high),
            xtol=1e-12,
            ftol=1e-12,
        )
        distance = np.abs(missed(found.x, middle)[1]).max()
        cost = float(np.abs(found.x).sum())
        if like is not None and like.shape == found.x.shape:
            cost += ALIKE * float(np.abs(found.x - like).sum())
        if distance < REACHED_M and (best is None or cost < best[0] - 1e-6):
            best = (cost, found.x)
    if best is None:
        raise ConfigurationError(
            f"no standing posture found: within its position limits the leg of joint "
            f"{model.names[leg[0]]!r} does not put its foot below its hip; check the limits of its "
            "joints in the URDF, and run contact_id new again"
        )
    out = q.copy()
    out[index] = best[1]
    return out
