"""Foot forces and contact without foot sensors, on walks of the controller, against the simulator's truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_id_controller.estimation.filters import LowPass
from contact_id_controller.estimation.pipeline import EstimationPipeline, PipelineSettings
from contact_id_controller.simulation.sensor_noise import SensorNoise
from experiments.benchmark.sensed_walk import SensedWalk, readings

BEGIN_S = 0.5  # left out: filters and walk begin
LASTS_S, SOON_S, NEAR_S = (
    0.02,
    0.06,
    0.03,
)  # a touch-down lasts; is found soon; is false if none is near
UNFILTERED_HZ = 1e9


class ForceErrors(NamedTuple):
    """How far estimated foot forces are from the truth.

    raw, filtered: rms of the force error over all feet, of the weight, against the truth and
        against the truth that passed the same filter.  contact: share of samples with the right
        contact.  touch_downs, missed, false: numbers.  delay_s: median of those found.
    """

    raw: float
    filtered: float
    contact: float
    touch_downs: int
    missed: int
    false: int
    delay_s: float


def foot_forces(
    walk: SensedWalk,
    noise: SensorNoise | str,
    seed: int = 0,
    *,
    settings: PipelineSettings | None = None,
) -> ForceErrors:
    """Errors of a walk's foot forces as the pipeline estimates them from IMU, encoders and efforts.

    The base's true orientation turns them into the world: what is judged are forces.
    """
    settings = settings or PipelineSettings(period_s=walk.period_s)
    pipeline = EstimationPipeline(walk.robot, walk.feet, walk.radius_m, settings)
    low_pass = LowPass(walk.forces[0].size, settings.cutoff_hz, walk.period_s)
    rotations, found, contact, lasts = walk.rotations, [], [], []
    for k, reading in readings(walk, noise, seed):
        estimate = pipeline.step(
            reading.time_s, reading.angular_velocity, reading.linear_acceleration,
            reading.position, reading.velocity, reading.effort,
        )  # fmt: skip
        if k >= 0:
            found.append(estimate.forces @ rotations[k].T)
            contact.append(estimate.contact.copy())
            lasts.append(low_pass(walk.forces[k].ravel()).copy())
    begin = round(BEGIN_S / walk.period_s)
    found, contact = np.array(found)[begin:], np.array(contact)[begin:]
    truth = walk.forces[begin:]
    filtered = np.array(lasts)[begin:].reshape(truth.shape)
    touches = truth[:, :, 2] > 0.0
    return ForceErrors(
        _rms(found - truth) / walk.robot.weight,
        _rms(found - filtered) / walk.robot.weight,
        float((contact == touches).mean()),
        *touch_downs(contact, touches, walk.period_s),
    )


def _rms(errors):
    return float(np.sqrt((errors**2).sum(axis=2).mean()))


def touch_downs(
    contact: np.ndarray, touches: np.ndarray, period_s: float
) -> tuple[int, int, int, float]:
    """Touch-downs, those missed, false ones and the median delay s of those found.

    contact, touches (samples, feet) bool: estimated and true. A touch-down is contact that lasts after as
    long without; it is found if the estimate says so soon; one that is estimated is false if there is no
    contact nearby.
    """
    lasts, soon, near = (round(s / period_s) for s in (LASTS_S, SOON_S, NEAR_S))
    delays, missed, false = [], 0, 0
    for said, true in zip(contact.T, touches.T):
        for k in np.flatnonzero(true[1:] & ~true[:-1]) + 1:
            if k < lasts or k + soon > len(true):
                continue
            if true[k : k + lasts].all() and not true[k - lasts : k].any():
                at = np.flatnonzero(said[k : k + soon])
                missed += not len(at)
                delays += [at[0] * period_s] if len(at) else []
        for k in np.flatnonzero(said[1:] & ~said[:-1]) + 1:
            false += not true[max(0, k - near) : k + near].any()
    return len(delays) + missed, missed, false, float(np.median(delays)) if delays else np.nan
