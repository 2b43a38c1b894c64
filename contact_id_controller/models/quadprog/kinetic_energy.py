"""The paper's literal stage I: least kinetic energy at the end of the period (first paper, eq. 69, 98).

    min 1/2 v+^T M v+   subject to   z = sum of non-negative multiples of pyramid edges,  N v+ >= -gap/dt

In reduced coordinates the energy is 1/2 |u + m|^2 with m = L^T p + L^-1 B qd_des, the unactuated
momentum without contact: the objective stops the whole robot, not its contacts. Kept so that the
paper's figures can be reproduced; not for control.
"""

from __future__ import annotations

import numpy as np
import quadprog

from contact_id_controller.kernels.pyramid import STICKING
from contact_id_controller.models.steps.finish import finish_answer
from contact_id_controller.models.steps.force_distribution import distribute
from contact_id_controller.models.steps.reduced import Cones, Face, empty_answer
from contact_id_controller.problem import Problem
from contact_id_controller.solution import INCONSISTENT, SOLVED, Solution

REGULARISATION = 1e-10  # of the singular Hessian, relative to its trace


def generators(mu: float, edges: int) -> np.ndarray:
    """Edges of one contact's pyramid, (edges or 1 or 5, 3): normal 1, tangents mu (cos, sin)."""
    if np.isinf(mu):
        return np.array([[1.0, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    if mu == 0.0:
        return np.array([[1.0, 0, 0]])
    angle = 2.0 * np.pi * np.arange(edges) / edges
    return np.stack([np.ones(edges), mu * np.cos(angle), mu * np.sin(angle)], axis=1)


def minimise_kinetic_energy(
    problem: Problem, mu: np.ndarray, edges: int, distribution: str
) -> Solution:
    """Solve eq. 69 by quadprog in the edges' multipliers, then distribute the forces."""
    n = len(problem)
    z, status = np.zeros(3 * n), SOLVED
    if n:
        blocks = [generators(m, edges) for m in mu]
        E = np.zeros((3 * n, sum(len(block) for block in blocks)))
        at = 0
        for i, block in enumerate(blocks):
            E[3 * i : 3 * i + 3, at : at + len(block)] = block.T
            at += len(block)
        Ye = problem.Y.T @ E
        momentum = problem.base + problem.C @ problem.desired_velocity
        H = Ye.T @ Ye
        H += REGULARISATION * np.trace(H) * np.eye(len(H))
        normals = problem.Y[::3] @ Ye
        rows = np.vstack([np.eye(len(H)), normals])
        bounds = np.concatenate([np.zeros(len(H)), -(problem.c[::3] + problem.gap_speed)])
        try:
            weights = quadprog.solve_qp(H, -Ye.T @ momentum, np.ascontiguousarray(rows.T), bounds)[
                0
            ]
            z = E @ np.maximum(weights, 0.0)
        except ValueError:  # quadprog's only way to say that no point satisfies the constraints
            status = INCONSISTENT
        if status == SOLVED and distribution != "none":
            face = Face(np.full(n, STICKING), np.zeros(n), np.zeros(n))
            cones = Cones(mu, edges, problem.contacts.load_share)
            weight = 1.0 if distribution == "least_torque" else 0.0
            u = problem.Y.T @ z
            distribute(problem.T, problem.torque_offset, problem.Y, u, face, cones, weight, z)
    answer = empty_answer(problem)._replace(z=z)
    finish_answer(problem, answer)
    return Solution(problem, status, answer.torques, z, answer.velocity)
