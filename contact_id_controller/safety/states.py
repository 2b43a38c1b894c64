"""Measured joints and base in, the state of the robot out: or the reason why there is none.

Every check that can refuse a state stands here. Each judges what a measurement says of itself (its
stamp, its numbers, the one before), whatever the door it came through.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel
from contact_id_controller.robot import RobotModel
from contact_id_controller.safety.base_prediction import BasePrediction
from contact_id_controller.safety.joint_jump import JointJump
from contact_id_controller.safety.odometry_jump import BASE_SIZE, OdometryJump
from contact_id_controller.settings import plausibility
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

UNIT_TOLERANCE = 1e-2
"""Largest deviation of the norm of a measured quaternion from 1."""

NANO = 1e-9
FARTHEST_NS = 2**31 * 10**9
"""No stamp with less than a second of nanoseconds says so much: no command could be stamped so."""

_BASE_PARTS = (("position", "m"), ("velocity", "m/s"), ("turning", "rad/s"))
_FIRST = (0, 7, 10)
"""Of a base whose size has a limit: name and unit; first of its three numbers."""

_GOOD, _NOT_FINITE, _NOT_UNIT = -1, -2, -3
"""What is wrong with a base or joints, other than the number of what is impossible."""

ANOTHER_CLOCK_S = 60.0
"""No stamp is so wrong by lateness: it is of a clock that counts from elsewhere."""

_UNKNOWN = np.zeros(6)

_NOBODY_SAYS = 1e4
"""Variances, (m/s)2 and (rad/s)2, from which on a driver means that it does not know them."""

JOINTS_BEHIND_S = 0.01
"""Joints that are older than the base by more are not used: at 200 Hz one period and as much jitter."""


class Refusal(NamedTuple):
    """Why something is refused: a short countable reason, and the detail for the log."""

    reason: str
    detail: str


class JointReading(NamedTuple):
    """Measured joints at one time: ns; positions (na,), rad or m, velocities (na,), robot's order.

    effort: (na,) N·m, what they have been given; None where nobody says.
    """

    time_ns: int
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray | None = None


class StateChecks:
    """Accepts a state only when it is complete, finite, in order and fresh.

    Args:
        robot: the robot whose state it is.
        age_limit_s: largest age of a state by the clock.
        odometry_age_limit_s: largest difference between the times of joints and base, over which the base
            is predicted.

    Attributes:
        position, velocity: (na,) rad, rad/s, of the last state in order, also when it was refused
            for its base; has_position: there was one.  time_s: its time, 0 before the first.
        velocity_is_true: whether `velocity` is that of the last state taken.
        moved_elsewhere: whether the last state accepted is at another place than its base's
            velocity led to.
        base_ns: time of the last base, good or bad; None before the first.
        prediction: of the base, where its time is not that of the joints.  predicts: whether that of the last
            state taken was predicted.
        clock_lags: whether the clock comes by messages (simulated time): then a stamp ahead of it
            only says that the clock is late.
    """

    def __init__(
        self,
        robot: RobotModel,
        age_limit_s: float = math.inf,
        odometry_age_limit_s: float = math.inf,
    ) -> None:
        self.age_limit_s = age_limit_s
        self.odometry_age_limit_s = odometry_age_limit_s
        self.position, self.velocity = np.zeros(robot.na), np.zeros(robot.na)
        self.has_position, self.time_s = False, 0.0
        self.velocity_is_true = self.moved_elsewhere = False
        self.base_ns: int | None = None
        self.clock_lags = False
        self._robot = robot
        self._jump, self._joint_jump = (
            OdometryJump(),
            JointJump(robot.joint_names, turns=robot.turns),
        )
        self._low, self._high = np.full(2 * robot.na, -math.inf), np.full(2 * robot.na, math.inf)
        self._joints = np.zeros(2 * robot.na)
        self._base_limits = np.full(3, math.inf)
        self._base = np.zeros(BASE_SIZE)
        self._base_refusal: Refusal | None = None
        self.prediction, self.predicts = BasePrediction(), False
        self._variances = _UNKNOWN
        self._q, self._v = robot.neutral(), robot.velocity(None, 0.0)
        self._last_ns: int | None = None

    def apply(self, settings: ControllerSettings) -> None:
        """Take over the limits of other settings."""
        self.age_limit_s = settings.state_timeout_s
        self.odometry_age_limit_s = settings.odometry_age_limit_s
        self._jump.limit_m, self._jump.limit_rad = (
            settings.odometry_jump_m,
            settings.odometry_jump_rad,
        )
        self._joint_jump.limit = settings.joint_jump
        self._low, self._high = possible_joints(self._robot)
        self._base_limits = np.array(plausibility.BASE)

    def reset(self) -> None:
        """Let time and place start anywhere."""
        self._last_ns = None
        self.velocity_is_true = False
        self.reset_place()

    def reset_place(self) -> None:
        """Let base and joints start anywhere."""
        self._jump.reset()
        self._joint_jump.reset()

    def is_before_the_last(self, time_ns: int) -> bool:
        """Whether time has gone back."""
        return self._last_ns is not None and time_ns < self._last_ns

    def take_base(
        self, base: np.ndarray, time_ns: int, variances: np.ndarray | None = None
    ) -> None:
        """Keep a measured base (13,) for the next states; a bad one makes `take` refuse.

        Position, m, and quaternion xyzw in the world frame, linear, m/s, and angular velocity,
        rad/s, in the base frame.  variances: (6,) of the velocities; None, or zeros: nobody says.
        """
        self.base_ns = time_ns
        if variances is None:
            variances = _UNKNOWN
        self._variances = np.where(variances >= _NOBODY_SAYS, 0.0, variances)
        self._base_refusal = self._check_base(base)

    def take(self, joints: JointReading, now_ns: int | None) -> RobotState | Refusal:
        """The state of the robot, whose arrays the next call overwrites; or why it is refused.

        `now_ns` is what stamps are compared with, None if only with each other.
        """
        self.velocity_is_true = self.moved_elsewhere = self.predicts = False
        time_ns, robot = joints.time_ns, self._robot
        outside = _read_joints(
            joints.position, joints.velocity, self._low, self._high, self._joints
        )
        if outside == _NOT_FINITE:
            return self._not_finite(joints)
        refusal = self._check_time(time_ns, now_ns)
        if refusal is not None:
            return refusal
        self._last_ns = time_ns
        if outside != _GOOD:
            return self._impossible(outside)
        away, self.moved_elsewhere = self._joint_jump.judge(self._joints, time_ns)
        if away:
            return Refusal("joint_jump", away)
        _keep_joints(
            self._joints,
            self._base,
            robot.floating_base,
            robot.q_index,
            robot.actuated,
            robot.turns,
            self.position,
            self.velocity,
            self._q,
            self._v,
        )
        self.has_position, self.time_s = True, time_ns * NANO
        self.velocity_is_true = True
        if robot.floating_base:
            refusal = self._check_base_now(time_ns) or self._carry_base(time_ns)
            if refusal is not None:
                return refusal
        return RobotState(time_ns * NANO, self._q, self._v)

    def _not_finite(self, joints: JointReading) -> Refusal:
        bad = ~(np.isfinite(joints.position**2) & np.isfinite(joints.velocity**2))
        names = [name for name, is_bad in zip(self._robot.joint_names, bad) if is_bad]
        return Refusal(
            "joint_state_not_finite",
            f"joint state of {', '.join(names) or 'the joints'} is not finite",
        )

    def _impossible(self, k: int) -> Refusal:
        """Why no joint can be where, or as fast, as number k of the joints says."""
        na = self._robot.na
        what = "position" if k < na else "velocity"
        return Refusal(
            f"joint_{what}_impossible",
            f"measured {what} of joint {self._robot.joint_names[k % na]!r} is "
            f"{self._joints[k]:.6g}, possible is [{self._low[k]:.6g}, {self._high[k]:.6g}]",
        )

    def _check_time(self, time_ns: int, now_ns: int | None) -> Refusal | None:
        last_ns = self._last_ns
        if not abs(time_ns) < FARTHEST_NS:
            return Refusal(
                "stamp_impossible", f"stamp of the joint state is {time_ns * NANO:.6f} s"
            )
        if last_ns is not None and time_ns <= last_ns:
            ahead_s = (time_ns - last_ns) * NANO
            return Refusal(
                "out_of_order", f"stamp of the joint state is {ahead_s:+.6f} s from the last one"
            )
        if now_ns is None:
            return None
        age_s = (now_ns - time_ns) * NANO
        if age_s > self.age_limit_s:
            return Refusal(
                "stale", f"joint state is {age_s:.6f} s old by the clock{_other_clock(age_s)}"
            )
        if -age_s > self.age_limit_s and not self.clock_lags:
            return Refusal(
                "future", f"joint state is {-age_s:.6f} s ahead of the clock{_other_clock(age_s)}"
            )
        return None

    def _check_base(self, base: np.ndarray) -> Refusal | None:
        """Why a base is refused; a good one is kept, its quaternion made of unit length."""
        if base.shape != (BASE_SIZE,):
            return Refusal(
                "odometry_size", f"base has shape {base.shape}, must have ({BASE_SIZE},)"
            )
        fault, size = _keep_base(base, self._base_limits, self._base)
        if fault == _GOOD:
            return None
        if fault == _NOT_FINITE:
            return Refusal("odometry_not_finite", "odometry holds a number that is not finite")
        if fault == _NOT_UNIT:
            return Refusal(
                "odometry_quaternion", f"quaternion of the odometry has norm {size:g}, must be 1"
            )
        what, unit = _BASE_PARTS[fault]
        return Refusal(
            f"odometry_{what}_impossible",
            f"{what} of the base is {size:.6g} {unit}, "
            f"must be at most {self._base_limits[fault]:g}",
        )

    def _check_base_now(self, time_ns: int) -> Refusal | None:
        """Whether the last base belongs to the joints of a time, and where its velocity led to."""
        if self._base_refusal is not None:
            return self._base_refusal
        if self.base_ns is None:
            return Refusal("odometry_missing", "no odometry, and the base floats")
        age_s = (time_ns - self.base_ns) * NANO
        if abs(age_s) > ANOTHER_CLOCK_S:
            return Refusal(
                "odometry_clock",
                f"odometry is stamped {-age_s:+.0f} s from the joint state: by another clock. Stamp "
                "both with ROS time; in a hardware component read(time) may be a steady clock, "
                "get_clock()->now() is not",
            )
        # Joints that are older than the base are late themselves; nothing can predict them.
        if not -JOINTS_BEHIND_S <= age_s <= self.odometry_age_limit_s:
            return Refusal("odometry_old", f"odometry is {age_s:.6f} s older than the joint state")
        away, moved = self._jump.judge(self._base, self.base_ns)
        self.moved_elsewhere = self.moved_elsewhere or moved
        return Refusal("odometry_jump", away) if away else None

    def _carry_base(self, time_ns: int) -> Refusal | None:
        """Predict a base that is not of the joints' time; refuse one that may be a jump away by then."""
        if time_ns == self.base_ns:
            return None
        self.predicts, prediction = True, self.prediction
        here = prediction.carry(self._base, self.base_ns, time_ns, self._variances)
        position_m, attitude_rad = prediction.position_m, prediction.attitude_rad
        # Compared so that what is no number is refused.
        if not (position_m <= self._jump.limit_m and attitude_rad <= self._jump.limit_rad):
            return Refusal(
                "odometry_unsure",
                f"odometry is {(time_ns - self.base_ns) * NANO:.6f} s older than the joint state, after which the "
                f"base is known to within {position_m:.3f} m and {attitude_rad:.3f} rad only",
            )
        self._q[:7], self._v[:6] = here[:7], here[7:]
        return None


