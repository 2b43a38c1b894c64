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
    "breakaway friction",
    "offset",
)
"""Parameters of a joint's drive, in the order of its columns: kg m², N·m, N·m s/rad twice, N·m twice. After them come
`WAVES` columns of a torque that depends on the joint's angle, N·m."""

DRY, FORWARDS, BACKWARDS, BREAKAWAY, OFFSET = range(1, 6)
"""Columns of a drive."""

WAVES, FINENESS, ROOM = 20, 16.0, 1.3
"""Of a torque that depends on the angle: number of columns; travel per correlation length; half of the period of the
first wave, as a share of the travel."""


def link_regressor(robot: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """Regressor Y (n, na, 10 nb) of joint torques tau = Y theta, theta the bodies' parameters in Pinocchio's order.

    Args:
        robot: with a fixed base.  q, v, a: positions, velocities and accelerations of its joints, (n, na).
    """
    model, data = robot.model, robot.model.createData()
    found = np.zeros((len(q), robot.na, 10 * (model.njoints - 1)))
    configuration, velocity, acceleration = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    for k in range(len(q)):
        robot.put_joints(configuration, q[k])
        velocity[robot.actuated], acceleration[robot.actuated] = v[k], a[k]
        found[k] = pin.computeJointTorqueRegressor(
            model, data, configuration, velocity, acceleration
        )[robot.actuated]
    return found


class DriveShape(NamedTuple):
    """How friction and other torques of a joint's drive depend on angle and velocity.

    Attributes:
        width: of the reversal of dry friction: rad/s, of tanh(v / width); or, with ``winds_up``, rad, of the presliding
            travel (Dahl): friction then lags behind the velocity, as in gears that wind up before they slide.
        winds_up: presliding (Dahl) instead of tanh.
        breakaway_rad_s: speed over which friction falls from breakaway to sliding friction (Stribeck); 0: it does not.
        travel_rad: lowest and highest angle of a torque that depends on the angle (cables, ripple of gears and
            sensors); None: there is none.
    """

    width: float
    winds_up: bool = False
    breakaway_rad_s: float = 0.0
    travel_rad: tuple[float, float] | None = None

    def course(self, q: Array, v: Array) -> Array:
        """Dry friction (n,), normalised to -1 to 1, for consecutive positions and velocities (n,)."""
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

    def breakaway(self, q: Array, v: Array) -> Array:
        """Excess of friction at low speed, (n,), normalised to -1 to 1."""
        if not self.breakaway_rad_s:
            return np.zeros(len(q))
        return self.course(q, v) * np.exp(-np.abs(v) / self.breakaway_rad_s)

    def waves(self, q: Array) -> Array:
        """Sine waves over the joint's angle q (n,), rad, as (n, WAVES), each scaled by the prior of its amplitude.

        With independent amplitudes of unit variance their sum is a Gaussian process, smooth over ``length``.

        Source: Solin and Särkkä, *Hilbert space methods for reduced-rank Gaussian process regression*, 2020, eq. 56,
        of a squared exponential of unit variance.
        """
        if self.travel_rad is None:
            return np.zeros((len(q), WAVES))
        low, high = self.travel_rad
        half, length = 0.5 * ROOM * (high - low), (high - low) / FINENESS
        frequency = 0.5 * np.pi * np.arange(1, WAVES + 1) / half
        density = np.sqrt(2.0 * np.pi) * length * np.exp(-0.5 * (frequency * length) ** 2)
        beyond = np.clip(q, low, high) - 0.5 * (low + high) + half
        waves: Array = np.sin(beyond[:, None] * frequency) * np.sqrt(density / half)
        return waves


def drive_regressor(q: Array, v: Array, a: Array, shape: DriveShape) -> Array:
    """Columns (n, 6 + WAVES) of one joint's drive, see `DRIVE`; q, v, a: its motion, (n,)."""
    return np.column_stack(
        [
            a,
            shape.course(q, v),
            np.maximum(v, 0.0),
            np.minimum(v, 0.0),
            shape.breakaway(q, v),
            np.ones(len(v)),
            shape.waves(q),
        ]
    )


def stated_parameters(robot: RobotModel) -> Array:
    """Inertial parameters (nb, 10) of the moving bodies as the description states them."""
    return np.array([body.toDynamicParameters() for body in list(robot.model.inertias)[1:]])


def leaning_torques(robot: RobotModel, q: Array, bodies: Array) -> Array:
    """Gravity torques (n, na, 2), N·m, of bodies (10 nb,) for gravity along x and along y of the world, instead of down."""
    model = pin.Model(robot.model)
    for k, body in enumerate(bodies.reshape(-1, 10)):
        model.inertias[k + 1] = pin.Inertia.FromDynamicParameters(body)
    size = float(np.linalg.norm(robot.model.gravity.linear))
    found, configuration = np.zeros((len(q), robot.na, 2)), robot.neutral()
    for k, axis in enumerate(np.eye(3)[:2]):
        model.gravity.linear = size * axis
        data = model.createData()
        for row, position in enumerate(q):
            robot.put_joints(configuration, position)
            found[row, :, k] = pin.computeGeneralizedGravity(model, data, configuration)[
                robot.actuated
            ]
    return found
