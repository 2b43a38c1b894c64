"""Compiled part of `balance`: tasks as rows, the cone of wrenches, the acceleration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.control.feedback import (
    SOFTNESS,
    Fading,
    Feet,
    Tree,
    foot_rows,
    project,
)
from contact_id_controller.control.least_change import least_change
from contact_id_controller.kernels.arrays import assign
from contact_id_controller.kernels.compile import bare_kernel, kernel
from contact_id_controller.kernels.dense import (
    add_rows,
    backward_substitute,
    cholesky,
    forward_substitute_rows,
)
from contact_id_controller.kernels.nearest_point import SOLVED, nearest_point
from contact_id_controller.kernels.spatial import (
    link_motion,
    point_acceleration,
    point_column,
    point_velocity,
    tangents,
)

TASK_COMPLIANCE = 0.1  # of the centre of mass and of feet in swing, against a joint's 1e3
WRENCH_COMPLIANCE = 1e-2  # of a wrench at the edge of the cone, which the ground imposes
EDGES = 4  # of the pyramid inside the cone of friction
OUTSIDE = 1e-6  # share of the wrench that is rounding


class Swing(NamedTuple):
    """Frames that follow a motion in the world: swing feet, hands; f in all.

    placed, turned (f,) bool: whether the origin, and the rotation, is led; links (f,); poses (2, f, 4, 3), planned and
    measured, each the origin and the rotation; motions (2, f, 6): planned velocity and acceleration, linear before
    angular; gains (f, 4): acceleration per error, 1/s^2, and per its rate, 1/s, the largest error, m and rad, that
    counts, and the compliance.
    """

    placed: np.ndarray
    turned: np.ndarray
    links: np.ndarray
    poses: np.ndarray
    motions: np.ndarray
    gains: np.ndarray


class Momentum(NamedTuple):
    """Centroidal map (6, nv) and its drift (6,); com (3,), its desired acceleration (3,); mass, g (3,)."""

    map: np.ndarray
    drift: np.ndarray
    com: np.ndarray
    wanted: np.ndarray
    mass: float
    gravity: np.ndarray


@kernel
def balanced_acceleration(
    tree, feet, fading, swing, momentum, bearing, shares, weights, bounds, wanted, acceleration
):
    """Write the closest acceleration (nv,) to ``wanted`` under the tasks, see `balance`.

    Least squares in ``weights`` with feet in stance at rest, led frames and centre of mass by their feedback. If no
    forces within friction on the soles give the required wrench, once more with the nearest one that they give.
    Returns whether that was so.

    Args:
        tree, feet, fading, swing, momentum: named tuples of those names.
        bearing: foot index of each contact (n,), friction (n,), support points (n, 3) m, see ``Bearing``.
        shares: share of each sole that may be loaded; weight of angular momentum; metric (2, 2) of horizontal
            accelerations.
        weights: (nv,) of ``wanted``.
        bounds: of rows of the acceleration, see ``_within_bounds``.
    """
    tree, feet, fading = Tree(*tree), Feet(*feet), Fading(*fading)
    swing, momentum = Swing(*swing), Momentum(*momentum)
    nv, rows = weights.shape[0], 3
    for i in range(feet.points.shape[0]):
        if feet.standing[i] or feet.landing[i]:
            rows += 3
    first = rows - 3
    for k in range(swing.placed.shape[0]):
        rows += 3 * (int(swing.placed[k]) + int(swing.turned[k]))
    A, rest = np.zeros((rows + 3, nv)), np.empty(rows + 3)
    compliance = np.zeros(rows + 3)
    compliance[first:] = TASK_COMPLIANCE
    if first > 0:
        foot_rows(tree, feet, fading, wanted, A, rest)
    _swing_rows(tree, swing, wanted, first, A, rest, compliance)
    com_rows, spin_rows = slice(rows - 3, rows), slice(rows, rows + 3)
    _com_rows(momentum, wanted, A[com_rows], rest[com_rows])
    saved = rest.copy()
    assign(acceleration, wanted)
    project(A[:rows], rest[:rows], compliance[:rows], weights, acceleration)
    _within_bounds((A[:rows], compliance[:rows]), weights, bounds, acceleration)
    wrench = np.empty(6)
    height = _nearest_wrench(feet, momentum, bearing, shares, acceleration, wrench)
    if height == 0.0:
        return False
    # The ground cannot give the wrench required: the nearest one that it can, and the rest as near as that allows.
    assign(rest, saved)
    for d in range(3):
        r, s = rows - 3 + d, rows + d
        rest[r] = wrench[d] + momentum.gravity[d] - momentum.drift[d] / momentum.mass
        rest[s] = wrench[3 + d] - momentum.drift[3 + d] / (momentum.mass * height)
        for k in range(nv):
            A[s, k] = momentum.map[3 + d, k] / (momentum.mass * height)
            rest[r] -= A[r, k] * wanted[k]
            rest[s] -= A[s, k] * wanted[k]
    compliance[com_rows] = WRENCH_COMPLIANCE
    compliance[spin_rows] = WRENCH_COMPLIANCE
    assign(acceleration, wanted)
    project(A, rest, compliance, weights, acceleration)
    _within_bounds((A, compliance), weights, bounds, acceleration)
    return True


@bare_kernel
def _add_products(first, second, sign, out):
    """out (m, n) += sign first second^T; first (m, k), second (n, k)."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total, one, other = 0.0, first[i], second[j]
            for k in range(first.shape[1]):
                total += one[k] * other[k]
            out[i, j] += sign * total


