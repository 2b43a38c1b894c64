"""Measured joints and base in, the state of the robot out: or the reason why there is none.

Every check that can refuse a state stands here. Each judges a measurement by itself (its
stamp, its numbers, the one before), whatever the door it came through.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact_id_controller.robot import RobotModel
from contact_id_controller.safety.base_prediction import BasePrediction
from contact_id_controller.safety.clock_offset import REFUSED_PERIODS
from contact_id_controller.safety.examination import (
    BASE_JUMP,
    GOOD,
    JOINT_JUMP,
    NOT_FINITE,
    NOT_UNIT,
    UNTIMELY,
    examine,
    keep_base,
    seen_of,
)
from contact_id_controller.safety.joint_jump import JointJump
from contact_id_controller.safety.odometry_jump import BASE_SIZE, OdometryJump, jump_limits
from contact_id_controller.settings import plausibility
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

NANO = 1e-9
FARTHEST_NS = 2**31 * 10**9
"""Beyond any stamp: no command could be stamped so."""

_BASE_PARTS = (("position", "m"), ("velocity", "m/s"), ("turning", "rad/s"))
"""Of a base whose size has a limit: name and unit."""

ANOTHER_CLOCK_S = 60.0
"""No stamp is so wrong by lateness: it is of a clock that counts from elsewhere."""

_UNKNOWN = np.zeros(6)

_UNKNOWN_VARIANCE = 1e4
"""Variances, (m/s)2 and (rad/s)2, from which on a driver means that it does not know them."""

_SIZE = -100
"""A base of another size than ``BASE_SIZE``."""

JOINTS_BEHIND_S = 0.01
"""Joints that are older than the base by more are not used: at 200 Hz one period and as much jitter."""


class Refusal(NamedTuple):
    """Why something is refused: a short countable reason, and the detail for the log."""

    reason: str
    detail: str


class JointReading(NamedTuple):
    """Measured joints at one time: ns; positions (na,), rad or m, velocities (na,), robot's order.

    effort: (na,) N·m, measured; None where unknown.
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
            only means that the clock is late.
        lead_limit_s: largest lead of a stamp before the clock, below `age_limit_s`.
    """

    def __init__(
        self,
        robot: RobotModel,
        age_limit_s: float = math.inf,
        odometry_age_limit_s: float = math.inf,
    ) -> None:
        self.age_limit_s = age_limit_s
        self.odometry_age_limit_s = odometry_age_limit_s
        self.has_position, self.time_s = False, 0.0
        self.velocity_is_true = self.moved_elsewhere = False
        self.base_ns: int | None = None
        self.clock_lags = False
        self.lead_limit_s = math.inf
        self._robot = robot
        self._jump = OdometryJump()
        self._joint_jump = JointJump(robot.joint_names, turns=robot.turns)
        self._seen = seen_of(robot, self._joint_jump, self._jump)
        self.position, self.velocity = self._seen.position, self._seen.velocity
        self._base_limits = np.full(3, math.inf)
        self._base_refusal: Refusal | None = None
        self.prediction, self.predicts = BasePrediction(), False
        self._variances = _UNKNOWN
        self._last_ns: int | None = None

    def apply(self, settings: ControllerSettings) -> None:
        """Take over the limits of other settings."""
        self.age_limit_s, self.lead_limit_s = settings.state_timeout_s, math.inf
        if settings.interface.has_horizon:
            self.lead_limit_s = REFUSED_PERIODS * settings.period_s
        self.odometry_age_limit_s = settings.odometry_age_limit_s
        self._jump.limits[:] = jump_limits(settings.odometry_jump_m)
        self._joint_jump.limit[:] = settings.joint_jump
        seen = self._seen
        seen.low[:], seen.high[:] = possible_joints(self._robot)
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
        rad/s, in the base frame.  variances: (6,) of the velocities; None, or zeros: unknown.
        """
        self.base_ns = time_ns
        self._variances = (
            _UNKNOWN
            if variances is None
            else np.where(variances >= _UNKNOWN_VARIANCE, 0.0, variances)
        )
        fault, size = _SIZE, 0.0
        if base.shape == (BASE_SIZE,):
            fault, size = keep_base(base, self._base_limits, self._seen.base)
        self._base_refusal = None if fault == GOOD else self._unfit_base(base, fault, size)

    def take(self, joints: JointReading, now_ns: int | None) -> RobotState | Refusal:
        """The state of the robot, whose arrays the next call overwrites; or why it is refused.

        `now_ns` is what stamps are compared with, None if only with each other.
        """
        self.velocity_is_true = self.moved_elsewhere = self.predicts = False
        time_ns, seen = joints.time_ns, self._seen
        untimely, unfit = self._check_time(time_ns, now_ns), None
        # A good base of the state's own time needs no closer look.
        if seen.floats and (self._base_refusal is not None or self.base_ns != time_ns):
            unfit = self._check_base_now(time_ns)
        in_time, judges_base = untimely is None, seen.floats and unfit is None
        fault = JOINT_JUMP
        while fault == JOINT_JUMP:
            fault = examine(
                joints.position,
                joints.velocity,
                time_ns if in_time else 0,
                in_time,
                self.base_ns if judges_base else 0,
                judges_base,
                seen,
            )
            if in_time and fault != NOT_FINITE:
                self._last_ns = time_ns
            if fault in (GOOD, BASE_JUMP):
                self.has_position, self.time_s = True, time_ns * NANO
                self.velocity_is_true = True
            if fault != GOOD:
                refusal = untimely if fault == UNTIMELY else self._refusal(fault, joints)
                if refusal is not None:
                    return refusal
                self.moved_elsewhere = True
        if judges_base and time_ns != self.base_ns:
            unfit = self._carry_base(time_ns)
        return RobotState(time_ns * NANO, seen.q, seen.v) if unfit is None else unfit

    def _refusal(self, fault: int, joints: JointReading) -> Refusal | None:
        """Why a state is refused; None where what jumped is taken at its new place."""
        if fault == NOT_FINITE:
            return self._not_finite(joints)
        if fault == JOINT_JUMP:
            away, _ = self._joint_jump.judge(self._seen.row, joints.time_ns)
            return Refusal("joint_jump", away) if away else None
        if fault == BASE_JUMP:
            away, _ = self._jump.judge(self._seen.base, self.base_ns)
            return Refusal("odometry_jump", away) if away else None
        return self._impossible(fault)

    def _not_finite(self, joints: JointReading) -> Refusal:
        bad = ~(np.isfinite(joints.position**2) & np.isfinite(joints.velocity**2))
        names = [name for name, is_bad in zip(self._robot.joint_names, bad) if is_bad]
        return Refusal(
            "joint_state_not_finite",
            f"joint state of {', '.join(names) or 'the joints'} is not finite",
        )

    def _impossible(self, k: int) -> Refusal:
        """Why joint number k cannot be where, or as fast, as measured."""
        na, seen = self._robot.na, self._seen
        what = "position" if k < na else "velocity"
        return Refusal(
            f"joint_{what}_impossible",
            f"measured {what} of joint {self._robot.joint_names[k % na]!r} is "
            f"{seen.row[k]:.6g}, possible is [{seen.low[k]:.6g}, {seen.high[k]:.6g}]",
        )

    def _check_time(self, time_ns: int, now_ns: int | None) -> Refusal | None:
        """A Refusal of a stamp that is impossible, not after the last one, stale, or ahead of the clock; else None."""
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
        most_s = min(self.age_limit_s, self.lead_limit_s)
        if -age_s > most_s and not self.clock_lags:
            return Refusal(
                "future",
                f"joint state is {-age_s:.6f} s ahead of the clock, may be {most_s:g} s"
                f"{_other_clock(age_s)}",
            )
        return None

    def _unfit_base(self, base: np.ndarray, fault: int, size: float) -> Refusal:
        """Why a base is refused."""
        if fault == _SIZE:
            return Refusal(
                "odometry_size", f"base has shape {base.shape}, must have ({BASE_SIZE},)"
            )
        if fault == NOT_FINITE:
            return Refusal("odometry_not_finite", "odometry holds a number that is not finite")
        if fault == NOT_UNIT:
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
        """Why the last base does not belong to the joints of a time."""
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
        return None

    def _carry_base(self, time_ns: int) -> Refusal | None:
        """Predict a base that is not of the joints' time; refuse one that may be a jump away by then."""
        seen = self._seen
        self.predicts, prediction = True, self.prediction
        here = prediction.carry(seen.base, self.base_ns, time_ns, self._variances)
        position_m, attitude_rad = prediction.position_m, prediction.attitude_rad
        # Compared so that what is no number is refused.
        if not (position_m <= self._jump.limits[0] and attitude_rad <= self._jump.limits[1]):
            return Refusal(
                "odometry_unsure",
                f"odometry is {(time_ns - self.base_ns) * NANO:.6f} s older than the joint state, after which the "
                f"base is known to within {position_m:.3f} m and {attitude_rad:.3f} rad only",
            )
        seen.q[:7], seen.v[:6] = here[:7], here[7:]
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


def warm_up(robot: RobotModel) -> None:
    """Compile what `StateChecks` uses."""
    checks, zero, base = StateChecks(robot), np.zeros(robot.na), np.zeros(BASE_SIZE)
    base[6] = 1.0
    checks.take_base(base, 1)
    for time_ns in (2, 3):
        checks.take(JointReading(time_ns, zero, zero), None)
    row, jump, joint_jump = np.zeros(2), OdometryJump(), JointJump(["one"])
    for time_ns in (1, 2):
        checks.prediction.carry(base, time_ns, 3, _UNKNOWN)
        jump.judge(base, time_ns)
        joint_jump.judge(row, time_ns)
