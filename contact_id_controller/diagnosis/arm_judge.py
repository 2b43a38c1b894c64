"""How well efforts or currents of a fixed base agree with the model's inverse dynamics."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin

from contact_id_controller.diagnosis.even_samples import EvenSamples
from contact_id_controller.logs.log import Array
from contact_id_controller.robot import FRICTION_SPEED, RobotModel

ROWS = 300
"""Samples that are judged: spread over the log, more change nothing but the time."""

OUTLIER = 2.0
"""Residuals beyond this many standard deviations count less (Huber)."""

ROUNDS = 3

MOVES_RAD = 0.05
"""Range from which a joint counts as one that moves."""


@dataclasses.dataclass(frozen=True)
class Motion:
    """What is judged: positions, velocities, accelerations and measured efforts (n, na), and the model.

    Attributes:
        currents: whether ``effort`` has currents, A, whose torque constants are not known.
        time: (n,) s.
    """

    q: Array
    v: Array
    a: Array
    effort: Array
    model: pin.Model
    currents: bool
    time: Array


@dataclasses.dataclass(frozen=True)
class JointFit:
    """What explains the efforts of the joints beside the model.

    Attributes:
        residual: rms (na,), outliers counted less.  gain: (na,) effort per torque of the model.
        friction: (na, 2) dry and viscous, in units of the effort.  offset: (na,).  inertia: (na,) of the rotors.
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
        """Sum of the logarithms of the residuals: what halves one of them is worth .7."""
        return float(np.sum(np.log(self.residual)))


def motion_of(samples: EvenSamples, robot: RobotModel, rows: int = ROWS) -> Motion | None:
    """The samples to judge by; None where nothing measures what the joints exert."""
    measured = samples.effort if samples.effort is not None else samples.current
    good = np.flatnonzero(samples.good)
    if measured is None or len(good) < rows // 4:
        return None
    if not np.any(np.ptp(measured, axis=0) > 0.0):
        return None
    chosen = good[np.unique(np.linspace(0, len(good) - 1, rows).astype(int))]
    return Motion(
        samples.position[chosen],
        samples.velocity[chosen],
        samples.acceleration[chosen],
        measured[chosen],
        robot.model,
        samples.effort is None,
        samples.time[chosen],
    )


def explained(motion: Motion, cost: float) -> float:
    """Part of the variance of the efforts that a model of this cost explains, in the geometric mean of what moves.

    What neither a fault nor the model explains is something else: a base that is not held, or a touch.
    """
    spread = np.std(motion.effort, axis=0) + 1e-12
    moving = max(1, int(np.sum(np.ptp(motion.q, axis=0) > MOVES_RAD)))
    return float(1.0 - np.exp(2.0 * (cost - np.sum(np.log(spread))) / moving))


def model_torques(motion: Motion, robot: RobotModel) -> Array:
    """Inverse dynamics (n, na) of the rigid bodies, rotors and friction left out, N·m."""
    model = motion.model
    data, torques = model.createData(), np.zeros(motion.q.shape)
    v, a = np.zeros(model.nv), np.zeros(model.nv)
    q = np.tile(robot.neutral(), (len(motion.q), 1))
    robot.put_joints(q, motion.q)
    for k, row in enumerate(q):
        v[robot.actuated], a[robot.actuated] = motion.v[k], motion.a[k]
        torques[k] = pin.rnea(model, data, row, v, a)[robot.actuated]
    return torques


def judged(motion: Motion, robot: RobotModel, free_gains: bool = False) -> JointFit:
    """Fit friction, offset and rotor inertia of each joint, robustly.

    A joint's friction opposes its motion: one that would drive it is left out, so that a wrong sign is not explained by it.

    Args:
        free_gains: whether also a torque constant is fitted where efforts are torques.
    """
    torques = model_torques(motion, robot)
    na = motion.q.shape[1]
    found = {name: np.zeros(na) for name in ("residual", "gain", "offset", "inertia")}
    friction, unexplained = np.zeros((na, 2)), np.zeros(motion.q.shape)
    for j in range(na):
        v, speed = motion.v[:, j], float(np.sqrt(np.mean(motion.v[:, j] ** 2)))
        columns = [np.ones(len(v)), motion.a[:, j]]
        rubbing = [np.tanh(v / FRICTION_SPEED), v]
        free = motion.currents or free_gains
        wanted = motion.effort[:, j] - (0.0 if free else torques[:, j])
        columns = [torques[:, j], *columns] if free else columns
        values, residual, size = _robust(np.column_stack([*columns, *rubbing]), wanted)
        taken = values[-2] * np.tanh(speed / FRICTION_SPEED) + values[-1] * speed
        if taken < 0.0:
            values, residual, size = _robust(np.column_stack(columns), wanted)
            values = np.append(values, [0.0, 0.0])
        if free and values[0] < 0.0:  # a torque constant is positive
            columns = columns[1:]
            values, residual, size = _robust(np.column_stack([*columns, *rubbing]), wanted)
            values = np.append(0.0, values)
        found["residual"][j] = size
        found["gain"][j] = values[0] if free else 1.0
        found["offset"][j], found["inertia"][j] = values[-4], values[-3]
        friction[j], unexplained[:, j] = values[-2:], residual
    return JointFit(friction=friction, model_torque=torques, unexplained=unexplained, **found)


def _robust(columns: Array, wanted: Array) -> tuple[Array, Array, float]:
    """Least squares in which outliers count less: coefficients, residuals, their weighted rms."""
    weight, residual, size = np.ones(len(wanted)), wanted, 0.0
    values = np.zeros(columns.shape[1])
    floor = 1e-9 + 1e-6 * float(np.max(np.abs(wanted), initial=0.0))
    for _ in range(ROUNDS):
        values[:] = np.linalg.lstsq(columns * weight[:, None], wanted * weight, rcond=None)[0]
        residual = wanted - columns @ values
        size = 1.4826 * float(np.median(np.abs(residual))) + floor
        weight = np.sqrt(1.0 / np.maximum(1.0, np.abs(residual) / (OUTLIER * size)))
    return values, residual, float(np.sqrt(np.mean((residual * weight) ** 2))) + floor