@kernel
def _within_bounds(tasks, weights, bounds, acceleration):
    """Change ``acceleration`` (nv,), projected onto the tasks, to the least squares within bounds on rows of it.

    Of the tasks' equations S of `project` their rows are eliminated: what is left is the change of each bounded row per
    multiplier, for ``least_change``. Where no bound is exceeded nothing is done, and so if there is no answer.

    Args:
        tasks: rows A (rows, nv), compliance (rows,).  weights (nv,): as there.
        bounds: rows (m, nv), least and largest value (m,), compliance (m,) beyond them.
    """
    A, soft = tasks
    own, low, high, give = bounds
    rows, m = A.shape[0], low.shape[0]
    value, beyond = np.empty(m), False
    for i in range(m):
        value[i] = 0.0
        for k in range(acceleration.shape[0]):
            value[i] += own[i, k] * acceleration[k]
        beyond = beyond or value[i] > high[i] or value[i] < low[i]
    if not beyond:
        return
    scaled, wide = A / weights, own / weights
    S, G, X = np.zeros((rows, rows)), np.zeros((m, m)), np.zeros((m, rows))
    _add_products(scaled, A, 1.0, S)
    _add_products(wide, own, 1.0, G)
    _add_products(wide, A, 1.0, X)
    trace = 0.0
    for a in range(rows):
        trace += S[a, a]
    for a in range(rows):
        S[a, a] += SOFTNESS * trace + soft[a]
    if not cholesky(S, rows, 0.0):
        return
    forward_substitute_rows(S, rows, X)
    _add_products(X, X, -1.0, G)
    for i in range(m):
        G[i, i] += SOFTNESS * trace + give[i]
    z = np.empty(m)
    if least_change(G, value, low, high, z):
        back = np.zeros(rows)
        add_rows(X, z, 1.0, back)
        backward_substitute(S, rows, back)
        add_rows(wide, z, 1.0, acceleration)
        add_rows(scaled, back, -1.0, acceleration)


@kernel
def planned_motions(planned, tree, swing):
    """Write the motions of a ``Swing`` from planned axes (6, nv) in the world, velocity and acceleration (nv,).

    tree: of the robot, as a ``Tree``.
    """
    tree, swing = Tree(*tree), Swing(*swing)
    joints, nv = tree.supports.shape
    axes, speed, goal = planned
    twist, drift, work = np.empty((joints, 6)), np.empty((joints, 6)), np.empty(3)
    link_motion(axes, speed, tree.supports, tree.coordinate_joint, twist, drift)
    for foot in range(swing.placed.shape[0]):
        if not swing.placed[foot]:
            continue
        link, origin = swing.links[foot], swing.poses[0, foot, 0]
        for r in range(6):
            for k in range(nv):
                if tree.supports[link, k]:
                    drift[link, r] += axes[r, k] * goal[k]
        velocity, acceleration = swing.motions[0, foot], swing.motions[1, foot]
        point_velocity(twist[link], origin, velocity[:3])
        point_acceleration(twist[link], drift[link], origin, acceleration[:3], work)
        for d in range(3, 6):
            velocity[d], acceleration[d] = twist[link, d], drift[link, d]


