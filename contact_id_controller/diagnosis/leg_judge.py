"""Compares the gyroscope with the kinematics of standing legs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion

from contact_id_controller.diagnosis.even_samples import EvenSamples, smooth
from contact_id_controller.diagnosis.robot_of_log import RobotOfLog
from contact_id_controller.logs.log import Array

STANDS = 0.4
"""Share of a foot's usual greatest load above which it counts as standing."""

ROWS = 200


@dataclasses.dataclass(frozen=True)
class Stance:
    """Samples at which feet stand.

    Attributes:
        q, v: joints (n, na), rad, rad/s.  gyro: (n, 3) in the IMU's axes, rad/s.  up: (n, 3) unit
            vector of the specific force there.  stands: (n, feet) bool.  rows: of the samples (n,).
        rotation: (3, 3), the IMU's axes in the base.  radius_m: of the feet.
    """

    q: Array
    v: Array
    gyro: Array
    up: Array
    stands: NDArray[np.bool_]
    rows: NDArray[np.intp]
    rotation: Array
    radius_m: float


def standing(samples: EvenSamples, of: RobotOfLog) -> NDArray[np.bool_]:
    """Standing feet (n, feet) bool, without the ends of their stances."""
    loads = samples.loads if samples.feet else efforts_of_legs(samples, of)
    if not loads.shape[1]:
        return np.zeros((len(samples.time), 0), dtype=bool)
    loaded = loads > STANDS * np.percentile(loads, 95.0, axis=0)
    inside = max(1, samples.width // 2)
    return np.column_stack([binary_erosion(each, iterations=inside) for each in loaded.T])


def efforts_of_legs(samples: EvenSamples, of: RobotOfLog) -> Array:
    """Size of the efforts or currents of each leg's joints (n, feet), used if no sensor measures the feet's loads.

    Swinging legs need much less than those that carry the robot. It needs no model of the leg, which is tested.
    """
    measured = samples.effort if samples.effort is not None else samples.current
    if measured is None:
        return np.zeros((len(samples.time), 0))
    model = of.robot.model
    chains = [
        of.robot.supports[model.frames[of.robot.frame_id(name)].parentJoint][of.robot.actuated]
        for name in of.feet
    ]
    return np.column_stack([np.linalg.norm(measured[:, chain], axis=1) for chain in chains])


def stance_of(samples: EvenSamples, of: RobotOfLog, rows: int = ROWS) -> Stance | None:
    """The samples at which feet stand; None without IMU, feet or enough of them.

    A single sole determines the base's rotation, of round feet two are needed.
    """
    feet_match = len(of.feet) == len(samples.feet) or not samples.feet
    if samples.gyro is None or samples.accel is None or not of.feet or not feet_match:
        return None
    stands = standing(samples, of)
    if stands.shape[1] < 2:
        return None
    enough = np.flatnonzero((stands.sum(axis=1) >= (1 if of.soles else 2)) & samples.good)
    if len(enough) < rows // 4:
        return None
    turning = np.linalg.norm(samples.gyro[enough], axis=1)
    spread = np.unique(np.linspace(0, len(enough) - 1, 2 * rows).astype(int))
    # The half with the fastest rotation: samples at rest are no information.
    chosen = enough[np.sort(spread[np.argsort(-turning[spread])[:rows]])]
    force = smooth(samples.accel, max(5, 2 * samples.width + 1))[chosen]
    return Stance(
        samples.position[chosen],
        samples.velocity[chosen],
        samples.gyro[chosen],
        force / np.linalg.norm(force, axis=1, keepdims=True),
        stands[chosen],
        chosen,
        of.imu_rotation,
        of.radius_m,
    )


@dataclasses.dataclass(frozen=True)
class Contacts:
    """Kinematics of m pairs of standing feet or of m soles, for any gyroscope and radius.

    Attributes:
        rate: (m, 3), base's axes: velocity of the second foot relative to the first, m/s; or of a sole's rotation,
            rad/s.
        arm: (m, 3), m, from the first foot to the second; None for soles.
        row: (m,) of the stance.
    """

    rate: Array
    arm: Array | None
    row: NDArray[np.intp]


def contacts_of(stance: Stance, of: RobotOfLog) -> Contacts:
    """Kinematics of the standing feet, with the base at rest.

    Velocities are those of the lowest points of round feet.
    """
    robot, model = of.robot, of.robot.model
    data, frames = model.createData(), [robot.frame_id(name) for name in of.feet]
    row, foot = np.nonzero(stance.stands)
    place, speed, turn = (np.zeros((len(row), 3)) for _ in range(3))
    q = np.tile(robot.neutral(), (len(stance.q), 1))
    robot.put_joints(q, stance.q)
    v, last, axes = np.zeros(model.nv), -1, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for k, (at, which) in enumerate(zip(row.tolist(), foot.tolist())):
        if at != last:
            v[robot.actuated] = stance.v[at]
            pin.forwardKinematics(model, data, q[at], v)
            last = at
        frame = frames[which]
        place[k] = pin.updateFramePlacement(model, data, frame).translation
        motion = pin.getFrameVelocity(model, data, frame, axes)
        speed[k], turn[k] = motion.linear, motion.angular
    if of.soles:
        return Contacts(turn, None, row)
    down = -stance.radius_m * (stance.up @ stance.rotation.T)[row]
    place, speed = place + down, speed + np.cross(turn, down)
    pairs = np.flatnonzero(np.diff(row) == 0)
    return Contacts(speed[pairs + 1] - speed[pairs], place[pairs + 1] - place[pairs], row[pairs])


def residuals(contacts: Contacts, gyro: Array, rotation: Array) -> Array:
    """Motion (m, 3) of the feet that remains with the base's rotation measured by the gyroscope (n, 3)."""
    turning = gyro[contacts.row] @ rotation.T
    if contacts.arm is None:
        return contacts.rate + turning
    return contacts.rate + np.cross(turning, contacts.arm)


def size(left: Array) -> float:
    """Robust rms of residuals (m, 3)."""
    lengths = np.linalg.norm(left, axis=1)
    middle = float(np.median(lengths)) + 1e-9
    return float(np.sqrt(np.mean(np.minimum(lengths, 3.0 * middle) ** 2)))


def cost(stance: Stance, of: RobotOfLog) -> float:
    """Logarithm of the residual: halving it is worth .7."""
    return float(np.log(size(residuals(contacts_of(stance, of), stance.gyro, stance.rotation))))
