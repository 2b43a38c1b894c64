"""The two stages of coulomb/qp as printed, by the quadprog library: for comparison and as a second opinion.

What slides, parts: the library knows the programs of the first paper only, eq. 75 and section 6.2.
quadprog is licensed under the GPL (2.0 or later); the package does not import it.
"""

from __future__ import annotations

import numpy as np
import quadprog

from contact_id_controller.kernels.pyramid import APART, STICKING, effective_friction
from contact_id_controller.models.contact_model import Chosen, ContactModel, Normal, Tangential
from contact_id_controller.models.options import CONSISTENCY, DISTRIBUTION, EDGES, POLYGON
from contact_id_controller.models.steps.consistency import project_plan
from contact_id_controller.models.steps.finish import STATUS_NAMES, finish_answer
from contact_id_controller.models.steps.force_distribution import share_weights
from contact_id_controller.models.steps.polygon_friction import polygon_friction
from contact_id_controller.models.steps.reduced import empty_answer
from contact_id_controller.problem import Problem
from contact_id_controller.solution import INCONSISTENT, SOLVED, Solution

TIE_BREAK = 1e-6  # weight of the force norm against the torque norm, relative to traces
ACTIVE_SPEED = 1e-7  # m/s; an edge with less slack than this may carry force in stage II
RANK = 1e-9  # singular values below this share of the largest count as zero


def solve_with_quadprog(
    problem: Problem, options: Chosen, warm_start: Solution | None = None
) -> Solution:
    """Stage I in nu dimensions, stage II in the multipliers of the edges without slack.

    Args:
        options: edges, polygon, distribution, consistency: as of coulomb/qp.  warm_start: not needed.
    """
    n, status, contradiction = len(problem), SOLVED, 0.0
    edges, distribution, consistency = options.edges, options.distribution, options.consistency
    mu = polygon_friction(problem.contacts.friction, edges, options.polygon)
    mu = effective_friction(mu, np.inf)
    answer = empty_answer(problem)
    c, z, delta = answer.moved, answer.z, answer.delta
    if n:
        E = edge_matrix(mu, edges)
        gap = np.zeros(3 * n)
        gap[::3] = problem.gap_speed
        for attempt in range(2):
            if consistency == "project":
                contradiction = project_plan(problem.reduced, mu, attempt == 0, delta, c)
            u, weights = _nearest(E.T @ problem.Y, E.T @ (c + gap))
            if u is not None or consistency != "project":
                break
        if u is None:
            status = INCONSISTENT
        else:
            z = E @ weights
            if distribution != "none":
                slack = E.T @ (problem.Y @ u + c + gap)
                offset = problem.torque_offset + problem.schur @ delta / problem.period
                z = _share(problem, E[:, slack < ACTIVE_SPEED], z, offset, distribution)
    answer = answer._replace(z=z)
    code = finish_answer(problem, answer)
    if status == SOLVED:
        status = STATUS_NAMES[code]
    return Solution(
        problem, status, answer.torques, z, answer.velocity, 0, delta, contradiction, None, c
    )


def generators(mu: float, edges: int) -> np.ndarray:
    """Edges of one contact's pyramid, (edges or 1 or 5, 3): normal 1, tangents mu (cos, sin)."""
    if np.isinf(mu):
        return np.array([[1.0, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    if mu == 0.0:
        return np.array([[1.0, 0, 0]])
    angle = 2.0 * np.pi * np.arange(edges) / edges
    return np.stack([np.ones(edges), mu * np.cos(angle), mu * np.sin(angle)], axis=1)


def edge_matrix(mu: np.ndarray, edges: int) -> np.ndarray:
    """E (3n, edges of all contacts): columns are the edges of each pyramid in local axes, block-diagonal."""
    blocks = [generators(m, edges) for m in mu]
    E = np.zeros((3 * len(blocks), sum(map(len, blocks))))
    at = 0
    for i, block in enumerate(blocks):
        E[3 * i : 3 * i + 3, at : at + len(block)] = block.T
        at += len(block)
    return E


def _nearest(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Nearest point u to 0 with A u + b >= 0 and its multipliers; (None, None) if there is none."""
    dim = A.shape[1]
    if dim == 0:
        return (np.zeros(0), np.zeros(len(b))) if b.min() >= 0.0 else (None, None)
    try:
        answer = quadprog.solve_qp(np.eye(dim), np.zeros(dim), np.ascontiguousarray(A.T), -b)
    except ValueError:  # quadprog's only way to say that no point satisfies the constraints
        return None, None
    return answer[0], np.maximum(answer[4], 0.0)


def _share(
    problem: Problem, E: np.ndarray, z: np.ndarray, offset: np.ndarray, distribution: str
) -> np.ndarray:
    """Stage II; z unchanged where quadprog finds its equalities contradictory."""
    if E.shape[1] == 0:
        return z
    cost = problem.T.T @ E if distribution == "least_torque" else np.zeros((1, E.shape[1]))
    linear = -cost.T @ offset if distribution == "least_torque" else np.zeros(E.shape[1])
    H = cost.T @ cost
    H += (TIE_BREAK * max(np.trace(H), 1.0) / len(H)) * (E.T @ E + 1e-6 * np.eye(len(H)))
    mode = np.where(np.abs(E).reshape(len(problem), -1).any(axis=1), STICKING, APART)
    weights = np.empty(len(problem))
    share_weights(
        problem.T,
        mode,
        problem.contacts.load_share,
        1.0 if distribution == "least_torque" else 0.0,
        weights,
    )
    H += E.T @ (np.repeat(weights, 3)[:, None] * E)
    # Independent combinations of the nu equality rows: quadprog takes no dependent ones.
    left, size, right = np.linalg.svd(problem.Y.T @ E, full_matrices=False)
    kept = size > RANK * size[0]
    equalities = right[kept]
    value = (left[:, kept].T @ (problem.Y.T @ z)) / size[kept]
    C = np.vstack([equalities, np.eye(E.shape[1])])
    b = np.concatenate([value, np.zeros(E.shape[1])])
    try:
        weights = quadprog.solve_qp(H, linear, np.ascontiguousarray(C.T), b, meq=int(kept.sum()))[0]
    except ValueError:
        return z
    return E @ np.maximum(weights, 0.0)


MODEL = ContactModel(
    "coulomb",
    "qp_quadprog",
    "only to compare with: coulomb/qp as printed, by a library",
    Normal.COMPLEMENTARITY_FREE,
    Tangential.COULOMB,
    options=(EDGES, POLYGON, DISTRIBUTION, CONSISTENCY),
    home=solve_with_quadprog,
)
"""Not registered: called by its ``function``."""