@kernel
def _com_rows(momentum, wanted, A, rest):
    """Write rows (3, nv) of the centre of mass's acceleration, and the residual of ``wanted`` in them."""
    for d in range(3):
        rest[d] = momentum.wanted[d] - momentum.drift[d] / momentum.mass
        for k in range(wanted.shape[0]):
            A[d, k] = momentum.map[d, k] / momentum.mass
            rest[d] -= A[d, k] * wanted[k]


@kernel
def _swing_rows(tree, swing, wanted, row, A, rest, compliance):
    """Write rows of the led frames into A (rows, nv) and rest (rows,), from ``row`` on: origin and rotation.

    rest: acceleration by feedback and plan less the drift and A wanted; wanted (nv,).  compliance (rows,): theirs.
    """
    joints, nv = tree.supports.shape
    twist, drift = np.empty((joints, 6)), np.empty((joints, 6))
    link_motion(tree.J, tree.v, tree.supports, tree.coordinate_joint, twist, drift)
    velocity, pull, error, work = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for foot in range(swing.placed.shape[0]):
        link, (kp, kd, most, soft) = swing.links[foot], swing.gains[foot]
        motions, planned, measured = (
            swing.motions[:, foot],
            swing.poses[0, foot],
            swing.poses[1, foot],
        )
        for turning in range(2):
            if not (swing.turned[foot] if turning else swing.placed[foot]):
                continue
            if turning:
                _rotation_error(planned[1:], measured[1:], error)
                if most < np.inf:
                    _lengthen(planned[1:], measured[1:], error)
                velocity[:], pull[:] = twist[link, 3:], drift[link, 3:]
            else:
                error[:] = planned[0] - measured[0]
                point_velocity(twist[link], measured[0], velocity)
                point_acceleration(twist[link], drift[link], measured[0], pull, work)
            for k in range(nv):
                if tree.supports[link, k]:
                    x, y, z = point_column(tree.J, k, measured[0])
                    if turning:
                        x, y, z = tree.J[3, k], tree.J[4, k], tree.J[5, k]
                    A[row, k], A[row + 1, k], A[row + 2, k] = x, y, z
            far = np.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
            share = most / far if far > most else 1.0
            for d in range(3):
                e = 3 * turning + d
                total = motions[1, e] - pull[d] + kp * (share * error[d])
                total += kd * (motions[0, e] - velocity[d])
                for k in range(nv):
                    total -= A[row + d, k] * wanted[k]
                rest[row + d], compliance[row + d] = total, soft
            row += 3


@kernel
def _rotation_error(goal, measured, out):
    """Write the rotation error (3,) from measured to goal (3, 3): axis times sine of the angle."""
    for d in range(3):
        out[d] = 0.0
    for column in range(3):
        a, b = measured[:, column], goal[:, column]
        out[0] += 0.5 * (a[1] * b[2] - a[2] * b[1])
        out[1] += 0.5 * (a[2] * b[0] - a[0] * b[2])
        out[2] += 0.5 * (a[0] * b[1] - a[1] * b[0])


@kernel
def _lengthen(goal, measured, error):
    """Change a rotation error from axis times sine to axis times angle: beyond a right angle the sine decreases."""
    sine, trace = np.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2), 0.0
    most, column = -1.0, 0
    for a in range(3):
        part = 0.0
        for b in range(3):
            part += goal[a, b] * measured[a, b]
        trace += part
        if part > most:
            most, column = part, a
    angle = np.arctan2(sine, 0.5 * (trace - 1.0))
    if sine > 1e-6:
        for d in range(3):
            error[d] *= angle / sine
    elif angle > 1.0:  # half a turn, either way: it is 2 axis axis' - 1
        for d in range(3):
            error[d] = 1.0 if d == column else 0.0
            for b in range(3):
                error[d] += goal[d, b] * measured[column, b]
            error[d] *= angle / np.sqrt(2.0 * (most + 1.0))


@kernel
def _find_middles(feet, foot, middle, centre):
    """Accumulate the middles (feet, 3), m, of feet in stance, and their sum (3,), from zeros; returns how many feet.

    foot (n,): of each contact.
    """
    corners = np.zeros(middle.shape[0])
    for i in range(foot.shape[0]):
        if feet.standing[i]:
            corners[foot[i]] += 1.0
            for d in range(3):
                middle[foot[i], d] += feet.points[i, d]
    total = 0.0
    for k in range(middle.shape[0]):
        if corners[k] > 0.0:
            total += 1.0
            for d in range(3):
                middle[k, d] /= corners[k]
                centre[d] += middle[k, d]
    return total


