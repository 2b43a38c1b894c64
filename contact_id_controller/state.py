"""Measured state of a robot, as passed between robot, simulation and controller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_id_controller.frozen import sealed


@sealed
@dataclass(frozen=True, eq=False, slots=True)
class RobotState:
    """State at one instant, in Pinocchio's convention.

    Attributes:
        time_s: time of the state, s.
        q: Configuration, (nq,). A floating base comes first: position in the world frame (m), then
            orientation as a quaternion x, y, z, w; joint positions (rad or m) follow.
        v: Velocity, (nv,). A floating base comes first: linear (m/s), then angular velocity
            (rad/s), both in the base frame; joint velocities (rad/s or m/s) follow.
    """

    time_s: float
    q: np.ndarray
    v: np.ndarray
