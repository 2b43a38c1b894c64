"""A weighted robust fit of inertial parameters, drives and torque constants to measured torques.

    minimise  sum_j sum_k w_jk (y_jk - g_j (Y_jk theta(x) + F_jk phi_j + L_jk l))^2 + |belief|^2

y: torques, N·m, with g = 1, or motor currents, A, with g = 1 / torque per ampere. theta(x): parameters of physically
possible bodies (`pseudo_inertia`). phi_j: rotor, friction and offset of the joint (`regressor.DRIVE`). l: lean of the
base. Weights are Huber's divided by the joint's noise variance and by the correlation length of its residual, so that
1,000 rows of one error count as one. As the model is linear in theta, phi and l, each joint's rows are reduced once to
a triangle (QR), and a step is cheap.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, solve_triangular
from scipy.optimize import lsq_linear

from contact_id_controller.identification.pseudo_inertia import COORDINATES, Bodies, believed
from contact_id_controller.identification.regressor import (
    BACKWARDS,
    BREAKAWAY,
    FORWARDS,
    OFFSET,
    WAVES,
    DriveShape,
    drive_regressor,
    leaning_torques,
    link_regressor,
    stated_parameters,
)
from contact_id_controller.identification.smoothing import Motion, still
from contact_id_controller.robot import RobotModel

Array = NDArray[np.float64]

HUBER = 1.345
"""Residual over noise from which on rows are down-weighted: 95 % efficient for normal noise."""

ROUNDS, SETTLED = 12, 0.05
"""Largest number of updates of weights and prior deviations; relative change at which they have converged."""

TOLERANCE, MOST_STEPS = 1e-5, 60
"""Convergence tolerance on a step and, relative, on the sum of squares; largest number of steps per set of weights."""

RANK = 1e-6
"""Pivots below this share of the largest are 0."""

TRUST, MOST_TRUST, LEAST_TRUST = 0.3, 0.1, 3.0
"""Initial standard deviation of a body's coordinates about the description; bounds of its estimate from the log. A mass
that is off by a tenth is .1 away."""

STUBBORN = 5.0
"""Number of coordinates that the log must determine before it weighs as much as the initial deviation."""

SURE = 3.0
"""Standard deviations from 0 at which a slope and its sign are significant."""

ASYMMETRY = 0.3
"""Standard deviation of the difference of viscous friction forwards and backwards, and of the offset, as a share of that
of friction."""

LEAN_RAD = 0.03
"""Prior standard deviation of a base's roll and pitch, which are 0 in descriptions."""

BY_ANGLE, LEAST_BY_ANGLE, MOST_BY_ANGLE = 0.1, 0.01, 1.0
"""Initial size of a torque that depends on the joint's angle, as a share of the joint's torques; bounds of its estimate
from the log."""