@kernel
def _nearest_wrench(feet, momentum, bearing, shares, acceleration, wrench):
    """Write the wrench / mass nearest to the required one that forces within friction on the soles can give.

        required = (map acceleration + drift) / mass - g

    Forces act at ``share`` of the contacts' distance from the middle of their foot. Moments count in units of
    height / sqrt(spin_weight), horizontal forces by the metric (2, 2).

    bearing: foot (n,), friction (n,) and corners (n, 3), m, of the contacts; shares: share, spin_weight, metric;
    acceleration (nv,); wrench (6,): out.

    Returns the height, m, of the centre of mass above the feet; 0 if the required wrench is feasible, or none stands.
    """
    foot, friction, corners = bearing
    share, spin_weight, metric = shares
    n, middle, centre = foot.shape[0], np.zeros((foot.max() + 1, 3)), np.zeros(3)
    total = _find_middles(feet, foot, middle, centre)
    if total == 0.0:
        return 0.0
    height = np.sqrt(np.sum((momentum.com - centre / total) ** 2))
    scale = np.sqrt(spin_weight)
    needed = np.empty(6)
    for d in range(6):
        needed[d] = momentum.drift[d] / momentum.mass
        for k in range(acceleration.shape[0]):
            needed[d] += momentum.map[d, k] * acceleration[k] / momentum.mass
    for d in range(3):
        needed[d] -= momentum.gravity[d]
        needed[3 + d] *= scale / height
    _turn(metric, needed)
    A = np.zeros((EDGES * n, 6))
    frame, arm, force = np.empty((3, 3)), np.empty(3), np.empty(3)
    for i in range(n):
        if not feet.standing[i]:
            continue
        tangents(feet.normals[i], frame)
        for d in range(3):
            place = middle[foot[i], d] + share * (corners[i, d] - middle[foot[i], d])
            arm[d] = (place - momentum.com[d]) * scale / height
        for e in range(EDGES):
            angle = 2.0 * np.pi * e / EDGES
            along, across = friction[i] * np.cos(angle), friction[i] * np.sin(angle)
            for d in range(3):
                force[d] = frame[0, d] + along * frame[1, d] + across * frame[2, d]
            row = A[EDGES * i + e]
            for d in range(3):
                row[d] = -force[d]
            row[3] = -(arm[1] * force[2] - arm[2] * force[1])
            row[4] = -(arm[2] * force[0] - arm[0] * force[2])
            row[5] = -(arm[0] * force[1] - arm[1] * force[0])
            _turn(metric, row)
    # The part of the wrench in the polar cone is what the ground cannot give.
    missing, none = needed.copy(), np.zeros(0, dtype=np.bool_)
    status, _ = nearest_point(
        A,
        np.zeros(A.shape[0]),
        0,
        none,
        missing,
        np.zeros(A.shape[0]),
        np.zeros(7, dtype=np.int64),
        np.zeros((6, 6)),
        np.zeros((6, 6)),
        np.zeros((3, 7)),
    )
    square, whole = 0.0, 0.0
    for d in range(6):
        square += missing[d] ** 2
        whole += needed[d] ** 2
    if status != SOLVED or square <= OUTSIDE**2 * whole:
        return 0.0
    for d in range(3):
        wrench[d] = needed[d] - missing[d]
        wrench[3 + d] = (needed[3 + d] - missing[3 + d]) / scale
    determinant = metric[0, 0] * metric[1, 1] - metric[0, 1] * metric[1, 0]
    x = (metric[1, 1] * wrench[0] - metric[0, 1] * wrench[1]) / determinant
    wrench[1] = (metric[0, 0] * wrench[1] - metric[1, 0] * wrench[0]) / determinant
    wrench[0] = x
    return height


@kernel
def _turn(metric, vector):
    """Multiply the first two entries of ``vector`` by ``metric``."""
    x = metric[0, 0] * vector[0] + metric[0, 1] * vector[1]
    vector[1] = metric[1, 0] * vector[0] + metric[1, 1] * vector[1]
    vector[0] = x
