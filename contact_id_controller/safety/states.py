"""Checks of measured joints and base: they return the robot's state, or why it is refused.

Each check judges a measurement by its stamp, its values, and the measurement before, the same for messages and
for arrays in process. One compiled call (`examine`) reads, checks and keeps a state; ``StateChecks`` words refusals.
`GoodStates` tells whether good states still arrive.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.frozen import draft_of
from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import Kernel, bare_kernel, kernel
from contact_id_controller.kernels.direct import direct
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.kernels.views import dense
from contact_id_controller.robot import RobotModel
from contact_id_controller.safety import joint_jump, odometry_jump
from contact_id_controller.safety.base_prediction import BasePrediction
from contact_id_controller.safety.clock_offset import REFUSED_PERIODS
from contact_id_controller.safety.joint_jump import JointJump
from contact_id_controller.safety.jump_filter import AGREES, KNOWN, TIME_NS
from contact_id_controller.safety.odometry_jump import BASE_SIZE, OdometryJump, jump_limits
from contact_id_controller.safety.stamp_watch import StampWatch
from contact_id_controller.settings import plausibility
from contact_id_controller.settings.controller import ControllerSettings
from contact_id_controller.state import RobotState

NANO = 1e-9
FARTHEST_NS = 2**31 * 10**9
"""Limit of stamps: seconds of a ROS message have 32 bits."""

_BASE_PARTS = (("position", "m"), ("velocity", "m/s"), ("turning", "rad/s"))
"""Parts of a base whose norm has a limit: name and unit."""

ANOTHER_CLOCK_S = 60.0
"""A larger age or lead is no lateness: the stamp is of another clock."""

_UNKNOWN = np.zeros(6)

_UNKNOWN_VARIANCE = 1e4
"""Variances, (m/s)2 and (rad/s)2, from which on they mean "unknown"."""

_SIZE = -100
"""Fault of a base that has not ``BASE_SIZE`` values."""

AHEAD_PERIODS = 10.0
"""Without a clock a stamp may be ahead of the last one by so many periods; see `StampWatch`."""

JOINTS_BEHIND_S = 0.01
"""Largest age of joints behind the base: at 200 Hz one period and as much jitter."""


class Refusal(NamedTuple):
    """Why an input is refused: a short countable reason, and the detail for the log."""

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


LONGEST_SET_S = 1.0
"""Longest time by which a clock is set forward while the robot is commanded. A steady clock stands while a computer is
suspended, which looks the same and takes longer."""

UNIT_TOLERANCE = 1e-2
"""Largest deviation of the norm of a measured quaternion from 1."""

GOOD, NOT_FINITE, NOT_UNIT, UNTIMELY, JOINT_JUMP, JOINTS_FROZEN, BASE_JUMP = range(-1, -8, -1)
"""Faults of a state or a base; impossible values are reported by their index, >= 0, instead."""

_FIRST = (0, 7, 10)
"""Index in a base (13,) of its position, linear velocity and angular velocity."""

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


class Seen(Struct):
    """The last measurements of a robot; `examine` writes into these arrays, which are made once.

    Attributes:
        q_index, actuated (na,), turns (na,) bool: as in ``RobotModel``.  floats: it has a floating base.
        low, high: (2 na,) possible positions, then velocities, of the joints.
        joint_limit (1,) rad or m, base_limits (2,) m, rad: least jumps, shared with the `JumpFilter` of each.
        row: (2 na,) joints read last.  base: (13,) measured last.
        joint_place (2 na,), base_place (13,); joint_mark, base_mark (3,): of their `JumpFilter`.
        since_ns: (1,) stamp with which the joints first came as they are in joint_place.
        position, velocity (na,), q (nq,), v (nv,): of the last state in order.
    """

    q_index: Places
    actuated: Places
    turns: NDArray[np.bool_]
    floats: bool
    low: Numbers
    high: Numbers
    joint_limit: Numbers
    base_limits: Numbers
    row: Numbers
    base: Numbers
    joint_place: Numbers
    joint_mark: Places
    since_ns: Places
    base_place: Numbers
    base_mark: Places
    position: Numbers
    velocity: Numbers
    q: Numbers
    v: Numbers


@structref.register
class SeenType(StructType):
    """numba's type of `Seen`."""


