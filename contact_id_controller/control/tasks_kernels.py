"""Compiled part of `tasks`: from goals at one time to the tasks' accelerations."""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.feedback import BASE_WEIGHT, base_error, base_feedback
from contact_id_controller.control.limits import bound_joints
from contact_id_controller.kernels.compile import bare_kernel, kernel

LIFT = 0.3  # share of gravity with which the height is corrected at most: feet that bear little slip and rock


@kernel
def catch_touches(foot, may_land, sources, period, caught):
    """Set feet that may land and touch to planned contact, until their plan does so by itself.

    Args:
        foot (n,): of each contact.  may_land (f,) bool: feet that may land.
        sources: bits of (measurement, estimate) that detect contact; none: the distance to the ground does.
        period: its ``planned`` (n,) gets the contacts of these feet.
        caught (n,) bool: contacts of feet that have landed earlier than planned, in and out.
    """
    by_measurement, by_estimate = sources
    felt = np.zeros(may_land.shape[0], dtype=np.bool_)
    for i in range(foot.shape[0]):
        touches = period.gaps[i] <= period.settings.landed_m[i]
        if by_measurement:
            touches = period.measured[i]
        elif by_estimate:
            touches = period.stands[i]
        felt[foot[i]] |= touches
    for i in range(foot.shape[0]):
        if period.planned[i]:
            caught[i] = False
        elif may_land[foot[i]] and felt[foot[i]]:
            caught[i] = True
        period.planned[i] |= caught[i]


@bare_kernel
def nearest_in_hull(points, count, x, y):
    """Nearest point to (x, y) of the convex hull of the first ``count`` of the points (m, 2), at least one.

    An edge has all points on its left, and (x, y) outside on its right; few points, so all pairs are tried.
    """
    best, found = np.inf, (points[0, 0], points[0, 1])
    apart = False
    for i in range(count):
        for j in range(count):
            along, across = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
            square = along * along + across * across
            if square < 1e-16:
                continue
            apart = edge = True
            for k in range(count):
                left = along * (points[k, 1] - points[i, 1]) - across * (
                    points[k, 0] - points[i, 0]
                )
                edge = edge and left >= -1e-9 * square
            side = along * (y - points[i, 1]) - across * (x - points[i, 0])
            if not edge or side > 0.0:
                continue
            u = (along * (x - points[i, 0]) + across * (y - points[i, 1])) / square
            u = min(max(u, 0.0), 1.0)
            near = points[i, 0] + u * along, points[i, 1] + u * across
            away = (near[0] - x) ** 2 + (near[1] - y) ** 2
            if away < best:
                best, found = away, near
    if apart and best == np.inf:
        return x, y
    return found


