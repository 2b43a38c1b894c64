"""A recorded motion for tests: a robot that sways on its feet, lifts one, and jumps."""

import numpy as np
import pinocchio as pin
from robots import SOLO_FEET, SOLO_POSTURE, frame_positions, point_kinematics

RADIUS_M = 0.016
SWAY = np.array([0.08, 0.05, 0.03, 0.2, 0.15, 0.1])
"""Largest velocity of the base in each coordinate, m/s and rad/s."""


def swaying_solo(robot, rows, dt=1e-3):
    """Solo12 for ``rows`` rows: time_s, q, v. All feet stand still, but for the second in the second half,
    which goes up and down; the last tenth is above the ground."""
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], SOLO_POSTURE)
    q[2] += RADIUS_M - frame_positions(robot, q, SOLO_FEET)[:, 2].min()
    motion = {"time_s": 7.0 + dt * np.arange(rows), "q": [], "v": []}
    for k in range(rows):
        v = np.zeros(robot.nv)
        v[:6] = SWAY * np.cos(2.0 * np.pi * k / 400.0 + np.arange(6))
        J, _ = point_kinematics(robot, q, v, SOLO_FEET)
        foot = np.zeros(12)
        if k >= rows // 2:
            foot[5] = 0.3 * np.sin(4.0 * np.pi * (k - rows // 2) / rows)
        v[6:] = np.linalg.solve(J[:, 6:], foot - J[:, :6] @ v[:6])
        motion["q"].append(q)
        motion["v"].append(v)
        q = pin.integrate(robot.model, q, dt * v)
    motion = {name: np.array(values) for name, values in motion.items()}
    motion["q"][-(rows // 10) :, 2] += 0.05
    return motion
