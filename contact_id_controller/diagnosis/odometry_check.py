"""Runs the base odometry on the log, and compares it with gravity, the feet and a measured base."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.spatial.transform import Rotation

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong
from contact_id_controller.diagnosis.odometry_run import (
    Run,
    Samples,
    Steps,
    by_efforts,
    by_heights,
    by_loads,
    errors,
    run,
)
from contact_id_controller.diagnosis.robot_of_log import RobotOfLog
from contact_id_controller.estimation.base_odometry import BaseOdometry
from contact_id_controller.estimation.odometry_settings import BaseOdometrySettings
from contact_id_controller.estimation.pipeline import EstimationPipeline
from contact_id_controller.estimation.pipeline_settings import PipelineSettings
from contact_id_controller.estimation.stamps import StampFilter
from contact_id_controller.exceptions import ContactIdError
from contact_id_controller.logs.log import Array, BasePose, Log
from contact_id_controller.new_robot.feet_from_shapes import round_foot
from contact_id_controller.new_robot.searched import searched, shapes

NAME = "base odometry"
NEEDS = "--urdf or --config of a robot with legs, an IMU on its base"

SILENT_PERIODS = 2.5
"""Largest distance to an IMU sample, in its periods; beyond it there is none."""

GRAVITY_S = 2.0
"""Span over which the mean specific force, less the change of velocity, is gravity."""

TILT_DEG = 5.0
"""Tolerated tilt against gravity or a measured base; an accelerometer's bias causes one or two degrees."""

DRIFT, DRIFT_M = 0.05, 0.1
"""Share of the path, and length, that a drift must exceed to be reported."""

BELIEVED = 0.5
"""Least share of the time with loaded feet in which the odometry must use them."""


def odometry(case: Case) -> Finding:
    """Run the estimator with its defaults on the corrected log: lost, drift, tilt, and use of the feet."""
    log, of = case.log, case.of
    if of is None or not of.feet or log.imu is None:
        return unknown(NAME, "no robot on legs with an IMU", NEEDS)
    rows = _increasing(log.time)
    gyro, accel = _imu(log, log.time[rows])
    velocity = _at(log.time, case.samples.time, case.samples.velocity)
    velocity = velocity if log.velocity is None else log.velocity
    position = np.asarray(log.position)
    samples = Samples(log.time[rows], position[rows], velocity[rows], gyro, accel, log.period)
    try:
        steps = _steps(case, of, samples, rows)
    except (
        ContactIdError
    ) as error:  # an IMU that is not on the base, a foot that an unmeasured joint moves
        return unknown(NAME, str(error), NEEDS)
    found = run(steps, samples.time, len(of.feet))
    if not found.ready.any():
        needs = "a log of more than 1.5 s, or what the reason names"
        return unknown(NAME, f"it never starts: {found.last}", needs)
    facts, faults = _judged(found, accel @ of.imu_rotation.T, _base(log, rows))
    picture = _picture(found)
    if found.lost:
        when, why = found.lost[0]
        times = "once," if len(found.lost) == 1 else f"{len(found.lost)} times, first"
        faults.insert(0, f"lost {times} at {when:.2f} s ({why})")
    if faults:
        return wrong(
            NAME,
            f"{'; '.join(faults)}; {'; '.join(facts)}; certain",
            "correct the other faults first; then check the IMU's frame in the URDF, the feet's names, and stamps",
            gain=float(len(faults)),
            picture=picture,
        )
    return fine(NAME, f"never lost; {'; '.join(facts)}", picture)


def _steps(case: Case, of: RobotOfLog, samples: Samples, rows: NDArray[np.bool_]) -> Steps:
    """Steps of the odometry with the feet's sensors, the efforts of the legs, or else by which feet are lowest."""
    log, settings = case.log, BaseOdometrySettings(imu_frame=of.imu_frame)
    soles, radius_m = of.feet if of.soles else (), _radius(of)
    if len(log.feet) == len(of.feet):
        loads = _at(samples.time, case.samples.time, case.samples.loads)
        base = BaseOdometry(of.robot, of.feet, radius_m, settings, soles)
        return by_loads(base, samples, loads, of.robot.weight)
    if log.effort is None:
        return by_heights(BaseOdometry(of.robot, of.feet, radius_m, settings, soles), samples)
    pipeline_settings = PipelineSettings(period_s=log.period, soles=soles, odometry=settings)
    pipeline = EstimationPipeline(of.robot, of.feet, radius_m, pipeline_settings)
    return by_efforts(pipeline, samples, log.effort[rows])