GAIN, DESCRIBED = 0.5, 0.1
"""Standard deviation of the logarithm of a torque constant that the description does not explain, and the least one if
it does: currents do not determine the scale, the description's masses do."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """A motion as linear equations.

    Attributes:
        links (n, na, 10 nb), drives (na, n, 6 + WAVES): regressors.  leaning (n, na, 2): N·m per unit of lean beyond
            that in
        the robot's gravity.  measured (n, na): N·m or A; NaN is ignored.
    """

    links: Array
    drives: Array
    leaning: Array
    measured: Array

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        motion: Motion,
        shapes: Sequence[DriveShape],
        bodies: Array | None = None,
    ) -> Rows:
        """The equations of a motion.

        Args:
            robot, motion: its joints in the same order.  shapes: of each joint's drive.
            bodies: (10 nb,) inertial parameters, as of ``link_regressor``, for the torques due to lean; None: no lean.
        """
        links = link_regressor(robot, motion.q, motion.v, motion.a)
        leaning = np.zeros((*motion.q.shape, 2))
        if bodies is not None:
            leaning = leaning_torques(robot, motion.q, bodies)
        return cls(links, drives_of(motion, shapes), leaning, motion.torque)

    def only(self, which: NDArray[np.bool_]) -> Rows:
        """The same rows, with only the measurements at ``which`` (n, na)."""
        return dataclasses.replace(self, measured=np.where(which, self.measured, np.nan))

    def predicted(self, model: Parameters) -> Array:
        """Predicted torques, N·m, or currents, A, (n, na)."""
        torque = self.links @ model.bodies
        torque += np.einsum("jnk,jk->nj", self.drives, model.drives) + self.leaning @ model.lean
        return torque * model.gains


def drives_of(motion: Motion, shapes: Sequence[DriveShape]) -> Array:
    """Regressors of all drives, (na, n, 6 + WAVES)."""
    channels = zip(motion.q.T, motion.v.T, motion.a.T, shapes)
    found = np.array([drive_regressor(*each) for each in channels])
    found[still(motion), :, :OFFSET] = 0.0  # noise of a speed is no information on friction
    return found


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Parameters of the torque model.

    Attributes:
        bodies: (10 nb,), Pinocchio's order.  drives: (na, 6 + WAVES), see `DRIVE`.  gains: (na,), measured unit per
            N·m.
        lean: (2,), share of gravity along x and y of the world, beyond that of the robot.
    """

    bodies: Array
    drives: Array
    gains: Array
    lean: Array


@dataclasses.dataclass(frozen=True)
class Belief:
    """The prior: what is known without the log, with standard deviations.

    Attributes:
        bodies: of the description.  body_sd (nb,): of each coordinate of a body, relative (`pseudo_inertia`).
        drives, drive_sd: (na, 6 + WAVES), in units of the measurement, so that they are independent of the gains.
        lean: (2,), already in the robot's gravity.  log_gains, log_gain_sd: (na,).
        signs: (na,), of the gains: drives may have the opposite sign.  in_amperes: whether gains are fitted.
    """

    bodies: Bodies
    body_sd: Array
    drives: Array
    drive_sd: Array
    lean: Array
    log_gains: Array
    log_gain_sd: Array
    signs: Array
    in_amperes: bool

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.gains.start + self.in_amperes * len(self.drives)

    @property
    def leans(self) -> slice:
        """Slice of the lean in the unknowns, behind bodies and drives."""
        start = self.bodies.size + self.drives.size
        return slice(start, start + 2)

    @property
    def gains(self) -> slice:
        """Slice of the gains in the unknowns; beyond their end if none are fitted."""
        return slice(self.leans.stop, self.leans.stop + len(self.drives))

    def parameters(self, unknown: Array) -> Parameters:
        """The model's parameters for unknowns (size,)."""
        x, drives, log_gains = self.split(unknown)
        gains = np.exp(log_gains)
        drives /= gains[:, None]
        friction = drives[:, :OFFSET]  # a rounding step below 0, see `_least_squares`
        drives[:, :OFFSET] = np.maximum(friction, 0.0)
        lean = LEAN_RAD * unknown[self.leans] - self.lean
        return Parameters(self.bodies.parameters(x), drives, self.signs * gains, lean)

    def split(self, unknown: Array) -> tuple[Array, Array, Array]:
        """Coordinates of bodies (10 nb,), drives (na, 6 + WAVES) in their units, logarithms of gains (na,)."""
        nb, nd = self.bodies.size, self.drives.size
        drives = self.drives + self.drive_sd * unknown[nb : nb + nd].reshape(self.drives.shape)
        log_gains = self.log_gains
        if self.in_amperes:
            log_gains = log_gains + self.log_gain_sd * unknown[self.gains]
        return unknown[:nb] * np.repeat(self.body_sd, COORDINATES), drives, log_gains


