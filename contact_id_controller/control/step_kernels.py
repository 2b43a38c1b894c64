"""Kernels of one period around the contact problem: one compiled call before it, one after it.

They decide contacts, touchdown, desired acceleration and torque limits; `controller` calls them in order. All take a
``Period`` and its ``PeriodSettings``.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.contact_estimate import (
    ELSEWHERE_M,
    PARTED_M,
    estimate_contacts,
    largest_rise,
    mean_rise,
)
from contact_id_controller.control.disturbance import observe
from contact_id_controller.control.feedback import (
    BASE_WEIGHT,
    UNPLANNED,
    base_error,
    base_feedback,
    consistent_acceleration,
)
from contact_id_controller.control.grip import foresee, learn
from contact_id_controller.control.joint_velocity import foresee_velocities
from contact_id_controller.control.least_change import least_change
from contact_id_controller.control.limits import BRAKES, EFFORT, RATE, bound_joints, limit_joints
from contact_id_controller.control.motor_estimate import swinging_torque, take_motors
from contact_id_controller.control.swing import lead_swings
from contact_id_controller.kernels.arrays import assign, fill
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.spatial import point_column, tangents
from contact_id_controller.kernels.turns import whole_turns

UNMOVED = 1e6  # weight of the base that leaves all motion to the joints
LANDED_M = 1e-5  # on rigid ground a foot rests within rounding of the surface, on either side of it
WEIGHT_ELSEWHERE = 0.1
"""Least ``joint_weight`` if state, ground, masses, motors or delay differ from the model: the base's plan is then less
reliable than the legs'. With .001 the errors on slopes are up to three times as large, and those under a payload five
times."""
NOISY_M, LATE_PERIODS, BORNE, MOTORS = 3e-5, 1.0, 0.06, 0.05
"""Evidence at which the robot certainly differs from the model: standard deviation of the
heights of standing feet, from state to state, at which the base is not known well either; torque delay in periods; load
as a share of the largest one that is fed forward; motors' torque as a share of the usual torques. Half of it is no
evidence."""
FOLLOWS_RAD = 0.1
"""Joint error from which the weight decreases again; at twice the error it is the usual one. Torques of another
controller meanwhile look like a load, and legs that were pulled back to their plan with full weight fell."""
UNKNOWN_GAP_M = 0.01  # at least, of a foot that is in the air by sources other than geometry
SPARED, PRESSED = 1e-4, 0.1
"""Change of a pressing force by `share_torques`, as a share of what the clipped torques would change it by.

Of a hand that approaches, and of one that touches: what the table has to bear of the arm it bears; with less the arm
folded.
"""

BY_GEOMETRY, BY_SCHEDULE, BY_MEASUREMENT = 1, 2, 4
"""Bits of ``sources``, which must agree on a contact."""

_whole_turns = bare_kernel(whole_turns)


@kernel
def take_state(q, v, delay_s, period):
    """Copy a measured state q (nq,), v (nv,) into the period.

    Returns the delay of torques, s: the configured one, delay_s, and the estimated one.
    """
    assign(period.q, q)
    assign(period.v, v)
    assign(period.sensed_v, v)
    period.delay[1] = delay_s + period.delay[2]
    return period.delay[1]


@bare_kernel
def agreed_contacts(
    gaps, gap_m, planned, sources, measured, time_s, ramp_s, since_s, last, contact
):
    """Write contact (n,) bool: contacts on which all sources agree.

    gaps (n,) m, of at most gap_m; planned, measured (n,) bool, the latter (0,) if it is no source.
    With a ramp, since_s (n,) is set to time_s for those that were not in the ``last`` ones (n,) bool.
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
    """Replace gaps where geometry is no source: 0 in contact, else at least UNKNOWN_GAP_M, too far to matter."""
    for i in range(gaps.shape[0]):
        gaps[i] = 0.0 if contact[i] else max(gaps[i], UNKNOWN_GAP_M)