_pack = packing(Seen, SeenType)


@kernel
def _packed(values):
    """The struct ``Seen``, from the tuple of its fields' values."""
    return _pack(values)


Seen.packed = staticmethod(_packed)


def seen_of(robot: RobotModel, joints: JointJump, base: OdometryJump) -> Seen:
    """Make a `Seen` without measurements and without limits."""
    na = robot.na
    return Seen(
        q_index=robot.q_index,
        actuated=robot.actuated,
        turns=robot.turns,
        floats=robot.floating_base,
        low=np.full(2 * na, -np.inf),
        high=np.full(2 * na, np.inf),
        joint_limit=joints.limit,
        base_limits=base.limits,
        row=np.zeros(2 * na),
        base=np.zeros(BASE_SIZE),
        joint_place=joints.place,
        joint_mark=joints.mark,
        since_ns=np.zeros(1, dtype=np.int64),
        base_place=base.place,
        base_mark=base.mark,
        position=np.zeros(na),
        velocity=np.zeros(na),
        q=robot.neutral(),
        v=robot.velocity(None, 0.0),
    )


@kernel
def examine(position, velocity, time_ns, in_time, base_ns, judges_base, seen):
    """Check joints, and the base measured last; keep them in ``seen`` where they are accepted.

    Args:
        position, velocity: (na,) measured, rad or m, rad/s or m/s.  time_ns: their stamp.
        in_time: whether the stamp is accepted.
        base_ns: stamp of the base.  judges_base: whether there is a base to check.
        seen: ``Seen``.

    Returns GOOD, a fault, or the index in ``seen.row`` of the first impossible value. A BASE_JUMP is found after the
    joints, which are kept then.
    """
    row = seen.row
    outside = _read_joints(position, velocity, seen.low, seen.high, row)
    if outside == NOT_FINITE:
        return NOT_FINITE
    if not in_time:
        return UNTIMELY
    if outside != GOOD:
        return outside
    mark, place = seen.joint_mark, seen.joint_place
    motion = -1.0
    if mark[KNOWN]:
        motion = joint_jump.repeated_motion(place, row, 1e-9 * (time_ns - seen.since_ns[0]))
        if motion > seen.joint_limit[0]:
            return JOINTS_FROZEN
        dt = 1e-9 * (time_ns - mark[TIME_NS])
        _, away = joint_jump.unexplained(place, row, dt, seen.turns)
        if motion < 0.0 and (
            not away <= seen.joint_limit[0] + 0.5 * joint_jump.FASTEST_RAD_S2 * dt * dt
        ):
            return JOINT_JUMP
    if motion < 0.0:
        seen.since_ns[0] = time_ns
    _accept(row, time_ns, place, mark)
    base = seen.base
    _keep_joints(
        row,
        base,
        seen.floats,
        seen.q_index,
        seen.actuated,
        seen.turns,
        seen.position,
        seen.velocity,
        seen.q,
        seen.v,
    )
    if judges_base:
        mark, place = seen.base_mark, seen.base_place
        if mark[KNOWN]:
            dt = 1e-9 * (base_ns - mark[TIME_NS])
            away, turned = odometry_jump.unexplained(place, base, dt)
            limits = seen.base_limits
            if not (
                away <= limits[0] + 0.5 * odometry_jump.FASTEST_M_S2 * dt * dt
                and turned <= limits[1] + 0.5 * odometry_jump.FASTEST_RAD_S2 * dt * dt
            ):
                return BASE_JUMP
        _accept(base, base_ns, place, mark)
    return GOOD


@bare_kernel
def _accept(row, time_ns, place, mark):
    """Write the measurement ``row`` into the filter's ``place``, its stamp into ``mark``: as `JumpFilter.judge`."""
    assign(place, row)
    mark[KNOWN], mark[TIME_NS], mark[AGREES] = 1, time_ns, 0


