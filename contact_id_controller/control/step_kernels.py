"""The arithmetic of one period around the contact problem: one compiled call before it, one after it.

Each call from Python costs about as much as the work in it, and a dozen small arrays cost ten times as
much. What stands here is law: who touches, who lands, what is wanted, what the machine can take. What is
asked of whom, and in which order, is `controller`'s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_id_controller.control.feedback import (
    BASE_WEIGHT,
    UNPLANNED,
    base_error,
    base_feedback,
    consistent_acceleration,
)
from contact_id_controller.control.limits import (
    DAMPING,
    EFFORT_LIMIT,
    LOSS,
    LOWER,
    MARGIN,
    RATE_STEP,
    SPEED,
    UPPER,
    bound_joints,
    limit_joints,
)
from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import bare_kernel, inlined_kernel, kernel
from contact_id_controller.kernels.spatial import tangents
from contact_id_controller.kernels.turns import whole_turns

UNMOVED = 1e6  # weight of the base that leaves all motion to the joints
LANDED_M = 1e-5  # on rigid ground a foot rests within rounding of the surface, on either side of it
PARTED_M = 1e-4  # a foot that has landed stands until it is farther away: a bounce is farther
UNKNOWN_GAP_M = 0.01  # at least, of a foot that is in the air by sources other than geometry

LANDED, LIFTED, EARLY, TOUCHING, LANDING = range(5)
"""Rows of what is known of each contact, bool: the first three are remembered for the next period."""

POSITION, VELOCITY, ERROR = range(3)
"""Rows of the joints' numbers of a period: measured, and error of position."""

GAINS = 8
"""First of the three rows of joint gains, after those of `Limits.table`: position, velocity, integral."""

BY_GEOMETRY, BY_SCHEDULE, BY_MEASUREMENT = 1, 2, 4
"""Bits of ``sources``, which must agree on a contact."""

SENSED, SOLES, DEADBEAT, TORQUES, LANDS, GOAL, NO_GOAL, BALANCED = (1 << k for k in range(8))
"""Bits of ``task``: all contacts count; some feet have several contacts; impacts are foreseen; gains
give torques, with no model; feet may be coming down; the base has a goal, or floats without one; somebody
else makes the acceleration where no foot meets the ground early."""


_whole_turns = bare_kernel(whole_turns)


class Numbers(NamedTuple):
    """The settings' numbers that a period needs; an array of them, in this order, goes to the kernels."""

    period_s: Any
    contact_time_constant_s: Any
    touchdown_time_constant_s: Any
    touchdown_speed_m_s: Any
    drift_share: Any
    contact_gap_m: Any
    ramp_s: Any
    stop_gain: Any
    limit_time_constant_s: Any
    velocity_margin: Any
    power_limit_w: Any


class Feet(NamedTuple):
    """The n contacts: joints that carry them, their feet, points, normals, gaps; limits of landing, m."""

    links: Any
    foot: Any
    points: Any
    normals: Any
    gaps: Any
    landed_m: Any


@inlined_kernel
def _read(numbers):
    return Numbers(
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        numbers[4],
        numbers[5],
        numbers[6],
        numbers[7],
        numbers[8],
        numbers[9],
        numbers[10],
    )


@bare_kernel
def agreed_contacts(
    gaps, gap_m, planned, sources, measured, time_s, ramp_s, since_s, last, contact
):
    """Contacts (n,) bool on which all sources agree.

    gaps (n,) m, of at most gap_m; planned, measured (n,) bool, the latter (0,) where it is no source.
    With a ramp, since_s (n,) becomes the time of those that were not in the ``last`` ones (n,) bool.
    """
    for i in range(gaps.shape[0]):
        agreed = gaps[i] <= gap_m or not sources & BY_GEOMETRY
        agreed = agreed and (planned[i] or not sources & BY_SCHEDULE)
        if sources & BY_MEASUREMENT:
            agreed = agreed and measured[i]
        if agreed and ramp_s > 0.0 and not last[i]:
            since_s[i] = time_s
        contact[i] = last[i] = agreed


@bare_kernel
def _hide_gaps(contact, gaps):
    """Distances that are not believed must not part, land or penetrate anything."""
    for i in range(gaps.shape[0]):
        gaps[i] = 0.0 if contact[i] else max(gaps[i], UNKNOWN_GAP_M)


