"""The sparse factorisation paper's properties and equations, put to the test on numbers.

D, b and the unknowns are those of ``estimation.newton_euler_system``: couples before forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse

from contact_id_controller.estimation.newton_euler_system import (
    NewtonEulerSystem,
    newton_euler_system,
)
from experiments.papers.sparse_dynamics_trees import (
    general_tree,
    link_transforms,
    paper_tree,
    robot_of,
    skew,
)

Names = list[tuple[str, int]]


class Square(NamedTuple):
    """[D; Y] d + b = 0 with as many rows as unknowns; the measured rows are ("y" + quantity, joint)."""

    matrix: np.ndarray
    b: np.ndarray
    rows: dict[tuple[str, int], slice]
    columns: dict[tuple[str, int], slice]

    def permuted(self, matrix, rows: Names, columns: Names) -> np.ndarray:
        """A matrix of this size with its blocks in this order."""
        return matrix[np.ix_(_places(self.rows, rows), _places(self.columns, columns))]


def with_measurements(system: NewtonEulerSystem, measured: dict) -> Square:
    """measured: (quantity, joint) -> values of all its components."""
    rows, row, unknowns = dict(system.rows), len(system.b), system.D.shape[1]
    names = list(measured)
    for quantity, joint in names:
        width = len(measured[quantity, joint])
        rows[f"y{quantity}", joint] = slice(row, row + width)
        row += width
    places = _places(system.columns, names)
    picked = np.zeros((len(places), unknowns))
    picked[np.arange(len(places)), places] = 1.0
    values = np.concatenate([measured[name] for name in names])
    matrix = np.vstack([system.D.toarray(), picked])
    return Square(matrix, np.concatenate([system.b, -values]), rows, system.columns)


def _places(table, names: Names) -> np.ndarray:
    return np.concatenate([np.arange(table[name].start, table[name].stop) for name in names])


def above_diagonal(matrix) -> float:
    """Largest entry above the diagonal: 0 where the matrix is lower triangular."""
    return float(np.abs(np.triu(matrix, 1)).max())


def _state(tree, seed: int):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, tree.links), rng.normal(size=tree.links), rng


# Property 1: inverse dynamics


def _inverse_dynamics(links: int, branching: float) -> Square:
    tree = paper_tree(links, branching=branching)
    q, v, _ = _state(tree, 0)
    measured = {}
    for i in range(1, links + 1):
        measured["fx", i], measured["qdd", i] = np.zeros(6), np.zeros(1)
    return with_measurements(newton_euler_system(robot_of(tree), q, v), measured)


def property_1(links: int = 8) -> float:
    """What stands above the diagonal in the orders (11) and (12)."""
    square, forward = _inverse_dynamics(links, 1.5), range(1, links + 1)
    backward = range(links, 0, -1)
    unknowns = [(name, i) for i in forward for name in ("fx", "qdd")]
    tail = [("a", i) for i in forward] + [(name, i) for i in backward for name in ("f", "tau")]
    rows = [(f"y{name}", i) for name, i in unknowns] + tail
    return above_diagonal(square.permuted(square.matrix, rows, unknowns + tail))


def triangular_order(matrix: sparse.spmatrix) -> int:
    """How many rows repeated removal of rows with one unknown orders; all: triangular by permutation.

    Linear time, and it finds the order wherever there is one: the paper's search by a library's
    pivoting is not needed (Property 1, Remark 3).
    """
    pattern = sparse.csr_matrix(matrix)
    unknowns = [set(pattern.indices[a:b]) for a, b in zip(pattern.indptr, pattern.indptr[1:])]
    rows_of: dict[int, set[int]] = {}
    for row, members in enumerate(unknowns):
        for column in members:
            rows_of.setdefault(column, set()).add(row)
    waiting, ordered = [row for row, members in enumerate(unknowns) if len(members) == 1], 0
    while waiting:
        row = waiting.pop()
        if len(unknowns[row]) != 1:
            continue
        (column,) = unknowns[row]
        ordered += 1
        for other in rows_of.pop(column):
            unknowns[other].discard(column)
            if len(unknowns[other]) == 1:
                waiting.append(other)
    return ordered


def peeled(links: int) -> tuple[int, int]:
    """Rows that removal of rows with one unknown orders, and rows: the paper's tree, figure of IV-D."""
    square = _inverse_dynamics(links, 1.5)
    return triangular_order(sparse.csr_matrix(square.matrix)), len(square.b)


# Property 2: ABA as W^L D W^R


class Transformed(NamedTuple):
    """Property 2 as printed and put right, on one random robot.

    printed, corrected: largest entry above the diagonal in the order (35).
    smallest_diagonal: of the corrected order; 0 would be singular.
    residual_printed: of W^L D W^R d + b.  residual_corrected: of W^L D W^R d' + W^L b, d = W^R d'.
    """

    printed: float
    corrected: float
    smallest_diagonal: float
    residual_printed: float
    residual_corrected: float