@bare_kernel
def _read_joints(position, velocity, low, high, row):
    """Write the joints (na,) into row (2 na,); return GOOD, NOT_FINITE, or the index of the first beyond its limits."""
    count, total = position.shape[0], 0.0
    for j in range(count):
        row[j], row[count + j] = position[j], velocity[j]
        total += position[j] * position[j] + velocity[j] * velocity[j]
    if not abs(total) < np.inf:  # explicit: the compiler may reassociate the sum
        return NOT_FINITE
    for k in range(2 * count):
        if not low[k] <= row[k] <= high[k]:
            return k
    return GOOD


@bare_kernel
def _keep_joints(row, base, floating, q_index, actuated, turns, position, velocity, q, v):
    """Write joints (row, 2 na) and base (13,) into position, velocity (na,), q (nq,) and v (nv,)."""
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
def keep_base(base, variances, limits, kept, known):
    """Check a base (13,); write an accepted one into ``kept``, its quaternion normalised.

    Args:
        variances (6,): of its velocities; written into ``known`` (6,), 0 where they mean "unknown".
        limits (3,): largest norms of position, m, linear, m/s, and angular velocity, rad/s.

    Returns:
        GOOD, NOT_FINITE, NOT_UNIT or the index in ``limits`` that is exceeded; and the norm that was tested.
    """
    for k in range(known.shape[0]):
        known[k] = 0.0 if variances[k] >= _UNKNOWN_VARIANCE else variances[k]
    total = 0.0
    for k in range(base.shape[0]):
        total += base[k] * base[k]
    if not abs(total) < np.inf:
        return NOT_FINITE, total
    norm = np.sqrt(base[3] ** 2 + base[4] ** 2 + base[5] ** 2 + base[6] ** 2)
    if abs(norm - 1.0) > UNIT_TOLERANCE:
        return NOT_UNIT, norm
    for part in range(3):
        first = _FIRST[part]
        size = np.sqrt(base[first] ** 2 + base[first + 1] ** 2 + base[first + 2] ** 2)
        if not size <= limits[part]:
            return part, size
    for k in range(base.shape[0]):
        kept[k] = base[k] / norm if 3 <= k < 7 else base[k]
    return GOOD, norm


LONGEST_S = 0.01
"""Longest time, s, between two calls of `Listening.look` in a process that runs: one wait for messages and a step."""


class Listening:
    """Counts the time in which the process could not receive messages, as it was suspended or busy.

    Without calls of ``look`` that time stays 0.

    Attributes:
        slept_s: that time since the first ``look``, s.
    """

    def __init__(self) -> None:
        self.slept_s = 0.0
        self._last_s: float | None = None

    def look(self, now_s: float) -> None:
        """Note that messages can be received now; now_s: steady clock, s."""
        if self._last_s is not None:
            beyond_s = now_s - self._last_s - LONGEST_S
            if beyond_s > 0.0:
                self.slept_s += beyond_s
        self._last_s = now_s


LARGEST_CHANGE = 10.0
"""Largest ratio of a single interval, in multiples of the mean: a pause says nothing about the pace."""

SLOWEST = 100.0
"""Largest factor: a simulation that is slower counts as paused."""

SLOWEST_CHANGE = 0.02
"""Weight of a new interval in the mean (more at the beginning): a single late state hardly changes it."""


class Pace:
    """Ratio of clock time to the robot's time: a simulation may be slower than real time.

    Attributes:
        factor: clock seconds per stamped second, 1 to ``SLOWEST``.
    """

    def __init__(self) -> None:
        self.factor = 1.0
        self._mean, self._count = 1.0, 0
        self._last: tuple[float, float] | None = None

    def observe(self, stamp_s: float, now_s: float) -> None:
        """Update ``factor``, the running mean of clock seconds per stamped second, with a state.

        stamp_s: the state's stamp; now_s: steady clock at its arrival. A stamp that is not newer than the last one only
        restarts the interval.
        """
        if self._last is not None and stamp_s > self._last[0]:
            ratio = (now_s - self._last[1]) / (stamp_s - self._last[0])
            self._count += 1
            # Without min and max, of which a call takes as long as five lines; so below.
            weight = 1.0 / self._count
            if weight < SLOWEST_CHANGE:
                weight = SLOWEST_CHANGE
            most = LARGEST_CHANGE * self._mean
            if most > SLOWEST:
                most = SLOWEST
            if ratio > most:
                ratio = most
            self._mean = mean = self._mean + weight * (ratio - self._mean)
            self.factor = mean if mean > 1.0 else 1.0
        self._last = stamp_s, now_s


