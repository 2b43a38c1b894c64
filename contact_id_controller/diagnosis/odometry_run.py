"""Runs the base odometry on recorded samples, and compares it with a measured base."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from contact_id_controller.diagnosis.contact_checks import in_newtons
from contact_id_controller.estimation.base_estimate import LOST, BaseEstimate
from contact_id_controller.estimation.base_odometry import BaseOdometry
from contact_id_controller.estimation.contact_detector import BearingFeet, ContactDetector
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.estimation.pipeline_settings import PipelineSettings
from contact_id_controller.logs.log import Array

HALF_WINDOW_S = 0.1
"""Half width of the differences that give velocities: motion capture arrives in bursts."""

LOWEST_M = 0.002
"""Above the lowest foot, up to which others touch, too: two that stand differ by what zeros of joints are off, one that
is lifted soon by more."""

LAST_S = 0.5
"""Duration at the end over which the median drift is taken: a log may end in the middle of a step."""


class Steps(Protocol):
    """Function that steps the odometry with sample k; returns its result, and loaded feet (m,) bool."""

    def __call__(self, k: int) -> tuple[BaseEstimate, NDArray[np.bool_]]: ...


@dataclasses.dataclass(frozen=True)
class Samples:
    """Measurements at n times.

    Attributes:
        time: (n,), s.  position, velocity: (n, na), rad, rad/s, in the robot's order.
        gyro, accel: (n, 3), rad/s, m/s² including gravity, in the IMU's axes; NaN: no sample.
        before: s, from the sample before the first one to it.
    """

    time: Array
    position: Array
    velocity: Array
    gyro: Array
    accel: Array
    before: float


def by_loads(odometry: BaseOdometry, samples: Samples, loads: Array, weight: float) -> Steps:
    """Steps of an odometry whose feet touch by their loads, with the thresholds that the pipeline has by default.

    Of those that carry most the lowest are used. Sensors that count something else than newtons may differ in their
    gains: of such all that touch count as carrying.

    Args:
        loads: (n, feet), normal forces in any unit and with any sign, in the order of the odometry's feet.
        weight: of the robot, N; it is what the feet carry on average where that is something else than newtons.
    """
    carried = float(loads.sum(axis=1).mean())
    loads = loads if carried >= 0.0 else -loads
    known = in_newtons(abs(carried) / weight)
    weight = weight if known else abs(carried)
    count = len(odometry.feet)
    defaults, contact, bearing = PipelineSettings(), ContactDetector(count), BearingFeet(count)
    contact.on_n = defaults.contact_on_share * weight
    contact.off_n = defaults.contact_off_share * weight
    steps, lowest = _steps_of(samples), _lowest_of(odometry)

    def step(k: int) -> tuple[BaseEstimate, NDArray[np.bool_]]:
        t = float(samples.time[k])
        contact.take_forces(loads[k], t)
        touches = contact.at(t) & (bearing.among(loads[k]) | (not known))
        touches = lowest(samples.position[k], touches)
        return odometry.step(float(steps[k]), *_row(samples, k), touches), touches

    return step


def by_heights(odometry: BaseOdometry, samples: Samples) -> Steps:
    """Steps of an odometry whose feet touch where they are lowest, for logs that tell nothing of contact."""
    steps, lowest = _steps_of(samples), _lowest_of(odometry)
    every = np.ones(len(odometry.feet), dtype=bool)

    def step(k: int) -> tuple[BaseEstimate, NDArray[np.bool_]]:
        touches = lowest(samples.position[k], every)
        return odometry.step(float(steps[k]), *_row(samples, k), touches), touches

    return step


def _steps_of(samples: Samples) -> Array:
    """Time of each step (n,), s."""
    return np.diff(samples.time, prepend=samples.time[0] - samples.before)


def _row(samples: Samples, k: int) -> tuple[Array, Array, Array, Array]:
    """What one step of the odometry takes of a sample."""
    return samples.gyro[k], samples.accel[k], samples.position[k], samples.velocity[k]


def _lowest_of(odometry: BaseOdometry) -> Callable[[Array, NDArray[np.bool_]], NDArray[np.bool_]]:
    """Which of some feet (feet,) bool are lowest with the joints at (na,), rad, along up as the odometry has it.

    Before it begins, all. Feet have one radius.
    """
    robot, estimate = odometry.robot, odometry.estimate
    data, frames = robot.model.createData(), [robot.frame_id(name) for name in odometry.feet]

    def lowest(position: Array, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if not estimate.ready or among.sum() < 2:
            return among.copy()
        q = robot.configuration([0, 0, 0, 0, 0, 0, 1], position)
        pin.framesForwardKinematics(robot.model, data, q)
        up = estimate.rotation[2]
        heights = np.array([up @ data.oMf[frame].translation for frame in frames])
        return among & (heights < heights[among].min() + LOWEST_M)

    return lowest


def by_efforts(pipeline: EstimationPipeline, samples: Samples, effort: Array) -> Steps:
    """Steps of the whole estimator, which finds the feet's forces from IMU and efforts (n, na), N·m."""
    pipeline.start(in_motion=True)

    def step(k: int) -> tuple[BaseEstimate, NDArray[np.bool_]]:
        time_s = float(samples.time[k])
        found = pipeline.step(time_s, *_row(samples, k), effort[k], look=False)
        return found.odometry, found.contact

    return step


