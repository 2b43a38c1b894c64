"""Speeds of contact points at the end of a recorded frame."""

from __future__ import annotations

import numpy as np

from contact_id_controller.kernels.compile import kernel
from contact_id_controller.kernels.spatial import (
    FIT,
    link_motion,
    make_rigid,
    point_acceleration,
    point_velocity,
)


@kernel
def contact_speeds(
    J, v, following, supports, coordinate_joint, links, points, touching, drift_s, speeds
):
    """Write speeds (n, 3), m/s, world frame: J following + drift_s Jdot v of each point, J at the frame's beginning.

    It is the contact velocity of a problem whose motion ends with ``following`` (nv,).

    Args:
        J (6, nv), supports, coordinate_joint: as in ``RobotModel``, at the frame's beginning.
        v (nv,) there.  links (n,), points (n, 3): of the contacts.  touching (n,) bool: those of the problem.
        drift_s: the period, s; 0 without the velocity product term.
    """
    joints = supports.shape[0]
    twist, drift, ending, unused = (
        np.empty((joints, 6)),
        np.empty((joints, 6)),
        np.empty((joints, 6)),
        np.empty((joints, 6)),
    )
    drifts, work, gaps = np.empty((links.shape[0], 3)), np.empty(3), np.empty(links.shape[0])
    link_motion(J, v, supports, coordinate_joint, twist, drift)
    link_motion(J, following, supports, coordinate_joint, ending, unused)
    for i in range(links.shape[0]):
        gaps[i] = 0.0 if touching[i] else np.inf
        point_acceleration(twist[links[i]], drift[links[i]], points[i], drifts[i], work)
    make_rigid(links, points, gaps, 0.0, drifts, np.empty((joints, FIT)))
    for i in range(links.shape[0]):
        point_velocity(ending[links[i]], points[i], speeds[i])
        for d in range(3):
            speeds[i, d] += drift_s * drifts[i, d]