@kernel
def _touch(period, settings):
    """Write ``touching`` (n,) bool: planned contacts that touch; one that has landed stays until it parts."""
    gaps, planned, landed, touching = period.gaps, period.planned, period.landed, period.touching
    landed_m, foot = settings.landed_m, settings.foot
    for i in range(gaps.shape[0]):
        # A foot that rolls or slips over bumps, or is felt with noise, may be a little off them.
        near = gaps[i] <= landed_m[i] or (landed[i] and gaps[i] <= PARTED_M)
        landed[i] = touching[i] = planned[i] and near
    if settings.soles:
        # A foot stands as a whole: its corners in the air follow with its rotation.
        foot_touches = period.foot_touches
        for i in range(gaps.shape[0]):
            foot_touches[foot[i]] = False
        for i in range(gaps.shape[0]):
            foot_touches[foot[i]] |= touching[i]
        for i in range(gaps.shape[0]):
            touching[i] = planned[i] and foot_touches[foot[i]]


@kernel
def _doubt(period):
    """Confidence, 0 to 1, that the robot, its state or its ground differs from the model.

    Each sign counts from half of its threshold on, and fully at it: noise and rise of the ground, delay, load, swinging
    torques of the motors. The last three do not count if the joints are far from their plan: that shows them, too.
    """
    settings, load, motors = period.settings, period.load, period.motors
    highest = largest_rise(period)
    ground = max(
        np.sqrt(period.height_noise[0]) / NOISY_M,
        (max(highest, period.relief[0]) if highest > 0.0 else 0.0) / ELSEWHERE_M,
    )
    most = period.delay[0] / (LATE_PERIODS * settings.period_s)
    # A load counts only as far as it acts now, too: its mean may be left from what has ended.
    for part in range(2):
        slow, fast = 0.0, 0.0
        for i in range(3 * part, 3 * part + 3):
            slow += load[i] * load[i]
            fast += period.external[i] * period.external[i]
        if slow > 0.0:
            most = max(most, np.sqrt(min(slow, fast)) / (BORNE * settings.bounds[part]))
    takes = MOTORS * np.sqrt(period.effort[0] / max(period.effort[1], settings.period_s))
    for j in range(motors.shape[1]):
        most = max(most, swinging_torque(motors, j) / takes if takes > 0.0 else 0.0)
    worst = 0.0
    for j in range(period.error.shape[0]):
        worst = max(worst, abs(period.error[j]))
    follows = min(max(2.0 - worst / FOLLOWS_RAD, 0.0), 1.0)
    return max(
        min(max(2.0 * ground - 1.0, 0.0), 1.0), min(max(2.0 * most - 1.0, 0.0), 1.0) * follows
    )


@kernel
def _weigh_joints(period):
    """Raise the weight of the joints if the robot or its ground differs from the model.

    Not under soles, with which the base's plan is raised; nor for a leg whose foot has met the ground in its swing:
    what is left of the swing would push the base.
    """
    settings, weights = period.settings, period.weights
    least = settings.joint_weight
    fill(weights[6:], least + _doubt(period) * max(WEIGHT_ELSEWHERE - least, 0.0))
    for i in range(period.caught.shape[0]):
        if period.caught[i]:
            for k in settings.actuated:
                if settings.supports[settings.links[i], k]:
                    weights[k] = least


@kernel
def _take_estimate(period):
    """Add estimated contacts and remove missed ones; under soles geometry decides about their corners."""
    contact, touching, round_feet = period.contact, period.touching, not period.settings.soles
    for i in range(contact.shape[0]):
        if period.missed[i]:
            contact[i] = touching[i] = False
        elif period.caught[i] or (period.stands[i] and period.rise[i] != 0.0 and round_feet):
            contact[i] = touching[i] = True


@kernel
def _find_early(period, settings):
    """Find swing feet that meet the ground within this period or have met it.

    The ground is higher, or the foot lower, than planned: it pushes back, and the
    foot must not be driven further into it. Feet that have not yet left the ground are excluded.
    """
    gaps, points, normals = period.gaps, period.points, period.normals
    planned, lifted, early = period.planned, period.lifted, period.early
    J, v, links, supports = period.jacobian, period.v, settings.links, settings.supports
    gap_m, period_s = settings.contact_gap_m, settings.period_s
    for i in range(gaps.shape[0]):
        near = gaps[i] <= gap_m
        lifted[i] = not planned[i] and (lifted[i] or not near)
        early[i] = early[i] and not planned[i] and gaps[i] <= LANDED_M
        if not (lifted[i] and near) or early[i]:
            continue
        closing = 0.0
        for k in range(v.shape[0]):
            if supports[links[i], k]:
                x, y, z = point_column(J, k, points[i])
                closing -= v[k] * (normals[i, 0] * x + normals[i, 1] * y + normals[i, 2] * z)
        early[i] = closing * period_s > max(gaps[i], LANDED_M)


