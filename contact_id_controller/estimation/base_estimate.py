"""What the base odometry found: pose and twist with covariances, biases, feet, and why not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.robot import RobotModel

STARTING, RUNNING, COASTING, LOST = "starting", "running", "coasting", "lost"
"""What the odometry does: waits for the robot to stand still; runs; runs on IMU or feet alone for a
moment; holds its pose, with velocity zero, until the robot stands still again."""

SHORTEST_S = 1e-4
"""Period that the gyroscope's noise is averaged over, at least."""


class FilterArrays(NamedTuple):
    """What ``invariant_filter.step`` works on; see there."""

    facts: np.ndarray
    x: np.ndarray
    P: np.ndarray
    inputs: np.ndarray
    record: np.ndarray


class BaseEstimate:
    """What one step found; valid until the next one. Ready for nav_msgs/Odometry.

    Attributes:
        state: ``starting``, ``running``, ``coasting`` or ``lost``.
        reasons: why, and whatever else is wrong, in words; empty while all is well.
        position (3,) m, rotation (3, 3): of the base in the odometry frame.
        velocity (3,) m/s, angular_velocity (3,) rad/s: of the base, in its own axes.
        gyroscope_bias, accelerometer_bias (3,): in the base's axes.
        stands: (n_feet,) bool, feet that were used.  slipping: names of feet that are said to be in
            contact and are not believed.
    """

    def __init__(self, robot: RobotModel, feet: Sequence[str], arrays: FilterArrays):
        record, x = arrays.record, arrays.x
        self._robot, self._names, self._arrays = robot, tuple(feet), arrays
        self._feet = record[filtering.O_FEET :].reshape(len(self._names), -1)
        self.state, self.reasons = STARTING, ("standing still is awaited",)
        at = filtering.O_POSITION
        self.position = record[at : at + 3]
        at = filtering.O_ROTATION
        self.rotation = record[at : at + 9].reshape(3, 3)
        at = filtering.O_VELOCITY
        self.velocity, self.angular_velocity = record[at : at + 3], record[at + 3 : at + 6]
        self.gyroscope_bias = x[filtering.GYRO_BIAS : filtering.GYRO_BIAS + 3]
        self.accelerometer_bias = x[filtering.ACCEL_BIAS : filtering.ACCEL_BIAS + 3]

    @property
    def ready(self) -> bool:
        """Whether pose and twist may be used."""
        return self.state in (RUNNING, COASTING)

    @property
    def orientation(self) -> np.ndarray:
        """(4,) quaternion x, y, z, w of the base in the odometry frame."""
        return quaternion(self.rotation)

    @property
    def stands(self) -> np.ndarray:
        return self._feet[:, filtering.DOES] == filtering.STANDS

    @property
    def slipping(self) -> tuple[str, ...]:
        feet = self._feet
        gated = (feet[:, filtering.DOES] == filtering.GATED) & (
            feet[:, filtering.SINCE] > filtering.SHORT_S
        )
        return tuple(name for name, bad in zip(self._names, gated) if bad)

    @property
    def feet(self) -> np.ndarray:
        """(n_feet, 3) m: centres of the feet in the odometry frame, by the present joints."""
        at = filtering.CENTRE
        imu = self._arrays.x[filtering.POSITION : filtering.POSITION + 3]
        return imu + self._feet[:, at : at + 3] @ self.rotation.T

    @property
    def pose_covariance(self) -> np.ndarray:
        """(6, 6): position (m), then rotation (rad) about the odometry frame's axes."""
        P = self._arrays.P
        J = np.zeros((6, 9))
        J[:3, :3], J[:3, 6:], J[3:, :3] = -pin.skew(self.position), np.eye(3), np.eye(3)
        return J @ P[:9, :9] @ J.T

    @property
    def twist_covariance(self) -> np.ndarray:
        """(6, 6): linear (m/s), then angular velocity (rad/s), in the base's axes."""
        P, R, facts = self._arrays.P, self.rotation, self._arrays.facts
        lever = pin.skew(facts[filtering.F_IMU_POSITION :][:3])
        linear = R.T @ P[3:6, 3:6] @ R
        dt = max(self._arrays.inputs[filtering.I_DT], SHORTEST_S)
        gyro = P[9:12, 9:12] + np.eye(3) * facts[filtering.F_GYRO] / dt
        found = np.zeros((6, 6))
        # v_base = v_imu + lever x w, and w is known to within the gyroscope's noise and bias.
        found[:3, :3] = linear + lever @ gyro @ lever.T
        found[:3, 3:], found[3:, :3] = lever @ gyro, gyro @ lever.T
        found[3:, 3:] = gyro
        return found

    def configuration(self, q_joints) -> np.ndarray:
        """Pinocchio's q (nq,) of this base and joints (na,)."""
        pose = np.concatenate([self.position, self.orientation])
        return self._robot.configuration(pose, q_joints)

    def generalised_velocity(self, v_joints) -> np.ndarray:
        """Pinocchio's v (nv,) of this base and joints (na,)."""
        twist = np.concatenate([self.velocity, self.angular_velocity])
        return self._robot.velocity(twist, v_joints)


def quaternion(rotation) -> np.ndarray:
    """(4,) x, y, z, w of a rotation (3, 3), w >= 0. Shepperd (1978)."""
    m = rotation
    squares = np.array(
        [
            1.0 + m[0, 0] - m[1, 1] - m[2, 2],
            1.0 - m[0, 0] + m[1, 1] - m[2, 2],
            1.0 - m[0, 0] - m[1, 1] + m[2, 2],
            1.0 + m[0, 0] + m[1, 1] + m[2, 2],
        ]
    )
    k = int(np.argmax(squares))
    off = np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    if k == 3:
        found = np.append(off, squares[3])
    else:
        found = np.append(m[k] + m[:, k], off[k])
        found[k] = squares[k]
    return found / math.copysign(math.sqrt(found @ found), found[3])
