"""The robot as its momentum: the exact map of forces that are held from knot to knot.

    M r'' = M g + sum f_i        k_o' = sum (p_i - o) x f_i + (r - o) x M g

k_o is the angular momentum about a point o that does not move, k_o = k + (r - o) x M r'. About such
a point the dynamics are linear in (r, l, k_o) and in the forces; only the angular momentum about the
centre of mass, k, is not. o may be another point in each interval, since k_o2 = k_o1 + (o1 - o2) x l
is linear, too: taken along with the robot it keeps lever arms short and digits significant.

Everything is divided by the mass, and forces by the weight: the state of a knot is
x = (r - o, r', k_o / M), 9 numbers in m, m/s, m2/s, and the wrench of an interval is
w = (sum f_i, sum (p_i - o) x f_i) / (M |g|), 6 numbers, the torque in m.

Source: Herzog, Schaal, Righetti, "Structured contact force optimization for kinodynamic motion
generation", equation (2), without its discretisation by Euler's rule (7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STATE, WRENCH = 9, 6


def cross_matrix(vectors: np.ndarray) -> np.ndarray:
    """Matrices [a] with [a] b = a x b; (..., 3) to (..., 3, 3)."""
    vectors = np.asarray(vectors, dtype=float)
    matrices = np.zeros((*vectors.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrices[..., j, i] = vectors[..., k]
        matrices[..., i, j] = -vectors[..., k]
    return matrices


@dataclass(frozen=True)
class CentroidalMap:
    """x[t + 1] = A[t] x[t] + E[t] w[t] + b[t], exact while forces are constant over each interval.

    Attributes:
        A: (T, 9, 9).  E: (T, 9, 6).  b: (T, 9).
    """

    A: np.ndarray
    E: np.ndarray
    b: np.ndarray


def exact_map(origins: np.ndarray, time_step_s: float, gravity: np.ndarray) -> CentroidalMap:
    """The map between knots whose fixed points are ``origins``, (T + 1, 3) world, m.

    With dt the step and F the force of the wrench in units of the weight, |g| F + g = a:

        r+ = r + dt v + dt^2/2 a         v+ = v + dt a
        k+ = k + dt |g| tau + (dt (r - o) + dt^2/2 v + dt^3/6 a) x g + (o - o+) x v+

    Args:
        origins: fixed point of each knot; interval t uses that of knot t.
        time_step_s: dt.
        gravity: acceleration g, (3,) world, m/s2.
    """
    dt, g, weight = time_step_s, np.asarray(gravity, dtype=float), float(np.linalg.norm(gravity))
    moved = np.diff(origins, axis=0)
    steps = len(moved)
    under = -cross_matrix(g)  # under a = a x g
    A, E, b = np.zeros((steps, 9, 9)), np.zeros((steps, 9, 6)), np.zeros((steps, 9))
    A[:] = np.eye(9)
    A[:, :3, 3:6] = dt * np.eye(3)
    A[:, 6:, :3] = dt * under
    A[:, 6:, 3:6] = dt**2 / 2 * under
    E[:, :3, :3] = dt**2 / 2 * weight * np.eye(3)
    E[:, 3:6, :3] = dt * weight * np.eye(3)
    E[:, 6:, :3] = dt**3 / 6 * weight * under
    E[:, 6:, 3:] = dt * weight * np.eye(3)
    b[:, :3], b[:, 3:6] = dt**2 / 2 * g, dt * g  # g x g vanishes
    shift = -cross_matrix(moved)  # (o - o+) x
    for part in (A, E, b[..., None]):
        part[:, 6:] += shift @ part[:, 3:6]
    b[:, :3] -= moved
    return CentroidalMap(A, E, b)


def wrench_maps(points: np.ndarray, rotations: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Wrench about the interval's fixed point of a unit force in ground axes, (T, n, 6, 3).

    Args:
        points: where the forces act, (T, n, 3) world, m.
        rotations: ground to world, (T, n, 3, 3).
        origins: (T + 1, 3) world, m.
    """
    arms = cross_matrix(points - origins[:-1, None])
    return np.concatenate([rotations, arms @ rotations], axis=2)


def about_fixed_points(
    com: np.ndarray, velocity: np.ndarray, spin: np.ndarray, origins: np.ndarray
) -> np.ndarray:
    """States x from CoM (m), its velocity (m/s) and k / M about the CoM (m2/s); each (..., 3)."""
    arm = com - origins
    return np.concatenate([arm, velocity, spin + np.cross(arm, velocity)], axis=-1)


def about_com(states: np.ndarray, origins: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CoM, its velocity and k / M about the CoM from states x: the inverse of about_fixed_points."""
    arm, velocity = states[..., :3], states[..., 3:6]
    return arm + origins, velocity, states[..., 6:] - np.cross(arm, velocity)
