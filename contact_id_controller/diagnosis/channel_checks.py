"""Compares channels with each other: positions and velocities, commands and measurements, accelerometer and gravity."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.even_samples import SMOOTH_S, interpolated, odd_width, smooth
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong
from contact_id_controller.logs.log import Array

ALIKE = 0.9
"""Least correlation of a joint's two velocities with which their ratio is meaningful."""

RATIO = 0.1
"""Tolerance of a joint's ratio of velocities to differentiated positions."""

NEAR = 1.1
"""Factor within which a ratio counts as that of two units."""

GRAVITY = 9.81
GRAVITY_TOLERANCE = 0.05
"""Relative error of an accelerometer that is tolerated: scale and offset of cheap ones."""

BEYOND_RAD = 0.5
"""Distance of a joint beyond its limits that means a wrong unit."""

MOST_AMPERES = 300.0
"""Current beyond that of any joint's motor."""

LEAST_NM_PER_A = 0.05
"""Least torque per ampere of a joint: with gears it is 50 times that and more, in mA a thousandth."""


LOADED = 0.05
"""Share of the model's largest torque below which a joint is not evaluated."""

SCALE, CLEAR = 3.0, 1.5
"""Factor beyond the error of any model in most joints; least ratio of a model's torque to its residual."""


def rates(case: Case) -> tuple[Array, Array] | None:
    """Velocities (n, na) from the positions and as measured, through the same filter; None without both."""
    samples, log = case.samples, case.log
    if log.position is None or log.velocity is None:
        return None
    wide = odd_width(SMOOTH_S, samples.period)
    measured = interpolated(samples, log.velocity)
    travelled = samples.period * np.cumsum(measured, axis=0)
    both = (
        smooth(values, wide, 1, samples.period)[samples.good]
        for values in (interpolated(samples, log.position), travelled)
    )
    return next(both), next(both)


def correlations(by_position: Array, measured: Array) -> Array:
    """Correlation (na, na) of each measured velocity, a row, with each differentiated position."""
    x, y = by_position - by_position.mean(axis=0), measured - measured.mean(axis=0)
    sizes = np.outer(np.linalg.norm(y, axis=0), np.linalg.norm(x, axis=0))
    return np.divide(y.T @ x, sizes, out=np.zeros_like(sizes), where=sizes > 1e-12)


def angle_unit(case: Case) -> Finding:
    """Check for positions and velocities in degrees, by their ratio, and by the joint limits."""
    name, found = "units of angles", rates(case)
    if found is not None:
        x, y = found
        alike = np.abs(np.diag(correlations(x, y))) > ALIKE
        if alike.any():
            slope = np.abs(np.sum(x * y, axis=0) / np.maximum(np.sum(x * x, axis=0), 1e-12))
            middle = float(np.median(slope[alike]))
            for ratio, channel in ((1.0 / DEG, "velocity"), (DEG, "position")):
                if ratio / NEAR < middle < ratio * NEAR:
                    return _degrees(
                        name, (channel,), f"velocities are {middle:.3g} of the positions' rates"
                    )
    limits = None if case.of is None else (case.of.robot.lower, case.of.robot.upper)
    position = case.log.position
    if limits is None or position is None:
        return unknown(name, "no limits of joints to compare with", "--urdf")
    low, high = np.nanmin(position, axis=0), np.nanmax(position, axis=0)
    beyond = (low < limits[0] - BEYOND_RAD) | (high > limits[1] + BEYOND_RAD)
    within = (low * DEG >= limits[0] - 0.1) & (high * DEG <= limits[1] + 0.1)
    if beyond.any() and within.all():
        worst = int(np.argmax(np.maximum(limits[0] - low, high - limits[1])))
        text = f"{case.log.joints[worst]} goes from {low[worst]:.3g} to {high[worst]:.3g}, beyond its limits"
        channels = ("position",) if case.log.velocity is None else ("position", "velocity")
        return _degrees(name, channels, f"{text}; or they are of motors, before gears", "likely")
    if beyond.any():
        joint = case.log.joints[int(np.argmax(beyond))]
        return unknown(
            name,
            f"{joint} is beyond its limits, and would be after conversion from degrees",
            "see zero offsets",
        )
    return fine(name, "positions are within the joints' limits, velocities are their rates")


