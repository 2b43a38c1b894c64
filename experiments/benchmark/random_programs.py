"""Random least-power programs: 6 to 38 joints, 1 to 16 contacts, limits tight, slack or none."""

from __future__ import annotations

import numpy as np

from experiments.projected.program import QcqpProgram

FORCE_WEIGHT = 1e-6  # makes the forces unique where torques do not


def random_program(seed: int, number: int, feasible: bool = True) -> QcqpProgram:
    """The program with this seed and number, always the same.

    Feasible ones are made around a point strictly inside their cones and limits. The others ask for
    a wrench that the contacts can only give by pulling, or for torques beyond their limits: whether they
    are infeasible is for the solvers to find out.
    """
    rng = np.random.default_rng([seed, number])
    na, n = int(rng.integers(6, 39)), int(rng.integers(1, 17))
    nu = int(rng.choice([0, 6, 6, 6, 12]))
    mu = _friction(n, rng)
    T = rng.normal(size=(na, 3 * n)) * (rng.random((na, 3 * n)) < rng.choice([0.3, 1.0]))
    Y = rng.normal(size=(nu, 3 * n))
    if nu and rng.random() < 0.3:  # redundant contacts
        Y[:, 3 * (n // 2 + 1) :] = Y[:, : 3 * n - 3 * (n // 2 + 1)]
    normal = rng.exponential(size=n) * 10.0 ** rng.uniform(-1.0, 2.0)
    angle, share = rng.uniform(0.0, 2.0 * np.pi, n), rng.random(n) * rng.choice([0.1, 0.9, 0.99])
    slip = np.where(np.isinf(mu), 3.0, np.minimum(mu, 1e3)) * share * normal
    force = np.column_stack([normal, slip * np.cos(angle), slip * np.sin(angle)]).reshape(-1)
    torque = rng.normal(size=na) * 10.0 ** rng.uniform(-1.0, 2.0)
    offset = torque - T @ force
    wrench = Y @ force
    room = rng.choice([1e-4, 1e-3, 0.1, 1.0, np.inf])
    limit = np.abs(torque) * (1.0 + room) + 1e-3
    if not feasible:
        if nu and rng.random() < 0.5:
            wrench = -wrench
        else:
            limit *= rng.choice([0.03, 0.3])
    A = np.block([[np.eye(na), -T], [np.zeros((nu, na)), Y]])
    weights = 10.0 ** rng.uniform(-1.0, 1.0, na)
    return QcqpProgram(
        A, np.concatenate([offset, wrench]), mu, weights, -limit, limit, FORCE_WEIGHT
    )


def _friction(n, rng):
    """Mostly usual coefficients, now and then none or unbounded ones."""
    mu = rng.uniform(0.1, 1.2, n) if rng.random() < 0.8 else 10.0 ** rng.uniform(-2.0, 1.0, n)
    if rng.random() < 0.2:
        mu[rng.random(n) < 0.3] = 0.0
        mu[rng.random(n) < 0.3] = np.inf
    return mu