@inlined_kernel
def _touch(feet, planned, task, known, foot_touches):
    """Which contacts stand where they should; what has landed stands until it parts."""
    gaps, landed_m, foot = feet.gaps, feet.landed_m, feet.foot
    landed, touching = known[LANDED], known[TOUCHING]
    for i in range(gaps.shape[0]):
        # A foot that rolls or slips over bumps, or is felt with noise, may be a little off them.
        near = gaps[i] <= landed_m[i] or (landed[i] and gaps[i] <= PARTED_M)
        landed[i] = touching[i] = planned[i] and near
    if task & SOLES:
        # A foot stands as a whole: its corners in the air follow with its rotation.
        for i in range(gaps.shape[0]):
            foot_touches[foot[i]] = False
        for i in range(gaps.shape[0]):
            foot_touches[foot[i]] |= touching[i]
        for i in range(gaps.shape[0]):
            touching[i] = planned[i] and foot_touches[foot[i]]


@inlined_kernel
def _find_early(J, v, supports, feet, planned, n, known):
    """Feet in swing that meet the ground within this period or have met it.

    The ground is higher, or the foot lower, than planned: it pushes back all the same, and the
    foot must not be driven on into it. A foot that has not yet left the ground is not meant.
    """
    gaps, points, normals, links = feet.gaps, feet.points, feet.normals, feet.links
    lifted, early = known[LIFTED], known[EARLY]
    for i in range(gaps.shape[0]):
        near = gaps[i] <= n.contact_gap_m
        lifted[i] = not planned[i] and (lifted[i] or not near)
        early[i] = early[i] and not planned[i] and gaps[i] <= LANDED_M
        if not (lifted[i] and near) or early[i]:
            continue
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        closing = 0.0
        for k in range(v.shape[0]):
            if supports[links[i], k]:
                closing -= v[k] * (
                    normals[i, 0] * (J[0, k] + J[4, k] * z - J[5, k] * y)
                    + normals[i, 1] * (J[1, k] + J[5, k] * x - J[3, k] * z)
                    + normals[i, 2] * (J[2, k] + J[3, k] * y - J[4, k] * x)
                )
        early[i] = closing * n.period_s > max(gaps[i], LANDED_M)


@inlined_kernel
def _closing_speeds(gaps, early, n, closing):
    """Speed (n,), m/s, at which each standing contact still nears the ground.

    Early feet reach it within this period, others over the contact time constant.
    """
    for i in range(gaps.shape[0]):
        gap = max(gaps[i], 0.0)
        closing[i] = min(gap / n.contact_time_constant_s, n.touchdown_speed_m_s)
        if early[i]:
            closing[i] = gap / n.period_s


@inlined_kernel
def _joint_feedback(q, v, q_index, turns, actuated, plan, table, integral, task, joints, out):
    """Joints' numbers and what their feedback wants (na,): accelerations, or torques.

    Of a joint that turns without end, the position nearest to the plan's.
    """
    for j in range(q_index.shape[0]):
        position, velocity = q[q_index[j]], v[actuated[j]]
        if turns[j]:
            angle = np.arctan2(q[q_index[j] + 1], position)
            position = angle - _whole_turns(angle - plan[0, j])
        error = plan[0, j] - position
        joints[POSITION, j], joints[VELOCITY, j], joints[ERROR, j] = position, velocity, error
        out[j] = (
            table[GAINS, j] * error
            + table[GAINS + 1, j] * (plan[1, j] - velocity)
            + table[GAINS + 2, j] * integral[j]
        )
        if not task & TORQUES:
            out[j] += plan[2, j]


