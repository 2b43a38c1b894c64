"""The channels of a log at even times, and where they are unreliable."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from scipy.signal import savgol_filter

from contact_id_controller.exceptions import RecordError
from contact_id_controller.logs.log import Array, Log

GAP_PERIODS = 5.0
"""Longest step of the stamps, in periods, over which channels are interpolated; a longer one is a gap."""

BURST = 0.5
"""Share of the period below which a step follows a late sample: samples arrived in bursts."""

BURST_WINDOW = 21
SMOOTH_S = 0.1
"""Width of the local cubic that gives accelerations; half of it where only velocities are needed."""


@dataclasses.dataclass(frozen=True)
class EvenSamples:
    """A log at even times, with derivatives of local polynomials, without delay.

    Attributes:
        log: as it was read.  period: s.  time: (n,), s.
        good: (n,) bool, no gap within the width of the polynomials.
        position, velocity, acceleration: (n, na), rad; the latter two differentiated from the first.
        measured_velocity, effort, current: (n, na), smoothed over the same width; or None.
        gyro, accel: (n, 3), of the IMU, interpolated from its own stamps and smoothed; or None.
        loads: (n, feet), N or the sensors' unit: size of the force, or the normal force.
        feet: names of the columns of ``loads``.
    """

    log: Log
    period: float
    time: Array
    good: NDArray[np.bool_]
    position: Array
    velocity: Array
    acceleration: Array
    measured_velocity: Array | None
    effort: Array | None
    current: Array | None
    gyro: Array | None
    accel: Array | None
    loads: Array
    feet: tuple[str, ...]

    @property
    def width(self) -> int:
        """Width of the polynomials for velocities, samples."""
        return odd_width(SMOOTH_S / 2.0, self.period)

    def smoothed(self, values: Array, seconds: float = SMOOTH_S / 2.0) -> Array:
        """Values (n, k), smoothed without delay."""
        return smooth(values, odd_width(seconds, self.period))


def odd_width(seconds: float, period: float, least: int = 5) -> int:
    """The odd number of samples closest to a duration, s."""
    return max(least, 2 * round(seconds / period / 2.0) + 1)


def smooth(values: Array, width: int, derivative: int = 0, period: float = 1.0) -> Array:
    """Local polynomials (second order, for accelerations third) through values (n, k), or their derivative."""
    order = 3 if derivative == 2 else 2
    return cast(Array, savgol_filter(values, width, order, derivative, period, axis=0))


def trusted_time(time: Array, period: float) -> Array:
    """Stamps (n,) without their jitter where samples arrived in bursts.

    Late stamps followed by early ones are late messages of an even clock; without early ones messages are missing,
    and the stamps are right.
    """
    steps = np.diff(time)
    early, late = np.mean(steps < BURST * period), np.mean(steps > (2.0 - BURST) * period)
    if early == 0.0 or early < 0.5 * late or len(time) <= BURST_WINDOW:
        return time
    return cast(Array, savgol_filter(time, BURST_WINDOW, 1))


def even(log: Log) -> EvenSamples:
    """Resample a log at even times.

    Raises:
        RecordError: neither positions nor velocities, or too few rows.
    """
    period = log.period
    if not np.isfinite(period) or log.position is None:
        raise RecordError(f"the log {log.source!r} has no positions at increasing times")
    order = np.argsort(log.time, kind="stable")
    stamps = trusted_time(log.time[order], period)
    _, first = np.unique(stamps, return_index=True)
    rows, stamps = order[first], stamps[first]
    n = int((stamps[-1] - stamps[0]) / period) + 1
    wide = odd_width(SMOOTH_S, period)
    if not 4 * wide < n < 50 * len(rows) + 1000:
        raise RecordError(
            f"the log {log.source!r} has {len(rows)} rows over {stamps[-1] - stamps[0]:g} s, "
            f"must be spread evenly over {4 * wide * period:.2g} s or more"
        )
    time = stamps[0] + period * np.arange(n)
    holes = np.flatnonzero(np.diff(stamps) > GAP_PERIODS * period)
    bad = np.zeros(n, dtype=bool)
    for k in holes:
        bad |= (time > stamps[k]) & (time < stamps[k + 1])
    bad[:wide] = bad[-wide:] = True

    def at(values: Array | None) -> Array | None:
        return None if values is None else _interpolated(time, stamps, values[rows])

    position = cast(Array, at(log.position))
    loads = _loads(log.feet)
    imu = log.imu
    width = odd_width(SMOOTH_S / 2.0, period)
    optional = {
        name: None if values is None else smooth(cast(Array, at(values)), wide)
        for name, values in (
            ("measured_velocity", log.velocity),
            ("effort", log.effort),
            ("current", log.current),
        )
    }
    gyro = accel = None
    if imu is not None:
        own = trusted_time(imu.time, float(np.median(np.diff(imu.time))))
        gyro = smooth(_interpolated(time, own, imu.angular_velocity), width)
        accel = smooth(_interpolated(time, own, imu.acceleration), width)
    return EvenSamples(
        log=log,
        period=period,
        time=time,
        good=~binary_dilation(bad, iterations=wide),
        position=smooth(position, width),
        velocity=smooth(position, width, 1, period),
        acceleration=smooth(position, wide, 2, period),
        gyro=gyro,
        accel=accel,
        loads=cast(Array, at(loads)) if loads.shape[1] else np.zeros((n, 0)),
        feet=tuple(log.feet),
        **optional,
    )


def interpolated(samples: EvenSamples, values: Array) -> Array:
    """Another channel (n, k) of the log at the even times, not smoothed."""
    log = samples.log
    return _interpolated(samples.time, trusted_time(log.time, samples.period), values)


def _interpolated(time: Array, stamps: Array, values: Array) -> Array:
    """Values (n, k) at other times; NaN is left out."""
    columns = []
    for column in values.T:
        known = np.isfinite(column) & np.isfinite(stamps)
        order = np.argsort(stamps[known], kind="stable")
        columns.append(
            np.interp(time, stamps[known][order], column[known][order])
            if known.any()
            else np.zeros(len(time))
        )
    return np.column_stack(columns)


def _loads(feet: Mapping[str, Array]) -> Array:
    """The size of each foot's force, or its normal force, (n, feet)."""
    columns = [
        values[:, 0] if values.shape[1] == 1 else np.linalg.norm(values[:, :3], axis=1)
        for values in feet.values()
    ]
    return np.column_stack(columns) if columns else np.zeros((0, 0))