def belief_of(robot: RobotModel, motion: Motion, in_amperes: bool) -> Belief:
    """The prior: from a description, and from the log's scales for what it does not state.

    Scales: friction and offset of a joint by its torques, viscous friction by its speeds too, rotors by its
    accelerations.
    """
    stated = stated_parameters(robot)
    pseudo = believed(stated, _radius(robot))
    bodies = Bodies(pseudo)
    rows = Rows.of(robot, motion, [DriveShape(w) for w in robot.motors.friction_speed_rad_s])
    log_gains, log_gain_sd, signs = np.zeros(robot.na), np.ones(robot.na), np.ones(robot.na)
    if in_amperes:
        torque = rows.links @ bodies.parameters(np.zeros(bodies.size))
        log_gains, log_gain_sd, signs = _believed_gains(rows, torque)
    known = np.isfinite(motion.torque)
    squares = np.where(known, motion.torque, 0.0) ** 2
    size = np.sqrt(squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1))
    size = np.where(size > 0.0, size, max(*size, 1e-9))
    speed, change = (np.sqrt(np.mean(each**2, axis=0)) for each in (motion.v, motion.a))
    speed, change = (np.maximum(each, 1e-3 * max(each.max(), 1e-9)) for each in (speed, change))
    gains, motors = np.exp(log_gains), robot.motors
    viscous = motors.viscous_friction_nm_s_rad * gains
    rotor, dry = motors.rotor_inertia_kg_m2 * gains, motors.dry_friction_nm * gains
    nothing = np.zeros((robot.na, 2 + WAVES))
    drives = np.column_stack([rotor, dry, viscous, viscous, nothing])
    spread = np.column_stack(
        [size / change, size, size / speed, size / speed, size, ASYMMETRY * size]
    )
    spread = np.column_stack([spread, np.tile(BY_ANGLE * size, (WAVES, 1)).T])
    body_sd, lean = np.full(len(stated), TRUST), np.zeros(2)
    return Belief(bodies, body_sd, drives, spread, lean, log_gains, log_gain_sd, signs, in_amperes)


def _believed_gains(rows: Rows, torque: Array) -> tuple[Array, Array, Array]:
    """Prior of the gains: logarithms of currents per torque, their standard deviations, and signs, (na,) each.

    Each joint's slope, fitted with friction, counts with its standard error; a joint whose torques the description
    hardly explains gets the typical slope.
    """
    slopes, errors = described_slopes(rows, torque)
    signs = np.where(slopes < -SURE * errors, -1.0, 1.0)
    slopes = signs * slopes
    sound = np.isfinite(slopes) & (slopes > SURE * errors)
    typical = float(np.exp(np.mean(np.log(slopes[sound])))) if sound.any() else 1.0
    relative = np.where(sound, errors / np.where(sound, slopes, 1.0), GAIN)
    return np.log(np.where(sound, slopes, typical)), np.hypot(DESCRIBED, relative), signs


def described_slopes(rows: Rows, torque: Array) -> tuple[Array, Array]:
    """Slopes of measured over described torques (n, na), fitted with friction; and their standard errors, (na,)."""
    slopes, errors = np.full(torque.shape[1], np.nan), np.full(torque.shape[1], np.nan)
    for j, measured in enumerate(rows.measured.T):
        valid = np.isfinite(measured)
        if valid.sum() < 20:
            continue
        columns = np.column_stack([torque[:, j], rows.drives[j]])[valid]
        weights = np.linalg.lstsq(columns, measured[valid], rcond=None)[0]
        residual = measured[valid] - columns @ weights
        variance = np.var(residual) * _persistence(residual)
        slopes[j] = weights[0]
        errors[j] = np.sqrt(variance * np.linalg.pinv(columns.T @ columns)[0, 0])
    return slopes, errors


def _radius(robot: RobotModel) -> float:
    """A tenth of the mean distance between joints, m: a size for links without stated inertia."""
    lengths = [np.linalg.norm(place.translation) for place in list(robot.model.jointPlacements)[1:]]
    return 0.1 * max(float(np.mean(lengths)), 1e-3)


