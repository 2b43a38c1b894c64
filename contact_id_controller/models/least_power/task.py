"""The least-power program of coulomb/qcqp in named tuples, its units and its costs.

min u^T W u + rho price |d|^2 + tie |z|^2       u = offset + T^T z + schur d
    K (Y^T z, d / unit) = k,  |u| <= limits,  z_N >= 0,  |z_T| <= mu z_N at the constrained contacts
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.kernels.compile import bare_kernel

TIE_BREAK = 1e-8  # price of forces against that of the torques they cause: makes them unique


class Task(NamedTuple):
    """One program: n contacts, nu unactuated and na actuated coordinates.

    Y (3n, nu), T (3n, na), schur (na, na), dt: see ``Reduced``. offset (na,) N·m: torques at z = 0 of the plan
    after projection. mu (n,), held (n,) bool: constrained contacts. limits (na,) N·m, W (na,) W/(N·m)^2, rho: see
    ``solve_coulomb_qcqp``. joints: na if the plan may change by d, else 0. K (., nu + joints), k (.,),
    rank, unit: see ``hold``.
    """

    Y: np.ndarray
    T: np.ndarray
    schur: np.ndarray
    dt: float
    offset: np.ndarray
    mu: np.ndarray
    held: np.ndarray
    limits: np.ndarray
    W: np.ndarray
    rho: float
    joints: int
    K: np.ndarray
    k: np.ndarray
    rank: int
    unit: float


class Optimum(NamedTuple):
    """Results of a task.

    z (3n,) N·s; disturbance (na,) rad/s2; memory (na + 4n,): multipliers of the torque limits with the
    limit's sign, then impulse and multiplier of every cone; figures (3,): objective, relative gap, largest
    relative KKT defect.
    """

    z: np.ndarray
    disturbance: np.ndarray
    memory: np.ndarray
    figures: np.ndarray


@bare_kernel
def units_of_cone(mu):
    """Units (normal, tangential) in which |z_T| <= mu z_N is x_0 >= |x_T|, z = unit x; ones where mu is infinite.

    The larger of the two is one for every mu.
    """
    if not mu < np.inf:
        return 1.0, 1.0
    return (1.0, mu) if mu <= 1.0 else (1.0 / mu, 1.0)


@bare_kernel
def cone_price(tie, normal_unit, component):
    """Cost of a force component in units of its cone: f_N^2 + |f_T|^2 / min(mu, 1)^2 times the tie-break weight.

    Bounded in f_N for every mu: a cost that grew with mu would unload the robot's feet.
    """
    return tie * normal_unit * normal_unit if component == 0 else tie


@bare_kernel
def force_price(T, W):
    """Tie break: 2 TIE_BREAK times the mean over forces r of sum_j W_j T_rj^2, their power; 1 if that is zero.

    T (3n, na), W (na,).
    """
    cost = 0.0
    for r in range(T.shape[0]):
        row = T[r]
        for j in range(row.shape[0]):
            cost += W[j] * row[j] * row[j]
    return 2.0 * TIE_BREAK * cost / T.shape[0] if cost > 0.0 else 1.0


@bare_kernel
def disturbance_price(schur, W):
    """Cost of d_j^2 at rho = 1: sum_i W_i schur_ij^2, the power of the torques that cause it, averaged over joints j.

    schur (na, na), W (na,).
    """
    total = 0.0
    for i in range(W.shape[0]):
        for j in range(W.shape[0]):
            total += W[i] * schur[i, j] * schur[i, j]
    return total / W.shape[0]


@bare_kernel
def into_rows(K, rank, factor, row, out):
    """out (rank,) = factor K_y row: the column of a force in the contact constraints; row (nu,): its row of Y."""
    for a in range(rank):
        line, total = K[a], 0.0
        for c in range(row.shape[0]):
            total += line[c] * row[c]
        out[a] = factor * total