@kernel
def _find_contacts(time_s, lands, period, settings):
    """Update contacts, and those that touch, approach or are early; returns whether any is early.

    Contacts are those on which the sources agree (plan, geometry, measurement), corrected by estimated ones.
    time_s: of the state; lands: whether planned contacts may be approaching the ground; settings: of the period.
    """
    gaps, planned, contact = period.gaps, period.planned, period.contact
    if settings.estimates:
        estimate_contacts(time_s, lands, period)
    agreed_contacts(
        gaps,
        settings.contact_gap_m,
        planned,
        settings.sources,
        period.measured,
        time_s,
        settings.ramp_s,
        period.since_s,
        period.last,
        contact,
    )
    if not settings.sources & BY_GEOMETRY:
        _hide_gaps(contact, gaps)
    if settings.sensed:
        fill(contact, True)
    _touch(period, settings)
    if settings.estimates:
        _take_estimate(period)
    touching, landing, early = period.touching, period.landing, period.early
    if settings.deadbeat:
        _find_early(period, settings)
    any_early = False
    for i in range(contact.shape[0]):
        if settings.deadbeat:
            contact[i] |= early[i]
            touching[i] |= early[i]
        landing[i] = lands and planned[i] and not touching[i]
        any_early |= early[i]
    return any_early


@bare_kernel
def _closing_speeds(gaps, early, landing, time_constant_s, speed_m_s, period_s, closing):
    """Write into closing (n,), m/s, the speed at which each planned contact is to approach the ground.

    gaps (n,), m, negative ones count as 0; early (n,) bool: touches earlier than planned, closes its gap within this
    period, at any speed. Others: gap / time_constant_s, at most speed_m_s; those that land, (n,) bool: speed_m_s.
    """
    for i in range(gaps.shape[0]):
        gap = max(gaps[i], 0.0)
        closing[i] = speed_m_s if landing[i] else min(gap / time_constant_s, speed_m_s)
        if early[i]:
            closing[i] = gap / period_s


@kernel
def _press(period):
    """Set gaps of touching contacts to at most 0: a sole's corner that has left the ground is pressed back on it.

    By its distance it would get no force, and the sole would roll on about its edge. Only where joint
    velocities are filtered: otherwise torques follow each jump of a sole that comes down.
    """
    gaps = period.gaps
    for i in range(gaps.shape[0]):
        if period.touching[i]:
            gaps[i] = min(gaps[i], 0.0)


@kernel
def _joint_feedback(period, settings):
    """Write positions, velocities and errors (na,) of the joints, and their feedback into ``desired``:

        k_p e + k_d (qd_plan - qd) + k_i integral(e) + qdd_plan,    e = q_plan - q

    rad/s^2; without qdd_plan and in N m where the solver takes torques alone. reference (3, na): the plan's position,
    velocity and acceleration. A joint that turns without end (cosine and sine in q) is at the angle nearest to the
    plan.
    """
    q, v, reference = period.q, period.v, period.reference
    positions, velocities, errors = period.position, period.velocity, period.error
    q_index, actuated, turns = settings.q_index, settings.actuated, settings.turns
    kp, kd, ki = settings.position_gain, settings.velocity_gain, settings.integral_gain
    integral, out = period.integral, period.desired
    for j in range(q_index.shape[0]):
        position, velocity = q[q_index[j]], v[actuated[j]]
        if turns[j]:
            angle = np.arctan2(q[q_index[j] + 1], position)
            position = angle - _whole_turns(angle - reference[0, j])
        error = reference[0, j] - position
        positions[j], velocities[j], errors[j] = position, velocity, error
        out[j] = kp[j] * error + kd[j] * (reference[1, j] - velocity) + ki[j] * integral[j]
        if not settings.torques_only:
            out[j] += reference[2, j]


