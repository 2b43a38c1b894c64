"""Complementarity problems with published answers, and random ones of a standing robot."""

from __future__ import annotations

import numpy as np


def murty(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Murty's upper triangular problem: z = (0, ..., 0, 2^n); simple rules take 2^n pivots."""
    M = np.eye(n) + 2.0 * np.triu(np.ones((n, n)), 1)
    return M, 2.0 ** np.arange(1, n + 1) - 2.0 ** (n + 1)


def fathi(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Fathi's positive definite problem, L L^T with a lower triangular L: z = (1, 0, ..., 0)."""
    L = np.eye(n) + 2.0 * np.tril(np.ones((n, n)), -1)
    return L @ L.T, -np.ones(n)


def kostreva() -> tuple[np.ndarray, np.ndarray]:
    """Kostreva's P-matrix (1979), on which simple pivoting rules cycle: z = (1, 1, 1) / 3."""
    return np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]]), -np.ones(3)


def cottle_pang_stone() -> tuple[np.ndarray, np.ndarray]:
    """Cottle, Pang and Stone (1992), example 4.4.7: z = (0, 1, 3)."""
    M = np.array([[0.0, -1.0, 2.0], [2.0, 0.0, -2.0], [-1.0, 1.0, 0.0]])
    return M, np.array([-3.0, 6.0, -1.0])


def polygon(k: int) -> np.ndarray:
    """(k, 2) unit edges of a regular friction polygon."""
    angle = 2.0 * np.pi * np.arange(k) / k
    return np.column_stack([np.cos(angle), np.sin(angle)])


def standing_robot(
    rng: np.random.Generator,
    contacts: int,
    edges: int = 4,
    mu: float = 0.6,
    speed_m_s: float = 0.02,
) -> tuple[np.ndarray, ...]:
    """Random friction problem of a small quadruped with its contacts spread over four flat feet.

    Locked inertia of 2.5 kg about the base, one period of 1 ms of free fall plus a random base
    velocity; contacts beyond four lie in the same plane, so forces are indeterminate.

    Returns:
        Y (3 n, 6), c (3 n,) m/s, mu (n,), edges (k, 2), as ``lemke_friction`` takes them.
    """
    mass, gravity, period = 2.5, 9.81, 1e-3
    feet = np.array([[0.2, 0.14], [0.2, -0.14], [-0.2, 0.14], [-0.2, -0.14]])
    points = np.full((contacts, 3), -0.25)
    points[:, :2] = feet[np.arange(contacts) % 4]
    if contacts > 4:
        points[:, :2] += rng.uniform(-0.02, 0.02, (contacts, 2))
    frame = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # normal, tangents
    J = np.concatenate(
        [np.tile(frame, (contacts, 1, 1)), np.cross(points[:, None, :], frame[None])], axis=2
    ).reshape(-1, 6)
    inertia = np.diag([mass, mass, mass, 0.03, 0.04, 0.06])
    Y = np.linalg.solve(np.linalg.cholesky(inertia), J.T).T
    twist = rng.normal(scale=speed_m_s, size=6)
    twist[2] -= gravity * period
    return np.ascontiguousarray(Y), J @ twist, np.full(contacts, float(mu)), polygon(edges)


def struck_tower(
    rng: np.random.Generator,
    boxes: int = 13,
    edges: int = 4,
    mu: float = 0.7,
    impact_m_s: float = 32.0,
    rest_m_s: float = 1e-9,
) -> tuple[np.ndarray, ...]:
    """Friction problem of a tower of cubes that the topmost one falls on, four contacts each.

    After Siconos' stack of boxes, with the same 52 contacts, rank 78 and sizes of velocity: the
    impact, half a millisecond of gravity in the lowest contacts, and elsewhere what the last step's
    tolerance left.  So nearly all ratios of a path tie, and impulses are indeterminate.

    Returns:
        Y (12 boxes, 6 boxes), c (12 boxes,) m/s, mu (4 boxes,), edges (k, 2), contacts shuffled.
    """
    mass, half, fall_m_s = 0.01, 0.5, 4.905e-3
    spots = half * np.array([[0.0, 0.0], [-1.0, 0.0], [1.0, -1.0], [1.0, 1.0]])
    frame = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # normal, tangents
    J: np.ndarray = np.zeros((boxes, 4, 3, boxes, 6))
    for box in range(boxes):
        for body, side, height in ((box, 1.0, -half), (box - 1, -1.0, half)):
            if body >= 0:
                arms = np.column_stack([spots, np.full(4, height)])
                turning = np.cross(arms[:, None], frame)
                J[box, :, :, body, :3], J[box, :, :, body, 3:] = side * frame, side * turning
    J = J.reshape(4 * boxes, 3, 6 * boxes)[rng.permutation(4 * boxes)].reshape(-1, 6 * boxes)
    motion = rest_m_s * rng.normal(size=6 * boxes)
    motion[2::6] -= fall_m_s
    motion[-4] -= impact_m_s
    inertia = np.tile(np.repeat([mass, mass * (2.0 * half) ** 2 / 6.0], 3), boxes)
    return J / np.sqrt(inertia), J @ motion, np.full(4 * boxes, float(mu)), polygon(edges)


def friction_matrix(
    Y: np.ndarray, c: np.ndarray, mu: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """M and q of ``lemke_friction``'s problem, ordered f_N (n), f_F (n k), lambda (n)."""
    n, k = len(mu), len(edges)
    rows = Y.reshape(n, 3, -1)
    along_edges = np.einsum("ea,nar->ner", edges, rows[:, 1:]).reshape(n * k, -1)
    B = np.concatenate([rows[:, 0], along_edges])
    E = np.kron(np.eye(n), np.ones((k, 1)))
    M = np.zeros((n * (k + 2), n * (k + 2)))
    M[: n + n * k, : n + n * k] = B @ B.T
    M[n : n + n * k, n + n * k :] = E
    M[n + n * k :, :n] = np.diag(mu)
    M[n + n * k :, n : n + n * k] = -E.T
    speeds = c.reshape(n, 3)
    return M, np.concatenate([speeds[:, 0], (speeds[:, 1:] @ edges.T).ravel(), np.zeros(n)])
