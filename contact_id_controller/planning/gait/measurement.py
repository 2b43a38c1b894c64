"""Base and feet of a measured state, from which a plan starts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pinocchio as pin

from contact_id_controller.exceptions import StateError
from contact_id_controller.planning.gait.legs import Legs
from contact_id_controller.robot import RobotModel

UNIT_TOLERANCE = 1e-2
"""Largest deviation of the norm of the base's quaternion from 1."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """Measured base and feet, world frame; horizontal vectors are complex, x + iy.

    Attributes:
        position, velocity: of the base, m, m/s.  yaw: rad.
        tilt, tilt_rate: (3,) height, m, roll and pitch, rad, and their rates.
        centers: (L, 3) centres of the feet, m.
        contact: (L,) bool, which feet touch the ground; None: not measured.
    """

    position: complex
    velocity: complex
    yaw: float
    tilt: np.ndarray
    tilt_rate: np.ndarray
    centers: np.ndarray
    contact: np.ndarray | None = None


def check_state(
    robot: RobotModel,
    feet: int,
    time_s: float,
    q: np.ndarray,
    v: np.ndarray,
    contact: np.ndarray | None,
) -> None:
    """Refuse a state (time_s, q, v) and contact of this many feet, None: not measured.

    Raises:
        StateError: wrong size, not finite, or a quaternion that is not of unit length.
    """
    if q.shape != (robot.nq,) or v.shape != (robot.nv,):
        raise StateError(
            f"state has {q.shape} positions and {v.shape} velocities, must have ({robot.nq},) "
            f"and ({robot.nv},)"
        )
    if contact is not None and np.shape(contact) != (feet,):
        raise StateError(
            f"contact has shape {np.shape(contact)}, must have one for each of the {feet} feet"
        )
    if not (math.isfinite(time_s) and np.isfinite(q).all() and np.isfinite(v).all()):
        raise StateError(f"state at {time_s:g} s holds a number that is not finite")
    norm = float(np.linalg.norm(q[3:7]))
    if abs(norm - 1.0) > UNIT_TOLERANCE:
        raise StateError(f"quaternion of the base has norm {norm:g}, must be 1")


def velocity(q: np.ndarray, v: np.ndarray) -> complex:
    """Horizontal velocity of the base, x + iy, m/s, world, from q (nq,), v (nv,)."""
    x, y, _ = pin.Quaternion(q[3:7]).normalized().matrix() @ v[:3]
    return complex(x, y)


def measure(
    legs: Legs, q: np.ndarray, v: np.ndarray, contact: np.ndarray | None = None
) -> Measured:
    """Compute base and feet from q (nq,), v (nv,); contact (L,) bool of the feet, None: not measured."""
    rotation = pin.Quaternion(q[3:7]).normalized().matrix()
    angles = pin.rpy.matrixToRpy(rotation)
    rates = pin.rpy.computeRpyJacobianInverse(angles, pin.ReferenceFrame.LOCAL) @ v[3:6]
    linear = rotation @ v[:3]
    return Measured(
        complex(q[0], q[1]),
        complex(linear[0], linear[1]),
        float(angles[2]),
        np.array([q[2], angles[0], angles[1]]),
        np.array([linear[2], rates[0], rates[1]]),
        legs.centers(q),
        None if contact is None else np.asarray(contact, dtype=bool),
    )
