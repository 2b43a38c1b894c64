"""What the base odometry found: pose and twist with covariances, biases, feet, and why not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_id_controller.estimation import invariant_filter as filtering
from contact_id_controller.estimation.odometry_arrays import (
    POSE,
    POSE_SPREAD,
    TWIST,
    OdometryArrays,
    quaternion_of,
    report,
)
from contact_id_controller.robot import RobotModel

STARTING, RUNNING, COASTING, LOST = "starting", "running", "coasting", "lost"
"""What the odometry does: waits for the robot to stand still; runs; runs on IMU or feet alone for a
moment; holds its pose, with velocity zero, until the robot stands still again."""


class BaseEstimate:
    """What one step found; valid until the next one. Ready for nav_msgs/Odometry.

    Attributes:
        state: ``starting``, ``running``, ``coasting`` or ``lost``.  ready: whether pose and twist may be used.
        reasons: why, and whatever else is wrong, in words; empty while all is well.
        position (3,) m, rotation (3, 3): of the base in the odometry frame.
        velocity (3,) m/s, angular_velocity (3,) rad/s: of the base, in its own axes.
        gyroscope_bias, accelerometer_bias (3,): in the base's axes.
        stands: (n_feet,) bool, feet that were used.  slipping: names of feet that are reported to be in
            contact and are not believed.
    """

    def __init__(self, robot: RobotModel, feet: Sequence[str], arrays: OdometryArrays):
        record, x = arrays.record, arrays.x
        self._robot, self._names, self._arrays = robot, tuple(feet), arrays
        self._reported = arrays.reported.data
        self._feet = record[filtering.O_FEET :].reshape(len(self._names), -1)
        self.ready, self.state = False, STARTING
        self.reasons: tuple[str, ...] = ("standing still is awaited",)
        at = filtering.O_POSITION
        self.position = record[at : at + 3]
        at = filtering.O_ROTATION
        self.rotation = record[at : at + 9].reshape(3, 3)
        at = filtering.O_VELOCITY
        self.velocity, self.angular_velocity = record[at : at + 3], record[at + 3 : at + 6]
        self.gyroscope_bias = x[filtering.GYRO_BIAS : filtering.GYRO_BIAS + 3]
        self.accelerometer_bias = x[filtering.ACCEL_BIAS : filtering.ACCEL_BIAS + 3]

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

    def report(self) -> memoryview:
        """(85,) as nav_msgs/Odometry has it: pose (7,), its covariance (6, 6), twist (6,), its covariance.

        The next call overwrites them.
        """
        report(self._arrays)
        return self._reported

    @property
    def pose_covariance(self) -> np.ndarray:
        """(6, 6): position (m), then rotation (rad) about the odometry frame's axes."""
        return np.array(self.report()[POSE:POSE_SPREAD]).reshape(6, 6)

    @property
    def twist_covariance(self) -> np.ndarray:
        """(6, 6): linear (m/s), then angular velocity (rad/s), in the base's axes."""
        return np.array(self.report()[TWIST:]).reshape(6, 6)

    def configuration(self, q_joints: np.ndarray) -> np.ndarray:
        """Pinocchio's q (nq,) of this base and joints (na,)."""
        pose = np.concatenate([self.position, self.orientation])
        return self._robot.configuration(pose, q_joints)

    def generalised_velocity(self, v_joints: np.ndarray) -> np.ndarray:
        """Pinocchio's v (nv,) of this base and joints (na,)."""
        twist = np.concatenate([self.velocity, self.angular_velocity])
        return self._robot.velocity(twist, v_joints)


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """(4,) x, y, z, w of a rotation (3, 3), w >= 0. Shepperd (1978)."""
    found = np.empty(4)
    quaternion_of(rotation, found)
    return found
