"""Compares efforts or currents of a fixed base with the model's inverse dynamics."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from contact_id_controller.diagnosis.even_samples import EvenSamples, interpolated
from contact_id_controller.logs.log import Array
from contact_id_controller.robot import FRICTION_SPEED, RobotModel

ROWS = 300
"""Number of samples that are evaluated, spread over the log: more take longer, with the same result."""

OUTLIER = 2.0
"""Residuals beyond this many standard deviations are down-weighted (Huber)."""

ROUNDS = 3

MOVES_RAD = 0.05
"""Range of positions from which a joint counts as moving."""

SMOOTH_S, LEAST_SAMPLES, TRUNCATED = 0.03, 1.5, 6.0
"""Standard deviation of the Gaussian filter of all channels, s, and least one in samples; half width in standard
deviations: truncation of a second derivative adds a share of the position itself."""

CLEAR = 8.0
"""Least ratio of a joint's model torque to its residual with which its efforts are evidence on the model."""

RUBS = FRICTION_SPEED * np.array([0.1, 1.0, 10.0])
"""Widths, rad/s, of the sign change of dry friction: together they fit any friction that depends on the speed."""


@dataclasses.dataclass(frozen=True)
class Motion:
    """The data of an evaluation: positions, velocities, accelerations and measured efforts (n, na), and the model.

    Attributes:
        rubbing: (n, na, len(RUBS)), dry friction of each width of `RUBS`, between -1 and 1. It uses the measured
            velocity also where a hypothesis scales that: friction is no evidence of a gear ratio.
        currents: whether ``effort`` has currents, A, whose torque constants are not known.
        time: (n,) s.
    """

    q: Array
    v: Array
    a: Array
    effort: Array
    rubbing: Array
    model: pin.Model
    currents: bool
    time: Array

    def moved_by(self, times: Array) -> Motion:
        """The motion of each joint times a factor (na,); friction remains unchanged."""
        return dataclasses.replace(
            self,
            q=self.q * times,
            v=self.v * times,
            a=self.a * times,
            rubbing=self.rubbing * np.sign(times)[:, None],
        )

    def moved_as(self, order: list[int]) -> Motion:
        """The motion of joints in another order, with unchanged efforts."""
        return dataclasses.replace(
            self,
            q=self.q[:, order],
            v=self.v[:, order],
            a=self.a[:, order],
            rubbing=self.rubbing[:, order],
        )