DEG = math.pi / 180.0


def channel_order(case: Case) -> Finding:
    """Check for exchanged position and velocity channels: each velocity would be the integral of its position."""
    name, samples, log = "order of channels", case.samples, case.log
    if log.position is None or log.velocity is None:
        return unknown(name, "no velocities beside the positions", "measured velocities")
    wide = odd_width(SMOOTH_S, samples.period)
    rate = smooth(interpolated(samples, log.velocity), wide, 1, samples.period)[samples.good]
    y = smooth(interpolated(samples, log.position), wide)[samples.good]
    x, y = rate - rate.mean(axis=0), y - y.mean(axis=0)
    squares = np.sum(x * x, axis=0)
    slope = np.divide(
        np.sum(x * y, axis=0), squares, out=np.zeros_like(squares), where=squares > 1e-12
    )
    correlated = np.diag(correlations(x, y)) > ALIKE
    crossed = correlated & (slope > 1.0 / NEAR) & (slope < NEAR)
    moving = int(np.sum(np.ptp(y, axis=0) > 0.0))
    if 2 * int(crossed.sum()) <= moving:
        return fine(name, "positions are not the rates of the velocities")
    return wrong(
        name,
        f"position and velocity are exchanged: the position is the rate of the velocity in {int(crossed.sum())} joints, certain",
        "exchange 'position' and 'velocity' in 'channels' of --map",
        gain=6.0,
        ends=True,
    )


def _degrees(name: str, channels: tuple[str, ...], why: str, sure: str = "certain") -> Finding:
    """Finding that channels are in degrees; why, sure: the evidence, and how certain it is, as words."""
    return wrong(
        name,
        f"{' and '.join(channels)} in degrees ({why}), {sure}",
        f"set the unit of {' and '.join(channels)} to deg in --map",
        {"units": {channel: "deg" if channel == "position" else "deg/s" for channel in channels}},
        gain=math.log(1.0 / DEG),
    )


def velocity_order(case: Case) -> Finding:
    """Check for velocity columns that belong to other joints, by correlation."""
    name, found = "order of joints", rates(case)
    if found is None:
        return unknown(name, "no velocities beside the positions", "measured velocities")
    c = np.abs(correlations(*found))
    for i in range(len(c)):
        for j in range(i):
            crossed, own = min(c[i, j], c[j, i]), max(c[i, i], c[j, j])
            if crossed > ALIKE and own < crossed**2:
                return _swapped(case, name, i, j, crossed)
    return fine(name, "each velocity is the rate of the position of its own column")


def _swapped(case: Case, name: str, i: int, j: int, crossed: float) -> Finding:
    """Finding on joints i and j with exchanged columns; the model decides in which channel."""
    a, b = case.log.joints[j], case.log.joints[i]
    which, order = "position or velocity", list(range(len(case.log.joints)))
    order[i], order[j] = j, i
    if case.cost is not None and case.log.position is not None:
        moved = dataclasses.replace(case.log, position=case.log.position[:, order])
        cost = dataclasses.replace(case, log=moved).cost
        which = "position" if cost is not None and cost < case.cost else "velocity"
    where = "one of both channels" if " or " in which else f"'{which}'"
    text = f"{a} and {b} are exchanged in {which}: the rate of one is the other's velocity (correlation {crossed:.2f}), certain"
    return wrong(
        name,
        text,
        f"exchange the columns of {a} and {b} in {where} in --map",
        gain=5.0 * crossed,
        ends=True,
    )