@kernel
def com_acceleration(goal, com, gains, gravity, corners, lasts, out):
    """Write the acceleration (3,) of the centre of mass by the goals into out; returns its centre of pressure (2,).

    Args:
        goal: of ``plans.goals.Sample.com`` (6,), rate, 1/s, and its height (3,).
        com (2, 3): measured position and velocity.  gains: of the divergent component, 1/s, and (2,) of the height.
        corners: (m, 3) of all contacts, standing (m,) bool, their feet (m,) and the share of a sole that may be loaded.
        lasts: the goals have not expired; else the middle of the feet is the goal.

    The height counts from the lowest corner of each sole in stance, for it may tip about an edge.
    """
    sampled, rate, height = goal
    points, standing, foot, share = corners
    middle, many = np.zeros((foot.max() + 1, 3)), np.zeros(foot.max() + 1)
    low = np.full(foot.max() + 1, np.inf)
    for i in range(foot.shape[0]):
        if standing[i]:
            many[foot[i]] += 1.0
            for d in range(3):
                middle[foot[i], d] += points[i, d]
            low[foot[i]] = min(low[foot[i]], points[i, 2])
    feet, centre = 0.0, np.zeros(3)
    for k in range(many.shape[0]):
        if many[k] > 0.0:
            feet += 1.0
            for d in range(3):
                middle[k, d] /= many[k]
                centre[d] += middle[k, d] if d < 2 else low[k]
    hull, count = np.empty((foot.shape[0], 2)), 0
    for i in range(foot.shape[0]):
        if standing[i]:
            for d in range(2):
                place = middle[foot[i], d]
                hull[count, d] = place + share * (points[i, d] - place)
            count += 1
    if count == 0:
        out[:] = gravity
        return com[0, 0], com[0, 1]
    centre /= feet
    pull = -gravity[2]
    lift = gains[1] * (centre[2] + height[0] - com[0, 2]) - gains[2] * com[1, 2]
    lift += height[2] + gains[2] * height[1]
    lift = min(max(lift, -LIFT * pull), LIFT * pull)
    pressure = np.empty(2)
    for d in range(2):
        xi = com[0, d] + com[1, d] / rate
        aim, push = (sampled[d], sampled[4 + d]) if lasts else (centre[d], centre[d])
        pressure[d] = push + (1.0 + gains[0] / rate) * (xi - aim)
    x, y = nearest_in_hull(hull, count, pressure[0], pressure[1])
    rate2 = (pull + lift) / max(com[0, 2] - centre[2], 0.05)
    out[0], out[1], out[2] = rate2 * (com[0, 0] - x), rate2 * (com[0, 1] - y), lift
    return x, y


@kernel
def aim_feet(feet, aloft, centers, radii, poses, motions):
    """Write planned poses (f, 4, 3) and motions (2, f, 6) of the frames of swing feet, from their ground points.

    feet (f, 3, 6): as sampled.  centers (f, 3): middle of each foot's contacts in its frame.  radii (f,): theirs.
    A planned foot has the planned slopes; without them it is level, with its frame's z axis up.
    """
    for k in range(aloft.shape[0]):
        if not aloft[k]:
            continue
        if feet[k, :, 4:].any():
            _aim_sloping(feet[k], centers[k], radii[k], poses[k], motions[:, k])
            continue
        yaw, rate, change = feet[k, 0, 3], feet[k, 1, 3], feet[k, 2, 3]
        c, s = np.cos(yaw), np.sin(yaw)
        arm = (
            c * centers[k, 0] - s * centers[k, 1],
            s * centers[k, 0] + c * centers[k, 1],
            centers[k, 2],
        )
        pose = poses[k]
        pose[1:] = 0.0
        pose[1, 0], pose[1, 1], pose[2, 0], pose[2, 1], pose[3, 2] = c, -s, s, c, 1.0
        for d in range(3):
            pose[0, d] = feet[k, 0, d] - arm[d]
            motions[0, k, d], motions[1, k, d] = feet[k, 1, d], feet[k, 2, d]
            motions[0, k, 3 + d] = motions[1, k, 3 + d] = 0.0
        pose[0, 2] += radii[k]
        motions[0, k, 5], motions[1, k, 5] = rate, change
        # The frame turns about the ground point.
        motions[0, k, 0] += rate * arm[1]
        motions[0, k, 1] -= rate * arm[0]
        motions[1, k, 0] += change * arm[1] + rate * rate * arm[0]
        motions[1, k, 1] += rate * rate * arm[1] - change * arm[0]


