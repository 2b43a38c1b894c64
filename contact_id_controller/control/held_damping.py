"""Damping torques tau = -D v, measured once a period and held: the largest stable D.

With the inverse W of the inertia of actuated joints while the base is free (feet in the air, where they are
lightest), v' = (1 - T W D) v decays if T times the largest eigenvalue of W D is below 2. A robot that is damped has
fallen or hangs, so any posture must be considered.
"""

from __future__ import annotations

import numpy as np

from contact_id_controller.control.torques_ahead import actuated_inertia
from contact_id_controller.robot import RobotModel

POSTURES = 300
RESERVE = 0.5
"""Share of the stability bound that is stable even if each velocity is one period late."""

_TURN = 2.0 * np.pi
_SEED = 0


def postures(robot: RobotModel) -> np.ndarray:
    """Draw configurations (``POSTURES``, nq), joints within their limits, at most half a turn off their middle."""
    lower, upper = np.maximum(robot.lower, -_TURN), np.minimum(robot.upper, _TURN)
    middle, half = 0.5 * (lower + upper), np.minimum(0.5 * (upper - lower), 0.5 * _TURN)
    out = np.tile(robot.neutral(), (POSTURES, 1))
    draws = np.random.default_rng(_SEED).uniform(-1.0, 1.0, (POSTURES, robot.na))
    robot.put_joints(out, middle + half * draws)
    return out


def mobilities(robot: RobotModel, configurations: np.ndarray | None = None) -> np.ndarray:
    """Inverse inertias W (m, na, na) of the actuated joints in configurations (m, nq); None: ``postures``."""
    all_of_them = postures(robot) if configurations is None else configurations
    return np.array([np.linalg.inv(actuated_inertia(robot, q)) for q in all_of_them])


def share_of_stable(W: np.ndarray, damping: np.ndarray, period_s: float) -> float:
    """Ratio of D (na,), N·m·s/rad, held for a period, to the stability bound, in the worst posture of W (m, na, na)."""
    root = np.sqrt(damping)
    return 0.5 * period_s * float(np.linalg.eigvalsh(root[:, None] * W * root).max())


def largest_damping(W: np.ndarray, period_s: float) -> np.ndarray:
    """D (na,), N·m·s/rad, whose ``share_of_stable`` is ``RESERVE``: least where joints are lightest."""
    per_joint = 1.0 / np.diagonal(W, axis1=1, axis2=2).max(axis=0)
    return per_joint * (RESERVE / share_of_stable(W, per_joint, period_s))