@kernel
def _take_base(has_goal, period, settings):
    """Write the base's feedback into wanted[:6], and its weights; soles in swing take its error into ``desired``.

    On soles its goal rises with the ground. Without a goal (has_goal) the base is hardly weighed: it follows from the
    joints.
    """
    wanted, weights = period.wanted, period.weights
    if has_goal and settings.estimates and settings.soles:
        period.base_goal[2] += mean_rise(period.touchdowns)
    if has_goal:
        R, error = np.empty((3, 3)), np.empty((4, 3))
        base_error(period.q, period.v, period.base_goal, R, error)
        base_feedback(R, period.v, error, settings.base_gains, period.base_goal, wanted)
        fill(weights[:6], BASE_WEIGHT)
        if settings.soles and not settings.balanced:
            lead_swings(period, error)
    elif settings.has_base:
        fill(wanted[:6], 0.0)
        fill(weights[:6], UNPLANNED)


@kernel
def before_solving(time_s, has_goal, lands, period):
    """Compute contacts and desired acceleration from state and plan; returns whether the acceleration is complete.

    Otherwise `balance` makes it.

    Args:
        time_s: of the state.
        has_goal: the base has one; without it a floating base follows from the legs.
        lands: planned contacts may be approaching the ground.
        period: ``Period``.
    """
    settings = period.settings
    take_motors(period)
    any_early = _find_contacts(time_s, lands, period, settings)
    if settings.has_base and not settings.soles:
        _weigh_joints(period)
    if settings.estimates and settings.soles and settings.velocity_filter_s > 0.0:
        _press(period)
    _closing_speeds(
        period.gaps,
        period.early,
        period.landing,
        settings.contact_time_constant_s,
        settings.touchdown_speed_m_s,
        settings.period_s,
        period.closing,
    )
    _joint_feedback(period, settings)
    if settings.torques_only:
        return True
    desired, actuated = period.desired, settings.actuated
    wanted, acceleration = period.wanted, period.acceleration
    _take_base(has_goal, period, settings)
    bound_joints(
        period.position,
        period.velocity,
        period.inertia,
        actuated,
        0.0 if settings.soles else BRAKES,  # over soles such accelerations tip the base
        settings.limits,
        desired,
        period.bounded,
    )
    for j in range(actuated.shape[0]):
        wanted[actuated[j]] = desired[j]
    if settings.balanced and has_goal and not any_early:
        return False
    if any_early:
        fill(period.weights[:6], UNMOVED)  # a foot that must stop at once is stopped by its leg
    consistent_acceleration(period)
    for j in range(actuated.shape[0]):
        desired[j] = acceleration[actuated[j]]
    return True


@bare_kernel
def _foot_forces(impulses, period_s, contact, touching, push, rubbed, normals, frame, forces):
    """Write forces (n, 3) N, world frame: the model's, impulses / period, and pressing, rubbing ones at what touches.

    impulses (3 m,): N·s in local frames, of the m contacts (n,) bool in the problem; push (n,): N along the normals
    (n, 3); rubbed (n, 3) N; frame (3, 3): workspace.
    """
    row = 0
    for i in range(contact.shape[0]):
        pressed = push[i] if touching[i] else 0.0
        for d in range(3):
            forces[i, d] = pressed * normals[i, d] + rubbed[i, d]
        if contact[i]:
            tangents(normals[i], frame)
            for k in range(3):
                amount = impulses[row + k] / period_s
                for d in range(3):
                    forces[i, d] += frame[k, d] * amount
            row += 3


@kernel
def _keep_pressing(G, period):
    """Change G (na, na), that of `share_torques`, so that torques at their limits change no pressing force, if they can.

    By M W^-1 M, W the joints' weights, all joints share what is missing; of torques x, y^T G^-1 y for their change y
    gets (p^T y)^2 / (s p^T G p), p the contact's ``parting``, s = SPARED or, if it touches, PRESSED. False if a contact
    touches that is not pressed by force.
    """
    na, actuated, weighed = G.shape[0], period.settings.actuated, False
    moved, inertia = np.empty(na), G.copy()
    for i in range(period.parting.shape[0]):
        row = period.parting[i]
        if not row.any():
            if period.contact[i] or period.touching[i]:
                return False
            continue
        if not weighed:
            weighed = True
            for a in range(na):
                for b in range(na):
                    G[a, b] = 0.0
                    for k in range(na):
                        G[a, b] += inertia[a, k] * inertia[k, b] / period.weights[actuated[k]]
        size = 0.0
        for a in range(na):
            moved[a] = 0.0
            for b in range(na):
                moved[a] += G[a, b] * row[actuated[b]]
            size += row[actuated[a]] * moved[a]
        size *= 1.0 + (PRESSED if period.touching[i] else SPARED)
        for a in range(na):
            for b in range(na):
                G[a, b] -= moved[a] * moved[b] / size
    return True