@dataclasses.dataclass(frozen=True)
class Fit:
    """The result of a fit.

    Attributes:
        parameters: see `Parameters`.  belief: the prior.  unknown: (size,), in standard deviations of the prior.
        information: (size, size), of the log alone, on the unknowns.  noise: (na,), unit of the measurement.
        persistence: (na,), correlation length of a residual, rows.
        scale: (na,), slope of measured over described torques, fitted with friction; NaN where it is not significant.
    """

    parameters: Parameters
    belief: Belief
    unknown: Array
    information: Array
    noise: Array
    persistence: Array
    scale: Array

    @property
    def covariance(self) -> Array:
        """Posterior covariance (size, size) of the unknowns, from log and prior."""
        prior = _prior(self.belief)
        return np.asarray(np.linalg.inv(self.information + prior.T @ prior), dtype=np.float64)


def _prior(belief: Belief) -> Array:
    """Rows (m, size) whose sum of squares is the cost of the prior."""
    extra = []
    start, per = belief.bodies.size, belief.drives.shape[1]
    for j in range(len(belief.drives)):
        row = np.zeros(belief.size)
        row[start + per * j + FORWARDS] = 1.0 / ASYMMETRY
        row[start + per * j + BACKWARDS] = -1.0 / ASYMMETRY
        extra.append(row)
    return np.vstack([np.eye(belief.size), *extra])


def fit(rows: Rows, belief: Belief) -> Fit:
    """Fit the parameters, all physically possible, to the measurements.

    A joint without measurements keeps its prior.
    """
    rows = dataclasses.replace(rows, measured=belief.signs * rows.measured)
    valid = np.isfinite(rows.measured)
    free = rows.measured - explained_freely(rows)
    noise = _noise(free, np.ones(free.shape[1]))
    persistence = np.array([_persistence(each) for each in free.T])
    weights, unknown = np.ones(valid.shape), np.zeros(belief.size)
    for _ in range(ROUNDS):
        triangles = reduced(rows, np.where(valid, weights / (noise**2 * persistence), 0.0))
        unknown = _least_squares(triangles, belief, unknown)
        residual = rows.measured - belief.signs * rows.predicted(belief.parameters(unknown))
        scale = _noise(residual, noise)
        size = np.abs(np.where(valid, residual, 0.0)) / scale
        weights = np.where(size > HUBER, HUBER / np.maximum(size, HUBER), 1.0)
        before = belief.body_sd
        belief, unknown = _trusted(belief, unknown, _data_jacobian(triangles, belief, unknown))
        if np.abs(np.log(belief.body_sd / before)).max() < SETTLED:
            break
    persistence = np.array([_persistence(each) for each in residual.T])
    triangles = reduced(rows, np.where(valid, weights / (scale**2 * persistence), 0.0))
    jacobian = _data_jacobian(triangles, belief, unknown)
    parameters = belief.parameters(unknown)
    described = rows.links @ belief.bodies.parameters(np.zeros(belief.bodies.size))
    slopes, errors = described_slopes(rows, described)
    slopes = np.where(np.abs(slopes) > SURE * errors, belief.signs * slopes, np.nan)
    return Fit(parameters, belief, unknown, jacobian.T @ jacobian, scale, persistence, slopes)


def explained_freely(rows: Rows) -> Array:
    """Least-squares prediction (n, na) of each joint's measurements by its own regressors, without a prior."""
    found = np.full(rows.measured.shape, np.nan)
    for j, measured in enumerate(rows.measured.T):
        valid = np.isfinite(measured)
        columns = np.column_stack([rows.links[:, j], rows.drives[j], rows.leaning[:, j]])
        columns = columns[:, np.abs(columns).max(axis=0) > 1e-9]
        columns /= np.linalg.norm(columns, axis=0)
        if valid.any():
            # By QR: the SVD of numpy's lstsq does not converge on every log.
            weights = lstsq(columns[valid], measured[valid], RANK, lapack_driver="gelsy")[0]
            found[:, j] = columns @ weights
    return found