def possible_joints(robot: RobotModel) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest positions, then velocities, (2 na,), that a measurement can have."""
    stated = np.isfinite(robot.upper - robot.lower) & (robot.upper > robot.lower)
    margin = plausibility.POSITION_MARGIN
    speed = plausibility.SPEED_FACTOR * robot.velocity_limits
    speed = np.where(np.isfinite(speed), speed, plausibility.SPEED_RAD_S)
    high = np.where(stated, robot.upper + margin, math.inf)
    low = np.where(stated, robot.lower - margin, -math.inf)
    return np.concatenate([low, -speed]), np.concatenate([high, speed])


def _other_clock(age_s: float) -> str:
    """What to do about stamps that no lateness explains."""
    if abs(age_s) <= ANOTHER_CLOCK_S:
        return ""
    return (
        ", so they are two clocks: stamp with ROS time and give all nodes the same use_sim_time, or "
        "set stamp_reference to stream"
    )


def all_finite(values: np.ndarray) -> bool:
    """Whether all values (n,) are finite, and none so large that its square is not."""
    # A sum of squares is finite only if all terms are; four times faster than numpy.isfinite.
    return math.isfinite(values.dot(values))


@bare_kernel
def _read_joints(position, velocity, low, high, row):
    """Joints' numbers (na,) into the row (2 na,): good, not finite, or the first beyond its limits."""
    count, total = position.shape[0], 0.0
    for j in range(count):
        row[j], row[count + j] = position[j], velocity[j]
        total += position[j] * position[j] + velocity[j] * velocity[j]
    if not abs(total) < np.inf:  # compared: a sum that is reassociated is no test by itself
        return _NOT_FINITE
    for k in range(2 * count):
        if not low[k] <= row[k] <= high[k]:
            return k
    return _GOOD