@kernel
def share_torques(torques, period):
    """Torques (na,) within effort and rate limits with which joints that have torque left accelerate as before.

    Of a fixed robot: tau + M z, where only joints at a limit change their acceleration, by z, and only as their limit
    requires. Clipped alone, they would pull all others along. Where a hand is pressed by force or approaches, all may
    change theirs so that it does not: see `_keep_pressing`. period: its ``bounded`` gets the bits of these limits.
    """
    limits, inertia, last = period.settings.limits, period.inertia, period.decided
    na, beyond = torques.shape[0], False
    low, high = np.empty(na), np.empty(na)
    for j in range(na):
        effort, step = limits.effort[j], limits.rate_step[j]
        # After its limit was lowered torque is within it at once.
        low[j] = min(max(-effort, last[j] - step), effort)
        high[j] = max(min(effort, last[j] + step), -effort)
        beyond = beyond or torques[j] > high[j] or torques[j] < low[j]
    if not beyond or inertia.shape[0] != na:
        return torques
    z, actuated = np.zeros(na), period.settings.actuated
    G, shared = np.empty((na, na)), torques.copy()
    for i in range(na):
        for j in range(na):
            G[i, j] = inertia[actuated[i], actuated[j]]
    if not (_keep_pressing(G, period) and least_change(G.copy(), torques, low, high, z)):
        return torques
    for i in range(na):
        for j in range(na):
            shared[i] += G[i, j] * z[j]
        if z[i] != 0.0:
            by_rate = high[i] < limits.effort[i] if z[i] < 0.0 else low[i] > -limits.effort[i]
            period.bounded[i] |= RATE if by_rate else EFFORT
    return shared


@kernel
def after_solving(time_s, torques, impulses, velocity, solved, seen_s, period):
    """Limit the solution's torques (na,) and store its forces, from impulses (3 m,), N·s; returns the heat, W.

    time_s: of the state. velocity (nv,): predicted by the solution, (0,) if unknown.
    solved: by a model; only then are the contacts' forces known. seen_s: see ``disturbance.observe``; NaN: nothing is
    observed. The integral of the position error is frozen (anti-windup) where a limit acts, its gain is 0, or the
    commanded torque differs from the decided one.
    """
    settings = period.settings
    if not np.isnan(seen_s):
        observe(seen_s, period)
        learn(period)
    limits, limited, acting = settings.limits, period.limited, period.acting
    decided, commanded, integral = period.decided, period.commanded, period.integral
    gain, error, loss, bounded = settings.integral_gain, period.error, limits.loss, period.bounded
    elsewhere = np.empty(torques.shape[0], np.bool_)
    for j in range(torques.shape[0]):
        elsewhere[j] = commanded[j] != decided[j]
    if solved and not settings.has_base:
        torques = share_torques(torques, period)
    limit_joints(
        period.position, period.velocity, torques, decided, limits, bounded, limited, acting
    )
    heat = 0.0
    for j in range(torques.shape[0]):
        if acting[j] == 0 and not elsewhere[j] and gain[j] != 0.0:
            integral[j] += error[j] * settings.period_s
        decided[j] = commanded[j] = limited[j]
        heat += loss[j] * limited[j] * limited[j]
        bounded[j] = 0
    if solved:
        _foot_forces(
            impulses,
            settings.period_s,
            period.contact,
            period.touching,
            period.pressed,
            period.rubbed,
            period.normals,
            period.frame,
            period.forces,
        )
    if velocity.shape[0]:
        foresee(period, velocity)
    else:
        fill(period.foreseen, np.inf)
    if settings.velocity_filter_s > 0.0:
        foresee_velocities(time_s, velocity, period)
    return heat