NO_STATE = "no joint state"
"""`GoodStates.trouble` before the first state."""


class GoodStates:
    """When the last good state arrived, and whether the next one is overdue.

    Times are of a steady clock, s, except ``stamp_s``.

    Attributes:
        timeout_s: longest time between two good states, s.
        simulated_time: whether stamps are of a simulation, which may be slower than the clock.
        last_s: arrival of the last good state; -inf: none since `forget`.  stamp_s: its stamp.
        velocity_s: when joint velocities were last measured that damping may use.
        trouble: why the last bad state was refused.
        slower: clock seconds per second of the stamps.
        slept_between_s: between the last two good states, time in which the process could not receive, or by which the
            clock of the stamps was set forward, s.
        listening: counts that time.
    """

    def __init__(self) -> None:
        self.timeout_s, self.simulated_time = math.inf, False
        self.slower, self.slept_between_s = 1.0, 0.0
        self.velocity_s = -math.inf
        self.stamp_s: float | None = None
        self.listening, self._pace, self._slept_s = Listening(), Pace(), 0.0
        self.forget()

    def forget(self) -> None:
        """Restart: no good state has arrived."""
        self.last_s, self.trouble = -math.inf, NO_STATE

    def came(self, stamp_s: float, now_s: float, by_clock: bool = False) -> None:
        """Note a good state with stamp ``stamp_s`` that arrived at ``now_s``.

        by_clock: whether the stamps are those of this computer's clock, which may be set: then stamps that advance by
            more than the steady clock show no gap.
        """
        slept_s, set_s = self.listening.slept_s, 0.0
        if self.simulated_time:
            self._pace.observe(stamp_s, now_s)
            self.slower = self._pace.factor
        elif by_clock and self.stamp_s is not None:
            set_s = stamp_s - self.stamp_s - (now_s - self.last_s)
            if set_s > LONGEST_SET_S:
                set_s = 0.0
        self.last_s, self.stamp_s = now_s, stamp_s
        between_s = (slept_s - self._slept_s) / self.slower
        self.slept_between_s = set_s if set_s > between_s else between_s
        self._slept_s = slept_s

    def overdue_in_s(self, now_s: float) -> float:
        """Time until the next good state is overdue, s; negative: it is."""
        slept_s = self.listening.slept_s - self._slept_s
        return self.timeout_s * self.slower - (now_s - self.last_s - slept_s)