def _trusted(belief: Belief, unknown: Array, jacobian: Array) -> tuple[Belief, Array]:
    """Update the prior's standard deviations from the fit (MacKay's evidence).

    Per body, the deviation of its coordinates from the description; per joint, the size of the torque by its angle.

    Args:
        jacobian: of the log's reduced rows, (m, size).

    Returns:
        The belief with these deviations, and the same unknowns in their units.
    """
    prior = _prior(belief)
    covariance = np.linalg.inv(jacobian.T @ jacobian + prior.T @ prior)
    nb = belief.bodies.size
    determined = 1.0 - np.diag(covariance)[:nb].reshape(-1, COORDINATES)
    moved = unknown[:nb].reshape(-1, COORDINATES)
    size = np.sum((moved * belief.body_sd[:, None]) ** 2, axis=1) + STUBBORN * TRUST**2
    body_sd = np.sqrt(size / (np.sum(determined, axis=1) + STUBBORN))
    body_sd = np.clip(body_sd, MOST_TRUST, LEAST_TRUST)
    unknown, share = unknown.copy(), np.diag(covariance)
    unknown[:nb] *= np.repeat(belief.body_sd / body_sd, COORDINATES)
    drives = unknown[nb : belief.leans.start].reshape(belief.drives.shape)  # a view
    determined = 1.0 - share[nb : belief.leans.start].reshape(belief.drives.shape)[:, -WAVES:]
    drive_sd, largest = belief.drive_sd.copy(), belief.drive_sd[:, BREAKAWAY]
    size = np.sum((drives * drive_sd)[:, -WAVES:] ** 2, axis=1)
    size += STUBBORN * (BY_ANGLE * largest) ** 2
    size = np.sqrt(size / (np.sum(determined, axis=1) + STUBBORN)) / largest
    size = largest * np.clip(size, LEAST_BY_ANGLE, MOST_BY_ANGLE)
    drives[:, -WAVES:] *= (drive_sd[:, -1] / size)[:, None]
    drive_sd[:, -WAVES:] = size[:, None]
    return dataclasses.replace(belief, body_sd=body_sd, drive_sd=drive_sd), unknown


def reduced(rows: Rows, weights: Array) -> list[Array]:
    """For each joint the triangle R of the QR factorisation of its weighted rows (links, drive, lean, measured)."""
    found = []
    for j in range(rows.measured.shape[1]):
        used = weights[:, j] > 0.0
        columns = np.column_stack(
            [
                rows.links[used, j],
                rows.drives[j, used],
                rows.leaning[used, j],
                rows.measured[used, j],
            ]
        )
        columns *= np.sqrt(weights[used, j])[:, None]
        found.append(np.asarray(np.linalg.qr(columns, mode="r"), dtype=np.float64))
    return found


def _least_squares(triangles: Sequence[Array], belief: Belief, start: Array) -> Array:
    """Unknowns (size,) with the least sum of squares, friction and rotors not negative: bounded Gauss-Newton steps."""
    prior = _prior(belief)
    low = np.full(belief.size, -np.inf)
    bound = -belief.drives / belief.drive_sd
    bound[:, OFFSET:] = -np.inf
    low[belief.bodies.size : belief.leans.start] = bound.ravel()

    def residuals(unknown: Array) -> Array:
        found = belief.parameters(unknown)
        parts = []
        for j, triangle in enumerate(triangles):
            torque = np.concatenate([found.bodies, found.drives[j], found.lean])
            parts.append(triangle @ np.append(abs(found.gains[j]) * torque, -1.0))
        return np.concatenate([*parts, prior @ unknown])

    unknown = np.maximum(start, low)
    residual = residuals(unknown)
    for _ in range(MOST_STEPS):
        jacobian = np.vstack([_data_jacobian(triangles, belief, unknown), prior])
        step = _bounded_step(jacobian, residual, low - unknown)
        cost, share = residual @ residual, 1.0
        while share > TOLERANCE:
            new = np.maximum(unknown + share * step, low)
            residual = residuals(new)
            if residual @ residual <= cost:
                break
            share *= 0.5
        else:
            return unknown
        moved, unknown = np.abs(new - unknown).max(), new
        if cost - residual @ residual < TOLERANCE * cost or moved < TOLERANCE:
            break
    return unknown