@kernel
def before_problem(
    time_s,
    task,
    numbers,
    q,
    v,
    q_index,
    turns,
    actuated,
    J,
    supports,
    coordinate_joint,
    plan,
    goal,
    table,
    base_gains,
    integral,
    links,
    foot,
    points,
    normals,
    gaps,
    landed_m,
    planned,
    sources,
    measured,
    since_s,
    last,
    foot_touches,
    known,
    contact,
    closing,
    joints,
    bounded,
    desired,
    wanted,
    weights,
    acceleration,
):
    """From state and plan to contacts and desired acceleration; whether the acceleration is there.

    time_s of the state; task: bits as above; numbers: ``Numbers``. q (nq,), v (nv,); J (6, nv) and the
    tree as in ``RobotModel``. plan (3, na) of ``JointTrajectory.fill``, goal (19,) of the base. table
    (11, na): limits and gains; base_gains (4, 3); integral (na,). links to gaps: the n contacts;
    planned (n,) bool; sources, measured, since_s, last: as in ``agreed_contacts``. foot_touches: room,
    bool, one a foot.
    Out: known (5, n) and contact (n,) bool; closing (n,) m/s; joints (3, na); bounded (na,) bits;
    desired (na,): joint accelerations, or torques; wanted, weights, acceleration (nv,).
    """
    n, feet = _read(numbers), Feet(links, foot, points, normals, gaps, landed_m)
    agreed_contacts(
        gaps, n.contact_gap_m, planned, sources, measured, time_s, n.ramp_s, since_s, last, contact
    )
    if not sources & BY_GEOMETRY:
        _hide_gaps(contact, gaps)
    if task & SENSED:
        for i in range(contact.shape[0]):
            contact[i] = True
    _touch(feet, planned, task, known, foot_touches)
    touching, landing, early = known[TOUCHING], known[LANDING], known[EARLY]
    if task & DEADBEAT:
        _find_early(J, v, supports, feet, planned, n, known)
        for i in range(contact.shape[0]):
            contact[i] |= early[i]
            touching[i] |= early[i]
    any_early = False
    for i in range(contact.shape[0]):
        landing[i] = (task & LANDS) != 0 and planned[i] and not touching[i]
        any_early |= early[i]
    _closing_speeds(gaps, early, n, closing)
    _joint_feedback(q, v, q_index, turns, actuated, plan, table, integral, task, joints, desired)
    if task & TORQUES:
        return True
    bound_joints(
        joints[POSITION],
        joints[VELOCITY],
        n.period_s,
        table[SPEED],
        table[LOWER],
        table[UPPER],
        table[MARGIN],
        n.stop_gain,
        n.limit_time_constant_s,
        desired,
        bounded,
    )
    for j in range(actuated.shape[0]):
        wanted[actuated[j]] = desired[j]
    if task & GOAL:
        R, error = np.empty((3, 3)), np.empty((4, 3))
        base_error(q, v, goal, R, error)
        base_feedback(R, v, error, base_gains, goal, wanted)
        fill(weights[:6], BASE_WEIGHT)
    elif task & NO_GOAL:
        fill(wanted[:6], 0.0)
        fill(weights[:6], UNPLANNED)
    if task & BALANCED and not any_early:
        return False
    if any_early:
        fill(weights[:6], UNMOVED)  # a foot that must stop at once is stopped by its leg
    consistent_acceleration(
        J,
        v,
        supports,
        coordinate_joint,
        links,
        points,
        normals,
        touching,
        landing,
        closing,
        n.contact_time_constant_s,
        n.touchdown_time_constant_s,
        n.touchdown_speed_m_s,
        n.drift_share,
        weights,
        wanted,
        acceleration,
    )
    for j in range(actuated.shape[0]):
        desired[j] = acceleration[actuated[j]]
    return True


@bare_kernel
def _foot_forces(impulses, period_s, contact, touching, push, normals, frame, forces):
    """Forces (n, 3) N, world frame: the model's, with what is pressed on besides."""
    row = 0
    for i in range(contact.shape[0]):
        pressed = push[i] if touching[i] else 0.0
        for d in range(3):
            forces[i, d] = pressed * normals[i, d]
        if contact[i]:
            tangents(normals[i], frame)
            for k in range(3):
                amount = impulses[row + k] / period_s
                for d in range(3):
                    forces[i, d] += frame[k, d] * amount
            row += 3


@kernel
def after_problem(
    numbers,
    torques,
    impulses,
    joints,
    table,
    bounded,
    contact,
    known,
    push,
    normals,
    room,
    integral,
    decided,
    commanded,
    limited,
    acting,
    forces,
):
    """From the solution's torques (na,) and impulses (3 m,) to what is commanded; returns the heat, W.

    Where a limit acts, the integral has no gain, or the robot was given something else than was
    decided (na,), it must not wind up: it waits. A joint whose integral has no gain now may be given
    one later. Out: limited (na,) N·m; acting (na,) bits; forces (n, 3) N. room (3, 3): to work in.
    """
    n, elsewhere = _read(numbers), np.empty(torques.shape[0], np.bool_)
    for j in range(torques.shape[0]):
        elsewhere[j] = commanded[j] != decided[j]
    limit_joints(
        joints[POSITION],
        joints[VELOCITY],
        torques,
        decided,
        table[SPEED],
        n.velocity_margin,
        table[LOWER],
        table[UPPER],
        table[MARGIN],
        table[DAMPING],
        table[LOSS],
        n.power_limit_w,
        table[EFFORT_LIMIT],
        table[RATE_STEP],
        bounded,
        limited,
        acting,
    )
    heat = 0.0
    for j in range(torques.shape[0]):
        if acting[j] == 0 and not elsewhere[j] and table[GAINS + 2, j] != 0.0:
            integral[j] += joints[ERROR, j] * n.period_s
        decided[j] = commanded[j] = limited[j]
        heat += table[LOSS, j] * limited[j] * limited[j]
        bounded[j] = 0
    if forces.shape[0]:
        _foot_forces(impulses, n.period_s, contact, known[TOUCHING], push, normals, room, forces)
    return heat