@kernel
def _aim_sloping(foot, center, radius, pose, motions):
    """Write pose (4, 3) and motions (2, 6) of the frame of a foot (3, 6) on a slope; angular ones to first order in it.

    With n the normal of z = slopes (x, y): z axis n, x axis along the yaw on the plane; the ground point is at the foot's
    middle less the radius along n.
    """
    c, s = np.cos(foot[0, 3]), np.sin(foot[0, 3])
    rise = c * foot[0, 4] + s * foot[0, 5]
    along = np.sqrt(1.0 + rise * rise)
    steep = np.sqrt(1.0 + foot[0, 4] ** 2 + foot[0, 5] ** 2)
    x = np.array([c, s, rise]) / along
    z = np.array([-foot[0, 4], -foot[0, 5], 1.0]) / steep
    y = np.cross(z, x)
    pose[1:, 0], pose[1:, 1], pose[1:, 2] = x, y, z
    arm = center[0] * x + center[1] * y + (center[2] - radius) * z
    pose[0] = foot[0, :3] - arm
    for r in range(2):
        motions[r, :3] = foot[1 + r, :3]
        motions[r, 3], motions[r, 4] = foot[1 + r, 5], -foot[1 + r, 4]
        motions[r, 5] = foot[1 + r, 3]
        motions[r, :3] -= np.cross(motions[r, 3:], arm)
    motions[1, :3] -= np.cross(motions[0, 3:], np.cross(motions[0, 3:], arm))


@kernel
def wanted_motion(heading, posture, stiffness, period, wanted):
    """Write the desired acceleration (nv,) of the base's attitude and the joints into ``wanted``; 0 for its position.

    heading (2,): yaw, its rate.  posture (na,), stiffness (na,) 1/s^2, critically damped.
    """
    goal, error, R = np.zeros(19), np.empty((4, 3)), np.empty((3, 3))
    goal[5], goal[6], goal[12] = np.sin(0.5 * heading[0]), np.cos(0.5 * heading[0]), heading[1]
    settings = period.settings
    base_error(period.q, period.v, goal, R, error)
    base_feedback(R, period.v, error, settings.base_gains, goal, wanted)
    for d in range(3):
        wanted[d] = 0.0
    for j in range(posture.shape[0]):
        away = period.error[j]  # of the reference, which is the posture
        damping = 2.0 * np.sqrt(stiffness[j])
        wanted[settings.actuated[j]] = stiffness[j] * away - damping * period.velocity[j]
    for d in range(6):
        period.weights[d] = BASE_WEIGHT


@kernel
def bound_free_joints(free, share, period, bounds):
    """Write the bounds of ``balanced_acceleration`` for joints (f,) that no foot hangs on, of the actuated ones.

    Torques M_k a + h_k + friction, over M_kk, rad/s^2: within ``share`` of the largest one, or what holds the joint's
    weight if that is more. Accelerations: those of `limits.bound_joints`, so that joints stop before their ends;
    without brakes, by which arms throw the torso of a robot that is pushed.

    bounds: rows (2 f, nv), least and largest (2 f,), compliance.
    """
    rows, low, high, _ = bounds
    settings, count = period.settings, free.shape[0]
    limits, inertia, bias = settings.limits, period.inertia, period.bias
    na = settings.actuated.shape[0]
    (dry, viscous, width), (_, more_dry, more_viscous) = settings.friction, period.motors
    least, most, acting = np.full(na, -np.inf), np.full(na, np.inf), period.acting.copy()
    for bound in (least, most):
        bound_joints(
            period.position, period.velocity, inertia, settings.actuated, 0.0, limits, bound, acting
        )
    for i in range(count):
        j = free[i]
        k = settings.actuated[j]
        own, effort, rest = inertia[k, k], limits.effort[j], bias[k]
        torque = max(share * effort, min(abs(rest), effort))
        if period.rubs[0]:
            speed = period.sought[j] if np.isfinite(period.sought[j]) else period.velocity[j]
            rest += (viscous[j] + more_viscous[j]) * speed
            rest += (dry[j] + more_dry[j]) * np.tanh(speed / width[j])
        for d in range(rows.shape[1]):
            rows[i, d] = inertia[k, d] / own
            rows[count + i, d] = 0.0
        rows[count + i, k] = 1.0
        low[i], high[i] = (-torque - rest) / own, (torque - rest) / own
        low[count + i], high[count + i] = least[j], most[j]
