"""The paper's factorisation P A Q = L U of its own system, counted as its program does and correctly.

A stacks the dynamics and the measurements in the unknowns of the author's program: a_i, fB_i (net force),
f_i, tau_i, fx_i, qdd_i, 26 a link; angular parts first. What stands in A and b (X_i, v_i x S_i qd_i,
v_i x* I_i v_i) is given, in either count: the formulas for ABA and RNEA include it.
Program: github.com/iron76/bnt_time_varying, experiments/computationalComplexity, commit b312ab9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg

from contact_id_controller.exceptions import ConfigurationError
from experiments.papers.sparse_dynamics_algorithms import CELLS, unknown_accelerations
from experiments.papers.sparse_dynamics_tracer import Count
from experiments.papers.sparse_dynamics_trees import Tree, link_transforms, skew

AXIS = 2  # of the joint, z, in a motion vector
PIVOT_THRESHOLD = 0.1
"""A pivot is at least so much of the largest entry of its column, as in UMFPACK."""


class System(NamedTuple):
    """A x = b. rows, columns: (quantity, link) -> slice; measured rows are ("y" + quantity, link)."""

    A: np.ndarray
    b: np.ndarray
    rows: dict[tuple[str, int], slice]
    columns: dict[tuple[str, int], slice]


class Order(NamedTuple):
    """Which row is the pivot of which column, in the order of elimination."""

    rows: np.ndarray
    columns: np.ndarray


def program_system(tree: Tree, q, velocity, gravity, measurements: dict) -> System:
    """The system of the author's program.

    Args:
        q, velocity: of the joints (n,).  gravity: the base's acceleration minus gravity (3,).
        measurements: (quantity, link) -> values; (7 n) numbers together. Of two load cells, the first
            and the last wrench have the five of ``CELLS``.

    Raises:
        ConfigurationError: more or fewer measured values than unknowns are left.
    """
    n = tree.links
    measured = sum(np.size(values) for values in measurements.values())
    if measured != 7 * n:
        raise ConfigurationError(f"measurements have {measured} values, must have {7 * n}")
    rows, columns = {}, {}
    for i in range(n):
        for quantity, at, width in (("a", 0, 6), ("fB", 6, 6), ("f", 12, 6), ("tau", 18, 1)):
            rows[quantity, i] = columns[quantity, i] = slice(19 * i + at, 19 * i + at + width)
        known = 19 * n + 7 * i
        columns["fx", i], columns["qdd", i] = slice(known, known + 6), slice(known + 6, known + 7)
    A, b = np.zeros((26 * n, 26 * n)), np.zeros(26 * n)
    _dynamics(tree, q, velocity, gravity, A, b, rows, columns)
    row = 19 * n
    for (quantity, i), values in measurements.items():
        values, unknowns = np.atleast_1d(values), np.arange(26 * n)[columns[quantity, i]]
        if len(values) == len(CELLS):
            unknowns = unknowns[list(CELLS)]
        rows[f"y{quantity}", i] = slice(row, row + len(values))
        A[np.arange(row, row + len(values)), unknowns] = 1.0
        b[row : row + len(values)] = values
        row += len(values)
    return System(A, b, rows, columns)


def _dynamics(tree, q, velocity, gravity, A, b, rows, columns) -> None:
    """Equations 2 and 3 with fB_i, as A x = b."""
    transforms, spin = link_transforms(tree, q), np.zeros((tree.links, 6))
    for i, (parent, X) in enumerate(zip(tree.parents, transforms)):
        joint = np.zeros(6)
        joint[AXIS] = velocity[i]
        spin[i] = joint + (X @ spin[parent] if parent >= 0 else 0.0)
        w, u = skew(spin[i, :3]), skew(spin[i, 3:])
        cross = np.block([[w, np.zeros((3, 3))], [u, w]])
        h = skew(tree.moment[i])
        inertia = np.block([[tree.inertia[i], h], [h.T, tree.mass[i] * np.eye(3)]])
        a, net, f, tau = (rows[name, i] for name in ("a", "fB", "f", "tau"))
        A[a, a] = A[net, net] = A[f, f] = A[f, columns["fx", i]] = -np.eye(6)
        A[a, columns["qdd", i]] = A[tau, f].T[:] = np.eye(6)[:, [AXIS]]
        A[net, a], A[f, net], A[tau, tau] = inertia, np.eye(6), -1.0
        b[a], b[net] = -cross @ joint, cross.T @ inertia @ spin[i]
        if parent >= 0:
            A[a, columns["a", parent]], A[rows["f", parent], f] = X, X.T
        else:
            b[a] -= X @ np.concatenate([np.zeros(3), gravity])


# Orders


def leaf_to_root(system: System) -> Order:
    """Forward dynamics link by link, as ABA goes: fB, f, then qdd, a. What is measured goes first."""
    order = [(f"y{name}", (name, i)) for name, i in system.columns if name in ("fx", "tau")]
    pairs = [(system.rows[y, unknown[1]], system.columns[unknown]) for y, unknown in order]
    rows = [np.r_[row] for row, _ in pairs]
    columns = [np.r_[column] for _, column in pairs]
    for i in sorted({i for _, i in system.columns}, reverse=True):
        a = np.r_[system.columns["a", i]]
        others = np.delete(np.arange(6), AXIS)
        rows += [np.r_[system.rows["fB", i]], np.r_[system.rows["f", i]]]
        columns += [np.r_[system.columns["fB", i]], np.r_[system.columns["f", i]]]
        # The joint's row of the acceleration gives qdd, the torque's a about the joint.
        equation = np.r_[system.rows["a", i]]
        rows += [equation[[AXIS]], np.r_[system.rows["tau", i]], equation[others]]
        columns += [np.r_[system.columns["qdd", i]], a[[AXIS]], a[others]]
    return Order(np.concatenate(rows), np.concatenate(columns))


def partial_pivoting(system: System) -> Order:
    """Columns as they come, the largest pivot: LU "without permutations" in the paper's figures."""
    _, swaps = scipy.linalg.lu_factor(system.A)
    rows = np.arange(len(swaps))
    for k, p in enumerate(swaps):
        rows[[k, p]] = rows[[p, k]]
    return Order(rows, np.arange(len(swaps)))


