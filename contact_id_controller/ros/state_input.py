"""Joint states and odometry in, the state of the robot out: or the reason why there is none."""

from __future__ import annotations

from contact_id_controller.robot import RobotModel
from contact_id_controller.ros.conversions import (
    JointStateReader,
    OdometryReader,
    Refusal,
    nanoseconds,
)
from contact_id_controller.safety.odometry_jump import OdometryJump
from contact_id_controller.state import RobotState

_NANO = 1e-9

_CLOCK_LAG_S = 0.1
"""How far simulated time, which comes in steps, may be behind the stamps."""


class StateInput:
    """Accepts a state only when it is complete, finite, in order and fresh.

    Parameters
    ----------
    robot
        The robot, whose `joint_names` are looked for in each message.
    age_limit_s
        Largest age of a state by the clock.
    odometry_age_limit_s
        Largest difference between the stamps of joint state and odometry.
    """

    def __init__(self, robot: RobotModel, age_limit_s: float, odometry_age_limit_s: float) -> None:
        self.age_limit_s = age_limit_s
        self.odometry_age_limit_s = odometry_age_limit_s
        self.joints = JointStateReader(robot.joint_names)
        self.odometry = OdometryReader()
        self.jump = OdometryJump()
        self.velocity_is_true = False
        self.moved_elsewhere = False
        """Whether the last state accepted is at another place than odometry led to."""
        self._robot = robot
        self._q, self._v = robot.neutral(), robot.velocity(None, 0.0)
        self._last_ns: int | None = None
        self._odometry_refusal: Refusal | None = None

    def reset(self) -> None:
        """Let time start anywhere."""
        self._last_ns = None
        self.velocity_is_true = False
        self.jump.reset()

    def is_before_the_last(self, message) -> bool:
        """Whether the time of a JointState has gone back."""
        return self._last_ns is not None and nanoseconds(message.header.stamp) < self._last_ns

    def take_odometry(self, message) -> None:
        """Keep the newest odometry; a bad one makes `take_joint_state` refuse."""
        self._odometry_refusal = self.odometry.read(message)

    def take_joint_state(self, message, now_ns: int | None) -> RobotState | Refusal:
        """The state of the robot, whose arrays the next call overwrites; or why it is refused.

        `now_ns` is what stamps are compared with, None if only with each other. After a
        refusal `velocity_is_true` tells whether `joints.velocity` is true nevertheless.
        """
        self.velocity_is_true = False
        stamp_ns = nanoseconds(message.header.stamp)
        refusal = self.joints.read(message) or self._check_stamp(stamp_ns, now_ns)
        if refusal is not None:
            return refusal
        self._last_ns = stamp_ns
        self.velocity_is_true = True
        robot = self._robot
        if robot.floating_base:
            refusal = self._check_odometry(stamp_ns)
            if refusal is not None:
                return refusal
            self._q[:7], self._v[:6] = self.odometry.pose, self.odometry.twist
        self._q[robot.q_index] = self.joints.position
        self._v[robot.actuated] = self.joints.velocity
        return RobotState(stamp_ns * _NANO, self._q, self._v)

    def _check_stamp(self, stamp_ns: int, now_ns: int | None) -> Refusal | None:
        last_ns = self._last_ns
        if last_ns is not None and stamp_ns <= last_ns:
            ahead_s = (stamp_ns - last_ns) * _NANO
            return Refusal(
                "out_of_order", f"stamp of the joint state is {ahead_s:+.6f} s from the last one"
            )
        if now_ns is None:
            return None
        age_s = (now_ns - stamp_ns) * _NANO
        if age_s > self.age_limit_s:
            return Refusal("stale", f"joint state is {age_s:.6f} s old by the clock")
        if -age_s > self.age_limit_s + _CLOCK_LAG_S:
            return Refusal("future", f"joint state is {-age_s:.6f} s ahead of the clock")
        return None

    def _check_odometry(self, stamp_ns: int) -> Refusal | None:
        if self._odometry_refusal is not None:
            return self._odometry_refusal
        if self.odometry.stamp_ns is None:
            return Refusal("odometry_missing", "no odometry, and the base floats")
        age_s = (stamp_ns - self.odometry.stamp_ns) * _NANO
        if abs(age_s) > self.odometry_age_limit_s:
            return Refusal("odometry_old", f"odometry is {age_s:.6f} s older than the joint state")
        away, self.moved_elsewhere = self.jump.take(
            self.odometry.pose, self.odometry.twist, self.odometry.stamp_ns
        )
        return Refusal("odometry_jump", away) if away else None
