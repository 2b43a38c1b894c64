"""The paper's own form, D(q, v) d + b = 0: every link's quantities as unknowns of one sparse system.

For each link i (the one joint i moves), in its own frame with *angular parts first*, as in the paper:

    -a_i + X_i a_l + S_i qdd_i + v_i x S_i qd_i                  = 0     (eq. 3a)
    -f_i + I_i a_i + sum_children X_j^T f_j - fx_i + v_i x* I_i v_i = 0  (eq. 3b)
    -tau_i + S_i^T f_i                                           = 0     (eq. 3c)

d stacks (a_i, f_i, tau_i, fx_i, qdd_i). It is the reference that tests hold the estimator against, and
what the structural rank is taken of; solving it costs many times what the estimator does.
Source: Nori (2017), eqs. 3, 5 and 6; results/errata.md lists what is misprinted there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin
import scipy.sparse as sparse

from contact_id_controller.robot import RobotModel

QUANTITIES = ("a", "f", "tau", "fx", "qdd")
SWAP = np.roll(np.eye(6), 3, axis=0)  # linear first to angular first


class NewtonEulerSystem(NamedTuple):
    """D (rows, unknowns) sparse, b (rows,), and where things stand in them.

    columns: (quantity, joint) -> slice of d, with quantities a, f, tau, fx, qdd and Pinocchio's joint
    numbers.  rows: (equation, joint) -> slice, with equations a, f, tau.
    """

    D: sparse.csr_matrix
    b: np.ndarray
    columns: dict[tuple[str, int], slice]
    rows: dict[tuple[str, int], slice]


def newton_euler_system(robot: RobotModel, q: np.ndarray, v: np.ndarray) -> NewtonEulerSystem:
    """The system at a configuration q (nq,) and velocity v (nv,)."""
    model = robot.model
    data = model.createData()
    pin.forwardKinematics(model, data, np.asarray(q, float), np.asarray(v, float))
    columns, rows, at, row = {}, {}, 0, 0
    for i in range(1, model.njoints):
        freedom = model.joints[i].nv
        for name, size in zip(QUANTITIES, (6, 6, freedom, 6, freedom)):
            columns[name, i] = slice(at, at + size)
            at += size
        for name, size in zip(QUANTITIES[:3], (6, 6, freedom)):
            rows[name, i] = slice(row, row + size)
            row += size
    D, b = sparse.lil_matrix((row, at)), np.zeros(row)
    gravity = np.concatenate([np.zeros(3), -np.asarray(model.gravity.linear)])
    for i in range(1, model.njoints):
        parent, joint = model.parents[i], model.joints[i]
        S = SWAP @ np.array(data.joints[i].S).reshape(6, -1)
        X = SWAP @ data.liMi[i].inverse().toActionMatrix() @ SWAP
        inertia = SWAP @ model.inertias[i].matrix() @ SWAP
        velocity = SWAP @ data.v[i].vector
        moving = S @ np.asarray(v)[joint.idx_v : joint.idx_v + joint.nv]
        D[rows["a", i], columns["a", i]] = -np.eye(6)
        D[rows["a", i], columns["qdd", i]] = S
        b[rows["a", i]] = _cross(velocity) @ moving
        if parent:
            D[rows["a", i], columns["a", parent]] = X
            D[rows["f", parent], columns["f", i]] = X.T
        else:
            b[rows["a", i]] += X @ gravity
        D[rows["f", i], columns["f", i]] = -np.eye(6)
        D[rows["f", i], columns["a", i]] = inertia
        D[rows["f", i], columns["fx", i]] = -np.eye(6)
        b[rows["f", i]] = -_cross(velocity).T @ inertia @ velocity
        D[rows["tau", i], columns["tau", i]] = -np.eye(joint.nv)
        D[rows["tau", i], columns["f", i]] = S.T
    return NewtonEulerSystem(D.tocsr(), b, columns, rows)


def _cross(v: np.ndarray) -> np.ndarray:
    """v x, angular part first (6, 6)."""
    w, u = pin.skew(v[:3]), pin.skew(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])