def _bounded_step(jacobian: Array, left: Array, low: Array) -> Array:
    """The step (m,), not below ``low`` (m,), that minimises |J step + left|, left the residual (n,).

    With the unbounded unknowns first in the triangle of a QR factorisation, its last rows are a small problem for the
    bounded ones alone.
    """
    bounded = np.isfinite(low)
    order = np.concatenate([np.flatnonzero(~bounded), np.flatnonzero(bounded)])
    count = int(np.sum(~bounded))
    columns = np.column_stack([jacobian[:, order], left])
    table = np.asarray(np.linalg.qr(columns, mode="r"), dtype=np.float64)[: len(order)]
    first, last = table[:count], table[count:]
    below = np.minimum(low[bounded], -1e-12)
    bounded_part = lsq_linear(last[:, count:-1], -last[:, -1], (below, np.inf), method="bvls").x
    free_part = solve_triangular(
        first[:, :count], -first[:, -1] - first[:, count:-1] @ bounded_part
    )
    step = np.zeros(len(order))
    step[order] = np.concatenate([free_part, bounded_part])
    return step


def _data_jacobian(triangles: Sequence[Array], belief: Belief, unknown: Array) -> Array:
    """Derivatives of the log's reduced rows by the unknowns."""
    x, _, log_gains = belief.split(unknown)
    by_x = belief.bodies.jacobian(x) * np.repeat(belief.body_sd, COORDINATES)
    bodies, gains = belief.bodies.parameters(x), np.exp(log_gains)
    nb, per = belief.bodies.size, belief.drives.shape[1]
    lean = LEAN_RAD * unknown[belief.leans] - belief.lean
    blocks = []
    for j, triangle in enumerate(triangles):
        block = np.zeros((len(triangle), belief.size))
        block[:, :nb] = gains[j] * triangle[:, :nb] @ by_x
        own = slice(nb + per * j, nb + per * (j + 1))
        block[:, own] = triangle[:, nb : nb + per] * belief.drive_sd[j]
        leaning = triangle[:, nb + per : nb + per + 2]
        block[:, belief.leans] = gains[j] * LEAN_RAD * leaning
        if belief.in_amperes:
            torque = triangle[:, :nb] @ bodies + leaning @ lean
            block[:, belief.gains.start + j] = belief.log_gain_sd[j] * gains[j] * torque
        blocks.append(block)
    return np.vstack(blocks)


def reduced_information(fit: Fit, rows: Rows) -> Array:
    """Information (size, size) on the unknowns in rows without measurements, with the noise of a fit."""
    weights = np.broadcast_to(1.0 / (fit.noise**2 * fit.persistence), rows.measured.shape)
    jacobian = _data_jacobian(reduced(rows, weights), fit.belief, fit.unknown)
    information: Array = jacobian.T @ jacobian
    return information


def _noise(residual: Array, otherwise: Array) -> Array:
    """Robust standard deviation (na,) of residuals (n, na); ``otherwise`` (na,) for a joint without any."""
    found = np.array(otherwise)
    for j, column in enumerate(residual.T):
        sound = column[np.isfinite(column)]
        if sound.size:
            found[j] = max(1.4826 * np.median(np.abs(sound)), 1e-12)
    return found


def _persistence(residual: Array) -> float:
    """Correlation length of a residual, rows: 1 + 2 sum of its autocorrelation up to its first small value."""
    sound = residual[np.isfinite(residual)]
    if len(sound) < 20 or not sound.any():
        return 1.0
    sound = sound - sound.mean()
    power = np.abs(np.fft.rfft(sound, 2 * len(sound))) ** 2
    correlation = np.fft.irfft(power)[: len(sound) // 4]
    correlation /= correlation[0]
    ended = np.flatnonzero(correlation < 0.05)
    return float(1.0 + 2.0 * correlation[1 : ended[0] if ended.size else None].sum())