def velocity_scale(case: Case) -> Finding:
    """Check signs and gear ratios between positions and velocities."""
    name, found = "sign and gear ratio of velocities", rates(case)
    if found is None:
        return unknown(name, "no velocities beside the positions", "measured velocities")
    x, y = found
    correlation = np.diag(correlations(x, y))
    ratios = np.sum(x * y, axis=0) / np.maximum(np.sum(x * x, axis=0), 1e-12)
    correlated = np.abs(correlation) > ALIKE
    if not correlated.any():
        return unknown(name, "joints hardly move", "a motion of several degrees of each joint")
    against = np.flatnonzero(correlated & (correlation < 0.0))
    if against.size:
        return _turned(case, name, int(against[np.argmin(correlation[against])]), correlation, x, y)
    median = float(np.median(ratios[correlated]))
    # The unexplained part of a velocity may change its ratio by as much.
    uncertainty = np.sqrt(1.0 / np.clip(correlation, ALIKE, 1.0) ** 2 - 1.0)
    excess = np.where(correlated, np.abs(ratios / median - 1.0) - RATIO - uncertainty, -1.0)
    k = int(np.argmax(excess))
    if excess[k] > 0.0:
        joint, factor = case.log.joints[k], float(ratios[k] / median)
        fragment = _better(
            case,
            {"correct": {"position": {joint: {"times": factor}}}},
            {"correct": {"velocity": {joint: {"times": 1.0 / factor}}}},
        )
        return wrong(
            name,
            f"velocity of {joint} is {factor:.3f} times the rate of its position, the others' {median:.2f} (correlation {correlation[k]:.3f}), certain",
            f"gear ratio of {joint}: {_advice(fragment)}",
            fragment,
            abs(math.log(factor)) + 1.0,
            _picture(case, k, x, y),
        )
    undetermined = [name for name, determined in zip(case.log.joints, correlated) if not determined]
    more = f"; {len(undetermined)} joints hardly move" if undetermined else ""
    return fine(
        name,
        f"velocities are {median:.2f} of the positions' rates in {int(correlated.sum())} joints{more}",
    )


def _turned(case: Case, name: str, k: int, c: Array, x: Array, y: Array) -> Finding:
    """Finding on a joint whose velocity has the opposite sign of its position's rate."""
    joint = case.log.joints[k]
    fragment = _better(
        case,
        {"correct": {"position": {joint: {"times": -1.0}}}},
        {"correct": {"velocity": {joint: {"times": -1.0}}}},
    )
    return wrong(
        name,
        f"velocity of {joint} has the opposite sign of the rate of its position (correlation {c[k]:.2f}), certain",
        f"invert the sign: {_advice(fragment)}",
        fragment,
        5.0,
        _picture(case, k, x, y),
    )


def _better(
    case: Case, position: dict[str, object], velocity: dict[str, object]
) -> dict[str, object]:
    """The correction with which the model agrees better; that of the velocity without a model."""
    if case.cost is None:
        return velocity
    changed = case.with_correction(position).cost
    return position if changed is not None and changed < case.cost else velocity


def _advice(fragment: object) -> str:
    return (
        "paste the printed lines into the file of --map" if fragment else "in one of both channels"
    )


def _picture(case: Case, k: int, x: Array, y: Array) -> Picture:
    time = case.samples.time[case.samples.good]
    lines = {"rate of the position": x[:, k], "measured": y[:, k]}
    return Picture(f"Velocity of {case.log.joints[k]}", "time, s", time, "rad/s", lines)


def gravity_unit(case: Case) -> Finding:
    """Check the accelerometer's unit and scale by gravity."""
    name, imu = "unit of the accelerometer", case.log.imu
    if imu is None:
        return unknown(name, "no IMU", "an IMU in the log")
    size = float(np.nanmedian(np.linalg.norm(imu.acceleration, axis=1)))
    ratio = size / GRAVITY
    for unit, factor in (("g", 1.0 / 9.80665), ("mg", 1e3 / 9.80665)):
        if factor / NEAR < ratio < factor * NEAR:
            return wrong(
                name,
                f"at rest it reads {size:.4g}: {unit} instead of m/s², certain",
                f"set the unit of imu.acceleration to {unit!r} in --map",
                {"units": {"imu.acceleration": 1.0 / factor}},
                gain=3.0,
            )
    if ratio < 1.0 / (1.0 + 2.0 * GRAVITY_TOLERANCE) or ratio > 1.0 + 2.0 * GRAVITY_TOLERANCE:
        text = f"at rest it reads {size:.4g} m/s² instead of {GRAVITY}, certain"
        if size < 0.3 * GRAVITY:
            text += ": gravity seems to be removed"
        return wrong(name, text, "scale it, or log the specific force with gravity", gain=2.0)
    return fine(name, f"median {size:.2f} m/s²")


