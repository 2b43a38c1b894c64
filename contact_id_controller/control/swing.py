"""Soles in swing follow their plan in the world: what the base is off by, they are not.

Joints that followed theirs alone would carry the base's error e_b to the sole: it would meet the ground early, late, or
on an edge. Its leg therefore takes in addition the error c of its joints with which the sole is where it is planned,

    J_leg c = J_b e_b,

and likewise of velocities. While the sole stands its joints err by as much, so that nothing jumps where it lifts.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.disturbance import LEVERLESS
from contact_id_controller.kernels.arrays import fill
from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.dense import backward_substitute, cholesky, forward_substitute
from contact_id_controller.kernels.spatial import middle_of, point_column


@kernel
def _is_own(settings, foot, k):
    """Whether coordinate k moves this foot, and no other one."""
    for other in range(settings.begins.shape[0] - 1):
        if settings.supports[settings.links[settings.begins[other]], k] != (other == foot):
            return False
    return True


@kernel
def _leg_columns(period, foot, middle, columns, gram):
    """Write J_leg^T (na, 6) of a sole at its middle (3,), and the lower triangle of J_leg J_leg^T (6, 6), damped."""
    settings, J = period.settings, period.jacobian
    for a in range(6):
        fill(gram[a], 0.0)
    for j in range(settings.actuated.shape[0]):
        k, column = settings.actuated[j], columns[j]
        fill(column, 0.0)
        if not _is_own(settings, foot, k):
            continue
        column[0], column[1], column[2] = point_column(J, k, middle)
        for d in range(3):
            column[3 + d] = J[3 + d, k]
        for a in range(6):
            for b in range(a + 1):
                gram[a, b] += column[a] * column[b]
    trace = 0.0
    for a in range(6):
        trace += gram[a, a]
    for a in range(6):
        gram[a, a] += LEVERLESS * trace


@kernel
def lead_swings(period, error):
    """Add to ``desired`` (na,) of a ``Period``, rad/s^2, the feedback of c and of its rate, for soles in swing.

    error: (4, 3), the base's, world frame: position, velocity, rotation vector, angular velocity.
    """
    settings, q = period.settings, period.q
    begins, kp, kd = settings.begins, settings.position_gain, settings.velocity_gain
    gram, columns = np.empty((6, 6)), np.empty((kp.shape[0], 6))
    off, middle = np.empty((2, 6)), np.empty(3)
    for foot in range(begins.shape[0] - 1):
        first, last = begins[foot], begins[foot + 1]
        if period.planned[first] or period.caught[first] or last - first == 1:
            continue
        middle_of(period.points, first, last, middle)
        _leg_columns(period, foot, middle, columns, gram)
        if not cholesky(gram, 6, 0.0):
            continue
        x, y, z = middle[0] - q[0], middle[1] - q[1], middle[2] - q[2]
        for part in range(2):
            turn, out = error[2 + part], off[part]
            out[0] = error[part, 0] + turn[1] * z - turn[2] * y
            out[1] = error[part, 1] + turn[2] * x - turn[0] * z
            out[2] = error[part, 2] + turn[0] * y - turn[1] * x
            for d in range(3):
                out[3 + d] = turn[d]
            forward_substitute(gram, 6, out)
            backward_substitute(gram, 6, out)
        for j in range(kp.shape[0]):
            for a in range(6):
                period.desired[j] += columns[j, a] * (kp[j] * off[0, a] + kd[j] * off[1, a])