def least_product(system: System) -> Order:
    """Markowitz: the pivot whose row and column have the least product of other entries."""
    R = system.A.copy()
    in_row = {i: set(np.flatnonzero(row)) for i, row in enumerate(R)}
    in_column = {j: set(np.flatnonzero(column)) for j, column in enumerate(R.T)}
    link = {j: i for (_, i), at in system.columns.items() for j in range(at.start, at.stop)}
    best = {q: _best_of_column(R, q, in_column[q], in_row, link[q]) for q in in_column}
    rows, columns = [], []
    while best:
        *_, q, p = min(best.values())
        rows.append(p)
        columns.append(q)
        below, right = list(in_column.pop(q) - {p}), list(in_row.pop(p) - {q})
        del best[q]
        R[np.ix_(below, right)] -= np.outer(R[below, q] / R[p, q], R[p, right])
        for i in below:
            in_row[i].discard(q)
            in_row[i].update(right)
        for j in right:
            in_column[j].discard(p)
            in_column[j].update(below)
        for j in set(right).union(*(in_row[i] for i in below)):
            best[j] = _best_of_column(R, j, in_column[j], in_row, link[j])
    return Order(np.array(rows), np.array(columns))


def _best_of_column(R, q, members, in_row, link) -> tuple:
    """The best pivot that is large enough: cost, whether it divides, leaf first, column, row."""
    largest = max(abs(R[i, q]) for i in members)
    return min(
        ((len(members) - 1) * (len(in_row[i]) - 1), not _is_unit(R[i, q]), -link, q, i)
        for i in members
        if abs(R[i, q]) >= PIVOT_THRESHOLD * largest
    )


# Counts


def _is_unit(x) -> bool:
    return abs(abs(x) - 1.0) < 1e-14


