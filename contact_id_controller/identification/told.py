"""Which parameters of a robot a log determines, which no motion could, and the standard deviation of each."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from contact_id_controller.identification.model_fit import GAIN, LEAN_RAD, Belief, Fit
from contact_id_controller.identification.pseudo_inertia import COORDINATES
from contact_id_controller.identification.regressor import link_regressor
from contact_id_controller.robot import RobotModel

Array = NDArray[np.float64]

TOLD = 0.5
"""A parameter is determined if the log reduces its standard deviation below this share of the prior one."""

FAR = 3.0
"""A torque constant this many standard deviations from its prior does not count as determined."""

SHARP = 0.1
"""Largest relative standard deviation of a combination of inertial parameters that counts as known."""

RANDOM_STATES, RANK = 200, 1e-11
"""Random states from which the base parameters are found; eigenvalues below this share of the largest are 0."""


@dataclasses.dataclass(frozen=True)
class Told:
    """Standard deviations, and which parameters the log determines; (na, ...) for joints, (nb, ...) for bodies.

    Attributes:
        body_sd (nb, 10), drive_sd (na, 6 + WAVES): of the parameters, kg, kg m, kg m², N·m, N·m s/rad.
        gain_sd (na,): of the torque constants, relative.
        coordinates (nb,): how many of a body's ten coordinates are determined.
        lean_sd (2,): of the base's lean, rad.
        mass (nb,), drives (na, 6 + WAVES), gains (na,): whether each is determined.
        base: number of base parameters: combinations of inertial parameters and rotors that some motion determines.
        known: those that this log determines within `SHARP`.
    """

    body_sd: Array
    drive_sd: Array
    gain_sd: Array
    lean_sd: Array
    coordinates: NDArray[np.int64]
    mass: NDArray[np.bool_]
    drives: NDArray[np.bool_]
    gains: NDArray[np.bool_]
    base: int
    known: int


def told(robot: RobotModel, fit: Fit) -> Told:
    """Standard deviations of a fit's parameters, and which of them its log determines."""
    belief, covariance = fit.belief, fit.covariance
    x, _, log_gains = belief.split(fit.unknown)
    nb, nd = belief.bodies.size, belief.drives.size
    share = np.sqrt(np.diag(covariance))
    by_x = belief.bodies.jacobian(x) * np.repeat(belief.body_sd, COORDINATES)
    prior = np.sqrt(np.sum(by_x**2, axis=1))
    after = np.sqrt(np.einsum("ik,kl,il->i", by_x, covariance[:nb, :nb], by_x))
    gains = np.exp(log_gains)
    drives = share[nb : nb + nd].reshape(belief.drives.shape)
    drive_sd = drives * belief.drive_sd / gains[:, None]
    gain_sd, gain_told = np.zeros(len(gains)), np.ones(len(gains), dtype=np.bool_)
    if belief.in_amperes:
        gain_sd = share[belief.gains] * belief.log_gain_sd
        gain_told = (belief.log_gain_sd < GAIN) & (np.abs(fit.unknown[belief.gains]) < FAR)
    structure = base_space(robot, belief)
    data = structure.T @ rigid_information(fit, fit.information) @ structure
    relative = np.repeat(belief.body_sd, COORDINATES)
    relative = np.concatenate([relative, np.ones(len(gains))])
    scale = structure.T @ (relative[:, None] ** 2 * structure)
    values = eigh(data, scale, eigvals_only=True)
    return Told(
        after.reshape(-1, COORDINATES),
        drive_sd,
        gain_sd,
        share[belief.leans] * LEAN_RAD,
        np.sum(share[:nb].reshape(-1, COORDINATES) < TOLD, axis=1),
        (after < TOLD * prior).reshape(-1, COORDINATES)[:, 0],
        drives < TOLD,
        gain_told,
        structure.shape[1],
        int(np.sum(values > 1.0 / SHARP**2)),
    )


def rigid_unknowns(belief: Belief) -> NDArray[np.int64]:
    """Indices of the bodies' coordinates and of the rotors in the vector of unknowns."""
    nb, per = belief.bodies.size, belief.drives.shape[1]
    return np.concatenate([np.arange(nb), nb + per * np.arange(len(belief.drives))])


def rigid_information(fit: Fit, information: Array) -> Array:
    """Schur complement of an information matrix (size, size) onto bodies and rotors: friction and gains are unknown."""
    rigid = rigid_unknowns(fit.belief)
    rest = np.setdiff1d(np.arange(fit.belief.size), rigid)
    cross = information[np.ix_(rigid, rest)]
    other = information[np.ix_(rest, rest)] + np.eye(len(rest))
    return information[np.ix_(rigid, rigid)] - cross @ np.linalg.solve(other, cross.T)


def base_space(robot: RobotModel, belief: Belief) -> Array:
    """Orthonormal basis (m, base) of the bodies' coordinates and rotors that torques of some motion depend on."""
    gram = np.zeros((len(rigid_unknowns(belief)),) * 2)
    generator = np.random.default_rng(0)
    low = np.where(np.isfinite(robot.lower), robot.lower, -np.pi)
    high = np.where(np.isfinite(robot.upper), robot.upper, np.pi)
    q = generator.uniform(low, high, (RANDOM_STATES, robot.na))
    v, a = generator.normal(size=(2, *q.shape))
    links = link_regressor(robot, q, v, 3.0 * a)
    by_x = belief.bodies.jacobian(np.zeros(belief.bodies.size))
    for j in range(robot.na):
        rotors = np.zeros((RANDOM_STATES, robot.na))
        rotors[:, j] = 3.0 * a[:, j] * belief.drive_sd[j, 0]
        columns = np.column_stack([links[:, j] @ by_x, rotors])
        gram += columns.T @ columns / max(float(np.mean(columns**2)), 1e-300)
    values, axes = np.linalg.eigh(gram)
    return axes[:, values > RANK * values[-1]]