@dataclasses.dataclass(frozen=True)
class Run:
    """The result of a run at its times.

    Attributes:
        time: (n,), s.  position: (n, 3), m.  rotation: (n, 3, 3).  velocity: (n, 3), m/s; of the base, in the
            odometry's frame.
        ready: (n,) bool, whether these are valid.
        touches, believed: (n, feet) bool, loaded feet, and feet that the odometry used.
        lost: (time, s, and why) of each time at which it was lost.
        last: its status at the end, as text.
        step_us: median time of a step.
    """

    time: Array
    position: Array
    rotation: Array
    velocity: Array
    ready: NDArray[np.bool_]
    touches: NDArray[np.bool_]
    believed: NDArray[np.bool_]
    lost: tuple[tuple[float, str], ...]
    last: str
    step_us: float


def run(step: Steps, time_s: Array, feet: int) -> Run:
    """Step through all samples, at times (n,), s."""
    n, state, why = len(time_s), "", ""
    position, velocity, rotation = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3, 3))
    ready = np.zeros(n, dtype=bool)
    touches, believed = np.zeros((n, feet), dtype=bool), np.zeros((n, feet), dtype=bool)
    took_s, lost = np.zeros(n), []
    for k in range(n):
        start = time.perf_counter()
        found, touches[k] = step(k)
        took_s[k] = time.perf_counter() - start
        why = "; ".join(found.reasons)
        if found.state == LOST != state:
            lost.append((float(time_s[k]), why))
        state, ready[k] = found.state, found.ready
        position[k], rotation[k] = found.position, found.rotation
        velocity[k], believed[k] = found.rotation @ found.velocity, found.stands
    return Run(
        time=time_s,
        position=position,
        rotation=rotation,
        velocity=velocity,
        ready=ready,
        touches=touches,
        believed=believed,
        lost=tuple(lost),
        last=why,
        step_us=float(1e6 * np.median(took_s)),
    )


@dataclasses.dataclass(frozen=True)
class Errors:
    """Errors of a run against a measured base, aligned in position and yaw at its start.

    Attributes:
        path_m: length of the measured base's horizontal path.
        drift_m, late_drift_m: horizontal, at the end; median over the last half second.
        height_m, height_rms_m: at the end, and rms.
        velocity_m_s: rms of the differences of both positions over .2 s.
        tilt_deg, yaw_deg: rms of the tilt, yaw at the end.
    """

    path_m: float
    drift_m: float
    late_drift_m: float
    height_m: float
    height_rms_m: float
    velocity_m_s: float
    tilt_deg: float
    yaw_deg: float


def errors(found: Run, position: Array, rotation: Array) -> Errors:
    """Errors against a base at positions (n, 3), m, with rotations (n, 3, 3), at the run's times."""
    first = int(np.argmax(found.ready))
    turn = found.rotation[first] @ rotation[first].T
    yaw = np.arctan2(turn[1, 0] - turn[0, 1], turn[0, 0] + turn[1, 1])
    axes = Rotation.from_euler("z", yaw).as_matrix()
    true = (position - position[first]) @ axes.T + found.position[first]
    path = float(np.linalg.norm(np.diff(position[:, :2], axis=0), axis=1).sum())
    aligned = axes @ rotation[first:]
    tilt = np.linalg.norm(np.cross(found.rotation[first:, 2], aligned[:, 2]), axis=1)
    turned = aligned[-1].T @ found.rotation[-1]
    off = place_errors(found.time[first:], (found.position - true)[first:])
    return dataclasses.replace(
        off,
        path_m=path,
        tilt_deg=float(np.degrees(np.sqrt(np.mean(tilt**2)))),
        yaw_deg=float(np.degrees(np.arctan2(turned[1, 0], turned[0, 0]))),
    )


def place_errors(time_s: Array, error: Array) -> Errors:
    """Errors from those of the position (n, 3), m, alone; path and attitude are NaN."""
    late = time_s > time_s[-1] - LAST_S
    w = max(round(HALF_WINDOW_S / float(np.median(np.diff(time_s)))), 1)
    speed = (error[2 * w :] - error[: -2 * w]) / (time_s[2 * w :] - time_s[: -2 * w])[:, None]
    return Errors(
        path_m=np.nan,
        drift_m=float(np.linalg.norm(error[-1, :2])),
        late_drift_m=float(np.linalg.norm(np.median(error[late, :2], axis=0))),
        height_m=float(error[-1, 2]),
        height_rms_m=float(np.sqrt(np.mean(error[:, 2] ** 2))),
        velocity_m_s=float(np.sqrt(np.mean(np.sum(speed**2, axis=1)))),
        tilt_deg=np.nan,
        yaw_deg=np.nan,
    )