def _factorised(A) -> Iterator[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
    """LU in place: before step k updates (below, right), the matrix, k, and those indices."""
    R = np.array(A)
    for k in range(len(R)):
        below = k + 1 + np.flatnonzero(R[k + 1 :, k])
        right = k + 1 + np.flatnonzero(R[k, k + 1 :])
        R[below, k] /= R[k, k]
        yield R, k, below, right
        R[np.ix_(below, right)] -= np.outer(R[below, k], R[k, right])


def count_of_program(system: System, order: Order) -> tuple[Count, Count]:
    """What the program's lu_cost.m and fb_cost.m say: factorisation, substitutions.

    lu_cost.m takes R(r,k) .* R(k,r)', the *diagonal* of each rank-one update, for all of it; and its
    correction for factors +-1, nnz(x - 1), counts the entries that are *not* 1, at rows that belong to
    others (the index is relative to k).
    """
    additions = multiplications = 0
    for R, k, below, right in _factorised(system.A[np.ix_(*order)]):
        n = len(R)
        if k < n - 1:
            diagonal = np.intersect1d(below, right) - (k + 1)
            additions += len(diagonal)
            multiplications += len(below) + len(diagonal)
            for x in (R[diagonal, k], R[k, diagonal]):
                multiplications -= np.count_nonzero(x - 1.0) + np.count_nonzero(x + 1.0)
    b = system.b.copy()
    b[19 * (n // 26) :] = 1.0  # as the program has it for whatever is measured
    b = b[order.rows]
    c = scipy.linalg.solve_triangular(R, b, lower=True, unit_diagonal=True)
    entries = np.count_nonzero(R) - n
    right_sides = np.count_nonzero(b) + np.count_nonzero(c)
    substitutions = Count(int(right_sides + entries), int(entries) + 2 * n)
    return Count(additions, int(multiplications)), substitutions


def count_of_elimination(system: System, order: Order) -> tuple[Count, np.ndarray]:
    """What the same factorisation and substitutions take, and the solution x.

    Factors and divisors +-1 and zeros are free, the first value of an entry that was zero is no
    addition, a division is one multiplication.
    """
    additions = multiplications = 0
    y = system.b[order.rows]
    for R, k, below, right in _factorised(system.A[np.ix_(*order)]):
        factors = sum(not _is_unit(x) for x in R[below, k])
        multiplications += 0 if _is_unit(R[k, k]) else len(below)
        multiplications += factors * sum(not _is_unit(x) for x in R[k, right])
        additions += np.count_nonzero(R[np.ix_(below, right)])
        if y[k]:
            multiplications += 0 if _is_unit(y[k]) else factors
            additions += np.count_nonzero(y[below])
            y[below] -= R[below, k] * y[k]
    for k in reversed(range(len(y))):
        for c in k + 1 + np.flatnonzero(R[k, k + 1 :]):
            if y[c]:
                multiplications += not _is_unit(R[k, c])
                additions += y[k] != 0.0
                y[k] -= R[k, c] * y[c]
        multiplications += not _is_unit(R[k, k])
        y[k] /= R[k, k]
    x = np.empty_like(y)
    x[order.columns] = y
    return Count(int(additions), int(multiplications)), x


# The two problems


def forward_measurements(torques) -> dict:
    """Forward dynamics: no external wrench, torques known."""
    n = len(torques)
    wrenches = {("fx", i): np.zeros(6) for i in range(n)}
    return {**wrenches, **{("tau", i): torques[i] for i in range(n)}}


def load_cell_measurements(accelerations, first, last) -> dict:
    """Figure 2's set in the program: see ``sparse_dynamics_algorithms.load_cells``."""
    n = len(accelerations)
    unknown = unknown_accelerations(n)
    return {
        **{("fx", i): np.zeros(6) for i in range(n - 1)},
        **{("qdd", i): accelerations[i] for i in range(n) if i not in unknown},
        ("f", 0): first,
        ("fx", n - 1): last,
    }
