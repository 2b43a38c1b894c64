"""What the base odometry found: pose and twist with covariances, biases, feet, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.kernels.compile import bare_kernel
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
        self._jacobian = np.zeros((6, 9))
        self._covariances = np.zeros((9, 9)), np.zeros((6, 6)), np.zeros((6, 6))
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

    def covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of pose and twist, (6, 6) each, which the next call overwrites."""
        facts, at = self._arrays.facts, filtering.F_IMU_POSITION
        dt = max(self._arrays.inputs[filtering.I_DT], SHORTEST_S)
        _spread(
            self._arrays.P,
            self._arrays.record,
            facts[at : at + 3],
            facts[filtering.F_GYRO] / dt,
            self._jacobian,
            *self._covariances,
        )
        return self._covariances[1:]

    @property
    def pose_covariance(self) -> np.ndarray:
        """(6, 6): position (m), then rotation (rad) about the odometry frame's axes."""
        return self.covariances()[0].copy()

    @property
    def twist_covariance(self) -> np.ndarray:
        """(6, 6): linear (m/s), then angular velocity (rad/s), in the base's axes."""
        return self.covariances()[1].copy()

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
    found = np.empty(4)
    _quaternion(rotation, found)
    return found


@bare_kernel
def _quaternion(m, found):
    k, largest = 0, -np.inf
    for i in range(4):
        square = 1.0 + m[0, 0] + m[1, 1] + m[2, 2]
        if i < 3:
            square = 1.0 + 2.0 * m[i, i] - m[0, 0] - m[1, 1] - m[2, 2]
        if square > largest:
            k, largest = i, square
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        off = m[b, a] - m[a, b]
        if k == 3:
            found[i] = off
        else:
            found[i] = largest if i == k else m[k, i] + m[i, k]
            if i == k:
                found[3] = off
    if k == 3:
        found[3] = largest
    size = 0.0
    for i in range(4):
        size += found[i] * found[i]
    size = np.sqrt(size)
    if found[3] < 0.0:
        size = -size
    for i in range(4):
        found[i] /= size


@bare_kernel
def _spread(P, record, lever, gyro, J, Q, pose, twist):
    """Covariances (6, 6) of pose and twist; gyro: variance of a sample of the gyroscope, rad2/s2.

    J (6, 9), Q (9, 9): room.
    """
    p = record[filtering.O_POSITION : filtering.O_POSITION + 3]
    R = record[filtering.O_ROTATION : filtering.O_ROTATION + 9]
    J[:] = 0.0
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        # -p x, of the turn about the origin.
        J[i, a], J[i, b] = p[b], -p[a]
        J[i, 6 + i] = J[3 + i, i] = 1.0
    _sandwich(J, P, pose)
    # v_base = v_imu + lever x w, and w is known to within the gyroscope's noise and bias.
    J[:] = 0.0
    Q[:] = 0.0
    for i in range(3):
        a, b = (i + 1) % 3, (i + 2) % 3
        J[i, 3 + a], J[i, 3 + b] = -lever[b], lever[a]
        J[3 + i, 3 + i] = 1.0
        for j in range(3):
            J[i, j] = R[3 * j + i]
            Q[i, j], Q[3 + i, 3 + j] = P[3 + i, 3 + j], P[9 + i, 9 + j]
        Q[3 + i, 3 + i] += gyro
    _sandwich(J, Q, twist)


@bare_kernel
def _sandwich(J, P, found):
    """J P J^T, of the first rows and columns of P."""
    for i in range(J.shape[0]):
        for j in range(J.shape[0]):
            total = 0.0
            for k in range(J.shape[1]):
                if J[i, k] != 0.0:
                    for l in range(J.shape[1]):
                        total += J[i, k] * P[k, l] * J[j, l]
            found[i, j] = total