@dataclasses.dataclass(frozen=True)
class JointFit:
    """A fit of the joints' efforts by the model, friction, offset and rotor inertia.

    Attributes:
        residual: robust rms (na,).  gain: (na,) effort per torque of the model.
        friction: (na, len(RUBS) + 1) dry and viscous, in units of the effort.  offset: (na,).  inertia: (na,) of
            rotors.
        model_torque: (n, na).  unexplained: (n, na).
    """

    residual: Array
    gain: Array
    friction: Array
    offset: Array
    inertia: Array
    model_torque: Array
    unexplained: Array

    @property
    def cost(self) -> float:
        """Sum of the logarithms of the residuals: halving one of them is worth .7."""
        return float(np.sum(np.log(self.residual)))

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Joints (na,) whose efforts the model explains; friction or a wrong model dominates the others."""
        return np.asarray(self.gain * np.std(self.model_torque, axis=0) > CLEAR * self.residual)

    def cost_instead_of(self, before: JointFit) -> float:
        """The cost of a change: a smaller residual counts only for joints whose efforts the model then explains.

        Other residuals also fall with changes that are not the fault.
        """
        counts = self.clear | (self.residual > before.residual)
        return float(np.sum(np.log(np.where(counts, self.residual, before.residual))))

    def friction_at(self, speed: Array) -> Array:
        """Friction (na,) at a speed of each joint (na,), rad/s, in units of the effort."""
        return np.array(rubbed(np.tanh(speed[None, :, None] / RUBS), speed[None], self.friction)[0])


def rubbed(rubbing: Array, v: Array, friction: Array) -> Array:
    """Friction (n, na) of a motion: ``rubbing`` as in `Motion`, ``friction`` as in `JointFit`."""
    dry: Array = np.einsum("njw,jw->nj", rubbing, friction[:, :-1])
    return dry + v * friction[:, -1]


def motion_of(samples: EvenSamples, robot: RobotModel, rows: int = ROWS) -> Motion | None:
    """The samples for an evaluation; None if neither efforts nor currents are measured.

    One zero-phase filter for all channels removes the same frequencies from motion and efforts.
    """
    measured = samples.effort if samples.effort is not None else samples.current
    good = np.flatnonzero(samples.good)
    if measured is None or len(good) < rows // 4:
        return None
    if not np.any(np.ptp(measured, axis=0) > 0.0):
        return None
    chosen = good[np.unique(np.linspace(0, len(good) - 1, rows).astype(int))]
    wide = max(SMOOTH_S / samples.period, LEAST_SAMPLES)

    def filtered(values: Array, derivative: int = 0) -> Array:
        smoothed: Array = gaussian_filter1d(
            values, wide, axis=0, order=derivative, truncate=TRUNCATED, mode="nearest"
        )[chosen]
        return smoothed / samples.period**derivative

    log = samples.log
    effort = log.effort if samples.effort is not None else log.current
    assert log.position is not None and effort is not None
    position = interpolated(samples, log.position)
    rubbing = [filtered(np.tanh(samples.velocity / speed)) for speed in RUBS]
    return Motion(
        filtered(position),
        filtered(position, 1),
        filtered(position, 2),
        filtered(interpolated(samples, effort)),
        np.stack(rubbing, axis=2),
        robot.model,
        samples.effort is None,
        samples.time[chosen],
    )


def explained(motion: Motion, cost: float) -> float:
    """Explained share of the efforts' variance for a model of this cost, geometric mean over moving joints.

    A small share has another reason than a fault: a base that is not held, or a contact.
    """
    spread = np.std(motion.effort, axis=0) + 1e-12
    moving = max(1, int(np.sum(np.ptp(motion.q, axis=0) > MOVES_RAD)))
    return float(1.0 - np.exp(2.0 * (cost - np.sum(np.log(spread))) / moving))


def model_torques(motion: Motion, robot: RobotModel) -> Array:
    """Inverse dynamics (n, na), N·m, of the rigid bodies, without rotors and friction."""
    model = motion.model
    data, torques = model.createData(), np.zeros(motion.q.shape)
    v, a = np.zeros(model.nv), np.zeros(model.nv)
    q = np.tile(robot.neutral(), (len(motion.q), 1))
    robot.put_joints(q, motion.q)
    for k, row in enumerate(q):
        v[robot.actuated], a[robot.actuated] = motion.v[k], motion.a[k]
        torques[k] = pin.rnea(model, data, row, v, a)[robot.actuated]
    return torques


def judged(
    motion: Motion,
    robot: RobotModel,
    free_gains: bool = False,
    torques: Array | None = None,
    centre_m: float = 0.0,
) -> JointFit:
    """Fit friction, offset and rotor inertia of each joint, robustly.

    Friction that would drive a joint is removed, so that it does not explain a wrong sign.

    Args:
        free_gains: whether a torque constant is fitted, too, where efforts are torques.
        torques: (n, na) of the rigid bodies, N·m; None: `model_torques`.
        centre_m: bound on errors of the centre of mass behind a joint: the torque that depends on
            sine and cosine of the joint's own angle is fitted, too, up to that size.
    """
    if torques is None:
        torques = model_torques(motion, robot)
    na = motion.q.shape[1]
    found = {name: np.zeros(na) for name in ("residual", "gain", "offset", "inertia")}
    friction, unexplained = np.zeros((na, len(RUBS) + 1)), np.zeros(motion.q.shape)
    limits = centre_m * weights(motion.model, robot)
    for j in range(na):
        v, free = motion.v[:, j], motion.currents or free_gains
        wanted = motion.effort[:, j] - (0.0 if free else torques[:, j])
        columns = [np.ones(len(v)), motion.a[:, j]]
        columns = [torques[:, j], *columns] if free else columns
        rubbing = np.column_stack([motion.rubbing[:, j], v])
        waves = np.column_stack([np.sin(motion.q[:, j]), np.cos(motion.q[:, j])])
        several = len(columns), rubbing.shape[1]

        def fitted(
            columns: list[Array],
            rubbing: Array = rubbing,
            waves: Array = waves,
            wanted: Array = wanted,
            limit: float = float(limits[j]),
        ) -> tuple[Array, Array, float]:
            table = np.column_stack([*columns, rubbing])
            if limit == 0.0:
                return _robust(table, wanted)
            values, _, _ = _robust(np.column_stack([table, waves]), wanted)
            wave, limit = values[-2:], limit * (abs(values[0]) if free else 1.0)
            wave = wave * min(1.0, limit / max(float(np.hypot(*wave)), 1e-12))
            return _robust(table, wanted - waves @ wave)

        values, residual, size = fitted(columns)
        if np.sum(rubbing @ values[-several[1] :] * v) < 0.0:
            values, residual, size = fitted(columns, np.zeros((len(v), 0)))
            values = np.append(values, np.zeros(several[1]))
        if free and values[0] < 0.0:  # a torque constant is positive
            values, residual, size = fitted(columns[1:])
            values = np.append(0.0, values)
        found["residual"][j] = size
        found["gain"][j] = values[0] if free else 1.0
        found["offset"][j], found["inertia"][j] = values[several[0] - 2 : several[0]]
        friction[j], unexplained[:, j] = values[-several[1] :], residual
    return JointFit(friction=friction, model_torque=torques, unexplained=unexplained, **found)


def weights(model: pin.Model, robot: RobotModel) -> Array:
    """Weight (na,), N, of the bodies that move with each joint."""
    found, size = np.zeros(model.nv), float(np.linalg.norm(model.gravity.linear))
    for k in range(1, model.njoints):
        moved = sum(model.inertias[each].mass for each in model.subtrees[k])
        found[model.idx_vs[k] : model.idx_vs[k] + model.nvs[k]] = size * moved
    return found[robot.actuated]


def _robust(columns: Array, wanted: Array) -> tuple[Array, Array, float]:
    """Robust least squares: coefficients, residuals, and their weighted rms."""
    weight, residual, size = np.ones(len(wanted)), wanted, 0.0
    values = np.zeros(columns.shape[1])
    floor = 1e-9 + 1e-6 * float(np.max(np.abs(wanted), initial=0.0))
    for _ in range(ROUNDS):
        values[:] = np.linalg.lstsq(columns * weight[:, None], wanted * weight, rcond=None)[0]
        residual = wanted - columns @ values
        size = 1.4826 * float(np.median(np.abs(residual))) + floor
        weight = np.sqrt(1.0 / np.maximum(1.0, np.abs(residual) / (OUTLIER * size)))
    return values, residual, float(np.sqrt(np.mean((residual * weight) ** 2))) + floor
