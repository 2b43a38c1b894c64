"""One compiled call that reads a state, judges it and keeps it; what it refuses, `states` puts in words."""

from __future__ import annotations

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.structs import Struct, StructType, packing
from contact_id_controller.robot import RobotModel
from contact_id_controller.safety import joint_jump, odometry_jump
from contact_id_controller.safety.jump_filter import AGREES, KNOWN, TIME_NS

UNIT_TOLERANCE = 1e-2
"""Largest deviation of the norm of a measured quaternion from 1."""

GOOD, NOT_FINITE, NOT_UNIT, UNTIMELY, JOINT_JUMP, BASE_JUMP = range(-1, -7, -1)
"""What is wrong with a state or a base, other than the number of what is impossible."""

_FIRST = (0, 7, 10)
"""First of the three numbers of position, velocity and turning of a base."""

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


class Seen(Struct):
    """What was measured of a robot; the arrays are made once and written by each examination.

    Attributes:
        q_index, actuated (na,), turns (na,) bool: as in ``RobotModel``.  floats: it has a floating base.
        low, high: (2 na,) possible positions, then velocities, of the joints.
        joint_limit (1,) rad or m, base_limits (2,) m, rad: of jumps, the filters' own.
        row: (2 na,) joints read last.  base: (13,) measured last.
        joint_place (2 na,), base_place (13,); joint_mark, base_mark (3,): of their `JumpFilter`.
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


def seen_of(
    robot: RobotModel, joints: joint_jump.JointJump, base: odometry_jump.OdometryJump
) -> Seen:
    """Nothing is seen yet, and anything is possible."""
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
        base=np.zeros(odometry_jump.BASE_SIZE),
        joint_place=joints.place,
        joint_mark=joints.mark,
        base_place=base.place,
        base_mark=base.mark,
        position=np.zeros(na),
        velocity=np.zeros(na),
        q=robot.neutral(),
        v=robot.velocity(None, 0.0),
    )


@kernel
def examine(position, velocity, time_ns, in_time, base_ns, judges_base, seen):
    """Whether joints, and the base measured last, may be a robot's state; then it is kept.

    Args:
        position, velocity: (na,) measured.  time_ns: when.  in_time: whether that may be.
        base_ns: when the base was measured.  judges_base: there is one for this time.
        seen: ``Seen``.

    Returns what is wrong, or the number of the joints' first impossible one. A base that jumps leaves
    the joints kept.
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
    if mark[KNOWN]:
        dt = 1e-9 * (time_ns - mark[TIME_NS])
        _, away = joint_jump.unexplained(place, row, dt, seen.turns)
        if not away <= seen.joint_limit[0] + 0.5 * joint_jump.FASTEST_RAD_S2 * dt * dt:
            return JOINT_JUMP
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
    """What is measured is where it is, as `JumpFilter.judge` has it."""
    assign(place, row)
    mark[KNOWN], mark[TIME_NS], mark[AGREES] = 1, time_ns, 0


@bare_kernel
def _read_joints(position, velocity, low, high, row):
    """Joints' numbers (na,) into the row (2 na,): good, not finite, or the first beyond its limits."""
    count, total = position.shape[0], 0.0
    for j in range(count):
        row[j], row[count + j] = position[j], velocity[j]
        total += position[j] * position[j] + velocity[j] * velocity[j]
    if not abs(total) < np.inf:  # compared: a sum that is reassociated is no test by itself
        return NOT_FINITE
    for k in range(2 * count):
        if not low[k] <= row[k] <= high[k]:
            return k
    return GOOD


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
def keep_base(base, limits, kept):
    """What is wrong with a base (13,), and the size that is; a good one is kept, its quaternion of length 1.

    limits (3,): largest sizes of position, velocity and turning.
    """
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