class StateChecks:
    """Accepts a state only if it is complete, finite, in order, not stale and physically possible.

    Args:
        robot: the robot whose state it is.
        age_limit_s: largest age of a state by the clock.
        odometry_age_limit_s: largest difference between the stamps of joints and base, over which the base
            is predicted.

    Attributes:
        position, velocity: (na,) rad, rad/s, of the last joint state in order, also when it was refused
            for its base; has_position: there was one.  time_s: its stamp, 0 before the first.
        velocity_is_true: whether `velocity` is that of the last call of `take`.
        moved_elsewhere: whether the last state was accepted after a jump, at its new place.
        base_ns: stamp of the last base, good or bad; None before the first.
        prediction: of the base to the joints' stamp.  predicts: whether the last state's base was predicted.
        clock_lags: whether the clock comes by messages (simulated time): then stamps may be ahead of it.
        lead_limit_s: largest lead of a stamp before the clock, where below `age_limit_s`.
        stamps: judges stamps where no clock does.
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
        self.stamps = StampWatch(ahead_ns=FARTHEST_NS)
        self.lead_limit_s = math.inf
        self._robot = robot
        self._jump = OdometryJump()
        self._joint_jump = JointJump(robot.joint_names, turns=robot.turns)
        self._seen = seen_of(robot, self._joint_jump, self._jump)
        self.position, self.velocity = self._seen.position, self._seen.velocity
        given = self.position, self.velocity, 0, True, 0, True
        self._examine: Kernel = direct(examine, *given, self._seen)
        self._keep_base: Kernel = direct(keep_base, *4 * (self.position,), _UNKNOWN)
        self._given: tuple[np.ndarray, np.ndarray] = self.position, self.velocity
        self._base_limits = np.full(3, math.inf)
        self._base_refusal: Refusal | None = None
        self.prediction, self.predicts = BasePrediction(), False
        self._variances = np.zeros(6)
        self._last_ns: int | None = None
        self._begin_ns: int | None = None

    def apply(self, settings: ControllerSettings) -> None:
        """Take the limits from these settings."""
        self.age_limit_s, self.lead_limit_s = settings.state_timeout_s, math.inf
        if settings.interface.has_horizon:
            self.lead_limit_s = REFUSED_PERIODS * settings.period_s
        self.odometry_age_limit_s = settings.odometry_age_limit_s
        self.stamps.ahead_ns = round(AHEAD_PERIODS * settings.period_s / NANO)
        self.judge(settings.joint_jump, settings.odometry_jump_m)

    def judge(
        self,
        joint_jump: float = ControllerSettings.joint_jump,
        odometry_jump_m: float = ControllerSettings.odometry_jump_m,
    ) -> None:
        """Refuse impossible values from now on, and jumps: of a joint, rad or m, and of the base, m; see `JumpFilter`."""
        self._jump.limits[:] = jump_limits(odometry_jump_m)
        self._joint_jump.limit[:] = joint_jump
        seen = self._seen
        seen.low[:], seen.high[:] = possible_joints(self._robot)
        self._base_limits = np.array(plausibility.BASE)

    def reset(self) -> None:
        """Accept any stamp, and any place of base and joints, next."""
        self._last_ns = self._begin_ns = None
        self.stamps.forget()
        self.velocity_is_true = False
        self.reset_place()

    def begin(self) -> None:
        """Accept any place next, and the last stamp again.

        A stamp before that one, or far after it, is accepted if the next one confirms it.
        """
        self._begin_ns, self._last_ns = self._last_ns, None
        self.stamps.forget()
        self.velocity_is_true = False
        self.reset_place()

    def reset_place(self) -> None:
        """Accept any place of base and joints next."""
        self._jump.reset()
        self._joint_jump.reset()

    def is_before_the_last(self, time_ns: int) -> bool:
        """Whether a stamp is before that of the last state."""
        return self._last_ns is not None and time_ns < self._last_ns

    def take_base(
        self, base: np.ndarray, time_ns: int, variances: np.ndarray | None = None
    ) -> None:
        """Keep a measured base (13,) for the next states; a bad one makes `take` refuse them.

        Position, m, and quaternion xyzw in the world frame, linear, m/s, and angular velocity,
        rad/s, in the base frame.  variances: (6,) of the velocities; None, or zeros: unknown.
        """
        self.base_ns = time_ns
        fault, size = _SIZE, 0.0
        base, given = dense(base), _UNKNOWN if variances is None else dense(variances)
        if base.shape == (BASE_SIZE,) and given.shape == _UNKNOWN.shape:
            fault, size = self._keep_base(
                base, given, self._base_limits, self._seen.base, self._variances
            )
        self._base_refusal = None if fault == GOOD else self._unfit_base(base, fault, size)

    def take(self, joints: JointReading, now_ns: int | None) -> RobotState | Refusal:
        """Check measured joints with the last base; return the state, or why it is refused.

        The next call overwrites the arrays of the state. now_ns: the clock, with which stamps are compared;
        None: they are compared only with each other.
        """
        self.velocity_is_true = self.moved_elsewhere = self.predicts = False
        time_ns, seen = joints.time_ns, self._seen
        if joints.position is not self._given[0] or joints.velocity is not self._given[1]:
            given = dense(joints.position), dense(joints.velocity)
            if given[0].shape != self.position.shape or given[1].shape != self.velocity.shape:
                return Refusal(
                    "wrong_size",
                    f"joint positions and velocities have shapes {given[0].shape} and {given[1].shape}, "
                    f"must have {self.position.shape}",
                )
            self._given = given
        untimely, unfit = self._check_time(time_ns, now_ns), None
        # A good base with the joints' stamp has been checked already.
        if seen.floats and (self._base_refusal is not None or self.base_ns != time_ns):
            unfit = self._check_base_now(time_ns)
        in_time, judges_base = untimely is None, seen.floats and unfit is None
        fault = JOINT_JUMP
        while fault == JOINT_JUMP:
            fault = self._examine(
                *self._given,
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
        if unfit is not None:
            return unfit
        state: Any = _Draft()  # the constructor of a frozen class takes three times as long
        state.time_s, state.q, state.v = time_ns * NANO, seen.q, seen.v
        state.__class__ = RobotState
        good: RobotState = state
        return good

    def _refusal(self, fault: int, joints: JointReading) -> Refusal | None:
        """The Refusal of a fault; None where a jump is confirmed by later states and its new place is taken."""
        if fault == NOT_FINITE:
            return self._not_finite()
        if fault == JOINT_JUMP:
            away, _ = self._joint_jump.judge(self._seen.row, joints.time_ns)
            self._seen.since_ns[0] = joints.time_ns
            return Refusal("joint_jump", away) if away else None
        if fault == JOINTS_FROZEN:
            frozen_s = (joints.time_ns - self._seen.since_ns[0]) * NANO
            return Refusal(
                "joints_frozen",
                f"measured joints repeat for {frozen_s:.3f} s to the last digit, though by their velocities they move",
            )
        if fault == BASE_JUMP and self.base_ns is not None:
            away, _ = self._jump.judge(self._seen.base, self.base_ns)
            return Refusal("odometry_jump", away) if away else None
        return self._impossible(fault)

    def _not_finite(self) -> Refusal:
        """The Refusal of joints that are not finite, by name, or too large to be squared."""
        good = np.isfinite(self._seen.row**2)
        names = [
            name
            for name, *is_good in zip(self._robot.joint_names, *np.split(good, 2))
            if not all(is_good)
        ]
        return Refusal(
            "joint_state_not_finite",
            f"joint state of {', '.join(names) or 'the joints'} is not finite",
        )

    def _impossible(self, k: int) -> Refusal:
        """The Refusal of entry ``k`` of the row (2 na,): positions, then velocities."""
        na, seen = self._robot.na, self._seen
        what = "position" if k < na else "velocity"
        return Refusal(
            f"joint_{what}_impossible",
            f"measured {what} of joint {self._robot.joint_names[k % na]!r} is "
            f"{seen.row[k]:.6g}, possible is [{seen.low[k]:.6g}, {seen.high[k]:.6g}]",
        )

    def _check_time(self, time_ns: int, now_ns: int | None) -> Refusal | None:
        """Refuse a stamp that is impossible, not after the last one, stale, or ahead of the clock; None: it is good."""
        last_ns = self._last_ns
        if not abs(time_ns) < FARTHEST_NS:
            return Refusal(
                "stamp_impossible", f"stamp of the joint state is {time_ns * NANO:.6f} s"
            )
        known_ns = self._begin_ns if last_ns is None else last_ns
        if known_ns is not None:
            ahead_ns = time_ns - known_ns
            backwards = last_ns is not None and ahead_ns <= 0
            judged = now_ns is None or self.clock_lags
            if backwards or (judged and not self.stamps.follows(time_ns, ahead_ns)):
                return Refusal(
                    "out_of_order" if backwards else "stamp_jump",
                    f"stamp of the joint state is {ahead_ns * NANO:+.6f} s from the last one",
                )
        if now_ns is None:
            return None
        age_s = (now_ns - time_ns) * NANO
        if age_s > self.age_limit_s:
            return Refusal(
                "stale", f"joint state is {age_s:.6f} s old by the clock{_other_clock(age_s)}"
            )
        if age_s >= 0.0 or self.clock_lags:
            return None
        most_s = min(self.age_limit_s, self.lead_limit_s)
        if -age_s > most_s:
            return Refusal(
                "future",
                f"joint state is {-age_s:.6f} s ahead of the clock, may be {most_s:g} s"
                f"{_other_clock(age_s)}",
            )
        return None

    def _unfit_base(self, base: np.ndarray, fault: int, size: float) -> Refusal:
        """The Refusal of a base; fault, size: from `keep_base`."""
        if fault == _SIZE:
            return Refusal(
                "odometry_size",
                f"base has shape {base.shape}, must have ({BASE_SIZE},), and its variances (6,)",
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
        """Refuse the last base for joints of this stamp where it is bad, missing, or too old; None: it is good."""
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
            than = "older" if age_s > 0.0 else "newer"
            return Refusal(
                "odometry_old", f"odometry is {abs(age_s):.6f} s {than} than the joint state"
            )
        return None

    def _carry_base(self, time_ns: int) -> Refusal | None:
        """Write the base predicted to ``time_ns`` into q and v; refuse it where it is too uncertain by then."""
        assert self.base_ns is not None, "its age was checked"
        seen = self._seen
        self.predicts, prediction = True, self.prediction
        here = prediction.carry(seen.base, self.base_ns, time_ns, self._variances)
        position_m, attitude_rad = prediction.position_m, prediction.attitude_rad
        # Written so that NaN is refused.
        if not (position_m <= self._jump.limits[0] and attitude_rad <= self._jump.limits[1]):
            return Refusal(
                "odometry_unsure",
                f"odometry is {(time_ns - self.base_ns) * NANO:.6f} s older than the joint state, after which the "
                f"base is known to within {position_m:.3f} m and {attitude_rad:.3f} rad only",
            )
        seen.q[:7], seen.v[:6] = here[:7], here[7:]
        return None


_Draft = draft_of(RobotState)


def possible_joints(robot: RobotModel) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (2 na,) of measurements: positions, rad or m, then velocities."""
    stated = np.isfinite(robot.upper - robot.lower) & (robot.upper > robot.lower)
    margin = plausibility.POSITION_MARGIN
    speed = plausibility.SPEED_FACTOR * robot.velocity_limits
    speed = np.where(np.isfinite(speed), speed, plausibility.SPEED_RAD_S)
    high = np.where(stated, robot.upper + margin, math.inf)
    low = np.where(stated, robot.lower - margin, -math.inf)
    return np.concatenate([low, -speed]), np.concatenate([high, speed])