def property_2(links: int = 6, seed: int = 0) -> Transformed:
    """Both forms of the order (35) and of the equation after Property 2."""
    tree = general_tree(links, branching=1.5, seed=seed)
    q, v, rng = _state(tree, seed)
    measured = {}
    for i in range(1, links + 1):
        measured["fx", i], measured["tau", i] = rng.normal(size=6), rng.normal(size=1)
    square = with_measurements(newton_euler_system(robot_of(tree), q, v), measured)
    left, right = _transformations(tree, q, square)
    product = left @ square.matrix @ right
    unknowns, printed, corrected = _orders_of_forward_dynamics(links)
    triangular = square.permuted(product, corrected, unknowns)
    d = np.linalg.solve(square.matrix, -square.b)
    transformed = np.linalg.solve(right, d)
    return Transformed(
        above_diagonal(square.permuted(product, printed, unknowns)),
        above_diagonal(triangular),
        float(np.abs(np.diag(triangular)).min()),
        float(np.abs(product @ d + square.b).max()),
        float(np.abs(product @ transformed + left @ square.b).max()),
    )


def _orders_of_forward_dynamics(links: int) -> tuple[Names, Names, Names]:
    """Unknowns (34); equations (35) as printed and put right.

    Printed, equations of the joint torques stand between the measured wrenches and the last rows are
    "15 qdd", which does not exist: (15) are the measured torques. Put right, the two change places.
    """
    forward, backward = range(1, links + 1), range(links, 0, -1)
    unknowns = [(name, i) for i in forward for name in ("fx", "tau")]
    dynamics = [("f", i) for i in backward] + [("a", i) for i in forward]
    printed = [name for i in forward for name in (("yfx", i), ("tau", links + 1 - i))] + [
        *dynamics,
        *(("ytau", i) for i in forward),
    ]
    corrected = [(f"y{name}", i) for name, i in unknowns]
    corrected += [*dynamics, *(("tau", i) for i in forward)]
    return [*unknowns, *dynamics, *(("qdd", i) for i in forward)], printed, corrected


def _transformations(tree, q, square: Square) -> tuple[np.ndarray, np.ndarray]:
    """W^L = W4 W3 W2 W1 and W^R of appendix B, equations 29 to 33."""
    n, transforms = tree.links, link_transforms(tree, q)
    axis = np.eye(6)[:, [2]]
    inertias = [_spatial_inertia(tree, i) for i in range(n)]
    right = np.eye(len(square.b))
    W1, W2, W3, W4 = (np.eye(len(square.b)) for _ in range(4))
    rows, columns = square.rows, square.columns
    for i in reversed(range(n)):
        inertia, joint, parent = inertias[i], i + 1, tree.parents[i]
        row = axis.T @ inertia
        right[columns["f", joint], columns["a", joint]] = inertia
        W1[rows["tau", joint], rows["a", joint]] = row
        W2[rows["tau", joint], rows["tau", joint]] = 1.0 / row[0, 2]
        W3[rows["a", joint], rows["tau", joint]] = -axis
        if parent >= 0:
            X = transforms[i]
            inertias[parent] += X.T @ (inertia - row.T @ row / row[0, 2]) @ X
            W4[rows["f", parent + 1], rows["a", joint]] = X.T @ inertia
    return W4 @ W3 @ W2 @ W1, right


def _spatial_inertia(tree, i: int) -> np.ndarray:
    h = skew(tree.moment[i])
    return np.block([[tree.inertia[i], h], [h.T, tree.mass[i] * np.eye(3)]])


# Property 3: load cells on two feet


def load_cell_ranks(unknown: Sequence[int], poses: int = 2000) -> dict[int, int]:
    """Rank of [H, X* H] -> random foot poses that have it; all six are needed.

    unknown: components (couple, force) that the cells of each foot do not measure.
    """
    rng, H = np.random.default_rng(0), np.eye(6)[:, list(unknown)]
    ranks: dict[int, int] = {}
    for _ in range(poses):
        R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        R *= np.linalg.det(R)
        X = np.block([[R, skew(rng.normal(size=3)) @ R], [np.zeros((3, 3)), R]])
        rank = int(np.linalg.matrix_rank(np.hstack([H, X @ H]), tol=1e-9))
        ranks[rank] = ranks.get(rank, 0) + 1
    return ranks


def seen_by_cells() -> tuple[int, ...]:
    """Components (couple, force) of the wrench that normal forces on four corners of a sole make."""
    corners = np.array([[x, y, 0.0] for x in (-0.1, 0.1) for y in (-0.05, 0.05)])
    normals = np.tile([0.0, 0.0, 1.0], (4, 1))
    wrenches = np.hstack([np.cross(corners, normals), normals])
    seen = np.flatnonzero(np.abs(wrenches).max(axis=0))
    return tuple(int(k) for k in seen)