@bare_kernel
def _keep_joints(row, base, floating, q_index, actuated, turns, position, velocity, q, v):
    """Joints (2 na,) and base (13,) into what is kept of them, and into q (nq,), v (nv,)."""
    count = position.shape[0]
    if floating:
        for k in range(7):
            q[k] = base[k]
        for k in range(6):
            v[k] = base[7 + k]
    for j in range(count):
        position[j] = q[q_index[j]] = row[j]
        if turns[j]:
            q[q_index[j]], q[q_index[j] + 1] = np.cos(row[j]), np.sin(row[j])
        velocity[j] = v[actuated[j]] = row[count + j]


@bare_kernel
def _keep_base(base, limits, kept):
    """What is wrong with a base (13,), and the size that is; a good one is kept.

    limits (3,): largest sizes of ``_BASE_PARTS``.
    """
    total = 0.0
    for k in range(base.shape[0]):
        total += base[k] * base[k]
    if not abs(total) < np.inf:
        return _NOT_FINITE, total
    norm = np.sqrt(base[3] ** 2 + base[4] ** 2 + base[5] ** 2 + base[6] ** 2)
    if abs(norm - 1.0) > UNIT_TOLERANCE:
        return _NOT_UNIT, norm
    for part in range(3):
        first = _FIRST[part]
        size = np.sqrt(base[first] ** 2 + base[first + 1] ** 2 + base[first + 2] ** 2)
        if not size <= limits[part]:
            return part, size
    for k in range(base.shape[0]):
        kept[k] = base[k] / norm if 3 <= k < 7 else base[k]
    return _GOOD, norm


def warm_up() -> None:
    """Compile what `StateChecks` uses."""
    jump, pose = OdometryJump(), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    joint_jump, row = JointJump(["one"]), np.zeros(2)
    base, one, place = np.zeros(BASE_SIZE), np.zeros(1), np.zeros(1, dtype=np.int64)
    _keep_base(base, np.zeros(3), base)
    _read_joints(one, one, row, row, row)
    _keep_joints(row, base, False, place, place, np.zeros(1, dtype=np.bool_), one, one, one, one)
    base[6], prediction = 1.0, BasePrediction()
    for time_ns in (1, 2):
        prediction.carry(base, time_ns, 3, _UNKNOWN)
        jump.take(pose, np.zeros(6), time_ns)
        joint_jump.judge(row, time_ns)