def _other_clock(age_s: float) -> str:
    """A hint to append to a message where the age is too large for lateness; else empty."""
    if abs(age_s) <= ANOTHER_CLOCK_S:
        return ""
    return (
        ", so they are two clocks: stamp with ROS time and give all nodes the same use_sim_time, or "
        "set stamp_reference to stream"
    )


@bare_kernel
def all_finite(values):
    """Whether all values (n,), and the sum of their squares, are finite."""
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k] * values[k]
    return total < np.inf


@cache
def checks_of_arrays() -> tuple[Kernel, Kernel]:
    """Compiled calls of `all_finite` and `is_within`."""
    row = np.zeros(6)
    return direct(all_finite, row), direct(is_within, row, row)


@bare_kernel
def is_within(wrench, squares):
    """Whether the squares of a wrench's (6,) force and moment are at most ``squares`` (2,); NaN is beyond."""
    force = wrench[0] * wrench[0] + wrench[1] * wrench[1] + wrench[2] * wrench[2]
    moment = wrench[3] * wrench[3] + wrench[4] * wrench[4] + wrench[5] * wrench[5]
    return force <= squares[0] and moment <= squares[1]


def warm_up(robot: RobotModel) -> None:
    """Compile the kernels of `StateChecks`."""
    checks, zero, base = StateChecks(robot), np.zeros(robot.na), np.zeros(BASE_SIZE)
    base[6] = 1.0
    checks.take_base(base, 1)
    checks_of_arrays()
    for time_ns in (2, 3):
        checks.take(JointReading(time_ns, zero, zero), None)
    row, jump, joint_jump = np.zeros(2), OdometryJump(), JointJump(["one"])
    for time_ns in (1, 2):
        checks.prediction.carry(base, time_ns, 3, _UNKNOWN)
        jump.judge(base, time_ns)
        joint_jump.judge(row, time_ns)
