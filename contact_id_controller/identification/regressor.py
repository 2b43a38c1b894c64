"""Joint torques as linear functions of inertial parameters, rotors and friction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_id_controller.robot import RobotModel

Array = NDArray[np.float64]

DRIVE = (
    "rotor inertia",
    "dry friction",
    "viscous friction forwards",
    "viscous backwards",
    "offset",
)
"""Parameters of a joint's drive, in the order of its columns: kg m², N·m, N·m s/rad twice, N·m."""


def link_regressor(robot: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """Y (n, na, 10 nb) with tau = Y theta, theta the parameters of the bodies in Pinocchio's order.

    Args:
        robot: with a fixed base.  q, v, a: positions, velocities and accelerations of its joints, (n, na).
    """
    model, data = robot.model, robot.model.createData()
    found = np.zeros((len(q), robot.na, 10 * (model.njoints - 1)))
    whole, speed, change = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    for k in range(len(q)):
        robot.put_joints(whole, q[k])
        speed[robot.actuated], change[robot.actuated] = v[k], a[k]
        found[k] = pin.computeJointTorqueRegressor(model, data, whole, speed, change)[
            robot.actuated
        ]
    return found


class DryFriction(NamedTuple):
    """How dry friction of a joint turns round with its motion.

    Attributes:
        width: rad/s, of tanh(v / width); or rad, of the travel in which it turns round (Dahl): then friction lags
            behind the velocity, as in gears that wind up before they slide.
        winds_up: which of both.
    """

    width: float
    winds_up: bool = False

    def of(self, q: Array, v: Array) -> Array:
        """Its course (n,) between -1 and 1, for positions and velocities (n,) that follow each other."""
        if not self.winds_up:
            return np.tanh(v / self.width)
        travel = np.diff(q)
        toward, kept = np.sign(travel), np.exp(-np.abs(travel) / self.width)
        # z <- s + (z - s) kept: the solution of z' = (v - |v| z) / width over one row.
        z = np.zeros(len(q))
        value = float(np.tanh(v[0] / max(np.std(v), 1e-9)))
        for k, (s, keep) in enumerate(zip(toward.tolist(), kept.tolist())):
            z[k] = value
            value = s + (value - s) * keep
        z[-1] = value
        return z


def drive_regressor(q: Array, v: Array, a: Array, dry: DryFriction) -> Array:
    """Columns (n, 5) of one joint's drive, see `DRIVE`; q, v, a: its motion, (n,)."""
    return np.column_stack(
        [a, dry.of(q, v), np.maximum(v, 0.0), np.minimum(v, 0.0), np.ones(len(v))]
    )


def stated_parameters(robot: RobotModel) -> Array:
    """The description's parameters (nb, 10) of its moving bodies."""
    return np.array([body.toDynamicParameters() for body in list(robot.model.inertias)[1:]])