def _radius(of: RobotOfLog) -> float:
    """Radius of the feet, m, from the parameter file, or else from the shapes of the description."""
    if of.radius_m or of.soles:
        return of.radius_m
    found = searched(of.urdf)
    model, limbs, parts = found.robot.model, found.limbs, shapes(found)
    return float(
        np.mean([round_foot(model, limbs.posture, leg[-1], parts).radius_m for leg in limbs.legs])
    )


def _increasing(time: Array) -> NDArray[np.bool_]:
    """Rows (n,) whose stamp is later than all before, except after a single stamp that jumps ahead."""
    stamps = StampFilter()
    known = np.array([bool(np.isfinite(stamp)) and stamps.accepts(stamp) for stamp in time])
    latest = np.maximum.accumulate(np.where(known, time, -np.inf))
    return np.concatenate([known[:1], latest[1:] > latest[:-1]])


def _at(times: Array, known: Array, values: Array) -> Array:
    return np.column_stack([np.interp(times, known, column) for column in values.T])


def _imu(log: Log, times: Array) -> tuple[Array, Array]:
    """Angular velocity and specific force (n, 3) at the joints' times; NaN where the IMU was silent."""
    imu = log.imu
    assert imu is not None
    known = _increasing(imu.time)
    stamps = imu.time[known]
    after = np.searchsorted(stamps, times).clip(1, len(stamps) - 1)
    away = np.minimum(abs(times - stamps[after - 1]), abs(stamps[after] - times))
    silent = away > SILENT_PERIODS * float(np.median(np.diff(stamps)))
    gyro, accel = (
        _at(times, stamps, values[known]) for values in (imu.angular_velocity, imu.acceleration)
    )
    gyro[silent] = accel[silent] = np.nan
    return gyro, accel


def _base(log: Log, rows: NDArray[np.bool_]) -> BasePose | None:
    """The measured base at these rows; None if the log has none, or has gaps."""
    base = log.base
    if base is None or base.orientation is None:
        return None
    place, turn = base.position[rows], base.orientation[rows]
    known = np.isfinite(place).all() and (np.linalg.norm(turn, axis=1) > 0.5).all()
    return BasePose(place, turn) if known else None


def _judged(found: Run, force: Array, base: BasePose | None) -> tuple[list[str], list[str]]:
    """Figures as text, and those that are too large.

    Args:
        force: specific force (n, 3), m/s², in the base's axes.  base: at the run's times.
    """
    figures: list[tuple[str, bool]] = []
    loaded = found.touches & found.ready[:, None]
    share = float((found.believed & loaded).sum() / max(1, int(loaded.sum())))
    figures.append(
        (f"{100 * share:.0f} % of the samples of loaded feet are used", share < BELIEVED)
    )
    tilt = gravity_tilt(found, force)
    if np.isfinite(tilt):
        figures.append((f"up is {tilt:.1f} degrees off gravity (rms)", tilt > TILT_DEG))
    if base is not None and base.orientation is not None:
        off = errors(found, base.position, Rotation.from_quat(base.orientation).as_matrix())
        words = (
            f"over the measured {off.path_m:.1f} m it drifts by {1e3 * off.drift_m:.0f} mm "
            f"({100 * off.drift_m / max(off.path_m, 1e-9):.1f} %), height {1e3 * off.height_m:+.0f} mm at the end, "
            f"velocity {100 * off.velocity_m_s:.1f} cm/s and tilt {off.tilt_deg:.2f} degrees rms"
        )
        far = off.drift_m > max(DRIFT * off.path_m, DRIFT_M)
        figures.append((words, far or off.tilt_deg > TILT_DEG))
    return [text for text, bad in figures if not bad], [text for text, bad in figures if bad]


def gravity_tilt(found: Run, force: Array) -> float:
    """Rms angle, degrees, between up and gravity, over spans of two seconds in which the run was ready.

    Gravity is the mean specific force (n, 3), m/s² in the base's axes, less the change of velocity; NaN: no span.
    """
    world = np.einsum("nij,nj->ni", found.rotation, force)
    known = found.ready & np.isfinite(world).all(axis=1)
    number = np.floor((found.time - found.time[0]) / GRAVITY_S).astype(int)
    tilts = []
    for span in range(number[-1]):
        rows = np.flatnonzero(number == span)
        if len(rows) > 1 and known[rows].all():
            speed = found.velocity[rows]
            mean = trapezoid(world[rows], found.time[rows], axis=0) - (speed[-1] - speed[0])
            tilts.append(np.arctan2(np.linalg.norm(mean[:2]), mean[2]))
    return float(np.degrees(np.sqrt(np.mean(np.square(tilts))))) if tilts else float("nan")


def _picture(found: Run) -> Picture:
    """Plot of the base's path."""
    lines = {axis: found.position[:, k] for k, axis in enumerate("xyz")}
    return Picture("Place of the base by the odometry", "time, s", found.time, "m", lines)