def current_unit(case: Case) -> Finding:
    """Check for currents in mA: by the commands, by what motors can take, and by the model's torques."""
    name, log = "unit of the currents", case.log
    if log.current is None:
        return unknown(name, "no currents", "motor currents in the log")
    if log.commands.current is not None:
        measured, commanded = (
            np.nanstd(log.current, axis=0),
            np.nanstd(log.commands.current, axis=0),
        )
        correlation = _alike(log.commands.current, log.current)
        moving = (commanded > 0.0) & (correlation > ALIKE)  # both are noise on an arm at rest
        ratio = float(np.median(measured[moving] / commanded[moving])) if moving.any() else 1.0
        if 1e3 / 2.0 < ratio < 1e3 * 2.0:
            return _milliamperes(name, f"they are {ratio:.4g} of the commanded ones")
    largest = float(np.nanmax(np.abs(log.current)))
    if case.fit is not None and case.motion is not None and case.motion.currents:
        explained = case.fit.residual < 0.3 * np.std(case.motion.effort, axis=0)
        gains = case.fit.gain[explained & (case.fit.gain > 0.0)]
        if gains.size and 1.0 / float(np.median(gains)) < LEAST_NM_PER_A:
            return _milliamperes(
                name, f"joints would give {1.0 / np.median(gains):.2g} N·m per ampere"
            )
    if largest > MOST_AMPERES:
        return _milliamperes(name, f"up to {largest:.4g}")
    return fine(name, f"up to {largest:.3g} A")


def _alike(first: Array, second: Array) -> Array:
    """Correlation (na,) of the columns of two channels (n, na), where both are finite."""
    known = np.isfinite(first) & np.isfinite(second)
    x, y = (np.where(known, each, np.nan) for each in (first, second))
    x, y = (np.nan_to_num(each - np.nanmean(each, axis=0)) for each in (x, y))
    sizes = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    return np.divide(np.sum(x * y, axis=0), sizes, out=np.zeros_like(sizes), where=sizes > 0.0)


def _milliamperes(name: str, why: str) -> Finding:
    """Finding on currents in mA, and why."""
    return wrong(
        name,
        f"currents in mA ({why}), certain",
        "set the unit of current to mA in --map",
        {"units": {"current": "mA"}},
        gain=7.0,
    )


def effort_unit(case: Case) -> Finding:
    """Check for efforts at another scale than the model's torques in most joints: currents, motor torques, N·mm."""
    name, motion, fit = "unit of the efforts", case.motion, case.fit
    if motion is None or fit is None or motion.currents:
        return unknown(name, "needs efforts of a fixed base, and a URDF", "efforts, and --urdf")
    if case.carries:
        return unknown(
            name,
            "efforts are many times those of unloaded legs: the robot stands on them, or they have another unit",
            "a log with the base held and without contact",
        )
    gains = np.full(len(case.log.joints), np.nan)
    sizes = np.std(fit.model_torque, axis=0)
    for j, torque in enumerate(fit.model_torque.T):
        if sizes[j] < LOADED * np.max(sizes):
            continue
        v = motion.v[:, j]
        columns = np.column_stack(
            [torque, motion.rubbing[:, j], v, np.ones(len(v)), motion.a[:, j]]
        )
        values = np.linalg.lstsq(columns, motion.effort[:, j], rcond=None)[0]
        residual = motion.effort[:, j] - columns @ values
        if abs(values[0]) * sizes[j] > CLEAR * np.std(residual):
            gains[j] = values[0]
    significant = np.isfinite(gains)
    if not significant.any():
        return unknown(
            name,
            "efforts hardly correlate with the model's torques",
            "a motion that works against gravity",
        )
    median = float(np.median(np.abs(gains[significant])))
    if 1.0 / SCALE < median < SCALE:
        return fine(
            name, f"efforts are {median:.2f} times the model's torques (median of the joints)"
        )
    factors = {  # what is not known of a joint is taken from the others
        joint: {"times": float(f"{1.0 / (gain if np.isfinite(gain) else median):.4g}")}
        for joint, gain in zip(case.log.joints, gains)
    }
    listed = ", ".join(
        f"{joint} {factors[joint]['times']:.3g}"
        for joint, is_significant in zip(case.log.joints, significant)
        if is_significant
    )
    return wrong(
        name,
        f"efforts are {median:.3g} times the model's torques (median of the joints): currents or another unit, certain",
        f"multiply them by N·m per unit: {listed}",
        {"correct": {"effort": factors}},
        gain=abs(math.log(median)),
        ends=not significant.all(),
    )
